"""The tables of `tasks` in docs/results.md: the rule before the numbers, every method, the decision, and where it loses."""

import numpy as np

from experiments.decision import (
    DENSER,
    KINDS,
    LEARNED,
    MARGIN,
    MATCHED,
    OPPONENTS,
    OURS,
    RIVALS,
    SCANPY,
    against_opponents,
    decide,
    excesses,
    lost,
    mean_excess,
    standard_error,
    tasks_of,
)
from experiments.remedies import REMEDIES

RULE = """The rule, fixed before the numbers were seen: the *excess* of a graph on a task is its error above that of the best
graph there, in percentage points. Its mean over the tasks of each kind, then over the two kinds, is to be least. Settings
within one standard error of that (of the difference, paired over tasks) are tied, and of these the one that loses the fewest
tasks by more than two points to the best untuned opponent is the default.

Every graph is untuned. The opponents are as their users have them: nearest-neighbour graphs with 0/1, Gaussian (width: the root
mean squared distance to the last neighbour) and self-tuning weights, and UMAP's fuzzy set, each with lists of 10 and of 15; on
single cells also scanpy's two weightings with its own search. Opponents of "degree 10" have lists so short that their degree
is that of a learned graph with k = 10. These, and learned graphs with k = 20 and 30, are shown, but the rule does not look at
them. Opponents get copies of rows as they come; the learned graph has a node for each distinct row, and the copies hang on it
by an edge of weight 1.

"Won", "tied" and "lost" are against the best opponent *of each task*, picked by its error there, by the 95 % interval of the
difference, paired over draws of the labels (for clusters over seeds of Leiden, which says nothing of other samples). Clustering
is asked for where there are four classes or more; a graph with more components than classes is given the nearest number of
clusters that it has."""
REMEDY = """**Why it loses, and what was tried.** On the RNA mixtures the fifth of the samples that is farthest from its
neighbours puts most of its weight on edges among itself (last columns): in the model a pair gains from the need of both of its
ends, and samples far from all others need each other. Graphs in which each sample takes its own nearest do not do this. Two
remedies give weight back to what a sample takes alone (its one-node problem): a quarter of all weight, or only the weight of
edges whose ends are not among the 2k nearest of each other. Mean excess, and what is gained against the same setting without
the remedy (± its standard error, paired over tasks):"""
TRIED = """Both remedies take away most of what is lost on the RNA mixtures. But all variants were seen on both halves at once,
each half holds one of the two mixtures, which are one experiment done twice, and without these nothing is gained: it is an
insurance, not a better graph, so the model stays as it is. Other shares (a half, a tenth) and lists of k in place of 2k do no
better; the graph of what each sample takes alone as a prior, θᵢ of far samples bounded from below, lists that are not
completed and an upper bound on the weights take only a part of the loss away. Heart disease and the clusters of texts want more
edges instead, which do not pay over all tasks (k = 20 and 30 above); for the other losses no cause was found."""
MIN_PART = 4  # data sets that a part needs to have a standard error worth the name
SHOWN = "UMAP, k=15", "self-tuning, k=10", "Gaussian, k=10", "k-NN, k=10"  # opponents in the table of tasks


def table(numbers):
    """The rule, every method's mean excess, the decision, where it loses, and the error on every task."""
    chosen, tied = decide(numbers)
    sizes = {kind: len(tasks_of(numbers, kind)) for kind in KINDS}
    yield RULE
    yield ""
    yield (
        f"{len(numbers)} data sets, {sum(sizes.values())} tasks: {sizes['labels']} of label propagation, {sizes['clusters']} "
        "of clustering. ± is the standard error of the difference to the default; neighbours is the mean number over data sets."
    )
    yield ""
    yield "| graph | neighbours | labels | clusters | **mean excess** | won / tied / lost | lost by > 2 | worst loss |"
    yield "|---|---|---|---|---|---|---|---|"
    for method in (*LEARNED, *DENSER.values(), *(m for m in RIVALS if m not in SCANPY.values()), *MATCHED.values()):
        yield row_of(numbers, method, chosen)
    yield ""
    yield from decision(numbers, chosen, tied)
    if len(numbers) >= 2 * MIN_PART:
        yield from stability(numbers)
    yield ""
    yield from losses(numbers, chosen)
    yield ""
    yield from remedy_table(numbers)
    yield ""
    yield from cells_table(numbers, chosen)
    yield ""
    yield from task_table(numbers, chosen)


def row_of(numbers, method, chosen):
    """A row of the table of methods."""
    found = against_opponents(numbers, method)
    outcomes = [one.outcome() for one in found]
    worst = max(found, key=lambda one: one.mean)
    means = [excesses(numbers, method, kind).mean() for kind in KINDS]
    spread = "" if method == chosen else f" ± {standard_error(numbers, method, chosen):.1f}"
    name = f"**{method}**" if method == chosen else method
    return (
        f"| {name} | {np.mean([one['degree'][method] for one in numbers.values()]):.1f} | {means[0]:.1f} | {means[1]:.1f} | "
        f"{mean_excess(numbers, method):.1f}{spread} | {outcomes.count('won')} / {outcomes.count('tied')} / "
        f"{outcomes.count('lost')} | {len(lost(numbers, method))} | {max(worst.mean, 0.0):.1f} ({worst.task}) |"
    )


def decision(numbers, chosen, tied):
    """What the rule says, in sentences."""
    yield (
        f"**Decision: {chosen}.** The least mean excess has {tied[0]}, {mean_excess(numbers, tied[0]):.2f} points. Tied, "
        "with the mean excess and the number of tasks lost by more than two points: "
        + "; ".join(f"{m} ({mean_excess(numbers, m):.2f}; {len(lost(numbers, m))})" for m in tied)
        + "."
    )
    paper, rival = OURS[0.0, False][10], min(RIVALS[: -len(SCANPY)], key=lambda m: mean_excess(numbers, m))
    for other, what in ((paper, "the graph of the paper"), (rival, "the best opponent by the same mean")):
        gains = np.concatenate([excesses(numbers, other, kind) - excesses(numbers, chosen, kind) for kind in KINDS])
        gain = mean_excess(numbers, other) - mean_excess(numbers, chosen)
        yield (
            f"Against {what} ({other}) it gains {gain:.1f} points (standard error "
            f"{standard_error(numbers, other, chosen):.1f}) and has less error on {np.sum(gains > 0)} of {gains.size} tasks."
        )


def parts_of(numbers):
    """Both halves of the data sets, and all but those that are lost the most."""
    names = list(numbers)
    chosen = {"one half": names[::2], "the other half": names[1::2]}
    chosen["without the RNA mixtures"] = [name for name in names if not name.startswith("RNA")]
    return {part: {name: numbers[name] for name in some} for part, some in chosen.items()}


def stability(numbers):
    """What the rule says of parts of the data sets."""
    said = (f"{part}: {decide(some)[0]}" for part, some in parts_of(numbers).items())
    yield "The same rule on parts of the data sets, to see how firm the decision is: " + "; ".join(said) + "."


def losses(numbers, chosen):
    """The tasks that the chosen setting loses, and what a denser graph would change."""
    found, dense = lost(numbers, chosen), DENSER[30]
    denser = {one.task: one.mean for one in against_opponents(numbers, dense)}
    listed = (f"{one.task}, {one.mean:.1f} ± {one.half:.1f} to {one.opponent} ({denser[one.task]:.1f})" for one in found)
    yield (
        f"**Where it loses by more than {MARGIN:g} points to the best opponent** (in brackets: what {dense} loses there): "
        + ("; ".join(listed) or "nowhere")
        + "."
    )


def remedy_table(numbers):
    """What was tried against the losses, on both halves of the data sets, and without those that it was made for."""
    parts = parts_of(numbers)
    without = parts["without the RNA mixtures"]
    mixtures = [record for name, record in numbers.items() if name not in without]
    if not mixtures:
        return
    yield REMEDY
    yield ""
    yield (
        "| graph | "
        + " | ".join(parts)
        + " | lost by > 2 | worst loss | weight between far samples, RNA mixtures | elsewhere |"
    )
    yield "|---" * (len(parts) + 5) + "|"
    for k, methods in REMEDIES.items():
        base = OURS[1.0, True][k]
        for method in (base, *methods):
            cells = [gain_of(part, method, base) for part in parts.values()]
            worst = max(against_opponents(numbers, method), key=lambda one: one.mean)
            far = [np.mean([record["far"][method] for record in some]) for some in (mixtures, without.values())]
            yield (
                f"| {method} | " + " | ".join(cells) + f" | {len(lost(numbers, method))} | {worst.mean:.1f} ({worst.task}) | "
                f"{far[0]:.0f} % | {far[1]:.0f} % |"
            )
    far = [np.mean([record["far"]["UMAP, k=15"] for record in some]) for some in (mixtures, without.values())]
    yield "| UMAP, k=15 |" + " |" * (len(parts) + 2) + f" {far[0]:.0f} % | {far[1]:.0f} % |"
    yield ""
    yield TRIED


def gain_of(numbers, method, base):
    """The mean excess, and by how much it is less than that of the setting that the remedy starts from."""
    gain = mean_excess(numbers, base) - mean_excess(numbers, method)
    error = standard_error(numbers, method, base)
    return f"{mean_excess(numbers, method):.1f}" + ("" if method == base else f" (gain {gain:.2f} ± {error:.2f})")


def cells_table(numbers, chosen):
    """Single cells: scanpy's and UMAP's graphs, and those of matched degree."""
    records = {name: record for name, record in numbers.items() if record["kind"] == "cells"}
    if not records:
        return
    methods = [chosen, *SCANPY.values(), *OPPONENTS["UMAP"], MATCHED["UMAP"]]
    yield "Single cells: error of label propagation / of clustering, and mean number of neighbours in brackets."
    yield ""
    yield "| graph | " + " | ".join(records) + " |"
    yield "|---" * (len(records) + 1) + "|"
    for method in methods:
        cells = (
            " / ".join(f"{np.mean(one[kind][method]):.1f}" for kind in KINDS if one[kind]) + f" ({one['degree'][method]:.1f})"
            for one in records.values()
        )
        yield f"| {method} | " + " | ".join(cells) + " |"


def task_table(numbers, chosen):
    """Error of the chosen setting and of some opponents on every task."""
    yield "Error in percent on every task; the last column is the difference to the best opponent with its 95 % interval."
    yield ""
    yield f"| task | samples × features, classes, copies | {chosen} | " + " | ".join(SHOWN) + " | best opponent | difference |"
    yield "|---" * (len(SHOWN) + 5) + "|"
    for one in against_opponents(numbers, chosen):
        kind, name = one.task.split(": ")
        record = numbers[name]
        about = f"{record['kind']}, {record['n']:,} × {record['features']:,}, {record['classes']}, {record['copies']:,}"
        errors = (f"{np.mean(record[kind][method]):.1f}" for method in (chosen, *SHOWN))
        best = f"{np.mean(record[kind][one.opponent]):.1f} ({one.opponent})"
        yield f"| {one.task} | {about} | " + " | ".join(errors) + f" | {best} | {one.mean:+.1f} ± {one.half:.1f} |"
