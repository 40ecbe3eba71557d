"""The registry: mechanisms by name, by decorator, and by the entry-point group ``dpframe.mechanisms``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

from dpframe.base.wrong_calls import checked
from dpframe.errors import MechanismError, did_you_mean
from dpframe.mechanisms import base

GROUP = "dpframe.mechanisms"
_LAWS = {
    "laplace": "Laplace",
    "gaussian": "Gaussian",
    "discrete_gaussian": "DiscreteGaussian",
    "gaussian_classic": "GaussianClassic",
    "staircase": "Staircase",
    "optimal_count": "OptimalCount",
    "truncated_laplace": "TruncatedLaplace",
    "tulap": "Tulap",
    "multi_gaussian": "MultiGaussian",
    "quasi_gaussian": "QuasiGaussian",
    "flipped_huber": "FlippedHuber",
    "cactus": "Cactus",
    "row": "Row",
}
_own: dict[str, base.Mechanism] = {}  # built-in ones, made here and nowhere else
_registered: dict[str, base.Mechanism] = {}

T = TypeVar("T", bound=type)


def register_mechanism(name: str) -> Callable[[T], T]:
    """Register a mechanism class under ``name``, for ``mechanism="name"`` on every verb.

    Parameters
    ----------
    name : str
        As the class calls itself.

    Returns
    -------
    decorator
        Gives the class back. Before a law of it is first used, its claim is recomputed.

    Raises
    ------
    MechanismError
        When the name is taken, or the class lacks a part of the protocol (the message says which).

    Examples
    --------
    >>> import dpframe as dp
    >>> @dp.register_mechanism("loud_laplace")
    ... class Loud:
    ...     name = "loud_laplace"
    ...     norm = "L1"
    ...     def calibrate(self, sensitivity, moving, target):
    ...         return dp.mechanism("laplace").calibrate(2 * sensitivity, moving, target)
    >>> dp.unregister_mechanism("loud_laplace")
    """

    def add(cls: T) -> T:
        _add(name, cls(), f"class {cls.__module__}.{cls.__qualname__}")
        return cls

    return add


@checked(example="dp.unregister_mechanism('mine')")
def unregister_mechanism(name: str) -> None:
    """Forget a registered mechanism. The built-in ones stay.

    Parameters
    ----------
    name : str
        An unknown one is no error.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.unregister_mechanism("never_registered")
    """
    _registered.pop(name, None)


@checked(example="dp.mechanism('laplace')")
def mechanism(name: str) -> base.Mechanism:
    """Return the mechanism called ``name``, loading a plug-in that declares it.

    Parameters
    ----------
    name : str
        One of :func:`~dpframe.mechanisms`.

    Returns
    -------
    Mechanism
        With ``name``, ``norm`` and ``calibrate(sensitivity, moving, target)``.

    Raises
    ------
    MechanismError
        For an unknown name, or a plug-in that can't be loaded or lacks a part of the protocol.

    Examples
    --------
    >>> import dpframe as dp
    >>> dp.mechanism("gaussian").norm
    'L2'
    """
    if name in _LAWS:
        if name not in _own:
            made = getattr(import_module(f"dpframe.mechanisms.{name}"), _LAWS[name])()
            _own.setdefault(name, made)
        return _own[name]
    if name in _registered:
        return _registered[name]
    found = [p for p in entry_points(group=GROUP) if p.name == name]
    if not found:
        raise MechanismError(f"There is no mechanism {name!r}. {did_you_mean(name, names())}")
    if len(found) > 1:
        owners = " and ".join(map(_owner, found))
        raise MechanismError(f"Two plug-ins offer a mechanism {name!r}: {owners}. Uninstall one.")
    plugin = found[0]
    try:
        loaded = plugin.load()
    except Exception as e:
        raise MechanismError(
            f"The plug-in {_owner(plugin)} for mechanism {name!r} can't be loaded: {type(e).__name__}: {e}"
        ) from e
    if name not in _registered:  # loading may have run the decorator
        _add(name, loaded() if isinstance(loaded, type) else loaded, f"plug-in {_owner(plugin)}")
    return _registered[name]


def built_in(mech: object) -> bool:
    """Whether ``mech`` is one of this package's own mechanisms: the very object that :func:`mechanism` made.

    Privacy: what a class is called, where it says it comes from and what it inherits prove nothing about its
    noise; so a claim is believed for these objects only, and recomputed for all others.
    """
    return any(mech is own for own in _own.values())


def names() -> list[str]:
    """The names that :func:`~dpframe.mechanism` knows, plug-ins included.

    Returns
    -------
    list of str
        Sorted.

    Examples
    --------
    >>> import dpframe as dp
    >>> {"laplace", "gaussian", "staircase"} <= set(dp.mechanisms())
    True
    """
    return sorted({*_LAWS, *_registered, *(p.name for p in entry_points(group=GROUP))})


def _owner(p: EntryPoint) -> str:
    """A plug-in as its user knows it: what is loaded, and the package it came with."""
    return repr(p.value) if p.dist is None else f"{p.value!r} (package {p.dist.name})"


def _add(name: str, mech: object, owner: str) -> None:
    here = (type(mech).__module__, type(mech).__qualname__)
    taken = _registered.get(name)
    has = taken and (type(taken).__module__, type(taken).__qualname__)
    if name in _LAWS:
        raise MechanismError(f"{owner} wants the name {name!r}, which a built-in mechanism has.")
    if has and has != here:  # the same class again is a notebook's cell run twice
        raise MechanismError(f"{owner} wants the name {name!r}, which {'.'.join(has)} has.")
    if not isinstance(mech, base.Mechanism):
        missing = [part for part in ("name", "norm", "calibrate") if not hasattr(mech, part)]
        raise MechanismError(f"{owner} for mechanism {name!r} lacks: {', '.join(missing)}.")
    if mech.name != name:
        raise MechanismError(f"{owner} for mechanism {name!r} calls itself {mech.name!r}.")
    if mech.norm not in ("L1", "L2"):
        raise MechanismError(f"{owner} for mechanism {name!r} has norm {mech.norm!r}; it is 'L1' or 'L2'.")
    _registered[name] = mech
