"""
Text, gaps and dates as they are
================================

Male or female? The penguins of Antarctica as they were recorded, with islands, the date of the first egg,
remarks, and gaps. Nothing is imputed, encoded or scaled.
"""

import matplotlib.pyplot as plt
import pandas as pd
from palmerpenguins import load_penguins_raw
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from popf import POPFClassifier, TableEncoder
from popf.display import ImportancesDisplay, LogOddsDisplay

penguins = load_penguins_raw().dropna(subset="Sex")
table, sex = penguins.drop(columns=["Sex", "Individual ID"]), penguins["Sex"]
print(pd.DataFrame({"values": table.nunique(), "missing": table.isna().sum()}))

# %%
# Half of them are for training. The log loss on held-out folds of this half estimates that on the others.
X_train, X_test, y_train, y_test = train_test_split(
    table, sex, test_size=0.5, stratify=sex, random_state=0
)
model = POPFClassifier().fit(X_train, y_train)
print(f"accuracy           {model.score(X_test, y_test):.2f}")
print(f"log loss, expected {model.held_out_losses_['pool']:.2f}")
print(f"log loss           {log_loss(y_test, model.predict_proba(X_test)):.2f}")

# %%
# What drives the model, in the columns of the table: by how much each moves the log odds, on average.
ImportancesDisplay.from_estimator(model, X_test, n_features=8)
plt.show()

# %%
# One penguin with gaps, among them its isotopes:
gaps = X_test[X_test["Delta 15 N (o/oo)"].isna()].iloc[[0]]
LogOddsDisplay.from_estimator(model, gaps)
plt.show()

# %%
# Text has a column for every level, dates also have the time of the year and the week, and a column tells which
# numbers are missing. ``TableEncoder`` makes the same features for any other estimator.
encoder = TableEncoder().fit(X_train, y_train)
print(*encoder.get_feature_names_out(), sep="\n")
