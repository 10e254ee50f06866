"""From the errors that `tasks` measured to the defaults, by the rule that its docstring states.

In: numbers, {data set: {"labels": {method: error of each draw}, "clusters": {method: error of each seed}, …}}. Out: excesses,
paired differences, the settings that are tied, and the one that is chosen.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

LOCALITIES = 0.0, 0.5, 0.75, 1.0
KS = 10, 15
FEW_CLASSES = 3  # Leiden finds communities, of which there are many: clustering is asked for where there are more classes
OURS = {
    (g, connect): {k: f"locality {g:g}{', connect' if connect else ''}, k={k}" for k in KS}
    for g in LOCALITIES
    for connect in (False, True)
}
DENSER = {k: f"locality 1, connect, k={k}" for k in (20, 30)}  # shown, but not looked at by the rule, as MATCHED
OPPONENTS = {kind: [f"{kind}, k={k}" for k in KS] for kind in ("k-NN", "Gaussian", "self-tuning", "UMAP")}
MATCHED = {kind: f"{kind}, degree 10" for kind in OPPONENTS}
SCANPY = {(weighting, k): f"scanpy {weighting}, k={k}" for weighting in ("umap", "gauss") for k in KS}  # on single cells only
LEARNED = [method for methods in OURS.values() for method in methods.values()]
RIVALS = [*(method for methods in OPPONENTS.values() for method in methods), *SCANPY.values()]
KINDS = "labels", "clusters"
MARGIN = 2.0  # points of error: a task lost by more than this counts as lost in the rule


class Difference(NamedTuple):
    """Error of a method above that of the best opponent on a task: mean and half of the 95 % interval, paired over draws."""

    task: str
    opponent: str
    mean: float
    half: float

    def outcome(self):
        return "tied" if abs(self.mean) <= self.half else "won" if self.mean < 0 else "lost"


def tasks_of(numbers, kind):
    """{data set: {method: errors}} of the tasks of one kind."""
    return {name: record[kind] for name, record in numbers.items() if record[kind]}


def excesses(numbers, method, kind):
    """Mean error of a method above that of the best learned or opponent's graph, for every task of a kind that has it."""
    return np.array(
        [
            np.mean(task[method]) - min(np.mean(task[m]) for m in (*LEARNED, *RIVALS) if m in task)
            for task in tasks_of(numbers, kind).values()
            if method in task
        ]
    )


def mean_excess(numbers, method):
    """The mean over the two kinds of the mean excess over the tasks of a kind."""
    return float(np.mean([excesses(numbers, method, kind).mean() for kind in KINDS]))


def standard_error(numbers, method, other):
    """Of the difference of two mean excesses, paired over tasks."""
    parts = [excesses(numbers, method, kind) - excesses(numbers, other, kind) for kind in KINDS]
    return float(np.sqrt(sum(part.var(ddof=1) / part.size for part in parts)) / len(KINDS))


def against_opponents(numbers, method):
    """A `Difference` for every task: against the opponent that has the least mean error there."""
    return [
        difference(f"{kind}: {name}", task, method, min((m for m in RIVALS if m in task), key=lambda m: np.mean(task[m])))
        for kind in KINDS
        for name, task in tasks_of(numbers, kind).items()
        if method in task
    ]


def difference(label, task, method, other):
    paired = np.subtract(task[method], task[other])
    half = 0.0 if paired.size < 2 else float(student.ppf(0.975, paired.size - 1) * paired.std(ddof=1) / np.sqrt(paired.size))
    return Difference(label, other, float(paired.mean()), half)


def lost(numbers, method):
    """The tasks that a method loses by more than the margin, the worst first."""
    found = [one for one in against_opponents(numbers, method) if one.mean > MARGIN]
    return sorted(found, key=lambda one: -one.mean)


def decide(numbers):
    """(the chosen setting, the settings tied with the least mean excess, that of the least first)."""
    order = sorted(LEARNED, key=lambda method: mean_excess(numbers, method))
    least = mean_excess(numbers, order[0])
    tied = [m for m in order if mean_excess(numbers, m) - least <= standard_error(numbers, m, order[0])]
    return min(tied, key=lambda method: len(lost(numbers, method))), tied
