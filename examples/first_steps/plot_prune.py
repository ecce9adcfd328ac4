"""
A smaller forest
================

A forest stores all its training samples, but few of them matter for predictions. ``popf.prune`` keeps the
samples that conquer a validation set, with their paths, as long as the accuracy on that set does not fall.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from popf import OPFClassifier, prune
from popf.display import ForestDisplay

X, y = make_moons(700, noise=0.18, random_state=3)
whole = OPFClassifier().fit(X[:300], y[:300])
small = prune(whole, X[300:400], y[300:400])

# %%
# The accuracy is measured on samples that neither the fit nor the pruning has seen.
for name, opf in {"whole": whole, "pruned": small}.items():
    n_samples, accuracy = len(opf.sample_indices_), opf.score(X[400:], y[400:])
    print(f"{name:7} {n_samples} samples, accuracy {accuracy:.3f}")

# %%
# The removed samples were deep inside a class, or on no path to a validation sample.
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), sharex=True, sharey=True, layout="constrained")
for axis, (name, opf) in zip(axes, {"whole": whole, "pruned": small}.items(), strict=True):
    ForestDisplay.from_estimator(opf, ax=axis)
    axis.set_title(name)
    legend = axis.get_legend()
    legend.remove()
names = [text.get_text() for text in legend.get_texts()]
figure.legend(legend.legend_handles, names, loc="outside lower center", ncols=4)
plt.show()
