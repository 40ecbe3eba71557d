"""Keys alone: the rules by which found keys may be told, and which of them is taken."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dpframe.accounting.conversion import eps_of_pure_rho, pure_rho
from dpframe.accounting.events import Event
from dpframe.errors import Arg, MechanismError
from dpframe.frames.contract import unit_weight
from dpframe.layout.families import UNITS, weights_layout
from dpframe.mechanisms.auto import cost
from dpframe.mechanisms.base import Noise, Target
from dpframe.mechanisms.thresholds import KeySelection, Threshold, least_for_all, per_key_delta
from dpframe.planning.assembly import Draft
from dpframe.planning.split import add_split, append, sized, with_keys

GEOMETRIC, WEIGHTED = "truncated geometric", "weighted gaussian"
NEAR = 1.1  # the weighted rule is taken at a size that is so many times the best one's, as few units fill their limit
MOST_GROUPS = 1 << 20  # of a unit that is weighed: a weight still has 2**10 steps
LARGEST = 1 << 20  # the size up to which probabilities of the geometric rule are written down


def best_rule(draft: Draft, target: Target) -> Draft:
    """A fork of ``draft`` in which keys alone are found by the rule that tells the smallest groups.

    *The rules.* Truncated geometric, which is optimal for one key and divides eps by the groups of a unit; a count of
    units with Laplace or Gaussian noise, and a threshold; the weights of units with Gaussian noise, and a threshold
    (:func:`weighted`). They are compared by the size at which a group is told with even odds, if all units in it fill
    ``max_groups``. Where few do, the weighted rule finds more than that says, so it is taken within 10 % of the best.

    Raises
    ------
    MechanismError
        Where no rule can give the guarantee.

    Privacy: the rule reads the target, the limits and the relation, nothing else. Each rule's argument is its own.
    """
    rules: dict[str, Callable[[Draft, Target], float]] = {
        GEOMETRIC: geometric,
        "laplace": lambda d, t: counted(d, t, "laplace"),
        "gaussian": lambda d, t: counted(d, t, "gaussian"),
        WEIGHTED: weighted,
    }
    if draft.small:  # these two count units; the others have no number that a small group could be told by
        rules = {name: rules[name] for name in ("laplace", "gaussian")}
    made: dict[str, tuple[float, Draft]] = {}
    refused: MechanismError | None = None
    for name, rule in rules.items():
        fork = draft.fork()
        try:
            made[name] = (rule(fork, target), fork)
        except MechanismError as e:
            refused = refused or e
    if not made:
        raise refused or MechanismError("No rule can give this guarantee.")
    best = min(made, key=lambda name: made[name][0])
    if WEIGHTED in made and made[WEIGHTED][0] <= NEAR * made[best][0]:
        best = WEIGHTED
    taken = made[best][1]
    taken.rules = tuple((name, size) for name, (size, _) in made.items())
    return taken


def geometric(draft: Draft, target: Target) -> float:
    """Each key by the optimal probabilities; charged as an (eps, delta) event, or as delta and rho.

    Privacy: a unit is in L0 groups, each of which has eps/L0 (or rho/L0) and its share of delta; under replace_one both the
    old and the new keys of a unit may betray it: 2*L0 keys. Any k rows that come have half of it under
    replace_one, and those that go the other half.
    """
    twice, rows = 2 if draft.policy.replace else 1, draft.policy.contributions
    many = draft.reach.groups * twice if rows == 1 else twice
    if target.rho is not None:
        # any k rows in one key lose what one pair at the whole eps does
        eps = eps_of_pure_rho(target.rho / many) if rows == 1 else eps_of_pure_rho(target.rho) / twice
        event = Event(None, target.delta, target.rho)
    else:
        assert target.eps is not None
        eps, event = target.eps / many, Event(target.eps, target.delta, pure_rho(target.eps))
    each = per_key_delta(target.delta, many)
    if not eps:
        raise MechanismError("No group is large enough at this rho.", hint=("a larger ", Arg("rho")))
    selection = KeySelection(eps, each) if rows == 1 else KeySelection.of_rows(eps, each, rows)
    about = even_odds(float(selection.eps), selection.delta)
    if about > LARGEST:
        raise MechanismError(
            f"Groups would need {about:.3g} units to be told.", hint=("a larger ", Arg("eps"))
        )
    draft.selection = selection
    draft.events.append(event)
    return float(selection.size) if about < 1000 else about


def even_odds(eps: float, delta: float) -> float:
    """About the size that the geometric rule tells with even odds: where delta*(e**(n*eps) - 1)/(e**eps - 1) is 1/2."""
    if eps > 100:
        return 1 + math.log(0.5 / delta) / eps
    return math.log1p(0.5 / delta * math.expm1(eps)) / eps


def counted(draft: Draft, target: Target, law: str) -> float:
    """The number of units (or rows) with noise of this law, and a threshold; as a count of found groups is planned.

    Privacy: :func:`~dpframe.planning.split.add_split`, and docs/proofs/thresholds.md.
    """
    draft.request = replace(draft.request, mechanism=law)
    add_split(draft, (), target, thresholded=True)
    assert draft.threshold is not None
    draft.threshold = replace(draft.threshold, counted=draft.policy.counted)  # a unit has one row here
    return draft.threshold.size


def weighted(draft: Draft, target: Target) -> float:
    """The weights of units with Gaussian noise, and a threshold that a unit's own keys do not reach.

    A unit with t groups weighs floor(W/sqrt(t)) in each. Noise is made for a norm of W (sqrt(2)*W under replace_one) at
    (eps, delta/2), or at rho; the threshold has the rest of delta.

    Privacy: noise and threshold as for a count of found groups, of which the weights are the vector
    (:class:`~dpframe.layout.sensitivity.WeightMove`); a unit's own keys are hidden whatever the number t of its groups is
    (:func:`dpframe.mechanisms.thresholds.least_for_all`). Source of the weights: Gopi, Gulhane, Kulkarni, Shen,
    Shokouhi, Yekhanin, "Differentially private set union" (2020).
    """
    if draft.bounding is None or draft.reach.groups > MOST_GROUPS:
        raise MechanismError("Only units in a limited number of groups are weighed.")
    layout = weights_layout(len(draft.pieces), draft.reach.groups)
    laid = [(layout, -1, UNITS)]
    choice = replace(sized(draft, laid, target, "gaussian", thresholded=True), mechanism=WEIGHTED)
    event, noise = cost(choice), choice.noises[0]
    keys_delta = target.delta - event.delta
    least = least_weighted(noise, draft.reach.groups, keys_delta)
    append(draft, laid, choice, event, 1)
    draft.threshold = Threshold(
        (layout.start,), least, layout.row, draft.policy.unit_name, keys_delta, draft.reach.groups
    )
    draft.events.append(with_keys(event, keys_delta))
    return draft.threshold.size


@lru_cache(maxsize=256)
def least_weighted(noise: Noise, groups: int, delta: Fraction) -> int:
    """The least threshold that all own keys of a unit together reach with probability delta at most, for any number of them."""
    numbers = range(1, groups + 1)
    most = np.array([unit_weight(t) for t in numbers], dtype=np.int64)
    return least_for_all(noise, most, [per_key_delta(delta, t) for t in numbers])
