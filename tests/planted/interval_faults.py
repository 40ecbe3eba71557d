"""Faults of what an answer says of its own error."""

from __future__ import annotations

from planted.fault import Fault

INTERVAL_FAULTS = (
    Fault(
        "the interval of a sum of noises is that of one of them",
        "mechanisms/combine.py",
        "    if not drawn and len(alone) == 1:\n",
        "    if not drawn:\n",
        ("properties/test_coverage.py::test_fused_questions",),
    ),
    Fault(
        "the interval of a mean is a fifth too short below",
        "layout/answers.py",
        "        low = _edge(lambda x: top - x * n > w(x), tau, -1.0)\n",
        "        low = _edge(lambda x: top - x * n > 0.8 * w(x), tau, -1.0)\n",
        ("properties/test_coverage.py::test_fieller_intervals_of_means",),
    ),
    Fault(
        "the interval of a variance is a third too short",
        "layout/moments.py",
        "        low, _ = fieller(s - (0 if self.square else extra), n - self.ddof, p, q, r, f)\n",
        "        f = 2 / 3 * f\n        low, _ = fieller(s - (0 if self.square else extra), n - self.ddof, p, q, r, f)\n",
        ("unit/statistics/test_moments.py::test_intervals_of_second_moments_cover",),
    ),
    Fault(
        "the interval of a difference has the noise of one side",
        "release/derived.py",
        "            w = halfwidth(terms, level) + rounded / 2\n            return value - w, value + w",
        "            w = halfwidth(terms[:1], level) + rounded / 2\n            return value - w, value + w",
        ("unit/release/test_derived.py::test_differences_and_ratios_of_independent_answers_are_covered",),
    ),
)
