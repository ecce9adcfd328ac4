"""
Few labels
==========

Three samples of each moon have a label. The spanning tree of all samples carries the labels along the moons; a
classifier fitted to the six labelled samples alone cuts across them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier

from popf import OPFClassifier, SemiSupervisedOPFClassifier

X, y = make_moons(300, noise=0.08, random_state=0)
rng = np.random.default_rng(1)
few = np.full(len(y), -1)
for label in (0, 1):
    few[rng.choice(np.flatnonzero(y == label), 3, replace=False)] = label
labelled = few >= 0

# %%
# Unlabelled samples are marked by -1. After the fit, ``transduction_`` has a label for each of them.
opf = SemiSupervisedOPFClassifier().fit(X, few)
answers = {
    "OPF, labelled only": OPFClassifier().fit(X[labelled], few[labelled]).predict(X),
    "SelfTraining": SelfTrainingClassifier(LogisticRegression()).fit(X, few).predict(X),
    "LabelSpreading": LabelSpreading().fit(X, few).transduction_,
    "OPF, few labels": opf.transduction_,
}
for name, labels in answers.items():
    print(f"{name:20} accuracy {np.mean(labels == y):.3f}")

# %%
# Lines connect every sample to the one before it on its path, which begins at a labelled sample (ringed).
colours = np.array(["tab:blue", "tab:orange"])
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharex=True, sharey=True)
for axis, name in zip(axes, ["OPF, labelled only", "OPF, few labels"], strict=True):
    axis.scatter(*X.T, c=colours[answers[name]], s=12)
    axis.scatter(*X[labelled].T, facecolors="none", edgecolors="black", s=80)
    axis.set_title(name)
for sample in np.flatnonzero(opf.predecessors_ >= 0):
    ends = X[[sample, opf.predecessors_[sample]]]
    axes[1].plot(*ends.T, color=colours[opf.transduction_[sample]], linewidth=1)
plt.show()

# %%
# Labelled and unlabelled samples alike can conquer new samples, each at the cost of its path.
print(opf.predict([[0.0, 1.0], [1.0, -0.5]]))
