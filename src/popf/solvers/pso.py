"""Particle swarm optimisation."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from popf.engine.structures import FloatArray
from popf.solvers.base import Box, Evaluations, RandomNumbers, check_real
from popf.solvers.swarm import Swarm


@dataclass(frozen=True, kw_only=True, repr=False)
class PSO(Swarm):
    r"""Particle swarm: every agent is drawn to its own best point and to the swarm's.

    .. math:: v \leftarrow w v + c_1 r_1 (p - x) + c_2 r_2 (g - x), \qquad x \leftarrow x + v,

    with p the best point of the agent, g that of the swarm, and r₁, r₂ uniform in [0, 1], drawn anew
    for every agent and parameter. Agents start at rest, uniformly in the box, and are clipped to it;
    an agent that is clipped loses its speed across that side. The paper's parameters are the defaults.

    Parameters
    ----------
    n_agents : int, default=20
    n_iterations : int, default=400
    inertia : float, default=0.5
        w, the part of its velocity that an agent keeps.
    cognitive : float, default=2.0
        c₁, the pull of the agent's own best point.
    social : float, default=2.0
        c₂, the pull of the swarm's best point.
    patience : int or None, default=None
        Stop after so many iterations without improvement. None runs them all, as in the paper.
    tolerance : float, default=0.001
        An improvement by a smaller share counts as none.

    References
    ----------
    J. Kennedy and R. C. Eberhart, Swarm Intelligence, Morgan Kaufmann, 2001.

    Examples
    --------
    >>> from popf.solvers import PSO
    >>> def sphere(thetas):
    ...     return ((thetas - [1.0, 2.0]) ** 2).sum(axis=1)
    >>> solution = PSO(n_iterations=100).minimize(sphere, random_state=0)
    >>> solution.theta.round(6)
    array([1., 2.])
    """

    inertia: float = 0.5
    cognitive: float = 2.0
    social: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("inertia", self.inertia, 0.0)
        check_real("cognitive", self.cognitive, 0.0)
        check_real("social", self.social, 0.0)

    def _iterations(
        self, evaluate: Evaluations, box: Box, random: RandomNumbers, agents: FloatArray
    ) -> Iterator[tuple[FloatArray, float]]:
        velocities = np.zeros_like(agents)
        own_best, own_values = agents.copy(), evaluate(agents)
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
            agents = box.clip(moved)
            velocities[agents != moved] = 0.0
            values = evaluate(agents)
            better = values < own_values
            own_best[better] = agents[better]
            own_values[better] = values[better]
