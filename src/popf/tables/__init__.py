"""Files of data: CSV and Parquet with named columns, whole or in pieces; other formats that hold numbers.

``formats``       which format a file has; `open_table`, `read`, `write`
``table``         a file with named columns, read in pieces: what CSV and Parquet have in common
``csv_file``, ``parquet_file``   the two kinds of table
``cells``         what a cell holds: a number, text, nothing, a label
``samples``       features and labels as arrays, made from a table
``svmlight``, ``libopf``         formats that hold numbers only: svmlight's, LibOPF's, opfython's
"""

from popf.tables.formats import open_table, read, read_distances, write
from popf.tables.table import ColumnTypes, Dialect, Table

__all__ = ["ColumnTypes", "Dialect", "Table", "open_table", "read", "read_distances", "write"]
