"""Tables with what is bold by the signed-rank test, figures and the report of a study's results."""

import itertools
import re

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import rankdata, wilcoxon

from popf import OPFClassifier
from popf.experiment import methods, reproduce, run, table
from popf.experiment.protocol import IN_WORDS
from popf.experiment.report import write_report
from popf.experiment.results import Summary, best_and_equals, signed_rank_test
from popf.experiment.tables import coin_deviation, differs, implausible_values, signs_of
from strategies import blobs


def test_the_report_is_one_page_that_loads_nothing_and_escapes_all(tmp_path):
    name = "<script>alert('&')</script> | $x_1$"
    mine = {name: OPFClassifier(), "OPF": OPFClassifier()}
    results = reproduce(tmp_path, datasets={name: blobs()}, methods=mine, runs=2)
    text = (tmp_path / "report.html").read_text()
    assert "<script" not in text
    assert all(
        link.startswith(("data:", "#")) for link in re.findall('(?:src|href)="([^"]*)', text)
    )
    assert "\\|" in table(results, "accuracy").markdown()
    assert r"\$x\_1\$" in table(results, "accuracy").latex()
    assert name in table(results, "accuracy").csv()
    assert not [line for line in text.splitlines() if "http://" in line or "https://" in line]


def test_tables_say_what_they_show(small_study):
    made = table(small_study, "accuracy")
    text = made.text(80)
    assert [row.form for row in made.rows] == ["raw", "raw", "scaled"]
    assert max(map(len, text.splitlines())) <= 80
    assert "7 runs" in text
    assert "  scaled" in text
    mean = 100 * small_study.values("accuracy", "one", "OPF").mean()
    deviation = 100 * small_study.values("accuracy", "one", "OPF").std(ddof=1)
    assert f"{mean:.2f} ± {deviation:.2f}" in made.markdown()
    assert f"{mean:.2f} \\pm {deviation:.2f}" in made.latex()
    assert f"{mean:.1f}±" in text
    row = made.csv().splitlines()[1].split(",")
    assert row[:4] == ["one", "raw", "0", "OPF"]
    assert float(row[4]) == pytest.approx(mean)


def test_means_are_over_all_rows(small_study):
    made = table(small_study, "accuracy")
    values = [row.ours["OPF"].mean for row in made.rows]
    assert made.means()["OPF"] == f"{np.mean(values):.2f}"
    made.rows[0].ours.pop("OPF")  # a method without a value in every row has no mean
    assert "OPF" not in made.means()
    assert set(IN_WORDS) == set(methods())


def test_many_columns_are_put_below_each_other():
    wide = {f"a classifier with a long name {k}": OPFClassifier() for k in range(4)}
    made = table(run({"one": blobs()}, wide, runs=2), "accuracy")
    assert max(map(len, made.text(80).splitlines())) <= 80
    assert made.text(80).count("dataset") == 2
    assert made.text(300).count("dataset") == 1


def test_the_papers_values_stand_beside_ours_and_are_flagged(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat([-1, 1], [555, 307])
    X = np.column_stack([y * 5 + rng.normal(size=862), rng.normal(size=862)])
    # A user's own set may have the name; one of another size gets no values of the paper.
    results = run({"fourclass": (X, y), "heart": blobs()}, ["opf", "newton"], runs=6, scale=False)
    made = table(results, "accuracy")
    printed = made.rows[0].printed["OPF"]
    assert printed.text == "50.43 ± 11.89"
    assert printed.differs
    assert printed.bold
    assert not made.rows[1].printed
    assert "*50.4±12!" in made.text(80)
    assert "**50.43 ± 11.89** !" in made.markdown()
    assert "P-OPF-Newton (paper)" not in made.markdown()
    (found,) = implausible_values(results, made)
    assert (found.dataset, found.method, [*found.signs]) == ("fourclass", "OPF", ["spread", "far"])
    assert "6 times" in found.signs["spread"]
    # On the page they stand below ours, so that the table is not twice as wide.
    page = write_report(results, tmp_path, figures=False).read_text()
    heads = page[page.index('id="accuracy"') :].split("</thead>")[0]
    assert heads.count("<th>") == 1 + len(made.methods)
    assert '<small class="paper flag"><strong>50.43 ± 11.89</strong> <span' in page


def test_signs_of_an_implausible_value():
    coin = 100 * coin_deviation(np.array([100, 100]))
    tossed = np.random.default_rng(0).random((20_000, 150)) < 0.5
    halves = (tossed[:, :75].mean(axis=1) + tossed[:, 75:].mean(axis=1)) / 2
    assert coin == pytest.approx(100 * halves.std(), rel=0.02)
    ours = [Summary(60.0, 2.0, 20), Summary(70.0, 2.0, 20)]
    for mean, deviation, beside, signs in [
        (36.69, 36.91, [], ["spread"]),
        (42.78, 5.79, [], ["worse"]),
        (61.0, 2.0, ours, []),
        (65.0, 2.0, ours, ["far"]),
    ]:
        assert [*signs_of(Summary(mean, deviation, 20), beside, coin)] == signs
    assert differs(Summary(50.0, 1.0, 20), Summary(52.0, None, 1))


def test_figures_are_drawn_from_the_results(tmp_path, small_study, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("popf.experiment.report.DPI", 40)  # quicker
    write_report(small_study, tmp_path / "one")
    write_report(small_study, tmp_path / "two")
    names = sorted(path.name for path in (tmp_path / "one" / "figures").iterdir())
    assert names == [f"figure{k}.{kind}" for k in (1, 2) for kind in ("png", "svg")]
    for path in (tmp_path / "one").rglob("*"):
        if path.is_file():
            other = tmp_path / "two" / path.relative_to(tmp_path / "one")
            assert path.read_bytes() == other.read_bytes(), path.name
    assert (tmp_path / "one" / "report.html").read_text().count("data:image/png") == 2
    assert len((tmp_path / "one" / "runs.csv").read_text().splitlines()) == 1 + 3 * 3 * 7


def test_records_as_a_frame(small_study):
    frame = small_study.to_pandas()
    assert len(frame) == len(small_study.records)
    assert frame["accuracy"].between(0, 1).all()


# The signed-rank test


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
    n, positive = 500, rankdata(np.abs(one - other))[one > other].sum()
    deviation = np.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    expected = 2 * ndtr(-abs(positive - n * (n + 1) / 4) / deviation)
    assert signed_rank_test(one, other) == pytest.approx(expected)


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


def test_nothing_is_marked_where_nothing_can_be_significant():
    few, more = (run({"one": blobs()}, ["opf", "nm"], runs=runs) for runs in (5, 6))
    assert not any(cell.bold for cell in few.summaries("accuracy", "one").values())
    assert any(cell.bold for cell in more.summaries("accuracy", "one").values())
    assert "None is marked as best: with fewer than 6 runs" in table(few, "accuracy").text()
    assert "*:" not in table(few, "accuracy").text()


def test_a_table_without_any_method_says_so():
    text = table(run({"one": blobs()}, ["opf"], runs=1), "log_loss").text()
    assert text == "Log loss: predicted by none of these methods."


def test_with_five_runs_nothing_can_be_told_apart():
    assert best_and_equals({"a": np.ones(5), "b": np.zeros(5)}) == {"a", "b"}
    assert best_and_equals({"a": np.ones(6), "b": np.zeros(6)}) == {"a"}
