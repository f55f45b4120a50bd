"""Training: the paper's protocol, on any device, and fast on CPUs."""

from pegfan.training.engine import predict, score, train
from pegfan.training.settings import Run, Settings, TrainingResult

__all__ = ["Run", "Settings", "TrainingResult", "predict", "score", "train"]
