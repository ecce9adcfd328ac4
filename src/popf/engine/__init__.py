"""Optimum-path forests on arrays: arrays in, arrays out.

The stages of the paper, in the order in which data flows through them:

``points``             copies, scales and de-duplicates the samples
``choice``             which algorithm suits them
``kdtree``             the space tree
``neighbours``         nearest neighbours and nearest outsiders in the space tree
``tiles``              matrix products as bounds on distances
``products``           nearest neighbours by tiles, for high dimension
``product_outsiders``  nearest outsiders by tiles
``boruvka``            certified merging of components into the minimum spanning tree
``prim``               the spanning tree for any metric, one row of distances at a time
``competition``        costs, predecessors and roots, by two sweeps over the tree
``training``           these stages in a row
``conquest``           who conquers a new sample, by Euclidean distance:
``conquest_tree``      in the space tree,
``conquest_products``  by tiles,
``conquest_scan``      by a scan, which serves any metric
``distances``          metrics beyond the Euclidean one

Probabilities ask all paths, not only the cheapest: ``soft`` sums them, ``soft_space`` and ``soft_lanes`` in the
space tree, ``soft_products`` by tiles, ``soft_plane`` with ``plane_tree``, ``plane_near``, ``plane_lanes`` and
``plane_series`` in two dimensions.

Samples in several places: ``blocks`` grows trees of one block or two, ``nearby`` leaves out what is too far
apart to be joined, ``merging`` makes one tree of candidates, ``tie_search`` finds prototypes that ties make.
``device`` is the same forest on a GPU.

Beneath them: ``structures`` (what the stages hand to each other), ``jit`` (compilation), ``lanes`` (vector
instructions), ``workbench`` (memory that is used again), ``threads`` and ``blas``. Nothing here knows
scikit-learn or an estimator; nothing here imports from the layers above.
"""
