"""SmartNoise SQL on a pandas frame. Keys are those of the data; a person has at most so many rows in all."""

import pandas as pd
import snsql
from peer_settings import DELTA, EPS, HIGH, LOW, MAX_GROUPS, MAX_ROWS
from snsql import Privacy

PACKAGES = ("smartnoise-sql",)
COLUMNS = {
    "city": {"type": "int"},
    "item": {"type": "int"},
    "x": {"type": "float", "lower": LOW, "upper": HIGH},
}


def load(data):
    return pd.DataFrame(data)


def count(df):
    table = {"row_privacy": True, "censor_dims": False, **COLUMNS}
    reader = snsql.from_df(df, privacy=Privacy(epsilon=EPS), metadata={"": {"db": {"visits": table}}})
    return reader.execute("SELECT COUNT(*) AS n FROM db.visits")


def total(df):
    table = {"row_privacy": True, "censor_dims": False, **COLUMNS}
    reader = snsql.from_df(df, privacy=Privacy(epsilon=EPS), metadata={"": {"db": {"visits": table}}})
    return reader.execute("SELECT SUM(x) AS x FROM db.visits")


def mean(df):
    table = {"row_privacy": True, "censor_dims": False, **COLUMNS}
    reader = snsql.from_df(df, privacy=Privacy(epsilon=EPS / 2), metadata={"": {"db": {"visits": table}}})
    return reader.execute("SELECT AVG(x) AS x FROM db.visits")


def public_keys(df):
    table = {"row_privacy": True, "censor_dims": False, **COLUMNS}
    reader = snsql.from_df(df, privacy=Privacy(epsilon=EPS / 2), metadata={"": {"db": {"visits": table}}})
    rows = reader.execute("SELECT city, COUNT(*) AS n, SUM(x) AS x FROM db.visits GROUP BY city")
    return [(city, n, x / n) for city, n, x in rows[1:]]


def unknown_keys(df):
    table = {"row_privacy": True, "censor_dims": True, **COLUMNS}
    privacy = Privacy(epsilon=EPS / 2, delta=DELTA / 1.5)  # 1.5 times that is charged
    reader = snsql.from_df(df, privacy=privacy, metadata={"": {"db": {"visits": table}}})
    rows = reader.execute("SELECT item, COUNT(*) AS n, SUM(x) AS x FROM db.visits GROUP BY item")
    return [(item, n, x / n) for item, n, x in rows[1:]]


def units(df):
    person = {"private_id": True, "type": "int"}
    table = {"max_ids": MAX_GROUPS * MAX_ROWS, "censor_dims": False, "person": person, **COLUMNS}
    reader = snsql.from_df(df, privacy=Privacy(epsilon=EPS / 2), metadata={"": {"db": {"visits": table}}})
    rows = reader.execute("SELECT city, COUNT(*) AS n, SUM(x) AS x FROM db.visits GROUP BY city")
    return [(city, n, x / n) for city, n, x in rows[1:]]


def read(answer):
    return float(answer[1][0]) if len(answer[1]) == 1 else answer
