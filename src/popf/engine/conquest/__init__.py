"""Who conquers a new sample.

``euclidean`` indexes the training points and answers, by ``by_space_tree`` or ``by_tiles``; ``by_scan`` serves
any other metric. Trees and costs are made elsewhere.
"""
