"""For authors of mechanisms and engines: one call that runs every check a law, or an engine, has to pass.

>>> from dpframe.testing.mechanisms import check_mechanism
>>> check_mechanism("gaussian", draws=20_000).laws > 5
True

Nothing else in dpframe imports this module.
"""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import numpy as np

from dpframe.errors import MechanismError, unknown_name
from dpframe.mechanisms import certificate
from dpframe.mechanisms.base import Floats, Ints, Mechanism, Noise, Target
from dpframe.mechanisms.registry import mechanism
from dpframe.testing.engines import Conforms, canonical_rank, check_engine
from dpframe.testing.goodness_of_fit import fits

__all__ = ["Checked", "Conforms", "canonical_rank", "check_engine", "check_mechanism"]

EPS = tuple(Fraction(e) for e in ("0.1", "0.2", "0.5", "1", "1.5", "2", "3", "5", "8", "12"))
DELTA = (Fraction(0), *(Fraction(1, 10**d) for d in (10, 8, 6, 4, 2)))
RHO = tuple(Fraction(round(5 * 2000 ** (i / 39)), 1000) for i in range(40))  # 0.005 to 10
SENSITIVITY = (1, 2, 3, 8, 16)
LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
_FALSE_ALARM = 1e-9  # of a whole call
_WANTED = 200  # points at which the guarantee is recomputed, at least
_LAWS = 24  # drawn from, at most
_SHOWN = 3  # complaints of one kind


@dataclass(frozen=True, slots=True)
class Checked:
    """What :func:`check_mechanism` looked at.

    Attributes
    ----------
    points : int
        Targets and sensitivities at which the guarantee was recomputed.
    refused : int
        Points at which the mechanism raised ``MechanismError``; that is its right.
    laws : int
        Laws whose probabilities, moments, intervals and draws were compared.
    """

    points: int
    refused: int
    laws: int


class _Complaints:
    def __init__(self) -> None:
        self.by_kind: dict[str, list[str]] = {}

    def add(self, kind: str, text: str) -> None:
        self.by_kind.setdefault(kind, []).append(text)

    def raise_if_any(self, name: str) -> None:
        if not self.by_kind:
            return
        lines = []
        for kind, texts in self.by_kind.items():
            lines += [f"- {kind}: {t}" for t in texts[:_SHOWN]]
            if len(texts) > _SHOWN:
                lines.append(f"- {kind}: the same at {len(texts) - _SHOWN} more points")
        many = sum(map(len, self.by_kind.values()))
        raise AssertionError(
            f"{many} complaint{'s' if many > 1 else ''} about mechanism {name!r}:\n" + "\n".join(lines)
        )


def check_mechanism(mech: object, *, draws: int = 100_000) -> Checked:
    """Check all that core relies on; one AssertionError lists everything that is wrong.

    - the protocol: name, norm, calibrate; sensitivity 0 is refused; other refusals are MechanismErrors;
    - the guarantee, recomputed from the law's own probabilities by ``mechanisms.certificate``, at 300
      points of (eps, delta, sensitivity) and 200 of (rho, sensitivity), and never above the target (where most
      are refused, at 240 more of sensitivity 1);
    - the charge: exact, zero or more, and within the target;
    - the law: the pmf is symmetric and adds up to 1, the cdf is its sum, ``std`` and ``mean_abs`` are its
      moments, ``interval`` is the least width that reaches its level;
    - the draws: int64, as many as asked for, never the same twice, and as frequent as that pmf says;
    - no state: calibrating twice gives equal noises, which are hashable and survive pickling.

    Parameters
    ----------
    mech : Mechanism or its class, or the name of a registered one
    draws : int
        From each of the laws that are drawn from (24 at most).

    Returns
    -------
    Checked

    Raises
    ------
    AssertionError
        Listing all complaints. The chance that a right mechanism gets one is at most 1e-9 a call (a proven bound:
        ``goodness_of_fit``).

    Notes
    -----
    One coordinate moves in every check, as core uses every law but its own for one coordinate at a time.
    """
    found = _Complaints()
    subject = mechanism(mech) if isinstance(mech, str) else mech() if isinstance(mech, type) else mech
    name = str(getattr(subject, "name", type(subject).__name__))
    for part in ("name", "norm", "calibrate"):
        if not hasattr(subject, part):
            found.add("protocol", f"it lacks {part!r}")
    if hasattr(subject, "norm") and subject.norm not in ("L1", "L2"):
        found.add("protocol", f"norm is {subject.norm!r}; it is 'L1' or 'L2'")
    found.raise_if_any(name)
    return _check(cast(Mechanism, subject), name, found, draws)


def _check(mech: Mechanism, name: str, found: _Complaints, draws: int) -> Checked:
    points = refused = 0
    certified: set[tuple[Noise, int]] = set()
    laws: dict[Noise, str] = {}

    def todo() -> Iterator[tuple[Target, int]]:
        yield from _points()
        if 0 < points < _WANTED:  # a law for one sensitivity only, say
            yield from _more_points()

    for target, sensitivity in todo():
        at = _label(target, sensitivity)
        noise = _calibrated(mech, target, sensitivity, at, found)
        if noise is None:
            refused += 1
            continue
        points += 1
        _check_claim(noise, target, at, found)
        if not _check_state(mech, noise, target, sensitivity, at, found):
            continue
        if (noise, sensitivity) in certified:
            continue
        certified.add((noise, sensitivity))
        try:
            certificate.check(noise, sensitivity, name, theorems=False)
        except MechanismError as e:
            found.add("guarantee", f"{at}: {e}")
        except Exception as e:
            found.add("guarantee", f"{at}: {_said(e)}")
        laws.setdefault(noise, at)
    if not points:
        found.add("calibrate", "it refused every target; there is nothing to check")
    _check_sensitivity_zero(mech, found)
    few = _spread(list(laws.items()))
    for noise, at in few:
        try:
            _check_law(noise, at, found)
            _check_draws(noise, at, draws, found)
        except Exception as e:
            found.add("law", f"{at}: {_said(e)}")
    found.raise_if_any(name)
    return Checked(points, refused, len(few))


def _points() -> Iterator[tuple[Target, int]]:
    for eps, delta, sensitivity in itertools.product(EPS, DELTA, SENSITIVITY):
        yield Target(eps, delta), sensitivity
    for rho, sensitivity in itertools.product(RHO, SENSITIVITY):
        yield Target(rho=rho), sensitivity


def _more_points() -> Iterator[tuple[Target, int]]:
    """Sensitivity 1 at 240 further points of (eps, delta)."""
    for i, d in itertools.product(range(24), range(3, 13)):
        yield Target(Fraction(2 * i + 1, 4), Fraction(3, 10**d)), 1


def _label(target: Target, sensitivity: int) -> str:
    if target.rho is not None:
        return f"rho={float(target.rho):g}, sensitivity {sensitivity}"
    assert target.eps is not None
    return f"eps={float(target.eps):g}, delta={float(target.delta):g}, sensitivity {sensitivity}"


def _said(e: Exception) -> str:
    return f"{type(e).__name__}: {e}"


def _spread(laws: list[tuple[Noise, str]]) -> list[tuple[Noise, str]]:
    """At most ``_LAWS`` of them, evenly over the list."""
    step = max(1, -(-len(laws) // _LAWS))
    return laws[::step]


def _calibrated(
    mech: Mechanism, target: Target, sensitivity: int, at: str, found: _Complaints
) -> Noise | None:
    try:
        noise = mech.calibrate(Fraction(sensitivity), 1, target)
    except MechanismError:
        return None
    except Exception as e:
        found.add("calibrate", f"{at}: it may refuse by a MechanismError only, not by {_said(e)}")
        return None
    if not isinstance(noise, Noise):
        found.add("calibrate", f"{at}: it returned a {type(noise).__name__}, not a Noise")
        return None
    return noise


def _check_claim(noise: Noise, target: Target, at: str, found: _Complaints) -> None:
    """The event that is charged stays within the target."""
    event = noise.event
    try:
        certificate.check_claim(event, "it")
    except MechanismError as e:
        found.add("claim", f"{at}: {e}")
        return
    if target.rho is not None:
        if event.rho > target.rho:
            found.add("claim", f"{at}: it is charged rho={float(event.rho):.6g}, more than was asked")
        if event.delta > 0:
            found.add("claim", f"{at}: it is charged delta={float(event.delta):.6g}, and none was given")
        return
    assert target.eps is not None
    if event.eps is None or event.eps > target.eps:
        charged = "no eps" if event.eps is None else f"eps={float(event.eps):.6g}"
        found.add("claim", f"{at}: it is charged {charged}, and eps={float(target.eps):g} was asked")
    if event.delta > target.delta:
        found.add("claim", f"{at}: it is charged delta={float(event.delta):.6g}, more than was asked")


def _check_state(
    mech: Mechanism, noise: Noise, target: Target, sensitivity: int, at: str, found: _Complaints
) -> bool:
    """Whether the noise is a value; a complaint where it is not."""
    try:
        again = mech.calibrate(Fraction(sensitivity), 1, target)
        equal = again == noise and again.event == noise.event
        same_hash = hash(again) == hash(noise)
    except Exception as e:
        found.add("state", f"{at}: calibrating twice, comparing and hashing fails with {_said(e)}")
        return False
    if not equal or not same_hash:
        found.add("state", f"{at}: two calibrations give noises that are not equal (use a frozen dataclass)")
    try:
        if pickle.loads(pickle.dumps(noise)) != noise:
            found.add("state", f"{at}: the noise changes when it is pickled")
    except Exception as e:
        found.add("state", f"{at}: the noise can't be pickled: {_said(e)}")
    return True


def _check_sensitivity_zero(mech: Mechanism, found: _Complaints) -> None:
    for target in (Target(Fraction(1)), Target(Fraction(1), Fraction(1, 10**6)), Target(rho=Fraction(1, 2))):
        try:
            mech.calibrate(Fraction(0), 1, target)
        except MechanismError:
            continue
        except Exception as e:
            found.add("sensitivity 0", f"it is to be refused by a MechanismError, not by {_said(e)}")
        else:
            found.add("sensitivity 0", "it gives noise, which would release the truth")


# ---- one law ----


def _window(noise: Noise) -> tuple[Ints, Floats, float]:
    """Integers around 0, their probabilities, and the mass that the cdf says lies outside."""
    w = 8
    while w < certificate.WIDEST and 2 * float(noise.cdf(-w - 1)) > 1e-18:
        w *= 2
    k = np.arange(-w, w + 1, dtype=np.int64)
    return k, np.asarray(noise.pmf(k), dtype=np.float64), 2 * float(noise.cdf(-w - 1))


def _check_law(noise: Noise, at: str, found: _Complaints) -> None:
    k, p, outside = _window(noise)
    if p.shape != k.shape or not np.all(np.isfinite(p)) or np.any(p < 0):
        found.add("pmf", f"{at}: it is not finite, not negative, and one number to each k")
        return
    total = math.fsum(p.tolist())
    if abs(total + outside - 1) > 1e-9:
        found.add("pmf", f"{at}: it adds up to {total + outside:.9g}, not 1")
    if not np.allclose(p, p[::-1], rtol=1e-9, atol=0):
        found.add("pmf", f"{at}: it is not symmetric, which interval() takes for granted")
    off = float(np.max(np.abs(np.cumsum(p) - np.asarray(noise.cdf(k)))))
    if off > 1e-9:
        found.add("cdf", f"{at}: it is not the sum of the pmf; they differ by {off:.3g}")
    moments = {
        "std": (noise.std, math.sqrt(float(np.sum(np.square(k, dtype=np.float64) * p)))),
        "mean_abs": (noise.mean_abs, float(np.sum(np.abs(k) * p))),
    }
    for what, (said, true) in moments.items():
        if outside < 1e-15 and not math.isclose(said, true, rel_tol=1e-6, abs_tol=1e-9):
            found.add(what, f"{at}: it says {said:.9g}; by the pmf it is {true:.9g}")
    centre = len(k) // 2
    within = np.cumsum(np.append(p[centre], p[centre + 1 :] + p[:centre][::-1]))  # P(|X| <= w)
    for level in LEVELS:
        w = noise.interval(level)
        reached = float(within[w]) if 0 <= w < len(within) else float(w >= len(within))
        if reached < level - 1e-9:
            found.add("interval", f"{at}: {w} at level {level} holds {reached:.6g} only")
        elif 0 < w < len(within) and float(within[w - 1]) > level + 1e-9:
            found.add("interval width", f"{at}: {w} at level {level} is wider than needed")


def _check_draws(noise: Noise, at: str, size: int, found: _Complaints) -> None:
    for n in (0, 1, 7):
        got = noise.sample(n)
        if not isinstance(got, np.ndarray) or got.shape != (n,) or got.dtype != np.int64:
            found.add("sample", f"{at}: sample({n}) is not an int64 array of that length")
            return
    k, p, outside = _window(noise)
    x, y = noise.sample(size), noise.sample(size)
    same = float(np.sum(p * p))  # P(two draws agree)
    if size * math.log(max(same, 1e-300)) < math.log(_FALSE_ALARM / (2 * _LAWS)) and np.array_equal(x, y):
        found.add("sample", f"{at}: two calls return the same draws")
    if not _follow(np.concatenate([x, y]), k, p, outside, _FALSE_ALARM / (2 * _LAWS)):
        found.add("sample", f"{at}: {2 * size:,} draws do not follow the pmf")


def _follow(x: Ints, k: Ints, p: Floats, outside: float, alarm: float) -> bool:
    """Whether draws fit a law; of a right one, False has a probability of at most ``alarm``."""
    inside = (x >= k[0]) & (x <= k[-1])
    seen = np.bincount(x[inside] - k[0], minlength=len(k))
    # Cells: runs of k cut where the running sum passes another share, 400 at most, and what lies outside.
    cell = np.minimum((np.cumsum(p) - p / 2) * min(400, max(2, len(x) // 100)), 400).astype(np.int64)
    o, e = np.bincount(cell, weights=seen), np.bincount(cell, weights=p)
    never = bool(np.any(seen[p == 0] > 0))  # in a cell whose other values may occur
    return not never and fits([*o, len(x) - int(inside.sum())], [*e, max(outside, 0.0)], alarm)


def __getattr__(name: str) -> object:
    raise unknown_name("dp.testing", name, __all__)
