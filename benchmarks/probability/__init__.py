"""Quality of probabilities on test samples: popf compared with other calibrated classifiers.

``python -m benchmarks.probability --quick`` is a short run; ``--list`` lists datasets and contestants.

``datasets``      datasets in groups: used while popf was designed, or not
``generated``     the generated ones: Gaussians, rules, smooth functions
``contestants``   the classifiers
``measure``       one run: split, standardise, fit and score every contestant
``journal``       the file of the runs
``tables``        means, ratios, ranks, paired tests, regret, times, calibration curves

All contestants use the same splits, so differences are paired.
"""
