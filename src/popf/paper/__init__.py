"""The paper: the probabilistic optimum-path forest (P-OPF) of Fernandes, Pereira, Ramos, Souza and Papa.

"A Probabilistic Optimum-Path Forest Classifier for Binary Classification Problems", arXiv:1609.00878.
Docstrings cite its equations, sections and tables by number.

``classifier``  `PlattOPFClassifier`: sign the forest's costs, fit A and B, apply (section 3)
``platt``       Platt's targets, probability and objective (equations 4 to 11), and what the paper misprints
``local``       Newton's method (the paper's future work), and the simplex method of Nelder and Mead
``swarms``      particle swarm, bat and firefly algorithms, with the paper's parameters (table 2)
``solver``      common parts of these: the box, the start, the history of a search

A solver is a small immutable object whose fields are its parameters; ``solver.minimize(objective, box,
random_state)`` minimises any function of two parameters. Forests are grown in `popf.forest`.
"""

from popf.paper.classifier import SOLVERS, PlattOPFClassifier
from popf.paper.local import NelderMead, Newton
from popf.paper.platt import PlattObjective, platt_probability, platt_targets
from popf.paper.solver import Solution, Solver
from popf.paper.swarms import PSO, Bat, Firefly

__all__ = [
    "PSO",
    "SOLVERS",
    "Bat",
    "Firefly",
    "NelderMead",
    "Newton",
    "PlattOPFClassifier",
    "PlattObjective",
    "Solution",
    "Solver",
    "platt_probability",
    "platt_targets",
]
