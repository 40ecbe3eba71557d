"""The strip sampler against the exact laws, its float path against exact arithmetic, and its source.

Statistical checks have fixed sample sizes and a false-alarm rate of at most 1e-9 each.
"""

from __future__ import annotations

import copy
import decimal
import inspect
import itertools
import math
import os
import pickle
import subprocess
import sys
import threading
from fractions import Fraction

import chance
import mpmath
import numpy as np
import polars as pl
import pytest
from scipy import stats
from sizes import AUDIT

import dpframe as dp
from dpframe.api.asking import Asking as Verbs
from dpframe.api.namespaces import FrameDP, FramePlans
from dpframe.api.options import Options
from dpframe.mechanisms.base import Noise, Target
from dpframe.mechanisms.registry import mechanism
from dpframe.noise import source, strips
from dpframe.noise.strips import StripSampler, sampler

ALARM = chance.ALARM
SHAPES = ("linear", "square")
SCALES = [
    Fraction(1, 64),
    Fraction(1, 10),
    Fraction(1, 2),
    Fraction(1),
    Fraction(3),
    Fraction(30),
    Fraction(10**4),
    Fraction(10**9),
    Fraction(10**13),
    Fraction(2**55),
]
DRAWS = 10**7 if AUDIT else 400_000

pytestmark = pytest.mark.usefixtures("quiet")


# ---- the laws, in 60-digit arithmetic ----


def cdf(shape: str, scale: Fraction, k: int) -> mpmath.mpf:
    """P(X <= k) of the discrete Laplace ("linear") or the rounded Gaussian ("square")."""
    s = mpmath.mpf(scale.numerator) / scale.denominator
    if shape == "square":
        return mpmath.ncdf((k + mpmath.mpf(1) / 2) / s)
    q = mpmath.exp(-1 / s)
    return 1 - q ** (k + 1) / (1 + q) if k >= 0 else q ** (-k) / (1 + q)


def edges_of(shape: str, scale: Fraction, bins: int) -> list[int]:
    """Integers that cut the law into about ``bins`` equally likely cells (fewer for narrow laws)."""
    at = np.arange(1, bins) / bins
    z = stats.norm.ppf(at) if shape == "square" else stats.laplace.ppf(at)
    edges = {int(x) for x in np.floor(z * float(scale))}
    return sorted(edges | {-2, -1, 0, 1} if scale < 50 else edges)


def follows(draws: np.ndarray, shape: str, scale: Fraction, bins: int = 60) -> bool:
    """Whether draws fit the exact law."""
    with mpmath.workdps(60):
        edges = edges_of(shape, scale, bins)
        cumulative = [mpmath.mpf(0), *(cdf(shape, scale, k) for k in edges), mpmath.mpf(1)]
        p = [float(b - a) for a, b in itertools.pairwise(cumulative)]
    seen = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=len(p))
    return chance.fits(seen, np.array(p) * len(draws))


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_draws_follow_the_exact_law(shape, scale):
    draws = StripSampler(shape, scale).sample(DRAWS)
    assert follows(draws, shape, scale)
    # The share of non-zero draws, exactly binomial: it is what a narrow law is made of.
    with mpmath.workdps(60):
        beside = float(2 * cdf(shape, scale, -1))
    assert stats.binomtest(int(np.count_nonzero(draws)), DRAWS, beside).pvalue > ALARM
    # The sign is fair and tells nothing of the magnitude.
    positive, other = int((draws > 0).sum()), int((draws != 0).sum())
    if other:
        assert stats.binomtest(positive, other, 0.5).pvalue > ALARM


@pytest.mark.parametrize("scale", [s for s in SCALES if s >= 10**4], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_low_bits_of_wide_laws_are_uniform(shape, scale):
    """No multiples, no lattice: the last four bits of a wide law are equally likely."""
    draws = StripSampler(shape, scale).sample(DRAWS)
    seen = np.bincount(draws & 15, minlength=16)
    # At scale 1e4 the law's own deviation from uniform is below 1e-8 a cell.
    assert chance.fits(seen, [DRAWS / 16] * 16)


@pytest.mark.parametrize("shape", SHAPES)
def test_least_scale_gives_zeros(shape):
    assert not StripSampler(shape, Fraction(1, 64)).sample(100_000).any()


@pytest.mark.parametrize("scale", [Fraction(1, 65), Fraction(0), Fraction(-1), Fraction(2**55 + 1)])
def test_scales_outside_the_proved_range_are_refused(scale):
    with pytest.raises(ValueError, match="scale"):
        StripSampler("linear", scale)


@pytest.mark.parametrize("size", [0, 1, 7, 32767, 32768, 32769, 100_001])
def test_the_size_asked_for_comes_back(size):
    draws = sampler("square", Fraction(7)).sample(size)
    assert draws.shape == (size,)
    assert draws.dtype == np.int64


# ---- decisions in floats against exact arithmetic ----


def ratio(scale: Fraction) -> Fraction:
    """Strip width over scale: the greatest power of two that is at most scale/8, at most 2**51."""
    e = -60
    while Fraction(2) ** (e + 1) <= scale / 8:
        e += 1
    return Fraction(2) ** min(e, 51) / scale


def exact_weights(shape: str, scale: Fraction) -> list[mpmath.mpf]:
    """Cumulative probabilities of the strips, to the working precision of mpmath."""
    r = mpmath.mpf(ratio(scale).numerator) / ratio(scale).denominator
    sums, v = [mpmath.mpf(0)], 0
    least = mpmath.mpf(10) ** -(mpmath.mp.dps + 5)
    while True:
        w = mpmath.exp(-((r * v) ** 2) / 2) if shape == "square" else mpmath.exp(-r * v)
        sums.append(sums[-1] + w)
        v += 1
        if w < least:
            return [c / sums[-1] for c in sums]


def acceptance(shape: str, scale: Fraction, strip: int, u: Fraction) -> mpmath.mpf:
    """exp(phi(left edge) - phi(y)) at the place u of a strip."""
    r = ratio(scale)
    z = r * r * ((strip + u) ** 2 - Fraction(strip) ** 2) / 2 if shape == "square" else r * u
    return mpmath.exp(-mpmath.mpf(z.numerator) / z.denominator)


WIDE = [Fraction(1, 2), Fraction(3), Fraction(1000, 7), Fraction(10**13), Fraction(2**55)]


@pytest.mark.parametrize("scale", WIDE, ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_float_decisions_agree_with_exact_arithmetic(shape, scale):
    """Strip, acceptance and integer of 120,000 attempts, each recomputed another way."""
    n = 120_000
    s = StripSampler(shape, scale)
    rng = np.random.default_rng(list(f"{shape} {scale}".encode()))
    w = rng.integers(0, 2**64, size=3 * n, dtype=np.uint64)
    with mpmath.workdps(60):
        table = [int(mpmath.floor(c * 2**64)) for c in exact_weights(shape, scale)]
    table = np.array([t for t in table if t < 2**64], dtype=np.uint64)
    strip = np.searchsorted(table, w[:n], side="right") - 1
    far = np.minimum(w[:n] - table[strip], table[np.minimum(strip + 1, len(table) - 1)] - w[:n]) > 2
    far |= (strip == 0) & (w[:n] < table[1] - np.uint64(2))
    assert far.mean() > 0.999999 - 1e-4  # words next to an entry are the subject of another test
    assert (s._strips(w[:n])[far] == strip[far]).all()

    place = w[n : 2 * n] & np.uint64(2**52 - 1)
    u = place.astype(np.longdouble) * np.longdouble(2) ** -52
    r = ratio(scale)
    rl = np.longdouble(r.numerator) / np.longdouble(r.denominator)
    v = strip.astype(np.longdouble)
    z = rl * rl * u * (2 * v + u) / 2 if shape == "square" else rl * u
    gap = np.exp(-z) - w[2 * n :].astype(np.longdouble) * np.longdouble(2) ** -64
    keep = gap > 0
    close = np.flatnonzero(np.abs(gap) < 2.0**-14)  # a few: decided by mpmath
    with mpmath.workdps(60):
        for i in close:
            a = acceptance(shape, scale, int(strip[i]), Fraction(int(place[i]), 2**52))
            keep[i] = mpmath.mpf(int(w[2 * n + i])) / 2**64 < a
    assert len(close) > 3
    got = s._accepted(strip, place, w[2 * n :])
    assert (got == keep).all()

    # The integers: floor or round of (strip + place) * width, in Python integers.
    width = r * scale
    expected = []
    for i in range(4_000):
        y = (int(strip[i]) + Fraction(int(place[i]), 2**52)) * width
        k = math.floor(y + Fraction(1, 2)) if shape == "square" else math.floor(y)
        minus = int(w[n + i]) >> 63
        if keep[i] and not (shape == "linear" and minus and k == 0):
            expected.append(-k if minus else k)
    head = np.concatenate([w[:4_000], w[n : n + 4_000], w[2 * n : 2 * n + 4_000]])
    with source.replaced(lambda _: head.tobytes()):
        assert s._attempts(4_000).tolist() == expected


@pytest.mark.parametrize("shape", SHAPES)
def test_the_exact_acceptance_gives_the_same_law(shape, monkeypatch):
    """With a band of 2 every acceptance is decided in decimal arithmetic."""
    exactly = []
    accept = StripSampler._accept_exactly
    monkeypatch.setattr(strips, "_BAND", 2.0)
    monkeypatch.setattr(StripSampler, "_accept_exactly", lambda *args: exactly.append(1) or accept(*args))
    n = 15_000 if not AUDIT else 10**6
    draws = StripSampler(shape, Fraction(3)).sample(n)
    assert len(exactly) >= n
    assert follows(draws, shape, Fraction(3))


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1000, 7), Fraction(2**55)], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_exact_acceptance_decides_the_same_words_alike(shape, scale, monkeypatch):
    s, n = StripSampler(shape, scale), 4_000
    rng = np.random.default_rng(5)
    data = rng.bytes(24 * n)
    more = rng.bytes
    with source.replaced(lambda size: data if size == 24 * n else more(size)):
        floats = s._attempts(n)
        monkeypatch.setattr(strips, "_BAND", 2.0)
        exact = s._attempts(n)
    assert floats.tolist() == exact.tolist()


def chunks(values: list[int]):
    """A source that hands out these 64-bit chunks one after another, in the order of ``source.bits``."""
    left = list(values)
    return lambda n: b"".join(left.pop(0).to_bytes(8, "little") for _ in range(n // 8))


@pytest.mark.parametrize("scale", [Fraction(3), Fraction(1000, 7)], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_words_next_to_a_table_entry_are_decided_by_their_next_digits(shape, scale):
    """U has 128 known digits, the first 64 within one unit of an entry; mpmath says which strip."""
    s, rng = StripSampler(shape, scale), np.random.default_rng(1)
    with mpmath.workdps(120):
        exact = exact_weights(shape, scale)
        for v in (1, 2, 7, 20):
            entry = int(s._table[v])
            for word in (entry - 1, entry, entry + 1):
                for next_digits in (0, 2**63, 2**64 - 1, int(rng.integers(2**63))):
                    u = mpmath.mpf((word << 64) | next_digits) / mpmath.mpf(2) ** 128
                    right = sum(c <= u for c in exact) - 1
                    if min(abs(u - c) for c in exact) < mpmath.mpf(2) ** -127:
                        continue
                    with source.replaced(chunks([next_digits] + [0] * 8)):
                        got = s._strips(np.array([word], dtype=np.uint64))
                    assert got.tolist() == [right]


@pytest.mark.parametrize("shape", SHAPES)
def test_words_beyond_the_table_are_decided_exactly(shape):
    scale = Fraction(3)
    s = StripSampler(shape, scale)
    with mpmath.workdps(120):
        exact = exact_weights(shape, scale)
        for next_digits in (0, 2**62, 2**63 + 5, 2**64 - 2**40):
            u = mpmath.mpf(((2**64 - 1) << 64) | next_digits) / mpmath.mpf(2) ** 128
            with source.replaced(chunks([next_digits] + [0] * 8)):
                got = s._strips(np.array([2**64 - 1], dtype=np.uint64))
            assert got.tolist() == [sum(c <= u for c in exact) - 1]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("side", [-1, 1], ids=["below", "above"])
def test_strips_are_decided_right_at_any_depth(shape, side):
    """U agrees with an entry to 150 binary places; the digits after those decide."""
    scale, places = Fraction(1000, 7), 320
    s = StripSampler(shape, scale)
    with mpmath.workdps(150):
        exact = exact_weights(shape, scale)
        for v in (3, 9, 17):
            u = int(mpmath.floor((exact[v] + side * mpmath.mpf(2) ** -150) * mpmath.mpf(2) ** places))
            digits = [(u >> (places - 64 * (i + 1))) & (2**64 - 1) for i in range(places // 64)]
            with source.replaced(chunks(digits[1:] + [0] * 4)):
                assert s._strip_exactly(digits[0]) == (v if side > 0 else v - 1)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("side", [-1, 1], ids=["below", "above"])
def test_acceptance_is_decided_right_at_any_depth(shape, side):
    """U' agrees with exp(-z) to 150 binary places; the digits after those decide."""
    scale, places = Fraction(1000, 7), 320
    s = StripSampler(shape, scale)
    with mpmath.workdps(150):
        for strip, place in ((0, 3**30), (5, 2**51 + 12345), (11, 2**52 - 1)):
            a = acceptance(shape, scale, strip, Fraction(place, 2**52))
            u = int(mpmath.floor((a + side * mpmath.mpf(2) ** -150) * mpmath.mpf(2) ** places))
            digits = [(u >> (places - 64 * (i + 1))) & (2**64 - 1) for i in range(places // 64)]
            more: list[int] = []
            for d in digits[1:]:
                more += [0, d]  # the place has no further digits; U' has
            with source.replaced(chunks(more + [0] * 8)):
                assert s._accept_exactly(strip, place, digits[0]) is (side < 0)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_law_does_not_depend_on_the_callers_decimal_context(shape):
    """An analyst who works in cents (``getcontext().prec = 4``) gets the same tables and no error."""
    right = StripSampler(shape, Fraction(1000, 7))._table.tolist()
    for context in (
        decimal.Context(prec=4),
        decimal.Context(prec=28, rounding=decimal.ROUND_UP),
        decimal.Context(prec=2, traps=[]),
        decimal.Context(prec=28, traps=[decimal.Inexact, decimal.Rounded]),
    ):
        with decimal.localcontext(context):
            s = StripSampler(shape, Fraction(1000, 7))
            with source.replaced(chunks([0] * 8)):
                assert s._accept_exactly(3, 2**51, 2**63) is True
                assert s._strip_exactly(int(s._table[5]) + 2**40) == 5
        assert s._table.tolist() == right


# ---- the source ----


def public_callables():
    for name in dp.__all__:
        thing = getattr(dp, name)
        if callable(thing):
            yield name, thing
    for owner in (Verbs, FrameDP, FramePlans, dp.Session, dp.BoundPlan, dp.Release, dp.Plan, Noise):
        for name, member in inspect.getmembers(owner, callable):
            if not name.startswith("__") or name == "__init__":
                yield f"{owner.__name__}.{name}", member
    yield "StripSampler", StripSampler
    yield "StripSampler.sample", StripSampler.sample


def test_nothing_takes_a_seed():
    words = ("seed", "random_state", "rng", "generator", "source", "bit_generator")
    looked = 0
    for name, thing in public_callables():
        try:
            parameters = inspect.signature(thing).parameters
        except (TypeError, ValueError):
            continue
        looked += 1
        if name not in (
            "FrameDP",
            "BoundPlan",
            "Query",
            "query",
            "Query.__init__",
            "Asking.__init__",
            "FrameDP.__init__",
            "FramePlans.__init__",
        ) and (
            not name.startswith("BoundPlan")  # these take the source of the data
        ):
            assert not set(words) & set(parameters), name
    assert looked > 40
    assert not set(words) & set(Options.__annotations__)


@pytest.mark.parametrize("word", ["seed", "random_state", "rng"])
def test_a_seed_is_refused_by_name(word):
    with dp.Session(eps=1) as s, pytest.raises(TypeError, match="repeated"):
        pl.DataFrame({"x": [1]}).dp.count(eps=1, **{word: 1})
    assert s.spent == 0


@pytest.mark.fresh_draws
def test_numpy_and_python_seeds_change_nothing():
    import random

    drawn = []
    for _ in range(2):
        np.random.seed(1)
        random.seed(1)
        drawn.append(sampler("linear", Fraction(2**40)).sample(20).tolist())
    assert drawn[0] != drawn[1]


@pytest.mark.fresh_draws
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_children_never_repeat_each_other():
    """64 children, 100 draws each: 6,400 different numbers (a chance repeat has probability 2e-10)."""
    law = sampler("linear", Fraction(2**55))
    law.sample(10)
    ends = []
    for _ in range(64):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.write(write, law.sample(100).tobytes())
            finally:
                os._exit(0)
        os.close(write)
        ends.append((pid, read))
    sequences = []
    for pid, read in ends:
        with os.fdopen(read, "rb") as f:
            sequences.append(np.frombuffer(f.read(), dtype=np.int64))
        os.waitpid(pid, 0)
    sequences.append(law.sample(100))
    assert all(len(x) == 100 for x in sequences)
    assert len({x.tobytes() for x in sequences}) == 65
    assert len(np.unique(np.concatenate(sequences))) == 6_500


@pytest.mark.fresh_draws
def test_threads_share_a_sampler_without_repeating():
    """3,200 draws (a chance repeat has probability 4e-11)."""
    law, drawn, barrier = sampler("square", Fraction(2**55)), [], threading.Barrier(16)

    def draw():
        barrier.wait()
        drawn.append(np.concatenate([law.sample(10) for _ in range(20)]))

    threads = [threading.Thread(target=draw) for _ in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(np.unique(np.concatenate(drawn))) == 16 * 200


def test_fresh_processes_never_repeat_each_other():
    """The same program started twice, hash seed and all: no draw of one is a draw of the other."""
    code = (
        "from fractions import Fraction\nfrom dpframe.noise.strips import sampler\n"
        "print(*sampler('linear', Fraction(2**50)).sample(100))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        for _ in range(2)
    ]
    drawn = [int(k) for run in runs for k in run.stdout.split()]
    assert len(drawn) == len(set(drawn)) == 200


@pytest.mark.fresh_draws
@pytest.mark.parametrize("name", ["laplace", "gaussian", "staircase", "multi_gaussian", "tulap"])
def test_a_pickled_or_copied_noise_never_repeats_its_twin(name):
    """A noise holds no generator, so there is no state that a copy could go on from."""
    law = mechanism(name).calibrate(Fraction(64), 1, Target(Fraction(1, 10), Fraction(1, 10**6)))
    law.sample(10)
    twins = [law, pickle.loads(pickle.dumps(law)), copy.copy(law), copy.deepcopy(law)]
    drawn = {law.sample(20).tobytes() for law in twins}
    assert len(drawn) == 4


def test_a_replaced_source_marks_the_account_as_not_private():
    df = pl.DataFrame({"x": [1, 2, 3]})
    with dp.Session(eps=10) as s:
        df.dp.count(eps=1)
        with source.replaced(np.random.default_rng(0).bytes):
            df.dp.count(eps=1)
        df.dp.count(eps=1)
    assert s.report()["private"].to_list() == [True, False, True]


def test_the_source_comes_back_after_an_error():
    def fail():
        with source.replaced(lambda n: bytes(n)):
            assert not source.is_private()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert source.is_private()


# ---- every cell its own draw ----


def z_of_correlation(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a - a.mean(), b - b.mean()
    return float(abs((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())) * np.sqrt(len(a)))


@pytest.mark.usefixtures("fixed_draws")
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_cells_are_independent_of_each_other_and_between_calls(mechanism):
    """20,000 listed groups, every other one absent: no correlation beyond 6.8 standard errors.

    Of a fixed stream, so there is no false alarm. Planted: empty groups share one draw.
    """
    n = 20_000
    df = pl.DataFrame({"g": np.arange(0, n, 2), "x": np.full(n // 2, 3.0)})
    with dp.Session(rho=10**6):
        tables = [
            df.dp.groupby("g", keys=range(n)).dp_agg(
                c=dp.count(), s=dp.clip_sum("x", bounds=(0, 10)), rho=0.01, mechanism=mechanism
            )
            for _ in range(2)
        ]
    present = np.arange(n) % 2 == 0
    counts = [t["c"].to_numpy() - present for t in tables]
    sums = [t["s"].to_numpy() - 3.0 * present for t in tables]
    for x in counts + sums:
        assert z_of_correlation(x[:-1], x[1:]) < 6.8  # neighbours, present beside absent
        assert z_of_correlation(x[::2], x[1::2]) < 6.8
        assert z_of_correlation(x[: n // 2], x[n // 2 :]) < 6.8
        assert stats.ks_2samp(x[::2], x[1::2]).pvalue > ALARM  # absent groups get the same noise law
        assert len(np.unique(x[1::2])) > 20  # and not one value for all
    assert z_of_correlation(counts[0], counts[1]) < 6.8
    assert z_of_correlation(sums[0], sums[1]) < 6.8


@pytest.mark.parametrize("mechanism", ["laplace", "row"])
def test_600_absent_groups_get_600_draws(mechanism):
    """Two sums agree with a chance of 1/(4 b), b over 10**9 steps: one pair of 180,000 does at 4e-5, three at 1e-14."""
    df = pl.DataFrame({"g": pl.Series([], dtype=pl.Int64), "x": pl.Series([], dtype=pl.Float64)})
    with dp.Session(eps=100):
        t = (
            df.lazy()
            .dp.groupby("g", keys=range(600))
            .dp_agg(
                m=dp.clip_mean("x", bounds=(0, 1)),
                s=dp.clip_sum("x", bounds=(0, 5)),
                eps=1,
                mechanism=mechanism,
            )
        )
    assert t["s"].n_unique() >= 598
    assert t["m"].null_count() == 0


@pytest.mark.usefixtures("fixed_draws")
def test_parts_of_one_block_have_their_own_noise():
    """U and V come from two draws: mean and sum of empty groups do not determine each other's noise."""
    n = 20_000
    df = pl.DataFrame({"g": [0], "x": [1.0]})
    with dp.Session(eps=100) as s:
        df.dp.groupby("g", keys=range(1, n + 1)).dp_agg(
            c=dp.count("x"), s=dp.clip_sum("x", bounds=(0, 10)), eps=1, mechanism="laplace"
        )
    u, v = (x.astype(np.float64) for x in s.last._noisy)
    assert z_of_correlation(u, v) < 6.8
