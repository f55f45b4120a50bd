"""The loop of every training: epoch by epoch until validation stops improving."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from pegfan.metrics import METRICS, measure
from pegfan.running import Deadline
from pegfan.training.rows import TARGET, Units

__all__ = ["Course", "Diverged", "InUnits", "Stopping", "Trainer", "Unfinished", "training_loop"]

_TELL = 2.0  # seconds between two sentences about a training
_EVERY = 50  # epochs between two lines of the log

_log = logging.getLogger(__name__)


class Diverged(ValueError):
    """A training loss that became infinite or NaN; smaller learning rates help."""


class Unfinished(Diverged):
    """A training whose time was over before its last stage had ended: there is nothing to show."""


class Stopping(Protocol):
    """When a training ends, see `pegfan.Settings`."""

    @property
    def epochs(self) -> int:
        """The most epochs."""

    @property
    def patience(self) -> int:
        """How many without improvement end the training."""

    @property
    def stop(self) -> str:
        """What must improve: the validation ``"loss"`` or ``"metric"``."""


class Trainer(Protocol):
    """What is trained."""

    def step(self, epoch: int) -> tuple[float, float, Any]:
        """An epoch: the training loss, the validation loss and the outputs of validation nodes."""

    def snapshot(self) -> Any:
        """A copy of all weights."""


class Keeper(Protocol):
    """Keeps how far a training is, so that another process can go on with it."""

    def found(self) -> dict[str, Any] | None:
        """What was kept last, as arrays by name; None where nothing was."""

    def keep(self, state: Callable[[], dict[str, Any]]) -> None:
        """Called after every epoch; what is to be kept is asked for when the time has come."""


class InUnits:
    """A trainer of numbers whose outputs are in the units of the targets, and whose state knows these."""

    def __init__(self, trainer: Any, units: Units) -> None:
        self.trainer, self.units = trainer, units
        self.snapshot, self.attention = trainer.snapshot, trainer.attention
        self.progress, self.resume = (getattr(trainer, name, None) for name in ("progress", "resume"))

    def step(self, epoch: int) -> tuple[float, float, Any]:
        """An epoch, as that of the trainer."""
        loss, val_loss, output = self.trainer.step(epoch)
        return loss, val_loss, self.units.values(output)

    def state(self, snapshot: Any) -> dict[str, Any]:
        """A snapshot as arrays by name."""
        return {**self.trainer.state(snapshot), TARGET: np.array(self.units)}


class Course(NamedTuple):
    """How a training went: its numbers at the best epoch, the weights of that epoch, and the epochs if wanted."""

    numbers: dict[str, Any]
    kept: Any
    history: dict[str, list[Any]] | None


def training_loop(
    trainer: Trainer,
    settings: Stopping,
    val_labels: Any,
    metric: str,
    name: str,
    history: Sequence[str] | None = None,
    tell: Callable[[str], None] | None = None,
    last: bool = False,
    ties: bool = False,
    until: Deadline | None = None,
    keeper: Keeper | None = None,
) -> Course:
    """Train epoch by epoch until validation stops improving.

    Parameters
    ----------
    trainer, settings
        What is trained, and when it ends.
    val_labels, metric
        Of the validation nodes, whose outputs a step gives.
    name
        What an error calls the training.
    history
        To keep losses and metrics of every epoch, and what methods of the trainer of these names give.
    tell
        Called with a sentence every two seconds.
    last
        Keep the weights of the last epoch, not those of the best one.
    ties
        Whether, of epochs with equal metrics, one with a lower validation loss is better.
    until
        When the training is to end, after the epoch that it is in.
    keeper
        Who keeps how far it is; the trainer then has ``progress`` and ``resume``, and a training that was ended goes on
        as if it had not been.
    """
    record: dict[str, list[Any]] = {key: [] for key in ("train_loss", "val_loss", "val_metric", *(history or ()))}
    best, best_epoch, kept, at_best = (np.inf, np.inf), 0, None, (np.nan, np.nan)
    epoch, first, begun = 0, 0, time.perf_counter()
    spoke = begun
    stored = None if keeper is None else keeper.found()
    if stored is not None:
        first, best_epoch = (int(stored[name]) for name in ("epochs", "best_epoch"))
        best, at_best = tuple(stored["best"].tolist()), tuple(stored["at_best"].tolist())
        record = {key: list(stored[f"history_{key}"]) for key in record}
        epoch, kept = first - 1, trainer.resume(stored)  # type: ignore[attr-defined]
    for epoch in range(first, settings.epochs):
        loss, val_loss, val_logits = trainer.step(epoch)
        if epoch % _EVERY == 0:
            _log.debug("%s, epoch %d: training loss %.4f, validation loss %.4f", name, epoch, loss, val_loss)
        if tell and (now := time.perf_counter()) - spoke >= _TELL:
            rate, spoke = (epoch + 1 - first) / (now - begun), now
            most = min(settings.epochs - epoch - 1, settings.patience + best_epoch - epoch)
            tell(
                f"epoch {epoch + 1}, {rate:.1f} per second, validation loss {val_loss:.4f}; "
                f"{most / rate:.0f} s left if it does not improve, {(settings.epochs - epoch - 1) / rate:.0f} s at most"
            )
        if not np.isfinite(loss):
            raise Diverged(f"the training loss became {loss} in epoch {epoch} of {name} with {settings}")
        aim = val_loss
        if history is not None or settings.stop == "metric":
            value = measure(val_logits, val_labels, metric)
            aim = -METRICS[metric].gain(value) if settings.stop == "metric" else val_loss
            if history is not None:
                entries = (loss, val_loss, value, *(getattr(trainer, method)() for method in history))
                for values, entry in zip(record.values(), entries, strict=True):
                    values.append(entry)
        rank = (aim, val_loss if ties else 0.0)
        if rank < best or kept is None:
            best, best_epoch, kept = rank, epoch, trainer.snapshot()
            at_best = (val_loss, measure(val_logits, val_labels, metric))
        elif epoch - best_epoch >= settings.patience:
            break
        if until is not None and until.passed and time.perf_counter() - begun >= until.grace:
            break
        if keeper is not None:
            so_far = {"epochs": epoch + 1, "best_epoch": best_epoch, "best": best, "at_best": at_best}
            so_far |= {f"history_{key}": values for key, values in record.items()}
            keeper.keep(lambda held=so_far: {**held, **trainer.progress()})  # type: ignore[attr-defined,misc]
    if last:
        kept, at_best = trainer.snapshot(), (val_loss, measure(val_logits, val_labels, metric))
    numbers = {
        "epochs": epoch + 1,
        "best_epoch": best_epoch,
        "val_loss": float(at_best[0]),
        "val_metric": float(at_best[1]),
    }
    return Course(numbers, kept, None if history is None else record)
