"""The black box: how far apart two samples of outputs are, as a lower bound of epsilon.

Privacy: nothing here protects anything; it looks for proof that something else does not. The bound is one
that a correct (eps, delta) mechanism exceeds with probability at most ``alpha``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dpframe.accounting.events import Number, rational
from dpframe.audit.events import Feature, Table, alike, as_table, features
from dpframe.base.arguments import check_whole
from dpframe.errors import Arg, Code, InputError

Sampler = Callable[[int], Any]
LEAST = 100


@dataclass(frozen=True)
class Witness:
    """An event that one sampler hits more often than the other.

    Attributes
    ----------
    words : str
        What an output must be like.
    more_likely : str
        "first" or "second": the sampler that hits it more often.
    hits : (int, int)
        How many of the outputs that were kept for the test hit it, first and second sampler.
    of : int
        How many there were of each.
    """

    words: str
    more_likely: str
    hits: tuple[int, int]
    of: int
    _feature: Feature = field(repr=False, compare=False)
    _chosen: npt.NDArray[np.bool_] = field(repr=False, compare=False)

    def holds(self, outputs: Any) -> npt.NDArray[np.bool_]:
        """Which outputs hit the event: a Boolean array, one entry per output; for a test on fresh draws."""
        return np.asarray(self._chosen[self._feature.codes(as_table(outputs, len(outputs), "outputs"))])

    def __str__(self) -> str:
        share = [f"{h / self.of:.6g}" for h in self.hits]
        return (
            f"{self.words}: probability about {share[0]} on the first, {share[1]} on the second. To test it, draw"
            " again from both and compare the means of witness.holds(outputs)."
        )


@dataclass(frozen=True)
class BlackBox:
    """What :func:`black_box` found.

    Attributes
    ----------
    eps_lower : float
        With confidence 1 - ``alpha`` no (e, delta) guarantee with e below this holds.
    flagged : bool
        Whether ``eps_lower`` is above the claimed eps.
    witness : Witness or None
        The event behind ``eps_lower``; None where no event is more likely on one side.
    eps, delta, alpha : float
        As asked.
    n : int
        Outputs of each sampler.
    tried : int
        Events that were looked at to choose those that were bounded.
    """

    eps_lower: float
    flagged: bool
    witness: Witness | None
    eps: float
    delta: float
    alpha: float
    n: int
    tried: int


def black_box(
    sampler_a: Sampler,
    sampler_b: Sampler,
    *,
    eps: Number,
    delta: Number = 0,
    n: int = 10**6,
    alpha: float = 1e-6,
) -> BlackBox:
    """Look for an event that refutes (eps, delta), by draws from both sides of a pair of neighbours.

    Parameters
    ----------
    sampler_a, sampler_b : callable
        ``f(n)`` returns n independent outputs: an array of n numbers, or of shape (n, columns) for outputs
        of several numbers. None and NaN are "missing". See :func:`dpframe.audit.copies` for queries.
    eps, delta : number
        What is claimed.
    n : int
        Outputs drawn from each, from 100.
    alpha : float
        The probability, at most, that a correct mechanism is flagged.

    Returns
    -------
    BlackBox

    Raises
    ------
    InputError
        For parameters out of range, and samplers that return something else than n outputs.

    Notes
    -----
    A tenth of the outputs (at least 25,000; a half of small samples) chooses: of values, bins, tails, atoms, missing
    and infinite outputs, low bits and last binary digits of floats, and several columns together, the
    likelihood-ratio set with the best prospect, in either direction. (One half of these outputs orders the
    values, the other judges the sets.) The rest bounds the two probabilities of that one
    event by Clopper-Pearson at alpha/2 each (Bonferroni over all that is tried there). What was tried on the first
    part costs nothing, and eps_lower = log((lower - delta) / upper) holds with probability 1 - alpha,
    whatever the law.

    A Laplace law whose scale is 2 % too small is flagged at 10**6 draws and eps from 1 to 3 (of a count: always; of a
    sum on a fine grid at eps 1: nine times of ten). What occurs less often than about 1 in n, a delta of 1e-9 say, cannot be seen by any number of draws
    that one can wait for. The outputs of a sampler must be independent; whether they are is not looked at.

    Examples
    --------
    >>> import dpframe as dp, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> def geometric(value, p):
    ...     return lambda n: value + rng.geometric(p, n) - rng.geometric(p, n)
    >>> dp.audit.black_box(geometric(0, 0.6321), geometric(1, 0.6321), eps=1, n=50_000).flagged
    False
    >>> found = dp.audit.black_box(geometric(0, 0.8), geometric(1, 0.8), eps=1, n=50_000)
    >>> found.flagged, found.eps_lower > 1.3
    (True, True)
    """
    e, d = float(rational(eps, "eps", zero=True)), float(rational(delta, "delta", zero=True, below=1))
    check_whole("n", n, LEAST, right=Code("10**6"))
    if not isinstance(alpha, float) or not 0 < alpha < 1:
        raise InputError(Arg("alpha", alpha), " must lie between 0 and 1.", hint=Arg("alpha", 1e-6))
    tables = alike(as_table(sampler_a(n), n, "sampler_a"), as_table(sampler_b(n), n, "sampler_b"))
    first = min(n // 2, max(25_000, n // 10))
    parts = [[[x[cut] for x in t] for t in tables] for cut in _cuts(first // 2, first)]
    choice = _Choice(first - first // 2, n - first, d, alpha)
    for f in features(*parts[0]):
        choice.look(f, parts[0], parts[1])
    rest_a, rest_b = parts[2]
    eps_lower, witness = 0.0, None
    if choice.feature is not None and choice.chosen is not None:
        feature, chosen = choice.feature, choice.chosen
        hits = tuple(int(chosen[feature.codes(t)].sum()) for t in (rest_a, rest_b))
        more, less = hits if choice.more_likely == "first" else hits[::-1]
        low = clopper_pearson(more, n - first, alpha / 2, upper=False) - d
        high = clopper_pearson(less, n - first, alpha / 2, upper=True)
        eps_lower = max(0.0, math.log(low / high)) if low > 0 else 0.0
        witness = Witness(
            feature.say(chosen), choice.more_likely, (hits[0], hits[1]), n - first, feature, chosen
        )
    return BlackBox(eps_lower, eps_lower > e, witness, e, d, alpha, n, choice.tried)


def _cuts(*at: int) -> list[slice]:
    return [slice(low, high) for low, high in zip((0, *at), (*at, None))]


def clopper_pearson(hits: int, n: int, alpha: float, *, upper: bool) -> float:
    """The exact bound of a probability that is wrong with probability at most ``alpha``."""
    from scipy.special import betaincinv

    if upper:
        return 1.0 if hits == n else float(betaincinv(hits + 1, n - hits, 1 - alpha))
    return 0.0 if hits == 0 else float(betaincinv(hits, n - hits + 1, alpha))


class _Choice:
    """The most promising event, by the choosing part alone.

    What it does decides power, never validity: the bounds are taken on other outputs.
    """

    def __init__(self, drawn: int, kept: int, delta: float, alpha: float) -> None:
        from scipy.special import ndtri

        self.drawn, self.kept, self.delta = drawn, kept, delta
        self.z = -float(ndtri(alpha / 2))
        self.feature: Feature | None = None
        self.chosen: npt.NDArray[np.bool_] | None = None
        self.more_likely, self.best, self.tried = "first", 0.0, 0

    def look(self, f: Feature, order_by: list[Table], judge_by: list[Table]) -> None:
        """Try the likelihood-ratio sets of a feature, and both tails where its codes have an order."""
        sorting, seen = [_count(f, t) for t in order_by], [_count(f, t) for t in judge_by]
        ratio = (sorting[0] + 0.5) / (sorting[1] + 0.5)
        orders = [np.argsort(-ratio, kind="stable")]
        if f.binned:
            orders += [np.arange(f.size)]
        for direction, x, y in (("first", seen[0], seen[1]), ("second", seen[1], seen[0])):
            for order in orders:
                for way in (order, order[::-1]):
                    score = self._prospect(np.cumsum(x[way])[:-1], np.cumsum(y[way])[:-1])
                    self.tried += len(score)
                    at = int(np.argmax(score))
                    if score[at] > self.best:
                        self.best, self.feature, self.more_likely = float(score[at]), f, direction
                        self.chosen = np.zeros(f.size, dtype=np.bool_)
                        self.chosen[way[: at + 1]] = True

    def _prospect(
        self, more: npt.NDArray[np.float64], less: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """About the bound that the rest will give, less three standard errors of the choice itself.

        The best of thousands of sets has been lucky; so Wilson's bounds of both probabilities, first on
        this part, then on the rest.
        """
        p = _wilson(more / self.drawn, self.drawn, -3.0)
        q = _wilson(less / self.drawn, self.drawn, 3.0)
        low = _wilson(p, self.kept, -self.z) - self.delta
        high = _wilson(q, self.kept, self.z)
        return np.where(low > 0, np.log(np.maximum(low, 1e-300) / high), -math.inf)


def _wilson(p: npt.NDArray[np.float64], n: int, z: float) -> npt.NDArray[np.float64]:
    spread = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return np.asarray(np.clip((p + z * z / (2 * n) + spread) / (1 + z * z / n), 0, 1))


def _count(f: Feature, table: Table) -> npt.NDArray[np.float64]:
    return np.bincount(f.codes(table), minlength=f.size).astype(np.float64)
