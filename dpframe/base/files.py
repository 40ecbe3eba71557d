"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets

from dpframe.errors import InputError

ENDINGS = (".parquet", ".csv")


def write_atomic(path: str, content: bytes) -> None:
    """Write ``content`` to a temporary file in the same directory, flush it to disk, and rename it.

    A reader sees the old file or the new one; after a crash a temporary file may be left over, whose
    name starts with a dot and ends in ``.tmp``.

    Raises
    ------
    OSError
        When the disk is full, or the directory can't be written to; the old file is untouched.
    """
    folder = os.path.dirname(os.path.abspath(path))
    temporary = os.path.join(folder, f".dpframe.{os.getpid()}.{secrets.token_hex(8)}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(content)
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    if os.name == "posix":  # the rename itself must reach the disk, too
        directory = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def writable(path: str) -> None:
    """Raise InputError unless a release could be written to ``path`` now."""
    folder = os.path.dirname(os.path.abspath(path))
    if not path.endswith(ENDINGS):
        raise InputError(f"{path!r} ends neither in .parquet nor in .csv. Hint: 'table.parquet'")
    if not os.path.isdir(folder):
        raise InputError(f"{path!r} can't be written: there is no directory {folder!r}. Hint: make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{path!r} can't be written: no permission in {folder!r}. Hint: another directory")
    longest = os.pathconf(folder, "PC_NAME_MAX") if hasattr(os, "pathconf") else 255
    if len(os.fsencode(os.path.basename(path))) + len(".json") > longest:
        raise InputError(
            f"{path!r} is too long a name for a file with its facts beside it. Hint: a shorter name"
        )
    for p in (path, f"{path}.json"):
        if os.path.isdir(p):
            raise InputError(f"{p!r} can't be written: it is a directory. Hint: another name")
