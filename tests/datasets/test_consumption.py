"""Inspections and daily readings, from copies as users have them."""

import io
import sys
import tarfile
import zipfile

import numpy as np
import pytest

from inspections import generated_inspections, real_inspections
from popf.datasets import load_inspections, load_sgcc

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
MEMBER = "energizados/templates/data/raw/sample_dataset.parquet"


@pytest.fixture(scope="module")
def content():
    file = io.BytesIO()
    generated_inspections().to_parquet(file)
    return file.getvalue()


@pytest.fixture
def wheel(tmp_path, content):
    path = tmp_path / "energizados-0.4.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("energizados/__init__.py", "raise RuntimeError('must not be run')")
        archive.writestr(MEMBER, content)
    return path


def expected():
    frame = generated_inspections()
    frame.columns = load_names()
    return frame.set_index("inspection")


def load_names():
    return [
        "inspection",
        *(f"consumption_{k}" for k in range(12, 0, -1)),
        *("zone", "activity", "tariff", "voltage", "material", "month", "theft"),
    ]


def assert_loaded(frame):
    pandas.testing.assert_frame_equal(
        frame, expected(), check_dtype=False, check_column_type=False, check_index_type=False
    )
    assert frame["month"].dtype.kind == "M"


def test_a_wheel_an_archive_a_file_and_a_folder_are_read(tmp_path, wheel, content, monkeypatch):
    assert_loaded(load_inspections(wheel))
    assert_loaded(load_inspections(str(tmp_path)))  # the folder of the download
    archive = tmp_path / "energizados-0.4.0.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        entry = tarfile.TarInfo(f"energizados-0.4.0/src/{MEMBER}")
        entry.size = len(content)
        packed.addfile(entry, io.BytesIO(content))
    assert_loaded(load_inspections(archive))
    (tmp_path / "sample_dataset.parquet").write_bytes(content)
    assert_loaded(load_inspections(tmp_path / "sample_dataset.parquet"))
    monkeypatch.setenv("POPF_DATA", str(tmp_path))
    assert_loaded(load_inspections())


def test_the_installed_package_is_found_and_not_imported(tmp_path, wheel, monkeypatch):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    monkeypatch.delenv("POPF_DATA", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    assert_loaded(load_inspections())
    assert "energizados" not in sys.modules


def test_what_is_not_there_says_how_to_get_it(tmp_path, monkeypatch):
    (tmp_path / "energizados").mkdir()  # an installed package that does not have the file
    (tmp_path / "energizados" / "__init__.py").touch()
    monkeypatch.delenv("POPF_DATA", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(FileNotFoundError, match="pip download --no-deps energizados"):
        load_inspections()
    with pytest.raises(FileNotFoundError, match=r"the folder .* `pip download --no-deps"):
        load_inspections(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_inspections(tmp_path / "sample.parquet")


def test_other_files_are_refused(tmp_path, wheel):
    wheel.write_bytes(wheel.read_bytes()[:-500])
    with pytest.raises(ValueError, match="cannot be read as a Parquet file"):
        load_inspections(wheel)
    other = tmp_path / "other.whl"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("other/__init__.py", "")
    with pytest.raises(ValueError, match="not the package energizados"):
        load_inspections(other)
    table = tmp_path / "other.parquet"
    generated_inspections(50).drop(columns=["zona", "target"]).to_parquet(table)
    with pytest.raises(ValueError, match="no column zona, target"):
        load_inspections(table)


def test_the_real_inspections_are_as_described():
    frame = real_inspections()
    assert [frame.index.name, *frame.columns] == load_names()
    assert frame.index.is_unique
    assert len(frame) == 42_500
    assert frame["theft"].sum() == 2_500
    later = frame[frame["month"] >= "2018"]
    assert len(later) == 9_995
    assert later["theft"].mean() == pytest.approx(0.0487, abs=5e-5)
    gaps = frame["zone"].isna()
    assert frame["theft"][gaps].mean() == pytest.approx(0.188, abs=5e-4)
    assert frame["activity"].nunique() == 249


# Daily readings


def sgcc(n_days=40, n=30):
    """A table laid out as SGCC's: days as text in alphabetical order, with gaps."""
    rng = np.random.default_rng(0)
    days = pandas.date_range("2014-01-01", periods=n_days)
    readings = np.round(rng.gamma(2.0, 3.0, (n, n_days)), 2)
    readings[rng.random((n, n_days)) < 0.2] = np.nan
    frame = pandas.DataFrame(readings, columns=[f"{d.year}/{d.month}/{d.day}" for d in days])
    frame = frame[sorted(frame)]
    frame.insert(0, "FLAG", (rng.random(n) < 0.2).astype(int))
    frame.insert(0, "CONS_NO", [f"{k:032X}" for k in rng.permutation(n)])
    return frame, readings


@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz", "data.zip"])
def test_daily_readings_are_put_in_order_of_time(tmp_path, name):
    table, readings = sgcc()
    assert table.columns[3] == "2014/1/10"  # before 2014/1/2
    table.to_csv(tmp_path / name, index=False)
    frame = load_sgcc(tmp_path / name)
    assert frame.columns[[0, 1, 39, 40]].tolist() == [
        *("2014-01-01", "2014-01-02", "2014-02-09", "theft")
    ]
    np.testing.assert_array_equal(frame.iloc[:, :-1], readings)
    assert frame.index.tolist() == table["CONS_NO"].tolist()
    assert frame["theft"].tolist() == table["FLAG"].tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop(columns="FLAG"), "no column 'FLAG'"),
        (lambda table: table.assign(FLAG=2), "holds 2, but must be 0 or 1"),
        (lambda table: table.assign(CONS_NO="A"), "holds A twice"),
        (lambda table: table.assign(zone=1), "column 'zone' for a day"),
        (lambda table: table.rename(columns={"2014/1/2": "2014/1/1"}), "for a day"),
        (lambda table: table.rename(columns={"2014/1/2": "2014/01/01"}), "two or no columns"),
        (lambda table: table[["CONS_NO", "FLAG"]], "two or no columns"),
        (lambda table: table.assign(**{"2014/1/2": "many"}), "of 2014/1/2 are not all numbers"),
    ],
)
def test_tables_that_are_not_daily_readings_are_refused(tmp_path, change, message):
    change(sgcc()[0]).to_csv(tmp_path / "data.csv", index=False)
    with pytest.raises(ValueError, match=message):
        load_sgcc(tmp_path / "data.csv")


def test_damaged_and_missing_files_are_reported(tmp_path):
    (tmp_path / "data.zip").write_bytes(b"no archive")
    with pytest.raises(ValueError, match="cannot be read as a CSV file"):
        load_sgcc(tmp_path / "data.zip")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_sgcc(tmp_path / "data.csv")
