"""Files of data: CSV and Parquet with named columns, whole or in pieces; other formats that hold numbers.

``table``     a file with named columns, CSV or Parquet, read in pieces
``columns``   what the cells of a column hold, and how it is read
``formats``   which format a file has; `read` and `write` features and labels
``samples``   features and labels as arrays: from a table, svmlight's, LibOPF's and opfython's files
"""

from popf.tables.formats import read, read_distances, write
from popf.tables.table import ColumnTypes, Dialect, Table, open_table

__all__ = ["ColumnTypes", "Dialect", "Table", "open_table", "read", "read_distances", "write"]
