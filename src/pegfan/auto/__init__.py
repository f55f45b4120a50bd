"""Automatic training: recipes tried within a time budget, and chosen on validation nodes."""

from pegfan.auto.classifier import AutoClassifier, AutoRegressor, load_classifier, load_model

__all__ = ["AutoClassifier", "AutoRegressor", "load_classifier", "load_model"]
