"""Probabilities watched over time: whose rises, how early that finds theft, and a picture.

``rule``     series of probabilities, the rule by which one is rising, and how early that finds theft
``picture``  the probabilities of those that rise, over time
"""

from popf.monitoring.picture import plot_rising
from popf.monitoring.rule import alarms, detection_table, make_series, rises

__all__ = ["alarms", "detection_table", "make_series", "plot_rising", "rises"]
