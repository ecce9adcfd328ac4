"""Models on tables with named columns: what the command line does, as functions."""

from popf.table_models.explaining import explain_row
from popf.table_models.fitting import FitOptions, fit_table
from popf.table_models.model import TableModel, open_model

__all__ = ["FitOptions", "TableModel", "explain_row", "fit_table", "open_model"]
