"""
Rows that belong together, and a rare class
===========================================

Every consumer of electricity has a row for each month, and few of them steal. Rows of a consumer are alike, so
a model recognises consumers that it has seen. Told which rows belong together, it knows how well it does on
others.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import PrecisionRecallDisplay, average_precision_score, log_loss
from sklearn.model_selection import StratifiedGroupKFold

from popf import POPFClassifier
from popf.datasets import make_energy_theft_months

months = make_energy_theft_months(
    n_consumers=300, n_months=8, theft_rate=0.1, as_frame=True, random_state=0
)
X, y, consumer = months.data, months.target == 1, months.consumer
print(f"{len(X):,} rows of {len(np.unique(consumer))} consumers, {y.mean():.1%} of them thefts")
print(X.iloc[0])

# %%
# Half of the consumers are for training. ``groups`` tells whose rows they are, so that the rows of a consumer
# are held out together when the components are weighed. Rare classes need no resampling: that would distort
# the probabilities.
folds = StratifiedGroupKFold(2, shuffle=True, random_state=0)
train, test = next(folds.split(X, y, consumer))
models = {
    "with groups": POPFClassifier().fit(X.iloc[train], y[train], groups=consumer[train]),
    "without groups": POPFClassifier().fit(X.iloc[train], y[train]),
}
print("                expected log loss  on new consumers  average precision")
for name, model in models.items():
    probability = model.predict_proba(X.iloc[test])[:, 1]
    expected, found = model.held_out_losses_["pool"], log_loss(y[test], probability)
    precision = average_precision_score(y[test], probability)
    print(f"{name:14} {expected:18.3f} {found:17.3f} {precision:18.2f}")

# %%
# Without groups the model expects too much, and finds fewer thefts. Accuracy would hide that, because most
# rows are no theft; precision and recall do not.
figure, ax = plt.subplots(layout="constrained")
for name, model in models.items():
    PrecisionRecallDisplay.from_estimator(model, X.iloc[test], y[test], name=name, ax=ax)
plt.show()
