"""Files of data: CSV and Parquet with named columns, whole or in pieces; svmlight and LibOPF's format.

``formats``       which format a file has; `open_table`, `read`, `write`
``table``         a file with named columns, read in pieces: what CSV and Parquet have in common
``csv_file``, ``parquet_file``   the two kinds of table
``cells``         what a cell holds: a number, text, nothing, a label
``samples``       features and labels as arrays, made from a table
``svmlight``, ``libopf``         formats that hold numbers only
"""

from popf.tables.formats import open_table, read, write
from popf.tables.table import ColumnTypes, Dialect, Table

__all__ = ["ColumnTypes", "Dialect", "Table", "open_table", "read", "write"]
