"""The faults: each is one small change of one file, of a kind that has happened in such software."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A text of one file of the package, what it is replaced by, and the tests that are run on it.

    Attributes
    ----------
    name : str
    file : str
        Within ``dpframe``.
    old, new : str
        ``old`` must be there exactly once.
    tests : tuple of str
        Files (or single tests) within ``tests``, in the order in which they are tried.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def planted_in(self, text: str) -> str:
        """The text with the fault in it; ValueError if there is no one place for it."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.name}: {self.file} has its text {text.count(self.old)} times, not once")
        return text.replace(self.old, self.new)


_MOVE = (
    "properties/test_sensitivity.py",
    "properties/test_generated_neighbours.py",
)
_SESSION = (
    "unit/session/test_session.py",
    "unit/session/test_processes.py",
    "unit/session/test_account.py",
    "unit/api/test_namespace.py",
    "unit/session/test_silence.py",
)
_LEDGER = (
    "unit/session/test_session_ledger.py",
    "unit/ledger/test_ledger.py",
    "unit/ledger/test_ledger_windows.py",
    "unit/ledger/test_ledger_requests.py",
    "unit/ledger/test_ledger_entries.py",
    "unit/ledger/test_ledger_crashes.py",
    "unit/ledger/test_ledger_faults.py",
    "unit/ledger/test_ledger_disk.py",
)
_UNITS = (
    "unit/planning/test_bounding.py",
    "unit/planning/test_choice_of_groups.py",
    "unit/planning/test_scaling.py",
    "unit/planning/test_unit_ids.py",
    "unit/planning/test_limits.py",
)
_UNKNOWN = (
    "unit/mechanisms/test_thresholds.py",
    "unit/mechanisms/test_found_groups.py",
    "unit/mechanisms/test_key_selection.py",
)
_EXACT = ("properties/test_oracle.py", "unit/engine/test_exact_integers.py")

FAULTS = (
    # ---- sensitivity ----
    Fault(
        "half the sensitivity",
        "layout/sensitivity.py",
        "        m = rows * self.far\n        if not replace:",
        "        m = max(1, rows * self.far // 2)\n        if not replace:",
        _MOVE,
    ),
    Fault(
        "a replaced row moves one group, not two",
        "layout/sensitivity.py",
        "        if self.cells:\n            return 2 * groups * m, 2 * groups * m * m",
        "        if self.cells:\n            return groups * m, groups * m * m",
        _MOVE,
    ),
    Fault(
        "a replaced value moves a sum by the span only",
        "layout/families.py",
        '    across = max(grid.last, 0) - min(grid.first, 0)\n    return Layout("sum"',
        '    across = grid.last - grid.first\n    return Layout("sum"',
        _MOVE,
    ),
    Fault(
        "two parts of a call share one sensitivity",
        "mechanisms/auto.py",
        "    p = len(sensitivities)\n",
        "    p = 1\n",
        _MOVE,
    ),
    Fault(
        "the block's cells sum to K + 1",
        "layout/families.py",
        'cells = (Coordinate(sums=((0, 1),)), Coordinate(b=k, sums=((0, -1),)))\n    return _simplex("block"',
        'cells = (Coordinate(sums=((0, 1),)), Coordinate(b=k + 1, sums=((0, -1),)))\n    return _simplex("block"',
        _MOVE,
    ),
    Fault(
        "bounds are moved inward to the grid",
        "layout/grids.py",
        "grid = Grid(step, floor(low / step), ceil(high / step), integer)",
        "grid = Grid(step, ceil(low / step), floor(high / step), integer)",
        (
            "properties/test_sensitivity.py::test_bounds_off_the_grid_are_moved_outward_and_never_undercounted",
        ),
    ),
    Fault(
        "max_groups is not in the noise",
        "planning/planner.py",
        "self.groups = (bounding.groups or 1) if bounding else 1",
        "self.groups = 1",
        _UNITS,
    ),
    Fault(
        "rows of a unit are not in the noise",
        "planning/planner.py",
        "self.rows = bounding.rows if bounding else 1",
        "self.rows = 1",
        _UNITS,
    ),
    # ---- what the engine adds up ----
    Fault(
        "no clip",
        "engine/polars_query.py",
        "shifted.reinterpret(dtype=pl.Int64).clip(low, high) -",
        "shifted.reinterpret(dtype=pl.Int64) -",
        _EXACT,
    ),
    Fault(
        "NaN is kept",
        "engine/polars_query.py",
        "x.cast(pl.Float64, strict=False).fill_nan(None) + a.magic",
        "x.cast(pl.Float64, strict=False) + a.magic",
        _EXACT,
    ),
    Fault(
        "sums wrap at 32 bits",
        "engine/polars_query.py",
        "sums.append(reduce(mul, factors).sum().alias",
        "sums.append(reduce(mul, factors).cast(pl.Int32, wrap_numerical=True).sum().cast(pl.Int64).alias",
        _EXACT,
    ),
    Fault(
        "a null key matches nothing",
        "engine/polars_query.py",
        'query = listed.join(query, on=by, how="left", nulls_equal=True,',
        'query = listed.join(query, on=by, how="left", nulls_equal=False,',
        _EXACT,
    ),
    Fault(
        "a unit's rows all count",
        "engine/scaling.py",
        'begun["n"] = lib.when(lib.col("n") > most).then(top).otherwise(lib.col("n"))',
        'begun["n"] = lib.col("n")',
        _UNITS,
    ),
    Fault(
        "groups are ranked over all units",
        "engine/polars_query.py",
        '.rank("max").over(unit) <= most',
        '.rank("max") <= most * pl.struct(*unit).n_unique()',
        ("unit/planning/test_choice_of_groups.py::test_for_every_salt_one_unit_changes_nobody_elses_groups",),
    ),
    Fault(
        "the order of rows decides between groups of one hash",
        "engine/polars_query.py",
        '.rank("max").over(unit) <= most',
        '.rank("ordinal").over(unit) <= most',
        (
            "unit/planning/test_choice_of_groups.py::test_groups_of_equal_hash_are_chosen_alike_in_every_order",
        ),
    ),
    Fault(
        "rows without a unit count",
        "engine/polars_query.py",
        "        rows = rows.drop_nulls(unit)\n        if self.height is None:",
        "        if self.height is None:",
        ("unit/planning/test_unit_ids.py::test_rows_without_a_unit_are_left_out",),
    ),
    Fault(
        "a replaced vector moves a sum by its length only",
        "layout/sensitivity.py",
        "        m = rows * self.reach * (2 if replace else 1)\n        l1 =",
        "        m = rows * self.reach\n        l1 =",
        ("unit/statistics/test_vectors.py",),
    ),
    Fault(
        "a column's sorted flag is believed",
        "engine/bare.py",
        "    cells = pl.DataFrame(_Cells(frame))\n",
        "    cells = frame\n",
        ("properties/test_lying_frames.py",),
    ),
    Fault(
        "what an Arrow column says of its nulls is believed",
        "engine/arrow.py",
        "        return pa.Array.from_buffers(t, n, cells.buffers(), -1, at)",
        "        return cells",
        ("properties/test_lying_frames.py",),
    ),
    Fault(
        "found groups come in an order of their size",
        "engine/polars_query.py",
        "query = query.sort(by)",
        'query = query.sort("n")',
        _UNKNOWN,
    ),
    # ---- noise ----
    Fault(
        "Laplace noise is 2 % too small",
        "mechanisms/laplace.py",
        "checked_scale(sensitivity / eps, sensitivity, self.name)",
        "checked_scale(sensitivity / eps * Fraction(98, 100), sensitivity, self.name)",
        ("unit/mechanisms/test_laws_pure.py",),
    ),
    Fault(
        "Gaussian noise is 2 % too small",
        "mechanisms/gaussian.py",
        "    return high * (1 + 2.0**-30)",
        "    return high * 0.98",
        ("unit/mechanisms/test_laws_gaussian.py",),
    ),
    Fault(
        "a mechanism is believed for where its class says it comes from",
        "mechanisms/registry.py",
        "    return any(mech is own for own in _own.values())\n",
        '    return type(mech).__module__.startswith("dpframe.mechanisms.")\n',
        ("unit/mechanisms/test_trust.py",),
    ),
    Fault(
        "weights are rounded where e**eps brings them back",
        "mechanisms/table.py",
        "BITS = 224 ",
        "BITS = 100 ",
        (
            "unit/mechanisms/test_certified_tables.py::test_mixtures_hold_where_their_weights_were_once_rounded_away",
        ),
    ),
    Fault(
        "a table is certified at the largest shift alone",
        "mechanisms/certificate.py",
        "for j in (moves,) if falls else range(moves, 0, -1):",
        "for j in (moves,):",
        ("unit/mechanisms/test_wrong_laws.py::test_the_worst_shift_of_a_table_with_bumps_is_found",),
    ),
    Fault(
        "what becomes impossible is no loss",
        "mechanisms/certificate.py",
        "yield j, np.where(seen.around[where] > 0, logs - around[where], np.inf)",
        "yield j, np.where(seen.around[where] > 0, logs - around[where], 0.0)",
        ("unit/mechanisms/test_wrong_laws.py",),
    ),
    Fault(
        "a distribution that leans to one side is certified",
        "mechanisms/certificate.py",
        "    p, other = seen.p, seen.p[::-1]\n",
        "    p, other = seen.p, seen.p\n",
        ("unit/mechanisms/test_wrong_laws.py",),
    ),
    Fault(
        "what is drawn is 2 % narrower than its law",
        "mechanisms/laplace.py",
        'return sampler("linear", self.b).sample(size)',
        'return sampler("linear", max(self.b * 98 / 100, Fraction(1, 64))).sample(size)',
        ("unit/noise/test_draws.py",),
    ),
    Fault(
        "the sampler keeps minus zero",
        "noise/strips.py",
        "            keep &= ~(negative & (y == 0))",
        "            pass",
        ("unit/noise/test_strips.py",),
    ),
    Fault(
        "the sampler decides near its boundary in floats",
        "noise/strips.py",
        "        for i in np.flatnonzero(np.abs(gap) <= _BAND):",
        "        for i in np.flatnonzero(np.abs(gap) <= 0 * _BAND):",
        ("unit/noise/test_strips.py",),
    ),
    Fault(
        "a forked child repeats its parent's noise",
        "noise/source.py",
        "_source: Callable[[int], bytes] = os.urandom\n",
        "_source: Callable[[int], bytes] = np.random.default_rng().bytes\n",
        ("unit/noise/test_strips.py::test_forked_children_never_repeat_each_other",),
    ),
    Fault(
        "empty groups share one draw",
        "pipeline.py",
        "return piece.noise.prepare(value) + piece.noise.sample(len(value))",
        "return np.where(value == 0, piece.noise.sample(1), piece.noise.prepare(value) + piece.noise.sample(len(value)))",
        (
            "unit/noise/test_strips.py::test_600_absent_groups_get_600_draws",
            "unit/noise/test_strips.py::test_cells_are_independent_of_each_other_and_between_calls",
        ),
    ),
    Fault(
        "the mean divides by the exact count",
        "pipeline.py",
        "    out = [_drawn(p, exact) for p in plan.pieces]\n",
        "    out = [_drawn(p, exact) for p in plan.pieces]\n"
        '    if len(out) == 2 and plan.measures and plan.parts[0].layout.kind == "block":\n'
        "        out[1] = exact.present[0] * plan.parts[0].layout.row - out[0]\n",
        ("unit/noise/test_strips.py::test_parts_of_one_block_have_their_own_noise",),
    ),
    Fault(
        "a rank's levels do not share eps",
        "mechanisms/ranks.py",
        "base = eps / (twice * levels * reach.rows * reach.groups)",
        "base = eps / (twice * reach.rows * reach.groups)",
        ("unit/statistics/test_quantiles.py::test_levels_share_eps", "unit/statistics/test_quantiles.py"),
    ),
    Fault(
        "top_k forgets that a replaced row moves two counts",
        "mechanisms/choosers.py",
        "    twice = 2 if reach.replace else 1\n    rate = eps / (k *",
        "    twice = 1\n    rate = eps / (k *",
        ("unit/statistics/test_top_k.py",),
    ),
    Fault(
        "the salt of one release is that of the next",
        "pipeline.py",
        "_exact(plan, source, int(words(1)[0]))",
        "_exact(plan, source, 1)",
        (
            "unit/planning/test_choice_of_groups.py::test_a_release_uses_one_salt_and_the_next_release_another",
        ),
    ),
    # ---- keys that nobody listed ----
    Fault(
        "delta of found keys is not charged",
        "planning/planner.py",
        'return compose((event, Event(Fraction(0), keys_delta, Fraction(0), kind="keys")))',
        "return event",
        _UNKNOWN,
    ),
    Fault(
        "the threshold is one too low",
        "mechanisms/thresholds.py",
        "return np.asarray(total >= self.least)",
        "return np.asarray(total >= self.least - 1)",
        _UNKNOWN,
    ),
    Fault(
        "the threshold forgets the row itself",
        "mechanisms/thresholds.py",
        "    return most + high\n",
        "    return high\n",
        _UNKNOWN,
    ),
    Fault(
        "the threshold of a sum of draws is that of one draw",
        "planning/planner.py",
        "least = least_threshold(noise, len(where), most,",
        "least = least_threshold(noise, 1, most,",
        _UNKNOWN,
    ),
    Fault(
        "all keys of a unit share one delta",
        "mechanisms/thresholds.py",
        "return -math.expm1(math.log1p(-float(delta)) / groups) * _SAFE",
        "return float(delta) * _SAFE",
        _UNKNOWN,
    ),
    # ---- budgets ----
    Fault(
        "a budget is compared before the charge is added",
        "accounting/filter.py",
        "if (by_eps and after.eps <= self.eps) or",
        "if (by_eps and state.eps < self.eps) or",
        _SESSION,
    ),
    Fault(
        "a budget can not be used to its end",
        "accounting/filter.py",
        "if (by_eps and after.eps <= self.eps) or",
        "if (by_eps and after.eps < self.eps) or",
        _SESSION,
    ),
    Fault(
        "sums of eps may use all of delta beside rho",
        "accounting/filter.py",
        "        return self.delta - self.delta_calls",
        "        return self.delta",
        ("unit/accounting/test_filter.py",),
    ),
    Fault(
        "sums of eps leave out events without eps",
        "accounting/filter.py",
        "eps = None if self.eps is None or e.eps is None else self.eps + e.eps",
        "eps = self.eps if e.eps is None or self.eps is None else self.eps + e.eps",
        ("unit/accounting/test_filter.py",),
    ),
    Fault(
        "rho adds up to its largest",
        "accounting/filter.py",
        "return State(eps, self.delta + e.delta, self.rho + e.rho, closed)",
        "return State(eps, self.delta + e.delta, max(self.rho, e.rho), closed)",
        ("unit/accounting/test_filter.py::test_a_session_in_rho_adds_up_rho",),
    ),
    Fault(
        "a negative cost refills a budget",
        "accounting/events.py",
        "            if value < 0:\n                raise InputError(\n                    f\"An event's",
        "            if value < -10:\n                raise InputError(\n                    f\"An event's",
        ("unit/accounting/test_event_parts.py",),
    ),
    Fault(
        "a pure event costs eps**2/2 less in rho",
        "accounting/conversion.py",
        "return round_up(eps * Fraction(min(1.0, math.tanh(float(eps) / 2) * (1 + 2.0**-48))))",
        "return round_up(Fraction(float(eps) + math.expm1(-float(eps))))",
        ("unit/mechanisms/test_laws_pure.py", "unit/accounting/test_filter.py"),
    ),
    Fault(
        "budgets are floats",
        "accounting/events.py",
        "        exact = near if float(near) == x else Fraction(repr(x))",
        "        exact = Fraction(x)",
        ("unit/accounting/test_events.py",),
    ),
    Fault(
        "check, then record",
        "session/charging.py",
        "                after = _grants(chain, asked, label)\n                return _record(",
        "                after = _grants(chain, asked, label)\n            return _record(",
        ("unit/session/test_processes.py::test_nobody_gets_in_between_checking_and_recording",),
    ),
    Fault(
        "the charge comes after the data",
        "pipeline.py",
        "    receipt = charging.charge(session, plan.charge, label, source.identity, request_id)\n",
        "    _exact(plan, source, 1)\n"
        "    receipt = charging.charge(session, plan.charge, label, source.identity, request_id)\n",
        _SESSION,
    ),
    Fault(
        "a failure is paid back",
        "pipeline.py",
        "        receipt.fail(told=told is None and not issubclass(failure, KeyboardInterrupt | SystemExit))\n",
        "        receipt.fail(told=False)\n"
        "        for s, e in receipt.entries:\n"
        "            s._state = replace(s._state, eps=s._state.eps and s._state.eps - (e.cost.eps or 0))\n",
        _SESSION,
    ),
    Fault(
        "what the engine said is passed on",
        "pipeline.py",
        "    except BaseException as e:\n        failure = type(e)\n",
        "    except BaseException as e:\n        failure, told = type(e), str(e)\n",
        ("unit/audit/test_run.py::test_figures_are_as_promised", "unit/api/test_wrong_calls.py"),
    ),
    Fault(
        "the session around pays nothing",
        "session/session.py",
        "return tuple(dict.fromkeys((self, *self._outer, *around)))",
        "return (self,)",
        _SESSION,
    ),
    Fault(
        "a forked child goes on with its parent's budget",
        "session/session.py",
        "        if os.getpid() != self._pid:\n            raise NoSession(",
        "        if os.getpid() == -1:\n            raise NoSession(",
        _SESSION,
    ),
    Fault(
        "a part's cap is spent on any frame",
        "session/checks.py",
        "    if (session._part or source.part_of is not None) and source.part_of is not session:",
        "    if source.part_of is not None and source.part_of is not session:",
        ("unit/api/test_partition.py::test_a_parts_cap_pays_for_no_other_frame",),
    ),
    Fault(
        "parts that are not disjoint are charged once",
        "api/partition.py",
        "many = (bounding.groups or 1 if bounding else 1) * (2 if policy.replace else 1)",
        "many = 1",
        ("unit/api/test_partition.py",),
    ),
    # ---- ledgers ----
    Fault(
        "a ledger does not wait for the disk",
        "ledger/store.py",
        '            "synchronous = FULL",\n',
        '            "synchronous = OFF",\n',
        (
            "unit/ledger/test_ledger.py",
            "unit/ledger/test_ledger_windows.py",
            "unit/ledger/test_ledger_requests.py",
            "unit/ledger/test_ledger_entries.py",
        ),
    ),
    Fault(
        "a ledger writes no anchor",
        "ledger/log.py",
        "        anchors.write(self.anchor, anchors.Mark(self.declaration.ledger, head))\n\n    @contextlib",
        "\n    @contextlib",
        _LEDGER[::-1],
    ),
    Fault(
        "a ledger that lost its end is taken",
        "ledger/log.py",
        "        if at >= len(sums.hashes):\n",
        "        if at >= len(sums.hashes) + 10:\n",
        _LEDGER[::-1],
    ),
    Fault(
        "a scope's budget is not looked at",
        "ledger/granting.py",
        '            if window_only and name != "total":',
        '            if name == "scope" or (window_only and name != "total"):',
        (
            "unit/ledger/test_ledger.py",
            "unit/ledger/test_ledger_windows.py",
            "unit/ledger/test_ledger_requests.py",
            "unit/ledger/test_ledger_entries.py",
        ),
    ),
    Fault(
        "a retry is charged twice to the session",
        "session/charging.py",
        "        if not replayed and not goes_on:\n            after = _grants(chain, asked, label)",
        "        if chain:\n            after = _grants(chain, asked, label)",
        _LEDGER,
    ),
    Fault(
        "a failed request is taken over free",
        "ledger/granting.py",
        "            if not found.failed:\n                return",
        "            if found is not None:\n                return",
        ("unit/session/test_failures.py",),
    ),
    Fault(
        "a failure is not noted on the ledger",
        "pipeline.py",
        "receipt.fail(told=told is None and not issubclass(failure, KeyboardInterrupt | SystemExit))",
        "receipt.fail(told=False)",
        ("unit/session/test_failures.py",),
    ),
    Fault(
        "a request of a second worker is charged again",
        "ledger/granting.py",
        "        if ledger._answering(found):\n",
        "        if ledger._answering(found) and claim.request_id is None:\n",
        (
            "unit/ledger/test_ledger_requests.py::test_a_request_of_another_living_thread_is_busy_until_it_is_answered",
        ),
    ),
    Fault(
        "an answer leaves before it is on disk",
        "pipeline.py",
        "                receipt.store(to_bytes(noisy, found, draw))\n",
        "                to_bytes(noisy, found, draw)\n",
        _LEDGER,
    ),
    Fault(
        "a replayed answer looks like a new one",
        "session/session.py",
        "            frame,\n            replayed,\n        )",
        "            frame,\n            False,\n        )",
        _LEDGER,
    ),
    # ---- strict sessions ----
    Fault(
        "strict: numbers of categories pass",
        "engine/polars_plan.py",
        "        if name not in of_categories and any(_has(t, pl.Categorical) for t in types):",
        "        if False:",
        ("unit/engine/test_polars_plan.py",),
    ),
    Fault(
        "strict: a unit made anew after a window passes",
        "engine/polars_plan.py",
        "        kept = self._unit_as_it_was(node.input, node.exprs, unit) and kept\n",
        "",
        ("unit/engine/test_polars_plan.py",),
    ),
    Fault(
        "strict: a public frame multiplies rows",
        "engine/polars_plan.py",
        'if how in ("Semi", "Anti") or codes.select(right).is_unique().all():',
        "if True:",
        ("unit/engine/test_polars_plan.py",),
    ),
    Fault(
        "DuckDB believes the statistics of a file",
        "engine/duckdb.py",
        'f"TRY(#{i + 1}',
        'f"(#{i + 1}',
        ("properties/test_relational_identity.py::test_statistics_of_a_file_are_not_believed[duckdb]",),
    ),
    Fault(
        "keys are joined as text, under the collation of the database",
        "engine/duckdb.py",
        "'encode(\"{0}\")'",
        "'\"{0}\"'",
        (
            "properties/test_relational_identity.py::test_no_collation_decides_about_numbers_and_times[BIGINT]",
        ),
    ),
    Fault(
        "a key may hold the sign between two keys on its way to the engine",
        "engine/duckdb.py",
        'v.replace("%", "%0").replace("\\x1f", "%1")',
        "v",
        (
            "properties/test_relational_identity.py::test_every_cell_is_itself_as_unit_key_and_value[duckdb-VARCHAR]",
        ),
    ),
    Fault(
        "texts of several keys do not say where they end",
        "engine/wire.py",
        "    if octets is not None:\n",
        "    if octets is None and False:\n",
        ("properties/test_relational_identity.py::test_pairs_of_keys_stay_apart",),
    ),
    Fault(
        "days beyond the calendar are one missing key",
        "engine/wire.py",
        "fits = s.is_null() | s.is_between(-most, most)",
        "fits = pl.repeat(True, len(s), eager=True)\n            s = s.set(~s.is_between(-most, most), None)",
        (
            "properties/test_relational_identity.py::test_every_cell_is_itself_as_unit_key_and_value[duckdb-DATE]",
        ),
    ),
    Fault(
        "a group that comes back twice is an answer",
        "engine/relational_query.py",
        "table.select(by).is_duplicated().any()",
        "False",
        ("properties/test_relational_identity.py::test_groups_that_come_back_twice_are_no_answer",),
    ),
    # ---- after the release ----
    Fault(
        "a stored answer is a draw of its own",
        "release/payload.py",
        'return noisy, found, str(head.get("draw") or hashlib.sha256(payload).hexdigest())',
        "return noisy, found, hashlib.sha256(payload).hexdigest()",
        ("unit/release/test_writing.py",),
    ),
    Fault(
        "a table that can't be written leaves its new side-car",
        "base/files.py",
        "        for path, old in reversed(back):\n",
        "        for path, old in back[:0]:\n",
        ("unit/release/test_writing.py",),
    ),
    # ---- files of budget plans ----
    Fault(
        "a quote in a CSV runs on over the end of its line",
        "budget_plans/csv_lines.py",
        "        quote_char=None,\n",
        "        quote_char='\"',\n",
        ("unit/budget_plans/test_plan_end.py",),
    ),
    Fault(
        "texts that are no UTF-8 become one text",
        "budget_plans/csv_lines.py",
        '"text": lambda x: pl.when(~x.str.contains(LOST, literal=True)).then(x),',
        '"text": lambda x: x,',
        ("unit/budget_plans/test_plan_end.py",),
    ),
    Fault(
        "a file may be two parts of a source",
        "budget_plans/sources.py",
        "        if twice is not None:\n",
        "        if False:\n",
        ("unit/budget_plans/test_plan_end.py",),
    ),
    Fault(
        "paths of a source are patterns",
        "budget_plans/sources.py",
        "return pl.scan_parquet(paths, glob=False, hive_partitioning=False)",
        "return pl.scan_parquet(paths, hive_partitioning=False)",
        ("unit/budget_plans/test_plan_end.py",),
    ),
)
