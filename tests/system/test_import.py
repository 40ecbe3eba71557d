"""What importing costs and what it brings: light, complete, typed, documented."""

from __future__ import annotations

import inspect
import pathlib
import re
import subprocess
import sys

import pytest
from sizes import AUDIT

import dpframe as dp

PACKAGE = pathlib.Path(dp.__file__).parent
HEAVY = (
    "scipy",
    "matplotlib",
    "altair",
    "duckdb",
    "pyspark",
    "dask",
    "ibis",
    "narwhals",
    "sqlframe",
    "hypothesis",
    "pytest",
)
FRAMES = "import pandas, polars\n"


def in_a_fresh_process(code: str) -> str:
    got = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert got.stderr == ""
    return got.stdout.strip()


def test_importing_loads_nothing_heavy():
    """Beyond what pandas and Polars load themselves."""
    code = (
        f"{FRAMES}import sys\nbefore = set(sys.modules)\nimport dpframe\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules and m not in before])"
    )
    assert in_a_fresh_process(code) == "[]"


def test_importing_dpframe_alone_loads_nothing_heavy():
    code = f"import sys, dpframe\nprint([m for m in {HEAVY!r} if m in sys.modules])"
    assert in_a_fresh_process(code) == "[]"


def test_importing_warns_of_nothing_and_prints_nothing():
    assert in_a_fresh_process("import warnings; warnings.simplefilter('error'); import dpframe") == ""


def test_importing_twice_or_reloading_keeps_one_accessor():
    code = (
        "import warnings; warnings.simplefilter('error')\n"
        "import importlib, pandas as pd, polars as pl, dpframe, dpframe.api.namespaces\n"
        "first = pd.DataFrame.__dict__['dp'], pl.DataFrame.__dict__['dp'], pl.LazyFrame.__dict__['dp']\n"
        "dpframe.api.accessors.register(); importlib.reload(dpframe)\n"
        "again = pd.DataFrame.__dict__['dp'], pl.DataFrame.__dict__['dp'], pl.LazyFrame.__dict__['dp']\n"
        "print(all(a is b for a, b in zip(first, again)))"
    )
    assert in_a_fresh_process(code) == "True"


def test_an_accessor_of_another_library_is_left_alone_and_said():
    code = (
        "import warnings, pandas as pd\n"
        "@pd.api.extensions.register_dataframe_accessor('dp')\n"
        "class Other:\n"
        "    def __init__(self, frame): self.hello = 'other'\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always')\n"
        "    import dpframe as dp\n"
        "df = pd.DataFrame({'x': [1]})\n"
        "print(df.dp.hello, len(said), 'dp.frame(df)' in str(said[0].message), round(dp.frame(df).count(eps=100)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    assert run.stdout.split() == ["other", "1", "True", "1"]


def test_nothing_is_registered_on_polars_expressions():
    """OpenDP owns Expr.dp."""
    assert in_a_fresh_process("import polars as pl, dpframe\nprint(hasattr(pl.Expr, 'dp'))") == "False"


def test_all_is_complete_sorted_and_importable():
    assert all(hasattr(dp, name) for name in dp.__all__)  # loads what is loaded on first use
    public = {n for n, v in vars(dp).items() if not n.startswith("_") and not inspect.ismodule(v)}
    assert public - {"register"} == set(dp.__all__) - {"__version__"}
    assert list(dp.__all__) == sorted(dp.__all__)
    scope: dict = {}
    exec("from dpframe import *", scope)
    assert set(dp.__all__) <= set(scope)


def test_everything_the_design_names_is_public():
    """The calls that this version has."""
    for name in (
        "Session",
        "count",
        "clip_sum",
        "clip_mean",
        "frame",
        "public",
        "mechanism",
        "DPError",
        "InputError",
    ):
        assert name in dp.__all__
    for name in (
        "NoSession",
        "BudgetExceeded",
        "LedgerError",
        "MechanismError",
        "Plan",
        "BoundPlan",
        "Release",
    ):
        assert name in dp.__all__


def test_the_package_is_typed():
    assert (PACKAGE / "py.typed").exists()


def callables() -> list[tuple[str, object]]:
    found = []
    for name in dp.__all__:
        thing = getattr(dp, name)
        if inspect.isclass(thing):
            found.append((name, thing))
            for member, value in inspect.getmembers(thing):
                own = getattr(value, "__module__", None) or getattr(
                    getattr(value, "fget", None), "__module__", ""
                )
                shown = not member.startswith("_") and (callable(value) or isinstance(value, property))
                if shown and str(own).startswith("dpframe"):
                    found.append((f"{name}.{member}", value))
        elif callable(thing):
            found.append((name, thing))
    return found


@pytest.mark.parametrize(("name", "thing"), callables(), ids=lambda x: x if isinstance(x, str) else "")
def test_every_public_callable_has_a_docstring(name, thing):
    text = thing.__doc__
    assert text
    assert len(text.split()) >= 2
    assert text.strip().split("\n")[0].rstrip().endswith((".", ":", "?"))


VERBS = ("count", "clip_sum", "clip_mean", "agg", "dp_agg", "groupby", "group_by")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_states_its_privacy_claim(verb):
    assert "Privacy:" in getattr(dp.FrameDP, verb).__doc__


@pytest.mark.parametrize("question", ["count", "clip_sum", "clip_mean"])
def test_every_question_states_its_privacy_claim(question):
    assert "Privacy:" in getattr(dp, question).__doc__


@pytest.mark.parametrize("verb", ["count", "clip_sum", "clip_mean", "agg"])
def test_every_verb_has_an_example(verb):
    assert ">>>" in getattr(dp.FrameDP, verb).__doc__


@pytest.mark.parametrize("verb", ["count", "clip_sum", "clip_mean"])
def test_signatures_show_the_options_to_editors(verb):
    names = set(inspect.signature(getattr(dp.FrameDP, verb)).parameters)
    assert {
        "eps",
        "delta",
        "rho",
        "error",
        "mechanism",
        "session",
        "label",
        "ci",
        "nonnegative",
        "round",
    } <= names


@pytest.mark.parametrize("verb", ["count", "clip_sum", "clip_mean", "agg"])
def test_everything_but_the_column_is_keyword_only(verb):
    """Case 119."""
    kinds = [p.kind for p in list(inspect.signature(getattr(dp.FrameDP, verb)).parameters.values())[1:]]
    assert sum(k is inspect.Parameter.POSITIONAL_OR_KEYWORD for k in kinds) <= 1


def test_imports_run_one_way():
    """The contracts of pyproject.toml hold: layers, no circles, engines know no noise, laws know no frames."""
    linter = pathlib.Path(sys.executable).with_name("lint-imports")
    if not linter.exists():
        pytest.skip("import-linter is not installed here")
    run = subprocess.run(
        [linter, "--no-cache", "--config", str(PACKAGE.parent / "pyproject.toml")],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=PACKAGE.parent,
    )
    assert run.returncode == 0, run.stdout
    assert re.search(r"Contracts: [5-9] kept, 0 broken", run.stdout)


def test_importing_costs_at_most_a_tenth_of_a_second_of_cpu():
    """After pandas and Polars, or a fifth of what these cost: a slow machine is slow at all three.

    The least of three, so that what else the machine does decides nothing.
    """
    code = f"""
import time
start = time.process_time()
{FRAMES}
middle = time.process_time()
import dpframe
print(middle - start, time.process_time() - middle)
"""
    taken = [[float(t) for t in in_a_fresh_process(code).split()] for _ in range(3)]
    assert min(own - max(0.1, frames / 5) for frames, own in taken) <= 0


def test_the_first_question_loads_what_it_needs_and_no_database():
    code = (
        "import sys, polars as pl, dpframe as dp\n"
        "before = 'dpframe.planning.planner' in sys.modules\n"
        "with dp.Session(eps=1): pl.DataFrame({'x': [1]}).dp.count(eps=1)\n"
        "print(before, 'dpframe.planning.planner' in sys.modules, 'sqlite3' in sys.modules)"
    )
    assert in_a_fresh_process(code) == "False True False"


@pytest.mark.parametrize(
    "first",
    ["dp.Session", "dp.count", "dp.plot", *(["dp.frame", "dp.public", "dp.consistent"] if AUDIT else [])],
)
def test_names_are_the_same_whatever_is_used_first(first):
    """A package of the same name (``dpframe.mechanisms``) never takes the place of a function."""
    code = (
        f"import dpframe as dp\n{first}\nimport dpframe.mechanisms.gaussian, dpframe.api.namespaces\n"
        "print(callable(dp.mechanisms), callable(dp.count), dp.Session.__name__, 'laplace' in dp.mechanisms())"
    )
    assert in_a_fresh_process(code) == "True True Session True"


def test_the_version_imports_no_frame_library():
    """As the console script calls it, and alone; everything else goes to the command line."""
    pytest.importorskip("importlib.metadata").version("dpframe")  # installed, as by `make`
    code = (
        "import sys; sys.argv[1:] = ['--version']\nimport dpframe_command\nassert dpframe_command.main() == 0\n"
        "print([m for m in ('pandas', 'polars', 'numpy', 'dpframe') if m in sys.modules])"
    )
    assert in_a_fresh_process(code).split("\n") == [f"dpframe {dp.__version__}", "[]"]


def test_the_console_script_is_the_command_line():
    text = (PACKAGE.parent / "pyproject.toml").read_text()
    assert 'dpframe = "dpframe_command:main"' in text
    code = (
        "import sys; sys.argv[1:] = ['plan', 'no-such-file.toml']\nimport contextlib, io, dpframe_command\n"
        "with contextlib.redirect_stderr(io.StringIO()) as said: code = dpframe_command.main()\n"
        "print(code, 'no-such-file.toml' in said.getvalue())"
    )
    assert in_a_fresh_process(code).split()[1] == "True"
