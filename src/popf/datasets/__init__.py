"""Datasets: the paper's by name, generated stand-ins for those that are not public, and your own files.

``registry``     the known datasets (``records.json``), and facts to verify a copy (``facts.json``)
``loading``      `load` and `list`: from the user's folder, the package, the cache or the network
``stand_ins``    generators
``consumption``  consumers of energy, with theft, from copies that the user has obtained
"""

from popf.datasets.consumption import load_inspections, load_sgcc
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
    "load_inspections",
    "load_sgcc",
    "make_energy_theft",
    "make_energy_theft_months",
    "make_synthetic",
    "read",
    "read_distances",
    "write",
]
