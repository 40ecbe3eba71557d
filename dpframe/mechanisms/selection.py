"""Selection: choose one of several candidates by their utilities, with exact draws.

``exponential`` and ``permute_and_flip`` take utilities that are integers or fractions and return the index
of one candidate. With s = eps / sensitivity for monotone utilities (one unit's rows move all utilities
the same way, as counts under add_remove), and s = eps / (2 * sensitivity) else:

* exponential: P(i) is proportional to exp(s u_i);
* permute and flip: candidates are visited in random order, each with a coin of exp(s (u_i - max u));
  the first head is chosen. Equally: all coins are thrown, and one of the heads is chosen uniformly
  (the coins do not depend on the order), which is how it is drawn here.

Guarantees: both are eps-DP. The exponential mechanism is also rho-zCDP with rho = eps**2/8, as its loss has a
range of eps; of permute and flip only what holds for anything eps-DP is claimed, rho = eps*tanh(eps/2).

Source: McSherry and Talwar (2007); McKenna and Sheldon, "Permute-and-flip" (2020); Cesar and Rogers, "Bounding,
concentrating, and truncating" (2021), for eps**2/8.

Permute and flip is never worse in expected utility at one eps, and up to twice as good; the exponential mechanism
is better by far where rho is what is paid.

**Why every draw is exact.** Weights are exp(-z) with z a rational. The random numbers are reals whose binary
digits are drawn as needed. A decision is taken in float64 when the first 64 digits lie farther from its
boundary than ``_BAND``; else bounds of exp(-z) in decimal arithmetic and further digits are computed until it
is decided. The band is safe: for z below 800 float64 knows z to three roundings, 2**-41; numpy's ``exp`` may
be wrong by 2**13 units in the last place (documented: one); sums of up to 2**17 weights add 2**-36 of the
total: below 2**-35 in all, where the band is 2**-32. (More candidates are always summed in integers.)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from dpframe.accounting.events import rational
from dpframe.errors import Arg, Call, Code, InputError, typed
from dpframe.mechanisms.base import Ints
from dpframe.noise import source
from dpframe.noise.exponentials import exp_minus, fixed_exp_minus

Utilities = Sequence[int] | Sequence[Fraction] | npt.NDArray[np.integer[Any]]
Exact = int | Fraction

_BAND = 2.0**-32
_FLOATS = 1 << 17  # candidates that are summed in floats
_FAR = 800  # exp(-800) is 0 in float64


def exponential(
    utilities: Utilities, sensitivity: int | Fraction, eps: float | Fraction, *, monotone: bool = False
) -> int:
    """Choose an index with probability proportional to exp(s * utility).

    Parameters
    ----------
    utilities : integers or Fractions, one per candidate
    sensitivity : int or Fraction
        How far one unit's rows can move any one utility.
    eps : float or Fraction
    monotone : bool
        Whether one unit's rows move all utilities the same way (then s is eps/sensitivity, else
        half of it). True of counts under add_remove, false under replace_one.

    Returns
    -------
    int

    Privacy: eps-DP, and eps**2/8-zCDP. Between neighbours, the log-ratio of
    exp(s u_i) moves over a range of at most eps (monotone: by s*sensitivity one way), and the sum's
    part is common to all i.

    Examples
    --------
    >>> from dpframe.mechanisms.selection import exponential
    >>> exponential([100, 95, 80, 50, 10], 1, eps=10, monotone=True)
    0
    """
    z = _exponents(utilities, sensitivity, eps, monotone)
    return _draw(z)


def permute_and_flip(
    utilities: Utilities, sensitivity: int | Fraction, eps: float | Fraction, *, monotone: bool = False
) -> int:
    """Choose an index by permute and flip; parameters as of :func:`exponential`.

    Privacy: eps-DP, and eps*tanh(eps/2)-zCDP as anything eps-DP is; the
    eps**2/8 of the exponential mechanism is not claimed for it.

    Examples
    --------
    >>> from dpframe.mechanisms.selection import permute_and_flip
    >>> permute_and_flip([100, 95, 80, 50, 10], 1, eps=10, monotone=True)
    0
    """
    z = _exponents(utilities, sensitivity, eps, monotone)
    up = np.flatnonzero(_coins(z))
    return int(up[_below(len(up))])


def weighted(gaps: Ints, sizes: Ints, rate: Fraction) -> int:
    """Choose an index with probability proportional to ``sizes * exp(-rate * gaps)``.

    Parameters
    ----------
    gaps : int64, at least one of them 0
        How far each utility is below the largest.
    sizes : int64, 1 or more
        How many candidates share that utility. Only different utilities need weights of their own.
    rate : Fraction

    Privacy: the exponential mechanism over ``sizes.sum()`` candidates, up to which of those with the same
    utility is meant (to be drawn uniformly). Exact: see above.
    """
    return _draw(_Exponents(gaps, rate), sizes)


def below(n: int) -> int:
    """A uniform integer below ``n``."""
    return _below(n)


def heads(gap: int, rate: Fraction) -> bool:
    """One coin that is heads with probability exp(-rate * gap), exactly."""
    return bool(_coins(_Exponents(np.array([gap], dtype=np.int64), rate))[0])


# ---- exponents ----


class _Exponents:
    """z_i = rate * (max u - u_i) >= 0, exactly and in float64 (800 and more as 800)."""

    def __init__(self, gaps: list[Exact] | Ints, rate: Fraction) -> None:
        self._gaps, self._rate = gaps, rate
        cap = -(-_FAR // rate)
        if isinstance(gaps, np.ndarray) and 2**-300 < rate < 2**300:
            self.floats = np.minimum(gaps, min(cap, 2**62)).astype(np.float64) * float(rate)
            return
        near: list[Exact] = [g if g < cap else cap for g in map(_exact, gaps)]
        if 2**-300 < rate < 2**300:
            self.floats = np.array([float(g) for g in near]) * float(rate)
        else:
            self.floats = np.array([float(min(rate * g, Fraction(_FAR))) for g in near])

    def __len__(self) -> int:
        return len(self._gaps)

    def __getitem__(self, i: int) -> Fraction:
        return self._rate * _exact(self._gaps[i])


def _exponents(utilities: Utilities, sensitivity: object, eps: object, monotone: bool) -> _Exponents:
    # Privacy: the rate is an exact rational, the one that is charged.
    e, size = rational(eps, "eps"), rational(sensitivity, "sensitivity")
    listed = utilities.tolist() if isinstance(utilities, np.ndarray) else list(utilities)
    if not listed:
        raise InputError(
            "There is nothing to choose from: ", Arg("utilities"), " is empty.", hint="list the candidates"
        )
    exact = [_exact(u) for u in listed]
    top = max(exact)
    return _Exponents([top - u for u in exact], e / size / (1 if monotone else 2))


def _exact(u: object) -> Exact:
    if isinstance(u, np.integer):
        return int(u)
    if isinstance(u, int | Fraction) and not isinstance(u, bool):
        return u
    raise InputError(
        Arg("utilities"),
        f" holds {typed(u)} ({type(u).__name__}); an exact draw needs integers or Fractions.",
        hint=Call("fractions.Fraction", Code("u")),
    )


def _weights(z: _Exponents, bits: int) -> list[int]:
    """exp(-z_i) in units of 2**-bits, each rounded down by less than 2 units."""
    known: dict[Fraction, int] = {}
    out = []
    for i in range(len(z)):
        zi = z[i]
        if zi not in known:
            known[zi] = fixed_exp_minus(zi, bits) if 0 < zi < bits else int(zi == 0) << bits
        out.append(known[zi])
    return out


# ---- the exponential mechanism ----


def _draw(z: _Exponents, sizes: Ints | None = None) -> int:
    sizes = np.ones(len(z), dtype=np.int64) if sizes is None else sizes
    word = source.bits(64)
    if len(z) <= _FLOATS:
        edges = np.cumsum(np.exp(-z.floats) * sizes)
        u, band = word * 2.0**-64 * edges[-1], _BAND * edges[-1]
        low, high = (int(np.searchsorted(edges, x, side="right")) for x in (u - band, u + band))
        if low == high < len(z):
            return low
    return _draw_exactly(z, word, sizes)


def _draw_exactly(z: _Exponents, word: int, sizes: Ints) -> int:
    """Place U among the cumulative weights, with as many digits as it takes.

    With weights rounded down by less than 2 units for each of ``sizes``, C_i lies in [L_i, L_i + 2 S_i],
    S_i the sizes before. U = C_i / C_n is compared for all U that begin with ``word``, in integers. C_0 is
    exactly 0 and C_n the total.
    """
    n, count, each = 64, len(z), sizes.tolist()
    before = [0, *accumulate(each)]
    while True:
        bits = n + 64 + before[-1].bit_length()
        sums = [0, *accumulate(w * k for w, k in zip(_weights(z, bits), each))]
        least = (word * sums[-1]) >> n  # of U times the total: between sums[-1] and that + 2 S_n
        most = (((word + 1) * (sums[-1] + 2 * before[-1])) >> n) + 1
        i = min(bisect_right(sums, least) - 1, count - 1)
        after_start = i == 0 or sums[i] + 2 * before[i] <= least
        before_end = i == count - 1 or most <= sums[i + 1]
        if after_start and before_end:
            return i
        word, n = (word << 64) | source.bits(64), n + 64


# ---- permute and flip ----


def _coins(z: _Exponents) -> npt.NDArray[np.bool_]:
    """Heads with probability exp(-z_i), independently."""
    w = source.words(len(z))
    gap = np.exp(-z.floats) - w * 2.0**-64
    heads: npt.NDArray[np.bool_] = gap > 0
    for i in np.flatnonzero(np.abs(gap) <= _BAND):
        heads[i] = _coin_exactly(z[int(i)], int(w[i]))
    return heads


def _coin_exactly(z: Fraction, word: int) -> bool:
    if z == 0:
        return True
    n, digits = 64, 50
    while True:
        if z < n:
            if Fraction(word + 1, 1 << n) <= exp_minus(z, digits, up=False):
                return True
            if Fraction(word, 1 << n) >= exp_minus(z, digits, up=True):
                return False
        elif word:  # exp(-z) < 2**-n
            return False
        word, n, digits = (word << 64) | source.bits(64), n + 64, digits + 25


def _below(n: int) -> int:
    """A uniform integer below ``n``."""
    bits = 64 * (n.bit_length() // 64 + 1)
    room = (1 << bits) // n * n
    while True:
        x = source.bits(bits)
        if x < room:
            return x % n
