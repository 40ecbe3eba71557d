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
