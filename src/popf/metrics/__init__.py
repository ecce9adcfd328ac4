"""Metrics for evaluating labels, probabilities and thresholds.

``evaluation``   OPF accuracy, calibration error, and all metrics at once with intervals, as used by the
                 commands, the report and the experiment
``intervals``    confidence intervals of scores and shares
``expectations`` the scores that calibrated probabilities promise, before labels are known
``thresholds``   scores and costs as functions of the threshold, the best threshold, precision and lift among
                 the highest scores
``checks``       validation of labels, probabilities and weights

Distance metrics are in `popf.engine.distances`.
"""

from popf.metrics.evaluation import (
    Evaluation,
    Score,
    evaluate,
    expected_calibration_error,
    opf_accuracy_score,
)
from popf.metrics.expectations import expected_scores, spread_of_periods
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
    "expected_scores",
    "lift_curve",
    "opf_accuracy_score",
    "precision_at",
    "spread_of_periods",
    "threshold_curve",
]
