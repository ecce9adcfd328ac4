"""The minimum spanning tree and its prototypes.

``boruvka`` grows the tree from neighbour lists, and searches for shortest arcs that are not in the lists.
``neighbours`` computes lists and searches with the space tree, ``tiles`` with matrix products as lower bounds.
``prim`` handles any metric, one row of distances at a time.
"""
