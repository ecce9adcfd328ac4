"""The paper's protocol, reduced, on its public data where they are at hand."""

from functools import cache

import pytest

from popf.experiment import run, table
from popf.experiment.tables import ACCURACY

EMBEDDED = ("breast_cancer", "liver")
ELSEWHERE = ("australian", "diabetes", "fourclass", "heart", "ionosphere")


@pytest.fixture
def paper_data(monkeypatch, public_data):
    monkeypatch.setenv("POPF_DATA", str(public_data))


@cache
def results(dataset, form):
    """Run the protocol on one dataset, once for all tests of a process."""
    found = run([dataset], ["opf", "nm", "pooled"], runs=1, scale=form == "scaled", n_jobs=1)
    assert found.failures() == []
    return found


def mean(measure, dataset, method, form):
    return results(dataset, form).values(measure, dataset, method, form).mean()


@pytest.mark.usefixtures("paper_data")
@pytest.mark.parametrize("form", ["raw", "scaled"])
def test_fourclass_is_easy_whatever_the_paper_prints(form):
    for method in ("OPF", "P-OPF-NM"):
        assert mean("accuracy", "fourclass", method, form) > 0.97
        assert ACCURACY["fourclass"][method].mean < 51
    (row,) = table(results("fourclass", form), "accuracy").rows
    assert row.printed["OPF"].differs


@pytest.mark.parametrize("dataset", [*EMBEDDED, *ELSEWHERE])
def test_the_papers_accuracy_is_its_forests_and_pooled_probabilities_are_better(dataset, request):
    if dataset in ELSEWHERE:
        request.getfixturevalue("paper_data")
    forest = mean("accuracy", dataset, "OPF", "scaled")
    assert mean("accuracy", dataset, "P-OPF-NM", "scaled") == pytest.approx(forest, abs=0.01)
    for form in ("raw", "scaled"):
        pooled = mean("log_loss", dataset, "P-OPF-pooled", form)
        assert pooled < mean("log_loss", dataset, "P-OPF-NM", form), form
