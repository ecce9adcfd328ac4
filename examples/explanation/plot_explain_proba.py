"""
What each feature adds
======================

The log odds of a pooled probability are a sum: a baseline, what the forest adds, and what each
feature adds. ``explain_proba`` returns the terms of one sample; permutation importance shows which features
matter over all samples.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.inspection import permutation_importance
from sklearn.model_selection import train_test_split

from popf import POPFClassifier
from popf.display import LogOddsDisplay

cancer = load_breast_cancer(as_frame=True)
X = cancer.data.filter(like="mean")
y = cancer.target_names[cancer.target]
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = POPFClassifier().fit(X_train, y_train)
print(f"accuracy {model.score(X_test, y_test):.3f}")

# %%
# The tumour about which the model is least certain. The terms add up to its log odds of being malignant: bars
# to the right are evidence for malignant, to the left for benign.
doubtful = X_test.iloc[[np.abs(model.decision_function(X_test)).argmin()]]
LogOddsDisplay.from_estimator(model, doubtful)
plt.show()

# %%
# The same numbers as a table, for any number of samples:
print(model.explain_proba(doubtful).to_pandas().T.round(2))

# %%
# Over the whole test set: how much worse is the log loss when the values of one feature are shuffled?
found = permutation_importance(model, X_test, y_test, scoring="neg_log_loss", random_state=0)
order = found.importances_mean.argsort()
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.barh(X.columns[order], found.importances_mean[order], xerr=found.importances_std[order])
ax.set(xlabel="increase in log loss")
plt.show()
