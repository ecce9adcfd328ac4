"""The forest on a GPU: products there only tell where to look, decisions are made in float64.

`cuda` holds the kernels and `host` the same in NumPy, so that all the rest runs, and is tested, where there
is no GPU. `points` lays the data out, `tree` finds neighbours for the spanning tree, `conquest` conquers
new samples, `soft` sums the soft competition. Labels, files and estimators do not live here.
"""
