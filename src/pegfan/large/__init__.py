"""Graphs beyond memory: the same trees, channels and predictions, worked out in pieces on disk."""
