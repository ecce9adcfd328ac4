"""The report says what scikit-learn and popf compute, shows any word safely, and loads nothing."""

import html
import html.parser
import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    brier_score_loss,
    confusion_matrix,
    log_loss,
    pairwise_distances,
    roc_auc_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import popf
import popf.datasets
from popf import OPFClassifier, POPFClassifier, report
from popf.display import prepare_thresholds
from popf.metrics import expected_calibration_error, opf_accuracy_score
from popf.report import numbers
from popf.report.assembly import Options, gather
from popf.report.contents import as_data, path_summary, sentence, verdict
from popf.report.words import as_json, figure, fixed, plain, safe

HOSTILE = [
    "</script><img src=x onerror=alert(1)>",
    "<!--<script>",
    "\" onmouseover='alert(1)' x=\"",
    "&lt;b&gt; & ]]> \u2028\u2029",
    "a\x00b\x1b[31m",
    "javascript:alert(1)",
    "long " * 300,
    "\u202eright to left",
]


def energy(n=900, seed=3):
    data = popf.datasets.make_energy_theft(n_samples=n, theft_rate=0.2, random_state=seed)
    frame = pd.DataFrame(data.data, columns=data.feature_names)
    return frame, np.where(data.target == 1, "theft", "regular")


@pytest.fixture(scope="module")
def case():
    X, y = energy()
    model = make_pipeline(StandardScaler(), POPFClassifier()).fit(X[:400], y[:400])
    return model, X[400:].reset_index(drop=True), y[400:]


def contents(model, X, y, ids=None, about=None, **options):
    return gather(model, X, y, ids, about, None, Options(**options))


class Elements(html.parser.HTMLParser):
    """The start tags of a page with their attributes, and its text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.words = [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)


def test_scores_are_those_of_scikit_learn_and_popf(case):
    model, X, y = case
    found = contents(*case, positive="theft").quality
    chance, is_theft = model.predict_proba(X)[:, 1], y == "theft"
    assert found.log_loss.value == log_loss(is_theft, chance)
    assert found.brier.value == brier_score_loss(is_theft, chance)
    assert found.auc.value == roc_auc_score(is_theft, chance)
    assert found.error.value == expected_calibration_error(
        is_theft, chance, n_bins=10, kind="binary"
    )
    assert found.prior_log_loss == pytest.approx(log_loss(is_theft, np.full(len(y), found.prior)))
    for score in (found.log_loss, found.brier, found.error, found.auc):
        assert 0 <= score.lower <= score.value <= score.upper


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(5)
    inside = {"brier": 0, "log_loss": 0, "auc": 0}
    # The truth, from very many samples.
    many = rng.beta(0.6, 2.0, 100_000)
    happened = rng.random(len(many)) < many
    truth = {
        "brier": brier_score_loss(happened, many),
        "log_loss": log_loss(happened, many),
        "auc": roc_auc_score(happened, many),
    }
    for _ in range(30):
        chance = rng.beta(0.6, 2.0, 300)
        found = numbers.quality(rng.random(300) < chance, chance)
        for name in inside:
            score = getattr(found, name)
            inside[name] += score.lower <= truth[name] <= score.upper
    assert all(25 <= n <= 30 for n in inside.values()), inside


def test_chance_explains_the_error_of_perfect_probabilities_and_not_of_bad_ones():
    rng = np.random.default_rng(2)
    chance = rng.beta(1.0, 3.0, 4000)
    happened = rng.random(4000) < chance
    good, bad = numbers.quality(happened, chance), numbers.quality(happened, chance**0.5)
    assert good.error.value < 1.3 * good.chance_error
    assert bad.error.value > 3 * bad.chance_error
    assert "too high" in verdict(bad)[0]
    assert "off on average, mostly too low" in verdict(numbers.quality(happened, chance**2))[0]


def test_verdict_says_where_samples_are_few():
    rng = np.random.default_rng(0)
    chance = rng.random(60)
    words = " ".join(verdict(numbers.quality(rng.random(60) < chance, chance)))
    assert "60 samples show little" in words
    chance = rng.beta(0.05, 2.0, 300)
    happened = rng.random(300) < chance
    assert (
        f"Only {happened.sum()} of the samples are so"
        in verdict(numbers.quality(happened, chance))[-1]
    )


def test_verdict_tells_the_useless_and_the_harmful():
    rng = np.random.default_rng(0)
    happened = rng.random(2000) < 0.3
    prior = np.clip(0.3 + 0.01 * rng.standard_normal(2000), 0, 1)
    assert "no surer than" in verdict(numbers.quality(happened, prior))[1]
    worse = np.clip(rng.random(2000), 0.01, 0.99)
    assert "do not use them" in verdict(numbers.quality(happened, worse))[1]


@pytest.mark.parametrize("theta", [0.05, 0.25, 0.5, 0.8, 0.999])
def test_counts_at_a_threshold_are_the_confusion_matrix(case, theta):
    model, X, y = case
    found = contents(*case).decisions
    at = found.nearest(theta)
    assert found.thresholds[at] == theta
    called = np.where(model.predict_proba(X)[:, 1] >= theta, "theft", "regular")
    (passes, alarms), (misses, hits) = confusion_matrix(y, called).tolist()
    assert (found.hits[at], found.alarms[at]) == (hits, alarms)
    assert (found.n_positive - hits, found.n_negative - alarms) == (misses, passes)
    assert found.scores()["accuracy"][at] == pytest.approx(opf_accuracy_score(y, called))


def test_recommended_thresholds_are_those_of_popf(case):
    model, X, y = case
    found = contents(*case).decisions
    chance = model.predict_proba(X)[:, 1]
    for number, (alarm, miss) in list(enumerate(found.costs))[::3]:
        values = prepare_thresholds(
            y, chance, thresholds=found.thresholds, cost_fp=1, cost_fn=miss / alarm
        )
        assert found.thresholds[found.recommended[number]] == values.chosen
        np.testing.assert_allclose(found.mean_cost(number), values.costs["cost"], rtol=1e-12)


def test_costs_of_ones_own_are_on_the_slider(case):
    found = contents(*case, cost_fp=3.0, cost_fn=40.0)
    alarm, miss = found.decisions.costs[found.pair]
    assert miss / alarm == pytest.approx(40 / 3)
    assert found.start == found.decisions.recommended[found.pair]
    ratios = [miss / alarm for alarm, miss in found.decisions.costs]
    assert ratios == sorted(ratios)
    usual = contents(*case, cost_fp=2.0, cost_fn=40.0)
    assert len(usual.decisions.costs) == len(numbers.COSTS)


def test_the_slider_starts_at_the_models_threshold_or_as_told(case):
    model, X, y = case

    def start(**options):
        found = contents(model, X, y, **options)
        return found.decisions.thresholds[found.start]

    assert start() == 0.5
    assert start(threshold=0.12345) == 0.12345
    model.set_params(popfclassifier__threshold=0.3)
    try:
        assert start() == 0.3
        assert start(positive="regular") == 0.7
    finally:
        model.set_params(popfclassifier__threshold=0.5)


def test_the_highest_probabilities_come_first_with_rows_and_ids(case):
    model, X, y = case
    names = [f"C{row}" for row in range(len(y))]
    found = contents(*case, ids={"consumer": names}, top=17)
    chance = model.predict_proba(X)[:, 1]
    rows = np.lexsort([np.arange(len(y)), -chance])[:17]
    assert [person.row for person in found.people] == (rows + 1).tolist()
    assert [person.ids for person in found.people] == [[f"C{row}"] for row in rows]
    assert [person.truth for person in found.people] == y[rows].tolist()
    assert [person.probability for person in found.people] == chance[rows].tolist()


def test_paths_are_those_of_the_forest_in_the_users_units(case):
    model, X, _ = case
    training = energy()[0][:400]
    found = contents(*case, top=30)
    forest = model[-1].opf_
    for person in found.people:
        row = X.iloc[[person.row - 1]]
        (path,) = forest.explain(model[:-1].transform(row))
        view = person.path
        assert (view.label, view.cost, view.n_steps) == (path.label, path.cost, len(path.weights))
        assert view.nodes[0].name == f"training row {path.nodes[0] + 1}"
        assert view.nodes[0].kind == "prototype"
        assert view.nodes[-1].kind == "sample"
        assert [step.length for step in view.steps if step.longest] == [f"{path.cost:.4g}"]
        n_hidden = sum(step.left_out for step in view.steps)
        assert len(view.nodes) + n_hidden == len(path.nodes) + 1
        for name, prototype, *_, own in view.features:
            assert own == figure(row[name].iloc[0])
            assert prototype == figure(training[name].iloc[path.nodes[0]])
        assert f"costs {forest.path_costs_by_class(model[:-1].transform(row)).max():.4g}" in (
            path_summary(found, person)
        )


def test_categories_and_many_features_are_shown_as_they_were():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(300, 15)), columns=[f"f{k}" for k in range(15)])
    y = (X["f0"] + 0.5 * rng.normal(size=300) > 0).astype(int)
    X["region"] = rng.choice(["north", "south"], 300)
    steps = ColumnTransformer(
        [("words", OneHotEncoder(sparse_output=False), ["region"])], remainder=StandardScaler()
    )
    model = make_pipeline(steps, POPFClassifier()).fit(X[:150], y[:150])
    found = contents(model, X[150:].reset_index(drop=True), y[150:])
    assert not found.note
    for person in found.people:
        assert len(person.path.features) == 12
        assert person.path.n_hidden == 4
    cells = {row[-1] for p in found.people for row in p.path.features if row[0] == "region"}
    assert cells <= {"north", "south"}
    assert cells


def test_paths_through_a_linear_map_are_shown_in_the_users_units():
    X, y = energy()
    model = POPFClassifier(linear_map="whitening").fit(X[:300], y[:300])
    found = contents(model, X[300:].reset_index(drop=True), y[300:])
    for person in found.people[:10]:
        training = int(person.path.nodes[0].name.split()[-1]) - 1
        for name, prototype, *_ in person.path.features:
            value = float(prototype.replace(",", ""))
            assert value == pytest.approx(X[name].iloc[training], rel=1e-3)


def test_forests_on_distances_have_paths_without_features():
    X, y = load_breast_cancer(return_X_y=True)
    distances = pairwise_distances(X[200:], X[:200])
    model = POPFClassifier(metric="precomputed").fit(pairwise_distances(X[:200]), y[:200])
    found = contents(model, distances, y[200:])
    assert all(not person.path.features for person in found.people)
    assert report.build(model, distances, y[200:])


def test_what_cannot_be_undone_is_said(case):
    from sklearn.preprocessing import Normalizer

    _, X, y = case
    model = make_pipeline(StandardScaler(), Normalizer(), POPFClassifier()).fit(X[:200], y[:200])
    found = contents(model, X[200:], y[200:])
    assert "cannot be undone" in found.note
    assert {row[1] for row in found.people[0].path.features} == {"–"}


def test_three_classes_are_looked_at_one_against_the_others():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = POPFClassifier().fit(X[::2], names[::2])
    test, labels = X[1:121:2], names[1:121:2]
    found = contents(model, test, labels)
    assert found.event == "virginica"  # the rarest of these rows
    table = model.predict_proba(test)
    assert found.overall.log_loss == pytest.approx(log_loss(labels, table))
    np.testing.assert_array_equal(
        found.overall.matrix, confusion_matrix(labels, model.classes_[table.argmax(1)])
    )
    assert found.quality.brier.value == brier_score_loss(labels == "virginica", table[:, 2])
    page = report.build(model, test, labels, positive="versicolor")
    assert "all others" in page
    assert "Which classes are taken for which" in page


def test_the_page_holds_the_numbers_it_starts_with(case):
    found = contents(*case, cost_fp=1, cost_fn=20)
    page = report.build(*case, cost_fp=1, cost_fn=20)
    at, decisions = found.start, found.decisions
    assert f'<b id="hits">{decisions.hits[at]}</b>' in page
    assert f'<b id="alarms">{decisions.alarms[at]}</b>' in page
    assert html.escape(sentence(found)) in page
    assert f'<dd class="value">{fixed(found.quality.log_loss.value, 3)}</dd>' in page
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert json.loads(data) == json.loads(json.dumps(as_data(found)))


def test_the_same_input_gives_the_same_bytes(case):
    assert report.build(*case) == report.build(*case)
    assert report.build(*case) != report.build(*case, seed=1)


def test_frames_of_any_kind_give_the_same_page(case):
    model, X, y = case
    page = report.build(model, X, y)
    assert report.build(model, pl.DataFrame(X.to_dict("list")), y) == page
    assert report.build(model, X[X.columns[::-1]].assign(more=1), y) == page


def test_the_page_loads_nothing(case):
    page = report.build(*case, ids={"id": range(len(case[2]))})
    for tag, attributes in Elements(page).tags:
        assert tag not in ("img", "iframe", "object", "embed", "base", "form", "audio", "video")
        assert not {"src", "srcset", "style", "action", "data", "background"} & set(attributes), tag
        assert not [name for name in attributes if name.startswith("on")]
        if "href" in attributes:
            assert attributes["href"].startswith(("#", "data:,"))
    # The one address is the name of SVG, which nobody fetches.
    assert set(re.findall(r"https?://[^\s\"'<]+", page)) == {"http://www.w3.org/2000/svg"}
    assert "@import" not in page
    assert "url(" not in page
    assert "\\u003c" not in page.split('id="data"')[0]


def test_the_policy_forbids_requests_and_names_style_and_script_by_their_hash(case):
    import base64
    import hashlib

    page = report.build(*case)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    for tag, name in (("style", "style-src"), ("script", "script-src")):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[name] == f"'sha256-{digest}'"
    assert "connect-src" not in rules
    # The policy stands before anything it should hold for.
    assert page.index("Content-Security-Policy") < page.index("<style>")


@pytest.mark.parametrize("word", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_the_data_holds_is_shown_as_text(word):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 2)), columns=[word, "other"])
    X["words"] = [word, "plain"] * 40
    y = np.where(X["other"] > 0, word + "1", "no")
    if word.startswith("long"):
        y = np.where(X["other"] > 0, "1" + word, "no")
    steps = ColumnTransformer(
        [("words", OneHotEncoder(sparse_output=False), ["words"])], remainder="passthrough"
    )
    model = make_pipeline(steps, POPFClassifier()).fit(X[:40], y[:40])
    test = X[40:].reset_index(drop=True)
    about = {"file": word, "data": word, "target": word, "facts": {word: word}}
    page = report.build(
        model, test, y[40:], ids={word: [word] * 40}, about=about, positive=y[y != "no"][0]
    )
    page.encode()
    found = Elements(page)
    tags = {tag for tag, _ in found.tags}
    assert "img" not in tags
    assert sum(tag == "script" for tag, _ in found.tags) == 2
    assert all(not name.startswith("on") for _, given in found.tags for name in given)
    assert plain(word) in "".join(found.words)
    assert "\x00" not in page
    (data,) = re.findall(r'id="data">(.*?)</script>', page)
    assert json.loads(data)["paths"][0]["features"][0][0] in (plain(word), "words")


@pytest.mark.parametrize("word", [*HOSTILE, "half \ud800"], ids=range(len(HOSTILE) + 1))
def test_words_and_json_cannot_leave_their_place(word):
    assert not set("<>\"'") & set(safe(word))
    text = as_json([word])
    assert not set("<>&") & set(text)
    assert text.isascii()
    assert json.loads(text) == [word]


@pytest.mark.parametrize(("digits", "scale"), [(0, 2), (1, 4), (1, 8), (3, 64)])
def test_fixed_rounds_halves_away_from_zero(digits, scale):
    for number in range(-40, 40):
        value = number / scale  # exact in binary, so that halves are halves
        nearest = float(fixed(value, digits))
        assert abs(nearest - value) <= 0.5 * 10**-digits + 1e-12
        if abs(abs(nearest - value) - 0.5 * 10**-digits) < 1e-15:
            assert abs(nearest) > abs(value)


def test_a_report_of_many_samples_stays_small(case):
    model, X, y = case
    rng = np.random.default_rng(0)
    rows = rng.integers(len(y), size=100_000)
    chance = np.clip(model.predict_proba(X)[rows] + 1e-4 * rng.random((100_000, 1)), 0, 1)
    chance[:, 0] = 1.0 - chance[:, 1]
    page = report.build(model, X.iloc[rows], y[rows], probability=chance)
    assert len(page) < 500_000


def test_writing_is_whole_or_not_at_all(case, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    report.write(path, *case, top=5)
    before = path.read_bytes()
    assert before.decode() == report.build(*case, top=5)
    with pytest.raises(ValueError, match="top=0"):
        report.write(path, *case, top=0)
    monkeypatch.setattr("os.fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(OSError, match="full"):
        report.write(path, *case, top=6)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": ["theft"] * 500}, "all 500 samples are 'theft'"),
        (
            {"y": ["regular"] * 499 + ["fire"]},
            "'fire' in row 500, a label the model has never seen",
        ),
        ({"y": [0, 1] * 250}, "strings and numbers never agree"),
        ({"y": ["theft", "regular"]}, "2 labels, but probabilities of the shape"),
        ({"positive": "fire"}, "positive='fire' is not a class"),
        ({"threshold": 1.0}, "threshold=1.0 must lie between 0 and 1"),
        ({"threshold": "half"}, "threshold='half' must lie"),
        ({"cost_fp": 2.0}, "cost_fn is missing"),
        ({"cost_fp": -1.0, "cost_fn": 1.0}, "cost_fp=-1.0 must be a finite number above 0"),
        ({"top": 0}, "top=0 must be an integer from 1"),
        ({"top": 2.5}, "top=2.5 must be an integer"),
        ({"ids": {"a": [1, 2]}}, r"ids\['a'\] has 2 values for 500 samples"),
        ({"X": pd.DataFrame({"peak": [1.0]})}, "columns that are missing"),
    ],
)
def test_bad_input_is_named(case, change, message):
    model, X, y = case
    given = {"X": X, "y": y, **change}
    with pytest.raises(ValueError, match=message):
        report.build(model, given.pop("X"), given.pop("y"), **given)


def test_other_models_are_refused(case):
    _, X, y = case
    with pytest.raises(ValueError, match="OPFClassifier has no predict_proba"):
        report.build(OPFClassifier().fit(X, y), X, y)
    with pytest.raises(TypeError, match="ends in LogisticRegression"):
        report.build(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y), X, y)


def test_the_model_is_described(case):
    about = {"file": "model.popf", "data": "test.csv", "saved": "2020-01-01", "facts": {"by": "me"}}
    page = report.build(*case, about=about)
    words = " ".join(Elements(page).words)
    for wanted in ("model.popf on test.csv", "soft competition", "StandardScaler", "2020-01-01"):
        assert wanted in words
    assert "none: all as they come" in words
    assert popf.__version__ in words
