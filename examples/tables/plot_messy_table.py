"""
A table as it is
================

Text, categories and gaps go into ``POPFClassifier`` unchanged, and explanations speak of the columns of the
table, not of the features that are made of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from popf import POPFClassifier
from popf.datasets import make_energy_theft
from popf.display import ImportancesDisplay, LogOddsDisplay

month = make_energy_theft(n_samples=2000, theft_rate=0.1, as_frame=True, random_state=0)
X, y = month.data, np.where(month.target == 1, "theft", "regular")
print(X.loc[:4, ["activity", "zone", "maximum_demand", "reactive_energy"]])
print(f"{X.isna().to_numpy().sum()} gaps in {(X.isna().any()).sum()} of {X.shape[1]} columns")

# %%
# Nothing to impute, encode or scale. Cross-validation within the fit tells how good the probabilities are:
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
model = POPFClassifier().fit(X_train, y_train)
losses = model.held_out_losses_
print(f"log loss {losses['pool']:.2f}, of the class frequencies {losses['prior']:.2f}")

# %%
# Over many rows: which columns move the log odds?
ImportancesDisplay.from_estimator(model, X_test)
plt.show()

# %%
# For the row with the highest probability: what does each cell add?
highest = model.predict_proba(X_test)[:, 1].argmax()
LogOddsDisplay.from_estimator(model, X_test.iloc[highest])
plt.show()
