"""Benchmarks: popf and similar libraries, timed in the same run.

``python -m benchmarks --list`` lists the tasks, ``python -m benchmarks --quick`` runs them at small sizes,
``python -m benchmarks.probability`` measures the quality of probabilities, and ``python -m benchmarks.page``
writes the tables of the documentation from the JSON files in ``results``.

``suites``        the tasks: contestants, data and operations
``contestants``   popf and its peers behind a common interface; ``cluster`` has those that need Dask
``data``          seeded data
``worker``        measures one task in its own process
``results``       the JSON file of a run
``tables``        ratios, speed-ups and growth exponents from the records of a run
``page``          writes the tables into the documentation

Nothing here is a test: correctness is checked in ``tests``.
"""
