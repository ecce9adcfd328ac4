"""Generated consumers: the features agree with each other, and theft is what was asked for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from popf.datasets import make_energy_theft, make_energy_theft_months
from popf.datasets.stand_ins import HOURS, MINIMUM_CONTRACT, TRANSFORMERS

PROFILES = ("commercial", "industrial")


def columns(bunch):
    return dict(zip(bunch.feature_names, bunch.data.T, strict=True))


def assert_consistent(bunch):
    """What the meter and the contract say must hold together, thief or not."""
    c = columns(bunch)
    assert np.isfinite(bunch.data).all()
    assert (bunch.data > 0).all()
    np.testing.assert_array_equal(
        c["demand_billed"], np.maximum(c["maximum_demand"], c["demand_contracted"])
    )
    assert (c["demand_contracted"] >= MINIMUM_CONTRACT).all()
    assert np.isin(c["transformer_power"], TRANSFORMERS).all()
    assert (c["maximum_demand"] <= c["installed_power"]).all()
    assert (c["maximum_demand"] <= c["transformer_power"]).all()
    assert (c["load_factor"] <= 1.0).all()
    assert (c["power_factor"] < 1.0).all()
    # Active energy from the load factor and the demand, reactive energy from it and the power factor.
    active = c["load_factor"] * c["maximum_demand"] * HOURS
    np.testing.assert_allclose(
        c["reactive_energy"], active * np.tan(np.arccos(c["power_factor"])), rtol=1e-6
    )


@pytest.mark.parametrize("profile", PROFILES)
def test_features_are_physically_consistent(profile):
    @settings(max_examples=25, deadline=None)
    @given(rate=st.floats(0, 1), strength=st.floats(0, 0.95), seed=st.integers(0, 2**32 - 1))
    def check(rate, strength, seed):
        options = {"theft_rate": rate, "strength": strength, "realistic": False}
        options["random_state"] = seed
        bunch = make_energy_theft(profile, n_samples=60, **options)
        assert_consistent(bunch)
        assert (bunch.target == 1).sum() == round(rate * 60)
        assert (bunch.hidden[bunch.target == -1] == 0).all()
        months = make_energy_theft_months(profile, n_consumers=10, n_months=7, **options)
        assert_consistent(months)

    check()


def test_theft_lowers_what_the_meter_says_and_nothing_else():
    # The same seed draws the same consumers; only the thieves' meters differ.
    honest, theft = (
        make_energy_theft(
            n_samples=500, theft_rate=0.3, strength=strength, realistic=False, random_state=7
        )
        for strength in (1e-12, 0.5)
    )
    thief = honest.target == 1
    np.testing.assert_array_equal(honest.target, theft.target)
    before, after = columns(honest), columns(theft)
    for name in ("installed_power", "transformer_power", "demand_contracted"):
        np.testing.assert_array_equal(before[name], after[name])
    demand = after["maximum_demand"] / before["maximum_demand"]
    assert (demand[thief] < 1).all()
    assert (after["load_factor"] <= before["load_factor"] * (1 + 1e-9)).all()
    assert (after["power_factor"][thief] <= before["power_factor"][thief] * (1 + 1e-9)).all()
    active = [c["maximum_demand"] * c["load_factor"] for c in (before, after)]
    np.testing.assert_allclose((active[1] / active[0])[thief], 1 - theft.hidden[thief], rtol=1e-9)


@pytest.mark.parametrize("profile", PROFILES)
def test_without_strength_there_is_nothing_to_see_and_with_it_there_is(profile):
    def separation(strength):
        bunch = make_energy_theft(
            profile,
            n_samples=4000,
            theft_rate=0.5,
            strength=strength,
            realistic=False,
            random_state=1,
        )
        hidden = bunch.hidden[bunch.target == 1]
        assert hidden.mean() == pytest.approx(strength, abs=0.01)
        assert hidden.std() < 0.1
        c = columns(bunch)
        used = c["maximum_demand"] * c["load_factor"] / c["demand_contracted"]
        return roc_auc_score(bunch.target == 1, -used)

    assert separation(0.0) == pytest.approx(0.5, abs=0.03)
    assert separation(0.3) > 0.75
    assert separation(0.6) > 0.95


def test_consumers_turn_to_theft_and_stay_with_it():
    years = make_energy_theft_months(
        n_consumers=80, theft_rate=0.25, strength=0.5, realistic=False, random_state=2
    )
    assert years.data.shape == (80 * 24, 8)
    assert (years.onset >= 0).sum() == 20
    assert years.onset[years.onset >= 0].min() >= 1
    np.testing.assert_array_equal(years.consumer, np.repeat(np.arange(80), 24))
    np.testing.assert_array_equal(years.month, np.tile(np.arange(24), 80))
    onset = years.onset[:, np.newaxis]
    steals = (onset >= 0) & (np.arange(24) >= onset)
    np.testing.assert_array_equal(years.target.reshape(80, 24), np.where(steals, 1, -1))
    by_consumer = years.data.reshape(80, 24, 8)
    # Machines, transformer and contract stay; what is metered moves.
    fixed, demand = by_consumer[:, :, [1, 4, 6]], by_consumer[:, :, 2]
    assert (fixed == fixed[:, :1]).all()
    assert all(len(np.unique(row)) > 12 for row in demand)  # the machines limit some months alike
    thieves = years.onset >= 0
    energy, steals = (demand * by_consumer[:, :, 7])[thieves], steals[thieves]
    drops = energy.mean(axis=1, where=steals) / energy.mean(axis=1, where=~steals)
    assert drops.mean() == pytest.approx(0.5, abs=0.1)


def test_realistic_consumers_are_hard_to_judge_and_have_gaps():
    drawn = make_energy_theft(n_samples=20_000, theft_rate=0.1, as_frame=True, random_state=0)
    frame, theft, hides = drawn.data, drawn.target == 1, drawn.hidden > 0
    assert hides.sum() == 2000
    assert (hides[theft]).all()
    assert 0.05 < 1 - theft.sum() / hides.sum() < 0.11  # inspections that missed
    assert drawn.hidden[theft].std() > 0.2
    energy = frame["maximum_demand"] * frame["load_factor"] / frame["demand_contracted"]
    read = energy.notna()
    assert 0.985 < read.mean() < 0.995
    assert 0.7 < roc_auc_score(theft[read], -energy[read]) < 0.85
    for name in ("activity", "installed_power"):
        gap = frame[name].isna()
        assert 0.03 < gap.mean() < 0.07
        assert theft[gap].mean() > 1.5 * theft.mean()
    rates = frame.assign(theft=theft).groupby("zone")["theft"].mean()
    assert len(rates) == 12
    assert rates.max() > 3 * rates.min()
    plain = make_energy_theft(n_samples=20_000, theft_rate=0.1, random_state=0)
    np.testing.assert_array_equal(plain.data, frame.iloc[:, :8])
    assert plain.feature_names == drawn.feature_names[:8]


def test_a_classifier_finds_realistic_thieves_with_an_area_of_about_085():
    drawn = make_energy_theft(n_samples=6000, theft_rate=0.1, as_frame=True, random_state=0)
    model = HistGradientBoostingClassifier(learning_rate=0.05, max_depth=4, random_state=0)
    X = drawn.data.iloc[:, :8]
    model.fit(X[:3000], drawn.target[:3000])
    area = roc_auc_score(drawn.target[3000:], model.predict_proba(X[3000:])[:, 1])
    assert 0.78 < area < 0.9


def test_realistic_theft_begins_gradually_and_regular_consumers_have_idle_months():
    years = make_energy_theft_months(n_consumers=400, theft_rate=0.5, as_frame=True, random_state=0)
    hidden = years.hidden.reshape(400, 24)
    thieves = years.onset >= 0
    assert (hidden[thieves, years.onset[thieves]] > 0).all()
    assert (hidden[np.arange(24) < np.where(thieves, years.onset, 24)[:, np.newaxis]] == 0).all()
    growth = np.diff(hidden, axis=1)
    assert (growth >= 0).all()
    assert ((growth > 0).sum(axis=1)[thieves] > 1).mean() > 0.5
    found = (years.target.reshape(400, 24) == 1).any(axis=1)
    assert 0.85 < found[thieves].mean() < 1
    demand = years.data["maximum_demand"].to_numpy().reshape(400, 24)[~thieves]
    falls = np.nanmin(demand, axis=1) < 0.6 * np.nanmedian(demand, axis=1)
    assert 0.02 < falls.mean() < 0.25


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"profile": "rural"}, "commercial, industrial, not 'rural'"),
        ({"n_samples": 0}, "n_samples is 0; it must be an integer of at least 1"),
        ({"theft_rate": 1.5}, "theft_rate is 1.5; it must be a finite number from 0 to 1"),
        ({"strength": 1.0}, "strength must be at least 0 and below 1"),
        ({"n_months": 1}, "n_months is 1; it must be an integer of at least 2"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options, words):
    months = {"n_months", "n_consumers"} & set(options)
    with pytest.raises(ValueError, match=words):
        (make_energy_theft_months if months else make_energy_theft)(**options)
