"""The grey box sees what it must, and the corpus of neighbours finds nothing to see in the package itself.

``DPFRAME_AUDIT=1`` raises generated pairs from 6 to 10,000 for each verb and relation.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from sizes import AUDIT

import dpframe as dp
from dpframe.audit import neighbours, questions, recording, tables
from dpframe.audit.neighbours import LIBRARIES
from dpframe.layout.sensitivity import Move
from dpframe.statistics.table import STATISTICS

PAIRS = 10_000 if AUDIT else 6
RELATIONS = ("add_remove", "replace_one")
ROWS = {r: neighbours.row_pairs(r) for r in RELATIONS}
UNITS = {r: neighbours.unit_pairs(r) for r in RELATIONS}
CORPUS = [p for pairs in (*ROWS.values(), *UNITS.values()) for p in pairs]
SPECIAL, TABLES = neighbours.special_pairs(), neighbours.table_pairs()
each_relation = pytest.mark.parametrize("relation", RELATIONS)


def named(pairs):
    return pytest.mark.parametrize("pair", pairs, ids=[f"{p.relation} {p.name}" for p in pairs])


def check(ask, pair, library="polars", **more):
    options = {**questions.session(pair.relation, pair.unit), **more}
    found = dp.audit.grey_box(ask, *pair.of(library), **options)
    assert found.ok, (found.failures, pair.name, library)
    return found


# ---- the corpus ----


def test_the_corpus_has_what_is_promised():
    assert all(len(pairs) >= 12 for pairs in (*ROWS.values(), *UNITS.values()))
    assert len(SPECIAL) >= 40
    assert len(TABLES) >= 10
    names = [(p.relation, p.unit, p.name) for p in (*CORPUS, *SPECIAL, *TABLES)]
    assert len(set(names)) == len(names)
    for wanted in ("n = 0/1", "n = 1/2", "n = 2/3", "n = 4/5", "n = 49/50", "NaN appears", "a group empties"):
        assert wanted in [p.name for p in ROWS["add_remove"]]


@named([p for p in (*CORPUS, *SPECIAL, *TABLES) if p.name != "changes nothing"])
def test_a_pair_differs_by_one_unit(pair):
    """As many rows as multisets allow: one more, one other, or rows of unit 1 only."""
    first, second = (sorted(map(repr, f.rows())) for f in (pair.frame, pair.neighbour))
    for row in list(first):
        if row in second:
            first.remove(row)
            second.remove(row)
    if pair.unit is not None:
        u = pair.frame.columns.index("u")
        of = {r[u] for f in (pair.frame, pair.neighbour) for r in f.rows() if repr(r) in first + second}
        assert of <= {1, None}
    else:
        most = 1 if pair.relation == "replace_one" else min(len(first), len(second)) == 0
        assert max(len(first), len(second)) <= 1
        assert most


@named(CORPUS)
def test_every_question_of_every_pair_of_the_corpus_is_within_what_it_declares(pair):
    """Those of the table of statistics are asked in tests/unit/statistics/test_conformance.py."""
    verbs = [v for v in questions.asked_of(pair.unit) if v not in STATISTICS]
    library = LIBRARIES[CORPUS.index(pair) % 3]
    for verb in verbs:
        for ask in (questions.ungrouped(verb), questions.grouped(verb)):
            found = check(ask, pair, library)
            assert found.error is None
            assert found.moved


@named(SPECIAL)
def test_special_cells_of_every_dtype_move_no_more_than_declared(pair):
    library = LIBRARIES[SPECIAL.index(pair) % 3]
    if library == "pandas" and pair.frame["x"].dtype in (pl.Int128, pl.Null):
        library = "polars"
    bounds = (0, 1) if pair.frame["x"].dtype == pl.Boolean else questions.BOUNDS
    for ask in (
        lambda d: d.count("x", eps=1),
        lambda d: d.agg(
            n=dp.count(), s=dp.clip_sum("x", bounds=bounds), v=dp.clip_var("x", bounds=bounds), eps=1
        ),
        lambda d: d.groupby("g", keys=neighbours.KEYS).clip_mean("x", bounds=bounds, eps=1),
        lambda d: d.clip_sum("x", bounds=bounds, eps=1),
    ):
        assert check(ask, pair, library).error is None
        assert check(ask, replace(pair, frame=pair.neighbour, neighbour=pair.frame), library).error is None


@named(TABLES)
@pytest.mark.parametrize("library", LIBRARIES)
def test_tables_look_alike_whatever_their_keys(pair, library):
    for verb in ("count", "clip_mean", "agg"):
        assert check(questions.grouped(verb), pair, library).error is None


@named([*TABLES, *ROWS["add_remove"]])
def test_unknown_keys_are_within_what_they_declare(pair):
    found = check(
        lambda d: d.groupby("g").dp_agg(
            n=dp.count(), m=dp.clip_mean("x", bounds=questions.BOUNDS), eps=1, delta=1e-3
        ),
        pair,
    )
    assert found.error is None


def relations_and_units():
    return [pytest.param(r, u, id=f"{r} {u or 'row'}") for r in RELATIONS for u in (None, "u")]


def test_every_statistic_is_asked():
    asked = {name.split()[0] for name in (*questions.VERBS, *questions.OF_UNITS, *questions.VALUES)}
    assert set(STATISTICS) == asked - {"agg", "quantiles", "value_counts"}


@pytest.mark.parametrize(("relation", "unit"), relations_and_units())
@pytest.mark.parametrize("verb", questions.asked_of("u"))
def test_generated_neighbours_are_within_what_the_verb_declares(verb, relation, unit):
    if verb in questions.OF_UNITS and unit is None:
        pytest.skip("a question about units")
    rng = np.random.default_rng([9, sum(map(ord, verb + relation)), unit is None])
    for turn in range(PAIRS):
        pair = neighbours.generated(rng, relation, unit)
        ask = (questions.ungrouped, questions.grouped)[turn % 2](verb)
        check(ask, pair, LIBRARIES[turn % 3])


@pytest.mark.parametrize(("relation", "unit"), relations_and_units())
def test_pairs_in_tables_are_within_what_each_verb_declares(relation, unit):
    """Every form of every verb in one library or another, a table of 9 pairs each (25 in full)."""
    rng = np.random.default_rng([10, relation == "add_remove", unit is None])
    pairs = [neighbours.generated(rng, relation, unit) for _ in range(25 if AUDIT else 9)]
    for i, verb in enumerate(questions.asked_of(unit)):
        for grouped in (False, True):
            assert tables.differing(verb, grouped, pairs, LIBRARIES[(i + grouped) % 3], salt=i) == 0, verb


def test_a_table_counts_the_pairs_that_move_too_far():
    """Of ten pairs three differ by two rows; a question that declares half fails on all that move by a row."""
    one, two = FRAME[:3], FRAME[:2]
    pairs = [
        neighbours.Pair("", with_all(FRAME), with_all(x)) for x in (one, two, one, two, one, one, two, one)
    ]
    for grouped in (False, True):
        assert tables.differing("count", grouped, pairs, "polars", 0) == 3
    assert tables.differing("top_k", False, pairs, "pandas", 0) == 3


def with_all(frame):
    """The frame with every column that questions are about."""
    return frame.with_columns(y=pl.col("x"), b=pl.lit(True), i=pl.lit(3)).select(*neighbours.SCHEMA)


@each_relation
def test_the_strategy_generates_neighbours_of_every_dtype(relation):
    seen = set()

    @settings(
        max_examples=500 if AUDIT else 40,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(neighbours.strategy(relation))
    def one(pair):
        seen.add(pair.frame["x"].dtype)
        bounds = (0, 1) if pair.frame["x"].dtype == pl.Boolean else questions.BOUNDS
        check(
            lambda d: d.groupby("g", keys=neighbours.KEYS).dp_agg(
                n=dp.count(), m=dp.clip_mean("x", bounds=bounds), y=dp.clip_sum("y", bounds=(0, 3)), eps=1
            ),
            pair,
        )

    one()
    assert len(seen) >= 8


# ---- what is not as it must be is seen ----

FRAME = pl.DataFrame({"x": [1.0, 2.0, None, 9.0], "g": ["a", "b", "a", "a"], "u": [1, 1, 2, 3]})
SECRET = 123456


def total(d):
    return d.clip_sum("x", bounds=(0, 10), eps=1)


def test_a_sensitivity_that_is_too_small_is_seen(monkeypatch):
    true = Move.sensitivity

    def half(self, reach):
        l1, l2 = true(self, reach)
        return max(1, l1 // 2), max(1, l2 // 4)

    nine, eight = FRAME, FRAME[:3]
    assert dp.audit.grey_box(total, nine, eight).ok
    monkeypatch.setattr(Move, "sensitivity", half)
    assert dp.audit.grey_box(total, nine, eight).failures == ("within", "paid")


@pytest.mark.parametrize("verb", ["quantile", "top_k", "select"])
@pytest.mark.parametrize("how", ["rate", "sensitivity"])
def test_a_choice_by_utilities_that_move_too_far_is_seen(verb, how, monkeypatch):
    """A choice with weights twice as steep as it pays for; one that declares half."""
    from dpframe.mechanisms import choosers, ranks

    name = "one at either bound, swapped" if verb == "select" else "n = 2, lowest to highest"
    pair = next(p for p in ROWS["replace_one"] if p.name == name)
    ask = questions.ungrouped(verb)
    options = questions.session("replace_one", None)
    assert dp.audit.grey_box(ask, pair.frame, pair.neighbour, **options).ok
    for home, name in ((ranks, "quantiles"), (choosers, "largest"), (choosers, "best")):
        true = getattr(home, name)

        def wrong(*args, true=true):
            chooser = true(*args)
            if how == "sensitivity":
                return replace(chooser, sensitivity=chooser.sensitivity / 4)
            steep = "base" if verb == "quantile" else "rate"
            return replace(chooser, **{steep: 3 * getattr(chooser, steep)})

        for module in ("statistics.quantiles", "statistics.top_k", "statistics.select"):
            monkeypatch.setattr(f"dpframe.{module}.{name}", wrong, raising=False)
    found = dp.audit.grey_box(ask, pair.frame, pair.neighbour, **options)
    assert found.failures == (("paid",) if how == "rate" else ("within",))


def test_what_reaches_a_choice_is_compared_by_its_definition():
    """The median of 1, 2, 9 among 0, 2, 10; a row at 9 vanishes: utilities of 0 and 2 move by 1/2, of 10 by -1/2."""
    frame = pl.DataFrame({"x": [1.0, 2.0, 9.0]})
    found = dp.audit.grey_box(lambda d: d.quantile("x", 0.5, candidates=[0, 2, 10], eps=1), frame, frame[:2])
    (moved,) = found.moved
    assert found.ok
    assert (moved.l1, moved.declared_l1) == (Fraction(1, 2), Fraction(1, 2))
    assert moved.l2_squared == Fraction(1, 4)


def test_noise_that_is_too_small_for_what_moved_is_seen(monkeypatch):
    """The declaration is right, and the mechanism draws for half of it."""
    from dpframe.mechanisms.laplace import DiscreteLaplace

    high = FRAME.with_columns(x=pl.lit(10.0))

    def total(d):
        return d.clip_sum("x", bounds=(0, 10), eps=1, mechanism="laplace")

    assert dp.audit.grey_box(total, high, high[:3]).ok
    true = DiscreteLaplace.scale.fget
    monkeypatch.setattr(DiscreteLaplace, "scale", property(lambda self: true(self) * Fraction(98, 100)))
    found = dp.audit.grey_box(total, high, high[:3])
    assert found.failures == ("paid",)
    assert found.within


def test_frames_that_are_no_neighbours_are_seen():
    assert "within" in dp.audit.grey_box(lambda d: d.count(eps=1), FRAME, FRAME[:2]).failures
    replaced = FRAME.with_columns(g=pl.Series(["b", "b", "a", "a"]))
    grouped = questions.grouped("count")
    assert dp.audit.grey_box(grouped, FRAME, replaced, neighbors="replace_one").ok
    assert "within" in dp.audit.grey_box(grouped, FRAME, replaced).failures


@pytest.mark.parametrize(
    ("query", "failure"),
    [
        (lambda d, n: d.clip_sum("x", bounds=(0, n), eps=1), "same_plan"),
        (lambda d, n: d.groupby("g", keys=["a", "b", "c"][: n - 1]).count(eps=1), "same_plan"),
        (lambda d, n: [d.count(eps=1) for _ in range(n)], "same_row"),
        (lambda d, n: d.count(eps=n), "same_row"),
        (lambda d, n: d.count(eps=1) if n == 4 else float(d.count(eps=1)), "same_schema"),
        (lambda d, n: d.count(eps=1, label=f"{n}"), "same_row"),
        (lambda d, n: warnings.warn(f"{n} rows", stacklevel=1), "same_warnings"),
        (lambda d, n: 1 // (n - 3), "same_errors"),
        (lambda d, n: d.clip_sum("x", bounds=(0, 10), eps=1, mechanism="laplace" if n == 4 else "staircase"), "same_plan"),
    ],
)  # fmt: skip
def test_what_a_query_takes_from_the_data_is_seen(query, failure):
    """Queries that know the number of rows: bounds, keys, calls, budgets, types, labels, warnings, errors."""

    def careless(d):
        return query(d, d._source._frame.height)

    found = dp.audit.grey_box(careless, FRAME, FRAME[:3])
    assert failure in found.failures


def test_an_order_that_depends_on_the_data_is_seen():
    def by_size(d):
        keys = d._source._frame["g"].value_counts(sort=True)["g"].to_list()
        return d.groupby("g", keys=keys).count(eps=1)

    two = pl.DataFrame({"g": ["a", "b", "b"]})
    three = pl.DataFrame({"g": ["a", "b", "b", "a", "a"]})
    found = dp.audit.grey_box(by_size, two, three[:4])
    assert "same_order" in dp.audit.grey_box(by_size, two, three).failures
    assert found.same_errors


def test_the_same_exception_is_fine_and_another_is_not():
    found = dp.audit.grey_box(lambda d: d.clip_sum("nowhere", bounds=(0, 1), eps=1), FRAME, FRAME[:3])
    assert found.ok
    assert found.error == "InputError"
    assert found.moved == ()


# ---- what the auditor itself must not do ----


def test_a_result_holds_no_exact_value():
    """Not in its fields, its words, its pickle: distances only."""
    frame = pl.DataFrame({"x": [float(SECRET), 1.0]})
    found = dp.audit.grey_box(lambda d: d.clip_sum("x", bounds=(0, 10**6), eps=1), frame, frame[:1])
    step = found.moved[0].declared_l1 // 10**6
    for secret in (SECRET, SECRET * step, (SECRET + 1) * step):
        assert str(secret) not in repr(found)
        assert str(secret).encode() not in pickle.dumps(found)
    assert found.moved[0].l1 == step


def test_an_audit_is_charged_to_nobody_and_refused_inside_a_session():
    with dp.Session(eps=1) as s:
        with pytest.raises(dp.InputError, match="audit"):
            dp.audit.grey_box(total, FRAME, FRAME[:3])
        with pytest.raises(dp.InputError, match="audit"):
            dp.audit.copies(total, FRAME)(10)
        assert s.spent == 0
    s.use()
    with pytest.raises(dp.InputError, match="audit"):
        dp.audit.grey_box(total, FRAME, FRAME[:3])
    s.close()
    assert dp.audit.grey_box(total, FRAME, FRAME[:3]).ok
    assert s.spent == 0


@pytest.mark.parametrize(
    "past", [lambda d: d.plan.count(eps=1), lambda d: d.partition_by("g", keys=["a"], eps=1)]
)
def test_ways_past_the_recorder_are_refused(past):
    found = dp.audit.grey_box(past, FRAME, FRAME[:3])
    assert found.error == "InputError"
    with pytest.raises(dp.InputError, match="Hint"):
        dp.audit.copies(past, FRAME)(10)


def test_a_query_that_releases_from_another_frame_is_refused():
    with pytest.raises(dp.InputError, match="past the accessor"):
        dp.audit.grey_box(lambda d: FRAME.dp.count(eps=1), FRAME, FRAME[:3])


def test_the_path_of_a_release_knows_no_recorder():
    """No hook to turn on: a release loads nothing of the auditors, and the pipeline has no name for them."""
    code = (
        "import sys, polars as pl, dpframe as dp\n"
        "with dp.Session(eps=1): pl.DataFrame({'x': [1.0]}).dp.count(eps=1)\n"
        "print(any(m.startswith('dpframe.audit') for m in sys.modules))\n"
        "dp.audit\n"
        "print(any(m.startswith('dpframe.audit') for m in sys.modules), 'hypothesis' in sys.modules)"
    )
    out = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    assert out.stdout.split() == ["False", "True", "False"]


def test_a_recorded_release_is_a_release():
    """The recording noise is the noise: same law, same plan words, same ledger row, answers near the truth."""
    asked: list = []

    def ask(d):
        value = d.clip_mean("x", bounds=(0, 10), eps=10**6, mechanism="laplace")
        asked.append(value)
        return value

    seen = recording.observe(ask, FRAME, 0)
    assert asked[0] == pytest.approx(4, abs=1e-3)
    assert seen.asked[0].calls == [("prepare", 1), ("sample", 1)] * 2
    plan = seen.asked[0].plan
    wrapped = [recording.Recorded(n, seen.asked[0], 0) for n in plan.laws]
    for law, noise in zip(wrapped, plan.laws):
        assert (law.scale, law.event, law.std, law.mean_abs) == (
            noise.scale,
            noise.event,
            noise.std,
            noise.mean_abs,
        )
        assert law.interval(0.9) == noise.interval(0.9)
        assert law.pmf(0) == noise.pmf(0)
        assert law.cdf(1) == noise.cdf(1)
        assert law.upper_tail(2) == noise.upper_tail(2)


# ---- many draws in one call ----


@pytest.mark.usefixtures("fixed_draws")
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("unit", [None, "u"])
def test_copies_are_draws_of_the_question(library, unit):
    """The mean of 2,000 answers is the plain one within 8 standard errors, and no two columns are one draw."""
    pair = neighbours.row_pairs()[3]
    frame = pair.of(library)[1]
    options = {"unit": "u", "max_rows": 1, "max_rows_per_group": 1, "max_groups": 1} if unit else {}
    got = dp.audit.copies(lambda d: d.clip_sum("x", bounds=(-3, 10), eps=2), frame, **options)(2000)
    plain = pair.neighbour["x"].clip(-3, 10).sum()
    assert got.shape == (2000, 1)
    assert got.mean() == pytest.approx(plain, abs=8 * 10 / 2 * 2**0.5 / 2000**0.5)
    assert got.std() == pytest.approx(5 * 2**0.5, rel=0.2)
    table = dp.audit.copies(lambda d: d.groupby("g", keys=["a", "b", "z"]).count(eps=1), frame, **options)(
        500
    )
    assert table.shape == (500, 3)
    assert table.dtype == np.int64
    counts = [pair.neighbour.filter(g=k).height for k in ("a", "b", "z")]
    assert table.mean(axis=0) == pytest.approx(counts, abs=8 * 1.36 / 500**0.5)
    assert len(np.unique(table - np.round(table.mean(axis=0)), axis=0)) > 20


def test_copies_in_several_releases_are_all_there(monkeypatch):
    monkeypatch.setattr(sys.modules["dpframe.audit.copies"], "ROWS", 30)
    got = dp.audit.copies(lambda d: d.count(eps=10**6), FRAME)(100)
    assert got.tolist() == [[4]] * 100
    both = dp.audit.copies(lambda d: d.groupby("g", "u", keys=[("a", 1), ("b", 1)]).count(eps=10**6), FRAME)(
        3
    )
    assert both.tolist() == [[1, 1]] * 3
    cross = dp.audit.copies(
        lambda d: d.groupby(["g", "u"], keys={"g": ["a"], "u": [3, 1, 7]}).count(eps=10**6), FRAME
    )
    assert cross(2).tolist() == [[1, 1, 0]] * 2


def test_copies_take_one_question_with_listed_keys():
    for wrong in (
        lambda d: [d.count(eps=1), d.count("x", eps=1)],
        lambda d: None,
        lambda d: d.groupby("g").count(eps=1, delta=1e-6),
    ):
        with pytest.raises(dp.InputError, match="Hint"):
            dp.audit.copies(wrong, FRAME)(10)
