"""Which datasets there are, the paper's fourteen and their scaled forms, and how to tell a true copy of each.

Copies differ in white space, in printed digits and in the order of their rows, so bytes tell nothing. Recorded
are sizes, class counts and, column by column, the sum, the sum of squares and the sum over the first class.
That catches another dataset, a cut file, swapped columns or labels and lost decimal points; it does not vouch
for the last printed digit of every value.
"""

import json
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.structures import FloatArray
from popf.formatting import aligned, unknown

# Columns whose moments are recorded one by one; of wider data the rest is in the totals.
_RECORDED = 40
# A copy printed with six significant digits is off by at most 5e-6 of a value, to either side.
_RELATIVE, _ABSOLUTE = 2e-6, 5e-7
_FOLDER = files("popf.datasets")


class OpenML(NamedTuple):
    """Where OpenML has a dataset, and what its labels are called there."""

    data_id: int
    labels: dict[str, int]
    target: str = "default-target"


@dataclass(frozen=True)
class Record:
    """What is known of a dataset.

    Attributes
    ----------
    name, title : str
        As in the paper's tables, with ``_scale`` for the form scaled to [-1, 1]; and what it is.
    n_samples, n_features : int
    class_names, feature_names : dict of int to str (what the labels mean), and tuple of str
    origin, licence, note : str
        Where it is from, and what to know before using it.
    in_paper, stand_in : bool
        Whether the paper's tables have it under this name, and whether it is generated in place of the paper's.
    file, openml : str, and OpenML or None
        Name on the LIBSVM page, and of the file in a folder (empty for none); where OpenML has it.
    here : str
        "folder", "embedded", "cache", "generated" or "needs download"; empty before `popf.datasets.list` has
        looked.
    """

    name: str
    title: str
    n_samples: int
    n_features: int
    class_names: dict[int, str]
    feature_names: tuple[str, ...]
    origin: str
    licence: str
    in_paper: bool = False
    file: str = ""
    openml: OpenML | None = None
    note: str = ""
    stand_in: bool = False
    here: str = ""

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def scaled(self) -> bool:
        """Whether this is the form scaled to [-1, 1]."""
        return self.file.endswith("_scale")

    @property
    def raw_file(self) -> str:
        """Name of the unscaled file."""
        return self.file.removesuffix("_scale")


class Catalogue(tuple[Record, ...]):
    """Records of datasets: a tuple that prints as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        rows = [("name", "samples × features", "classes", "here", "paper", "licence", "what")]
        for record in self:
            size = f"{record.n_samples:,} × {record.n_features:,}"
            paper = ("stand-in" if record.stand_in else "yes") if record.in_paper else "no"
            shown = (record.here, paper, record.licence, record.title)
            rows.append((record.name, size, str(record.n_classes), *shown))
        return "\n".join(aligned(rows, left=True, indent=""))


def _read_records() -> dict[str, Record]:
    """Read ``records.json``: the paper's datasets in its order; then their other scaled forms."""
    raw = {}
    for name, known in json.loads(_FOLDER.joinpath("records.json").read_bytes()).items():
        known["class_names"] = {int(label): word for label, word in known["class_names"].items()}
        names, n_features = known["feature_names"], known["n_features"]
        if isinstance(names, str):  # numbered
            names = [f"{names}{number}" for number in range(1, n_features + 1)]
        openml = OpenML(**known.pop("openml")) if "openml" in known else None
        known["feature_names"] = tuple(names)
        raw[name] = Record(name=name, in_paper=True, openml=openml, **known)
    scaled = {
        f"{name}_scale": replace(
            record,
            name=f"{name}_scale",
            title=f"{record.title}, scaled to [-1, 1]",
            file=f"{record.file}_scale",
            licence=record.licence.replace("(UCI)", "(UCI, scaled)"),
            in_paper=name == "ionosphere",
        )
        for name, record in raw.items()
        if record.file and name != "colon_cancer"
    }
    ordered = {}
    for name, record in raw.items():
        ordered[name] = record
        if name == "ionosphere":  # of which the paper has both
            ordered["ionosphere_scale"] = scaled["ionosphere_scale"]
    return ordered | scaled


#: All datasets by name: the paper's in its order, then the others.
RECORDS = _read_records()
# The paper's first table calls breast_cancer "breast"; the LIBSVM page has names of its own.
_ALIASES = {"breast": "breast_cancer", "commercial": "comercial"} | {
    record.file.replace("-", "_"): name for name, record in RECORDS.items() if record.file
}


def record_of(name: str) -> Record:
    """Find a dataset by the paper's name or by the LIBSVM page's."""
    if not isinstance(name, str):
        raise TypeError(f"name must be the name of a dataset, not {type(name).__name__}.")
    plain = name.strip().lower().replace("-", "_")
    plain = _ALIASES.get(plain, plain)
    if plain not in RECORDS:
        raise ValueError(unknown("dataset", name, RECORDS))
    return RECORDS[plain]


def measure(X: FloatArray, y: NDArray[Any]) -> dict[str, Any]:
    """Measure the facts of a dataset; totals are of all values, the second weighted by the column's number."""
    labels, counts = np.unique(y, return_counts=True)
    first = X[y == labels[0]]
    head = X[:, :_RECORDED]
    return {
        "shape": list(X.shape),
        "counts": dict(zip(map(str, labels.tolist()), counts.tolist(), strict=True)),
        "moments": [head.sum(0), (head**2).sum(0), first[:, :_RECORDED].sum(0)],
        "totals": [X.sum(), X.sum(0) @ np.arange(1, X.shape[1] + 1), first.sum()],
    }


@cache
def recorded() -> dict[str, Any]:
    """Return the recorded facts by the name of the file, ``breast-w`` being breast-cancer without the id."""
    facts: dict[str, Any] = json.loads(_FOLDER.joinpath("facts.json").read_bytes())
    return facts


def check_copy(X: FloatArray, y: NDArray[Any], file: str, where: str) -> None:
    """Raise ValueError unless the data of `where` agree with the recorded facts of `file`."""
    wrong = difference(X, y, file)
    if wrong is None:
        return
    hint = ""
    match file.removesuffix("_scale"), X.shape[1]:
        case "breast-cancer", 9:
            bare = file.replace("breast-cancer", "breast-w")
            hint = f": it lacks the id, so name it {bare}"
        case "liver-disorders", 5:
            hint = (
                ". This is the form that the LIBSVM page serves today, with another target; the paper "
                "used the six features of UCI"
            )
        case "ionosphere", 33:
            hint = (
                ". The copies of the KEEL packages lack the constant column 2, and lost decimal points: "
                "take another copy"
            )
    raise ValueError(f"{where} is not {file}: {wrong}{hint}.")


def difference(X: FloatArray, y: NDArray[Any], file: str) -> str | None:
    """Tell how data differ from the recorded facts of a file; None if they agree."""
    known, new = recorded()[file], measure(X, y)
    if new["shape"] != known["shape"]:
        n_samples, n_features = known["shape"]
        return (
            f"it has {X.shape[0]} samples of {X.shape[1]} features, and {file} has {n_samples} of "
            f"{n_features}"
        )
    if new["counts"] != known["counts"]:
        ours, theirs = (
            ", ".join(f"{label}: {count}" for label, count in facts["counts"].items())
            for facts in (new, known)
        )
        return f"its classes count {ours}, and those of {file} {theirs}"
    if not np.isfinite(X).all():
        return "it holds NaN or infinity"
    head = np.abs(X[:, :_RECORDED])
    size = np.array([head.sum(0), (head**2).sum(0), head.sum(0)])
    # A square is off by twice the error of the value times the value, which the second term covers.
    allowed = _RELATIVE * size + 2 * len(X) * _ABSOLUTE * np.maximum(1.0, head.max(0))
    moments, right = np.array(new["moments"]), np.array(known["moments"])
    wrong = np.flatnonzero(np.any(np.abs(moments - right) > allowed, axis=0))
    if len(wrong):
        j = int(wrong[0])
        numbers = ", ".join(str(column + 1) for column in wrong[:8])
        return (
            f"column {numbers} does not agree with what is recorded (column {j + 1} sums up to "
            f"{moments[0, j]:.10g}, where {right[0, j]:.10g} is right): were decimal points lost?"
        )
    total = np.abs(X).sum() + len(X) * X.shape[1] * _ABSOLUTE
    weights = np.array([1.0, X.shape[1], 1.0])
    off = np.abs(np.array(new["totals"]) - known["totals"])
    if np.any(off > _RELATIVE * total * weights):
        return f"its columns after the first {_RECORDED} do not sum up to those of {file}"
    return None
