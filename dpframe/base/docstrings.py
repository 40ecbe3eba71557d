"""Docstrings in sections: how they are read, and how those of several functions share texts."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any


def sections(text: str) -> dict[str, str]:
    """A numpy-style docstring by its sections; what comes before the first is under ''."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.cleandoc(text), flags=re.MULTILINE)
    return {"": parts[0]} | dict(zip(parts[1::2], parts[2::2]))


def joined(parts: Mapping[str, str]) -> str:
    """The docstring that has these sections."""
    texts = [f"{name}\n{'-' * len(name)}\n{text.strip()}" for name, text in parts.items() if name]
    return "\n\n".join([parts[""].strip(), *texts]) + "\n"


def entries(text: str) -> dict[str, str]:
    """A list of parameters by their names (of several together, the first)."""
    blocks = re.split(r"\n(?=\S)", text.strip())
    return {re.split(r"[\s,:]", block, maxsplit=1)[0]: block for block in blocks if block}


def documented(f: Callable[..., Any], shared: Mapping[str, str], **more: str) -> str | None:
    """The function's docstring with all of its parameters, in their order, and with sections that it lacks.

    Parameters
    ----------
    shared : mapping
        Entries of parameters that the docstring itself says nothing of.
    **more : str
        Sections by name, which come after that of the parameters.
    """
    if f.__doc__ is None:
        return None
    found = sections(f.__doc__)
    entry = {**shared, **entries(found.get("Parameters", ""))}
    names = f.__code__.co_varnames[: f.__code__.co_argcount + f.__code__.co_kwonlyargcount]
    listed = "\n".join(entry[n] for n in names if n in entry)
    head = {"": found.pop(""), "Parameters": listed, "Returns": found.pop("Returns", "")}
    rest = {k: v for k, v in {**more, **found}.items() if k != "Parameters"}
    return joined({k: v for k, v in {**head, **rest}.items() if v})
