"""Optimum-path forests on arrays: arrays in, arrays out.

Data goes one way: samples, spanning tree, prototypes, forest; then new samples are conquered, or all paths to
them are summed.

``points``      copies, scales and de-duplicates the samples; lays them out in space, as a tree or as blocks
``distances``   metrics beyond the Euclidean one
``trees/``      the minimum spanning tree and its prototypes
``training``    these stages in a row, the competition of prototypes, and the choice of an algorithm
``conquest``    who conquers a new sample
``soft``        sums over all paths to a sample, which probabilities are made of
``structures``  what the stages hand to each other, and what they ask of a GPU
``gpu/``        the same on a GPU; the rest of the engine does not import it
``runtime/``    compilation, vector instructions, threads

Nothing here knows scikit-learn or an estimator; nothing here imports from the layers above.
"""
