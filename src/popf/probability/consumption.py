"""Features of meter readings as a transformer."""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from popf.engine.structures import FloatArray, IntArray
from popf.forest.alignment import align
from popf.formatting import check_integer, unknown
from popf.probability.columns import (
    CATEGORY,
    DATE,
    EMPTY,
    NUMBER,
    Columns,
    names_in,
    names_of_features,
    read_columns,
)
from popf.probability.readings import change, feature_names, mean_of, relative_features
from popf.state import Float, Integer, Part, Sizes, StateError, StateMixin, Text

#: Weight of the median of all rows in that of a group of peers, in rows.
PRIOR_ROWS = 10.0
#: The smallest level that is told from 0, in median levels.
SMALLEST = 0.01


class PeerGroups(NamedTuple):
    """Medians of groups of training rows."""

    name: Annotated[str, Text()]
    groups: Annotated[NDArray[np.str_], Text("n_groups")]
    #: Two for each group, for a gap, and for a group not seen in training.
    medians: Annotated[FloatArray, Float("n_medians", 2)]

    def check_state(self, sizes: Sizes) -> None:
        """Check the number of groups; see `popf.state`."""
        if len(self.medians) != len(self.groups) + 2:
            raise StateError("medians of every group", "medians")
        self.columns.check_state(sizes)

    @classmethod
    def fit(cls, cells: Any, name: str, values: FloatArray) -> "PeerGroups":
        """Compute the medians of the values, two per row, by group."""
        columns, _ = read_columns(cells, [name], np.ones(1, np.bool_))
        overall = _medians(values, np.zeros(2))
        unfitted = cls(name, columns.levels, np.empty((len(columns.levels) + 2, 0)))
        codes = unfitted.codes(cells)
        medians = [_medians(values[codes == k], overall) for k in range(len(unfitted.medians))]
        return unfitted._replace(medians=np.array(medians))

    @property
    def columns(self) -> Columns:
        """The column of the groups."""
        one = (np.array([self.name]), np.array([CATEGORY]))
        return Columns(*one, self.groups, np.array([len(self.groups)]), np.array([""]))

    def codes(self, cells: Any) -> IntArray:
        """Return the group of each row; a gap and a group not seen in training are the last two."""
        n, found = len(self.groups), self.columns.read(cells)[:, 0]
        codes: IntArray = np.where(np.isnan(found), n, found).astype(np.int64)
        return np.where(codes < 0, n + 1, codes)

    def compare(self, cells: Any, values: FloatArray) -> FloatArray:
        """Subtract the median of each row's group."""
        return values - self.medians[self.codes(cells)]


class FittedReadings(NamedTuple):
    """Where the readings are, and what was fitted."""

    positions: Annotated[IntArray, Integer("n_readings", of="n_features")]
    #: The median level of training rows.
    scale: Annotated[float, Float(low=5e-324)]
    peers: dict[str, PeerGroups]


class ConsumptionFeatures(StateMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn readings in order of time, such as monthly consumptions, into features of their course.

    Level, spread, trend, lowest and highest reading, largest drop and jump, the last readings against the
    earlier ones, the clearest fall and rise of the mean, zeros, repeated and missing readings. With two years
    of readings also the last ones against those a year before, and how alike the years are. Features compare
    the readings of a row with each other, and the level with that of the training rows, so any unit will do.

    Readings may be in columns, one row per consumer; or below each other, one row per consumer and time, with
    `id` and `time`. Then a row has the features of the last two years up to its time, so none sees the future:
    pass new rows together with the earlier ones of the same consumer.

    The readings, `id` and `time` are replaced by the features. Other columns are passed through, so that
    `POPFClassifier` or `TableEncoder` can follow.

    Parameters
    ----------
    readings : str, sequence of str or int, or None, default=None
        The columns of readings, earliest first: names or indices, or ranges of names in the order of the table,
        such as ``"consumption_12:consumption_1"``. None for all columns.
    id, time : str or int, default=None
        Columns for the long form, with one column of `readings`. Times are numbers or dates.
    peers : sequence of str or int, default=()
        Columns that group rows, such as tariff or zone. The level, and the last half against the earlier one,
        are also compared with the median of the row's group among the training rows.
    period : int, default=12
        Number of readings in a year.

    Attributes
    ----------
    fitted_ : FittedReadings
        Where the readings are, the median level, and medians by group of peers.
    n_features_in_, feature_names_in_
        As usual.

    Examples
    --------
    >>> import pandas
    >>> from popf import ConsumptionFeatures
    >>> frame = pandas.DataFrame({"may": [9.0, 4.0], "june": [9.0, 4.0], "july": [3.0, 4.0]})
    >>> frame["tariff"] = ["a", "b"]
    >>> features = ConsumptionFeatures("may:july").fit_transform(frame)
    >>> features[["tariff", "readings: last", "readings: drop"]]
      tariff  readings: last  readings: drop
    0      a            -0.5       -0.857143
    1      b             0.0        0.000000
    """

    fitted_: Annotated[FittedReadings, Part(FittedReadings)]

    def __init__(
        self,
        readings: Any = None,
        *,
        id: Any = None,
        time: Any = None,
        peers: Sequence[Any] = (),
        period: int = 12,
    ) -> None:
        self.readings = readings
        self.id = id
        self.time = time
        self.peers = peers
        self.period = period

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the columns, the usual level, and the medians of peers.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
        y
            Ignored.

        Returns
        -------
        self : ConsumptionFeatures
        """
        self.check_parameters()
        X = self._checked(X, reset=True)
        names = names_of_features(self)
        positions = self._positions(names)
        readings = self._readings(X, positions)
        levels = mean_of(readings)
        positive = levels[levels > 0.0]
        scale = float(np.median(positive)) if len(positive) else 1.0
        values = _level_and_change(readings, scale)
        peers = {
            names[j]: PeerGroups.fit(_take(X, [j]), names[j], values)
            for j in (_position(peer, names, "peers") for peer in self.peers)
        }
        fitted = FittedReadings(positions, scale, peers)
        clash = {*self._feature_names(fitted)} & {names[j] for j in self._passed(positions)}
        if clash:
            raise ValueError(f"column {min(clash)!r} has the name of a feature: rename it.")
        self.fitted_ = fitted
        return self

    def transform(self, X: Any) -> Any:
        """Compute the features.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Columns of a DataFrame are found by name.

        Returns
        -------
        ndarray or DataFrame of shape (n_samples, n_features_out)
            As `X`: the other columns, then the features.
        """
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        fitted, names = self.fitted_, names_of_features(self)
        readings = self._readings(X, fitted.positions)
        values = _level_and_change(readings, fitted.scale)
        found = [values[:, :1], relative_features(readings, self.period)]
        found += [
            groups.compare(_take(X, [names.index(name)]), values)
            for name, groups in fitted.peers.items()
        ]
        features, passed = np.hstack(found), _take(X, self._passed(fitted.positions))
        if not hasattr(X, "columns"):
            return np.hstack([passed, features])
        columns = dict(zip(self._feature_names(fitted), features.T, strict=True))
        if hasattr(passed, "with_columns"):  # of polars
            return passed.with_columns(**columns)
        # At once, because assigning many columns one by one fragments a frame.
        added = type(passed)(columns, index=passed.index)
        return passed.join(added) if passed.index.is_unique else passed.assign(**columns)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Name the output columns: the other columns, then such as ``readings: trend``.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Ignored; the names are those seen in `fit`.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        names, fitted = names_of_features(self), self.fitted_
        passed = [names[j] for j in self._passed(fitted.positions)]
        return np.array([*passed, *self._feature_names(fitted)], dtype=object)

    def check_parameters(self) -> None:
        """Raise ValueError for an invalid parameter."""
        check_integer("period", self.period, 2)
        if (self.id is None) != (self.time is None):
            raise ValueError("`id` and `time` belong together: give both, or none.")

    def check_state(self, sizes: Sizes) -> None:
        """Check the names of the peers; see `popf.state`."""
        if not {*self.fitted_.peers} <= {*names_of_features(self)}:
            raise StateError("columns of the table", "peers")

    def _checked(self, X: Any, reset: bool) -> Any:
        """Check a table; return a frame as it is, with the columns in order, and others as an array."""
        if not hasattr(X, "columns"):
            return validate_data(
                self, X, reset=reset, dtype=np.float64, order="C", ensure_all_finite="allow-nan"
            )
        X = align(self, X) if not reset and hasattr(self, "feature_names_in_") else X
        validate_data(self, X, reset=reset, skip_check_array=True)
        return X

    def _positions(self, names: list[str]) -> IntArray:
        """Find the columns of readings."""
        given = self.readings
        if given is None:
            others = {_position(each, names, "id and time") for each in self._keys()}
            found = [j for j in range(len(names)) if j not in others]
        else:
            each_given = [given] if isinstance(given, str | int) else given
            found = [j for each in each_given for j in positions_in_range(each, names)]
        if not found or len({*found}) < len(found):
            raise ValueError(
                f"`readings={given!r}` must name each column of readings once, and at least one."
            )
        if self.id is not None and len(found) > 1:
            raise ValueError(
                f"with `id` and `time` there must be one column of readings, not {len(found)}: name it with "
                "`readings`."
            )
        return np.array(found, dtype=np.int64)

    def _keys(self) -> list[Any]:
        """List the columns of the long form."""
        return [] if self.id is None else [self.id, self.time]

    def _passed(self, positions: IntArray) -> list[int]:
        """Return the columns that are passed through."""
        names = names_of_features(self)
        used = {*positions.tolist(), *(_position(each, names, "id") for each in self._keys())}
        return [j for j in range(len(names)) if j not in used]

    def _feature_names(self, fitted: FittedReadings) -> list[str]:
        n_readings = len(fitted.positions) if self.id is None else 2 * self.period
        found = ["level", *feature_names(n_readings, self.period)]
        for name in fitted.peers:
            found += [f"level against {name}", f"last half against {name}"]
        return [f"readings: {name}" for name in found]

    def _readings(self, X: Any, positions: IntArray) -> FloatArray:
        """Return the readings of each row in order of time, the last two years in the long form."""
        readings, kinds, names = _read(X, positions.tolist())
        for name, kind in zip(names, kinds, strict=True):
            if kind not in (NUMBER, EMPTY):
                raise ValueError(
                    f"readings must be numbers, but column {name!r} holds a {kind}: convert it, or "
                    "leave it out."
                )
        if self.id is None:
            return readings
        every = names_of_features(self)
        keys = [_position(each, every, "id and time") for each in self._keys()]
        ids, _, _ = _read(X, keys[:1], categorical=True)
        times, kinds, names = _read(X, keys[1:])
        if kinds[0] not in (NUMBER, DATE) or np.isnan(ids).any() or np.isnan(times).any():
            raise ValueError(
                f"every row needs an id, and a time that is a number or a date: column {names[0]!r} holds a "
                f"{kinds[0]}, and {int((np.isnan(ids) | np.isnan(times)).sum())} rows have a gap."
            )
        return _histories(ids[:, 0], times[:, 0], readings[:, 0], 2 * self.period)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def positions_in_range(given: Any, names: list[str]) -> list[int]:
    """Find a column, or the columns from one to another, such as "may:july"."""
    if isinstance(given, str) and given not in names:
        for at in [i for i, letter in enumerate(given) if letter == ":"]:
            first, last = given[:at], given[at + 1 :]
            if first in names and last in names:
                first_position, last_position = names.index(first), names.index(last)
                if first_position > last_position:
                    raise ValueError(
                        f"`readings`: column {first!r} comes after {last!r}: swap them."
                    )
                return [*range(first_position, last_position + 1)]
    return [_position(given, names, "readings")]


def _level_and_change(readings: FloatArray, scale: float) -> FloatArray:
    """Compute the log level, and the change of the last half: (n_rows, 2)."""
    level = np.log(np.maximum(mean_of(readings), 0.0) / scale + SMALLEST)
    half = max(1, readings.shape[1] // 2)
    return np.column_stack([level, change(readings, readings.shape[1] - half)])


def _medians(values: FloatArray, otherwise: FloatArray) -> FloatArray:
    """Return the medians of the columns, drawn towards others where there are few rows."""
    found = otherwise.copy()
    for k, column in enumerate(values.T):
        present = column[~np.isnan(column)]
        if len(present):
            found[k] += (np.median(present) - found[k]) * len(present) / (len(present) + PRIOR_ROWS)
    return found


def _histories(ids: FloatArray, times: FloatArray, readings: FloatArray, n: int) -> FloatArray:
    """Return the last n readings of the same id up to the time of each row, NaN before the first."""
    order = np.lexsort((times, ids))
    ids, times = ids[order], times[order]
    new = np.append(True, ids[1:] != ids[:-1])
    again = np.flatnonzero(~new[1:] & (times[1:] == times[:-1]))
    if len(again):
        rows = sorted(order[again[0] : again[0] + 2].tolist())
        raise ValueError(
            f"rows {rows[0]} and {rows[1]} have the same id and time: keep one of them."
        )
    starts = np.maximum.accumulate(np.where(new, np.arange(len(ids)), 0))
    taken = np.arange(len(ids))[:, None] + np.arange(1 - n, 1)
    found = np.empty((len(ids), n))
    found[order] = np.where(taken >= starts[:, None], readings[order][np.maximum(taken, 0)], np.nan)
    return found


def _read(
    X: Any, positions: list[int], categorical: bool = False
) -> tuple[FloatArray, list[str], list[str]]:
    """Return columns of a table as a matrix, and their kinds and names."""
    table = _take(X, positions)
    names = names_in(table)
    columns, matrix = read_columns(table, names, np.full(len(names), categorical))
    return matrix, columns.kinds.tolist(), names


def _take(X: Any, positions: list[int]) -> Any:
    """Select columns by position."""
    if hasattr(X, "columns"):
        return X.iloc[:, positions] if hasattr(X, "iloc") else X[:, positions]
    return X[:, positions]


def _position(name: Any, names: list[str], parameter: str) -> int:
    """Find a column by name or index."""
    if isinstance(name, int) and not isinstance(name, bool) and 0 <= name < len(names):
        return name
    if name not in names:
        raise ValueError(f"`{parameter}`: {unknown('column', str(name), names)}")
    return names.index(name)
