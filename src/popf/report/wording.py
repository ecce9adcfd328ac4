"""Everything as text: numbers, lines of charts, what the figures mean, and what the model is.

The page's script writes numbers in the same way.
"""

import re
from collections.abc import Iterable, Mapping
from decimal import ROUND_HALF_UP, Decimal
from importlib.metadata import version
from typing import Any

import numpy as np

from popf.display.estimators import last_step
from popf.formatting import listed
from popf.io.models import facts_of, shown, versions
from popf.report.numbers import Decisions, Quality

Entries = list[tuple[str, str]]

MAX_LENGTH, MAX_NAMES = 120, 60
PERCENT = "\N{NO-BREAK SPACE}%"
# Characters that no page may contain, and unpaired surrogates, which cannot be encoded.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
#: Above this calibration error by chance, and below this number of samples of a class, little can be said.
COARSE, FEW = 0.05, 20
METHODS = {
    "pooled": "the forest, pooled with logistic regressions on the features and on splines of them",
    "forest": "the forest alone: every training sample offers a path, and those of each class are weighed",
    "paper": "the paper’s P-OPF: the cost of the winning path alone",
}
HELD_OUT = {
    "pool": "all together",
    "forest": "the forest",
    "linear": "logistic regression",
    "spline": "logistic regression on splines",
    "prior": "the class frequencies",
}


def plain(value: Any) -> str:
    """Return text of at most 120 characters, with unprintable ones replaced."""
    text = _UNPRINTABLE.sub("\ufffd", str(value))
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + "…"


def fixed(value: float, digits: int) -> str:
    """Write a number with a fixed number of digits, halves rounded up as by JavaScript's ``toFixed``."""
    if not np.isfinite(value):
        return "–"
    number = Decimal(float(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{number:f}"


def percent(value: float, digits: int = 1) -> str:
    """Write a share in per cent."""
    return "–" if not np.isfinite(value) else f"{fixed(100.0 * value, digits)}{PERCENT}"


def chance(value: float) -> str:
    """Write a probability in per cent; what is not certain is not called so."""
    if 0.0 < value < 0.001:
        return f"< 0.1{PERCENT}"
    return f"> 99.9{PERCENT}" if 0.999 < value < 1.0 else percent(value)


def log10(value: float) -> str:
    """Write the logarithm of a number."""
    return fixed(float(np.log10(value)), 2)


def points(value: float) -> str:
    """Write a difference of two shares in percentage points."""
    return f"{fixed(100.0 * value, 1)} percentage points"


def count(number: float) -> str:
    """Write a whole number with thousands separators."""
    return f"{int(number):,}"


def threshold_text(value: float) -> str:
    """Write a threshold with three digits, or with as many as distinguish it from others."""
    short = f"{value:.3f}"
    return short if float(short) == value else f"{value:.6g}"


def figure(value: Any) -> str:
    """Write a cell of the user's table: numbers to four digits, text as it is."""
    if value is None:
        return "missing"
    if isinstance(value, bool | np.bool_ | str):
        return plain(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        return plain(value)
    if np.isnan(number):
        return "missing"
    if number == 0.0 or not 1e-4 <= abs(number) < 1e9:
        return f"{number:.4g}"
    digits = max(3 - int(np.floor(np.log10(abs(number)))), 0)
    text = f"{number:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def line_path(x: Iterable[float], y: Iterable[float]) -> str:
    """Draw an SVG path through points of the unit square, in thousandths from the top left; NaN is a gap."""
    parts, pen_down = [], False
    for across, up in zip(x, y, strict=True):
        if not np.isnan(up):
            place = f"{fixed(1000.0 * across, 1)} {fixed(1000.0 * (1.0 - up), 1)}"
            parts.append(("L" if pen_down else "M") + place)
        pen_down = not np.isnan(up)
    return "".join(parts)


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


def model_facts(model: Any, about: Mapping[str, Any]) -> list[tuple[str, Entries]]:
    """Gather headings with pairs of terms and texts; `about` is as for `popf.report.build`."""
    final = last_step(model)
    known = {**facts_of(model, final, None), **about}
    return [
        ("In short", _in_short(final, known)),
        ("Training", _training(known)),
        ("Parameters", _parameters(final, known)),
        ("Where it comes from", _origin(known)),
    ]


def _in_short(final: Any, known: Mapping[str, Any]) -> Entries:
    entries = [("Classifier", f"{known['estimator']}, a probabilistic optimum-path forest")]
    steps = [f"{name} ({kind})" for name, kind in known["steps"][:-1]]
    if steps:
        entries.append(("Before it", ", then ".join(steps)))
    entries.append(("Probabilities by", METHODS[final.method]))
    if getattr(final, "linear_map_", None) is not None:
        text, tried = type(final.linear_map_).__name__, getattr(final, "linear_map_losses_", {})
        if tried:
            text += f" (log loss of those tried: {_pairs(tried, '.4g')})"
        entries.append(("Features mapped by", text))
    if hasattr(final, "A_"):
        entries.append(("Slope A and offset B", f"{final.A_:.5g} and {final.B_:.5g}"))
    if hasattr(final, "pool_weights_"):
        entries.append(("Weights in the pool", _pairs(final.pool_weights_, ".2f")))
        taus = ", ".join(f"{tau:.5g}" for tau in final.bandwidths_)
        entries.append(("Bandwidths τ by class", taus))
    losses = {HELD_OUT[name]: loss for name, loss in getattr(final, "held_out_losses_", {}).items()}
    if losses:
        entries.append(("Log loss on held-out training samples", _pairs(losses, ".3g")))
    if getattr(final, "prior_weight_", 0.0) >= 0.01:
        text = f"{percent(final.prior_weight_)}: the training samples hardly tell the classes apart"
        entries.append(("Shrunken to the base rate by", text))
    return entries


def _pairs(values: Mapping[str, float], digits: str) -> str:
    return ", ".join(f"{plain(name)} {value:{digits}}" for name, value in values.items())


def _training(known: Mapping[str, Any]) -> Entries:
    classes = (
        f"“{plain(label)}” {count(number)}"
        for label, number in zip(known["classes"], known["class_counts"], strict=True)
    )
    names = [feature["name"] for feature in known["features"]]
    entries = [
        ("Samples", count(known["n_samples"])),
        ("Classes", ", ".join(classes)),
        ("Prototypes", f"{count(known['n_prototypes'])}, where classes meet"),
        ("Features", count(known["n_features"])),
    ]
    if None not in names:
        entries.append(("Their names", listed([plain(name) for name in names], MAX_NAMES)))
    return entries


def _parameters(final: Any, known: Mapping[str, Any]) -> Entries:
    defaults = type(final)().get_params(deep=False)
    changed: list[str] = []
    same: list[str] = []
    for name, value in known["parameters"].items():
        (same if shown(defaults.get(name)) == value else changed).append(f"{name} = {value}")
    return [
        ("Set", ", ".join(map(plain, changed)) or "none: all are defaults"),
        ("Defaults", ", ".join(map(plain, same))),
    ]


def _origin(known: Mapping[str, Any]) -> Entries:
    terms = {"file": "Model", "data": "Samples of this page", "saved": "Saved", "sha256": "SHA-256"}
    entries = [(term, plain(known[key])) for key, term in terms.items() if known.get(key)]
    libraries = {"popf": known.get("popf_version", version("popf"))}
    libraries.update(known.get("libraries") or versions())
    texts = (plain(f"{name} {number}") for name, number in libraries.items())
    entries.append(("Fitted with" if "libraries" in known else "Versions", ", ".join(texts)))
    noted = known.get("facts") or {}
    table = noted.get("table")  # of `popf fit`
    if isinstance(table, Mapping):
        missing = {"refuse": "refused", "passed on": None}
        filled = missing.get(str(table.get("missing")), table.get("missing"))
        noted = {"Fitted on": table.get("source"), "Missing values": filled, **noted}
    for name, value in noted.items():
        if value and isinstance(value, str | int | float):
            entries.append((plain(name), figure(value)))
    return entries
