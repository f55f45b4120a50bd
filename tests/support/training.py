"""Training on one split without a classifier."""

from __future__ import annotations

from typing import Any

from pegfan.channels import Channels
from pegfan.fitted import Trained, train_member
from pegfan.graph import Graph
from pegfan.recipe import Recipe
from pegfan.splits import settle_data


def train_recipe(
    recipe: Recipe, graph: Graph, split: Any, seed: int, *, sample_weight: Any = None, **options: Any
) -> tuple[Trained, Channels]:
    """Train a recipe on a split of a graph, as `RecipeClassifier` does."""
    data = settle_data(graph, split, None, seed, sample_weight)
    recipe = recipe.settled(graph, data.split)
    tree = recipe.build_tree(graph)
    channels = recipe.channels(graph, tree, split=data.split, scale=recipe.scale(graph))
    return train_member(recipe, graph, data.split, seed, tree, channels, sample_weight=data.sample_weight, **options)
