"""Automatic training: recipes tried within a time budget, and chosen on validation nodes."""

from pegfan.auto.classifier import AutoClassifier, load_classifier

__all__ = ["AutoClassifier", "load_classifier"]
