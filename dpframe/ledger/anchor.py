"""The anchor: a small file that remembers how far the ledger has come.

Privacy: a ledger put back from an older copy, cut at its end or without its write-ahead log would offer
again what was spent. The anchor names the ledger's last known row; a ledger that does not hold that row
is refused. It is written after each commit, under the writer's lock, and never moves backwards; one that
is behind (a crash between the two writes) is moved forward. Undetectable is what rolls back both files
together: nobody can tell without a head that was printed elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass

from dpframe.accounting.claims import Head
from dpframe.errors import Call, Code, InPython, LedgerError

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Mark:
    """What an anchor holds: whose it is, and the last row it knows."""

    ledger: str
    head: Head


def read(path: str) -> Mark:
    """The anchor at ``path``; LedgerError if it is missing or damaged."""
    try:
        with open(path, "rb") as f:
            data = f.read(4096)
    except FileNotFoundError:
        raise LedgerError(
            f"The anchor {path} is missing, so nobody can tell whether the ledger is the newest. Nothing was released.",
            hint=(
                "put the anchor back beside the ledger, or name its place: ",
                Call("dp.Ledger", Code("path"), anchor=...),
            ),
        ) from None
    except OSError as e:
        raise LedgerError(
            f"The anchor {path} can't be read ({e.strerror}). Nothing was released.",
            hint="check the permissions",
        ) from None
    try:
        text, check, end = data.decode("ascii").split("\n")
        if end or check != hashlib.sha256(text.encode()).hexdigest():
            raise ValueError
        held = json.loads(text)
        if held["format"] != FORMAT:
            raise ValueError
        return Mark(held["ledger"], Head(int(held["sequence"]), str(held["hash"])))
    except (ValueError, KeyError, TypeError):
        raise LedgerError(
            f"The anchor {path} is damaged or of another version. Nothing was released.",
            hint="put back the anchor from the newest backup that the ledger has gone beyond",
        ) from None


def write(path: str, mark: Mark, *, new: bool = False) -> None:
    """Put ``mark`` at ``path``, wholly or not at all, unless the anchor there knows more (needs the writer's lock).

    ``new`` makes the anchor and refuses one that is there (FileExistsError).
    """
    held = {"format": FORMAT, "ledger": mark.ledger, "sequence": mark.head.sequence, "hash": mark.head.hash}
    text = json.dumps(held, sort_keys=True, separators=(",", ":"))
    data = f"{text}\n{hashlib.sha256(text.encode()).hexdigest()}\n".encode()
    if new:
        _put(path, data, os.O_EXCL)
        return
    if read(path).head.sequence >= mark.head.sequence:
        return
    aside = f"{path}.new"
    try:
        _put(aside, data, os.O_TRUNC)
        os.replace(aside, path)
    except OSError as e:
        raise LedgerError(
            f"The anchor {path} can't be written ({e.strerror}). Nothing was released; what was charged stays"
            " charged.",
            hint=(
                "make room or give write permission, then ",
                InPython("ask again with the same request_id", "run again"),
            ),
        ) from None


def _put(path: str, data: bytes, how: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | how, 0o666)
    try:
        if os.write(fd, data) != len(data):
            raise OSError(28, "No space left on device")
        os.fsync(fd)
    finally:
        os.close(fd)
