"""Noise of every law beside the best one and beside a lower bound.

    python benchmarks/noise.py                    everything (a minute)
    python benchmarks/noise.py laws composition   some of: short laws mixtures bound composition crossing row calibration

Prints markdown tables. All figures are of the calibrated law itself, in units of the sensitivity; nothing is drawn.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linprog
from scipy.sparse import coo_array

import dpframe as dp
from dpframe.accounting import pld
from dpframe.accounting.conversion import rho_of_eps
from dpframe.errors import MechanismError
from dpframe.mechanisms.auto import Asked, choose
from dpframe.mechanisms.base import Mechanism, Noise, Target, sqrt_up
from dpframe.mechanisms.coarse import STEPS
from dpframe.mechanisms.combine import std
from dpframe.mechanisms.gaussian import analytic_sigma
from dpframe.mechanisms.staircase import Staircase
from dpframe.planning.plan import Plan

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from loss_distribution import loss_distribution

EPS = ("0.1", "0.25", "0.5", "0.75", "1", "2", "3", "4", "5", "10")
DELTAS = ("1e-6", "1e-5", "1e-4", "1e-3", "1e-2", "0.1")
LOSSES = ("E|X|", "RMSE")
BOUND_STEPS = 8  # steps to a sensitivity in the linear programme
BOUND_POINTS = (
    ("0.25", "1e-3"),
    ("0.5", "1e-6"),
    ("0.5", "1e-2"),
    ("1", "1e-6"),
    ("1", "1e-5"),
    ("1", "1e-2"),
    ("2", "1e-5"),
    ("3", "1e-3"),
    ("3", "0.1"),
    ("5", "1e-5"),
    ("5", "1e-2"),
    ("10", "1e-6"),
)
SHORT_POINTS = (
    ("0.1", "1e-6"),
    ("0.5", "1e-2"),
    ("1", "1e-5"),
    ("1", "1e-2"),
    ("2", "1e-5"),
    ("5", "1e-5"),
    ("10", "1e-6"),
)
MIXTURE_POINTS = (("1", "1e-5"), ("2", "1e-5"), ("5", "1e-5"), ("10", "1e-6"))
QUERIES = (1, 4, 16, 64, 256)
Losses = tuple[float, float]


def candidates() -> dict[str, Mechanism]:
    """Every law by name, and the staircase whose r is chosen for the RMSE."""
    return {name: dp.mechanism(name) for name in dp.mechanisms()} | {"staircase (rmse)": Staircase("rmse")}


@cache
def losses(steps: int, eps: str, delta: str) -> dict[str, Losses]:
    """(E|X|, RMSE) of every law that serves (eps, delta), in units of a sensitivity of ``steps`` steps."""
    target, found = Target(Fraction(eps), Fraction(delta)), {}
    for name, mech in candidates().items():
        try:
            noise = mech.calibrate(Fraction(steps), 1, target)
        except MechanismError:
            continue
        found[name] = (noise.mean_abs / steps, noise.std / steps)
    return found


def short() -> Iterator[str]:
    """The tables of docs/mechanisms.md: a few points, both losses in one cell."""
    for steps, grid in ((1, "a count (1 step)"), (STEPS, f"a sum ({STEPS} steps)")):
        points = [losses(steps, e, d) for e, d in SHORT_POINTS]
        names = sorted({name for found in points for name in found})
        rows = []
        for n in names:
            cells = []
            for found in points:
                best = [min(v[i] for v in found.values()) * 1.0005 for i in (0, 1)]
                marked = [f"**{v:.3g}**" if v <= b else f"{v:.3g}" for v, b in zip(found.get(n, ()), best)]
                cells.append(" / ".join(marked) or "–")
            rows.append([f"`{n}`", *cells])
        yield f"### E|X| / RMSE of {grid}, in sensitivities (**bold**: within 0.05 % of the best)\n"
        yield table(["(eps, delta)", *(f"({e}, {d})" for e, d in SHORT_POINTS)], rows)


def laws() -> Iterator[str]:
    """Every law at every (eps, delta): one table for each grid and loss."""
    for steps, grid in ((1, "a count (1 step)"), (STEPS, f"a sum ({STEPS} steps)")):
        points = {(e, d): losses(steps, e, d) for e in EPS for d in DELTAS}
        names = sorted({name for found in points.values() for name in found})
        for i, loss in enumerate(LOSSES):
            rows = []
            for (e, d), found in points.items():
                best = min(v[i] for v in found.values())
                cells = [_cell(found[n][i], best) if n in found else "–" for n in names]
                rows.append([e, d, *cells])
            yield f"### {loss} of {grid}, in sensitivities (× the best of the row)\n"
            yield table(["eps", "delta", *names], rows)


def mixtures() -> Iterator[str]:
    """How much less E|X| the Gaussian mixtures have than the analytic Gaussian."""
    rows = []
    for e, d in MIXTURE_POINTS:
        found = losses(STEPS, e, d)
        gains = [
            f"{100 * (1 - found[n][0] / found['gaussian'][0]):.2f} %"
            for n in ("multi_gaussian", "quasi_gaussian")
        ]
        rows.append([e, d, *gains, f"{100 * (1 - found['staircase'][0] / found['gaussian'][0]):.2f} %"])
    yield f"### E|X| below that of `gaussian`, {STEPS} steps\n"
    yield table(["eps", "delta", "multi_gaussian", "quasi_gaussian", "staircase (pure)"], rows)
    least = least_loss(STEPS, 5.0, 1e-5, 1)
    yield (
        f"The least E|X| of any law at (5, 1e-5) on {STEPS} steps is {least:.6f}, and on the reals at least"
        f" {least - 1 / (2 * STEPS):.6f} (rounding adds up to half a step). The published improvement implies 0.0379.\n"
    )


def bound() -> Iterator[str]:
    """The least E|X| and RMSE that any law on the grid can have, and the laws' distance from it."""
    for steps in (1, BOUND_STEPS):
        names = sorted({name for point in BOUND_POINTS for name in losses(steps, *point)})
        for i, loss in enumerate(LOSSES):
            rows = []
            for e, d in BOUND_POINTS:
                found = losses(steps, e, d)
                least = least_loss(steps, float(e), float(d), i + 1)
                ratios = [f"×{found[n][i] / least:.4f}" if n in found else "–" for n in names]
                rows.append([e, d, f"{least:.6g}", *ratios])
            yield f"### {loss} beside the linear programme's bound, {steps} step{'s' * (steps > 1)}\n"
            yield table(["eps", "delta", "bound", *names], rows)


def least_loss(steps: int, eps: float, delta: float, power: int) -> float:
    """A lower bound on (E|X|**power)**(1/power) / steps over all laws on the integers.

    The programme knows p on a window and the mass outside; of the definition's terms only those inside the window
    are asked for, and the mass outside is priced as if it lay next to the window. Both can only lower
    the optimum. Mirroring a law keeps its guarantee and its loss, so the optimum is symmetric.
    """
    end = steps * (math.ceil((4 - math.log(delta)) / eps) + 2)
    k = np.arange(-end, end + 1)
    rows, columns, values = [], [], []
    first, row = end + 2, 0  # columns: p_0, ..., p_end, the mass outside, then the excesses
    for j in range(1, steps + 1):
        i = k[j:]  # p_i - e**eps p_{i-j} - excess <= 0
        n = np.arange(len(i))
        rows += [row + n, row + n, row + n]
        columns += [np.abs(i), np.abs(i - j), first + row + n]
        values += [np.ones(len(i)), np.full(len(i), -math.exp(eps)), -np.ones(len(i))]
        row += len(i)
    excesses = row
    at = first
    for j in range(1, steps + 1):  # the excesses of one shift, over delta, are at most 1
        size = len(k) - j
        rows.append(np.full(size, row))
        columns.append(np.arange(at, at + size))
        values.append(np.full(size, 1.0))
        at, row = at + size, row + 1
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    a = coo_array(entries, shape=(row, first + excesses)).tocsr()
    scale = 1 / delta  # all variables are probabilities over delta: HiGHS's tolerances are absolute
    limits = np.concatenate([np.zeros(excesses), np.ones(steps)])
    once = np.zeros(first + excesses)
    once[0], once[1:first] = 1, 2
    once[first - 1] = 1
    cost = np.zeros(first + excesses)
    cost[: end + 1] = 2 * (np.arange(end + 1) / steps) ** power
    cost[end + 1] = ((end + 1) / steps) ** power
    done = linprog(
        cost / cost.max(),
        A_ub=a,
        b_ub=limits,
        A_eq=once[None, :],
        b_eq=[scale],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )
    if done.status != 0:
        raise RuntimeError(f"The linear programme failed at {steps, eps, delta}: {done.message}")
    return math.pow(float(done.fun) * float(cost.max()) / scale, 1 / power)


def composition() -> Iterator[str]:
    """RMSE of each of k queries that share one (eps, 1e-6)."""
    delta = Fraction("1e-6")
    rows = []
    for e in ("0.5", "1", "3"):
        eps = Fraction(e)
        rho = rho_of_eps(eps, delta)
        for k in QUERIES:
            noises = {
                "laplace, eps/k": _grid("laplace", Target(eps / k)),
                "laplace, rho/k": _grid("laplace", Target(rho=rho / k)),
                "gaussian, rho/k": _grid("gaussian", Target(rho=rho / k)),
                "gaussian, exact": _grid("gaussian", Target(eps, delta), k),
                "laplace, PLD": _by_pld("laplace", eps, delta, k),
                # a table's pair takes the largest delta over all shifts at every eps: minutes where k is large
                "multi_gaussian, PLD": _by_pld("multi_gaussian", eps, delta, k) if k <= 16 else None,
            }
            stds = {
                name: None if noise is None else noise.std / (8 if name.startswith("multi") else STEPS)
                for name, noise in noises.items()
            }
            best = min(s for s in stds.values() if s is not None)
            rows.append([e, str(k), *("–" if s is None else _cell(s, best) for s in stds.values())])
    yield f"### RMSE of each of k queries under one (eps, {float(delta):g}), in sensitivities (× the best of the row)\n"
    yield table(["eps", "k", *stds], rows)


def _by_pld(name: str, eps: Fraction, delta: Fraction, k: int) -> Noise:
    """The law of which k have (eps, delta) together by their privacy-loss distribution: one at (x, delta/4k)."""
    m = STEPS if name == "laplace" else 8  # a table's pair is a maximum over shifts, made number by number
    low, high = eps / k, eps * min(1.0, 3 / math.sqrt(k))
    one = delta if k == 1 else delta / (4 * k)
    noise = dp.mechanism(name).calibrate(Fraction(m), 1, Target(low, one))
    while high - low > low / 100:
        x = Fraction(math.sqrt(low * high)).limit_denominator(10**6)
        tried = dp.mechanism(name).calibrate(Fraction(m), 1, Target(x, one))
        step = pld.step_for([(float(tried.event.rho), k)])
        losses = pld.laplace(float(x), m, step) if name == "laplace" else loss_distribution(tried, m, step)
        fits = pld.Composition([(losses, k)]).delta_of(float(eps)) <= delta
        low, high, noise = (x, high, tried) if fits else (low, x, noise)
    return noise


def _grid(name: str, target: Target, queries: int = 1) -> Noise:
    """A law on the grid; for ``queries`` of L2 sensitivity STEPS together, each moving by STEPS."""
    size = Fraction(STEPS) if queries == 1 else sqrt_up(Fraction(STEPS * STEPS * queries))
    return dp.mechanism(name).calibrate(size, queries, target)


def crossing() -> Iterator[str]:
    """From how many numbers that move together on ``gaussian`` has less RMSE than ``laplace``."""
    delta = Fraction("1e-6")
    rows = []
    for e in ("0.1", "0.25", "0.5", "1", "2", "3", "5"):
        eps = Fraction(e)
        sigma = float(analytic_sigma(eps, delta))
        found = []
        for steps in (1, STEPS):
            k = 1
            while _gaussian(steps, k, eps, delta).std >= _laplace(steps, k, eps).std:
                k += 1
            found.append(str(k))
        rows.append([e, f"{(float(eps) * sigma) ** 2 / 2:.2f}", *found])
    yield f"### Numbers that move together from which `gaussian` wins in RMSE, delta={float(delta):g}\n"
    yield table(["eps", "k* = (eps sigma)²/2", "first k, counts", f"first k, {STEPS} steps"], rows)


def row() -> Iterator[str]:
    """One draw for a row: RMSE of a mean, and of count(), by the number of columns; a draw for every part, one draw, Gaussian at the same rho."""
    for complete in (False, True):
        rows = []
        for columns in (1, 2, 3, 5, 10):
            for e in ("0.1", "1", "3", "10"):
                eps = Fraction(e)
                apart, one, taken = (
                    _asked_of_rows(columns, complete, mechanism=m, eps=eps)
                    for m in ("laplace", "row", "auto")
                )
                rho = _asked_of_rows(columns, complete, mechanism="auto", rho=Fraction(taken.event.rho))
                draws = len({p.draw if p.draw is not None else -1 - i for i, p in enumerate(taken.parts)})
                cells = [
                    " / ".join(f"{x * float(eps):.3g}" for x in _errors_of_rows(p))
                    for p in (apart, one, taken, rho)
                ]
                cells[2] += f" ({draws})"
                rows.append(
                    [str(columns), e, *cells, f"{_errors_of_rows(apart)[1] / _errors_of_rows(taken)[1]:.2f}"]
                )
        kind = "without missing values" if complete else "that may have missing values"
        yield f"### RMSE, times eps, of a mean in the middle / at a bound (in D/n) / of count(): means of columns {kind}\n"
        head = [
            "columns",
            "eps",
            "a draw for every part",
            "one draw",
            "auto (draws)",
            "Gaussian, same rho",
            "gain at a bound",
        ]
        yield table(head, rows)


def _asked_of_rows(columns: int, complete: bool, **options: Any) -> Plan:
    names = [f"x{i}" for i in range(columns)]
    frame = pd.DataFrame({x: [1] if complete else [1.0] for x in names} | {"g": ["a"]})
    budget = {"rho": 10**6} if "rho" in options else {"eps": 10**6}
    with dp.Session(**budget):
        asked = {x: dp.clip_mean(x, bounds=(0, 2**20)) for x in names}
        plan: Plan = frame.dp.plan.groupby("g", keys=["a", "b"]).dp_agg(n=dp.count(), **asked, **options).plan
    return plan


def _errors_of_rows(plan: Plan) -> tuple[float, float, float]:
    """Of the first mean in the middle and at a bound, in D/n, and of the number of rows: at first order."""
    of = {o.name: o.answer for o in plan.outputs}
    mean: Any = of["x0"]
    found = [
        std(tuple((plan.laws[i], (y - tau) / 2 / mean.steps) for i, y in zip(mean.cells, mean.places)))
        for tau in (0, 1)
    ]
    return found[0], found[1], std(tuple((plan.laws[i], float(c)) for i, c in of["n"].terms))


def calibration() -> Iterator[str]:
    """The slowest first calibration of every law over eps in [.05, 20] and delta down to 1e-12, and a repeat."""
    rows = []
    points = list(
        itertools.product(("0.05", "0.3", "1", "5", "20"), ("1e-12", "1e-9", "1e-6", "1e-3"), (1, STEPS))
    )
    for name in [n for n in dp.mechanisms() if n != "discrete_gaussian"]:  # that takes rho alone
        first: list[tuple[float, str, float]] = []
        for e, d, m in points:
            asked = Asked(((m, m * m),), (m,), 1, Target(Fraction(e), Fraction(d)))
            with contextlib.suppress(MechanismError):
                first.append((_seconds(name, asked), f"({e}, {d}), {m} steps", _seconds(name, asked, 1000)))
        rows.append(
            [
                f"`{name}`",
                f"{max(first)[0] * 1e3:.1f} ms",
                max(first)[1],
                f"{max(x[2] for x in first) * 1e6:.0f} µs",
            ]
        )
    for e, d in (("0.05", "1e-12"), ("1", "1e-6"), ("1", "1e-2"), ("5", "0")):
        asked = Asked(((STEPS, STEPS**2),), (STEPS,), 1, Target(Fraction(e), Fraction(d)))
        calls = (_seconds("auto", asked), _seconds("auto", asked, 1000))
        rows.append(
            ["`auto`", f"{calls[0] * 1e3:.1f} ms", f"({e}, {d}), {STEPS} steps", f"{calls[1] * 1e6:.0f} µs"]
        )
    yield "### Calibration: the slowest first call, where, and a repeat\n"
    yield table(["law", "first call", "at", "again"], rows)


def _seconds(name: str, asked: Asked, times: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(times):
        choose(name, asked)
    return (time.perf_counter() - start) / times


def _gaussian(steps: int, k: int, eps: Fraction, delta: Fraction) -> Noise:
    return dp.mechanism("gaussian").calibrate(sqrt_up(Fraction(steps * steps * k)), k, Target(eps, delta))


def _laplace(steps: int, k: int, eps: Fraction) -> Noise:
    return dp.mechanism("laplace").calibrate(Fraction(steps * k), k, Target(eps))


def _cell(value: float, best: float) -> str:
    return f"{value:.4g} ×{value / best:.4g}" if value > best else f"**{value:.4g}**"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a markdown table."""
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines).replace("E|X|", r"E\|X\|") + "\n"


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "short": short,
    "laws": laws,
    "mixtures": mixtures,
    "bound": bound,
    "composition": composition,
    "crossing": crossing,
    "row": row,
    "calibration": calibration,
}


def main(names: list[str]) -> int:
    unknown = [n for n in names if n not in PARTS]
    if unknown:
        print(f"There is no part {unknown[0]!r}; there are {', '.join(PARTS)}.", file=sys.stderr)
        return 2
    start = time.perf_counter()
    for name in names or PARTS:
        for text in PARTS[name]():
            print(text, flush=True)
    print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
