"""Partitions: disjoint parts paid for once, and how many of them one unit can touch.

A part's exact count is read from an answer at a part's cap of eps = 1e6 (the law's chance of another value is
below e**-1e5), so every figure goes through the public door.
"""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Mapping
from fractions import Fraction

import chance
import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from conftest import KINDS, as_kind, exact_integers
from dpframe.engine.opening import as_source

RELATIONS = ("add_remove", "replace_one")
each_relation = pytest.mark.parametrize("relation", RELATIONS)
SCHEMA = {"u": pl.Int64, "k": pl.String, "x": pl.Float64}
FLIGHTS = [(i, ["EWR", "JFK", "LGA"][i % 3], float(i)) for i in range(90)]
HUGE = 10**6


def frame_of(kind, rows):
    return as_kind(kind, pl.DataFrame(rows, schema=SCHEMA, orient="row"))


def counts(parts, **limits):
    return {k: int(p.dp.count(eps=1000, **limits)) for k, p in parts.items()}


# ---- the mapping ----


def test_parts_come_in_the_order_of_keys_and_hold_the_rows_of_their_key(quiet, kind):
    keys = ["LGA", "absent", "EWR", "JFK"]
    with dp.Session(eps=HUGE):
        parts = frame_of(kind, FLIGHTS).dp.partition_by("k", keys=keys, eps=HUGE)
        assert isinstance(parts, Mapping)
        assert list(parts) == keys
        assert len(parts) == 4
        assert "EWR" in parts
        assert "SFO" not in parts
        assert counts(parts) == {"LGA": 30, "absent": 0, "EWR": 30, "JFK": 30}
        assert [k for k, _ in parts.items()] == keys
        total = float(parts["EWR"].dp.clip_sum("x", bounds=(0, 100), eps=1000))
        assert total == pytest.approx(sum(x for _, k, x in FLIGHTS if k == "EWR"), abs=1)
        with pytest.raises(KeyError, match="SFO"):
            parts["SFO"]


def test_a_partition_is_read_only(quiet, kind):
    with dp.Session(eps=1):
        parts = frame_of(kind, FLIGHTS).dp.partition_by("k", keys=["EWR"], eps=1)
    with pytest.raises(TypeError):
        parts["EWR"] = parts["EWR"]
    with pytest.raises(TypeError):
        del parts["EWR"]
    for name in ("update", "pop", "clear", "setdefault"):
        assert not hasattr(parts, name)


def test_repr_shows_no_cell(quiet, kind):
    rows = [(1, "EWR", 123456.75)] * 3
    with dp.Session(eps=1):
        parts = frame_of(kind, rows).dp.partition_by("k", keys=["EWR", "JFK"], eps=1)
        text = repr(parts) + repr(parts["EWR"]) + repr(parts["EWR"].dp) + repr(parts.cost)
    assert "123456" not in text
    assert "3 rows" not in text
    assert "2 parts" in text


def test_a_key_that_is_missing_or_of_several_columns_names_its_part(quiet, kind):
    rows = [(1, "a", 1.0), (2, None, 1.0), (3, None, 2.0)]
    with dp.Session(eps=10 * HUGE):
        parts = frame_of(kind, rows).dp.partition_by("k", keys=["a", None], eps=HUGE)
        assert counts(parts) == {"a": 1, None: 2}
        two = frame_of(kind, rows).dp.partition_by(
            "k", "x", keys={"k": ["a", None], "x": [1.0, 2.0]}, eps=HUGE
        )
        assert counts(two) == {("a", 1.0): 1, ("a", 2.0): 0, (None, 1.0): 1, (None, 2.0): 1}


def test_every_column_of_the_frame_is_in_a_part_whatever_it_is_called(quiet, kind):
    frame = pl.DataFrame({"k": ["a", "b"], "row": [1, 2], "code": [3, 4], "k0": [5.0, 6.0], "u0": ["x", "y"]})
    with dp.Session(eps=HUGE):
        parts = as_kind(kind, frame).dp.partition_by("k", keys=["b", "a"], eps=HUGE)
        for column, want in (("row", 2), ("code", 4), ("k0", 6)):
            assert float(parts["b"].dp.clip_sum(column, bounds=(0, 10), eps=1000)) == pytest.approx(
                want, abs=0.5
            )
        assert int(parts["b"].dp.count("u0", eps=1000)) == 1


def test_a_frame_without_rows_has_empty_parts(quiet, kind):
    with dp.Session(eps=HUGE):
        parts = frame_of(kind, []).dp.partition_by("k", keys=["a", "b"], eps=HUGE)
        assert counts(parts) == {"a": 0, "b": 0}


# ---- what it costs ----


@each_relation
@pytest.mark.parametrize(
    ("unit", "limits", "groups"),
    [(None, {}, 1), ("u", {"max_groups": 1}, 1), ("u", {"max_groups": 3}, 3), ("u", {"max_groups": 50}, 4)],
)
def test_a_partition_costs_its_cap_times_the_parts_that_a_neighbour_may_change(
    quiet, relation, unit, limits, groups
):
    """c = 1, L0, or twice that: (c*eps, c*delta, c*eps*tanh(eps/2)), or c*rho; never more groups than keys."""
    c = groups * (2 if relation == "replace_one" else 1)
    frame = frame_of("polars", FLIGHTS)
    more = dict(limits, max_rows_per_group=2) if unit else {}
    keys = ["a", "b", "c", "d"]
    with dp.Session(eps=100, delta=1e-3, neighbors=relation, unit=unit) as s:
        parts = frame.dp.partition_by("k", keys=keys, eps=0.5, delta=1e-6, **more)
        (row,) = s.report().to_dicts()
    assert parts.cost.eps == Fraction(c, 2)
    assert parts.cost.delta == Fraction(c, 10**6)
    assert float(parts.cost.rho) == pytest.approx(c * 0.5 * math.tanh(0.25))
    assert (row["eps"], row["delta"]) == (c / 2, c * 1e-6)
    with dp.Session(rho=10, neighbors=relation, unit=unit) as s:
        parts = frame.dp.partition_by("k", keys=keys, rho=0.25, **more)
        assert parts.cost.eps is None
        assert float(parts.cost.rho) == c * 0.25
        assert float(s.spent.rho) == c * 0.25


def test_a_partition_is_charged_once_and_its_calls_charge_the_session_nothing(quiet, kind):
    with dp.Session(eps=1) as s:
        parts = frame_of(kind, FLIGHTS).dp.partition_by(
            "k", keys=["EWR", "JFK", "LGA"], eps=0.5, label="by origin"
        )
        assert s.spent == 0.5
        for part in parts.values():
            part.dp.count(eps=0.25)
            part.dp.dp_agg(n=dp.count(), m=dp.clip_mean("x", bounds=(0, 90)), eps=0.25)
            assert part.session.spent == 0.5
        assert s.spent == 0.5
        assert s.report().height == 1
        assert s.report()["label"].to_list() == ["by origin"]
        assert s.remaining.eps == Fraction(1, 2)


def test_outer_sessions_pay_for_a_partition_too_and_only_then(quiet):
    frame = frame_of("polars", FLIGHTS)
    with dp.Session(eps=10) as outer, dp.Session(eps=1) as inner:
        parts = frame.dp.partition_by("k", keys=["EWR", "JFK"], eps=0.5)
        parts["EWR"].dp.count(eps=0.5)
        assert (outer.spent, inner.spent) == (0.5, 0.5)
    with pytest.raises(dp.BudgetExceeded):
        parts["EWR"].dp.count(eps=0.1)
    parts["JFK"].dp.count(eps=0.5)  # still there after the sessions were left
    assert outer.spent == 0.5


def test_a_budget_that_lacks_the_whole_cost_refuses_the_partition_and_spends_nothing(quiet, kind):
    frame = frame_of(kind, FLIGHTS)
    with dp.Session(eps=1, unit="u", max_rows_per_group=1, neighbors="replace_one") as s:
        with pytest.raises(dp.BudgetExceeded) as e:
            frame.dp.partition_by("k", keys=["a", "b", "c"], eps=0.2, max_groups=3)  # 1.2
        assert e.value.requested.eps == Fraction(6, 5)
        assert s.spent == 0
        assert s.report().height == 0
        frame.dp.partition_by("k", keys=["a", "b", "c"], eps=Fraction(1, 6), max_groups=3)
        assert s.spent == 1
    with dp.Session(eps=1, delta=1e-6) as s:  # delta_calls = 5e-7
        with pytest.raises(dp.BudgetExceeded) as e:
            frame.dp.partition_by("k", keys=["a"], eps=0.2, delta=6e-7)
        assert e.value.component == "delta"
        assert s.spent == 0


def test_no_data_is_read_before_the_charge(quiet):
    """A lazy frame that fails when collected: refused for its budget, or charged and then failed without its words."""
    broken = pl.LazyFrame({"k": ["a"]}).with_columns(x=pl.lit("secret cell").str.to_integer(strict=True))
    with dp.Session(eps=1) as s:
        with pytest.raises(dp.BudgetExceeded):
            broken.dp.partition_by("k", keys=["a"], eps=2)
        assert s.spent == 0


# ---- caps ----


def test_each_part_enforces_its_own_cap_in_eps(quiet, kind):
    with dp.Session(eps=1) as s:
        parts = frame_of(kind, FLIGHTS).dp.partition_by("k", keys=["EWR", "JFK"], eps=0.3)
        for _ in range(3):
            parts["EWR"].dp.count(eps=0.1)
        with pytest.raises(dp.BudgetExceeded) as e:
            parts["EWR"].dp.count(eps=1e-12)
        assert e.value.component == "eps"
        assert parts["EWR"].session.report().height == 3
        parts["JFK"].dp.count(eps=0.3)
        # the same part however it is reached, and whatever namespace object asks
        held = parts["EWR"].dp
        with pytest.raises(dp.BudgetExceeded):
            held.count(eps=0.1)
        assert s.spent == Fraction(3, 10)


def test_a_pure_cap_adds_epsilons_and_grants_nothing_more_by_rho(quiet):
    """Inside (eps, delta) A's sums decide: 10 calls of .1 fit in 1, an eleventh does not, with delta to spare too."""
    frame = frame_of("polars", FLIGHTS)
    with dp.Session(eps=10, delta=0.1):
        for delta in (0, 0.01):
            part = frame.dp.partition_by("k", keys=["EWR"], eps=1, delta=delta)["EWR"]
            for _ in range(10):
                part.dp.count(eps=0.1)
            with pytest.raises(dp.BudgetExceeded):
                part.dp.count(eps=1e-6)


def test_a_cap_with_delta_pays_for_gaussian_noise_and_thresholds_until_delta_is_spent(quiet):
    frame = frame_of("polars", FLIGHTS)
    with dp.Session(eps=10, delta=1e-2):
        part = frame.dp.partition_by("k", keys=["EWR", "JFK"], eps=3, delta=2e-6)["EWR"]
        part.dp.count(eps=1, delta=1e-6, mechanism="gaussian")
        part.dp.groupby("u").count(eps=1, delta=1e-6, mechanism="laplace")
        with pytest.raises(dp.BudgetExceeded) as e:
            part.dp.groupby("u").count(eps=0.5, delta=1e-9, mechanism="laplace")
        assert e.value.component == "delta"
        with pytest.raises(dp.BudgetExceeded):  # no rho is there to fall back to
            part.dp.count(eps=0.5, delta=1e-9, mechanism="gaussian")
        part.dp.count(eps=1)
        with pytest.raises(dp.BudgetExceeded):
            part.dp.count(eps=0.1)
        assert (part.session.spent.eps, part.session.spent.delta) == (3, Fraction(2, 10**6))


def test_a_cap_without_delta_refuses_what_needs_delta(quiet):
    with dp.Session(eps=10, delta=1e-2):
        part = frame_of("polars", FLIGHTS).dp.partition_by("k", keys=["EWR"], eps=3)["EWR"]
        with pytest.raises(dp.BudgetExceeded):
            part.dp.count(eps=1, delta=1e-6, mechanism="gaussian")
        with pytest.raises(dp.BudgetExceeded):
            part.dp.count(rho=0.1)


def test_a_cap_in_rho_adds_rho(quiet):
    with dp.Session(rho=1):
        part = frame_of("polars", FLIGHTS).dp.partition_by("k", keys=["EWR"], rho=0.5)["EWR"]
        for _ in range(4):
            part.dp.count(rho=0.125)
        with pytest.raises(dp.BudgetExceeded) as e:
            part.dp.count(rho=1e-9)
        assert e.value.component == "rho"
        assert part.session.spent.rho == Fraction(1, 2)


def test_a_part_is_of_no_use_for_copying_its_budget(quiet):
    import copy

    with dp.Session(eps=1):
        part = frame_of("polars", FLIGHTS).dp.partition_by("k", keys=["EWR"], eps=1)["EWR"]
    for make in (copy.deepcopy, pickle.dumps):
        with pytest.raises(Exception, match=r"copied|pickle"):
            make(part)
    twin = copy.copy(part)
    part.dp.count(eps=1)
    with pytest.raises(dp.BudgetExceeded):
        twin.dp.count(eps=0.5)


# ---- units ----

EVERYWHERE = [(u, k, 1.0) for u in range(200) for k in "abcde" for _ in range(1 + u % 3)]


@pytest.mark.parametrize("most", [1, 2, 4])
def test_the_parts_of_a_unit_are_chosen_once_for_the_life_of_the_object(quiet, kind, most):
    """Repeated calls see the same counts; L0 parts per unit in all; another object chooses anew.

    Two objects have all five counts in common with a chance of 1e-5 (200 draws from five cells), three with 1e-10.
    """
    frame = frame_of(kind, EVERYWHERE)
    seen = []
    with dp.Session(eps=10**9, unit="u"):
        for _ in range(3):
            parts = frame.dp.partition_by(
                "k", keys=list("abcde"), eps=HUGE, max_groups=most, max_rows_per_group=1
            )
            first = counts(parts)
            assert sum(first.values()) == 200 * most
            for _ in range(2):
                assert counts(parts) == first
            one_row = {k: round(float(p.dp.clip_sum("x", bounds=(0, 1), eps=1000))) for k, p in parts.items()}
            assert one_row == first
            seen.append(tuple(first.values()))
    assert len(set(seen)) > 1


def test_which_parts_count_is_chosen_fairly(quiet):
    """200 units, 1 of 5 parts, 60 objects (false alarm: 1e-10). Planted: the salt of one release is that of the next."""
    frame = frame_of("polars", EVERYWHERE)
    total = np.zeros(5)
    with dp.Session(eps=10**9, unit="u"):
        for _ in range(60):
            parts = frame.dp.partition_by(
                "k", keys=list("abcde"), eps=HUGE, max_groups=1, max_rows_per_group=1
            )
            total += list(counts(parts).values())
    assert total.sum() == 200 * 60
    assert chance.fits(total, np.ones(5))


@pytest.mark.parametrize("unit", [None, "u"])
def test_every_library_makes_the_same_parts(no_noise, quiet, unit):
    """Where max_groups does not bind, and for rows: the same integers reach the mechanism."""
    rng = np.random.default_rng(2)
    rows = [
        (int(rng.integers(9)), str(rng.choice(list("abcz"))), float(rng.integers(0, 9))) for _ in range(300)
    ]
    rows += [(None, "a", 1.0), (1, None, 2.0), (2, "b", None)]
    limits = {"max_groups": 4, "max_rows_per_group": 3} if unit else {}
    tables = []
    for kind in KINDS:
        with dp.Session(eps=10**9, unit=unit):
            parts = frame_of(kind, rows).dp.partition_by(
                "k", keys=["c", "b", None, "q", "a"], eps=10**8, **limits
            )
            tables.append(
                {
                    k: exact_integers(
                        p.dp.plan.agg(n=dp.count(), c=dp.count("x"), s=dp.clip_sum("x", bounds=(0, 8)), eps=1)
                    )
                    for k, p in parts.items()
                }
            )
    assert tables[0] == tables[1] == tables[2]
    assert list(tables[0]) == ["c", "b", None, "q", "a"]
    assert tables[0]["q"] == [[0], [0], [0]]
    if unit is None:  # scaled down to three rows with a value, a unit may have none without
        assert tables[0]["b"][2][0] > 0, "the missing value"


def exact_parts(frame, bound_plan, salt):
    """Rows of each part as multisets, from the engine, for one salt."""
    out = []
    for make in as_source(frame).part(bound_plan.ask(salt)):
        got = make()._frame
        got = pl.from_pandas(got) if isinstance(got, pd.DataFrame) else got.lazy().collect()
        out.append(sorted(map(repr, got.select("u", "k", "x").rows())))
    return out


@each_relation
@pytest.mark.parametrize("unit", [None, "u"])
def test_a_neighbour_differs_in_at_most_the_parts_that_were_charged(quiet, kind, relation, unit):
    """Brute force over rows of one unit (or one row) and salts: L0 parts, under replace_one 2*L0; and it is reached."""
    most = 2 if unit else 1
    others = [(u, "abcde"[(u * j) % 5], float(j)) for u in range(2, 12) for j in range(4)]
    mine = [
        [],
        [(1, k, 1.0) for k in "abcde"],
        [(1, k, 2.0) for k in "cde" for _ in range(3)],
        [(1, "a", 1.0), (1, "b", None)],
        [(1, "c", 1.0), (1, "d", 2.0)],
        [(1, "unlisted", 1.0), (1, None, 2.0)],
        [(1, "unlisted", 1.0)] * 9 + [(1, "e", 5.0)],
    ]
    if unit is None:
        mine = [[], *[[(1, k, x)] for k in ("a", "b", "unlisted", None) for x in (1.0, None)]]
    limits = {"max_groups": most, "max_rows_per_group": 2} if unit else {}
    with dp.Session(eps=HUGE, unit=unit, neighbors=relation):
        plan = frame_of(kind, others).dp.plan.groupby("k", keys=list("abcde"), **limits).count(eps=1).plan
        cost = frame_of(kind, others).dp.partition_by("k", keys=list("abcde"), eps=1, **limits).cost
    worst = 0
    for salt in (0, 5, 2**63 + 1):
        made = [exact_parts(frame_of(kind, [*rows, *others]), plan, salt) for rows in mine]
        pairs = zip(itertools.repeat(made[0]), made[1:])
        if relation == "replace_one":
            pairs = itertools.combinations(made, 2)
        for a, b in pairs:
            worst = max(worst, sum(x != y for x, y in zip(a, b)))
    assert worst == cost.eps


def test_the_parts_of_all_others_stay_when_a_unit_comes(quiet, kind):
    rows = [(u, k, 1.0) for u in range(2, 40) for k in "abcde"]
    with dp.Session(eps=HUGE, unit="u"):
        plan = (
            frame_of(kind, rows)
            .dp.plan.groupby("k", keys=list("abcde"), max_groups=2, max_rows_per_group=1)
            .count(eps=1)
            .plan
        )
    for salt in range(10):
        before = exact_parts(frame_of(kind, rows), plan, salt)
        after = exact_parts(frame_of(kind, [(1, k, 9.0) for k in "abcdef"] + rows[::-1]), plan, salt)
        assert [[r for r in part if not r.startswith("(1,")] for part in after] == before


def test_rows_without_a_unit_are_in_no_part(quiet, kind):
    rows = [(None, "a", 1.0)] * 5 + [(1, "a", 1.0), (None, "b", 1.0)]
    with dp.Session(eps=10**9, unit="u"):
        parts = frame_of(kind, rows).dp.partition_by(
            "k", keys=["a", "b"], eps=HUGE, max_groups=1, max_rows_per_group=9
        )
        assert counts(parts) == {"a": 1, "b": 0}


def test_inside_a_part_a_unit_is_still_the_unit(quiet, kind):
    """max_rows_per_group is the default of ungrouped calls in a part; noise is for that many rows of a unit."""
    rows = [(1, "a", 1.0)] * 50 + [(2, "a", 1.0)] * 2
    with dp.Session(eps=10**9, unit="u"):
        parts = frame_of(kind, rows).dp.partition_by(
            "k", keys=["a", "b"], eps=HUGE, max_groups=1, max_rows_per_group=3
        )
        part = parts["a"]
        assert part.dp.plan.count(eps=1).l1 == 3
        assert int(part.dp.count(eps=1000)) == 5
        assert part.dp.plan.count(eps=1, max_rows=7).l1 == 7
        assert int(part.dp.count(eps=1000, max_rows=100)) == 52


def test_a_part_can_be_grouped_within_its_cap(quiet, kind):
    rows = [(u, "ab"[u % 2], float(u % 3)) for u in range(60)]
    with dp.Session(eps=10**9) as s:
        parts = frame_of(kind, rows).dp.partition_by("k", keys=["a", "b"], eps=HUGE)
        table = parts["a"].dp.groupby("x", keys=[0.0, 1.0, 2.0, 9.0]).count(eps=HUGE / 2)
        assert list(table["count"]) == [10, 10, 10, 0]
        assert parts["a"].session.spent == HUGE // 2
        assert s.spent == HUGE
    with dp.Session(eps=10**9, unit="u", max_groups=1, max_rows_per_group=1):
        parts = frame_of(kind, rows).dp.partition_by("k", keys=["a", "b"], eps=HUGE)
        table = parts["b"].dp.groupby("x", keys=[0.0, 1.0, 2.0]).count(eps=1000)
        assert list(table["count"]) == [10, 10, 10]


def test_a_partition_of_a_part_spends_the_parts_cap(quiet, kind):
    rows = [(u, "ab"[u % 2], float(u % 3)) for u in range(60)]
    with dp.Session(eps=1) as s:
        part = frame_of(kind, rows).dp.partition_by("k", keys=["a", "b"], eps=0.5)["a"]
        inner = part.dp.partition_by("x", keys=[0.0, 1.0], eps=0.4)
        assert part.session.spent == Fraction(2, 5)
        assert s.spent == 0.5
        inner[0.0].dp.count(eps=0.4)
        assert part.session.spent == Fraction(2, 5)
        with pytest.raises(dp.BudgetExceeded):
            part.dp.partition_by("x", keys=[0.0], eps=0.2)


@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_changing_a_frame_afterwards_does_not_move_units_between_parts(quiet):
    """A snapshot: sorting or cutting a pandas frame in place must not bring a unit into more than L0 parts."""
    rows = [(1, "c", 1.0)] * 40 + [(2, "a", 1.0)] * 40 + [(3, "b", 1.0)] * 40
    changes = {
        "sorted": lambda df: df.sort_values("k", inplace=True),
        "cut": lambda df: df.drop(df.index[:60], inplace=True),
        "overwritten": lambda df: df.__setitem__("u", range(len(df))),
    }
    for name, change in changes.items():
        df = frame_of("pandas", rows)
        with dp.Session(eps=10**9, unit="u"):
            parts = df.dp.partition_by("k", keys=list("abc"), eps=HUGE, max_groups=1, max_rows_per_group=100)
            before = {k: float(p.dp.clip_sum("x", bounds=(0, 1), eps=10**4)) for k, p in parts.items()}
            change(df)
            after = {k: float(p.dp.clip_sum("x", bounds=(0, 1), eps=10**4)) for k, p in parts.items()}
            units = {k: int(p.dp.count(max_rows=1, eps=1000)) for k, p in parts.items()}
            keys = {
                k: int(p.dp.groupby("k", keys=[k], max_groups=1).count(eps=1000)["count"].iloc[0])
                for k, p in parts.items()
            }
        assert after == pytest.approx(before, abs=0.5), name
        assert units == {"a": 1, "b": 1, "c": 1}, name
        assert keys == {"a": 40, "b": 40, "c": 40}, name


def test_changing_an_eager_polars_frame_afterwards_does_not_change_its_parts(quiet):
    df = pl.DataFrame({"k": ["a", "b", "b"], "x": [1.0, 2.0, 3.0]})
    with dp.Session(eps=10**9):
        parts = df.dp.partition_by("k", keys=["a", "b"], eps=HUGE)
        df[0, "k"] = "b"
        df.insert_column(0, pl.Series("new", [1, 2, 3]))
        assert counts(parts) == {"a": 1, "b": 2}


# ---- errors ----


def refused(call, *words, error=dp.InputError):
    with dp.Session(eps=1, delta=1e-3) as s:
        with pytest.raises(error) as e:
            call()
        for w in words:
            assert w in str(e.value), str(e.value)
        assert s.report().height == 0
        assert s.spent == 0


def test_keys_and_one_cap_are_needed(kind):
    frame = frame_of(kind, FLIGHTS)
    refused(lambda: frame.dp.partition_by("k", eps=0.1), "keys=")
    refused(lambda: frame.dp.partition_by("k", keys=["a"]), "eps=", "rho=")
    refused(lambda: frame.dp.partition_by("k", keys=["a"], eps=0.1, rho=0.1), "eps=", "rho=")
    refused(lambda: frame.dp.partition_by("k", keys=["a"], delta=1e-6, rho=0.1), "delta")
    refused(lambda: frame.dp.partition_by("nope", keys=["a"], eps=0.1), "nope")
    refused(lambda: frame.dp.partition_by("k", keys=["a", "a"], eps=0.1), "more than once")
    refused(
        lambda: frame.dp.partition_by("u", keys=["a", "b"], eps=0.1),
        "u",
        "Int64" if kind != "pandas" else "int64",
    )
    refused(lambda: frame.dp.partition_by("k", keys=["a"], eps=0.1, max_groups=2), "unit=")


def test_keys_read_from_the_frame_are_refused(quiet):
    df = frame_of("pandas", FLIGHTS)
    refused(lambda: df.dp.partition_by("k", keys=df["k"].unique(), eps=0.1), "dp.public")
    refused(lambda: df.dp.partition_by("k", keys=df["k"], eps=0.1), "dp.public")
    with dp.Session(eps=1):
        assert list(df.dp.partition_by("k", keys=dp.public(pd.Series(["JFK", "EWR"])), eps=0.1)) == [
            "JFK",
            "EWR",
        ]


@pytest.mark.parametrize("cap", [0, -1, math.nan, math.inf, True, "0.5"])
def test_a_cap_is_a_positive_number(cap):
    frame = frame_of("polars", FLIGHTS)
    refused(lambda: frame.dp.partition_by("k", keys=["a"], eps=cap))
    refused(lambda: frame.dp.partition_by("k", keys=["a"], rho=cap))


def test_units_need_their_limits(kind):
    frame = frame_of(kind, FLIGHTS)
    with dp.Session(eps=1, unit="u") as s:
        for limits, word in (
            ({"max_groups": 1}, "max_rows_per_group"),
            ({"max_rows_per_group": 1}, "max_groups"),
        ):
            with pytest.raises(dp.InputError, match=word):
                frame.dp.partition_by("k", keys=["a", "b"], eps=0.1, **limits)
        assert s.report().height == 0


@pytest.mark.parametrize("wrong", [0, False, -1, 1.5])
def test_a_wrong_limit_of_a_partition_does_not_become_the_sessions_default(wrong):
    frame = frame_of("polars", FLIGHTS)
    with dp.Session(eps=10, unit="u", max_groups=2, max_rows_per_group=1) as s:
        for name in ("max_groups", "max_rows_per_group"):
            with pytest.raises(dp.InputError, match=name):
                frame.dp.partition_by("k", keys=["a", "b", "c"], eps=0.1, **{name: wrong})
        assert s.report().height == 0


def test_a_session_that_is_not_in_use_is_not_charged(quiet):
    frame = frame_of("polars", FLIGHTS)
    s = dp.Session(eps=1)
    with pytest.raises(dp.NoSession):
        frame.dp.partition_by("k", keys=["a"], eps=0.5)
    assert s.spent == 0
    parts = frame.dp.partition_by("k", keys=["EWR"], eps=0.5, session=s)
    assert s.spent == 0.5
    parts["EWR"].dp.count(eps=0.5)
    assert s.spent == 0.5


def test_no_keys_are_no_parts_and_cost_nothing(quiet, kind):
    """Case 64."""
    with dp.Session(eps=1) as s:
        parts = frame_of(kind, FLIGHTS).dp.partition_by("k", keys=[], eps=0.5)
        assert list(parts) == []
        assert s.spent == 0


def test_a_parts_cap_pays_for_no_other_frame(quiet, kind):
    """It was charged for the part's rows; on all rows it would be a budget that nobody paid."""
    whole = frame_of(kind, FLIGHTS)
    with dp.Session(eps=1) as s:
        parts = whole.dp.partition_by("k", keys=["EWR", "JFK"], eps=0.5)
        for other in (whole.dp, parts["JFK"].dp):
            with pytest.raises(dp.InputError, match=r"for it alone.*Hint"):
                other.count(eps=0.5, session=parts["EWR"].session)
        with pytest.raises(dp.InputError, match=r"for it alone.*Hint"), parts["EWR"].session:
            whole.dp.count(eps=0.5)
        assert parts["EWR"].session.spent == 0
        assert parts["JFK"].session.spent == 0
        assert s.spent == 0.5
