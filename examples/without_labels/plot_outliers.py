"""
Whom to inspect before anyone has a label
=========================================

A utility that has inspected nobody yet has no labels to learn from. But consumers who steal look different from
the others: `OPFOutlierDetector` ranks consumers by their density, relative to that of their cluster.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from popf import OPFOutlierDetector
from popf.datasets import make_energy_theft_months

data = make_energy_theft_months(
    "commercial", n_consumers=1500, n_months=24, theft_rate=0.15, random_state=0
)
month = data.month == 12
X, thief = data.data[month], data.target[month] > 0

# %%
# Demands and powers span orders of magnitude, so we take logarithms. The number of neighbours is larger than
# groups of similar outliers; otherwise these would form clusters.
model = make_pipeline(
    SimpleImputer(strategy="median"),
    FunctionTransformer(np.log1p),
    StandardScaler(),
    OPFOutlierDetector(50, contamination=0.05),
).fit(X)
score = model.score_samples(X)
flagged = model.predict(X) == -1
print(f"{flagged.sum()} of {len(X)} consumers are outliers; {thief[flagged].sum()} of them steal")
print(f"{thief.sum()} consumers steal in all")

# %%
# The labels are only used to evaluate the ranking: how many thieves are among the first to be inspected?
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
bins = np.linspace(0.0, score.max(), 40)
left.hist([score[~thief], score[thief]], bins, stacked=True, label=["regular", "theft"])
left.axvline(model[-1].offset_, color="0.4", linestyle=":")
left.set(yscale="log", xlabel="score", ylabel="consumers")
left.legend()
found = np.cumsum(thief[np.argsort(score)]) / thief.sum()
inspected = np.arange(1, len(X) + 1) / len(X)
right.plot(inspected, found, label="by score")
right.plot([0, 1], [0, 1], color="0.6", linestyle=":", label="at random")
right.set(xlabel="share of consumers inspected", ylabel="share of thieves found")
right.legend()
plt.show()
