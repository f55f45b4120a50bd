"""Permutation equivariant graph framelets: exact multiscale transforms of signals on graphs, and networks on them.

A graph becomes a tree (`Hierarchy`), a tree becomes framelets (`FrameletSystem`), framelets and hops become channels,
channels become predictions. A `Recipe` describes a whole model.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pegfan import (
        auto,
        channels,
        comparison,
        datasets,
        experiments,
        framelets,
        measures,
        models,
        paper,
        plots,
        relations,
        report,
        results,
        signals,
        testing,
        training,
        trees,
    )
    from pegfan._families import families
    from pegfan.auto import AutoClassifier, AutoRegressor, load_classifier, load_model
    from pegfan.channels import make_channels, make_fsgnn_channels
    from pegfan.classifier import (
        FSGNNClassifier,
        NetworkClassifier,
        PEGFANClassifier,
        PEGFANRegressor,
        RecipeClassifier,
    )
    from pegfan.comparison import compare
    from pegfan.datasets import read_graph
    from pegfan.framelets import (
        Coefficients,
        FrameletFrame,
        FrameletSystem,
        adjoint_test,
        binary_haar,
        check_filters,
        haar_basis,
        left_inverse,
        permuted,
        threshold,
    )
    from pegfan.graph import Graph, Split
    from pegfan.recipe import Recipe
    from pegfan.signals import compress, denoise, inpaint
    from pegfan.training import Settings, train
    from pegfan.trees import Hierarchy, build_tree

__version__ = "0.2.0.dev0"

logging.getLogger("pegfan").addHandler(logging.NullHandler())  # silent, unless a program asks for it

__all__ = [
    "AutoClassifier",
    "AutoRegressor",
    "Coefficients",
    "FSGNNClassifier",
    "FrameletFrame",
    "FrameletSystem",
    "Graph",
    "Hierarchy",
    "NetworkClassifier",
    "PEGFANClassifier",
    "PEGFANRegressor",
    "Recipe",
    "RecipeClassifier",
    "Settings",
    "Split",
    "adjoint_test",
    "auto",
    "binary_haar",
    "build_tree",
    "channels",
    "check_filters",
    "compare",
    "comparison",
    "compress",
    "datasets",
    "denoise",
    "experiments",
    "families",
    "framelets",
    "haar_basis",
    "inpaint",
    "large",
    "left_inverse",
    "load_classifier",
    "load_model",
    "make_channels",
    "make_fsgnn_channels",
    "measures",
    "models",
    "paper",
    "permuted",
    "plots",
    "read_graph",
    "relations",
    "report",
    "results",
    "signals",
    "testing",
    "threshold",
    "train",
    "training",
    "trees",
]

_DOORS = (
    *("auto", "channels", "classifier", "comparison", "datasets", "decisions", "demo", "experiments", "explain"),
    *(
        "fitted",
        "framelets",
        "importance",
        "integrations",
        "large",
        "layouts",
        "measures",
        "metrics",
        "models",
        "networks",
        "nn",
    ),
    *(
        "paper",
        "plots",
        "recipe",
        "relations",
        "report",
        "results",
        "running",
        "signals",
        "splits",
        "testing",
        "training",
        "trees",
    ),
)
_LAZY = {
    "AutoClassifier": "auto",
    "AutoRegressor": "auto",
    "Coefficients": "framelets",
    "FSGNNClassifier": "classifier",
    "FrameletFrame": "framelets",
    "FrameletSystem": "framelets",
    "Graph": "graph",
    "Hierarchy": "trees",
    "NetworkClassifier": "classifier",
    "PEGFANClassifier": "classifier",
    "PEGFANRegressor": "classifier",
    "Recipe": "recipe",
    "RecipeClassifier": "classifier",
    "Settings": "training",
    "Split": "graph",
    "adjoint_test": "framelets",
    "binary_haar": "framelets",
    "build_tree": "trees",
    "check_filters": "framelets",
    "compare": "comparison",
    "compress": "signals",
    "denoise": "signals",
    "families": "_families",
    "haar_basis": "framelets",
    "inpaint": "signals",
    "left_inverse": "framelets",
    "load_classifier": "auto",
    "load_model": "auto",
    "make_channels": "channels",
    "make_fsgnn_channels": "channels",
    "permuted": "framelets",
    "read_graph": "datasets",
    "threshold": "framelets",
    "train": "training",
}


def __getattr__(name: str) -> Any:
    """Import the parts that take a moment when they are first used."""
    if name in _LAZY:
        value = getattr(importlib.import_module(f"pegfan.{_LAZY[name]}"), name)
        globals()[name] = value  # in place of the module, where they share a name
        return value
    if name in _DOORS:
        return importlib.import_module(f"pegfan.{name}")
    raise AttributeError(f"module 'pegfan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_DOORS, "__version__"})
