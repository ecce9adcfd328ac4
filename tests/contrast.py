"""How well a colour can be told from another."""

import numpy as np


def contrast(one, other):
    """Return the ratio of contrast by the accessibility guidelines; colours are RGB from 0 to 1."""

    def luminance(colour):
        c = np.array(colour)
        linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)
