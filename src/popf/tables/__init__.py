"""Data files: CSV and Parquet tables with named columns, and numeric formats such as svmlight and LibOPF.

``table``          a file with named columns, read in pieces
``csv_files``      CSV files
``parquet_files``  Parquet files
``columns``        what a column contains (numbers, text, labels), and how it is read
``formats``        the format of a file; `open_table`; `read` and `write` features and labels
``samples``        features and labels as arrays, from tables and from svmlight, LibOPF and opfython files
"""

from popf.tables.formats import open_table, read, read_distances, write
from popf.tables.table import ColumnTypes, Dialect, Table

__all__ = ["ColumnTypes", "Dialect", "Table", "open_table", "read", "read_distances", "write"]
