"""Optimum-path forests on arrays: arrays in, arrays out.

Data flows in one direction, through the stages of the paper (Section 2). ``training`` runs the first three:

``mst/``         the minimum spanning tree of the complete graph
``prototypes``   the samples on the borders between the classes
``competition``  the prototypes conquer the training samples: path costs, predecessors and roots
``conquest``     the training sample that conquers each new sample
``scanned_nodes``  the same for metrics that are not Euclidean
``soft_scores``  soft minima over all paths to a sample, from which probabilities are computed
``large_sums``   the same for large forests, faster and less exact
``moments``      sums over distant nodes in one step

They are built on these:

``points``       copies, scales and de-duplicates the samples, and groups them in blocks
``space_tree``   the k-d tree in which points of few features are searched
``tiles``        matrix products as lower bounds on distances, for many features
``distances``    compiled metrics, a block of weights at a time
``union_find``   which samples are connected by the edges so far
``structures``   data passed between the stages, and the interface of a GPU backend
``gpu/``         the same computations on a GPU; the rest of the engine does not import it
``runtime/``     compilation, vector instructions, threads

The engine knows neither scikit-learn nor estimators, and imports nothing from the layers above.
"""
