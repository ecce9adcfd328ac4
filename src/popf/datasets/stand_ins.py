"""Generate stand-ins for datasets that are not public: energy consumers, and the synthetic sets."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from popf.datasets.registry import RECORDS
from popf.engine.structures import BoolArray, FloatArray, IntArray
from popf.formatting import check_choice, check_integer, check_real

DESCRIPTION = """Generated energy consumers, some of whom steal: stand-ins for the paper's private datasets.

A consumer has machines (installed power, kW) behind a transformer (kVA), and a contract (contracted demand,
kW). In a month of `HOURS` hours, the consumer draws at most the maximum demand D (kW) and on average LF * D,
where LF is the load factor, so the active energy is ``E = LF * D * HOURS`` (kWh). With power factor PF, the
reactive energy is ``R = E * tan(arccos(PF))`` (kvarh). The utility bills the larger of the contracted and the
metered demand.

Theft is under-metering: fractions of E, D and R bypass the meter. The features are the metered values, so they
are consistent with each other. Theft shows as a demand too small for the contract and the machines, as a low
load factor (the meter was disturbed for hours), or as a low power factor (active energy is metered too low,
reactive energy is not).

Realistic consumers are harder to judge. Many thieves hide little, or began only this month; some inspections
miss the theft, so that a thief is labelled regular. Many regular consumers use little: they close for weeks, or
have a contract for machines that stand still. What is usual depends on the kind of business (`activity`), how
many steal on the `zone`. Readings and master data have gaps, more of them where somebody steals.
"""

HOURS = 730.0  # per month
MINIMUM_CONTRACT = 30.0  # kW, the lowest contracted demand
#: Standard transformer sizes, kVA.
TRANSFORMERS = np.array(
    [45, 75, 112.5, 150, 225, 300, 500, 750, 1000, 1500, 2000, 2500, 3000, 4000, 5000, 7500, 10000, 15000]
)  # fmt: skip
_SCATTER = (
    60.0  # concentration (sum of the parameters) of the beta distribution of the hidden shares
)

# The paper reports accuracies near chance for its synthetic sets: 48.7, 52.0 and 42.8 % for OPF. So the classes
# here overlap completely (0), almost completely (2), or form close pairs, so that the nearest neighbour of a
# sample is often of the other class (3). OPF's accuracy on them is 51.1, 51.2 and 42.2 %.
_SIZES = {0: 500, 2: 1000, 3: 200}
_SHIFT = 0.2  # distance between the class centres of synthetic2, in standard deviations
_PAIRED = 0.6  # fraction of synthetic3 that forms pairs
_APART = 0.02  # standard deviation of the distance within a pair, per coordinate


#: Kinds of business: their frequency, usual load factor relative to the profile's, and relative odds of theft.
ACTIVITIES = {
    "shop": (0.3, 0.95, 1.0), "office": (0.2, 0.8, 0.4), "restaurant": (0.15, 1.1, 2.0),
    "bakery": (0.1, 1.0, 1.5), "workshop": (0.1, 0.7, 1.5), "hotel": (0.08, 1.25, 0.8),
    "cold store": (0.07, 1.5, 1.2),
}  # fmt: skip
N_ZONES, _ZONE_SPREAD = 12, 0.8  # standard deviation of the log odds of theft between zones
#: Fractions of thieves whom an inspection misses, and who began during the month.
_MISSED, _LATE = 0.08, 0.12
_WIDE_SCATTER = 3.0  # as _SCATTER, for realistic thieves
_MOST_HIDDEN = 0.95
_IDLE = 0.25  # fraction of consumers who use little of their contract at times
_RAMP = 4  # most months until theft is complete
#: Chances of gaps, of regular consumers and of thieves: no reactive meter, unknown machines, unknown activity.
_GAPS = ((0.06, 0.06), (0.04, 0.1), (0.04, 0.12))
_UNREAD = 0.01  # fraction of months without a reading
_READ = [0, 2, 3, 5, 7]  # columns that come from a reading


class Profile(NamedTuple):
    """Parameters of a kind of consumers."""

    n_samples: int  # as in the paper's dataset
    # Chosen so that OPF's accuracy on standardised features is near the paper's.
    theft_rate: float
    strength: float
    # Installed power (kW), log-normal.
    median_power: float
    spread: float
    # Mean and concentration of beta distributions.
    demand_factor: tuple[float, float]
    load_factor: tuple[float, float]
    power_factor: tuple[float, float]
    season: float  # amplitude of the demand over the year
    # Fractions of thieves who bypass the meter, disturb it for hours, or slow its active part.
    ways: tuple[float, float, float]


PROFILES = {
    "commercial": Profile(
        4952, 0.06, 0.52, 150.0, 0.35, (0.62, 120.0), (0.45, 60.0), (0.93, 200.0), 0.15, (0.4, 0.4, 0.2)
    ),
    "industrial": Profile(
        3182, 0.06, 0.66, 600.0, 0.35, (0.7, 200.0), (0.62, 150.0), (0.92, 400.0), 0.05, (0.1, 0.5, 0.4)
    ),
}  # fmt: skip


class _Consumers(NamedTuple):
    """Properties of consumers that do not change from month to month."""

    installed: FloatArray
    transformer: FloatArray
    contracted: FloatArray
    demand: FloatArray
    load_factor: FloatArray
    power_factor: FloatArray


def make_energy_theft(
    profile: str = "commercial",
    *,
    n_samples: int | None = None,
    theft_rate: float | None = None,
    strength: float | None = None,
    realistic: bool = True,
    as_frame: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> Bunch:
    """Generate one month of energy consumers, some of whom steal.

    Parameters
    ----------
    profile : {"commercial", "industrial"}, default="commercial"
    n_samples : int, default=None
        Number of consumers; None for that of the paper's dataset, 4,952 or 3,182.
    theft_rate : float, default=None
        Fraction of thieves; None for the default of the profile.
    strength : float, default=None
        Mean fraction of energy that a thief hides, from 0 to below 1; None for the default of the profile.
    realistic : bool, default=True
        As hard as real inspections (see `DESCR`), with gaps (NaN). With False, as in the stand-ins for the
        paper's datasets, every thief hides about as much and is found, and no regular consumer looks like one.
    as_frame : bool, default=False
        Whether `data` is a DataFrame. It then also has the categories `activity` and `zone` if `realistic`.
    random_state : int, Generator or None, default=None

    Returns
    -------
    Bunch
        `data` of shape (n_samples, 8), with the columns `feature_names`; `target`, 1 for theft and -1 for
        regular, as an inspector finds them; `hidden`, the fraction of active energy that each consumer really
        hides; `target_names`, `DESCR`.

    Examples
    --------
    >>> from popf.datasets import make_energy_theft
    >>> month = make_energy_theft("industrial", n_samples=200, theft_rate=0.1, random_state=0)
    >>> month.data.shape, int((month.hidden > 0).sum()), int((month.target == 1).sum())
    ((200, 8), 20, 20)
    """
    kind, n, rate, strength = _checked(profile, n_samples, theft_rate, strength)
    rng = np.random.default_rng(random_state)
    # Separate, so that the consumers do not depend on the strength.
    theft_rng, life_rng = rng.spawn(2)
    order = rng.permutation(n)
    consumers = _draw_consumers(kind, n, rng)
    life = _draw_circumstances(n, life_rng) if realistic else None
    thief = np.zeros(n, dtype=bool)
    thief[(order if life is None else life.order)[: round(rate * n)]] = True
    hidden = _hidden_shares(kind, n, strength, theft_rng, realistic) * thief[:, None]
    if life is not None:
        began = np.where(life.late, life.first, 1.0)
        hidden *= np.column_stack([began, began == 1.0, began])
        consumers = _at_work(consumers, life, life.idle)
    month = int(rng.integers(12))
    data = _metered(consumers, kind, np.full(n, month), hidden, rng)
    return _bunch(data, thief, hidden, life, np.arange(n), as_frame, life_rng)


def make_energy_theft_months(
    profile: str = "commercial",
    *,
    n_consumers: int = 500,
    n_months: int = 24,
    theft_rate: float | None = None,
    strength: float | None = None,
    realistic: bool = True,
    as_frame: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> Bunch:
    """Generate energy consumers month by month, some of whom begin to steal and never stop.

    Parameters
    ----------
    profile, strength, realistic, as_frame, random_state
        As in `make_energy_theft`. Realistic thieves hide more from month to month, for up to four months, and
        realistic consumers use little for some months.
    n_consumers, n_months : int, default=500 and 24
        At least 1 and 2. The first month is always regular.
    theft_rate : float, default=None
        Fraction of consumers who begin to steal at some time; None for the default of the profile.

    Returns
    -------
    Bunch
        One row per consumer and month, sorted by consumer: `data` of shape (n_consumers * n_months, 8),
        `target` (1 while stealing, else -1), and `consumer`, `month` (from 0) and `hidden` of each row; `onset`
        of shape (n_consumers,), the first month of theft, -1 for never; `feature_names`, `target_names`,
        `DESCR`.

    Examples
    --------
    >>> from popf.datasets import make_energy_theft_months
    >>> years = make_energy_theft_months(n_consumers=50, n_months=12, theft_rate=0.2, random_state=0)
    >>> years.data.shape, int((years.onset >= 0).sum())
    ((600, 8), 10)
    >>> bool((years.hidden[years.target == 1] > 0).all())
    True
    """
    kind, n, rate, strength = _checked(profile, n_consumers, theft_rate, strength, "n_consumers")
    check_integer("n_months", n_months, 2)
    rng = np.random.default_rng(random_state)
    theft_rng, life_rng = rng.spawn(2)
    life = _draw_circumstances(n, life_rng) if realistic else None
    onset, order = np.full(n, -1), rng.permutation(n)
    turned = (order if life is None else life.order)[: round(rate * n)]
    onset[turned] = rng.integers(1, n_months, size=len(turned))
    consumers = _draw_consumers(kind, n, rng)
    hidden = _hidden_shares(kind, n, strength, theft_rng, realistic)

    consumer = np.repeat(np.arange(n), n_months)
    month = np.tile(np.arange(n_months), n)
    steals = (onset[consumer] >= 0) & (month >= onset[consumer])
    shares = hidden[consumer] * steals[:, None]
    rows = _Consumers(*(values[consumer] for values in consumers))
    if life is not None:
        since = (month - onset[consumer] + life.first[consumer]) / life_rng.uniform(0.5, _RAMP, n)[
            consumer
        ]
        shares *= np.clip(since, 0.0, 1.0)[:, None]
        closed = life_rng.integers(2 * n_months, size=n)[consumer]  # half of them later
        idle = (month >= closed) & (month < closed + life_rng.geometric(0.2, n)[consumer])
        rows = _at_work(rows, life, idle & life.idle[consumer], consumer)
    data = _metered(rows, kind, month, shares, rng)
    more = {"consumer": consumer, "month": month, "onset": onset}
    return _bunch(data, steals, shares, life, consumer, as_frame, life_rng, **more)


def make_synthetic(number: int, random_state: int = 0) -> tuple[FloatArray, IntArray]:
    """Generate a stand-in for one of the paper's synthetic datasets.

    Parameters
    ----------
    number : {0, 2, 3}
        The number of the dataset in the paper.
    random_state : int, default=0
        Seed; 0 gives the same data as ``load("synthetic0")`` and so on.

    Returns
    -------
    X, y : ndarray of shape (n_samples, 2) and (n_samples,)
        500, 1,000 or 200 points in the plane, and labels -1 and 1, half each.

    Examples
    --------
    >>> from popf.datasets import make_synthetic
    >>> X, y = make_synthetic(3)
    >>> X.shape, int(y.sum())
    ((200, 2), 0)
    """
    if number not in _SIZES:
        raise ValueError(f"the paper has synthetic0, synthetic2 and synthetic3, not {number!r}.")
    rng = np.random.default_rng([number, random_state])
    n = _SIZES[number]
    y = np.repeat(np.array([-1, 1], dtype=np.int64), n // 2)
    X = rng.standard_normal((n, 2))
    if number == 2:
        X[:, 0] += 0.5 * _SHIFT * y
    if number == 3:
        pairs = round(_PAIRED * n / 2)
        X[n // 2 : n // 2 + pairs] = X[:pairs] + _APART * rng.standard_normal((pairs, 2))
    order = rng.permutation(n)
    return X[order], y[order]


def _checked(
    profile: str, n: int | None, rate: float | None, strength: float | None, name: str = "n_samples"
) -> tuple[Profile, int, float, float]:
    """Return the profile and the checked numbers; None becomes the default of the profile."""
    check_choice("profile", profile, PROFILES)
    kind = PROFILES[profile]
    n = kind.n_samples if n is None else n
    rate = kind.theft_rate if rate is None else rate
    strength = kind.strength if strength is None else strength
    check_integer(name, n, 1)
    check_real("theft_rate", rate, 0.0, 1.0)
    if not 0.0 <= strength < 1.0:
        raise ValueError(f"strength must be at least 0 and below 1, not {strength!r}.")
    return kind, n, rate, strength


def _beta(distribution: tuple[float, float], n: int, rng: np.random.Generator) -> FloatArray:
    mean, concentration = distribution
    return rng.beta(mean * concentration, (1.0 - mean) * concentration, n)


def _draw_consumers(kind: Profile, n: int, rng: np.random.Generator) -> _Consumers:
    installed = kind.median_power * np.exp(kind.spread * rng.standard_normal(n))
    # Enough machines for the smallest contract.
    installed = np.clip(installed, 2.0 * MINIMUM_CONTRACT, 0.9 * TRANSFORMERS[-1])
    demand = installed * _beta(kind.demand_factor, n, rng)
    power_factor = _beta(kind.power_factor, n, rng)
    # The smallest transformer that carries 1.2 times the usual demand.
    size = np.searchsorted(TRANSFORMERS, 1.2 * demand / power_factor)
    transformer = TRANSFORMERS[np.minimum(size, len(TRANSFORMERS) - 1)]
    contracted = np.maximum(MINIMUM_CONTRACT, np.round(demand * rng.uniform(0.95, 1.15, n)))
    load_factor = _beta(kind.load_factor, n, rng)
    return _Consumers(installed, transformer, contracted, demand, load_factor, power_factor)


class _Circumstances(NamedTuple):
    """What makes realistic consumers hard to judge."""

    activity: IntArray  # position in ACTIVITIES
    zone: IntArray
    order: IntArray  # the consumers in the order in which they would turn to theft
    late: BoolArray  # who began during the month
    first: FloatArray  # share of the first month in which they steal
    missed: BoolArray  # whose theft no inspection finds
    idle: BoolArray  # who use little at times
    use: FloatArray  # shares of the demand and of the hours that they then use


def _draw_circumstances(n: int, rng: np.random.Generator) -> _Circumstances:
    frequency, _, odds = np.array([*ACTIVITIES.values()]).T
    activity = rng.choice(len(ACTIVITIES), size=n, p=frequency)
    zone_odds = np.exp(_ZONE_SPREAD * np.random.default_rng(0).standard_normal(N_ZONES))
    zone = rng.integers(N_ZONES, size=n)
    order = np.argsort(rng.exponential(size=n) / (odds[activity] * zone_odds[zone]))
    chances = rng.random((3, n))
    return _Circumstances(
        activity,
        zone,
        order,
        chances[0] < _LATE,
        rng.random(n),
        chances[1] < _MISSED,
        chances[2] < _IDLE,
        rng.beta(2.0, 1.2, (2, n)),
    )


def _at_work(
    rows: _Consumers,
    life: _Circumstances,
    idle: BoolArray,
    consumer: IntArray | slice = slice(None),
) -> _Consumers:
    """Return the demand and load factor that the activity and idle times leave."""
    usual = np.array([factor for _, factor, _ in ACTIVITIES.values()])[life.activity][consumer]
    demand, hours = np.where(idle, life.use[:, consumer], 1.0)
    load_factor = np.minimum(rows.load_factor * usual, 1.0) * hours
    return rows._replace(demand=rows.demand * demand, load_factor=load_factor)


def _hidden_shares(
    kind: Profile, n: int, strength: float, rng: np.random.Generator, realistic: bool
) -> FloatArray:
    """Draw the fractions of active energy, demand and reactive energy that each consumer would hide."""
    # At most as much of the demand as of the energy: the mean cannot exceed the peak.
    way = rng.choice(3, size=n, p=kind.ways)
    scatter = _WIDE_SCATTER if realistic else _SCATTER
    share = _beta((strength, scatter), n, rng) if strength > 0.0 else np.zeros(n)
    share = np.minimum(share, _MOST_HIDDEN) if realistic else share
    of_demand = np.array([1.0, 0.25, 1.0])[way]
    of_reactive = np.array([1.0, 1.0, 0.0])[way]
    return np.column_stack([share, share * of_demand, share * of_reactive])


def _metered(
    consumers: _Consumers,
    kind: Profile,
    month: IntArray,
    hidden: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the eight features, as metered and contracted, one row per month."""
    n = len(month)
    season = 1.0 + kind.season * np.cos(2.0 * np.pi * month / 12.0)
    demand = consumers.demand * season * np.exp(0.05 * rng.standard_normal(n))
    # The demand is limited by the machines and by the transformer.
    limit = np.minimum(consumers.installed, consumers.transformer * consumers.power_factor)
    demand = np.minimum(demand, limit)
    load_factor = np.minimum(1.0, consumers.load_factor * np.exp(0.05 * rng.standard_normal(n)))
    active = load_factor * demand * HOURS
    reactive = active * np.tan(np.arccos(consumers.power_factor))

    active, demand, reactive = np.array([active, demand, reactive]) * (1.0 - hidden.T)
    return np.column_stack(
        [
            np.maximum(demand, consumers.contracted),
            consumers.contracted,
            demand,
            reactive,
            consumers.transformer,
            active / np.hypot(active, reactive),
            consumers.installed,
            active / (demand * HOURS),
        ]
    )


def _bunch(
    data: FloatArray,
    steals: BoolArray,
    hidden: FloatArray,
    life: _Circumstances | None,
    who: IntArray,
    as_frame: bool,
    rng: np.random.Generator,
    **more: Any,
) -> Bunch:
    """Add gaps and categories, and what an inspector finds; `who` is the consumer of each row."""
    names, found, table = list(RECORDS["comercial"].feature_names), steals, data
    categories: dict[str, Any] = {}
    if life is not None:
        found = steals & ~life.missed[who]
        turns = np.zeros(len(life.zone), dtype=bool)
        turns[who[steals]] = True
        gaps = rng.random((3, len(turns))) < np.array(_GAPS)[:, turns.astype(int)]
        for gap, columns in zip(gaps[:2], ([3, 5], [6]), strict=True):
            data[np.ix_(gap[who], np.array(columns))] = np.nan
        data[np.ix_(rng.random(len(data)) < _UNREAD, np.array(_READ))] = np.nan
        activity = np.array([*ACTIVITIES], dtype=object)[life.activity]
        activity[gaps[2]] = None
        zones = np.array([f"Z{number:02d}" for number in range(1, N_ZONES + 1)], dtype=object)
        categories = {"activity": activity[who], "zone": zones[life.zone][who]}
    if as_frame:
        from popf.tables.table import need_pandas

        table = need_pandas().DataFrame(data, columns=names).assign(**categories)
        names = list(table.columns)
    return Bunch(
        data=table,
        target=np.where(found, 1, -1),
        hidden=hidden[:, 0],
        feature_names=names,
        target_names=["regular", "theft"],
        DESCR=DESCRIPTION,
        **more,
    )
