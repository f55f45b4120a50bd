"""The training loop: the paper's protocol on given channels, splits and settings."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import numpy as np

from pegfan import _defaults as default
from pegfan._arrays import FloatArray
from pegfan._checks import check_choice, check_integer, check_kind, shown
from pegfan._extras import need
from pegfan.channels import Channels
from pegfan.graph import Split, as_split, metric_problem
from pegfan.metrics import METRICS, score
from pegfan.running import Deadline, Progress, Runner, Step
from pegfan.training.batches import JUDGED, ROWS, BatchSteps, RowsInMemory, suits
from pegfan.training.fast import ChainSteps
from pegfan.training.loop import InUnits, training_loop
from pegfan.training.network import Network
from pegfan.training.rows import Labelled, Units, loss_weights
from pegfan.training.settings import Run, Settings, TrainingResult

_log = logging.getLogger(__name__)

ENGINES = ("auto", "fast", "batches", "plain")


def train(
    channels: Channels,
    labels: Any,
    splits: Split | Sequence[Split],
    settings: Settings | Mapping[str, Any] | None = None,
    *,
    classes: int | None = None,
    sample_weight: Any = None,
    metric: str | None = None,
    seed: int = default.SEED,
    engine: Literal["auto", "fast", "batches", "plain"] = "auto",
    device: str | None = None,
    batch: int | None = None,
    workers: int = 1,
    threads: int = 1,
    until: Deadline | None = None,
    history: bool = False,
    progress: Progress | None = None,
) -> TrainingResult:
    """Train the network on every split: Adam in three groups, early stopping on validation, test at the best epoch.

    Parameters
    ----------
    channels
        What the network sees.
    labels
        Class numbers of all nodes, −1 where there is none. Numbers of a floating type are targets, NaN where there is
        none: they are brought to mean 0 and variance 1 over the training nodes, and the loss is the squared error.
    splits
        One split or several.
    settings
        Settings, or a mapping of those that differ from the defaults.
    classes
        The number of classes, where it is more than the largest label plus one.
    sample_weight
        Per node, how much it counts in the losses of training and validation: 2 is as if there were two of it, 0 as if
        it were in neither part. By default 1. Metrics do not use it.
    metric
        A name of `pegfan.metrics.METRICS`; by default ``"accuracy"``, and ``"r2"`` for targets.
    seed
        Of the first split; split i has seed + i, so that splits do not depend on each other.
    engine
        ``"plain"`` is PyTorch on any device (``pip install 'pegfan[torch]'``); ``"fast"`` the same mathematics on
        CPUs, in compiled loops and without torch; ``"batches"`` likewise, step by step on some rows. ``"auto"`` takes
        compiled loops on CPUs for networks of two layers: batches where `batch` is given, or where there are 32,768
        training nodes or more and at most 4,096 entries per row, so that all rows would take long to prepare.
    device
        For the plain engine, such as ``"cuda"``.
    batch
        Rows that a step takes at a time; no channel is formed for more rows than these. By default all, and 2,048 in
        the engine ``"batches"``. There an epoch has at most 64 steps, and is judged by at most 16,384 validation
        nodes, evenly spaced in canonical order; what is judged and kept is the mean of the weights over about the last
        hundred steps.
    workers
        Processes that share the splits; results do not depend on their number.
    threads
        Of the engine ``"batches"``, which share the channels; likewise.
    until
        When a training is to end after the epoch that it is in, whatever the settings say.
    history
        Whether to keep losses, metrics and attention of every epoch.
    progress
        Called with a `pegfan.running.Step` after every split, and with one worker every two seconds; its text has the
        epoch, the rate of epochs, the time that is left.

    Returns
    -------
    TrainingResult
        Runs in the order of the splits; those that are finished if Ctrl-C came. Where channels, labels and splits are
        renumbered, weights are the same bit for bit (on one machine) if the channels of `make_channels` say so.

    Raises
    ------
    Diverged
        Where the training loss becomes infinite or NaN.

    Examples
    --------
    >>> import pegfan as pf
    >>> graph = pf.datasets.synthetic(0.0, n=300, n_edges=3000, n_features=20, splits=2)
    >>> channels = pf.make_channels(graph, pf.FrameletSystem(pf.build_tree(graph)), kind="b", regime="heterophily")
    >>> result = pf.train(channels, graph.labels, graph.splits, {"epochs": 60})
    >>> len(result.runs), result.mean > 0.5
    (2, True)
    """
    task = _check(channels, labels, splits, Settings.of(settings), sample_weight, metric, classes)
    seed = check_integer(seed, "seed", least=0, most=2**63 - 10**6)  # with room for splits and epochs
    if until is not None:
        check_kind(until, "until", Deadline)
    most = max(len(part.train) for part in task.splits)
    name = choose_engine(engine, device, task.settings, batch, channels, most)
    threads = check_integer(threads, "threads", 1)
    task = task._replace(seed=seed, engine=name, device=device, batch=batch, threads=threads)
    return train_splits(task._replace(until=until, history=history, progress=progress), workers)


class TrainingTask(NamedTuple):
    """What the trainings on all splits have in common; labels, weights and splits are checked, see `train`."""

    channels: Channels
    y: Any
    splits: Sequence[Split]
    settings: Settings
    classes: int
    metric: str
    sample_weight: FloatArray | None = None
    seed: int = default.SEED
    engine: str = "plain"
    device: str | None = None
    batch: int | None = None
    threads: int = 1
    until: Deadline | None = None
    history: bool = False
    progress: Progress | None = None


def train_splits(task: TrainingTask, workers: int = 1) -> TrainingResult:
    """Train on every split, and tell how it goes."""
    count, progress = len(task.splits), task.progress
    begin = Step(0, count, f"{task.engine} engine, {len(task.channels)} channels, {count} splits")
    _log.info("training: %s; %s", begin, task.settings)
    if progress:
        progress(begin)
    here = workers == 1 or count == 1
    # Other processes cannot call `progress`, and do not need what `channels` has cached.
    shared = task if here else task._replace(channels=task.channels[:], progress=None)
    start, show = time.perf_counter(), METRICS[task.metric].show
    runs: list[Run] = []
    interrupted = False
    try:
        with Runner(workers, shared=shared) as runner:
            for run in runner.map(_run, range(count), here=here):
                runs.append(run)
                left = (time.perf_counter() - start) / len(runs) * (count - len(runs))
                text = (
                    f"split {run.split}: {show(run.test_metric)} on test, {show(run.val_metric)} on "
                    f"validation, {run.epochs} epochs, {run.epochs / max(run.seconds, 1e-9):.0f} per second"
                    + (f"; about {left:.0f} s left" if len(runs) < count else "")
                )
                _log.info("training: %s", text)
                if progress:
                    progress(Step(len(runs), count, text, run))
    except KeyboardInterrupt:
        interrupted = True
        if not runs:
            raise
    in_order = sorted(runs, key=lambda run: run.split)
    return TrainingResult(in_order, task.settings, task.metric, task.engine, interrupted)


def _run(task: TrainingTask, index: int) -> Run:
    """Train on a split; the test nodes come last."""
    start, settings, split, seed = time.process_time(), task.settings, task.splits[index], task.seed + index
    train, val = (Labelled.of(task.channels, nodes, task.y, task.sample_weight) for nodes in (split.train, split.val))
    if task.engine == "batches":
        val = val.some(JUDGED)
    weights, truth = loss_weights(train.labels, settings.class_weights, train.weights), val.labels
    units = Units.of(train.labels, weights) if task.y.dtype.kind == "f" else None
    if units is not None:
        train, val = (part._replace(labels=units.standard(part.labels)) for part in (train, val))
    tell = None
    if task.progress is not None:
        progress, count = task.progress, len(task.splits)
        tell = lambda text: progress(Step(index, count, f"split {index}: {text}"))  # noqa: E731
    names = ("attention",) if task.history else None
    with _trainer(task, train, val, weights, seed) as steps:
        trainer = steps if units is None else InUnits(steps, units)
        course = training_loop(trainer, settings, truth, task.metric, f"split {index}", names, tell, until=task.until)
        state = trainer.state(course.kept)
    network = Network(state, settings)
    return Run(
        split=index,
        seed=seed,
        **course.numbers,
        test_metric=score(network.predict(task.channels, split.test), task.y[split.test], task.metric),
        seconds=time.process_time() - start,
        attention=network.attention,
        state=state,
        history=course.history,
    )


@contextmanager
def _trainer(task: TrainingTask, train: Labelled, val: Labelled, weights: FloatArray, seed: int) -> Iterator[Any]:
    """The steps of the engine that was chosen, with the rows of training and validation nodes."""
    channels, settings = task.channels, task.settings
    if task.engine == "plain":
        from pegfan.training.plain import PlainSteps, seeded

        with seeded(seed):
            yield PlainSteps(task, train, val, weights, seed)
        return
    state = Network.draw(channels.widths, task.classes, settings, seed).state
    if task.engine == "fast":
        yield ChainSteps(channels, state, train, val, weights, settings, seed)
        return
    rows = RowsInMemory(channels, train.places, val.places, seed, task.batch or ROWS)
    with BatchSteps(rows, state, train, val, weights, settings, seed, task.threads) as steps:
        yield steps


def check_weights(given: Any, n: int) -> FloatArray | None:
    """Weights of nodes, checked; None where none are given."""
    if given is None:
        return None
    weights = np.asarray(given)
    if weights.shape != (n,) or weights.dtype.kind not in "buif":
        raise ValueError(f"sample_weight must be {n} numbers, one per node, got {weights.dtype} {weights.shape}")
    weights = weights.astype(np.float64)
    wrong = ~np.isfinite(weights) | (weights < 0)
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(f"sample_weight of node {at} is {weights[at]}; weights are finite numbers of at least 0")
    return weights


def without_weightless(split: Split, weights: FloatArray | None) -> Split:
    """The split without those nodes for training and validation that count for nothing."""
    if weights is None:
        return split
    return Split(split.train[weights[split.train] > 0], split.val[weights[split.val] > 0], split.test)


def choose_engine(
    engine: str, device: str | None, settings: Settings, batch: int | None, channels: Channels, rows: int
) -> str:
    """The engine that trains: the one that is asked for, or what suits the device, the layers and the rows."""
    if batch is not None:
        check_integer(batch, "batch, a number of rows,", least=1)
    check_choice(engine, "engine", ENGINES)
    fits = device in (None, "cpu") and settings.layers == 2
    if engine == "fast" and not (fits and batch is None):
        raise ValueError("the fast engine is for CPUs, two layers and all rows at once; use engine='plain'")
    if engine == "batches" and not fits:
        raise ValueError("the engine for batches is for CPUs and two layers; use engine='plain'")
    if engine == "fast" or (engine == "auto" and fits and batch is None and not suits(channels, rows)):
        return "fast"
    if engine != "plain" and fits:
        return "batches"
    need("torch", "torch", "the plain engine (other devices, more than two layers)")
    check_device(device)
    return "plain"


def check_device(device: str | None) -> None:
    """Refuse a device that torch does not have."""
    if device in (None, "cpu"):
        return
    import torch

    try:
        kind = torch.device(device).type
    except RuntimeError:
        raise ValueError(f"torch knows no device {shown(device)}; use 'cpu', 'cuda' or leave it out") from None
    if kind == "cuda" and not torch.cuda.is_available():
        raise ValueError("device='cuda' was asked for, but torch finds no CUDA device; leave device out for the CPU")


def _check(
    channels: Channels,
    labels: Any,
    splits: Any,
    settings: Settings,
    sample_weight: Any,
    metric: str | None,
    classes: int | None,
) -> TrainingTask:
    """What is to be trained on, checked."""
    if not isinstance(channels, Channels) or not len(channels):
        raise TypeError(f"train takes Channels, at least one of them; got {type(channels).__name__}: see make_channels")
    y = np.asarray(labels)
    numeric = y.dtype.kind == "f"
    if y.shape != (channels.n,) or y.dtype.kind not in "iuf":
        raise ValueError(f"labels must be {channels.n} integers, one per node, or numbers, got {y.dtype} {y.shape}")
    metric = ("r2" if numeric else "accuracy") if metric is None else metric
    check_choice(metric, "metric", METRICS)
    if METRICS[metric].numbers != numeric:
        raise ValueError(metric_problem(metric, numeric))
    if numeric and settings.class_weights:
        raise ValueError("class_weights are for classes, and what is to be predicted are numbers; leave them out")
    if classes is not None:
        check_integer(classes, "classes")
    if numeric:
        y, classes = y.astype(np.float64), 1
        if np.isinf(y).any():
            raise ValueError(f"target {np.isinf(y).argmax()} is not finite; NaN is for those that are not known")
    elif y.max(initial=0) > 10 * len(y) + 1000:
        raise ValueError(f"there are {len(y)} labels and one of them is class {y.max()}; number classes from 0 on")
    y = y if numeric else y.astype(np.int64)
    count = 1 if numeric else max(int(y.max(initial=0)) + 1, classes or 0)
    if not isinstance(splits, Split) and not isinstance(splits, (list, tuple)):
        raise TypeError(f"splits are a Split or a sequence of them, got {type(splits).__name__}")
    parts = [splits] if isinstance(splits, Split) else list(splits)
    if not parts:
        raise ValueError("no split given; graph.splits holds them, or see pegfan.datasets.random_splits")
    weights = check_weights(sample_weight, channels.n)
    for i, part in enumerate(parts):
        name = f"split {i}"
        counted = part if weights is None else without_weightless(as_split(part, len(y), name), weights)
        parts[i] = as_split(counted, len(y), name, labels=y)
        check_metric(metric, count, settings.stop, y[parts[i].val], name)
    return TrainingTask(channels, y, parts, settings, count, metric, weights)


def check_metric(metric: str, classes: int, stop: str, val_labels: Any, name: str) -> None:
    """Refuse a metric for two classes where it says nothing."""
    chosen = METRICS[metric]
    if not chosen.two_classes:
        return
    if classes != 2:
        raise ValueError(f"{chosen.words} is for two classes, these labels have {classes}")
    if stop == "metric" and len(np.unique(val_labels)) < 2:
        raise ValueError(
            f"{name}: all validation nodes are of one class, so their {chosen.words} says nothing; use stop='loss'"
        )
