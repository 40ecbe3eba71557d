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
    Fault(
        "the integers of one draw are taken as independent in a difference",
        "mechanisms/combine.py",
        "            of.setdefault((noise.joint, noise.number), []).append((noise, c))\n",
        "            of.setdefault((noise.joint, hash(noise)), []).append((noise, c))\n",
        ("unit/release/test_joint_answers.py::test_differences_and_ratios_within_one_draw",),
    ),
    Fault(
        "the integers of one draw are taken as independent in a ratio",
        "mechanisms/combine.py",
        "        out[np.ix_(at, at)] = weights @ draw[0].covariance @ weights.T\n",
        "        out[np.ix_(at, at)] = np.diag(np.diag(weights @ draw[0].covariance @ weights.T))\n",
        ("unit/release/test_joint_answers.py::test_differences_and_ratios_within_one_draw",),
    ),
    Fault(
        "the rows that both cells of a block share are counted twice",
        "mechanisms/joint.py",
        "np.array([c for _, c in shares]) @ weights)",
        "np.array([c for _, c in shares]) @ abs(weights))",
        ("unit/mechanisms/test_joint.py::test_cells_of_one_draw_add_up_to_their_rows",),
    ),
    Fault(
        "two releases' draws of one law are taken for one",
        "release/derived.py",
        "number=hash((self.release.draw, law.number))",
        "number=law.number",
        ("unit/release/test_joint_answers.py::test_what_is_of_one_draw_is_not_taken_as_independent",),
    ),
    Fault(
        "at a large eps forms have the tails of a small one",
        "mechanisms/row_widths.py",
        "_cut_off(t) if scale >= 1 else",
        "_cut_off(t) if scale > 0 else",
        ("unit/mechanisms/test_joint.py::test_the_bound_of_any_form_holds",),
    ),
    Fault(
        "the errors of a regression are those of sampling alone",
        "layout/least_squares.py",
        "    variance = by_noise + by_sampling\n",
        "    variance = by_noise / 100 + by_sampling\n",
        ("properties/test_regression_coverage.py::test_intervals_cover_the_population",),
    ),
    Fault(
        "the errors of a regression are those of the noise alone",
        "layout/least_squares.py",
        "    variance = by_noise + by_sampling\n",
        "    variance = by_noise + by_sampling / 100\n",
        ("properties/test_regression_coverage.py::test_intervals_cover_the_population",),
    ),
    Fault(
        "noises of one draw are taken for independent in a regression",
        "layout/regression.py",
        "maps @ covariances(laws) @ maps.T",
        "maps @ np.diag(np.diag(covariances(laws))) @ maps.T",
        ("unit/layout/test_regression.py",),
    ),
    Fault(
        "regressors that noise can't tell apart have coefficients",
        "layout/least_squares.py",
        "    return np.where(worth.min(axis=1) < 1, worst + 1, -1)\n",
        "    return np.where(worth.min(axis=1) < 0, worst + 1, -1)\n",
        ("unit/statistics/test_ols.py",),
    ),
)
