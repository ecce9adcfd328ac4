"""Prototypes: the samples at which the optimum paths start, on the borders between the classes.

The paper (Section 2, after Papa et al. [1]_) takes both ends of every edge of the minimum spanning tree that
joins two classes. If arcs tie, there are several minimum spanning trees, and which one is grown depends on the
order of the rows. So here a prototype is an end of an arc (u, v) between two classes that lies in *some*
minimum spanning tree, ``d(u, v) <= minimax(u, v)``: no path between its ends has only shorter edges. Without
ties, this is the definition of the paper.

The tree alone shows the prototypes at its own edges. Arcs that tie with these are found in the rounds in which
`mst.boruvka` and `mst.prim` grow the tree, where each explains why it misses none.

References
----------
.. [1] J. P. Papa, A. X. Falcão, C. T. N. Suzuki, "Supervised pattern classification based on optimum-path
   forest", International Journal of Imaging Systems and Technology 19(2), 120-131, 2009.
"""

import numpy as np

from popf.engine.points import DistinctPoints
from popf.engine.structures import BoolArray, IntArray, SpanningTree


def find_prototypes(tree: SpanningTree, classes: IntArray, tied: BoolArray) -> BoolArray:
    """Mark the prototypes; `tied` marks the ends of arcs between classes that lie in another minimum tree."""
    crossing = np.flatnonzero(classes[tree.lower] != classes[tree.higher])
    # Samples of several classes at one point are at distance zero, so they are prototypes.
    prototypes = tied | (classes < 0)
    for ends in (tree.lower, tree.higher):
        prototypes[ends[crossing]] = True
    return prototypes


def point_classes(distinct: DistinctPoints, codes: IntArray) -> IntArray:
    """Return the class of each point; a point with several classes gets a unique negative number."""
    classes = codes[distinct.first]
    if len(distinct.first) < len(codes):
        mixed = distinct.point_of[codes != classes[distinct.point_of]]
        classes[mixed] = -1 - mixed
    return classes
