"""What is published: the sdist is whole, and the wheel built from it works in an environment of its own."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import popf

pytest.importorskip("hatchling", reason="builds the package: pip install hatchling")
ROOT = Path(__file__).parents[1]
USE = """
import popf
from popf.datasets import load
data = load("liver", download=False)
print(popf.__file__, popf.__version__)
print(data.data.shape, popf.OPFClassifier())
"""


def build(source, out, target):
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", out]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (made,) = out.glob("*.tar.gz" if target == "sdist" else "*.whl")
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from the unpacked sdist."""
    folder = tmp_path_factory.mktemp("package")
    with tarfile.open(build(ROOT, folder, "sdist")) as sdist:
        # Python 3.11.4 is the first to know filters.
        sdist.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return build(folder / f"popf-{popf.__version__}", folder, "wheel")


def test_the_wheel_holds_the_package_its_data_and_their_licences(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    source = [path for path in (ROOT / "src" / "popf").rglob("*") if path.is_file()]
    wanted = {
        path.relative_to(ROOT / "src").as_posix() for path in source if "__pycache__" not in path.parts
    }  # fmt: skip
    assert {name for name in wanted if not name.endswith((".nbi", ".nbc"))} <= names
    assert {name.partition("/")[0] for name in names} == {
        "popf", f"popf-{popf.__version__}.dist-info",
    }  # fmt: skip
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "popf/py.typed" in names


def test_the_wheel_works_in_a_clean_environment(wheel, tmp_path):
    folder = tmp_path / "clean"
    venv.create(folder, symlinks=os.name != "nt")
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--no-index", wheel], check=True)
    # Dependencies from this environment, without its own popf: a .pth file in a folder that another .pth
    # file adds is not read.
    (site,) = folder.rglob("site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")

    def run(*arguments):
        command = [python, "-I", *arguments]
        shown = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        return shown.stdout

    where, data = run("-c", USE).splitlines()
    assert where == f"{site / 'popf' / '__init__.py'} {popf.__version__}"
    assert data == "(345, 6) OPFClassifier()"
    assert "reproduce" in run("-m", "popf", "--help")
    assert f"popf {popf.__version__}" in run("-m", "popf", "--version")
