"""Public data on energy theft, which popf cannot include: read from a copy that the user has obtained."""

import io
import os
import tarfile
import zipfile
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from popf.datasets.loading import user_folder
from popf.files import check_file
from popf.formatting import listed
from popf.tables.table import need_pandas, need_pyarrow

PACKAGE = "energizados"
#: The file in the package, and its columns, with their names here.
INSPECTIONS = "sample_dataset.parquet"
NAMES = {
    "index": "inspection",
    **{f"{k}_anterior": f"consumption_{k}" for k in range(12, 0, -1)},
    "zona": "zone",
    "actividad": "activity",
    "tipo_tarifa": "tariff",
    "nivel_tension": "voltage",
    "material_instalacion": "material",
    "fecha_inspeccion": "month",
    "target": "theft",
}
HOW_TO_GET = (
    f"Download them with `pip download --no-deps {PACKAGE}` and pass the path of the file, or install the "
    f"package with `pip install --no-deps {PACKAGE}`."
)


def load_inspections(path: str | os.PathLike[str] | None = None) -> Any:
    """Load inspections for energy theft of 2016 to 2018, from a copy of the package energizados.

    The package, by the Inter-American Development Bank, includes 42,500 inspections, 2,500 of which found
    theft. Its licence asks derivatives to carry the same terms, so popf does not include them. Get them with
    ``pip download --no-deps energizados``; nothing of the package is imported or run.

    Parameters
    ----------
    path : str or path-like, default=None
        The downloaded wheel or source archive, the file ``sample_dataset.parquet``, or a folder with one of
        these. None for the folder ``POPF_DATA``, if set, and then the installed package.

    Returns
    -------
    DataFrame
        One row per inspection, with its number as index: ``consumption_12`` to ``consumption_1``, the monthly
        consumptions before the inspection, latest last; the coded categories ``zone``, ``activity``,
        ``tariff``, ``voltage`` and ``material`` (of the installation); ``month`` of the inspection; and
        ``theft``, 1 where it was found, else 0. Gaps are NaN.

    Examples
    --------
    >>> from popf.datasets import load_inspections
    >>> frame = load_inspections("energizados-0.4.0-py3-none-any.whl")  # doctest: +SKIP
    >>> earlier = frame[frame["month"] < "2017-08"]  # doctest: +SKIP
    """
    pandas = need_pandas()
    need_pyarrow()
    content, where = _inspections(path)
    try:
        frame = pandas.read_parquet(io.BytesIO(content)).reset_index(drop=True)
    except (ValueError, OSError) as error:
        raise ValueError(f"{where} cannot be read as a Parquet file: {error}") from error
    missing = [name for name in NAMES if name not in frame]
    if missing:
        raise ValueError(
            f"{where} has no column {listed(missing)}: it is not the file of inspections in {PACKAGE} 0.4.0."
        )
    return frame[[*NAMES]].rename(columns=NAMES).set_index("inspection")


def load_sgcc(path: str | os.PathLike[str]) -> Any:
    r"""Load the daily consumption of customers of the State Grid Corporation of China (SGCC), and who stole.

    The public table has a row for each of 42,372 consumers: ``CONS_NO``, ``FLAG`` (1 for theft) and 1,034 days
    from 2014 to 2016, named such as 2014/1/1 and in no order of time. popf does not include it.

    Parameters
    ----------
    path : str or path-like
        The CSV file, which may be compressed, such as ``data.zip``.

    Returns
    -------
    DataFrame
        One row per consumer, with ``CONS_NO`` as index: a column for every day, such as ``2014-01-01``, in
        order of time and NaN where there is no reading; and ``theft``, 1 or 0.

    Examples
    --------
    >>> import os, tempfile
    >>> from popf.datasets import load_sgcc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "data.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("CONS_NO,FLAG,2014/1/10,2014/1/9\nA,1,,2.5\n")
    ...     load_sgcc(path)
             2014-01-09  2014-01-10  theft
    CONS_NO
    A               2.5         NaN      1
    """
    pandas, file = need_pandas(), check_file(path)
    try:
        frame = pandas.read_csv(file)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{file} cannot be read as a CSV file: {error}") from error
    missing = [name for name in ("CONS_NO", "FLAG") if name not in frame]
    if missing:
        raise ValueError(f"{file} has no column {missing[0]!r}: it is not the table of SGCC.")
    ids, theft = frame.pop("CONS_NO"), frame.pop("FLAG")
    if not theft.isin([0, 1]).all():
        odd = theft[~theft.isin([0, 1])].iloc[0]
        raise ValueError(f"{file}: column 'FLAG' holds {odd!s}, but must be 0 or 1.")
    if ids.duplicated().any():
        again = ids[ids.duplicated()].iloc[0]
        raise ValueError(f"{file}: column 'CONS_NO' holds {again!s} twice.")
    days = pandas.to_datetime(frame.columns, format="%Y/%m/%d", errors="coerce")
    odd_names = frame.columns[days.isna()]
    if len(odd_names) or days.has_duplicates or not len(days):
        what = f"column {odd_names[0]!r}" if len(odd_names) else "two or no columns"
        raise ValueError(
            f"{file}: {what} for a day, but every day needs one column, such as 2014/1/1."
        )
    texts = [name for name in frame if frame[name].dtype.kind not in "if"]
    if texts:
        raise ValueError(f"{file}: the readings of {listed(texts, 3)} are not all numbers.")
    found = pandas.DataFrame(
        frame.to_numpy(dtype=np.float64),
        index=pandas.Index(ids, name="CONS_NO"),
        columns=days.strftime("%Y-%m-%d"),
    ).iloc[:, np.argsort(days, kind="stable")]
    found["theft"] = theft.to_numpy(dtype=np.int64)
    return found


def _inspections(path: str | os.PathLike[str] | None) -> tuple[bytes, Path]:
    """Return the content of the file of inspections, and where it is."""
    if path is not None:
        place = Path(path).expanduser()
        found = _in_folder(place) if place.is_dir() else check_file(place)
        if found is None:
            raise FileNotFoundError(
                f"the folder {place} has neither {INSPECTIONS} nor an archive {PACKAGE}-*. {HOW_TO_GET}"
            )
        return _unpacked(found), found
    folder, spec = user_folder(None), find_spec(PACKAGE)
    installed = (spec and spec.submodule_search_locations) or []
    for place in [*([folder] if folder else []), *map(Path, installed)]:
        found = _in_folder(place)
        if found is not None:
            return _unpacked(found), found
    raise FileNotFoundError(f"the inspections are not on this machine. {HOW_TO_GET}")


def _in_folder(folder: Path) -> Path | None:
    """Return the file, or else the latest archive, in a folder."""
    files = [folder / INSPECTIONS, folder / "templates" / "data" / "raw" / INSPECTIONS]
    archives = [*folder.glob(f"{PACKAGE}-*.whl"), *folder.glob(f"{PACKAGE}-*.tar.gz")]
    files += sorted(archives, key=lambda file: file.stat().st_mtime, reverse=True)
    return next((file for file in files if file.is_file()), None)


def _unpacked(file: Path) -> bytes:
    """Return the content of the file of inspections, from itself or an archive."""
    try:
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                return archive.read(_member(archive.namelist(), file))
        if tarfile.is_tarfile(file):
            with tarfile.open(file) as packed:
                content = packed.extractfile(_member(packed.getnames(), file))
                return content.read() if content else b""
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{file} is damaged ({error}): download it again.") from error
    return file.read_bytes()


def _member(names: list[str], file: Path) -> str:
    found = [name for name in names if Path(name).name == INSPECTIONS]
    if not found:
        raise ValueError(f"{file} does not contain {INSPECTIONS}: it is not the package {PACKAGE}.")
    return found[0]
