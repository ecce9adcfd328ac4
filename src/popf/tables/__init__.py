"""Models on tables with named columns: what the command line does, as functions.

``reading``     CSV and Parquet, whole or in pieces (``csv_file``, ``parquet_file``, ``plans``)
``cells``       which columns are numbers, what counts as missing, labels found again
``fitting``     a table to a model: its rows, columns and labels
``preparing``   the steps before the forest: imputing, scaling, encoding, by weights
``thresholds``  the threshold of the least cost, by cross-validation
``model``       a model with the names of its columns: opened, and asked for probabilities
``evaluation``  how good probabilities and labels are, with intervals
``explaining``  one row's path through the forest, in the user's own features and units

It needs pandas, which comes with the extra ``popf[cli]``.
"""

from popf.tables.evaluation import evaluate
from popf.tables.explaining import explain_row
from popf.tables.fitting import FitOptions, fit_table
from popf.tables.model import TableModel, open_model
from popf.tables.reading import Dialect, open_table

__all__ = [
    "Dialect",
    "FitOptions",
    "TableModel",
    "evaluate",
    "explain_row",
    "fit_table",
    "open_model",
    "open_table",
]
