"""The faults: each is one small change of one file, of a kind that has happened in such software."""

from __future__ import annotations

from planted.complete_faults import COMPLETE_FAULTS
from planted.fault import LEDGER, SESSION, Fault
from planted.frame_faults import FRAME_FAULTS
from planted.interval_faults import INTERVAL_FAULTS
from planted.key_faults import KEY_FAULTS
from planted.limit_faults import LIMIT_FAULTS
from planted.noise_faults import NOISE_FAULTS
from planted.row_faults import ROW_FAULTS
from planted.together_faults import TOGETHER_FAULTS

FAULTS = (
    *NOISE_FAULTS,
    *COMPLETE_FAULTS,
    *FRAME_FAULTS,
    *INTERVAL_FAULTS,
    *KEY_FAULTS,
    *LIMIT_FAULTS,
    *ROW_FAULTS,
    *TOGETHER_FAULTS,
    # ---- budgets ----
    Fault(
        "a budget is compared before the charge is added",
        "accounting/filter.py",
        "if (by_eps and after.eps <= self.eps) or",
        "if (by_eps and state.eps < self.eps) or",
        SESSION,
    ),
    Fault(
        "a budget can not be used to its end",
        "accounting/filter.py",
        "if (by_eps and after.eps <= self.eps) or",
        "if (by_eps and after.eps < self.eps) or",
        SESSION,
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
        "    receipt = charging.charge(session, plan.charge, label, request_id)\n",
        "    _exact(plan, source, 1)\n"
        "    receipt = charging.charge(session, plan.charge, label, request_id)\n",
        SESSION,
    ),
    Fault(
        "a failure is paid back",
        "pipeline.py",
        "        receipt.fail(told=told is None and not issubclass(failure, KeyboardInterrupt | SystemExit))\n",
        "        receipt.fail(told=False)\n"
        "        for s, e in receipt.entries:\n"
        "            s._state = replace(s._state, eps=s._state.eps and s._state.eps - (e.cost.eps or 0))\n",
        SESSION,
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
        "session/current.py",
        "return tuple(dict.fromkeys((self, *self._outer, *around)))",
        "return (self,)",
        SESSION,
    ),
    Fault(
        "a forked child goes on with its parent's budget",
        "session/current.py",
        "        if os.getpid() != self._pid:\n            raise NoSession(",
        "        if os.getpid() == -1:\n            raise NoSession(",
        SESSION,
    ),
    Fault(
        "a child of a forked child waits for threads that its parent lost",
        "base/forks.py",
        '_lost = _lost or getattr(_here, "works", True)',
        '_lost = getattr(_here, "works", False)',
        ("unit/base/test_forks.py",),
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
        "many = reach_of(policy, bounding, table, grouped=True).groups * (2 if policy.replace else 1)",
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
        LEDGER[::-1],
    ),
    Fault(
        "a ledger that lost its end is taken",
        "ledger/log.py",
        "        if at >= len(sums.hashes):\n",
        "        if at >= len(sums.hashes) + 10:\n",
        LEDGER[::-1],
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
        LEDGER,
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
        "                receipt.store(to_bytes(_payload(kept, noisy, found)))\n",
        "                to_bytes(_payload(kept, noisy, found))\n",
        LEDGER,
    ),
    Fault(
        "a stored answer is given to another question",
        "ledger/granting.py",
        'if found.content["fingerprint"] != claim.fingerprint or event != claim.charge.event:',
        "if event != claim.charge.event:",
        ("unit/ledger/test_stored_answers.py",),
    ),
    Fault(
        "a replayed answer looks like a new one",
        "session/session.py",
        "            charge.event,\n            replayed,\n        )",
        "            charge.event,\n            False,\n        )",
        LEDGER,
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
        "strict: casts that fail on some cells pass",
        "engine/polars_fallible.py",
        "    return strict and not _holds(old, new)",
        "    return False",
        ("unit/engine/test_polars_fallible.py",),
    ),
    Fault(
        "strict: a CSV without its first rows passes",
        "engine/polars_scans.py",
        "    if any(told[k] for k in SKIPPED):",
        "    if False:",
        ("unit/engine/test_polars_fallible.py",),
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
        'draw = str(head.get("draw") or hashlib.sha256(payload).hexdigest())',
        "draw = hashlib.sha256(payload).hexdigest()",
        ("unit/release/test_writing.py",),
    ),
    Fault(
        "a table that can't be written leaves its new side-car",
        "base/files.py",
        "        for path, old in reversed(back):\n",
        "        for path, old in back[:0]:\n",
        ("unit/release/test_writing.py",),
    ),
    Fault(
        "Ctrl-C between two renames leaves one new file",
        "base/files.py",
        "        with uninterrupted():  # Ctrl-C is heard before all renames, or after\n",
        "        if True:\n",
        ("unit/base/test_written_together.py",),
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
