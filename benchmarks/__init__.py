"""Benchmarks: popf beside its peers, in one run, ratios first.

``python -m benchmarks --list`` shows the tasks, ``python -m benchmarks --quick`` tries them at small sizes,
``python -m benchmarks.probability`` measures the quality of probabilities, and ``python -m benchmarks.page``
writes the tables of the documentation from the JSON files in ``results``.

``suites``        what is measured: tasks of some contestants on some data
``contestants``   popf and its peers behind one small interface; ``cluster`` those that need Dask
``data``          seeded data
``worker``        measures one task in a process of its own
``results``       the JSON file of a run
``tables``        ratios, speed-ups and growth exponents from its records
``page``          fills the tables into the documentation

Nothing here is a test: correctness is checked in ``tests``.
"""
