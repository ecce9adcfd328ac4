"""The classifiers for data frames: popf on the frame as it is, popf on columns encoded by hand, and rivals.

By hand means with scikit-learn's transformers, fitted to the training rows. Numbers: gaps get the median, and a
flag. Dates: days, month, weekday and hour. Text, where a gap is a level: a column per level of at least three
rows; in the second encoding, target means for columns with more than 20 levels.
"""

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
    TargetEncoder,
)

from .contestants import BOOSTING, CONTESTANTS, OURS, PRIOR, BoostingByFolds, catboost, folds, popf

ONE_HOT, TARGET_MEANS = "popf, one-hot by hand", "popf, target means by hand"
#: The better of these is what popf on the frame as it is compares with.
BY_HAND = (ONE_HOT, TARGET_MEANS)
MANY_LEVELS = 20
GAP = "(gap)"


def as_floats(X):
    return X.astype(float)


def as_text(X):
    return X.astype(str).where(X.notna(), GAP).to_numpy(object)


def date_parts(X):
    """Return, for every date, the days since 1970, and the month, weekday and hour."""
    import pandas

    days = [(X[c] - pandas.Timestamp(0)) / pandas.Timedelta(days=1) for c in X]
    parts = [getattr(X[c].dt, part) for c in X for part in ("month", "day_of_week", "hour")]
    return np.column_stack([*days, *parts]).astype(float)


def encoded_by_hand(task, many_levels=np.inf):
    """Make the encoder of a task; columns of text with more than `many_levels` get target means."""
    levels = task.columns.texts
    few = [column for column in levels if levels[column] <= many_levels]
    many = [column for column in levels if levels[column] > many_levels]
    filled = SimpleImputer(strategy="median", add_indicator=True)
    one_hot = OneHotEncoder(
        handle_unknown="ignore", min_frequency=3, drop="if_binary", sparse_output=False
    )
    means = TargetEncoder(cv=folds(task, 5))
    columns = ColumnTransformer(
        [
            (
                "numbers",
                make_pipeline(FunctionTransformer(as_floats), filled),
                task.columns.numbers,
            ),
            ("dates", make_pipeline(FunctionTransformer(date_parts), filled), task.columns.dates),
            ("few", make_pipeline(FunctionTransformer(as_text), one_hot), few),
            ("many", make_pipeline(FunctionTransformer(as_text), means), many),
        ]
    )
    return make_pipeline(columns, VarianceThreshold(), StandardScaler())


def one_hot_by_hand(task):
    return make_pipeline(encoded_by_hand(task), popf(task))


def target_means_by_hand(task):
    if max(task.columns.texts.values(), default=0) <= MANY_LEVELS:
        return None  # one-hot is the same
    return make_pipeline(encoded_by_hand(task, MANY_LEVELS), popf(task))


def logistic(task):
    return make_pipeline(encoded_by_hand(task), LogisticRegression(max_iter=1000))


def native(task, texts):
    """Make an encoder for trees with native categories: text first, and numbers with their gaps."""
    columns = task.columns
    return ColumnTransformer(
        [
            ("texts", texts, list(columns.texts)),
            ("numbers", FunctionTransformer(as_floats), columns.numbers),
            ("dates", FunctionTransformer(date_parts), columns.dates),
        ]
    )


class BoostingWithCategories(BoostingByFolds):
    """LightGBM by folds, with native categories; gaps, and levels of no training row, are missing."""

    sizes = (
        {"num_leaves": 4, "min_child_samples": 5},
        {"num_leaves": 15, "min_child_samples": 20},
        {"num_leaves": 31, "min_child_samples": 20},
    )

    def __init__(self, task):
        super().__init__(task)
        self.settings["categorical_feature"] = list(range(len(task.columns.texts)))
        # With the default, 100, small samples cannot be split by text at all.
        self.settings["min_data_per_group"] = 10
        codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
        self.encoder = native(task, codes)

    def fit(self, X, y):
        return super().fit(self.encoder.fit_transform(X), y)

    def predict_proba(self, X):
        return super().predict_proba(self.encoder.transform(X))


def catboost_with_categories(task):
    categories = list(range(len(task.columns.texts)))
    model = catboost(task).set_params(cat_features=categories)
    return make_pipeline(native(task, FunctionTransformer(as_text)), model)


FRAME_CONTESTANTS = {
    OURS: popf,
    ONE_HOT: one_hot_by_hand,
    TARGET_MEANS: target_means_by_hand,
    BOOSTING: BoostingWithCategories,
    "CatBoost": catboost_with_categories,
    "logistic regression": logistic,
    PRIOR: CONTESTANTS[PRIOR],
}
