"""Figures 7 to 9: randomness, what failures say, and what mechanisms guarantee."""

from __future__ import annotations

import inspect
import io
import itertools
import logging
import os
import pathlib
import pickle
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import polars as pl

import dpframe as dp
from dpframe.api.asking import Asking as Verbs
from dpframe.api.namespaces import FrameDP
from dpframe.api.options import Options
from dpframe.audit.run import Figure, Size
from dpframe.ledger.book import Ledger
from dpframe.mechanisms import certificate
from dpframe.mechanisms.base import Noise, Target
from dpframe.mechanisms.registry import mechanism, names
from dpframe.noise.strips import sampler
from dpframe.session.session import Session


def parts_7() -> list[str]:
    return ["forked children", "seeds"]


def figure_7(part: str, size: Size) -> Figure:
    """64 forked children draw 100 numbers each, and no two draws are one; nothing takes a seed."""
    if part == "seeds":
        takers = _seed_takers()
        return Figure(7, part, f"{len(takers)} parameters that seed noise", "0", not takers)
    if not hasattr(os, "fork"):
        return Figure(7, part, "this system has no fork", "no repeats", True)
    law = sampler("linear", Fraction(2**55))
    law.sample(10)
    drawn = [_in_a_child(law) for _ in range(64)]
    numbers = np.concatenate([*drawn, law.sample(100)])
    different = len(np.unique(numbers))
    ok = all(len(x) == 100 for x in drawn) and different == 6500
    return Figure(7, part, f"{6500 - different} repeats among 6500 draws of 65 processes", "0", ok)


def _in_a_child(law: Any) -> Any:
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads; the child only draws
        pid = os.fork()
    if pid == 0:
        try:
            os.write(write, law.sample(100).tobytes())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as f:
        numbers = np.frombuffer(f.read(), dtype=np.int64)
    os.waitpid(pid, 0)
    return numbers


def _seed_takers() -> list[str]:
    things: dict[str, Any] = {n: getattr(FrameDP, n) for n in dir(FrameDP) if not n.startswith("_")}
    things |= {"Session": Session.__init__, "Verbs": Verbs.__init__, "Noise.sample": Noise.sample}
    taken = [f"{n}({p})" for n, f in things.items() if callable(f) for p in inspect.signature(f).parameters]
    taken += [f"option {o}" for o in Options.__annotations__]
    return [t for t in taken if any(w in t.lower() for w in ("seed", "rng", "random", "generator"))]


# ---- canaries ----

NUMBER, TEXT = 987_654_321.125, "kakapo-7f3a91"
TRACES = ("987654321", "987_654_321", TEXT)


def parts_8() -> list[str]:
    return ["planted secrets"]


def figure_8(part: str, size: Size) -> Figure:
    """A planted number and a planted text are in nothing that a failure or a success leaves behind."""
    hits: list[str] = []
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "budget.db")
        Ledger.create(path, eps=10**6).close()
        with _listening() as heard, Session(ledger=path) as s:
            for name, call in _calls().items():
                try:
                    call()
                except Exception as e:
                    failures += 1
                    said = _told(e)
                    hits += [f"{name}: {t}" for t in TRACES if t in said]
            shown = [repr(s), str(s.report()), str(s.statement())]
            d = dp.frame(_frame())
            shown += [repr(d), repr(d.plan.count(eps=1)), str(d.plan.count(eps=1).explain())]
            d.groupby("s", keys=["a"]).dp_agg(n=dp.count(), t=dp.clip_sum("x", bounds=(0, 1)), eps=1)
            shown += [repr(s.last), str(s.last.facts), str(pickle.dumps(s.last))]
        files = [p.read_bytes().decode("latin1") for p in pathlib.Path(folder).rglob("*") if p.is_file()]
        hits += [t for t in TRACES if t in "\n".join([*shown, *files, heard()])]
    return Figure(
        8, part, f"{failures} forced failures, {len(hits)} hits", "at least 30 failures, 0 hits", failures >= 30 and not hits
    )  # fmt: skip


def _frame() -> pl.DataFrame:
    return pl.DataFrame({"x": [NUMBER, 1.0, None], "s": [TEXT, "a", "b"], "k": [987_654_321, 1, 2]})


def _calls() -> dict[str, Callable[[], Any]]:
    """Calls that are refused before the charge, and calls that fail in the engine after it."""
    frame = _frame()
    lazy, pandas = frame.lazy(), frame.to_pandas()

    def fails(batch: Any) -> Any:
        raise ValueError(f"a cell: {batch.to_list()}")

    broken = {
        "a Python function": lazy.with_columns(pl.col("x").map_batches(fails, return_dtype=pl.Float64)),
        "a strict cast": lazy.with_columns(x=pl.col("s").cast(pl.Int64)),
        "a narrow cast": lazy.with_columns(x=pl.col("k").cast(pl.Int8)),
        "a date": lazy.with_columns(x=pl.col("s").str.to_date("%Y-%m-%d").dt.year()),
        "an enum": lazy.with_columns(s=pl.col("s").cast(pl.Enum(["a"]))),
        "a list element": lazy.with_columns(x=pl.concat_list("k").list.get(3).cast(pl.Float64)),
    }
    calls: dict[str, Callable[[], Any]] = {}
    for name, wrong in broken.items():
        d = dp.frame(wrong)
        column = "s" if name == "an enum" else "x"
        calls[name] = partial(d.count, column, eps=1)
        calls[f"{name}, grouped"] = partial(d.groupby("k", keys=[1]).count, column, eps=1)
    frames: dict[str, Any] = {"polars": frame, "lazy": lazy, "pandas": pandas}
    for library, f in frames.items():
        asks: dict[str, Callable[[Any], Any]] = {
            "text measured": lambda d: d.clip_sum("s", bounds=(0, 1), eps=1),
            "keys of another type": lambda d: d.groupby("k", keys=["a"]).count(eps=1),
            "no keys": lambda d: d.groupby("s").count(eps=1),
            "no such column": lambda d: d.clip_sum("nowhere", bounds=(0, 1), eps=1),
            "no such verb": lambda d: d.mean("x"),
            "no such argument": lambda d: d.count(epsilon=1),
            "no budget": lambda d: d.count(eps=10**9),
            "no bounds": lambda d: d.clip_mean("x", eps=1),
            "a column as keys": lambda d: d.groupby("s", keys=frame["s"]).count(eps=1),
            "a column as a bound": lambda d: d.clip_sum("x", bounds=(0, frame["x"]), eps=1),
        }
        calls |= {f"{n}, {library}": partial(a, dp.frame(f)) for n, a in asks.items()}
    return calls


def _told(e: BaseException) -> str:
    """Words, repr and traceback of an exception and its causes, with the locals of dpframe's frames."""
    parts = [str(e), repr(e), repr(e.args)]
    seen: BaseException | None = e
    while seen is not None:
        for f in traceback.TracebackException(
            type(seen), seen, seen.__traceback__, capture_locals=True
        ).stack:
            inside = "dpframe" in f.filename and f"{os.sep}audit{os.sep}" not in f.filename
            hidden = (
                "frame",
                "self",
                "keys",
                "bounds",
                "args",
                "kwargs",
                "options",
            )  # the caller's own arguments
            parts += [f"{k}={v}" for k, v in (f.locals or {}).items() if inside and k not in hidden]
        parts.append(str(seen))
        seen = seen.__cause__ or seen.__context__
    return "\n".join(parts)


class _listening:  # noqa: N801  (a context manager, used like a function)
    """Warnings and logs at DEBUG; the text of both is what the context returns a function for."""

    def __enter__(self) -> Callable[[], str]:
        self._text = io.StringIO()
        self._handler = logging.StreamHandler(self._text)
        self._log = logging.getLogger("dpframe")
        self._level = self._log.level
        self._log.addHandler(self._handler)
        self._log.setLevel(logging.DEBUG)
        self._caught = warnings.catch_warnings(record=True)
        said = self._caught.__enter__()
        warnings.simplefilter("always")
        return lambda: self._text.getvalue() + "\n".join(str(w.message) for w in said or [])

    def __exit__(self, *error: object) -> None:
        self._caught.__exit__(None, None, None)
        self._log.removeHandler(self._handler)
        self._log.setLevel(self._level)


# ---- mechanisms ----


def parts_9() -> list[str]:
    return [*names(), "a toy that claims half"]


def figure_9(part: str, size: Size) -> Figure:
    """What a law guarantees, recomputed from its own probabilities, is never more than it claims."""
    toy = part not in names()
    mech = mechanism("laplace" if toy else part)
    kept = refused = broken = 0
    for target, sensitivity in _points():
        if kept + broken == size.points or refused == 20 * size.points:
            break
        try:
            noise = mech.calibrate(Fraction(sensitivity), 1, target)
        except dp.MechanismError:
            refused += 1
            continue
        if toy:
            noise = _half(noise)
        try:
            certificate.check(noise, sensitivity, part, theorems=False)
            kept += 1
        except dp.MechanismError:
            broken += 1
    measured = f"{kept} points kept, {broken} broken, {refused} declined"
    if toy:
        return Figure(9, part, measured, "all broken", broken == size.points)
    return Figure(9, part, measured, f"{size.points} kept, 0 broken", kept == size.points)


def _points() -> Iterator[tuple[Target, int]]:
    """Endless points of (eps, delta, sensitivity) and (rho, sensitivity), evenly over the logarithms."""
    for i in itertools.count():
        eps = Fraction(round(10**4 * 0.1 * 120 ** (i * 0.6180339887 % 1)), 10**4)
        delta = Fraction(round(10**12 * 10 ** -(2 + 8 * (i * 0.4142135624 % 1))), 10**12)
        sensitivity = (1, 2, 3, 8)[i % 4]
        yield Target(eps, delta), sensitivity
        if i % 4 == 3:
            yield Target(rho=eps**2 / 8), sensitivity


def _half(noise: Any) -> Any:
    """The same law, with a claim of half its epsilon."""
    e = noise.event
    claimed = None if e.eps is None else e.eps / 2
    return replace(noise, cost=replace(e, eps=claimed, rho=e.rho / 4))


__all__ = ["figure_7", "figure_8", "figure_9", "parts_7", "parts_8", "parts_9"]
