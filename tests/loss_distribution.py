"""The distribution of privacy losses of any mechanism, from its probabilities."""

from __future__ import annotations

import math

import numpy as np

from dpframe.accounting import pld
from dpframe.mechanisms.base import Noise
from dpframe.mechanisms.certificate import ABSOLUTE, window


def loss_distribution(noise: Noise, moves: int, step: float) -> pld.Losses:
    """A symmetric distribution by its probabilities, for one coordinate that moves by up to ``moves`` steps.

    Privacy: at every eps the largest delta over all shifts (see :mod:`dpframe.accounting.pld`).
    """
    seen = window(noise, moves, 1e-60)
    p, n = seen.p, len(seen.p)
    laws = [seen.around[moves - j : moves - j + n] for j in range(1, moves + 1)]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [np.where(p > 0, np.log(p) - np.log(q), -np.inf) for q in laws]  # inf where q is 0
    most = max(float(np.max(x, where=np.isfinite(x), initial=0.0)) for x in ratios)
    eps = np.arange(math.ceil(most / step) + 2) * step
    worst = np.zeros(len(eps))
    for q, ratio in zip(laws, ratios):
        order = np.argsort(-ratio, kind="stable")
        above = np.searchsorted(-ratio[order], -eps, side="left")  # how many have a loss > eps
        over_p = np.concatenate([[0.0], np.cumsum(p[order])])
        over_q = np.concatenate([[0.0], np.cumsum(q[order])])
        np.maximum(worst, over_p[above] - np.exp(eps) * over_q[above], out=worst)
    return pld.of_curve(np.minimum(worst + seen.outside + ABSOLUTE, 1.0), step)
