"""How people read channels: what a channel holds in a few words, and how it is written in text and in mathematics.

A `Channel` is an operator on an input. Reports, figures and the facts that a trained model keeps ask here.
"""

from __future__ import annotations

from itertools import groupby
from typing import Literal

from pegfan._checks import check_kind
from pegfan.channels.channels import Channel, product_name
from pegfan.channels.hops import SUFFIXES
from pegfan.framelets import Operator

__all__ = ["RAISED", "SIDES", "Group", "describe", "formula", "group", "symbol"]

Group = Literal["features", "hops", "scales", "other"]

LOWERED, RAISED = (str.maketrans("0123456789", digits) for digits in ("₀₁₂₃₄₅₆₇₈₉", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
SIDES = {"in": " against the edges", "symmetric": " both ways"}
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_STEPS = {"out": "along", "in": "against"}
_FORMULAS = {"S~": r"\tilde{S}", "RW": r"\mathrm{RW}"}


def group(channel: Channel) -> Group:
    """What a channel shows: the features themselves, hops, a scale of the tree, or something else.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> graph = pf.Graph.from_edges([[0, 1], [1, 2]], features=np.eye(3))
    >>> system = pf.FrameletSystem(pf.Hierarchy.from_nested([0, 1, 2]))
    >>> channels = pf.make_channels(graph, system, kind="c", regime="homophily", hops=2)
    >>> for channel in channels + [Channel("degree", None, graph.adjacency.sum(axis=1))]:
    ...     print(f"{group(channel):9} {symbol(channel):7} {describe(channel)}")
    features  X       the features alone
    hops      S̃ X     one hop with the node itself
    hops      S̃² X    two hops with the node itself
    scales    F₀ S̃ X  the average of one hop with the node itself
    scales    F₁ S̃ X  scale 1 of one hop with the node itself
    other     degree  degree
    """
    check_kind(channel, "channel", Channel)
    if channel.scale is not None:
        return "scales"
    if _steps(channel) and channel.input_name == "X":
        return "hops"
    return "features" if channel.input_name == "X" and not channel.factors else "other"


def describe(channel: Channel) -> str:
    """What a channel holds, in words; see `group`."""
    check_kind(channel, "channel", Channel)
    if channel.what is not None or not (channel.factors or channel.input_name == "X"):
        return channel.what or channel.name
    features = channel.input_name == "X"
    subject, steps = "the features" if features else channel.input_name, _steps(channel)
    hops = ""
    if steps:
        number = _NUMBERS[len(steps)] if len(steps) < len(_NUMBERS) else str(len(steps))
        itself = " with the node itself" if steps[0].hop == "S~" else ""
        hops = f"{number} hop{'s' if len(steps) > 1 else ''}{itself}{_sides(steps)}"
        hops += "" if features else f" of {subject}"
    if channel.scale is not None:
        return f"{f'scale {channel.scale}' if channel.scale else 'the average'} of {hops or subject}"
    return hops or (channel.name if channel.factors else "the features alone")


def symbol(channel: Channel) -> str:
    """A channel's name as the paper prints it; see `group`."""
    check_kind(channel, "channel", Channel)
    if not _named_after_factors(channel):
        return channel.name
    parts = [
        _symbol(factor) + (str(power).translate(RAISED) if power > 1 else "") for factor, power in _powers(channel)
    ]
    return " ".join([*parts, channel.input_name])


def formula(channel: Channel) -> str:
    r"""A channel's name for matplotlib: mathematics if it is named after its factors, such as ``$F_{3}\,S^{2}\,X$``.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> graph = pf.Graph.from_edges([[0, 1], [1, 2]], features=np.eye(3))
    >>> [formula(channel) for channel in pf.make_fsgnn_channels(graph, 2, "homophily")]
    ['$X$', '$\\tilde{S}\\,X$', '$\\tilde{S}^{2}\\,X$']
    """
    check_kind(channel, "channel", Channel)
    formulas = [_formula(factor) for factor, _ in _powers(channel)]
    if None in formulas or not _named_after_factors(channel) or not channel.input_name.isalpha():
        return channel.name.replace("$", r"\$")
    powers = [f"^{{{power}}}" if power > 1 else "" for _, power in _powers(channel)]
    parts = [f"{part}{power}" for part, power in zip(formulas, powers, strict=True)]
    return "$" + r"\,".join([*parts, channel.input_name]) + "$"


def _steps(channel: Channel) -> list[Operator]:
    return [factor for factor in channel.factors if factor.hop is not None]


def _sides(steps: list[Operator]) -> str:
    """Which way hops lead, in words: the first one starts at the node."""
    sides = [str(step.side) for step in steps]
    if len(set(sides)) == 1:
        return SIDES.get(sides[0], "")
    return f", {' then '.join(_STEPS.get(side, side) for side in sides)} the edges"


def _powers(channel: Channel) -> list[tuple[Operator, int]]:
    """The factors, each with its power."""
    runs = ([*run] for _, run in groupby(channel.factors, key=lambda factor: factor.name))
    return [(run[0], len(run)) for run in runs]


def _named_after_factors(channel: Channel) -> bool:
    product = f"{product_name(channel.factors)} {channel.input_name}" if channel.factors else channel.input_name
    return channel.name == product


def _symbol(factor: Operator) -> str:
    if factor.scale is not None:
        return "F" + str(factor.scale).translate(LOWERED)
    return factor.name if factor.hop is None else factor.name.replace("~", "\u0303")


def _formula(factor: Operator) -> str | None:
    """A factor as mathematics; None if it has a name only, such as a hop along one kind of edges."""
    if factor.scale is not None:
        return f"F_{{{factor.scale}}}"
    hop = factor.name if factor.hop is None else factor.hop
    written = _FORMULAS.get(hop, hop if len(hop) == 1 and hop.isalpha() else None)
    if written is None or factor.name == hop:
        return written
    suffix = SUFFIXES.get(str(factor.side), "")
    return rf"{written}_{{\mathrm{{{suffix[1:]}}}}}" if factor.name == hop + suffix else None
