"""Docstrings that need a package which the tests can do without are run where it is installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("mlflow") else ["src/popf/mlflow.py"]
