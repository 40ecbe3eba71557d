"""The reference: every public name is in it, and its docstring has the sections that a user looks for."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import dpframe as dp
from dpframe.accounting.report import Report
from dpframe.api.advice import Advice
from dpframe.api.namespaces import FramePlans, Grouped
from dpframe.api.options import Options
from dpframe.api.partition import Part, Partition
from dpframe.ledger.sums import LedgerEntry
from dpframe.mechanisms.base import Noise
from dpframe.planning.explain import Explanation
from dpframe.release.answers import FloatAnswer, IntAnswer, PairAnswer
from dpframe.session.statement import Statement
from dpframe.statistics.table import STATISTICS

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PUBLIC = {name: getattr(dp, name) for name in dp.__all__ if callable(getattr(dp, name))}
CLASSES = {n: x for n, x in PUBLIC.items() if inspect.isclass(x)}
FUNCTIONS = {n: x for n, x in PUBLIC.items() if not inspect.isclass(x)}
MORE = {"FramePlans": FramePlans, "Grouped": Grouped, "Partition": Partition, "Part": Part}
MORE |= {
    c.__name__: c
    for c in (Advice, Explanation, FloatAnswer, IntAnswer, LedgerEntry, Noise, PairAnswer, Report, Statement)
}
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
    assert ".. STATISTICS" in (REFERENCE / "questions.md").read_text()  # docs/conf.py puts the table there
    listed |= set(STATISTICS)
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
    for name in found.__all__:
        assert len(document(getattr(found, name))) > 20, name
        for attribute, member in (
            vars(getattr(found, name)).items() if inspect.isclass(getattr(found, name)) else ()
        ):
            if inspect.isfunction(member) and not attribute.startswith("_"):
                assert len(document(member)) > 10, f"{name}.{attribute}"


def test_every_verb_is_in_the_reference():
    text = (REFERENCE / "frames.md").read_text()
    listed = re.search(r"FrameDP\n.*\n   :members: (.*)", text)[1].split(", ")
    assert listed[0] == "STATISTICS"  # docs/conf.py puts the table there
    assert {*listed[1:], *STATISTICS} == {n for n in dir(dp.FrameDP) if n[0] != "_"}


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


DOCS = REFERENCE.parent
PAGES = [
    "why",
    "quickstart",
    "concepts",
    "statistics",
    "selection",
    "groups-and-keys",
    "outputs",
    "display",
    "pictures",
    "choosing",
    "choosing-bounds",
    "unit-and-eps",
    "accounting",
    "mechanisms",
    "ledger",
    "budget-plans",
    "release-files",
    "cli",
    "promises",
    "performance",
    "comparison",
    "glossary",
    "mistakes",
    "proofs/index",
    "reference/index",
    "how-to/index",
    "how-to/coming-from-opendp",
    "how-to/coming-from-tumult",
    "how-to/statistical-table",
    "how-to/unknown-categories",
    "how-to/nightly-job",
    "how-to/many-rows-per-person",
    "how-to/per-person-totals",
    "how-to/two-periods",
    "how-to/shares-and-conditions",
    "how-to/wrong-bounds",
    "how-to/restart-and-run-all",
    "how-to/excel-and-sql",
    "how-to/weights",
    "how-to/pre-registered-plan",
    "how-to/choosing-eps",
]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_there_and_shows_what_it_says(page):
    """Each runs lines of its own (but for those that are words or tables alone), and the index leads to it."""
    text = (DOCS / f"{page}.md").read_text()
    wordy = ("glossary", "reference/index", "proofs/index", "promises", "performance")
    assert ">>>" in text or page in wordy
    folder, _, name = page.rpartition("/")
    index = (DOCS / folder / "index.md").read_text() if name != "index" else (DOCS / "index.md").read_text()
    assert f"{name}.md" in index


def test_concepts_have_their_traps():
    text = (DOCS / "concepts.md").read_text()
    for concept in ("Unit", "Relation", "Bounds", "Budget", "Composition"):
        section = re.search(rf"^## {concept}.*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        assert "trap" in section[0].lower(), concept
        assert ">>>" in section[0], concept


def test_every_mistake_has_a_check_that_runs():
    text = (DOCS / "mistakes.md").read_text()
    mistakes = re.split(r'^\*\*"', text, flags=re.MULTILINE)[1:]
    assert len(mistakes) >= 17
    for m in mistakes:
        assert ">>>" in m, m[:60]
        assert "*Here*" in m, m[:60]


def test_the_glossary_is_in_english_and_chinese():
    rows = [r for r in (DOCS / "glossary.md").read_text().splitlines() if r.startswith("| ")][1:]
    assert len(rows) >= 40
    for row in rows:
        english, chinese, meaning = (c.strip() for c in row.strip("|").split("|"))
        assert english
        assert re.search(r"[\u4e00-\u9fff]|^[δρε]$", chinese), row
        assert re.search(r"[\u4e00-\u9fff]", meaning), row


def test_the_comparison_says_of_every_row_where_it_is_from():
    text = (DOCS / "comparison.md").read_text()
    head, _, *rows = [r for r in text.splitlines() if r.startswith("|")]
    assert all(lib in head for lib in ("OpenDP", "Tumult", "PipelineDP", "SmartNoise", "diffprivlib"))
    for row in rows[1:-2]:  # the first says what each asks; the last two, papers and languages, are no claims
        assert "(run)" in row or "(doc)" in row, row


# Blocks that are no Python of ours: commands, other libraries' code, and files that tests of their own read.
NOT_RUN = {
    "audit.md": 2,
    "cluster.md": 1,  # tests/unit/engine/test_engines.py
    "how-to/coming-from-opendp.md": 1,
    "how-to/coming-from-tumult.md": 1,
    "quickstart.md": 1,
    "release-files.md": 1,  # tests/unit/budget_plans/test_release_file.py
}


def test_every_block_of_code_runs():
    """What looks like code is run as a doctest, or is counted above."""
    found: dict[str, int] = {}
    for path in DOCS.rglob("*.md"):
        blocks = re.findall(r"^```(\w*|\{[\w-]+\})\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)
        still = sum(">>>" not in block and kind[:1] != "{" for kind, block in blocks)
        if still:
            found[str(path.relative_to(DOCS))] = still
    assert found == NOT_RUN


@pytest.mark.parametrize(
    "page", [*sorted(DOCS.rglob("*.md")), DOCS.parent / "README.md"], ids=lambda p: p.name
)
def test_pages_name_no_file_of_the_package(page):
    """What a user imports has a face: ``dpframe``, ``.typing``, ``.mechanisms``, ``.testing``, ``.audit``, ``.plot``, ``.cli``, ``.ledger``."""
    text = page.read_text()
    inner = r"accounting|api|base|budget_plans|display|engine|frames|layout|noise|planning|pipeline|release|session|statistics"
    assert re.findall(rf"(?:from|import) dpframe\.(?:{inner})\b", text) == []
    assert re.findall(r"(?:from|import) dpframe\.\w+\.\w+", text) == []
    assert re.findall(r"auto\w+:: dpframe\.(?!typing|mechanisms|testing|audit|plot)\w+\.\w+", text) == []
