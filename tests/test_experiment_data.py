"""The paper's protocol, reduced, on its public data where they are at hand."""

import os
from pathlib import Path

import pytest

from popf.experiment import paper, run
from popf.experiment.tables import measure_table

PUBLIC = (
    *("australian", "breast_cancer", "colon_cancer", "diabetes", "fourclass", "heart"),
    *("ionosphere", "ionosphere_scale", "liver"),
)


@pytest.fixture(scope="module")
def results():
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("POPF_DATA", beside))
    if not folder.is_dir():
        pytest.skip("the paper's public data are not here: set POPF_DATA to their folder")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POPF_DATA", str(folder))
        return {
            scale: run(PUBLIC, ["opf", "nm", "soft"], runs=4, scale=scale)
            for scale in (True, False)
        }


def mean(results, measure, dataset, method, form):
    return results[form == "scaled"].values(measure, dataset, method, form).mean()


@pytest.mark.parametrize("form", ["raw", "scaled"])
def test_fourclass_is_easy_whatever_the_paper_prints(results, form):
    assert mean(results, "accuracy", "fourclass", "OPF", form) > 0.97
    assert mean(results, "accuracy", "fourclass", "P-OPF-NM", form) > 0.97
    assert paper.printed("accuracy", "fourclass", "OPF").mean < 51
    row = next(
        row for row in measure_table(results[form == "scaled"], "accuracy").rows
        if row.dataset == "fourclass"
    )  # fmt: skip
    assert row.printed["OPF"].flagged


def test_breast_cancer_scaled(results):
    assert mean(results, "accuracy", "breast_cancer", "OPF", "scaled") > 0.92


@pytest.mark.parametrize("dataset", PUBLIC)
def test_the_papers_method_has_the_accuracy_of_its_forest(results, dataset):
    forest = mean(results, "accuracy", dataset, "OPF", "scaled")
    assert mean(results, "accuracy", dataset, "P-OPF-NM", "scaled") == pytest.approx(
        forest, abs=0.01
    )


@pytest.mark.parametrize("form", ["raw", "scaled"])
@pytest.mark.parametrize("dataset", PUBLIC)
def test_soft_probabilities_are_better_than_the_papers(results, dataset, form):
    soft = mean(results, "log_loss", dataset, "P-OPF-soft", form)
    assert soft < mean(results, "log_loss", dataset, "P-OPF-NM", form)


def test_nothing_failed(results):
    assert results[True].failures() + results[False].failures() == []
