"""Probabilities watched over time: whose rises, how early that finds theft, and a picture.

``rule``       series of probabilities, and the rule by which one is rising
``detection``  how surely and how early alarms find theft, at a given rate of false alarms
``picture``    the probabilities of those that rise, over time
"""

from popf.monitoring.detection import detection_table
from popf.monitoring.picture import plot_rising
from popf.monitoring.rule import alarms, make_series, rises

__all__ = ["alarms", "detection_table", "make_series", "plot_rising", "rises"]
