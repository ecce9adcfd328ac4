"""Forests from blocks are those of one machine, to the bit, and no task sees more than two blocks."""

import contextlib

import numpy as np
import pytest

import strategies
from dask_problems import SEED, Here, as_dask, samples, settings, two_classes
from gpus import DEVICES
from popf import OPFClassifier
from popf.dask import DaskOPFClassifier, blocks, forest
from popf.dask.blocks import Block, SamplesInBlocks
from popf.dask.growing import grow_forest
from popf.dask.spanning import tree_of_two
from popf.engine.points import scale_exponent, scaled_copy

KINDS = ["normal", "grid", "distinct grid", "coarse", "copies", "one-hot", "clusters", "one place"]


def block_of(X, y, rows):
    rows = np.sort(rows)
    return Block(rows, X[rows], y[rows], np.ones(len(rows)))


def in_blocks(X, y, members):
    """Make blocks of the given samples, as `make_blocks` does."""
    exponent = scale_exponent(X)
    scaled = scaled_copy(X, exponent)
    blocks = [block_of(scaled, y, rows) for rows in members]
    lows = np.array([block.points.min(axis=0) for block in blocks])
    highs = np.array([block.points.max(axis=0) for block in blocks])
    rows, classes = np.arange(len(X)), np.unique(y)
    return SamplesInBlocks(blocks, lows, highs, rows, y, np.ones(len(X)), classes, exponent)


def assert_same_forest(grown, plain):
    strategies.assert_same_forest(OPFClassifier.from_forest(grown.to_forest(), {}, 2), plain)


@pytest.mark.parametrize("device", ["cpu", *DEVICES])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_blocks", [2, 9])
def test_the_forest_of_blocks_is_that_of_one_machine(kind, n_blocks, device):
    rng = np.random.default_rng([SEED, n_blocks, KINDS.index(kind)])
    for by_place in (False, True):
        X, y = samples(kind, int(rng.integers(30, 120)), rng)
        plain = OPFClassifier().fit(X, y)
        rows = np.argsort(X[:, 0], kind="stable") if by_place else rng.permutation(len(X))
        parts = in_blocks(X, y, np.array_split(rows, n_blocks))
        for algorithm in ("kd_tree", "brute", "prim") if device == "cpu" else ("brute",):
            found = grow_forest(Here(), parts, settings(algorithm, device=device))
            assert_same_forest(found, plain)


@pytest.mark.parametrize("metric", ["manhattan", "chi_square"])
def test_blocks_serve_metrics_that_know_no_boxes(metric):
    rng = np.random.default_rng(SEED)
    X = rng.integers(1, 6, size=(60, 2)).astype(float)
    y = rng.integers(0, 2, size=60)
    plain = OPFClassifier(metric).fit(X, y)
    parts = in_blocks(X, y, np.array_split(rng.permutation(60), 4))
    parts = parts._replace(
        exponent=0, blocks=[b._replace(points=X[b.samples]) for b in parts.blocks]
    )
    assert_same_forest(grow_forest(Here(), parts, settings(metric=metric)), plain)


def test_ties_cost_nothing_where_there_are_none():
    rng = np.random.default_rng(SEED)
    X, y = samples("normal", 300, rng)
    tasks = Here()
    grow_forest(tasks, in_blocks(X, y, np.array_split(rng.permutation(300), 5)), settings())
    names = [name for name, _ in tasks.done]
    assert "confirm-ties" not in names
    assert names.count("tree-of-two-blocks") == 10


def test_the_tree_of_two_blocks_gives_the_arcs_between_them_by_any_algorithm():
    rng = np.random.default_rng(SEED)
    X, y = samples("normal", 90, rng)
    first, second = block_of(X, y, np.arange(0, 90, 2)), block_of(X, y, np.arange(1, 90, 2))
    found = []
    for algorithm in ("kd_tree", "brute"):
        arcs = tree_of_two(first, second, settings(algorithm)).arcs
        found.append(set(zip(arcs.lower.tolist(), arcs.higher.tolist(), strict=True)))
    plain = OPFClassifier().fit(X, y).spanning_tree_
    ends = zip(plain.lower.tolist(), plain.higher.tolist(), strict=True)
    assert found[0] == found[1] == {(u, v) for u, v in ends if u % 2 != v % 2}


def test_pairs_of_blocks_that_are_far_apart_are_not_looked_at():
    rng = np.random.default_rng(SEED)
    X = rng.uniform(size=(4000, 2)) * [100.0, 1.0]
    y = rng.integers(0, 2, size=4000)
    members = np.array_split(np.argsort(X[:, 0]), 10)
    found = grow_forest(Here(), in_blocks(X, y, members), settings())
    assert found.n_pairs == 9  # each with the next
    assert_same_forest(found, OPFClassifier().fit(X, y))


def test_no_task_gets_more_than_two_blocks(monkeypatch):
    rng = np.random.default_rng(SEED)
    X, y = two_classes(600, 2, rng)
    X = np.round(X, 1)  # with ties, so that these are settled, too
    tasks = Here()
    monkeypatch.setattr(forest, "tasks_on", lambda client: contextlib.nullcontext(tasks))
    model = DaskOPFClassifier().fit(*as_dask(X, y, 100))
    parts = [arguments[0] for name, arguments in tasks.done if name == "describe-block"]
    largest = max(len(block.samples) for block in parts)
    assert model.n_blocks_ >= 6
    assert largest <= 150
    names = {name for name, _ in tasks.done}
    assert {"tree-of-two-blocks", "confirm-ties", "gather-block"} <= names
    for name, arguments in tasks.done:
        held = sum(len(block.samples) for block in arguments if isinstance(block, Block))
        assert held <= 2 * largest, name


def test_space_is_cut_on_few_rows_in_few_features_where_there_are_many(monkeypatch):
    X, y = two_classes(600, 5, np.random.default_rng(SEED))
    looked_at, cut = [], blocks.cut_space

    def look(rows, n, columns):
        looked_at.append((len(rows), columns.tolist()))
        return cut(rows, n, columns)

    monkeypatch.setattr(blocks, "cut_space", look)
    plain = OPFClassifier().fit(X, y)
    for n_bytes in (2**24, 8 * 5 * 400, 8 * 3 * 300):
        monkeypatch.setattr(blocks, "SAMPLED_BYTES", n_bytes)
        model = DaskOPFClassifier(block_size=100).fit(*as_dask(X, y, 100))
        np.testing.assert_array_equal(model.costs_, plain.costs_)
        assert model.n_blocks_ <= 9
    every = [0, 1, 2, 3, 4]
    assert looked_at == [(600, every), (300, every), (300, [0, 1, 3])]


def test_a_block_without_its_features_does_not_keep_them():
    X, y = two_classes(50, 4, np.random.default_rng(SEED))
    *_, bare = blocks.describe(block_of(X, y, np.arange(50)))
    assert bare.points.shape == (50, 0)
    assert bare.points.base is None
