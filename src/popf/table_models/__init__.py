"""Models on tables with named columns: what the commands do, as functions.

``columns``        how every column of a table is read, and what is wrong with it
``training_rows``  what a fit is told, and the rows and columns it uses
``fitting``        a model from a table, the threshold that costs least, and what is to be said of it
``preparation``    from the columns of a table to the numbers that a forest sees, and back
``model``          a model that knows its columns, scores tables and is opened from a file
``ranking``        whom to inspect first
``explaining``     paths through the forest in the user's own features and units
"""

from popf.table_models.explaining import explain_row
from popf.table_models.fitting import fit_table
from popf.table_models.model import TableModel, open_model
from popf.table_models.training_rows import FitOptions

__all__ = ["FitOptions", "TableModel", "explain_row", "fit_table", "open_model"]
