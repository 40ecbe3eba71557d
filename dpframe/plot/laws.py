"""Pictures of laws of noise: their densities at one guarantee, and their errors over many."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dpframe.accounting.events import Number, rational
from dpframe.api.prices import prices
from dpframe.base.arguments import check_flag, check_whole, check_word
from dpframe.base.wrong_calls import checked
from dpframe.errors import Arg, InputError, MechanismError
from dpframe.mechanisms.auto import LOSSES, Asked, choose
from dpframe.mechanisms.base import Noise, Target
from dpframe.mechanisms.registry import mechanism
from dpframe.plot.charts import alt, data, layers, short

if TYPE_CHECKING:
    import altair

STEPS = (64, 1)  # grid steps to a sensitivity: of a sum; of a count, for laws that serve nothing else
EPSILONS = tuple(map(Fraction, ("0.1", "0.2", "0.5", "1", "1.5", "2", "3", "5", "10")))
DELTAS = tuple(Fraction(1, 10**k) for k in (9, 7, 5, 3))
RHOS = tuple(map(Fraction, ("0.001", "0.003", "0.01", "0.03", "0.1", "0.3", "1", "3")))
SLOW = ("cactus",)  # takes seconds for each guarantee
POINTS = 101


@checked(example="dp.plot.noise(['laplace', 'gaussian'], eps=1, delta=1e-6)")
def noise(
    mechanisms: str | Sequence[str],
    *,
    eps: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    sensitivity: Number = 1,
    interactive: bool = True,
) -> altair.LayerChart:
    """Draw the densities of mechanisms that give the same guarantee.

    Parameters
    ----------
    mechanisms : str or list of str
        Names from :func:`dpframe.mechanisms`.
    eps, delta : number
        The guarantee; eps is 1 and delta 1e-6 unless you say. Laws that take no delta have their eps alone.
    rho : number
        Instead: the guarantee in zCDP.
    sensitivity : number, default 1
        How far one unit moves the exact answer, in the answer's unit.
    interactive : bool, default True
        Sliders for eps, delta (or rho) and sensitivity; they work without network. The laws of all positions
        are calibrated now: a law that can't give one of those guarantees is missing at that position.

    Returns
    -------
    altair.LayerChart
        Noise in the answer's unit against density.

    Raises
    ------
    MechanismError
        For an unknown mechanism, or one that can't give the asked guarantee.
    InputError
        For numbers that are no positive numbers; and for ``interactive`` with a mechanism that takes seconds for
        each guarantee.

    Notes
    -----
    Privacy: laws are public. The densities are those of the calibrated integer laws, 64 steps to a
    sensitivity (1 step for laws of counts).

    Examples
    --------
    >>> import dpframe as dp
    >>> chart = dp.plot.noise("laplace", eps=0.5, interactive=False)
    >>> chart.to_dict()["title"]
    'Noise at eps = 0.5, delta = 1e-06, sensitivity 1'
    """
    names = _names(mechanisms)
    check_flag("interactive", interactive, False)
    if interactive and any(n in SLOW for n in names):
        slow = next(n for n in names if n in SLOW)
        raise InputError(
            f"{slow!r} takes seconds for each position of the sliders.", hint=Arg("interactive", False)
        )
    size = float(rational(sensitivity, "sensitivity"))
    if rho is not None:
        if eps is not None or delta is not None:
            raise InputError("The guarantee is eps= with delta=, or rho=.", hint=Arg("rho", 0.1))
        first, second = _with(RHOS, rational(rho, "rho")), [Fraction(0)]
        at = (first.index(rational(rho, "rho")), 0)
    else:
        e, d = rational(1 if eps is None else eps, "eps"), _delta(1e-6 if delta is None else delta)
        first, second = _with(EPSILONS, e), _with(DELTAS, d) if d else [d]
        at = (first.index(e), second.index(d))
    settings = [(i, j) for i in range(len(first)) for j in range(len(second))] if interactive else [at]
    rows: list[dict[str, Any]] = []
    for name in names:
        for i, j in settings:
            asked = Target(rho=first[i]) if rho is not None else Target(first[i], second[j])
            try:
                law, steps = _law(name, asked)
            except MechanismError:
                if (i, j) == at:
                    raise
                continue
            rows += [{"mechanism": name, "i": i, "j": j, **p} for p in _points(law, steps)]
    wide = 1.15 * max(abs(r["x"]) for r in rows if (r["i"], r["j"]) == at)
    guarantee = ("rho",) if rho is not None else ("eps", "delta")
    return _densities(rows, guarantee, (first, second), at, size, wide, interactive)


@checked(example="dp.plot.error(['laplace', 'gaussian'], eps=[0.1, 1])")
def error(
    mechanisms: str | Sequence[str],
    *,
    eps: Any = 1,
    delta: Any = 1e-6,
    sensitivity: Number = 1,
    numbers: int = 1,
    loss: str = "rmse",
) -> altair.LayerChart:
    """Draw the errors of mechanisms against eps, or against delta.

    Parameters
    ----------
    mechanisms : str or list of str
    eps, delta : number, one of them a list
        What is listed is the horizontal axis.
    sensitivity : number, default 1
        How far one unit moves one of the numbers.
    numbers : int, default 1
        How many numbers one unit moves together (groups it may be in, times blocks).
    loss : {"rmse", "l1"}
        The root mean square error, or the mean absolute error, of one number.

    Returns
    -------
    altair.LayerChart
        Both axes logarithmic; a law is missing where it can't give the guarantee.

    Raises
    ------
    InputError, MechanismError
        For wrong numbers, an unknown mechanism, or when no law can give any of the guarantees.

    Notes
    -----
    Privacy: laws are public; nothing is spent.

    Examples
    --------
    >>> import dpframe as dp
    >>> chart = dp.plot.error(["laplace", "gaussian"], eps=1, delta=[1e-9, 1e-6, 1e-3], numbers=16)
    >>> chart.to_dict()["layer"][0]["encoding"]["x"]["title"]
    'delta'
    """
    names = _names(mechanisms)
    listed = [n for n, v in (("eps", eps), ("delta", delta)) if not isinstance(v, int | float | Fraction)]
    if len(listed) != 1:
        raise InputError(
            "One of eps= and delta= is a list: what the error is drawn against.",
            hint=Arg("eps", [0.1, 0.5, 1, 2]),
        )
    check_word("loss", loss, LOSSES, "l1")
    check_whole("numbers", numbers, 1, 10**6, right=4, said="10**6")
    size = float(rational(sensitivity, "sensitivity"))
    axis = listed[0]
    values = prices(axis, eps if axis == "eps" else delta)
    rows, refused = [], None
    for name in names:
        for v in values:
            d = _delta(float(v) if axis == "delta" else delta)
            target = Target(v if axis == "eps" else rational(eps, "eps"), d)
            try:
                law, steps = _law(name, target, numbers)
            except MechanismError as e:
                refused = e
                continue
            off = (law.std if loss == "rmse" else law.mean_abs) * size / steps
            rows.append({"mechanism": name, axis: float(v), "error": short(off)})
    if not rows and refused is not None:
        raise refused
    x = alt.X(f"{axis}:Q", title=axis, scale=alt.Scale(type="log"))
    y = alt.Y("error:Q", title="RMSE" if loss == "rmse" else "E|X|", scale=alt.Scale(type="log"))
    base = data(rows).encode(x=x, y=y, color=_colour(names), tooltip=["mechanism:N", f"{axis}:Q", "error:Q"])
    other = f"delta = {float(_delta(delta)):g}" if axis == "eps" else f"eps = {float(rational(eps, 'eps')):g}"
    many = f", {numbers} numbers that move together" if numbers > 1 else ""
    return layers(base.mark_line(), base.mark_point(filled=True), title=f"Error at {other}{many}")


def _names(mechanisms: Any) -> list[str]:
    names = [mechanisms] if isinstance(mechanisms, str) else mechanisms
    if not isinstance(names, list | tuple) or not names or not all(isinstance(n, str) for n in names):
        raise InputError(
            Arg("mechanisms", mechanisms), " must be names of mechanisms.", hint="['laplace', 'gaussian']"
        )
    for n in names:
        mechanism(n)  # refuses unknown ones
    return list(dict.fromkeys(names))


def _with(values: tuple[Fraction, ...], more: Fraction) -> list[Fraction]:
    return sorted({*values, more})


def _delta(value: Any) -> Fraction:
    return rational(value, "delta", zero=True, below=1)


def _law(name: str, target: Target, numbers: int = 1) -> tuple[Noise, int]:
    """The law of one number, and how many steps a sensitivity has."""
    for steps in STEPS:
        asked = Asked(((numbers * steps, numbers * steps**2),), (steps,), numbers, target)
        try:
            return choose(name, asked).noises[0], steps
        except MechanismError as e:
            refused = e
    raise refused


def _points(law: Noise, steps: int) -> list[dict[str, float]]:
    reach = max(law.interval(0.999), steps)
    half = np.unique(np.linspace(0, reach, POINTS // 2 + 1).round().astype(np.int64))
    k = np.concatenate([-half[:0:-1], half])
    rmse, off = short(law.std / steps), short(law.mean_abs / steps)
    return [
        {"x": short(a / steps), "d": short(p * steps), "rmse": rmse, "abs": off}
        for a, p in zip(k.tolist(), law.pmf(k).tolist())
    ]


def _colour(names: Sequence[str]) -> Any:
    return alt.Color("mechanism:N", sort=list(names), title=None, legend=alt.Legend(orient="top"))


def _densities(
    rows: list[dict[str, Any]],
    guarantee: tuple[str, ...],
    settings: tuple[list[Fraction], list[Fraction]],
    at: tuple[int, int],
    sensitivity: float,
    wide: float,
    interactive: bool,
) -> altair.LayerChart:
    names = list(dict.fromkeys(r["mechanism"] for r in rows))
    shown = [[float(v) for v in values] for values in settings]
    said = [f"{g} = {v[i]:g}" for g, v, i in zip(guarantee, shown, at)]
    title: Any = f"Noise at {', '.join(said)}, sensitivity {sensitivity:g}"
    edge = wide * sensitivity
    chart = data(rows).mark_line(clip=True)
    if interactive:
        params = [
            alt.param(
                name=f"{g}_at",
                value=i,
                bind=alt.binding_range(min=0, max=len(v) - 1, step=1, name=f"{g} (position) "),
            )
            for g, v, i in zip(guarantee, shown, at)
            if len(v) > 1
        ]
        slide = alt.binding_range(
            min=sensitivity / 10, max=sensitivity * 5, step=sensitivity / 10, name="sensitivity "
        )
        params.append(alt.param(name="sensitivity", value=sensitivity, bind=slide))
        places = [f"{g}_at" if len(v) > 1 else "0" for g, v in zip(guarantee, shown)]
        keep = " && ".join(f"datum.{k} == {p}" for k, p in zip("ij", places))
        told = " + ', ".join(f"{g} = ' + {json.dumps(v)}[{p}]" for g, v, p in zip(guarantee, shown, places))
        title = alt.Title(text=alt.expr(f"'Noise at {told} + ', sensitivity ' + sensitivity"))
        chart = chart.add_params(*params).transform_filter(keep)
        factor = "sensitivity"
    else:
        factor = repr(sensitivity)
    chart = chart.transform_calculate(
        noise=f"datum.x * {factor}",
        density=f"datum.d / {factor}",
        rms=f"datum.rmse * {factor}",
        mean=f"datum.abs * {factor}",
    ).encode(
        x=alt.X("noise:Q", title="noise, in the answer's unit", scale=alt.Scale(domain=[-edge, edge])),
        y=alt.Y("density:Q", title="density"),
        order="noise:Q",
        color=_colour(names),
        tooltip=[
            "mechanism:N",
            alt.Tooltip("noise:Q", format=".4g"),
            alt.Tooltip("density:Q", format=".4g"),
            alt.Tooltip("rms:Q", format=".4g", title="RMSE"),
            alt.Tooltip("mean:Q", format=".4g", title="E|X|"),
        ],
    )
    return layers(chart, title=title)
