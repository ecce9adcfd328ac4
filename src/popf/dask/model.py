"""Training nodes, some at a time, as competitors for new samples.

A model may be larger than a worker's memory, so it comes in parts. Each part offers what its own nodes have to
offer; `settle`, `cheapest` and `together` combine the offers into what all nodes together would have said.
"""

from functools import cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from popf.dask.blocks import Block, Nodes, StoredNodes, concatenate, load
from popf.engine.backends import backend_for
from popf.engine.conquest import by_scan as conquest_scan
from popf.engine.conquest.euclidean import EuclideanConquest
from popf.engine.points import DistinctPoints, collapse_duplicates
from popf.engine.tiles import block_size
from popf.probability.soft_competition import SoftCompetition

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Shell(NamedTuple):
    """What all parts of a model have in common.

    Attributes
    ----------
    metric : Metric
    classes : ndarray of shape (n_classes,)
    exponent : int
        The power of two that was taken out of the samples.
    algorithm : str
    n_threads, n_bytes : int
    device : {"cpu", "cuda"}
        Of the workers.
    """

    metric: Any
    classes: NDArray[Any]
    exponent: int
    algorithm: str
    n_threads: int
    n_bytes: int
    device: str = "cpu"


def with_costs(block: Block, trained: Any) -> Nodes:
    """Put the costs of the forest on a block."""
    return Nodes(block, trained.forest.costs[block.samples])


def make_part(shell: Shell, *nodes: Nodes | StoredNodes) -> "Part":
    """Make a part of the model from some blocks."""
    loaded = list(map(load, nodes))
    blocks = [block for block, _ in loaded]
    costs = np.concatenate([costs for _, costs in loaded])
    order = np.argsort(np.concatenate([block.samples for block in blocks]), kind="stable")
    return Part(shell, concatenate(blocks), costs[order])


class Part:
    """Some of the training nodes.

    Parameters
    ----------
    shell : Shell
    block : Block
    costs : ndarray of shape (n,)
        Path costs, in the engine's unit.
    """

    def __init__(self, shell: Shell, block: Block, costs: FloatArray) -> None:
        self.shell = shell
        self.block = block
        self.costs = costs
        # Classes that have nobody here are left out, and the others numbered anew.
        self.present, self.codes = np.unique(block.codes, return_inverse=True)

    @cached_property
    def _unplaced(self) -> tuple[EuclideanConquest, DistinctPoints]:
        shell = self.shell
        distinct = collapse_duplicates(self.block.points, shell.exponent)
        size = block_size(self.block.points.shape[1], shell.n_bytes // shell.n_threads)
        backend = backend_for(shell.device)
        return EuclideanConquest(shell.algorithm, distinct, self.codes, size, backend), distinct

    @cached_property
    def conquest(self) -> EuclideanConquest:
        """The nodes, laid out for conquest."""
        conquest, distinct = self._unplaced
        order = np.arange(len(distinct.first))
        conquest.lay_out(distinct.points, None, order, self.costs[distinct.first])
        return conquest

    @cached_property
    def competition(self) -> SoftCompetition:
        """The nodes, laid out for soft competition."""
        shell = self.shell
        forest = SimpleNamespace(
            codes=self.codes,
            classes=self.present,
            metric=shell.metric,
            exponent=shell.exponent if shell.metric.euclidean else 0,
            backend=backend_for(shell.device),
            costs=shell.metric.transform(self.costs, shell.exponent),
        )
        return SoftCompetition(forest, self.samples, self.block.weights)  # type: ignore[arg-type]

    @property
    def samples(self) -> FloatArray:
        """The samples as they were before they were scaled."""
        return np.ldexp(self.block.points, self.shell.exponent)

    def conquer(self, X: FloatArray) -> FloatArray:
        """Offer each sample the best path: columns cost, distance, class, node, exponent."""
        shell = self.shell
        if shell.metric.euclidean:
            found, exponents = self.conquest.conquer(X, shell.n_threads)
            nodes, costs, distances = found
        else:
            nodes, costs, distances = conquest_scan.conquer(
                shell.metric.blocks(X, self.block.points),
                len(X),
                self.costs,
                self.codes,
                self._rows(),
                shell.n_threads,
            )
            exponents = np.zeros(len(X), dtype=np.int64)
        codes, samples = self.block.codes[nodes], self.block.samples[nodes]
        return np.column_stack([costs, distances, codes, samples, exponents]).astype(np.float64)

    def costs_by_class(self, X: FloatArray) -> FloatArray:
        """Offer each sample the cheapest path of each class; the last column is the exponent."""
        shell = self.shell
        offers = np.full((len(X), len(shell.classes) + 1), np.inf)
        if shell.metric.euclidean:
            costs, exponents = self.conquest.costs_by_class(X, shell.n_threads)
            offers[:, -1] = exponents[:, 0]
        else:
            costs = conquest_scan.costs_by_class(
                shell.metric.blocks(X, self.block.points),
                len(X),
                self.costs,
                self.codes,
                len(self.present),
                self._rows(),
                shell.n_threads,
            )
            offers[:, -1] = 0.0
        offers[:, self.present] = costs
        return offers

    def sums(self, X: FloatArray, tau: float) -> FloatArray:
        """Give the logarithm of each class's sum of exponentials, minus infinity for nobody."""
        shell, competition = self.shell, self.competition
        scores = competition.scores(X, tau, shell.n_threads, shell.n_bytes)
        logs = np.full((len(X), len(shell.classes)), -np.inf)
        logs[:, self.present] = np.log(competition.masses) - scores
        return logs

    def sums_without(
        self, X: FloatArray, samples: IntArray, taus: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """As `sums`, for several bandwidths, each sample left out that is one of these nodes itself.

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
        samples : ndarray of shape (n,)
            Which training samples they are.
        taus : ndarray of shape (n_chains, 1 or 9)
            In the unit of the metric; without any row, only the cheapest paths are found.

        Returns
        -------
        logs : ndarray of shape (n, n_classes, n_bandwidths)
        lowest : ndarray of shape (n, n_classes)
            The cheapest path of each class, in the unit of the soft competition.
        """
        shell, competition = self.shell, self.competition
        at = np.searchsorted(self.block.samples, samples)
        at[at == len(self.block.samples)] = 0
        mine = self.block.samples[at] == samples
        own = np.where(mine, competition._place[at], -1)
        scaled = np.ldexp(taus, -competition.exponent)
        found = competition._compete(X, own, scaled, shell.n_threads, shell.n_bytes)
        lowest = np.full((len(X), len(shell.classes)), np.inf)
        lowest[:, self.present] = found.lowest
        logs = np.full((len(X), len(shell.classes), taus.size), -np.inf)
        masses = np.tile(competition.masses, (len(X), 1))
        for i in np.flatnonzero(mine):
            code = self.codes[at[i]]
            masses[i, code] = mass_without(
                self.block.weights[self.codes == code], self.block.weights[at[i]], masses[i, code]
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = found.scores.reshape(*found.lowest.shape, -1)
            offered = np.log(masses)[:, :, None] - scores
        logs[:, self.present] = np.where(np.isfinite(scores), offered, -np.inf)
        return logs, lowest

    def positive_costs(
        self, X: FloatArray, samples: IntArray, weights: FloatArray
    ) -> tuple[float, float]:
        """Sum weights and weighted path costs that are not zero, in the unit of the soft competition."""
        competition, nodes = self.competition, self.block.weights
        costs = np.ldexp(
            self.shell.metric.transform(self.costs, self.shell.exponent), -competition.exponent
        )
        total = mass = 0.0
        for i, x in enumerate(X):
            from_it = self._distances(x, competition.exponent)
            offered = np.maximum(from_it, costs)
            counted = weights[i] * np.where(
                self.block.samples == samples[i], np.maximum(nodes - 1.0, 0.0), nodes
            )
            counted = np.where((offered > 0.0) & (offered < np.inf), counted, 0.0)
            mass += float(counted.sum())
            total += float((counted * np.where(counted > 0.0, offered, 0.0)).sum())
        return total, mass

    def _distances(self, x: FloatArray, exponent: int) -> FloatArray:
        metric, one = self.shell.metric, x[None]
        if not metric.euclidean:
            return _as_floats(metric.blocks(one, self.block.points)(0, 1)[0])
        scaled = np.ldexp(one, -self.shell.exponent)
        squared: FloatArray = metric.blocks(scaled, self.block.points)(0, 1)[0]
        return _as_floats(np.ldexp(metric.transform(squared, self.shell.exponent), -exponent))

    def _rows(self) -> int:
        share = self.shell.n_bytes // self.shell.n_threads
        return conquest_scan.rows_per_block(len(self.costs), min(conquest_scan.BLOCK_BYTES, share))


def _as_floats(values: Any) -> FloatArray:
    return np.asarray(values, dtype=np.float64)


def mass_without(weights: FloatArray, own: float, mass: float) -> float:
    """Give the mass of a class without one sample of a node, as `popf.engine.soft.scores` does.

    Parameters
    ----------
    weights : ndarray
        Of all nodes of the class.
    own : float
        The weight of the node.
    mass : float
        Of the class.
    """
    less = mass - min(own, 1.0)
    if less > 1e-6 * mass:
        return less
    return max(own - 1.0, 0.0) + float(weights.sum() - own if len(weights) > 1 else 0.0)


def settle(*offers: FloatArray) -> FloatArray:
    """Choose among offers: the smallest by (cost, distance, class, node)."""
    best = offers[0]
    for other in offers[1:]:
        first = np.zeros(len(best), dtype=np.bool_)
        level = np.ones(len(best), dtype=np.bool_)
        for column in range(4):
            first |= level & (other[:, column] < best[:, column])
            level &= other[:, column] == best[:, column]
        best = np.where(first[:, None], other, best)
    return best


def cheapest(*offers: FloatArray) -> FloatArray:
    """Choose the cheapest path of each class; exponents are the same everywhere."""
    least: FloatArray = np.minimum.reduce(offers)
    return least


def together(*logs: FloatArray) -> FloatArray:
    """Add up sums of exponentials that are given by their logarithms."""
    if len(logs) == 1:
        return logs[0]
    with np.errstate(divide="ignore"):
        total: FloatArray = logsumexp(np.stack(logs), axis=0)
    return total
