"""Draw the pictures of these pages: ``python docs/pictures.py``, or with the names of some.

The pictures are kept under ``_static``; run this again, from the root of the project, when they should
change. That of the report is a photograph by Chromium, and needs Playwright.
"""

import runpy
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from popf import OPFClassifier, PlattOPFClassifier, POPFClassifier
from popf.display import (
    ForestDisplay,
    LandscapeDisplay,
    LogOddsDisplay,
    ReliabilityDisplay,
    ThresholdDisplay,
)
from popf.paper import platt_probability

FOLDER = Path(__file__).parent / "_static"
SCALE, MARGIN, TITLE = 46, 32, 26
INK, QUIET, STRONG = "#4a4f57", "#b4bac2", "#d1495b"
FILL = {"circle": "#2e86ab", "square": "#e8a33d"}

# The toy set of how_opf_works.md.
CIRCLES = [[0.6, 2.4], [1.2, 3.1], [1.7, 2.2], [2.3, 2.9], [2.9, 2.1], [3.3, 1.4]]
SQUARES = [[4.3, 1.5], [4.9, 2.2], [5.6, 1.8], [5.4, 2.9], [6.3, 2.4], [6.1, 3.4]]
X = np.array(CIRCLES + SQUARES)
Y = np.array(["circle"] * 6 + ["square"] * 6)
NEW = np.array([4.2, 2.7])
# Where the cost of each sample is written, so that it lies on no arc.
SIDES = "below above below above right below below left below left below left".split()  # noqa: SIM905

LOW, HIGH = X.min(axis=0), X.max(axis=0)
WIDTH = (HIGH[0] - LOW[0]) * SCALE + 2 * MARGIN
HEIGHT = (HIGH[1] - LOW[1]) * SCALE + 2 * MARGIN + TITLE


def place(point):
    """Return where a point lies in its panel; y grows upwards in the data, downwards in SVG."""
    x = MARGIN + (point[0] - LOW[0]) * SCALE
    y = TITLE + MARGIN + (HIGH[1] - point[1]) * SCALE
    return x, y


def line(start, end, colour=QUIET, width=2.0, arrow=False):
    (x1, y1), (x2, y2) = place(start), place(end)
    along = np.array([x2 - x1, y2 - y1]) / np.hypot(x2 - x1, y2 - y1)
    head = ""
    if arrow:  # the head ends at the rim of the sample, so that it is seen
        tip = np.array([x2, y2]) - 10 * along
        x2, y2 = tip - 8 * along
        across = 5 * np.array([-along[1], along[0]])
        corners = [tip, np.add((x2, y2), across), np.subtract((x2, y2), across)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        head = f'<polygon points="{points}" fill="{colour}"/>'
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{colour}" stroke-width="{width}"/>{head}'
    )


def text(x, y, words, size=12, colour=INK, anchor="middle", weight="normal"):
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" '
        f'text-anchor="{anchor}" font-weight="{weight}">{words}</text>'
    )


def between(start, end, words, colour=INK, side=1):
    """Write beside the middle of an arc, on its left (1) or right (-1) as one walks along it."""
    (x1, y1), (x2, y2) = place(start), place(end)
    left = side * np.array([y2 - y1, x1 - x2]) / np.hypot(x2 - x1, y2 - y1)
    x, y = (x1 + x2) / 2 + 18 * left[0], (y1 + y2) / 2 + 13 * left[1] + 4
    return text(x, y, words, size=11, colour=colour)


def samples(prototypes=()):
    marks = []
    for index, (point, label) in enumerate(zip(X, Y, strict=True)):
        x, y = place(point)
        if index in prototypes:
            marks.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="12" fill="none" '
                f'stroke="{STRONG}" stroke-width="2.5"/>'
            )
        if label == "circle":
            marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="7" fill="{FILL[label]}"/>')
        else:
            marks.append(
                f'<rect x="{x - 6.5:.1f}" y="{y - 6.5:.1f}" width="13" height="13" '
                f'fill="{FILL[label]}"/>'
            )
    return marks


def spanning_tree(opf):
    """Draw the tree; the edges that join two classes stand out."""
    tree = opf.spanning_tree_
    shapes = []
    for u, v in zip(tree.lower, tree.higher, strict=True):
        crosses = Y[u] != Y[v]
        shapes.append(line(X[u], X[v], STRONG if crosses else QUIET, 3 if crosses else 2))
    return shapes + samples(opf.prototypes_)


def forest(opf):
    """Draw the forest: an arrow to every sample from the one before it, with its cost."""
    shapes = []
    for v, u in enumerate(opf.predecessors_):
        if u >= 0:
            shapes.append(line(X[u], X[v], INK, 1.8, arrow=True))
    for point, cost, side in zip(X, opf.costs_, SIDES, strict=True):
        x, y = place(point)
        words = f"{cost:.2f}" if cost else "0"
        if side == "above":
            shapes.append(text(x, y - 13, words, size=11))
        elif side == "below":
            shapes.append(text(x, y + 25, words, size=11))
        else:
            anchor, shift = ("end", -12) if side == "left" else ("start", 12)
            shapes.append(text(x + shift, y + 2, words, size=11, anchor=anchor))
    return shapes + samples(opf.prototypes_)


def conquest(opf):
    """Draw the path that wins the new sample, and the best that the other class offers."""
    path = opf.explain(NEW[None])[0]
    stops = [*X[path.nodes], NEW]
    shapes = [line(X[u], X[v]) for v, u in enumerate(opf.predecessors_) if u >= 0]
    offers = np.maximum(opf.costs_, np.linalg.norm(X - NEW, axis=1))
    rival = min(np.flatnonzero(path.label != Y), key=lambda v: offers[v])
    shapes.append(line(X[rival], NEW, QUIET, 1.5, arrow=True))
    shapes.append(between(X[rival], NEW, f"{offers[rival]:.2f}"))
    for i in range(len(stops) - 1):
        colour = STRONG if i == path.bottleneck else INK
        shapes.append(line(stops[i], stops[i + 1], colour, 2.5, arrow=True))
        shapes.append(between(stops[i], stops[i + 1], f"{path.weights[i]:.2f}", colour, side=-1))
    x, y = place(NEW)
    shapes += samples(opf.prototypes_)
    shapes.append(
        f'<path d="M{x - 8:.1f},{y:.1f} l8,-8 l8,8 l-8,8 z" fill="white" '
        f'stroke="{INK}" stroke-width="2"/>'
    )
    return shapes


def panel(number, title, shapes):
    heading = text(MARGIN - 8, 20, title, size=14, anchor="start", weight="bold")
    return f'<g transform="translate({number * WIDTH:.0f},0)">{heading}{"".join(shapes)}</g>'


def picture(width, height, panels):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'font-family="system-ui, sans-serif">'
        f'<rect width="100%" height="100%" fill="white"/>'
        f"{''.join(panels)}</svg>\n"
    )


def draw_forest():
    opf = OPFClassifier().fit(X, Y)
    panels = [
        panel(0, "1–2  Spanning tree, prototypes", spanning_tree(opf)),
        panel(1, "3  The forest and its costs", forest(opf)),
        panel(2, "4  A new sample is conquered", conquest(opf)),
    ]
    return picture(3 * WIDTH, HEIGHT, panels)


# The picture of probabilities.md: one panel for each method, P against the signed cost.
PLOT_WIDTH, PLOT_HEIGHT, LEFT, TOP = 360, 230, 56, 58
FARTHEST = 1.6  # the few costs beyond it are drawn at the rim


def on_plot(signed, probability):
    """Return where a sample lies in its panel."""
    share = (np.clip(signed, -FARTHEST, FARTHEST) / FARTHEST + 1) / 2
    return LEFT + share * PLOT_WIDTH, TOP + (1 - probability) * PLOT_HEIGHT


def axes(with_name):
    shapes = []
    for probability in (0, 0.5, 1):
        (x1, y), (x2, _) = on_plot(-FARTHEST, probability), on_plot(FARTHEST, probability)
        shapes.append(
            f'<line x1="{x1}" y1="{y}" x2="{x2}" y2="{y}" stroke="{QUIET}" stroke-width="1"/>'
        )
        shapes.append(text(x1 - 8, y + 4, f"{probability:g}", anchor="end"))
    for signed in (-1.5, -1, -0.5, 0, 0.5, 1, 1.5):
        x, y = on_plot(signed, 0)
        shapes.append(f'<line x1="{x:.1f}" y1="{y}" x2="{x:.1f}" y2="{y + 5}" stroke="{QUIET}"/>')
        shapes.append(text(x, y + 20, f"{signed:g}".replace("-", "−")))
    x, y = on_plot(0, 0)
    shapes.append(text(x, y + 42, "signed cost of the winning path, y·C"))
    if with_name:
        x, y = 16, TOP + PLOT_HEIGHT / 2
        name = text(x, y, "P(malignant)")
        shapes.append(f'<g transform="rotate(-90 {x} {y})">{name}</g>')
    return shapes


def probability_marks(signed, probability, malignant):
    """Draw a circle for each benign sample, a square for each malignant one."""
    marks = []
    for f, p, positive in zip(signed, probability, malignant, strict=True):
        x, y = on_plot(f, p)
        if positive:
            marks.append(
                f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6" '
                f'fill="{FILL["square"]}" stroke="white" stroke-width="0.5"/>'
            )
        else:
            marks.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{FILL["circle"]}" '
                f'stroke="white" stroke-width="0.5"/>'
            )
    return marks


def legend(x):
    words = [
        f'<circle cx="{x}" cy="38" r="4.5" fill="{FILL["circle"]}"/>',
        text(x + 10, 42, "benign", anchor="start"),
        f'<rect x="{x + 66}" y="33.5" width="9" height="9" fill="{FILL["square"]}"/>',
        text(x + 80, 42, "malignant", anchor="start"),
    ]
    return "".join(words)


def draw_probabilities():
    cancer = load_breast_cancer()
    samples = cancer.data[:, [0, 1, 4]]
    labels = cancer.target_names[cancer.target]
    train, test, y_train, y_test = train_test_split(
        samples, labels, train_size=0.25, stratify=labels, random_state=0
    )
    scaler = StandardScaler().fit(train)
    train, test = scaler.transform(train), scaler.transform(test)
    panels = []
    found = OPFClassifier().fit(train, y_train).conquer(test)
    signed = np.where(y_train[found.nodes] == "malignant", found.costs, -found.costs)
    titles = {"paper": "The paper: a curve of one cost", "forest": "The forest: all paths compete"}
    for number, (method, title) in enumerate(titles.items()):
        model = PlattOPFClassifier() if method == "paper" else POPFClassifier(method)
        model.fit(train, y_train)
        shapes = axes(with_name=number == 0)
        if method == "paper":
            grid = np.linspace(-FARTHEST, FARTHEST, 121)
            curve = zip(*on_plot(grid, platt_probability(grid, (model.A_, model.B_))), strict=True)
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y in curve)
            shapes.append(
                f'<polyline points="{points}" fill="none" stroke="{INK}" stroke-width="1.5"/>'
            )
        probability = model.predict_proba(test)[:, 1]
        shapes += probability_marks(signed, probability, y_test == "malignant")
        heading = text(LEFT, 18, title, size=14, anchor="start", weight="bold")
        shift = number * (PLOT_WIDTH + LEFT)
        panels.append(f'<g transform="translate({shift},0)">{heading}{"".join(shapes)}</g>')
    return picture(
        2 * (PLOT_WIDTH + LEFT) + 24, TOP + PLOT_HEIGHT + 56, [*panels, legend(LEFT + 5)]
    )


# The pictures of displays.md, light and dark, with its data.


def tumours():
    cancer = load_breast_cancer(as_frame=True)
    measured = cancer.data[["mean texture", "mean area"]]
    labels = cancer.target_names[cancer.target]
    return train_test_split(measured, labels, train_size=0.33, stratify=labels, random_state=0)


def draw_reliability():
    train, test, y_train, y_test = tumours()
    ax = None
    models = {"pooled": POPFClassifier(), "paper": PlattOPFClassifier(box=WIDE_BOX)}
    for name, classifier in models.items():
        model = make_pipeline(StandardScaler(), classifier).fit(train, y_train)
        shown = ReliabilityDisplay.from_estimator(model, test, y_test, name=name, ax=ax)
        ax = shown.ax_
    return shown


def draw_threshold():
    train, test, y_train, y_test = tumours()
    model = make_pipeline(StandardScaler(), POPFClassifier()).fit(train, y_train)
    return ThresholdDisplay.from_estimator(model, test, y_test, cost_fp=1, cost_fn=10)


def draw_plane():
    train, test, y_train, _ = tumours()
    model = make_pipeline(StandardScaler(), OPFClassifier()).fit(train, y_train)
    return ForestDisplay.from_estimator(model, sample=test.iloc[[SAMPLE]], resolution=400)


def draw_log_odds():
    train, test, y_train, _ = tumours()
    model = make_pipeline(StandardScaler(), POPFClassifier()).fit(train, y_train)
    return LogOddsDisplay.from_estimator(model, test.iloc[[SAMPLE]])


def draw_landscape():
    samples, labels = load_breast_cancer(return_X_y=True)
    model = PlattOPFClassifier().fit(StandardScaler().fit_transform(samples), labels)
    solvers = ["nelder-mead", "pso", "bat", "firefly"]
    return LandscapeDisplay.from_estimator(model, solvers=solvers, random_state=0)


def draw_monitoring():
    """Keep the picture that the example draws."""
    example = Path(__file__).parents[1] / "examples" / "monitoring" / "plot_monitoring.py"
    figure = runpy.run_path(str(example))["figure"]
    figure.savefig(FOLDER / "monitoring.png", dpi=150, metadata={"Software": None})


def draw_report():
    """Photograph the explanation of one penguin, in the report on the model of the README."""
    from palmerpenguins import load_penguins_raw
    from playwright.sync_api import sync_playwright

    from popf import report

    penguins = load_penguins_raw().dropna(subset="Sex").rename(columns={"Individual ID": "penguin"})
    halves = train_test_split(penguins, test_size=0.5, stratify=penguins["Sex"], random_state=0)
    train, test = (half.reset_index(drop=True) for half in halves)
    columns = penguins.columns.drop(["Sex", "penguin"])
    model = POPFClassifier().fit(train[columns], train["Sex"])
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder) / "report.html"
        report.write(model, page, test[columns], test["Sex"], ids={"penguin": test["penguin"]})
        opened = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            view = opened.new_page(viewport={"width": 1080, "height": 900}, color_scheme=scheme)
            view.goto(page.as_uri())
            view.evaluate(
                "document.querySelectorAll('header, nav, footer, section:not(#risk), #features')"
                ".forEach(part => part.remove())"
            )
            view.evaluate("document.querySelector('.people').style.maxHeight = '14rem'")
            view.locator("#people button[data-person]").nth(LISTED).click()
            view.evaluate("document.activeElement.blur()")
            view.locator("#risk").screenshot(path=FOLDER / f"report-{scheme}.png")
        opened.close()


LISTED = 4  # the penguin that the report explains
WIDE_BOX = ((-30, 10), (-10, 10))
SAMPLE = 19
DISPLAYS = {
    "reliability": draw_reliability,
    "threshold": draw_threshold,
    "forest": draw_plane,
    "log-odds": draw_log_odds,
    "landscape": draw_landscape,
}
DRAWINGS = {"how-opf-works": draw_forest, "probabilities": draw_probabilities}
OTHERS = {"monitoring": draw_monitoring, "report": draw_report}


def draw_displays(names):
    import matplotlib.pyplot as plt

    for name, style in {"light": "default", "dark": "dark_background"}.items():
        with plt.style.context(style):
            for display in names:
                figure = DISPLAYS[display]().figure_
                path = FOLDER / f"{display}-{name}.png"
                # No version of matplotlib in the file: the same picture is the same file.
                figure.savefig(path, dpi=130, metadata={"Software": None})
                plt.close(figure)


def draw(names):
    unknown = set(names) - {*DISPLAYS, *DRAWINGS, *OTHERS}
    if unknown:
        sys.exit(
            f"no picture is called {sorted(unknown)[0]!r}: {', '.join([*DISPLAYS, *DRAWINGS, *OTHERS])}"
        )
    draw_displays([name for name in names if name in DISPLAYS])
    for name in names:
        if name in DRAWINGS:
            (FOLDER / f"{name}.svg").write_text(DRAWINGS[name](), encoding="utf-8")
        elif name in OTHERS:
            OTHERS[name]()


if __name__ == "__main__":
    draw(sys.argv[1:] or [*DISPLAYS, *DRAWINGS, *OTHERS])
