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
from popf.formatting import unknown

# Columns whose moments are recorded one by one; of wider data the rest is in the totals.
_RECORDED = 40
# A copy printed with six significant digits is off by at most 5e-6 of a value, to either side.
_RELATIVE, _ABSOLUTE = 2e-6, 5e-7
UCI = "CC BY 4.0 (UCI)"
UNSTATED = "not stated"
_LIBSVM = "LIBSVM page"


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
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _numbered(word: str, count: int) -> tuple[str, ...]:
    return tuple(f"{word}{number}" for number in range(1, count + 1))


_BREAST = (
    "clump_thickness", "cell_size", "cell_shape", "marginal_adhesion", "epithelial_cell_size",
    "bare_nuclei", "bland_chromatin", "normal_nucleoli", "mitoses",
)  # fmt: skip
_DIABETES = (
    "pregnancies", "glucose", "blood_pressure", "skin_thickness", "insulin", "mass", "pedigree", "age",
)  # fmt: skip
_HEART = (
    "age", "sex", "chest_pain", "resting_blood_pressure", "cholesterol", "fasting_blood_sugar",
    "resting_ecg", "max_heart_rate", "exercise_angina", "oldpeak", "slope", "major_vessels", "thal",
)  # fmt: skip
_LIVER = ("mcv", "alkphos", "sgpt", "sgot", "gammagt", "drinks")
ENERGY_FEATURES = (
    "demand_billed", "demand_contracted", "maximum_demand", "reactive_energy", "transformer_power",
    "power_factor", "installed_power", "load_factor",
)  # fmt: skip

_RAW = [
    Record(
        "australian", "Credit approval, Statlog (Australian)", 690, 14,
        {-1: "-", 1: "+"}, _numbered("A", 14), _LIBSVM, UCI, True, "australian",
        OpenML(40981, {"0": -1, "1": 1}),
        "Features of very different size: unscaled, A14 decides every distance.",
    ),
    Record(
        "breast_cancer", "Breast Cancer Wisconsin (Original), complete cases", 683, 9,
        {2: "benign", 4: "malignant"}, _BREAST, _LIBSVM, UCI, True, "breast-cancer",
        OpenML(15, {"benign": 2, "malignant": 4}),
        "The patient's id, first of the LIBSVM page's ten columns, is dropped: unscaled, it swamps every "
        "distance.",
    ),
    Record(
        "colon_cancer", "Gene expression in colon tissue (Alon et al., 1999)", 62, 2000,
        {-1: "tumour", 1: "normal"}, _numbered("gene", 2000), _LIBSVM, UNSTATED, True, "colon-cancer",
    ),
    Record(
        "diabetes", "Pima Indians diabetes", 768, 8, {-1: "positive", 1: "negative"},
        _DIABETES, _LIBSVM, "not clear", True, "diabetes",
        OpenML(37, {"tested_positive": -1, "tested_negative": 1}),
        "Zeros in glucose, blood pressure, skin thickness, insulin and mass stand for unknown values.",
    ),
    Record(
        "fourclass", "Four regions in the plane, two classes (Ho and Kleinberg, 1996)", 862, 2,
        {-1: "-1", 1: "+1"}, ("x1", "x2"), _LIBSVM, UNSTATED, True, "fourclass",
    ),
    Record(
        "heart", "Heart disease, Statlog", 270, 13, {-1: "absent", 1: "present"}, _HEART,
        _LIBSVM, UCI, True, "heart", OpenML(53, {"absent": -1, "present": 1}),
    ),
    Record(
        "ionosphere", "Radar returns from the ionosphere", 351, 34, {-1: "bad", 1: "good"},
        _numbered("a", 34), _LIBSVM, UCI, True, "ionosphere", OpenML(59, {"b": -1, "g": 1}),
        "Column 2 is constant.",
    ),
    Record(
        "liver", "Liver disorders (BUPA), six features", 345, 6,
        {1: "selector 1", 2: "selector 2"}, _LIVER, _LIBSVM, UCI, True, "liver-disorders",
        OpenML(8, {"1": 1, "2": 2}, "selector"),
        "The label is a mark for splitting the data, not a diagnosis (McDermott and Forsyth, 2016): kept "
        "because the paper and most others used it. The LIBSVM page now serves another form, of five "
        "features.",
    ),
]  # fmt: skip


def _scaled(raw: Record) -> Record:
    return replace(
        raw,
        name=f"{raw.name}_scale",
        title=f"{raw.title}, scaled to [-1, 1]",
        file=f"{raw.file}_scale",
        licence=raw.licence.replace("(UCI)", "(UCI, scaled)"),
        in_paper=raw.name == "ionosphere",
    )


_STAND_IN = "generated by popf; the paper's own is "
_STAND_INS = [
    Record(
        f"synthetic{number}", f"Stand-in: {title}", n_samples, 2, {-1: "-1", 1: "+1"}, ("x1", "x2"),
        f"{_STAND_IN}not defined", "BSD-3-Clause (popf)", True, stand_in=True,
        note="Not the paper's data: only size and overlap are like it.",
    )
    for number, n_samples, title in (
        (0, 500, "two classes drawn alike in the plane"),
        (2, 1000, "two classes nearly alike in the plane"),
        (3, 200, "two classes mingled in close pairs"),
    )
] + [
    Record(
        name, f"Stand-in: energy theft, {profile} consumers", n_samples, 8,
        {-1: "regular", 1: "theft"}, ENERGY_FEATURES, f"{_STAND_IN}private", "BSD-3-Clause (popf)", True,
        stand_in=True,
        note=f"Not the paper's data: make_energy_theft(profile={profile!r}, random_state=0).",
    )
    for name, profile, n_samples in (("comercial", "commercial", 4952), ("industrial", "industrial", 3182))
]  # fmt: skip

_ORDER = (
    "australian", "comercial", "industrial", "breast_cancer", "colon_cancer", "diabetes", "fourclass", "heart",
    "ionosphere", "ionosphere_scale", "liver", "synthetic0", "synthetic2", "synthetic3",
)  # fmt: skip
_SCALED = [_scaled(raw) for raw in _RAW if raw.name != "colon_cancer"]
_BY_NAME = {record.name: record for record in [*_RAW, *_SCALED, *_STAND_INS]}
#: All datasets by name: the paper's in its order, then the others.
RECORDS = {name: _BY_NAME[name] for name in dict.fromkeys((*_ORDER, *_BY_NAME))}

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
    facts: dict[str, Any] = json.loads(files("popf.datasets").joinpath("facts.json").read_bytes())
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
