"""What several tests of the engine need."""

import pytest


@pytest.fixture
def small_chunks(monkeypatch):
    """Give every thread something to do on small data, and `auto` something to extrapolate."""
    for name, value in {
        "runtime.threads.CHUNK_ROWS": 64,
        "mst.neighbours.CHUNK_BLOCKS": 2,
        "mst.neighbours_by_tiles.CALL_BLOCKS": 2,
        "conquest.CHUNK_BLOCKS": 2,
        "space_tree.SMALLEST_SUBTREE": 64,
        "distances.GRAIN": 2000,
        "training.SAMPLE_SIZES": (200, 800),
    }.items():
        monkeypatch.setattr(f"popf.engine.{name}", value)
