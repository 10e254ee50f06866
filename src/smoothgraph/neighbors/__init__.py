"""X → neighbours: one module per way to find them.

In: distances, the number of neighbours, and how to find them. Out: `Neighborhoods` (lists.py): neighbour lists, or pairs that
need no search. Nodes are numbered in the order of the search, so that near samples have near numbers; `by_rows` undoes it.

exact.py has the proof of its lists, approximate.py searches cells of samples, given.py takes what the user has. queries.py has
the searches that later stages make: for new samples, for pairs below a limit. bounds.py finds all pairs below a limit, for
certain, without looking at most of the others.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from smoothgraph.distances import Distances, Points
from smoothgraph.neighbors import approximate, exact, given
from smoothgraph.neighbors.bounds import Bounds
from smoothgraph.neighbors.lists import Neighborhoods, NeighborLists
from smoothgraph.parallel import Threads

# Exact search costs n²·d multiplications, approximate search a few thousand times n·d. Below about this value of n²·(d + 60),
# seconds on 2 cores, the lists might as well be exact; benchmarks/neighbors.py measures both.
EXACT_WORK = 1e12


def find_neighbors(
    distances: Distances,
    k: int,
    neighbors: Any = "auto",
    *,
    random_state: Any = None,
    threads: Threads,
    say: Callable[[str], None] | None = None,
) -> Neighborhoods:
    """The k nearest others of every sample (all of them where there are fewer), or the pairs that are allowed without a search.

    Parameters
    ----------
    distances : the samples. A sparse matrix of squared distances gives its entries, whatever is asked for, and hands them over.
    k : the length of the lists. Lists that the user gives keep their own.
    neighbors : "auto", "exact", "approximate", "all", a k-neighbours transformer, or a pair (indices, distances).
        "auto" takes exact search up to a measured amount of work. Distances without centres are always searched exactly.
    random_state : for approximate lists.
    threads : the threads to use.
    say : is told what is done, before and after it.
    """
    say = say or _say_nothing
    if not distances.can_search:
        matrix = distances.take_edges()
        say(f"{matrix.nnz // 2} allowed edges given")
        return given.matrix_pairs(matrix)
    size = f"{distances.n} samples, {distances.n_features} features"
    if isinstance(neighbors, str) and neighbors == "all":
        say(f"{size}: all pairs")
        return given.all_pairs(distances, threads=threads)
    name, search = _way_to_search(distances, neighbors, random_state)
    k = min(k, distances.n - 1)
    say(f"{size}: {name} search, {k} neighbours each")
    lists = search(distances, k, threads=threads)
    say(f"recall {lists.recall:.4f}" + ("" if lists.exact else ", estimated"))
    return lists


def find_proven(
    distances: Distances, k: int, neighbors: Any, proven: int, *, say: Callable[[str], None] | None = None, **how: Any
) -> tuple[Neighborhoods, Bounds | None]:
    """The same for a fit that is to be proven: the first `proven` entries of lists are right for certain.

    Where lists are not exact, there are the bounds that proved this, for what else is to be proven. Samples that have no bounds
    are searched exactly, whatever is asked for: exact lists are the proof then.
    """
    found = find_neighbors(distances, k, neighbors if distances.has_bounds else "exact", say=say, **how)
    if found.exact or found.is_given:
        return found, None
    points, lists, proven = cast(Points, distances), cast(NeighborLists, found), min(proven, distances.n - 1)
    lists, bounds = exact.proof_of(lists, points, proven, threads=how["threads"])
    (say or _say_nothing)(f"the {proven} nearest of every sample are proven")
    return lists, bounds


def _say_nothing(text):
    pass


def _way_to_search(distances, neighbors, random_state) -> tuple[str, Callable[..., NeighborLists]]:
    """The name of the search for the learner's `neighbors` parameter, and the search."""
    if isinstance(neighbors, tuple | list) or hasattr(neighbors, "fit_transform"):
        return given.given_name(neighbors), partial(given.lists_of_given, given=neighbors)
    if not (isinstance(neighbors, str) and neighbors in ("auto", "exact", "approximate")):
        raise ValueError(
            f"neighbors={neighbors!r} is not understood: use 'auto', 'exact', 'approximate', 'all', a k-neighbours "
            "transformer, or a pair (indices, distances)."
        )
    work = float(distances.n) ** 2 * (distances.n_features + 60)
    if neighbors == "exact" or not distances.has_centres or (neighbors == "auto" and work <= EXACT_WORK):
        return exact.NAME, exact.search_exact
    return approximate.NAME, partial(approximate.search_approximate, random_state=random_state)
