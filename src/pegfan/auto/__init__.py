"""Automatic training: a small set of recipes is tried within a time budget, and validation chooses."""

from pegfan.auto.classifier import AutoClassifier
from pegfan.auto.recipes import Recipe
from pegfan.auto.search import Candidate

__all__ = ["AutoClassifier", "Candidate", "Recipe"]
