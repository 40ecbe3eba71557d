"""Parquet files whose footers, page indexes and numbers of nulls are not those of their cells."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

GROUP = 50  # rows of a row group
PLAIN = {"compression": "none", "use_dictionary": False, "write_page_index": True, "row_group_size": GROUP}


def with_statistics_of(cells: pa.Table, others: pa.Table, place: Path, **options) -> Path:
    """The pages of ``cells`` under the footer and page index of ``others``, a table of pages of the same sizes."""
    files = [place.with_suffix(s) for s in (".cells", ".others")]
    for table, file in zip((cells, others), files):
        pq.write_table(table, file, **PLAIN | options)
    a, b = (file.read_bytes() for file in files)
    ends = [_end_of_pages(file) for file in files]
    assert ends[0] == ends[1]
    place.write_bytes(a[: ends[0]] + b[ends[1] :])
    return place


def _end_of_pages(file: Path) -> int:
    footer = pq.read_metadata(file)
    columns = [
        footer.row_group(i).column(j) for i in range(footer.num_row_groups) for j in range(footer.num_columns)
    ]
    return max((c.dictionary_page_offset or c.data_page_offset) + c.total_compressed_size for c in columns)


def all_null(cells: pa.Table, place: Path) -> Path:
    """A file of whole row groups without nulls whose footer says that all cells are null."""
    assert cells.num_rows % GROUP == 0
    assert all(c.null_count == 0 for c in cells.columns)
    pq.write_table(cells, place, **PLAIN | {"write_page_index": False})
    whole = place.read_bytes()
    (length,) = struct.unpack("<I", whole[-8:-4])
    start = len(whole) - 8 - length
    honest, lie = b"\x16\x00\x28", bytes([0x16, 2 * GROUP, 0x28])  # null_count, before max_value
    patched = whole[start:].replace(honest, lie)
    assert patched.count(lie) == cells.num_columns * cells.num_rows // GROUP
    place.write_bytes(whole[:start] + patched)
    return place


@contextmanager
def served(file: Path) -> Iterator[str]:
    """The address of a file on a server on this machine."""
    whole = file.read_bytes()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self, body: bool) -> None:
            start, _, end = (self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").partition("-")
            at = int(start) if start else max(0, len(whole) - int(end))
            stop = min(len(whole), int(end) + 1) if start and end else len(whole)
            self.send_response(206 if "Range" in self.headers else 200)
            self.send_header("Content-Length", str(stop - at))
            self.send_header("Content-Range", f"bytes {at}-{stop - 1}/{len(whole)}")
            self.send_header("Last-Modified", "Tue, 01 Dec 2026 00:00:00 GMT")
            self.end_headers()
            if body:
                self.wfile.write(whole[at:stop])

        def do_GET(self) -> None:
            self._answer(True)

        def do_HEAD(self) -> None:
            self._answer(False)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/f.parquet"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
