"""
Monitoring, month by month
==========================

Find consumers whose probability of theft rises, and measure how early and how reliably they are found.

The paper is about energy theft. Probabilities let a utility do what labels do not: watch each consumer over
time, and look at those whose probability *rises*. The data are generated, as the paper's are private. Consumers
are split into three disjoint sets: the model is fitted to one, the limit of an alarm is set on another, and
results are measured on the third.
"""

import tempfile
from pathlib import Path

import numpy as np

from popf import POPFClassifier
from popf.datasets import make_energy_theft_months
from popf.monitoring import alarms, detection_table, make_series, plot_rising, rises

N_CONSUMERS, N_MONTHS = 1500, 24
data = make_energy_theft_months(
    n_consumers=N_CONSUMERS, n_months=N_MONTHS, theft_rate=0.15, as_frame=True, random_state=0
)
rng = np.random.default_rng(0)
watched = rng.random(N_CONSUMERS) < 0.6  # the others are for training
print(
    f"{(~watched).sum()} consumers to learn from, {watched.sum()} to watch over {N_MONTHS} months\n"
)

# %%
# The months of one consumer are nearly alike. With `groups` they are held out together; otherwise the model
# would be evaluated on consumers that it has seen, and be overconfident about others.
training = ~watched[data.consumer]
model = POPFClassifier().fit(
    data.data[training], data.target[training], groups=data.consumer[training]
)

# %%
# The others are scored, month by month.
rows = watched[data.consumer]
probability = model.predict_proba(data.data[rows])[:, 1]
series = make_series(data.consumer[rows], data.month[rows], probability)
who = data.consumer[rows][series.units]
onset = data.onset[who]

# %%
# The rise: the mean of the last two months, minus the median of all months before.
rise = rises(series.probability, recent=2, history=1)
calibration = np.arange(len(who)) % 2 == 0
table = detection_table(rise, onset, calibration=calibration)
print("false alarms        limit   found (95 %)          median delay   found within 2 months")
print("allowed measured")
for row in table:
    found = f"{row.found:4.0%} ({row.found_lower:.0%} to {row.found_upper:.0%})"
    print(
        f"{row.allowed_rate:5.0%}   {row.false_alarm_rate:8.1%} {row.limit:8.2f}   {found:20}  "
        f"{row.median_delay:8g} months   {row.found_soon:8.0%}"
    )
print(
    f"\nMeasured on {table[0].n_turned} consumers who start to steal and {table[0].n_regular} who never do; "
    "limits were set on others."
)
print("A false alarm is an alarm for a regular consumer at any time in the two years.\n")

# %%
# Consumers with an alarm at the limit of the middle row, highest rise first.
first = alarms(rise, table[1].limit)
peak = np.nan_to_num(rise, nan=-np.inf).max(axis=1)
rising = [unit for unit in np.argsort(-peak) if first[unit] >= 0]
some = rising[:: max(1, len(rising) // 12)][:12]  # from clear to doubtful ones
print("consumer   alarm in month   theft began in   probability before and at the alarm")
for unit in some:
    at = first[unit]
    before, now = np.median(series.probability[unit, : at - 1]), series.probability[unit, at]
    began = onset[unit] if onset[unit] >= 0 else "never"
    print(f"{who[unit]:8} {at:16} {began!s:>16}   {before:.3f} -> {now:.3f}")

# %%
# The same twelve as a figure: the dotted line is the month in which theft began, the mark the alarm.
drawn = [*some, *(unit for unit in rising if unit not in some)]
figure = plot_rising(
    series,
    drawn,
    first_alarm=[first[unit] for unit in drawn],
    names=[f"consumer {who[unit]}" for unit in drawn],
    onset=[float(onset[unit]) if onset[unit] >= 0 else None for unit in drawn],
    time_label="month",
    label="probability of theft",
)
# sphinx_gallery_thumbnail_path = '_static/monitoring.png'
place = Path(tempfile.gettempdir()) / "popf-rising.png"
figure.savefig(place, dpi=150)

# %%
# .. image:: /_static/monitoring.png
#    :alt: Twelve small pictures of probabilities over 24 months; most jump when theft begins
