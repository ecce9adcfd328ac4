"""The report: one HTML file that needs nothing else, in light and in dark."""

import base64
from collections.abc import Iterator, Mapping
from html import escape

from popf.experiment import paper
from popf.experiment.figures import caption
from popf.experiment.implausible_values import STANDARD_ERRORS, TIMES_A_COIN, Doubt, doubts
from popf.experiment.results import MEASURES, Results
from popf.experiment.tables import Cell, Table, measure_table

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --back: #ffffff; --quiet: #5c6570; --line: #d5dae0;
  --band: #f4f6f8; --flag: #b3261e; --link: #0b5cad; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e8ec; --back: #15181c; --quiet: #9aa4af;
  --line: #363d45; --band: #1e2329; --flag: #ff8a80; --link: #7fb8f0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 78rem; background: var(--back); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; margin: .2rem 0 .6rem; } h2 { font-size: 1.25rem; margin: 2.2rem 0 .5rem; }
p, li { max-width: 48rem; } a { color: var(--link); } code { font-size: .9em; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .86rem; }
th, td { padding: .28rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
tr:first-child > th:first-child, td:first-child { text-align: left; position: sticky; left: 0;
  background: var(--back); }
thead th { border-bottom: 2px solid var(--line); vertical-align: bottom; } th[colspan] { text-align: center; }
td.words, th.words { text-align: left; white-space: normal; min-width: 16rem; }
.paper { color: var(--quiet); background: var(--band); } .flag { color: var(--flag); }
.note { color: var(--quiet); font-size: .88rem; margin: .35rem 0; }
figure { margin: 1rem 0; } figure img { max-width: 100%; height: auto; background: #fff; border-radius: 6px;
  padding: .4rem; } figcaption { color: var(--quiet); font-size: .88rem; }
nav a { margin-right: 1rem; }
"""
#: Paragraphs on the paper's doubtful values; docs/reproduction.md says more.
EXPLANATION = (
    "<p>The paper's accuracies are facts to compare with, not targets. Those below bear at least one of three "
    "signs. The first two no working classifier has; the third alone may also come from another form "
    "of the data or another measure of accuracy.</p><ul>",
    f"<li><b>Worse than guessing.</b> The mean lies more than {STANDARD_ERRORS:g} standard errors below 50 %, "
    "the accuracy of any constant answer, on data where the forest is above it. Exchanging the two labels "
    "would improve it.</li>",
    f"<li><b>Spread.</b> The deviation over the runs is more than {TIMES_A_COIN:g} times that of tossing a "
    "coin for every test sample. Runs with right labels mixed with runs with exchanged ones vary so much; a "
    "classifier that has learnt something does not.</li>",
    "<li><b>Far from what this data gives.</b> The same classifier on the same public data gets another mean, "
    "by more than both deviations, in every form of the features.</li></ul>",
    "<p>For P-OPF there is an explanation: the reformulated objective is printed with a wrong leading minus. "
    "Minimised as printed, it ends at the edge of the box and exchanges the labels: the accuracy becomes "
    "100 % less what it should be, and some runs with and some without give such means and deviations. "
    "Minimised rightly, P-OPF at Θ = 0.5 gives the labels of the forest but for samples of the lowest costs, "
    "and so nearly the forest's accuracy. OPF itself minimises nothing; where its own values bear these signs, "
    "the objective cannot be the reason, and the paper's text gives no other.</p>",
)
SHOWN = ("accuracy", "seconds", "log_loss", "brier", "ece")


def as_html(results: Results, images: Mapping[str, bytes]) -> str:
    """Write the report of a study.

    Parameters
    ----------
    results : Results
    images : dict of str to bytes
        PNG files by the names of figures; they are put into the page.

    Returns
    -------
    str
        A whole page that loads nothing.
    """
    title = "Probabilistic optimum-path forest: the experiment"
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        *_introduction(results),
        *_contents(results, images),
    ]
    for name in SHOWN:
        parts += _table(measure_table(results, name))
        if name == "accuracy":
            parts += _doubtful(results)
    parts += _figures(images)
    parts += _failures(results)
    parts += _setup(results)
    return "\n".join([*parts, "</body></html>", ""])


def _introduction(results: Results) -> Iterator[str]:
    protocol = results.protocol
    share = f"{100 * protocol.train_size:g} %"
    yield (
        f"<p>{len(results.datasets)} data sets, {protocol.runs} random splits of each, by class: {share} "
        f"for training, the rest for test; seed {protocol.seed}. All methods see the same splits.</p>"
    )
    yield f'<p class="note">Where a column says “paper”: {escape(paper.REFERENCE)}.</p>'


def _contents(results: Results, images: Mapping[str, bytes]) -> Iterator[str]:
    links = [(name, MEASURES[name].title) for name in SHOWN]
    if doubts(results):
        links.insert(1, ("doubts", "Values in doubt"))
    if images:
        links.append(("figures", "Figures"))
    links.append(("setup", "Set-up"))
    anchors = "".join(f'<a href="#{name}">{escape(text)}</a>' for name, text in links)
    yield f"<nav>{anchors}</nav>"


def _table(table: Table) -> Iterator[str]:
    """Ours and the paper's side by side."""
    printed = set(table.printed_methods)
    yield f'<h2 id="{table.name}">{escape(table.title)}</h2><div class="scroll"><table><thead><tr>'
    yield f'<th rowspan="{2 if printed else 1}">dataset</th>'
    for method in table.methods:
        span = ' colspan="2"' if method in printed else ""
        yield f"<th{span}>{escape(method)}</th>"
    yield "</tr>"
    if printed:
        yield "<tr>"
        for method in table.methods:
            yield "<th>ours</th>" + ('<th class="paper">paper</th>' if method in printed else "")
        yield "</tr>"
    yield "</thead><tbody>"
    for row in table.rows:
        form = f" <small>{escape(row.form)}</small>"
        yield f"<tr><td>{escape(row.dataset)}{form}{' †' if row.stand_in else ''}</td>"
        for method in table.methods:
            yield _cell(row.ours.get(method), "")
            if method in printed:
                yield _cell(row.printed.get(method), "paper")
        yield "</tr>"
    yield "</tbody></table></div>"
    for note in table.notes:
        yield f'<p class="note">{escape(note.replace("Stand-ins,", "† Stand-ins,"))}</p>'


def _cell(cell: Cell | None, kind: str) -> str:
    """Show one value; a flag is a sign, not only a colour."""
    if cell is None:
        return f'<td class="{kind}">–</td>' if kind else "<td>–</td>"
    classes = " ".join(word for word in (kind, "flag" if cell.flagged else "") if word)
    text = escape(cell.text)
    text = f"<strong>{text}</strong>" if cell.bold else text
    sign = ' <span title="differs by more than both deviations">!</span>' if cell.flagged else ""
    return f'<td class="{classes}">{text}{sign}</td>' if classes else f"<td>{text}</td>"


def _doubtful(results: Results) -> Iterator[str]:
    """Explain which printed accuracies cannot come from a working classifier."""
    found = doubts(results)
    if not found:
        return
    yield '<h2 id="doubts">Printed values in doubt: what cannot come from a working classifier</h2>'
    yield from EXPLANATION
    yield '<div class="scroll"><table><thead><tr><th>dataset</th><th>method</th><th>paper</th>'
    yield '<th>ours</th><th class="words">why</th></tr></thead><tbody>'
    for doubt in found:
        yield _doubt(doubt)
    yield "</tbody></table></div>"


def _doubt(doubt: Doubt) -> str:
    ours = ", ".join(f"{100 * found.mean:.2f} ({form})" for form, found in doubt.ours.items())
    return (
        f"<tr><td>{escape(doubt.dataset)}</td><td>{escape(doubt.method)}</td>"
        f"<td>{doubt.printed.mean:.2f} ± {doubt.printed.deviation:.2f}</td>"
        f"<td>{escape(ours) or 'stand-in'}</td>"
        f'<td class="words">{escape("; ".join(doubt.reasons()))}</td></tr>'
    )


def _figures(images: Mapping[str, bytes]) -> Iterator[str]:
    if not images:
        return
    yield '<h2 id="figures">Figures</h2>'
    for number, (name, image) in enumerate(images.items(), 1):
        data = base64.b64encode(image).decode("ascii")
        text = escape(caption(name))
        yield f'<figure><img alt="{text}" src="data:image/png;base64,{data}">'
        yield f"<figcaption>Figure {number}. {text}</figcaption></figure>"


def _failures(results: Results) -> Iterator[str]:
    lines = results.failures()
    if lines:
        yield "<h2>What failed</h2><ul>"
        yield from (f"<li>{escape(line)}</li>" for line in lines)
        yield "</ul>"


def _setup(results: Results) -> Iterator[str]:
    """List data sets, methods with all parameters, versions."""
    yield '<h2 id="setup">Set-up</h2><div class="scroll"><table><thead><tr><th>dataset</th>'
    heads = ("samples", "features", "classes", "forms", "this copy")
    yield "".join(f"<th>{head}</th>" for head in heads) + "</tr></thead><tbody>"
    for name, dataset in results.datasets.items():
        facts = dataset.facts()
        classes = ", ".join(f"{label}: {count}" for label, count in facts["classes"].items())
        stand_in = " (stand-in)" if dataset.stand_in else ""
        yield (
            f"<tr><td>{escape(name)}{stand_in}</td><td>{facts['n_samples']}</td><td>{facts['n_features']}</td>"
            f"<td>{escape(classes)}</td><td>{', '.join(results.protocol.forms(dataset))}</td>"
            f"<td>{escape(dataset.source)}</td></tr>"
        )
    yield "</tbody></table></div><ul>"
    for name in results.methods:
        text = str(results.settings["methods"].get(name, ""))
        yield f"<li>{escape(name)}: <code>{escape(text)}</code></li>"
    yield "</ul>"
    versions = results.settings["versions"].items()
    words = ", ".join(f"{name} {number}" for name, number in versions)
    yield f'<p class="note">Versions: {escape(words)}. Times are of one thread, compilation left out.</p>'
