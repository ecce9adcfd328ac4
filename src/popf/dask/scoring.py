"""Left-out scores from all blocks, and what is fitted to them."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from popf.dask.blocks import Nodes
from popf.dask.cluster import Tasks
from popf.dask.model import ForestInBlocks, Part, make_part
from popf.probability.calibration import N_FOR_UNIT, bandwidth_grid, unit_of_cost
from popf.probability.soft_competition import LeftOut, SoftCompetition

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Asked(NamedTuple):
    """Training samples to be left out.

    Attributes
    ----------
    samples : ndarray of shape (n,)
        Which they are.
    X : ndarray of shape (n, n_features)
    codes : ndarray of shape (n,)
    weights : ndarray of shape (n,)
    """

    samples: IntArray
    X: FloatArray
    codes: IntArray
    weights: FloatArray


def take_samples(nodes: Nodes, exponent: int, samples: IntArray) -> Asked:
    """Take some samples out of a block."""
    loaded = nodes.block
    at = np.flatnonzero(np.isin(loaded.samples, samples, assume_unique=True))
    X = np.ldexp(loaded.points[at], exponent)
    return Asked(loaded.samples[at], X, loaded.codes[at], loaded.weights[at])


def put_together(*parts: Asked) -> Asked:
    """Put samples of several blocks together."""
    return Asked(*map(np.concatenate, zip(*parts, strict=True)))


def sums(part: Part, X: FloatArray, tau: float) -> FloatArray:
    """Offer each sample the logarithm of each class's sum of exponentials."""
    return SoftPart(part).sums(X, tau)


def score_left_out(
    asked: Asked, nodes: Nodes, taus: FloatArray, *settings: Any
) -> tuple[FloatArray, FloatArray]:
    """Let one block compete for samples that are left out."""
    return SoftPart(make_part(*settings, nodes)).sums_without(asked.X, asked.samples, taus)


def sum_positive(asked: Asked, nodes: Nodes, *settings: Any) -> tuple[float, float]:
    """Sum the positive costs that one block offers to samples that are left out."""
    part = SoftPart(make_part(*settings, nodes))
    return part.positive_costs(asked.X, asked.samples, asked.weights)


def without_x(asked: Asked) -> Asked:
    """Tell all but the features."""
    return asked._replace(X=np.empty((0, 0)))


class SoftPart:
    """The nodes of a part, laid out for soft competition."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.block = part.block
        forest = SimpleNamespace(
            codes=part.codes,
            classes=part.present,
            metric=part.metric,
            exponent=part.exponent,
            backend=part.settings.resources.backend,
            costs=part.metric.transform(part.costs, part.exponent),
        )
        samples = np.ldexp(part.block.points, part.exponent)
        self.competition = SoftCompetition(forest, samples, part.block.weights)  # type: ignore[arg-type]

    def sums(self, X: FloatArray, tau: float) -> FloatArray:
        """Give the logarithm of each class's sum of exponentials, minus infinity for nobody."""
        part, competition = self.part, self.competition
        scores = competition.scores(X, tau, part.settings.n_threads, part.settings.n_bytes)
        logs = np.full((len(X), part.n_classes), -np.inf)
        logs[:, part.present] = np.log(competition.masses) - scores
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
        part, competition = self.part, self.competition
        at = np.searchsorted(self.block.samples, samples)
        at[at == len(self.block.samples)] = 0
        mine = self.block.samples[at] == samples
        own = np.where(mine, competition._place[at], -1)
        scaled = np.ldexp(taus, -competition.exponent)
        found = competition._compete(X, own, scaled, part.settings.n_threads, part.settings.n_bytes)
        lowest = np.full((len(X), part.n_classes), np.inf)
        lowest[:, part.present] = found.lowest
        logs = np.full((len(X), part.n_classes, taus.size), -np.inf)
        masses = np.tile(competition.masses, (len(X), 1))
        for i in np.flatnonzero(mine):
            code = part.codes[at[i]]
            masses[i, code] = mass_without(
                self.block.weights[part.codes == code], self.block.weights[at[i]], masses[i, code]
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = found.scores.reshape(*found.lowest.shape, -1)
            offered = np.log(masses)[:, :, None] - scores
        logs[:, part.present] = np.where(np.isfinite(scores), offered, -np.inf)
        return logs, lowest

    def positive_costs(
        self, X: FloatArray, samples: IntArray, weights: FloatArray
    ) -> tuple[float, float]:
        """Sum weights and weighted path costs that are not zero, in the unit of the soft competition."""
        competition, nodes = self.competition, self.block.weights
        costs = np.ldexp(
            self.part.metric.transform(self.part.costs, self.part.exponent), -competition.exponent
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
        metric, one = self.part.metric, x[None]
        if not metric.euclidean:
            return _as_floats(metric.blocks(one, self.block.points)(0, 1)[0])
        scaled = np.ldexp(one, -self.part.exponent)
        squared: FloatArray = metric.blocks(scaled, self.block.points)(0, 1)[0]
        return _as_floats(np.ldexp(metric.transform(squared, self.part.exponent), -exponent))


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


def together(*logs: FloatArray) -> FloatArray:
    """Add up sums of exponentials that are given by their logarithms."""
    if len(logs) == 1:
        return logs[0]
    with np.errstate(divide="ignore"):
        total: FloatArray = logsumexp(np.stack(logs), axis=0)
    return total


class LeavingOut:
    """The soft competition of all blocks, for training samples that are left out.

    Has the part of `popf.probability.soft_competition.SoftCompetition` that a fit needs.

    Parameters
    ----------
    tasks : Tasks
    model : ForestInBlocks
    """

    def __init__(self, tasks: Tasks, model: ForestInBlocks) -> None:
        self._tasks, self._nodes = tasks, model.nodes
        self._settings = (model.settings, model.exponent, len(model.classes))
        self._block_of, self._codes, self._weights = model.block_of, model.codes, model.weights
        masses = np.bincount(self._codes, weights=self._weights, minlength=len(model.classes))
        self.masses = masses.astype(np.float64)
        self._most = int(np.bincount(self._block_of).max())
        # Plain Euclidean costs and bandwidths are scaled by a power of two, as the samples are.
        plain = model.settings.metric.name == "euclidean"
        self._sample_exponent, self._exponent = model.exponent, model.exponent if plain else 0

    def grid(self, rows: IntArray) -> FloatArray:
        """Make the bandwidths to choose from, by what some left-out samples cost."""
        some = rows[:: -(-len(rows) // N_FOR_UNIT)]
        _, lowest = self._compete(some, np.empty((0, 1)))
        unit = unit_of_cost(lowest.min(axis=1), self._weights[some])
        if unit == 0.0:  # all samples have company of both classes where they are
            sums = self._tasks.gather(
                [
                    self._tasks.submit("sum-costs", sum_positive, asked, nodes, *self._settings)
                    for asked in self._asked(some)
                    for nodes in self._nodes
                ]
            )
            total, mass = (sum(column) for column in zip(*sums, strict=True))
            unit = total / mass if mass > 0.0 else 0.0
        return np.ldexp(bandwidth_grid(unit or 1.0), self._exponent)

    def leave_out(self, rows: IntArray, taus: FloatArray) -> LeftOut:
        """Score some training samples, each left out, for several bandwidths."""
        logs, lowest = self._compete(rows, taus)
        codes, weights = self._codes[rows], self._weights[rows]
        masses = np.tile(self.masses, (len(rows), 1))
        for code in range(len(self.masses)):
            mine = np.flatnonzero(codes == code)
            of_class = self._weights[self._codes == code]
            left = [mass_without(of_class, weights[i], self.masses[code]) for i in mine]
            masses[mine, code] = left
        usable = np.isfinite(lowest).all(axis=1)
        scores = np.log(masses[usable])[:, :, None] - logs[usable]
        return LeftOut(scores, codes[usable], weights[usable])

    def _asked(self, rows: IntArray) -> list[Any]:
        """Gather the samples to be left out, no more at a time than a block has."""
        tasks, total = self._tasks, 0
        groups: list[list[Any]] = []
        for b in np.unique(self._block_of[rows]).tolist():
            mine = rows[self._block_of[rows] == b]
            nodes, exponent = self._nodes[b], self._sample_exponent
            taken = tasks.submit("take-samples", take_samples, nodes, exponent, mine)
            if not groups or total + len(mine) > self._most:
                groups.append([taken])
                total = len(mine)
            else:
                groups[-1].append(taken)
                total += len(mine)
        return [tasks.submit("put-together", put_together, *group) for group in groups]

    def _compete(self, rows: IntArray, taus: FloatArray) -> tuple[FloatArray, FloatArray]:
        n_classes = len(self.masses)
        logs = np.empty((len(rows), n_classes, taus.size))
        lowest = np.empty((len(rows), n_classes))
        waiting = [
            (
                self._tasks.submit("tell-samples", without_x, asked),
                [
                    self._tasks.submit(
                        "left-out-scores", score_left_out, asked, nodes, taus, *self._settings
                    )
                    for nodes in self._nodes
                ],
            )
            for asked in self._asked(rows)
        ]
        place = np.empty(len(self._codes), dtype=np.int64)
        place[rows] = np.arange(len(rows))
        for told, offers in waiting:
            at = place[self._tasks.gather(told).samples]
            sums, lows = zip(*self._tasks.gather(offers), strict=True)
            logs[at] = together(*sums)
            lowest[at] = np.minimum.reduce(lows)
        return logs, lowest
