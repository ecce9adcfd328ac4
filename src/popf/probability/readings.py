"""Features of readings in order of time, such as the monthly consumption of a meter.

Every feature compares the readings of a row with each other, so their unit does not matter. A gap is NaN, and
so is a feature for which a row has too few readings.
"""

from typing import NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from popf.engine.structures import BoolArray, FloatArray

#: Number of readings that are processed at a time.
_CELLS = 2**22
NAMES = (
    *("spread", "trend", "lowest", "highest", "drop", "jump", "roughness"),
    *("last", "last quarter", "last half", "fall", "rise"),
    *("zeros", "zeros in a row", "zeros at the end", "repeated", "missing"),
)
#: Features that need two years.
YEARLY = ("last quarter in a year", "last half in a year", "season")


def feature_names(n_readings: int, period: int) -> list[str]:
    """Name the features of rows of `n_readings`, of which a year has `period`."""
    return [*NAMES, *(YEARLY if n_readings >= 2 * period else ())]


def relative_features(readings: FloatArray, period: int) -> FloatArray:
    """Compute the features of rows of readings: (n_rows, n_features), as named by `feature_names`."""
    n_rows, n_readings = readings.shape
    found = np.empty((n_rows, len(feature_names(n_readings, period))))
    for rows in gen_batches(n_rows, max(1, _CELLS // n_readings)):
        found[rows] = _features(np.ascontiguousarray(readings[rows]), period)
    return found


def mean_of(readings: FloatArray) -> FloatArray:
    """Compute the mean of the readings of each row, NaN if there is none."""
    present = ~np.isnan(readings)
    return _ratio(np.where(present, readings, 0.0).sum(axis=1), present.sum(axis=1))


def change(readings: FloatArray, position: int) -> FloatArray:
    """Compare the readings of each row from a position on with those before it, from -1 to 1."""
    return _Sums.of(readings).change(position)


def _features(readings: FloatArray, period: int) -> FloatArray:
    n_readings = readings.shape[1]
    present = ~np.isnan(readings)
    # In units of the row's mean size; rows of zeros stay zeros.
    size = mean_of(np.abs(readings))
    shares = readings / np.where(size > 0.0, size, 1.0)[:, None]
    steps = np.diff(shares, axis=1)
    sums = _Sums.of(shares)
    quarter, half = max(1, n_readings // 4), max(1, n_readings // 2)
    shifts, runs = sums.shifts(), _runs(present, readings <= 0.0)
    repeated = np.where(np.isnan(steps), np.nan, (steps == 0.0) & (shares[:, 1:] != 0.0))
    mean = mean_of(shares)[:, None]
    found = [
        np.sqrt(mean_of((shares - mean) ** 2)),
        _trend(shares - mean),
        _lowest(shares),
        -_lowest(-shares),
        _lowest(steps),
        -_lowest(-steps),
        mean_of(np.abs(steps)),
        *(sums.change(n_readings - k) for k in (1, quarter, half)),
        _lowest(shifts),
        -_lowest(-shifts),
        mean_of(np.where(present, readings <= 0.0, np.nan)),
        runs.max(axis=1) / n_readings,
        runs[:, -1] / n_readings,
        mean_of(repeated),
        1.0 - present.mean(axis=1),
    ]
    if n_readings >= 2 * period:
        now, before = shares[:, period:], shares[:, :-period]
        both = np.isnan(now) | np.isnan(before)
        now, before = np.where(both, np.nan, now), np.where(both, np.nan, before)
        for k in (min(quarter, period), min(half, period)):
            found.append(_contrast(mean_of(now[:, -k:]), mean_of(before[:, -k:])))
        found.append(_correlation(now, before))
    return np.column_stack(found)


class _Sums(NamedTuple):
    """Sums and numbers of the readings before each position: (n_rows, n_readings + 1)."""

    sums: FloatArray
    counts: FloatArray

    @classmethod
    def of(cls, shares: FloatArray) -> "_Sums":
        present = ~np.isnan(shares)
        both = (np.where(present, shares, 0.0), present.astype(np.float64))
        return cls(*(np.pad(np.cumsum(each, axis=1), ((0, 0), (1, 0))) for each in both))

    def change(self, position: int) -> FloatArray:
        """Compare the readings from a position on with those before it."""
        return self._changes(self.sums[:, position], self.counts[:, position], 0)

    def shifts(self) -> FloatArray:
        """Compare before and after every position, weighted down where one side has few readings."""
        sums, counts = self.sums[:, 1:-1], self.counts[:, 1:-1]
        after = self.counts[:, -1:] - counts
        weights = 2.0 * np.sqrt(counts * after) / np.maximum(counts + after, 1.0)
        return weights * self._changes(sums, counts, 1)

    def _changes(self, sums: FloatArray, counts: FloatArray, n_axes: int) -> FloatArray:
        total, number = self.sums[:, -1], self.counts[:, -1]
        if n_axes:
            total, number = total[:, None], number[:, None]
        return _contrast(_ratio(total - sums, number - counts), _ratio(sums, counts))


def _contrast(after: FloatArray, before: FloatArray) -> FloatArray:
    """Compare two means, from -1 (all gone) to 1; 0 if both are 0."""
    size = np.abs(after) + np.abs(before)
    found: FloatArray = (after - before) / np.where(size == 0.0, 1.0, size)
    return found


def _ratio(sums: FloatArray, counts: FloatArray) -> FloatArray:
    """Divide; NaN where the count is 0."""
    return sums / np.where(counts > 0, counts, np.nan)


def _lowest(values: FloatArray) -> FloatArray:
    """Return the lowest value of each row, NaN if there is none."""
    found: FloatArray = np.fmin.reduce(values, axis=1, initial=np.nan)
    return found


def _trend(deviations: FloatArray) -> FloatArray:
    """Fit a line to the deviations from the mean of each row; return its rise over all positions."""
    n = deviations.shape[1]
    times = np.where(np.isnan(deviations), np.nan, np.arange(n) - 0.5 * (n - 1))
    times -= mean_of(times)[:, None]
    square = mean_of(times**2)
    found: FloatArray = n * _ratio(mean_of(times * deviations), square)
    return found


def _correlation(first: FloatArray, second: FloatArray) -> FloatArray:
    """Correlate the rows of two arrays with gaps in the same places; NaN where one is constant."""
    first, second = (each - mean_of(each)[:, None] for each in (first, second))
    # Rounded means leave differences of some 1e-16 in constant rows.
    sizes = np.sqrt(mean_of(first**2) * mean_of(second**2))
    return _ratio(mean_of(first * second), np.where(sizes > 1e-12, sizes, 0.0))


def _runs(present: BoolArray, idle: BoolArray) -> FloatArray:
    """Count the idle readings up to each position, without any other between; gaps count for neither."""
    counts = np.cumsum(present & idle, axis=1)
    found: FloatArray = counts - np.maximum.accumulate(np.where(present & ~idle, counts, 0), axis=1)
    return found
