"""Platt's objective and the swarms, slow and obvious, from the equations of the paper; functions to minimise.

The objective is the definition itself, -Σ w [t log p + (1 - t) log(1 - p)], in decimal numbers of 60
digits, so that nothing need be reformulated. The swarms move one agent and one parameter at a time; they
draw their random numbers in the same order as the fast ones, which is all they have in common.
"""

import math
from decimal import Decimal, localcontext

import numpy as np

from popf.paper import PlattObjective
from popf.paper import platt_targets as fast_targets


def platt_targets(y, weights):
    n_positive = sum(w for label, w in zip(y, weights, strict=True) if label == 1)
    n_negative = sum(w for label, w in zip(y, weights, strict=True) if label == -1)
    high, low = (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2)
    return [high if label == 1 else low for label in y]


def platt_objective(f, t, weights, theta):
    with localcontext() as context:
        context.prec = 60
        context.Emax, context.Emin = 10**9, -(10**9)
        slope, bias = (Decimal(float(parameter)) for parameter in theta)
        total = Decimal(0)
        for score, target, weight in zip(f, t, weights, strict=True):
            exponent = slope * Decimal(float(score)) + bias
            p, not_p = 1 / (1 + exponent.exp()), 1 / (1 + (-exponent).exp())  # not_p is 1 - p
            target, weight = Decimal(float(target)), Decimal(float(weight))
            total -= weight * (target * p.ln() + (1 - target) * not_p.ln())
        return float(total)


def clip(point, box):
    return [min(max(x, lower), upper) for x, (lower, upper) in zip(point, box, strict=True)]


def scatter(solver, box, random):
    lower, upper = np.transpose(box)
    return random.uniform(lower, upper, size=(solver.n_agents, 2)).tolist()


def best_of(agents, values):
    leader = values.index(min(values))
    return list(agents[leader]), values[leader]


def pso(solver, function, box, random):
    """Best point and value at the start and after each iteration."""
    agents = scatter(solver, box, random)
    velocities = [[0.0, 0.0] for _ in agents]
    own, own_values = [list(x) for x in agents], [function(*x) for x in agents]
    path = [best_of(own, own_values)]
    for _ in range(solver.n_iterations):
        r1, r2 = random.uniform(size=(2, solver.n_agents, 2)).tolist()
        swarm_best = path[-1][0]
        for i in range(solver.n_agents):
            for k in range(2):
                velocities[i][k] = (
                    solver.inertia * velocities[i][k]
                    + solver.cognitive * r1[i][k] * (own[i][k] - agents[i][k])
                    + solver.social * r2[i][k] * (swarm_best[k] - agents[i][k])
                )
                wanted = agents[i][k] + velocities[i][k]
                agents[i][k] = min(max(wanted, box[k][0]), box[k][1])
                if agents[i][k] != wanted:
                    velocities[i][k] = 0.0
            value = function(*agents[i])
            if value < own_values[i]:
                own[i], own_values[i] = list(agents[i]), value
        path.append(best_of(own, own_values))
    return path


def bat(solver, function, box, random):
    """Best point and value at the start and after each iteration."""
    n = solver.n_agents
    agents = scatter(solver, box, random)
    velocities = [[0.0, 0.0] for _ in agents]
    values = [function(*x) for x in agents]
    loudness, pulse_rates = [solver.loudness] * n, [solver.pulse_rate] * n
    path = [best_of(agents, values)]
    for iteration in range(1, solver.n_iterations + 1):
        tuning, pulse, chance = random.uniform(size=(3, n)).tolist()
        walk = random.uniform(-1.0, 1.0, size=(n, 2)).tolist()
        best, best_value = path[-1]
        mean_loudness = sum(loudness) / n
        path.append(path[-1])
        for i in range(n):
            spread = solver.highest_frequency - solver.lowest_frequency
            frequency = solver.lowest_frequency + spread * tuning[i]
            for k in range(2):
                velocities[i][k] += (agents[i][k] - best[k]) * frequency
            tried = [agents[i][k] + velocities[i][k] for k in range(2)]
            if pulse[i] > pulse_rates[i]:
                tried = [best[k] + walk[i][k] * mean_loudness for k in range(2)]
            tried = clip(tried, box)
            value = function(*tried)
            if value <= values[i] and chance[i] < loudness[i]:
                agents[i], values[i] = tried, value
                loudness[i] *= solver.loudness_decay
                growth = 1.0 - math.exp(-solver.pulse_growth * iteration)
                pulse_rates[i] = solver.pulse_rate * growth
            if value < best_value and value < path[-1][1]:
                path[-1] = (tried, value)
    return path


def firefly(solver, function, box, random):
    """Best point and value at the start and after each iteration."""
    n = solver.n_agents
    agents = scatter(solver, box, random)
    values = [function(*x) for x in agents]
    path = [best_of(agents, values)]
    for _ in range(solver.n_iterations):
        order = sorted(range(n), key=lambda i: -values[i])  # the dimmest first
        before = [agents[i] for i in order]
        values = [values[i] for i in order]
        noise = random.uniform(size=(n, n, 2)).tolist()
        agents = []
        for i in range(n):
            x = list(before[i])
            for j in range(n):
                if values[j] < values[i]:
                    squared = sum((before[j][k] - x[k]) ** 2 for k in range(2))
                    pull = solver.attraction * math.exp(-solver.absorption * squared)
                    for k in range(2):
                        x[k] += pull * (before[j][k] - x[k]) + solver.step * (noise[j][i][k] - 0.5)
            agents.append(clip(x, box))
        values = [function(*x) for x in agents]
        path.append(best_of(agents, values))
    return path


def platt_problem(seed, n_samples=80, overlap=1.0):
    random = np.random.RandomState(seed)
    y = np.where(random.uniform(size=n_samples) < random.uniform(0.2, 0.8), 1, -1)
    y[:2] = 1, -1
    f = y * random.uniform(0.5, 1.5) + overlap * random.normal(size=n_samples)
    return PlattObjective(f, fast_targets(y))


class Sphere:
    def __init__(self, centre=(1.0, -2.0)):
        self.centre = np.array(centre)

    def __call__(self, thetas):
        return ((thetas - self.centre) ** 2).sum(axis=1)

    def derivatives(self, theta):
        gap = theta - self.centre
        return gap @ gap, 2 * gap, 2 * np.eye(2)


class Rosenbrock:
    def __init__(self, start=(0.0, 0.0)):
        self.start = start

    def __call__(self, thetas):
        x, y = thetas.T
        return (1 - x) ** 2 + 100 * (y - x**2) ** 2

    def derivatives(self, theta):
        x, y = theta
        gradient = np.array([-2 * (1 - x) - 400 * x * (y - x**2), 200 * (y - x**2)])
        hessian = np.array([[2 - 400 * (y - 3 * x**2), -400 * x], [-400 * x, 200.0]])
        return float(self(theta[np.newaxis])[0]), gradient, hessian
