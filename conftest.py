"""What a test or an example draws comes from a stream that its name fixes: a commit passes or fails, in every run."""

from __future__ import annotations

import os

import numpy as np
import pytest
from sizes import AUDIT

from dpframe.noise import source


@pytest.fixture(autouse=True)
def draws_of_the_test(request, monkeypatch):
    """Noise, and the salts that say which rows of a unit count, come from the stream; nothing that a test sees says so.

    Marked as ``fresh_draws``, in the audit (``DPFRAME_AUDIT=1``) and in another process, draws are the operating
    system's. Another name or another order of draws is another stream, so thresholds are exact tails all the same.
    """
    if AUDIT or request.node.get_closest_marker("fresh_draws") is not None:
        return
    generator, here = np.random.default_rng(list(request.node.nodeid.encode())), os.getpid()

    def stream(n: int) -> bytes:
        return generator.bytes(n) if os.getpid() == here else os.urandom(n)

    monkeypatch.setattr(source, "_source", stream)
    monkeypatch.setattr(source, "is_private", lambda: source._source is stream)
