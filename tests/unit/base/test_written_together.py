"""Files that are written together are all new or all as before, whenever Ctrl-C comes."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from dpframe.base import files

pytestmark = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread"
)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("step", range(6))
def test_ctrl_c_at_any_rename_leaves_both_files_new_or_both_old(tmp_path, monkeypatch, there, after, step):
    contents = {str(tmp_path / "t.csv.json"): b"new facts", str(tmp_path / "t.csv"): b"new table"}
    if there:
        for path in contents:
            with open(path, "wb") as f:
                f.write(b"old")
    count = iter(range(1000))

    def pressing(true):
        def call(*args, **kwargs):
            press = next(count) == step
            if press and not after:
                os.kill(os.getpid(), signal.SIGINT)
            made = true(*args, **kwargs)
            if press and after:
                os.kill(os.getpid(), signal.SIGINT)
            return made

        return call

    monkeypatch.setattr(files.os, "link", pressing(os.link))
    monkeypatch.setattr(files.os, "replace", pressing(os.replace))
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        files.write_together(contents)
        interrupted = False
    except KeyboardInterrupt:
        interrupted = True
    finally:
        signal.signal(signal.SIGINT, before)
    found = {p: open(p, "rb").read() for p in contents if os.path.exists(p)}  # noqa: SIM115
    assert found in (contents, dict.fromkeys(contents, b"old") if there else {})
    assert interrupted == (step < (4 if there else 2))
    assert len(os.listdir(tmp_path)) == len(found), "and no temporary file is left"
