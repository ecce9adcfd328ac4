"""Files of data: CSV and Parquet with named columns, whole or in pieces; other formats that hold numbers.

``formats``        which format a file has; `open_table`, `read`, `write`
``table``          a file with named columns, read in pieces; CSV
``parquet_file``   the same for Parquet
``cells``          what a cell holds: a number, text, nothing, a label
``samples``        features and labels as arrays: from a table, svmlight's, LibOPF's and opfython's files
"""

from popf.tables.formats import open_table, read, read_distances, write
from popf.tables.table import ColumnTypes, Dialect, Table

__all__ = ["ColumnTypes", "Dialect", "Table", "open_table", "read", "read_distances", "write"]
