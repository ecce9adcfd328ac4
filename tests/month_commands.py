"""Tables of consumers month by month, and every command that reads one."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas", reason="tables need popf[cli]")


def rows(n=40, seed=0):
    """Make four months of each consumer; in every other row there is theft."""
    rng = np.random.default_rng(seed)
    stolen = np.arange(n) % 2 == 1
    demand = (rng.normal(size=n) + 3.0 * stolen).round(4)
    return pd.DataFrame(
        {
            "consumer": [f"C{i // 4:03d}" for i in range(n)],
            "month": np.arange(n) % 4,
            "demand": demand,
            "load": rng.normal(size=n).round(4),
            "region": np.where(rng.random(n) < 0.5, "north", "south"),
            "stolen": np.where(stolen, "yes", "no"),
        }
    )


def commands(months, data, out):
    """Every command that reads a table, with this one."""
    model = months / "model.popf"
    return {
        "fit": ["fit", data, "--target", "stolen", "--id", "consumer", "-o", out / "m.popf"],
        "predict": ["predict", model, data, "-o", out / "o.csv"],
        "evaluate": ["evaluate", model, data],
        "explain": ["explain", model, data, "--row", "1"],
        "monitor": [
            *("monitor", model, data, "--id", "consumer", "--time", "month"),
            *("-o", out / "r.csv"),
        ],
        "report": ["report", model, data, "-o", out / "p.html"],
        "convert": ["convert", data, out / "c.parquet"],
        "convert to numbers": ["convert", data, out / "c.dat", "--encode", "ordinal"],
    }
