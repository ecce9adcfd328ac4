"""How good the probabilities are: popf beside calibrated rivals, paired, on held-out samples.

``python -m benchmarks.probability --quick`` tries it in less than a minute; without the option it runs 20
seeds on every dataset.

How a run flows::

    datasets (X, y of a seed)  →  measure (split, standardise, fit every contestant, score it)
        →  journal (the JSON file)  →  summary (means, ranks, tests, criteria)  →  tables

A quarter of a dataset is for training and the rest for testing, stratified. The features are standardised by
the training quarter, and all contestants see the same split: differences are paired.
"""
