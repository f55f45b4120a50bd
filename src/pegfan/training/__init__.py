"""Training: the paper's protocol, fast on CPUs without torch, and with torch on any device."""

from pegfan.metrics import score
from pegfan.training.engine import train
from pegfan.training.loop import Diverged
from pegfan.training.network import Network
from pegfan.training.settings import Run, Settings, TrainingResult

__all__ = ["Diverged", "Network", "Run", "Settings", "TrainingResult", "score", "train"]
