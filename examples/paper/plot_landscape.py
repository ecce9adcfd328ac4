"""
What the paper's solvers minimise
=================================

The paper fits two parameters, A and B, with Nelder and Mead's simplex, a particle swarm, bats and fireflies.
The objective is smooth and convex, so Newton's method needs only eleven evaluations. This is figure 1 of the
paper, with the sign of its objective corrected.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from popf import PlattOPFClassifier
from popf.display import LandscapeDisplay

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)

# %%
# All find nearly the same point. They differ in the number of function evaluations.
for solver in ("newton", "nelder-mead", "pso", "bat", "firefly"):
    model = PlattOPFClassifier(solver, random_state=0).fit(X, y)
    solution = model.solution_
    print(f"{solver:12} F = {solution.value:.4f} after {solution.n_evaluations:5} evaluations")

# %%
# Each path follows the best point so far, from a hollow mark to a large one.
model = PlattOPFClassifier().fit(X, y)
LandscapeDisplay.from_estimator(
    model, solvers=["nelder-mead", "pso", "bat", "firefly"], random_state=0
)
plt.show()
