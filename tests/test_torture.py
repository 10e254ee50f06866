"""A small part of the torture: some cases of each kind, and every case that once failed. `make torture` runs it for minutes.

The judge of problems is itself judged by CVXPY and by graphs that were tampered with.
"""

import dataclasses
import json

import numpy as np
import pytest
import scipy.sparse as sp

import smoothgraph
from cvx import all_pairs, solve_l2_model, solve_log_model
from smoothgraph import io, uses
from smoothgraph.reference.daitch import kkt_residual
from torture import arrays, driver, files, formats, judge, kills, malformed, mutations, problems, refits, report, seeds
from torture.kinds import KINDS, FaultError
from torture.worker import Workers, checked

KEPT = sorted(driver.CASES.glob("*.json"))
IN_PROCESS = {"problems": 40, "formats": 25, "refits": 3}  # kinds that cannot harm the process, and how many cases are run
NOT_FUNCTIONS = {"Solution", "Status", "Diameter", "Embedding", "Propagation", "StoredGraph", "Table", "GraphLearner"}


@pytest.mark.parametrize("kind", IN_PROCESS)
def test_random_cases_end_as_promised(kind):
    module = KINDS[kind].load()
    for number in range(IN_PROCESS[kind]):
        found = checked(module, module.case(np.random.default_rng([7, number])))
        assert "fault" not in found, f"case [7, {number}]: {found['fault']}"


@pytest.mark.parametrize(("kind", "count"), [("files", 60), ("arrays", 50)])
def test_random_damage_ends_in_sound_data_or_an_error(kind, count):
    found = driver.run(kind, seed=7, seconds=120.0, count=count, keep=False)
    assert found["faults"] == []
    assert found["trials"] == count


def test_a_killed_command_leaves_the_old_file_or_the_new_one():
    outcome = kills.check({"command": "convert", "shots": [["SIGKILL", 0.9], ["SIGINT", 0.7]], "cold": False})
    assert outcome.count == 2


def test_fits_leave_nothing_behind_in_their_process():
    with Workers("endurance") as workers:
        found = workers.check({"seed": 0, "fits": 40})
    assert "fault" not in found, found
    assert found["count"] == 40


@pytest.mark.parametrize("path", KEPT, ids=[path.stem for path in KEPT])
def test_what_once_failed_does_not_fail_again(path, kept_workers):
    kept = json.loads(path.read_text(encoding="utf-8"))
    found = kept_workers(kept["kind"]).check(kept["case"])
    assert "fault" not in found, found["fault"]


@pytest.fixture(scope="module")
def kept_workers():
    """A process for each kind, started when it is first needed."""
    there: dict[str, Workers] = {}

    def workers_of(kind):
        if kind not in there:
            there[kind] = Workers(kind)
        return there[kind]

    yield workers_of
    for workers in there.values():
        workers.__exit__()


# --- the judges ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"max_weight": 0.05}, {"prior_strength": 0.7}])
def test_the_judge_finds_no_gap_at_the_optimum_of_cvxpy_and_one_elsewhere(rng, options):
    X = rng.normal(size=(15, 3))
    (i, j, z), n = all_pairs(X), len(X)
    prior = rng.random(len(i)) * (rng.random(len(i)) < 0.2) if "prior_strength" in options else None
    w = np.maximum(solve_log_model(i, j, z, n, 0.8, prior=prior, **options), 0.0)
    samples = judge.samples_of(X, "euclidean", False)
    terms = judge.Terms("log", options.get("max_weight", np.inf), 0.0, options.get("prior_strength", 0.0))
    if prior is not None:
        terms.prior = _matrix(i, j, prior, n)

    def gap(weights):
        W = _matrix(i, j, weights, n)
        return judge.gap(W, 1.0 / W.sum(axis=1), 0.8 * samples.z, 0.0 * samples.z, terms, samples.allowed)

    assert 0.0 <= gap(w) < 1e-5
    assert gap(0.97 * w) > 1e-3
    assert gap(np.where(w == w.max(), 0.0, w)) > 1e-3


def test_the_judge_knows_the_l2_model(rng):
    X = rng.normal(size=(12, 2))
    (i, j, z), n = all_pairs(X), len(X)
    w = np.maximum(solve_l2_model(i, j, 0.8 * z, n, 0.5), 0.0)
    samples, W = judge.samples_of(X, "euclidean", False), _matrix(i, j, w, n)
    cost, terms = 0.8 * samples.z, judge.Terms("l2")
    d = W.sum(axis=1)
    e = w > 1e-6  # where there is weight, (λᵢ+λⱼ)/2 = w + cost; and λ + d is the same for all nodes
    rows = np.zeros((e.sum() + 1, n))
    rows[np.arange(e.sum()), i[e]] = rows[np.arange(e.sum()), j[e]] = 0.5
    level = np.linalg.lstsq(rows, np.append((w + 0.8 * z)[e], 0.0), rcond=None)[0]
    lam = (level + d).mean() - d
    assert judge.gap(W, lam, cost, 0.0 * cost, terms, samples.allowed) < 1e-4
    assert judge.gap(1.05 * W, lam, cost, 0.0 * cost, terms, samples.allowed) > 1e-3


def test_a_graph_that_was_tampered_with_is_found(rng):
    case = {
        "X": rng.normal(size=(20, 3)).tolist(),
        "new": rng.normal(size=(2, 3)).tolist(),
        "model": {"name": "log"},
        "dtype": "float64",
        "form": "points",
        "sparse": False,
        "also": "none",
        "parameters": {"n_neighbors": 4},
    }
    learner, warned = problems.fit(case)
    assert problems.judged(case, learner, warned)["gap in units of tol"] <= judge.SLACK
    for factor, what in ((1.01, "gap over all pairs"), (np.nan, "finite"), (-1.0, "negative")):
        other, _ = problems.fit(case)
        other.graph_ = other.graph_ * factor
        with pytest.raises(FaultError, match=what):
            problems.judged(case, other, warned)
    other, _ = problems.fit(case)
    other.n_components_ += 1
    with pytest.raises(FaultError, match="n_components_"):
        problems.judged(case, other, warned)


@pytest.mark.parametrize("model", [{"name": "hard"}, {"name": "soft", "mu": 2.0}])
def test_a_graph_of_daitch_that_was_tampered_with_is_found(rng, model):
    """By its residual where it ended for that, else by CVXPY; and a gap that is said too small is found, however it ended."""
    case = {"X": rng.normal(size=(12, 2)).tolist(), "model": model, "dtype": "float64", "form": "points"}
    case |= {"sparse": False, "also": "none", "parameters": {"n_neighbors": 4}}
    learner, warned = problems.fit(case)
    assert problems.judged(case, learner, warned)["gap of Daitch's models"] <= 1e-3
    learner.graph_ = 1.1 * learner.graph_
    with pytest.raises(FaultError, match=r"CVXPY finds|KKT residual"):
        problems.judged(case, learner, warned)
    learner.solution_ = dataclasses.replace(learner.solution_, gap=0.0)
    with pytest.raises(FaultError, match="CVXPY finds"):
        problems.judged(case, learner, warned)


@pytest.mark.parametrize("mu", [None, 3.0])
def test_the_residual_of_daitch_is_that_of_its_definition(rng, mu):
    X, lam = rng.normal(size=(9, 3)), rng.random(9)
    i, j, _ = all_pairs(X)
    w = rng.random(i.size) * (rng.random(i.size) < 0.5)
    assert judge.daitch_residual(X, _matrix(i, j, w, 9), lam, mu) == pytest.approx(kkt_residual(w, lam, i, j, X, mu))


def test_the_checks_of_files_see_what_is_wrong():
    W = seeds.random_graph(np.random.default_rng(0), 5)
    files.check_graph(W, None, None, {})
    for lie in malformed.COMPRESSED_LIES:
        broken = malformed._lying(np.random.default_rng(0), W.copy(), lie)
        with pytest.raises(FaultError):
            files.check_csr(broken, "W")
    with pytest.raises(FaultError, match="not finite"):
        files.check_graph(W * np.nan, None, None, {})
    with pytest.raises(FaultError, match="not symmetric"):
        files.check_graph(sp.triu(W).tocsr(), None, None, {})
    with pytest.raises(FaultError, match="ids occur twice"):
        files.check_graph(W, ["a"] * 5, None, {})
    with pytest.raises(FaultError, match="one printable line"):
        files.check_line("two\nlines", "an error")
    with pytest.raises(FaultError, match="one printable line"):
        files.check_line("\x1b[2J", "an error")


def test_a_crash_and_a_fit_without_an_end_are_blamed_on_their_case(monkeypatch):
    with Workers("formats") as workers:
        monkeypatch.setattr(type(workers), "_start", _start_of("import os; os.kill(os.getpid(), 11)"))
        assert "SIGSEGV" in workers.check({})["fault"]
        monkeypatch.setattr(type(workers), "_start", _start_of("import time; time.sleep(60)"))
        monkeypatch.setattr("torture.worker.STARTING", -59.95)  # and so a second by the clock
        assert "no end within" in workers.check({})["fault"]
        monkeypatch.setattr(type(workers), "_start", _start_of("while True: pass"))
        monkeypatch.setattr("torture.worker.PATIENCE", 1e9)
        assert "no end within" in workers.check({})["fault"]


def test_every_public_function_is_called_with_malformed_arrays():
    called = {word for call in arrays.CALLS for word in call.split()}
    public = {*smoothgraph.__all__, *uses.__all__, *io.__all__} - NOT_FUNCTIONS - {"read_graph", "read_table", "umap_embedding"}
    assert public <= called


def test_failures_are_made_smaller(monkeypatch):
    """Files that hold a certain byte are taken for faults: what is left of one is that byte."""
    module = KINDS["files"].load()

    class _Workers:
        @staticmethod
        def check(case):
            return {"fault": "a byte"} if b"\x07" in files.base64.b64decode(case["data"]) else {}

    case = {"reader": "graph", "suffix": ".csv", "data": files.base64.b64encode(b"abc\x07" + b"def" * 40).decode()}
    smallest = driver.smaller_case(_Workers(), module, case, driver._sort("a byte"))
    assert len(files.base64.b64decode(smallest["data"])) < 10


def test_the_same_seed_gives_the_same_cases():
    for name, kind in KINDS.items():
        module = kind.load()
        if name != "files":  # zip and h5 files have the time in them
            assert module.case(np.random.default_rng(3)) == module.case(np.random.default_rng(3))
    data = b"0,1,0.5\n" * 20
    assert mutations.damaged(np.random.default_rng(3), data, [data]) == mutations.damaged(
        np.random.default_rng(3), data, [data]
    )


def test_the_page_counts_from_the_last_fault_on():
    fault = {"text": "wrong", "count": 2, "case": ""}
    sessions = [{"trials": 5, "faults": [fault]}, {"trials": 7, "faults": []}, {"trials": 8, "faults": []}]
    assert [session["trials"] for session in report.since_last_fault(sessions)] == [7, 8]
    assert set(report.PROMISES) >= set(KINDS)


def test_the_tests_of_what_was_found_are_there():
    for entry in json.loads(report.FOUND.read_text(encoding="utf-8")):
        file, name = entry["test"].split("::")
        assert f"def {name}(" in (driver.CASES.parents[1] / file).read_text(encoding="utf-8"), entry["test"]


def test_an_interrupted_refit_is_seen_where_the_state_is_mixed(monkeypatch):
    """The check itself: a learner that keeps half of a second fit is found."""
    states = iter([{"graph_": b"1", "n": b"1"}, {"graph_": b"1", "n": b"1"}, {"graph_": b"1", "n": b"2"}])
    monkeypatch.setattr(refits, "state", lambda learner: next(states))
    with pytest.raises(FaultError, match="these differ: n"):
        refits.check({"seed": 0, "first": 20, "second": 20, "model": "log", "way": "callback", "moment": 0.5, "n_jobs": 1})


def test_formats_are_compared_to_the_bit():
    case = formats.case(np.random.default_rng(5)) | {
        "n": 2,
        "edges": [[0, 1, 0.1]],
        "ids": ["a", "b"],
        "labels": None,
        "metadata": {},
    }
    W = formats.graph_of(case)
    stored = io.StoredGraph(W * (1 + 1e-15), np.array(["a", "b"]), None, {})
    with pytest.raises(FaultError, match="other weights"):
        formats._compare(case, formats.graph_of(case | {"dtype": "float64"}), stored)
    with pytest.raises(FaultError, match="ids"):
        formats._compare(case, W, stored._replace(W=W, ids=np.array(["a", "c"])))


def _matrix(i, j, w, n):
    W = np.zeros((n, n))
    W[i, j] = W[j, i] = w
    return W


def _start_of(code):
    import subprocess
    import sys

    def start(self):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._log}
        self._process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, **pipes)
        return self._process

    return start
