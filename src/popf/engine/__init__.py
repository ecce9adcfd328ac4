"""Optimum-path forests on arrays: arrays in, arrays out.

The stages of the paper, each in a module of its own, in the order in which data flows through them:

``points``          copies, scales and de-duplicates the samples
``kdtree``          the space tree
``neighbours``      nearest neighbours and nearest outsiders in the space tree
``products``        the same by blocks of matrix products, for high dimension
``boruvka``         certified merging of components into the minimum spanning tree
``prim``            the spanning tree for any metric, one row of distances at a time
``competition``     costs, predecessors and roots, by two sweeps over the tree
``conquest``        who conquers a new sample: in the space tree, by products, or by a scan
``distances``       metrics beyond the Euclidean one

Nothing here knows scikit-learn or an estimator; nothing here imports from the layers above.
"""
