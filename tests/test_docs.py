"""The reference: every public name is in it, and its docstring has the sections that a user looks for."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import dpframe as dp
from dpframe.api import FramePlans, Grouped
from dpframe.bound import Options
from dpframe.partition import Part, Partition

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
PUBLIC = {name: getattr(dp, name) for name in dp.__all__ if callable(getattr(dp, name))}
CLASSES = {n: x for n, x in PUBLIC.items() if inspect.isclass(x)}
FUNCTIONS = {n: x for n, x in PUBLIC.items() if not inspect.isclass(x)}
MORE = {"FramePlans": FramePlans, "Grouped": Grouped, "Partition": Partition, "Part": Part}
VERBS = {f"FrameDP.{n}": getattr(dp.FrameDP, n) for n in dir(dp.FrameDP) if n[0] != "_" and n != "plan"}
VERBS["Grouped.keys"] = Grouped.keys

# What asks nothing about data, so that there is nothing to claim: conversions, the registry, doors and declarations.
NO_CLAIM = {
    "frame",
    "mechanism",
    "mechanisms",
    "public",
    "query",
    "register_mechanism",
    "unregister_mechanism",
}
NO_CLAIM |= {"delta_of_mu", "eps_of_mu", "eps_of_rho", "mu_of_eps", "rho_of_eps"}
NEVER_FAILS = {"mechanisms", "unregister_mechanism"}


def sections(doc: str) -> dict[str, str]:
    """A numpy-style docstring by its sections; what comes before the first is under ''."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", doc, flags=re.MULTILINE)
    return {"": parts[0]} | dict(zip(parts[1::2], parts[2::2]))


def document(x: object) -> str:
    return inspect.cleandoc(x.__doc__ or "")


def members() -> Iterator[tuple[str, object]]:
    for name, cls in {**CLASSES, **MORE}.items():
        for attribute in dir(cls):
            found = inspect.getattr_static(cls, attribute)
            f = getattr(found, "fget", None) or getattr(found, "__func__", found)
            ours = inspect.isfunction(f) and f.__module__.startswith("dpframe")
            if ours and not attribute.startswith("_"):
                yield f"{name}.{attribute}", f


def parameters(f: object) -> list[str]:
    return [p for p in inspect.signature(f).parameters if p not in ("self", "cls")]


def test_every_public_name_is_in_the_reference():
    listed = set()
    for page in REFERENCE.glob("*.md"):
        listed |= set(
            re.findall(r"auto(?:function|class|exception):: dpframe\.(\w+)$", page.read_text(), re.MULTILINE)
        )
    assert set(PUBLIC) - listed == set()
    assert {n for n in listed if not hasattr(dp, n)} == set()


@pytest.mark.parametrize("module", ["audit", "plot", "testing"])
def test_modules_that_load_on_first_use_are_in_the_reference(module):
    if module == "plot":
        pytest.importorskip("altair", reason="the pictures need dpframe[plot]")
    found = import_module(f"dpframe.{module}")
    pages = "".join(page.read_text() for page in REFERENCE.glob("*.md"))
    listed = set(re.findall(rf"auto\w+:: dpframe\.{module}\.(\w+)$", pages, re.MULTILINE))
    assert listed == set(found.__all__)


def test_every_verb_is_in_the_reference():
    text = (REFERENCE / "frames.md").read_text()
    listed = re.search(r"FrameDP\n.*\n   :members: (.*)", text)[1].split(", ")
    assert set(listed) == {n for n in dir(dp.FrameDP) if n[0] != "_"}


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_has_a_docstring(name):
    assert len(document(PUBLIC[name])) > 20


@pytest.mark.parametrize(("name", "member"), [pytest.param(n, m, id=n) for n, m in members()])
def test_every_method_and_property_has_a_docstring_that_names_its_parameters(name, member):
    doc = document(member)
    assert len(doc) > 10
    wanted = parameters(member)
    shared = set(wanted) & set(Options.__annotations__)
    if "**options" in doc:  # one class documents them for all verbs
        wanted = [p for p in wanted if p not in shared]
    assert [p for p in wanted if p.strip("*") not in doc and p not in ("_", "options")] == []


@pytest.mark.parametrize("name", sorted({**FUNCTIONS, **VERBS}))
def test_functions_say_what_goes_in_what_comes_out_and_what_goes_wrong(name):
    f = {**FUNCTIONS, **VERBS}[name]
    found = sections(document(f))
    if parameters(f):
        assert "Parameters" in found
    assert "Returns" in found or inspect.signature(f).return_annotation in (None, "None")
    assert "Raises" in found or name in NEVER_FAILS
    assert ">>>" in found.get("Examples", "")
    if name not in NO_CLAIM:
        assert "Privacy:" in found.get("Notes", "")


@pytest.mark.parametrize("name", sorted(n for n, c in CLASSES.items() if not issubclass(c, BaseException)))
def test_classes_have_an_example(name):
    assert ">>>" in sections(document(CLASSES[name])).get("Examples", "")


def test_the_check_sees_what_is_missing():
    """The sections are found as sections, and not as words somewhere in the text."""
    found = sections("Do it.\n\nReturns nothing.\n\nNotes\n-----\nPrivacy: none.\n")
    assert set(found) == {"", "Notes"}
    assert "Privacy:" in found["Notes"]
