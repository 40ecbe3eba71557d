"""The verbs of frames, groups and plans: a method for each line of the table of statistics.

Type checkers and editors read ``verbs.pyi``, which ``tests/write_stubs.py`` writes from the same table.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from dpframe.api.options import OPTIONS, Options
from dpframe.base.docstrings import entries, joined, sections
from dpframe.base.wrong_calls import unknown_argument
from dpframe.statistics.question import AFTER, Statistic
from dpframe.statistics.table import STATISTICS

N = TypeVar("N")  # what a count comes back as
F = TypeVar("F")  # a number that is measured
P = TypeVar("P")  # a pair of numbers
R = TypeVar("R")  # a table

_OPTIONS = [inspect.Parameter(o, inspect.Parameter.KEYWORD_ONLY, default=None) for o in OPTIONS]
_PARAMETERS = """**options
    See :class:`~dpframe.typing.Options`: one of ``eps``, ``rho``, ``error``; and ``delta``, ``mechanism``,
    ``session``, ``label``, ``ci``, ``nonnegative``, ``round``. With ``error=``, ``rows=`` is a public guess of the
    number of rows where the error depends on it."""
_RAISES = """MechanismError
    For a mechanism that can't give the guarantee; nothing was spent.
BudgetExceeded, NoSession
    The session did not pay; no data was read."""


def verb(statistic: Statistic) -> Callable[..., Any]:
    """The method that asks a statistic; its documentation is that of the question."""
    own = statistic.parameters
    known = frozenset((*own, *OPTIONS))

    def asked(self: Any, *args: Any, **options: Any) -> Any:
        if not known.issuperset(options):
            wrong = next(name for name in options if name not in known)
            raise unknown_argument(statistic.name, wrong, (*own, *OPTIONS))
        arguments = {name: options.pop(name) for name in own if name in options}
        return self._ask_statistic(statistic, args, arguments, options)

    parameters = [
        inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
        *own.values(),
        *_OPTIONS,
    ]
    asked.__name__, asked.__qualname__ = statistic.name, f"Verbs.{statistic.name}"
    asked.__doc__ = _document(statistic)
    asked.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return asked


def _document(statistic: Statistic) -> str | None:
    """The question's docstring, with the options of a verb, and with the answer where the question was."""
    if statistic.ask.__doc__ is None:
        return None
    parts = sections(statistic.ask.__doc__)
    listed = entries(parts.get("Parameters", ""))
    kept = [text for name, text in listed.items() if name not in AFTER]
    answer = parts["Returns"].split("\n", 1)[1]
    return joined(
        {"": parts[""], "Parameters": "\n".join([*kept, _PARAMETERS])}
        | {"Returns": f"{statistic.returns}\n{answer}", "Raises": f"{parts['Raises'].strip()}\n{_RAISES}"}
        | {name: parts[name] for name in ("Notes", "Examples")}
    )


class Verbs(Generic[N, F, P, R]):
    """What can be asked of a frame, of groups, and of either as a plan; a subclass decides what comes back."""

    __slots__ = ()

    def _ask_statistic(
        self, statistic: Statistic, args: tuple[Any, ...], arguments: dict[str, Any], options: Options
    ) -> Any:
        raise NotImplementedError


for _statistic in STATISTICS.values():
    setattr(Verbs, _statistic.name, verb(_statistic))
