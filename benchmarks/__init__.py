"""Benchmarks: popf beside its peers, in one run, ratios first.

``python -m benchmarks --list`` shows what there is, ``python -m benchmarks --quick`` tries it in
about a minute, and ``python -m benchmarks.page`` makes the page of the documentation.

How a run flows::

    suites (what to measure)  →  runner (starts workers)  →  worker (measures, one process)
        →  results (the JSON file)  →  summary (ratios, exponents, verdicts)  →  tables  →  page

The suites ``scaling``, ``dask`` and ``out-of-core`` (`benchmarks.scaling`, measured by `benchmarks.fits`) go
from the JSON file to ``python -m benchmarks.cost_model FILE …``, which makes the tables of the page on scaling.

Nothing here is a test: whether popf is right is decided in ``tests``.
"""
