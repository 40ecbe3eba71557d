"""The planted faults still fit the package; ``make planted`` shows that each is caught."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from planted.fault import Fault
from planted.faults import FAULTS

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "dpframe"


def test_there_are_as_many_faults_as_promised():
    assert len({f.name for f in FAULTS}) == len(FAULTS) >= 25
    assert len({(f.file, f.old, f.new) for f in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_a_fault_fits_its_file(fault):
    """Its text is there once; with the fault the file is another program, and still one."""
    healthy = (PACKAGE / fault.file).read_text()
    planted = fault.planted_in(healthy)
    assert ast.dump(ast.parse(planted)) != ast.dump(ast.parse(healthy))
    for name in fault.tests:
        file, _, test = name.partition("::")
        text = (TESTS / file).read_text()
        function = test.partition("[")[0]
        assert not test or re.search(rf"^def {re.escape(function)}\(", text, re.MULTILINE)


@pytest.mark.parametrize("text", ["nothing", "twice twice"])
def test_a_fault_without_one_place_is_refused(text):
    with pytest.raises(ValueError, match="not once"):
        Fault("twice", "layout.py", "twice", "once", ()).planted_in(text)


def test_every_file_of_tests_can_be_read_in_one_sitting_and_has_a_name_of_its_own():
    """pytest takes two files of one name for one module."""
    files = [p for p in TESTS.rglob("*.py") if "__pycache__" not in p.parts]
    assert not [p.name for p in files if len(p.read_text().splitlines()) > 600]
    names = [p.name for p in files if p.name.startswith("test_")]
    assert len(set(names)) == len(names)
