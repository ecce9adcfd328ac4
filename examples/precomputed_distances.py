"""Classify words by a distance of your own: the edit distance, as a precomputed matrix.

An optimum-path forest needs distances only, not features. Here the samples are words of two
languages, and nothing about them is known but how many letters turn one into another.
"""

import numpy as np

from popf import OPFClassifier

WORDS = {
    "German": ["und", "nicht", "ich", "sich", "mit", "wenn", "kann", "schon", "schnell", "durch"],
    "Italian": ["non", "che", "con", "sono", "questo", "quando", "anche", "tutto", "molto", "dopo"],
}


def edit_distance(first: str, second: str) -> int:
    """Count the letters to insert, delete or replace on the way from one word to the other."""
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

new = ["wann", "schnelle", "dich", "quanto", "questa", "tutta"]
for word, path in zip(new, opf.explain(distances(new, words)), strict=True):
    steps = " -> ".join([words[node] for node in path.nodes] + [word])
    print(f"{word:10} {path.label:8} cost {path.cost:.0f}   {steps}")
