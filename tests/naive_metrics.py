"""Accuracy, calibration error and thresholds, by their definitions written out sample by sample."""

import itertools

import numpy as np


def accuracy(y_true, y_pred, weights):
    """Papa's accuracy, term by term; classes without samples are none, undefined terms are left out."""
    rows = [row for row in zip(y_true, y_pred, weights, strict=True) if row[2] > 0]
    terms = []
    for label in sorted({true for true, _, _ in rows}):
        inside = sum(w for true, _, w in rows if true == label)
        outside = sum(w for true, _, w in rows if true != label)
        missed = sum(w for true, pred, w in rows if true == label and pred != label)
        alarms = sum(w for true, pred, w in rows if true != label and pred == label)
        terms.append(missed / inside)
        if outside > 0:
            terms.append(alarms / outside)
    return 1 - sum(terms) / len(terms)


def binned_error(probabilities, happened, weights, n_bins, strategy):
    """Calibration error of one event: N_b / N times the gap between the means, for every bin."""
    total = sum(weights)
    if strategy == "uniform":
        ends = [b / n_bins for b in range(1, n_bins)]
    else:
        ends = []
        for b in range(1, n_bins):
            for p in sorted(set(probabilities)):
                reached = sum(w for q, w in zip(probabilities, weights, strict=True) if q <= p)
                if reached * n_bins >= b * total:
                    ends.append(p)
                    break
    bins = {}
    for p, h, w in zip(probabilities, happened, weights, strict=True):
        bins.setdefault(sum(end < p for end in ends), []).append((p, h, w))
    error = 0.0
    for members in bins.values():
        mass = sum(w for _, _, w in members)
        if mass > 0:
            frequency = sum(w * h for _, h, w in members) / mass
            mean = sum(w * p for p, _, w in members) / mass
            error += mass / total * abs(frequency - mean)
    return error


def calibration_error(codes, table, weights, n_bins, strategy, kind):
    table = np.asarray(table).tolist()
    if kind == "confidence":
        top = [max(row) for row in table]
        hits = [row.index(max(row)) == code for row, code in zip(table, codes, strict=True)]
        return binned_error(top, hits, weights, n_bins, strategy)
    columns = [1] if kind == "binary" else range(len(table[0]))
    errors = [
        binned_error([row[k] for row in table], codes == k, weights, n_bins, strategy)
        for k in columns
    ]
    return sum(errors) / len(errors)


def curve(y_true, probabilities, thresholds, score):
    """Score labels at every threshold; of equal scores the nearest to 0.5 wins, then the lower."""
    scores = [score(y_true, (probabilities >= t).astype(int)) for t in thresholds]
    ties = [t for t, s in zip(thresholds, scores, strict=True) if s >= max(scores) - 1e-12]
    return scores, min(ties, key=lambda t: (round(abs(t - 0.5), 12), t))


def orders_by_score(y_true, scores):
    """Yield the labels in every order from the highest score to the lowest that ties allow."""
    rows = range(len(scores))
    for order in itertools.permutations(rows):
        ranked = [scores[i] for i in order]
        if ranked == sorted(ranked, reverse=True):
            yield [y_true[i] for i in order]


def average_precision_at(y_true, scores, weights, k):
    """Walk down the distinct scores: new hits times the precision there, the last group cut at k."""
    seen = hits = total = 0.0
    for level in sorted(set(scores), reverse=True):
        group = [(y, w) for y, s, w in zip(y_true, scores, weights, strict=True) if s == level]
        mass = sum(w for _, w in group)
        part = min(1.0, (k - seen) / mass) if mass else 0.0
        new = part * sum(w for y, w in group if y == 1)
        seen, hits = seen + part * mass, hits + new
        total += new * hits / seen if seen else 0.0
    return total / hits if hits else 0.0


def naive_rise(values, recent, history):
    """The rule as it is stated, for one series."""
    found = []
    for at in range(len(values)):
        past, now = values[: max(0, at - recent + 1)], values[max(0, at - recent + 1) : at + 1]
        ready = len(past) >= history and len(now) == recent
        found.append(np.mean(now) - np.median(past) if ready else np.nan)
    return found
