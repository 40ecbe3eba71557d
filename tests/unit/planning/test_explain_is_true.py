"""What ``explain()`` says, checked by computation: by the laws that would be drawn from, and by neighbouring frames."""

from __future__ import annotations

import itertools
import math
import re
from contextlib import closing, contextmanager

import numpy as np
import polars as pl
import pytest
from chance import least_hits
from scipy.stats import norm

import dpframe as dp
from dpframe import pipeline
from dpframe.accounting.conversion import analytic_delta

pytestmark = pytest.mark.usefixtures("quiet")
B = (-1.0, 4.0)
FRAME = pl.DataFrame(
    {
        "x": [1.0, 3.0, None, -1.0] * 6,
        "y": [0.5, 2.0, 1.0, 0.0] * 6,
        "who": [i // 8 for i in range(24)],
        "day": [1, 2, 3] * 8,
    }
)
SESSIONS = {
    "eps": {"eps": 4},
    "eps and delta": {"eps": 4, "delta": 1e-2},
    "rho": {"rho": 2},
    "rho and delta": {"rho": 2, "delta_calls": 1e-2},
    "zcdp": {"eps": 4, "delta": 1e-2, "accountant": "zcdp"},
    "rdp": {"eps": 4, "delta": 1e-2, "accountant": "rdp"},
    "gdp": {"eps": 4, "delta": 1e-2, "accountant": "gdp"},
    "replace_one": {"eps": 4, "neighbors": "replace_one"},
    "unit": {"eps": 4, "delta": 1e-2, "unit": "who"},
    "units of two": {"eps": 4, "unit": ["who", "day"]},
    "replace_one unit": {"eps": 4, "unit": "who", "neighbors": "replace_one"},
    "any 5 rows": {"eps": 4, "delta": 1e-2, "contributions": 5},
    "replace_one any 5 rows": {"eps": 4, "contributions": 5, "neighbors": "replace_one"},
}


def lines(bound, **asked) -> dict[str, str]:
    """The lines by label; of an output's its name comes first."""
    out, of = {}, ""
    for line in bound.explain(**asked).lines:
        of = f"{line.label} " if line.depth == 1 else of if line.depth == 2 else ""
        label = of + (line.label if line.depth == 2 else "") if line.depth else line.label
        out[label] = f"{out[label]}; {line.text}" if label in out else line.text
    return out


def number(text: str) -> float:
    return float(text.replace(",", ""))


def costs(text: str) -> dict[str, float]:
    return {k: float(v) for k, v in re.findall(r"(eps|delta|rho)=([\d.e+-]+\d|\d)", text)}


@contextmanager
def paid_by(how, tmp_path):
    """A session, or a ledger of the same budget, with and without a window."""
    if "ledger" not in how and "window" not in how:
        with dp.Session(**SESSIONS[how]) as s:
            yield s
        return
    more = {"window": "30d", "lifetime": {"eps": 3}} if "window" in how else {}
    made = dp.Ledger.create(tmp_path / "b.db", eps=4, delta=1e-2, **more)
    with closing(made) as ledger, dp.Session(ledger=ledger) as s:
        yield s


def counted(how, **cost):
    limits = {"max_groups": 3, "max_rows_per_group": 2} if "unit" in how else {}
    return FRAME.dp.plan.groupby("day", keys=[1, 2, 3]).count(**cost, **limits)


# ---- costs, and what is left ----


@pytest.mark.parametrize("how", [*SESSIONS, "ledger", "ledger with a window"])
def test_what_is_charged_and_what_is_left_is_what_was_said(how, tmp_path):
    """The cost told is what the report holds afterwards; what would be left is what is, and it is granted: no more."""
    with paid_by(how, tmp_path) as s:
        gaussian = how in ("rho", "rho and delta", "zcdp", "rdp", "gdp")
        asked = {"mechanism": "gaussian"} if gaussian else {}
        asked |= {"rho": 0.01} if gaussian else {"eps": 0.5}
        bound = counted(how, **asked)
        said = lines(bound)
        before, after = said["session"].split("; after this call ")
        bound.release()
        row = s.report().row(-1, named=True)
        told = costs(said["costs"].split(" (")[0])
        for name in told:
            assert told[name] == pytest.approx(row[name], rel=1e-5), name
        then = lines(counted(how, **asked))["session"]
        assert then.startswith(f"would still grant {after}")
        left = costs(after)
        assert len(left) == 1
        for factor, granted in ((1 - 1e-5, True), (1 + 1e-3, False)):
            cost = {k: v * factor for k, v in left.items()}
            more = {"mechanism": "gaussian"} if "rho" in cost else {}
            assert ("refuse this call" not in lines(counted(how, **cost, **more))["session"]) == granted
        assert "refuse" not in before


def test_the_rho_of_a_pure_cost_bounds_its_law():
    """ "where rho is added up": the Rényi divergences of the noise stay below rho * alpha."""
    for eps in (0.1, 1, 3):
        with dp.Session(eps=4):
            bound = FRAME.dp.plan.count(eps=eps, mechanism="laplace")
        rho = costs(lines(bound)["costs"].split("(")[1])["rho"]
        p = distribution(bound.plan.laws[0])
        for alpha in (1.01, 2, 8, 64):
            moment = np.sum(np.exp(alpha * np.log(p[1:]) + (1 - alpha) * np.log(p[:-1])))
            assert math.log(moment) / (alpha - 1) <= rho * alpha * (1 + 1e-5)


# ---- noise: the law of what is drawn keeps the cost at the sensitivity told ----


def distribution(law) -> np.ndarray:
    width = law.interval(1 - 1e-14)
    return law.pmf(np.arange(-width, width + 1))


def moved(law, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The law and the law moved by ``steps``, over bins of a 64th of that: what anybody sees who looks that closely."""
    h = max(1, steps // 64)
    ends = np.arange(-(w := law.interval(1 - 1e-13) + steps), w + h, h)
    return np.diff(law.cdf(ends)), np.diff(law.cdf(ends - steps))


def delta_at(law, steps: int, eps: float) -> float:
    """The least delta at ``eps`` of one number that moves by ``steps``."""
    p, q = moved(law, steps)
    return float(np.maximum(q - math.exp(eps) * p, 0).sum())


ONE_NUMBER = {
    "count": dp.count(),
    "sum": dp.clip_sum("x", bounds=B),
    "known n": dp.clip_mean("x", bounds=B, n=24),
}


@pytest.mark.parametrize("how", [h for h in SESSIONS if "unit" not in h])
@pytest.mark.parametrize("name", ONE_NUMBER)
@pytest.mark.parametrize("mechanism", ["auto", "laplace", "gaussian", "staircase"])
def test_the_noise_told_keeps_the_cost_told_at_the_sensitivity_told(name, how, mechanism):
    """One number: its law, moved by the L1 told, is (eps, delta)-close at what is told; with half the noise it is not."""
    with dp.Session(**SESSIONS[how]) as s:
        cost = {"rho": 0.3} if how.startswith("rho") else {"eps": 1.5}
        if "delta" in how or how.endswith("dp"):
            cost |= {} if "rho" in cost else {"delta": 1e-3}
        try:
            bound = FRAME.dp.plan.agg(**{name: ONE_NUMBER[name]}, **cost, mechanism=mechanism)
        except dp.DPError:  # a mechanism that needs a delta, or has no rho
            assert s.spent == 0
            return
    said, (law, *_), (o,) = lines(bound), bound.plan.laws, bound.plan.outputs
    assert len(bound.plan.pieces) == 1
    l1, l2 = map(number, re.search(r"L1 ([\d.,e-]+), L2 ([\d.,e-]+)", said[f"{name} sensitivity"]).groups())
    scale = number(re.search(r"scale ([\d.,e-]+)", said[f"{name} noise"])[1])
    assert l1 == pytest.approx(l2)
    unit = float(bound.plan.output_unit(o))
    steps = round(l1 / unit)
    assert steps == pytest.approx(l1 / unit, rel=1e-5)
    assert scale == pytest.approx(float(law.scale) * unit, rel=1e-5)
    told = costs(said["costs"].split(" (")[0])
    if "rho" in told:  # the divergence of order 2
        for times, kept in ((1, True), (2, False)):
            p, q = moved(law, times * steps)
            second = math.log(float((p[q > 0] ** 2 / q[q > 0]).sum())) / 2
            assert (second <= told["rho"] * (1 + 1e-5)) == kept
        return
    delta = told.get("delta", 0.0)
    assert delta_at(law, steps, told["eps"] * (1 + 1e-5)) <= delta + 1e-12
    assert delta_at(law, 2 * steps, told["eps"]) > delta + 1e-6  # the power of this check


def integers(frame, by_unit):
    """The lines, and the exact answers of all groups: each question alone, so that what is told is about the answer."""
    said, out = {}, {}
    limits = {"max_groups": 2, "max_rows_per_group": 3} if by_unit else {}
    asked = {"n": dp.count(), "c": dp.count("x"), "s": dp.clip_sum("x", bounds=B)}
    asked |= {"u": dp.count_units()} if by_unit else {}
    with dp.Session(eps=10**9, unit="who" if by_unit else None):
        for name, question in asked.items():
            groups = frame.dp.plan.groupby("day", keys=[1, 2, 3])
            bound = groups.agg(**{name: question}, eps=1, mechanism="laplace", **limits)
            said = lines(bound) | said
            out[name] = bound.release().value[name].to_numpy()
    return said, out


@pytest.mark.parametrize("by_unit", [False, True])
def test_sensitivities_and_limits_are_reached_and_never_passed(by_unit, no_noise, monkeypatch):
    """All rows of one row, or one unit, taken out: the answers move by at most what is told, and by that at worst."""
    run = pipeline._exact
    monkeypatch.setattr(pipeline, "_exact", lambda plan, source, salt: run(plan, source, 9))
    heavy = pl.DataFrame({"x": [4.0] * 60, "y": [0.0] * 60, "who": [99] * 60, "day": [1, 2, 3] * 20})
    light = heavy.head(1).with_columns(pl.lit(98).cast(pl.Int64).alias("who"))
    full = pl.concat([FRAME, light, heavy] if by_unit else [FRAME, light])
    said, base = integers(full, by_unit)
    worst = {}
    ids = full["who"].unique().to_list() if by_unit else range(full.height)
    for i in ids:
        without = (
            full.filter(pl.col("who") != i)
            if by_unit
            else full.with_row_index().filter(pl.col("index") != i).drop("index")
        )
        _, other = integers(without, by_unit)
        for name in base:
            change = np.abs(base[name] - other[name])
            l1, l2 = worst.get(name, (0, 0))
            worst[name] = (max(l1, change.sum()), max(l2, math.sqrt((change**2).sum())))
    for name, (l1, l2) in worst.items():
        told = re.search(r"L1 ([\d.,e-]+), L2 ([\d.,e-]+)", said[f"{name} sensitivity"]).groups()
        assert (l1, l2) == tuple(pytest.approx(number(t), rel=1e-5) for t in told), name
    if by_unit:
        groups, rows = map(int, re.search(r"at most (\d+) groups? × (\d+) rows?", said["bounds"]).groups())
        assert worst["n"] == pytest.approx((groups * rows, math.sqrt(groups) * rows))
        assert worst["u"][0] == groups
        assert "more is scaled down" in said["bounds"]


def test_bins_of_a_unit_with_more_rows_keep_some(no_noise):
    """ "of more, rows are kept by salted hash": 3 of 60, whole."""
    frame = pl.DataFrame({"x": [float(i % 6) for i in range(60)], "who": [1] * 60})
    with dp.Session(eps=10**6, unit="who"):
        bound = frame.dp.plan.histogram("x", edges=range(7), eps=1, max_rows=3)
        assert "of more, rows are kept by salted hash for what is counted by bins" in lines(bound)["bounds"]
        assert "scaled" not in lines(bound)["bounds"]
        assert bound.release().value["count"].sum() == 3


# ---- errors ----

RATIOS = {
    "mean": (dp.clip_mean("x", bounds=B), lambda x: x.mean()),
    "var": (dp.clip_var("x", bounds=B), lambda x: x.var(ddof=1)),
    "std": (dp.clip_std("x", bounds=B), lambda x: x.std(ddof=1)),
}
ROWS = {
    "low": np.full(100, B[0]),
    "high": np.full(100, B[1]),
    "both": np.array([B[0], B[1]] * 50),
    "apart": np.array([B[0]] * 99 + [B[1]]),
}
DRAWS = 400


@pytest.mark.parametrize("how", ["eps", "eps and delta", "rho", "replace_one"])
@pytest.mark.parametrize("name", ONE_NUMBER)
def test_the_error_told_of_one_number_is_that_of_its_law(name, how):
    """The least whole number of steps that noise stays within with 95 %, or a little more."""
    with dp.Session(**SESSIONS[how]):
        cost = {"rho": 0.1} if how == "rho" else {"eps": 0.7}
        bound = FRAME.dp.plan.agg(**{name: ONE_NUMBER[name]}, **cost)
    (law,), (o,) = bound.plan.laws, bound.plan.outputs
    text = lines(bound, relative_to=200)[f"{name} 95 % error"]
    error, share = re.fullmatch(r"± ([\d.,e-]+) \(([\d.]+) % of 200\)", text).groups()
    steps = number(error) / float(bound.plan.output_unit(o))
    within = lambda w: 1 - 2 * law.cdf(-math.floor(w) - 1)  # noqa: E731
    assert within(steps * (1 + 1e-5)) >= 0.95
    assert within(steps * (1 - 1e-5) - 1) < 0.95
    assert number(share) == pytest.approx(number(error) / 2, rel=2e-3)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "staircase", "row"])
@pytest.mark.parametrize("name", RATIOS)
def test_the_error_told_at_so_many_rows_holds_whatever_they_are(name, mechanism):
    """400 groups a case, of which too few are within it by a chance of 1e-10 a case.

    An eighth of it does not pass: about half of the answers are within it where noise alone decides, and 347 would be
    by a chance below 1e-40.
    """
    question, truth = RATIOS[name]
    eighth = []
    for data, x in ROWS.items():
        with dp.Session(eps=10**6, delta=0.5):
            delta = {"delta": 1e-3} if mechanism == "gaussian" else {}
            frame = pl.DataFrame({"x": np.tile(x, DRAWS), "g": np.repeat(range(DRAWS), len(x))})
            asked = {"v": question, "eps": 2, "mechanism": mechanism, **delta}
            bound = frame.dp.plan.groupby("g", keys=range(DRAWS)).dp_agg(**asked)
            text = lines(bound, rows=100)["v 95 % error"]
            whole = lines(frame.dp.plan.agg(**asked), rows=100)["v 95 % error"]
            assert text.replace(" a group", "") == whole
            error = number(re.match(r"± ([\d.,e-]+)", text)[1])
            off = np.abs(bound.release().value["v"].to_numpy() - truth(x))
        assert (off <= error * (1 + 1e-5)).sum() >= least_hits(DRAWS, 0.95), data
        eighth.append((off <= error / 8).sum())
    assert min(eighth) < least_hits(DRAWS, 0.95)


def test_the_margin_of_a_median_is_of_its_rank():
    """400 medians at 101 rows: their ranks are off by at most what is told (1e-10), and by more than an eighth of it.

    By the law over candidates a rank is within an eighth with a chance of .52, so 347 of 400 are by one of 2e-50.
    """
    x = np.arange(101.0)
    with dp.Session(eps=10**6):
        bound = pl.DataFrame({"x": x}).dp.plan.median("x", candidates=list(x), eps=0.5)
        said = lines(bound)["x_median 95 % error"]
        error = number(re.fullmatch(r"([\d.,]+), of its rank, in rows", said)[1])
        off = np.array([abs(bound.release().value - 50) for _ in range(DRAWS)])
    assert (off <= error).sum() >= least_hits(DRAWS, 0.95)
    assert (off <= error / 8).sum() < least_hits(DRAWS, 0.95)


# ---- groups that are found ----


def at_least(law, k, draws):
    """P(X1 + ... >= k) of one or two draws; of two by bins of the first that are a thousandth of its width."""
    if draws == 1:
        return float(1 - law.cdf(k - 1)) if k <= 0 else float(law.cdf(-k))
    ends = np.linspace(-(w := law.interval(1 - 1e-12)), w, 20_001).astype(np.int64)
    inside = np.diff(law.cdf(ends))
    return float((inside * law.cdf(-(k - (ends[1:] + ends[:-1]) // 2))).sum())


def survival(text):
    sizes = text.split("by size: ")[1].split(", ")
    return {int(n.replace(",", "")): float(p) for n, p in (s.split() for s in sizes)}


@pytest.mark.parametrize("asked", ["count", "keys", "mean", "heavy units"])
@pytest.mark.parametrize("unit", [False, True])
def test_odds_of_a_group_are_those_of_its_noisy_size(asked, unit):
    """By the law of what is compared with the threshold; a group of one has at most delta, whatever it cost."""
    limits = {"max_groups": 1} if unit else {}
    rows = {"max_rows_per_group": 5 if asked == "heavy units" else 1} if unit else {}
    with dp.Session(eps=4, delta=1e-2, unit="who" if unit else None):
        g = FRAME.dp.plan.groupby("day")
        if asked == "keys":
            bound = g.keys(eps=0.8, delta=1e-4, **limits)
        else:
            question = dp.clip_mean("x", bounds=B) if asked == "mean" else dp.count()
            bound = g.agg(v=question, eps=0.8, delta=1e-4, **limits, **rows)
    plan, text = bound.plan, lines(bound)["threshold"]
    half, what = re.match(r"about ([\d.,]+) (rows|distinct who) in a group", text).groups()
    assert (what == "rows") == (not unit or (asked in ("count", "mean") and plan.bounding.rows == 1))
    odds = survival(text)
    assert odds[1] <= 1e-4 * (1 + 1e-3)
    assert list(odds.values()) == sorted(odds.values())
    near = min(odds, key=lambda n: abs(n - number(half)))
    assert 0.4 < odds[near] < 0.7
    if plan.threshold is None:
        for (n, p), (m, q) in itertools.pairwise(odds.items()):  # (eps, delta) one by one, so at any distance
            assert q <= math.exp(0.8 * (m - n)) * (p + 1e-4 * (m - n)) * (1 + 1e-3)
        return
    t = plan.threshold
    for n, told in odds.items():
        assert told == pytest.approx(
            at_least(plan.laws[t.coordinates[0]], t.least - n * t.unit_steps, len(t.coordinates)),
            rel=6e-3,
            abs=1e-12,
        )


def test_odds_of_a_group_are_met_by_releases():
    """600 groups of each size told: how many come out, against the odds (1e-10 each)."""
    with dp.Session(eps=10**6, delta=0.5, unit="who"):
        limits = {"max_groups": 1, "max_rows_per_group": 1}
        text = lines(FRAME.dp.plan.groupby("day").count(eps=2, delta=1e-3, **limits))["threshold"]
        odds = survival(text)
        sizes = [n for n in odds for _ in range(600)]
        days = np.repeat(np.arange(len(sizes)), sizes)
        frame = pl.DataFrame({"day": days, "who": np.arange(len(days))})
        got = frame.dp.groupby("day").count(eps=2, delta=1e-3, **limits)["day"].to_list()
    for i, p in enumerate(odds.values()):
        out = sum(600 * i <= d < 600 * (i + 1) for d in got)
        assert out >= least_hits(600, min(1, p * 0.995))
        assert 600 - out >= least_hits(600, min(1, 1 - p * 1.005 - 5e-4)) if p < 0.99 else True
    assert 0 < len(got) < len(sizes)


# ---- what is shared, split and left out ----


def test_a_split_names_what_is_drawn():
    """No threshold is named where there is none; the parts that are named are as many as are said."""
    with dp.Session(eps=4, delta=1e-2, unit="who"):
        each = {
            "n": dp.count(),
            "u": dp.count_units(),
            "s": dp.clip_sum("x", bounds=B),
            "m": dp.clip_mean("y", bounds=B),
        }
        for size in (2, 3, 4):
            for names in itertools.combinations(each, size):
                asked = {n: each[n] for n in names}
                listed = FRAME.dp.plan.agg(**asked, eps=1, max_rows=2, mechanism="laplace")
                found = FRAME.dp.plan.groupby("day").agg(
                    **asked, eps=1, delta=1e-3, max_groups=1, max_rows_per_group=2, mechanism="laplace"
                )
                for bound in (listed, found):
                    text = lines(bound).get("split", "")
                    assert ("threshold" in text) == (bound.plan.threshold is not None and bool(text)), text
                    if text:
                        told, parts = re.fullmatch(
                            r"(\d+) parts share the budget equally: (.*)", text
                        ).groups()
                        assert len(parts.split("; ")) == int(told) == len(bound.plan.parts)
                        assert {p.fused for p in bound.plan.parts} == {int(told)}


def test_outputs_that_share_cost_nothing_more():
    with dp.Session(eps=4):
        alone = FRAME.dp.plan.agg(m=dp.clip_mean("x", bounds=B), eps=1, mechanism="laplace")
        both = FRAME.dp.plan.agg(m=dp.clip_mean("x", bounds=B), n=dp.count("x"), eps=1, mechanism="laplace")
    assert "shared with n at no extra cost" in lines(both)["m noise"]
    assert "shared with m at no extra cost" in lines(both)["n noise"]
    assert lines(both)["costs"] == lines(alone)["costs"]
    assert both.plan.laws[0] == alone.plan.laws[0]


@pytest.mark.parametrize(
    ("ask", "said", "right"),
    [
        (lambda p: p.clip_sum("x", bounds=B, eps=1), "null and NaN are left out of sums, .*; infinities are clipped", 2 + 4 - 1),
        (lambda p: p.count("x", eps=1), r"null and NaN are left out of .* count\(column\)", 4),
        (lambda p: p.n_unique("x", eps=1), "null and NaN", 4),
        (lambda p: p.agg(dp.count(), dp.clip_mean("x", bounds=B), eps=1, complete_cases=True), "rows that lack x are left out of every answer", 4),
    ],
    ids=["sum", "count", "n_unique", "complete"],
)  # fmt: skip
def test_missing_cells_become_what_is_said(ask, said, right, no_noise):
    frame = pl.DataFrame({"x": [2.0, None, math.nan, math.inf, -math.inf, 0.0]})
    with dp.Session(eps=10):
        bound = ask(frame.dp.plan)
        assert re.match(said, lines(bound)["missing"]), lines(bound)["missing"]
        value = bound.release().value
    value = value["count"][0] if isinstance(value, pl.DataFrame) else value
    assert value == pytest.approx(right)


def test_the_gaussian_scale_told_is_the_least_of_the_textbook():
    """mechanism="gaussian": the scale is that of the analytic formula at the L2 told, within a thousandth."""
    with dp.Session(eps=4, delta=1e-2, unit="who"):
        bound = FRAME.dp.plan.groupby("day", keys=[1, 2, 3]).count(
            eps=0.9, delta=1e-3, max_groups=3, max_rows_per_group=2, mechanism="gaussian"
        )
    said = lines(bound)
    l2 = number(re.search(r"L2 ([\d.,]+)", said["count sensitivity"])[1])
    scale = number(re.search(r"scale ([\d.,]+)", said["count noise"])[1])
    assert l2 == pytest.approx(2 * math.sqrt(3), rel=1e-5)
    assert analytic_delta(scale / l2 * (1 + 1e-6), 0.9) <= 1e-3
    assert analytic_delta(scale / l2 * 0.99, 0.9) > 1e-3
    assert number(said["count 95 % error"].removeprefix("± ")) == pytest.approx(
        norm.ppf(0.975) * scale, abs=1
    )
