"""dpframe on a Polars frame. Pure epsilon by row, or by person; delta for unknown keys."""

import polars as pl
from peer_settings import CITIES, DELTA, EPS, HIGH, LOW, MAX_GROUPS, MAX_ROWS

import dpframe as dp

PACKAGES = (".",)


def load(data):
    return pl.DataFrame(data)


def count(df):
    with dp.Session(eps=EPS):
        return df.dp.count(eps=EPS)


def total(df):
    with dp.Session(eps=EPS):
        return df.dp.clip_sum("x", bounds=(LOW, HIGH), eps=EPS)


def mean(df):
    with dp.Session(eps=EPS):
        return df.dp.clip_mean("x", bounds=(LOW, HIGH), eps=EPS)


def public_keys(df):
    with dp.Session(eps=EPS):
        return df.dp.groupby("city", keys=CITIES).dp_agg(
            n=dp.count(), x=dp.clip_mean("x", bounds=(LOW, HIGH)), eps=EPS
        )


def unknown_keys(df):
    with dp.Session(eps=EPS, delta=DELTA, accountant="sum"):
        return df.dp.groupby("item").dp_agg(
            n=dp.count(), x=dp.clip_mean("x", bounds=(LOW, HIGH)), eps=EPS, delta=DELTA
        )


def units(df):
    with dp.Session(eps=EPS, unit="person"):
        return df.dp.groupby("city", keys=CITIES, max_groups=MAX_GROUPS, max_rows_per_group=MAX_ROWS).dp_agg(
            n=dp.count(), x=dp.clip_mean("x", bounds=(LOW, HIGH)), eps=EPS
        )


def read(answer):
    return answer.rows() if isinstance(answer, pl.DataFrame) else float(answer)
