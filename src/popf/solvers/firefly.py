"""The firefly algorithm."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from popf.engine.structures import FloatArray
from popf.solvers.base import Box, Evaluations, RandomNumbers, check_real
from popf.solvers.swarm import Swarm


@dataclass(frozen=True, kw_only=True, repr=False)
class Firefly(Swarm):
    r"""Firefly algorithm: every firefly flies towards every brighter one, the more the nearer it is.

    .. math:: x_i \leftarrow x_i + \beta_0 e^{-\gamma r_{ij}^2} (x_j - x_i) + \alpha (u - \tfrac12),

    for each j with a smaller objective, from the dimmest such j to the brightest, r the distance from
    where the move before has led, u uniform in [0, 1] for each parameter. All fly at once: x_j is where
    j was when the iteration began. The brightest stays, so the best point is never lost. Fireflies start
    uniformly in the box and are clipped to it.

    With the paper's α = 0.7 the noise does not fade, so the last digits are found by luck, and with
    γ = 1 fireflies see each other only within some two units: until then they wander. Expect PSO or
    `Newton` to be more exact.

    Parameters
    ----------
    n_agents : int, default=20
    n_iterations : int, default=400
    attraction : float, default=0.9
        β₀, the part of the way that is flown to a very near firefly.
    absorption : float, default=1.0
        γ, how fast attraction fades with the distance.
    step : float, default=0.7
        α, the width of the noise.
    patience : int or None, default=None
        Stop after so many iterations without improvement. None runs them all, as in the paper.
    tolerance : float, default=0.001
        An improvement by a smaller share counts as none.

    References
    ----------
    X.-S. Yang, "Firefly algorithm, stochastic test functions and design optimisation", International
    Journal of Bio-Inspired Computation 2 (2010), 78-84.

    Examples
    --------
    >>> from popf.solvers import Firefly
    >>> def sphere(thetas):
    ...     return ((thetas - [1.0, 2.0]) ** 2).sum(axis=1)
    >>> solution = Firefly().minimize(sphere, random_state=0)
    >>> solution.theta.round(1)
    array([1., 2.])
    """

    attraction: float = 0.9
    absorption: float = 1.0
    step: float = 0.7

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("attraction", self.attraction, 0.0)
        check_real("absorption", self.absorption, 0.0)
        check_real("step", self.step, 0.0)

    def _iterations(
        self, evaluate: Evaluations, box: Box, random: RandomNumbers, agents: FloatArray
    ) -> Iterator[tuple[FloatArray, float]]:
        n_agents = len(agents)
        while True:
            # Dimmest first: those dimmer than the j-th are then the first ones, a view.
            values = evaluate(agents)
            order = np.argsort(-values, kind="stable")
            brightness, agents = -values[order], agents[order]
            yield agents[-1], float(-brightness[-1])
            noise = self.step * (random.uniform(size=(n_agents, n_agents, 2)) - 0.5)
            n_dimmer = np.searchsorted(brightness, brightness, side="left").tolist()
            # As complex numbers the points of a plane need half the operations.
            beacons, flying, kicks = _as_complex(agents), _as_complex(agents), _as_complex(noise)
            for j, n in enumerate(n_dimmer):
                dimmer = flying[:n]
                gap = beacons[j] - dimmer
                distance = np.abs(gap)
                gap *= self.attraction * np.exp(-self.absorption * distance * distance)
                gap += kicks[j, :n]
                dimmer += gap
            agents = box.clip(np.column_stack([flying.real, flying.imag]))


def _as_complex(points: FloatArray) -> NDArray[np.complex128]:
    """Return a copy with one complex number, A + iB, for each point."""
    return points[..., 0] + 1j * points[..., 1]
