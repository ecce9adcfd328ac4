"""
Does 80 % mean eight times in ten?
==================================

A reliability curve shows whether probabilities are frequencies: here those of ``POPFClassifier`` with its
default, ``method="pooled"``, and with the method of the paper.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from popf import POPFClassifier
from popf.display import ReliabilityDisplay

X, y = make_moons(3000, noise=0.35, random_state=0)
BOX = ((-100, 10), (-10, 10))  # the paper's own is too small for distances as short as these
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=0.25, random_state=0)

# %%
# The paper's method is fitted to costs that the forest has already seen, and it never errs on those; the
# default is fitted to samples that were held out.
ax = None
for method in ("pooled", "paper"):
    model = make_pipeline(StandardScaler(), POPFClassifier(method, box=BOX)).fit(X_train, y_train)
    loss = log_loss(y_test, model.predict_proba(X_test))
    print(f"{method:6}  log loss {loss:.3f}")
    ax = ReliabilityDisplay.from_estimator(model, X_test, y_test, name=method, ax=ax).ax_
plt.show()

# %%
# On the diagonal a probability is a frequency. The paper's curve is flatter, so it is overconfident: what it
# predicts as nearly impossible or nearly certain is neither.
