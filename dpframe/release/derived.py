"""Differences and ratios of released answers: free, because only released numbers are used.

Privacy: everything here is a function of releases and of their plans (post-processing); no frame is read and
nothing is charged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from dpframe.base.wrong_calls import checked
from dpframe.errors import InputError, NearNames, did_you_mean
from dpframe.layout.answers import Linear
from dpframe.layout.moments import fieller, width_factor
from dpframe.mechanisms.base import Floats, Noise
from dpframe.mechanisms.combine import halfwidth
from dpframe.planning.pieces import Output
from dpframe.release.answers import FloatAnswer, IntAnswer, level_of
from dpframe.release.release import Release

Ends = tuple[Floats, Floats]


class Derived(NearNames):
    """A number, or a column of numbers, made of released ones. Nothing was charged for it.

    Attributes
    ----------
    value : float, or a frame with keys and ``name``
    std : float, or such a frame
        Standard deviation of the noise, to first order.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"x": [1.0] * 100})
    >>> with dp.Session(eps=2e6):
    ...     change = dp.difference(df.dp.count(eps=1e6), df.head(40).dp.count(eps=1e6))
    >>> change.value, change.interval(0.9)
    (60.0, (60.0, 60.0))
    """

    def __init__(
        self, name: str, keys: Release | None, value: Floats, std: Floats, ends: Callable[[float], Ends]
    ) -> None:
        self._name, self._keys, self._ends = name, keys, ends
        self.value = self._shape({name: value})
        self.std = self._shape({name: std})

    @checked(example="d.interval(0.95)")
    def interval(self, level: float = 0.95) -> Any:
        """The interval that holds the same made of the exact clipped answers, with ``level``.

        Returns
        -------
        (low, high), or a frame with ``<name>_low`` and ``<name>_high``
            Infinite where a denominator is not clear of zero.
        """
        low, high = self._ends(level_of(level))
        if self._keys is None:
            return float(low[0]), float(high[0])
        return self._shape({f"{self._name}_low": low, f"{self._name}_high": high})

    def _shape(self, columns: dict[str, Floats]) -> Any:
        if self._keys is None:
            return float(next(iter(columns.values()))[0])
        return self._keys._frame(columns)

    def __float__(self) -> float:
        if self._keys is not None:
            raise TypeError("This is a column of numbers. Hint: .value")
        return float(self.value)

    def __repr__(self) -> str:
        if self._keys is not None:
            return f"<dpframe {self._name}>\n{self.value!r}"
        low, high = self.interval()
        return f"{self.value:.6g} (95% interval {low:.6g} to {high:.6g}; {self._name}, free)"


@dataclass(frozen=True, slots=True)
class Operand:
    """One output of one release."""

    release: Release
    output: Output

    @property
    def values(self) -> Floats:
        """The answer before rounding and ``nonnegative``."""
        return self.output.answer.value(self.release._noisy).astype(np.float64)

    @property
    def laws(self) -> list[Noise]:
        return self.release.plan.laws

    @property
    def std(self) -> Floats:
        return self.output.answer.std(self.release._noisy, self.laws)

    @property
    def keys(self) -> Release | None:
        return self.release if self.release.plan.grouped else None

    @property
    def linear(self) -> Linear | None:
        """Its answer, if that is a sum of released integers and nothing else."""
        a = self.output.answer
        return a if isinstance(a, Linear) and a.clamp is None else None

    @property
    def rounded(self) -> int:
        """1 if the answer was rounded to integers after its noise was weighted."""
        a = self.linear
        return int(a is not None and a.integer and any(c != 1 for _, c in a.terms))

    def reach(self, level: float) -> Ends:
        """How far the interval's ends are below and above the value, and no less than a normal law's.

        Sums of heavy-tailed noises need more than the root of the squares at low levels; a normal law's
        half-widths have it.
        """
        values, z = self.values, NormalDist().inv_cdf((1 + level) / 2)
        low, high = self.output.answer.interval(self.release._noisy, self.laws, level)
        return np.maximum(values - low, z * self.std), np.maximum(high - values, z * self.std)

    def shares(self, other: Operand) -> bool:
        mine, theirs = self.output.answer.coordinates(), other.output.answer.coordinates()
        return self.release.draw == other.release.draw and bool(set(mine) & set(theirs))


@checked(example="dp.difference(a, b)")
def difference(a: Any, b: Any) -> Derived:
    """Subtract one released answer from another, with an interval. Free.

    Parameters
    ----------
    a, b : answer, Release, or (Release, output name)
        A number that a call returned, a release with one output, or one output of a release. Columns of
        groups go with columns of the same groups, and with numbers.

    Returns
    -------
    Derived
        With ``.value``, ``.std`` and ``.interval(level)``. Made of the answers before rounding and ``nonnegative``.

    Raises
    ------
    InputError
        For different groups; for answers that are made of the same noise, unless both are counts or sums, whose plan
        says how that cancels.

    Notes
    -----
    Privacy: post-processing. Of counts and sums the interval is from the law of the difference itself, noise that
    they share taken together; else it adds the two half-widths in square, on each side its own.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"late": [True, False, True, True]})
    >>> with dp.Session(eps=2000):
    ...     a, b = df.dp.count(eps=1000), df.dp.clip_sum("late", eps=1000)
    >>> dp.difference(a, b).value
    1.0
    """
    first, second, keys = _pair("difference", a, b)
    value = first.values - second.values

    if first.linear is not None and second.linear is not None:
        terms = _merged(first, second)
        one = first.shares(second) and first.output == second.output  # rounded alike, so that cancels, too
        rounded = 0 if one else first.rounded + second.rounded
        spread = np.full_like(value, (sum((law.std * c) ** 2 for law, c in terms) + rounded / 12) ** 0.5)

        def ends(level: float) -> Ends:
            w = halfwidth(terms, level) + rounded / 2
            return value - w, value + w

    else:
        spread = np.hypot(first.std, second.std)

        def ends(level: float) -> Ends:
            (below, above), (below2, above2) = first.reach(level), second.reach(level)
            return value - np.hypot(below, above2), value + np.hypot(above, below2)

    return Derived("difference", keys, value, spread, ends)


@checked(example="dp.ratio(a, b)")
def ratio(a: Any, b: Any) -> Derived:
    """Divide one released answer by another, with an interval. Free.

    Parameters
    ----------
    a, b : answer, Release, or (Release, output name)
        As in :func:`difference`.

    Returns
    -------
    Derived
        As from :func:`difference`. Where the denominator is 0 the value is 0; where it is not clear of 0 the interval
        is infinite.

    Raises
    ------
    InputError
        As for :func:`difference`.

    Notes
    -----
    Privacy: post-processing. The interval is Fieller's. The mean of a column is better asked for itself:
    ``clip_mean`` makes it from one epsilon.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"late": [True, False, True, True]})
    >>> with dp.Session(eps=2000):
    ...     a, b = df.dp.clip_sum("late", eps=1000), df.dp.count(eps=1000)
    >>> dp.ratio(a, b).value
    0.75
    """
    first, second, keys = _pair("ratio", a, b)
    top, bottom = np.broadcast_arrays(first.values, second.values)
    safe = np.where(bottom == 0, 1.0, bottom)
    value = np.where(bottom == 0, 0.0, top / safe)
    shared = first.shares(second)
    if shared:
        upper, lower = _weights(first), _weights(second)
        var = {i: first.laws[i].std ** 2 for i in (*upper, *lower)}
        p = sum(var[i] * c * c for i, c in upper.items()) + first.rounded / 12
        r = sum(var[i] * c * c for i, c in lower.items()) + second.rounded / 12
        q = sum(var[i] * c * lower.get(i, 0.0) for i, c in upper.items())
        spread = np.sqrt(np.maximum(p - 2 * q * value + r * value**2, 0)) / np.abs(safe)
        laws = tuple(first.laws[i] for i in var)

        def ends(level: float) -> Ends:
            sign = np.sign(safe)
            return fieller(top * sign, bottom * sign, p, q, r, width_factor(laws, level))

    else:
        spread = np.hypot(first.std, value * second.std) / np.abs(safe)

        def ends(level: float) -> Ends:
            sign = np.sign(safe)
            w, v = (np.maximum(*x.reach(level)) for x in (first, second))
            return fieller(top * sign, bottom * sign, w**2, 0.0, v**2, 1.0)

    return Derived("ratio", keys, value, spread, ends)


def operand(verb: str, x: Any) -> Operand:
    name = None
    if isinstance(x, tuple) and len(x) == 2:
        x, name = x
    release = x.release if isinstance(x, IntAnswer | FloatAnswer) else x
    if not isinstance(release, Release):
        raise TypeError(
            f"{verb} takes released answers, not a {type(x).__name__}. Hint: dp.{verb}(a, b) with a = df.dp.count(...),"
            f" or dp.{verb}((s.last, 'n'), ...)"
        )
    outputs = {o.name: o for o in release.plan.outputs}
    if name is None and len(outputs) == 1:
        name = next(iter(outputs))
    if name not in outputs:
        said = "" if name is None else f"there is no output {name!r}. {did_you_mean(str(name), outputs)} "
        raise InputError(f"{verb}: {said}Hint: (release, {next(iter(outputs), 'n')!r})")
    return Operand(release, outputs[name])


def _pair(verb: str, a: Any, b: Any) -> tuple[Operand, Operand, Release | None]:
    """Both operands, and whose keys the result has."""
    first, second = operand(verb, a), operand(verb, b)
    one, two = first.keys, second.keys
    if one is not None and two is not None and not _same_keys(one, two):
        raise InputError(
            f"{verb}: the two tables have different groups. Hint: list the same keys= in both calls"
        )
    if first.shares(second) and (first.linear is None or second.linear is None):
        raise InputError(
            f"{verb}: {first.output.name!r} and {second.output.name!r} are made of the same noise, and how it cancels is not"
            " known for them. Hint: ask for them in two calls, or give each its own eps={...}"
        )
    return first, second, one if one is not None else two


def _same_keys(one: Release, two: Release) -> bool:
    if one.draw == two.draw:
        return True
    mine, theirs = (x._keys.columns for x in (one, two))
    return list(mine) == list(theirs) and all(
        list(mine[c]) == list(theirs[c]) or _equal(mine[c], theirs[c]) for c in mine
    )


def _equal(a: Any, b: Any) -> bool:
    """Columns of keys with the same values, missing ones in the same places."""
    return bool(getattr(a, "equals", lambda _: False)(b))


def _weights(x: Operand) -> dict[int, float]:
    assert x.linear is not None
    return {i: float(c) for i, c in x.linear.terms}


def _merged(first: Operand, second: Operand) -> tuple[tuple[Noise, float], ...]:
    """The noise of first - second, shared draws taken together."""
    weights = {(first.release.draw, i): (first.laws[i], c) for i, c in _weights(first).items()}
    for i, c in _weights(second).items():
        key = (second.release.draw, i)
        weights[key] = (second.laws[i], weights.get(key, (None, 0.0))[1] - c)
    return tuple(weights.values())
