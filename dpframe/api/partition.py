"""Partitions: disjoint parts of a frame, paid for once, each with a cap of its own.

Privacy: a row (a unit in up to L0 parts) is in one part, and under replace_one the old and the new
row may be in two, so c = 1, L0 or 2*L0 parts of a neighbour differ (of any k rows k or 2*k, and no more than
there are); each spends at most its cap, however adaptively. The object is charged c times the cap when it is
made. Which parts of a unit count is chosen once, with one salt, for the life of the object. On a ledger with a
window parts answer only as long as the window holds the charge.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from dpframe.accounting.budgets import read_budget
from dpframe.accounting.conversion import pure_rho
from dpframe.accounting.events import Event, rational, repeat
from dpframe.accounting.filter import Budget
from dpframe.accounting.policy import Charge, Details, Limits, Policy
from dpframe.api.options import PartOptions, either
from dpframe.base.arguments import check_type
from dpframe.base.forks import check_fork
from dpframe.base.html import Page
from dpframe.base.signals import interruptible, uninterrupted
from dpframe.errors import Arg, Call, InputError, ReleaseFailed, did_you_mean
from dpframe.frames.contract import Ask, Source, require
from dpframe.frames.keys import KeyTable, key_table
from dpframe.noise.source import words
from dpframe.planning.bounding import make_bounding, reach_of
from dpframe.session import charging
from dpframe.session.checks import check_part, check_steps
from dpframe.session.payer import current, part_session, terms_of
from dpframe.session.session import Session

Door = Callable[[Source, Session], Any]  # opens a part to questions


class Part:
    """The rows of one key. Its ``.dp`` has all verbs; they spend the part's cap and nothing else.

    Attributes
    ----------
    key : value, or tuple of values
    session : Session
        What the part may still spend.
    """

    __slots__ = ("_door", "_make", "key", "session")

    def __init__(self, key: Any, make: Any, session: Session, door: Door) -> None:
        self.key, self._make, self.session, self._door = key, make, session, door

    @property
    def dp(self) -> Any:
        """Private questions about this part, within its cap."""
        source = self._make()
        source.part_of = self.session
        return self._door(source, self.session)

    def __repr__(self) -> str:
        return f"<dpframe part {self.key!r}: {self.session!r}>"


class Partition(Page, Mapping[Any, Part]):
    """A read-only mapping from key to part, in the order of ``keys``.

    Attributes
    ----------
    cost : Cost
        What was charged for all parts together.
    """

    def __init__(self, parts: dict[Any, Part], charge: Charge) -> None:
        self._parts, self._charge = parts, charge

    @property
    def cost(self) -> Any:
        """What was charged for all parts together (exact)."""
        return self._charge.event.cost

    def __getitem__(self, key: Any) -> Part:
        try:
            return self._parts[key]
        except KeyError:
            raise KeyError(f"No part {key!r}. {did_you_mean(str(key), map(str, self._parts))}") from None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        return f"<dpframe {self._charge.question}: {len(self)} parts, charged {self.cost}>"


def make_partition(
    source: Source, by: tuple[Hashable, ...], keys: Any, options: PartOptions, door: Door
) -> Partition:
    """Charge a session for a partition and make it; see ``df.dp.partition_by``."""
    check_fork()
    if options.get("label") is not None:
        check_type("label", options["label"], str, "a str", Arg("label", "q1"))
    eps, delta, rho = options.get("eps"), options.get("delta"), options.get("rho")
    if (eps is None) == (rho is None):
        raise InputError(
            "partition_by takes the cap of each part: eps= (with delta=) or rho=.", hint=Arg("eps", 0.5)
        )
    if not by:
        raise InputError(
            "partition_by needs at least one column.", hint=Call("partition_by", "city", keys=[...], eps=0.5)
        )
    if keys is None:
        raise InputError(
            "partition_by needs keys=: which parts exist must be public.", hint=Arg("keys", [...])
        )
    require(source, "parts", "partition_by")
    d = Fraction(0) if delta is None else rational(delta, "delta", zero=True, below=1)
    if rho is not None and d:
        raise InputError("delta= goes with eps=, not with rho=.", hint="leave delta= out")
    _, policy, defaults = terms_of(options.get("session"))
    types = tuple(source.column(b) for b in by)
    table = key_table(by, types, keys)
    typed = Limits(
        either(options.get("max_groups"), defaults.max_groups),
        either(options.get("max_rows_per_group"), defaults.max_rows_per_group),
        either(options.get("max_rows"), defaults.max_rows),
    ).checked()
    rows = [x for x in (typed.max_rows_per_group, typed.max_rows) if x is not None]
    limits = Limits(typed.max_groups, min(rows, default=None))
    bounding = make_bounding(
        limits, policy, source.column, by=by, keys=table, rows_matter=policy.unit is not None
    )
    many = reach_of(policy, bounding, table, grouped=True).groups * (2 if policy.replace else 1)
    cap = read_budget({"rho": rho}) if eps is None else read_budget({"eps": eps, "delta": d}, "sum")
    whole = cap.rho or pure_rho(rational(eps, "eps"))
    event = repeat(Event(cap.eps, d, whole, kind="" if d or eps is None else "pure"), many)
    names = ", ".join(map(repr, by))
    question = f"partition_by({names}): {table.size} parts of {Budget(cap.eps, rho=cap.rho).text()}"
    same = (names, table.fingerprint, event)
    charge = Charge(
        event, question, "parts", policy, same, lambda: Details(_digest(same, policy, bounding), "", "")
    )
    payer = current(options.get("session"))
    check_part(payer, source)
    check_steps(payer, source)
    with uninterrupted():  # but for the engine's work
        receipt = charging.charge(payer, charge, options.get("label")) if table.size else None
        try:
            parts = _parts(
                source,
                types,
                table,
                bounding,
                lambda inside: part_session(cap, policy, inside, payer, receipt),
                limits,
                door,
            )
        except KeyboardInterrupt:
            if receipt is not None:  # asked again, the same partition is made under this charge
                charging.owe(payer, charge, receipt, None)
            raise
    return Partition(parts, charge)


def _digest(same: tuple[Any, ...], policy: Policy, bounding: Any) -> str:
    many = None if bounding is None else (bounding.rows, bounding.groups)
    return hashlib.sha256(repr((same, policy, many)).encode()).hexdigest()


def _parts(
    source: Source,
    types: Any,
    table: KeyTable,
    bounding: Any,
    session: Callable[[Limits], Session],
    limits: Limits,
    door: Door,
) -> dict[Any, Part]:
    failure: type[BaseException] | None = None
    try:
        with interruptible():
            makers = source.part(Ask(by=types, keys=table, bounding=bounding, salt=int(words(1)[0])))
    except BaseException as e:
        failure = type(e)
    if failure is not None:  # raised out here, where no traceback reaches the engine's words or frames
        if issubclass(failure, KeyboardInterrupt | SystemExit):
            raise failure()
        raise ReleaseFailed("partition_by failed in the engine after it was charged.")
    inside = Limits(limits.max_groups, limits.max_rows_per_group, limits.max_rows_per_group)
    return {key: Part(key, make, session(inside), door) for key, make in zip(table.rows(), makers)}
