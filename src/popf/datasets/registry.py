"""The known datasets, the paper's fourteen and their scaled forms, and facts to verify copies of them.

Copies differ in white space, printed digits and the order of their rows, so file checksums do not work. The
recorded facts are sizes, class counts and, for each column, the sum, the sum of squares and the sum over the
first class. They detect a different dataset, a truncated file, swapped columns or labels, and lost decimal
points, but not an error in the last printed digit of a value.
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

# Number of columns whose moments are recorded; further columns count in the totals only.
_RECORDED = 40
# Six printed significant digits have a relative error of at most 5e-6, of either sign.
_RELATIVE, _ABSOLUTE = 2e-6, 5e-7
_FOLDER = files("popf.datasets")


class OpenML(NamedTuple):
    """The id, labels and target of a dataset on OpenML."""

    data_id: int
    labels: dict[str, int]
    target: str = "default-target"


@dataclass(frozen=True)
class Record:
    """Description of a dataset.

    Attributes
    ----------
    name, title : str
        Name as in the paper's tables, with ``_scale`` for the form scaled to [-1, 1]; short description.
    n_samples, n_features : int
    class_names : dict of int to str
        The meaning of the labels.
    feature_names : tuple of str
    origin, licence, note : str
        Where the dataset is from, its licence, and what to know before using it.
    in_paper, stand_in : bool
        Whether the paper's tables include it under this name; whether it is generated in place of the paper's.
    file, openml : str, and OpenML or None
        Name of the file on the LIBSVM page and in a folder (empty for none); the dataset on OpenML.
    here : str
        "folder", "embedded", "cache", "generated" or "needs download"; set by `popf.datasets.list`, else empty.
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
    """Read ``records.json``: the paper's datasets in the paper's order, then the other scaled forms."""
    raw = {}
    for name, known in json.loads(_FOLDER.joinpath("records.json").read_bytes()).items():
        known["class_names"] = {int(label): word for label, word in known["class_names"].items()}
        names, n_features = known["feature_names"], known["n_features"]
        if isinstance(names, str):  # a prefix of numbered names
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
        if name == "ionosphere":  # the paper uses both forms
            ordered["ionosphere_scale"] = scaled["ionosphere_scale"]
    return ordered | scaled


#: All datasets by name: the paper's in the paper's order, then the others.
RECORDS = _read_records()
# The paper's first table calls breast_cancer "breast"; the LIBSVM page uses its own names.
_ALIASES = {"breast": "breast_cancer", "commercial": "comercial"} | {
    record.file.replace("-", "_"): name for name, record in RECORDS.items() if record.file
}


def record_of(name: str) -> Record:
    """Return a dataset by its name in the paper or on the LIBSVM page."""
    if not isinstance(name, str):
        raise TypeError(f"name must be the name of a dataset, not {type(name).__name__}.")
    plain = name.strip().lower().replace("-", "_")
    plain = _ALIASES.get(plain, plain)
    if plain not in RECORDS:
        raise ValueError(unknown("dataset", name, RECORDS))
    return RECORDS[plain]


def measure(X: FloatArray, y: NDArray[Any]) -> dict[str, Any]:
    """Compute the facts of a dataset; totals are over all columns, the second weighted by column number."""
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
    """Return the recorded facts by file name; ``breast-w`` is breast-cancer without the id."""
    facts: dict[str, Any] = json.loads(_FOLDER.joinpath("facts.json").read_bytes())
    return facts


def check_copy(X: FloatArray, y: NDArray[Any], file: str, where: str) -> None:
    """Raise ValueError unless the data agree with the recorded facts of `file`; `where` names their source."""
    wrong = difference(X, y, file)
    if wrong is None:
        return
    hint = ""
    match file.removesuffix("_scale"), X.shape[1]:
        case "breast-cancer", 9:
            bare = file.replace("breast-cancer", "breast-w")
            hint = f": it lacks the id column, so name the file {bare}"
        case "liver-disorders", 5:
            hint = (
                ". This is the form on the LIBSVM page today, with another target; the paper used the six "
                "features of UCI"
            )
        case "ionosphere", 33:
            hint = (
                ". The copies in the KEEL packages lack the constant column 2 and have lost decimal points: "
                "use another copy"
            )
    raise ValueError(f"{where} is not {file}: {wrong}{hint}.")


def difference(X: FloatArray, y: NDArray[Any], file: str) -> str | None:
    """Describe how data differ from the recorded facts of a file; None if they agree."""
    known, new = recorded()[file], measure(X, y)
    if new["shape"] != known["shape"]:
        n_samples, n_features = known["shape"]
        return (
            f"it has {X.shape[0]} samples of {X.shape[1]} features, but {file} has {n_samples} of "
            f"{n_features}"
        )
    if new["counts"] != known["counts"]:
        ours, theirs = (
            ", ".join(f"{label}: {count}" for label, count in facts["counts"].items())
            for facts in (new, known)
        )
        return f"its class counts are {ours}, but those of {file} are {theirs}"
    if not np.isfinite(X).all():
        return "it holds NaN or infinity"
    head = np.abs(X[:, :_RECORDED])
    size = np.array([head.sum(0), (head**2).sum(0), head.sum(0)])
    # The error of a square is twice the value times its error, which the second term covers.
    allowed = _RELATIVE * size + 2 * len(X) * _ABSOLUTE * np.maximum(1.0, head.max(0))
    moments, right = np.array(new["moments"]), np.array(known["moments"])
    wrong = np.flatnonzero(np.any(np.abs(moments - right) > allowed, axis=0))
    if len(wrong):
        j = int(wrong[0])
        numbers = ", ".join(str(column + 1) for column in wrong[:8])
        return (
            f"column {numbers} does not agree with the recorded facts (column {j + 1} sums to "
            f"{moments[0, j]:.10g} instead of {right[0, j]:.10g}): were decimal points lost?"
        )
    total = np.abs(X).sum() + len(X) * X.shape[1] * _ABSOLUTE
    weights = np.array([1.0, X.shape[1], 1.0])
    off = np.abs(np.array(new["totals"]) - known["totals"])
    if np.any(off > _RELATIVE * total * weights):
        return (
            f"its columns after the first {_RECORDED} do not have the same sum as those of {file}"
        )
    return None
