"""What the figures mean, in words."""

import numpy as np

from popf.report.formatting import count, fixed, percent, points
from popf.report.numbers import Decisions, Quality
from popf.report.paths import PathView

#: Above this calibration error by chance, and below this number of samples of a class, little can be said.
COARSE, FEW = 0.05, 20


def verdict(found: Quality) -> list[str]:
    """Say how good probabilities are."""
    sentences = [_calibration(found), _against_base_rate(found)]
    rare = round(min(found.prior, 1.0 - found.prior) * found.n_samples)
    if rare < FEW:
        kind = "positive" if found.prior <= 0.5 else "negative"
        sentences.append(f"Only {rare} of the samples are {kind}: all numbers here are rough.")
    return sentences


def _calibration(found: Quality) -> str:
    error, chance = found.scores["ece"].value, found.chance_error
    samples = f"{count(found.n_samples)} samples"
    exact = f"even exact probabilities would be off by up to {points(chance)}"
    if error > chance:
        gaps, weights = found.curve.frequency - found.curve.probability, found.curve.weights
        gap = float(np.average(gaps, weights=weights))
        mostly = f", mostly {'too low' if gap > 0 else 'too high'}" if abs(gap) > error / 2 else ""
        return (
            f"The probabilities are off by {points(error)} on average{mostly}; chance alone explains up to "
            f"{points(chance)} on {samples}."
        )
    if chance > COARSE:
        return (
            f"No miscalibration can be seen, but {samples} show little: the probabilities are off by "
            f"{points(error)} on average, and {exact}."
        )
    return (
        f"The probabilities are well calibrated: they are off by {points(error)} on average, and {exact} on "
        f"{samples}."
    )


def _against_base_rate(found: Quality) -> str:
    loss, base = found.scores["log_loss"], f"the base rate of {percent(found.prior)}"
    if loss.upper < found.prior_log_loss:
        gain = 1.0 - found.scores["brier"].value / found.prior_brier
        much = "much better" if gain > 0.5 else "better"
        return (
            f"They are {much} than {base}: the squared error is {percent(gain, 0)} lower than that of "
            "predicting it for everyone."
        )
    if loss.lower > found.prior_log_loss:
        return (
            f"They are worse than predicting {base} for everyone (log loss {fixed(loss.value, 3)} against "
            f"{fixed(found.prior_log_loss, 3)}): do not use them."
        )
    return f"On this data they are no better than predicting {base} for everyone."


def outcome(found: Decisions, at: int, event: str) -> str:
    """Say what a threshold leads to; the page's script says the same of others."""
    counts = found.counts
    hits, alarms = counts.hits[at], counts.alarms[at]
    return (
        f"{count(hits + alarms)} of {count(found.n_samples)} samples are flagged as “{event}”: {count(hits)} "
        f"correctly, {count(alarms)} as false alarms. {count(counts.n_positive - hits)} of "
        f"{count(counts.n_positive)} are missed."
    )


def path_summary(path: PathView) -> str:
    """Say what a path means."""
    if path.n_steps == 1:
        way = f"One step leads to it from a prototype of “{path.label}”; its length"
    else:
        way = (
            f"{path.n_steps} steps lead to it, from a prototype of “{path.label}” through training samples of "
            "the same class; the longest"
        )
    rivals = "".join(
        f" The cheapest path of “{label}” costs {cost}." for label, cost in path.rivals
    )
    return f"{way}, {path.cost:.4g}, is the cost of the path.{rivals}"
