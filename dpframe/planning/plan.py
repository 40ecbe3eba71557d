"""A plan: what is asked, with which noise and at what cost; its fingerprint. Nothing in it was read from a cell.

Plans are made in ``planning/planner.py``, which decides how much noise an answer gets.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dpframe.accounting.events import Cost, Event
from dpframe.accounting.policy import Charge, Details, Policy
from dpframe.base.html import Page
from dpframe.errors import NearNames
from dpframe.frames.bins import Tally
from dpframe.frames.columns import Column
from dpframe.frames.contract import Ask, Axis, Bounding, Measure
from dpframe.frames.keys import KeyTable
from dpframe.layout.layouts import UnitWeights
from dpframe.layout.tables import Index
from dpframe.mechanisms.base import Target, sqrt_up
from dpframe.mechanisms.thresholds import KeySelection, Threshold
from dpframe.planning.pieces import ChoicePiece, Output, Part, Piece
from dpframe.planning.request import Request
from dpframe.statistics.base import Aggregate


@dataclass(frozen=True, slots=True)
class Plan(Page, NearNames):
    """A costed question. Frozen, hashable, without data.

    Attributes
    ----------
    outputs : tuple of Output
    pieces : tuple of Piece
        The integers that get noise, in order.
    parts : tuple of Part
    measures : tuple of Measure
        What the engine adds up.
    tallies : tuple of Tally
        What the engine counts by bins.
    by : tuple of Column
        The grouping columns.
    keys : KeyTable or None
        The listed groups; None for one group, or for groups found by ``threshold`` or ``selection``.
    bounding : Bounding or None
        How much of a unit counts; None when a row is the unit.
    threshold, selection : Threshold, KeySelection or None
        Which found groups are released.
    rules : tuple of (str, float)
        Of keys alone: the rules that were compared, and the size at which a group has even odds under each.
    event : Event
        What the release costs.
    policy : Policy
    columns : tuple of Column
        The types that the plan was made for.
    target : Target
        What was asked.
    scalar : bool
        Whether the answer is a number rather than a table.
    index : Index or None
        The rows that an answer has in every group, when there are several.
    top : int or None
        Of the groups that are found, only those with the largest answers are told, largest first.
    request : Request or None
        What was asked, so that it can be planned anew at another price.
    complete : tuple of Axis
        With ``complete_cases=True`` what the answers read: rows that lack any of it are left out of all of them.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> plan = pl.DataFrame({"x": [1.0]}).dp.plan.clip_sum("x", bounds=(0, 10), eps=0.5).plan
    >>> plan.describe(), plan.l1, plan.noise_scale(plan.outputs[0])
    ("clip_sum('x', bounds=(0, 10))", 10.0, 20.0)
    """

    outputs: tuple[Output, ...]
    pieces: tuple[Piece | ChoicePiece, ...]
    parts: tuple[Part, ...]
    measures: tuple[Measure, ...]
    tallies: tuple[Tally, ...]
    by: tuple[Column, ...]
    keys: KeyTable | None
    bounding: Bounding | None
    threshold: Threshold | None
    selection: KeySelection | None
    event: Event
    policy: Policy
    columns: tuple[Column, ...]
    target: Target
    scalar: bool
    index: Index | None = None
    top: int | None = None
    request: Request | None = field(default=None, compare=False, repr=False)
    complete: tuple[Axis, ...] = ()
    rules: tuple[tuple[str, float], ...] = field(default=(), compare=False, repr=False)

    @property
    def summed(self) -> bool:
        """Whether anything but tallies is asked of the engine: sums, rows, or which groups there are."""
        return (self.keys is None and bool(self.by)) or not all(p.tallied for p in self.pieces)

    def ask(self, salt: int, found: Any = None) -> Ask:
        """What the engine is asked, its choices made with ``salt``.

        ``found`` are the groups that occur, for tallies when none are listed.
        """
        parts = (self.measures, self.tallies, self.by, self.keys, self.bounding, salt, found)
        weighed = any(isinstance(p, Piece) and isinstance(p.coordinate, UnitWeights) for p in self.pieces)
        return Ask(*parts, self.complete, weighed)

    @property
    def charge(self) -> Charge:
        """What a session is asked to pay for."""
        return Charge(self.event, self.describe(), self.mechanisms, self.policy, self, lambda: details(self))

    @property
    def mechanisms(self) -> str:
        """Everything that is drawn by, in words."""
        return ", ".join(dict.fromkeys(p.mechanism for p in self.parts)) or "truncated geometric"

    @property
    def questions(self) -> list[Aggregate]:
        """What is asked; one question may have several outputs."""
        return list({id(o.question): o.question for o in self.outputs}.values())

    @property
    def missing(self) -> list[str]:
        """What becomes of missing and infinite cells, in words, for each kind of question."""
        left_out = [self.left_out] if self.complete else []
        return list(dict.fromkeys([*left_out, *(q.missing for q in self.questions)]))

    @property
    def left_out(self) -> str:
        """Which rows no answer is about, in words; empty if there are none."""
        if not self.complete:
            return ""
        names = list(dict.fromkeys(str(a.column) for a in self.complete))
        lacked = " or ".join(x for x in (", ".join(names[:-1]), names[-1]) if x)
        return f"rows that lack {lacked} are left out of every answer"

    @property
    def grouped(self) -> bool:
        """Whether the answer has a row per group."""
        return bool(self.by)

    @property
    def cost(self) -> Cost:
        """What the release costs (exact)."""
        return self.event.cost

    @property
    def eps(self) -> float | None:
        """Epsilon of the release; None for a call with ``rho=``."""
        return None if self.event.eps is None else float(self.event.eps)

    @property
    def delta(self) -> float:
        """Delta that the release charges."""
        return float(self.event.delta)

    @property
    def rho(self) -> float:
        """The zCDP cost that the release charges beside (or instead of) eps."""
        return float(self.event.rho)

    @property
    def mechanism(self) -> Any:
        """The registry name of the mechanism; one per output when they differ."""
        if not self.outputs:
            return self.mechanisms
        return self._per_output(lambda o: self.parts[o.part].mechanism)

    @property
    def l1(self) -> Any:
        """L1 sensitivity in the answer's unit (of a block: in rows); one per output when they differ."""
        return self._per_output(lambda o: self.sensitivity(o)[0])

    @property
    def l2(self) -> Any:
        """L2 sensitivity in the answer's unit (of a block: in rows); one per output when they differ."""
        return self._per_output(lambda o: self.sensitivity(o)[1])

    @property
    def scale(self) -> Any:
        """Noise scale in the unit of ``l1`` (b of Laplace, sigma of Gaussian); one per output when they differ."""
        return self._per_output(self.noise_scale)

    @property
    def laws(self) -> list[Any]:
        """The noise of every piece (of a choice: its chooser), in order."""
        return [p.noise for p in self.pieces]

    def error(self, rows: float | None = None, level: float = 0.95) -> Any:
        """Half-width of the interval at ``level`` per output; None where it depends on ``rows`` and they are not given."""
        return self._per_output(lambda o: o.error(self.laws, rows, level)) if self.outputs else None

    def output_unit(self, output: Output) -> Fraction:
        """What one step of the output's coordinates is worth: the answer's unit, or rows for cells."""
        worth = output.answer.worth
        return Fraction(1, self.parts[output.part].layout.row) if worth is None else worth

    def sensitivity(self, output: Output) -> tuple[float, float]:
        """(L1, L2) of an output, in its ``output_unit``."""
        part, unit = self.parts[output.part], self.output_unit(output)
        return float(part.l1 * unit), float(sqrt_up(Fraction(part.l2_squared)) * unit)

    def noise_scale(self, output: Output) -> float:
        """Noise scale of an output, in its ``output_unit``."""
        return float(self.pieces[output.answer.coordinates()[0]].noise.scale * self.output_unit(output))

    def describe(self) -> str:
        """The question, as one would type it."""
        unsaid = bool(self.outputs) and all(q.whole_rows for q in self.questions)
        complete = ["complete_cases=True"] if self.complete and not unsaid else []
        if self.top is not None:
            return f"top_k({', '.join([repr(self.by[0].name), str(self.top), *complete])})"
        asked = [q.describe() for q in self.questions]
        if not self.grouped and (self.scalar or self.index):
            return ", ".join([asked[0][:-1], *complete]) + ")"
        listed = ", ".join([*asked, *complete])
        if not self.grouped:
            return f"agg({listed})"
        names = ", ".join(repr(c.name) for c in self.by)
        return f"groupby({names})." + (f"dp_agg({listed})" if asked else "keys()")

    def __repr__(self) -> str:
        return f"<dpframe plan: {self.describe()}, {self.cost}>"

    def _per_output(self, f: Any) -> Any:
        values = {o.name: f(o) for o in self.outputs}
        return next(iter(values.values())) if len(self.outputs) == 1 else values


def fingerprint(plan: Plan) -> str:
    """A hash that is equal for equal questions at equal cost, in every process and version of the libraries.

    It covers questions with their bounds and options, unit and relation, groups and listed keys, left-out rows, bounding,
    threshold, mechanism, scale, sensitivity, the exact cost, and which integers are released, on which grids:
    a stored release is those integers. It covers no cell, and not which frame is asked.
    """
    content = {
        "question": plan.describe(),
        "outputs": [[o.name, repr(o.question)] for o in plan.outputs],
        "policy": plan.policy.key,
        "by": [[str(c.name), c.kind] for c in plan.by],
        "keys": None if plan.keys is None else plan.keys.fingerprint,
        "bounding": None if plan.bounding is None else _bounds(plan.bounding),
        "found": [repr(plan.threshold), repr(plan.selection)],
        "measures": [repr(m) for m in plan.measures],
        "pieces": [[p.text, p.measure, p.part, str(p.noise.scale)] for p in plan.pieces],
        "grids": [[repr(p.layout.grid), repr(p.layout.second)] for p in plan.parts],
        "mechanism": plan.mechanism,
        "sensitivity": [plan.l1, plan.l2] if plan.outputs else None,
        "scale": plan.scale if plan.outputs else None,
        "cost": _numbers(plan.event),
    }
    if plan.tallies or plan.top is not None:
        content["tallies"] = [[repr(t) for t in plan.tallies], plan.top]
    if plan.complete:
        content["complete"] = [repr(a) for a in plan.complete]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def details(plan: Plan) -> Details:
    """What a ledger's row says about the plan."""
    sizes = {"L1": plan.l1, "L2": plan.l2} if plan.outputs else {}
    return Details(fingerprint(plan), json.dumps(sizes), json.dumps(plan.scale if plan.outputs else None))


def _bounds(b: Bounding) -> list[int | None]:
    """Without a limit over all groups as before there was one, so that stored answers are found."""
    return [b.rows, b.groups] if b.total is None else [b.rows, b.groups, b.total]


def _numbers(e: Event) -> list[str]:
    return [str(x) for x in (e.eps, e.delta, e.rho, e.delta_alone)]


def bounding_text(plan: Plan) -> str:
    """What of a unit counts, in words."""
    assert plan.bounding is not None
    b, unit = plan.bounding, plan.policy.unit_name
    rows = f"{b.rows} row{'s' if b.rows > 1 else ''}"
    if b.groups is None:
        return f"one {unit}: at most {rows}"
    if b.total is not None:
        each = "" if b.rows == b.total else f", {rows} in a group"
        return (
            f"one {unit}: at most {b.total} rows in all groups together, in at most {b.groups} groups{each}"
        )
    return f"one {unit}: at most {b.groups} group{'s' if b.groups > 1 else ''} × {rows}"
