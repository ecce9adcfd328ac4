"""Forests on a Dask cluster, and on data bigger than memory: the same forest, to the bit.

``forest``       `DaskOPFClassifier`, and what it shares with
``probability``  `DaskPOPFClassifier`
``cluster``      the client, the check of its workers, tasks with readable names
``sources``      Dask collections, memory maps and Parquet folders as lazy chunks of rows
``blocks``       blocks of samples, in memory or on disk: rows that lie together
``growing``      the tasks that grow the tree of all samples from pairs of blocks, and the forest on it
``spanning``     the tree of one block or two and, from their arcs, that of all; what ties with it
``prediction``   parts of the model, and lazy predictions by them

Needs ``pip install "popf[dask]"``; ``import popf`` does not import any of this.
"""

try:
    import dask
    import distributed
except ImportError as error:
    from popf.formatting import install

    raise ImportError(
        f"popf.dask needs {error.name}, which is not installed: {install('dask')}"
    ) from error

from popf.dask.forest import DaskOPFClassifier
from popf.dask.probability import DaskPOPFClassifier

del dask, distributed

__all__ = ["DaskOPFClassifier", "DaskPOPFClassifier"]
