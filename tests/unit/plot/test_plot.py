"""Pictures: the right numbers in the right places, files of every kind, sliders that work without network."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

pytest.importorskip("altair", reason="altair is not installed: pictures are not drawn")
pytest.importorskip("vl_convert", reason="vl-convert-python is not installed: pictures are not drawn")

from browser import TextOf, browse, needs_a_browser

import dpframe as dp

pytestmark = pytest.mark.usefixtures("quiet")

CANARY = 7731904
FRAME = pl.DataFrame({"city": ["a", "b"] * 200, "x": [1.0] * 399 + [float(CANARY)]})


def rows(chart) -> list[dict[str, str]]:
    """What a layer draws."""
    held = [
        x.data for x in (chart.layer[0], chart) if hasattr(x.data, "values")
    ]  # Altair lifts what layers share
    return list(csv.DictReader(io.StringIO(held[0].values)))


def density(chart, name: str) -> tuple[np.ndarray, np.ndarray]:
    found = [r for r in rows(chart) if r["mechanism"] == name]
    return np.array([float(r["x"]) for r in found]), np.array([float(r["d"]) for r in found])


def test_laplace_is_drawn_at_its_scale():
    x, d = density(dp.plot.noise("laplace", eps=0.5, interactive=False), "laplace")
    assert np.allclose(d, 0.25 * np.exp(-np.abs(x) / 2), rtol=0.01)


def test_gaussian_is_drawn_at_the_analytic_sigma():
    x, d = density(dp.plot.noise(["gaussian"], eps=1, delta=1e-5, interactive=False), "gaussian")
    sigma = 3.73063
    assert np.allclose(d, np.exp(-((x / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi)), rtol=0.01)


@pytest.mark.parametrize("name", [n for n in dp.mechanisms() if n not in ("cactus", "discrete_gaussian")])
def test_densities_are_laws(name):
    """They add up to nearly one, and are symmetric."""
    x, d = density(dp.plot.noise(name, eps=1, delta=1e-3, interactive=False), name)
    assert np.sum((d[1:] + d[:-1]) / 2 * np.diff(x)) == pytest.approx(1, abs=0.06)
    assert np.allclose(d, d[::-1], rtol=5e-3)
    assert np.allclose(x, -x[::-1])


def test_a_guarantee_in_rho_is_drawn():
    _, d = density(dp.plot.noise(["gaussian", "discrete_gaussian"], rho=0.125, interactive=False), "gaussian")
    assert max(d) == pytest.approx(1 / (2 * math.sqrt(2 * math.pi)), rel=0.01)


def test_every_position_of_the_sliders_has_a_law():
    chart = dp.plot.noise(["laplace", "gaussian"], eps=0.7, delta=1e-5, sensitivity=3)
    bound = {p["name"]: p for p in chart.to_dict()["params"] if "bind" in p}
    assert set(bound) == {"eps_at", "delta_at", "sensitivity"}
    assert bound["sensitivity"]["value"] == 3
    for name in ("laplace", "gaussian"):
        at = {(r["i"], r["j"]) for r in rows(chart) if r["mechanism"] == name}
        assert len(at) == (bound["eps_at"]["bind"]["max"] + 1) * (bound["delta_at"]["bind"]["max"] + 1)


def test_error_curves_are_the_errors_of_the_laws():
    found = rows(dp.plot.error(["laplace", "gaussian"], eps=[0.5, 1], delta=1e-6, numbers=4, sensitivity=10))
    laplace = {float(r["eps"]): float(r["error"]) for r in found if r["mechanism"] == "laplace"}
    assert laplace[1] == pytest.approx(10 * 4 * math.sqrt(2), rel=0.01)
    gaussian = {float(r["eps"]): float(r["error"]) for r in found if r["mechanism"] == "gaussian"}
    assert gaussian[1] == pytest.approx(10 * 2 * 4.2247, rel=0.01)
    by_delta = rows(dp.plot.error("gaussian", eps=1, delta=[1e-7, 1e-6, 1e-5], loss="l1"))
    assert [float(r["error"]) for r in by_delta] == sorted(
        (float(r["error"]) for r in by_delta), reverse=True
    )


def test_the_tradeoff_picture_is_the_tradeoff_table():
    with dp.Session(eps=2):
        plan = FRAME.dp.plan.clip_sum("x", bounds=(0, 10), eps=1)
        drawn = rows(dp.plot.tradeoff(plan, eps=[0.5, 1, 4], relative_to=100))
        table = dp.tradeoff(plan, eps=[0.5, 1, 4], relative_to=100)
        assert [float(r["error"]) for r in drawn] == pytest.approx(table["error"].to_list(), rel=1e-3)
        rule = dp.plot.tradeoff(plan, eps=[0.5, 1]).layer[2].data.values
        assert "2.0" in rule


def test_the_budget_picture_adds_up_and_marks_repeats():
    with dp.Session(eps=2) as s:
        FRAME.dp.count(eps=0.25)
        FRAME.dp.count("x", eps=0.5, label="second")
        FRAME.dp.count(eps=0.25)
    found = rows(dp.plot.budget(s))
    assert [float(r["total"]) for r in found] == [0, 0.25, 0.75, 1]
    assert [r["asked"] for r in found[1:]] == ["first", "first", "again"]
    assert found[2]["label"] == "second"
    assert dp.plot.budget(s).layer[2].data.values.split() == ["total", "2.0"]
    assert dp.plot.budget(s, by="time").to_dict()


def test_budgets_in_rho_and_in_files(tmp_path):
    with dp.Session(rho=0.5) as s:
        FRAME.dp.count(rho=0.25)
    assert float(rows(dp.plot.budget(s))[-1]["total"]) == 0.25
    book = dp.Ledger.create(tmp_path / "b.db", eps=1)
    with dp.Session(ledger=book):
        FRAME.dp.count(eps=0.25)
        FRAME.dp.count(eps=0.25)
    assert [r["asked"] for r in rows(dp.plot.budget(book))[1:]] == ["first", "again"]


def test_a_release_is_drawn_with_its_intervals():
    with dp.Session(eps=10) as s:
        FRAME.dp.groupby("city", keys=["b", "a", "c"]).dp_agg(
            n=dp.count(), m=dp.clip_mean("x", bounds=(0, 10)), eps=1
        )
        both = dp.plot.release(s.last)
        one = rows(dp.plot.release(s.last, output="n", level=0.9))
        assert len(both.vconcat) == 2
        assert [r["row"] for r in one] == ["b", "a", "c"]
        ends = s.last.interval(0.9)
        assert [float(r["low"]) for r in one] == ends["n_low"].to_list()
        assert [float(r["high"]) for r in one] == ends["n_high"].to_list()
        n = FRAME.dp.count(eps=1)
        assert float(rows(dp.plot.release(n))[0]["value"]) == n
        q = FRAME.dp.median("x", bounds=(0, 10), eps=1)
        assert "low" not in rows(dp.plot.release(q))[0]


def test_no_picture_holds_a_cell():
    with dp.Session(eps=50) as s:
        FRAME.dp.groupby("city", keys=["a", "b"]).clip_sum("x", bounds=(0, 10), eps=1)
        for chart in (
            dp.plot.release(s.last),
            dp.plot.budget(s),
            dp.plot.tradeoff(FRAME.dp.plan.count(eps=1), eps=[1, 2]),
        ):
            assert str(CANARY) not in json.dumps(chart.to_dict())
        assert s.spent == 1


def charts() -> dict[str, object]:
    with dp.Session(eps=50) as s:
        FRAME.dp.groupby("city", keys=["a", "b"]).dp_agg(
            n=dp.count(), m=dp.clip_mean("x", bounds=(0, 9)), eps=1
        )
        return {
            "noise": dp.plot.noise(["laplace", "gaussian"], eps=1),
            "error": dp.plot.error(["laplace"], eps=[0.5, 1]),
            "tradeoff": dp.plot.tradeoff(FRAME.dp.plan.count(eps=1), eps=[1, 2]),
            "budget": dp.plot.budget(s),
            "release": dp.plot.release(s.last),
        }


def test_pictures_are_saved_as_html_svg_and_png(tmp_path):
    for name, chart in charts().items():
        for ending, start in (("svg", b"<svg"), ("png", b"\x89PNG"), ("html", b"<!DOCTYPE html>")):
            path = tmp_path / f"{name}.{ending}"
            chart.save(path, **({"inline": True} if ending == "html" else {}))
            content = path.read_bytes()
            assert content.lstrip().startswith(start), (name, ending)
            assert len(content) > 2000
        assert b"cdn.jsdelivr" not in re.sub(rb"//[^\n]*", b"", content[:2000])


def test_a_notebook_gets_a_page_that_needs_nothing_else():
    shown = charts()["noise"]._repr_mimebundle_()
    assert shown["text/html"].startswith("<iframe")
    assert "<script src=" not in shown["text/html"].replace("&lt;", "<").replace("&quot;", '"')
    assert charts()["error"].properties(width=100)._repr_mimebundle_()["text/html"].startswith("<iframe")


SLIDE = """
<pre id="found"></pre>
<script>
const title = () => [...document.querySelectorAll('svg text')].map(e => e.textContent).find(t => t.startsWith('Noise'));
const path = () => [...document.querySelectorAll('svg path')].map(e => e.getAttribute('d')).join('');
setTimeout(() => {
  const before = [title(), path()];
  const told = [before[0]];
  for (const slider of document.querySelectorAll('input[type=range]')) {
    slider.value = slider.max;
    slider.dispatchEvent(new Event('input'));
  }
  setTimeout(() => {
    told.push(title(), String(path() !== before[1]));
    document.getElementById('found').textContent = JSON.stringify(told);
  }, 1500);
}, 1500);
</script>
"""


@needs_a_browser
def test_sliders_move_the_curves_without_network(tmp_path):
    chart = dp.plot.noise(["laplace", "gaussian"], eps=1, delta=1e-5, sensitivity=2)
    page = tmp_path / "noise.html"
    head, _, tail = chart.to_html(inline=True, embed_options={"renderer": "svg"}).rpartition("</body>")
    page.write_text(f"{head}{SLIDE}</body>{tail}")
    before, after, moved = json.loads(
        TextOf(browse(page, tmp_path, "--virtual-time-budget=9000", "--dump-dom"), "found").text
    )
    assert before == "Noise at eps = 1, delta = 0.00001, sensitivity 2"
    assert after == "Noise at eps = 10, delta = 0.001, sensitivity 10"
    assert moved == "true"


@needs_a_browser
def test_a_notebooks_page_draws_itself_without_network(tmp_path):
    page, picture = tmp_path / "cell.html", tmp_path / "cell.png"
    page.write_text(f"<!doctype html><body>{charts()['tradeoff']._repr_mimebundle_()['text/html']}</body>")
    browse(page, tmp_path, "--virtual-time-budget=9000", "--window-size=800,600", f"--screenshot={picture}")
    blank = tmp_path / "blank.png"
    page.write_text("<!doctype html><body>")
    browse(page, tmp_path, "--window-size=800,600", f"--screenshot={blank}")
    assert picture.stat().st_size > 3 * blank.stat().st_size


@pytest.mark.parametrize(
    ("call", "kind", "named"),
    [
        (lambda: dp.plot.noise("laplac"), dp.MechanismError, "Did you mean 'laplace'"),
        (lambda: dp.plot.noise([]), dp.InputError, "mechanisms="),
        (lambda: dp.plot.noise("cactus"), dp.InputError, "interactive=False"),
        (lambda: dp.plot.noise("laplace", eps=0), dp.InputError, "eps=0"),
        (lambda: dp.plot.noise("laplace", eps=1, rho=1), dp.InputError, "rho=0.1"),
        (lambda: dp.plot.noise("laplace", sensitivity=-1), dp.InputError, "sensitivity=-1"),
        (lambda: dp.plot.noise("gaussian", delta=0, interactive=False), dp.MechanismError, "delta"),
        (lambda: dp.plot.error("laplace"), dp.InputError, "eps=[0.1"),
        (lambda: dp.plot.error("laplace", eps=[1], numbers=0), dp.InputError, "numbers=0"),
        (lambda: dp.plot.error("laplace", eps=[1], loss="l2"), dp.InputError, "loss='l2'"),
        (lambda: dp.plot.tradeoff(FRAME, eps=[1]), TypeError, "df.dp.plan"),
        (lambda: dp.plot.tradeoff(FRAME.dp.plan.count(eps=1)), dp.InputError, "eps=[0.1"),
        (lambda: dp.plot.budget(FRAME), TypeError, "Session or a ledger|session or a ledger"),
        (lambda: dp.plot.budget(dp.Session(eps=1)), dp.InputError, "Nothing was charged"),
        (lambda: dp.plot.release(FRAME), TypeError, "s.last"),
        (lambda: dp.plot.nois("laplace"), AttributeError, "dp.plot has no 'nois'. Did you mean 'noise'?"),
        (
            lambda: dp.plot.noise("laplace", epsilon=1),
            TypeError,
            "noise has no argument 'epsilon'. Hint: eps=",
        ),
        (lambda: dp.plot.tradeoff(), TypeError, "dp.plot.tradeoff(plan, eps=[0.1, 0.5, 1])"),
        (lambda: dp.plot.release(lvel=0.9), TypeError, "Did you mean 'level'"),
    ],
)
def test_wrong_calls_say_what_to_write(call, kind, named):
    with pytest.raises(kind, match=re.escape(named) if "|" not in named else named):
        call()


def test_without_altair_the_extra_is_named():
    code = (
        "import sys; sys.modules['altair'] = None\n"
        "import dpframe as dp\n"
        "try: dp.plot\n"
        "except ImportError as e: print(e)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'dpframe[plot]'" in ran.stdout
