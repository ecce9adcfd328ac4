"""``import popf`` costs next to nothing: what is heavy is imported when a forest is grown."""

import subprocess
import sys

import pytest

import popf

HEAVY = [
    "numba",
    "llvmlite",
    "pandas",
    "polars",
    "pyarrow",
    "matplotlib",
    "networkx",
    "torch",
    "popf.io",
]
# scikit-learn looks for pandas by itself, from some version on.
IMPORT_SKLEARN = (
    "import sys, joblib, sklearn.base, sklearn.utils.multiclass, sklearn.utils.validation;"
    "before = set(sys.modules);"
)
SHOW_HEAVY = f"print([name for name in {HEAVY} if name in set(sys.modules) - before])"


def python(*arguments):
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_popf_imports_nothing_heavy():
    code = f"{IMPORT_SKLEARN} import popf; popf.OPFClassifier(); {SHOW_HEAVY}"
    assert python("-c", code) == "[]\n"


def test_importing_popf_adds_nothing_but_popf_to_scikit_learn():
    others = "{name.partition('.')[0] for name in set(sys.modules) - before} - {'popf'}"
    assert python("-c", f"{IMPORT_SKLEARN} import popf; print({others})") == "set()\n"


def test_the_engine_is_imported_when_a_forest_is_grown():
    code = (
        "import sys, popf; forest = popf.OPFClassifier();"
        "before = 'popf.engine.training' in sys.modules;"
        "forest.fit([[0.0], [1.0]], [0, 1]);"
        "print(before, 'popf.engine.training' in sys.modules)"
    )
    assert python("-c", code) == "False True\n"


def test_what_popf_offers():
    names = python("-c", "from popf import *; print(OPFClassifier.__name__, __version__)")
    assert names.startswith("OPFClassifier ")
    assert python("-m", "popf", "--version") == f"popf {names.split()[1]}\n"
    with pytest.raises(AttributeError, match="no attribute 'dance'"):
        popf.dance  # noqa: B018


def test_the_command_line_answers_without_the_engine():
    code = f"{IMPORT_SKLEARN} from popf.__main__ import main; main([]); {SHOW_HEAVY}"
    assert python("-c", code).endswith("\n[]\n")
