"""Tables of consumers, and the commands on them with what these print."""

import json

import numpy as np
import pytest

from popf.__main__ import main

pd = pytest.importorskip("pandas", reason="tables need popf[cli]")
pytest.importorskip("typer", reason="the command line needs popf[cli]")


def consumers(n, seed=0, first=0):
    """Make consumers with two numbers, a category, and a label that depends on all three."""
    rng = np.random.default_rng(seed)
    stolen = rng.random(n) < 0.3
    region = np.where(rng.random(n) < 0.5 + 0.3 * stolen, "north", "south")
    return pd.DataFrame(
        {
            "consumer": [f"{first + i:04d}" for i in range(n)],
            "demand": (1000.0 * (rng.normal(size=n) + 1.5 * stolen)).round(3),
            "load": (rng.normal(size=n) - 1.0 * stolen).round(5),
            "region": region,
            "stolen": np.where(stolen, "yes", "no"),
        }
    )


def consumer_months(n=40, seed=0):
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
        "fit": fitting(data, out / "m.popf"),
        "predict": ["predict", model, data, "-o", out / "o.csv"],
        "rank": ["rank", model, data, "-o", out / "v.csv"],
        "evaluate": ["evaluate", model, data],
        "explain": ["explain", model, data, "--row", "1"],
        "monitor": ["monitor", model, data, "--id", "consumer", "--time", "month", "-o", out / "r.csv"],
        "drift": ["drift", model, data, "--limit", "1000"],
        "report": ["report", model, data, "-o", out / "p.html"],
        "convert": ["convert", data, out / "c.parquet"],
        "convert to numbers": ["convert", data, out / "c.dat", "--encode", "ordinal"],
    }  # fmt: skip


#: The quickest fit, for where the method does not matter.
QUICK = ("--method", "forest", "--linear-map", "none")


def fitting(data, out, *words):
    """The words of a command that fits a table of consumers."""
    words = ["--id", "consumer", "--n-jobs", 1, *words]
    return ["fit", data, "--target", "stolen", *words, "-o", out]


def run(*words):
    """Run a command that must succeed."""
    assert main(list(map(str, words))) == 0


def fit(data, out, *words):
    run(*fitting(data, out, *words))


def printed(captured, *words):
    """Run a command that must succeed, and give what it printed, on both streams."""
    captured.readouterr()
    run(*words)
    return captured.readouterr()


def facts(captured, *words):
    """Run a command with --json, and give what it printed: JSON, and nothing else."""
    return json.loads(printed(captured, *words, "--json").out)


def scores(place, out, *words, model="model.popf", data="new.csv"):
    run("predict", place / model, place / data, "-o", out, *words)
    return pd.read_csv(out, dtype={"consumer": str})


def refused(captured, *words, status=2):
    """Run a command that must fail, with one line on the error stream besides notes, and give this line."""
    captured.readouterr()
    assert main(list(map(str, words))) == status
    said = captured.readouterr()
    assert said.out == ""
    lines = [line for line in said.err.splitlines(True) if not line.startswith("popf: note: ")]
    assert len(lines) == 1, said.err
    assert lines[0].startswith("popf: ")
    return lines[0]
