"""A Release: value, error, facts, cost, and the files from which a stranger recomputes them."""

from __future__ import annotations

import json
import math

import pandas as pd
import polars as pl
import pytest
from tables import FRAME

import dpframe as dp
from conftest import as_kind, as_polars

pytestmark = pytest.mark.usefixtures("quiet")

EPS = 1e6


# ---- Release ----


def test_a_release_has_value_std_interval_facts_cost_and_label(kind):
    df = as_kind(kind, FRAME)
    with dp.Session(eps=3):
        r = df.dp.plan.clip_sum("k", bounds=(0, 9), eps=0.5, label="k").release()
    p = math.exp(-1 / 18)  # scale 9/.5
    assert isinstance(r, dp.Release)
    assert isinstance(r.value, int)
    assert r.std == pytest.approx(math.sqrt(2 * p) / (1 - p), rel=1e-6)
    assert r.cost == 0.5
    assert r.label == "k"
    low, high = r.interval(0.95)
    assert low < r.value < high
    assert "±" in repr(r)
    assert "clip_sum('k', bounds=(0, 9))" in repr(r)
    assert "clip_sum" in r._repr_html_()


def test_a_grouped_release_shapes_std_and_interval_like_its_table(kind):
    with dp.Session(eps=3):
        r = (
            as_kind(kind, FRAME)
            .dp.plan.groupby("g", keys=["a", "z"])
            .dp_agg(n=dp.count(), m=dp.clip_mean("x", bounds=(0, 10)), eps=1)
            .release()
        )
    assert type(r.std) is type(r.value)
    assert list(r.std.columns) == ["g", "n", "m"]
    assert r.std["g"].to_list() == ["a", "z"]
    assert list(r.interval(0.5).columns) == ["g", "n_low", "n_high", "m_low", "m_high"]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_stranger_recomputes_scale_and_margin_from_the_side_car(kind, ending, tmp_path):
    """From the file alone: Laplace scale l1 * parts / eps, margin from the discrete law."""
    path = tmp_path / f"cities.{ending}"
    with dp.Session(eps=3) as s:
        table = (
            as_kind(kind, FRAME)
            .dp.groupby("g", keys=["a", "b"])
            .dp_agg(n=dp.count(), s=dp.clip_sum("k", bounds=(0, 9)), eps={"n": 0.25, "s": 0.5}, label="t")
        )
        s.last.write(path)
    read = pl.read_parquet(path) if ending == "parquet" else pl.read_csv(path)
    assert read.columns == ["g", "n", "s"]
    assert read.rows() == as_polars(table).rows()
    facts = json.loads((tmp_path / f"cities.{ending}.json").read_text())
    assert facts["unit"] == "row"
    assert facts["neighbors"] == "add_remove"
    assert facts["groups"] == 2
    assert facts["grouped_by"] == ["g"]
    assert float(facts["eps"]) == 0.75
    assert float(facts["delta"]) == 0
    assert facts["dpframe"] == dp.__version__
    for name, eps, reach in (("n", 0.25, 1), ("s", 0.5, 9)):
        f = facts["outputs"][name]
        assert f["mechanism"] == "laplace"
        assert f["l1"] == reach
        assert f["scale"] == pytest.approx(f["l1"] * f["fused_parts"] / eps, rel=1e-6)
        p = math.exp(-1 / f["scale"])
        margin = next(w for w in range(10_000) if 1 - 2 * p ** (w + 1) / (1 + p) >= 0.95)
        assert f["margin_95"] == margin
    assert facts["outputs"]["s"]["bounds"] == [0, 9]


def test_the_side_car_tells_what_each_output_of_its_own_eps_cost(tmp_path):
    """Without it a stranger can't tell which part of eps = .75 made which scale."""
    with dp.Session(eps=3) as s:
        FRAME.dp.agg(n=dp.count(), s=dp.clip_sum("k", bounds=(0, 9)), eps={"n": 0.25, "s": 0.5})
        outputs = s.last.facts["outputs"]
    assert float(outputs["n"]["eps"]) == 0.25
    assert float(outputs["s"]["eps"]) == 0.5


def test_scalar_releases_are_written_as_one_cell(tmp_path):
    with dp.Session(eps=3) as s:
        n = FRAME.dp.count(eps=1)
        s.last.write(str(tmp_path / "n.csv"))
        s.last.write(tmp_path / "n.parquet")
        with pytest.raises(dp.InputError, match=r"parquet.*csv"):
            s.last.write(tmp_path / "n.xlsx")
    assert (tmp_path / "n.csv").read_text().split() == ["count", str(n)]
    assert pl.read_parquet(tmp_path / "n.parquet").item() == n
    assert not (tmp_path / "n.xlsx").exists()
    assert not (tmp_path / "n.xlsx.json").exists()


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_intervals_periods_and_object_keys_can_be_written(ending, tmp_path):
    df = pd.DataFrame(
        {
            "band": pd.cut([5, 30], [0, 18, 40]),
            "month": pd.PeriodIndex(["2026-01", "2026-02"], freq="M"),
            "flag": pd.Series([True, None], dtype=object),
        }
    )
    with dp.Session(eps=10 * EPS) as s:
        df.dp.groupby(
            "band",
            "month",
            "flag",
            keys=[
                (pd.Interval(0, 18), pd.Period("2026-01", "M"), True),
                (pd.Interval(18, 40), pd.Period("2026-02", "M"), None),
            ],
        ).count(eps=EPS)
        s.last.write(tmp_path / f"t.{ending}")
    read = pl.read_parquet(tmp_path / "t.parquet") if ending == "parquet" else pl.read_csv(tmp_path / "t.csv")
    assert read["count"].to_list() == [1, 1]
    assert read["band"].to_list() == ["(0, 18]", "(18, 40]"]
    assert read["month"].to_list() == ["2026-01", "2026-02"]
