"""Soft competition: all paths to a sample count, not only the cheapest.

``sums`` says what is summed, and sums over blocks of distances; ``by_space_tree`` and ``by_tiles`` lay out the
training nodes in Euclidean space; ``simd`` holds the vector instructions. Bandwidths and probabilities are made
elsewhere.
"""
