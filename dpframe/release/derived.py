"""Differences and ratios of released answers: free, because only released numbers are used.

Privacy: everything here is a function of releases and of their plans (post-processing); no frame is read and
nothing is charged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from dpframe.base.wrong_calls import checked
from dpframe.errors import InputError, NearNames, did_you_mean, wrong_type
from dpframe.layout.answers import Linear
from dpframe.layout.moments import fieller
from dpframe.mechanisms.base import Floats, Noise
from dpframe.mechanisms.combine import covariances, halfwidth, product, sizes, std, width_factor
from dpframe.mechanisms.joint import Share
from dpframe.planning.pieces import Output
from dpframe.release.answers import FloatAnswer, IntAnswer, level_of
from dpframe.release.release import Release

Ends = tuple[Floats, Floats]
At = tuple[str, int]  # which draw of noise, and which of its integers


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
            raise wrong_type("This is a column of numbers.", hint=".value")
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
        """The noises of its release, draws numbered so that those of two releases differ."""
        return [
            replace(law, number=hash((self.release.draw, law.number))) if isinstance(law, Share) else law
            for law in self.release.plan.laws
        ]

    @property
    def slopes(self) -> dict[At, tuple[Noise, Any]]:
        """What it is made of, by draw and number of the integer: its noise, and the slope in it."""
        laws, draw = self.laws, self.release.draw
        return {(draw, i): (laws[i], x) for i, x in self.output.answer.slopes(self.release._noisy).items()}

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
        """How far the interval's ends are below and above the value, such that two operands' may be added in square.

        No less than a normal law's: sums of heavy-tailed noises need more than the root of the squares at low levels. Of
        noises that are mostly 0, one alone may need nothing and two of them something: where half-widths at the root
        of the level, at which both are kept together, are much larger than at the level (a normal law's are by 1.14, a
        Laplace's by 1.23), they are taken.
        """
        values, z = self.values, NormalDist().inv_cdf((1 + level) / 2)
        noisy, answer = self.release._noisy, self.output.answer
        low, high = answer.interval(noisy, self.laws, level)
        lower, higher = answer.interval(noisy, self.laws, level**0.5)
        below, above = np.maximum(values - low, z * self.std), np.maximum(high - values, z * self.std)
        below2, above2 = values - lower, higher - values
        return (
            np.where(below2 > 1.3 * below, below2, below),
            np.where(above2 > 1.3 * above, above2, above),
        )

    def rounded_part(self, level: float) -> float:
        """How much of a half-width is rounding to coarse grids at most; such parts add up, and not in square."""
        laws = [self.laws[i] for i in self.output.answer.coordinates()]
        each = [(len(laws) ** 0.5 * law.rounding, law.interval(level) - law.rounding) for law in laws]
        return max((r / (r + w) for r, w in each if r), default=0.0)

    def shares(self, other: Operand) -> bool:
        """Whether both read one released integer."""
        mine, theirs = self.output.answer.coordinates(), other.output.answer.coordinates()
        return self.release.draw == other.release.draw and bool(set(mine) & set(theirs))

    def correlation(self, other: Operand) -> Floats:
        """Of the noise in both, to first order: 0 unless they have shares of one draw."""
        (laws, mine), (others, theirs) = (_unzipped(x.slopes) for x in (self, other))
        matrix = covariances([*laws, *others])
        n = len(laws)
        a, b = (product(m, w, w) for m, w in ((matrix[:n, :n], mine), (matrix[n:, n:], theirs)))
        both = np.sqrt(np.maximum(a * b, 0))
        return product(matrix[:n, n:], mine, theirs) / np.where(both > 0, both, 1.0)


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
    they share taken together; else it adds the two half-widths in square, on each side its own, and what is
    rounded before the noise as it is.

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
        spread = np.full_like(value, (std(terms) ** 2 + rounded / 12) ** 0.5)

        def ends(level: float) -> Ends:
            w = halfwidth(terms, level) + rounded / 2
            return value - w, value + w

    else:
        c = first.correlation(second)
        spread = _together(first.std, second.std, -c)

        def ends(level: float) -> Ends:
            (below, above), (below2, above2) = first.reach(level), second.reach(level)
            a, b = first.rounded_part(level), second.rounded_part(level)

            def both(x: Floats, y: Floats) -> Floats:
                return np.asarray(a * x + b * y + _together((1 - a) * x, (1 - b) * y, np.maximum(-c, 0)))

            return value - both(below, above2), value + both(above, below2)

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
    c = first.correlation(second)
    if (
        first.linear is not None and second.linear is not None
    ):  # half-widths of integers that are mostly exact do not add in squares
        every = {**first.slopes, **second.slopes}
        laws = tuple(law for law, _ in every.values())
        upper, lower = ([x.slopes.get(at, (None, 0.0))[1] for at in every] for x in (first, second))

        def squares(matrix: Floats) -> tuple[Floats, Floats, Floats]:
            """(p, q, r): the square of the size of top - v*bottom is p - 2*q*v + r*v**2."""
            p, r = product(matrix, upper, upper), product(matrix, lower, lower)
            return p + first.rounded / 12, product(matrix, upper, lower), r + second.rounded / 12

        p, q, r = squares(covariances(laws))
        spread = np.sqrt(np.maximum(p - 2 * q * value + r * value**2, 0)) / np.abs(safe)

        def ends(level: float) -> Ends:
            sign = np.sign(safe)
            return fieller(top * sign, bottom * sign, *squares(sizes(laws)), width_factor(laws, level))

    else:
        spread = _together(first.std, np.abs(value) * second.std, -c * np.sign(value)) / np.abs(safe)

        def ends(level: float) -> Ends:
            sign = np.sign(safe)
            w, v = (np.maximum(*x.reach(level)) for x in (first, second))
            a, b = first.rounded_part(level), second.rounded_part(level)
            q = np.where(c * value < 0, c, 0.0) * w * v
            return fieller(top * sign, bottom * sign, w**2, q, v**2, 2**0.5 * max(a, b) + 1 - min(a, b))

    return Derived("ratio", keys, value, spread, ends)


def operand(verb: str, x: Any) -> Operand:
    name = None
    if isinstance(x, tuple) and len(x) == 2:
        x, name = x
    release = x.release if isinstance(x, IntAnswer | FloatAnswer) else x
    if not isinstance(release, Release):
        raise wrong_type(
            f"{verb} takes released answers, not a {type(x).__name__}.",
            hint=f"dp.{verb}(a, b) with a = df.dp.count(...), or dp.{verb}((s.last, 'n'), ...)",
        )
    outputs = {o.name: o for o in release.plan.outputs}
    if name is None and len(outputs) == 1:
        name = next(iter(outputs))
    if name not in outputs:
        said = (
            "which output?"
            if name is None
            else f"there is no output {name!r}. {did_you_mean(str(name), outputs)}"
        )
        raise InputError(f"{verb}: {said}", hint=f"(release, {next(iter(outputs), 'n')!r})")
    return Operand(release, outputs[name])


def _pair(verb: str, a: Any, b: Any) -> tuple[Operand, Operand, Release | None]:
    """Both operands, and whose keys the result has."""
    first, second = operand(verb, a), operand(verb, b)
    one, two = first.keys, second.keys
    if one is not None and two is not None and not _same_keys(one, two):
        raise InputError(
            f"{verb}: the two tables have different groups.", hint="list the same keys= in both calls"
        )
    if first.shares(second) and (first.linear is None or second.linear is None):
        raise InputError(
            f"{verb}: {first.output.name!r} and {second.output.name!r} are made of the same noise, and how"
            " it cancels is not known for them.",
            hint="ask for them in two calls, or give each its own eps={...}",
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


def weights_of(x: Operand) -> dict[int, float]:
    """The released integers that it is a weighted sum of, with their weights."""
    assert x.linear is not None
    return {i: float(c) for i, c in x.linear.terms}


def _merged(first: Operand, second: Operand) -> tuple[tuple[Noise, float], ...]:
    """The noise of first - second, integers that both read taken together."""
    weights = dict(first.slopes)
    for at, (law, c) in second.slopes.items():
        weights[at] = (law, weights.get(at, (law, 0.0))[1] - c)
    return tuple(weights.values())


def _together(x: Floats, y: Floats, c: Floats) -> Floats:
    """The size of a sum of two parts of these sizes with correlation ``c``."""
    return np.sqrt(np.maximum(x * x + y * y + 2 * c * x * y, 0.0))


def _unzipped(slopes: dict[At, tuple[Noise, Any]]) -> tuple[list[Noise], list[Any]]:
    return [law for law, _ in slopes.values()], [x for _, x in slopes.values()]
