"""From left-out scores to probabilities: the bandwidth, the scaling, and how far the prior is better."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from popf.probability.calibration import (
    Scaling,
    fit_scaling,
    n_for_bandwidth,
    prior,
    rows_to_leave_out,
    weight_of_evidence,
)
from popf.probability.checks import warn_of
from popf.probability.soft_competition import LeftOut, Multinomial, SoftCompetition, fit_all
from popf.solvers import Newton, Solution, Solver

if TYPE_CHECKING:
    from popf.probability.classifier import POPFClassifier

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Contest(Protocol):
    """Training samples that can be left out of a soft competition, wherever they are."""

    @property
    def masses(self) -> FloatArray:
        """The weight of each class."""

    def grid(self, rows: IntArray) -> FloatArray:
        """Make the bandwidths to choose from, (n_chains, n_halvings)."""

    def leave_out(self, rows: IntArray, taus: FloatArray) -> LeftOut:
        """Score some samples, each left out."""


class InMemory(NamedTuple):
    """A contest whose samples are all here.

    Attributes
    ----------
    competition : SoftCompetition
    samples : ndarray of shape (n_samples, n_features)
    means : pair of int
        How many threads and how many bytes may be used.
    """

    competition: SoftCompetition
    samples: FloatArray
    means: tuple[int, int]

    @property
    def masses(self) -> FloatArray:
        """The weight of each class."""
        return self.competition.masses

    def grid(self, rows: IntArray) -> FloatArray:
        """Make the bandwidths to choose from."""
        return self.competition.grid(self.samples, rows, *self.means)

    def leave_out(self, rows: IntArray, taus: FloatArray) -> LeftOut:
        """Score some samples, each left out."""
        return self.competition.leave_out(self.samples, rows, taus, *self.means)


class Calibrated(NamedTuple):
    """What the left-out scores say.

    Attributes
    ----------
    best : int
        The number of the chosen bandwidth.
    losses : ndarray of shape (n_bandwidths,)
        The left-out log loss of each.
    scaling : Scaling
        Slope and biases at the best, drawn to the prior as far as the evidence is weak.
    answer : Scaling or Drawn
        What turns scores into the exponents of probabilities.
    prior_weight : float
        How far they are drawn to the prior: 0 not at all, 1 all the way.
    """

    best: int
    losses: FloatArray
    scaling: Scaling
    answer: "Scaling | Drawn"
    prior_weight: float


@dataclass(frozen=True)
class Drawn:
    """A multinomial regression on the scores, drawn to the prior."""

    regression: Multinomial
    prior: Scaling
    weight: float

    @property
    def gain(self) -> float:
        """By how much an exponent changes at most where a score changes by one."""
        return self.weight * self.regression.gain

    def logits(self, scores: FloatArray) -> FloatArray:
        """Give exponents whose softmax are the probabilities."""
        return (
            self.weight * self.regression.logits(scores) + (1.0 - self.weight) * self.prior.biases
        )


def calibrate(
    left_out: LeftOut,
    masses: FloatArray,
    solver: Solver,
    box: Any,
    calibration: str,
    random_state: int | np.random.RandomState | None,
    smoothing: float = 1.0,
) -> Calibrated:
    """Choose a bandwidth by the left-out log loss, and fit the scaling of the scores.

    Parameters
    ----------
    left_out : LeftOut
        Scores of samples that were not there when they were scored, for every bandwidth.
    masses : ndarray of shape (n_classes,)
        The weight of each class, for the prior.
    solver : Solver
        What fits the scaling at the bandwidth chosen.
    box, random_state
        For the solver; Newton's method needs none.
    calibration : {"softmax", "multinomial"}
        For three classes and more. A multinomial regression needs left-out scores of every class; where
        a class has none, as one with a single sample, softmax serves in its place.
    smoothing : float
        Of the targets; see `popf.solvers.platt_targets`.

    Returns
    -------
    Calibrated
    """
    scalings, losses = fit_all(left_out, masses, smoothing)
    best = int(np.argmin(losses))
    scores, codes, weights = left_out.scores[:, :, best], left_out.codes, left_out.weights
    scaling, nothing = scalings[best], prior(masses)
    if scaling.slope == 0.0:
        return Calibrated(best, losses, nothing, nothing, 1.0)
    weight = weight_of_evidence(float(losses[best]), codes, weights, masses)
    if solver != Newton():
        limits = None if isinstance(solver, Newton) else box
        scaling = fit_scaling(
            scores, codes, weights, masses, solver, limits, random_state, smoothing
        )
    scaling = scaling.drawn_to(nothing, weight)
    answer: Scaling | Drawn = scaling
    # A class whose samples are all alone, so that none can be left out, gives a regression nothing to fit.
    if len(masses) > 2 and calibration == "multinomial" and len(np.unique(codes)) == len(masses):
        answer = Drawn(Multinomial(scores, codes, weights), nothing, weight)
    return Calibrated(best, losses, scaling, answer, 1.0 - weight)


def fit_soft(
    model: "POPFClassifier",
    contest: Contest,
    codes: IntArray,
    solver: Solver,
    held_out: tuple[LeftOut, FloatArray] | None = None,
) -> Solution | None:
    """Choose a bandwidth by the left-out log loss, fit the scaling, and tell the model.

    A bandwidth needs fewer left-out samples than slope and biases do.

    Parameters
    ----------
    model : POPFClassifier
        Gets what is fitted: bandwidths, slope and biases.
    contest : Contest
    codes : ndarray of shape (n_samples,)
        The class of every sample.
    solver : Solver
    held_out : tuple of LeftOut and ndarray, optional
        Scores of samples that nothing has seen, and their bandwidths: then nothing is left out.

    Returns
    -------
    Solution or None
        How the solver got there.
    """
    seed, more = model.random_state, None
    if held_out is None:
        rows = rows_to_leave_out(codes, model.n_left_out, seed)
        few = rows[rows_to_leave_out(codes[rows], n_for_bandwidth(len(codes)), seed)]
        more = rows if len(rows) > len(few) else None
        taus = contest.grid(few)
        held_out = contest.leave_out(few, taus), taus.ravel()
    left_out, model.bandwidths_ = held_out
    targets = (model.box, model.calibration, seed, model._smoothing())
    found = calibrate(left_out, contest.masses, solver, *targets)
    model.left_out_losses_ = found.losses
    model.bandwidth_ = float(model.bandwidths_[found.best])
    if more is not None:
        left_out = contest.leave_out(more, np.array([[model.bandwidth_]]))
        found = calibrate(left_out, contest.masses, solver, *targets)
    scaling, model._scaling = found.scaling, found.answer
    model.prior_weight_ = found.prior_weight
    if len(contest.masses) == 2:
        model.A_ = -scaling.slope
        model.B_ = float(scaling.biases[0] - scaling.biases[1])
    else:
        model.slope_, model.biases_ = scaling.slope, scaling.biases
    if scaling.solution is not None:
        warn_of(model, scaling.solution)
    return scaling.solution
