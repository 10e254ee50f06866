"""Graph files with random damage. Reading one ends in a graph that an independent check passes, or in an error of one line.

`python tests/mutated.py 1000 --seed 3` reads a thousand files of each kind in child processes, so that a crash is counted and
does not end the count; files that end in anything else are kept in --folder.
"""

import argparse
import gzip
import io
import json
import re
import subprocess
import sys
import tempfile
import traceback
import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.io import mmwrite

from smoothgraph.io import read_graph, write_graph

NUMBERS = [0, 1, -1, 2, 255, 2**15, 2**31 - 1, -(2**31), 2**32 - 1, 10**9, 2**62, 2**63 - 1, -(2**63)]
WORDS = [b"-1", b"0", b"1e400", b"nan", b"inf", b"-inf", b"9" * 30, b"1000000000", b"", b"\0", b"\xff\xfe", b'"', b"\x1b[2J"]
LIMIT = 2e9  # bytes of memory that a mutated file may ask for
BATCH = 200  # files that one child process reads


def sources(folder: Path) -> dict[str, bytes]:
    """Sound files of every kind, by their names."""
    rng = np.random.default_rng(0)
    upper = sp.triu(sp.random(15, 15, 0.25, random_state=rng), k=1)
    W, ids = sp.csr_matrix(upper + upper.T), [f"n{i}" for i in range(15)]
    metadata = {"theta": 1.5, "parameters": {"n_neighbors": 3}, "model_parameters": {}, "smoothgraph": "0"}
    for kind in ("npz", "parquet", "csv", "graphml"):
        write_graph(folder / f"a.{kind}", W, ids=ids, labels=np.arange(15) % 3, metadata=metadata)
    write_graph(folder / "b.csv", W)
    write_graph(folder / "b.parquet", W, ids=np.arange(15)[::-1])
    for kind in ("csr", "csc", "coo", "bsr", "dia"):
        sp.save_npz(folder / f"{kind}.npz", W.asformat(kind))
    mmwrite(folder / "a.mtx", W)
    mmwrite(folder / "b.mtx", W.toarray())
    mmwrite(folder / "c.mtx", sp.coo_matrix(np.rint(10 * W.toarray()).astype(int)), field="integer", symmetry="general")
    (folder / "names.csv").write_text("source;target;weight\nal;bob;2\nbob;cy;3.5\n")
    for name in ("a.mtx", "a.csv", "a.graphml"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes(), mtime=0))
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def mutated(data: bytes, rng) -> bytes:
    """The bytes with some damage: flipped bits, other numbers, pieces that are gone, doubled, inserted or cut off."""
    for _ in range(int(rng.integers(1, 4))):
        data = _MUTATIONS[rng.integers(len(_MUTATIONS))](bytearray(data), rng)
    return bytes(data)


def mutated_inside(name: str, data: bytes, rng) -> bytes:
    """The same within an archive, whose checksums stay right: the damage is found by nobody but us."""
    if name.endswith(".gz"):
        return gzip.compress(mutated(gzip.decompress(data), rng), mtime=0)
    if not name.endswith(".npz"):
        return mutated(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    for member in rng.choice(list(members), size=int(rng.integers(1, 3))):
        members[member] = mutated(members[member], rng)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return buffer.getvalue()


def _at(data, rng, room=0):
    return int(rng.integers(max(len(data) - room, 1)))


def _flip(data, rng):
    for _ in range(int(rng.integers(1, 5))):
        if data:
            data[_at(data, rng)] ^= 1 << int(rng.integers(8))
    return data


def _cut(data, rng):
    return data[: _at(data, rng)]


def _remove(data, rng):
    begin = _at(data, rng)
    del data[begin : begin + int(rng.integers(1, 20))]
    return data


def _double(data, rng):
    begin = _at(data, rng)
    return data[:begin] + data[begin : begin + int(rng.integers(1, 50))] + data[begin:]


def _insert(data, rng):
    begin = _at(data, rng)
    return data[:begin] + rng.bytes(int(rng.integers(1, 12))) + data[begin:]


def _number(data, rng):
    """Length fields and offsets are numbers of 4 or 8 bytes."""
    size, begin = (4, 8)[rng.integers(2)], _at(data, rng, 8)
    value = NUMBERS[rng.integers(len(NUMBERS))] % (1 << (8 * size))
    return data[:begin] + value.to_bytes(size, "little") + data[begin + size :]


def _word(data, rng):
    """One of the numbers in a text becomes another word."""
    found = list(re.finditer(rb"[0-9.e+-]+", bytes(data[:100_000])))
    if not found:
        return data
    match = found[rng.integers(len(found))]
    return data[: match.start()] + WORDS[rng.integers(len(WORDS))] + data[match.end() :]


_MUTATIONS = (_flip, _cut, _remove, _double, _insert, _number, _word, _word)


def faults(path: Path) -> str:
    """What is wrong with how `read_graph` ends for this file; "" if nothing is."""
    try:
        stored = read_graph(path, max_memory=LIMIT)
    except (ValueError, OSError) as error:
        text = str(error)
        return "" if text and text.isprintable() and len(text) < 2000 else f"a message of many lines: {text!r}"
    except BaseException:
        return traceback.format_exc()
    return _unsound(stored)


def _unsound(stored) -> str:
    """What is wrong with a graph that was read. It shares no code with the checks of the package."""
    W, n = stored.W, stored.W.shape[0]
    if W.shape != (n, n) or n == 0 or len(W.indptr) != n + 1 or W.indptr[0] != 0 or (np.diff(W.indptr) < 0).any():
        return "indptr"
    if not W.indptr[-1] == len(W.indices) == len(W.data) or W.dtype.kind != "f":
        return "lengths"
    rows = np.repeat(np.arange(n), np.diff(W.indptr)).tolist()
    entries = dict(zip(zip(rows, W.indices.tolist(), strict=True), W.data.tolist(), strict=True))
    if len(entries) != len(rows) or sorted(entries) != list(entries):
        return "not canonical"
    for (i, j), weight in entries.items():
        if not (0 <= j < n and 0.0 < weight < float("inf") and abs(entries.get((j, i), 0.0) - weight) <= 2e-5 * weight):
            return f"entry {i}, {j}: {weight}"
    for values in (stored.ids, stored.labels):
        if values is not None and (len(values) != n or values.dtype.kind not in "iU"):
            return "ids or labels"
    if stored.ids is not None and len(set(stored.ids.tolist())) != n:
        return "ids are not unique"
    str(stored.ids).encode("utf-8")
    return "" if isinstance(stored.metadata, dict) and json.dumps(stored.metadata) else "metadata"


def mutants(files: dict[str, bytes], count: int, seed: int):
    """`count` damaged files (number, name, bytes) of every kind; half of the damage is within archives."""
    for name, data in files.items():
        for number in range(count):
            rng = np.random.default_rng([seed, number, *name.encode()])
            yield number, name, mutated(data, rng) if number % 2 else mutated_inside(name, data, rng)


def _child(folder, faults):
    """Read every file of a folder, and print (name, fault) as a line of JSON before the next is begun."""
    for path in sorted(Path(folder).iterdir()):
        print(json.dumps(path.name), flush=True)
        if found := faults(path):
            print(json.dumps([path.name, found]), flush=True)


def main(script=__file__, sources=sources, faults=faults):
    """Count the failures; `script` is the file that calls this, which its child processes run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", nargs="?", type=int, default=100, help="files of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=Path("mutated_failures"), help="where files that fail are kept")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return _child(options.child, faults)
    with tempfile.TemporaryDirectory() as top:
        files = sources(Path(top))
    total, failed = 0, 0
    every = list(mutants(files, options.count, options.seed))
    for begin in range(0, len(every), BATCH):
        batch = {f"{number:06d}-{name}": data for number, name, data in every[begin : begin + BATCH]}
        total += len(batch)
        failed += _run(batch, options.folder, script)
    print(f"{total} files of {len(files)} kinds, seed {options.seed}: {failed} failed")
    return failed > 0


def _run(batch, keep, script) -> int:
    """The number of failures; after a crash, the files behind the one that crashed are read by another child."""
    failed = 0
    while batch:
        with tempfile.TemporaryDirectory() as folder:
            for name, data in batch.items():
                (Path(folder) / name).write_bytes(data)
            command = [sys.executable, script, "--child", folder]
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        bad = {line[0]: line[1] for line in lines if isinstance(line, list)}
        begun = [line for line in lines if isinstance(line, str)]
        if done.returncode:
            bad[begun[-1]] = f"the process ended with {done.returncode}: {done.stderr[-500:]}"
        for name, why in bad.items():
            keep.mkdir(exist_ok=True)
            (keep / name).write_bytes(batch[name])
            print(f"--- {name}\n{why}")
        failed += len(bad)
        batch = {name: data for name, data in batch.items() if name > begun[-1]} if done.returncode else {}
    return failed


if __name__ == "__main__":
    sys.exit(main())
