"""The report in a real browser: sliders, sorting, paths, keyboard, colours, and no request.

Needs Chromium (the package ``chromium`` of Debian); skipped where there is none. The check by axe-core runs
where POPF_AXE names its file ``axe.min.js``, or ``node_modules`` holds it.
"""

import json
import os
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import browser
from popf import POPFClassifier, report
from popf.datasets import make_energy_theft
from popf.display import prepare_thresholds
from popf.report.assembly import Options, gather
from popf.report.charts import line_path
from popf.report.contents import path_summary
from popf.report.formatting import cost_text, count, fixed, percent, threshold_text

pytestmark = pytest.mark.skipif(
    browser.find() is None, reason=f"no browser: none of {', '.join(browser.NAMES)} is installed"
)
ROOT = Path(__file__).parents[2]
SCHEMES = ("light", "dark")
# The pairs of words and ground, by the names of their colours.
ON_CARD = ("ink", "quiet", "link", "good", "bad")


@pytest.fixture(scope="module")
def case():
    data = make_energy_theft(n_samples=1200, theft_rate=0.2, random_state=4)
    X = pd.DataFrame(data.data, columns=data.feature_names)
    y = np.where(data.target == 1, "</script><b>theft", "regular")
    model = make_pipeline(StandardScaler(), POPFClassifier()).fit(X[:400], y[:400])
    rng = np.random.default_rng(0)
    ids = {"consumer": [f"C-{number}" for number in rng.permutation(800)]}
    ids["<img src=x onerror=alert(1)>"] = ["<img src=x onerror=alert(1)>"] * 800
    X, y = X[400:].reset_index(drop=True), y[400:]
    given = {"positive": "</script><b>theft", "cost_fp": 1.0, "cost_fn": 5.0, "top": 60}
    contents = gather(model, X, y, ids, None, None, Options(**given))
    page = report.build(model, X, y, ids=ids, **given)
    chance = model.predict_proba(X)[:, list(model.classes_).index(given["positive"])]
    return contents, page, y == given["positive"], chance


@pytest.fixture(scope="module")
def chromium():
    with browser.Browser() as found:
        yield found


@pytest.fixture
def page(case, chromium, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(case[1], encoding="utf-8")
    page = chromium.open(path.as_uri())
    yield page
    assert page.requests() == [path.as_uri()]
    assert page.complaints() == []
    page.call("Page.close")


def slide(page, name, value):
    """Move a slider as a person would, and let the page hear of it."""
    page.run(
        f"(() => {{ const e = document.getElementById('{name}'); e.value = {value};"
        "e.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


def column(page, number):
    return page.run(
        f"[...document.querySelectorAll('#people tbody tr')].map(r => r.cells[{number}].textContent)"
    )


def shown(page):
    names = (
        "hits",
        "misses",
        "alarms",
        "passes",
        "balanced_accuracy",
        "precision",
        "recall",
        "mean-cost",
    )
    return {name: page.text(name) for name in names}


def expected(happened, chance, theta, ratio):
    """What the page should show, counted from the samples."""
    called = chance >= theta
    hits, alarms = int((called & happened).sum()), int((called & ~happened).sum())
    misses, passes = int((~called & happened).sum()), int((~called & ~happened).sum())
    recall = hits / (hits + misses)
    return {
        "hits": count(hits),
        "misses": count(misses),
        "alarms": count(alarms),
        "passes": count(passes),
        "balanced_accuracy": percent((recall + (1.0 - alarms / (alarms + passes))) / 2.0),
        "precision": percent(hits / (hits + alarms)) if called.any() else "–",
        "recall": percent(recall),
        "mean-cost": fixed(1000.0 * ((alarms + misses * ratio) / len(chance)), 1),
    }


def test_the_page_opens_at_the_threshold_of_lowest_cost(case, page):
    _, _, happened, chance = case
    best = prepare_thresholds(
        happened, chance, thresholds=np.arange(1, 1000) / 1000, cost_fp=1, cost_fn=5
    ).chosen
    assert page.text("theta-text") == threshold_text(best)
    assert shown(page) == expected(happened, chance, best, 5.0)


def test_the_threshold_slider_moves_the_numbers_to_what_python_computes(case, page):
    contents, _, happened, chance = case
    found = contents.decisions
    for theta in (0.001, 0.033, 0.25, 0.5, 0.777, 0.999):
        at = found.nearest(theta)
        slide(page, "theta", at)
        assert page.text("theta-text") == threshold_text(theta)
        assert shown(page) == expected(happened, chance, theta, 5.0)
        places = page.run(
            "[...document.querySelectorAll('.cursor')].map(e => parseFloat(e.getAttribute('x1')))"
        )
        assert places == pytest.approx([100 * theta] * 3)
        scores = found.counts.scores()
        for name in ("balanced_accuracy", "recall"):
            dot = page.run(f"document.querySelector('[data-dot={name}]').getAttribute('cy')")
            assert dot == f"{fixed(100 * (1 - scores[name][at]), 2)}%"
        called = column(page, 5)
        people = [p.probability >= theta for p in contents.people]
        assert called == ["called" if one else "not" for one in people]


def test_the_cost_slider_moves_the_recommendation_and_the_curve(case, page):
    contents, _, happened, chance = case
    found = contents.decisions
    for pair in (0, 5, 8, 12, len(found.costs) - 1):
        alarm, miss = found.costs[pair]
        slide(page, "cost", pair)
        best = prepare_thresholds(
            happened, chance, thresholds=found.counts.thresholds, cost_fp=1, cost_fn=miss / alarm
        ).chosen
        assert page.text("cost-text") == cost_text(alarm, miss)
        assert page.text("best") == page.text("theta-text") == threshold_text(best)
        assert shown(page) == expected(happened, chance, best, miss / alarm)
        top = found.cost_top(pair)
        drawn = page.run("document.querySelector('.curves .line.cost').getAttribute('d')")
        assert drawn == line_path(found.counts.thresholds, found.mean_cost(pair) / top)
        assert page.text("exact") == fixed(alarm / (alarm + miss), 3)


def test_what_python_draws_first_is_what_the_script_draws(case, page):
    before = page.run("document.querySelector('main').innerHTML.length")
    state = "[document.querySelector('#threshold').outerHTML.replace(/ value=\"\\d+\"/g, '')]"
    drawn = page.run(state)
    start = case[0].start
    slide(page, "theta", 10)
    assert page.run(state) != drawn
    slide(page, "theta", start)
    slide(page, "cost", case[0].pair)
    moved = page.run(state)
    clean = re.compile(r' visibility="visible"|(?<=%)"|role="status"[^>]*>[^<]*')
    places = re.compile(r"-?\d+\.\d+(?=%)")
    assert before > 0
    assert [places.sub(lambda m: f"{float(m[0]):.2f}", clean.sub("", text)) for text in moved] == [
        places.sub(lambda m: f"{float(m[0]):.2f}", clean.sub("", text)) for text in drawn
    ]


def test_buttons_choose_thresholds(case, page):
    slide(page, "theta", 900)
    page.click("#use-exact")
    assert page.text("theta-text") == "0.167"
    page.click("#use-best")
    assert page.text("theta-text") == page.text("best")


def test_sorting_sorts(case, page):
    people = case[0].people
    rows = [str(person.row) for person in people]
    assert column(page, 2) == rows
    # Row: ascending, then descending.
    page.click("#people th:nth-child(3) button")
    assert column(page, 2) == sorted(rows, key=int)
    page.click("#people th:nth-child(3) button")
    assert column(page, 2) == sorted(rows, key=int, reverse=True)
    assert page.run("document.querySelectorAll('#people [aria-sort]').length") == 1
    head = "document.querySelector('#people th:nth-child(3)').getAttribute('aria-sort')"
    assert page.run(head) == "descending"
    # Words with numbers in them: C-9 before C-10.
    page.click("#people th:nth-child(1) button")
    names = [person.ids[0] for person in people]
    assert column(page, 0) == sorted(names, key=lambda name: int(name[2:]))
    page.click("#people th:nth-child(7) button")
    costs = [f"{cost:.4g}" for cost in sorted(person.path.cost for person in people)]
    assert column(page, 6) == costs
    page.click("#people th:nth-child(4) button")
    assert column(page, 2) == rows


def test_a_click_or_enter_on_a_row_shows_its_path(case, page):
    contents = case[0]

    def check(number):
        person = contents.people[number]
        assert page.text("path-title") == f"Path to {person.ids[0]}"
        assert page.text("path-summary") == path_summary(contents, person)
        nodes = page.run("[...document.querySelectorAll('#chain .node b')].map(e => e.textContent)")
        assert nodes == [node.name for node in person.path.nodes]
        assert page.run("document.querySelectorAll('#chain .longest').length") == 1
        cells = page.run(
            "[...document.querySelectorAll('#features tbody tr')].map("
            "r => [...r.cells].map(c => c.textContent))"
        )
        assert cells == [[row[0], *row[:0:-1]] for row in person.path.features]
        current = page.run("document.querySelector('[aria-current]').textContent")
        assert current == person.ids[0]

    check(0)
    page.click("#people tbody tr:nth-child(4) td:nth-child(6)")
    check(3)
    page.run("document.querySelector('#people tbody tr:nth-child(4) button').focus()")
    page.press("ArrowDown", 2)
    page.press("Enter")
    check(5)
    page.press("ArrowUp")
    page.press(" ")
    check(4)


def test_the_keyboard_reaches_everything_in_order(case, page):
    seen = []
    for _ in range(200):
        page.press("Tab")
        place = page.run(
            "(e => e === document.body ? null : (e.id || e.textContent.slice(0, 40)) + '|' + "
            "(getComputedStyle(e).outlineStyle !== 'none'))(document.activeElement)"
        )
        if place is None:
            break
        seen.append(place)
    assert all(place.endswith("|true") for place in seen), "focus must be seen"
    names = [place.rpartition("|")[0] for place in seen]
    for wanted in ("cost", "use-best", "use-exact", "theta", "features"):
        assert wanted in names
    assert names.index("cost") < names.index("theta") < names.index("features")
    assert sum(name.startswith("C-") for name in names) == 60
    assert {"Row", "Probability", "Path cost", "Steps"} <= set(names)
    assert names[0] == "Skip to the report"


def test_arrow_keys_move_a_slider(case, page):
    contents = case[0]
    page.run("document.getElementById('theta').focus()")
    page.press("Home")
    assert page.text("theta-text") == "0.001"
    page.press("ArrowRight", 3)
    assert page.text("theta-text") == "0.004"
    page.press("End")
    assert page.text("theta-text") == "0.999"
    spoken = page.run(
        "new Promise(done => { const e = document.getElementById('spoken');"
        "if (e.textContent.startsWith('Threshold 0.999')) done(e.textContent);"
        "new MutationObserver(() => done(e.textContent)).observe(e, {childList: true}); })"
    )
    assert spoken.startswith("Threshold 0.999. ")
    assert contents.event in spoken
    value = page.run("document.getElementById('theta').getAttribute('aria-valuetext')")
    assert value == "0.999"


def test_hostile_words_stay_words(case, page):
    assert page.run("document.querySelectorAll('img, main b b, section script').length") == 0
    assert set(column(page, 1)) == {"<img src=x onerror=alert(1)>"}
    assert "</script><b>theft" in page.text("sentence")


def test_the_policy_stops_requests_and_injected_code(case, chromium, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(case[1], encoding="utf-8")
    page = chromium.open(path.as_uri())
    page.run(
        "(() => { const i = new Image(); i.src = 'http://127.0.0.1:9/x.png'; document.body.append(i);"
        "const s = document.createElement('script'); s.append('window.broken = 1');"
        "document.body.append(s); })()"
    )
    refused = page.run("try { document.body.innerHTML = '<b>x</b>' } catch (e) { e.name }")
    assert refused == "TypeError"
    failed = page.run("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'stopped')")
    assert failed == "stopped"
    assert page.run("window.broken") is None
    assert any("Content Security Policy" in one for one in page.complaints())
    page.call("Page.close")


def luminance(colour):
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_colours_can_be_told_apart(case, page, scheme):
    page.media(scheme)
    names = [*ON_CARD, "card", "back", "faint", "hover", "strong", "on-strong"]
    names += ["one", "zero", "accuracy", "precision", "recall", "cost"]
    style = "getComputedStyle(document.documentElement)"
    colours = {name: page.run(f"{style}.getPropertyValue('--{name}').trim()") for name in names}
    for name in ON_CARD:
        for ground in ("card", "back", "faint", "hover"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground, colours)
    assert contrast(colours["on-strong"], colours["strong"]) >= 4.5
    for name in ("one", "zero", "accuracy", "precision", "recall", "cost"):
        assert contrast(colours[name], colours["card"]) >= 3.0, name
    body = page.run("getComputedStyle(document.body).backgroundColor")
    rgb = [int(value) for value in re.findall(r"\d+", body)[:3]]
    assert (sum(rgb) > 382) == (scheme == "light")


def test_the_page_has_a_language_a_title_headings_and_labels(case, page):
    assert page.run("document.documentElement.lang") == "en"
    assert page.run("document.title") == "How likely is “</script><b>theft”?"
    levels = page.run("[...document.querySelectorAll('h1,h2,h3,h4')].map(e => +e.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = page.run("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    for tree in page.call("Accessibility.getFullAXTree")["nodes"]:
        role = tree.get("role", {}).get("value")
        if (
            role in ("slider", "button", "link", "image", "region", "navigation")
            and not tree["ignored"]
        ):
            assert tree.get("name", {}).get("value"), tree
    referred = page.run(
        "[...document.querySelectorAll('[aria-labelledby],[aria-controls],label[for]')].map(e => "
        "e.getAttribute('aria-labelledby') || e.getAttribute('aria-controls') || e.htmlFor)"
    )
    assert set(referred) <= set(ids)


def test_it_fits_a_telephone_and_moves_nothing_where_motion_is_not_wanted(case, chromium, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(case[1], encoding="utf-8")
    page = chromium.open(path.as_uri(), width=360, height=740)
    assert page.run("document.documentElement.scrollWidth") <= 360
    page.media("light", motion="reduce")
    behaviour = "getComputedStyle(document.documentElement).scrollBehavior"
    assert page.run(behaviour) == "auto"
    page.call("Page.close")


def test_it_prints_on_white_without_controls(case, page):
    page.media("dark", "print")
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for hidden in ("nav", "#theta", "#use-best"):
        style = f"getComputedStyle(document.querySelector('{hidden}')).display"
        assert page.run(style) == "none"
    visible = (
        "[...document.querySelectorAll('#people tbody tr')]"
        ".filter(r => getComputedStyle(r).display !== 'none').length"
    )
    assert page.run(visible) == 40
    page.media("light")
    paper = page.pdf()
    assert paper.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 12


def axe():
    named = os.environ.get("POPF_AXE")
    places = [Path(named)] if named else []
    places.append(ROOT / "node_modules" / "axe-core" / "axe.min.js")
    return next((place for place in places if place.is_file()), None)


@pytest.mark.skipif(axe() is None, reason="no axe-core: POPF_AXE names no axe.min.js")
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [1200, 400])
def test_axe_finds_nothing(case, chromium, tmp_path, scheme, width):
    path = tmp_path / "report.html"
    path.write_text(case[1], encoding="utf-8")
    page = chromium.open(path.as_uri(), width=width, scheme=scheme)
    page.call("Runtime.evaluate", expression=axe().read_text(encoding="utf-8"))
    found = page.run(
        "axe.run(document, {resultTypes: ['violations']}).then(r => JSON.stringify("
        "r.violations.map(v => [v.impact, v.id, v.nodes.map(n => n.html.slice(0, 200))])))"
    )
    assert json.loads(found) == []
    page.call("Page.close")
