"""Files of data for tests."""

from popf.datasets import read


def table(tmp_path, text, name="t.csv", **options):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read(path, **options)
