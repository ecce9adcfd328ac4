"""Sums over all paths to a sample: in the space tree or by tiles of products."""
