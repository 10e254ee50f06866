"""Requested against obtained degree on the spherical maps (Figure 7): with the bounds alone, and with landing."""

from experiments.common import PAPER, Claim, nearest, spherical
from smoothgraph import GraphLearner, degree_path

TITLE = "Requested and obtained degree, spherical maps (simulated)"
CAPTION = "Simulated spherical maps. The bounds alone give the θ of the paper; landing corrects it with a few warm solves."
ALWAYS = "The bounds give", "Ours: landing"
SIZES = {
    "small": {"side": 16, "n_maps": 4, "nside": 128, "degrees": [4, 10, 20]},
    "medium": {"side": 128, "n_maps": 40, "nside": 1024, "degrees": [3, 4, 6, 8, 12, 16, 24]},
    "full": {"side": 512, "n_maps": 40, "nside": 1024, "degrees": [3, 4, 6, 8, 12, 16, 24, 32]},
}


def run(side, n_maps, nside, degrees):
    X = spherical(side, n_maps, nside)
    lists = nearest(X, 3 * max(degrees))
    landed = degree_path(X, degrees, neighbors=lists, **PAPER)
    alone = [as_the_paper(X, one, lists) for one in landed]
    obtained = [one.n_neighbors_ for one in landed]
    return {"n": len(X), "signals": X.shape[1], "requested": degrees, "bounds": alone, "landing": obtained}


def as_the_paper(X, landed, lists):
    """The degree with θ from the bounds and three times as many neighbours allowed as are wanted."""
    theta = (landed.theta_bounds_.lower * landed.theta_bounds_.upper) ** 0.5
    return GraphLearner(landed.n_neighbors, theta=theta, neighbors=lists, complete=False, **PAPER).fit(X).n_neighbors_


def draw(numbers):
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
    asked = numbers["requested"]
    ax.plot(asked, asked, color="0.7", label="what was asked for")
    ax.plot(asked, numbers["bounds"], "o--", color="tab:orange", label="θ from the bounds alone")
    ax.plot(asked, numbers["landing"], "s", color="tab:blue", label="with landing")
    ax.set(xlabel="requested degree", ylabel="obtained degree", title=f"{numbers['n']:,} nodes, {numbers['signals']:,} signals")
    ax.legend()
    return figure


def off(numbers, key):
    return max(abs(got / asked - 1) for asked, got in zip(numbers["requested"], numbers[key], strict=True))


def claims(numbers):
    size = f"{numbers['n']:,} nodes"
    yield Claim(
        f"The bounds give about the requested degree at large scale ({size}, simulated)",
        "“very effective”, 262,144 nodes; a curve",
        f"at most {100 * off(numbers, 'bounds'):.0f} % off",
        off(numbers, "bounds") <= 0.2,
        "" if off(numbers, "bounds") <= 0.2 else "On a grid whole rings of neighbours are at almost equal distances.",
    )
    yield Claim(
        f"Ours: landing gives the requested degree ({size}, simulated)",
        "—",
        f"at most {100 * off(numbers, 'landing'):.1f} % off",
        off(numbers, "landing") <= 0.012,
    )
