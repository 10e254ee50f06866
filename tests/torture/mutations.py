"""Bytes → damaged bytes: what disks, networks and people do to files, and what an attacker would."""

import gzip
import io
import re
import zipfile

import numpy as np

EXTREMES = [
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\x7f",
    b"\x00\x00\x00\x80",
    b"\x00\x00\x00\x00",
    b"\xff" * 8,
    b"\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\x00" * 8,
    b"\x01\x00\x00\x00\x00\x00\x00\x00",
]
WORDS = [  # what numbers and names are replaced with in files of text
    *("-1", "0", "1", "1e9", "1000000000", "99999999999999999999", "-99999999999999999999", "4294967296", "1e400", "-1e400"),
    *("nan", "inf", "-inf", "NaN", "", " ", "1.5", "0.5.5", "abc", "True", "None", "null", "0x10", "1_000", "١", "½"),
    *(
        "\x1b[2J",
        "\x00",
        "\x07",
        "\r",
        "\n",
        "\n\n",
        "\t",
        ",",
        ";",
        '"',
        '""',
        "'",
        "=1+1",
        "@cmd",
        "é",
        "\ufeff",
        "\u202e",
        "😀",
    ),
    *(
        "<",
        ">",
        "&",
        "&lt;",
        "&amp;",
        "&#0;",
        "&x;",
        "]]>",
        "<!--",
        '<!DOCTYPE a [<!ENTITY x "y">]>',
        "%",
        "%%",
        "#",
        ":",
        "1:1",
    ),
    *("a" * 5000, "9" * 400, "[" * 2000, '{"a":' * 500, "1 1 1\n" * 50),
    *(
        "source",
        "target",
        "weight",
        "id",
        "label",
        "array",
        "coordinate",
        "complex",
        "pattern",
        "symmetric",
        "hermitian",
        "integer",
    ),
    *("'fortran_order': True", "'descr': '|O'", "'descr': '<c16'", "'shape': (3, 10000000000)", "'shape': ()", "(-1, 3)"),
]
TOKEN = re.compile(rb"[^\s,;:<>\"'=()\[\]{}]+")


def damaged(rng: np.random.Generator, data: bytes, others: list[bytes]) -> bytes:
    """The file after one to four accidents; every other file has one of the mild ones, after which much can still be read."""
    if rng.random() < 0.5:
        return MILD[rng.integers(len(MILD))](rng, data, others)
    for _ in range(int(rng.choice([1, 1, 2, 4]))):
        data = ACCIDENTS[rng.integers(len(ACCIDENTS))](rng, data, others)
    return data


def damaged_inside(rng, data: bytes, others: list[bytes]) -> bytes:
    """The same for what is inside of a gzip or zip file, which is then packed again, so that its checksums are right."""
    if data[:2] == b"\x1f\x8b":
        return gzip.compress(damaged(rng, gzip.decompress(data), others))
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(packed, "w") as new:
        names = old.namelist()
        chosen = names[rng.integers(len(names))]
        for name in names:
            inside = old.read(name)
            if name == chosen and rng.random() < 0.1:
                continue  # an array is missing
            new.writestr(name, damaged(rng, inside, [old.read(other) for other in names]) if name == chosen else inside)
    return packed.getvalue()


def _place(rng, data) -> int:
    """A place in the data, near its beginning more often, where headers are."""
    return int(rng.integers(max(1, len(data)))) if rng.random() < 0.6 else int(rng.integers(max(1, min(200, len(data)))))


def _flip(rng, data, others):
    changed = bytearray(data)
    for _ in range(int(rng.choice([1, 1, 3, 20]))):
        if changed:
            changed[_place(rng, data)] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _flip_one(rng, data, others):
    at = _place(rng, data)
    return data[:at] + bytes([data[at] ^ (1 << int(rng.integers(8)))]) + data[at + 1 :] if data else data


def _set(rng, data, others):
    at = _place(rng, data)
    return data[:at] + bytes([int(rng.choice([0, 255, 127, 128, 10, 34, 44, int(rng.integers(256))]))]) + data[at + 1 :]


def _cut(rng, data, others):
    return data[: _place(rng, data)] if rng.random() < 0.7 else data[_place(rng, data) :]


def _extreme(rng, data, others):
    value, at = EXTREMES[rng.integers(len(EXTREMES))], _place(rng, data)
    at -= at % 4 if rng.random() < 0.5 else 0
    return data[:at] + value + data[at + len(value) * bool(rng.random() < 0.8) :]


def _swap(rng, data, others):
    a, b, c = sorted(_place(rng, data) for _ in range(3))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def _repeat(rng, data, others):
    a, b = sorted(_place(rng, data) for _ in range(2))
    return data[:b] + data[a:b] * int(rng.choice([1, 2, 50])) + data[b:]


def _splice(rng, data, others):
    other = others[rng.integers(len(others))]
    return data[: _place(rng, data)] + other[_place(rng, other) :]


def _word(rng, data, others):
    """A number or a name is replaced by another."""
    tokens = list(TOKEN.finditer(data[:20_000]))
    if not tokens:
        return _extreme(rng, data, others)
    begin, end = tokens[rng.integers(len(tokens))].span()
    return data[:begin] + WORDS[rng.integers(len(WORDS))].encode() + data[end:]


def _line(rng, data, others):
    """A line is left out, or comes twice, or is cut."""
    lines = data.split(b"\n")
    at, way = int(rng.integers(len(lines))), rng.integers(3)
    lines[at : at + 1] = [[], [lines[at]] * 3, [lines[at][: len(lines[at]) // 2]]][way]
    return b"\n".join(lines)


ACCIDENTS = [_flip, _flip, _set, _cut, _extreme, _extreme, _swap, _repeat, _splice, _word, _word, _word, _line]
MILD = [_flip_one, _set, _word, _line]
