"""Tumult Analytics on a local Spark. The same guarantees."""

import pandas as pd
from peer_settings import CITIES, DELTA, EPS, HIGH, LOW, MAX_GROUPS, MAX_ROWS
from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddOneRow,
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    PureDPBudget,
    QueryBuilder,
    Session,
)

PACKAGES = ("tmlt.analytics",)


def load(data):
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark.createDataFrame(pd.DataFrame(data)).cache()


def count(df):
    budget = PureDPBudget(EPS)
    session = Session.from_dataframe(budget, "visits", df, protected_change=AddOneRow())
    return session.evaluate(QueryBuilder("visits").count(), budget).toPandas()


def total(df):
    budget = PureDPBudget(EPS)
    session = Session.from_dataframe(budget, "visits", df, protected_change=AddOneRow())
    return session.evaluate(QueryBuilder("visits").sum("x", LOW, HIGH), budget).toPandas()


def mean(df):
    budget = PureDPBudget(EPS)
    session = Session.from_dataframe(budget, "visits", df, protected_change=AddOneRow())
    return session.evaluate(QueryBuilder("visits").average("x", LOW, HIGH), budget).toPandas()


def public_keys(df):
    session = Session.from_dataframe(PureDPBudget(EPS), "visits", df, protected_change=AddOneRow())
    cities = QueryBuilder("visits").groupby(KeySet.from_dict({"city": CITIES}))
    n = session.evaluate(cities.count(), PureDPBudget(EPS / 2))
    x = session.evaluate(cities.average("x", LOW, HIGH), PureDPBudget(EPS / 2))
    return n.join(x, "city").toPandas()


def unknown_keys(df):
    budget = ApproxDPBudget(EPS, DELTA)
    session = Session.from_dataframe(budget, "visits", df, protected_change=AddOneRow())
    third = ApproxDPBudget(EPS / 3, 0)
    found = session.evaluate(QueryBuilder("visits").get_groups(["item"]), ApproxDPBudget(EPS / 3, DELTA))
    items = QueryBuilder("visits").groupby(KeySet.from_dataframe(found))
    n = session.evaluate(items.count(), third)
    x = session.evaluate(items.average("x", LOW, HIGH), third)
    return n.join(x, "item").toPandas()


def units(df):
    change = AddRowsWithID("person")
    session = Session.from_dataframe(PureDPBudget(EPS), "visits", df, protected_change=change)
    visits = QueryBuilder("visits").enforce(MaxGroupsPerID("city", MAX_GROUPS))
    visits = visits.enforce(MaxRowsPerGroupPerID("city", MAX_ROWS))
    cities = visits.groupby(KeySet.from_dict({"city": CITIES}))
    n = session.evaluate(cities.count(), PureDPBudget(EPS / 2))
    x = session.evaluate(cities.average("x", LOW, HIGH), PureDPBudget(EPS / 2))
    return n.join(x, "city").toPandas()


def read(answer):
    return float(answer.iloc[0, 0]) if answer.shape == (1, 1) else answer.to_numpy().tolist()
