"""Datasets: the paper's by name, stand-ins for those that nobody can have, and files of your own.

`load` and `list` know the paper's fourteen sets and a few of scikit-learn's; `make_synthetic`,
`make_energy_theft` and `make_energy_theft_months` generate the stand-ins; `read` and `write` take svmlight,
CSV, Parquet and LibOPF files. Nothing here knows a classifier.
"""

from popf.datasets.catalogue import Catalogue, Record, list_datasets
from popf.datasets.energy import make_energy_theft, make_energy_theft_months
from popf.datasets.loading import load
from popf.datasets.synthetic import make_synthetic
from popf.tables.formats import read, write

list = list_datasets

__all__ = [
    "Catalogue",
    "Record",
    "list",
    "list_datasets",
    "load",
    "make_energy_theft",
    "make_energy_theft_months",
    "make_synthetic",
    "read",
    "write",
]
