"""The page of a report: it shows any word safely, loads nothing, and names what is wrong."""

import base64
import hashlib
import html
import html.parser
import json
import re
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import popf
from popf import OPFClassifier, POPFClassifier, report
from popf.report.numbers import chance, figure, fixed, line_path, outcome, plain, threshold_text
from popf.report.page import compute

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


def test_the_page_holds_the_numbers_it_starts_with(theft_case):
    found = compute(*theft_case, cost_fp=1, cost_fn=20)
    page = found.html()
    at, decisions = found.view.start, found.view.decisions
    assert f'<b id="hits">{decisions.counts.hits[at]:.0f}</b>' in page
    assert f'<b id="alarms">{decisions.counts.alarms[at]:.0f}</b>' in page
    assert html.escape(outcome(decisions, at, found.view.event)) in page
    assert f'<dd class="value">{fixed(found.view.quality.scores["log_loss"].value, 3)}</dd>' in page
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert json.loads(data) == json.loads(json.dumps(found.script_data()))


def test_without_jinja2_one_plain_line_says_what_to_install(theft_case, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r'pip install "popf\[report\]"'):
        report.build(*theft_case)


def test_the_same_data_gives_the_same_bytes_whatever_frame_holds_it(theft_case):
    model, X, y = theft_case
    page = report.build(model, X, y)
    for frame in (pl.DataFrame(X.to_dict("list")), X[X.columns[::-1]].assign(more=1)):
        assert report.build(model, frame, y) == page
    assert report.build(model, X, y, seed=2) != page


def test_the_page_loads_nothing(theft_case):
    page = report.build(*theft_case, ids={"id": range(len(theft_case[2]))})
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


def test_the_policy_forbids_requests_and_names_style_and_script_by_their_hash(theft_case):
    page = report.build(*theft_case)
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


def test_whatever_the_data_holds_is_shown_as_text():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(160, len(HOSTILE))), columns=HOSTILE)
    y = np.array(HOSTILE)[X.to_numpy().argmax(axis=1)]
    X["words"] = rng.choice(HOSTILE, len(X))
    encoder = ("words", OneHotEncoder(sparse_output=False), ["words"])
    steps = ColumnTransformer([encoder], remainder="passthrough")
    model = make_pipeline(steps, POPFClassifier("forest")).fit(X[:80], y[:80])
    about = dict.fromkeys(["file", "data", "target"], HOSTILE[0])
    about["facts"] = dict(zip(HOSTILE, HOSTILE, strict=True))
    ids = {word: [word] * 80 for word in HOSTILE}
    page = report.build(model, X[80:], y[80:], ids=ids, about=about)
    page.encode()
    found = Elements(page)
    tags = [tag for tag, _ in found.tags]
    assert "img" not in tags
    assert tags.count("script") == 2
    assert all(not name.startswith("on") for _, given in found.tags for name in given)
    shown = "".join(found.words)
    assert all(plain(word) in shown for word in HOSTILE)
    assert "\x00" not in page
    (data,) = re.findall(r'id="data">(.*?)</script>', page)
    people = [person for view in json.loads(data)["views"] for person in view["people"]]
    names = {line[0] for person in people for line in person["features"]}
    assert names == {*map(plain, HOSTILE), "words"}


def test_words_are_printable_and_short():
    assert plain("a\x00b half \ud800") == "a\ufffdb half \ufffd"
    assert len(plain("long " * 100)) == 120


def test_numbers_are_written_for_people():
    cells = (12345.678, 0.00012346, 3.0, 17, "rural", None, float("nan"), True)
    shown = ["12,346", "0.0001235", "3", "17", "rural", "missing", "missing", "True"]
    assert [figure(cell) for cell in cells] == shown
    assert [threshold_text(value) for value in (0.5, 0.33337)] == ["0.500", "0.33337"]
    chances = [chance(p).replace("\N{NO-BREAK SPACE}", " ") for p in (0.0, 1e-5, 0.5, 0.99999, 1.0)]
    assert chances == ["0.0 %", "< 0.1 %", "50.0 %", "> 99.9 %", "100.0 %"]
    assert fixed(float("nan"), 1) == "–"


def test_lines_have_gaps_where_a_value_is_undefined():
    drawn = line_path([0.0, 0.5, 0.75, 1.0], [1.0, 0.5, float("nan"), 0.25])
    assert drawn == "M0.0 0.0L500.0 500.0M1000.0 750.0"


@pytest.mark.parametrize(("digits", "scale"), [(0, 2), (1, 4), (1, 8), (3, 64)])
def test_fixed_rounds_halves_away_from_zero(digits, scale):
    for number in range(-40, 40):
        value = number / scale  # exact in binary, so that halves are halves
        nearest = float(fixed(value, digits))
        assert abs(nearest - value) <= 0.5 * 10**-digits + 1e-12
        if abs(abs(nearest - value) - 0.5 * 10**-digits) < 1e-15:
            assert abs(nearest) > abs(value)


def test_a_report_of_many_samples_stays_small(theft_case):
    model, X, y = theft_case
    rng = np.random.default_rng(0)
    rows = rng.integers(len(y), size=50_000)
    chance = np.clip(model.predict_proba(X)[rows] + 1e-4 * rng.random((50_000, 1)), 0, 1)
    chance[:, 0] = 1.0 - chance[:, 1]
    page = report.build(model, X.iloc[rows], y[rows], probability=chance)
    assert len(page) < 500_000


def test_writing_is_whole_or_not_at_all(theft_case, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    model, *rows = theft_case
    report.write(model, path, *rows, top=5)
    before = path.read_bytes()
    assert before.decode() == report.build(*theft_case, top=5)
    with pytest.raises(ValueError, match="`top` is 0"):
        report.write(model, path, *rows, top=0)
    monkeypatch.setattr("os.fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(OSError, match="full"):
        report.write(model, path, *rows, top=6)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": ["theft"] * 500}, "all 500 samples are 'theft'"),
        ({"y": ["regular"] * 499 + ["fire"]}, "'fire' in row 500, a label the model has never"),
        ({"y": [0, 1] * 250}, "strings and numbers are never equal"),
        ({"y": ["theft", "regular"]}, "2 labels, but probabilities of the shape"),
        ({"positive": "fire"}, "`positive='fire'` is not a class"),
        ({"threshold": 1.0}, "`threshold` must be above 0 and below 1, not 1.0"),
        ({"cost_fp": 2.0}, "`cost_fp` and `cost_fn` belong together"),
        (
            {"cost_fp": -1.0, "cost_fn": 1.0},
            "`cost_fp` is -1.0; it must be a finite number greater than 0",
        ),
        ({"top": 2.5}, "`top` is 2.5; it must be an integer"),
        ({"ids": {"a": [1, 2]}}, r"ids\['a'\] has 2 values for 500 samples"),
        ({"X": pd.DataFrame({"peak": [1.0]})}, "columns that are missing"),
    ],
)
def test_bad_input_is_named(theft_case, change, message):
    model, X, y = theft_case
    given = {"X": X, "y": y, **change}
    with pytest.raises(ValueError, match=message):
        report.build(model, given.pop("X"), given.pop("y"), **given)


def test_other_models_are_refused(theft_case):
    _, X, y = theft_case
    for model in (OPFClassifier(), make_pipeline(StandardScaler(), LogisticRegression())):
        with pytest.raises(
            TypeError, match=r"(OPFClassifier|LogisticRegression) has no prob.*pass"
        ):
            report.build(model.fit(X, y), X, y)


def test_the_model_is_described(theft_case):
    about = {"file": "model.popf", "data": "test.csv", "saved": "2020-01-01", "facts": {"by": "me"}}
    page = report.build(*theft_case, about=about)
    words = " ".join(Elements(page).words)
    for wanted in ("model.popf on test.csv", "pooled", "StandardScaler", "2020-01-01"):
        assert wanted in words
    assert "none: all are defaults" in words
    assert popf.__version__ in words
