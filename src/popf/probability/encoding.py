"""The columns of a table as numbers, fitted to training samples: gaps, categories and dates.

A gap in a number or date becomes the median, with a flag if there are several; in a category it is a level.
Each frequent level has a column of 0 and 1. If there are many levels, columns for the frequent ones are joined
by the log ratio of the class frequencies of the level: smoothed, and cross-fitted, so that no training sample
sees its own label. What was not seen in training says nothing: it becomes the mean of the column.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from popf.engine.structures import BoolArray, FloatArray, IntArray
from popf.probability.columns import CATEGORY, DATE, Columns
from popf.probability.folds import N_FOLDS, CanonicalSamples
from popf.probability.logits import Coefficient
from popf.probability.scaler import weighted_quantile
from popf.state import Flag, Float, Integer, Sizes, StateError

#: Weight of gaps or of a level from which it has a column of its own.
MIN_WEIGHT = 3.0
#: Number of levels up to which there are columns only. With more, a level needs a 20th of the samples for a
#: column: with a 100th, the log loss on 29 tables was 0.7 % higher.
MAX_COLUMNS = 20
#: Weight of the class frequencies in those of a level.
PRIOR_WEIGHT = 5.0
#: Number of classes, the most frequent ones, whose log ratios are computed.
MAX_RATIOS = 10
DAY, YEAR = 86_400.0, 365.2425 * 86_400.0
#: Periods of dates, in seconds, and the resolution in which a part of the period must vary.
PERIODS = {"year": (YEAR, YEAR / 12.0), "week": (7.0 * DAY, DAY), "day": (DAY, 3_600.0)}


class NumberEncoding(NamedTuple):
    """Numbers and times: gaps become the median, with a flag in a column of its own."""

    columns: Annotated[IntArray, Integer("n_numbers", of="n_features")]
    fills: Annotated[FloatArray, Float("n_numbers")]
    flagged: Annotated[NDArray[np.bool_], Flag("n_numbers")]

    def apply(self, matrix: FloatArray) -> list[FloatArray]:
        """Return the blocks of values and of flags."""
        found = matrix[:, self.columns]
        gaps = np.isnan(found)
        if not gaps.any():
            return [found, np.zeros((len(found), int(self.flagged.sum())))]
        return [np.where(gaps, self.fills, found), gaps[:, self.flagged].astype(np.float64)]


class CycleEncoding(NamedTuple):
    """A period of a date, as sine and cosine; gaps become their means."""

    column: Annotated[int, Integer(of="n_features")]
    period: Annotated[float, Float(low=1.0, high=1e9)]
    means: Annotated[FloatArray, Float(2, low=-1.0, high=1.0)]

    def apply(self, matrix: FloatArray) -> FloatArray:
        """Return sine and cosine: (n_rows, 2)."""
        waves = _waves(matrix[:, self.column], self.period)
        return np.where(np.isnan(waves), self.means, waves)


class CategoryEncoding(NamedTuple):
    """A category: columns of 0 and 1, and log ratios of the class frequencies.

    Codes are those of the levels, then that of a gap, then that of a level not seen in training.
    """

    column: Annotated[int, Integer(of="n_features")]
    #: The column of each code; the first number without a column for zeros, -1 for the means of all columns.
    slots: Annotated[IntArray, Integer("n_codes", low=-1)]
    #: The share of each column among the training samples.
    shares: Annotated[FloatArray, Float("n_slots", low=0.0, high=1.0)]
    #: Log ratios of every code from all training samples, then from those outside of each fold, in one axis.
    ratios: Annotated[FloatArray, Coefficient("n_fits_by_code", "n_ratios")]

    def check_state(self, sizes: Sizes) -> None:
        """Check the slots and the number of fits; see `popf.state`."""
        highest = len(self.shares) - (len(self.shares) != 1)  # zeros only tell two levels apart
        if self.slots.max(initial=-1) > highest or len(self.slots) < 2:
            raise StateError("the columns of the codes", "slots")
        if len(self.ratios) != (1 + N_FOLDS) * len(self.slots):
            raise StateError(f"the ratios of {1 + N_FOLDS} fits", "ratios")

    def apply(self, matrix: FloatArray, folds: IntArray | None) -> FloatArray:
        """Return columns of 0 and 1, then log ratios."""
        codes = _codes(matrix[:, self.column], len(self.slots) - 2)
        n_slots = len(self.shares)
        # Slot -1, of unseen levels and those too rare for a column, is the mean of every column.
        values = np.vstack([np.eye(n_slots), np.zeros(n_slots), self.shares])
        fits = np.zeros(len(codes), np.int64) if folds is None else folds + 1
        return np.hstack([values[self.slots[codes]], self.ratios[fits * len(self.slots) + codes]])


class TableEncoding(NamedTuple):
    """Everything that turns the matrix of a table into numbers."""

    numbers: NumberEncoding
    cycles: dict[str, CycleEncoding]
    categories: dict[str, CategoryEncoding]

    @property
    def trivial(self) -> bool:
        """Whether there are numbers only, without gaps that have a column."""
        return not (self.cycles or self.categories or self.numbers.flagged.any())

    @property
    def category_columns(self) -> IntArray:
        """The columns of the table that are categories."""
        return np.array([each.column for each in self.categories.values()], dtype=np.int64)

    @property
    def owners(self) -> IntArray:
        """The column of the table from which each column of the result comes."""
        numbers = self.numbers
        found = [numbers.columns, numbers.columns[numbers.flagged]]
        found += [np.full(2, each.column) for each in self.cycles.values()]
        found += [
            np.full(len(each.shares) + each.ratios.shape[1], each.column)
            for each in self.categories.values()
        ]
        return np.concatenate(found)

    def apply(self, matrix: FloatArray, folds: IntArray | None = None) -> FloatArray:
        """Convert the matrix of a table to numbers.

        `folds` are those of training samples, whose log ratios are cross-fitted, and -1 for others.
        """
        if self.trivial:
            gaps = np.isnan(matrix)
            return np.where(gaps, self.numbers.fills, matrix) if gaps.any() else matrix
        found = self.numbers.apply(matrix)
        found += [each.apply(matrix) for each in self.cycles.values()]
        found += [each.apply(matrix, folds) for each in self.categories.values()]
        return np.ascontiguousarray(np.hstack(found))

    def in_order(self, columns: IntArray) -> IntArray:
        """Return the columns of the result in the order of the given columns."""
        return np.argsort(np.argsort(columns)[self.owners], kind="stable")

    def names(self, columns: Columns) -> list[str]:
        """Name the columns of the result."""
        given, numbers = columns.names.tolist(), self.numbers
        found = [given[j] for j in numbers.columns]
        found += [f"{given[j]} is missing" for j in numbers.columns[numbers.flagged]]
        periods = {period: name for name, (period, _) in PERIODS.items()}
        for cycle in self.cycles.values():
            name = f"{given[cycle.column]}, {periods.get(cycle.period, '')}"
            found += [f"{name} sine", f"{name} cosine"]
        levels = columns.levels_by_column()
        for each in self.categories.values():
            texts = [*levels[each.column].tolist(), "missing", "unseen"]
            for slot in range(len(each.shares)):
                own = np.flatnonzero(each.slots == slot)
                level = texts[own[0]] if len(own) == 1 else "rare levels"
                found.append(f"{given[each.column]} = {level}")
            n_ratios = each.ratios.shape[1]
            end = [""] if n_ratios == 1 else [f" {k}" for k in range(n_ratios)]
            found += [f"{given[each.column]}, log ratio{which}" for which in end]
        return found


class FittedTable(NamedTuple):
    """The columns of a training table, and how its rows were encoded."""

    columns: Columns
    encoding: TableEncoding
    #: For the cross-fitting of log ratios; -1 for rows that they were not fitted to.
    folds: Annotated[IntArray, Integer("n_samples", low=-1, high=N_FOLDS - 1)]

    def check_state(self, sizes: Sizes) -> None:
        """Check the encoding against the columns; see `popf.state`."""
        encoding, n_codes = self.encoding, self.columns.n_levels + 2
        every = np.concatenate([encoding.numbers.columns, encoding.category_columns])
        if (np.sort(every) != np.arange(len(n_codes))).any():
            raise StateError("an encoding of every column", "encoding")
        for each in encoding.categories.values():
            if len(each.slots) > n_codes[each.column]:
                raise StateError("an encoding of the levels of its columns", "encoding")

    def encode(self, matrix: FloatArray) -> FloatArray:
        """Convert new rows to numbers."""
        return self.encoding.apply(matrix)

    def encode_training(self, matrix: FloatArray) -> FloatArray:
        """Convert the training rows to numbers."""
        return self.encoding.apply(matrix, self.folds)

    def decode(self, numbers: FloatArray) -> NDArray[Any]:
        """Convert numbers back to cells; None for gaps, and for levels without a column of their own."""
        own, owners = self.encoding.numbers, self.encoding.owners
        matrix = np.full((len(numbers), len(self.columns.kinds)), np.nan)
        n_values = len(own.columns)
        flags = numbers[:, n_values : n_values + int(own.flagged.sum())]
        matrix[:, own.columns] = numbers[:, :n_values]
        for column, flag in zip(own.columns[own.flagged], flags.T, strict=True):
            matrix[flag > 0.5, column] = np.nan
        for each in self.encoding.categories.values():
            block = numbers[:, owners == each.column][:, : len(each.shares)] > 0.5
            slots = np.where(block.any(axis=1), block.argmax(axis=1), len(each.shares))
            for slot in np.unique(slots):
                codes = np.flatnonzero(each.slots == slot)
                if len(codes) == 1 and codes[0] < len(each.slots) - 2:
                    matrix[slots == slot, each.column] = codes[0]
        return self.columns.values(matrix)


def fit_table(
    columns: Columns, canonical: CanonicalSamples, with_classes: bool = True
) -> FittedTable:
    """Fit the encoding of a training table."""
    training = canonical.training
    n_classes = training.n_classes if with_classes else 0
    encoding = fit_encoding(columns.kinds, *training.labelled, n_classes)
    return FittedTable(columns, encoding, canonical.cross_folds)


def fit_encoding(
    kinds: NDArray[np.str_],
    matrix: FloatArray,
    codes: IntArray,
    weights: FloatArray,
    folds: IntArray,
    n_classes: int,
) -> TableEncoding:
    """Fit the encoding to weighted samples in folds 0 to 7; without classes, there are no log ratios."""
    cycles, categories = {}, {}
    for j in np.flatnonzero(kinds == DATE).tolist():
        for name, (period, resolution) in PERIODS.items():
            cycle = _fit_cycle(matrix, j, period, resolution, weights)
            if cycle is not None:
                cycles[f"{j} {name}"] = cycle
    for j in np.flatnonzero(kinds == CATEGORY).tolist():
        categories[str(j)] = _fit_category(matrix, j, codes, weights, folds, n_classes)
    numbers = _fit_numbers(matrix, np.flatnonzero(kinds != CATEGORY), weights)
    return TableEncoding(numbers, cycles, categories)


def _fit_numbers(matrix: FloatArray, columns: IntArray, weights: FloatArray) -> NumberEncoding:
    cells = matrix[:, columns]
    gaps = np.isnan(cells)
    fills = np.zeros(len(columns))
    complete = ~gaps.any(axis=0)
    if complete.any():
        fills[complete] = weighted_quantile(cells[:, complete], weights, 0.5)
    for j in np.flatnonzero(~complete & ~gaps.all(axis=0)):
        present = ~gaps[:, j]
        fills[j] = weighted_quantile(cells[present, j, None], weights[present], 0.5)[0]
    missing = weights @ gaps
    flagged: BoolArray = (missing >= MIN_WEIGHT) & (missing < weights.sum())
    return NumberEncoding(columns, fills, flagged)


def _fit_cycle(
    matrix: FloatArray, column: int, period: float, resolution: float, weights: FloatArray
) -> CycleEncoding | None:
    """Fit a period of a date; None if the samples are all at the same part of the period."""
    cells = matrix[:, column]
    present = ~np.isnan(cells)
    parts = np.floor(np.mod(cells[present], period) / resolution)
    if len(np.unique(parts)) < 2:
        return None
    waves = _waves(cells[present], period)
    return CycleEncoding(column, period, np.average(waves, axis=0, weights=weights[present]))


def _waves(seconds: FloatArray, period: float) -> FloatArray:
    angles = np.mod(seconds, period) * (2.0 * np.pi / period)
    return np.stack([np.sin(angles), np.cos(angles)], axis=1)


def _fit_category(
    matrix: FloatArray,
    column: int,
    codes: IntArray,
    weights: FloatArray,
    folds: IntArray,
    n_classes: int,
) -> CategoryEncoding:
    n_levels = int(matrix[:, column].max(initial=-1.0, where=~np.isnan(matrix[:, column]))) + 1
    own = _codes(matrix[:, column], n_levels)
    n_codes = n_levels + 2
    masses = np.bincount(own, weights=weights, minlength=n_codes)
    total = float(weights.sum())
    n_present = int((masses > 0.0).sum())
    many = n_present > MAX_COLUMNS
    least = max(MIN_WEIGHT, total / MAX_COLUMNS if many else 0.0)
    frequent = np.flatnonzero(masses >= least)
    slots = np.full(n_codes, -1)
    slots[frequent] = np.arange(len(frequent))
    n_slots = len(frequent)
    rare = (masses > 0.0) & (slots < 0)
    if masses[rare].sum() >= least:
        slots[rare] = n_slots
        n_slots += 1
    if n_slots == 2 and not (slots[masses > 0.0] < 0).any():
        n_slots = 1  # one column tells two levels apart; slot 1 is now that of zeros
    in_slots = slots >= 0
    shares = np.bincount(slots[in_slots], weights=masses[in_slots], minlength=n_slots + 1)
    ratios = np.empty(((1 + N_FOLDS) * n_codes, 0))
    if many and n_classes:
        ratios = _cross_fitted_ratios(own, n_codes, codes, weights, folds, n_classes)
    return CategoryEncoding(column, slots, shares[:n_slots].astype(np.float64) / total, ratios)


def _cross_fitted_ratios(
    levels: IntArray,
    n_levels: int,
    codes: IntArray,
    weights: FloatArray,
    folds: IntArray,
    n_classes: int,
) -> FloatArray:
    """Compute log ratios from all samples, then without each fold: (9 n_levels, n_ratios)."""
    of_class = np.bincount(codes, weights=weights, minlength=n_classes)
    shown = np.sort(np.argsort(-of_class, kind="stable")[:MAX_RATIOS])
    shape = N_FOLDS, n_levels
    cells = np.ravel_multi_index((folds, levels), shape)

    def count(some: BoolArray) -> FloatArray:
        found = np.bincount(cells, weights=weights * some, minlength=shape[0] * n_levels)
        return found.astype(np.float64).reshape(shape)

    counts = np.stack([*(count(codes == k) for k in shown), count(codes >= 0)], axis=2)
    total = counts.sum(axis=0)
    found = np.concatenate([_log_ratios(total - left_out) for left_out in (0.0, *counts)])
    return found[..., 1:] - found[..., :1] if n_classes == 2 else found


def _log_ratios(counts: FloatArray) -> FloatArray:
    """Compute log ratios of smoothed class frequencies, by level, to those of all samples.

    The last column counts all classes.
    """
    counts = np.maximum(counts, 0.0)  # differences of sums may be rounded
    in_all = counts.sum(axis=0)
    prior = (in_all[:-1] + 1.0) / (in_all[-1] + len(in_all) - 1.0)
    smoothed = (counts[:, :-1] + PRIOR_WEIGHT * prior) / (counts[:, -1:] + PRIOR_WEIGHT)
    ratios: FloatArray = np.log(smoothed / prior)
    return ratios


def _codes(cells: FloatArray, n_levels: int) -> IntArray:
    """Return the codes of levels; `n_levels` for a gap, and one more for a level not seen in training."""
    gaps = np.isnan(cells)
    codes = np.where(gaps, n_levels, cells).astype(np.int64)
    codes[~gaps & ((codes < 0) | (codes >= n_levels))] = n_levels + 1
    return codes
