"""The paper's protocol, its runs and their journal."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from popf import OPFClassifier, PlattOPFClassifier
from popf.datasets.registry import RECORDS
from popf.experiment import JournalError, protocol, reproduce, run, table
from popf.experiment.protocol import Protocol, choose_methods, definition, own_dataset, seeded
from popf.experiment.tables import ACCURACY, SECONDS
from popf.metrics import opf_accuracy_score
from strategies import blobs

# The paper's own numbers

PAPER_METHODS = ("OPF", "P-OPF-BA", "P-OPF-FFA", "P-OPF-PSO", "P-OPF-NM")


def test_the_papers_tables_are_complete():
    for printed in (ACCURACY, SECONDS):
        assert list(printed) == [name for name, record in RECORDS.items() if record.in_paper]
        assert all(tuple(row) == PAPER_METHODS for row in printed.values())
    # What the paper's text says about its own table.
    bold = {
        method: [name for name, row in ACCURACY.items() if row[method].bold]
        for method in PAPER_METHODS
    }
    assert [len(bold[method]) for method in ("OPF", "P-OPF-PSO", "P-OPF-NM")] == [11, 7, 8]
    assert len({name for method in PAPER_METHODS[1:] for name in bold[method]}) == 9


# Protocol


def test_scaling_is_shown_where_it_matters():
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    alike, unlike = own_dataset("a", (X, y)), own_dataset("b", (X * [1, 1, 9], y))
    constant = own_dataset("c", (np.column_stack([X, np.ones(40)]), y))
    assert Protocol().forms(constant) == ("raw",)
    assert Protocol().forms(unlike) == ("raw", "scaled")
    assert Protocol().forms(alike) == ("raw",)
    assert Protocol(scale=True).forms(alike) == ("scaled",)
    assert Protocol(scale=False).forms(unlike) == ("raw",)


# Runs


def test_every_number_of_a_run_can_be_had_by_hand(small_study):
    X, y = blobs()
    state = small_study.protocol.random_state(2)
    assert len({Protocol(seed=s).random_state(r) for s in range(4) for r in range(20)}) == 80
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, train_size=0.25, stratify=y, random_state=state
    )
    model = PlattOPFClassifier("nelder-mead", random_state=state).fit(X_train, y_train)
    expected = opf_accuracy_score(y_test, model.predict(X_test))
    assert small_study.values("accuracy", "one", "P-OPF-NM")[2] == expected
    positive = model.predict_proba(X_test)[:, 1]
    brier = np.mean((positive - (y_test == model.classes_[1])) ** 2)
    assert small_study.values("brier", "one", "P-OPF-NM")[2] == pytest.approx(brier, rel=1e-12)
    curve = small_study.curves("one", "P-OPF-NM")
    assert curve.shape == (7, 99)
    assert curve[2, 49] == pytest.approx(expected, abs=1e-6)


def test_the_scaled_form_is_standardised_on_the_training_samples(small_study):
    dataset, protocol = small_study.datasets["other"], small_study.protocol
    train, test = protocol.split(dataset, 0)
    model = make_pipeline(StandardScaler(), OPFClassifier()).fit(dataset.X[train], dataset.y[train])
    expected = opf_accuracy_score(dataset.y[test], model.predict(dataset.X[test]))
    assert small_study.values("accuracy", "other", "OPF", "scaled")[0] == expected


def test_what_comes_out_does_not_depend_on_jobs_order_or_company(small_study):
    again = run({"one": blobs()}, ["pso", "newton", "opf"], runs=3, n_jobs=2)
    for name in ("OPF", "P-OPF-Newton"):
        for measure in ("accuracy", "log_loss", "brier", "ece"):
            np.testing.assert_array_equal(
                again.values(measure, "one", name), small_study.values(measure, "one", name)[:3]
            )


class Failing(ClassifierMixin, BaseEstimator):
    """Cannot be fitted to anything."""

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
    assert "ridge" not in table(results, "log_loss").methods
    assert "failing" not in table(results, "accuracy").methods
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


def test_all_methods_take_part_on_more_classes():
    results = run({"iris": load_iris(return_X_y=True)}, ["opf", "nm", "svm", "logistic"], runs=2)
    assert not results.failures()
    for name in results.methods:
        assert results.values("accuracy", "iris", name).min() > 0.8
        assert np.isfinite(results.values("log_loss", "iris", name)).all() == (name != "OPF")


def test_methods_are_chosen_by_several_names_and_unknown_ones_are_answered_with_the_nearest():
    assert tuple(choose_methods(None))[:5] == PAPER_METHODS
    chosen = choose_methods(["Bat", "P-OPF-ffa", "nelder-mead"])
    assert list(chosen) == ["P-OPF-BA", "P-OPF-FFA", "P-OPF-NM"]
    assert repr(chosen["P-OPF-BA"].solver) == "Bat()"
    with pytest.raises(ValueError, match="there is no method 'newtn'; did you mean newton"):
        choose_methods(["newtn"])


def classes_of(*counts):
    """A dataset with so many samples of each class."""
    y = np.repeat(np.arange(len(counts)), counts)
    return {"a": (np.arange(len(y), dtype=float)[:, np.newaxis], y)}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"runs": 0}, "`runs` is 0"),
        ({"seed": -1}, "`seed` is -1"),
        ({"train_size": 1.0}, "`train_size` must be above 0 and below 1, not 1.0"),
        ({"train_size": "half"}, "`train_size` must be above 0 and below 1, not 'half'"),
        ({"scale": "yes"}, "`scale` is 'yes'"),
        ({"datasets": classes_of(50, 1)}, "a: .* only 1 of class 1"),
        ({"datasets": classes_of(50, 2), "train_size": 0.1}, "a: .* only 2 of class 1"),
        ({"datasets": classes_of(50, 2), "train_size": 0.9}, "a: .* only 2 of class 1"),
        ({"datasets": classes_of(4, 4), "train_size": 0.1}, "split with `train_size=0.1`"),
        ({"datasets": classes_of(2)}, "dataset 'a' has 1 class"),
        ({"datasets": {}}, "no dataset to run"),
        ({"datasets": ["hart"]}, "did you mean heart"),
        ({"datasets": {"a": [1, 2, 3]}}, "must be a pair"),
        ({"datasets": {"a": ([[1.0], [np.nan]], [0, 1])}}, "'a' has missing .* in row 2"),
        ({"methods": {}}, "no method to run"),
        ({"methods": {"x": OPFClassifier}}, "such as OPFClassifier"),
        ({"methods": {"x": 3}}, "not a scikit-learn classifier"),
    ],
)
def test_bad_input_is_refused_with_the_name_before_any_work(change, words, tmp_path):
    study = {"datasets": {"a": blobs()}, "methods": ["opf"], "journal": tmp_path / "j", **change}
    with pytest.raises((ValueError, TypeError), match=words):
        run(**study)
    assert not (tmp_path / "j").exists()


def test_a_definition_tells_everything_and_no_addresses():
    model = make_pipeline(StandardScaler(), OPFClassifier(metric=lambda a, b: 0.0))
    text = definition(model)
    assert "StandardScaler(" in text
    assert "algorithm='auto'" in text
    assert "0x" not in text


# The journal of a study


def test_a_study_is_gone_on_with_and_extended(tmp_path):
    journal = tmp_path / "journal.jsonl"
    run({"one": blobs()}, ["opf"], runs=2, journal=journal)
    said = []
    run({"one": blobs()}, ["opf"], runs=3, journal=journal, say=said.append)
    assert said == [f"2 of 3 runs are already in {journal}."]
    more = run({"one": blobs()}, ["opf", "nm"], runs=3, journal=journal)
    whole = run({"one": blobs()}, ["opf", "nm"], runs=3)
    assert table(more, "accuracy").csv() == table(whole, "accuracy").csv()
    assert table(more, "log_loss").csv() == table(whole, "log_loss").csv()
    records = [json.loads(line) for line in journal.read_text().splitlines()]
    assert sum("method" in entry for entry in records) == 6


def test_a_journal_of_other_settings_is_refused(tmp_path):
    study = {"datasets": {"one": blobs()}, "methods": {"OPF": OPFClassifier()}, "runs": 1}
    run(**study, journal=tmp_path / "j")
    for changed, words in [
        ({"seed": 1, "train_size": 0.5}, "`seed` was 0, now 1; `train_size` was 0.25, now 0.5"),
        ({"datasets": {"one": blobs(seed=9)}}, "dataset one has changed"),
        ({"methods": {"OPF": OPFClassifier(metric="manhattan")}}, "method OPF was"),
    ]:
        with pytest.raises(JournalError, match=words):
            run(**{**study, **changed}, journal=tmp_path / "j")


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """No network, and neither files nor a cache."""

    def fail(*_, **__):
        raise OSError("no network")

    monkeypatch.delenv("POPF_DATA", raising=False)
    monkeypatch.setenv("POPF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("urllib.request.urlopen", fail)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", fail)


@pytest.mark.usefixtures("offline")
def test_without_a_network_a_study_runs_on_what_there_is_and_says_what_is_missing():
    said = []
    found = run(["heart", "liver", "diabetes"], ["opf"], runs=1, scale=False, say=said.append)
    assert list(found.datasets) == ["liver"]
    (sentence,) = said
    assert sentence.startswith(
        "Without data, and left out: heart, diabetes.\nheart is not available"
    )
    assert "POPF_DATA" in sentence
    with pytest.raises(
        FileNotFoundError, match=r"left out: heart\.[\s\S]*here: .*liver.*synthetic0"
    ):
        run(["heart"], ["opf"], runs=1)


@pytest.mark.parametrize("name", [r"$\frac{39$", "caf\udce9", "a/b"])
def test_no_name_of_a_dataset_costs_the_report(tmp_path, name):
    study = {"datasets": {name: blobs()}, "methods": ["opf", "newton", "pooled"], "runs": 2}
    reproduce(tmp_path, **study, figures=True)
    assert (tmp_path / "report.html").read_text(encoding="utf-8")


def test_fresh_puts_the_old_journal_aside(tmp_path):
    study = {"datasets": {"one": blobs()}, "methods": ["opf"], "runs": 1, "figures": False}
    reproduce(tmp_path, **study)
    old = (tmp_path / "journal.jsonl").read_bytes()
    reproduce(tmp_path, **study, seed=5, fresh=True)
    assert (tmp_path / "journal.jsonl.old").read_bytes() == old


# Times


USUAL, ONCE = 1.0, 30.0


class Compiling(ClassifierMixin, BaseEstimator):
    """Takes its usual time by the clock of `world`, and more when it first works on some splits."""

    world = SimpleNamespace()

    def fit(self, X, y):
        split = X[0].tolist()
        if split not in self.world.seen:
            self.world.now += ONCE if len(self.world.seen) in self.world.slow else 0.0
            self.world.seen.append(split)
        self.world.now += USUAL
        self.world.fits += 1
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        self.world.now += USUAL
        return np.resize(self.classes_, len(X))


@pytest.mark.parametrize("slow", [(0,), (1,), (0, 1), (2, 4)])
def test_a_split_that_is_the_first_to_compile_shows_in_no_time(monkeypatch, slow):
    world = SimpleNamespace(now=0.0, seen=[], slow=slow, fits=0)
    monkeypatch.setattr(Compiling, "world", world)
    monkeypatch.setattr(protocol, "time", SimpleNamespace(perf_counter=lambda: world.now))
    monkeypatch.setattr(protocol, "_fastest", {})
    results = run({"one": blobs()}, {"compiling": Compiling()}, runs=5, scale=False)
    assert world.now > ONCE * len(slow)  # so it has happened
    np.testing.assert_allclose(results.values("train_seconds", "one", "compiling"), USUAL)
    np.testing.assert_allclose(results.values("test_seconds", "one", "compiling"), USUAL)
    # Besides those, only the first run is done again: it has nothing to be compared with.
    assert world.fits == 5 + len({0, *slow})
