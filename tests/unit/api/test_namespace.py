"""The ``.dp`` namespace: importing, reloading, names that others took."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings

import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.api import accessors

DF = pl.DataFrame({"x": [1.0, 2.0, 3.0], "g": ["a", "b", "a"], "s": ["u", "v", "w"]})

quiet = pytest.mark.usefixtures("quiet")


# ---- the namespace: cases 58, 59 ----


@quiet
def test_importing_again_is_harmless():
    accessor = type(DF.dp)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        accessors.register()
        accessors.register()
        importlib.import_module("dpframe")
    assert type(DF.dp) is accessor
    with dp.Session(eps=1) as s:
        DF.dp.count(eps=0.1)
        DF.to_pandas().dp.count(eps=0.1)
    assert s.spent == 0.2


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, timeout=120
    )


def test_reloading_is_harmless():
    done = run_python(
        "import warnings; warnings.simplefilter('error')\n"
        "import importlib, dpframe, polars as pl, pandas as pd\n"
        "importlib.reload(dpframe)\n"
        "warnings.simplefilter('ignore')\n"
        "s = dpframe.Session(eps=1)\n"
        "pl.DataFrame({'x': [1]}).dp.count(eps=.1, session=s); pd.DataFrame({'x': [1]}).dp.count(eps=.1, session=s)\n"
        "print(float(s.spent))"
    )
    assert done.stdout.strip() == "0.2", done.stderr


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_namespace_of_another_library_is_left_alone_and_told(library):
    register = {
        "pandas": "pd.api.extensions.register_dataframe_accessor('dp')",
        "polars": "pl.api.register_dataframe_namespace('dp')",
    }[library]
    frame = {"pandas": "pd.DataFrame", "polars": "pl.DataFrame"}[library]
    done = run_python(
        "import pandas as pd, polars as pl\n"
        f"@{register}\n"
        "class Other:\n    def __init__(self, df): self.name = 'other'\n"
        "import dpframe as dp\n"
        f"df = {frame}({{'x': [1]}})\n"
        "print(df.dp.name)\n"
        "with dp.Session(eps=1) as s: dp.frame(df).count(eps=.1)\n"
        "print(float(s.spent))"
    )
    assert done.stdout.split() == ["other", "0.1"], done.stderr
    assert "another library" in done.stderr
    assert "dp.frame" in done.stderr


@quiet
def test_a_column_named_dp_is_measured_by_its_name():
    df = pd.DataFrame({"dp": [1.0, 2.0], "x": [1, 2]})
    with dp.Session(eps=2e6):
        assert round(df.dp.clip_sum("dp", bounds=(0, 5), eps=1e6), 3) == 3
        assert list(df["dp"]) == [1.0, 2.0]
        assert round(pl.from_pandas(df).dp.clip_sum("dp", bounds=(0, 5), eps=1e6), 3) == 3


@quiet
def test_a_lazy_answer_is_drawn_once():
    lazy = DF.lazy()
    with dp.Session(eps=1) as s:
        n = lazy.dp.count(eps=0.1)
        table = lazy.dp.groupby("g", keys=["a", "b"]).count(eps=0.1)
    assert isinstance(n, int)
    assert isinstance(table, pl.DataFrame)
    assert table.lazy().collect().equals(table.lazy().collect(engine="streaming"))
    assert s.spent == 0.2
