"""Objects that hold a budget: a copy would have it twice, so there is none."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from dpframe.errors import Message, wrong_type


class Uncopied:
    """Refuses copy, deepcopy and pickle.

    Privacy: what was charged to one copy would be unknown to the other, and both would grant the whole budget.
    """

    _copied: ClassVar[Message]
    _pickled: ClassVar[Message]

    def __copy__(self) -> NoReturn:
        raise wrong_type(self._copied)

    def __deepcopy__(self, memo: Any) -> NoReturn:
        raise wrong_type(self._copied)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise wrong_type(self._pickled)
