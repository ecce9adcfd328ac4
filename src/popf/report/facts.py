"""What the model is, as terms and texts."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from popf.formatting import listed
from popf.io.models import facts_of, shown, versions
from popf.report.formatting import count, figure, percent, plain

Entries = list[tuple[str, str]]
MAX_NAMES = 60
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


def model_facts(
    model: Any, final: Any, about: Mapping[str, Any] | None
) -> list[tuple[str, Entries]]:
    """Gather headings with pairs of terms and texts; `about` is as for `popf.report.build`."""
    known = {**facts_of(model, final, None), **(about or {})}
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
        text = type(final.linear_map_).__name__
        tried_losses = getattr(final, "linear_map_losses_", {})
        if tried_losses:
            tried = (f"{plain(name)} {loss:.4g}" for name, loss in tried_losses.items())
            text += f" (log loss of those tried: {', '.join(tried)})"
        entries.append(("Features mapped by", text))
    if hasattr(final, "A_"):
        entries.append(("Slope A and offset B", f"{final.A_:.5g} and {final.B_:.5g}"))
    if hasattr(final, "pool_weights_"):
        weights = ", ".join(f"{name} {weight:.2f}" for name, weight in final.pool_weights_.items())
        entries.append(("Weights in the pool", weights))
        taus = ", ".join(f"{tau:.5g}" for tau in final.bandwidths_)
        entries.append(("Bandwidths τ by class", taus))
    losses = getattr(final, "held_out_losses_", {})
    if losses:
        parts = (f"{HELD_OUT[name]} {loss:.3g}" for name, loss in losses.items())
        entries.append(("Log loss on held-out training samples", ", ".join(parts)))
    if getattr(final, "prior_weight_", 0.0) >= 0.01:
        text = f"{percent(final.prior_weight_)}: the training samples hardly tell the classes apart"
        entries.append(("Shrunken to the base rate by", text))
    return entries


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
    terms = {
        "file": "Model",
        "data": "Samples of this page",
        "saved": "Saved",
        "sha256": "SHA-256",
    }
    entries = [(term, plain(known[key])) for key, term in terms.items() if known.get(key)]
    libraries = known.get("libraries") or versions()
    texts = [f"popf {known.get('popf_version', version('popf'))}"]
    texts += [f"{name} {number}" for name, number in libraries.items()]
    entries.append(
        ("Fitted with" if "libraries" in known else "Versions", ", ".join(map(plain, texts)))
    )
    noted = known.get("facts") or {}
    table = noted.get("table")  # of `popf fit`
    if isinstance(table, Mapping):
        missing = {"refuse": "refused", "passed on": None}
        noted = {
            "Fitted on": table.get("source"),
            "Missing values": missing.get(str(table.get("missing")), table.get("missing")),
            **noted,
        }
    for name, value in noted.items():
        if value and isinstance(value, str | int | float):
            entries.append((plain(name), figure(value)))
    return entries
