"""The encoding of tables as a transformer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from popf.engine.structures import FloatArray, IntArray
from popf.forest.validation import check_any_weight, check_weights, to_host
from popf.probability.columns import Columns, names_of_features, read_new, read_training
from popf.state import Part, StateMixin

if TYPE_CHECKING:
    from popf.probability.encoding import FittedTable


class TableEncoder(StateMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn a table with text, categories, dates and gaps into numbers.

    `POPFClassifier` does the same by itself. Use this transformer before other estimators.

    - **Numbers**: a gap gets the median; a column of flags is added if there are at least three gaps.
    - **Categories** (text, categorical dtypes, and `categorical_features`): a column of 0 and 1 for each level,
      one for two levels; levels of fewer than three rows share one. A gap is a level.
    - **Categories of more than 20 levels**: columns for levels with at least a 20th of the rows and, if there
      are classes, the smoothed log ratio of the class frequencies of the level. In `fit_transform` it is
      cross-fitted, so that no row sees its own label.
    - **Dates** (also as text, such as 2024-05-31 or 5/31/2024): seconds since 1970, and sine and cosine of the
      part of the year, week and day, as far as they vary.

    Levels that were not seen in `fit` become the means of their columns, and gaps in columns that had none the
    median. With more than 50,000 rows, everything is fitted to a part of them.

    Parameters
    ----------
    categorical_features : "from_dtype" or array-like, default="from_dtype"
        Names, indices or a mask of columns of numbers that are categories. Columns of text and of a categorical
        dtype always are.

    Attributes
    ----------
    owners_ : ndarray of int of shape (n_features_out,)
        The input column from which each output column comes.
    table_ : FittedTable
        The kinds and levels of the columns, and how they become numbers.
    n_features_in_, feature_names_in_
        As usual.

    Examples
    --------
    >>> import pandas
    >>> from popf import TableEncoder
    >>> frame = pandas.DataFrame({"size": [1.0, None, 3.0] * 3, "sex": ["f", "m", "f"] * 3})
    >>> encoder = TableEncoder().set_output(transform="pandas")
    >>> encoder.fit_transform(frame)[:3]
       size  size is missing  sex = f
    0   1.0              0.0      1.0
    1   2.0              1.0      0.0
    2   3.0              0.0      1.0
    """

    table_: Annotated[FittedTable, Part("popf.probability.encoding.FittedTable")]

    def __init__(self, categorical_features: Any = "from_dtype") -> None:
        self.categorical_features = categorical_features

    def fit(
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the encoding.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), default=None
            Class labels; log ratios need them. Numbers that are no classes are ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            A row of weight 2 counts as two rows.

        Returns
        -------
        self : TableEncoder
        """
        self._fit(X, y, sample_weight)
        return self

    def fit_transform(
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Any:
        """Fit the encoding and encode the same rows, with cross-fitted log ratios.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        ndarray or DataFrame of shape (n_samples, n_features_out)
        """
        matrix, folds = self._fit(X, y, sample_weight)
        return self.table_.encoding.apply(matrix, folds)

    def transform(self, X: Any) -> FloatArray:
        """Encode rows.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Columns of a DataFrame are found by name.

        Returns
        -------
        ndarray or DataFrame of shape (n_samples, n_features_out)
        """
        check_is_fitted(self)
        return self.table_.encode(read_new(self, X, self.table_.columns))

    def inverse_transform(self, Z: ArrayLike) -> NDArray[Any]:
        """Return encoded rows in the values of the table; None for gaps and rare levels.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_features_out)

        Returns
        -------
        ndarray of object of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        return self.table_.decode(np.asarray(Z, dtype=np.float64))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Name the output columns, such as ``island = Torgersen``.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Ignored; the names are those seen in `fit`.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        return np.array(self.table_.encoding.names(self.table_.columns), dtype=object)

    @property
    def owners_(self) -> IntArray:
        """The input column from which each output column comes."""
        if "table_" not in self.__dict__:
            raise AttributeError("only available after fit.")
        return self.table_.encoding.owners

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> tuple[FloatArray, IntArray]:
        """Fit; return the matrix of all rows, and their folds, -1 for rows that nothing is fitted to."""
        from popf.probability.encoding import fit_table
        from popf.probability.folds import canonical_samples

        matrix, columns = read_training(X, self.categorical_features)
        found: FloatArray = validate_data(
            self, to_host(matrix), dtype=np.float64, order="C", ensure_all_finite="allow-nan"
        )
        if columns is not None:
            validate_data(self, X, skip_check_array=True)  # sets the names of the features
        else:
            columns = Columns.of_numbers(names_of_features(self))
        weights = _check_sample_weight(sample_weight, found, dtype=np.float64)
        check_weights(weights)
        rows = np.flatnonzero(weights)
        check_any_weight(len(rows))
        codes, classes = np.zeros(len(found), np.int64), False
        if y is not None:
            labels = column_or_1d(y)
            check_consistent_length(found, labels)
            classes = type_of_target(labels) in ("binary", "multiclass")
            if classes:
                codes = np.unique(labels, return_inverse=True)[1]
        canonical = canonical_samples(found[rows], codes[rows], weights[rows])
        table = fit_table(columns, canonical, classes)
        folds = np.full(len(found), -1)
        folds[rows] = table.folds
        self.table_ = table._replace(folds=np.empty(0, np.int64))  # of no use later
        return found, folds

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
