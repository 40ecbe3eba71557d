"""Privacy-loss distributions: what a plan that was fixed beforehand adds up to, almost exactly.

A pair of laws (P, Q) *dominates* a mechanism when on every two neighbours, in either order, its
delta(eps) is at most sum (P - e**eps Q)+ for every eps. Dominating pairs of parts make a dominating pair of
the whole (Zhu, Dong, Wang, "Optimal accounting of differential privacy via characteristic function", 2022), and the loss
log(P/Q) under P then adds up: distributions are convolved.

**On a grid.** Here a pair is the masses of its loss on multiples of a step, and a mass at infinity. What
lies between two grid points is split between them so that its mass under P *and* under Q is kept. Then delta(eps)
is exact at grid points, and a chord of the true, convex curve (in e**eps) between them: never below it (Doroshenko,
Ghazi, Kamath, Kumar, Manurangsi, "Connect the dots", 2022). Mass beyond the upper end goes to infinity, mass below
the lower end to the lower end. The error falls with the square of the step.

**The pairs.** Gaussian noise: its own curve. Discrete Laplace noise on one coordinate: its own loss at the full
shift, which is the worst of a log-concave law. Anything else that is eps-DP, Laplace vectors too: randomised
response at eps; with a delta, that much at infinity. The discrete Gaussian on one coordinate: its own loss. Anything
known by rho alone: the largest convex curve below what the conversion allows. A law by its
probabilities: at every eps the largest delta of all shifts. No single shift dominates the others, but the
largest of convex curves is convex, and every convex curve is that of some pair.

**Not a filter.** When costs are chosen by earlier outcomes, what is read here can be exceeded. At
(1, 1e-6): Gaussian noise of mu = .15 first, then, by its outcome, Gaussian noise of mu = .1831 or Laplace noise of eps =
.4108. Each of the two plans has delta = 1e-6 at eps = 1; who chooses the second step by the loss so far reaches
1.895e-6. So a session never grants by it: it is for reports.

**Convolution.** All masses are tilted by e**(t loss), with t where the whole has its least Chernoff bound, multiplied in
frequency space (a power for equal parts), and tilted back: the tail that makes delta keeps its digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

Tail = tuple[Floats, Floats, Callable[[Floats], Floats]]

_WIDTH = 24.0  # grid points are counted for so many standard deviations of the whole
_FINE = 800  # grid points to a standard deviation of one event
_MOST = 1 << 20  # grid points
_LATTICE = 1 << 20  # atoms of a discrete Gaussian that are summed one by one
_OUTSIDE = 2.0**-50  # tilted mass that may lie outside the window of a convolution


def step_for(rhos: Iterable[tuple[float, int]]) -> float:
    """The grid's step for events given by (rho, how often): the loss of one has a variance of about 2 rho."""
    pairs = list(rhos)
    total, n = sum(2 * r * k for r, k in pairs), sum(k for _, k in pairs)
    if not total:
        return 1.0
    return max(math.sqrt(total / n) / _FINE, _WIDTH * math.sqrt(total) / _MOST)


@dataclass(frozen=True, eq=False)
class Losses:
    """A pair of laws by the loss log(P/Q) under P.

    Attributes
    ----------
    step : float
    first : int
        ``masses[i]`` is the mass at the loss ``(first + i) * step``.
    masses : array of float64
    infinite : float
        The mass that is impossible under Q.
    """

    step: float
    first: int
    masses: Floats
    infinite: float = 0.0

    @property
    def losses(self) -> Floats:
        return np.asarray((self.first + np.arange(len(self.masses))) * self.step, dtype=np.float64)

    @cached_property
    def _seen(self) -> tuple[Floats, Floats]:
        """Losses and logarithms of the masses that are not 0."""
        at = self.masses > 0
        return self.losses[at], np.log(self.masses[at])

    def log_moment(self, t: float) -> tuple[float, float, float]:
        """(log of the sum of masses * e**(t loss), mean, variance) of the finite part, tilted by t."""
        losses, logs = self._seen
        if not len(losses):
            return -math.inf, 0.0, 0.0
        x = logs + t * losses
        top = float(x.max())
        w = np.exp(x - top)
        total = float(w.sum())
        mean = float(w @ losses) / total
        return top + math.log(total), mean, float(w @ (losses - mean) ** 2) / total

    def weakened(self, delta: float) -> Losses:
        """The pair that with probability ``delta`` tells all."""
        return Losses(
            self.step, self.first, self.masses * (1 - delta), self.infinite + delta * (1 - self.infinite)
        )


def _on_grid(step: float, cell: npt.NDArray[np.int64], p: Floats, q: Floats, infinite: float) -> Losses:
    """Split masses between the ends of the cells they lie in, [cell * step, (cell+1) * step)."""
    up = (p - q * np.exp(cell * step)) / -math.expm1(-step)
    up = np.clip(up, 0.0, p)
    first = int(cell.min())
    n = int(cell.max()) - first + 2
    masses = np.bincount(cell - first, p - up, n) + np.bincount(cell - first + 1, up, n)
    return Losses(step, first, np.asarray(masses, dtype=np.float64), infinite)


def response(eps: float, step: float) -> Losses:
    """Randomised response at ``eps``: dominates everything eps-DP."""
    losses = np.array([eps, -eps])
    p = 1 / (1 + np.exp(-losses))
    return _on_grid(step, np.floor(losses / step).astype(np.int64), p, p[::-1], 0.0)


def gaussian(mu: float, step: float) -> Losses:
    """N(0, 1) against N(mu, 1): the loss is N(mu**2/2, mu**2) under P and N(-mu**2/2, mu**2) under Q."""
    from scipy.special import ndtr

    reach = mu * mu / 2 + 22 * mu  # beyond: below 1e-100
    cell = np.arange(math.floor(-reach / step), math.ceil(reach / step))
    low, high = cell * step, (cell + 1) * step

    def between(mean: float) -> Floats:
        a, b = (low - mean) / mu, (high - mean) / mu
        return np.where(a > 0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))

    p, q = between(mu * mu / 2), between(-mu * mu / 2)
    end = float(ndtr((low[0] - mu * mu / 2) / mu))
    beyond = float(ndtr(-(high[-1] - mu * mu / 2) / mu))
    made = _on_grid(step, cell, p, q, beyond)
    made.masses[0] += end
    return made


def laplace(eps: float, steps: int, step: float) -> Losses:
    """Discrete Laplace noise, one coordinate that moves by ``steps``; q = exp(-eps/steps).

    The loss is eps(1 - 2k/steps) at k = 1 .. steps-1 and +-eps beyond. Masses of runs of k are geometric sums.
    """
    r = eps / steps
    n = math.floor(eps / step) + 1
    cell = np.arange(-n, n, dtype=np.int64)
    below = np.clip(np.floor((steps - np.arange(-n, n + 1) * step / r) / 2), 0, steps - 1)  # largest k
    k0, k1 = below[1:] + 1, below[:-1]  # a cell holds k0 .. k1
    run = -np.expm1(-r * (k1 - k0 + 1)) / (1 + math.exp(-r))
    p, q = np.exp(-r * k0) * run, np.exp(-r * (steps - k1)) * run
    ends = np.array([eps, -eps])
    cell = np.concatenate([cell, np.floor(ends / step).astype(np.int64)])
    sides = np.array([1.0, math.exp(-eps)]) / (1 + math.exp(-r))
    return _on_grid(step, cell, np.concatenate([p, sides]), np.concatenate([q, sides[::-1]]), 0.0)


def lattice(rho: float, steps: int, step: float) -> Losses:
    """Discrete Gaussian noise, one coordinate that moves by ``steps``: sigma = steps / sqrt(2 rho).

    The law is log-concave, so the largest shift is the worst. At k the loss is rho (steps - 2k) / steps. Tails beyond
    30 sigma are below exp(-450).
    """
    sigma = steps / math.sqrt(2 * rho)
    if 61 * sigma + 2 * steps > _LATTICE:
        return concentrated(rho, step)
    end = math.ceil(30 * sigma) + steps
    k = np.arange(-end, end + 1, dtype=np.float64)
    p = np.exp(-rho * (k / steps) ** 2)
    q = np.exp(-rho * ((k - steps) / steps) ** 2)
    total = float(p.sum())
    losses = rho * (steps - 2 * k) / steps
    return _on_grid(step, np.floor(losses / step).astype(np.int64), p / total, q / total, 1e-190)


def concentrated(rho: float, step: float) -> Losses:
    """Anything rho-zCDP, from delta(eps) = min over orders a of e**((a-1)(a rho - eps)) (1-1/a)**(a-1) / a."""
    reach = rho + 2 * math.sqrt(rho * 450)
    eps = np.arange(math.ceil(reach / step) + 1) * step
    best = np.zeros(len(eps))
    for a1 in np.geomspace(min(1e-3, 1e-2 / rho), max(1e3, 1e3 / math.sqrt(rho)), 400):
        a = 1 + a1
        np.minimum(best, a1 * (a * rho - eps + math.log(a1 / a)) - math.log(a), out=best)
    return of_curve(np.exp(best), step)


def of_curve(right: Floats, step: float) -> Losses:
    """The pair of a curve: ``right[i]`` is an upper bound of delta at i*step, in either order of the neighbours.

    To the left delta(-eps) = 1 - e**-eps + e**-eps delta(eps). The true curve is convex in y = e**eps, so it lies
    below the largest convex curve under the points; Q's mass at a point is the change of its slope.
    """
    n = len(right) - 1
    falling = np.exp(-np.arange(1, n + 1) * step)
    left = -np.expm1(-np.arange(1, n + 1) * step) + falling * right[1:]
    y = np.exp(np.arange(-n, n + 1) * step)
    xs, hs = [0.0, *y.tolist()], [1.0, *left[::-1].tolist(), *right.tolist()]
    kept: list[int] = []
    for i, (x, h) in enumerate(zip(xs, hs)):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (hs[b] - hs[a]) * (x - xs[b]) < (h - hs[b]) * (xs[b] - xs[a]):
                break
            kept.pop()
        kept.append(i)
    at = np.array(kept)
    x, h = np.array(xs)[at], np.array(hs)[at]
    slopes = np.append(-np.diff(h) / np.diff(x), 0.0)
    masses = np.zeros(2 * n + 1)
    masses[at[1:] - 1] = x[1:] * np.maximum(-np.diff(slopes), 0.0)
    return Losses(step, -n, masses, float(h[-1]))


class Composition:
    """Independent parts together.

    Parameters
    ----------
    parts : sequence of (Losses, int)
        Pairs on one grid, and how often each occurs.

    Privacy: delta is rounded up: by the mass outside the window, and by the rounding errors of the Fourier
    transforms, both of which are bounded before the tilt is taken back.
    """

    def __init__(self, parts: Sequence[tuple[Losses, int]]) -> None:
        self.parts = [(x, k) for x, k in parts if k]
        self.step = self.parts[0][0].step if self.parts else 1.0
        self.events = sum(k for _, k in self.parts)
        log_finite = sum(k * math.log1p(-min(x.infinite, 1 - 1e-16)) for x, k in self.parts)
        self.infinite = -math.expm1(log_finite)

    def _moments(self, t: float) -> tuple[float, float, float]:
        each = [(x.log_moment(t), k) for x, k in self.parts]
        return tuple(sum(m[i] * k for m, k in each) for i in range(3))  # type: ignore[return-value]

    def delta_of(self, eps: float) -> float:
        """The delta at ``eps`` (float, 0 or more), rounded up."""
        t = self._least(lambda t: self._moments(t)[0] - t * eps)
        losses, masses, error = self._tail(t)
        over = losses > eps
        total = float((masses[over] * -np.expm1(eps - losses[over])).sum())
        return min(1.0, (self.infinite + total + float(error(np.array(eps)))) * self._rounding(t))

    def eps_of(self, delta: float) -> float:
        """The least eps (0 or more) whose delta is at most ``delta``, rounded up; inf where there is none."""
        top = sum(k * float(x._seen[0].max()) for x, k in self.parts if len(x._seen[0]))
        if delta <= 0:
            return math.inf if self.infinite else max(0.0, top)
        if self.infinite >= delta * (1 - 1e-9):
            return math.inf
        goal = -math.log(delta - self.infinite)
        t = self._least(lambda t: (self._moments(t)[0] + goal) / t)
        # Every tilt gives an upper bound; near the largest loss of all a smaller one is better.
        best = max(0.0, top)
        for tilt in (t, t / 8, t / 64):
            tail = self._tail(tilt)
            best = min(best, self._eps_at(tail, delta / self._rounding(tilt), top))
            if float(tail[2](np.array(best - self.step))) < 1e-8 * (delta - self.infinite):
                break
        return best

    def _eps_at(self, tail: Tail, delta: float, top: float) -> float:
        """:meth:`eps_of` by one tilt."""
        losses, masses, error = tail
        start = np.searchsorted(losses, 0.0)
        losses, masses = losses[start:], masses[start:]
        if not len(losses):  # the window lies below 0: nothing but the error is above
            return 0.0 if float(error(np.array(0.0))) + self.infinite <= delta else max(0.0, top)
        over_p = np.cumsum(masses[::-1])[::-1]
        over_q = np.cumsum((masses * np.exp(-losses))[::-1])[::-1]
        errors = error(losses - self.step) + self.infinite
        deltas = over_p - np.exp(losses) * over_q + errors
        fine = np.flatnonzero(deltas > delta)
        i = int(fine[-1]) + 1 if len(fine) else 0
        if i == len(losses):
            return max(0.0, top)
        if i == 0 and start == 0:  # the window begins above the answer
            return max(0.0, float(losses[0]))
        # Between the grid points i-1 and i the curve is over_p[i] - e**eps over_q[i], and the answer lies there.
        low, high = float(losses[i - 1]) if i else 0.0, float(losses[i])
        part = (over_p[i] + errors[i] - delta) / over_q[i] if over_q[i] > 0 else 0.0
        eps = math.log(part) if part > 0 else low
        return max(0.0, min(max(eps, low), high) * (1 + 2.0**-40))

    def _least(self, f: Callable[[float], float]) -> float:
        """About where ``f`` is least: it falls, then rises. Any tilt is right; a good one keeps digits.

        A tilt of more than one over the step would leave nothing but the largest loss.
        """
        golden = (math.sqrt(5) - 1) / 2
        low, high = -10.0, max(0.0, -math.log(self.step))
        a, b = high - golden * (high - low), low + golden * (high - low)
        fa, fb = f(math.exp(a)), f(math.exp(b))
        while high - low > 0.1:
            if fa <= fb:
                high, b, fb = b, a, fa
                a = high - golden * (high - low)
                fa = f(math.exp(a))
            else:
                low, a, fa = a, b, fb
                b = low + golden * (high - low)
                fb = f(math.exp(b))
        return math.exp((low + high) / 2)

    def _rounding(self, t: float) -> float:
        return 1 + 2.0**-34 + self.events * (1 + t) * 2.0**-50

    def _tail(self, t: float) -> Tail:
        """Losses of the whole, rising, their masses, and a function that bounds the error of delta at eps."""
        log_moment, mean, variance = self._moments(t)
        width = self._width(t, log_moment, mean, variance)
        n = 1 << max(4, math.ceil(math.log2(2 * width / self.step + 4)))
        spectrum = np.ones(n // 2 + 1, dtype=np.complex128)
        start = 0
        for x, k in self.parts:
            one = np.zeros(len(x.masses))
            seen, logs = x._seen
            one[x.masses > 0] = np.exp(logs + t * seen - x.log_moment(t)[0])
            padded = np.concatenate([one, np.zeros(-len(one) % n)]).reshape(-1, n).sum(axis=0)
            spectrum *= np.fft.rfft(padded) ** k
            start += k * x.first
        tilted = np.maximum(np.fft.irfft(spectrum, n), 0.0)
        centre = round(mean / self.step) - start - n // 2
        index = centre + np.arange(n)
        tilted = tilted[index % n]
        losses = np.asarray((start + index) * self.step, dtype=np.float64)
        with np.errstate(over="ignore"):
            masses = tilted * np.exp(np.minimum(log_moment - t * losses, 700.0))
        size = float(np.sqrt(np.sum(tilted**2)))
        noise = 4 * 2.0**-52 * math.log2(n) * (self.events + len(self.parts)) * math.sqrt(n) * size

        def error(eps: Floats) -> Floats:
            return np.asarray(np.exp(np.minimum(log_moment - t * eps, 700.0)) * (noise + _OUTSIDE))

        return losses, masses, error

    def _width(self, t: float, log_moment: float, mean: float, variance: float) -> float:
        """Half of the window: outside of it the tilted whole has at most ``_OUTSIDE``, by Chernoff bounds."""
        ends = [(x._seen[0], k) for x, k in self.parts if len(x._seen[0])]
        most = max(
            sum(k * float(s.max()) for s, k in ends) - mean, mean - sum(k * float(s.min()) for s, k in ends)
        )
        width = 9 * math.sqrt(variance) + 4 * self.step
        while width < most:
            bounds = []
            for sign in (1, -1):
                by = [sign * z * width / max(variance, 1e-300) for z in (0.25, 0.5, 0.75, 1.0)]
                bounds.append(
                    min(self._moments(t + u)[0] - log_moment - u * (mean + sign * width) for u in by)
                )
            if max(bounds) < math.log(_OUTSIDE / 2):
                return width
            width *= 1.3
        return most + 4 * self.step
