"""From the columns of a table to the numbers that a forest sees, and back."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from popf.engine.structures import FloatArray, IntArray
from popf.forest.state import LARGEST, Fields, read_features
from popf.probability.features import weighted_quantile

#: What may be done about missing numbers.
MISSING = ("refuse", "median", "mean")
#: What stands for a missing text, which is a category of its own; no cell of a table holds it.
NO_TEXT = ""


class TablePreparation(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fill in missing cells, standardise numbers, and encode categories as columns of 0 and 1.

    A row of weight 2 counts as two rows in every step. All that is fitted are arrays.

    Parameters
    ----------
    numbers, categories : sequence of str
        The columns.
    missing : {"refuse", "median", "mean"}, default="refuse"
        What replaces missing numbers; ``"refuse"`` replaces none. A missing text is a category of its own.
    scale : bool, default=True
        Whether to standardise numbers.

    Attributes
    ----------
    fill_numbers_, mean_, scale_ : ndarray of shape (n_numbers,)
        What replaces missing numbers, what is subtracted, and what the rest is divided by.
    known_, n_known_ : ndarray of str, ndarray of int
        The sorted values of one categorical column after the other, empty for missing; how many each has.
    rows_ : ndarray of int of shape (n_rows,)
        The index of the frame that it was fitted on: the rows of the file.
    """

    def __init__(
        self,
        numbers: Any = (),
        categories: Any = (),
        *,
        missing: str = "refuse",
        scale: bool = True,
    ) -> None:
        self.numbers = numbers
        self.categories = categories
        self.missing = missing
        self.scale = scale

    def fit(self, X: Any, y: Any = None, sample_weight: FloatArray | None = None) -> Self:
        """Learn from the rows of a DataFrame, of which no column is empty; weights are positive."""
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        self.feature_names_in_ = np.array([str(name) for name in X.columns], dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        self.rows_ = np.asarray(X.index, dtype=np.int64)

        n_numbers = len(self.numbers)
        cells = self._numbers(X)
        self.fill_numbers_ = np.zeros(n_numbers)
        if self.missing != "refuse":
            for column, values in enumerate(cells.T):
                present = ~np.isnan(values)
                self.fill_numbers_[column] = (
                    np.average(values[present], weights=weights[present])
                    if self.missing == "mean"
                    else weighted_quantile(values[present, None], weights[present], 0.5)[0]
                )
        self.mean_, self.scale_ = np.zeros(n_numbers), np.ones(n_numbers)
        if self.scale and n_numbers:
            # Only shares matter here; a sum of weights far from the number of rows would spoil the scaler's
            # test for constant columns, which takes the sum for that number.
            shares = None if sample_weight is None else weights / weights.mean()
            scaler = StandardScaler().fit(self._filled(cells), sample_weight=shares)
            self.mean_, self.scale_ = scaler.mean_, scaler.scale_

        known = [np.unique(_texts(X[name]).astype(str)) for name in self.categories]
        self.known_ = np.concatenate(known) if known else np.array([], dtype=str)
        self.n_known_ = np.array([len(words) for words in known], dtype=np.int64)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Prepare rows; a category never seen in training becomes zeros."""
        check_is_fitted(self)
        blocks = [(self._filled(self._numbers(X)) - self.mean_) / self.scale_]
        for codes, known in zip(self._codes(X), self._known_by_column(), strict=True):
            blocks.append((codes[:, None] == np.arange(len(known))).astype(np.float64))
        return np.hstack(blocks)

    def inverse_transform(self, Z: FloatArray) -> NDArray[Any]:
        """Return prepared rows in the units of the table, columns as in `feature_names_in_`.

        Numbers that were filled in are shown as filled in; None stands for a missing text, and for a category
        never seen in training.
        """
        n = len(self.numbers)
        columns = dict(zip(self.numbers, (Z[:, :n] * self.scale_ + self.mean_).T, strict=True))
        start = n
        for name, known in zip(self.categories, self._known_by_column(), strict=True):
            block = Z[:, start : start + len(known)]
            words = known.astype(object)[block.argmax(axis=1)]
            columns[name] = np.where(block.any(axis=1) & (words != NO_TEXT), words, None)
            start += len(known)
        return np.column_stack([columns[name].astype(object) for name in self.feature_names_in_])

    def owners(self) -> list[str]:
        """Name the column of the table that each prepared column comes from."""
        repeated = np.repeat(np.array(self.categories, dtype=object), self.n_known_)
        return [*self.numbers, *repeated.tolist()]

    def count_unknown(self, X: Any) -> dict[str, int]:
        """Count the rows with a category never seen in training, by column, where there are any."""
        counts = {
            name: int((codes < 0).sum())
            for name, codes in zip(self.categories, self._codes(X), strict=True)
        }
        return {name: n for name, n in counts.items() if n}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "mean_" in state:  # fitted
            state = {**state, **_fitted_values(Fields(state, type(self).__name__))}
        super().__setstate__(state)

    def _numbers(self, X: Any) -> FloatArray:
        numbers: FloatArray = X[list(self.numbers)].to_numpy(dtype=np.float64)
        return numbers

    def _filled(self, cells: FloatArray) -> FloatArray:
        if self.missing == "refuse":
            return cells
        return np.where(np.isnan(cells), self.fill_numbers_, cells)

    def _codes(self, X: Any) -> list[IntArray]:
        """Return the position of each category among those of its column, -1 for one never seen."""
        import pandas

        return [
            pandas.Index(known.astype(object)).get_indexer(_texts(X[name]))
            for name, known in zip(self.categories, self._known_by_column(), strict=True)
        ]

    def _known_by_column(self) -> list[NDArray[Any]]:
        return np.split(self.known_, np.cumsum(self.n_known_))[:-1]


def _fitted_values(fields: Fields) -> dict[str, Any]:
    """Read what was fitted from a state that anybody may have written; see `popf.forest.state`."""
    fields.choice("missing", MISSING)
    values = read_features(fields)
    names = [*fields.value("numbers"), *fields.value("categories")]
    if sorted(names) != sorted(values["feature_names_in_"].tolist()):
        raise fields.refuse("numbers", "those of the features that are not categories")
    n_numbers, n_categorical = len(fields.value("numbers")), len(fields.value("categories"))
    for name, low in (("fill_numbers_", -LARGEST), ("mean_", -LARGEST), ("scale_", 1e-300)):
        values[name] = fields.floats(name, (n_numbers,), low, LARGEST)
    values["n_known_"] = n_known = fields.integers("n_known_", (n_categorical,), 1, 2**31)
    values["known_"] = known = fields.texts("known_", (int(n_known.sum()),))
    for words in np.split(known, np.cumsum(n_known)):
        if len(set(words.tolist())) != len(words):
            raise fields.refuse("known_", "different values in every column")
    values["rows_"] = fields.integers("rows_", (None,), 0, 2**62)
    return values


def _texts(column: Any) -> Any:
    """Put the sign for a missing text where there is none."""
    return column.astype(object).where(column.notna(), NO_TEXT).to_numpy(dtype=object)
