"""Types that only databases have, and texts that an engine takes for one."""

from __future__ import annotations

import datetime as dt
from uuid import UUID

import pytest

import dpframe as dp

pytestmark = pytest.mark.usefixtures("quiet")


# ---- types that only databases have ----


@pytest.mark.parametrize("how", ["NOCASE", "NOACCENT", "NFC", "de", "set"])
def test_texts_that_an_engine_takes_for_one_are_no_keys(how):
    """Privacy: a row of 'a' would count for the listed key 'A', too."""
    duckdb, ibis = pytest.importorskip("duckdb"), pytest.importorskip("ibis")
    pytest.importorskip("narwhals")
    connection = duckdb.connect()
    declared = "" if how == "set" else f"COLLATE {how}"
    connection.execute(f"CREATE TABLE t(g VARCHAR {declared}, plain ENUM('a', 'A'), x INTEGER)")
    connection.execute("INSERT INTO t VALUES ('a', 'a', 1), ('A', 'A', 2), ('b', 'a', 3)")
    names = ["g"]
    if how == "set":
        connection.execute("SET default_collation = 'NOCASE'")
        names.append("plain")
    elsewhere = ibis.duckdb.connect()
    elsewhere.raw_sql(f"CREATE TABLE t(g VARCHAR {declared or 'COLLATE NOCASE'}, x INTEGER)")
    for table, of in ((connection.table("t"), names), (elsewhere.table("t"), ["g"])):
        for name in of:
            with dp.Session(eps=1, delta=1e-3) as s:
                for keys, more in (({"keys": ["a", "A"]}, {}), ({}, {"delta": 1e-6})):
                    with pytest.raises(dp.InputError, match=f"'{name}' is .* with a collation"):
                        dp.frame(table).groupby(name, **keys).count(eps=0.1, **more)
                with pytest.raises(dp.InputError, match="with a collation"):
                    dp.frame(table).n_unique(name, eps=0.1)
                assert s.spent == 0
            with dp.Session(eps=1, unit=name), pytest.raises(dp.InputError, match="with a collation"):
                dp.frame(table).count(eps=0.1)
    with dp.Session(eps=1):
        dp.frame(connection.table("t")).clip_sum("x", bounds=(0, 3), eps=0.1)


def test_duckdb_types(no_noise):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    relation = connection.sql(
        """
        select 'abcd1234-0000-0000-0000-00000000000' || (i % 3) :: varchar as id_text,
               ('abcd1234-0000-0000-0000-00000000000' || (i % 3)) :: uuid as id,
               (i * 1000000000000) :: hugeint as huge, (18446744073709551615 - i) :: ubigint as unsigned,
               (case when i % 2 = 0 then 'low' else 'high' end) :: enum('high', 'low') as size,
               case when i = 0 then 'infinity' else timestamptz '2026-01-01 00:00:00+00' end as at,
               timestamp_ns '2026-01-01 00:00:00.000000001' as nano, time '12:00' as clock,
               [i, 1.0] :: double[] as list, [i, 1.0] :: double[2] as pair, interval 1 day as lasts
        from range(6) t(i)
        """
    )
    frame = dp.frame(relation)
    with dp.Session(eps=1000):
        sizes = frame.groupby("size", keys="declared").count(eps=1)
        assert sizes.to_dict(as_series=False) == {"size": ["high", "low"], "count": [3, 3]}
        assert frame.groupby("unsigned", keys=[2**64 - 1, 5]).count(eps=1)["count"].to_list() == [1, 0]
        assert frame.groupby("huge", keys=[10**12, 0]).count(eps=1)["count"].to_list() == [1, 1]
        instants = [dt.datetime(2026, 1, 1, tzinfo=dt.UTC), None]
        assert frame.groupby("at", keys=instants).count(eps=1)["count"].to_list() == [5, 1]
        assert frame.clip_sum("huge", bounds=(0, 3e12), eps=1) == pytest.approx(12e12, rel=1e-6)
        for column in ("list", "pair"):
            total = frame.vector_sum(column, dim=2 if column == "list" else None, norm=10, eps=1)
            assert total["1" if "1" in total.columns else total.columns[1]].to_list() == pytest.approx(
                [6], abs=1e-4
            )
        for column in ("clock", "lasts"):
            with pytest.raises(dp.InputError, match="can't be a grouping column"):
                frame.groupby(column, keys=["x"]).count(eps=1)
        ids = [str(UUID(f"abcd1234-0000-0000-0000-00000000000{i}")) for i in range(3)]
        assert frame.groupby("id", keys=ids).count(eps=1)["count"].to_list() == [2, 2, 2]
    with dp.Session(eps=10, unit="id"):
        assert frame.count_units(eps=1) == 3
