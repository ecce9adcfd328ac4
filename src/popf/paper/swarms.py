"""Particle swarm, bat and firefly algorithms: agents that search the box together."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from popf.engine.structures import FloatArray
from popf.formatting import check_integer, check_real
from popf.paper.solver import RandomNumbers, Search, Solver

BestPoints = Iterator[tuple[FloatArray, float]]


@dataclass(frozen=True, kw_only=True, repr=False)
class Swarm(Solver):
    """Base class of the swarms: agents scattered over the box, all evaluated in one call per iteration.

    A swarm has no convergence criterion of its own: it counts as converged if the last quarter of the
    iterations improved the best value by no more than `tolerance` times the value or times the improvement
    since the start, whichever is larger, so that the scale of the objective does not matter.
    """

    n_agents: int = 20
    n_iterations: int = 400
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("n_agents", self.n_agents, 2)

    def _minimize(self, search: Search, random_state: RandomNumbers) -> tuple[bool, str]:
        box = search.box
        if not box.bounded:
            raise ValueError(
                f"box is None, but {type(self).__name__} scatters its agents over a box; give "
                "((lowest, highest), (lowest, highest)), or use Newton or NelderMead"
            )
        # Seeds go to RandomState, whose stream is the same in every version of NumPy.
        random: Any = random_state
        if not isinstance(random, np.random.Generator):
            random = check_random_state(random)
        agents = random.uniform(box.lower, box.upper, size=(self.n_agents, 2))
        for theta, value in islice(self._iterations(search, random, agents), self.n_iterations + 1):
            search.add(theta, value)
        first, last = search.history[0], search.history[-1]
        gained = first - last if np.isfinite(first) else 0.0
        before = search.history[-1 - max(1, self.n_iterations // 4)]
        message = f"all {self.n_iterations} iterations done"
        if np.isfinite(last) and before - last <= self.tolerance * max(abs(last), gained):
            return True, message
        return False, f"{message}, still improving; raise n_iterations"

    @abstractmethod
    def _iterations(self, search: Search, random: Any, agents: FloatArray) -> BestPoints:
        """Yield the best point and value at the start, then after each iteration."""


@dataclass(frozen=True, kw_only=True, repr=False)
class PSO(Swarm):
    r"""Particle swarm: every agent is drawn to its own best point and to the swarm's.

    .. math:: v \leftarrow w v + c_1 r_1 (p - x) + c_2 r_2 (g - x), \qquad x \leftarrow x + v,

    where p is the best point of the agent, g that of the swarm, and r₁, r₂ are uniform in [0, 1], drawn anew
    for every agent and parameter. Agents start at rest and are clipped to the box; on hitting a side they lose
    their velocity in that direction. The defaults are the paper's parameters.

    Parameters
    ----------
    n_agents, n_iterations : int, default=20 and 400
    inertia : float, default=0.5
        w, the share of its velocity that an agent keeps.
    cognitive : float, default=2.0
        c₁, the pull of the agent's own best point.
    social : float, default=2.0
        c₂, the pull of the swarm's best point.
    tolerance : float, default=0.001
        Largest relative improvement over the last quarter of the iterations that counts as converged.

    References
    ----------
    J. Kennedy and R. C. Eberhart, Swarm Intelligence, Morgan Kaufmann, 2001.

    Examples
    --------
    >>> from popf.paper import PSO
    >>> solution = PSO(n_iterations=100).minimize(lambda x: ((x - [1, 2]) ** 2).sum(axis=1), random_state=0)
    >>> solution.theta.round(6)
    array([1., 2.])
    """

    inertia: float = 0.5
    cognitive: float = 2.0
    social: float = 2.0

    def _iterations(self, search: Search, random: Any, agents: FloatArray) -> BestPoints:
        velocities = np.zeros_like(agents)
        own_best, own_values = agents.copy(), search.evaluate(agents)
        while True:
            leader = int(np.argmin(own_values))
            yield own_best[leader], float(own_values[leader])
            r1, r2 = random.uniform(size=(2, *agents.shape))
            velocities = (
                self.inertia * velocities
                + self.cognitive * r1 * (own_best - agents)
                + self.social * r2 * (own_best[leader] - agents)
            )
            moved = agents + velocities
            agents = search.box.clip(moved)
            velocities[agents != moved] = 0.0
            values = search.evaluate(agents)
            better = values < own_values
            own_best[better] = agents[better]
            own_values[better] = values[better]


@dataclass(frozen=True, kw_only=True, repr=False)
class Bat(Swarm):
    r"""Bat algorithm: bats fly at random frequencies, or walk around the best point.

    In every iteration each bat draws a frequency and tries a new point,

    .. math:: q_i = q_{min} + (q_{max} - q_{min}) u, \qquad
              v_i \leftarrow v_i + (x_i - x_{best}) q_i, \qquad x_i' = x_i + v_i,

    or, if a uniform random number exceeds its pulse rate :math:`r_i`, a step from the best point, scaled by the
    mean loudness: :math:`x_i' = x_{best} + \varepsilon \bar{a}`, with ε uniform in [-1, 1] for each parameter.
    It moves there if that is no worse and a uniform random number is below its loudness :math:`a_i`; then

    .. math:: a_i \leftarrow \alpha a_i, \qquad r_i = r_0 (1 - e^{-\gamma k})

    in iteration k. The best point ever tried is kept, whether a bat moved there or not. Bats start at
    rest, and are clipped to the box.

    With these signs, which are Yang's, flying spreads the bats and walking refines the best point. With the
    paper's α = 1 the steps do not shrink, so PSO or `Newton` finds the minimum more precisely.

    Parameters
    ----------
    n_agents, n_iterations, tolerance
        As for `PSO`.
    lowest_frequency, highest_frequency : float, default=0.0 and 1.0
        q_min and q_max.
    loudness : float, default=0.5
        a₀ of every bat, in (0, 1], which is also the length of steps in the walk; the paper does not state it.
        With 0.1 the result was ten times more precise on Platt's objective.
    loudness_decay : float, default=1.0
        α, in (0, 1].
    pulse_rate : float, default=0.5
        r₀ of every bat, in [0, 1], the share of bats that fly in the long run; the paper does not state it.
    pulse_growth : float, default=1.0
        γ.

    References
    ----------
    X.-S. Yang and A. H. Gandomi, "Bat algorithm: a novel approach for global engineering optimization",
    Engineering Computations 29 (2012), 464-483.

    Examples
    --------
    >>> from popf.paper import Bat
    >>> solution = Bat().minimize(lambda x: ((x - [1, 2]) ** 2).sum(axis=1), random_state=0)
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
        check_real("highest_frequency", self.highest_frequency, self.lowest_frequency)
        check_real("loudness", self.loudness, 0.0, 1.0, strictly=True)
        check_real("loudness_decay", self.loudness_decay, 0.0, 1.0, strictly=True)
        check_real("pulse_rate", self.pulse_rate, 0.0, 1.0)

    def _iterations(self, search: Search, random: Any, agents: FloatArray) -> BestPoints:
        n_agents = len(agents)
        velocities = np.zeros_like(agents)
        loudness = np.full(n_agents, float(self.loudness))
        pulse_rates = np.full(n_agents, float(self.pulse_rate))
        spread = self.highest_frequency - self.lowest_frequency
        values = search.evaluate(agents)
        leader = int(np.argmin(values))
        best, best_value = agents[leader].copy(), float(values[leader])
        iteration = 0
        while True:
            yield best, best_value
            iteration += 1
            tuning, pulse, chance = random.uniform(size=(3, n_agents))
            walk = random.uniform(-1.0, 1.0, size=agents.shape)
            frequencies = self.lowest_frequency + spread * tuning
            velocities += (agents - best) * frequencies[:, np.newaxis]
            tried = agents + velocities
            walking = pulse > pulse_rates
            tried[walking] = best + walk[walking] * loudness.mean()
            tried = search.box.clip(tried)
            tried_values = search.evaluate(tried)

            moving = (tried_values <= values) & (chance < loudness)
            agents[moving] = tried[moving]
            values[moving] = tried_values[moving]
            loudness[moving] *= self.loudness_decay
            pulse_rates[moving] = self.pulse_rate * -np.expm1(-self.pulse_growth * iteration)

            leader = int(np.argmin(tried_values))
            if tried_values[leader] < best_value:
                best, best_value = tried[leader].copy(), float(tried_values[leader])


@dataclass(frozen=True, kw_only=True, repr=False)
class Firefly(Swarm):
    r"""Firefly algorithm: every firefly flies towards every brighter one, more strongly if it is near.

    .. math:: x_i \leftarrow x_i + \beta_0 e^{-\gamma r_{ij}^2} (x_j - x_i) + \alpha (u - \tfrac12),

    for each j with a smaller objective, from the dimmest such j to the brightest; r is the distance after the
    previous move, and u is uniform in [0, 1] for each parameter. All fly at once: x_j is the position of j at
    the start of the iteration. The brightest firefly does not move. Fireflies are clipped to the box.

    With the paper's α = 0.7 the noise does not decay, and with γ = 1 fireflies attract each other only within
    about two units, so PSO or `Newton` finds the minimum more precisely.

    Parameters
    ----------
    n_agents, n_iterations, tolerance
        As for `PSO`.
    attraction : float, default=0.9
        β₀, the share of the distance that is flown towards a very near firefly.
    absorption : float, default=1.0
        γ, how fast attraction decays with distance.
    step : float, default=0.7
        α, the width of the noise.

    References
    ----------
    X.-S. Yang, "Firefly algorithm, stochastic test functions and design optimisation", International
    Journal of Bio-Inspired Computation 2 (2010), 78-84.

    Examples
    --------
    >>> from popf.paper import Firefly
    >>> solution = Firefly().minimize(lambda x: ((x - [1, 2]) ** 2).sum(axis=1), random_state=0)
    >>> solution.theta.round(1)
    array([1., 2.])
    """

    attraction: float = 0.9
    absorption: float = 1.0
    step: float = 0.7

    def _iterations(self, search: Search, random: Any, agents: FloatArray) -> BestPoints:
        n_agents = len(agents)
        while True:
            # Dimmest first, so that all fireflies dimmer than the j-th are a slice.
            values = search.evaluate(agents)
            order = np.argsort(-values, kind="stable")
            brightness, agents = -values[order], agents[order]
            yield agents[-1], float(-brightness[-1])
            noise = self.step * (random.uniform(size=(n_agents, n_agents, 2)) - 0.5)
            n_dimmer = np.searchsorted(brightness, brightness, side="left").tolist()
            # Points as complex numbers A + iB need half the operations.
            flying, kicks = (points[..., 0] + 1j * points[..., 1] for points in (agents, noise))
            targets = flying.copy()
            for j, n in enumerate(n_dimmer):
                dimmer = flying[:n]
                gap = targets[j] - dimmer
                distance = np.abs(gap)
                gap *= self.attraction * np.exp(-self.absorption * distance * distance)
                gap += kicks[j, :n]
                dimmer += gap
            agents = search.box.clip(np.column_stack([flying.real, flying.imag]))
