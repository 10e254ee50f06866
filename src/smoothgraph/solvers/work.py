"""A bound on the work of a fit, whatever the data.

In: what the parts of a solver did, in visits of an edge, which take about 2 ns each. Out: whether that is out of proportion. A
solver of ordinary data needs some hundred visits of every allowed edge; where distances span many orders of magnitude it may
need any number. It then stops where it is, with the duality gap that it has reached.
"""

VISITS_PER_EDGE = 5_000  # visits of every entry of the allowed edges that one fit may make, all its solves together
FREE_VISITS = 1.5e10  # and so many in any case, some fifteen seconds: small problems may be hard


class Work:
    """The visits that one fit has made so far."""

    def __init__(self) -> None:
        self.visits = 0.0

    def add(self, visits: float) -> None:
        self.visits += visits

    def is_too_much(self, n_entries: int) -> bool:
        """Whether it is out of proportion to the entries of the allowed edges."""
        return self.visits > FREE_VISITS + VISITS_PER_EDGE * float(n_entries)
