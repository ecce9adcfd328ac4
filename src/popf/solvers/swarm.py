"""What the three swarms share: agents scattered over the box, iterations, the stopping rule."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from numpy.typing import ArrayLike

from popf.engine.structures import FloatArray
from popf.solvers.base import (
    Box,
    Evaluations,
    Objective,
    RandomNumbers,
    Record,
    Solution,
    Solver,
    check_integer,
    check_real,
    check_start,
    random_numbers,
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Swarm(Solver):
    """Agents that search the box together; all are evaluated in one call per iteration.

    A swarm has no criterion of convergence of its own. It is said to have converged if the last
    `patience` iterations, or the last quarter of them all where `patience` is None, did not improve
    the best value by more than the share `tolerance`.
    """

    n_agents: int = 20
    n_iterations: int = 400
    patience: int | None = None
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        check_integer("n_agents", self.n_agents, 2)
        check_integer("n_iterations", self.n_iterations, 1)
        if self.patience is not None:
            check_integer("patience", self.patience, 1, ", or None to run all iterations")
        check_real("tolerance", self.tolerance, 0.0)

    def _minimize(
        self,
        objective: Objective,
        box: Box | None,
        random_state: int | RandomNumbers | None,
        start: ArrayLike | None,
    ) -> Solution:
        if box is None:
            raise ValueError(
                f"box is None, but {type(self).__name__} scatters its agents over a box; give "
                "((lowest, highest), (lowest, highest)), or use Newton or NelderMead"
            )
        evaluate = Evaluations(objective)
        random = random_numbers(random_state)
        agents = random.uniform(box.lower, box.upper, size=(self.n_agents, 2))
        if start is not None:
            agents[0] = check_start(start, box)
        record = Record()
        message = f"all {self.n_iterations} iterations done"
        iterations = self._iterations(evaluate, box, random, agents)
        for theta, value in islice(iterations, self.n_iterations + 1):
            record.add(theta, value)
            if self.patience is not None and record.settled(self.patience, self.tolerance):
                message = f"no improvement for {self.patience} iterations"
                break
        window = self.patience or max(1, self.n_iterations // 4)
        converged = record.settled(window, self.tolerance)
        if not converged:
            message += ", still improving; raise n_iterations"
        return record.solution(evaluate.count, converged, message, box)

    @abstractmethod
    def _iterations(
        self, evaluate: Evaluations, box: Box, random: RandomNumbers, agents: FloatArray
    ) -> Iterator[tuple[FloatArray, float]]:
        """Best point and value: of the scattered agents, then after each iteration, without end."""
