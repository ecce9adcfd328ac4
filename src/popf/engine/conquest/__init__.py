"""Who conquers a new sample.

``euclidean`` indexes the training points and answers, by one of ``by_space_tree``, ``by_tiles`` and
``by_scan``, whose indices all know how to ``conquer``. ``by_scan`` also serves any metric. Trees and costs are
made elsewhere.
"""
