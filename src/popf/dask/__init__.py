"""Forests on a Dask cluster and on data larger than memory, identical to those of one machine.

Probabilities are chosen by `popf.probability` on a sample in memory; only their forest is distributed.

``forest``       `DaskOPFClassifier`, and the base class of both estimators
``probability``  `DaskPOPFClassifier`
``cluster``      the client, the check of its workers, tasks with readable names
``sources``      Dask collections, memory maps and Parquet folders as lazy chunks of rows
``blocks``       blocks of nearby samples, in memory or on disk
``growing``      the tasks that grow the spanning tree of all samples from pairs of blocks, and the forest on it
``spanning``     spanning trees of one or two blocks, how they make up the tree of all samples, and ties
``prediction``   parts of the model, and lazy predictions with them

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
