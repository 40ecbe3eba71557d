"""Pages of plans, sessions, releases and laws: complete, escaped, without script or colours, readable on any theme.

A headless browser lays the pages out on light and on dark, where there is one.
"""

from __future__ import annotations

import itertools
import json
import pickle
import re
import warnings
from html.parser import HTMLParser

import pandas as pd
import polars as pl
import pytest
from browser import TextOf, browse, needs_a_browser

import dpframe as dp
from dpframe.session import payer as sessions

pytestmark = pytest.mark.usefixtures("quiet")

CANARY = 7731904
EVIL = "<script>alert(1)</script>&\"'"

FRAME = pl.DataFrame(
    {
        "city": [EVIL, "Lille"] * 200,
        "x": [1.0, 2.0] * 199 + [float(CANARY), None],
        "k": [CANARY] + [1] * 399,
    }
)


def things(look=lambda thing: thing) -> dict:
    """What ``look`` makes of one of everything that has a page, each while its session is in use."""
    made: dict = {}

    def keep(name, thing):
        made[name] = look(thing)
        return thing

    sessions._ambient = sessions._Ambient()
    keep("answer without a session", FRAME.dp.count(eps=0.5))
    keep("ambient", sessions._ambient)
    with dp.Session(eps=4, delta=1e-6) as s:
        keep("fresh session", dp.Session(rho=0.5))
        plan = keep("plan", FRAME.dp.plan.clip_mean("x", bounds=(0, 10), eps=0.5))
        keep("bare plan", plan.plan)
        keep("explanation", plan.explain(rows=400, relative_to=2))
        keep(
            "grouped plan",
            FRAME.dp.plan.groupby("city").dp_agg(
                n=dp.count(), s=dp.clip_sum("x", bounds=(0, 10)), eps=0.5, delta=1e-7
            ),
        )
        keep("keys", FRAME.dp.plan.groupby("city").keys(eps=0.1, delta=1e-7))
        keep("too dear", FRAME.dp.plan.count(eps=9))
        keep("float", FRAME.dp.clip_mean("x", bounds=(0, 10), eps=0.5, label=EVIL))
        keep("int", FRAME.dp.count(eps=0.25))
        keep("pair", FRAME.dp.bounds("x", eps=0.25))
        keep("quantile", FRAME.dp.median("x", bounds=(0, 10), eps=0.25))
        for name, release in zip(("float", "int", "pair", "quantile"), s.releases):
            keep(f"release of a {name}", release)
        FRAME.dp.groupby("city", keys=[EVIL, "Lille"]).dp_agg(
            n=dp.count(), x=dp.clip_mean("x", bounds=(0, 10)), eps=0.5, ci=0.95
        )
        keep("table", s.last)
        FRAME.to_pandas().dp.groupby("city", keys=[EVIL]).count(eps=0.25)
        keep("pandas table", s.last)
        FRAME.dp.count(eps=0.25)
        keep("repeat", s.last)
        keep("noise", FRAME.dp.plan.clip_sum("x", bounds=(0, 10), eps=3).plan.laws[0])
        keep("partition", FRAME.dp.partition_by("city", keys=[EVIL, "Lille"], eps=0.5))
        keep("report", s.report(accountant="pld"))
    keep("session", s)
    keep("statement", s.statement())
    queries = {"n": dp.count(), EVIL: dp.clip_mean("x", bounds=(0, 10))}
    keep("budget plan", dp.BudgetPlan(FRAME, queries, eps=1, name=EVIL))
    for name in dp.mechanisms():
        keep(f"mechanism {name}", dp.mechanism(name))
    return made


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dp.DPWarning)
        return things(lambda thing: thing._repr_html_())


class Tags(HTMLParser):
    """Every tag is closed, in order; what there is besides text."""

    VOID = ("br", "hr", "meta", "img", "input")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data + " "


def parsed(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    tags.close()
    assert tags.open == []
    return tags


def test_every_page_is_whole_and_has_no_script_and_loads_nothing(pages):
    for name, page in pages.items():
        tags = parsed(page)
        assert not tags.seen & {"script", "iframe", "object", "embed", "img", "input", "form"}, name
        for key, value in tags.attributes:
            assert not key.startswith("on"), name
            assert key not in ("src", "href"), name
            assert "url(" not in (value or ""), name


def test_everything_typed_is_escaped(pages):
    for name in ("session", "release of a float", "table", "budget plan", "partition"):
        assert "alert(1)" in pages[name], name
        assert EVIL in re.sub(r"\s+", " ", parsed(pages[name]).text), name
    assert all("<script" not in page for page in pages.values())


def test_pages_take_the_readers_colours(pages):
    """No colour but the reader's own and a grey that lies between light and dark. (Library frames have their own.)"""
    for name, page in pages.items():
        if name in ("table", "pandas table"):
            continue
        colours = re.findall(r"(?:^|[;\"])(?:color|background(?:-color)?|border[a-z-]*):([^;\"]*)", page)
        for colour in colours:
            assert not re.search(r"#[0-9a-fA-F]{3}|white|black|hsl|rgb\(", colour), (name, colour)
            for grey in re.findall(r"rgba\(([^)]*)\)", colour):
                assert grey.startswith("127,127,127"), (name, colour)


def test_no_page_and_no_text_shows_a_cell(pages):
    for name, page in pages.items():
        assert str(CANARY) not in page.replace(",", ""), name
    for name, thing in things().items():
        assert str(CANARY) not in f"{thing!r}{thing!s}".replace(",", ""), name


def test_a_session_page_shows_budget_charges_repeats_and_labels(pages):
    text = re.sub(r"\s+", " ", parsed(pages["session"]).text)
    for part in (
        "one row appears or vanishes",
        "added up",
        "repeat of 1, charged again",
        "clip_mean('x', bounds=(0, 10))",
        "delta: 0 of 5e-07",
    ):
        assert part in text
    widths = [float(w) for w in re.findall(r"width:([0-9.e+-]+)%", pages["session"])]
    assert widths[0] == pytest.approx(100 * 2.75 / 4)
    assert all(0 <= w <= 100 for w in widths)


def test_a_partition_is_no_failed_answer_and_a_failure_is_told(monkeypatch):
    from dpframe.engine.polars import PolarsSource

    def fails(*args):
        raise RuntimeError

    with dp.Session(eps=2) as s:
        FRAME.dp.partition_by("city", keys=["Lille"], eps=0.5)
        assert "partition_by" in s._repr_html_()
        assert "no answer" not in s._repr_html_()
        monkeypatch.setattr(PolarsSource, "aggregate", fails)
        with pytest.raises(dp.ReleaseFailed):
            FRAME.dp.count(eps=0.5)
    assert s._repr_html_().count("no answer: it failed, or was interrupted") == 1


def test_the_shape_of_a_law_has_one_peak():
    """No comb where a law on coarse steps meets bins of other widths."""
    from dpframe.display.laws import heights

    with dp.Session(eps=9):
        for eps in (0.1, 1, 3, 5):
            plan = FRAME.dp.plan.clip_sum("x", bounds=(0, 10), eps=eps)
            shape = heights(plan.plan.laws[0])
            right = shape[len(shape) // 2 :]
            assert max(right) == pytest.approx(right[0], rel=0.02)
            assert all(b <= a + 0.02 for a, b in itertools.pairwise(right)), (eps, plan.mechanism)


def test_the_ambient_session_is_visible(pages):
    assert "nothing limits the total" in pages["ambient"]
    assert "nothing limits the total" in pages["answer without a session"]
    assert "nothing limits the total" not in pages["int"]


def test_repeats_are_visible_where_the_answer_is(pages):
    assert "charged before (charge 1)" in pages["repeat"]
    assert "charged before" not in pages["release of a int"]


def test_a_plan_page_says_what_its_text_says(pages):
    explained = things()["explanation"]
    text = re.sub(r"\s+", " ", parsed(explained._repr_html_()).text)
    for line in explained.lines:
        assert line.text in text
    assert "(7.49 % of 2)" in text  # the error as a fraction of the expected answer
    assert "too little for this call" in pages["too dear"]
    assert "this call takes" in pages["plan"]


def test_a_refusing_ledger_does_not_hide_a_session(tmp_path):
    path = tmp_path / "budget.db"
    dp.Ledger.create(path, eps=1)
    s = dp.Session(ledger=path)
    with s:
        FRAME.dp.count(eps=0.25)
    assert "0.25 of 1 added up" in s._repr_html_()
    path.unlink()
    assert "The ledger can&#x27;t be read" in s._repr_html_()
    with s:
        assert "its ledger can't be read" in str(FRAME.dp.plan.count(eps=0.5).explain())


def test_frames_stay_plain_frames():
    with dp.Session(eps=10):
        made = FRAME.dp.groupby("city", keys=["Lille"]).count(eps=1)
        assert type(made) is pl.DataFrame
        assert type(FRAME.to_pandas().dp.groupby("city", keys=["Lille"]).count(eps=1)) is pd.DataFrame


def test_a_pickled_answer_keeps_its_page():
    with dp.Session(eps=10):
        n = FRAME.dp.count(eps=1)
    assert pickle.loads(pickle.dumps(n))._repr_html_() == n._repr_html_()


def test_text_reprs_are_short(pages):
    for name, thing in things().items():
        if "table" not in name and name not in ("explanation", "statement", "ambient"):
            assert len(repr(thing)) < 500, name


# ---- in a browser ----

MEASURE = """
<script>
const found = [];
for (const e of document.querySelectorAll('.page :not(style)')) {
  const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  if (!own) continue;
  const box = e.getBoundingClientRect();
  let opacity = 1, scrolls = false, frame = false;
  for (let p = e; p && p !== document.body; p = p.parentElement) {
    const s = getComputedStyle(p);
    opacity *= parseFloat(s.opacity);
    scrolls ||= s.overflowX === 'auto';
    frame ||= p.tagName === 'TABLE' && p.classList.contains('dataframe');
  }
  found.push({text: e.textContent.slice(0, 40), width: box.width, height: box.height, right: box.right,
              clipped: e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === 'hidden',
              opacity, scrolls, frame, color: getComputedStyle(e).color});
}
const bars = [...document.querySelectorAll('[role=img]')].map(e => e.getBoundingClientRect().height);
document.getElementById('found').textContent = JSON.stringify({found, bars, width: document.documentElement.clientWidth,
  page: document.documentElement.scrollWidth});
</script>
"""


def luminance(rgb) -> float:
    parts = [c / 255 for c in rgb]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@needs_a_browser
@pytest.mark.parametrize("width", [1000, 500])
@pytest.mark.parametrize(
    ("back", "front"), [((255, 255, 255), (17, 17, 17)), ((17, 17, 17), (238, 238, 238))]
)
def test_pages_are_readable_on_light_and_on_dark(pages, tmp_path, back, front, width):
    """No text is invisible, too faint, or runs out of the page; bars have a height."""
    body = "".join(f'<div class="page">{page}</div>' for page in pages.values())
    style = f"background:rgb{back};color:rgb{front};font:14px sans-serif;margin:8px"
    source = tmp_path / "pages.html"
    source.write_text(
        f'<!doctype html><meta charset="utf-8"><body style="{style}">{body}<pre id="found"></pre>{MEASURE}</body>'
    )
    dom = browse(source, tmp_path, f"--window-size={width},900", "--dump-dom")
    seen = json.loads(TextOf(dom, "found").text)
    assert len(seen["found"]) > 300
    assert seen["page"] <= seen["width"], "the page scrolls sideways"
    assert len(seen["bars"]) > 5
    assert min(seen["bars"]) > 5
    for e in seen["found"]:
        assert min(e["width"], e["height"]) > 0, e
        assert not e["clipped"], e
        assert e["scrolls"] or e["right"] <= seen["width"] + 1, e
        if e["frame"]:  # the library's own colours
            continue
        shown = [int(c) for c in re.findall(r"\d+", e["color"])[:3]]
        mixed = [e["opacity"] * c + (1 - e["opacity"]) * b for c, b in zip(shown, back)]
        light, dark = sorted((luminance(mixed), luminance(back)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, e


@needs_a_browser
def test_a_picture_of_a_page_is_not_blank(pages, tmp_path):
    source, picture = tmp_path / "page.html", tmp_path / "page.png"
    source.write_text(
        f'<!doctype html><meta charset="utf-8"><body style="background:#fff">{pages["session"]}'
    )
    browse(source, tmp_path, "--window-size=900,500", f"--screenshot={picture}")
    blank, white = tmp_path / "blank.html", tmp_path / "blank.png"
    blank.write_text('<!doctype html><body style="background:#fff">')
    browse(blank, tmp_path, "--window-size=900,500", f"--screenshot={white}")
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert picture.stat().st_size > 5 * white.stat().st_size
