"""Every page of docs/proofs names tests, and all tests that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(p for p in (ROOT / "docs/proofs").glob("*.md") if p.name != "index.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_proof_names_tests_that_are_there(page):
    text = page.read_text()
    named = re.findall(r"`tests/([\w/]+\.py)::(\w+)`", text)
    assert len(named) >= 3
    assert len(named) == text.count("`tests/")
    for file, test in named:
        assert re.search(rf"^def {test}\(", (ROOT / "tests" / file).read_text(), re.MULTILINE), (file, test)
    assert "**Claim.**" in text


def test_the_index_lists_every_page():
    index = (ROOT / "docs/proofs/index.md").read_text()
    assert set(re.findall(r"\]\((\w[\w-]*\.md)\)", index)) == {p.name for p in PAGES}
    assert len(PAGES) >= 7
    assert "(proofs/index.md)" in (ROOT / "docs/index.md").read_text()
