"""How good the probabilities are: popf beside calibrated rivals, paired, on held-out samples.

``python -m benchmarks.probability --quick`` tries it; ``--list`` shows datasets and contestants.

``datasets``      in groups: used while popf was designed, or not
``contestants``   who gives probabilities
``measure``       one run: split, standardise, fit and score every contestant
``journal``       the file of the runs
``tables``        means, ratios, ranks, paired tests, calibration curves

All contestants see the same splits, so differences are paired.
"""
