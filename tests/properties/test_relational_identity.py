"""DuckDB, Ibis and SQLFrame: what a unit, a key or a value is stays exact, for every type and its extreme cells.

Nothing here is random: every figure is counted by hand from the cells that are listed.
"""

from __future__ import annotations

import datetime as dt
import itertools

import polars as pl
import pyarrow as pa
import pytest
from identities import identities
from sizes import AUDIT

import dpframe as dp

duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'dpframe[duckdb]'")
pytest.importorskip("narwhals", reason="narwhals is not installed: pip install 'dpframe[duckdb]'")

pytestmark = pytest.mark.usefixtures("quiet")

# Of every type: different cells that have a name to be released under, those that have none (Polars holds no such day),
# and those that count as missing. Cells are texts that DuckDB casts; integers are ticks.
CELLS = {
    "BOOLEAN": (["true", "false"], [], []),
    "BIGINT": ([0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)], [], []),
    "UTINYINT": ([0, 255], [], []),
    "UBIGINT": ([0, 2**63, 2**64 - 1, 2**64 - 2], [], []),
    "HUGEINT": ([0, -1, 10**38, 2**127 - 1, 2**127 - 2, -(2**127)], [], []),
    "DECIMAL(38,10)": (["0", "0.0000000001", "9999999999999999999999999999.9999999999", "-1.5"], [], []),
    "DECIMAL(9,8)": (["0", "0.00000001", "-9.99999999"], [], []),
    "DOUBLE": (["0", "0.1", "0.10000000000000002", "5e-324", "1.7976931348623157e308", "inf", "-inf"], [], ["nan"]),
    "FLOAT": (["0", "0.1", "0.10000001", "1e-45", "inf"], [], ["nan"]),
    "VARCHAR": (["", " ", "a", "A", "a ", "á", "a\u0301", "-", "=", "%", "%0", "\x1f", "a\x1f0", "\x00", "1:a", "🦆"], [], []),
    "CHAR(5)": (["a", "a "], [], []),
    "ENUM('', 'a', 'A', '-', 'a\x1f0')": (["", "a", "A", "-", "a\x1f0"], [], []),
    "UUID": (["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"], [], []),
    "JSON": (['{"a":1}', '{"a": 1}', "1", '"1"', "null"], [], []),
    "DATE": (
        ["1970-01-01", "9999-12-31", "12000-01-01", "0044-03-15 (BC)", "200000-01-01"],
        ["5881580-07-10", "5877642-06-25 (BC)"],
        ["infinity", "-infinity"],
    ),
    "TIMESTAMP": (
        ["1970-01-01", "1969-12-31 23:59:59.999999", "12000-01-01", "0044-03-15 (BC)"],
        ["294247-01-10 04:00:54.775806", "290309-12-22 (BC) 00:00:00"],
        ["infinity", "-infinity"],
    ),
    "TIMESTAMPTZ": (
        ["1970-01-01 00:00:00+00", "12000-01-01 00:00:00+00"],
        ["294247-01-10 04:00:54.775806+00"],
        ["infinity", "-infinity"],
    ),
    "TIMESTAMP_NS": (["1970-01-01 00:00:00.000000001", "2262-04-11 23:47:16.854775806", "1970-01-01"], [], ["infinity"]),
    "TIMESTAMP_S": ([0, -1, 10**12], [2**62, 2**62 + 1, -(2**62), 2**63 - 2], [2**63 - 1, -(2**63) + 1]),
    "TIMESTAMP_MS": ([0, -1, 10**15], [2**62, 2**62 + 1, -(2**62), 2**63 - 2], [2**63 - 1, -(2**63) + 1]),
}  # fmt: skip
NO_KEYS = {
    "INTERVAL": "INTERVAL 1 DAY",
    "TIME": "TIME '12:00'",
    "TIMETZ": "'12:00:00+01:00'::TIMETZ",
    "BIT": "'101'::BIT",
    "BLOB": "'a'::BLOB",
    "STRUCT": "{'a': 1}",
    "LIST": "[1]",
    "ARRAY": "[1]::INT[1]",
    "MAP": "MAP {'a': 1}",
    "UNION": "union_value(a := 1)",
    "UHUGEINT": "1::UHUGEINT",
    "BIGNUM": "1::BIGNUM",
    "VARIANT": "1::VARIANT",
    "NULL": "NULL",
}
FAMILIES = ("duckdb", "ibis", "sqlframe")
FEW = (
    "BIGINT",
    "HUGEINT",
    "DECIMAL(38,10)",
    "DOUBLE",
    "VARCHAR",
    "UUID",
    "DATE",
    "TIMESTAMPTZ",
    "TIMESTAMP_S",
)
NUMBER = itertools.count()
NUMBERS = {"TIMESTAMP_S": "s", "TIMESTAMP_MS": "ms"}


def connected(family):
    """A connection, the name of a table that is to come, and what makes the family's frame of it."""
    table = f"t{next(NUMBER)}"  # SQLFrame remembers the columns of a name
    if family == "duckdb":
        connection = duckdb.connect()
        return connection, table, lambda: connection.table(table)
    if family == "ibis":
        ibis = pytest.importorskip("ibis", reason="Ibis is not installed: pip install 'dpframe[ibis]'")
        backend = ibis.duckdb.connect()
        return backend.con, table, lambda: backend.table(table)
    reason = "SQLFrame is not installed: pip install 'dpframe[sqlframe]'"
    session = pytest.importorskip("sqlframe.duckdb", reason=reason).DuckDBSession.builder.getOrCreate()
    return session._conn, table, lambda: session.read.table(table)


def stored(connection, table, kind, cells):
    """The table:  cell i of ``x`` in i + 1 rows, each with a number ``row`` and a value ``v``."""
    values = pa.array(cells, pa.int64()).cast(pa.timestamp(NUMBERS[kind])) if kind in NUMBERS else None
    if values is None:
        values = pa.array([None if c is None else str(c) for c in cells], pa.string())
    held = pa.table({"x": values, "i": range(len(cells))})
    cast = "x" if kind in NUMBERS else f"x::{kind}"
    connection.register("held", held)
    connection.execute(
        f"CREATE TABLE {table} AS SELECT {cast} AS x, row_number() OVER () AS row, 1.0::DOUBLE AS v"
        " FROM held, range(1000) r(j) WHERE j <= i"
    )
    connection.unregister("held")


@pytest.mark.parametrize(
    ("family", "kind"),
    [("duckdb", k) for k in CELLS]
    + [(f, k) for f in FAMILIES[1:] for k in FEW[: None if f == "ibis" else -1]],
)
def test_every_cell_is_itself_as_unit_key_and_value(family, kind):
    """Privacy: two units taken for one, or a row of two groups, would be paid for once and count for more."""
    connection, table, frame = connected(family)
    named, unnamed, missing = CELLS[kind]
    cells = [*named, *unnamed, *missing, None]
    stored(connection, table, kind, cells)
    got = identities(frame())
    rows = [i + 1 for i in range(len(cells))]
    exact = len(named) + len(unnamed)
    assert got.units == got.values == exact
    assert got.found == sorted([*rows[: len(named)], sum(rows[exact:])])
    assert got.tallied == got.chosen == got.found
    assert got.listed == got.expected


@pytest.mark.parametrize(
    "kind", ["BIGINT", "UBIGINT", "HUGEINT", "DECIMAL(9,8)", "DOUBLE", "DATE", "TIMESTAMP_S"]
)
def test_no_collation_decides_about_numbers_and_times(kind):
    """Under Thai rules the texts "-1" and "1" are equal."""
    connection, table, frame = connected("duckdb")
    connection.execute("SET default_collation = 'th'")
    assert connection.execute("SELECT '-1' = '1'").fetchall() == [(True,)]
    named, unnamed, missing = CELLS[kind]
    cells = [*named, *unnamed, *missing, None]
    if kind == "BIGINT":
        cells = [1, -1, 10, -10, None]
        named = cells[:4]
    stored(connection, table, kind, cells)
    got = identities(frame())
    assert got.units == got.values == len(named) + len(unnamed)
    assert got.tallied == got.chosen == got.found
    assert got.listed == got.expected


@pytest.mark.parametrize("family", FAMILIES)
def test_what_can_be_no_key_is_refused_from_its_type(family):
    connection, table, frame = connected(family)
    for text in NO_KEYS.values() if family == "duckdb" else ["INTERVAL 1 DAY"]:
        connection.execute(f"CREATE TABLE {table} AS SELECT {text} AS x, 1 AS n")
        with dp.Session(eps=10, delta=0.1) as s:
            for ask in (
                lambda f: f.groupby("x", keys=["a"]).count(eps=1),
                lambda f: f.groupby("x").count(eps=1, delta=0.01),
                lambda f: f.n_unique("x", eps=1),
                lambda f: f.top_k("x", 1, candidates=["a"], eps=1),
            ):
                with pytest.raises(dp.InputError, match="'x'"):
                    ask(dp.frame(frame()))
            assert s.spent == 0
            dp.frame(frame()).groupby("n", keys=[1]).count(eps=1)
        with dp.Session(eps=10, unit="x") as s, pytest.raises(dp.InputError, match="'x'"):
            dp.frame(frame()).count(max_rows=1, eps=1)
        assert s.spent == 0
        connection.execute(f"DROP TABLE {table}")


def test_pairs_of_keys_stay_apart(no_noise):
    """Separators, signs of missing texts and lengths inside texts, in every pair."""
    texts = ["", "a", "-", "|", "a|", "1:a", "\x1f", "\x1f0", "a\x1f0", "%", "%1", "é", None]
    pairs = list(itertools.product(texts, texts))
    frame = pl.DataFrame(pairs, schema=["a", "b"], orient="row").with_row_index("i")
    frame = pl.concat([frame.filter(pl.col("i") <= j) for j in range(3)] + [frame])
    connection = duckdb.connect()
    relation = connection.from_arrow(frame.to_arrow())
    with dp.Session(eps=10, delta=0.5):
        listed = dp.frame(relation).groupby("a", "b", keys=pairs).count(eps=1)
    assert listed["count"].to_list() == [4, 3, 2, *[1] * (len(pairs) - 3)]
    source = dp.frame(relation)._source
    with dp.Session(eps=10, delta=0.5):
        plan = dp.frame(relation).plan.groupby("a", "b").count(eps=1, delta=0.1).plan
    assert sorted(source.aggregate(plan.ask(1)).rows) == sorted(listed["count"])


MEASURED = {
    "BIGINT": ["9223372036854775807", "-9223372036854775808", "5"],
    "UBIGINT": ["18446744073709551615", "5"],
    "HUGEINT": ["170141183460469231731687303715884105727", "-170141183460469231731687303715884105728", "5"],
    "DECIMAL(38,10)": ["9999999999999999999999999999.9999999999", "-9999999999999999999999999999", "5"],
    "DECIMAL(38,38)": ["0.99999999999999999999999999999999999999", "-0.5"],
    "DOUBLE": ["inf", "-inf", "nan", "1.7976931348623157e308", "5e-324", "5"],
    "FLOAT": ["inf", "nan", "3.4e38", "5"],
    "BOOLEAN": ["true", "false"],
}


@pytest.mark.parametrize("kind", MEASURED)
def test_no_measured_cell_fails_or_counts_for_more_than_its_bounds(kind, no_noise):
    cells = ", ".join(f"('{c}')" for c in MEASURED[kind])
    relation = duckdb.connect().sql(
        f"SELECT x::{kind} AS x, x::{kind} AS y, 1 AS u FROM (VALUES {cells}, (NULL)) t(x)"
    )
    clipped = [
        min(max(float(c.replace("true", "1").replace("false", "0")), -1), 10)
        for c in MEASURED[kind]
        if c != "nan"
    ]
    for unit, limits in ((None, {}), ("u", {"max_rows": 9})):
        with dp.Session(eps=1000, unit=unit):
            f = dp.frame(relation)
            assert f.clip_sum("x", bounds=(-1, 10), eps=1, **limits) == pytest.approx(sum(clipped), abs=1e-3)
            assert f.count("x", eps=1, **limits) == len(clipped)
            f.clip_var("x", bounds=(-1, 1), eps=1, **limits)
            f.clip_cov(["x", "y"], bounds=(0, 1), eps=1, **limits)
            f.median("x", bounds=(0, 10), eps=1, **limits)
            assert (
                f.histogram("x", edges=[-1, 0, 1], eps=1, **limits)["count"].sum() == len(MEASURED[kind]) + 1
            )  # below, above and missing too
            f.vector_sum(["x", "y"], norm=3, eps=1, **limits)


# ---- names ----


ODD = [
    "dpframe_k0",
    "k0",
    "u0",
    "x0",
    "c0",
    "c1",
    "key",
    "code",
    "text",
    "hash",
    "n",
    "bin",
    "t_k0",
    "a.b",
    "`q`",
    'd"q',
    "",
    " ",
    "é",
    "select",
]


@pytest.mark.parametrize("family", ["duckdb", "ibis"])
def test_no_name_of_the_callers_is_taken_for_one_of_ours(family, no_noise):
    connection, table, frame = connected(family)
    day = dt.date(2026, 1, 1)
    held = pl.DataFrame({n: [day, day, dt.date(2026, 1, 2)] for n in ODD if n} | {"v": [1.0, 2.0, 3.0]})
    connection.register("held", held.to_arrow())
    connection.execute(f"CREATE TABLE {table} AS SELECT * FROM held")
    for name in filter(None, ODD):
        with dp.Session(eps=100):
            got = dp.frame(frame()).groupby(name, keys=[day]).dp_agg(a=dp.count(), s=dp.clip_sum("v", bounds=(0, 4)), m=dp.n_unique(name), eps=1)  # fmt: skip
        assert got["a"].to_list() == [2]
        assert got["s"].to_list() == pytest.approx([3], abs=1e-3)
        assert got["m"].to_list() == [1]
        with dp.Session(eps=100, unit=name):
            assert dp.frame(frame()).count_units(eps=1) == 2


def test_a_name_that_is_there_twice_is_refused_and_its_neighbours_are_not(no_noise):
    relation = duckdb.connect().sql('SELECT 1 AS a, 2 AS a, 3 AS b, 4 AS "B"')
    with dp.Session(eps=10) as s:
        with pytest.raises(dp.InputError, match="2 columns named 'a'"):
            dp.frame(relation).groupby("a", keys=[1]).count(eps=1)
        assert s.spent == 0
        for name, value in (("b", 3), ("B", 4)):
            got = dp.frame(relation).groupby(name, keys=[3, 4]).count(eps=1)
            assert got.filter(pl.col(name) == value)["count"].to_list() == [1]


# ---- nothing of something ----


EMPTY = {
    "no rows": "SELECT 'a' AS g, 1 AS u, 1.0::DOUBLE AS v WHERE false",
    "one row": "SELECT 'a' AS g, 1 AS u, 1.0::DOUBLE AS v",
    "two rows": "SELECT 'a' AS g, 1 AS u, 1.0::DOUBLE AS v FROM range(2)",
    "no ids": "SELECT 'a' AS g, NULL::INT AS u, 1.0::DOUBLE AS v FROM range(9)",
    "no keys": "SELECT NULL::VARCHAR AS g, 1 AS u, 1.0::DOUBLE AS v FROM range(9)",
    "no values": "SELECT 'a' AS g, 1 AS u, NULL::DOUBLE AS v FROM range(9)",
    "none listed": "SELECT 'zz' AS g, 1 AS u, 9e9::DOUBLE AS v FROM range(9)",
}


@pytest.mark.parametrize(
    ("family", "what"),
    [(f, w) for f in FAMILIES for w in EMPTY if AUDIT or f == "duckdb" or w in ("no rows", "no ids")],
)
def test_nothing_of_anything_is_answered(family, what):
    """Privacy: a question that fails when nobody is there tells that nobody is."""
    connection, table, frame = connected(family)
    connection.execute(f"CREATE TABLE {table} AS {EMPTY[what]}")
    for unit, limits in ((None, {}), ("u", {"max_groups": 1, "max_rows_per_group": 2})):
        with dp.Session(eps=1000, delta=0.5, unit=unit):
            f, one = dp.frame(frame()), {} if unit is None else {"max_rows": 2}
            for q in (
                dp.median("v", bounds=(0, 9)),
                dp.n_unique("g"),
                dp.quantile("v", 0.9, candidates=[1, 2, 3]),
            ):
                for keys in ({"keys": ["a", None]}, {"delta": 1e-3}):
                    more = {k: v for k, v in keys.items() if k == "delta"}
                    listed = {k: v for k, v in keys.items() if k == "keys"}
                    got = f.groupby("g", **listed).dp_agg(n=dp.count(), q=q, eps=1, **more, **limits)
                    assert got.height == 2 or not listed
            f.n_unique("g", eps=1, **one)
            f.top_k("g", 1, candidates=["a", "b"], eps=1, **one)
            f.histogram("v", edges=[0, 1, 2], eps=1, **one)
            f.clip_mean("v", bounds=(0, 1), eps=1, **one)


# ---- what a table says of itself ----


def lying_file(folder, real, told):
    """A Parquet file of ``real`` cells with the statistics of ``told`` ones."""
    pq = pytest.importorskip("pyarrow.parquet")
    both = []
    for name, cells in (("real", real), ("told", told)):
        place = folder / f"{name}.parquet"
        pq.write_table(pa.table(cells), place, compression="none", use_dictionary=False, store_schema=False)
        both.append(place.read_bytes())
    (data, footer), cut = both, {int.from_bytes(b[-8:-4], "little") + 8 for b in both}
    assert len(data) == len(footer)
    assert len(cut) == 1
    (size,) = cut
    lie = folder / "lie.parquet"
    lie.write_bytes(data[:-size] + footer[-size:])
    return str(lie)


@pytest.mark.parametrize("family", FAMILIES)
def test_statistics_of_a_file_are_not_believed(family, tmp_path):
    """Privacy: told that no cell is above 4, DuckDB leaves the clip out, and packs ids into the few bits they would need."""
    rows = 4096
    real = {
        "user": pa.array([10**15 + 10**9 * i for i in range(rows)]),
        "v": pa.array([1e15] * rows),
        "day": pa.array([20000 + i for i in range(rows)], pa.date32()),
        "at": pa.array([10**15 + 10**9 * i for i in range(rows)], pa.timestamp("us")),
        "text": pa.array([f"{i:08}" for i in range(rows)]),
    }
    told = {
        "user": pa.array([i % 8 for i in range(rows)]),
        "v": pa.array([float(i % 5) for i in range(rows)]),
        "day": pa.array([i % 8 for i in range(rows)], pa.date32()),
        "at": pa.array([i % 8 for i in range(rows)], pa.timestamp("us")),
        "text": pa.array(["00000001"] * rows),
    }
    place = lying_file(tmp_path, real, told)
    connection, table, frame = connected(family)
    connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{place}')")
    source = dp.frame(frame())._source
    with dp.Session(eps=10):
        plan = dp.frame(frame()).plan.clip_sum("v", bounds=(0, 10), eps=1).plan
    (steps,) = source.aggregate(plan.ask(0)).sums[0]
    assert steps.tolist() == [rows * plan.measures[0].axes[0].steps]
    for name in ("user", "day", "at", "text"):
        got = identities(frame(), name, "user")
        assert got.units == got.values == rows
        assert got.found == got.tallied == [1] * rows


def test_an_engines_failure_is_paid_each_time_and_says_nothing():
    connection = duckdb.connect()
    relation = connection.sql("SELECT 1 AS x FROM (VALUES ('canary-4711')) t(x) WHERE x::INTEGER > 0")
    for ask in (
        lambda f: f.clip_sum("x", bounds=(0, 1), eps=1),
        lambda f: f.n_unique("x", eps=1),
        lambda f: f.groupby("x", keys=[1]).count(eps=1),
        lambda f: f.median("x", bounds=(0, 1), eps=1),
    ):
        with dp.Session(eps=2) as s:
            for paid in (1, 2):
                with pytest.raises(dp.ReleaseFailed) as failed:
                    ask(dp.frame(relation))
                assert s.spent == paid
                assert "canary" not in str(failed.value)
                assert failed.value.__context__ is failed.value.__cause__ is None


def test_an_engine_says_nothing_before_the_charge_either():
    """DuckDB's words for a column that is not there quote what is."""
    ibis = pytest.importorskip("ibis", reason="Ibis is not installed: pip install 'dpframe[ibis]'")
    backend = ibis.duckdb.connect()
    backend.raw_sql("CREATE TABLE t AS SELECT 1 AS x; CREATE VIEW v AS SELECT x FROM t")
    table = backend.table("v")
    backend.raw_sql("DROP TABLE t; CREATE TABLE t AS SELECT 1 AS canary_4711")
    with pytest.raises(TypeError, match="words are withheld") as failed:
        dp.frame(table)
    assert "canary" not in str(failed.value)
    assert failed.value.__context__ is None


def test_groups_that_come_back_twice_are_no_answer(monkeypatch):
    """Planted: an engine that joins a row with a key twice."""
    from dpframe.engine import relational_query

    relation = duckdb.connect().sql("SELECT 1 AS g FROM range(3)")
    real = relational_query.grouped
    monkeypatch.setattr(relational_query, "grouped", lambda *a: relational_query.lazy(real(*a).to_native().union(real(*a).to_native())))  # fmt: skip
    with dp.Session(eps=1), pytest.raises(dp.ReleaseFailed):
        dp.frame(relation).groupby("g", keys=[1]).count(eps=1)
