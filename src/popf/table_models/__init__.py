"""Models on tables with named columns: what the commands do, as functions.

``training_rows``  what to learn, and the rows to learn from, or all that is wrong with them
``fitting``        the rows kept aside, the threshold that costs least, the fit
``model``          a model that knows its columns, prepares and scores tables, and is opened from a file
``ranking``        whom to inspect first
``explaining``     paths through the forest in the user's own features and units
"""

from popf.table_models.explaining import explain_row
from popf.table_models.fitting import fit_table
from popf.table_models.model import TableModel, open_model
from popf.table_models.training_rows import FitOptions

__all__ = ["FitOptions", "TableModel", "explain_row", "fit_table", "open_model"]
