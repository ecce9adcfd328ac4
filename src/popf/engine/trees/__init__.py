"""The minimum spanning tree and its prototypes.

``boruvka`` grows the tree from lists of neighbours, and says what it asks of a search when these end.
``neighbours`` makes lists and searches in the space tree, ``tiles`` by products that bound distances. ``prim``
serves any metric, a row of distances at a time.
"""
