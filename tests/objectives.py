"""Functions of two variables to minimise."""

import numpy as np

from popf.solvers import PlattObjective, platt_targets


def platt_problem(seed, n_samples=80, overlap=1.0):
    random = np.random.RandomState(seed)
    y = np.where(random.uniform(size=n_samples) < random.uniform(0.2, 0.8), 1, -1)
    y[:2] = 1, -1
    f = y * random.uniform(0.5, 1.5) + overlap * random.normal(size=n_samples)
    return PlattObjective(f, platt_targets(y))


class Sphere:
    def __init__(self, centre=(1.0, -2.0)):
        self.centre = np.array(centre)

    def __call__(self, thetas):
        return ((thetas - self.centre) ** 2).sum(axis=1)

    def derivatives(self, theta):
        gap = theta - self.centre
        return gap @ gap, 2 * gap, 2 * np.eye(2)


class Rosenbrock:
    def __call__(self, thetas):
        x, y = thetas.T
        return (1 - x) ** 2 + 100 * (y - x**2) ** 2

    def derivatives(self, theta):
        x, y = theta
        gradient = np.array([-2 * (1 - x) - 400 * x * (y - x**2), 200 * (y - x**2)])
        hessian = np.array([[2 - 400 * (y - 3 * x**2), -400 * x], [-400 * x, 200.0]])
        return float(self(theta[np.newaxis])[0]), gradient, hessian
