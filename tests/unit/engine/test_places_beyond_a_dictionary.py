"""Arrow dictionaries whose places lie beyond them, which nothing checks where they are made: such cells are missing."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

import dpframe as dp

pytestmark = pytest.mark.usefixtures("quiet")
FRAMES = {
    "arrow": lambda t: t,
    "chunks": lambda t: pa.concat_tables([t.slice(0, 1), t.slice(1)]),
    "pandas of arrow": lambda t: pd.DataFrame(
        {n: pd.arrays.ArrowExtensionArray(t[n]) for n in t.column_names}
    ),
}
PLACES = {
    "beyond": [0, 2, 0, None, 1],
    "far": [0, 127, 0, None, 1],
    "before": [0, -3, 0, None, 1],
    "within": [0, 1, 0, None, 1],
}


@pytest.mark.parametrize("size", [pa.int8(), pa.int32(), pa.int64()])
@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("frame", FRAMES)
def test_a_place_beyond_is_missing_in_every_role(frame, places, size):
    places = PLACES[places] * 3  # above any threshold
    cells = pa.DictionaryArray.from_arrays(pa.array(places, size), pa.array(["a", "b"]), safe=False)
    table = FRAMES[frame](pa.table({"g": cells, "x": [1.0] * 15}))
    b = sum(p == 1 for p in places)
    with dp.Session(eps=10**9, delta=0.5):
        d = dp.frame(table)
        assert list(d.groupby("g", keys=["a", "b", None]).count(eps=10**6)["count"]) == [6, b, 9 - b]
        assert d.n_unique("g", eps=10**6) == 2
        assert d.count("g", eps=10**6) == 6 + b
        found = d.groupby("g").count(eps=10**6, delta=0.1)
        assert sorted(found["count"]) == sorted(n for n in (6, b, 9 - b))
    with dp.Session(eps=10**9, unit="g"):
        assert dp.frame(table).count_units(eps=10**6) == 2
