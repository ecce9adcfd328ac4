"""Fits that were measured, and the curve of each contestant over n.

The seconds of a fit are taken as ``b n^e`` for a space tree, and as ``a + b n + c n²`` for products, with
coefficients that are not negative, fitted to relative errors. Two sizes are left out: the smallest, which also
pays for what happens only once, and the largest, which is the check.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from .contestants import FROM_FILE, GPU

Floats = NDArray[np.float64]
Record = dict[str, Any]
SUITES = ("scaling", "dask", "dask-gpu", "out-of-core")
# From so many features on distances come as matrix products.
PRODUCTS_FROM = 20
# With fewer sizes there is nothing to check a curve by.
FEWEST_SIZES = 4


class Fit(NamedTuple):
    """A fit that was measured; sizes of memory are in bytes.

    Attributes
    ----------
    who : str
        The contestant.
    threads : int
    n, d : int
        Samples and features.
    seconds : float
        The best.
    facts : dict
        What else was measured: see `benchmarks.fits`.
    """

    who: str
    threads: int
    n: int
    d: int
    seconds: float
    facts: dict[str, Any]

    @property
    def where(self) -> str:
        """Name what it ran on."""
        if self.who == GPU:
            return "a GPU"
        if self.workers or self.who == FROM_FILE:
            return self.who.removeprefix("popf ").removeprefix("on ")
        return f"{self.threads} core{'s' if self.threads > 1 else ''}"

    @property
    def workers(self) -> int:
        """How many processes a cluster had, or 0."""
        return int(self.facts.get("workers", 0))


def fits_of(records: list[Record]) -> list[Fit]:
    """Collect the fits of the suites on scaling, each with its best time."""
    found: dict[tuple[str, int, int, int], Fit] = {}
    for record in records:
        task = record["task"]
        if task["suite"] not in SUITES:
            continue
        n, d, threads = task["data"]["n_samples"], task["data"]["n_features"], task["threads"]
        for value in record["values"]:
            if value["operation"] != "fit":
                continue
            key = (value["contestant"], threads, n, d)
            before = found.get(key)
            seconds = min(value["value"], before.seconds if before else np.inf)
            facts = {**value, **(before.facts if before else {})}
            found[key] = Fit(*key, seconds, facts)
    return list(found.values())


class Power(NamedTuple):
    """The seconds ``b n^e``."""

    b: float
    e: float

    def __call__(self, n: float) -> float:
        return float(self.b * n**self.e)

    def __str__(self) -> str:
        return f"{self.b:.3g} n^{self.e:.3g}"


class Polynomial(NamedTuple):
    """The seconds ``a + b n + c n²``."""

    a: float
    b: float
    c: float

    def __call__(self, n: float) -> float:
        return float(self.a + self.b * n + self.c * n * n)

    def __str__(self) -> str:
        return f"{self.a:.3g} + {self.b:.3g} n + {self.c:.3g} n²"


Curve = Power | Polynomial


def not_negative(design: ArrayLike, measured: ArrayLike, known: ArrayLike = 0.0) -> Floats:
    """Fit coefficients that are not negative to the relative errors of ``known + design @ found``."""
    target = np.asarray(measured, dtype=np.float64)
    relative = np.asarray(design, dtype=np.float64) / target[:, None]
    # Columns of like size, whatever their units.
    size = np.abs(relative).max(axis=0)
    size[size == 0.0] = 1.0
    found: Floats = (
        nnls(relative / size, np.ones_like(target) - np.asarray(known) / target)[0] / size
    )
    return found


def fit_curve(seconds: dict[int, float], products: bool) -> Curve:
    """Fit a curve to seconds by number of samples."""
    n = np.array(sorted(seconds), dtype=np.float64)
    measured = np.array([seconds[int(size)] for size in n])
    if products:
        a, b, c = not_negative(np.stack([np.ones_like(n), n, n * n], axis=1), measured)
        return Polynomial(float(a), float(b), float(c))
    exponent, level = np.polyfit(np.log(n), np.log(measured), 1)
    return Power(float(np.exp(level)), float(exponent))


class Checked(NamedTuple):
    """A curve, and what it was fitted to.

    Attributes
    ----------
    curve : Curve
    seconds : dict of int to float
        All that was measured, by number of samples.
    """

    curve: Curve
    seconds: dict[int, float]

    @property
    def held_out(self) -> int:
        """The size that the curve has not seen and is checked by."""
        return max(self.seconds)


def curves(fits: list[Fit]) -> dict[tuple[str, int], Checked]:
    """Fit the curve of every place and number of features that has enough sizes."""
    places: dict[tuple[str, int], dict[int, Fit]] = {}
    for fit in fits:
        if not fit.workers and fit.who != FROM_FILE:
            places.setdefault((fit.where, fit.d), {})[fit.n] = fit
    found = {}
    for (where, d), by_size in places.items():
        if len(by_size) < FEWEST_SIZES:
            continue
        seconds = {n: by_size[n].seconds for n in sorted(by_size)}
        seen = {n: s for n, s in seconds.items() if min(seconds) < n < max(seconds)}
        products = d >= PRODUCTS_FROM or where == "a GPU"
        found[where, d] = Checked(fit_curve(seen, products), seconds)
    return found
