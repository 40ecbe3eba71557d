"""The SQLite file: durable commits, reads, and every fault in plain words.

One connection per process, opened when it is needed. It is closed before a fork, because SQLite's locks
and shared memory do not survive one, and opened again on both sides.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import urllib.parse
from collections.abc import Iterator
from typing import Any

from dpframe.errors import Arg, Call, InputError, LedgerError, check_text, wrong_type
from dpframe.ledger import anchor
from dpframe.ledger.declaration import Declaration
from dpframe.ledger.rows import Row, broken, digest, encode, make

APPLICATION = 0x64706C67  # "dplg"
SCHEMA = 1
TABLES = {
    "lease": "CREATE TABLE lease (sequence INTEGER PRIMARY KEY, owner TEXT NOT NULL, nonce TEXT NOT NULL)",
    "log": (
        "CREATE TABLE log (sequence INTEGER PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL,"
        " prev TEXT NOT NULL, hash TEXT NOT NULL)"
    ),
    "stored": "CREATE TABLE stored (digest TEXT PRIMARY KEY, payload BLOB NOT NULL) WITHOUT ROWID",
}
RESTORE = (
    "put back the newest copy of the ledger and its anchor, or open a new ledger and count this one as spent"
)
_parents: set[str] = (
    set()
)  # ledgers that a parent was charging at the fork; their locks are not this process's


class Store:
    """The file at ``path``. All calls need the process's ledger lock."""

    def __init__(self, path: str, patience: float) -> None:
        self.path, self.patience = path, patience
        self.inside = False  # a transaction
        self._connection: sqlite3.Connection | None = None
        self._files: dict[str, tuple[int, int]] = {}

    # ---- the file ----

    def create(self, row: Row) -> None:
        """Make the tables and write the first row (the file must be there, and empty)."""
        with self._faults():
            c = self._connect()
            c.execute("BEGIN IMMEDIATE")
            c.execute(f"PRAGMA application_id = {APPLICATION}")
            c.execute(f"PRAGMA user_version = {SCHEMA}")
            for table in TABLES.values():
                c.execute(table)
            self.append(row)
            c.execute("COMMIT")
            self.disconnect()

    def connection(self) -> sqlite3.Connection:
        """The open connection; LedgerError unless it is of the file that lies at ``path`` now."""
        if self.path in _parents:
            raise broken(
                self.path, "was forked in the middle of a charge", "charge in the parent, or fork before"
            )
        if self._connection is None:
            before = self._identity("")
            if os.stat(self.path).st_size == 0:
                raise broken(self.path, "is empty", RESTORE)
            c = self._connect()
            self._check_kind(c)
            self._files = {"": before}
        for suffix, known in self._files.items():
            if self._identity(suffix) != known:
                raise broken(
                    self.path, f"was replaced or deleted while it was open ({suffix or 'the file'})", RESTORE
                )
        assert self._connection is not None
        return self._connection

    def _identity(self, suffix: str) -> tuple[int, int]:
        try:
            s = os.stat(self.path + suffix)
        except FileNotFoundError:
            what = (
                "does not exist"
                if not self._files
                else f"was deleted while it was open ({suffix or 'the file'})"
            )
            made = Call("dp.Ledger.create", self.path, eps=...)
            hint = RESTORE if self._files else (made, " makes one")
            raise broken(self.path, what, hint) from None
        if s.st_nlink > 1:
            raise broken(
                self.path, "has a second name (a hard link), under which others would not see it", "copy it"
            )
        return s.st_dev, s.st_ino

    def _connect(self) -> sqlite3.Connection:
        uri = f"file:{urllib.parse.quote(self.path)}?mode=rw"  # never creates
        c = sqlite3.connect(
            uri, uri=True, timeout=self.patience, isolation_level=None, check_same_thread=False
        )
        self._connection = c
        if c.execute("PRAGMA journal_mode = wal").fetchone() != ("wal",):
            raise broken(self.path, "can't be written ahead (no WAL mode here)", "put it on a local disk")
        for setting in (
            "synchronous = FULL",
            "fullfsync = ON",
            "trusted_schema = OFF",
            "cell_size_check = ON",
        ):
            c.execute(f"PRAGMA {setting}")
        return c

    def _check_kind(self, c: sqlite3.Connection) -> None:
        if c.execute("PRAGMA application_id").fetchone() != (APPLICATION,):
            raise broken(self.path, "is not a ledger of dpframe", "name the file that dp.Ledger.create made")
        version = c.execute("PRAGMA user_version").fetchone()[0]
        if version != SCHEMA:
            raise broken(
                self.path,
                f"has schema {version}; this version of dpframe knows schema {SCHEMA}",
                "use the dpframe that made it",
            )
        tables = dict(c.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall())
        if tables != TABLES:
            raise broken(self.path, "does not have the tables of a ledger", RESTORE)

    def disconnect(self) -> None:
        """Close the connection. The next call opens it again."""
        c, self._connection, self._files = self._connection, None, {}
        if c is not None:
            with contextlib.suppress(sqlite3.Error):
                c.close()

    def abandon(self) -> None:
        """In a forked child: give up a connection that the parent was using, and never close it.

        Closing would undo the parent's transaction in the memory that the two share.
        """
        if self._connection is not None:
            import ctypes

            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
            _parents.add(self.path)
            self._connection, self._files = None, {}

    # ---- transactions ----

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """One snapshot."""
        try:
            with self._faults():
                self._begin("BEGIN")
            yield
        finally:
            with self._faults():
                self._roll_back()

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction that nobody else can be in; committed and on disk at its end, or as if it had not been."""
        try:
            with self._faults():
                self._begin("BEGIN IMMEDIATE")
            self.inside = True
            yield
            with self._faults():
                self.connection().execute("COMMIT")  # if the files are still the same
        except BaseException:
            with contextlib.suppress(LedgerError), self._faults():
                self._roll_back()  # in a forked child there is nothing to roll back: the connection was given up
            raise
        finally:
            self.inside = False

    def _begin(self, how: str) -> None:
        c = self.connection()
        self._roll_back()  # what an interrupt left open
        c.execute(how)

    def _roll_back(self) -> None:
        c = self._connection
        if c is None or not c.in_transaction:
            return
        c.execute("ROLLBACK")
        for suffix in ("-wal", "-shm"):  # there from the first read on, until the last connection closes
            if suffix not in self._files:
                self._files[suffix] = self._identity(suffix)

    @contextlib.contextmanager
    def _faults(self) -> Iterator[None]:
        """Whatever SQLite or the system says becomes a LedgerError."""
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeError) as e:
            what, hint = _words(e, self.patience)
        except BaseException:
            if self._connection is not None and not self._files:
                self.disconnect()  # it was refused while it was being opened
            raise
        else:
            return
        self.disconnect()
        raise broken(self.path, what, hint) from None

    # ---- rows ----

    def rows(self, start: int, most: int = -1) -> list[tuple[Any, ...]]:
        with self._faults():
            return self._run(
                "SELECT sequence, kind, body, prev, hash FROM log WHERE sequence >= ? ORDER BY sequence LIMIT ?",
                start,
                most,
            )

    def append(self, row: Row) -> None:
        with self._faults():
            self._run(
                "INSERT INTO log VALUES (?, ?, ?, ?, ?)", row.sequence, row.kind, row.body, row.prev, row.hash
            )

    def keep(self, payload: bytes) -> None:
        with self._faults():
            self._run("INSERT OR IGNORE INTO stored VALUES (?, ?)", digest(payload), payload)

    def payload(self, name: str) -> bytes:
        """The stored release with this digest, checked against it."""
        with self._faults():
            found = self._run("SELECT payload FROM stored WHERE digest = ?", name)
        if not found or not isinstance(found[0][0], bytes) or digest(found[0][0]) != name:
            raise broken(self.path, "lost or changed a stored release", RESTORE)
        return found[0][0]

    def lease(self, sequence: int) -> tuple[str, str] | None:
        """(owner, nonce) of who is answering the charge."""
        with self._faults():
            found = self._run("SELECT owner, nonce FROM lease WHERE sequence = ?", sequence)
        return (str(found[0][0]), str(found[0][1])) if found else None

    def set_lease(self, sequence: int, owner: str, nonce: str) -> None:
        with self._faults():
            self._run("INSERT OR REPLACE INTO lease VALUES (?, ?, ?)", sequence, owner, nonce)

    def end_lease(self, sequence: int) -> None:
        with self._faults():
            self._run("DELETE FROM lease WHERE sequence = ?", sequence)

    def sound(self) -> None:
        """Ask SQLite whether the whole file is well formed."""
        with self._faults():
            said = self._run("PRAGMA integrity_check(1)")
        if said != [("ok",)]:
            raise broken(self.path, "is damaged", RESTORE)

    def _run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        assert self._connection is not None
        return self._connection.execute(sql, values).fetchall()


def _words(e: Exception, patience: float) -> tuple[str, str]:
    said = str(e)
    if isinstance(e, sqlite3.Error) and "lock" in said:
        return (
            f"was locked by others for more than {patience:g} seconds",
            "see which program keeps it locked, then ask again",
        )
    if "readonly" in said or isinstance(e, PermissionError) or "unable to open" in said:
        return "can't be opened for writing", "give write permission on the file and its folder"
    if "full" in said or "I/O" in said or isinstance(e, OSError):
        return "can't be written or read (no room on the disk, or a fault of it)", "make room, then ask again"
    if "not a database" in said:
        return "is not a database, or its head was overwritten", RESTORE
    return "is damaged", RESTORE


def place_of(path: str | os.PathLike[str], name: str) -> str:
    """The file that ``path`` means, wherever the process goes; links are followed, as SQLite does."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise wrong_type(
            Arg(name), f" takes a path, not a {type(path).__name__}.", hint=Arg(name, "budget.db")
        )
    if not os.fspath(path) or "\0" in os.fspath(path):
        raise InputError(Arg(name, os.fspath(path)), " is no path.", hint=Arg(name, "budget.db"))
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        check_text(os.fspath(path), name)
    return os.path.realpath(path)


def write_new(path: str, declaration: Declaration) -> None:
    """Make a ledger with its anchor, or neither."""
    at = declaration.anchor or f"{path}.anchor"
    for there in (path, f"{path}-wal", f"{path}-journal", at):
        if os.path.lexists(there):
            raise InputError(
                f"{there} is there already.",
                hint=(
                    Call("dp.Ledger", path),
                    " opens a ledger; if it was deleted, what it held stays spent: choose another name, and count it",
                ),
            )
    row = make(None, "open", encode(declaration))
    made: list[str] = []
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))  # two at once: one makes it
        made += [path, f"{path}-wal", f"{path}-shm"]
        anchor.write(at, anchor.Mark(declaration.ledger, row.head), new=True)
        made.append(at)
        Store(path, 1.0).create(row)
        for folder in {os.path.dirname(path), os.path.dirname(at)}:
            fd = os.open(folder, os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)
    except BaseException as e:
        for name in made:
            with contextlib.suppress(OSError):
                os.unlink(name)
        if not isinstance(e, OSError):
            raise
        what = f"can't be made ({e.strerror})"
    else:
        return
    raise broken(path, what, "a folder that exists and can be written, and a name that is free")
