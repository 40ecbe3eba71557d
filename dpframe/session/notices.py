"""What sessions tell the analyst. From calls and schema, never from cells."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable

from dpframe.errors import Arg, Call, Piece, warn
from dpframe.session.account import Entry, answer_at
from dpframe.session.session import Session

_ID = re.compile(
    r"(^|_)(id|uuid|guid)$|^(user|username|customer|patient|person|member|email|ssn|household)(_?(name|no|nr|number))?$",
    re.IGNORECASE,
)


def say(session: Session, entry: Entry, names: Iterable[Hashable]) -> None:
    """Tell the analyst what they may not expect.

    Privacy: depends on calls and schema, never on cells, nor on where an object happens to lie in memory. A question
    that is repeated is told of at the 2nd, 10th, 100th, ... time, in the same words for the same calls.
    """
    if not session._limited and not session._said:
        session._said = True
        warn(
            "No session is open: this call is recorded but nothing limits the total.",
            hint=("with ", Call("dp.Session", eps=1), " as s: ..."),
        )
    if entry.closes:
        warn(
            f"{entry.question} was charged by rho alone; from now on this session adds up rho, not eps, and would grant ",
            Arg("eps", session.remaining.eps),
            ".",
            hint=("a larger ", Arg("delta_calls"), ", or ", Arg("mechanism", "laplace")),
        )
    if entry.repeat_of is not None and session._limited:
        times = sum(entry.repeat_of in (e.repeat_of, e.index) for e in session._entries)
        if times == 2 or (times >= 10 and times == 10 ** (len(str(times)) - 1)):
            warn(
                f"{entry.question} is asked for the {times}{'nd' if times == 2 else 'th'} time in this session and was"
                " charged again.",
                *_first_answer(session, entry.repeat_of),
                " Filters of one frame are asked at one cost together by groupby(...) or partition_by(...).",
            )
    if session._policy.unit is None and not session._warned_id:
        found = next((str(x) for x in names if isinstance(x, str) and _ID.search(x)), None)
        if found is not None:
            session._warned_id = True
            k = session._policy.contributions
            rows, many = ("One row is", "many") if k == 1 else (f"Any {k} rows are", f"more than {k}")
            warn(
                f"{rows} protected, not one {found!r}: whoever has {many} rows is protected less. See"
                " docs/unit-and-eps.md."
            )


def _first_answer(session: Session, index: int) -> tuple[Piece, ...]:
    """Where the first answer to a repeated question is kept, if it was given."""
    answer = answer_at(session._entries, index)
    if answer is None:
        return ()
    rest = "; if it was of the same data, read that instead (if of another filter, ignore this)."
    return (" The first answer is ", answer, rest)
