r"""The expansion of :math:`e^{-|x|}` in the plane, in polar terms.

In units of the bandwidth let the centre of some points lie at distance s from a query, and a point at
:math:`\rho` from the centre, in a direction that makes the angle :math:`\varphi` with that of the query. With
Gegenbauer's polynomials,

.. math:: e^{-\sqrt{s^2 - 2 s \rho \cos\varphi + \rho^2}} = e^{-s} \exp\Bigl(\rho \cos\varphi -
    \sum_{n \ge 2} C_n^{(-1/2)}(\cos\varphi)\, \rho^n s^{1-n}\Bigr)
    = e^{-s} \sum_{m, j} G_{mj}(1/s)\, \rho^{m + 2j} \cos m\varphi

so the sum over the points needs their moments :math:`\sum_v w_v \rho_v^{m+2j} e^{i m \varphi_v}` alone.
"""

import math
from functools import cache

import numpy as np

from popf.engine.structures import FloatArray

# Terms of degree up to this are kept.
ORDER = 10


@cache
def series(order: int) -> tuple[tuple[tuple[float, ...], ...], ...]:
    """Work out the terms of the expansion up to some degree.

    Parameters
    ----------
    order : int

    Returns
    -------
    tuple
        For every m, for every j, the coefficients of ``G_mj`` by powers of 1/s.

    Examples
    --------
    >>> from popf.engine.soft.plane_series import series
    >>> series(2)
    (((1.0,), (0.25, -0.25)), ((1.0,),), ((0.25, 0.25),))
    """
    # Polynomials as arrays: [power of cos, power of 1/s].
    shape = (order + 1, order + 1)
    geg = np.zeros((order + 1, order + 1))  # C_n^(-1/2) by powers of the cosine
    geg[0, 0], geg[1, 1] = 1.0, -1.0
    for n in range(2, order + 1):
        geg[n, 1:] += (2 * n - 3) / n * geg[n - 1, :-1]
        geg[n] -= (n - 3) / n * geg[n - 2]
    exponent = np.zeros((order + 1, *shape))
    exponent[1, 1, 0] = 1.0
    for n in range(2, order + 1):
        exponent[n, :, n - 1] = -geg[n]
    # f = exp(e) has n f_n = sum of k e_k f_(n-k).
    found = np.zeros((order + 1, *shape))
    found[0, 0, 0] = 1.0
    for n in range(1, order + 1):
        for k in range(1, n + 1):
            for i, j in zip(*np.nonzero(exponent[k]), strict=True):
                rest = found[n - k, : order + 1 - i, : order + 1 - j]
                found[n, i:, j:] += k / n * exponent[k, i, j] * rest
    terms = []
    for m in range(order + 1):
        polynomials = []
        for j in range((order - m) // 2 + 1):
            total = np.zeros(order + 1)
            for k in range(m, m + 2 * j + 1, 2):  # cos^k has cos(m phi) this often:
                share = math.comb(k, (k - m) // 2) * 2.0 ** (1 - k if m else -k)
                total += share * found[m + 2 * j, k]
            polynomials.append(tuple(float(value) for value in total[: max(m + 2 * j, 1)]))
        terms.append(tuple(polynomials))
    return tuple(terms)


@cache
def polar_from_powers(order: int) -> FloatArray:
    """Make the matrix that turns moments of powers into polar ones.

    Returns
    -------
    ndarray of shape (n_moments, n_moments)
        Columns are the polar moments, real and imaginary parts in the order of `series`; rows those of
        ``x^a y^b / (a! b!)``, all a of a b in a row.

    Examples
    --------
    >>> from popf.engine.soft.plane_series import polar_from_powers
    >>> polar_from_powers(1)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    powers = [(a, b) for b in range(order + 1) for a in range(order + 1 - b)]
    found = np.zeros((len(powers), len(powers)))
    column = 0
    for m in range(order + 1):
        for j in range((order - m) // 2 + 1):
            for part in range(2 if m > 0 else 1):
                for k in range(m + 1):  # (x + iy)^m (x^2 + y^2)^j
                    unit = 1j**k
                    value = (unit.real if part == 0 else unit.imag) * math.comb(m, k)
                    for i in range(j + 1):
                        a, b = m - k + 2 * (j - i), k + 2 * i
                        times = math.comb(j, i) * math.factorial(a) * math.factorial(b)
                        found[powers.index((a, b)), column] += value * times
                column += 1
    return found


#: The terms in use.
TERMS = series(ORDER)
