"""The minimum spanning tree, by space tree, by tiles of products or by rows, and the competition on it."""
