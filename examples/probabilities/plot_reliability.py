"""
Does 80 % mean eight times in ten?
==================================

A reliability curve compares probabilities with observed frequencies: here for ``POPFClassifier`` with its
default, and for the method of the paper.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from popf import PlattOPFClassifier, POPFClassifier
from popf.display import ReliabilityDisplay

X, y = make_moons(3000, noise=0.35, random_state=0)
BOX = ((-100, 10), (-10, 10))  # the paper's box is too small for such short distances
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=0.25, random_state=0)

# %%
# The paper's method is fitted to the costs of training samples, on which the forest makes no errors; the
# default is fitted to held-out samples.
ax = None
for name, model in {"pooled": POPFClassifier(), "paper": PlattOPFClassifier(box=BOX)}.items():
    model = make_pipeline(StandardScaler(), model).fit(X_train, y_train)
    loss = log_loss(y_test, model.predict_proba(X_test))
    print(f"{name:6}  log loss {loss:.3f}")
    ax = ReliabilityDisplay.from_estimator(model, X_test, y_test, name=name, ax=ax).ax_
plt.show()

# %%
# On the diagonal, probabilities equal frequencies. The paper's curve is flatter, so the method is
# overconfident: what it predicts as nearly impossible or nearly certain is neither.
