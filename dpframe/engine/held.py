"""What sources that hold a frame have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpframe.errors import Message, wrong_type


class Held:
    """A frame, whole and with everything that can be asked of it unless ``lacks`` says otherwise.

    Privacy: it goes into no pickle, whatever the engine's own frame would do.
    """

    library = "polars"  # of its answers
    part_of: Any = None
    lacks: Mapping[str, Message] = {}

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def wrong_literal(self) -> str | None:
        """A function in the frame's plan that was given a text or number that it can't use; None if none is seen."""
        return None

    def out_of_order(self) -> bool:
        """Whether the engine can't answer now, whatever the data are; asked of no row."""
        return False

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise wrong_type(
            "This holds the frame and can't be pickled.", hint="pickle the release, or bound.plan"
        )
