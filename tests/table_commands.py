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


def fit(data, out, *words):
    command = ["fit", data, "--target", "stolen", "--id", "consumer", "--n-jobs", "1", "-o", out]
    return main([*map(str, command), *map(str, words)])


def facts(capsys, *words):
    """Run a command with --json, and give what it printed: JSON, and nothing else."""
    capsys.readouterr()
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def scores(place, out, *words, model="model.popf", data="new.csv"):
    assert main([str(w) for w in ("predict", place / model, place / data, "-o", out, *words)]) == 0
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
