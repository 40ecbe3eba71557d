"""diffprivlib on NumPy arrays. The number of rows is public: one row is replaced, none added. No units, no unknown keys."""

import numpy as np
from diffprivlib import tools
from peer_settings import CITIES, EPS, HIGH, LOW

PACKAGES = ("diffprivlib", "scikit-learn<1.6")  # it imports names that later ones lack


def load(data):
    return data


def count(data):
    return tools.count_nonzero(np.ones_like(data["x"]), epsilon=EPS)


def total(data):
    return tools.sum(data["x"], epsilon=EPS, bounds=(LOW, HIGH))


def mean(data):
    return tools.mean(data["x"], epsilon=EPS, bounds=(LOW, HIGH))


def public_keys(data):
    edges = np.arange(len(CITIES) + 1) - 0.5
    n, _ = tools.histogram(data["city"], epsilon=EPS / 2, bins=edges)
    x = [tools.mean(data["x"][data["city"] == c], epsilon=EPS / 2, bounds=(LOW, HIGH)) for c in CITIES]
    return zip(CITIES, n, x)


def read(answer):
    return [*answer] if isinstance(answer, zip) else float(answer)
