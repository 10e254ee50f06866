"""docs/reliability.json, every session, and found.json, what was found on the way → docs/reliability.md."""

import json
from collections import Counter
from pathlib import Path

from torture import ledger

PAGE = ledger.DOCS / "reliability.md"
FOUND = Path(__file__).parent / "found.json"
CASES = Path(__file__).parent / "cases"
HEAD = """# Reliability

Written by `make torture` from `docs/reliability.json`; do not edit. `make torture KINDS="problems kills" BUDGET=600` runs a
part for so many seconds each, and what it sees is added. Every session begins with a seed, and the same seed gives the same
cases.

Each promise is tested by random cases of one kind (`tests/torture`), and judged by something that shares no code with the
library: sums over all pairs in plain NumPy, CVXPY, the library on the other side of a format, or the operating system. A case
that fails is made smaller and kept; the test suite runs all that were kept on every change, and some new ones of each kind.
"""
PROMISES = {  # kind → (title, the promise, what the trials are called, how they are judged)
    "problems": (
        "The optimum",
        "A graph that says it is the optimum is the optimum, whatever the model, the options and the data; else it says "
        "what was missed, or an error says what is wrong with the table.",
        "random problems of 3 to 60 samples",
        "The duality gap over all pairs, in float64, proves how far the graph is from the optimum. A share is compared "
        "with CVXPY, with the primal-dual scheme, with other neighbour lists, with float32 against float64, and with two "
        "threads, bit by bit; rows for new samples are put into the equation that they solve.",
    ),
    "files": (
        "Files that nobody vouches for",
        "Whatever a file holds, reading it ends in sound data, or in an error of one printable line.",
        "damaged files of every format that is read",
        "Bits are flipped, blocks cut, swapped and spliced, lengths made extreme, words exchanged, and sound containers "
        "filled with arrays that lie. The reader has 4 GiB and 20 s in a process of its own. A part goes through the "
        "command line.",
    ),
    "arrays": (
        "Arrays from Python",
        "Whatever is given to a public function ends in a right answer, or in a ValueError or TypeError.",
        "calls with malformed arguments",
        "Sparse matrices with indices out of range and arrays that do not fit together, odd types, shapes and values, to "
        "every public function. Arrays that lie must be refused.",
    ),
    "bounds": (
        "No compiled loop reads out of bounds",
        "The same calls when every access of a compiled loop is checked (`NUMBA_BOUNDSCHECK=1`).",
        "calls with malformed arguments",
        "An access out of bounds raises an IndexError, which is a fault.",
    ),
    "kills": (
        "Killed at any moment",
        "A command that is killed leaves the old output or the new one, whole; SIGINT and SIGTERM end it with at most one"
        " line and the conventional exit code; the next run cleans up.",
        "kills of a command that writes over a file",
        "SIGKILL, SIGTERM and SIGINT at a random moment, from the start of Python to after the file is written; some "
        "while loops are compiled. After SIGINT and SIGTERM the command may take one CPU second to end; by the clock it takes "
        "as long as a busy machine lets it, as it does after SIGKILL, which no program answers.",
    ),
    "refits": (
        "A fit that does not end",
        "A fit that is interrupted leaves the learner as it was, and BLAS as it was.",
        "interrupted refits",
        "An exception from the callback, from a signal or from another thread, at a random moment; all attributes are "
        "compared.",
    ),
    "endurance": (
        "A thousand fits in one process",
        "Memory, threads and open handles stay flat, and a graph has the same bits every time.",
        "fits",
        "A line through the memory of the later half of the fits of a process; its threads and handles are counted.",
    ),
    "formats": (
        "Out and back",
        "A graph that is written and read is the same: weights to the bit, ids, labels and metadata as far as the format "
        "has a place.",
        "graphs written and read, in every format",
        "Also read by SciPy, pandas, networkx or anndata. What a format cannot hold is refused.",
    ),
    "fuzz": (
        "Files, guided by coverage",
        "As for damaged files.",
        "executions",
        "atheris changes files so that they reach new branches of the readers.",
    ),
}


def one_line(session: dict) -> str:
    verdicts = ", ".join(f"{count:,} {verdict}" for verdict, count in session["verdicts"].items())
    figures = ", ".join(f"{name} {value:.2g}" for name, value in session["figures"].items())
    return f"{session['trials']:,} in {session['seconds']:.0f} s: {verdicts}" + (f"; at most: {figures}" if figures else "")


def write() -> None:
    sessions = ledger.read()
    parts = [HEAD, _summary(sessions)]
    for kind, (title, promise, trials, how) in PROMISES.items():
        if kind in sessions:
            parts += [
                f"\n## {title}\n",
                f"{promise}\n",
                f"{how}\n",
                _told(sessions[kind], trials),
                _sessions_table(sessions[kind]),
            ]
    parts += ["\n## What was found on the way\n", _found(sessions)]
    PAGE.write_text("\n".join(parts), encoding="utf-8")
    print(f"Wrote {PAGE.name}.")


def since_last_fault(sessions: list[dict]) -> list[dict]:
    """The sessions after the last one that found something."""
    last = max((i for i, session in enumerate(sessions) if session["faults"]), default=-1)
    return sessions[last + 1 :]


def _summary(sessions) -> str:
    """A row for each promise: how often it was tested since something was last found, and in all."""
    lines = ["| promise | kind | trials since the last fault | trials in all | faults in all |", "|---|---|---|---|---|"]
    for kind, (title, *_) in PROMISES.items():
        if kind in sessions:
            clean, ever = since_last_fault(sessions[kind]), sessions[kind]
            row = [
                f"[{title}](#{_anchor(title)})",
                f"`{kind}`",
                f"{_trials(clean):,}",
                f"{_trials(ever):,}",
                f"{_faults(ever):,}",
            ]
            lines.append(f"| {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def _anchor(title: str) -> str:
    return "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c == "-")


def _trials(sessions) -> int:
    return sum(session["trials"] for session in sessions)


def _faults(sessions) -> int:
    return sum(fault["count"] for session in sessions for fault in session["faults"])


def _told(sessions, trials) -> str:
    """What the sessions since the last fault saw."""
    clean = since_last_fault(sessions)
    if not clean:
        return f"The last session found faults: {_faults(sessions[-1:]):,} in {sessions[-1]['trials']:,} {trials}.\n"
    verdicts: Counter[str] = Counter()
    figures: dict[str, float] = {}
    for session in clean:
        verdicts.update(session["verdicts"])
        for name, value in session["figures"].items():
            figures[name] = max(value, figures.get(name, value))
    what = ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(verdicts.items()))
    text = f"**{_trials(clean):,} {trials}, 0 faults**: {what}.\n"
    if figures:
        text += "\n| largest | |\n|---|---|\n" + "".join(
            f"| {name} | {value:.2g} |\n" for name, value in sorted(figures.items())
        )
    return text


def _sessions_table(sessions) -> str:
    lines = ["\n| date | seed | trials | faults | seconds | smoothgraph | Python | NumPy | SciPy | numba |", f"|{'---|' * 10}"]
    for session in sessions:
        versions = [session["versions"].get(name, "") for name in ("smoothgraph", "python", "numpy", "scipy", "numba")]
        row = [
            session["date"],
            str(session["seed"]),
            f"{session['trials']:,}",
            f"{_faults([session]):,}",
            f"{session['seconds']:.0f}",
        ]
        lines.append(f"| {' | '.join([*row, *versions])} |")
    return "\n".join(lines) + "\n"


def _found(sessions) -> str:
    """What was wrong once, and the test that would find it again."""
    entries = json.loads(FOUND.read_text(encoding="utf-8")) if FOUND.exists() else []
    cases = Counter(json.loads(path.read_text(encoding="utf-8"))["kind"] for path in CASES.glob("*.json"))
    kept = ", ".join(f"{count} of {kind}" for kind, count in sorted(cases.items())) or "none"
    lines = [f"{len(entries)} faults, each with the test that failed before it was mended. Cases kept in the suite: {kept}.\n"]
    lines += ["| what was wrong | test |", "|---|---|"]
    lines += [f"| {entry['what']} | `{entry['test']}` |" for entry in entries]
    return "\n".join(lines) + "\n"
