"""``import popf`` costs next to nothing: what is heavy is imported when a forest is grown."""

import subprocess
import sys

import pytest

import popf

HEAVY = {"llvmlite", "matplotlib", "networkx", "numba", "pandas", "polars", "pyarrow", "torch"}
# scikit-learn looks for pandas by itself, from some version on.
IMPORT_SKLEARN = (
    "import sys, joblib, sklearn.base, sklearn.utils.multiclass, sklearn.utils.validation;"
    "before = set(sys.modules);"
)


def python(*arguments):
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def added_by(code):
    """Modules that some code imports beyond those of scikit-learn."""
    printed = python("-c", f"{IMPORT_SKLEARN} {code}; print(*(set(sys.modules) - before))")
    return set(printed.splitlines()[-1].split())


def test_importing_popf_adds_nothing_but_popf_to_scikit_learn():
    assert {name.partition(".")[0] for name in added_by("import popf")} == {"popf"}


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import popf; popf.OPFClassifier()", HEAVY | {"popf.io", "popf.engine.training"}),
        ("from popf.__main__ import main; main([])", HEAVY | {"popf.io", "popf.tables", "rich"}),
        ("import popf.metrics", {"numba", "popf.engine"}),
        ("import popf.probability.features", HEAVY | {"scipy.optimize"}),
        (
            "import popf.display.curves as drawn; drawn.prepare_reliability([0, 1], [0.2, 0.9])",
            {"matplotlib"},
        ),
    ],
    ids=["classifier", "command line", "metrics", "linear maps", "preparing a display"],
)
def test_what_is_heavy_is_not_imported_before_it_is_needed(code, heavy):
    assert not heavy & added_by(code)


def test_what_popf_offers():
    names = python("-c", "from popf import *; print(OPFClassifier.__name__, __version__)")
    assert names.startswith("OPFClassifier ")
    assert python("-m", "popf", "--version") == f"popf {names.split()[1]}\n"
    with pytest.raises(AttributeError, match="no attribute 'dance'"):
        popf.dance  # noqa: B018
