"""The log odds of a sample add up to its probability, for any two classes and behind any pipeline."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from display_examples import MOON, MOONS, new_axes, pooled
from popf import POPFClassifier, TableEncoder
from popf.display import LogOddsDisplay
from popf.display.log_odds import log_odds_of, split_log_odds

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def flowers():
    data = load_iris(as_frame=True)
    y = data.target_names[data.target]
    return POPFClassifier().fit(data.data[::2], y[::2]), data.data[1::2]


def log_odds(model, sample, pos_label=None, against=None):
    return log_odds_of(split_log_odds(model, sample), 0, pos_label, against)


def added(found):
    return found.prior + found.forest + sum(found.features.values())


@pytest.mark.parametrize("pos_label", [0, 1, None])
def test_two_classes_have_the_log_odds_of_the_one_that_is_asked_for(pos_label):
    found = log_odds(pooled(), MOONS[[3]] + 0.1, pos_label)
    code = 1 if pos_label is None else pos_label
    p = pooled().predict_proba(MOONS[[3]] + 0.1)[0, code]
    assert (found.pos_label, found.against) == (code, 1 - code)
    assert found.total == pytest.approx(added(found), abs=1e-12)
    assert expit(found.total) == pytest.approx(p, abs=1e-12) == found.probability
    sizes = [abs(share) for share in found.features.values()]
    assert sizes == sorted(sizes, reverse=True)


def test_more_classes_compare_the_most_probable_two_unless_others_are_named(flowers):
    model, X = flowers
    p = model.predict_proba(X)
    for row in range(0, len(X), 7):
        found = log_odds(model, X.iloc[[row]])
        second, first = np.argsort(p[row])[-2:]
        assert [found.pos_label, found.against] == model.classes_[[first, second]].tolist()
        assert found.total == pytest.approx(added(found), abs=1e-12)
        assert found.total == pytest.approx(np.log(p[row, first] / p[row, second]), abs=1e-9)
        assert found.probability == pytest.approx(p[row, first], abs=1e-12)
    named = log_odds(model, X.iloc[[0]], "virginica", "setosa")
    assert named.total == pytest.approx(np.log(p[0, 2] / p[0, 0]), abs=1e-9)


def test_what_a_pipeline_makes_of_one_column_is_summed():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=80), "kind": rng.choice(["a", "b", "c"], 80)})
    frame.loc[::9, "size"] = np.nan
    y = (frame["size"].fillna(0) + (frame["kind"] == "c") + rng.normal(size=80) > 0.4).to_numpy()
    columns = TableEncoder()
    model = make_pipeline(columns, POPFClassifier()).fit(frame, y)
    split = split_log_odds(model, frame[:5])
    plain = model[-1].explain_proba(columns.transform(frame[:5]))
    assert split.feature_names == ["size", "kind"]
    assert plain.features.shape == (5, 5)  # a flag of gaps, and three kinds
    expected = np.column_stack(
        [plain.features[:, :2].sum(axis=1), plain.features[:, 2:].sum(axis=1)]
    )
    np.testing.assert_allclose(split.features, expected, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(split.total, plain.total)


def test_names_go_through_steps_that_keep_columns_and_come_from_those_that_mix_them():
    frame = pd.DataFrame(MOONS, columns=["east", "north"])
    scaled = make_pipeline(StandardScaler(), POPFClassifier()).fit(frame, MOON)
    assert set(log_odds(scaled, frame[:1]).features) <= {"east", "north"}
    mixed = make_pipeline(PCA(2), POPFClassifier("forest")).fit(frame, MOON)
    assert split_log_odds(mixed, frame[:1]).feature_names == ["pca0", "pca1"]
    unnamed = make_pipeline(StandardScaler(), POPFClassifier("forest")).fit(MOONS, MOON)
    assert split_log_odds(unnamed, MOONS[:1]).feature_names == ["x0", "x1"]


def test_bars_are_the_terms_and_their_sum(flowers):
    model, X = flowers
    display = LogOddsDisplay.from_estimator(model, X.iloc[[40]], n_features=2, ax=new_axes())
    found = display.log_odds
    (first, second), rest = list(found.features)[:2], list(found.features.values())[2:]
    heights = [bar.get_width() for bar in display.bars_]
    named = [found.features[first], found.features[second]]
    assert heights == pytest.approx([found.prior, found.forest, *named, sum(rest), found.total])
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    values = [f"{name} = {X[name].iloc[40]:.5g}" for name in (first, second)]
    assert labels == ["baseline", "forest", *values, "2 other features", "sum"]
    assert display.ax_.get_xlabel() == f"log odds of {found.pos_label} against {found.against}"


def test_a_row_of_a_frame_is_a_sample_with_its_names_and_values(flowers):
    model, X = flowers
    shown = [
        LogOddsDisplay.from_estimator(model, sample, ax=new_axes())
        for sample in (X.iloc[[4]], X.iloc[4])
    ]
    labels = [[text.get_text() for text in one.ax_.get_yticklabels()] for one in shown]
    assert shown[0].log_odds == shown[1].log_odds
    assert labels[0] == labels[1]
    assert any(" = " in label for label in labels[0])
