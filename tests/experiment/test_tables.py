"""Tables, figures and the report that are made of a study's results."""

from html.parser import HTMLParser

import numpy as np
import pytest

from popf import OPFClassifier
from popf.experiment import paper, reproduce, run, table
from popf.experiment.implausible_values import coin_deviation, implausible_values, signs_of
from popf.experiment.report import write_report
from popf.experiment.results import Summary
from popf.experiment.tables import differs
from small_studies import blobs


class Page(HTMLParser):
    """Checks that tags are closed, and collects whatever would be loaded from elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.loaded = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img", "br", "link"):
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href") and not value.startswith(("data:", "#")):
                self.loaded.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_report_is_one_page_that_loads_nothing_and_escapes_all(tmp_path):
    name = "<script>alert('&')</script> | $x_1$"
    mine = {name: OPFClassifier(), "OPF": OPFClassifier()}
    results = reproduce(tmp_path, datasets={name: blobs()}, methods=mine, runs=2)
    text = (tmp_path / "report.html").read_text()
    page = Page()
    page.feed(text)
    assert not page.open
    assert not page.loaded
    assert "<script" not in text
    assert "prefers-color-scheme: dark" in text
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


def test_many_columns_are_put_below_each_other():
    wide = {f"a classifier with a long name {k}": OPFClassifier() for k in range(4)}
    made = table(run({"one": blobs()}, wide, runs=2), "accuracy")
    assert max(map(len, made.text(80).splitlines())) <= 80
    assert made.text(80).count("dataset") == 2
    assert made.text(300).count("dataset") == 1


def test_the_papers_values_stand_beside_ours_and_are_flagged():
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
    (found,) = implausible_values(results)
    assert (found.dataset, found.method, found.signs) == ("fourclass", "OPF", ("spread", "far"))
    assert "6 times" in found.reasons()[0]


def test_signs_of_an_implausible_value():
    coin = 100 * coin_deviation(np.array([100, 100]))
    tossed = np.random.default_rng(0).random((20_000, 150)) < 0.5
    halves = (tossed[:, :75].mean(axis=1) + tossed[:, 75:].mean(axis=1)) / 2
    assert coin == pytest.approx(100 * halves.std(), rel=0.02)
    assert signs_of(paper.Printed(36.69, 36.91), [], coin) == ("spread",)
    assert signs_of(paper.Printed(42.78, 5.79), [], coin) == ("worse",)
    ours = [Summary(0.60, 0.02, 20), Summary(0.70, 0.02, 20)]
    assert signs_of(paper.Printed(61.0, 2.0), ours, coin) == ()
    assert signs_of(paper.Printed(65.0, 2.0), ours, coin) == ("far",)
    assert differs(paper.Printed(50.0, 1.0), Summary(0.52, None, 1), 100.0)


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
