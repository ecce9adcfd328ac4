"""From left-out scores to probabilities: the bandwidth, the scaling, and how far the prior is better."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.bandwidth import Scaling, fit_scaling, prior, weight_of_evidence
from popf.soft_competition import LeftOut, Multinomial, fit_all
from popf.solvers import Newton, Solver

FloatArray = NDArray[np.float64]


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
