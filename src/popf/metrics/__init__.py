"""How good labels, probabilities and thresholds are.

What scikit-learn has is not repeated here: the Brier score and the logarithmic loss are
`sklearn.metrics.brier_score_loss` and `sklearn.metrics.log_loss`. Distances between samples are
another kind of metric, and live in `popf.engine.distances`.
"""

from popf.metrics.accuracy import opf_accuracy_score
from popf.metrics.calibration import expected_calibration_error
from popf.metrics.evaluation import evaluate
from popf.metrics.thresholds import ThresholdCurve, threshold_curve

__all__ = [
    "ThresholdCurve",
    "evaluate",
    "expected_calibration_error",
    "opf_accuracy_score",
    "threshold_curve",
]
