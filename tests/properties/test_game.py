"""Games: what an adaptive adversary reaches against each accountant's filter, exactly.

They are solved by dynamic programming over everything an adversary may do: which event to ask for
next, given the privacy loss so far. What is granted is decided by the filter under test. Unsound
filters lose the same games.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm
from sizes import AUDIT

import dpframe as dp
from dpframe.accounting.conversion import eps_of_rho, mu_of_eps, pure_rho, rho_of_eps
from dpframe.accounting.events import Event
from dpframe.accounting.filter import ACCOUNTANTS, Budget, State
from dpframe.accounting.renyi import chosen_order, rho_at, rho_of_eps_at
from dpframe.mechanisms.base import Target

ZERO = Fraction(0)


@dataclass(frozen=True)
class Kind:
    """Something an adversary may ask for: the event, and the law of its privacy loss under P.

    ``losses`` are in grid steps, rounded up (which favours the adversary); ``bad`` is the
    probability of an outcome that is impossible under Q.
    """

    name: str
    event: Event
    losses: tuple[int, ...]
    masses: tuple[float, ...]
    bad: float = 0.0


def response(eps: Fraction, h: Fraction, delta: Fraction = ZERO) -> Kind:
    """Randomised response (what is worst among all eps-DP), with probability delta all is told."""
    m = int(eps / h)
    assert m * h == eps
    p = 1 / (1 + math.exp(-float(eps)))
    good = 1 - float(delta)
    return Kind(
        f"RR({float(eps)},{float(delta)})",
        Event(eps, delta, pure_rho(eps)),
        (m, -m),
        (good * p, good * (1 - p)),
        float(delta),
    )


def leak(delta: Fraction) -> Kind:
    """With probability delta all is told, else nothing."""
    return Kind(
        f"leak({float(delta)})",
        Event(ZERO, delta, ZERO, kind="keys"),
        (0,),
        (1 - float(delta),),
        float(delta),
    )


def on_grid(
    cell: np.ndarray, p: np.ndarray, q: np.ndarray, h: float
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Split what lies in [cell h, (cell+1) h) between the ends so that P's and Q's mass are kept.

    delta is then exact at grid points and above the truth between them: this favours the adversary.
    """
    up = np.clip((p - q * np.exp(cell * h)) / -math.expm1(-h), 0, p)
    first, n = int(cell.min()), int(np.ptp(cell)) + 2
    masses = np.bincount(cell - first, p - up, n) + np.bincount(cell - first + 1, up, n)
    return tuple(range(first, first + n)), tuple(masses)


def normal_losses(mu: float, h: Fraction) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """N(mu^2/2, mu^2) on the grid; what lies beyond 8 standard deviations is told in full."""
    step, mean = float(h), mu * mu / 2
    cell = np.arange(math.floor((mean - 8 * mu) / step), math.ceil((mean + 8 * mu) / step))
    edges = np.append(cell, cell[-1] + 1) * step
    p, q = (np.diff(norm.cdf(edges, m, mu)) for m in (mean, -mean))
    return on_grid(cell, p, q, step)


def lattice(rho: Fraction, h: Fraction) -> Kind:
    """A discrete Gaussian of a number that moves by one step: the loss is rho (1 - 2k)."""
    event = dp.mechanism("discrete_gaussian").calibrate(Fraction(1), 1, Target(rho=rho)).event
    k, r = np.arange(-80, 82), float(rho)
    p, q = np.exp(-r * k**2.0), np.exp(-r * (k - 1) ** 2.0)
    cell = np.floor(r * (1 - 2 * k) / float(h)).astype(int)
    return Kind(f"Z(rho={r:.3g})", event, *on_grid(cell, p / p.sum(), q / p.sum(), float(h)))


def gaussian(eps: str, delta: str, h: Fraction) -> Kind:
    """A Gaussian calibrated to (eps, delta): the filter may charge it so, or by rho."""
    noise = dp.mechanism("gaussian").calibrate(Fraction(1), 1, Target(Fraction(eps), Fraction(delta)))
    return Kind(f"G({eps},{delta})", noise.event, *normal_losses(1 / float(noise.scale), h))


def gaussian_rho(rho: Fraction, h: Fraction) -> Kind:
    noise = dp.mechanism("gaussian").calibrate(Fraction(1), 1, Target(rho=rho))
    return Kind(f"G(rho={float(rho):.3g})", noise.event, *normal_losses(1 / float(noise.scale), h))


def laplace(eps: Fraction, h: Fraction) -> Kind:
    """Laplace on a fine grid: 64 steps to the sensitivity."""
    event = dp.mechanism("laplace").calibrate(Fraction(64), 1, Target(eps)).event
    e, k = float(eps), np.arange(-3000, 3065)
    p, q = (np.exp(-e / 64 * np.abs(x)) for x in (k, k - 64.0))
    cell = np.floor(e / 64 * (np.abs(k - 64) - np.abs(k)) / float(h) + 1e-9).astype(int)
    return Kind(f"L({e})", event, *on_grid(cell, p / p.sum(), q / p.sum(), float(h)))


class Sums:
    """Filters that are not sound, with the interface of ``Budget.grant``."""

    def __init__(self, eps, delta, delta_calls, rule):
        self.b = Budget(eps, delta, delta_calls)
        self.rule = rule

    def grant(self, e, state, name):
        # State.eps holds the sum over the events that A counts
        counted = e.eps or ZERO
        after = State(state.eps + counted, state.delta + e.delta, state.rho + e.rho)
        ok = self.rule(self.b, after, e, state)
        return (ok if isinstance(ok, State) else after, "") if ok else (None, "eps")


def moving_target(b, after, e, state):
    """B's target is rho(eps, delta - sum of delta_i); no fixed split."""
    return after.delta < b.delta and after.rho <= rho_of_eps(b.eps, b.delta - after.delta)


def greedy_a(b, after, e, state):
    """A may use all of delta; B has delta_z."""
    by_a = after.eps <= b.eps and after.delta <= b.delta
    by_b = after.delta <= b.delta_calls and after.rho <= rho_of_eps(b.eps, b.delta_z)
    return by_a or by_b


def some_events(b, after, e, state):
    """A counts only the events that B would not grant."""
    if after.delta > b.delta_calls:
        return False
    if after.rho <= rho_of_eps(b.eps, b.delta_z):
        return State(state.eps, after.delta, after.rho)
    if after.eps <= b.eps:
        return State(after.eps, after.delta, state.rho)
    return False


def worst_delta(filter_, kinds, eps: Fraction, h: Fraction, reach: float) -> tuple[float, int]:
    """The largest delta(eps) any adaptive adversary reaches, and the number of filter states seen.

    V(state, loss) = max(stop: (1 - e^(eps - loss))+, over granted kinds: bad + sum of masses * V(next)).
    """
    n = math.ceil(reach / float(h))
    loss = np.arange(-n, n + 1) * float(h)
    stop = np.maximum(0, -np.expm1(float(eps) - loss))
    memo: dict[State, np.ndarray] = {}

    def shifted(v: np.ndarray, by: int) -> np.ndarray:
        """V at loss + by: 1 beyond the top, the bottom value below (both favour the adversary)."""
        if by == 0:
            return v
        out = np.empty_like(v)
        if by > 0:
            out[: len(v) - by], out[len(v) - by :] = v[by:], 1.0
        else:
            out[-by:], out[:-by] = v[:by], v[0]
        return out

    def value(state: State) -> np.ndarray:
        if state in memo:
            return memo[state]
        best = stop
        for kind in kinds:
            after, _ = filter_.grant(kind.event, state, "x")
            if after is None or after == state:
                continue
            v = value(after)
            if len(kind.losses) <= 2:
                mixed = sum(m * shifted(v, by) for by, m in zip(kind.losses, kind.masses))
            else:
                low, high = kind.losses[0], kind.losses[-1]
                padded = np.concatenate([np.full(max(0, -low), v[0]), v, np.ones(max(0, high))])
                start = max(0, -low) + low
                mixed = np.correlate(
                    padded[start : start + len(v) + high - low], np.array(kind.masses), "valid"
                )
            best = np.maximum(best, mixed + kind.bad)
        memo[state] = best
        return best

    return float(value(State())[n]), len(memo)


def test_the_game_knows_the_delta_of_fixed_compositions():
    """100 randomised responses of .1 under pure addition: 10; and one Gaussian: its own delta."""
    h = Fraction(1, 10)
    free = Budget(Fraction(10), ZERO, ZERO)
    delta, states = worst_delta(free, [response(h, h)], Fraction("4.774568"), h, 11)
    assert states == 101
    assert math.isclose(delta, 1e-6, rel_tol=1e-4)  # 100 discrete Laplace of scale 10
    h = Fraction(1, 1000)
    one = gaussian("1", "0.001", h)
    once = Budget(Fraction(1), Fraction("0.001"), Fraction("0.001"))
    delta, _ = worst_delta(once, [one], Fraction(1), h, 5)
    assert 0.001 * (1 - 1e-6) <= delta <= 0.00102  # it is calibrated with margins
    mu = 0.3
    exact = ndtr(mu / 2 - 1 / mu) - math.e * math.exp(log_ndtr(-mu / 2 - 1 / mu))
    free = Budget(None, ZERO, ZERO, Fraction(9, 200))
    delta, _ = worst_delta(free, [gaussian_rho(Fraction(9, 200), h)], Fraction(1), h, 5)
    assert exact * (1 - 1e-9) <= delta <= exact * 1.02  # sigma is rounded up


# (session eps, delta, delta_calls as a share of delta, grid, the kinds on offer)
H = Fraction(1, 20)
F = Fraction(1, 50)
GAMES = {
    "responses at (3,1e-6)": (3, "1e-6", "1/2", Fraction(1, 10), lambda h, d: [response(h, h), response(5 * h, h), leak(d / 4)]),
    "small responses at (1,1e-6)": (1, "1e-6", "1/2", F, lambda h, d: [response(h, h), response(5 * h, h), leak(d / 2)]),
    "small responses, all of delta for calls": (1, "1e-6", "1", F, lambda h, d: [response(h, h), response(5 * h, h), leak(d / 4)]),
    "small responses, no delta for calls": (1, "1e-6", "0", F, lambda h, d: [response(h, h), response(3 * h, h)]),
    "leaky responses at (1,.01)": (1, "0.01", "1/2", H, lambda h, d: [response(h, h), response(2 * h, h, d / 8), leak(d / 8)]),
    "all eight sizes at (1,.05)": (1, "0.05", "1/2", H, lambda h, d: [response(k * h, h) for k in (1, 3, 10)] + [response(4 * h, h, d / 4), leak(d / 4)]),
    "gaussians by rho at (1,.01)": (1, "0.01", "1/2", F, lambda h, d: [gaussian_rho(Fraction("0.01"), h), response(5 * h, h), leak(d / 4)]),
    "gaussians by (eps,delta) at (1,.01)": (1, "0.01", "1/2", F, lambda h, d: [gaussian("0.4", "0.0025", h), response(5 * h, h), leak(d / 4)]),
    "gaussians, laplace and leaks at (2,.01)": (2, "0.01", "1/2", F, lambda h, d: [gaussian("0.8", "0.0025", h), laplace(20 * h, h), gaussian_rho(Fraction("0.04"), h), leak(d / 2)]),
    "mostly for calls at (1,.01)": (1, "0.01", "9/10", F, lambda h, d: [gaussian("0.4", "0.001", h), response(5 * h, h), leak(d * 3 / 10)]),
    "hardly for calls at (1,.01)": (1, "0.01", "1/10", F, lambda h, d: [gaussian("0.4", "0.001", h), response(5 * h, h), leak(d / 20)]),
}  # fmt: skip


@pytest.mark.parametrize("game", GAMES.values(), ids=list(GAMES))
def test_no_adaptive_adversary_gets_beyond_the_sessions_delta(game):
    eps, delta, share, h, kinds = game
    if AUDIT:
        h_kinds = kinds
        h, kinds = h / 2, lambda step, d: h_kinds(2 * step, d)
    eps, delta = Fraction(eps), Fraction(delta)
    offered = kinds(h, delta)
    if AUDIT:  # the same events on a finer grid
        offered = [
            replace(k, losses=tuple(2 * x for x in k.losses)) if len(k.losses) <= 2 else k for k in offered
        ]
        offered = [k for k in offered if len(k.losses) <= 2]
    budget = Budget(eps, delta, delta * Fraction(share))
    worst, states = worst_delta(budget, offered, eps, h, 3.0 * float(eps) + 2)
    assert states > 15
    assert worst <= float(delta)
    assert worst > 0.05 * float(delta)  # the adversary does get somewhere


@pytest.mark.parametrize("share", ["0", "1/4", "1/2", "3/4", "1"])
def test_the_split_of_delta_holds_whatever_it_is(share):
    h, eps, delta = H, Fraction(1), Fraction("0.01")
    kinds = [response(h, h), response(4 * h, h), response(2 * h, h, delta / 16), leak(delta / 4)]
    worst, _ = worst_delta(Budget(eps, delta, delta * Fraction(share)), kinds, eps, h, 5)
    assert worst <= float(delta)


def test_a_rho_session_is_approximate_zcdp_against_adversaries():
    """Sum of rho <= .05, delta_calls .002: at (eps(.05, d), .002 + d) for every d."""
    h, calls, rho = F, Fraction("0.002"), Fraction("0.05")
    budget = Budget(None, calls, calls, rho)
    kinds = [
        response(5 * h, h),
        gaussian_rho(Fraction("0.0125"), h),
        leak(calls / 2),
        gaussian("0.4", "0.001", h),
    ]
    for d in (0.01, 0.001):
        eps = Fraction(math.ceil(eps_of_rho(0.05, d) / float(h))) * h
        worst, states = worst_delta(budget, kinds, eps, h, 5)
        assert states > 10
        assert worst <= float(calls) + d


@pytest.mark.parametrize(
    ("rule", "delta", "calls", "least"),
    [
        (moving_target, "1e-6", "0", 1.03),
        (moving_target, "0.01", "0", 1.1),
        (greedy_a, "1e-6", "0", 1.05),
        (greedy_a, "0.01", "1/4", 1.01),
        (some_events, "1e-6", "1/2", 1.5),
        (some_events, "0.01", "1/2", 1.5),
    ],
)
def test_unsound_filters_lose_the_game(rule, delta, calls, least):
    """The game can fail: three rules that look reasonable exceed delta."""
    h, eps, delta = F, Fraction(1), Fraction(delta)
    kinds = [response(h, h), leak(delta * Fraction(9, 10)), leak(delta * Fraction(1, 10))]
    if rule is some_events:
        kinds = [response(h, h), response(25 * h, h)]
    worst, _ = worst_delta(Sums(eps, delta, delta * Fraction(calls), rule), kinds, eps, h, 5)
    assert worst > least * float(delta)
    sound, _ = worst_delta(Budget(eps, delta, delta * Fraction(calls)), kinds, eps, h, 5)
    assert sound <= float(delta)


# ---- every accountant ----


def opened(accountant: str, eps: Fraction, delta: Fraction, calls: Fraction) -> Budget:
    order = chosen_order(eps, delta - calls) if accountant == "rdp" else None
    return Budget(eps, delta, calls, accountant=accountant, order=order)


def menu(h: Fraction, d: Fraction) -> list[Kind]:
    """Eight kinds of event."""
    return [
        response(8 * h, h),
        response(10 * h, h, d / 4),
        leak(d / 4),
        gaussian("0.4", str(float(d / 4)), h),
        gaussian_rho(Fraction("0.016"), h),
        gaussian_rho(Fraction("0.025"), h),
        laplace(15 * h, h),
        lattice(Fraction("0.02"), h),
    ]


# (accountant, delta_calls as a share of delta, the least and most part of delta that is reached)
REACHED = [
    ("union", "1/2", 0.6, 0.75),
    ("sum", "1", 0.95, 1),
    ("zcdp", "1/2", 0.6, 0.75),
    ("rdp", "1/2", 0.7, 0.85),
    ("gdp", "1/2", 0.95, 1),
    ("gdp", "0", 0.9, 1),
]


@pytest.mark.parametrize(("accountant", "share", "least", "most"), REACHED)
def test_no_accountant_is_beaten_by_an_adversary_with_eight_kinds_of_event(accountant, share, least, most):
    h = F / 2 if AUDIT and accountant != "union" else F
    delta = Fraction("0.01")
    budget = opened(accountant, Fraction(1), delta, delta * Fraction(share))
    worst, states = worst_delta(budget, menu(F, delta) if h == F else finer(delta), Fraction(1), h, 5)
    assert states > 10
    assert least * float(delta) < worst <= most * float(delta)


def finer(delta: Fraction) -> list[Kind]:
    """The same menu on half the step."""
    h = F / 2
    return [replace(k, losses=tuple(2 * x for x in k.losses)) for k in menu(F, delta)[:3]] + [
        gaussian("0.4", str(float(delta / 4)), h),
        gaussian_rho(Fraction("0.016"), h),
        gaussian_rho(Fraction("0.025"), h),
        laplace(30 * h, h),
        lattice(Fraction("0.02"), h),
    ]


@pytest.mark.parametrize("accountant", ["sum", "zcdp", "rdp"])
@pytest.mark.parametrize("game", GAMES.values(), ids=list(GAMES))
def test_accountants_of_one_sum_hold_in_every_game_of_the_union(game, accountant):
    eps, delta, share, h, kinds = game
    eps, delta, share = Fraction(eps), Fraction(delta), Fraction(share)
    if share == 1 and accountant != "sum":
        pytest.skip("nothing is left for the conversion")
    budget = opened(accountant, eps, delta, delta * share)
    worst, _ = worst_delta(budget, kinds(h, delta), eps, h, 3.0 * float(eps) + 2)
    assert worst <= float(delta)


@pytest.mark.parametrize("order", [4, 8, 40])
def test_rdp_holds_at_any_order_fixed_beforehand(order):
    h, eps, delta = F, Fraction(2), Fraction("0.01")
    budget = Budget(eps, delta, delta / 4, accountant="rdp", order=Fraction(order))
    assert budget.rho_limit > 0
    kinds = [response(10 * h, h), leak(delta / 8), gaussian_rho(Fraction("0.04"), h), laplace(15 * h, h)]
    worst, states = worst_delta(budget, kinds, eps, h, 8)
    assert states > 10
    assert worst <= float(delta)


def lattice_as_gaussian(b, after, e, state):
    """GDP that takes the discrete Gaussian for a Gaussian."""
    return after.delta <= b.delta_calls and after.rho <= mu_of_eps(b.eps, b.delta_z) ** 2 / 2


def test_the_discrete_gaussian_would_break_gdp_so_it_is_refused():
    """At (3, 1e-6) and a sensitivity of one step, 1.38 times delta."""
    eps, delta, h = Fraction(3), Fraction("1e-6"), Fraction(1, 50)
    kind = lattice(mu_of_eps(eps, delta) ** 2 / 2, h)
    worst, _ = worst_delta(Sums(eps, delta, ZERO, lattice_as_gaussian), [kind], eps, h, 12)
    assert 1.37 < worst / float(delta) < 1.4
    assert opened("gdp", eps, delta, ZERO).grant(kind.event, State(), "x") == (None, "law")


def half_of_the_divergence(b, after, e, state):
    """RDP that takes the cost at a smaller order than that of its target."""
    used = state.rho + rho_at(e, Fraction(2))
    order = chosen_order(b.eps, b.delta_z)
    fits = after.delta <= b.delta_calls and used <= rho_of_eps_at(b.eps, order, b.delta_z) * order / 2
    return State(after.eps, after.delta, used) if fits else False


def test_rdp_with_another_order_than_its_targets_loses():
    h, eps, delta = F, Fraction(1), Fraction("0.01")
    kinds = [response(5 * h, h), gaussian_rho(Fraction("0.02"), h)]
    worst, _ = worst_delta(Sums(eps, delta, ZERO, half_of_the_divergence), kinds, eps, h, 5)
    assert worst > 2 * float(delta)


def test_a_privacy_loss_distribution_is_no_filter():
    """Two plans that have delta = 1e-6 at eps = 1 each; who chooses by the first outcome has 1.895e-6."""
    mu, second, eps, b = 0.15, 0.1831, 1.0, 0.4108
    loss, dl = np.linspace(mu * mu / 2 - 9 * mu, mu * mu / 2 + 9 * mu, 20001, retstep=True)
    weight = norm.pdf(loss, mu * mu / 2, mu) * dl
    left = eps - loss
    gauss = ndtr(second / 2 - left / second) - np.exp(left + log_ndtr(-second / 2 - left / second))
    pure = np.maximum(0, np.where(left > -b, -np.expm1((left - b) / 2), -np.expm1(left)))
    assert math.isclose(float(weight @ gauss), 1e-6, rel_tol=2e-3)
    assert math.isclose(float(weight @ pure), 1e-6, rel_tol=2e-3)
    assert math.isclose(float(weight @ np.maximum(gauss, pure)), 1.895e-6, rel_tol=2e-3)


def test_the_games_cover_every_accountant():
    assert {a for a, *_ in REACHED} == set(ACCOUNTANTS)
