"""The report as one HTML page that needs nothing else, and can ask nobody for anything."""

import base64
import hashlib
from collections.abc import Iterator
from html import escape
from importlib.resources import files

from popf.metrics import Score
from popf.metrics.intervals import CONFIDENCE
from popf.report import charts
from popf.report.contents import Contents, as_data, person_name, sentence, verdict
from popf.report.formatting import as_json, cost_text, count, fixed, percent, safe, threshold_text

SECTIONS = (
    ("quality", "How good are the probabilities?"),
    ("threshold", "Which threshold should I use?"),
    ("risk", "Who is at risk?"),
    ("model", "What is the model?"),
)
SCORE_NAMES = {
    "balanced_accuracy": (
        "Balanced accuracy",
        "mean of recall and of the share of the others that are left in peace",
    ),
    "precision": ("Precision", "how many of those called are"),
    "recall": ("Recall", "how many of those that are, are called"),
}
PRINTED_ROWS = 40


def as_page(contents: Contents) -> str:
    """Write the page.

    Parameters
    ----------
    contents : Contents

    Returns
    -------
    str
        HTML that loads nothing: style and script are in it, and its policy forbids any request.
    """
    style, script = _resource("report.css"), _resource("report.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<link rel="icon" href="data:,">',
        f"<title>{safe(contents.title)}</title><style>{style}</style></head><body>",
        '<a class="skip" href="#quality">Skip to the report</a>',
        f"<header><h1>{safe(contents.title)}</h1>{_lead(contents)}</header>",
        _navigation(),
        "<main>",
        *_quality(contents),
        *_threshold(contents),
        *_risk(contents),
        *_model(contents),
        "</main>",
        f'<footer class="note">{_footer()}</footer>',
        f'<script type="application/json" id="data">{as_json(as_data(contents))}</script>',
        f"<script>{script}</script></body></html>",
        "",
    ]
    return "\n".join(parts)


def _resource(name: str) -> str:
    return files("popf.report").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _lead(contents: Contents) -> str:
    found = contents.decisions
    source = f"{safe(contents.source)}: " if contents.source else ""
    return (
        f'<p class="quiet">{source}{count(found.n_samples)} samples, of which '
        f"{count(int(found.counts.n_positive))} "
        f"({percent(contents.quality.prior)}) are “{safe(contents.event)}”.</p>"
    )


def _navigation() -> str:
    links = "".join(f'<li><a href="#{name}">{text}</a></li>' for name, text in SECTIONS)
    return f'<nav aria-label="Questions"><ul>{links}</ul></nav>'


def _footer() -> str:
    return (
        "<p>Made by popf. This page is one file: it works without a network, and its policy forbids every "
        "request. It holds rows of your data: share it as you would share those.</p>"
    )


def _opening(name: str) -> str:
    heading = f'<h2 id="{name}-title">{dict(SECTIONS)[name]}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-title">{heading}'


def _quality(contents: Contents) -> Iterator[str]:
    found = contents.quality
    yield _opening("quality")
    if contents.overall is not None:
        yield from _overall(contents)
    yield f'<p class="verdict">{escape(" ".join(verdict(found)))}</p>'
    yield '<dl class="tiles">'
    yield _tile(
        "Log loss", found.scores["log_loss"], 3, f"base rate {fixed(found.prior_log_loss, 3)}"
    )
    yield _tile("Brier score", found.scores["brier"], 3, f"base rate {fixed(found.prior_brier, 3)}")
    chance = f"by chance up to {fixed(found.chance_error, 3)}"
    yield _tile("Calibration error (ECE)", found.scores["ece"], 3, chance)
    yield _tile("Area under the ROC curve", found.scores["auc"], 3, "guessing 0.500")
    yield f'</dl><div class="two"><figure><figcaption>When it says {_quoted(contents)}, how often is it so?'
    yield "</figcaption>"
    yield _legend(
        ('<path class="line one" d="M0 5H27"/>', "happened"),
        ('<rect class="band" width="27" height="11"/>', f"{CONFIDENCE:.0%} interval"),
        ('<path class="ideal" d="M0 5H27"/>', "said = happened"),
    )
    yield charts.reliability_chart(found, f"“{contents.event}”")
    yield '<p class="axis">Probability that was said; below, how many samples got it</p></figure><div>'
    yield (
        "<h3>How to read this</h3><p>Samples are put together by the probability that the model gave them. "
        "Where the curve lies on the dashed line, what was said is how often it happened; above it, the model "
        "says too little, below it, too much. The shaded band is what as many samples can tell.</p>"
        "<p>The lower log loss and Brier score are, the better; the base rate is the score of answering the "
        "same share for everyone. The calibration error is the mean distance from the dashed line; it is never "
        "quite 0 on a sample, so the page says how large it would be if the probabilities were perfect.</p>"
        f"<p>Brackets hold {CONFIDENCE:.0%} of what comes out when the samples are drawn anew "
        "(bootstrap).</p>"
    )
    yield from _bins(contents)
    yield "</div></div></section>"


def _quoted(contents: Contents) -> str:
    return f"“{safe(contents.event)}”"


def _tile(name: str, score: Score, digits: int, beside: str) -> str:
    interval = f"[{fixed(score.lower, digits)}, {fixed(score.upper, digits)}]"
    return (
        f'<div><dt>{name}</dt><dd class="value">{fixed(score.value, digits)}</dd>'
        f'<dd class="small">{interval}</dd><dd class="small">{beside}</dd></div>'
    )


def _legend(*entries: tuple[str, str]) -> str:
    items = "".join(
        f'<li><svg aria-hidden="true" viewBox="0 0 27 11">{mark}</svg>{text}</li>'
        for mark, text in entries
    )
    return f'<ul class="legend">{items}</ul>'


def _bins(contents: Contents) -> Iterator[str]:
    curve = contents.quality.curve
    yield '<details><summary>The bins as a table</summary><div class="scroll" tabindex="0" role="region" '
    yield 'aria-label="Bins of the reliability curve"><table><thead><tr><th scope="col">said</th>'
    yield f'<th scope="col">happened</th><th scope="col">{CONFIDENCE:.0%} interval</th>'
    yield '<th scope="col">samples</th></tr></thead><tbody>'
    for row in zip(
        curve.probability, curve.frequency, curve.lower, curve.upper, curve.weights, strict=True
    ):
        said, was, lower, upper, weight = (float(value) for value in row)
        yield f"<tr><td>{percent(said)}</td><td>{percent(was)}</td>"
        yield f"<td>{percent(lower)} – {percent(upper)}</td><td>{count(round(weight))}</td></tr>"
    yield "</tbody></table></div></details>"


def _overall(contents: Contents) -> Iterator[str]:
    overall = contents.overall
    assert overall is not None

    def score(name: str) -> float:
        return overall.scores[name].value

    yield (
        f"<p>The model knows {len(contents.classes)} classes. All together: log loss "
        f"{fixed(score('log_loss'), 3)}, Brier score {fixed(score('brier'), 3)}, calibration error "
        f"{fixed(score('ece'), 3)}, accuracy {percent(score('accuracy'))}, OPF accuracy "
        f"{percent(score('opf_accuracy'))}. "
        f"What follows looks at “{safe(contents.event)}” against all others; make a page for each class you "
        "care about, with the option <code>positive</code>.</p>"
    )
    yield '<details><summary>Which classes are taken for which</summary><div class="scroll" tabindex="0" '
    yield 'role="region" aria-label="Confusion matrix of all classes"><table><thead><tr>'
    yield '<th scope="col" class="words">is, below; called, to the right</th>'
    yield "".join(f'<th scope="col">{safe(label)}</th>' for label in contents.classes)
    yield "</tr></thead><tbody>"
    for label, row in zip(contents.classes, overall.confusion.tolist(), strict=True):
        cells = "".join(f"<td>{count(number)}</td>" for number in row)
        yield f'<tr><th scope="row" class="words">{safe(label)}</th>{cells}</tr>'
    yield "</tbody></table></div></details>"


def _threshold(contents: Contents) -> Iterator[str]:
    found, at, pair = contents.decisions, contents.start, contents.pair
    theta = float(found.counts.thresholds[at])
    yield _opening("threshold")
    yield (
        f"<p>A sample is called “{safe(contents.event)}” when its probability is at least the threshold Θ. "
        "A low Θ misses few and raises many false alarms, a high one the other way round: what is right "
        "depends on what either costs you.</p>"
    )
    yield '<div class="wide"><div><div class="controls">'
    yield (
        '<div><label for="cost">What do errors cost?</label>'
        f'<input type="range" id="cost" min="0" max="{len(found.costs) - 1}" step="1" value="{pair}" '
        f'autocomplete="off" aria-valuetext="{cost_text(*found.costs[pair])}">'
        f'<p class="note" id="cost-text">{cost_text(*found.costs[pair])}</p></div>'
    )
    yield from _choice(contents)
    yield (
        f'<div><label for="theta">Threshold Θ <output for="theta" id="theta-text" aria-live="off">'
        f"{threshold_text(theta)}</output></label>"
        f'<input type="range" id="theta" min="0" max="{len(found.counts.thresholds) - 1}" step="1" '
        f'value="{at}" '
        f'autocomplete="off" aria-valuetext="{threshold_text(theta)}"></div></div>'
    )
    yield from _matrix(contents)
    yield from _figures(contents)
    yield '<p class="hidden" role="status" id="spoken"></p></div>'
    yield "<figure><figcaption>What every threshold brings</figcaption>"
    yield _legend(
        ('<rect class="bar one" width="27" height="11"/>', f"“{safe(contents.event)}”"),
        ('<rect class="bar zero" width="27" height="11"/>', _other(contents)),
    )
    yield charts.class_chart(found, theta, (f"“{contents.event}”", contents.other))
    yield '<div class="between"></div>'
    yield _legend(
        *(
            (f'<path class="line {name}" d="M0 5H27"/>', SCORE_NAMES[name][0].lower())
            for name in charts.SCORES
        )
    )
    yield charts.score_chart(found, at)
    yield '<div class="between"></div>'
    yield _legend(
        ('<path class="line cost" d="M0 5H27"/>', "cost of 1,000 samples, in false alarms"),
        ('<circle class="ring" cx="13" cy="5.5" r="5"/>', "lowest"),
    )
    yield charts.cost_chart(found, at, pair)
    yield '<p class="axis">Threshold Θ</p></figure></div></section>'


def _other(contents: Contents) -> str:
    return f"“{safe(contents.other)}”" if len(contents.classes) == 2 else safe(contents.other)


def _choice(contents: Contents) -> Iterator[str]:
    found, pair = contents.decisions, contents.pair
    best = threshold_text(float(found.counts.thresholds[found.recommended[pair]]))
    alarm, miss = found.costs[pair]
    exact = fixed(1.0 / (1.0 + miss / alarm), 3)
    yield (
        f'<div class="choice"><p>Lowest cost on these samples: <b>Θ = <span id="best">{best}</span></b>. '
        f'If the probabilities were exact: <b>Θ = <span id="exact">{exact}</span></b>.</p>'
        '<p><button type="button" class="action" id="use-best">Use the lowest cost</button>'
        '<button type="button" class="action second" id="use-exact">Use the exact one</button></p>'
        '<p class="note">The first is fitted to these samples, and will look a little worse on new ones. '
        "Where both are far apart, there are few samples or the probabilities are off.</p></div>"
    )


def _matrix(contents: Contents) -> Iterator[str]:
    found, at = contents.decisions, contents.start
    hits, alarms = int(found.counts.hits[at]), int(found.counts.alarms[at])
    event = f"“{safe(contents.event)}”"
    cells = {
        "hits": (hits, "right", "found"),
        "misses": (int(found.counts.n_positive) - hits, "wrong", "missed"),
        "alarms": (alarms, "wrong", "false alarms"),
        "passes": (int(found.counts.n_negative) - alarms, "right", "left in peace"),
    }

    other = _other(contents) if len(contents.classes) == 2 else "another"

    def cell(name: str) -> str:
        number, kind, words = cells[name]
        return f'<td class="{kind}"><b id="{name}">{count(number)}</b><span>{words}</span></td>'

    yield f'<p id="sentence">{escape(sentence(contents))}</p>'
    yield '<table class="matrix"><caption class="hidden">Confusion matrix at the chosen threshold</caption>'
    yield f'<thead><tr><td></td><th scope="col">called {event}</th><th scope="col">not called</th></tr></thead>'
    yield f'<tbody><tr><th scope="row" class="words">is {event}</th>{cell("hits")}{cell("misses")}</tr>'
    yield f'<tr><th scope="row" class="words">is {other}</th>{cell("alarms")}{cell("passes")}</tr>'
    yield "</tbody></table>"


def _figures(contents: Contents) -> Iterator[str]:
    found, at = contents.decisions, contents.start
    scores = found.counts.scores()
    yield '<table class="figures"><caption class="hidden">Scores at the chosen threshold</caption><tbody>'
    for name in charts.SCORES:
        title, words = SCORE_NAMES[name]
        mark = f'<svg aria-hidden="true" viewBox="0 0 27 11"><path class="line {name}" d="M0 5H27"/></svg>'
        yield f'<tr><th scope="row" class="words">{mark}{title} <span class="note">{words}</span></th>'
        yield f'<td id="{name}">{percent(float(scores[name][at]))}</td></tr>'
    mark = '<svg aria-hidden="true" viewBox="0 0 27 11"><path class="line cost" d="M0 5H27"/></svg>'
    cost = float(found.mean_cost(contents.pair)[at])
    words = "of 1,000 samples, in false alarms"
    yield f'<tr><th scope="row" class="words">{mark}Cost <span class="note">{words}</span></th>'
    yield f'<td id="mean-cost">{fixed(1000.0 * cost, 1)}</td></tr></tbody></table>'


def _risk(contents: Contents) -> Iterator[str]:
    people = contents.people
    yield _opening("risk")
    n = count(contents.decisions.n_samples)
    yield (
        f"<p>The {count(len(people))} highest probabilities of “{safe(contents.event)}” among {n} samples. "
        "Choose one to see its path: the chain of training samples, from a prototype on, that reached it "
        "first.</p>"
    )
    if contents.note:
        yield f'<p class="note">{escape(contents.note)}</p>'
    if len(people) > PRINTED_ROWS:
        yield f'<p class="note paper">On paper the first {PRINTED_ROWS}, in the order chosen.</p>'
    yield '<div class="wide people-and-path"><div class="scroll people" role="region" tabindex="0" '
    yield 'aria-label="The highest probabilities"><table id="people"><thead><tr>'
    heads = [(name, "text", "words") for name in contents.id_names]
    heads += [
        ("Row", "number", ""),
        ("Probability", "number", ""),
        ("Is", "text", "words"),
        ("At Θ", "none", "words"),
        ("Path cost", "number", ""),
        ("Steps", "number", ""),
    ]
    for name, kind, words in heads:
        order = ' aria-sort="descending"' if (name, kind) == ("Probability", "number") else ""
        klass = f' class="{words}"' if words else ""
        inside = (
            safe(name)
            if kind == "none"
            else f'<button type="button" data-kind="{kind}">{safe(name)}</button>'
        )
        yield f'<th scope="col"{klass}{order}>{inside}</th>'
    yield "</tr></thead><tbody>"
    theta = float(contents.decisions.counts.thresholds[contents.start])
    for number in range(len(people)):
        yield _person(contents, number, theta)
    yield '</tbody></table></div><div class="path" id="path" role="region" aria-labelledby="path-title">'
    yield '<h3 id="path-title">Path</h3><p id="path-summary" role="status"></p>'
    yield '<ol class="chain" id="chain"></ol>'
    yield '<div class="scroll" id="features" role="region" aria-label="Features along the path" tabindex="0">'
    yield "<noscript><p>Paths, sliders and sorting need JavaScript.</p></noscript></div></div></div>"
    yield "</section>"


def _person(contents: Contents, number: int, theta: float) -> str:
    person = contents.people[number]
    name = safe(person_name(contents, person))
    chosen = f'<button type="button" aria-controls="path" data-person="{number}">{name}</button>'
    cells = [f'<td class="words">{safe(one)}</td>' for one in person.ids]
    row = f'<td data-key="{person.row}">{person.row}</td>'
    if cells:
        cells[0] = f'<td class="words" data-key="{safe(person.ids[0])}">{chosen}</td>'
    else:
        row = f'<td data-key="{person.row}">{chosen}</td>'
    width = fixed(100.0 * person.probability, 1)
    meter = (
        '<svg class="meter" aria-hidden="true" viewBox="0 0 100 10" preserveAspectRatio="none">'
        f'<rect class="all" width="100" height="10"/><rect class="part" width="{width}" height="10"/></svg>'
    )
    called = "called" if person.probability >= theta else "not"
    cost = f"{person.path.cost:.4g}"
    cells += [
        row,
        f'<td data-key="{person.probability!r}">{percent(person.probability)}{meter}</td>',
        f'<td class="words">{safe(person.truth)}</td>',
        f'<td class="words called">{called}</td>',
        f'<td data-key="{person.path.cost!r}">{cost}</td>',
        f'<td data-key="{person.path.n_steps}">{person.path.n_steps}</td>',
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _model(contents: Contents) -> Iterator[str]:
    yield _opening("model")
    for heading, entries in contents.facts:
        yield f'<h3>{safe(heading)}</h3><dl class="facts">'
        for term, text in entries:
            yield f"<dt>{safe(term)}</dt><dd>{escape(text)}</dd>"
        yield "</dl>"
    yield "</section>"
