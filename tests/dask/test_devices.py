"""Blocks on the workers' devices: the GPU's algorithm, on the processor where there is no GPU."""

import dask.array as da
import numpy as np
import pytest

import naive
from dask_problems import settings
from gpus import DEVICES, has_gpu
from popf.dask import DaskOPFClassifier
from popf.dask.blocks import Block
from popf.dask.kruskal import link, longest_edges_to, reduce_arcs
from popf.dask.spanning import tree_of_block, tree_of_two

SEED = 20261115


def block(X, y, rows):
    rows = np.sort(rows)
    return Block(rows, X[rows], y[rows], np.ones(len(rows)))


def halves(n, n_features, kind, rng):
    """Two blocks that share no place, with or without very many ties."""
    if kind == "ties":
        # No place is drawn twice, and all differences are whole numbers.
        places = np.stack(np.meshgrid(*[np.arange(4.0)] * 4), axis=-1).reshape(-1, 4)
        X = np.ascontiguousarray(rng.permutation(places)[:n])
    elif kind == "copies":
        # Places of several samples, each on one side: the sides have different first features.
        X = rng.integers(0, 3, size=(n, n_features)).astype(float)
        X[:, 0] = np.arange(n) % 2
    else:
        X = rng.normal(size=(n, n_features))
    y = rng.integers(0, 3, size=n)
    order = np.arange(n) if kind == "copies" else rng.permutation(n)
    return X, y, block(X, y, order[::2]), block(X, y, order[1::2])


@pytest.mark.parametrize("device", ["cpu", *DEVICES])
@pytest.mark.parametrize("kind", ["normal", "ties", "copies"])
def test_known_trees_spare_distances_within_blocks_and_change_nothing(kind, device):
    rng = np.random.default_rng(SEED)
    for n in (6, 41, 180):
        X, y, first, second = halves(n, 5, kind, rng)
        method = settings("brute", device=device)
        trees = tree_of_block(first, method), tree_of_block(second, method)
        across = tree_of_two(first, second, method, trees)
        merged = reduce_arcs([across.arcs, trees[0].arcs, trees[1].arcs], n)
        found = merged.tree
        every = naive.squared_distances(X, X)
        edges = zip(
            found.weights.tolist(), found.lower.tolist(), found.higher.tolist(), strict=True
        )
        assert list(edges) == naive.kruskal(every)
        # Every arc across that lies in some shortest tree is there, or its ends are told of.
        there = set(zip(across.arcs.lower.tolist(), across.arcs.higher.tolist(), strict=True))
        told = dict(zip(across.tied.tolist(), across.reach.tolist(), strict=True))
        links = link(merged, n)
        for u in first.samples.tolist():
            longest = longest_edges_to(u, second.samples, links)
            ends = second.samples[(every[u, second.samples] <= longest)]
            for v in ends[y[ends] != y[u]].tolist():
                if (min(u, v), max(u, v)) not in there:
                    assert min(told[u], told[v]) >= every[u, v]


@pytest.mark.skipif(has_gpu(), reason="there is a GPU")
def test_workers_without_a_gpu_are_named_before_work_starts(client):
    X, y = da.ones((20, 2), chunks=(5, 2)), da.zeros(20, chunks=5)
    with pytest.raises(
        RuntimeError, match=r"worker .* cannot work with `device='cuda'`: .*`device=None`"
    ):
        DaskOPFClassifier(client, device="cuda").fit(X, y)
