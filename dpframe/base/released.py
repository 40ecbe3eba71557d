"""What is public because it was released."""

from __future__ import annotations

from typing import Any


class Released:
    """A released answer: its ``value`` may be given on as a parameter of a later question."""

    value: Any
