"""Release files: every error has its line, and what is written is what is read."""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from fractions import Fraction

import polars as pl
import pytest

import dpframe as dp
from dpframe.budget_plans.toml import key_lines, to_toml
from dpframe.statistics import table

GOOD = """\
# what is released in the third quarter
[source]
path = "people.parquet"

[budget]
eps = 2.0
delta = 1e-6
neighbors = "replace_one"

[[query]]                       # line 10
name = "rows"
statistic = "count"
eps = 0.4
outputs = ["rows.parquet",
           "rows.csv"]

[[query]]                       # line 17
name = "by_city"
groupby = "city"
keys = ["a",
        "b"]
share = 0.3
[query.ask.n]
statistic = "count"
[query.ask.x]                   # line 25
statistic = "clip_mean"
column = "x"
bounds = [0, 100]

[[query]]                       # line 30
name = "total"
statistic = "clip_sum"
column = "x"
bounds = [
  0,
  100,
]
eps = "1/2"
"""


@pytest.fixture
def folder(tmp_path):
    pl.DataFrame({"x": [1.0, 2.0] * 50, "city": ["a", "b"] * 50, "k": [1, 2] * 50}).write_parquet(
        tmp_path / "people.parquet"
    )
    return tmp_path


def load(folder, text):
    (folder / "q3.toml").write_text(text)
    return dp.BudgetPlan.from_release_file(folder / "q3.toml")


def test_a_release_file_is_a_plan(folder):
    plan = load(folder, GOOD)
    assert list(plan.queries) == ["rows", "by_city", "total"]
    assert [t.amount for t in plan._turns().values()] == [Fraction(2, 5), Fraction(3, 5), Fraction(1, 2)]
    assert plan.table()["statistic"].to_list() == [
        "count()",
        "count()",
        "clip_mean('x', bounds=(0, 100))",
        "clip_sum('x', bounds=(0, 100))",
    ]
    plan.run()
    assert pl.read_csv(folder / "rows.csv").height == 1


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        # the text itself
        ("[source]", "[source", 2, "this is no TOML"),
        ("eps = 2.0", "eps = 2.0\neps = 3", 7, "this is no TOML"),
        # keys that are not known, everywhere
        ("[source]", "[sauce]", 2, "there is no key 'sauce' here. Did you mean 'source'"),
        ("path =", "pth =", 3, "Did you mean 'path'?"),
        ("eps = 2.0", "epsilon = 2.0", 6, "there is no key 'epsilon' here. Did you mean 'eps'?"),
        ("eps = 0.4", "nonegative = true\neps = 0.4", 13, "Did you mean 'nonnegative'?"),
        ("bounds = [0, 100]", "lower = 0", 28, "Did you mean 'bounds'?"),
        ("[query.ask.n]", "[query.asks.n]", 23, "Did you mean 'ask'?"),
        # wrong types
        ("eps = 2.0", 'eps = "two"', 6, "eps = 'two' must be a number"),
        ("eps = 2.0", "eps = true", 6, "must be a number"),
        ("delta = 1e-6", "delta = [1]", 7, "must be a number"),
        ('"replace_one"', "1", 8, "must be a text"),
        ('name = "rows"', "name = 3", 11, "a query needs a name"),
        ('name = "rows"\n', "", 10, "a query needs a name"),
        ('"people.parquet"', "3", 3, "path is a file or a list"),
        ('groupby = "city"', "groupby = 3", 19, "must be a text or a list"),
        ("[[query]]                       # line 10", "[query]", 17, "this is no TOML"),
        # budgets
        ("eps = 2.0", "eps = -2.0", 6, "more than zero"),
        ("eps = 2.0", "eps = 0.8", 38, "asks for eps = 0.5; at most eps = 0.16 would be granted"),
        ("eps = 2.0", "eps = 1.2", 38, "asks for eps = 0.5; at most eps = 0.44 would be granted"),
        ("share = 0.3", "share = 3", 22, "at most 1"),
        ("eps = 0.4", "eps = 0.4\nshare = 0.1", 13, "a query has one amount"),
        ("eps = 0.4", "eps = 0.4\nweight = 2", 13, "weight"),
        ("eps = 0.4", "rho = 0.4", 13, "rho does not go with"),
        (
            "eps = 0.4",
            'eps = 0.4\nmechanism = "gaussian"\ndelta = 1e-6',
            24,
            "since rows was charged by rho",
        ),
        ("eps = 2.0\n", "", 5, "needs a budget"),
        ('"replace_one"', '"replace"', 8, "Did you mean 'replace_one'?"),
        ('neighbors = "replace_one"', 'unit = "who"', 8, "no column 'who'"),
        # sources
        ('"people.parquet"', '"peple.parquet"', 3, "no readable file"),
        ('"people.parquet"', '["people.parquet",\n"none.parquet"]', 4, "no readable file"),
        ('"people.parquet"', '"people.parquet"\ntypes = { x = "int" }', 4, "types is for CSV"),
        ('name = "rows"', 'name = "rows"\nsource = "b"', 12, "source = 'b' is not one"),
        # statistics
        ('"clip_sum"', '"clip_summ"', 32, "there is no statistic 'clip_summ'. Did you mean 'clip_sum'"),
        ('"clip_mean"', '"mean"', 26, "there is no statistic 'mean'. Hint: statistic = 'clip_mean'"),
        ('column = "x"\nbounds = [\n', 'column = "y"\nbounds = [\n', 33, "There is no column 'y'"),
        ('column = "x"\nbounds = [\n', 'column = "city"\nbounds = [\n', 33, "types = { city = 'float' }"),
        ("bounds = [0, 100]", "bounds = [100, 0]", 28, "the wrong way round"),
        ("bounds = [0, 100]", "bounds = [5, 5]", 28, "are equal"),
        ("  100,\n", "  nan,\n", 36, "must be finite"),
        ("bounds = [0, 100]", "bounds = [0]", 28, "must be a pair"),
        ("bounds = [0, 100]", "bounds = [0, 100]\nn = 0", 29, "n = 0"),
        ("bounds = [0, 100]\n", "", 27, "needs bounds"),
        ('statistic = "count"\neps', 'statistic = "count"\nround = 0.5\neps', 13, "round = 0.5"),
        ("eps = 0.4", 'eps = 0.4\nmechanism = "laplas"', 14, "no mechanism 'laplas'"),
        ("bounds = [0, 100]\n", "bounds = [0, 100]\nm = 5\n", 29, "there is no key 'm' here"),
        ('statistic = "count"\n[', 'statistic = "cuont"\n[', 24, "Did you mean 'count'"),
        ("eps = 0.4", "eps = 0.4\nci = 2", 14, "ci = 2"),
        ("eps = 0.4", "eps = 0.4\nmax_rows = 2", 14, "max_rows"),
        ("eps = 0.4", "error = 3\nrows = -1", 14, "rows = -1"),
        # names, keys, groups
        ('name = "total"', 'name = "rows"', 31, "another query 'rows'"),
        ('"city"', '"town"', 19, "no column 'town'"),
        ('        "b"]', '        "a"]', 20, "'a' more than once"),
        ('        "b"]', "        3]", 20, "keys"),
        ('keys = ["a",\n        "b"]', 'keys = "none.csv"', 20, "no readable file"),
        ('keys = ["a",\n        "b"]\n', "", 19, "needs keys or delta"),
        ('groupby = "city"\n', "", 19, "keys goes with groupby"),
        # outputs
        ('           "rows.csv"]', '           "no/rows.csv"]', 15, "there is no directory"),
        ('           "rows.csv"]', '           "rows.xlsx"]', 15, "neither in .parquet nor in .csv"),
        ('           "rows.csv"]', '           "rows.parquet"]', 14, "an output of 'rows'"),
        ('           "rows.csv"]', '           "people.parquet"]', 15, "which is the source"),
    ],
)
def test_every_error_names_its_line(folder, old, new, line, says, monkeypatch):
    monkeypatch.setattr(pl.LazyFrame, "collect", lambda *a, **k: pytest.fail("cells were read"))
    assert GOOD.count(old) >= 1
    with pytest.raises(dp.InputError) as caught:
        load(folder, GOOD.replace(old, new, 1))
    text = str(caught.value)
    assert text.startswith(f"{folder / 'q3.toml'}:{line}: "), text
    assert any(s in text for s in says.split("|")), text
    hint = text.partition("Hint:")[2]
    assert not re.search(r"\w=|dp\.\w|\bs\.\w|True|False|\(.*,", hint), hint  # nothing of Python's
    assert "\n" not in text
    assert not any(p.suffix in (".csv", ".json") for p in folder.iterdir())


def test_a_directory_without_permission_is_named(folder, monkeypatch):
    from dpframe.base import files as atomic

    monkeypatch.setattr(atomic.os, "access", lambda path, mode: mode == 4)
    with pytest.raises(dp.InputError, match=r"q3.toml:14: .*no permission"):
        load(folder, GOOD)


@pytest.mark.parametrize("text", ["", "[budget]\neps=1\n", "[source]\npath='people.parquet'\n"])
def test_a_file_needs_a_source_a_budget_and_queries(folder, text):
    with pytest.raises(dp.InputError, match=r"q3.toml:1: .*(source|budget|query)"):
        load(folder, text)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(dp.InputError, match="can't be read: No such file"):
        dp.BudgetPlan.from_release_file(tmp_path / "none.toml")


def test_several_sources_csv_types_and_rules(folder):
    (folder / "late.csv").write_text("minutes,carrier\n5,AA\n,UA\n7,AA\n")
    plan = load(
        folder,
        """
[sources.people]
path = "people.parquet"
[sources."late flights"]
path = ["late.csv"]
types = { minutes = "int" }
[budget]
rho = 0.5
allocation = "adaptive"
[[query]]
name = "n"
source = "people"
statistic = "count"
rho = "1/10"
[[query]]
name = "minutes"
source = "late flights"
statistic = "clip_mean"
column = "minutes"
bounds = [0, 60]
error = 20
rows = "n"
""",
    )
    assert plan.table()["query"].to_list() == ["n", "minutes"]
    assert plan.table()["decided"].to_list() == [True, False]
    assert set(plan.run()) == {"n", "minutes"}


# ---- writing ----


QUERIES = {
    "n": dp.query(dp.count(), error=30, weight=2, outputs=["n.csv", "sub/n.parquet"]),
    "third": dp.query(
        dp.clip_mean("x", bounds=(Fraction(-1, 3), 0.1 + 0.2), round=2), eps=Fraction(1, 3), ci=0.9
    ),
    "signed": dp.query(dp.clip_sum("x", B=1e-30, nonnegative=True), error=5, relative_to="n", rows=1000),
    "city": dp.query(
        dp.count("x"),
        m=dp.clip_mean("x", bounds=(0, 9), n=100),
        groupby=["city", "k"],
        keys={"city": ["a", 'q"\\\x7f\n'], "k": range(2)},
        share=0.1,
    ),
    "pairs": dp.query(dp.count(), groupby=["city", "k"], keys=[("a", 1), ("b", 2)], eps=0.01),
    "file": dp.query(dp.count(), groupby="k", keys="keys.txt", eps=0.01, mechanism="staircase"),
    "public": dp.query(dp.count(), groupby="k", keys=dp.public(pl.Series([4, 5])), eps=0.01),
    "found": dp.query(groupby="city", eps=0.01, delta=1e-7),
}


def test_a_plan_that_is_written_and_read_is_the_same_plan(folder):
    (folder / "sub").mkdir()
    (folder / "keys.txt").write_text("1\n2\n")
    plan = dp.BudgetPlan(
        "people.parquet",
        QUERIES,
        eps=Fraction(5, 7),
        delta=1e-6,
        delta_calls=9e-7,
        neighbors="replace_one",
        allocation="adaptive",
        folder=str(folder),
    )
    plan.to_release_file(folder / "q3.toml")
    again = dp.BudgetPlan.from_release_file(folder / "q3.toml")
    assert again.fingerprint == plan.fingerprint
    assert [q.outputs for q in again.queries.values()] == [q.outputs for q in plan.queries.values()]
    again.to_release_file(folder / "again.toml")
    assert (folder / "again.toml").read_text() == (folder / "q3.toml").read_text()


def test_a_file_elsewhere_finds_its_sources(folder):
    (folder / "deep" / "down").mkdir(parents=True)
    plan = dp.BudgetPlan(
        "people.parquet", {"n": dp.query(dp.count(), outputs="n.csv")}, eps=1, folder=str(folder)
    )
    plan.to_release_file(folder / "deep" / "down" / "q.toml")
    dp.BudgetPlan.from_release_file(folder / "deep" / "down" / "q.toml").run()
    assert (folder / "n.csv").exists()


def test_a_unit_with_limits_and_dates_as_keys(folder):
    frame = pl.DataFrame({"u": ["p", "q"], "day": [dt.date(2026, 1, 1)] * 2})
    frame.write_parquet(folder / "days.parquet")
    plan = dp.BudgetPlan(
        "days.parquet",
        {
            "n": dp.query(
                dp.count(), groupby="day", keys=[dt.date(2026, 1, 1), dt.date(2026, 1, 2)], max_groups=2
            )
        },
        eps=1,
        unit=["u"],
        max_rows_per_group=3,
        folder=str(folder),
    )
    plan.to_release_file(folder / "q3.toml")
    again = dp.BudgetPlan.from_release_file(folder / "q3.toml")
    assert again.fingerprint == plan.fingerprint
    assert again.run()["n"].value.height == 2


@pytest.mark.parametrize("keys", [[None, "a"], [1.5, float("nan")]])
def test_keys_that_toml_does_not_hold_or_lose_nothing(folder, keys):
    frame = pl.DataFrame({"g": pl.Series(keys)})
    frame.write_parquet(folder / "g.parquet")
    plan = dp.BudgetPlan(
        "g.parquet", {"n": dp.query(dp.count(), groupby="g", keys=keys)}, eps=1, folder=str(folder)
    )
    if None in keys:
        with pytest.raises(dp.InputError, match=r"no file holds.*Hint: keys from a file"):
            plan.to_release_file(folder / "q3.toml")
    else:
        plan.to_release_file(folder / "q3.toml")
        assert dp.BudgetPlan.from_release_file(folder / "q3.toml").fingerprint == plan.fingerprint


def test_statistics_are_those_of_the_package():
    assert {"count", "clip_sum", "clip_mean"} <= set(table.STATISTICS)
    assert not {"query", "public", "frame", "mechanism"} & set(table.STATISTICS)


STATISTICS = {
    "count": [dp.count(), dp.count("x", round=-1)],
    "clip_sum": [dp.clip_sum("x", B=3, nonnegative=True)],
    "clip_mean": [dp.clip_mean("x", bounds=(0, 9), n=100)],
    "clip_var": [dp.clip_var("x", bounds=(0, 9), ddof=0, raw=True)],
    "clip_std": [dp.clip_std("x", bounds=(0, 9))],
    "clip_wmean": [dp.clip_wmean("x", weights="k", bounds=(0, 9), weight_bounds=(0, 2.5))],
    "clip_cov": [dp.clip_cov(["x", "k"], B=2), dp.clip_cov(["x", "k"], bounds=[(0, 1), (2, 3)], ddof=0)],
    "clip_corr": [dp.clip_corr(["x", "k"], bounds=(0, 9))],
    "ols": [
        dp.ols("x", ["k"], B=2),
        dp.ols("x", ["k", "u"], bounds={"x": (0, 1), "k": (2, 3.5), "u": (0, 9)}, round=2),
        dp.ols("x", ["k"], bounds={"x": (0, Fraction(1, 3)), "k": (0, 9)}),
    ],
    "vector_sum": [dp.vector_sum(["x", "k"], norm=2.5, ord=1), dp.vector_sum("v", norm=1, dim=2, ord=1)],
    "vector_mean": [dp.vector_mean(["x", "k"], norm=1, ord=1, n=100)],
    "count_units": [dp.count_units()],
    "histogram": [dp.histogram("x", edges=[0, 1, 2.5])],
    "quantile": [dp.quantile("x", [0.5, 0.9], bounds=(0, 9)), dp.quantile("x", 0.1, candidates=[1, 2])],
    "median": [dp.median("x", bounds=(0, 9))],
    "iqr": [dp.iqr("x", bounds=(0, 9))],
    "n_unique": [dp.n_unique("city")],
    "top_k": [dp.top_k("city", 2, candidates=["a", "b", "c"])],
    "bounds": [dp.bounds("x", range=(-100, 100)), dp.bounds("x")],
    "select": [dp.select(["x", "k"], bounds=(0, 9), k=2)],
}


@pytest.mark.parametrize(("name", "asked"), [(k, a) for k, v in STATISTICS.items() for a in v])
def test_every_statistic_goes_to_a_file_and_back(folder, name, asked):
    frame = pl.read_parquet(folder / "people.parquet").with_columns(
        u=pl.int_range(pl.len()), v=pl.concat_list(pl.col("x"), pl.col("x"))
    )
    frame.write_parquet(folder / "more.parquet")
    unit = {"unit": "u", "max_rows": 1} if name == "count_units" else {}
    plan = dp.BudgetPlan("more.parquet", {"a": asked}, eps=5, folder=str(folder), **unit)
    plan.to_release_file(folder / "q3.toml")
    again = dp.BudgetPlan.from_release_file(folder / "q3.toml")
    assert again.queries["a"].statistics == plan.queries["a"].statistics
    assert again.fingerprint == plan.fingerprint
    assert set(again.run()) == {"a"}


# ---- lines ----


HARD = r"""
a = 1
"we ird".'b c' = @@@x
[not] = "a key"
y \@@@ z@@@ # hi
c = [ 1, # one ] }
  [2,
   3], { d = "]", e = [5,
   6], 'f.g' = { h = 1 } },
]
lit = '' # two quotes
lit3 = '''
[[no]]
'''
when = 1979-05-27 07:32:00
[ table . "x.y" ]
path = 'C:\x'
esc = "a\"b # no"
[[query]] # first
name = "n"
d.e.f = 1
d.e.g = 2
[query.sub]
z = 1
[[query.item]]
p = 1
[[query.item]]
p = 2
[[query]]
name = "m"
[[query.item]]
p = 3
""".replace("@@@", '"' * 3)


def test_every_key_of_a_hard_text_has_its_line():
    lines = key_lines(HARD)
    source = HARD.split("\n")

    def walk(value, path):
        if path:
            assert path in lines, path
            if isinstance(path[-1], str) and path[-1] not in ("query", "item", "sub", "table"):
                assert path[-1].split(".")[-1] in source[lines[path] - 1], path
        items = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for k, v in items:
            walk(v, (*path, k))

    walk(tomllib.loads(HARD), ())
    assert lines["c", 2, "e", 1] == 9
    assert lines["c", 2, "f.g", "h"] == 9
    assert lines["query", 0] == 19
    assert lines["query", 0, "d", "e", "g"] == 22
    assert lines["query", 0, "item", 1, "p"] == 28
    assert lines["query", 1] == 29
    assert lines["query", 1, "item", 0, "p"] == 32
    assert lines["table", "x.y", "esc"] == 18
    assert ("no",) not in lines


def test_what_is_written_is_read_back():
    document = {
        "name": "x",
        "n": 1,
        "budget": {"eps": 0.1, "yes": True},
        "sources": {"a b": {"path": "p"}, "c": {"path": ["q", "r"]}},
        "query": [
            {"name": 'a"\\\n\x7f', "keys": {"k": [1, 2]}, "day": dt.date(2026, 1, 1)},
            {"q": [[1], [2]]},
        ],
    }
    assert tomllib.loads(to_toml(document)) == document
    numbers = [Fraction(1, 10), Fraction(1, 3), Fraction(-1, 4), Fraction(10**9 + 1, 10**9 + 7), Fraction(5)]
    back = tomllib.loads(to_toml({"n": numbers}))["n"]
    assert back == [0.1, 1 / 3, -0.25, f"{10**9 + 1}/{10**9 + 7}", 5]


def test_toml_holds_no_nothing():
    with pytest.raises(TypeError, match="NoneType"):
        to_toml({"a": [None]})
