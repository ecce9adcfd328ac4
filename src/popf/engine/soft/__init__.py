"""Soft competition: all paths to a sample count, not only the cheapest.

``sums`` says what is summed and holds the sums; ``by_space_tree``, ``by_tiles`` and ``by_blocks`` lay out the
training nodes and score new samples, by ``simd``'s vector instructions. Bandwidths and probabilities are made
elsewhere.
"""
