"""What the runs say: means, ranks, paired tests, and whether the criteria hold.

All of it is made from the means over seeds of each dataset, so that a dataset counts once however many seeds it
was run with.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from scipy.stats import rankdata, wilcoxon

from .contestants import MAKERS, MAPPED, PRIOR, SOFT, SVM
from .measure import METRICS

Means = dict[str, dict[str, dict[str, float]]]

WITHIN = 1.05  # of the log loss of SVC + Platt


def summarise(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Sum up the runs of each kind of dataset.

    Returns
    -------
    dict
        By kind: ``n_seeds`` (by dataset), ``means`` (by dataset, contestant and metric), ``overall``,
        ``ranks``, ``against`` (the tests) and ``criteria``; ``failed`` counts what did not work.
    """
    summary: dict[str, Any] = {}
    for kind in ("binary", "multiclass"):
        chosen = [run for run in runs if run["kind"] == kind]
        if not chosen:
            continue
        means = means_of(chosen)
        n_seeds: dict[str, int] = defaultdict(int)
        failed: dict[str, int] = defaultdict(int)
        for run in chosen:
            n_seeds[run["dataset"]] += 1
            for name in run["failed"]:
                failed[name] += 1
        summary[kind] = {
            "n_seeds": dict(n_seeds),
            "failed": dict(failed),
            "means": means,
            "overall": overall(means),
            "ranks": {metric: ranks(means, metric) for metric in METRICS},
            "against": {
                ours: {metric: against(means, metric, ours) for metric in METRICS}
                for ours in (SOFT, MAPPED)
            },
            "criteria": criteria(means),
        }
    return summary


def means_of(runs: list[dict[str, Any]]) -> Means:
    """Give the mean over seeds by dataset, contestant and metric.

    A contestant that failed on some seed of a dataset has no mean there: over the seeds left it would be
    compared with others on other splits.
    """
    collected: dict[str, dict[str, list[dict[str, float]]]] = {}
    counts: dict[str, int] = defaultdict(int)
    for run in runs:
        counts[run["dataset"]] += 1
        by_name = collected.setdefault(run["dataset"], {})
        for name, scores in run["scores"].items():
            by_name.setdefault(name, []).append(scores)
    return {
        dataset: {
            name: {key: float(np.mean([one[key] for one in scores])) for key in scores[0]}
            for name, scores in by_name.items()
            if len(scores) == counts[dataset]
        }
        for dataset, by_name in collected.items()
    }


def names_in(means: Means, everywhere: bool = False) -> list[str]:
    """Name those who took part in some dataset, or in all of them."""
    test = all if everywhere else any
    return [name for name in MAKERS if test(name in by_name for by_name in means.values())]


def overall(means: Means) -> dict[str, dict[str, float]]:
    """Give the mean over datasets by contestant, and over how many it is."""
    found = {}
    for name in names_in(means):
        rows = [by_name[name] for by_name in means.values() if name in by_name]
        found[name] = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
        found[name]["datasets"] = len(rows)
    return found


def ranks(means: Means, metric: str) -> dict[str, float]:
    """Give the average rank of those who took part everywhere, 1 the best; ties share a rank."""
    names = names_in(means, everywhere=True)
    if not names:
        return {}
    table = np.array([[by_name[name][metric] for name in names] for by_name in means.values()])
    sign = 1.0 if METRICS[metric] else -1.0
    average = rankdata(sign * table, axis=1).mean(axis=0)
    return dict(zip(names, average.tolist(), strict=True))


def against(means: Means, metric: str, ours: str = SOFT) -> dict[str, dict[str, Any]]:
    """Compare one of ours with each rival over the datasets where both are.

    Returns
    -------
    dict
        By rival: ``wins``, ``losses``, ``datasets``, the mean ``difference`` (our score less the rival's)
        and ``p``, of Wilcoxon's signed-rank test, two-sided, not corrected for the number of rivals; None
        where the two differ on no dataset.
    """
    found = {}
    for rival in names_in(means):
        both = [row for row in means.values() if ours in row and rival in row]
        if rival == ours or not both:
            continue
        gaps = np.array([row[ours][metric] - row[rival][metric] for row in both])
        better = gaps < 0.0 if METRICS[metric] else gaps > 0.0
        found[rival] = {
            "datasets": len(gaps),
            "wins": int(better.sum()),
            "losses": int((~better & (gaps != 0.0)).sum()),
            "difference": float(gaps.mean()),
            "p": float(wilcoxon(gaps).pvalue) if gaps.any() else None,
        }
    return found


def criteria(means: Means) -> list[dict[str, Any]]:
    """Judge ours: near SVC + Platt, with a map no worse, never worse than the prior, as well calibrated as SVC.

    Each entry has ``criterion``, ``value``, ``limit``, ``met`` and ``worse`` (the datasets on which the
    contestant alone would miss the limit, with its score and the limit there).
    """
    found = []
    for ours, says, metric, rival, factor, of_means in (
        (SOFT, f"mean log loss at most {WITHIN} × {SVM}", "log loss", SVM, WITHIN, True),
        (MAPPED, f"mean log loss at most that of {SVM}", "log loss", SVM, 1.0, True),
        (SOFT, f"log loss never above the {PRIOR}", "log loss", PRIOR, 1.0, False),
        (MAPPED, f"log loss never above the {PRIOR}", "log loss", PRIOR, 1.0, False),
        (SOFT, f"mean ECE at most that of {SVM}", "ECE", SVM, 1.0, True),
        (MAPPED, f"mean ECE at most that of {SVM}", "ECE", SVM, 1.0, True),
    ):
        rows = {name: row for name, row in means.items() if ours in row and rival in row}
        if not rows:
            continue
        pairs = {
            name: (row[ours][metric], factor * row[rival][metric]) for name, row in rows.items()
        }
        worse = {name: list(pair) for name, pair in pairs.items() if pair[0] > pair[1]}
        if of_means:
            value, limit = (float(mean) for mean in np.mean(list(pairs.values()), axis=0))
        else:
            value, limit = float(len(worse)), 0.0
        found.append(
            {
                "criterion": f"{ours}: {says}",
                "value": value,
                "limit": limit,
                "met": value <= limit,
                "worse": worse,
            }
        )
    return found
