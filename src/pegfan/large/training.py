"""Training on a graph in pieces: choose on a sample, train on everything, predict block by block.

Recipes compete on a sample of rows, which is held in memory and trained on by what trains graphs in memory. The best
one is trained on all training rows, in batches from disk, and keeps how far it is: a process that is killed loses a
minute, and the one that goes on ends with the same bits. The model is an ordinary model folder.

``train(work, pieces, labels, split, ...) -> LargeResult``
    `pegfan.large.channels.GraphPieces` says where the parts of the graph are; labels and the split are arrays.
``LargeResult.write(folder, ...)``
    ``predictions.csv`` (or ``.parquet``), ``model``, ``result.json`` and ``settings.toml``, as ``pegfan train`` has
    them.
``pegfan.large.predicting.predict_in_pieces(work, pieces, model, path, ...)``
    A model folder, and a graph in pieces: the table of predictions.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pegfan import _defaults as default
from pegfan import results
from pegfan._arrays import IntArray
from pegfan._atomic import replacing, replacing_folder
from pegfan._npz import read_npz
from pegfan.auto.classifier import AutoClassifier, AutoModel, AutoRegressor
from pegfan.auto.recipes import plain_recipes
from pegfan.auto.search import unweighted_state
from pegfan.channels import Channels
from pegfan.channels.presets import ADJUSTED_FROM
from pegfan.channels.scaling import BAG_MOST
from pegfan.decisions import Decision, Predictions, best_offsets
from pegfan.fitted import ChannelFacts, Fitted, Trained
from pegfan.graph import Split, are_known, as_split
from pegfan.large.channels import GraphPieces, LargeChannels, make_channels
from pegfan.large.files import Arcs, Rows
from pegfan.large.pieces import Stage, Task, Work, full_disk
from pegfan.large.predicting import predict_in_pieces, predict_places
from pegfan.large.rows import RowsOnDisk
from pegfan.large.tables import write_predictions
from pegfan.metrics import METRICS, score, suitable, unequal
from pegfan.recipe import Recipe
from pegfan.running import Deadline, Progress, Step, cores, one_thread, release_memory
from pegfan.training import Diverged, Network, Run, Settings
from pegfan.training import train as train_in_memory
from pegfan.training.batches import JUDGED, ROWS, STEPS, BatchSteps
from pegfan.training.boosting import Boosted
from pegfan.training.linear import fit_linear, linear_settings
from pegfan.training.loop import InUnits, training_loop
from pegfan.training.rows import Labelled, Units, loss_weights
from pegfan.trees import Hierarchy

__all__ = ["LargeResult", "Trial", "draw_split", "predict_in_pieces", "train"]

_log = logging.getLogger(__name__)

SAMPLE, JUDGES = 100_000, 20_000
"""The most training and validation rows of the sample that recipes compete on."""
SEARCH, FINAL, LAST = 0.3, 0.45, 0.9
"""The parts of the budget that the competition and the training on everything have, and when the clock ends this."""
EVERY = 60.0
"""Seconds between two times that a training keeps how far it is."""
_RUN = 1024
"""Rows of the sample that stand together."""
_ROOM = 0.125
"""The part of the memory that the rows of a sample, or of a training that is held, may take."""
_JUDGED, _OUTPUTS = 65_536, 0.06
"""Nodes that are judged in any case, and the part of the memory that what is predicted for more of them may take."""
_PROBED = 4
"""Epochs that show how long one takes."""
_PASSES = 40
"""The most passes over the training rows."""
_EPOCHS, _PATIENCE = 40, 8
"""Of networks on the sample."""
_VARIED: tuple[dict[str, Any], ...] = (
    {"hidden": 128},
    {"lr_fc": 0.005},
    {"dropout": 0.5},
    {"hop_normalize": True, "lr_sca": 0.02},
    {"dropout": 0.0, "wd_fc1": 1e-5},
)
"""Settings that are tried with the best recipe."""


class Trial(NamedTuple):
    """A recipe that was tried on the sample: the recipe, and how it did on validation."""

    recipe: Recipe
    val_metric: float
    val_loss: float
    epochs: int
    seconds: float

    @property
    def rank(self) -> tuple[float, float]:
        """Sorts the lowest loss first; one that diverged comes last."""
        return (self.val_loss if math.isfinite(self.val_loss) else math.inf, -self.val_metric)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**self._asdict(), "recipe": self.recipe.to_dict()}

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Trial:
        """What `to_dict` gave."""
        return cls(**{**stored, "recipe": Recipe.of(stored["recipe"])})


@dataclass(eq=False)
class LargeResult:
    """What a training on a graph in pieces gave.

    Attributes
    ----------
    model
        A fitted `pegfan.AutoClassifier` or `pegfan.AutoRegressor`: it saves, and predicts on graphs in memory.
    result
        As in ``result.json``.
    outputs
        The file with what is predicted, in the order of the channels: logarithms of probabilities, or numbers.
    order
        The stage with that order.
    parts
        Per node 0 for none, 1 for train, 2 for val, 3 for test.
    trials
        What was tried on the sample, the best first.
    memory
        Bytes that writing may take.
    """

    model: AutoModel
    result: results.Result
    outputs: Path
    order: Stage
    parts: NDArray[np.uint8]
    trials: list[Trial]
    memory: int

    @property
    def test_metric(self) -> float | None:
        """The metric on test nodes."""
        return None if self.result.test is None else self.result.test.mean

    def write(
        self,
        folder: Path,
        ids: Path | None = None,
        predictions: str = "predictions.csv",
        settings: Mapping[str, Any] | None = None,
        **told: Any,
    ) -> Path:
        """Write everything or nothing to a folder; one that is there is replaced, if it may be is the caller's word.

        Parameters
        ----------
        folder
            Where.
        ids
            A Parquet file with the column ``id``, in the order of the nodes; without it, nodes have their numbers.
        predictions
            The name of the table of predictions, which ends in ``.csv`` or ``.parquet``.
        settings
            What to write in ``settings.toml`` beside the recipes, such as the source.
        **told
            Parts of the result that only the caller knows: title, source, command.
        """
        import tomli_w

        fitted = self.model.fitted_
        result = replace(self.result, **told)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with replacing_folder(folder) as temporary:
            classes = [] if fitted.numeric else [str(name) for name in fitted.classes.tolist()]
            write_predictions(
                temporary / predictions,
                self.outputs,
                self.order,
                fitted.decision,
                classes,
                self.parts,
                ids,
                self.memory,
            )
            self.model.save(temporary / "model")
            ran = [recipe.to_dict() for recipe in self.model.ran_]
            document = {
                "format": "pegfan settings",
                "version": 4,
                "seed": result.seed or 0,
                "metric": fitted.metric,
                **({} if result.budget is None else {"budget": result.budget}),
                **(settings or {}),
                "recipes": ran,
            }
            with replacing(temporary / "settings.toml") as file:
                file.write(tomli_w.dumps(document).encode())
            with replacing(temporary / "result.json") as file:
                file.write(result.to_json().encode())
        return folder


def draw_split(labels: Any, order: Stage, seed: int = default.SEED) -> Split:
    """The first of five folds of the labelled nodes, drawn in canonical order: three train, one judges, one tests.

    Parameters
    ----------
    labels
        Class numbers, −1 where there is none; or numbers, NaN where there is none.
    order
        The stage with the canonical order.
    seed
        Of the draw.
    """
    from pegfan.datasets import fold_splits
    from pegfan.splits import ranks_and_tenths

    y = np.asarray(labels)
    groups = ranks_and_tenths(y)[1] if y.dtype.kind == "f" else y
    nodes = order.load("order")
    drawn = fold_splits(groups[nodes], seed=seed)[0]
    return Split(*(np.sort(nodes[part]) for part in drawn))


def train(
    work: Work,
    pieces: GraphPieces,
    labels: Any,
    split: Split,
    *,
    classes: Sequence[Any] | None = None,
    feature_names: Sequence[str] | None = None,
    metric: str | None = None,
    budget: float = 3600.0,
    seed: int = default.SEED,
    pins: Mapping[str, Any] | None = None,
    recipes: Sequence[Recipe] | None = None,
    progress: Progress | None = None,
    every: float = EVERY,
) -> LargeResult:
    """Choose a recipe on a sample, train it on all training rows, and predict all nodes.

    Parameters
    ----------
    work, pieces
        The graph.
    labels
        Per node: class numbers, −1 where there is none; or numbers of a floating type to predict, NaN likewise.
    split
        Nodes for training, validation and test (`draw_split`); those without a label are left out.
    classes
        Names of the classes.
    feature_names
        Of the columns.
    metric
        A name of `pegfan.metrics.METRICS`; by default the one that suits the sizes of the classes.
    budget
        Seconds for all of it; the competition and the training on everything have parts of it.
    seed
        Of the sample, weights and dropout.
    pins
        Fields and settings that all recipes must have.
    recipes
        Exactly these; by default those of ``pegfan.auto.recipes.plain_recipes`` that fit into the time.
    progress
        Called with a `pegfan.running.Step`.
    every
        Seconds between two times that the training keeps how far it is.

    Returns
    -------
    LargeResult
        Once a recipe was chosen, which is kept in the working folder, everything depends on the seed alone.
    """
    given = (labels, split, classes, feature_names, metric, budget, seed, progress, every)
    with full_disk(work.folder), one_thread():  # batches are small, and channels are shared among threads
        return _Training(work, pieces, *given).run(pins or {}, recipes)


class _Training:
    """A training on a graph in pieces, from the sample to the predictions."""

    def __init__(
        self,
        work: Work,
        pieces: GraphPieces,
        labels: Any,
        split: Split,
        classes: Sequence[Any] | None,
        feature_names: Sequence[str] | None,
        metric: str | None,
        budget: float,
        seed: int,
        progress: Progress | None,
        every: float,
    ) -> None:
        y = np.asarray(labels)
        self.numeric = y.dtype.kind == "f"
        self.y: Any = y.astype(np.float64 if self.numeric else np.int64, copy=False)
        self.work, self.pieces, self.budget, self.seed, self.every = work, pieces, budget, seed, every
        if self.y.shape != (pieces.n,):
            raise ValueError(f"labels must be {pieces.n:,} numbers, one per node, got shape {y.shape}")
        known = are_known(self.y)
        whole = as_split(split, pieces.n)
        self.split = Split(*(part if known[part].all() else part[known[part]] for part in whole))
        for name in ("train", "val"):
            if not len(getattr(self.split, name)):
                raise ValueError(f"the split has no labelled {name} nodes; label more nodes, or pass another split")
        count = 0 if self.numeric else int(self.y.max(initial=-1)) + 1
        self.classes = np.asarray(list(range(count)) if classes is None else list(classes))
        if not self.numeric and (count > len(self.classes) or len(self.classes) < 2):
            raise ValueError(f"there are labels of {count} classes, and {len(self.classes)} names; name them all")
        self.count = 1 if self.numeric else len(self.classes)
        self.counts = [] if self.numeric else np.bincount(self.y[known], minlength=self.count).tolist()
        self.why = "it was asked for"
        if metric is None:
            names = [str(name) for name in self.classes.tolist()]
            metric, self.why = ("r2", "numbers are predicted") if self.numeric else suitable(self.counts, names)
        self.metric, self.feature_names = metric, None if feature_names is None else tuple(feature_names)
        self.parts = np.zeros(pieces.n, np.uint8)
        for code, nodes in enumerate(whole, start=1):
            self.parts[nodes] = code
        self.labelled = int(known.sum())
        self._tell, self._begun = progress or (lambda _: None), time.monotonic()
        digest = hashlib.blake2b(digest_size=10)
        for part in (self.y, self.parts, pieces.features.key, pieces.order.key, seed, metric, self.count):
            digest.update(np.ascontiguousarray(part).data if isinstance(part, np.ndarray) else repr(part).encode())
        self.key, self.before = digest.hexdigest(), 0.0

    # ------------------------------------------------------------------------ the course of it

    def run(self, pins: Mapping[str, Any], recipes: Sequence[Recipe] | None) -> LargeResult:
        asked = [self.key, sorted(pins.items(), key=str), None if recipes is None else [r.to_dict() for r in recipes]]
        key = hashlib.blake2b(json.dumps(asked).encode(), digest_size=10).hexdigest()
        self.folder = self.work.folder / f"train-{key}"
        self.folder.mkdir(exist_ok=True)
        about = self._facts()
        choice = _read(self.folder / "choice.json")
        if choice is None:
            trials = self._compete(about, pins, recipes)
            best = trials[0].recipe
            fixed = recipes is not None and best.settings.epochs != Settings.epochs
            choice = {"trials": [trial.to_dict() for trial in trials], "seconds": self.elapsed}
            choice["recipe"] = (best if fixed else self._planned(best)).to_dict()
            _write(self.folder / "choice.json", choice)
        else:
            self.before = float(choice["seconds"])
        trials, recipe = [Trial.of(one) for one in choice["trials"]], Recipe.of(choice["recipe"])
        channels = self._channels(recipe)
        run = self._fit(recipe, channels, None if recipes is not None else Deadline(LAST * self.budget - self.elapsed))
        if recipe.settings.class_weights and not self.numeric:
            sizes = np.bincount(self.y[self.split.train], minlength=self.count)
            run = replace(run, state=unweighted_state(run.state, "output.bias", sizes))
        outputs = self._predict(recipe, channels, run)
        return self._finish(recipe, channels, run, outputs, trials, about, choice["seconds"])

    @property
    def elapsed(self) -> float:
        """Seconds since the training began, with those of processes before that were ended."""
        return time.monotonic() - self._begun + self.before

    def _say(self, text: str, done: int = 0, planned: int = 0) -> None:
        self._tell(Step(done, planned, text, elapsed=self.elapsed, budget=self.budget))

    def _channels(self, recipe: Recipe) -> LargeChannels:
        return make_channels(self.work, self.pieces, recipe)

    # ------------------------------------------------------------------------ what is known of the graph

    def _facts(self) -> dict[str, Any]:
        """Homophily among training nodes, and whether features are a bag: what recipes are proposed by."""
        self._say("looking at the edges of training nodes")
        path = self.folder / "truth.npy"
        if not path.exists():
            truth = np.full(self.pieces.n, np.nan if self.numeric else -1, self.y.dtype)
            truth[self.split.train] = self.y[self.split.train]
            with replacing(path) as file:
                np.save(file, truth[self.pieces.order.load("order")])
            del truth
        params = {"truth": path.relative_to(self.work.folder).as_posix(), "key": self.key, "classes": self.count}
        arcs = self.pieces.arcs(self.pieces.order, False)
        ends = self.work.stage(ends_of_edges, params, {"arcs": arcs}, arcs.count, "edges of training nodes").results
        spans = self.work.stage(
            span_of_features, {}, {"features": self.pieces.features}, self.pieces.features.count, "features"
        ).results
        bag = all(span["low"] >= 0 and span["high"] <= BAG_MOST for span in spans)
        return {**_homophily(ends, self.numeric), "bag": bag, "isolated": sum(end["isolated"] for end in ends)}

    # ------------------------------------------------------------------------ the competition

    def _proposals(self, about: Mapping[str, Any], pins: Mapping[str, Any]) -> list[Recipe]:
        adjusted = about["adjusted"]
        listed = plain_recipes(adjusted is not None and adjusted >= ADJUSTED_FROM)
        if not self.numeric and unequal(self.counts):
            listed.insert(2, listed[1].changed(class_weights=True))
        changes: dict[str, Any] = {} if self.pieces.directed else {"direction": "out"}
        changes |= {} if about["bag"] else {"scaling": "columns"}
        return list(dict.fromkeys(recipe.changed(**{**changes, **pins}) for recipe in listed))

    def _compete(
        self, about: Mapping[str, Any], pins: Mapping[str, Any], recipes: Sequence[Recipe] | None
    ) -> list[Trial]:
        """Try recipes on the sample, the best first; those that were tried before a kill are not tried again."""
        path = self.folder / "trials.json"
        stored = _read(path) or {"trials": [], "seconds": 0.0}
        trials = [Trial.of(one) for one in stored["trials"]]
        self.before = float(stored["seconds"])
        waiting = list(self._proposals(about, pins) if recipes is None else recipes)
        varied, limit = recipes is not None, SEARCH * self.budget
        if recipes is not None and len(waiting) == 1:
            return [Trial(waiting[0], math.nan, math.nan, 0, 0.0)]
        tried = {trial.recipe.key for trial in trials}
        longest = 0.0
        while waiting:
            recipe = waiting.pop(0)
            if recipe.key in tried:
                continue
            left = limit - self.elapsed
            if recipes is None and len(trials) >= 2 and (left <= 0 or longest > 2 * left):
                break
            self._say(f"trying {recipe.name}", len(trials), len(trials) + len(waiting) + 1)
            begun = time.monotonic()
            trial = self._try(recipe, max(left, 1.0) if recipes is None else math.inf)
            longest = max(longest, time.monotonic() - begun)
            trials.append(trial)
            tried.add(recipe.key)
            _write(path, {"trials": [one.to_dict() for one in trials], "seconds": self.elapsed})
            _log.info("tried %s: validation %.4f, loss %.4f", recipe.name, trial.val_metric, trial.val_loss)
            if not waiting and not varied:
                varied = True
                best = min((t for t in trials if not t.recipe.is_linear), key=lambda t: t.rank, default=None)
                if best is not None:
                    free = [change for change in _VARIED if not set(change) & set(pins)]
                    waiting = [best.recipe.changed(**change) for change in free]
        trials.sort(key=lambda t: t.rank)
        if not math.isfinite(trials[0].val_loss):
            raise Diverged("the training loss of all recipes became infinite; use smaller learning rates")
        return trials

    def _sample(self, channels: LargeChannels) -> tuple[Channels, Any, Split]:
        """Rows for training and validation in memory, their labels, and which are which."""
        room = _ROOM * self.work.memory / (4.0 * sum(channels.widths))
        share = min(1.0, room / (SAMPLE + JUDGES))
        parts = []
        for nodes, most, turn in ((self.split.train, SAMPLE, 0), (self.split.val, JUDGES, 1)):
            rows = _labelled(channels, nodes, self.y)
            kept = _some(len(rows.places), max(int(share * most), 256), (self.seed, turn))
            parts.append((rows.places[kept], rows.labels[kept]))
        (train, train_y), (val, val_y) = parts
        cut = len(train)
        made = channels.sample(np.concatenate([train, val]))
        where = np.arange(made.n)
        return made, np.concatenate([train_y, val_y]), Split(where[:cut], where[cut:], where[:0])

    def _try(self, recipe: Recipe, seconds: float) -> Trial:
        begun = time.monotonic()
        channels = self._channels(recipe)
        sample, y, part = self._sample(channels)
        until = Deadline(max(seconds - (time.monotonic() - begun), 1.0)) if math.isfinite(seconds) else None
        try:
            run = self._train_sample(recipe, sample, y, part, until)
        except Diverged:
            return Trial(recipe, math.nan, math.inf, 0, time.monotonic() - begun)
        return Trial(recipe, run.val_metric, run.val_loss, run.epochs, time.monotonic() - begun)

    def _train_sample(self, recipe: Recipe, sample: Channels, y: Any, part: Split, until: Deadline | None) -> Run:
        fixed: dict[str, Any] = {"classes": self.count, "metric": self.metric, "seed": self.seed}
        if recipe.is_linear:
            return fit_linear(sample, y, part, recipe.settings, **fixed)
        if recipe.is_boosted:
            from pegfan.training.boosting import boost

            return boost(sample, y, part, recipe.settings, leaves=recipe.leaves, until=until, **fixed)
        settings = replace(recipe.settings, epochs=min(recipe.settings.epochs, _EPOCHS))
        settings = replace(settings, patience=min(settings.patience, _PATIENCE))
        options: Any = {"batch": ROWS, "threads": cores(), "until": until}
        return train_in_memory(sample, y, part, settings, **fixed, **options).runs[0]

    # ------------------------------------------------------------------------ the training on everything

    def _planned(self, recipe: Recipe) -> Recipe:
        """The recipe with epochs for the time that the training on everything has, by how long some steps take."""
        if recipe.is_linear or recipe.is_boosted:
            return recipe
        channels = self._channels(recipe)
        self._say(f"measuring how long {recipe.name} takes")
        with self._steps(recipe, channels) as (steps, _, source):
            took = []
            for epoch in range(_PROBED):
                begun = time.monotonic()
                steps.step(epoch)
                took.append(time.monotonic() - begun)
            each = float(np.median(took[1:]))  # the first one waits for what is made once
        in_pass = -(-source.per_pass // STEPS)
        afford = int(FINAL * self.budget / max(each, 1e-9))
        asked = recipe.settings.epochs
        most = asked if asked != Settings.epochs else _PASSES * in_pass
        patience = min(recipe.settings.patience, max(in_pass, _PATIENCE))
        return recipe.changed(epochs=max(1, min(afford, most)), patience=patience)

    def _steps(self, recipe: Recipe, channels: LargeChannels) -> _Steps:
        return _Steps(self, recipe, channels)

    def _fit(self, recipe: Recipe, channels: LargeChannels, until: Deadline | None) -> Run:
        """The chosen recipe on all training rows; a linear or boosted one on the sample.

        Epochs were planned so that the clock does not end it; it does where the machine became much slower.
        """
        path = self.folder / "trained.npz"
        if path.exists():
            return _read_run(path)
        begun = time.process_time()
        if recipe.is_linear or recipe.is_boosted:
            sample, y, part = self._sample(channels)
            run = self._train_sample(recipe, sample, y, part, None)
        else:
            keeper = _Checkpoint(self.folder / "checkpoint.npz", self.every)
            with self._steps(recipe, channels) as (steps, truth, _):
                course = training_loop(
                    *(steps, recipe.settings, truth, self.metric, recipe.name, ("attention",)),
                    tell=lambda text: self._say(f"training on everything: {text}"),
                    until=until,
                    keeper=keeper,
                )
                state = steps.state(course.kept)
            run = Run(
                split=0,
                seed=self.seed,
                **course.numbers,
                test_metric=math.nan,
                seconds=time.process_time() - begun,
                attention=Network(state, recipe.settings).attention,
                state=state,
                history=course.history,
            )
        _write_run(path, run)
        (self.folder / "checkpoint.npz").unlink(missing_ok=True)
        return run

    # ------------------------------------------------------------------------ predictions

    def _predict(self, recipe: Recipe, channels: LargeChannels, run: Run) -> Path:
        path = self.folder / "outputs.npy"
        if not path.exists():
            model = _model_of(recipe, run)
            predict_places(model, channels, self.count, path, lambda d, n: self._say("predicting", d, n))
        return path

    def _finish(
        self,
        recipe: Recipe,
        channels: LargeChannels,
        run: Run,
        outputs: Path,
        trials: list[Trial],
        about: Mapping[str, Any],
        searched: float,
    ) -> LargeResult:
        """The decision, by validation nodes; then test nodes are looked at, once."""
        rows, places, found = Rows(outputs), channels.places_of(), dict[str, Any]()
        parts = {name: self._few(getattr(self.split, name)) for name in ("val", "test")}
        val, test = (rows.take(places[part]) for part in parts.values())
        del places
        truth = {name: self.y[part] for name, part in parts.items()}
        if len(parts["test"]) < len(self.split.test):
            text = (
                f"The metric is that of {len(parts['test']):,} test nodes, evenly spaced: memory has no room for all."
            )
            found["warnings"] = (results.Note("some test nodes", text),)
        decision = Decision()
        if self.numeric:
            value, tested = score(val, truth["val"], self.metric), score(test, truth["test"], self.metric)
            floor = score(np.full(len(test), self.y[self.split.train].mean()), truth["test"], self.metric)
        else:
            decision = Decision.of(Predictions(val, truth["val"], parts["val"]), self.metric)
            value = self._value(val, truth["val"])
            tested = score(decision.judged(test, self.metric), truth["test"], self.metric)
            calibrated = decision.calibrated(test)
            predicted = decision.classes(calibrated)
            found["confusion"], found["per_class"] = _confusion(truth["test"], predicted, self.classes)
            sizes = np.bincount(self.y[self.split.train], minlength=self.count)
            guess = np.full((len(test), self.count), -20.0)
            guess[:, int(sizes.argmax())] = 0.0
            floor = score(guess, truth["test"], self.metric)
        model = self._model(recipe, channels, run, trials, decision, (value, run.val_loss))
        facts = model.members_[0].channels
        result = results.Result(
            **results.stamp(),
            seed=self.seed,
            budget=self.budget,
            data=self._data(about),
            splits=results.Splits(((len(self.split.train), len(self.split.val), len(self.split.test)),)),
            candidates=tuple(
                results.Candidate(
                    *(t.recipe.name, t.recipe, t.val_metric, t.val_loss, t.seconds, t.epochs),
                    chosen=place == 0,
                    why="best on the sample" if place == 0 else "",
                    weight=float(place == 0),
                )
                for place, t in enumerate(trials)
            ),
            chosen=results.Chosen(model.how_, model.reason_, value, run.val_loss),
            test=results.Spread.of([tested]),
            validation=results.Spread.of([value]),
            majority=results.Spread.of([floor]),
            curves=(results.curve(recipe.name, run),) if run.history else (),
            attention=(results.attention(recipe.name, facts, run.attention),),
            tree=None if model.members_[0].tree is None else results.tree(model.members_[0].tree, recipe.name),
            metric_reason=self.why,
            seconds=results.Seconds(self.elapsed, searched, max(self.elapsed - searched, 0.0)),
            **found,
        )
        return LargeResult(model, result, outputs, channels.order, self.parts, trials, self.work.memory)

    def _few(self, nodes: IntArray) -> IntArray:
        """As many of some nodes as what is predicted for them fits; of more, evenly spaced ones."""
        most = max(_JUDGED, int(_OUTPUTS * self.work.memory / (8 * self.count)))
        return nodes if len(nodes) <= most else nodes[np.arange(most) * len(nodes) // most]

    def _value(self, output: Any, labels: Any) -> float:
        """The metric on validation nodes, of classes as they are best decided there."""
        offsets = best_offsets(output, labels, self.metric)[0] if METRICS[self.metric].decides else None
        return Decision(offsets=offsets).score(output, labels, self.metric)

    def _data(self, about: Mapping[str, Any]) -> results.Data:
        numbers = about["edges"]
        target = None
        if self.numeric:
            own = self.y[are_known(self.y)]
            low, median, high = np.quantile(own, [0.0, 0.5, 1.0])
            target = results.TargetFacts(float(own.mean()), float(own.std()), float(low), float(median), float(high))
        names = tuple(str(name) for name in self.classes.tolist()) if not self.numeric else ()
        positive = names[1] if len(names) == 2 and METRICS[self.metric].two_classes else None
        return results.Data(
            nodes=self.pieces.n,
            edges=numbers["arcs"] if self.pieces.directed else (numbers["arcs"] + numbers["loops"]) // 2,
            directed=self.pieces.directed,
            features=self.pieces.columns,
            labelled=self.labelled,
            components=0,  # nobody counted them
            isolated=about["isolated"],
            edge_homophily=about["edge"],
            node_homophily=None,
            adjusted_homophily=about["adjusted"],
            label_informativeness=None,
            classes=names,
            class_counts=tuple(self.counts),
            metric=self.metric,
            feature_names=self.feature_names,
            positive=positive,
            target=target,
        )

    def _model(
        self,
        recipe: Recipe,
        channels: LargeChannels,
        run: Run,
        trials: list[Trial],
        decision: Decision,
        validation: tuple[float, float],
    ) -> AutoModel:
        """The fitted model, as one that was fitted in memory."""
        tree = None if channels.tree is None else Hierarchy.load(channels.tree.path("tree.npz"))
        facts = tuple(map(ChannelFacts.of, channels.like))
        engine = recipe.head if recipe.is_linear or recipe.is_boosted else "batches"
        member = Trained(recipe, tree, facts, run, engine)
        mark = hashlib.sha256(f"{self.pieces.features.key} {self.pieces.order.key}".encode()).hexdigest()
        model = (AutoRegressor if self.numeric else AutoClassifier)(budget=self.budget, random_state=self.seed)
        model.fitted_ = Fitted(
            members=(member,),
            classes=self.classes if not self.numeric else np.empty(0, np.int64),
            metric=self.metric,
            stood_in=False,
            columns=self.pieces.columns,
            feature_names=self.feature_names,
            fingerprint=mark,
            split=None,
            seed=self.seed,
            scale=channels.scale,
            decision=decision,
        )
        alone = len(trials) == 1
        model.how_ = "best"
        model.reason_ = "the only recipe" if alone else "the best of a sample on validation, trained on everything"
        model.validation_, model.trials_, model.ran_ = validation, [], [recipe]
        return model


class _Steps:
    """Steps on all training rows from disk, the true labels of validation rows, and the source of batches."""

    def __init__(self, training: _Training, recipe: Recipe, channels: LargeChannels) -> None:
        y, seed, settings = training.y, training.seed, recipe.settings
        train, val = (_labelled(channels, part, y) for part in (training.split.train, training.split.val))
        val = val.some(JUDGED)
        self.truth = val.labels
        weights = loss_weights(train.labels, settings.class_weights, None)
        units = Units.of(train.labels, weights) if training.numeric else None
        if units is not None:
            train, val = (part._replace(labels=units.standard(part.labels)) for part in (train, val))
        room = _ROOM * training.work.memory
        self.source = RowsOnDisk(channels, train.places, val.places, seed, ROWS, room)
        state = Network.draw(channels.widths, training.count, settings, seed).state
        self.inner = BatchSteps(self.source, state, train, val, weights, settings, seed, threads=cores())
        self.steps: Any = self.inner if units is None else InUnits(self.inner, units)

    def __enter__(self) -> tuple[Any, Any, RowsOnDisk]:
        self.inner.__enter__()
        return self.steps, self.truth, self.source

    def __exit__(self, *error: Any) -> None:
        self.inner.__exit__(*error)
        release_memory()


def _labelled(channels: LargeChannels, nodes: IntArray, y: Any) -> Labelled:
    """The places of some nodes, rising, and their labels."""
    places, own = channels.places_of(nodes), y[nodes]
    order = np.lexsort((own, places))
    return Labelled(places[order], own[order])


def _some(count: int, most: int, seed: Any) -> IntArray:
    """At most so many of some rows, in runs that are drawn: what stands together is read together."""
    if count <= most:
        return np.arange(count)
    run = min(_RUN, most)
    starts = np.sort(np.random.default_rng(seed).permutation(count // run)[: most // run]) * run
    return (starts[:, None] + np.arange(run)).ravel()


def _model_of(recipe: Recipe, run: Run) -> Network | Boosted:
    if recipe.is_boosted:
        return Boosted(run.state)
    return Network(run.state, linear_settings(run.state) if recipe.is_linear else recipe.settings)


# --------------------------------------------------------------------------------- what pieces do


def ends_of_edges(task: Task) -> dict[str, Any]:
    """What joins training nodes, in a block of arcs: edges by the classes of their ends, or sums for a correlation."""
    truth = np.load(task.place / task.params["truth"], allow_pickle=False)
    arcs, classes = Arcs(task.inputs["arcs"]), task.params["classes"]
    about = task.inputs["arcs"].result(task.block)
    counts, sums, isolated = np.zeros((classes, classes), np.int64), np.zeros(5), 0
    numeric = truth.dtype.kind == "f"
    for start, stop in arcs.chunks_of(task.block, 2**20):
        pointers, columns, _ = arcs.rows(start, stop)
        lengths = np.diff(pointers)
        isolated += int(np.count_nonzero(lengths == 0))
        tails = np.repeat(np.arange(start, stop), lengths)
        one, other = truth[tails], truth[columns]
        kept = (tails != columns) & are_known(one) & are_known(other)
        one, other = one[kept], other[kept]
        if numeric:
            sums += [len(one), one.sum() + other.sum(), (one**2).sum() + (other**2).sum(), one @ other, 0.0]
        else:
            counts += np.bincount(one * classes + other, minlength=classes**2).reshape(classes, classes)
    found = {"isolated": isolated, "arcs": about["arcs"], "loops": about["loops"]}
    return {**found, "sums": sums.tolist()} if numeric else {**found, "counts": counts.tolist()}


def span_of_features(task: Task) -> dict[str, float]:
    """The least and the largest number of a slab of features."""
    rows, low, high = Rows(task.inputs["features"].path("values.npy", task.block)), np.inf, -np.inf
    step = max(2**22 // max(rows.row_bytes, 1), 1)
    for start in range(0, rows.count, step):
        part = rows.read(start, min(start + step, rows.count))
        if part.size:
            low, high = min(low, float(part.min())), max(high, float(part.max()))
    return {"low": low if math.isfinite(low) else 0.0, "high": high if math.isfinite(high) else 0.0}


def _homophily(ends: Sequence[Mapping[str, Any]], numeric: bool) -> dict[str, Any]:
    """Edge homophily and adjusted homophily, or the correlation of targets; None where no edge joins training nodes."""
    edges = {name: sum(end[name] for end in ends) for name in ("arcs", "loops")}
    if numeric:
        number, total, squares, products, _ = np.sum([end["sums"] for end in ends], axis=0)
        if not number:
            return {"adjusted": None, "edge": None, "edges": edges}
        mean = total / (2 * number)
        variance = squares / (2 * number) - mean**2
        return {
            "adjusted": (products / number - mean**2) / variance if variance > 0 else 0.0,
            "edge": None,
            "edges": edges,
        }
    counts = np.sum([end["counts"] for end in ends], axis=0)
    total = counts.sum()
    if not total:
        return {"adjusted": None, "edge": None, "edges": edges}
    joint = (counts + counts.T) / (2 * total)
    chance = float((joint.sum(axis=1) ** 2).sum())
    edge = float(np.trace(joint))
    return {"adjusted": (edge - chance) / (1 - chance) if chance < 1 else 0.0, "edge": edge, "edges": edges}


# --------------------------------------------------------------------------------- files


class _Checkpoint:
    """Keeps how far a training is in a file, which is there whole or not at all."""

    def __init__(self, path: Path, every: float) -> None:
        self.path, self.every, self._last = path, every, time.monotonic()

    def found(self) -> dict[str, Any] | None:
        """What was kept last."""
        return read_npz(self.path) if self.path.exists() else None

    def keep(self, state: Callable[[], dict[str, Any]]) -> None:
        """Keep the state, if that is due."""
        if time.monotonic() - self._last < self.every:
            return
        with replacing(self.path) as file:
            held: Any = {name: np.asarray(value) for name, value in state().items()}
            np.savez(file, **held)
        self._last = time.monotonic()


_NUMBERS = ("split", "seed", "epochs", "best_epoch", "val_loss", "val_metric", "test_metric", "seconds")


def _write_run(path: Path, run: Run) -> None:
    arrays: Any = {f"state/{name}": value for name, value in run.state.items()}
    arrays |= {f"history/{name}": np.array(values) for name, values in (run.history or {}).items()}
    arrays |= {name: np.array(getattr(run, name)) for name in _NUMBERS} | {"attention": np.asarray(run.attention)}
    with replacing(path) as file:
        np.savez(file, **arrays)


def _read_run(path: Path) -> Run:
    arrays = read_npz(path)
    kept = {name[8:]: value for name, value in arrays.items() if name.startswith("history/")}
    # Rows stay arrays of their own type, or else a run that went on would be saved as other bits.
    history = {name: value.tolist() if value.ndim == 1 else list(value) for name, value in kept.items()}
    return Run(
        **{name: arrays[name].item() for name in _NUMBERS},
        attention=arrays["attention"],
        state={name[6:]: value for name, value in arrays.items() if name.startswith("state/")},
        history=history or None,
    )


def _write(path: Path, what: Any) -> None:
    with replacing(path) as file:
        file.write(json.dumps(what, default=lambda value: value.item()).encode())


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _confusion(truth: Any, predicted: Any, classes: Any) -> tuple[Any, Any]:
    """True classes by predicted ones, and what that says per class."""
    count = len(classes)
    table = np.bincount(truth * count + predicted, minlength=count**2).reshape(count, count)
    of_class, said, right = table.sum(axis=1), table.sum(axis=0), table.diagonal()
    rows = tuple(
        results.PerClass(
            str(name),
            int(of_class[k]),
            float(right[k] / said[k]) if said[k] else None,
            float(right[k] / of_class[k]) if of_class[k] else None,
        )
        for k, name in enumerate(classes.tolist())
    )
    return tuple(map(tuple, table.tolist())), rows
