"""What 0.1 wrote (models, settings, stored runs), translated to today's names."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pegfan.recipe import Recipe

__all__ = ["description_of", "parts_of", "pins_of", "recipe_of", "renamed", "spelled"]

_SCALINGS = {"raw": "none", "scaled": "columns", False: "none"}

_FIELDS = (
    *("method", "h", "max_levels", "kind", "regime", "hops", "direction", "scaling", "include_features"),
    *("adjacency", "labels", "structure", "settings", "tree_file"),
)
"""The fields of a recipe that `spelled` has words for."""

_CLASSIFIER_WORDS = {"channels": "kind", "option": "regime", "normalize_features": "scaling", "features": "stand_in"}
"""Old and new names of the classifiers' parameters."""


def renamed(parameters: Mapping[str, Any], warn: bool = False) -> dict[str, Any]:
    """Parameters of a classifier by their names of today.

    Examples
    --------
    >>> renamed({"channels": "b", "normalize_features": False, "h": 4})
    {'kind': 'b', 'scaling': 'none', 'h': 4}
    """
    result = {}
    for name, value in parameters.items():
        new = _CLASSIFIER_WORDS.get(name, name)
        if warn and new != name:
            warnings.warn(f"{name}= is called {new}= since 0.2", FutureWarning, stacklevel=4)
        result[new] = _SCALINGS.get(value, value) if new == "scaling" else value
    return result


def recipe_of(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe of 0.1, which had other defaults, as `Recipe.of` takes it.

    Examples
    --------
    >>> recipe_of({"hops": 2, "features": "raw"})
    {'method': 'none', 'regime': 'heterophily', 'hops': 2, 'scaling': 'none'}
    """
    return {"method": "none", "regime": "heterophily", **pins_of(stored)}


def pins_of(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Some fields of a recipe of 0.1 by the names that they have now."""
    words = dict(stored)
    if "features" in words:
        features = words.pop("features")
        words["scaling"] = _SCALINGS.get(features, features)
    return words


def spelled(recipe: Recipe, directed: bool = True) -> dict[str, Any]:
    """A recipe as the names of stored runs spell it: ``tree``, ``channels`` and ``settings`` of 0.1.

    Names of runs are hashes of this, so that they last: a value that 0.1 left out at its default is left out, and so
    are a newer field that has its default, and the direction on a graph that has none.
    """
    settings = asdict(recipe.settings)
    shared: dict[str, Any] = {} if recipe.include_features else {"include_features": False}
    if recipe.scaling != "none":
        shared["normalize_features"] = recipe.scaling
    if directed and recipe.direction != "out":
        shared["direction"] = recipe.direction
    for name in ("adjacency", "labels", "structure"):
        if getattr(recipe, name):
            shared[name] = True
    for member in fields(recipe):
        value = getattr(recipe, member.name)
        if member.name not in _FIELDS and value != member.default:
            shared[member.name] = value
    if not recipe.has_tree:
        channels = {"model": "fsgnn", "hops": recipe.hops, "option": recipe.regime, **shared}
        return {"tree": None, "channels": channels, "settings": settings}
    both = directed and recipe.direction == "both"
    hops = {"hops": recipe.hops} if recipe.has_powers or both else {}
    channels = {"model": "pegfan", "kind": recipe.kind, "regime": recipe.regime, **hops, **shared}
    return {"tree": _tree(recipe, directed), "channels": channels, "settings": settings}


def parts_of(job: Mapping[str, Any]) -> dict[str, Any]:
    """``tree``, ``channels`` and ``settings`` of a stored job: as 0.1 wrote them, or made from its recipe."""
    from pegfan.recipe import Recipe

    if "recipe" not in job:
        return {name: job[name] for name in ("tree", "channels", "settings")}
    return spelled(Recipe.of(job["recipe"]), directed=job["source"]["where"] != ["synthetic"])


def _tree(recipe: Recipe, directed: bool) -> dict[str, Any]:
    if recipe.tree_file is not None:
        return {"file": recipe.tree_file.name, "sha256": recipe.tree_file.sha256}
    tree: dict[str, Any] = {"method": recipe.method, "h": recipe.h}
    if recipe.max_levels is not None:
        tree["max_levels"] = recipe.max_levels
    if directed:
        tree["direction"] = "out" if recipe.direction in ("both", "words") else recipe.direction
    return tree


def description_of(about: Mapping[str, Any]) -> dict[str, Any]:
    """What ``model.json`` says, whichever version wrote it, in today's form."""
    from pegfan.recipe import FIELDS

    whole = dict(about)
    if whole["version"] > 1:
        return whole
    whole["parameters"] = parameters = renamed(whole["parameters"])
    if whole["class"] == "AutoClassifier":
        whole["members"] = [{**member, "recipe": recipe_of(member["recipe"])} for member in whole["members"]]
        parameters["recipes"] = [recipe_of(recipe) for recipe in parameters["recipes"]]
        parameters["pins"] = pins_of(parameters["pins"] or {})
        return whole
    recipe = {name: value for name, value in parameters.items() if name in FIELDS}
    if whole["stand_in"]:
        recipe["scaling"] = "none"
    if whole["class"] == "FSGNNClassifier":
        recipe["method"] = "none"
    else:
        recipe["regime"] = whole["regime"]
    own = {name: whole.pop(name) for name in ("channels", "attention", "run")}
    whole["members"] = [{"recipe": recipe, "tree": None if whole.get("K") is None else "tree", **own}]
    return whole
