"""``import popf`` costs next to nothing: what is heavy is imported when a forest is grown."""

import json
import subprocess
import sys

import pytest

import popf
from popf.__main__ import main

HEAVY = {"llvmlite", "matplotlib", "networkx", "numba", "pandas", "polars", "pyarrow", "torch"}
# scikit-learn looks for pandas by itself, from some version on.
IMPORT_SKLEARN = """
import json, sys, joblib, sklearn.base, sklearn.utils.multiclass, sklearn.utils.validation
before, added = set(sys.modules), []
"""
CLASSIFIER = "popf.OPFClassifier()"
COMMAND_LINE = "from popf.__main__ import main; main([])"
DISPLAY = "import popf.display.curves as drawn; drawn.prepare_reliability([0, 1], [0.2, 0.9])"


def added_by(*steps):
    """Modules that are imported beyond those of scikit-learn after each of some lines of code."""
    added = "\nadded.append(sorted(set(sys.modules) - before))\n"
    code = IMPORT_SKLEARN + added.join([*steps, "print(json.dumps(added))"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return list(map(set, json.loads(done.stdout.splitlines()[-1])))


@pytest.mark.parametrize(
    "steps",
    [
        {"import popf.metrics": {"numba", "popf.engine"}},
        {
            CLASSIFIER: HEAVY | {"popf.io", "popf.engine.training"},
            "import popf.probability.linear_maps": HEAVY | {"scipy.optimize"},
            COMMAND_LINE: HEAVY | {"popf.io", "popf.tables", "rich"},
            DISPLAY: {"matplotlib"},
        },
    ],
    ids=["metrics", "all else"],
)
def test_what_is_heavy_is_not_imported_before_it_is_needed(steps):
    first, *after = added_by("import popf", *steps)
    assert {name.partition(".")[0] for name in first} == {"popf"}
    for (code, heavy), added in zip(steps.items(), after, strict=True):
        assert not heavy & added, code


def test_what_popf_offers(capsys):
    offered = {}
    exec("from popf import *", offered)
    assert offered["OPFClassifier"] is popf.OPFClassifier
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"popf {offered['__version__']}\n"
    with pytest.raises(AttributeError, match="no attribute 'dance'"):
        popf.dance  # noqa: B018


def test_folders_of_the_package_are_there_without_another_import():
    code = """
import popf
folders = "datasets display experiment forest io metrics mlflow monitoring paper probability report"
for name in (*folders.split(), "table_models", "tables"):
    assert name in dir(popf) and getattr(popf, name).__all__, name
print(popf.display.ForestDisplay.__name__, sorted(set(dir(popf)) & {"Any", "TYPE_CHECKING"}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ForestDisplay []\n"
