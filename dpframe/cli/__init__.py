"""The command line: ``dpframe plan | run | ledger | audit | demo``."""

from dpframe.cli.commands import main

__all__ = ["main"]
