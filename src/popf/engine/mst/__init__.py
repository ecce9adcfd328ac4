"""The minimum spanning tree, and the arcs that tie with it.

``boruvka``              grows the tree from neighbour lists, and searches for arcs that are not in the lists
``neighbours``           lists and searches by the space tree, and by a scan of distances
``neighbours_by_tiles``  lists and searches by matrix products
``prim``                 grows the tree for any metric, one row of distances at a time
"""
