"""Measures of quality: of labels, probabilities and thresholds.

``evaluation``   accuracy that is fair to small classes, the calibration error, and all measures at once with
                 intervals, which commands, report and experiment use
``thresholds``   scores and costs over the threshold, which is best, and what is found among the highest scores
``checks``       validation of labels, probabilities and weights

Distances between samples are another kind of metric, and live in `popf.engine.distances`.
"""

from popf.metrics.evaluation import (
    Evaluation,
    Score,
    evaluate,
    expected_calibration_error,
    opf_accuracy_score,
)
from popf.metrics.thresholds import (
    LiftCurve,
    ThresholdCurve,
    average_precision_at,
    lift_curve,
    precision_at,
    threshold_curve,
)

__all__ = [
    "Evaluation",
    "LiftCurve",
    "Score",
    "ThresholdCurve",
    "average_precision_at",
    "evaluate",
    "expected_calibration_error",
    "lift_curve",
    "opf_accuracy_score",
    "precision_at",
    "threshold_curve",
]
