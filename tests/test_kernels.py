import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from smoothgraph import _kernels
from smoothgraph._kernels import dual


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.floats(-5.0, 50.0), min_size=1, max_size=40),
    st.floats(0.0, 100.0),
    st.sampled_from([np.inf, 1.0, 0.2, 0.01]),
    st.sampled_from([0.0, 3.0, 1e4]),
    st.sampled_from([0.0, 0.05, 1.0]),
)
@example([10.0], 0.0, 0.05, 0.0, 0.0)
@example([10.0], 0.0, np.inf, 0.0, 0.5)
def test_node_dual_is_the_root_that_bracketing_finds(costs, guess, upper, base, fixed):
    costs = np.array(costs)

    def excess(s):
        return (base + s) * (fixed + np.clip((s - costs) / 2, 0, upper).sum()) - 1.0

    top = costs.max() + 10.0 + 10.0 / min(upper, 1.0)
    expected = brentq(excess, -base + 1e-12, top + base, xtol=1e-13, rtol=1e-14, maxiter=500)
    padded = np.empty(costs.size + dual.SIMD)
    padded[: costs.size] = costs
    s, degree, m = _kernels.node_dual(padded, dual._pad(padded, costs.size), guess, upper, base, fixed)
    assert s == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert degree == pytest.approx(fixed + np.clip((guess - costs) / 2, 0, upper).sum(), rel=1e-9, abs=1e-9)
    near = 1e-8 * (1 + abs(s))
    assert (
        ((s - costs > near) & (s - costs < 2 * upper - near)).sum()
        <= m
        <= ((s - costs > -near) & (s - costs < 2 * upper + near)).sum()
    )
