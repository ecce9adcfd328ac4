"""Forests on a Dask cluster, and on data bigger than memory: the same forest, to the bit.

``forest``       `DaskOPFClassifier`
``probability``  `DaskPOPFClassifier`
``base``         what both share
``cluster``      the client, the check of its workers, tasks with readable names
``sources``      Dask collections, memory maps and Parquet folders as chunks of rows
``dealing``      which rows make a block: those that lie together
``growing``      the tree from pairs of blocks, and the forest on it
``model``        training nodes, some at a time, as competitors for new samples
``scoring``      left-out scores from all blocks, and what is fitted to them
``answers``      lazy predictions

Needs ``pip install "popf[dask]"``; ``import popf`` does not import any of this.
"""

try:
    import dask
    import distributed
except ImportError as error:
    raise ImportError(
        f'popf.dask needs {error.name}, which is not installed: pip install "popf[dask]"'
    ) from error

from popf.dask.forest import DaskOPFClassifier
from popf.dask.probability import DaskPOPFClassifier

del dask, distributed

__all__ = ["DaskOPFClassifier", "DaskPOPFClassifier"]
