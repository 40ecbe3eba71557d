"""Pictures of releases: what was released, with its margins of error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from dpframe.base.wrong_calls import checked
from dpframe.errors import Call, Code, InputError, did_you_mean, typed, wrong_type
from dpframe.plot.charts import alt, column, data, layers
from dpframe.release.release import Release

if TYPE_CHECKING:
    import altair

MOST = 1000  # rows


@checked(example="dp.plot.release(s.last)")
def release(
    released: Any, *, output: str | None = None, level: float = 0.95
) -> altair.LayerChart | altair.VConcatChart:
    """Draw a release with its error bars.

    Parameters
    ----------
    released : Release, or a released number
        Of a released table take ``s.last``: the table itself is a plain frame and knows no errors.
    output : str, optional
        Which one (default: all, one below the other).
    level : float, default 0.95
        Of the intervals.

    Returns
    -------
    altair.LayerChart, or altair.VConcatChart for several outputs
        A point for each row, in the order of the release; chosen values (quantiles) have no bar, because
        their error in values is private.

    Raises
    ------
    TypeError
        For anything but a release.
    InputError
        For an output that there is not, a level beyond 0 and 1, or more than 1,000 rows.

    Notes
    -----
    Privacy: post-processing of what was released.

    Examples
    --------
    >>> import dpframe as dp, polars as pl
    >>> df = pl.DataFrame({"city": ["Ghent", "Lille"]})
    >>> with dp.Session(eps=1) as s:
    ...     t = df.dp.groupby("city", keys=["Ghent", "Lille"]).count(eps=1)
    >>> [line.split(",")[0] for line in dp.plot.release(s.last).layer[0].data.values.splitlines()]
    ['row', 'Ghent', 'Lille']
    """
    made = getattr(released, "release", released)
    if not isinstance(made, Release):
        raise wrong_type(
            f"A release is drawn, not a {type(released).__name__}: a frame knows no errors.",
            hint=Call("dp.plot.release", Code("s.last")),
        )
    names = [o.name for o in made.plan.outputs]
    if not names:
        raise InputError(
            "This release tells which groups occur, and has no numbers to draw.", hint="s.last.value"
        )
    if output is not None and output not in names:
        raise InputError(f"output={typed(output)} is not in this release. {did_you_mean(str(output), names)}")
    drawn = [_one(made, o, level) for o in made.plan.outputs if output in (None, o.name)]
    return drawn[0] if len(drawn) == 1 else column(*drawn)


def _one(r: Release, o: Any, level: float) -> Any:
    value = r._columns[o.name]
    if len(value) > MOST:
        raise InputError(
            f"This release has {len(value):,} rows; {MOST:,} can be drawn.", hint=Call("s.last.value.head")
        )
    keys = r._keys.columns
    frame = pl.DataFrame({str(k): [str(x) for x in s] for k, s in keys.items()})
    labels = [", ".join(row) for row in frame.iter_rows()] or [o.name]
    rows: list[dict[str, Any]] = [
        {"row": label, "at": i, "value": v} for i, (label, v) in enumerate(zip(labels, value.tolist()))
    ]
    if o.answer.ranged:
        from dpframe.release.answers import level_of

        low, high = r._ends(o, level_of(level))
        for row, a, b in zip(rows, low.tolist(), high.tolist()):
            row |= {"low": a, "high": b}
    order = alt.EncodingSortField("at")
    y = alt.Y("row:N", sort=order, title=", ".join(map(str, keys)) or None)
    points = data(rows).mark_point(filled=True, size=50, opacity=1)
    points = points.encode(
        y=y,
        x=alt.X(
            "value:Q",
            title=f"{o.name} ({level:.0%} interval)" if o.answer.ranged else o.name,
            scale=alt.Scale(zero=False),
        ),
        tooltip=["row:N", "value:Q", *(["low:Q", "high:Q"] if o.answer.ranged else [])],
    )
    made = [points]
    if o.answer.ranged:
        made.append(data(rows).mark_rule().encode(y=y, x=alt.X("low:Q"), x2="high:Q"))
    return layers(*made, title=f"{o.question.describe()}", height=max(60, min(18 * len(rows), 6000)))
