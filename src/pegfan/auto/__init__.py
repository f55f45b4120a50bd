"""Automatic training: recipes tried within a time budget, and chosen on validation nodes."""

from pegfan.auto.classifier import AutoClassifier

__all__ = ["AutoClassifier"]
