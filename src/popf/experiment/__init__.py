"""The paper's experiment as a protocol for any data and any classifiers.

``run``        every method on every split, each finished run kept in a journal
``reproduce``  the same, and all tables, figures and the report in a folder

One file a stage: ``data`` and ``methods`` (what is compared), ``protocol`` (splits), ``measure`` (one run),
``journal`` and ``locks`` (nothing is lost), ``run`` (all runs), ``results``, ``statistics`` (what is in bold
type), ``tables`` and ``render``, ``figures``, ``doubts`` (printed values that cannot be right), ``html`` and
``report``. ``paper`` holds what the paper prints. The command line is in ``popf.cli``.
"""

from popf.experiment.journal import Journal, JournalError
from popf.experiment.methods import methods
from popf.experiment.protocol import Protocol
from popf.experiment.report import reproduce
from popf.experiment.results import Results
from popf.experiment.run import run

__all__ = ["Journal", "JournalError", "Protocol", "Results", "methods", "reproduce", "run"]
