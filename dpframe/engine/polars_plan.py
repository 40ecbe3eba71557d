"""What the plan of a lazy Polars frame does to its rows, read from the plan's own tree; for strict sessions.

A plan is *row by row* if every row of its result is made from one row of the data, and from no other. With a privacy
unit it is enough that a row is made from rows of one unit. :func:`foreign_step` names the first step that is not
known to be so.

Privacy: the guarantee is about the rows that reach ``.dp``; a step that lets one row change others moves more than the
noise is made for. So nothing is known but what the tables below list, each kind of node and of function by the name
that Polars' tree has for it, with the types of its inputs where they matter; what the tree can't show in full is
refused. Python's view of the tree is the one that other engines for Polars read (``visit``): typed nodes, before any
optimization, with no copy of the data.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl

from dpframe.engine.polars_fallible import NOT_LITERAL, STRICT, binary_fails, cast_fails, function_fails
from dpframe.engine.polars_literals import inputs_of, literal
from dpframe.engine.polars_scans import foreign_scan, plain_ipc_scans
from dpframe.engine.polars_steps import (
    BITS,
    BOOLEAN,
    EQUALITIES,
    FAILS,
    FUNCTIONS,
    GUESSED,
    LITERAL_REST,
    NOT_EVEN_IN,
    OF_CATEGORIES,
    READ,
    UNSEEN,
    WITHIN_BOOLEAN,
    WITHIN_UNITS,
    bare_name,
)
from dpframe.frames.public import MARK

FLAGS = ("SORTED_ASC", "SORTED_DESC")


class _Foreign(Exception):
    """A step that is not known to be row by row; says which."""


def foreign_step(frame: pl.LazyFrame, unit: tuple[str, ...]) -> str | None:
    """The first step of a lazy plan that is not known to be row by row (within units, if there are); else None.

    Privacy: see the module. The step is named in Polars' words for it, never by a cell or a literal.
    """
    try:
        plan = frame._ldf.with_optimizations(pl.QueryOptFlags.none()._pyoptflags).visit()
        if plan.version()[0] not in READ:
            return "a plan of another version of Polars than this dpframe can read"
        _Reader(plan, frame).rows(plan.get_node(), unit, kept=True)
    except _Foreign as step:
        return str(step)
    except NotImplementedError as e:  # the tree has no view of this step
        return UNSEEN.get(str(e), str(e).split("{")[0].split(" GroupBy ")[0].strip()[:60])
    except Exception:
        return "a plan that can't be read"
    return None


class _Reader:
    def __init__(self, plan: Any, frame: pl.LazyFrame) -> None:
        self.plan, self.frame = plan, frame
        self.fixed = False  # whether the unit must be as the data have it: below joins and unions
        self.steps = bool(plan.get_inputs())  # whether the plan is more than a scan

    # ---- nodes: from rows to rows ----

    def rows(self, at: int, unit: tuple[str, ...], *, kept: bool) -> None:
        """Raise _Foreign unless the node makes rows one by one, or within units.

        ``unit`` are the columns of this node that are the unit's, empty for rows; ``kept`` says whether no step above
        makes them anew: only then are the rows of one unit here the rows of one unit in the end.
        """
        self.plan.set_node(at)
        try:
            node = self.plan.view_current_node()
        except NotImplementedError as e:
            if str(e) == "ipc scan" and plain_ipc_scans(self.frame):
                return
            raise
        kind = type(node).__name__
        read = getattr(self, f"_{kind.lower()}", None)
        if read is None:
            raise _Foreign(kind.upper())
        read(node, unit, kept)

    def _dataframescan(self, node: Any, unit: tuple[str, ...], kept: bool) -> None:
        """Privacy: comparisons and joins of the plan search columns that are flagged as sorted as if they were: where a
        flag lies, one row decides about many."""
        if node.projection is not None or node.selection is not None:
            raise _Foreign("a scan with a selection")
        if any(any(s.flags.get(f) for f in FLAGS) for s in pl.DataFrame._from_pydf(node.df)):
            raise _Foreign("columns flagged as sorted (pl.DataFrame(df.to_arrow()) has none)")

    def _pythonscan(self, node: Any, unit: tuple[str, ...], kept: bool) -> None:
        """Privacy: a function may hand over columns that it flags as sorted; PyArrow's have no flags."""
        if any(x is not None for x in node.options[3:]):  # a predicate, a number of rows
            raise _Foreign("SLICE")
        if self.steps and node.options[2] != "pyarrow":
            raise _Foreign("a step on rows from a Python function, which may say that they are sorted")

    def _scan(self, node: Any, unit: tuple[str, ...], kept: bool) -> None:
        step = foreign_scan(node, self.plan.get_schema(), self.steps)
        if step is not None:
            raise _Foreign(step)

    def _cache(self, node: Any, unit: tuple[str, ...], kept: bool) -> None:
        self.rows(node.input, unit, kept=kept)

    _simpleprojection = _cache

    def _filter(self, node: Any, unit: tuple[str, ...], kept: bool) -> None:
        self._all(node.input, [node.predicate], unit, kept)
        self.rows(node.input, unit, kept=kept)

    def _hstack(self, node: Any, unit: tuple[str, ...], kept: bool) -> None:
        kept = self._unit_as_it_was(node.input, node.exprs, unit) and kept
        self._all(node.input, node.exprs, unit, kept)
        self.rows(node.input, unit, kept=kept)

    def _select(self, node: Any, unit: tuple[str, ...], kept: bool) -> None:
        kept = self._unit_as_it_was(node.input, node.expr, unit) and kept
        self._all(node.input, node.expr, unit, kept)
        if not any(self._has_column(e.node) for e in node.expr):
            raise _Foreign("SELECT of no column")
        self.rows(node.input, unit, kept=kept)

    def _mapfunction(self, node: Any, unit: tuple[str, ...], kept: bool) -> None:
        name, *rest = node.function
        if name == "explode" and unit and kept and not set(unit) & set(rest[0]):
            pass  # a unit's row becomes several rows of the unit
        elif name != "unnest" or set(unit) & set(rest[0]):
            raise _Foreign(str(name).upper().replace("_", " "))
        self.rows(node.input, unit, kept=kept)

    def _groupby(self, node: Any, unit: tuple[str, ...], kept: bool) -> None:
        """A group whose keys hold the whole unit is made of one unit's rows, whatever is made of them."""
        options = node.options
        plain = options.dynamic is None and options.rolling is None and options.slice is None
        if not (unit and kept and plain and not node.apply) or not self._holds(node.input, node.keys, unit):
            raise _Foreign("AGGREGATE")
        self._all(node.input, node.keys, unit, kept)
        self._all(node.input, node.aggs, unit, kept, inside=True)
        self.rows(node.input, unit, kept=kept)

    def _distinct(self, node: Any, unit: tuple[str, ...], kept: bool) -> None:
        """Rows that are compared within units alone."""
        _, subset, _, part = node.options
        self.plan.set_node(node.input)
        subset = subset or list(self.plan.get_schema())
        if not (unit and kept and part is None and set(unit) <= set(subset)):
            raise _Foreign("UNIQUE")
        self.rows(node.input, unit, kept=kept)

    def _union(self, node: Any, unit: tuple[str, ...], kept: bool) -> None:
        """Rows of several frames: a unit's rows stay the unit's; a row, though, may be in two of them."""
        if not (unit and kept) or node.slice is not None:
            raise _Foreign("UNION")
        self._several(node.inputs, unit)

    def _several(self, nodes: Iterable[int], unit: tuple[str, ...]) -> None:
        """Frames that meet in the rows of a unit: in each of them the unit is the column that its data have."""
        before, self.fixed = self.fixed, True
        for node in nodes:
            self.rows(node, unit, kept=True)
        self.fixed = before

    def _join(self, node: Any, unit: tuple[str, ...], kept: bool) -> None:
        """With a public frame, at most one row of which matches a row; or of two frames on the unit.

        Privacy: a row joined with at most one public row stays one row, or goes (inner, semi, anti), by its own cells
        alone. Two frames joined on the unit, by its one name and as the data have it in both, make rows of one unit of
        rows of that unit. (A column of another name may be of somebody else: a manager's id.)
        """
        how, _, part, *_ = node.options
        if (
            how not in ("Inner", "Left", "Semi", "Anti")
            or part is not None
            or getattr(node, "predicate", None) is not None
        ):
            raise _Foreign(f"{how} JOIN".upper())
        left = self._plain_names(node.input_left, node.left_on)
        right = self._plain_names(node.input_right, node.right_on)
        codes = self._public(node.input_right)
        if codes is not None and right is not None:
            if how in ("Semi", "Anti") or codes.select(right).is_unique().all():
                self._all(node.input_left, node.left_on, unit, kept)
                return self.rows(node.input_left, unit, kept=kept)
            raise _Foreign(f"{how} JOIN with a public frame in which a key is there twice")
        same = {a for a, b in zip(left or (), right or ()) if a == b}
        if not (unit and kept and set(unit) <= same):
            raise _Foreign(f"{how} JOIN".upper())
        return self._several((node.input_left, node.input_right), unit)

    def _public(self, at: int) -> pl.DataFrame | None:
        """The public frame that is scanned here, and nothing done to it; None for anything else."""
        self.plan.set_node(at)
        node = self.plan.view_current_node()
        if type(node).__name__ != "Filter":
            return None
        self.plan.set_node(node.input)
        scan = self.plan.view_current_node()
        e = self.plan.view_expression(node.predicate.node)
        if not (_is(scan, "DataFrameScan") and _is(e, "BinaryExpr")):
            return None
        mark = self.plan.view_expression(e.left)
        return pl.DataFrame._from_pydf(scan.df) if _is(mark, "Literal") and mark.value == MARK else None

    # ---- the unit's columns ----

    def _plain_names(self, at: int, exprs: Iterable[Any]) -> list[str] | None:
        """The names of plain columns; None if one is made of something."""
        self.plan.set_node(at)
        found = [self.plan.view_expression(e.node) for e in exprs]
        return [e.name for e in found] if all(type(e).__name__ == "Column" for e in found) else None

    def _holds(self, at: int, keys: Iterable[Any], unit: tuple[str, ...]) -> bool:
        """Whether the whole unit is among the keys, each of its columns as it is and under its own name."""
        self.plan.set_node(at)
        plain = {k.output_name for k in keys if self._is_column(k.node, k.output_name)}
        return set(unit) <= plain

    def _unit_as_it_was(self, at: int, exprs: Iterable[Any], unit: tuple[str, ...]) -> bool:
        """Whether no expression makes a column of the unit anew."""
        self.plan.set_node(at)
        as_it_was = all(self._is_column(e.node, e.output_name) for e in exprs if e.output_name in unit)
        if self.fixed and not as_it_was:
            raise _Foreign("JOIN or UNION of a unit that is made anew")
        return as_it_was

    def _is_column(self, node: int, name: str) -> bool:
        e = self.plan.view_expression(node)
        return type(e).__name__ == "Column" and e.name == name

    # ---- expressions: from columns to a column ----

    def _all(
        self, at: int, exprs: Iterable[Any], unit: tuple[str, ...], kept: bool, inside: bool = False
    ) -> None:
        self.plan.set_node(at)
        for e in exprs:
            self._expression(e.node, unit if kept else (), inside)

    def _has_column(self, at: int) -> bool:
        e = self.plan.view_expression(at)
        return type(e).__name__ in ("Column", "Window") or any(self._has_column(i) for i in inputs_of(e))

    def _expression(self, at: int, unit: tuple[str, ...], inside: bool) -> None:
        """Raise _Foreign unless the expression looks at one row; ``inside`` a group of one unit, at that group."""
        e = self.plan.view_expression(at)
        kind = type(e).__name__
        if kind == "Literal":
            if type(e.value).__name__ == "PySeries":
                raise _Foreign("a Series")
        elif kind == "Function":
            self._function(e, inside)
        elif kind == "BinaryExpr":
            name = str(e.op).partition(".")[2]
            self._types(name, (e.left, e.right), EQUALITIES)
            if binary_fails(name, [self.plan.get_dtype(i) for i in (e.left, e.right)]):
                raise _Foreign(f"{name.lower()} of decimals or lists, which {FAILS}")
        elif kind == "Cast":
            self._cast(e)
        elif kind == "Window":
            if not unit or inside or e.options.kind != "groups_to_rows":
                raise _Foreign(self._inner_name(e.function))
            names = {x.name for x in map(self.plan.view_expression, e.partition_by) if _is(x, "Column")}
            if not set(unit) <= names:
                raise _Foreign(self._inner_name(e.function))
            for key in (*e.partition_by, *([] if e.order_by is None else [e.order_by])):
                self._expression(key, (), False)
            return self._expression(e.function, (), True)
        elif (kind == "Agg" and inside) or (
            kind in ("Len", "Sort", "SortBy", "Slice", "Filter", "Gather") and inside
        ):
            pass
        elif kind not in ("Column", "Ternary", "Alias"):
            raise _Foreign(str(e.name) if kind == "Agg" else kind.lower())
        for i in inputs_of(e):
            self._expression(i, unit, inside)
        return None

    def _inner_name(self, at: int) -> str:
        e = self.plan.view_expression(at)
        name = getattr(e, "name", None) or getattr(e, "function_data", ("over",))[0]
        return f"{bare_name(name)} over columns that are not the unit's"

    def _function(self, e: Any, inside: bool) -> None:
        name = str(e.function_data[0])
        family, dot, member = name.rpartition(".")
        if not dot:
            known = name in FUNCTIONS or (inside and name in WITHIN_UNITS)
        elif family == "BooleanFunction":
            known = member in BOOLEAN or (inside and member in WITHIN_BOOLEAN)
        elif family == "BitwiseFunction":
            known = member in BITS
        elif name == "StringFunction.Strptime":
            known = isinstance(e.function_data[1], str)  # else the format is guessed from the first cell
        elif family == "RollingFunction":
            known = inside
        else:
            known = family in NOT_EVEN_IN and member not in NOT_EVEN_IN[family].split()
        if not known:
            raise _Foreign(bare_name(name))
        if name in LITERAL_REST and not all(
            _is(self.plan.view_expression(i), "Literal") for i in e.input[1:]
        ):
            raise _Foreign(f"{bare_name(name)} of a column")
        self._types(name, e.input, OF_CATEGORIES)
        values = [literal(self.plan.view_expression(i)) for i in e.input]
        types = list(map(self.plan.get_dtype, e.input))
        if any(v is NOT_LITERAL for v in values) and function_fails(name, e.function_data, values, types):
            raise _Foreign(f"{bare_name(name)}, which {FAILS}")

    def _cast(self, e: Any) -> None:
        old, new = self.plan.get_dtype(e.expr), e.dtype
        literal = _is(self.plan.view_expression(e.expr), "Literal")
        if _has(old, pl.Categorical) and new.base_type() not in (pl.String, pl.Categorical, pl.Enum):
            raise _Foreign("cast of categories")
        if _has(old, pl.String) and any(_has(new, t) for t in GUESSED) and not literal:
            raise _Foreign("cast of text to dates")  # the format is guessed from the first cells
        if _has(old, pl.Object):
            raise _Foreign("cast of objects")
        if not literal and cast_fails(old, new, e.options == STRICT):
            raise _Foreign(f"cast, which {FAILS}")

    def _types(self, name: str, inputs: Iterable[int], of_categories: frozenset[str]) -> None:
        """Categories may be compared for equality and named; the numbers behind them depend on other rows."""
        types = [self.plan.get_dtype(i) for i in inputs]
        if any(_has(t, pl.Object) for t in types):
            raise _Foreign(f"{bare_name(name)} of objects")
        if name not in of_categories and any(_has(t, pl.Categorical) for t in types):
            raise _Foreign(f"{bare_name(name)} of categories")


def _is(e: Any, kind: str) -> bool:
    return type(e).__name__ == kind


def _has(dtype: Any, wanted: Any) -> bool:
    """Whether a type is of a kind, or holds it."""
    if dtype.base_type() == wanted:
        return True
    if isinstance(dtype, pl.Struct):
        return any(_has(f.dtype, wanted) for f in dtype.fields)
    inner = getattr(dtype, "inner", None)
    return inner is not None and _has(inner, wanted)
