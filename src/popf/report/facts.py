"""What the model is, as terms and texts."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from popf.io.models import facts_of, shown, versions
from popf.report.formatting import count, figure, percent, plain

Entries = list[tuple[str, str]]
MOST_NAMES = 60
MISSING = {"refuse": "refused", "passed on": None}
METHODS = {
    "pooled": "the forest, pooled with logistic regressions on the features and on splines of them",
    "forest": "the forest alone: every training sample offers a path, and those of each class are weighed",
    "paper": "the paper’s P-OPF: the cost of the winning path alone",
}


def model_facts(
    model: Any, final: Any, about: Mapping[str, Any] | None
) -> list[tuple[str, Entries]]:
    """Gather what there is to know of a model.

    Parameters
    ----------
    model : POPFClassifier or Pipeline
        Fitted.
    final : POPFClassifier
        Its last step.
    about : mapping or None
        What `popf.io.describe` gives, and ``"data"``, the name of the file of samples; None for what the model
        itself knows.

    Returns
    -------
    list of pairs
        Headings with their pairs of terms and texts.
    """
    known = {**facts_of(model, final, None), **(about or {})}
    found = [
        ("In short", _in_short(final, known)),
        ("Training", _training(known)),
        ("Parameters", _parameters(final, known)),
        ("Where it comes from", _origin(known)),
    ]
    return [(heading, entries) for heading, entries in found if entries]


def _in_short(final: Any, known: Mapping[str, Any]) -> Entries:
    entries = [("Classifier", f"{known['estimator']}, a probabilistic optimum-path forest")]
    steps = [f"{name} ({kind})" for name, kind in known["steps"][:-1]]
    if steps:
        entries.append(("Before it", ", then ".join(steps)))
    entries.append(("Probabilities by", METHODS[final.method]))
    if getattr(final, "linear_map_", None) is not None:
        losses = getattr(final, "linear_map_losses_", {})
        text = type(final.linear_map_).__name__
        if losses:
            tried = ", ".join(f"{plain(name)} {loss:.4g}" for name, loss in losses.items())
            text += f" (log loss of those tried: {tried})"
        entries.append(("Features mapped by", text))
    if hasattr(final, "A_"):
        entries.append(("Slope A and offset B", f"{final.A_:.5g} and {final.B_:.5g}"))
    if hasattr(final, "pool_weights_"):
        weights = ", ".join(f"{name} {weight:.2f}" for name, weight in final.pool_weights_.items())
        entries.append(("Weights in the pool", weights))
        taus = ", ".join(f"{tau:.5g}" for tau in final.bandwidths_)
        entries.append(("Bandwidths τ by class", taus))
        if final.prior_weight_ >= 0.01:
            text = f"{percent(final.prior_weight_)}: training samples do not tell the classes apart surely"
            entries.append(("Drawn to the base rate by", text))
    return entries


def _training(known: Mapping[str, Any]) -> Entries:
    classes = ", ".join(
        f"“{plain(label)}” {count(number)}"
        for label, number in zip(known["classes"], known["class_counts"], strict=True)
    )
    names = [feature["name"] for feature in known["features"]]
    entries = [
        ("Samples", count(known["n_samples"])),
        ("Classes", classes),
        ("Prototypes", f"{count(known['n_prototypes'])}, where classes meet"),
        ("Features", count(known["n_features"])),
    ]
    if all(name is not None for name in names):
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        entries.append(("Their names", ", ".join(map(plain, names[:MOST_NAMES])) + more))
    return entries


def _parameters(final: Any, known: Mapping[str, Any]) -> Entries:
    usual = type(final)().get_params(deep=False)
    changed: list[str] = []
    same: list[str] = []
    for name, value in known["parameters"].items():
        entry = f"{name} = {value}"
        (same if shown(usual.get(name)) == value else changed).append(entry)
    return [
        ("Set", plain_list(changed) or "none: all as they come"),
        ("As they come", plain_list(same)),
    ]


def plain_list(words: list[str]) -> str:
    """Join words that can be written."""
    return ", ".join(plain(word) for word in words)


def _origin(known: Mapping[str, Any]) -> Entries:
    entries: Entries = []
    for key, term in (("file", "Model"), ("data", "Samples of this page"), ("saved", "Saved")):
        if known.get(key):
            entries.append((term, plain(known[key])))
    if known.get("sha256"):
        entries.append(("SHA-256", plain(known["sha256"])))
    libraries = known.get("libraries") or versions()
    texts = [f"popf {known.get('popf_version', version('popf'))}"]
    texts += [f"{name} {number}" for name, number in libraries.items()]
    entries.append(("Fitted with" if "libraries" in known else "Versions", plain_list(texts)))
    noted = known.get("facts") or {}
    table = noted.get("table")  # of `popf fit`
    if isinstance(table, Mapping):
        noted = {
            "Fitted on": table.get("source"),
            "Missing values": MISSING.get(str(table.get("missing")), table.get("missing")),
            **noted,
        }
    for name, value in noted.items():
        if value and isinstance(value, str | int | float):
            entries.append((plain(name), figure(value)))
    return entries
