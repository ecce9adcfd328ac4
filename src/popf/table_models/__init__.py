"""Models on tables with named columns: the functions behind the commands.

``training_rows``  fit options, and the training rows of a table, or a list of all problems with them
``fitting``        the test split, the threshold of lowest cost, the fit
``model``          a model with named columns, which prepares and scores tables, and is opened from a file
``cautions``       columns that deserve a second look: leaks of the target, constants, duplicates
``ranking``        which rows to inspect first
``explaining``     log odds and paths through the forest, in the units of the data
"""

from popf.table_models.explaining import explain_row
from popf.table_models.fitting import fit_table
from popf.table_models.model import TableModel, open_model
from popf.table_models.training_rows import FitOptions

__all__ = ["FitOptions", "TableModel", "explain_row", "fit_table", "open_model"]
