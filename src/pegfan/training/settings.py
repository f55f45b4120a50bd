"""The settings of a training run, and its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, Self

import numpy as np

from pegfan import _defaults as default
from pegfan._checks import MOST, check_choice, check_flag, check_integer, check_number
from pegfan.metrics import METRICS


@dataclass(frozen=True)
class Settings:
    """Settings of the network and of its training; the defaults do well on chameleon.

    Attributes
    ----------
    hidden, layers, dropout, hop_normalize
        Of the network, see `pegfan.models.ChannelNetwork`.
    lr_fc, wd_fc1, wd_fc2
        Learning rate of the layers; weight decay of the channel layers and of the output layer.
    lr_sca, wd_sca
        Learning rate and weight decay of the attention.
    epochs, patience
        The most epochs, and how many without improvement on validation end the training.
    stop
        What must improve: the validation ``"loss"``, as in the paper, or the ``"metric"``.
    class_weights
        Whether classes count equally in the loss, whatever their sizes.
    """

    hidden: int = default.HIDDEN
    layers: int = default.LAYERS
    dropout: float = default.DROPOUT
    hop_normalize: bool = default.HOP_NORMALIZE
    lr_fc: float = 0.01
    lr_sca: float = 0.005
    wd_fc1: float = 0.0
    wd_fc2: float = 0.0
    wd_sca: float = 0.1
    epochs: int = 1500
    patience: int = 100
    stop: Literal["loss", "metric"] = "loss"
    class_weights: bool = False

    def __post_init__(self) -> None:
        # Networks beyond that take minutes before their first epoch, so that no budget of time would hold.
        ranges = {"hidden": (1, 4096), "layers": (2, 64), "epochs": (1, MOST), "patience": (1, MOST)}
        for name, (least, most) in ranges.items():
            check_integer(getattr(self, name), name, least, most)
        for name in ("dropout", "lr_fc", "lr_sca", "wd_fc1", "wd_fc2", "wd_sca"):
            check_number(getattr(self, name), name)
        for name in ("hop_normalize", "class_weights"):
            check_flag(getattr(self, name), name)
        if self.dropout >= 1:
            raise ValueError(f"dropout must be below 1, got {self.dropout}")
        check_choice(self.stop, "stop", ("loss", "metric"))
        for entry in fields(self):  # 0 and 0.0 are one setting, and so are NumPy's numbers and Python's
            plain: Any = type(entry.default)
            object.__setattr__(self, entry.name, plain(getattr(self, entry.name)))

    @classmethod
    def of(cls, given: Settings | Mapping[str, Any] | None) -> Self:
        """Settings from settings, from a mapping of some of them, or the defaults."""
        if given is None:
            return cls()
        if isinstance(given, cls):
            return given
        if not isinstance(given, Mapping):
            raise TypeError(f"settings are a Settings object or a mapping, got {type(given).__name__}")
        unknown = set(given) - set(cls.__dataclass_fields__)
        if unknown:
            names = ", ".join(cls.__dataclass_fields__)
            raise ValueError(f"unknown setting {sorted(unknown)[0]!r}; the settings are {names}")
        return replace(cls(), **given)

    def changes(self) -> dict[str, Any]:
        """The settings that differ from the defaults."""
        every = ((entry.name, getattr(self, entry.name), entry.default) for entry in fields(self))
        return {name: value for name, value, standard in every if value != standard}


@dataclass(frozen=True, eq=False)
class Run:
    """Training on one split.

    Attributes
    ----------
    split, seed
        Which split, and the seed of its weights and dropout.
    epochs, best_epoch
        How many epochs ran, and which one was best on validation (counted from 0).
    val_loss, val_metric, test_metric
        At the best epoch; the test nodes are looked at once, at the end. NaN where a part is empty.
    seconds
        CPU time.
    attention
        The weights of the channels.
    state
        The network's ``state_dict`` as NumPy arrays.
    history
        ``train_loss``, ``val_loss``, ``val_metric`` and ``attention`` of every epoch, where asked for.
    """

    split: int
    seed: int
    epochs: int
    best_epoch: int
    val_loss: float
    val_metric: float
    test_metric: float
    seconds: float
    attention: Any = field(repr=False)
    state: dict[str, Any] = field(repr=False)
    history: dict[str, list[Any]] | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """Runs on several splits.

    Attributes
    ----------
    runs
        One per split, in their order; fewer if the training was interrupted.
    settings, metric, engine
        What was asked for, and which path was taken.
    interrupted
        Whether Ctrl-C ended it early.
    """

    runs: Sequence[Run]
    settings: Settings
    metric: str
    engine: str
    interrupted: bool = False

    @property
    def mean(self) -> float:
        """The mean of the test metric over splits."""
        return float(np.mean([run.test_metric for run in self.runs]))

    @property
    def std(self) -> float:
        """Its population standard deviation, as the paper reports it."""
        return float(np.std([run.test_metric for run in self.runs]))

    @property
    def val_mean(self) -> float:
        """The mean of the validation metric: what settings are chosen by."""
        return float(np.mean([run.val_metric for run in self.runs]))

    def __str__(self) -> str:
        seconds, shown = sum(run.seconds for run in self.runs), METRICS[self.metric].show
        epochs = sum(run.epochs for run in self.runs)
        count = f"{len(self.runs)} split{'s' if len(self.runs) > 1 else ''}"
        return (
            f"{self.metric} {shown(self.mean)} ± {shown(self.std)} on test, {shown(self.val_mean)} on "
            f"validation; {count}, {epochs} epochs, {seconds:.1f} s CPU ({self.engine})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything but weights and histories, for JSON."""
        return {
            "settings": asdict(self.settings),
            "metric": self.metric,
            "engine": self.engine,
            "interrupted": self.interrupted,
            "mean": self.mean,
            "std": self.std,
            "runs": [
                {k: v for k, v in vars(run).items() if k not in ("state", "history", "attention")}
                | {"attention": [float(a) for a in run.attention]}
                for run in self.runs
            ],
        }
