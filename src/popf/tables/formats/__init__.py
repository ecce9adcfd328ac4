"""Data files: svmlight, CSV, Parquet and LibOPF's binary form, read and written.

`read` and `write` choose by the suffix of the file. What the formats share is in `table` (columns to numbers)
and `files` (bytes in and out); no dataset is named here.
"""

from popf.tables.formats.choice import FORMATS, read, write

__all__ = ["FORMATS", "read", "write"]
