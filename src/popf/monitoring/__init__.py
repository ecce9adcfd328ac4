"""Monitor a model over time.

``rising``   consumers whose probability rises, how well this detects theft, and a plot
``changes``  how new rows differ from the training rows, and what to expect of them without labels
"""

from popf.monitoring.changes import Drift, drift
from popf.monitoring.rising import alarms, detection_table, make_series, plot_rising, rises

__all__ = ["Drift", "alarms", "detection_table", "drift", "make_series", "plot_rising", "rises"]
