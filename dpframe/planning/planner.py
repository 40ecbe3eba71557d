"""Where the noise of every number is decided, from the question, column types and the policy. No data."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpframe.accounting.events import Event, compose
from dpframe.accounting.policy import Policy
from dpframe.errors import Call, InputError
from dpframe.frames.columns import Column
from dpframe.frames.contract import require
from dpframe.layout.families import UNITS
from dpframe.mechanisms.base import Target
from dpframe.planning.assembly import Draft
from dpframe.planning.bounding import make_bounding, reach_of
from dpframe.planning.candidates import add_sums
from dpframe.planning.key_rules import best_rule
from dpframe.planning.pieces import ChoicePiece, Output, Part, index_of
from dpframe.planning.plan import Plan
from dpframe.planning.request import (
    Request,
    by_target,
    check_numbers,
    columns_read,
    complete_axes,
    grouping,
    output_names,
)
from dpframe.statistics.base import Aggregate, ChoiceTerms

NOTHING = Event(Fraction(0), Fraction(0), Fraction(0))


def make_plan(request: Request, source: Any, policy: Policy) -> Plan:
    """Plan a request on a frame's schema under a policy.

    Parameters
    ----------
    request : Request
    source : Source
        Of which the columns' types are read, and what its engine can't do.
    policy : Policy
        The protected unit and the neighbouring relation.

    Raises
    ------
    InputError, MechanismError
        Before anything is spent, from parameters and schema alone.

    Privacy: :func:`~dpframe.planning.candidates.add_sums` and :meth:`Planner.add_choice` say what the noise is for. Aggregates with
    epsilons of their own are planned one after another, and their costs compose by addition. With
    ``complete_cases=True`` no column that is read has a missing cell, as all of them are asked of the same complete
    rows (:class:`~dpframe.frames.contract.Ask`): one predicate, whatever pays for an answer.
    """
    types: dict[Hashable, Column] = {}

    def column(name: Hashable) -> Column:
        if name not in types:
            types[name] = source.column(name)
        return types[name]

    by, keys = grouping(request, column)
    asked = replace(request, keys=keys)
    resolved = [a.resolved(column) for a in request.aggregates]
    if resolved and all(a.whole_rows for a in resolved):
        request = replace(request, complete=True)
    if request.complete:
        resolved = [a.among_complete() for a in resolved]
    request = replace(request, aggregates=tuple(a.alone() if request.scalar else a for a in resolved))
    names = output_names(request)
    check_numbers(request.aggregates, column)
    about_units = [UNITS in a.families(types) for a in request.aggregates]
    if policy.unit is None and any(about_units):
        rows = "single rows: a row is the unit."
        if policy.contributions > 1:
            rows = f"any {policy.unit_name}, whosever they are: there is no unit to be counted."
        raise InputError(
            f"count_units() counts units, and this session protects {rows}",
            hint=(Call("count"), ", or ", Call("dp.Session", eps=1, unit="user_id")),
        )
    rows_matter = not all(a.families(types) == (UNITS,) for a in request.aggregates)
    bounding = make_bounding(
        request.limits,
        policy,
        column,
        by=[c.name for c in by],
        keys=keys,
        rows_matter=rows_matter,
        units_matter=any(about_units),
    )
    if bounding is not None:
        require(source, "units", "A session with a unit")
    unknown = bool(by) and keys is None
    read = columns_read(request) if request.complete else ()
    laid_out = {c: replace(t, nullable=t.nullable and c not in read) for c, t in types.items()}
    planner = Planner(request, laid_out, policy, bounding, reach_of(policy, bounding, keys, grouped=bool(by)))
    for group, target in by_target(request, unknown):
        planner.add(group, target, thresholded=unknown and not planner.events)
    if any(t.distinct for t in planner.tallies):
        require(source, "distinct", "n_unique")
    index = index_of(planner.outputs, types, alone=len(request.aggregates) == 1)
    if not request.aggregates:
        planner.find_keys(request.target)
    outputs = tuple(sorted(planner.outputs, key=lambda o: names.index(o.name)))
    one = len(outputs) == 1 or (bool(outputs) and request.aggregates[0].pair)
    return Plan(
        outputs=outputs,
        pieces=tuple(planner.pieces),
        parts=tuple(planner.parts),
        measures=tuple(planner.measures),
        tallies=tuple(planner.tallies),
        by=by,
        keys=keys,
        bounding=bounding,
        threshold=planner.threshold,
        selection=planner.selection,
        event=NOTHING if keys and not keys.size else compose(tuple(planner.events)),
        policy=policy,
        columns=tuple(types.values()),
        target=request.target,
        scalar=request.scalar and index is None and one,
        index=index,
        top=request.top,
        request=asked,
        complete=complete_axes(read, planner.measures),
        rules=planner.rules,
    )


class Planner(Draft):
    """Plans one group of aggregates after another."""

    def add(self, group: Sequence[Aggregate], target: Target, *, thresholded: bool) -> None:
        """Plan the aggregates that share ``target``: sums get noise together, each choice is drawn by itself.

        Privacy: choices and parts of sums have equal shares of eps (or rho), which compose by addition: of p parts
        and c choices the sums together have p/(p + c) of it, and each choice 1/(p + c).
        """
        choices = [a for a in group if a.chosen]
        sums = [a for a in group if not a.chosen]
        parts = len(self.fork().lay_split(sums, thresholded)) if choices else 1
        total = parts + len(choices)

        def share(part: int) -> Target:
            eps, rho = (None if x is None else x * part / total for x in (target.eps, target.rho))
            return Target(eps, target.delta, rho)

        first = len(self.parts)
        if parts:
            add_sums(self, sums, share(parts) if choices else target, thresholded=thresholded)
        for a in choices:
            self.add_choice(a, share(1))
        if choices:
            self.parts[first:] = [replace(p, fused=total) for p in self.parts[first:]]

    def add_choice(self, a: Aggregate, target: Target) -> None:
        """Calibrate the mechanism that chooses the answer of ``a``, and append its piece, part, outputs and cost.

        Privacy: what is compared (the rows in a candidate's bin, or its sum) moves by as much as the rows of one
        unit that count in one group: R of them (``Reach.rows``), each by 1 or by the span of the bounds; twice that
        under replace_one where it matters, which each chooser's own argument says. Every group is chosen for by
        itself, so a unit in L0 groups (``Reach.groups``) meets L0 choices, and each gets eps/L0; groups nobody
        listed are compared by the same bins, and their keys are paid for by the threshold of the sums. The
        chooser's event is what all of this costs; nothing else of the target is spent.
        """
        alone = all(x.chosen for x in self.request.aggregates)
        request = self.request
        terms = ChoiceTerms(
            self.types, self.reach, target, request.mechanism, self.fold, request.pure, alone, self.row_steps
        )
        selection = a.selection(terms)
        chooser, part = selection.chooser, len(self.parts)
        tally = 0 if selection.tally is None else self.tally(selection.tally)
        sums = tuple((coordinate, self.measure(measure)) for coordinate, measure in selection.sums)
        moved, layout = chooser.sensitivity, selection.layout(len(self.pieces))
        self.parts.append(Part(layout, a.column, moved, moved**2, chooser.mechanism, 1, chooser.event))
        self.pieces.append(ChoicePiece(tally, chooser, part, sums))
        self.outputs += [Output(n, a, answer, part) for n, answer in zip(a.names, a.answers([layout]))]
        self.events.append(chooser.event)

    def find_keys(self, target: Target) -> None:
        """How keys alone are found: by the rule of :mod:`dpframe.planning.key_rules`."""
        self.__dict__ |= best_rule(self, target).__dict__
