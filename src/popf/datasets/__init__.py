"""Datasets: the paper's by name, stand-ins for those that are not public, and files of your own.

``registry``    which datasets there are (``records.json``), and how to tell a true copy (``facts.json``)
``loading``     `load` and `list`: the user's folder, the package itself, the cache, the network
``stand_ins``   generators
"""

from popf.datasets.loading import list_datasets, load
from popf.datasets.registry import Catalogue, Record
from popf.datasets.stand_ins import make_energy_theft, make_energy_theft_months, make_synthetic
from popf.tables import read, read_distances, write

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
    "read_distances",
    "write",
]
