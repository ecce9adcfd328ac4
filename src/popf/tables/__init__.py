"""Files with named columns, read and written: CSV and Parquet whole or in pieces, svmlight, LibOPF's form."""

from popf.tables.reading import Dialect, open_table

__all__ = ["Dialect", "open_table"]
