"""A cost model fitted to the suite `scaling`, and what it says of sizes that were not measured.

``python -m benchmarks.cost_model FILE`` prints Markdown. For every curve (who, features, threads) the
seconds of a fit are taken as ``b n^e`` for a space tree, and as ``a + b n + c n²`` for products, with
coefficients that are not negative, fitted to the relative errors of all sizes but two: the smallest, which
also pays for what happens only once, and the largest, which is the check.
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


def fit(seconds: dict[int, float], n_features: int) -> Floats:
    """Fit the coefficients to relative errors: (b, e) of a power, or (a, b, c) of a polynomial."""
    n = np.array(sorted(seconds), dtype=np.float64)
    measured = np.array([seconds[int(size)] for size in n])
    if n_features < PRODUCTS_FROM:
        exponent, level = np.polyfit(np.log(n), np.log(measured), 1)
        return np.array([np.exp(level), exponent])
    design = np.stack([np.ones_like(n), n, n * n], axis=1) / measured[:, None]
    scale = design.max(axis=0)
    found: Floats = nnls(design / scale, np.ones(len(n)))[0] / scale
    return found


def predict(coefficients: Floats, n: float) -> float:
    """Seconds for n samples."""
    if len(coefficients) == 2:
        return float(coefficients[0] * n ** coefficients[1])
    return float(coefficients @ [1.0, n, n * n])


def lines(records: list[dict[str, Any]]) -> list[str]:
    """Write the tables."""
    out = ["| | n | measured | model | off by |", "|---|---|---|---|---|"]
    for (who, d, n_threads), seconds in curves(records).items():
        if len(seconds) < 4:
            continue
        where = "a GPU" if who == GPU else f"{n_threads} core{'s' if n_threads > 1 else ''}"
        smallest, largest = min(seconds), max(seconds)
        rest = {n: s for n, s in seconds.items() if smallest < n < largest}
        coefficients = fit(rest, d)
        for n in sorted(seconds):
            said = predict(coefficients, n)
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
