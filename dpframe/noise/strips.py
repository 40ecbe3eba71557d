"""One exact, vectorised sampler for the laws that the core draws from.

A magnitude ``y >= 0`` is drawn from the density proportional to ``exp(-phi(y))`` and then made an
integer. Three shapes are enough for the core's laws:

==========  ====================  =======================================  =====================
shape       phi(y)                integer                                  law of the integer
==========  ====================  =======================================  =====================
"linear"    y / s                 ``sign * floor(y)``, "-0" thrown back    discrete Laplace, b = s
"square"    y**2 / (2 s**2)       ``sign * floor(y + 1/2)``                rounded Gaussian, sigma = s
"lattice"   y**2 / (2 s**2)       ``sign * y``, "-0" thrown back           discrete Gaussian, sigma = s
==========  ====================  =======================================  =====================

(``floor`` of an exponential variable of scale s is geometric with ratio ``exp(-1/s)``; giving it a
sign and refusing "-0" makes the two-sided geometric law. Rounding a Gaussian is the definition of
the rounded Gaussian. A "lattice" draws no real number: y is an integer from the outset.)

The half line is cut into strips of width ``m = 2**e``, ``s/16 < m <= s/8``. On strip V the density
is at most its left-edge value ``w_V = exp(-phi(V m))``. So: choose V with probability
``w_V / sum(w)``, choose ``y`` uniformly in the strip, keep it with probability
``exp(phi(V m) - phi(y))``; else start afresh. That is rejection sampling from exactly the wanted density.
(On a lattice m is at least 1, so below s = 16 every strip is one integer, kept always; y is uniform among
the m integers ``V m, ..., V m + m - 1``, and is kept with P(y) proportional to ``w_V / m * exp(phi(V m) -
phi(y)) = exp(-phi(y)) / m``. With a fair sign and "-0" thrown back, P(k) is proportional to ``exp(-phi(k))``
for every integer k, zero included.)

**Why every decision is exact.** Uniform variables are real numbers whose binary digits are drawn as
they are needed. Three words are drawn for an attempt, and a decision is taken from them only when
all real numbers that begin with those digits agree:

* the strip: ``C_V <= U < C_{V+1}`` is compared on the first 64 digits of U with the first 64 of the
  cumulative weights, computed to 90 bits. If U's digits come within one unit of any
  entry, or of 1 (the entries not listed lie less than two units below 1), the choice is made by
  :meth:`_strip_exactly` instead;
* the place in the strip: 52 digits R; the integer is a function of V and R alone because integers
  (and half integers) are multiples of ``2**-x``, the unit of R (e <= 51). On a lattice the e leading
  digits are the integer's place and the others are dropped: the place is known exactly, it has no
  further digits;
* the acceptance: ``U' < a`` with ``a = exp(-z)`` computed in float64. z is at most 3 and is made of
  five roundings of relative error ``2**-53`` and a place known to ``2**-52``, so its error is below
  ``2**-47``; a further ``2**-53`` comes from turning U' into a float. The comparison counts only when
  ``|U' - a| > 2**-36``, which leaves the platform's ``exp`` an error of two thousand million units
  in the last place (its documented error is one). Else :meth:`_accept_exactly` draws further digits
  and computes ``exp`` in decimal arithmetic with a stated error until the comparison is decided.

The exact paths are taken about once in 10**10 attempts, and they decide about the same real
numbers, so the law is exact, not approximate, whatever the platform's ``exp`` does within the band.

Scales are rationals. A scale below 1/64 is drawn at 1/64 (more noise, and P(0) > 1 - 2**-90); one
above ``2**55`` is refused by the caller.
"""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from dpframe.noise import source
from dpframe.noise.exponentials import exp_minus, fixed_exp_minus

Shape = Literal["linear", "square", "lattice"]
SMALLEST_SCALE = Fraction(1, 64)
LARGEST_SCALE = Fraction(2**55)
_BAND = 2.0**-36
_CHUNK = 1 << 15
_PLACE_BITS = 52


class StripSampler:
    """Draw integers from one law.

    Parameters
    ----------
    shape : {"linear", "square", "lattice"}
    scale : Fraction
        In steps; between ``SMALLEST_SCALE`` and ``LARGEST_SCALE``.
    """

    def __init__(self, shape: Shape, scale: Fraction) -> None:
        if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
            raise ValueError("the scale must lie between 1/64 and 2**55 steps")
        self._square = shape != "linear"
        self._lattice = shape == "lattice"
        e = min(_log2_floor(scale) - 3, 51)
        if self._lattice:
            e = max(e, 0)
        self._shift = _PLACE_BITS - e
        self._half = 1 << (self._shift - 1) if shape == "square" else 0  # what rounds instead of cutting
        digits = (1 << _PLACE_BITS) - 1
        self._mask = np.uint64(digits >> self._shift << self._shift if self._lattice else digits)
        self._ratio = Fraction(2) ** e / scale  # strip width over scale, in (1/16, 1/8]; lattice: up to 64
        self._float_ratio = float(self._ratio)
        self._table = self._prefixes()

    def sample(self, size: int) -> npt.NDArray[np.int64]:
        """Return ``size`` independent draws as int64."""
        out = np.empty(size, dtype=np.int64)
        done = 0
        while done < size:
            drawn = self._attempts(min(_CHUNK, int((size - done) * 1.12) + 8))
            take = min(len(drawn), size - done)
            out[done : done + take] = drawn[:take]
            done += take
        return out

    def geometric(self, size: int) -> npt.NDArray[np.int64]:
        """Return ``size`` draws of 0, 1, 2, ... with P(n) proportional to exp(-n/scale): magnitudes, signs left off.

        Only of "linear": ``floor`` of an exponential variable is geometric.
        """
        out = np.empty(size, dtype=np.int64)
        done = 0
        while done < size:
            w = source.words(3 * min(_CHUNK, int((size - done) * 1.12) + 8)).reshape(3, -1)
            strip, place = self._strips(w[0]), w[1] & self._mask
            drawn = ((strip << _PLACE_BITS) + place.view(np.int64))[self._accepted(strip, place, w[2])]
            take = min(len(drawn), size - done)
            out[done : done + take] = drawn[:take] >> self._shift
            done += take
        return out

    def _attempts(self, n: int) -> npt.NDArray[np.int64]:
        w = source.words(3 * n)
        strip = self._strips(w[:n])
        place = w[n : 2 * n] & self._mask
        negative = w[n : 2 * n] >> np.uint64(63) != 0
        keep = self._accepted(strip, place, w[2 * n :])
        y = (strip << _PLACE_BITS) + place.view(np.int64)
        y += self._half
        y >>= self._shift
        if not self._half:
            keep &= ~(negative & (y == 0))
        np.negative(y, out=y, where=negative)
        return y[keep]

    def _strips(self, w: source.Words) -> npt.NDArray[np.int64]:
        t = self._table
        strip = np.searchsorted(t, w, side="right") - 1
        below = w - t[strip] <= np.uint64(1)
        below &= strip > 0  # the first entry is exactly zero
        above = t[np.minimum(strip + 1, len(t) - 1)] - w <= np.uint64(1)
        beyond = w >= np.uint64((1 << 64) - 2)  # entries of 2**64 - 1 and more are not in the table
        unsure = below | above | ((strip == len(t) - 1) & beyond)
        for i in np.flatnonzero(unsure):
            strip[i] = self._strip_exactly(int(w[i]))
        return strip

    def _accepted(
        self, strip: npt.NDArray[np.int64], place: source.Words, w: source.Words
    ) -> npt.NDArray[np.bool_]:
        u = place * 2.0**-_PLACE_BITS
        if self._square:
            z = u + 2.0 * strip
            z *= u
            z *= self._float_ratio * self._float_ratio / 2
        else:
            z = u * self._float_ratio
        gap = np.exp(-z)
        gap -= w * 2.0**-64
        keep: npt.NDArray[np.bool_] = gap > 0
        for i in np.flatnonzero(np.abs(gap) <= _BAND):
            keep[i] = self._accept_exactly(int(strip[i]), int(place[i]), int(w[i]))
        return keep

    # Exact arithmetic: rarely reached, always right.

    def _cumulative(self, bits: int) -> list[int]:
        """C_0, C_1, ... in units of ``2**-bits``, each within 64 units of the real number.

        In integers with 32 more bits, rounded down. Every factor is known to 2 of these small units and
        every product adds one, so V weights have an error of at most ``2 V**2`` of them together: below
        ``2**27`` for the 4096 strips that 360 bits make (64 are used, 96 and 192 computed). That and the
        division stay below a unit. Weights below ``2**-bits`` are left out; each is at most ``exp(-1/16)``
        times the one before, so they are less than 17 units together.
        """
        one = bits + 32
        least = 1 << 32
        r = self._ratio
        if not self._square:
            step, growth = fixed_exp_minus(r, one), 1 << one
        else:  # w_{V+1} / w_V = exp(-r**2 (2V + 1) / 2)
            step, growth = fixed_exp_minus(r * r / 2, one), fixed_exp_minus(r * r, one)
        w, total, sums = 1 << one, 0, []
        while w >= least:
            sums.append(total)
            total += w
            w = (w * step) >> one
            if self._square:
                step = (step * growth) >> one
        return [(c << bits) // total for c in sums]

    def _prefixes(self) -> source.Words:
        scaled = [c >> 32 for c in self._cumulative(96)]
        return np.array([t for t in scaled if t < (1 << 64) - 1], dtype=np.uint64)

    def _strip_exactly(self, word: int) -> int:
        n = 64
        while True:
            word, n = (word << 64) | source.bits(64), n + 64
            c = self._cumulative(n + 64)
            low, high = (word << 64) - 64, ((word + 1) << 64) + 64
            v = max(bisect_right(c, low) - 1, 0)  # C_0 is exactly 0
            if v < len(c) - 1 and high < c[v + 1]:
                return v

    def _accept_exactly(self, strip: int, place: int, word: int) -> bool:
        n_place, n_word, digits = _PLACE_BITS, 64, 50
        growth = 0 if self._lattice else 1  # how much the place may still grow, in units of its last digit
        if self._lattice and place == 0:
            return True
        while True:
            least = exp_minus(self._exponent(strip, Fraction(place + growth, 1 << n_place)), digits, up=False)
            most = exp_minus(self._exponent(strip, Fraction(place, 1 << n_place)), digits, up=True)
            if Fraction(word + 1, 1 << n_word) <= least:
                return True
            if Fraction(word, 1 << n_word) >= most:
                return False
            if not self._lattice:
                place, n_place = (place << 64) | source.bits(64), n_place + 64
            word, n_word = (word << 64) | source.bits(64), n_word + 64
            digits += 25

    def _exponent(self, strip: int, u: Fraction) -> Fraction:
        r = self._ratio
        return r * r * u * (2 * strip + u) / 2 if self._square else r * u


def _log2_floor(x: Fraction) -> int:
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


@lru_cache(maxsize=512)
def sampler(shape: Shape, scale: Fraction) -> StripSampler:
    """The sampler of a law (its table takes about a millisecond to make, so it is kept)."""
    return StripSampler(shape, scale)
