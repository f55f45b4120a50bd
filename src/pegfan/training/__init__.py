"""Training: the paper's protocol, fast on CPUs without torch, and with torch on any device."""

from pegfan.training.engine import Diverged, train
from pegfan.training.metrics import score
from pegfan.training.network import Network
from pegfan.training.settings import Run, Settings, TrainingResult

__all__ = ["Diverged", "Network", "Run", "Settings", "TrainingResult", "score", "train"]
