"""A file that is written and read."""

import pytest

from popf.datasets import read


@pytest.fixture
def table(tmp_path):
    """Write a file and read it."""

    def read_again(content, name="t.csv", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read(path, **options)

    return read_again
