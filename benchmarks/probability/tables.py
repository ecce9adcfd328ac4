"""Build tables from the runs: means over datasets, ranks, paired tests, regret, times, calibration.

Every dataset counts once, by its means over seeds. A contestant that failed on one seed of a dataset has no
mean there, because it would be of other splits than those of its rivals.
"""

from collections import defaultdict

import numpy as np
from scipy.stats import rankdata, wilcoxon

from ..tables import Table
from .contestants import BOOSTING, CONTESTANTS, OURS, PRIOR, SVM, TUNED
from .frame_contestants import BY_HAND, FRAME_CONTESTANTS
from .measure import N_BINS

#: Its label marks a train/test split and is not a diagnosis, so means are also shown without this dataset.
MISLABELLED = "liver-disorders"
#: The measures in the table of means; the files have more.
SHOWN = ("log loss", "Brier", "ECE")
#: How far above the best of the tuned rivals a log loss is called a regret.
MUCH = 1.1


def tables(runs):
    """Build the tables of every group and training size."""
    parts = defaultdict(list)
    for run in runs:
        parts[run["group"], run["size"]].append(run)
    made = []
    for (group, size), some in parts.items():
        where = group if size is None else f"{group}, {size:,} training samples"
        means = means_of(some)
        made += [overall(where, means), summary(where, means), regrets(where, means)]
        made += [by_dataset(where, means), calibration(where, some)]
        if group == "frames":
            made.append(by_hand(where, means))
    for group in dict.fromkeys(group for group, size in parts if size):
        made.append(
            by_size(group, {size: parts[g, size] for g, size in parts if g == group and size})
        )
    return [table for table in made if table.rows]


def means_of(runs):
    """Return the mean over seeds of every score, by dataset and contestant."""
    collected, counts = defaultdict(lambda: defaultdict(list)), defaultdict(int)
    for run in runs:
        counts[run["dataset"]] += 1
        for name, scores in run["scores"].items():
            collected[run["dataset"]][name].append(scores)
    return {
        dataset: {
            name: {k: float(np.mean([s[k] for s in some])) for k in some[0] if k != "bins"}
            for name, some in by_name.items()
            if len(some) == counts[dataset]
        }
        for dataset, by_name in collected.items()
    }


def overall(where, means):
    """Tabulate means over datasets, with the best ratio to the tuned SVC first."""
    names = dict.fromkeys(name for by_name in means.values() for name in by_name)
    everywhere = [name for name in names if all(name in by_name for by_name in means.values())]
    ranks = {}
    if everywhere:
        losses = [[row[name]["log loss"] for name in everywhere] for row in means.values()]
        ranks = dict(zip(everywhere, rankdata(losses, axis=1).mean(axis=0), strict=True))
    rows = {}
    for name in names:
        mine = {dataset: row for dataset, row in means.items() if name in row}
        ratio, *against_svm = against(mine, name, SVM)
        sound = [row[name]["log loss"] for dataset, row in mine.items() if dataset != MISLABELLED]
        excess = [
            row[name]["log loss"] - row[PRIOR]["log loss"] for row in mine.values() if PRIOR in row
        ]
        cells = [np.mean([row[name][measure] for row in mine.values()]) for measure in SHOWN]
        rows[name] = (
            name,
            "" if ratio is None else f"{ratio:.3f}",
            f"{cells[0]:.4f}",
            f"{np.mean(sound):.4f}" if MISLABELLED in mine else "",
            *(f"{cell:.4f}" for cell in cells[1:]),
            f"{ranks[name]:.2f}" if name in ranks else "",
            *against_svm,
            f"{max(excess):+.3f}" if excess else "",
            regret_count(mine, name),
            *times(mine, name, (SVM, BOOSTING)),
            str(len(mine)),
        )
    header = ("", "ratio to SVC", SHOWN[0], f"without {MISLABELLED}", *SHOWN[1:], "rank")
    header += ("wins : losses", "p", "worst excess", "regret")
    header += ("fit", "÷ SVC", "÷ LightGBM, folds", "sets")
    ordered = sorted(rows.values(), key=lambda row: (row[1] or "9", row[2]))
    return Table(f"Means over {len(means)} sets, {where}", header, ordered).without_empty_columns()


def against(means, name, rival):
    """Return the ratio of mean log losses, wins and losses, and Wilcoxon's p, on common datasets."""
    both = [(r[name]["log loss"], r[rival]["log loss"]) for r in means.values() if rival in r]
    if not both:
        return None, "", ""
    ours, theirs = np.array(both).T
    if name == rival:
        return 1.0, "", ""
    p = f"{wilcoxon(ours, theirs).pvalue:.2g}" if (ours != theirs).any() else ""
    wins = f"{int((ours < theirs).sum())} : {int((ours > theirs).sum())}"
    return ours.mean() / theirs.mean(), wins, p


def best_tuned(row):
    """Return the tuned rival with the lowest log loss on a dataset, None if none has run."""
    rivals = [name for name in TUNED if name in row]
    return min(rivals, key=lambda name: row[name]["log loss"], default=None)


def regret(row, name):
    """Return the ratio of a log loss to that of the best tuned rival, None if none has run."""
    best = best_tuned(row)
    return None if best is None else row[name]["log loss"] / row[best]["log loss"]


def regret_count(means, name):
    """Count the datasets where `name` is more than 10 % above the best of the tuned rivals."""
    ratios = [regret(row, name) for row in means.values() if best_tuned(row)]
    return f"{sum(ratio > MUCH for ratio in ratios)} of {len(ratios)}" if ratios else ""


def times(means, name, rivals):
    """Return the mean time of a fit, and its ratio to that of each rival: the geometric mean."""
    cells = [f"{1e3 * np.mean([row[name]['fit'] for row in means.values()]):.0f} ms"]
    for rival in rivals:
        ratios = [time_ratio(row, name, rival) for row in means.values() if rival in row]
        cells.append(f"{np.exp(np.mean(np.log(ratios))):.2g}" if ratios else "")
    return cells


def time_ratio(row, name, rival):
    """Return the ratio of fit times; no fit is taken to be faster than the clock can tell."""
    ours, theirs = (max(row[one]["fit"], 1e-6) for one in (name, rival))
    return ours / theirs


def summary(where, means):
    """Tabulate mean log losses, their ratios to ours, regret and times, lowest loss first."""
    rows = []
    for name in CONTESTANTS | FRAME_CONTESTANTS:
        mine = {dataset: row for dataset, row in means.items() if name in row}
        if not mine:
            continue
        losses = [row[name]["log loss"] for row in mine.values()]
        ratio, wins, _ = against(mine, name, OURS)
        won = "" if not wins else " of ".join((wins.split(" : ")[1], str(len(mine))))
        cells = regret_count(mine, name), *times(mine, name, (BOOSTING,))
        rows.append((name, f"{np.mean(losses):.3f}", f"{ratio:.2f}" if wins else "", won, *cells))
    header = ("", "log loss", f"ratio to {OURS}", f"{OURS} is better on", "regret", "fit")
    header += ("÷ LightGBM, folds",)
    ordered = sorted(rows, key=lambda row: row[1])
    return Table(f"Summary, {where}", header, ordered).without_empty_columns()


def regrets(where, means):
    """Tabulate our log loss beside that of the best tuned rival, the largest ratio first."""
    rows = []
    for dataset, row in means.items():
        best = best_tuned(row)
        if OURS in row and best:
            cells = (f"{row[name]['log loss']:.3f}" for name in (OURS, best))
            time = f"{time_ratio(row, OURS, BOOSTING):.2g}" if BOOSTING in row else ""
            rows.append((dataset, *cells, best, f"{regret(row, OURS):.2f}", time))
    header = ("log loss", OURS, "best tuned rival", "", "ratio", "fit ÷ LightGBM, folds")
    ordered = sorted(rows, key=lambda row: -float(row[4]))
    table = Table(f"Regret, {where}", header, ordered)
    return table.without_empty_columns() if rows else table


def by_hand(where, means):
    """Tabulate our log loss on every frame beside LightGBM's, and that of the better encoding by hand.

    Which encoding is better is judged by the test rows, in favour of encoding by hand. The last row has
    geometric means of the ratios of log losses and fit times. Until popf has run, its columns are left out.
    """
    rows, ratios = [], []
    for dataset, row in means.items():
        encodings = [name for name in BY_HAND if name in row]
        if not encodings or BOOSTING not in row:
            continue
        best = min(encodings, key=lambda name: row[name]["log loss"])
        pairs = [(OURS, best), (OURS, BOOSTING), (best, BOOSTING)]
        cells = [ratio_of(row, *pair, what) for what in ("log loss", "fit") for pair in pairs]
        losses = (f"{row[n]['log loss']:.3f}" if n in row else "" for n in (OURS, best, BOOSTING))
        rows.append((dataset, *losses, best.removeprefix("popf, "), *as_text(cells)))
        ratios.append(cells)
    if rows:
        logs = np.log(np.array(ratios, dtype=float))
        known = np.isfinite(logs)
        with np.errstate(invalid="ignore"):
            geometric = np.exp(np.where(known, logs, 0.0).sum(axis=0) / known.sum(axis=0))
        rows.append(("geometric mean", "", "", "", "", *as_text(geometric)))
    ratio_names = (f"{OURS} ÷ by hand", f"{OURS} ÷ LightGBM", "by hand ÷ LightGBM")
    header = ("log loss", OURS, "by hand", BOOSTING, "", *ratio_names)
    header += tuple(f"fit: {name}" for name in ratio_names)
    table = Table(f"By hand, {where}", header, rows)
    return table.without_empty_columns() if rows else table


def ratio_of(row, name, rival, what):
    """Return the ratio of a measure, nan if `name` has not run."""
    return row[name][what] / row[rival][what] if name in row else np.nan


def as_text(ratios):
    """Format three ratios of log losses, and three of times; nothing for nan."""
    digits = (".3f", ".3f", ".3f", ".2g", ".2g", ".2g")
    return ["" if np.isnan(r) else f"{r:{d}}" for r, d in zip(ratios, digits, strict=True)]


def by_dataset(where, means):
    """Tabulate the mean log loss of every contestant on every dataset."""
    names = dict.fromkeys(name for by_name in means.values() for name in by_name)
    rows = [
        (dataset, *(f"{row[name]['log loss']:.3f}" if name in row else "" for name in names))
        for dataset, row in sorted(means.items())
    ]
    return Table(f"Mean log loss, {where}", ("", *names), rows)


def by_size(group, runs):
    """Tabulate the ratio of mean log losses to the tuned SVC's, by number of training samples."""
    means = {size: means_of(some) for size, some in sorted(runs.items())}
    names = dict.fromkeys(n for by_set in means.values() for row in by_set.values() for n in row)
    rows = []
    for name in names:
        ratios = [
            against({d: r for d, r in m.items() if name in r}, name, SVM)[0] for m in means.values()
        ]
        if any(ratios):
            rows.append((name, *(f"{ratio:.3f}" if ratio else "" for ratio in ratios)))
    header = ("ratio to SVC", *(f"{size:,} ({len(some)} sets)" for size, some in means.items()))
    return Table(f"By number of training samples, {group}", header, rows)


def calibration(where, runs):
    """Tabulate observed frequencies by bins of the predicted probability, over all test samples."""
    rows = []
    for name, (_, predicted, observed) in curves(runs).items():
        pairs = zip(predicted, observed, strict=True)
        cells = ("" if np.isnan(p) else f"{p:.2f}: {h:.2f}" for p, h in pairs)
        rows.append((name, *cells))
    header = ("predicted: observed", *(f"{b / N_BINS:.1f} –" for b in range(N_BINS)))
    return Table(f"Calibration, {where}", header, rows)


def curves(runs):
    """Return the count, mean prediction and observed frequency of every bin, by contestant."""
    totals = defaultdict(lambda: np.zeros((N_BINS, 3)))
    for run in runs:
        for name, scores in run["scores"].items():
            if "bins" in scores:
                totals[name] += scores["bins"]
    with np.errstate(invalid="ignore"):
        return {name: (t[:, 0], t[:, 1] / t[:, 0], t[:, 2] / t[:, 0]) for name, t in totals.items()}


def draw(runs, path, names):
    """Draw the calibration curves of some contestants, with points sized by their bins."""
    from matplotlib.figure import Figure

    figure = Figure((5.0, 5.0), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="0.7", lw=1)
    for name, (count, predicted, observed) in curves(runs).items():
        if name in names:
            (line,) = axes.plot(predicted, observed, label=name)
            axes.scatter(predicted, observed, 200 * count / count.sum(), color=line.get_color())
    axes.set(xlabel="predicted probability", ylabel="observed frequency", aspect="equal")
    axes.legend()
    figure.savefig(path)
