"""What a refusal must say."""

import pytest


def refused(call, *said, kind=ValueError):
    """Check that `call` raises `kind`, and that the message says all of `said`."""
    with pytest.raises(kind) as refusal:
        call()
    missing = [words for words in said if words not in str(refusal.value)]
    assert not missing, str(refusal.value)
