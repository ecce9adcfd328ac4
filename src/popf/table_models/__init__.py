"""Models on tables with named columns: what the commands do, as functions.

``training_rows``  what a fit is told, how columns are read, and the rows that are used, or what is wrong
``fitting``        a model from a table, and the threshold that costs least
``model``          a model that knows its columns, prepares and scores tables, and is opened from a file
``ranking``        whom to inspect first
``explaining``     paths through the forest in the user's own features and units
"""

from popf.table_models.explaining import explain_row
from popf.table_models.fitting import fit_table
from popf.table_models.model import TableModel, open_model
from popf.table_models.training_rows import FitOptions

__all__ = ["FitOptions", "TableModel", "explain_row", "fit_table", "open_model"]
