"""Which algorithm suits the data."""

from .structures import FloatArray


def choose_algorithm(X: FloatArray) -> str:
    """Choose between the space tree and matrix products for Euclidean distances."""
    return "kd_tree" if X.shape[1] <= 12 else "brute"
