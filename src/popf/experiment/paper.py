"""What the paper prints: facts to put beside our own numbers, never targets.

All values are those of S. E. N. Fernandes, D. R. Pereira, C. C. O. Ramos, A. N. Souza and J. P. Papa, "A
Probabilistic Optimum-Path Forest Classifier for Binary Classification Problems" (arXiv:1609.00878):
table 3 (accuracy, with its bold type), table 4 (time).
"""

from typing import NamedTuple

REFERENCE = (
    "S. E. N. Fernandes, D. R. Pereira, C. C. O. Ramos, A. N. Souza, J. P. Papa, "
    '"A Probabilistic Optimum-Path Forest Classifier for Binary Classification Problems", '
    "arXiv:1609.00878"
)
#: Methods in the order of the paper's tables.
METHODS = ("OPF", "P-OPF-BA", "P-OPF-FFA", "P-OPF-PSO", "P-OPF-NM")
RUNS = 20
TRAIN_SIZE = 0.25
#: Figure 1, and figures 2 and 3.
LANDSCAPES = ("industrial", "diabetes")
THRESHOLDS = (("breast_cancer", "comercial"), ("industrial", "ionosphere"))


class Printed(NamedTuple):
    """A mean and a deviation as the paper prints them, and whether they are in bold type."""

    mean: float
    deviation: float
    bold: bool = False


# One line a data set, methods in the order above; an asterisk stands for bold type.
_ACCURACY = """
australian        46.96  6.55   52.50  6.84*  53.31  6.45*  52.43  6.87*  53.31  6.45*
comercial         87.66  3.04*  78.00 25.44   43.34 34.45   87.66  3.04*  87.66  3.04*
industrial        97.03  0.55*  97.03  0.55*  36.69 36.91   97.02  0.54*  97.02  0.54*
breast_cancer     95.83  0.80*  86.73 20.32   75.81 36.32   95.83  0.80*  95.83  0.80*
colon_cancer      61.70  5.49*  50.00 14.58   52.77 14.28   50.00 14.58   61.06  6.75*
diabetes          61.39 11.10*  55.47 13.05   51.63 14.39   43.18 12.53   43.18 12.53
fourclass         50.43 11.89*  47.67 11.76   49.18 11.98   50.05 12.02*  50.05 12.02*
heart             65.32  4.98*  50.44  7.58   48.13  7.08   54.48  5.92   54.48  5.92
ionosphere        85.64  3.25*  55.57 13.68   43.33 10.32   81.29  3.17   83.30  3.11
ionosphere_scale  85.04  3.12*  60.98 12.39   53.26 14.59   79.62  8.95   80.61  8.90
liver             61.00  2.36*  54.02  9.62   45.02 10.52   60.50  2.31   60.50  2.31*
synthetic0        48.72  3.67   50.77  3.66   50.29  3.74   51.57  3.37*  51.57  3.37*
synthetic2        51.99  5.55*  49.84  6.27   46.77  5.27   49.92  6.27   49.92  6.27
synthetic3        42.78  5.79   50.86  9.81   44.83  8.36   58.34  4.47*  55.23  8.18
"""
# The paper's time table calls its second line "industrial" too; its place says that it is comercial.
_SECONDS = """
australian        0.00 0.00  0.17 0.02  0.20 0.01  0.10 0.01  0.02 0.00
comercial         0.06 0.00  1.00 0.15  0.98 0.14  0.97 0.09  0.30 0.00
industrial        0.05 0.00  0.96 0.12  0.91 0.11  0.88 0.11  0.26 0.06
breast_cancer     0.01 0.00  0.23 0.05  0.30 0.06  0.32 0.01  0.12 0.01
colon_cancer      0.00 0.00  0.10 0.01  0.10 0.01  0.10 0.01  0.01 0.00
diabetes          0.01 0.00  0.25 0.03  0.32 0.05  0.27 0.01  0.04 0.00
fourclass         0.01 0.00  0.27 0.03  0.28 0.03  0.28 0.03  0.05 0.00
heart             0.00 0.00  0.17 0.03  0.18 0.02  0.18 0.01  0.02 0.00
ionosphere        0.00 0.00  0.21 0.04  0.21 0.04  0.20 0.02  0.03 0.00
ionosphere_scale  0.00 0.00  0.18 0.02  0.19 0.03  0.20 0.02  0.01 0.00
liver             0.00 0.00  0.17 0.01  0.18 0.01  0.16 0.01  0.01 0.00
synthetic0        0.00 0.00  0.19 0.01  0.19 0.01  0.20 0.01  0.02 0.00
synthetic2        0.02 0.00  0.31 0.02  0.30 0.02  0.29 0.03  0.10 0.03
synthetic3        0.00 0.00  0.12 0.01  0.13 0.01  0.11 0.01  0.01 0.00
"""


def _read(text: str) -> dict[str, dict[str, Printed]]:
    table = {}
    for line in text.split("\n")[1:-1]:
        name, *numbers = line.split()
        pairs = zip(numbers[::2], numbers[1::2], strict=True)
        values = [
            Printed(float(mean), float(deviation.rstrip("*")), deviation.endswith("*"))
            for mean, deviation in pairs
        ]
        table[name] = dict(zip(METHODS, values, strict=True))
    return table


#: Accuracy in per cent, ``ACCURACY[dataset][method]``.
ACCURACY = _read(_ACCURACY)
#: The paper's data sets, in its order.
DATASETS = tuple(ACCURACY)
#: Time in seconds, ``SECONDS[dataset][method]``; the paper does not say of what.
SECONDS = _read(_SECONDS)


def printed(measure: str, dataset: str, method: str) -> Printed | None:
    """Return the printed value of a measure, None where the paper has none."""
    table = {"accuracy": ACCURACY, "seconds": SECONDS}.get(measure, {})
    return table.get(dataset, {}).get(method)
