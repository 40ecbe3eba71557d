"""Altair charts that draw themselves without network."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from html import escape
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from typing import TYPE_CHECKING, Any

from dpframe.errors import worded

if TYPE_CHECKING:
    import altair

for _needed in ("altair", "vl_convert"):
    if find_spec(_needed) is None:
        raise worded(
            ImportError,
            f"dp.plot draws with Altair, and {_needed} is not installed.",
            hint="pip install 'dpframe[plot]'",
        )

alt: Any = import_module("altair")
MAX_WIDTH, HEIGHT = 560, 300


class Offline:
    """What a chart shows in a notebook: a frame of its own, with everything in it that it needs."""

    def _repr_mimebundle_(self, *include: Any, **exclude: Any) -> dict[str, str]:
        made: Any = self
        page = made.to_html(inline=True)
        size = 120 + (len(made.vconcat) * (HEIGHT + 60) if hasattr(made, "vconcat") else HEIGHT + 60)
        frame = (
            f'<iframe sandbox="allow-scripts allow-downloads" srcdoc="{escape(page, quote=True)}"'
            f' style="width:100%;height:{size}px;border:0;background:#fff"></iframe>'
        )
        return {"text/html": frame, "text/plain": f"<dpframe picture: {type(made).__bases__[1].__name__}>"}


Layers = type(
    "Layers", (Offline, alt.LayerChart), {"__doc__": "Layers that draw themselves without network."}
)
Column = type("Column", (Offline, alt.VConcatChart), {"__doc__": "Charts, one below the other."})


def data(rows: Sequence[dict[str, Any]]) -> Any:
    """Rows as part of the chart itself: as CSV, which Altair takes as it is (it checks lists of rows one by one)."""
    columns = list(dict.fromkeys(k for row in rows for k in row))
    written = StringIO()
    table = csv.DictWriter(written, columns, restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    numbers = {k for row in rows for k, v in row.items() if isinstance(v, int | float)}
    parse = {k: "number" if k in numbers else "date" if k == "time" else "string" for k in columns}
    return alt.Chart(alt.InlineData(values=written.getvalue(), format={"type": "csv", "parse": parse}))


def layers(*charts: Any, title: Any, height: int = HEIGHT) -> altair.LayerChart:
    """One picture of several layers."""
    made: altair.LayerChart = Layers(layer=list(charts)).properties(
        title=title, width=MAX_WIDTH, height=height
    )
    return made


def column(*charts: Any) -> altair.VConcatChart:
    """Pictures one below the other."""
    made: altair.VConcatChart = Column(vconcat=list(charts))
    return made


def short(x: float) -> float:
    """Four digits: pictures need no more."""
    return float(f"{x:.4g}")
