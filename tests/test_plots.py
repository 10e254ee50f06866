"""Pictures show what they should: counts, shares, edges, rings, bounds. (Whether they look good, only people can tell.)"""

import runpy
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.collections import LineCollection

from conftest import blobs, paper_learner
from smoothgraph import GraphLearner, plots

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(scope="module")
def learner():
    return paper_learner(5).fit(blobs(150, 3, np.random.default_rng(0)))


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def labels_of(learner):
    return np.array(["a", "b", "c"])[np.arange(learner.graph_.shape[0]) % 3]


def bar_total(ax):
    return sum(bar.get_height() for bar in ax.patches)


def test_each_draws_on_the_axes_given_and_returns_it(learner):
    W, labels = learner.graph_, labels_of(learner)
    place = np.random.default_rng(0).random((W.shape[0], 2))
    for draw in (
        lambda ax: plots.neighbor_counts(W, ax=ax),
        lambda ax: plots.weights(W, ax=ax),
        lambda ax: plots.theta_bounds(learner, ax=ax),
        lambda ax: plots.class_connectivity(W, labels, ax=ax),
        lambda ax: plots.graph(W, place, labels, ax=ax),
        lambda ax: plots.neighborhood(W, 3, ax=ax),
    ):
        _, ax = plt.subplots()
        assert draw(ax) is ax
        assert ax.get_title()
        assert draw(None) is not ax


def test_distributions_count_every_node_and_every_edge(learner):
    W = learner.graph_
    counts = plots.neighbor_counts(W)
    assert bar_total(counts) == W.shape[0]
    middles = np.array([bar.get_x() + bar.get_width() / 2 for bar in counts.patches])
    heights = np.array([bar.get_height() for bar in counts.patches])
    assert middles @ heights == pytest.approx(W.nnz)  # one bar for each number of neighbours
    assert bar_total(plots.weights(W)) == W.nnz // 2
    star = sp.lil_matrix((3000, 3000))
    star[0, 1:] = star[1:, 0] = 1.0
    wide = plots.neighbor_counts(star)
    assert bar_total(wide) == 3000
    assert len(wide.patches) <= plots.MAX_BARS + 2


def test_class_shares_are_those_of_the_weights(learner):
    W, labels = learner.graph_, labels_of(learner)
    image = plots.class_connectivity(W, labels).images[0].get_array()
    dense = W.toarray()
    for a, one in enumerate("abc"):
        total = dense[labels == one].sum()
        for b, other in enumerate("abc"):
            assert image[a, b] == pytest.approx(100 * dense[labels == one][:, labels == other].sum() / total)


def drawn_lines(ax):
    return next(part for part in ax.collections if isinstance(part, LineCollection)).get_segments()


def test_the_graph_has_a_line_for_each_edge_where_its_nodes_are(learner):
    W = learner.graph_
    place = np.random.default_rng(1).random((W.shape[0], 2))
    lines = {tuple(sorted(map(tuple, line))) for line in drawn_lines(plots.graph(W, place))}
    i, j = W.nonzero()
    assert lines == {tuple(sorted([tuple(place[a]), tuple(place[b])])) for a, b in zip(i, j, strict=True)}


def test_the_components_of_a_graph_do_not_overlap():
    ring = nx.to_scipy_sparse_array(nx.cycle_graph(20), format="csr")
    W = sp.csr_matrix(sp.block_diag([ring] * 4, format="csr"))
    nodes, place = plots.spectral_place(W)
    assert sorted(nodes) == list(range(80))
    boxes = [(place[nodes // 20 == c].min(axis=0), place[nodes // 20 == c].max(axis=0)) for c in range(4)]
    for a in range(4):
        for b in range(a):
            apart = (boxes[a][0] > boxes[b][1]) | (boxes[b][0] > boxes[a][1])
            assert apart.any()


def test_components_are_drawn_by_size_and_specks_are_not(rng):
    ring = nx.to_scipy_sparse_array(nx.cycle_graph(20), format="csr")
    W = sp.csr_matrix(sp.block_diag([[[0.0]], ring, nx.to_scipy_sparse_array(nx.cycle_graph(900), format="csr")]))
    nodes, place = plots.spectral_place(W)
    assert nodes.tolist() == [*range(21, 921), *range(1, 21)]
    sides = [np.ptp(place[:900], axis=0), np.ptp(place[900:], axis=0)]
    np.testing.assert_allclose(sides[1] / sides[0], np.sqrt(20 / 900))
    assert "(99.9%, in the largest components)" in plots.graph(W).get_title()


def test_many_nodes_are_shaded_in_the_colours_of_their_classes():
    """A grid of 57,600 nodes: each has a pixel of its own."""
    side = 240
    place = np.indices((side, side)).reshape(2, -1).T.astype(float)
    line = sp.diags([np.ones(side - 1)] * 2, [-1, 1])
    W = sp.csr_matrix(sp.kronsum(line, line))
    classes = np.where(place[:, 0] < side / 2, "left", "right")
    ax = plots.graph(W, place, classes)
    image = np.asarray(ax.images[0].get_array())
    colours = mpl.colormaps["tab10"]([0, 1])[:, :3]
    middle = image.shape[1] // 2
    assert np.isclose(image[:, :middle], colours[0]).all(axis=2).sum() == side**2 / 2
    assert np.isclose(image[:, middle:], colours[1]).all(axis=2).sum() == side**2 / 2
    grey = (image[:, :, 0] < 1) & np.isclose(image[:, :, 0], image[:, :, 2])
    assert grey.sum() > 1000  # the edges
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["left", "right"]


def test_many_nodes_in_a_pixel_are_darker_than_one():
    n = 60_000
    place = np.zeros((n, 2))
    place[-1] = 1.0
    image = np.asarray(plots.graph(sp.csr_matrix((n, n)), place).images[0].get_array())
    assert image[0, 0].sum() < image[-1, -1].sum() < 3.0


def test_a_neighborhood_is_what_networkx_says(learner):
    G = nx.from_scipy_sparse_array(learner.graph_)
    for hops in (1, 2, 3):
        ax = plots.neighborhood(learner.graph_, 3, hops, most=1000)
        shown = {int(text.get_text()) for text in ax.texts}
        expected = nx.ego_graph(G, 3, radius=hops)
        assert shown == set(expected)
        assert len(drawn_lines(ax)) == expected.number_of_edges()
    few = plots.neighborhood(learner.graph_, 3, 3, most=7, ids=[f"n{i}" for i in range(150)])
    assert len(few.texts) == 7
    assert few.texts[0].get_text() == "n3"


def test_bounds_hold_the_one_node_solution_and_the_point_is_the_learners(learner):
    ax = plots.theta_bounds(learner)
    (point,) = [line for line in ax.lines if line.get_marker() == "o"]
    assert point.get_xdata()[0] == learner.n_neighbors_
    assert point.get_ydata()[0] == learner.theta_
    line = ax.lines[0]
    expected = np.sqrt(learner.theta_bounds_.lower * learner.theta_bounds_.upper)
    assert line.get_ydata()[list(line.get_xdata()).index(5)] == pytest.approx(expected)
    assert (np.diff(line.get_ydata()) < 0).all()  # more neighbours, smaller θ


@pytest.mark.parametrize("scale", [2.0**-400, 2.0**400])
def test_pictures_of_theta_and_of_convergence_are_in_the_units_of_the_table(rng, scale):
    X = np.repeat(rng.normal(size=(60, 2)), 2, axis=0)  # with copies: the picture is of the problem of the distinct samples
    plain, scaled = (GraphLearner(5, locality=0, connect=False).fit(c * X) for c in (1.0, scale))
    lines = [plots.theta_bounds(learner).lines[0].get_ydata() for learner in (plain, scaled)]
    np.testing.assert_allclose(lines[1] * scale**2, lines[0], rtol=1e-9)
    gaps = [plots.convergence(learner).lines[0].get_ydata() for learner in (plain, scaled)]
    np.testing.assert_allclose(*gaps, rtol=1e-6)


def test_the_gap_falls_below_the_tolerance(rng):
    learner = paper_learner(5, tol=1e-4).fit(rng.normal(size=(60, 2)))
    _, given = plt.subplots()
    ax = plots.convergence(learner, solvers=("nodewise", "primal_dual"), ax=given)
    assert ax is given
    for line in ax.lines[:2]:
        assert (np.diff(line.get_xdata()) > 0).all()
        assert (np.diff(line.get_ydata()) < 0).all()
        assert len(line.get_ydata()) > 1
        assert line.get_ydata()[-1] <= learner.tol


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("plot_*.py")), ids=lambda path: path.stem)
def test_the_gallery_runs_and_draws(example):
    assert example.read_text(encoding="utf-8").startswith('"""\n')  # the title, as sphinx-gallery wants it
    runpy.run_path(str(example))
    assert plt.get_fignums()


def test_an_overview_has_classes_only_with_labels(learner):
    assert len(plots.overview(learner.graph_).axes) == 3
    assert len(plots.overview(learner.graph_, labels_of(learner)).axes) == 5  # and the colour bar


def test_errors_say_what_is_wrong(learner):
    W = learner.graph_
    with pytest.raises(ValueError, match=r"place has shape \(3, 2\)"):
        plots.graph(W, np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"labels has shape \(2,\), but the graph has 150 nodes"):
        plots.class_connectivity(W, [1, 2])
    with pytest.raises(ValueError, match="node=150: the nodes are 0 to 149"):
        plots.neighborhood(W, 150)
    allowed = sp.csr_matrix(W.multiply(W))
    given = GraphLearner(theta=1.0, metric="precomputed_squared", n_neighbors=2).fit(allowed)
    with pytest.raises(ValueError, match="allowed edges"):
        plots.theta_bounds(given)
