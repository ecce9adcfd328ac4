"""The bat algorithm."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from popf.engine.structures import FloatArray
from popf.solvers.base import Box, Evaluations, RandomNumbers, check_real
from popf.solvers.swarm import Swarm


@dataclass(frozen=True, kw_only=True, repr=False)
class Bat(Swarm):
    r"""Bat algorithm: bats fly by frequency, walk about the best point, and keep what is better.

    In every iteration each bat draws a frequency and a point to try,

    .. math:: q_i = q_{min} + (q_{max} - q_{min}) u, \qquad
              v_i \leftarrow v_i + (x_i - x_{best}) q_i, \qquad x_i' = x_i + v_i,

    or, where a uniform number exceeds its pulse rate :math:`r_i`, a step from the best point by the mean
    loudness, :math:`x_i' = x_{best} + \varepsilon \bar{a}`, ε uniform in [-1, 1] for each parameter. It
    moves there if that is no worse and a uniform number is below its loudness :math:`a_i`; then

    .. math:: a_i \leftarrow \alpha a_i, \qquad r_i = r_0 (1 - e^{-\gamma k})

    in iteration k. The best point ever tried is kept whether a bat moved there or not. Bats start at
    rest, uniformly in the box, and are clipped to it.

    With these signs, which are those of Yang's own formula, flight leads away from the best point; it
    spreads the bats, and the walk does the refinement. With α = 1, the paper's, the walk keeps its
    length, so the last digits are found by luck: expect PSO or `Newton` to be more exact.

    Parameters
    ----------
    n_agents : int, default=20
    n_iterations : int, default=400
    lowest_frequency, highest_frequency : float, default=0.0 and 1.0
        q_min and q_max.
    loudness : float, default=0.5
        a₀ of every bat, in (0, 1]: also the reach of the walk, in units of the parameters. The paper does
        not state it; 0.5 is the middle. Less is finer: 0.1 came ten times closer on Platt's objective.
    loudness_decay : float, default=1.0
        α, in (0, 1].
    pulse_rate : float, default=0.5
        r₀ of every bat, in [0, 1]: in the long run the share of bats that fly rather than walk. The paper
        does not state it; 0.5 is the middle.
    pulse_growth : float, default=1.0
        γ.
    patience : int or None, default=None
        Stop after so many iterations without improvement. None runs them all, as in the paper.
    tolerance : float, default=0.001
        An improvement by a smaller share counts as none.

    References
    ----------
    X.-S. Yang and A. H. Gandomi, "Bat algorithm: a novel approach for global engineering optimization",
    Engineering Computations 29 (2012), 464-483.

    Examples
    --------
    >>> from popf.solvers import Bat
    >>> def sphere(thetas):
    ...     return ((thetas - [1.0, 2.0]) ** 2).sum(axis=1)
    >>> solution = Bat().minimize(sphere, random_state=0)
    >>> solution.theta.round(1)
    array([1., 2.])
    """

    lowest_frequency: float = 0.0
    highest_frequency: float = 1.0
    loudness: float = 0.5
    loudness_decay: float = 1.0
    pulse_rate: float = 0.5
    pulse_growth: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("lowest_frequency", self.lowest_frequency, 0.0)
        check_real("highest_frequency", self.highest_frequency, self.lowest_frequency)
        check_real("loudness", self.loudness, np.finfo(float).tiny, 1.0)
        check_real("loudness_decay", self.loudness_decay, np.finfo(float).tiny, 1.0)
        check_real("pulse_rate", self.pulse_rate, 0.0, 1.0)
        check_real("pulse_growth", self.pulse_growth, 0.0)

    def _iterations(
        self, evaluate: Evaluations, box: Box, random: RandomNumbers, agents: FloatArray
    ) -> Iterator[tuple[FloatArray, float]]:
        n_agents = len(agents)
        velocities = np.zeros_like(agents)
        loudness = np.full(n_agents, float(self.loudness))
        pulse_rates = np.full(n_agents, float(self.pulse_rate))
        values = evaluate(agents)
        leader = int(np.argmin(values))
        best, best_value = agents[leader].copy(), float(values[leader])
        iteration = 0
        while True:
            yield best, best_value
            iteration += 1
            tuning, pulse, chance = random.uniform(size=(3, n_agents))
            walk = random.uniform(-1.0, 1.0, size=agents.shape)
            frequencies = (
                self.lowest_frequency + (self.highest_frequency - self.lowest_frequency) * tuning
            )
            velocities += (agents - best) * frequencies[:, np.newaxis]
            tried = agents + velocities
            walking = pulse > pulse_rates
            tried[walking] = best + walk[walking] * loudness.mean()
            tried = box.clip(tried)
            tried_values = evaluate(tried)

            moving = (tried_values <= values) & (chance < loudness)
            agents[moving] = tried[moving]
            values[moving] = tried_values[moving]
            loudness[moving] *= self.loudness_decay
            pulse_rates[moving] = self.pulse_rate * -np.expm1(-self.pulse_growth * iteration)

            leader = int(np.argmin(tried_values))
            if tried_values[leader] < best_value:
                best, best_value = tried[leader].copy(), float(tried_values[leader])
