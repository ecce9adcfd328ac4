"""The paper's experiment, for any data and any classifiers.

``run``        runs every method on every split, and saves each finished run in a journal
``reproduce``  does the same, and writes all tables, figures and the report to a folder

Data flows one way: ``protocol`` (datasets, splits, methods, one run) → ``study`` (all runs, their journal) →
``results`` (means, and which are best) → ``tables`` (beside the paper's) → ``report`` (files, figures, page).
"""

from popf.experiment.protocol import methods
from popf.experiment.report import reproduce
from popf.experiment.results import Results
from popf.experiment.study import JournalError, run
from popf.experiment.tables import Table, table

__all__ = [
    "JournalError",
    "Results",
    "Table",
    "methods",
    "reproduce",
    "run",
    "table",
]
