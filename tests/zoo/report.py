"""docs/zoo.json, the last result of every fit → docs/zoo.md."""

import json
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
RESULTS, PAGE = DOCS / "zoo.json", DOCS / "zoo.md"
TITLES = {"default": "Default parameters", "paper": "The model of the paper: locality=0, connect=False"}
VERDICTS = {
    "right": "the graph is what it is said to be",
    "missed": "something asked for was not reached, and the learner says so",
    "refused": "an error says what is wrong with the table",
    "wrong": "no end, a crash, a false claim, or no graph of the model",
}
HEAD = """# The zoo

Written by `make zoo` from the last run of each table; do not edit. `make zoo TABLES="wine page-patches"` runs a part again.

Tables as they come, from packages that ship them (the loaders are in `tests/zoo`), fitted untuned, raw and standardised
(`-std`), and generated ones that are hard on purpose. A fit has one core and 60 s. The judge shares no code with the learner:
the graph must be symmetric, finite and positive, every node must have an edge, no weight may pass its bound, the degree must be
as asked to 1 % or a warning must say which there are, and the duality gap over *all* pairs of samples (up to 3,000 samples, and
more where that is quick) must be what the learner says. "gap" is the judge's, "copies" the share of rows that are equal to an
earlier row, and "certified" the share of nodes that the learner has a certificate for.
"""
COLUMNS = "table", "kind", "n × d", "copies", "seconds", "degree", "certified", "gap", "components", "warned", "verdict"
MOST_TEXT = 160  # characters of a warning or a verdict on the page


def read() -> dict:
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def save(results: dict) -> None:
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def write(results: dict) -> None:
    """The page: a summary, what is not right, and a table of all fits for each setting."""
    parts = [HEAD, _summary(results)]
    for setting, title in TITLES.items():
        ran = {name: of[setting] for name, of in results.items() if "verdict" in of.get(setting, {})}
        if not ran:
            continue
        parts += [f"\n## {title}\n", _markdown(COLUMNS, [_row(name, ran[name]) for name in _ordered(ran)])]
    skipped = {name: found["skipped"] for name, of in sorted(results.items()) for found in of.values() if "skipped" in found}
    if skipped:
        parts += ["\n## Skipped\n", "\n".join(f"- {name}: {reason}" for name, reason in skipped.items()) + "\n"]
    PAGE.write_text("\n".join(parts), encoding="utf-8")
    print(f"Wrote {PAGE.name}.")


def one_line(found: dict) -> str:
    if "skipped" in found:
        return f"skipped: {found['skipped']}"
    return f"{found.get('seconds', float('nan')):6.1f} s  {found['verdict']:8} {found.get('why', '')}"


def _ordered(ran: dict) -> list[str]:
    return sorted(ran, key=lambda name: (ran[name]["kind"] == "generated", ran[name]["kind"], name))


def _summary(results: dict) -> str:
    rows = []
    for setting, title in TITLES.items():
        verdicts = [of[setting]["verdict"] for of in results.values() if "verdict" in of.get(setting, {})]
        if verdicts:
            rows.append([title, str(len(verdicts)), *(str(verdicts.count(verdict)) for verdict in VERDICTS)])
    meaning = "".join(f"- **{verdict}**: {text}.\n" for verdict, text in VERDICTS.items())
    return _markdown(("fits", "tables", *VERDICTS), rows) + "\n" + meaning


def _row(name: str, found: dict) -> list[str]:
    n = found.get("n", 0)
    certified = f"{(n - found['incomplete']) / n:.1%}" if found.get("incomplete") is not None else ""
    return [
        name,
        found["kind"],
        f"{n:,} × {found.get('d', 0):,}",
        f"{found.get('copies', 0.0):.0%}",
        f"{found['seconds']:.1f}" if "seconds" in found else "",
        f"{found['degree']:.4g}" if "degree" in found else "",
        certified,
        _gap(found.get("gap")),
        str(found.get("components", "")),
        _short(" ".join(found.get("warned", []))),
        _short(_said(found)),
    ]


def _said(found: dict) -> str:
    """The verdict in words; a graph without a gap, since its pairs are too many, is right as far as was looked at."""
    verdict, why = found["verdict"], found.get("why", "")
    if verdict == "right":
        return "right" if found.get("gap") is not None else "right, pairs not looked at"
    return why if why.startswith(("wrong: ", "missed: ")) else f"{verdict}: {why}"


def _gap(gap) -> str:
    return "" if gap is None else gap if isinstance(gap, str) else f"{gap:.1e}"


def _short(text: str) -> str:
    text = text.replace("|", "\\|").replace("\n", " ")
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 1] + "…"


def _markdown(columns, rows) -> str:
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"
