"""Who conquers a new sample.

``euclidean`` indexes the training points and answers, in the space tree or ``by_tiles`` of products;
``by_scan`` serves any other metric.
"""
