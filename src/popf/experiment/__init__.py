"""The paper's experiment as a protocol for any data and any classifiers.

``run``        every method on every split, each finished run kept in a journal
``reproduce``  the same, and all tables, figures and the report in a folder

Data goes one way: ``protocol`` (datasets, splits, methods, one run) → ``study`` (all runs, their journal) →
``results`` (means, and what is bold) → ``tables`` (beside the paper's) → ``report`` (files, figures, the page).
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
