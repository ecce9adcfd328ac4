"""
A distance of your own
======================

An optimum-path forest needs only distances, not features. Here the samples are words of two languages, and the
distance is the number of letters to insert, delete or replace to turn one word into the other.
"""

import matplotlib.pyplot as plt
import numpy as np

from popf import OPFClassifier

WORDS = {
    "German": ["und", "nicht", "ich", "sich", "mit", "wenn", "kann", "schon", "schnell", "durch"],
    "Italian": ["non", "che", "con", "sono", "questo", "quando", "anche", "tutto", "molto", "dopo"],
}


def edit_distance(first: str, second: str) -> int:
    """Count the letters to insert, delete or replace to turn one word into the other."""
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, start=1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(second, start=1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (a != b))
    return row[-1]


def distances(rows: list[str], columns: list[str]) -> np.ndarray:
    """Return the matrix of edit distances between two lists of words."""
    return np.array([[edit_distance(row, column) for column in columns] for row in rows], float)


words = [word for language in WORDS.values() for word in language]
languages = [language for language, known in WORDS.items() for _ in known]
opf = OPFClassifier(metric="precomputed").fit(distances(words, words), languages)

# %%
# New words need their distances to all training words. The path to each leads through similarly spelt words.
new = ["wann", "schnelle", "dich", "quanto", "questa", "tutta"]
for word, path in zip(new, opf.explain(distances(new, words)), strict=True):
    steps = " -> ".join([words[node] for node in path.nodes] + [word])
    print(f"{word:10} {path.label:8} cost {path.cost:.0f}   {steps}")

# %%
# Words have no coordinates, so the figure uses multidimensional scaling to two dimensions, and moves
# overlapping words apart. Framed words are prototypes.
squares = distances(words, words) ** 2
centred = squares - squares.mean(axis=0) - squares.mean(axis=1)[:, None] + squares.mean()
values, vectors = np.linalg.eigh(-centred / 2)  # classical multidimensional scaling
places = vectors[:, -2:] * np.sqrt(values[-2:])
for _ in range(50):
    across, up = (places[:, None] - places[None]).transpose(2, 0, 1)
    close = (abs(across) < 0.7) & (abs(up) < 0.35)
    places[:, 1] += 0.05 * (np.sign(up) * close).sum(axis=1)
colours = {"German": "#0072B2", "Italian": "#D55E00"}
figure, ax = plt.subplots(figsize=(8, 5), layout="constrained")
for node, before in enumerate(opf.predecessors_):
    if before >= 0:
        ax.plot(*places[[before, node]].T, color="0.7", zorder=1)
for node, (word, language) in enumerate(zip(words, languages, strict=True)):
    frame = colours[language] if node in opf.prototypes_ else "none"
    ax.annotate(
        word,
        places[node],
        ha="center",
        va="center",
        color=colours[language],
        bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": frame},
    )
ax.plot(*places.T, alpha=0)  # sets the axis limits
ax.margins(0.12)
ax.set_axis_off()
plt.show()
