"""The protocol, its statistics, and what is made of the results."""

import itertools
import json
import logging
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.stats import wilcoxon
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris, make_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from popf import OPFClassifier, POPFClassifier
from popf.experiment import JournalError, Protocol, methods, paper, reproduce, run
from popf.experiment.data import own_dataset
from popf.experiment.doubts import coin_deviation, doubts, signs_of
from popf.experiment.measure import seeded
from popf.experiment.methods import choose_methods, definition
from popf.experiment.protocol import matters
from popf.experiment.render import as_csv, as_latex, as_markdown, as_text, runs_as_csv
from popf.experiment.results import Summary
from popf.experiment.statistics import best_and_equals, signed_rank_test
from popf.experiment.tables import differs, measure_table
from popf.metrics import opf_accuracy_score


def blobs(n=80, seed=0, **more):
    settings = {"n_features": 4, "flip_y": 0.1, "random_state": seed, **more}
    return make_classification(n, **settings)


@pytest.fixture(scope="module")
def small():
    """Two data sets, three methods, seven runs."""
    return run(
        {"one": blobs(), "other": (blobs(60, 1)[0] * [1, 1, 100, 1], blobs(60, 1)[1])},
        ["opf", "nm", "newton"],
        runs=7,
    )


# The paper's own numbers.


def test_the_papers_tables_are_complete():
    for table in (paper.ACCURACY, paper.SECONDS):
        assert tuple(table) == paper.DATASETS
        assert len(table) == 14
        assert all(tuple(row) == paper.METHODS for row in table.values())
    # What the paper's text says about its own table.
    bold = {
        method: [n for n in paper.DATASETS if paper.ACCURACY[n][method].bold]
        for method in paper.METHODS
    }
    assert [len(bold[method]) for method in ("OPF", "P-OPF-PSO", "P-OPF-NM")] == [11, 7, 8]
    assert len({name for method in paper.METHODS[1:] for name in bold[method]}) == 9


# Protocol.


def test_a_split_is_that_of_scikit_learn():
    X, y = blobs()
    data, protocol = own_dataset("mine", (X, y)), Protocol(runs=2, train_size=0.3, seed=4)
    train, test = protocol.split(data, 1)
    state = protocol.random_state(1)
    expected = train_test_split(X, y, train_size=0.3, stratify=y, random_state=state)
    np.testing.assert_array_equal(X[train], expected[0])
    np.testing.assert_array_equal(X[test], expected[1])
    assert not set(train) & set(test)
    assert len(train) + len(test) == len(y)


def test_runs_and_seeds_give_different_splits():
    states = {Protocol(seed=s).random_state(r) for s in range(4) for r in range(20)}
    assert len(states) == 80


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"runs": 0}, "runs is 0"),
        ({"runs": 2.5}, "runs is 2.5"),
        ({"seed": -1}, "seed is -1"),
        ({"train_size": 1.0}, "train_size is 1.0"),
        ({"train_size": 0}, "train_size is 0"),
        ({"train_size": 1.5}, "train_size is 1.5"),
        ({"train_size": "half"}, "train_size is 'half'"),
        ({"scale": "yes"}, "scale is 'yes'"),
    ],
)
def test_a_protocol_that_makes_no_sense_is_refused(settings, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        Protocol(**settings)


@pytest.mark.parametrize(
    ("counts", "train_size", "words"),
    [
        ((50, 1), 0.25, "only 1 of class 1"),
        ((50, 2), 0.1, "leaves no training sample of class 1"),
        ((50, 2), 0.9, "leaves no test sample of class 1"),
        ((4, 4), 0.1, "cannot be split"),
    ],
)
def test_a_class_that_would_be_empty_is_named_before_any_work(counts, train_size, words, tmp_path):
    y = np.repeat([0, 1], counts)
    X = np.arange(len(y), dtype=float)[:, np.newaxis]
    with pytest.raises(ValueError, match=words) as refusal:
        run({"mine": (X, y)}, ["opf"], train_size=train_size, journal=tmp_path / "journal.jsonl")
    assert "mine" in str(refusal.value)
    assert not (tmp_path / "journal.jsonl").exists()


def test_scaling_is_shown_where_it_matters():
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    alike, unlike = own_dataset("a", (X, y)), own_dataset("b", (X * [1, 1, 9], y))
    constant = own_dataset("c", (np.column_stack([X, np.ones(40)]), y))
    assert not matters(alike)
    assert matters(unlike)
    assert not matters(constant)
    assert Protocol().forms(unlike) == ("raw", "scaled")
    assert Protocol().forms(alike) == ("raw",)
    assert Protocol(scale=True).forms(alike) == ("scaled",)
    assert Protocol(scale=False).forms(unlike) == ("raw",)


# Statistics.


def naive_signed_rank(difference):
    """Count all signs."""
    size = np.abs(difference)
    ranks = np.array([(size < s).sum() + (1 + (size == s).sum()) / 2 for s in size])
    observed = ranks[difference > 0].sum()
    sums = [
        ranks[list(signs)].sum() for signs in itertools.product([False, True], repeat=len(ranks))
    ]
    low, high = np.mean(np.array(sums) <= observed), np.mean(np.array(sums) >= observed)
    return min(1.0, 2 * min(low, high))


@pytest.mark.parametrize("seed", range(5))
def test_the_test_is_scipys_where_nothing_ties(seed):
    one, other = np.random.default_rng(seed).normal(size=(2, 20))
    other += 0.3
    expected = wilcoxon(one, other, method="exact").pvalue
    assert signed_rank_test(one, other) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_the_test_counts_all_signs_where_there_are_ties(seed):
    one, other = np.random.default_rng(seed).integers(0, 5, size=(2, 9)) / 32
    difference = (one - other)[one != other]
    assert signed_rank_test(one, other) == pytest.approx(naive_signed_rank(difference), rel=1e-9)


def test_the_test_of_many_pairs_is_the_approximation():
    one, other = np.random.default_rng(0).normal(size=(2, 500))
    expected = wilcoxon(one - other, method="asymptotic").pvalue
    assert signed_rank_test(one, other) == expected


def test_rounding_makes_no_difference():
    one = np.array([0.1, 0.2, 0.3]) + 0.6
    assert signed_rank_test(one, np.array([0.7, 0.8, 0.9])) == 1.0


def test_the_best_and_its_equals_are_bold():
    rng = np.random.default_rng(0)
    base = rng.normal(0.8, 0.01, 20)
    values = {"best": base + 0.05, "equal": base + 0.05 + rng.normal(0, 0.002, 20), "worse": base}
    assert best_and_equals(values) == {"best", "equal"}
    assert best_and_equals(values, larger_is_better=False) == {"worse"}
    assert best_and_equals({"a": np.full(3, np.nan), "b": np.ones(3)}) == {"b"}
    assert best_and_equals({"a": np.full(3, np.nan)}) == set()


def test_with_five_runs_nothing_can_be_told_apart():
    assert best_and_equals({"a": np.ones(5), "b": np.zeros(5)}) == {"a", "b"}
    assert best_and_equals({"a": np.ones(6), "b": np.zeros(6)}) == {"a"}


# Runs.


def test_every_number_of_a_run_can_be_had_by_hand(small):
    X, y = blobs()
    state = small.protocol.random_state(2)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, train_size=0.25, stratify=y, random_state=state
    )
    model = POPFClassifier("paper", solver="nelder-mead", random_state=state).fit(X_train, y_train)
    expected = opf_accuracy_score(y_test, model.predict(X_test))
    assert small.values("accuracy", "one", "P-OPF-NM")[2] == expected
    positive = model.predict_proba(X_test)[:, 1]
    brier = np.mean((positive - (y_test == model.classes_[1])) ** 2)
    assert small.values("brier", "one", "P-OPF-NM")[2] == pytest.approx(brier, rel=1e-12)
    curve = small.curves("one", "P-OPF-NM")
    assert curve.shape == (7, 99)
    assert curve[2, 49] == pytest.approx(expected, abs=1e-6)


def test_the_scaled_form_is_standardised_on_the_training_samples(small):
    X, y = blobs(60, 1)
    X = X * [1, 1, 100, 1]
    state = small.protocol.random_state(0)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, train_size=0.25, stratify=y, random_state=state
    )
    model = make_pipeline(StandardScaler(), OPFClassifier()).fit(X_train, y_train)
    expected = opf_accuracy_score(y_test, model.predict(X_test))
    assert small.values("accuracy", "other", "OPF", "scaled")[0] == expected


def test_what_comes_out_does_not_depend_on_jobs_order_or_company(small):
    again = run({"one": blobs()}, ["pso", "newton", "opf"], runs=3, n_jobs=2)
    for name in ("OPF", "P-OPF-Newton"):
        for measure in ("accuracy", "log_loss", "brier", "ece"):
            np.testing.assert_array_equal(
                again.values(measure, "one", name), small.values(measure, "one", name)[:3]
            )


def test_another_seed_gives_other_numbers(small):
    other = run({"one": blobs()}, ["opf"], runs=7, seed=1)
    assert (other.values("accuracy", "one", "OPF") != small.values("accuracy", "one", "OPF")).any()


class Failing(ClassifierMixin, BaseEstimator):
    """Fails on the data of one shape."""

    def fit(self, X, y):
        raise RuntimeError("it <b>broke</b>")

    def predict(self, X):
        raise AssertionError("not reached")


def test_any_classifier_takes_part(tmp_path):
    mine = {
        "OPF": OPFClassifier(),
        "ridge": RidgeClassifier(),
        "forest of one": make_pipeline(StandardScaler(), LogisticRegression()),
        "failing": Failing(),
        "dummy": DummyClassifier(strategy="uniform"),
    }
    results = reproduce(tmp_path, datasets={"mine": blobs()}, methods=mine, runs=2, figures=False)
    assert np.isfinite(results.values("accuracy", "mine", "ridge")).all()
    assert np.isnan(results.values("log_loss", "mine", "ridge")).all()
    assert np.isfinite(results.values("log_loss", "mine", "forest of one")).all()
    assert np.isnan(results.values("accuracy", "mine", "failing")).all()
    assert results.failures() == [
        "failing failed on mine (raw) in 2 of 2 runs: RuntimeError: it <b>broke</b>"
    ]
    table = measure_table(results, "log_loss")
    assert "ridge" not in table.methods
    assert "failing" not in measure_table(results, "accuracy").methods
    assert "it &lt;b&gt;broke" in (tmp_path / "report.html").read_text()
    # Random numbers that nobody seeded are seeded by the run.
    again = run({"mine": blobs()}, {"dummy": DummyClassifier(strategy="uniform")}, runs=2)
    np.testing.assert_array_equal(
        again.values("accuracy", "mine", "dummy"), results.values("accuracy", "mine", "dummy")
    )


def test_seeds_of_the_user_are_kept():
    assert seeded(DummyClassifier(random_state=3), 8).random_state == 3
    nested = make_pipeline(StandardScaler(), LogisticRegression())
    assert seeded(nested, 8).get_params()["logisticregression__random_state"] == 8


def test_what_is_made_for_two_classes_is_left_out_elsewhere():
    said = []
    results = run({"iris": load_iris(return_X_y=True)}, ["opf", "nm"], runs=2, say=said.append)
    assert said == ["iris has 3 classes; made for two, and left out there: P-OPF-NM."]
    assert not results.failures()
    assert np.isfinite(results.values("accuracy", "iris", "OPF")).all()


def test_the_paper_methods_have_the_papers_parameters():
    made = methods()
    assert list(made)[:5] == list(paper.METHODS)
    assert repr(made["P-OPF-BA"].solver) == "Bat()"
    assert made["P-OPF-soft"].method == "soft"
    assert list(choose_methods(["Bat", "P-OPF-ffa", "nelder-mead"])) == [
        "P-OPF-BA", "P-OPF-FFA", "P-OPF-NM",
    ]  # fmt: skip


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(ValueError, match="there is no method 'newtn'; did you mean newton"):
        choose_methods(["newtn"])
    with pytest.raises(ValueError, match="did you mean heart"):
        run(["hart"], ["opf"])


@pytest.mark.parametrize(
    ("datasets", "wanted", "error", "words"),
    [
        ({}, ["opf"], ValueError, "no data set is left"),
        ({"a": blobs()}, {}, ValueError, "no method is left"),
        ({"a": blobs()}, {"x": OPFClassifier}, TypeError, "make one with"),
        ({"a": blobs()}, {"x": 3}, TypeError, "not a scikit-learn classifier"),
        ({"a": [1, 2, 3]}, ["opf"], TypeError, "must be a pair"),
        (
            {"a": ([[1.0], [np.nan]], [0, 1])},
            ["opf"],
            ValueError,
            "dataset 'a' has missing values .* the first is row 2",
        ),
        ({"a": ([[1.0], [2.0]], [1, 1])}, ["opf"], ValueError, "dataset 'a' has 1 class"),
    ],
)
def test_bad_input_is_refused_with_the_name(datasets, wanted, error, words):
    with pytest.raises(error, match=words):
        run(datasets, wanted, runs=1)


def test_a_definition_tells_everything_and_no_addresses():
    model = make_pipeline(StandardScaler(), OPFClassifier(metric=lambda a, b: 0.0))
    text = definition(model)
    assert "StandardScaler(" in text
    assert "algorithm='auto'" in text
    assert "0x" not in text


# The journal of a study.


def test_a_study_is_gone_on_with_and_extended(tmp_path):
    journal = tmp_path / "journal.jsonl"
    run({"one": blobs()}, ["opf"], runs=2, journal=journal)
    said = []
    run({"one": blobs()}, ["opf"], runs=3, journal=journal, say=said.append)
    assert said == [f"2 of 3 runs are in {journal} already."]
    more = run({"one": blobs()}, ["opf", "nm"], runs=3, journal=journal)
    whole = run({"one": blobs()}, ["opf", "nm"], runs=3)
    assert as_csv(more, "accuracy") == as_csv(whole, "accuracy")
    assert as_csv(more, "log_loss") == as_csv(whole, "log_loss")
    records = [json.loads(line) for line in journal.read_text().splitlines()]
    assert sum("method" in entry for entry in records) == 6


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"seed": 1}, "seed was 0, now 1"),
        ({"train_size": 0.5}, "train_size was 0.25, now 0.5"),
        ({"datasets": {"one": blobs(seed=9)}}, "dataset one has changed"),
        ({"methods": {"OPF": OPFClassifier(metric="manhattan")}}, "method OPF was"),
    ],
)
def test_a_journal_of_other_settings_is_refused(tmp_path, changed, words):
    study = {"datasets": {"one": blobs()}, "methods": {"OPF": OPFClassifier()}, "runs": 1}
    run(**study, journal=tmp_path / "j")
    with pytest.raises(JournalError, match=words):
        run(**{**study, **changed}, journal=tmp_path / "j")


def test_fresh_puts_the_old_journal_aside(tmp_path):
    study = {"datasets": {"one": blobs()}, "methods": ["opf"], "runs": 1, "figures": False}
    reproduce(tmp_path, **study)
    old = (tmp_path / "journal.jsonl").read_bytes()
    reproduce(tmp_path, **study, seed=5, fresh=True)
    assert (tmp_path / "journal.jsonl.old").read_bytes() == old


def test_a_folder_that_cannot_be_written_to_is_found_before_the_work(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="cannot write to the output folder"):
        reproduce(tmp_path / "file" / "out", datasets={"never": None}, runs=1)


# Tables and the report.


class Page(HTMLParser):
    """Collects tags and whatever would be loaded from elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.loaded, self.texts = [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href") and not value.startswith(("data:", "#")):
                self.loaded.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_the_report_is_one_page_that_loads_nothing_and_escapes_all(tmp_path):
    name = "<script>alert('&')</script> | $x_1$"
    mine = {name: OPFClassifier(), "OPF": OPFClassifier()}
    results = reproduce(tmp_path, datasets={name: blobs()}, methods=mine, runs=2)
    text = (tmp_path / "report.html").read_text()
    page = Page()
    page.feed(text)
    assert not page.open
    assert not page.loaded
    assert "script" not in page.open
    assert "<script" not in text
    assert "prefers-color-scheme: dark" in text
    assert "\\|" in as_markdown(measure_table(results, "accuracy"))
    assert r"\$x\_1\$" in as_latex(measure_table(results, "accuracy"))
    assert name in as_csv(results, "accuracy")
    assert not [line for line in text.splitlines() if "http://" in line or "https://" in line]


def test_tables_say_what_they_show(small):
    table = measure_table(small, "accuracy")
    text = as_text(table, width=80)
    assert [row.form for row in table.rows] == ["raw", "raw", "scaled"]
    assert max(map(len, text.splitlines())) <= 80
    assert "7 runs" in text
    assert "  scaled" in text
    mean = 100 * small.values("accuracy", "one", "OPF").mean()
    deviation = 100 * small.values("accuracy", "one", "OPF").std(ddof=1)
    assert f"{mean:.2f} ± {deviation:.2f}" in as_markdown(table)
    assert f"{mean:.2f} \\pm {deviation:.2f}" in as_latex(table)
    assert f"{mean:.1f}±" in text
    row = as_csv(small, "accuracy").splitlines()[1].split(",")
    assert row[:4] == ["one", "raw", "0", "OPF"]
    assert float(row[4]) == pytest.approx(mean)
    assert len(runs_as_csv(small).splitlines()) == 1 + 3 * 3 * 7


def test_colour_adds_codes_and_changes_no_width(small):
    table = measure_table(small, "log_loss")
    plain = as_text(table, width=90, colour=True)
    bare = re.sub(r"\x1b\[\d+m", "", plain)
    assert "\x1b[1m" in plain
    assert "*" not in bare
    assert {len(line) for line in bare.splitlines()[2:6]} == {len(bare.splitlines()[2])}


def test_many_columns_are_put_below_each_other():
    wide = {f"a classifier with a long name {k}": OPFClassifier() for k in range(4)}
    text = as_text(measure_table(run({"one": blobs()}, wide, runs=2), "accuracy"), width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("dataset") == 2


def test_the_papers_values_stand_beside_ours_and_are_flagged():
    rng = np.random.default_rng(0)
    y = np.repeat([-1, 1], [555, 307])
    X = np.column_stack([y * 5 + rng.normal(size=862), rng.normal(size=862)])
    # A user's own set may have the name; one of another size gets no values of the paper.
    results = run({"fourclass": (X, y), "heart": blobs()}, ["opf", "newton"], runs=6, scale=False)
    table = measure_table(results, "accuracy")
    printed = table.rows[0].printed["OPF"]
    assert printed.text == "50.43 ± 11.89"
    assert printed.flagged
    assert printed.bold
    assert not table.rows[1].printed
    assert "50.4±12!" in as_text(table)
    assert "**50.43 ± 11.89** !" in as_markdown(table)
    assert "P-OPF-Newton (paper)" not in as_markdown(table)
    found = doubts(results)
    assert [(doubt.dataset, doubt.method) for doubt in found] == [("fourclass", "OPF")]
    assert found[0].signs == ("spread", "far")
    assert "6 times" in found[0].reasons()[0]


def test_signs_of_doubt():
    coin = 100 * coin_deviation(np.array([100, 100]))
    tossed = np.random.default_rng(0).random((20_000, 150)) < 0.5
    halves = (tossed[:, :75].mean(axis=1) + tossed[:, 75:].mean(axis=1)) / 2
    assert coin == pytest.approx(100 * halves.std(), rel=0.02)
    assert signs_of(paper.Printed(36.69, 36.91), [], coin) == ("spread",)
    assert signs_of(paper.Printed(42.78, 5.79), [], coin) == ("worse",)
    ours = [Summary(0.60, 0.02, 20), Summary(0.70, 0.02, 20)]
    assert signs_of(paper.Printed(61.0, 2.0), ours, coin) == ()
    assert signs_of(paper.Printed(65.0, 2.0), ours, coin) == ("far",)
    assert differs(paper.Printed(50.0, 1.0), Summary(0.52, np.nan, 1), 100.0)


def test_figures_are_drawn_from_the_results(tmp_path, small, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("popf.experiment.report.DPI", 40)  # quicker
    small.write(tmp_path / "one")
    small.write(tmp_path / "two")
    names = sorted(path.name for path in (tmp_path / "one" / "figures").iterdir())
    assert names == [f"figure{k}.{kind}" for k in (1, 2) for kind in ("png", "svg")]
    for path in (tmp_path / "one").rglob("*"):
        if path.is_file():
            other = tmp_path / "two" / path.relative_to(tmp_path / "one")
            assert path.read_bytes() == other.read_bytes(), path.name
    assert (tmp_path / "one" / "report.html").read_text().count("data:image/png") == 2


def test_records_as_a_frame(small):
    frame = small.to_pandas()
    assert len(frame) == len(small.records)
    assert frame["accuracy"].between(0, 1).all()


# Beside opfython.


def test_accuracy_is_that_of_opfython_run_by_run():
    logger = logging.getLogger("opfython")
    logger.addHandler(logging.NullHandler())
    logger.setLevel(logging.WARNING)
    pytest.importorskip("opfython", reason="opfython is not installed: nothing to compare with")
    from opfython.models import SupervisedOPF

    class Theirs(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_, codes = np.unique(y, return_inverse=True)
            self.model_ = SupervisedOPF(distance="euclidean")
            self.model_.fit(X, codes + 1)
            return self

        def predict(self, X):
            return self.classes_[np.array(self.model_.predict(X)) - 1]

    sets = {"plane": blobs(120, 3, n_features=2, n_redundant=0), "space": blobs(100, 5)}
    results = run(sets, {"ours": OPFClassifier(), "theirs": Theirs()}, runs=4)
    assert not results.failures()
    for name, form in results.rows():
        ours = results.values("accuracy", name, "ours", form)
        np.testing.assert_array_equal(ours, results.values("accuracy", name, "theirs", form))
        assert 0.5 < ours.mean() < 1.0
