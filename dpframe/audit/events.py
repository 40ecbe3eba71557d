"""What an auditor looks at in outputs: features with finitely many codes, and the sets of codes worth testing.

A feature is a fixed function of one output (made from the part of the sample that chooses, and from nothing
else), so any set of its codes is an event whose probability can be bounded on fresh outputs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpframe.errors import InputError

Column = npt.NDArray[Any]  # int64, or float64 with NaN for what is missing
Table = list[Column]
Codes = npt.NDArray[np.int64]
Derive = Callable[[Table], Column]

MOST_ATOMS = 1000  # values that get a code of their own
RARE = 5  # values seen less often than this do not
BINS, FINE = 64, 1000
PAIRED = 5  # columns that are also looked at in pairs


def as_table(outputs: Any, n: int, name: str) -> Table:
    """A sampler's outputs as columns.

    Raises
    ------
    InputError
        Unless there are ``n`` outputs of at least one number each.
    """
    array = np.asarray(outputs)
    if array.ndim not in (1, 2) or array.shape[0] != n or array.size == 0:
        raise InputError(
            f"{name}({n}) returned an array of shape {array.shape}, not {n} outputs.",
            hint=f"shape ({n},) or ({n}, columns)",
        )
    rows = array.reshape(n, -1)
    return [_column(rows[:, i], name) for i in range(rows.shape[1])]


def _column(x: npt.NDArray[Any], name: str) -> Column:
    if x.dtype.kind == "b" or (x.dtype.kind in "iu" and x.dtype.itemsize < 8) or x.dtype.kind == "i":
        return x.astype(np.int64)
    if x.dtype.kind in "uf":
        return x.astype(np.float64)
    if x.dtype.kind == "O":
        present = np.array([v is not None and v == v for v in x])
        if all(isinstance(v, int | float | np.number) for v in x[present]):
            return np.where(present, x, np.nan).astype(np.float64)
    raise InputError(
        f"{name} returned outputs that are no numbers (dtype {x.dtype}).", hint="code them first"
    )


def alike(a: Table, b: Table) -> tuple[Table, Table]:
    """Both tables with the same dtypes, or InputError when they differ in the number of columns."""
    if len(a) != len(b):
        raise InputError(
            f"The samplers return {len(a)} and {len(b)} columns: one look tells them apart.",
            hint="pad the shorter",
        )
    for i, (x, y) in enumerate(zip(a, b)):
        if x.dtype != y.dtype:
            a[i], b[i] = x.astype(np.float64), y.astype(np.float64)
    return a, b


@dataclass(frozen=True)
class Feature:
    """A function from outputs to codes 0 ... size-1, and words for sets of codes."""

    words: str
    derive: Derive
    places: Column  # atoms, or edges of bins
    binned: bool

    @property
    def size(self) -> int:
        return len(self.places) + 2

    def codes(self, table: Table) -> Codes:
        """Codes of outputs; the last one is for missing, the one before for the rest (or the last bin)."""
        x = self.derive(table)
        side = "right" if self.binned else "left"
        at = np.searchsorted(self.places, x, side=side).astype(np.int64)  # type: ignore[call-overload]
        if not self.binned:
            found = np.minimum(at, max(0, len(self.places) - 1))
            same = self.places[found] == x if len(self.places) else np.zeros(len(x), dtype=bool)
            at = np.where(same, found, len(self.places))
        if x.dtype.kind == "f":
            at = np.where(np.isnan(x), len(self.places) + 1, at)
        return np.asarray(at)

    def say(self, chosen: npt.NDArray[np.bool_]) -> str:
        """The event in words: what an output must be like."""
        parts = []
        if self.binned:
            edges = [-np.inf, *self.places.tolist(), np.inf]
            runs = [(i, i + 1) for i in np.flatnonzero(chosen[:-1]).tolist()]
            merged: list[tuple[int, int]] = []
            for low, high in runs:
                if merged and merged[-1][1] == low:
                    merged[-1] = (merged[-1][0], high)
                else:
                    merged.append((low, high))
            parts = [f"[{edges[low]:.6g}, {edges[high]:.6g})" for low, high in merged]
        else:
            parts = [f"{v:.17g}" for v in self.places[chosen[:-2]].tolist()]
            if chosen[-2]:
                parts.append("any value not seen before")
        if chosen[-1]:
            parts.append("missing")
        shown = ", ".join(parts[:8]) + (f" and {len(parts) - 8} more" if len(parts) > 8 else "")
        return f"{self.words} in {{{shown}}}"


def features(a: Table, b: Table) -> Iterator[Feature]:
    """Everything that is looked at, made from the choosing part of both samples."""
    for i in range(len(a)):
        name = "the output" if len(a) == 1 else f"column {i}"
        for words, derive in _of_column(i, name, a, b):
            x = _pooled(derive, a, b)
            yield _atoms(words, derive, x)
            if words == name:
                yield _bins(words, derive, x, BINS)
                yield _bins(words, derive, x, FINE)
    for words, derive, atoms in _of_several(a, b):
        x = _pooled(derive, a, b)
        yield _atoms(words, derive, x) if atoms else _bins(words, derive, x, BINS)


def _pooled(derive: Derive, a: Table, b: Table) -> Column:
    x: Column = np.concatenate([derive(a), derive(b)])
    return x[~np.isnan(x)] if x.dtype.kind == "f" else x


def _atoms(words: str, derive: Derive, x: Column) -> Feature:
    values, counts = np.unique(x, return_counts=True)
    often = np.argsort(counts, kind="stable")[::-1][:MOST_ATOMS]
    return Feature(words, derive, np.sort(values[often[counts[often] >= RARE]]), False)


def _bins(words: str, derive: Derive, x: Column, bins: int) -> Feature:
    if not len(x):
        return Feature(words, derive, np.empty(0), True)
    edges = np.sort(x)[np.linspace(0, len(x) - 1, bins + 1).astype(int)[1:-1]]
    return Feature(words, derive, np.unique(edges), True)


def _of_column(i: int, name: str, a: Table, b: Table) -> Iterator[tuple[str, Derive]]:
    itself = _of(i)
    yield name, itself
    if a[i].dtype.kind == "i":
        for bits in (1, 6):
            yield f"{name} modulo {2**bits}", _then(itself, lambda x, m: x % m, 2**bits)
        return
    yield f"the kind of {name} (.5 zero, 1 finite, 2 infinite; with its sign)", _then(itself, _kind)
    yield f"the exponent of {name}'s last binary digit", _then(itself, last_digit)
    yield f"4096 times the exponent of {name} plus that of its last binary digit", _then(itself, _both_digits)
    digits = _pooled(_then(itself, last_digit), a, b)
    least = int(digits.min()) if len(digits) else 0
    for bits in (1, 6):
        words = f"{name} in units of 2**{least}, modulo {2**bits}"
        yield words, _then(itself, _units, -least, 2.0**bits)


def _of(i: int) -> Derive:
    return lambda t: t[i]


def _then(derive: Derive, f: Callable[..., Column], *more: Any) -> Derive:
    return lambda t: f(derive(t), *more)


def _both_digits(x: Column) -> Column:
    return np.asarray(4096.0 * np.frexp(x)[1] + last_digit(x))


def _units(x: Column, exponent: int, modulus: float) -> Column:
    """x * 2**exponent, modulo; NaN where that overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        y = np.ldexp(np.ldexp(x, exponent // 2), exponent - exponent // 2)
        return np.mod(np.where(np.isfinite(y), y, np.nan), modulus)


def _kind(x: Column) -> Column:
    kind = np.where(x == 0, 0.5, np.where(np.isinf(x), 2.0, 1.0))
    return np.where(np.isnan(x), np.nan, np.copysign(kind, x))


def last_digit(x: Column) -> Column:
    """Exponent of the last binary digit that is 1: x is an odd multiple of two to it (NaN for 0, inf, NaN).

    A float that was computed from a large one lacks the small digits; this is how float noise on a
    float value gives the value away. Source: Mironov, "On significance of the least significant bits"
    (2012).
    """
    ok = np.isfinite(x) & (x != 0)
    mantissa, exponent = np.frexp(np.where(ok, x, 1.0))
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.where(ok, exponent - 53.0 + lowest, np.nan)


def _of_several(a: Table, b: Table) -> Iterator[tuple[str, Derive, bool]]:
    if len(a) == 1:
        return
    for i, j in itertools.combinations(range(min(len(a), PAIRED)), 2):
        x, y = _of(i), _of(j)
        yield f"the sign of column {i} minus column {j}", _both(x, y, _sign), True
        yield f"column {i} plus column {j}", _both(x, y, np.add), False
        yield f"column {i} minus column {j}", _both(x, y, np.subtract), False
        first, second = (_bins("", d, _pooled(d, a, b), 16) for d in (x, y))
        words = f"{second.size} times the bin of column {i} plus that of column {j}"
        yield words, _joined(first, second), True
    marks = [_scores(i, a, b) for i in range(len(a))]
    yield (
        "the log-likelihood ratio, columns taken as independent,",
        lambda t: np.asarray(sum(score[f.codes(t)] for f, score in marks)),
        False,
    )


def _both(first: Derive, second: Derive, f: Callable[[Column, Column], Any]) -> Derive:
    def derive(t: Table) -> Column:
        with np.errstate(invalid="ignore"):
            return np.asarray(f(first(t), second(t)))

    return derive


def _joined(first: Feature, second: Feature) -> Derive:
    return lambda t: second.size * first.codes(t) + second.codes(t)


def _sign(x: Column, y: Column) -> Column:
    return np.asarray(np.sign(x.astype(np.float64) - y))


def _scores(i: int, a: Table, b: Table) -> tuple[Feature, npt.NDArray[np.float64]]:
    f = _bins("", _of(i), _pooled(_of(i), a, b), 32)
    seen = [np.bincount(f.codes(t), minlength=f.size) + 1.0 for t in (a, b)]
    return f, np.log(seen[0] / seen[1])
