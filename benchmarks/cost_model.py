"""A cost model fitted to the suite `scaling`, and what it says of sizes that were not measured.

``python -m benchmarks.cost_model FILE`` prints Markdown. For every curve (who, features, threads) the
seconds of a fit are taken as ``a + b n log2(n)`` for a space tree, ``a + b n + c n²`` for products, with
coefficients that are not negative, fitted to the relative errors of all sizes but the largest; that one
is the check.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from .contestants import GPU

Curve = tuple[str, int, int]
Floats = NDArray[np.float64]
# From so many features on distances come as matrix products.
PRODUCTS_FROM = 20


def curves(records: list[dict[str, Any]]) -> dict[Curve, dict[int, float]]:
    """Collect the best seconds of a fit by curve and number of samples."""
    found: dict[Curve, dict[int, float]] = defaultdict(dict)
    for record in records:
        task = record["task"]
        if task["suite"] != "scaling":
            continue
        for value in record["values"]:
            if value["operation"] == "fit":
                curve = (value["contestant"], task["data"]["n_features"], task["threads"])
                n = task["data"]["n_samples"]
                found[curve][n] = min(value["value"], found[curve].get(n, np.inf))
    return found


def terms(n: Floats, n_features: int) -> Floats:
    """Give the terms of the model for so many samples, one a column."""
    n = np.asarray(n, dtype=np.float64)
    if n_features < PRODUCTS_FROM:
        return np.stack([np.ones_like(n), n * np.log2(n)], axis=1)
    return np.stack([np.ones_like(n), n, n * n], axis=1)


def fit(seconds: dict[int, float], n_features: int) -> Floats:
    """Fit the coefficients to relative errors."""
    n = np.array(sorted(seconds), dtype=np.float64)
    measured = np.array([seconds[int(size)] for size in n])
    design = terms(n, n_features) / measured[:, None]
    scale = design.max(axis=0)
    found: Floats = nnls(design / scale, np.ones(len(n)))[0] / scale
    return found


def predict(coefficients: Floats, n: int, n_features: int) -> float:
    """Seconds for n samples."""
    return float(terms(np.array([n], dtype=np.float64), n_features)[0] @ coefficients)


def lines(records: list[dict[str, Any]]) -> list[str]:
    """Write the tables."""
    out = ["| | n | measured | model | off by |", "|---|---|---|---|---|"]
    for (who, d, n_threads), seconds in curves(records).items():
        if len(seconds) < 3:
            continue
        where = "a GPU" if who == GPU else f"{n_threads} core{'s' if n_threads > 1 else ''}"
        largest = max(seconds)
        rest = {n: s for n, s in seconds.items() if n < largest}
        coefficients = fit(rest, d)
        for n in sorted(seconds):
            said = predict(coefficients, n, d)
            mark = "**held out** " if n == largest else ""
            off = f"{mark}{said / seconds[n] - 1:+.0%}"
            out.append(f"| {where}, d = {d} | {n:,} | {seconds[n]:.2f} s | {said:.2f} s | {off} |")
        out.append(f"| | | coefficients | {', '.join(f'{c:.3g}' for c in coefficients)} | |")
    return out


def main(arguments: list[str] | None = None) -> int:
    """Print the tables of a results file."""
    (path,) = sys.argv[1:] if arguments is None else arguments
    content = json.loads(Path(path).read_text(encoding="utf-8"))
    print("\n".join(lines(content["records"])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
