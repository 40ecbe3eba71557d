"""No part of a cost is negative, inexact or missing, wherever an event comes from."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import polars as pl
import pytest

import dpframe as dp
from dpframe.accounting.events import Event, compose, repeat
from dpframe.ledger.rows import decode, encode

ZERO = Fraction(0)
GOOD = Event(Fraction(1, 2), Fraction(1, 1000), Fraction(1, 8), ZERO)


@pytest.mark.parametrize("name", ["eps", "delta", "rho", "delta_alone"])
@pytest.mark.parametrize("bad", [Fraction(-1), -1, Fraction(-1, 10**30)])
def test_no_part_of_an_event_is_negative(name, bad):
    with pytest.raises(dp.InputError, match=f"{name}=.*less than zero"):
        dataclasses.replace(GOOD, **{name: bad})
    with pytest.raises(dp.InputError, match="less than zero"):
        decode({**encode(GOOD), name: str(Fraction(bad))}, Event)  # as in the row of a ledger


@pytest.mark.parametrize("name", ["eps", "delta", "rho", "delta_alone"])
@pytest.mark.parametrize("bad", [0.5, math.nan, math.inf, -math.inf, True, "1/2", 1j])
def test_every_part_of_an_event_is_exact(name, bad):
    with pytest.raises(TypeError, match=f"{name} is an exact rational"):
        dataclasses.replace(GOOD, **{name: bad})


@pytest.mark.parametrize("name", ["delta", "rho"])
def test_what_an_event_must_have_is_there(name):
    with pytest.raises(TypeError, match=name):
        dataclasses.replace(GOOD, **{name: None})


@pytest.mark.parametrize(("name", "bad"), [("times", 0), ("times", -1), ("steps", -1), ("moving", -1)])
def test_an_event_is_not_repeated_less_than_once(name, bad):
    with pytest.raises(dp.InputError, match=name):
        dataclasses.replace(GOOD, **{name: bad})
    with pytest.raises(TypeError, match=name):
        dataclasses.replace(GOOD, **{name: 1.5})


def test_whole_numbers_become_rationals_and_sums_stay_what_they_were():
    e = Event(1, 0, 2)
    assert e == Event(Fraction(1), ZERO, Fraction(2))
    assert decode(encode(e), Event) == e
    assert compose((e, repeat(e, 3))).eps == 4
    with pytest.raises(TypeError, match="parts"):
        dataclasses.replace(e, parts=(1,))


@pytest.mark.parametrize("ledger", [False, True])
def test_a_law_that_claims_a_negative_cost_refills_nothing(tmp_path, ledger):
    """The planted fault: without the check, each call gives eps=1 back."""
    from dpframe.mechanisms.registry import unregister_mechanism
    from dpframe.mechanisms.table import TableNoise

    class Refill:
        name, norm = "refill", "L1"

        def calibrate(self, sensitivity, moving, target):
            return TableNoise((1,), Fraction(1), Event(Fraction(-1), ZERO, ZERO))

    dp.register_mechanism("refill")(Refill)
    if ledger:
        dp.Ledger.create(tmp_path / "b.db", eps=3)
    with dp.Session(ledger=tmp_path / "b.db") if ledger else dp.Session(eps=3) as s:
        df = pl.DataFrame({"x": [1, 2, 3]})
        df.dp.count(eps=1)
        try:
            with pytest.raises(dp.DPError):
                df.dp.count(eps=1, mechanism="refill")
        finally:
            unregister_mechanism("refill")
        assert s.spent == 1
