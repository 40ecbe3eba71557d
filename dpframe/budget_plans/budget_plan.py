"""Budget plans: a table of named queries over named sources, and one budget for all of them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from fractions import Fraction
from typing import Any, Unpack

import polars as pl

from dpframe.accounting.budgets import SessionOptions
from dpframe.accounting.events import Cost
from dpframe.base.html import Page
from dpframe.base.progress import Progress
from dpframe.base.wrong_calls import checked
from dpframe.budget_plans.allocation import ALLOCATIONS, Turn, check, turns
from dpframe.budget_plans.checks import (
    check_budget,
    check_ledger,
    check_outputs,
    ledger_files,
    named_queries,
    named_sources,
)
from dpframe.budget_plans.fingerprint import decided_by
from dpframe.budget_plans.query import Query
from dpframe.budget_plans.questions import Questions
from dpframe.budget_plans.release_file import load
from dpframe.budget_plans.release_text import dump
from dpframe.budget_plans.sources import located
from dpframe.budget_plans.table import LOG, TABLE, log_row, table_rows
from dpframe.errors import Arg, Code, InputError, NearNames, did_you_mean, show, wrong_type
from dpframe.release.release import Release
from dpframe.session.payer import released, standing
from dpframe.session.session import Session
from dpframe.statistics.base import Aggregate


class BudgetPlan(Page, NearNames):
    """Several queries under one budget: what each gets, what it costs, and all their releases.

    Parameters
    ----------
    sources : frame, path, list of paths, URI, or mapping of name -> any of these
        What is asked. Paths end in ``.parquet`` or ``.csv``; URIs name a table of an engine
        (``"duckdb:warehouse.db?table=visits"``, ``"spark:?table=lake.visits"``; see
        ``dpframe.budget_plans.engine_uri``). Only names and types are read before ``run``.
    queries : mapping of name -> Query or Aggregate
        In the order in which they are asked; see :func:`dpframe.query`.
    **budget
        ``eps``, ``delta``, ``delta_calls``, ``rho``, ``accountant``, ``order``, ``neighbors``, ``unit``,
        ``contributions``, ``max_groups``, ``max_rows_per_group``, ``max_rows``: the budget and the policy, as for :class:`dpframe.Session`.
    allocation : {"even", "weighted", "adaptive"}
        How the total is divided; see ``dpframe.budget_plans.allocation``.
    name : str, optional
        The plan's name; needed with a ledger, where it is part of every request's.
    ledger : path, optional
        A ledger that pays (see :class:`dpframe.Ledger`); the plan's own budget is then a cap beside it. A
        query that was answered before under the same name, in the same scope, is not charged again: its
        stored answer is returned.
    folder : str, optional
        Where relative paths start (default: the working directory).
    scope : str, optional
        The ledger's scope; stands for ``{scope}`` in paths.

    Raises
    ------
    InputError, MechanismError
        For anything that would make a query fail: nothing is spent, and no cell is read.
    LedgerError
        For a ledger that is missing or can't be trusted.

    Notes
    -----
    Privacy: everything is released in one session with the plan's budget, so the whole is
    (eps, delta)-DP per unit, or delta_calls-approximate rho-zCDP; the argument is in
    ``dpframe.budget_plans.allocation`` and ``dpframe.accounting.filter``. A session around ``run`` pays too.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> people = pl.DataFrame({"age": [20, 30, 70]})
    >>> plan = dp.BudgetPlan(
    ...     people, {"n": dp.count(), "age": dp.clip_mean("age", bounds=(0, 100))}, eps=1)
    >>> plan.table()["eps"].to_list()
    [0.5, 0.5]
    >>> sorted(plan.run())
    ['age', 'n']
    """

    @checked(
        example="dp.BudgetPlan(df, {'n': dp.query(dp.count(), eps=0.5)}, eps=1)",
        options=SessionOptions.__annotations__,
    )
    def __init__(
        self,
        sources: Any,
        queries: Mapping[str, Query | Aggregate],
        *,
        allocation: str = "even",
        name: str | None = None,
        ledger: str | os.PathLike[str] | None = None,
        folder: str | None = None,
        scope: str | None = None,
        **budget: Unpack[SessionOptions],
    ) -> None:
        if not isinstance(allocation, str) or allocation not in ALLOCATIONS:
            raise InputError(Arg("allocation", allocation), f": {did_you_mean(str(allocation), ALLOCATIONS)}")
        typed_policy: dict[str, Any] = {k: budget.get(k) for k in SessionOptions.__annotations__}
        self._name = name
        if ledger is not None:
            if not isinstance(name, str) or not name:
                raise InputError(
                    Arg("ledger"),
                    " keeps what was paid for under the plan's name, so the plan needs one, and another than every other plan on the ledger.",
                    hint=Arg("name", "arrivals"),
                )
            if "/" in name:
                raise InputError(
                    Arg("name", name),
                    " has a '/', which stands between the plan's name and the query's in what was paid for.",
                    hint=Arg("name", "arrivals-2026"),
                )
            typed_policy["ledger"] = os.fspath(ledger)
        self._folder, self._scope = os.getcwd() if folder is None else os.fspath(folder), scope
        self._session = self._open(typed_policy)
        self._allocation, self._typed = allocation, {**typed_policy, "allocation": allocation}
        self._given = named_sources(sources)
        self._queries = named_queries(queries, self._given)
        check(self._queries, allocation, self._in_rho)
        self._releases: dict[str, Release] = {}
        requests = {} if ledger is None else {n: f"{name}/{n}" for n in self._queries}
        self._asked = Questions(
            self._session, self._given, self._queries, self._releases, self._place, requests
        )
        check_outputs(self._given, self._queries, self._place, ledger_files(self._session.ledger))
        check_budget(self._session, self._asked, self._turns())

    @classmethod
    @checked(example="dp.BudgetPlan.from_release_file('release.toml')")
    def from_release_file(cls, path: str | os.PathLike[str], *, scope: str | None = None) -> BudgetPlan:
        """Read a plan from a TOML release file; ``docs/release-files.md`` lists its keys.

        Parameters
        ----------
        path : path
            Paths in the file start at its directory.
        scope : str, optional
            Stands for ``{scope}`` in the file's paths.

        Raises
        ------
        InputError
            For anything wrong in the file, as ``q3.toml:17: ...``. Nothing is spent, and no cell is read.
        """
        return load(cls, path, scope)

    @checked(example="plan.to_release_file('release.toml')")
    def to_release_file(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as a TOML release file that ``from_release_file`` reads back with the same fingerprint.

        Parameters
        ----------
        path : str or path
            An older file is replaced.

        Raises
        ------
        InputError
            For a source that is a frame, and for keys that TOML does not hold (None, intervals).
        """
        dump(self, path)

    # ---- reading ----

    @property
    def queries(self) -> dict[str, Query]:
        """The queries by name, in order."""
        return dict(self._queries)

    @property
    def releases(self) -> dict[str, Release]:
        """What has been released, by name of the query."""
        return dict(self._releases)

    @property
    def charged(self) -> dict[str, Cost]:
        """What was charged so far, by name of the query; also for an answer that failed."""
        return {
            e.label: e.cost
            for e in standing(self._session).entries
            if e.label in self._queries and not e.replayed
        }

    @property
    def scope(self) -> str | None:
        """The ledger's scope, and what stands for ``{scope}`` in paths."""
        return self._scope

    @property
    def session(self) -> Session:
        """The session that pays; its budget is the plan's."""
        return self._session

    @property
    def total(self) -> Fraction:
        """The whole budget in eps, or in rho (exact)."""
        budget = self._session.budget
        total = budget.rho if budget.eps is None else budget.eps
        assert total is not None
        return total

    def table(self) -> pl.DataFrame:
        """What each query costs and how exact it will be. Reads no cell.

        Returns
        -------
        polars.DataFrame
            One row per output: ``query``, ``statistic`` (as one would type it), ``bounds`` (null if it has
            none), ``sensitivity`` (in the norm of the mechanism, in the unit of ``scale``), ``mechanism``,
            ``scale``, ``eps`` (null in rho), ``delta``, ``rho``, ``expected_error`` (half-width of the 95 %
            interval; null where it depends on the number of rows and ``rows=`` is not given), ``decided``
            (false while the amount may change with what earlier queries release). Costs are the query's
            and stand in its first row only, so that the columns add up.
        """
        rows = []
        for name, turn in self._turns().items():
            guess = self._asked.size(self._queries[name].rows)
            rows += table_rows(name, self._asked.bind(name, turn.amount).plan, guess, turn.decided)
        return pl.DataFrame(rows, schema=TABLE, orient="row")

    def log(self) -> pl.DataFrame:
        """What was charged, when, and what was left then. Public: releases and costs.

        Returns
        -------
        polars.DataFrame
            One row per release: ``query``, ``time`` (UTC), ``eps``, ``delta``, ``rho``, ``left`` (of the
            plan's eps, or rho), ``wanted_error``, ``margin`` (of the released number at 95 %; null for
            tables), ``replayed`` (true for an answer that a ledger had stored; it was paid for before).
        """
        rows, left = [], self.total
        for name, r in self._releases.items():
            left -= self._charged(r)
            rows.append(log_row(name, r, left, self._asked.wanted(name)))
        return pl.DataFrame(rows, schema=LOG, orient="row")

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) over everything that decides cost and noise; no data, and no outputs.

        Two plans with the same fingerprint ask the same of sources of the same names and types, at the
        same prices and with the same noise, in this version of dpframe. With a ledger, the plan's name
        counts too (what was paid for under one name is not under another); the scope never does: one
        approved file serves every night.
        """
        text = json.dumps(self._decided(), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def __repr__(self) -> str:
        unit = "rho" if self._in_rho else "eps"
        done = f", {len(self._releases)} released" if self._releases else ""
        return (
            f"<dpframe budget plan: {len(self._queries)} queries, {unit}={show(self.total)},"
            f" {self._allocation}{done}>"
        )

    # ---- running ----

    @checked(example="plan.run()")
    def run(
        self,
        *,
        session: Session | None = None,
        progress: bool | Callable[[str], None] = True,
        released: Callable[[str, Release], None] | None = None,
    ) -> dict[str, Release]:
        """Release all queries in order, and write their files.

        Parameters
        ----------
        session : Session, optional
            Pays as well (as does a session that is current).
        progress : bool or function, default True
            Show how far it is: a line on stderr in a terminal, a bar in a notebook, nothing elsewhere (or
            with ``DPFRAME_PROGRESS=0`` in the environment). A function is called before each query, with its name.
        released : function, optional
            Called when a query's files are written, with its name and release.

        Returns
        -------
        dict of name -> Release
            What was released before is not asked again: after an error or Ctrl-C, ``run`` goes on.

        Raises
        ------
        BudgetExceeded
            The ledger would not grant all that is still to be paid (nothing was spent), or a session around
            this one did not pay for the next query.
        LedgerError
            The ledger can't be trusted or written.
        ReleaseFailed
            The engine failed; the charge stands.

        Notes
        -----
        Privacy: a query that was charged and then interrupted is drawn anew under the same charge, its first draw,
        if there was one, having been dropped unseen: one release for one charge.
        """
        if not isinstance(progress, bool) and not callable(progress):
            raise wrong_type(
                Arg("progress"),
                f" takes True, False or a function, not a {type(progress).__name__}.",
                hint=Arg("progress", Code("print")),
            )
        shown = Progress(self._queries) if progress is True else None
        tell = progress if callable(progress) else shown.show if shown else None
        try:
            with ExitStack() as stack:
                if session is not None:
                    stack.enter_context(session)
                stack.enter_context(self._session)
                check_ledger(self._session, self._asked, self._turns())
                for name in self._queries:
                    if tell is not None:
                        tell(name)
                    if name not in self._releases:
                        self._releases[name] = self._release(name)
                    self._write(name)
                    if released is not None:
                        released(name, self._releases[name])
        finally:
            if shown is not None:
                shown.close(len(self._releases))
        return self.releases

    def _release(self, name: str) -> Release:
        """Release one query; or take what was released when Ctrl-C came before it was noted here."""
        bound = self._asked.bind(name, self._turns()[name].amount)
        kept = released(self._session, name)
        return kept if kept is not None and kept.plan == bound.plan else bound.release()

    def _write(self, name: str) -> None:
        for path in self._queries[name].outputs:
            self._releases[name].write(self._place(path))

    # ---- planning ----

    def _place(self, path: str) -> str:
        return located(path, self._folder, self._scope)

    @property
    def _in_rho(self) -> bool:
        return self._session.budget.eps is None

    def _turns(self) -> dict[str, Turn]:
        charged = {n: self._charged(r) for n, r in self._releases.items()}
        return turns(self._queries, self._allocation, self.total, charged, self._asked.need)

    def _charged(self, release: Release) -> Fraction:
        amount = release.cost.rho if self._in_rho else release.cost.eps
        return amount or Fraction(0)

    def _open(self, policy: dict[str, Any]) -> Session:
        if "ledger" not in policy:
            session = Session(**policy)
        else:
            place = os.path.join(self._folder, policy["ledger"])
            session = Session(**{**policy, "ledger": place}, scope=self._scope)
        session.close()  # until run: an open session would make other calls fail
        if session.budget.unlimited:
            raise InputError("A plan has a total of its own, beside a ledger as well.", hint=Arg("eps", 1))
        return session

    def _decided(self) -> dict[str, Any]:
        ledger = self._typed.get("ledger")
        return decided_by(
            self._session, self._asked, self._given, self._allocation, self.total, self._name, ledger
        )
