"""OpenDP's context on a Polars LazyFrame. The same guarantees; sums of floats pay for their rounding."""

import opendp.prelude as dp
import polars as pl
from peer_settings import CITIES, DELTA, EPS, HIGH, LOW, MAX_GROUPS, MAX_ROWS, MOST_ITEMS, MOST_ROWS

PACKAGES = ("opendp[polars]",)
dp.enable_features("contrib")


def load(data):
    return pl.LazyFrame(data)


def count(df):
    context = dp.Context.compositor(
        data=df,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=EPS),
        split_evenly_over=1,
    )
    return context.query().select(dp.len(signed=True)).release().collect()


def total(df):
    context = dp.Context.compositor(
        data=df,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=EPS),
        split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=MOST_ROWS)],
    )
    x = pl.col("x").fill_nan(0.0).fill_null(0.0)
    return context.query().select(x.dp.sum((LOW, HIGH))).release().collect()


def mean(df):
    context = dp.Context.compositor(
        data=df,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=EPS),
        split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=MOST_ROWS)],
    )
    x = pl.col("x").fill_nan(0.0).fill_null(0.0)
    return context.query().select(x.dp.mean((LOW, HIGH))).release().collect()


def public_keys(df):
    context = dp.Context.compositor(
        data=df,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=EPS),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=["city"], max_length=MOST_ROWS, max_groups=len(CITIES))],
    )
    x = pl.col("x").fill_nan(0.0).fill_null(0.0)
    query = context.query().group_by("city").agg(dp.len(signed=True), x.dp.sum((LOW, HIGH)))
    table = query.with_keys(pl.DataFrame({"city": CITIES})).release().collect()
    return table.select("city", "len", pl.col("x") / pl.col("len"))


def unknown_keys(df):
    context = dp.Context.compositor(
        data=df,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=EPS, delta=DELTA),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=["item"], max_length=MOST_ROWS, max_groups=MOST_ITEMS)],
    )
    x = pl.col("x").fill_nan(0.0).fill_null(0.0)
    query = context.query().group_by("item").agg(dp.len(signed=True), x.dp.sum((LOW, HIGH)))
    return query.release().collect().select("item", "len", pl.col("x") / pl.col("len"))


def units(df):
    context = dp.Context.compositor(
        data=df,
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("person")),
        privacy_loss=dp.loss_of(epsilon=EPS),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=["city"], max_length=MOST_ROWS, max_groups=len(CITIES))],
    )
    x = pl.col("x").fill_nan(0.0).fill_null(0.0)
    short = context.query().truncate_per_group(MAX_ROWS, by=["city"])
    # Ranks start at 1, so one more is paid for than kept; keep="sample" fails on the Polars it installs.
    few = short.truncate_num_groups(MAX_GROUPS + 1, by=["city"], keep="first")
    query = few.group_by("city").agg(dp.len(signed=True), x.dp.sum((LOW, HIGH)))
    table = query.with_keys(pl.DataFrame({"city": CITIES})).release().collect()
    return table.select("city", "len", pl.col("x") / pl.col("len"))


def read(answer):
    return answer.rows() if answer.width > 1 else float(answer.item())
