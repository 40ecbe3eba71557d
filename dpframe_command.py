"""The command ``dpframe``. It is outside the package so that ``dpframe --version`` imports no frame library."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version


def main() -> int:
    """Run the command line; see :mod:`dpframe.cli`."""
    if sys.argv[1:] == ["--version"]:
        try:
            print(f"dpframe {version('dpframe')}")
        except PackageNotFoundError:  # not installed: the package itself knows
            pass
        else:
            return 0
    from dpframe.cli import main as command

    return command()
