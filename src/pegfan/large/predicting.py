"""What a model says of all nodes of a graph in pieces: rows are read ahead, and a table is written."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pegfan._checks import check_predictions
from pegfan.auto.classifier import load_model
from pegfan.channels import FeatureScale
from pegfan.classifier import NodeModel
from pegfan.fitted import Trained, mean_of
from pegfan.large.channels import Block, GraphPieces, LargeChannels, make_channels
from pegfan.large.files import Rows, RowWriter
from pegfan.large.pieces import Made, Work, full_disk
from pegfan.large.tables import in_node_order, write_predictions
from pegfan.running import Progress, Step, cores, one_thread
from pegfan.training import Network
from pegfan.training.batches import ROWS
from pegfan.training.boosting import Boosted

__all__ = ["predict_in_pieces", "predict_places"]

_BLOCK = 32 * ROWS
"""Rows that are read at a time."""
_PARTS = 4
"""Parts of them that threads share."""


def predict_places(
    model: Network | Boosted,
    channels: LargeChannels,
    count: int,
    path: Path,
    tell: Callable[[int, int], None] | None = None,
) -> None:
    """Write what a model says of all places, in their order, to an ``.npy`` file that appears when it is whole.

    Parameters
    ----------
    model, channels
        Which model, on what.
    count
        The number of classes; 1 where numbers are predicted.
    path
        Where to.
    tell
        Called with how many of how many rows are done.
    """
    n, temporary = channels.n, path.with_name(f"{path.name}.part")
    dtype = np.float32 if model.units is None else np.float64
    threads = ThreadPoolExecutor(cores())
    with RowWriter(temporary, (n, count), dtype) as out, one_thread(), ThreadPoolExecutor(1) as reader, threads as pool:

        def read(start: int) -> Block:
            return channels.block(np.arange(start, min(start + _BLOCK, n)))

        def say(block: Block, start: int, first: int) -> None:
            last = min(first + _BLOCK // _PARTS, len(block.places))
            if first < last:
                out.write(start + first, check_predictions(_said(model, block, first, last)))

        coming = reader.submit(read, 0)
        for start in range(0, n, _BLOCK):
            block = coming.result()
            if start + _BLOCK < n:
                coming = reader.submit(read, start + _BLOCK)
            list(pool.map(partial(say, block, start), range(0, _BLOCK, _BLOCK // _PARTS)))
            if tell is not None:
                tell(min(start + _BLOCK, n), n)
    temporary.replace(path)


def _said(model: Network | Boosted, block: Block, first: int, last: int) -> Any:
    """What a model says of some rows of a block; parts begin at multiples of 2,048, as in memory."""
    if isinstance(model, Boosted):
        rows = np.hstack(block.rows(np.arange(first, last)))
        logits = model.logits(rows)
        if model.units is not None:
            return model.units.values(logits)
        from scipy.special import log_softmax

        return log_softmax(logits, axis=1)
    return model.predict_rows(lambda part: block.rows(np.arange(first + part.start, first + part.stop)), last - first)


def predict_in_pieces(
    work: Work,
    pieces: GraphPieces,
    model: str | Path | NodeModel,
    path: Path,
    *,
    ids: Path | None = None,
    feature_names: Sequence[str] | None = None,
    threshold: float | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write the predictions of a saved model for all nodes of a graph in pieces.

    Parameters
    ----------
    work, pieces
        The graph; its feature columns are those of the training, in their order.
    model
        The folder of a model, or one that was loaded. Its members see features, hops and trees by matching; members of
        several folds are averaged for every node.
    path
        The table, ``.csv`` or ``.parquet``.
    ids
        As in `LargeResult.write`.
    feature_names
        Of the columns; where the model knows names, they must be the same.
    threshold
        Of two classes, the probability from which the second is decided on; by default that of the model.
    progress
        Called with a `pegfan.running.Step`.

    Returns
    -------
    dict
        How many nodes are of each class, or the mean of the numbers.
    """
    fitted = (load_model(model) if isinstance(model, (str, Path)) else model).fitted_
    if fitted.columns != pieces.columns:
        raise ValueError(
            f"the graph has {pieces.columns} feature columns, and the model was fitted to {fitted.columns}; give it "
            "the same features in the same order"
        )
    if feature_names is not None and fitted.feature_names is not None and tuple(feature_names) != fitted.feature_names:
        mine, theirs = next((a, b) for a, b in zip(feature_names, fitted.feature_names, strict=True) if a != b)
        raise ValueError(
            f"the graph has the feature column {mine!r} where the model was fitted to {theirs!r}; give it the same "
            "columns in the same order"
        )
    members: list[Any] = list(fitted.members)
    if any(not isinstance(member, Trained) or member.inner for member in members):
        raise ValueError("the model has members that cannot predict in pieces: networks on graphs, or two stages")
    count = 1 if fitted.numeric else len(fitted.classes)
    made = [_of_member(work, pieces, member, fitted.scale) for member in members]
    digest = hashlib.blake2b(digest_size=10)
    for member, channels in zip(members, made, strict=True):
        digest.update(f"{channels.stem(()).key} {channels.order.key} {member.recipe.key}".encode())
        for name, value in sorted(member.run.state.items()):
            digest.update(name.encode() + np.ascontiguousarray(value).tobytes())
    folder = work.folder / f"predict-{digest.hexdigest()}"
    decision = fitted.decision if threshold is None else fitted.decision.with_threshold(threshold)
    classes = [] if fitted.numeric else [str(name) for name in fitted.classes.tolist()]
    with full_disk(work.folder):
        folder.mkdir(exist_ok=True)
        paths = [folder / f"{place}.npy" for place in range(len(members))]
        for place, (member, channels) in enumerate(zip(members, made, strict=True)):
            if not paths[place].exists():
                say = partial(_tell, progress, f"predicting, {place + 1} of {len(members)}")
                predict_places(member.network, channels, count, paths[place], say)
        outputs, order = paths[0], made[0].order if len(paths) == 1 else None
        if order is None:
            outputs = folder / "mean.npy"
            _average(paths, [channels.order for channels in made], members, outputs, work.memory)
        parts = np.zeros(pieces.n, np.uint8)
        found = write_predictions(path, outputs, order, decision, classes, parts, ids, work.memory)
    shutil.rmtree(folder)
    return found


def _tell(progress: Progress | None, text: str, done: int, planned: int) -> None:
    if progress is not None:
        progress(Step(done, planned, text))


def _of_member(work: Work, pieces: GraphPieces, member: Any, scale: FeatureScale | None) -> LargeChannels:
    levels = None if member.tree is None else member.tree.K
    return make_channels(work, pieces, member.recipe, scale if member.recipe.scaling == "columns" else None, levels)


def _average(paths: Sequence[Path], orders: Sequence[Made], members: Sequence[Any], target: Path, memory: int) -> None:
    """The mean of what several members say, by their weights and fold by fold, in the order of the nodes."""
    first, folds = Rows(paths[0]), sorted({member.fold for member in members})
    share = memory // len(paths)
    with RowWriter(target, (first.count, *first.shape), first.dtype) as out:
        for blocks in zip(*(in_node_order(*one, share) for one in zip(paths, orders, strict=True)), strict=True):
            means = []
            for fold in folds:
                group = [(x, m.weight) for (_, x), m in zip(blocks, members, strict=True) if m.fold == fold]
                means.append(mean_of([x for x, _ in group], [weight for _, weight in group]))
            out.write(blocks[0][0], mean_of(means))
