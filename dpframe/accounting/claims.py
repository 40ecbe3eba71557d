"""What a ledger is asked, and what it answers with."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from dpframe.accounting.policy import Charge


@dataclass(frozen=True, slots=True)
class Head:
    """Where a ledger stands: the number of its last row and that row's hash.

    Whoever keeps a head (it is printed with each release) can tell whether a ledger still holds it.

    Attributes
    ----------
    sequence : int
    hash : str
        64 hexadecimal digits.
    """

    sequence: int
    hash: str

    @property
    def text(self) -> str:
        """The head as "row:hash"."""
        return f"{self.sequence}:{self.hash}"

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}"


@dataclass(frozen=True, slots=True)
class Claim:
    """What a ledger is asked to charge, as it will stand in its row.

    Attributes
    ----------
    charge : Charge
        Event, question, mechanism and policy.
    label : str or None
    request_id : str or None
        Unique in its scope; asking again under it is free.
    fingerprint : str
        Of everything that decides cost and noise; no data.
    sensitivity, scale : str
    private : bool
        Whether noise comes from the operating system.
    """

    charge: Charge
    label: str | None
    request_id: str | None
    fingerprint: str
    sensitivity: str
    scale: str
    private: bool


@dataclass(eq=False)
class Ticket:
    """A granted charge: the right to one release.

    Attributes
    ----------
    sequence : int
        The row of the charge.
    time : datetime
        When it was charged (UTC).
    charged : bool
        Whether it was charged now. False for a stored release, and for a request whose owner died or gave
        up (True again if its charge has left the window, which then counts it anew).
    stored : bytes or None
        The release, if this request was answered before.
    released_at : datetime or None
        When that was stored.
    head : Head
        The ledger's head with the charge; with the release, if there is one.
    version : str or None
        The version of dpframe that drew the release, if this request was answered before.
    """

    sequence: int
    time: dt.datetime
    charged: bool
    stored: bytes | None
    released_at: dt.datetime | None
    head: Head
    version: str | None = None
    _lease: str | None = field(default=None, repr=False)
    _pid: int = field(default_factory=os.getpid, repr=False)


class Busy(Exception):
    """Somebody alive is answering this request. ``wait()`` returns when they have, or have given up.

    Raised by ``Transaction.reserve``, because a transaction must not wait: leave it, wait, try again.
    """

    def __init__(self, request_id: str, settle: Callable[[], None]) -> None:
        super().__init__(f"Request {request_id!r} is being answered.")
        self.request_id, self._settle = request_id, settle

    def wait(self) -> None:
        self._settle()
