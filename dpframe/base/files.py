"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping

from dpframe.base.signals import uninterrupted
from dpframe.errors import InputError

ENDINGS = (".parquet", ".csv")


def write_atomic(path: str, content: bytes) -> None:
    """Write one file whole, or leave the one that is there; see :func:`write_together`."""
    write_together({path: content})


def write_together(contents: Mapping[str, bytes]) -> None:
    """Write all files or none: each whole to a temporary file in its directory, flushed to disk, then all are renamed.

    A reader sees an old file or a new one. Where one can't be put in its place, those before it get their old content
    back. A process that is killed between two renames leaves a new file beside an old one, and a temporary file, whose
    name starts with a dot and ends in ``.tmp``; writing again mends it.

    Raises
    ------
    OSError
        When the disk is full, or a directory can't be written to; the old files are there as before.
    """
    made: list[str] = []  # temporary files, to be removed if anything fails
    back: list[tuple[str, str | None]] = []  # what was replaced, and its old content
    try:
        ready = [(path, _written(path, content, made)) for path, content in contents.items()]
        with uninterrupted():  # Ctrl-C is heard before all renames, or after
            for path, temporary in ready:
                old = None
                if len(contents) > 1 and os.path.lexists(path):
                    old = _beside(path)
                    made.append(old)
                    try:
                        os.link(path, old, follow_symlinks=False)
                    except OSError:  # a file system without links
                        shutil.copy2(path, old, follow_symlinks=False)
                os.replace(temporary, path)
                back.append((path, old))
    except KeyboardInterrupt:
        if len(back) == len(contents):  # all are new
            back.clear()
        _put_back(back)
        raise
    except BaseException:
        _put_back(back)
        raise
    finally:
        for temporary in made:
            if os.path.lexists(temporary):
                os.unlink(temporary)
    for folder in dict.fromkeys(os.path.dirname(os.path.abspath(path)) for path in contents):
        _flush(folder)


def _put_back(back: list[tuple[str, str | None]]) -> None:
    with uninterrupted():
        for path, old in reversed(back):
            if old is None:
                os.unlink(path)
            else:
                os.replace(old, path)


def _beside(path: str) -> str:
    """The name of a temporary file in the directory of ``path``: as short as any file system takes."""
    folder = os.path.dirname(os.path.abspath(path))
    return os.path.join(folder, f".dpframe.{os.getpid()}.{secrets.token_hex(8)}.tmp")


def _written(path: str, content: bytes, made: list[str]) -> str:
    temporary = _beside(path)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    made.append(temporary)
    with os.fdopen(handle, "wb") as f:
        f.write(content)
        f.flush()
        os.fsync(f.fileno())
    return temporary


def _flush(folder: str) -> None:
    """The renames themselves must reach the disk, too."""
    if os.name == "posix":
        directory = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def writable(path: str) -> None:
    """Raise InputError unless a release could be written to ``path`` now."""
    folder = os.path.dirname(os.path.abspath(path))
    if not path.endswith(ENDINGS):
        raise InputError(f"{path!r} ends neither in .parquet nor in .csv.", hint="'table.parquet'")
    if not os.path.isdir(folder):
        raise InputError(
            f"{path!r} can't be written: there is no directory {folder!r}.", hint="make it first"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{path!r} can't be written: no permission in {folder!r}.", hint="another directory")
    longest = os.pathconf(folder, "PC_NAME_MAX") if hasattr(os, "pathconf") else 255
    if len(os.fsencode(os.path.basename(path))) + len(".json") > longest:
        raise InputError(
            f"{path!r} is too long a name for a file with its facts beside it.", hint="a shorter name"
        )
    for p in (path, f"{path}.json"):
        if os.path.isdir(p):
            raise InputError(f"{p!r} can't be written: it is a directory.", hint="another name")
