"""What comes back: an answer, its error, its cost and its facts. No true value, no frame."""

from __future__ import annotations

import datetime as dt
import os
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
import numpy.typing as npt
import polars as pl

from dpframe._version import __version__
from dpframe.accounting.events import Cost
from dpframe.base.files import writable
from dpframe.base.html import Page
from dpframe.base.released import Released
from dpframe.base.wrong_calls import checked
from dpframe.errors import InputError, NearNames, show
from dpframe.frames.contract import KeyColumns
from dpframe.mechanisms.base import Ints
from dpframe.mechanisms.thresholds import SMALL
from dpframe.planning.pieces import Output
from dpframe.planning.plan import Plan, bounding_text
from dpframe.release.answers import FloatAnswer, IntAnswer, PairAnswer, level_of
from dpframe.release.empty import holding_nothing, least_count
from dpframe.release.files import holdable, write_facts

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # for type checkers alone: it need not be installed

    V = TypeVar("V", default=Any)
else:
    from typing import TypeVar

    V = TypeVar("V")  # what the answer is


class Release(Released, Page, NearNames, Generic[V]):
    """A released answer.

    Attributes
    ----------
    value : number or frame
        An int or float for one question on the whole frame (it prints its error), else a frame of
        the caller's library: keys in their listed order, then one column per output (counts Int64).
    label : str or None
    replayed : bool
        Whether this is the stored answer to a request that was paid for earlier.
    released_at : datetime or None
        When a replayed answer was drawn and stored (UTC).
    repeat_of : int or None
        The index of the first charge for the same question in the session, if this is not the first.
    limited : bool
        Whether a budget limits the session that paid; false for the ambient one.
    draw : str
        Which draw of the noise this is: the same for copies, pickled ones too, and stored answers of one request.
    head : str or None
        Where the ledger stood with this release, as "row:hash". Keep it: a ledger that was put back to an
        older copy together with its anchor can only be told by a head that was kept elsewhere.
    facts : dict
        Everything a reader needs to recompute scale and margin; public, JSON-ready.

    Notes
    -----
    Privacy: holds noisy integers and the plan. The exact ones are gone before it is made.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> with dp.Session(eps=1e6) as s:
    ...     n = pl.DataFrame({"x": [1.0] * 50}).dp.count(eps=1e6, label="n")
    >>> s["n"].value, s["n"].interval(0.9), s["n"].facts["question"]
    (50 ± 0 (95% interval; eps=1000000 per row), (50, 50), 'count()')
    """

    def __init__(
        self,
        plan: Plan,
        noisy: list[Ints],
        keys: KeyColumns,
        *,
        label: str | None,
        ci: float | None,
        time: dt.datetime,
        draw: str,
        stored: Any = None,  # the receipt of the charge
    ) -> None:
        if plan.top is not None:  # post-processing: the largest of what is released
            order = np.argsort(-plan.outputs[0].answer.value(noisy), kind="stable")[: plan.top]
            noisy, keys = [x[order] for x in noisy], keys.take(order)
        self._plan, self._noisy, self._keys, self._ci = plan, noisy, keys, ci
        self.label, self.time, self.draw = label, time, draw
        self.head = None if stored is None else stored.head
        self.released_at = None if stored is None else stored.released_at
        self.replayed = self.released_at is not None
        self._version = __version__ if stored is None else stored.version or __version__
        entry = None if stored is None else stored.entries[0][1]
        self.repeat_of = None if entry is None else entry.repeat_of
        self.limited = stored is None or stored.entries[0][0]._limited
        self._columns = self._answers()
        self.value: V = self._value()

    @property
    def cost(self) -> Cost:
        """What it cost (exact)."""
        return self._plan.cost

    @property
    def _paid(self) -> str:
        """What it cost, for one unit, and what a unit counts for."""
        bounding = self._plan.bounding
        counted = ""
        if bounding is not None:
            groups = (
                "" if bounding.groups is None else f"{bounding.groups} group{'s' * (bounding.groups > 1)} of "
            )
            counted = f", each counted as at most {groups}{bounding.rows} row{'s' * (bounding.rows > 1)}"
            if bounding.total is not None:
                counted += f", {bounding.total} rows in all"
        return f"{self.cost.text()} per {self._plan.policy.unit_name}{counted}"

    @property
    def std(self) -> Any:
        """Standard deviation of the noise: a float, or a frame with a column per output."""
        return self._shape({o.name: o.answer.std(self._noisy, self._plan.laws) for o in self._ranged})

    @checked(example="s.last.interval(0.95)")
    def interval(self, level: float = 0.95) -> Any:
        """The interval that holds the exact clipped answer with probability ``level``.

        Returns
        -------
        (low, high), or a frame with ``<output>_low`` and ``<output>_high``
            For counts and sums from the law itself; for means Fieller's interval (approximate only
            in that it is cut to the bounds, never too short); for variances, covariances, correlations
            and quotients as ``dpframe.layout.moments`` says (to first order, with a margin for the second).
        """
        level = level_of(level)
        ends: dict[str, npt.NDArray[Any]] = {}
        for o in self._ranged:
            low, high = self._ends(o, level)
            ends[f"{o.name}_low"], ends[f"{o.name}_high"] = low, high
        if self._scalar:
            low, high = (x[0].item() for x in ends.values())
            return (low, high)
        return self._frame(ends)

    @checked(example="s.last.empty_looking()")
    def empty_looking(self, level: float = 0.95) -> Any:
        """The listed keys whose count may well be 0: its interval at ``level`` holds 0. Mistyped keys are among them.

        A key without rows is missed with probability 1 - ``level`` at most; small groups are there, too. Of several counts
        the one with the least margin is read, of rows or units before that of a column.

        Returns
        -------
        frame with the grouping columns, in the order of ``keys``

        Raises
        ------
        InputError
            Where keys were not listed, or nothing was counted.

        Notes
        -----
        Privacy: post-processing of what was released; it costs nothing.

        Examples
        --------
        >>> import dpframe as dp, polars as pl
        >>> df = pl.DataFrame({"city": ["Ghent"] * 500})
        >>> with dp.Session(eps=1e6) as s:
        ...     n = df.dp.groupby("city", keys=["Ghent", "Gent"]).count(eps=1e6)
        >>> s.last.empty_looking()["city"].to_list()
        ['Gent']
        """
        low, _ = self._ends(least_count(self._plan), level_of(level))
        return self._keys.take(holding_nothing(low)).frame({})

    @property
    def facts(self) -> dict[str, Any]:
        """Everything a reader needs to recompute scale and margin; public, JSON-ready."""
        plan = self._plan
        return {
            "question": plan.describe(),
            "label": self.label,
            "time": self.time.isoformat(),
            "unit": plan.policy.unit_name,
            "neighbors": plan.policy.neighbors,
            "eps": None if plan.event.eps is None else show(plan.event.eps),
            "delta": show(plan.event.delta),
            "rho": float(plan.event.rho),
            "grouped_by": [str(c.name) for c in plan.by] or None,
            "groups": None if plan.keys is None else plan.keys.size,
            "bounding": None if plan.bounding is None else bounding_text(plan),
            "threshold": _threshold_fact(plan),
            "missing": "; ".join(plan.missing) or None,
            "outputs": {o.name: self._fact(o) for o in plan.outputs},
            "ledger_head": self.head,
            "dpframe": self._version,
        }

    @checked(example="s.last.write('table.parquet')")
    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the released table as parquet or CSV, and its facts beside it as ``<path>.json``.

        The side-car holds ``facts``, ``columns`` (the type of each, which a CSV does not say) and ``margins_95``: a
        number for each output, or one for each row. A parquet file holds the same JSON under the metadata key
        "dpframe". Both files are written whole or neither is, and the same release always gives the same bytes. In a
        CSV, durations are text as ISO 8601 writes them.

        Raises
        ------
        InputError
            For another ending than ``.parquet`` or ``.csv``, or a directory that can't be written to.
        OSError
            When the disk does not take it; the release is kept, and older files are untouched.
        """
        text = os.fspath(path)
        writable(text)
        write_facts(text, *self.written())

    def written(self) -> tuple[pl.DataFrame, dict[str, Any]]:
        """The answer as files hold it: a table, and the side-car's facts.

        Raises
        ------
        InputError
            For a key that is not valid Unicode.
        """
        value = pl.DataFrame(self._columns) if self._scalar else self.value
        try:
            table = value if isinstance(value, pl.DataFrame) else pl.from_pandas(holdable(value))
        except UnicodeError:
            raise InputError(
                "A key of this release is not valid Unicode, and no file can hold it.",
                hint="keys of valid text",
            ) from None
        columns = {name: str(dtype) for name, dtype in table.schema.items()}
        return table, {**self.facts, "columns": columns, "margins_95": self._margins()}

    # ---- making the answer ----

    @property
    def _scalar(self) -> bool:
        return self._plan.scalar

    @property
    def _ranged(self) -> list[Output]:
        """The outputs that have a standard deviation and an interval; all of them when none has (they say why)."""
        return [o for o in self._plan.outputs if o.answer.ranged] or list(self._plan.outputs)

    def _ends(self, o: Output, level: float) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        low, high = o.answer.interval(self._noisy, self._plan.laws, level)
        if o.question.nonnegative:
            low, high = np.maximum(low, 0), np.maximum(high, 0)
        if o.integer:
            return np.floor(low).astype(np.int64), np.ceil(high).astype(np.int64)
        return low, high

    def _answers(self) -> dict[str, npt.NDArray[Any]]:
        columns: dict[str, npt.NDArray[Any]] = {}
        for o in self._plan.outputs:
            value = o.answer.value(self._noisy)
            if o.question.nonnegative:
                value = np.maximum(value, 0)
            if o.question.round is not None:
                value = rounded(value, o.question.round)
            columns[o.name] = value
            beside = o.answer.beside(self._noisy, self._plan.laws, self._ci or 0.95)
            if o.question.round is not None:
                decimals = o.question.round
                beside = {k: rounded(v, decimals) if v.dtype.kind == "f" else v for k, v in beside.items()}
            if beside:
                columns |= beside
            elif self._ci is not None and not self._scalar and o.answer.ranged:
                low, high = self._ends(o, self._ci)
                columns[f"{o.name}_moe"] = np.maximum(value - low, high - value)
        return columns

    def _value(self) -> Any:
        if not self._scalar:
            asked = self._plan.questions
            return self._frame(asked[0].arrange(self._columns) if len(asked) == 1 else self._columns)
        o = self._plan.outputs[0]
        values = [x[0].item() for x in self._columns.values()]
        if len(values) == 2:
            return PairAnswer(values, self)
        return IntAnswer(values[0], self) if o.integer else FloatAnswer(values[0], self)

    def _shape(self, columns: dict[str, npt.NDArray[Any]]) -> Any:
        return next(iter(columns.values()))[0].item() if self._scalar else self._frame(columns)

    def _frame(self, columns: dict[str, npt.NDArray[Any]]) -> Any:
        return self._keys.frame(columns)

    def _fact(self, o: Output) -> dict[str, Any]:
        plan = self._plan
        part = plan.parts[o.part]
        l1, l2 = plan.sensitivity(o)
        cells = o.answer.worth is None
        facts: dict[str, Any] = {
            "question": o.question.describe(),
            "mechanism": part.mechanism,
            "scale": plan.noise_scale(o),
            "scale_unit": "rows" if cells or o.question.in_rows else "the answer's unit",
            "noises": len(o.answer.coordinates()),
            "l1": l1,
            "l2": l2,
            "fused_parts": part.fused,
            "eps": None if part.event.eps is None else show(part.event.eps),
            "grid_step": float(part.layout.grid.step),
            "margin_95": o.error(plan.laws, None),
            "margin_of": o.margin_of,
            "nonnegative": o.question.nonnegative,
            "round": o.question.round,
        }
        if o.question.bounds is not None:
            facts["bounds"] = [float(b) for b in o.question.bounds]
        return facts

    def _margins(self) -> dict[str, Any]:
        """Margins of error at 95 %: one number, or one for each row where it depends on how many rows there are.

        None where an answer is missing.
        """
        margins: dict[str, Any] = {}
        for o in self._plan.outputs:
            fixed = o.error(self._plan.laws, None)
            if fixed is None:
                low, high = self._ends(o, 0.95)
                value = self._columns[o.name]
                each = np.maximum(value - low, high - value).tolist()
                margins[o.name] = [x if np.isfinite(x) else None for x in each]
            else:
                margins[o.name] = fixed
        return margins

    @property
    def plan(self) -> Plan:
        """The plan that was released; it holds no data."""
        return self._plan

    def __repr__(self) -> str:
        name = f" {self.label!r}" if self.label else ""
        head = f", ledger {self.head[:24]}" if self.head else ""
        again = f", a stored answer of {self.released_at:%Y-%m-%d %H:%M:%S} UTC" if self.released_at else ""
        return f"<dpframe release{name}: {self._plan.describe()}, {self._paid}{head}{again}>\n{self.value!r}"


def _threshold_fact(plan: Plan) -> dict[str, Any] | None:
    """Which found groups are told: by a threshold, or by the rule of keys alone."""
    t, s = plan.threshold, plan.selection
    rule = {} if plan.outputs else {"rule": plan.mechanism}
    if s is not None:
        return {
            "even_odds": s.size,
            "counted": plan.policy.counted,
            "delta": show(plan.event.delta),
            **rule,
        }
    if t is None:
        return None
    fact = {
        "least": t.size,
        "counted": t.counted,
        "delta": show(t.delta),
        "draws": len(t.coordinates),
        **rule,
    }
    if t.small:
        fact["min_units"] = t.small + 1
        fact["small"] = f"a group of {t.small} is told with a probability of at most {100 * SMALL:g} %"
    if t.filled is not None:
        fact |= {"weights": f"1/sqrt(groups of the {t.counted})", "filled": t.filled}
    return fact


def rounded(value: npt.NDArray[Any], decimals: int) -> npt.NDArray[Any]:
    """To so many decimals; a number whose multiple is beyond float64 has none, and stays as it is."""
    with np.errstate(over="ignore"):
        out = np.round(value, decimals)
    return np.where(np.isfinite(out), out, value)
