"""What a refusal must say, and values that call for one."""

import numpy as np
import pytest


def refused(call, *said, kind=ValueError):
    """Check that `call` raises `kind`, and that the message says all of `said`."""
    with pytest.raises(kind) as refusal:
        call()
    missing = [words for words in said if words not in str(refusal.value)]
    assert not missing, str(refusal.value)


def changed(array, where, value):
    """Copy an array with one value changed."""
    copy = np.array(array)
    copy[where] = value
    return copy
