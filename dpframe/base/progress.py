"""How far a run is: a line in a terminal, a bar in a notebook, nothing where nobody looks.

``DPFRAME_PROGRESS=0`` in the environment turns it off everywhere.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

from dpframe.base.html import bar

WIDTH = 24


class Progress:
    """Tells which of several named steps is being taken.

    Parameters
    ----------
    names : iterable of str
        In the order in which they are taken.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(names)
        wanted = os.environ.get("DPFRAME_PROGRESS", "") != "0"
        self._cell: Any = _notebook() if wanted else None
        self._line = wanted and self._cell is None and sys.stderr is not None and sys.stderr.isatty()

    def show(self, name: str) -> None:
        """This one is being taken; those before it are done."""
        done, many = self._names.index(name), len(self._names)
        if self._cell is not None:
            self._cell(bar("run", [(done / many, 0.75), (1 / many, 0.35)], f"{done + 1} of {many}, {name}"))
        filled = WIDTH * done // many
        self._say(f"[{'#' * filled}{'.' * (WIDTH - filled)}] {done + 1}/{many} {name}")

    def clear(self) -> None:
        """Leave a terminal's line empty, for other words."""
        self._say("")

    def close(self, done: int) -> None:
        """The run has ended, with so many done."""
        self.clear()
        if self._cell is not None:
            many = len(self._names)
            self._cell(bar("run", [(done / many, 0.75)], f"{done} of {many} done"))

    def _say(self, text: str) -> None:
        if self._line:
            try:
                print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
            except (OSError, ValueError):  # nobody looks any more; a run goes on
                self._line = False


def _notebook() -> Any:
    """What shows HTML in this cell, always in the same place; None outside notebooks."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from importlib import import_module

    display: Any = import_module("IPython.display")
    handle = display.display(display.HTML(""), display_id=True)
    return lambda page: handle.update(display.HTML(page))
