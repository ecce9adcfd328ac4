"""Columns that leak the target, constants and duplicates; what drives a model."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from popf import POPFClassifier, TableEncoder
from popf.cli.evaluate import importances_line
from popf.display import ImportancesDisplay
from popf.display.importances import FOREST
from popf.io import describe
from popf.probability.columns import Columns, read_columns
from popf.table_models import open_model
from popf.table_models.cautions import cautions_of, single_column_areas
from table_commands import QUICK, consumers, facts, fitting, printed

N = 400
RNG = np.random.default_rng(1)
RARE = np.random.default_rng(0).random(N) < 0.3


def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"x": rng.normal(size=N) + RARE, "c": rng.choice([*"abc"], N)})


def cautions(frame, y):
    none = np.zeros(frame.shape[1], dtype=bool)
    return cautions_of(*read_columns(frame, list(frame), none), y)


LEAKS = {
    "a number": RARE + RNG.normal(size=N) * 0.1,
    "a range": np.where(RARE, RNG.uniform(-1, 1, N), RNG.choice([-2, 2], N)),
    "a gap": np.where(RARE, np.nan, RNG.normal(size=N)),
    "text": np.where(RARE, RNG.choice([*"pq"], N), RNG.choice([*"rs"], N)),
    "missing text": pd.Series(RNG.choice([*"pq"], N), dtype=object).where(RARE),
}


@pytest.mark.parametrize("kind", LEAKS)
def test_leaks_are_called_out(kind):
    found = cautions(table().assign(leak=LEAKS[kind]), RARE)
    assert list(found.leaks) == ["leak"]
    assert found.leaks["leak"] >= 0.98
    (said,) = found.sentences()
    assert "'leak' alone separates the classes" in said
    assert "Is it known when a prediction is made?" in said


def test_leaks_of_more_classes():
    frame = table()
    y = np.where(frame["c"] == "a", 2, RARE)
    assert list(cautions(frame.assign(leak=y + RNG.normal(size=N) * 0.05), y).leaks) == ["leak"]


def test_what_is_no_leak():
    rng = np.random.default_rng(2)
    frame = table().assign(
        strong=rng.normal(size=N) + 2.5 * RARE,
        ids=[f"row {i}" for i in range(N)],
        pairs=[f"pair {i // 2}" for i in rng.permutation(N)],
        numbers=rng.permutation(N),
    )
    assert cautions(frame, RARE) == ({}, [], [], {})
    few = slice(0, 40)
    assert cautions(frame[few].assign(leak=RARE[few]), RARE[few]).leaks == {}


def test_gaps_in_one_class_only():
    gaps = np.flatnonzero(RARE)[:25]
    frame = table()
    for name, rows in (("two", gaps[:12]), ("one", gaps[:25]), ("by chance", gaps[:9])):
        frame[name] = RNG.normal(size=N)
        frame.loc[rows, name] = np.nan
    frame["both"] = frame["one"].where(frame.index != np.flatnonzero(~RARE)[0])
    assert cautions(frame, RARE).gaps == {"True": ["two", "one"]}
    (said,) = cautions(frame, RARE).sentences()
    assert said.startswith("every row with a gap in 'two', 'one' is of class True. Will that be")


def test_constants_and_duplicates():
    frame = table()
    frame = frame.assign(one=1.0, none=np.nan, again=frame["x"], text=frame["c"], other=-frame["x"])
    found = cautions(frame, RARE)
    assert found.constant == ["one", "none"]
    assert found.duplicates == [("x", "again"), ("c", "text")]
    assert found.sentences() == [
        "the same in all rows: 'one', 'none'.",
        "equal columns: 'x' and 'again', 'c' and 'text'.",
    ]


def test_areas_are_those_of_rows_left_out():
    rng = np.random.default_rng(0)
    level, y = rng.integers(12, size=200), rng.integers(2, size=200)
    columns = Columns.of_numbers(["level"])
    (found,) = single_column_areas(columns, level[:, None].astype(float), y)
    score = []
    for i in range(200):
        others = (np.arange(200) != i) & (level == level[i])
        score.append((y[others].sum() + y.mean()) / (others.sum() + 1.0))
    assert found == pytest.approx(roc_auc_score(y, score), abs=1e-9)


def test_many_columns_take_fewer_rows():
    X = np.random.default_rng(0).normal(size=(300, 20_000))
    y = X[:, 7] > 0
    found = single_column_areas(Columns.of_numbers([str(j) for j in range(20_000)]), X, y * 1)
    assert found.argmax() == 7


def test_the_commands_name_leaks(tmp_path, capsys):
    frame = consumers(120)
    frame["inspected"] = np.where(frame["stolen"] == "yes", "2024-05-01", "")
    frame["same"] = 3
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = fitting(tmp_path / "t.csv", tmp_path / "m.popf", *QUICK)
    said = printed(capsys, *words)
    assert "'inspected' alone separates the classes" in said.err
    assert "--drop inspected" in said.err
    assert "the same in all rows: 'same'" in said.err
    first, second = facts(capsys, *words)["cautions"]
    assert "--drop inspected" in first
    assert "same" in second
    shown = printed(capsys, "info", tmp_path / "m.popf").out
    assert "'inspected' alone separates" in shown
    assert len(describe(tmp_path / "m.popf")["facts"]["table"]["cautions"]) == 2
    assert "'same' is the same in all rows" in printed(capsys, "info", tmp_path / "t.csv").out


def driven():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"noise": rng.normal(size=N), "size": rng.normal(size=N), "zone": rng.choice([*"abcd"], N)}
    )
    y = 2.0 * frame["size"] + 2.0 * (frame["zone"] == "b") + rng.normal(size=N) > 0.5
    return frame, y.to_numpy()


@pytest.fixture(scope="module")
def model():
    frame, y = driven()
    return POPFClassifier().fit(frame[::2], y[::2])


def test_what_drives_a_model(model):
    frame, y = driven()
    split = model.explain_proba(frame[1::2])
    found = split.importances()
    assert list(found) == sorted(found, key=lambda name: -found[name])
    assert [name for name in found if name != "forest"] == ["size", "zone", "noise"]
    assert found["size"] == pytest.approx(np.abs(split.features[:, 1]).mean())
    assert found["forest"] == pytest.approx(np.abs(split.forest).mean())
    own = dict(zip(frame, model.feature_importances_, strict=True))
    assert own == pytest.approx({name: found[name] for name in own}, rel=0.3, abs=0.1)
    many = POPFClassifier().fit(frame, y + 2 * (frame["zone"] == "a"))
    assert many.feature_importances_.shape == (3,)
    assert set(many.explain_proba(frame).importances()) == {"forest", "noise", "size", "zone"}


def test_importances_need_features():
    model = POPFClassifier(metric="precomputed").fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    with pytest.raises(AttributeError, match="no features"):
        _ = model.feature_importances_
    assert not hasattr(POPFClassifier(), "feature_importances_")


def test_bars_of_importances(model):
    figure = pytest.importorskip("matplotlib.figure").Figure
    frame, y = driven()
    display = ImportancesDisplay.from_estimator(model, frame, n_features=2, ax=figure().subplots())
    found = model.explain_proba(frame).importances()
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert labels == ["size", "zone", FOREST]
    widths = [bar.get_width() for bar in display.bars_]
    assert widths == pytest.approx([found["size"], found["zone"], found["forest"]])
    steps = make_pipeline(TableEncoder(), StandardScaler(), POPFClassifier()).fit(frame, y)
    summed = ImportancesDisplay.from_estimator(steps, frame, ax=figure().subplots())
    assert set(summed.importances) == {"size", "zone", "noise", "forest"}


def test_what_hardly_counts_is_left_out():
    assert importances_line({"x": 0.5, "forest": 0.004}).startswith("x 0.50 (")
    assert importances_line({"x": 0.004, "forest": 0.0}).startswith("nothing: no column")


def test_the_commands_tell_what_drives_a_model(tmp_path, capsys):
    consumers(160).to_csv(tmp_path / "t.csv", index=False)
    words = fitting(tmp_path / "t.csv", tmp_path / "m.popf")
    found = facts(capsys, *words)["importances"]
    assert set(found) == {"forest", "demand", "load", "region"}
    assert "driven by" in printed(capsys, *words).out
    evaluated = "evaluate", tmp_path / "m.popf", tmp_path / "t.csv"
    assert set(facts(capsys, *evaluated)["importances"]) == set(found)
    assert printed(capsys, *evaluated).out.splitlines()[1].startswith("driven by ")
    assert open_model(tmp_path / "m.popf").importances(consumers(40)).keys() == found.keys()
