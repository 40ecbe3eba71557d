"""One question to one peer, in the peer's own environment: times, memory, lines, errors, as JSON.

python benchmarks/peer_runner.py peers/opendp.py mean visits.npz 20 60
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import statistics
import sys
import time
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from measure import peak
from peer_settings import truth


def lines(function: types.FunctionType) -> int:
    """Non-blank lines of code, comments and ``def`` left out."""
    source = [line.strip() for line in inspect.getsource(function).splitlines()]
    return sum(bool(line) and not line.startswith(("#", "def ")) for line in source)


def errors(answers: list[Any], true: Any) -> dict[str, Any]:
    """Mean absolute errors over repeats (and keys, where there are keys), and how many keys were told."""
    if not isinstance(true, dict):
        return {"error": statistics.fmean(abs(a - true) for a in answers)}
    told = [[(int(k), n, x) for k, n, x in a if int(k) in true] for a in answers]
    every = [(abs(n - true[k][0]), abs(x - true[k][1])) for rows in told for k, n, x in rows]
    return {
        "error": float(statistics.fmean(e[1] for e in every)),
        "count_error": float(statistics.fmean(e[0] for e in every)),
        "keys": statistics.fmean(len(rows) for rows in told),
    }


def main(path: str, question: str, data: str, repeat: str, seconds: str) -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location("snippet_" + Path(path).stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # inspect looks there
    spec.loader.exec_module(module)
    ask = getattr(module, question, None)
    if ask is None:
        return {"refused": "cannot be asked"}
    arrays = dict(np.load(data))
    loaded, before = module.load(arrays), peak() / 1e9
    took, answers = [], []
    end = time.perf_counter() + float(seconds)
    while len(took) < int(repeat) and (len(took) < 2 or time.perf_counter() < end):
        start = time.perf_counter(), time.process_time()
        answer = ask(loaded)
        took.append(time.perf_counter() - start[0])
        answers.append(module.read(answer))
    return {
        "first": took[0],
        "again": statistics.median(took[1:]),
        "repeats": len(took),
        "peak": peak() / 1e9,
        "before": before,
        "lines": lines(ask),
        **errors(answers, truth(arrays, question)),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(main(*sys.argv[1:])))
