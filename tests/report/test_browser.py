"""The report in a real browser: sliders, sorting, paths, keyboard, colours, and no request.

Needs Playwright and the system's Chromium, and for the last check axe-core: POPF_AXE names its ``axe.min.js``.
"""

import os
import re
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from popf import POPFClassifier
from popf.report import numbers
from popf.report.numbers import count, fixed, percent, threshold_text
from popf.report.page import compute

playwright = pytest.importorskip("playwright.sync_api", reason="no browser: pip install playwright")
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason=f"no browser: none of {', '.join(NAMES)} is installed"
)
THEFT, IMAGE = "</script><b>theft", "<img src=x onerror=alert(1)>"
HEADS = ["consumer", "Probability", "True class", "At Θ", "installed", IMAGE, "Row"]


@pytest.fixture(scope="module")
def case(consumers, tmp_path_factory):
    """A report with hostile words, its page as a file, what happened, and the probabilities."""
    X, y = consumers[0], np.where(consumers[1] == "theft", THEFT, "regular")
    model = make_pipeline(StandardScaler(), POPFClassifier()).fit(X[:300], y[:300])
    X, y = X[300:].reset_index(drop=True), y[300:]
    names = [f"C-{number}" for number in np.random.default_rng(0).permutation(600)]
    ids = {"consumer": names, "installed": ["2024-12-28"] * 600, IMAGE: [IMAGE] * 600}
    found = compute(model, X, y, ids=ids, positive=THEFT, cost_fp=1.0, cost_fn=5.0, top=60)
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(found.html(), encoding="utf-8")
    chance = model.predict_proba(X)[:, list(model.classes_).index(THEFT)]
    return found, path.as_uri(), y == THEFT, chance


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        yield started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture
def open_page(case, browser):
    """Open the page, as in a window of some size and colours; what it requests and complains of is kept."""

    def opened(width=1200, height=900, **options):
        page = browser.new_page(viewport={"width": width, "height": height}, **options)
        page.requests, page.complaints = [], []
        page.on("request", lambda request: page.requests.append(request.url))
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(case[1])
        return page

    return opened


@pytest.fixture
def page(case, open_page):
    page = open_page()
    yield page
    assert page.requests == [case[1]]
    assert page.complaints == []


def column(page, head):
    return column_of(page, HEADS.index(head) + 1)


def column_of(page, number):
    return page.locator(f"#people tbody td:nth-child({number})").all_text_contents()


def texts(page, *names):
    return {name: page.text_content(f"#{name}") for name in names}


def check_numbers(page, case, theta, ratio):
    """Compare what the page shows at a threshold with what is counted from the samples."""
    _, _, happened, chance = case
    flagged = chance >= theta
    (passes, alarms), (misses, hits) = confusion_matrix(happened, flagged).tolist()
    recall = hits / (hits + misses)
    expected = {
        "theta-text": threshold_text(theta),
        "hits": count(hits),
        "misses": count(misses),
        "alarms": count(alarms),
        "passes": count(passes),
        "accuracy": percent((hits + passes) / len(chance)),
        "balanced_accuracy": percent((recall + (1.0 - alarms / (alarms + passes))) / 2.0),
        "precision": percent(hits / (hits + alarms)) if flagged.any() else "–",
        "recall": percent(recall),
        "mean-cost": fixed(1000.0 * ((alarms + misses * ratio) / len(chance)), 1),
    }
    assert texts(page, *expected) == expected


def test_the_threshold_slider_moves_the_numbers_to_what_python_computes(case, page):
    found = case[0].view.decisions
    check_numbers(page, case, found.counts.thresholds[case[0].view.start], 5.0)
    scores = found.counts.scores()
    for theta in (0.001, 0.033, 0.25, 0.5, 0.777, 0.999):
        at = found.nearest(theta)
        page.fill("#theta", str(at))
        check_numbers(page, case, theta, 5.0)
        cursors = page.locator(".cursor").evaluate_all("all => all.map(e => e.getAttribute('x1'))")
        assert [float(x.rstrip("%")) for x in cursors] == pytest.approx([100 * theta] * 3)
        for name in ("accuracy", "balanced_accuracy", "recall"):
            height = page.get_attribute(f"[data-dot={name}]", "cy")
            assert height == f"{fixed(100 * (1 - scores[name][at]), 2)}%"
        share = (found.counts.hits + found.counts.alarms)[at] / found.n_samples
        assert page.get_attribute("[data-dot=gain]", "cx") == f"{fixed(100 * share, 2)}%"
        flagged = [row.probability >= theta for row in case[0].view.rows]
        assert column(page, "At Θ") == ["flagged" if one else "not flagged" for one in flagged]


def test_costs_that_are_typed_or_slid_move_the_recommendation_and_the_curve(case, page):
    _, _, happened, chance = case
    thresholds = case[0].view.decisions.counts.thresholds

    def check(ratio):
        found = numbers.decisions(happened, chance, ratio=ratio, also=thresholds)
        best, exact = thresholds[found.recommended], fixed(1 / (1 + ratio), 3)
        check_numbers(page, case, best, ratio)
        assert texts(page, "best", "exact") == {"best": threshold_text(best), "exact": exact}
        drawn = page.get_attribute(".curves .line.cost", "d")
        assert drawn == numbers.line_path(thresholds, found.mean_cost / found.cost_top)

    for typed in ("0.01", "0.3", "13.7"):
        page.fill("#ratio", typed)
        check(float(typed))
    page.fill("#ratio", "-3")  # is ignored
    check(13.7)
    for place, ratio in ((-2, 0.01), (0, 1.0), (1.3, 20.0), (3, 1000.0)):
        page.fill("#cost", str(place))
        assert float(page.input_value("#ratio")) == ratio
        check(ratio)
    page.click("#use-exact")
    assert page.text_content("#theta-text") == "0.001"
    page.click("#use-best")
    assert page.text_content("#theta-text") == page.text_content("#best")


def test_what_python_draws_first_is_what_the_script_draws(case, page):
    def drawn():
        text = page.locator("#threshold").evaluate("e => e.outerHTML")
        text = re.sub(r' visibility="visible"| value="\d+"|role="status"[^>]*>[^<]*', "", text)
        return re.sub(r"-?\d+(\.\d+)?(?=%)", lambda m: f"{float(m[0]):.2f}", text)

    first = drawn()
    page.fill("#theta", "10")
    assert drawn() != first
    page.fill("#ratio", "7")
    page.fill("#ratio", "5")
    page.fill("#theta", str(case[0].view.start))
    assert drawn() == first


def test_sorting_sorts(case, page):
    def sort_by(head):
        page.click(f"#people th:nth-child({HEADS.index(head) + 1}) button")

    rows = [str(row.number) for row in case[0].view.rows]
    assert column(page, "Row") == rows
    sort_by("Row")
    assert column(page, "Row") == sorted(rows, key=int)
    sort_by("Row")
    assert column(page, "Row") == sorted(rows, key=int, reverse=True)
    assert page.locator("#people [aria-sort=descending]").all_text_contents() == ["Row"]
    sort_by("consumer")  # words with numbers in them: C-9 before C-10
    names = [row.name for row in case[0].view.rows]
    assert column(page, "consumer") == sorted(names, key=lambda name: int(name[2:]))
    sort_by("Probability")
    assert column(page, "Row") == rows


def test_a_click_or_a_key_on_a_row_shows_what_decides_and_its_path(case, page):
    people = case[0].view.script_data()["people"]

    def check(number):
        row, why = case[0].view.rows[number], people[number]
        told = texts(page, "why-title", "probability", "rival", "path-summary")
        expected = [f"Explanation of {row.name}", why["probability"], "“regular”", why["summary"]]
        assert list(told.values()) == expected
        terms, shares = zip(*why["terms"], strict=True)
        drawn = page.locator("#terms tr").evaluate_all(
            "rows => rows.map(row => [row.cells[0].textContent, row.cells[2].textContent,"
            "Number(row.querySelector('rect').getAttribute('width'))])"
        )
        names, shown, widths = zip(*drawn, strict=True)
        assert names == terms
        assert widths == pytest.approx(np.abs(shares), abs=1e-4)
        values = [float(text.replace("−", "-")) for text in shown]
        assert values == pytest.approx(shares, abs=0.0051)
        nodes = page.locator("#chain .node b").all_text_contents()
        assert nodes == [node[0] for node in why["nodes"]]
        assert page.locator("#chain .longest").count() == 1
        lines = page.locator("#features tbody tr").evaluate_all(
            "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
        )
        assert lines == [[line[0], *line[:0:-1]] for line in why["features"]]
        assert page.text_content("[aria-current]") == row.name

    check(0)
    page.click("#people tbody tr:nth-child(4) td:nth-child(3)")
    check(3)
    page.focus("#people tbody tr:nth-child(4) button")
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    check(5)
    for key in ("ArrowUp", " "):
        page.keyboard.press(key)
    check(4)


@pytest.fixture(scope="module")
def three(consumers, tmp_path_factory):
    """A report on three classes, and its page as a file."""
    X, steals = consumers[0], consumers[1] == "theft"
    y = np.where(
        steals,
        "theft",
        np.where(X["installed_power"] > X["installed_power"].median(), "large", "small"),
    )
    model = POPFClassifier("forest").fit(X[:300], y[:300])
    found = compute(model, X[300:].reset_index(drop=True), y[300:], top=30)
    path = tmp_path_factory.mktemp("page") / "three.html"
    path.write_text(found.html(), encoding="utf-8")
    return found, path.as_uri()


def test_another_class_can_be_looked_at(three, browser):
    found, address = three
    page, complaints = browser.new_page(), []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(address)
    assert page.locator("#all .small-charts figure").count() == 3
    assert page.locator("#all table").is_visible()
    for number in (1, 0, 2, found.open):
        view = found.views[number]
        page.select_option("#class", str(number))
        assert f"“{view.event}”" in page.text_content("#quality h2")
        at = view.decisions.nearest(0.3)
        page.fill("#theta", str(at))
        assert page.text_content("#hits") == count(view.decisions.counts.hits[at])
        assert column_of(page, 1) == [row.name for row in view.rows]
        page.click("#people tbody tr:nth-child(2) td:nth-child(2)")
        assert page.text_content("#path-summary") == view.rows[1].why["summary"]
        ids = page.locator("[id]").evaluate_all("all => all.map(e => e.id)")
        assert len(ids) == len(set(ids))
    assert complaints == []


def test_the_keyboard_reaches_everything_in_order(page):
    seen = []
    while len(seen) < 200:
        page.keyboard.press("Tab")
        name, outline = page.evaluate(
            "(e => [e === document.body ? '' : e.id || e.textContent.slice(0, 40),"
            "getComputedStyle(e).outlineStyle])(document.activeElement)"
        )
        if not name:
            break
        assert outline != "none", f"focus on {name} must be visible"
        seen.append(name)
    assert seen[0] == "Skip to the report"
    order = ["ratio", "cost", "use-best", "use-exact", "theta", "Probability", "Row", "features"]
    assert [name for name in seen if name in order] == order
    assert sum(name.startswith("C-") for name in seen) == 60


def test_arrow_keys_move_a_slider_and_what_it_leads_to_is_announced(page):
    for key, expected in (("Home", "0.001"), ("ArrowRight", "0.002"), ("End", "0.999")):
        page.press("#theta", key)
        assert page.text_content("#theta-text") == expected
    assert page.get_attribute("#theta", "aria-valuetext") == "0.999"
    playwright.expect(page.locator("#spoken")).to_contain_text("Threshold 0.999. ")
    assert THEFT in page.text_content("#spoken")


def test_the_policy_stops_requests_and_injected_code(open_page):
    page = open_page()
    page.evaluate(
        "() => { const i = new Image(); i.src = 'http://127.0.0.1:9/x.png'; document.body.append(i);"
        "const s = document.createElement('script');"
        "try { s.append('window.broken = 1'); document.body.append(s); } catch {} }"
    )
    attempt = "() => { try { document.body.innerHTML = '<b>x</b>' } catch (e) { return e.name } }"
    assert page.evaluate(attempt) == "TypeError"
    fetched = "() => fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'stopped')"
    assert page.evaluate(fetched) == "stopped"
    assert page.evaluate("() => window.broken ?? null") is None
    assert any("Content Security Policy" in one for one in page.complaints)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_lines_stand_out_from_their_background(open_page, scheme, contrast):
    page = open_page(color_scheme=scheme)

    def colour(name):
        style = "name => getComputedStyle(document.documentElement).getPropertyValue(name).trim()"
        return np.array(list(bytes.fromhex(page.evaluate(style, f"--{name}")[1:]))) / 255

    for name in ("ink", "quiet", "link", "good", "bad"):
        for ground in ("card", "back", "faint", "hover"):
            assert contrast(colour(name), colour(ground)) >= 4.5, (name, ground)
    assert contrast(colour("on-strong"), colour("strong")) >= 4.5
    for name in ("one", "zero", "accuracy", "balanced", "precision", "recall", "cost"):
        assert contrast(colour(name), colour("card")) >= 3.0, name
    assert (colour("back").mean() > 0.5) == (scheme == "light")


def test_the_page_has_a_language_a_title_headings_and_labels(page):
    assert page.locator("img, main b b, section script").count() == 0  # hostile words stay words
    assert set(column(page, IMAGE)) == {IMAGE}
    assert THEFT in page.text_content("#sentence")
    assert page.get_attribute("html", "lang") == "en"
    assert page.title() == f"How likely is “{THEFT}”?"
    tags = page.locator("h1, h2, h3, h4").evaluate_all("all => all.map(e => +e.tagName[1])")
    assert tags[0] == 1
    assert tags.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(tags))
    ids = page.locator("[id]").evaluate_all("all => all.map(e => e.id)")
    assert len(ids) == len(set(ids))
    for name in ("aria-labelledby", "aria-controls", "for"):
        named = "(all, name) => all.map(e => e.getAttribute(name))"
        assert set(page.locator(f"[{name}]").evaluate_all(named, name)) <= set(ids)
    tree = page.locator("body").aria_snapshot()
    unnamed = r"- (slider|button|link|img|region|navigation)(:| *$)"
    assert not re.findall(unnamed, tree, re.MULTILINE)


def test_without_javascript_the_page_says_what_needs_it(open_page):
    page = open_page(java_script_enabled=False)
    for place in ("#threshold", "#risk"):
        assert "JavaScript, which is off" in page.locator(f"{place} noscript").inner_text()


def test_it_fits_a_telephone_and_does_not_move_where_motion_is_not_wanted(open_page):
    page = open_page(360, 740, reduced_motion="reduce")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    behaviour = "() => getComputedStyle(document.documentElement).scrollBehavior"
    assert page.evaluate(behaviour) == "auto"


def test_it_prints_on_white_without_controls(page):
    page.emulate_media(media="print", color_scheme="dark")
    body = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert body == "rgb(255, 255, 255)"
    for hidden in ("nav", "#theta", "#use-best"):
        assert page.locator(hidden).is_hidden()
    assert page.locator("#people tbody tr:visible").count() == 40
    paper = page.pdf()
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 12


AXE = Path(os.environ.get("POPF_AXE", "node_modules/axe-core/axe.min.js"))


@pytest.mark.skipif(not AXE.is_file(), reason="no axe-core: POPF_AXE names no axe.min.js")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 400])
def test_axe_finds_nothing(open_page, scheme, width):
    page = open_page(width, color_scheme=scheme, bypass_csp=True)
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    assert found["violations"] == []
