"""Dask's names without types: it says that it is typed, but is so in part only."""

from importlib import import_module
from typing import Any

dask: Any = import_module("dask")
da: Any = import_module("dask.array")
distributed: Any = import_module("distributed")
delayed: Any = dask.delayed
