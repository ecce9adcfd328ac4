"""Left-out scores from all blocks, and what is fitted to them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.dask.blocks import Block, Nodes
from popf.dask.cluster import Tasks
from popf.dask.model import Shell, make_part, mass_without, together
from popf.probability.calibration import N_FOR_UNIT, bandwidth_grid, unit_of_cost
from popf.probability.soft_competition import LeftOut

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


def take_samples(block: Block, exponent: int, samples: IntArray) -> Asked:
    """Take some samples out of a block."""
    loaded = block
    at = np.flatnonzero(np.isin(loaded.samples, samples, assume_unique=True))
    X = np.ldexp(loaded.points[at], exponent)
    return Asked(loaded.samples[at], X, loaded.codes[at], loaded.weights[at])


def put_together(*parts: Asked) -> Asked:
    """Put samples of several blocks together."""
    return Asked(*map(np.concatenate, zip(*parts, strict=True)))


def score_left_out(
    asked: Asked, costed: Nodes, shell: Shell, taus: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Let one block compete for samples that are left out."""
    return make_part(shell, costed).sums_without(asked.X, asked.samples, taus)


def sum_positive(asked: Asked, costed: Nodes, shell: Shell) -> tuple[float, float]:
    """Sum the positive costs that one block offers to samples that are left out."""
    return make_part(shell, costed).positive_costs(asked.X, asked.samples, asked.weights)


def without_x(asked: Asked) -> Asked:
    """Tell all but the features."""
    return asked._replace(X=np.empty((0, 0)))


class LeavingOut:
    """The soft competition of all blocks, for training samples that are left out.

    Has the part of `popf.probability.soft_competition.SoftCompetition` that a fit needs.

    Parameters
    ----------
    tasks : Tasks
    shell : Shell
    costed : list
        Futures of `Costed`, or `Costed`.
    blocks : list
        Futures of `Block`, or `StoredBlock`.
    block_of : ndarray of shape (n_samples,)
        The block of every sample.
    codes, weights : ndarray of shape (n_samples,)
    """

    def __init__(
        self,
        tasks: Tasks,
        shell: Shell,
        costed: list[Any],
        blocks: list[Any],
        block_of: IntArray,
        codes: IntArray,
        weights: FloatArray,
    ) -> None:
        self._tasks, self._shell = tasks, shell
        self._costed, self._blocks, self._block_of = costed, blocks, block_of
        self._codes, self._weights = codes, weights
        masses = np.bincount(codes, weights=weights, minlength=len(shell.classes))
        self.masses = masses.astype(np.float64)
        self._most = int(np.bincount(block_of).max())
        # Plain Euclidean costs and bandwidths are scaled by a power of two, as the samples are.
        self._exponent = shell.exponent if shell.metric.name == "euclidean" else 0

    def grid(self, rows: IntArray) -> FloatArray:
        """Make the bandwidths to choose from, by what some left-out samples cost."""
        some = rows[:: -(-len(rows) // N_FOR_UNIT)]
        _, lowest = self._compete(some, np.empty((0, 1)))
        unit = unit_of_cost(lowest.min(axis=1), self._weights[some])
        if unit == 0.0:  # all samples have company of both classes where they are
            sums = self._tasks.gather(
                [
                    self._tasks.submit("sum-costs", sum_positive, asked, costed, self._shell)
                    for asked in self._asked(some)
                    for costed in self._costed
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
            exponent = self._shell.exponent if self._shell.metric.euclidean else 0
            taken = tasks.submit("take-samples", take_samples, self._blocks[b], exponent, mine)
            if not groups or total + len(mine) > self._most:
                groups.append([taken])
                total = len(mine)
            else:
                groups[-1].append(taken)
                total += len(mine)
        return [tasks.submit("put-together", put_together, *group) for group in groups]

    def _compete(self, rows: IntArray, taus: FloatArray) -> tuple[FloatArray, FloatArray]:
        n_classes = len(self._shell.classes)
        logs = np.empty((len(rows), n_classes, taus.size))
        lowest = np.empty((len(rows), n_classes))
        waiting = [
            (
                self._tasks.submit("tell-samples", without_x, asked),
                [
                    self._tasks.submit(
                        "left-out-scores", score_left_out, asked, costed, self._shell, taus
                    )
                    for costed in self._costed
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
