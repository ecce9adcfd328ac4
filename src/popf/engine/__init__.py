"""Optimum-path forests on arrays: arrays in, arrays out.

Data flows in one direction: samples, spanning tree, prototypes, forest. The forest then conquers new samples,
or the costs of all paths to them are summed.

``points``      copies, scales and de-duplicates the samples; builds the space tree or blocks over them
``distances``   compiled metrics, a block of weights at a time
``trees/``      the minimum spanning tree and its prototypes
``training``    the training stages in order, the competition of prototypes, and the choice of an algorithm
``conquest``    the training sample that conquers each new sample
``soft``        soft minima over all paths to a sample, from which probabilities are computed
``structures``  data passed between the stages, and the interface of a GPU backend
``gpu/``        the same computations on a GPU; the rest of the engine does not import it
``runtime/``    compilation, vector instructions, threads

The engine knows neither scikit-learn nor estimators, and imports nothing from the layers above.
"""
