"""Small faults put into the core on purpose: does a test see each of them?

`make mutants` draws a sample of all mutants of the modules in TESTS, runs for each the tests that belong to its module, with a
limit of time, and prints those that no test saw. Each of these is the same program in other words, or the sign of a missing
test. JUDGED in docs/mutants.json keeps what was found about survivors; a survivor without a judgement makes the run fail.

A mutant differs in one place of the source: a comparison, an operator, a number, a condition, a call of min or max, a statement
left out. The sample is drawn by a seed, and is the same for the same sources.
"""

import argparse
import ast
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
REPORT = ROOT / "docs" / "mutants.json"
# The tests of a mutant may take so many times the CPU seconds that they take without it, and some more. A mutant that makes
# them take longer may loop for ever: it counts as neither seen nor survived.
MOST_FACTOR, MORE_SECONDS = 2, 10
PATIENCE = 3600  # seconds by the clock after which tests that wait, and use no CPU, are ended
TESTS = {  # module → the test files that belong to it
    "theta.py": ["theta", "models_log"],
    "copies.py": ["copies", "copies_keep"],
    "sparse.py": ["sparse"],
    "symmetry.py": ["symmetry", "checks"],
    "fit/by_theta.py": ["fit_by_theta", "learner", "any_scale"],
    "fit/certify.py": ["fit_certify", "fit_solve_certified"],
    "fit/connect.py": ["fit_connect"],
    "fit/possible_pairs.py": ["fit_possible_pairs", "fit_certify"],
    "fit/search_theta.py": ["fit_search_theta"],
    "fit/solve_certified.py": ["fit_solve_certified", "fit_certify"],
    "fit/state.py": ["fit_connect", "fit_certify", "copies_keep"],
    "solvers/nodewise.py": ["solvers_nodewise", "models_log", "any_scale"],
    "solvers/sweeps.py": ["solvers_sweeps", "solvers_nodewise"],
    "solvers/interior.py": ["solvers_nodewise", "any_scale"],
    "solvers/groups.py": ["copies_keep"],
    "solvers/newton.py": ["solvers_newton", "models_l2"],
    "solvers/conjugate_gradients.py": ["solvers_newton", "solvers_nodewise"],
    "solvers/problem.py": ["solvers", "models_log"],
    "solvers/primal_dual.py": ["solvers"],
    "solvers/multipliers.py": ["solvers_multipliers"],
    "solvers/all_pairs.py": ["solvers_all_pairs"],
    "solvers/penalty.py": ["models_penalty"],
    "solvers/work.py": ["solvers_work"],
}
COMPARE = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
OPERATE = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
CALLS = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}


class Mutant(NamedTuple):
    module: str
    line: int
    change: str
    source: str  # of the whole module


def mutants_of(module: str) -> list[Mutant]:
    """All mutants of a module."""
    text = (ROOT / "src" / "smoothgraph" / module).read_text(encoding="utf-8")
    found, place = [], 0
    while True:
        tree = ast.parse(text)
        changed = _changes(tree)
        if place >= len(changed):
            return found
        node, change = changed[place]
        before = ast.unparse(node)
        after = change()
        source = ast.unparse(ast.fix_missing_locations(tree))
        found.append(Mutant(module, node.lineno, f"{_short(before)}  →  {_short(after)}", source))
        place += 1


def _short(text):
    first = text.splitlines()[0]
    return first if len(first) <= 90 else first[:90] + " …"


def _changes(tree):
    """(node, function that changes it in place and returns its new text) for each change that can be made of a tree."""
    changes = []
    skipped = _constants_and_words(tree)
    for node in ast.walk(tree):
        if id(node) in skipped or not hasattr(node, "lineno"):
            continue
        if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARE:
            changes.append((node, _setter(node, "ops", [COMPARE[type(node.ops[0])](), *node.ops[1:]])))
        elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATE:
            changes.append((node, _setter(node, "op", OPERATE[type(node.op)]())))
        elif isinstance(node, ast.BoolOp):
            changes.append((node, _setter(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            changes.append((node, _setter(node, "op", ast.UAdd())))
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            changes.append((node, _setter(node, "test", ast.UnaryOp(ast.Not(), node.test))))
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            changes.append((node, _setter(node, "value", not node.value)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            changes.append((node, _setter(node, "value", node.value + 1)))
        elif isinstance(node, ast.Call) and (name := _called(node)) in CALLS:
            target = node.func if isinstance(node.func, ast.Attribute) else None
            field, holder = ("attr", target) if target is not None else ("id", node.func)
            changes.append((node, _setter(holder, field, CALLS[name], node)))
        if isinstance(node, ast.FunctionDef):
            changes += [
                (statement, _setter_in_list(body, at))
                for body in _bodies(node)
                for at, statement in enumerate(body)
                if isinstance(statement, ast.AugAssign)
                or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call))
                or (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript | ast.Attribute))
            ]
    return changes


def _called(node):
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _setter(holder, field, value, shown=None):
    def change():
        setattr(holder, field, value)
        return ast.unparse(shown or holder)

    return change


def _setter_in_list(body, at):
    def change():
        body[at] = ast.copy_location(ast.Pass(), body[at])
        return "(left out)"

    return change


def _bodies(function):
    """The lists of statements of a function, those of functions inside left out."""
    lists, todo = [], [function]
    while todo:
        node = todo.pop()
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(node, field, None)
            if isinstance(statements, list):
                lists.append(statements)
                todo += [one for one in statements if not isinstance(one, ast.FunctionDef | ast.ClassDef)]
    return lists


def _constants_and_words(tree):
    """What is not worth a change: constants of the module (limits of effort), annotations, messages, defaults."""
    skipped = set()

    def skip(node):
        skipped.update(id(inner) for inner in ast.walk(node))

    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr | ast.Raise) or (
            isinstance(node, ast.Call) and _called(node) in ("warn", "say", "errstate")
        ):
            skip(node)
        elif isinstance(node, ast.arguments):
            for argument in [*node.args, *node.kwonlyargs]:
                if argument.annotation is not None:
                    skip(argument.annotation)
            for default in [*node.defaults, *node.kw_defaults]:
                if default is not None:
                    skip(default)
        elif isinstance(node, ast.AnnAssign):
            skip(node.annotation)
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            skip(node.returns)
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            skip(statement)
    return skipped


def is_seen(mutant: Mutant, folder: Path, seconds: int) -> str:
    """What became of it: "killed", "timed out" or "survived"; `folder` has a copy of the sources."""
    path = folder / "smoothgraph" / mutant.module
    whole = path.read_bytes()
    path.write_text(mutant.source, encoding="utf-8")
    try:
        code = run_tests(mutant.module, folder, seconds)
        return "timed out" if code is None else "survived" if code == 0 else "killed"
    finally:
        path.write_bytes(whole)


def run_tests(module: str, folder: Path, seconds: int | None = None) -> int | None:
    """The exit code of the module's tests on the sources in the folder; None if they took more than so many CPU seconds."""
    names = [str(ROOT / "tests" / f"test_{name}.py") for name in TESTS[module]]
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=no"]
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", *options, *names]
    limit = None if seconds is None else partial(resource.setrlimit, resource.RLIMIT_CPU, (seconds, seconds))
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=PATIENCE, preexec_fn=limit)
    except subprocess.TimeoutExpired:
        return None
    return None if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL) else done.returncode


def seconds_without_mutant(module: str, folder: Path) -> int:
    """CPU seconds that a mutant of the module may take; an end of the program if the tests fail as they are."""
    run_tests(module, folder)  # compiles the kernels that the tests use
    before = _cpu_of_children()
    if (code := run_tests(module, folder)) != 0:
        sys.exit(f"The tests of {module} fail without any mutant (exit code {code}): mend that first.")
    return int(MOST_FACTOR * (_cpu_of_children() - before)) + MORE_SECONDS


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0, help="stop drawing mutants after so many minutes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=10_000, help="mutants to draw at most")
    parser.add_argument("modules", nargs="*", help="only these, such as fit/certify.py")
    options = parser.parse_args()
    drawn = [mutant for module in options.modules or TESTS for mutant in mutants_of(module)]
    total = len(drawn)
    random.Random(options.seed).shuffle(drawn)
    before = json.loads(REPORT.read_text(encoding="utf-8")) if REPORT.exists() else {"survivors": []}
    judged = {(one["module"], one["change"]): one["judgement"] for one in before["survivors"]}
    counts, survivors = {"killed": 0, "timed out": 0, "survived": 0}, []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "src" / "smoothgraph", folder / "smoothgraph", ignore=shutil.ignore_patterns("__pycache__"))
        os.environ.setdefault("NUMBA_CACHE_DIR", str(folder / "kernels"))  # compiled once for all mutants
        seconds = {}
        begin = time.monotonic()
        for mutant in drawn[: options.most]:
            if time.monotonic() - begin > 60.0 * options.minutes:
                break
            if mutant.module not in seconds:
                seconds[mutant.module] = seconds_without_mutant(mutant.module, folder)
            fate = is_seen(mutant, folder, seconds[mutant.module])
            counts[fate] += 1
            if fate == "survived":
                judgement = judged.get((mutant.module, mutant.change), "not judged")
                survivors.append(
                    {"module": mutant.module, "line": mutant.line, "change": mutant.change, "judgement": judgement}
                )
            print(f"{fate:15} {mutant.module}:{mutant.line}  {mutant.change}", flush=True)
    sampled = sum(counts.values())
    result = {"seed": options.seed, "mutants": total, "sampled": sampled, **counts, "survivors": survivors}
    REPORT.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"\n{sampled} of {total} mutants: {counts}. Wrote {REPORT.relative_to(ROOT)}.")
    unjudged = [one for one in survivors if one["judgement"] == "not judged"]
    if unjudged:
        sys.exit(f"{len(unjudged)} survivors have no judgement: write a test, or say in {REPORT.name} why there is none.")


if __name__ == "__main__":
    main()
