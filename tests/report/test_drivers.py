"""What drives a model, in the report."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from popf import PlattOPFClassifier, POPFClassifier, TableEncoder, report
from popf.report.drivers import drivers_of

N = 300


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=N),
            "zone": pd.Series(rng.choice([*"abc"], N), dtype=object).where(rng.random(N) > 0.2),
            "day": pd.date_range("2024-01-01", periods=N),
            "flat": 1.0,
        }
    )
    y = frame["size"] + 1.5 * (frame["zone"] == "b") + rng.normal(size=N) * 0.5 > 0.5
    return frame, np.where(y, "yes", "no")


@pytest.fixture(scope="module")
def model(problem):
    return POPFClassifier().fit(*problem)


def test_bars_and_curves(model, problem):
    found = drivers_of(model, problem[0], 1)
    sizes = model.explain_proba(problem[0]).importances()
    assert found.forest[0] == sizes.pop("forest")
    assert [bar[:2] for bar in found.bars] == [item for item in sizes.items() if item[1] > 0]
    assert found.cautions == ["the same in all rows: 'flat'."]
    size, zone = (
        next(each for each in found.curves if each.name == name) for name in ("size", "zone")
    )
    assert size.places[[0, -1]].tolist() == [0.0, 1.0]
    assert size.probability[-1] - size.probability[0] > 0.5
    assert zone.places is None
    assert sorted(zone.values) == ["a", "b", "c", "missing"]
    assert zone.probability[zone.values.index("b")] == max(zone.probability)
    replaced = problem[0][::3].assign(zone="b")
    assert zone.probability[zone.values.index("b")] == pytest.approx(
        model.predict_proba(replaced)[:, 1].mean(), abs=1e-9
    )


def test_models_in_a_pipeline_and_arrays(problem):
    frame, y = problem
    steps = make_pipeline(TableEncoder(), POPFClassifier()).fit(frame, y)
    found = drivers_of(steps, frame, 0)
    assert {bar[0] for bar in found.bars} <= {*frame}
    assert found.cautions == []
    X = frame[["size", "flat"]].to_numpy()
    found = drivers_of(POPFClassifier().fit(X, y), X, 1)
    assert [bar[0] for bar in found.bars] == ["x0"]
    assert found.curves == []


def test_models_without_contributions(problem):
    frame, y = problem
    X = frame[["size"]]
    assert drivers_of(PlattOPFClassifier(box=None).fit(X, y), X, 1) is None
    D = np.abs(np.subtract.outer(*[frame["size"].to_numpy()] * 2))
    assert drivers_of(POPFClassifier(metric="precomputed").fit(D, y), D, 1) is None


def test_the_page_shows_them(model, problem):
    frame, y = problem
    page = report.build(model, frame, y)
    assert "What drives the model?" in page
    assert "the same in all rows: &#39;flat&#39;." in page
    assert "Mean probability by zone" in page
    facts = {"table": {"cautions": ["'x' alone separates the classes. If not: `drop=['x']`."]}}
    page = report.build(model, frame, y, about={"facts": facts})
    assert "alone separates the classes." in page
    assert "If not" not in page
