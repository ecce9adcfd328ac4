"""The competition on a tree is the one of the paper."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import naive
from popf.engine.competition import compete
from popf.engine.structures import SpanningTree
from strategies import bounded


@st.composite
def trees(draw, max_size=25):
    """Random trees whose edges take few weights, with some prototypes."""
    n = draw(st.integers(2, max_size))
    joins = [draw(st.integers(0, v - 1)) for v in range(1, n)]
    weights = draw(st.lists(st.integers(1, 4), min_size=n - 1, max_size=n - 1))
    chosen = draw(st.sets(st.integers(0, n - 1), min_size=1))
    tree = SpanningTree(np.array(joins), np.arange(1, n), np.array(weights, dtype=np.float64))
    return tree, np.isin(np.arange(n), list(chosen))


@given(trees())
@bounded(80)
def test_the_competition_is_that_of_the_paper_on_the_tree(problem):
    tree, prototypes = problem
    n = len(prototypes)
    D = np.full((n, n), np.inf)
    D[tree.lower, tree.higher] = D[tree.higher, tree.lower] = tree.weights
    costs, _ = naive.competition(D, prototypes)
    forest = compete(tree, prototypes, np.arange(n))
    np.testing.assert_array_equal(forest.costs, costs)
    np.testing.assert_array_equal(forest.predecessors < 0, prototypes)
    np.testing.assert_array_equal(forest.lengths[prototypes], 0.0)
    for v in np.flatnonzero(~prototypes):
        before = forest.predecessors[v]
        assert forest.lengths[v] == D[before, v]
        assert forest.costs[v] == max(forest.costs[before], forest.lengths[v])
        assert forest.roots[v] == forest.roots[before]
    np.testing.assert_array_equal(forest.roots[prototypes], np.flatnonzero(prototypes))
