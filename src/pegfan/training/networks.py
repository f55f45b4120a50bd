"""Training graph networks in PyTorch: all nodes at once, on any device."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array, issparse
from torch.nn import functional as F

from pegfan import models
from pegfan._arrays import Float32Array, FloatArray, IntArray
from pegfan._checks import check_kind
from pegfan._limits import check_memory
from pegfan.channels import hop_matrix
from pegfan.channels.scaling import FeatureScale, scale
from pegfan.graph import Graph, Split
from pegfan.metrics import score
from pegfan.models import GraphNetwork, Neighbours, Sparse
from pegfan.models.geom_gcn import Divisions
from pegfan.running import Progress, Step
from pegfan.training.engine import check_device, check_metric, check_weights, without_weightless
from pegfan.training.loop import training_loop
from pegfan.training.plain import seeded
from pegfan.training.rows import loss_weights
from pegfan.training.settings import Run
from pegfan.trees import canonical_order

__all__ = ["Inputs", "inputs_of", "make_network", "predict", "train_network"]

_log = logging.getLogger(__name__)

_GRAPH = "graph"
"""Beside LINKX's weights: the mark of its graph."""
_SPARSE = 0.25
"""Features with fewer nonzero entries than this share stay sparse."""


class Inputs(NamedTuple):
    """What networks see of a graph, in canonical order, so that training does not depend on how nodes are numbered.

    ``order`` has the node of every row, ``places`` the row of every node.
    """

    x: Any
    edges: Neighbours
    order: IntArray
    places: IntArray


def inputs_of(
    graph: Graph, direction: str, scaling: str | FeatureScale, divisions: list[csr_array] | None = None
) -> Inputs:
    """What networks see of a graph with features.

    Parameters
    ----------
    graph, direction, scaling
        See `pegfan.networks.NetworkRecipe`.
    divisions
        Those of GEOM-GCN, if they are not to be made from the graph.
    """
    order = canonical_order(graph).order
    places = np.argsort(order)
    matrix = csr_array(hop_matrix(graph, "A", direction)[order][:, order])
    edges = Neighbours(matrix)
    if divisions is not None:
        own = [csr_array(division)[order][:, order] for division in divisions]
        edges.keep("geometry", lambda: Divisions.of(own, graph.n))
    return Inputs(_features(graph.features, scaling, order), edges, order, places)


def _features(features: Any, scaling: str | FeatureScale, order: IntArray) -> Any:
    rows = (features != 0) if scaling == "binary" else scale(features, scaling)
    count = rows.nnz if issparse(rows) else np.count_nonzero(rows)
    if count < _SPARSE * max(rows.shape[0] * rows.shape[1], 1):
        return Sparse(csr_array(rows)[order].astype(np.float32))
    dense = rows.toarray() if issparse(rows) else np.asarray(rows)
    return torch.from_numpy(np.ascontiguousarray(dense[order], dtype=np.float32))


def make_network(recipe: Any, features: int, classes: int, nodes: int) -> GraphNetwork:
    """The module of a recipe; weights are drawn from torch's generator."""
    kind: Any = getattr(models, recipe.module)
    if recipe.model == "label-propagation":
        return kind(**recipe.options)  # type: ignore[no-any-return]
    sizes = {"nodes": nodes} if recipe.model == "linkx" else {}
    return kind(features, classes, **sizes, **recipe.options)  # type: ignore[no-any-return]


def train_network(
    recipe: Any,
    inputs: Inputs,
    labels: IntArray,
    split: Split,
    classes: int,
    metric: str,
    seed: int,
    *,
    sample_weight: Any = None,
    device: str | None = None,
    history: bool = False,
    progress: Progress | None = None,
) -> Run:
    """Train a network on a split: early stopping on validation, test at the kept epoch.

    Parameters
    ----------
    recipe
        `pegfan.networks.NetworkRecipe`.
    inputs
        Of `inputs_of`.
    labels, split, classes, metric, seed
        As in `pegfan.train`.
    sample_weight, device, history, progress
        As in `pegfan.train`.
    """
    start = time.process_time()
    y = np.asarray(labels)[check_kind(inputs, "inputs", Inputs).order]
    weights = check_weights(sample_weight, len(y))
    split = without_weightless(split, weights)
    own = None if weights is None else weights[inputs.order]
    train, val, test = rows = [np.sort(inputs.places[part]) for part in split]
    for name, part in (("train", train), ("val", val)):
        if weights is not None and not len(part):
            raise ValueError(f"no {name} node has a sample_weight above 0; training needs some")
    check_device(device)
    check_metric(metric, classes, recipe.stop, y[val], recipe.name)
    if recipe.model == "label-propagation":
        if weights is not None and len(np.unique(weights[split.train])) > 1:
            raise ValueError("label propagation has no loss for a sample_weight to act on; leave it out")
        return _propagate(recipe, inputs, y, rows, classes, metric, seed, start)
    _log.info("training %s on %d nodes, %s", recipe.name, inputs.edges.n, device or "cpu")
    with seeded(seed):
        network = make_network(recipe, int(inputs.x.shape[1]), classes, inputs.edges.n).to(device or "cpu")
        if device in (None, "cpu"):
            check_memory(_room(network, inputs.edges.n), f"training {recipe.name} on {inputs.edges.n:,} nodes")
        trainer = _Steps(network, recipe, inputs, y, train, val, own, device)
        tell = None if progress is None else lambda text: progress(Step(0, 1, text))
        last = recipe.keep == "last"
        names = () if history else None
        course = training_loop(trainer, recipe, y[val], metric, recipe.name, names, tell, last=last, ties=True)
        network.load_state_dict(course.kept)
        output = trainer.outputs()[test]
    return Run(
        split=0,
        seed=seed,
        **course.numbers,
        test_metric=score(output, y[test], metric),
        seconds=time.process_time() - start,
        attention=np.zeros(0, np.float32),
        state={name: value.cpu().numpy() for name, value in course.kept.items()}
        | ({_GRAPH: _mark(inputs.edges)} if recipe.model == "linkx" else {}),
        history=course.history,
    )


def _mark(edges: Neighbours) -> Any:
    """What tells graphs apart that are the same but for their numbering, in 16 bytes; rows are in canonical order."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (edges.matrix.indptr.astype(np.int64), edges.matrix.indices.astype(np.int64), edges.matrix.data):
        digest.update(np.ascontiguousarray(part).data)
    return np.frombuffer(digest.digest(), np.uint8).copy()


def _room(network: GraphNetwork, nodes: int) -> float:
    """About how many bytes a training takes: for every layer what it gives and its gradient, and weights with Adam."""
    weights = [parameter for parameter in network.parameters() if parameter.ndim > 1]
    columns = sum(parameter.shape[:-2].numel() * parameter.shape[-2] for parameter in weights)
    return 8.0 * nodes * columns + 16.0 * sum(parameter.numel() for parameter in network.parameters())


class _Steps:
    """Epochs of a network."""

    def __init__(
        self,
        network: GraphNetwork,
        recipe: Any,
        inputs: Inputs,
        y: IntArray,
        train: IntArray,
        val: IntArray,
        weights: FloatArray | None,
        device: str | None,
    ) -> None:
        self.network, self.edges = network, inputs.edges
        self.x = inputs.x if isinstance(inputs.x, Sparse) or device is None else inputs.x.to(device)
        self.train, self.val = (torch.from_numpy(part).to(device or "cpu") for part in (train, val))
        self.y, self.val_y = (torch.from_numpy(y[part]).to(device or "cpu") for part in (train, val))
        own, val_own = (None if weights is None else weights[part] for part in (train, val))
        self.weights = torch.tensor(loss_weights(y[train], recipe.class_weights, own), device=device).float()
        shares = None if val_own is None else loss_weights(y[val], False, val_own)
        self.val_weights = None if shares is None else torch.tensor(shares, device=device).float()
        groups = network.parameter_groups(recipe.weight_decay)
        on_cpu = device in (None, "cpu")
        self.optimizer: Any = (
            torch.optim.Adam(groups, recipe.lr, fused=on_cpu)
            if recipe.optimizer == "adam"
            else torch.optim.SGD(groups, recipe.lr)
        )
        kinds: dict[str, Any] = {
            "constant": lambda: None,
            "plateau": lambda: torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, factor=0.8, patience=50),
            "linear": lambda: torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda e: max(1 - 0.01 * (e // 40), 0)),
        }
        self.schedule: Any = kinds[recipe.schedule]()
        self.plateau = recipe.schedule == "plateau"

    def step(self, epoch: int) -> tuple[float, float, Any]:
        """An epoch: the training loss, the validation loss and the outputs of validation nodes."""
        del epoch
        self.network.train()
        self.optimizer.zero_grad()
        output = self.network(self.x, self.edges)[self.train]
        loss = -(self.weights * output.gather(1, self.y[:, None])[:, 0]).sum()
        loss.backward()
        self.optimizer.step()
        self.network.eval()
        with torch.no_grad():
            output = self.network(self.x, self.edges)[self.val]
            val_loss = float(self._val_loss(output))
        if self.schedule is not None:
            self.schedule.step(*([val_loss] if self.plateau else []))
        return float(loss.detach()), val_loss, output.cpu().numpy()

    def _val_loss(self, output: Any) -> Any:
        if self.val_weights is None:
            return F.nll_loss(output, self.val_y)
        return -(self.val_weights * output.gather(1, self.val_y[:, None])[:, 0]).sum()

    def outputs(self) -> Float32Array:
        """Log-probabilities of all rows."""
        self.network.eval()
        with torch.no_grad():
            return np.asarray(self.network(self.x, self.edges).cpu().numpy())

    def snapshot(self) -> Any:
        """A copy of all weights."""
        return {name: value.detach().clone() for name, value in self.network.state_dict().items()}


def _propagate(
    recipe: Any, inputs: Inputs, y: IntArray, rows: Any, classes: int, metric: str, seed: int, start: float
) -> Run:
    """Label propagation: nothing is trained."""
    train, val, test = rows
    codes = np.full(len(y), -1, np.int64)
    codes[train] = y[train]
    output = _spread(recipe, inputs, codes, classes)
    return Run(
        split=0,
        seed=seed,
        epochs=0,
        best_epoch=0,
        val_loss=float(-output[val, y[val]].mean()) if len(val) else float("nan"),
        val_metric=score(output[val], y[val], metric),
        test_metric=score(output[test], y[test], metric),
        seconds=time.process_time() - start,
        attention=np.zeros(0, np.float32),
        state={},
    )


def _spread(recipe: Any, inputs: Inputs, codes: IntArray, classes: int) -> Float32Array:
    given = torch.zeros(len(codes), classes)
    known = np.flatnonzero(codes >= 0)
    given[known, codes[known]] = 1.0
    network = make_network(recipe, 0, classes, len(codes))
    return np.asarray(network(given, inputs.edges).numpy())


def predict(
    recipe: Any, state: Mapping[str, Any], inputs: Inputs, classes: int, codes: IntArray | None = None
) -> Float32Array:
    """Log-probabilities of all nodes of a graph by a trained network, in the order of the nodes.

    `codes` are the training labels that are known of the graph's nodes, for label propagation.
    """
    if recipe.model == "label-propagation":
        assert codes is not None
        return _spread(recipe, inputs, codes[inputs.order], classes)[inputs.places]
    network = trained_network(recipe, state, int(inputs.x.shape[1]), classes)
    if _GRAPH in state and not np.array_equal(state[_GRAPH], _mark(inputs.edges)):
        raise ValueError(
            "LINKX has weights for the very nodes and edges that it was fitted to, and this is another graph: fit it "
            "to this one, or take another model"
        )
    with torch.no_grad():
        return np.asarray(network(inputs.x, inputs.edges).numpy())[inputs.places]


def _shapes(weights: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """The shapes of weights by their names; files have no numbers without dimensions, but rows of one."""
    return {name: tuple(value.shape) or (1,) for name, value in weights.items()}


def trained_network(recipe: Any, state: Mapping[str, Any], features: int, classes: int) -> GraphNetwork:
    """The module of a trained network, ready to predict; LINKX's nodes are in canonical order."""
    try:
        nodes = state["edges.weight"].shape[1] if recipe.model == "linkx" else 0
        weights = {name: torch.as_tensor(np.array(value)) for name, value in state.items() if name != _GRAPH}
        with torch.device("meta"):  # which takes no memory: a recipe may claim much
            expected = make_network(recipe, features, classes, nodes).state_dict()
        if _shapes(expected) != _shapes(weights):
            raise ValueError(f"these are not the weights of {recipe.name}: their names or shapes are others")
        with seeded(0):
            network = make_network(recipe, features, classes, nodes)
        network.load_state_dict(weights)
    except (RuntimeError, KeyError, IndexError) as error:
        raise ValueError(f"these are not the weights of {recipe.name}: {error}") from error
    return network.eval()
