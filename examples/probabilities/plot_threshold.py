"""
A threshold from the costs of errors
====================================

A threshold turns a probability into a decision, and 0.5 is right only if both errors are equally bad. Here
missing an energy thief costs as much as ten unnecessary inspections.
"""

import matplotlib.pyplot as plt
from sklearn.metrics import confusion_matrix, make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV, train_test_split

from popf import POPFClassifier
from popf.datasets import make_energy_theft
from popf.display import ThresholdDisplay

COST_FP, COST_FN = 1, 10
month = make_energy_theft(n_samples=3000, theft_rate=0.1, as_frame=True, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(
    month.data, month.target, train_size=0.33, stratify=month.target, random_state=0
)
model = POPFClassifier()


def cost(y_true, y_pred):
    """Return the mean cost of the errors."""
    (_, false_alarms), (misses, _) = confusion_matrix(y_true, y_pred, labels=[-1, 1])
    return (COST_FP * false_alarms + COST_FN * misses) / len(y_true)


# %%
# Cross-validation chooses the threshold from the training samples alone. If probabilities were exact, the best
# one would be cost of a false alarm / (cost of a false alarm + cost of a miss).
tuned = TunedThresholdClassifierCV(model, scoring=make_scorer(cost, greater_is_better=False)).fit(
    X_train, y_train
)
print(f"chosen by cross-validation: {tuned.best_threshold_:.3f}")
print(f"if probabilities were exact: {COST_FP / (COST_FP + COST_FN):.3f}")

# %%
# Evaluated on samples that were not used to choose it:
model.fit(X_train, y_train)
print(f"cost at 0.5         {cost(y_test, model.predict(X_test)):.3f}")
print(f"cost at the chosen  {cost(y_test, tuned.predict(X_test)):.3f}")

# %%
# The whole curve, with the chosen threshold marked.
ThresholdDisplay.from_estimator(
    model, X_test, y_test, cost_fp=COST_FP, cost_fn=COST_FN, chosen=tuned.best_threshold_
)
plt.show()
