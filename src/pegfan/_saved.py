"""Models on disk: a folder that appears whole or not at all, with a description that says what else is in it.

``model.json`` carries its own checksum and those of the other files; files that do not match them are not read.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegfan._atomic import is_passing, replacing_folder
from pegfan._checks import check_class_names, check_path, shown
from pegfan._extras import need
from pegfan._limits import PACKED, allowed_for, require
from pegfan._npz import read_npz, write_npz
from pegfan._plain import plain, versions
from pegfan.channels import FeatureScale, PrincipalColumns
from pegfan.decisions import Decision
from pegfan.fitted import LIKELIEST, ChannelFacts, Fitted, Trained, TrainedNetwork
from pegfan.metrics import METRICS
from pegfan.networks import NetworkRecipe, recipe_of
from pegfan.recipe import Known
from pegfan.training import Run
from pegfan.training.rows import TARGET
from pegfan.trees import Hierarchy

__all__ = ["load_fitted", "read_classes", "read_description", "save_fitted", "write_model"]

_log = logging.getLogger(__name__)

FORMAT = "pegfan classifier"
FORMAT_VERSION = 4
MODEL = "model.json"
_DTYPE = re.compile(r"[<>=|]?([biuf]\d{1,2}|U\d{1,9}|O)")
_PACKAGES = ("numpy", "scipy", "safetensors")
_WEIGHTS, _HISTORY, _INPUTS, _NODES = "weights.safetensors", "history.npz", "inputs.npz", "nodes.json"
_LISTED = 100
"""Bytes that a number of a history takes in lists of lists."""
_SCALE = ("tail", "full", "centre", "scale")
_RUN_FIELDS = ("split", "seed", "epochs", "best_epoch", "val_loss", "val_metric", "test_metric", "seconds")


def write_model(
    folder: str | os.PathLike[str], overwrite: bool, about: Mapping[str, Any], write_parts: Callable[[Path], None]
) -> Path:
    """Write the parts of a model and its description to a folder; one that holds anything else is not replaced."""
    target = check_path(folder, "folder")
    _check_target(target, overwrite)
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing_folder(target) as temporary:
        write_parts(temporary)
        _write_file(temporary / MODEL, json.dumps(_complete(about, temporary), indent=1).encode())
    _log.info("model written to %s", target)
    return target


def _write_file(path: Path, data: bytes) -> None:
    """Write a file, and wait until it is on the disk."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def read_description(source: Path) -> dict[str, Any]:
    """What ``model.json`` says, after a check of its format, version and checksum."""
    path = source / MODEL
    if not path.is_file():
        raise ValueError(f"{source} is not a saved model: there is no {MODEL} in it")
    try:
        about = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ValueError(f"{path} was not written by pegfan: its format is not {FORMAT!r}")
    version = about.get("version")
    if version != FORMAT_VERSION:
        raise ValueError(
            f"{path} is of version {shown(version)}, and this pegfan reads {FORMAT_VERSION}: train again, or use "
            "the pegfan that wrote it"
        )
    claimed = about.pop("checksum", None)
    if claimed != _checksum(about) or not isinstance(about.get("class"), str):
        raise ValueError(f"{path} was changed since it was saved: its checksum does not fit")
    return about


def _read_file(source: Path, name: str, about: Mapping[str, Any]) -> bytes:
    """The bytes of a file of the model, after a check that they are those that were saved."""
    data = (source / name).read_bytes()
    if _digest(data) != about["files"].get(name):
        raise ValueError(f"{name} was changed since it was saved: its checksum does not fit")
    return data


def read_classes(stored: Mapping[str, Any]) -> NDArray[Any]:
    """The classes; the length of strings is that of the names, not what the description claims."""
    names, kind = stored["names"], stored["dtype"]
    if not isinstance(kind, str) or not _DTYPE.fullmatch(kind) or not isinstance(names, list):
        raise ValueError(f"classes of type {shown(kind)} are neither numbers nor names")
    check_class_names(names)
    dtype = np.dtype(object if "U" in kind and not _is_even(names) else np.str_ if "U" in kind else kind)
    classes = np.array(names, dtype=dtype)
    if classes.shape != (len(names),):
        raise ValueError("classes are lists, not names")
    return classes


def _is_even(names: list[Any]) -> bool:
    """Whether NumPy, which gives every string the room of the longest, takes about as much room as the names have."""
    lengths = [len(str(name)) for name in names]
    return len(names) * max(lengths, default=0) <= 2**20 + PACKED * sum(lengths)


def _check_target(target: Path, overwrite: bool) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise ValueError(f"{target} is a file; give a folder to save to")
    held = {path.name for path in target.iterdir() if not is_passing(path.name)}
    if not held:
        return
    if not overwrite:
        raise ValueError(f"{target} exists and is not empty; pass overwrite=True to replace a model, or another folder")
    if MODEL not in held:
        raise ValueError(f"{target} is not a saved model; it is not overwritten: choose another folder")
    foreign = held - {MODEL, *read_description(target).get("files", ())}
    if foreign:
        what = f"{min(foreign)!r}, which is not part of a saved model"
        raise ValueError(f"{target} holds {what}; it is not overwritten: choose another folder")


def _complete(about: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The description completed by the format, packages, and checksums of the files in the folder."""
    whole = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "packages": versions(*_PACKAGES),
        **about,
        "files": {path.name: _digest(path.read_bytes()) for path in sorted(folder.iterdir())},
    }
    try:
        whole = json.loads(json.dumps(whole, allow_nan=False, default=_plain_number))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the model cannot be written as JSON: {error}; name classes by strings or numbers") from None
    return {**whole, "checksum": _checksum(whole)}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _checksum(about: Mapping[str, Any]) -> str:
    return _digest(json.dumps(about, sort_keys=True).encode())


def _plain_number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{shown(value)} is a {type(value).__name__}")


# ------------------------------------------------------------------------- fitted models


def save_fitted(
    fitted: Fitted,
    folder: str | os.PathLike[str],
    kind: str,
    parameters: Mapping[str, Any],
    more: Mapping[str, Any],
    overwrite: bool,
) -> Path:
    """Write a fitted model to a folder, with the class and the parameters of the classifier that it belongs to."""
    indices = {id(tree): i for i, tree in enumerate(fitted.trees)}
    about = {
        "class": kind,
        "parameters": dict(parameters),
        "classes": {"dtype": fitted.classes.dtype.str, "names": fitted.classes.tolist()},
        "metric": fitted.metric,
        "stand_in": fitted.stood_in,
        "columns": fitted.columns,
        "feature_names": fitted.feature_names,
        "graph": fitted.fingerprint,
        "split": fitted.split if isinstance(fitted.split, (int, str)) else None,
        "decision": None if fitted.decision == LIKELIEST else fitted.decision.to_dict(),
        "members": [
            {
                "recipe": member.recipe.to_dict(),
                "tree": None if member.tree is None else indices[id(member.tree)],
                "fold": member.fold,
                "weight": member.weight,
                **_written(member),
                **({"inner": list(map(_written, _inner(member)))} if _inner(member) else {}),
            }
            for member in fitted.members
        ],
        **more,
    }
    return write_model(folder, overwrite, about, partial(_write_parts, fitted))


def _write_parts(fitted: Fitted, folder: Path) -> None:
    from safetensors.numpy import save

    state = {
        f"{i}/{name}": np.ascontiguousarray(value)
        for i, member in _numbered(fitted.members)
        for name, value in member.run.state.items()
    }
    _write_file(folder / _WEIGHTS, save(state))
    for i, tree in enumerate(fitted.trees):
        tree.save(folder / f"tree_{i}.npz")
    history = {
        f"{i}/{name}": np.array(values)
        for i, member in enumerate(fitted.members)
        for name, values in (member.run.history or {}).items()
    }
    write_npz(folder / _HISTORY, history)
    inputs = {name: getattr(fitted.scale, name) for name in _SCALE} if fitted.scale is not None else {}
    if fitted.principal is not None:
        inputs["principal"] = fitted.principal.vectors
    known = fitted.known
    if known is not None:
        arrays = {name: getattr(known, name) for name in ("codes", "columns", "values", "folds", "vectors")}
        inputs |= {name: array for name, array in arrays.items() if array is not None}
        inputs |= {_parts_of(i): m.parts for i, m in enumerate(fitted.members) if isinstance(m, Trained) and m.inner}
        hashed = known.hashed(fitted.fingerprint)
        stored = None if hashed.names is None else {"salt": hashed.salt, "digests": hashed.names}
        _write_file(folder / _NODES, json.dumps(stored).encode())
    write_npz(folder / _INPUTS, inputs)


def load_fitted(source: Path, about: Mapping[str, Any], max_bytes: str | float | None = None) -> Fitted:
    """What `save_fitted` wrote, by the description that was read from the folder."""
    from safetensors.numpy import load

    classes, numeric, columns = read_classes(about["classes"]), METRICS[about["metric"]].numbers, about["columns"]
    outputs = 1 if numeric else len(classes)
    state = load(_read_file(source, _WEIGHTS, about))
    _read_file(source, _HISTORY, about)
    history = _read_history(source / _HISTORY, max_bytes)
    trees: dict[Any, Hierarchy] = {}
    for i in {entry["tree"] for entry in about["members"]} - {None}:
        if type(i) is not int or i < 0:
            raise ValueError(f"{MODEL} names a tree {shown(i)}: trees of models are numbered")
        _read_file(source, f"tree_{i}.npz", about)
        trees[i] = Hierarchy.load(source / f"tree_{i}.npz", max_bytes)
    members = tuple(
        _member(entry, i, state, _arrays(i, history), trees, outputs, columns)
        for i, entry in enumerate(about["members"])
    )
    every = [member for _, member in _numbered(members)]
    sizes = {m.classes if isinstance(m, TrainedNetwork) else m.network.classes for m in every}
    if sizes != {outputs} or any((TARGET in m.run.state) != numeric for m in every):
        fit = "targets" if numeric else f"{outputs} classes"
        raise ValueError(f"the members in {MODEL} do not fit its {fit}")
    _read_file(source, _INPUTS, about)
    inputs = read_npz(source / _INPUTS, allowed_for(source / _INPUTS, max_bytes))
    known = _read_known(source, about, inputs, outputs) if "codes" in inputs else None
    principal, scale, parts = _read_scale(inputs, columns)
    return Fitted(
        members=tuple(_complete_member(m, known, principal, parts.get(_parts_of(i))) for i, m in enumerate(members)),
        classes=classes,
        metric=about["metric"],
        stood_in=about["stand_in"],
        columns=columns,
        feature_names=None if about["feature_names"] is None else tuple(map(str, about["feature_names"])),
        fingerprint=about["graph"],
        split=about["split"],
        seed=int(about["parameters"]["random_state"]),
        known=known,
        scale=scale,
        principal=principal,
        decision=LIKELIEST if about["decision"] is None else Decision.from_dict(about["decision"], len(classes)),
    )


def _read_known(source: Path, about: Mapping[str, Any], inputs: dict[str, Any], classes: int) -> Known:
    """What is known of training nodes, taken out of the arrays of a file."""

    def take(name: str, what: str, fits: Callable[[Any], bool]) -> Any:
        array = inputs.pop(name, None)
        if array is not None and not fits(array):
            raise ValueError(f"{_INPUTS} holds {what} that do not fit its nodes")
        return array

    codes = inputs.pop("codes")
    if codes.ndim != 1 or not codes.size or not _are_places(codes, codes.shape, classes):
        raise ValueError(f"{_INPUTS} holds classes that {MODEL} does not know")
    if "columns" not in inputs:
        raise ValueError(f"{_INPUTS} lacks the columns of its nodes")
    columns = take("columns", "columns", lambda array: _are_places(array, codes.shape, len(codes)))
    values = take("values", "targets", lambda array: _are_targets(array, codes))
    folds = take("folds", "folds", lambda array: array.dtype == np.int8 and array.shape[1:] == codes.shape)
    vectors = take("vectors", "vectors", lambda array: _are_vectors(array, int(columns.max(initial=-1)) + 1))
    if (values is not None) != METRICS[about["metric"]].numbers:
        raise ValueError(f"{_INPUTS} does not hold what {MODEL} predicts")
    names, salt = _read_names(json.loads(_read_file(source, _NODES, about)), len(codes))
    return Known(codes, names, classes, columns, folds, salt, values, vectors)


def _read_scale(
    inputs: dict[str, Any], columns: int
) -> tuple[PrincipalColumns | None, FeatureScale | None, dict[str, Any]]:
    """Principal columns, the scale of columns, and the parts of training nodes, by what a file holds."""
    parts = {name: inputs.pop(name) for name in list(inputs) if name.startswith(_parts_of(""))}
    mixtures = inputs.pop("principal", None)
    if mixtures is not None and not _are_vectors(mixtures, columns):
        raise ValueError(f"{_INPUTS} holds principal columns that do not fit the {columns} feature columns")
    if inputs and not _are_scale(inputs, columns):
        raise ValueError(f"{_INPUTS} holds a scale that does not fit the {columns} feature columns")
    scale = FeatureScale(**inputs) if inputs else None
    return None if mixtures is None else PrincipalColumns(mixtures), scale, parts


def _numbered(members: Sequence[Trained | TrainedNetwork]) -> Iterator[tuple[str, Trained | TrainedNetwork]]:
    """All that was trained, by the numbers that its arrays have in files: 3 for a member, 3.0 to 3.4 for its inner."""
    for i, member in enumerate(members):
        yield str(i), member
        yield from ((f"{i}.{part}", model) for part, model in enumerate(_inner(member)))


def _inner(member: Trained | TrainedNetwork) -> tuple[Trained, ...]:
    return member.inner if isinstance(member, Trained) else ()


def _parts_of(i: int | str) -> str:
    return f"parts_{i}"


def _written(model: Trained | TrainedNetwork) -> dict[str, Any]:
    """What is written of a training beside its arrays."""
    return {
        "channels": [list(facts) for facts in model.channels],
        "attention": [float(value) for value in model.run.attention],
        "run": {name: plain(getattr(model.run, name)) for name in _RUN_FIELDS},
    }


def _run_of(entry: Mapping[str, Any], state: dict[str, Any], history: Mapping[str, Any]) -> Run:
    numbers: dict[str, Any] = {key: float("nan") if value is None else value for key, value in entry["run"].items()}
    attention = np.array(entry["attention"], dtype=np.float32)
    return Run(**numbers, attention=attention, state=state, history={k: v.tolist() for k, v in history.items()})


def _member(
    entry: Mapping[str, Any],
    i: int,
    state: Mapping[str, Any],
    history: Mapping[str, Any],
    trees: Mapping[Any, Hierarchy],
    classes: int,
    columns: int,
) -> Trained | TrainedNetwork:
    recipe = recipe_of(entry["recipe"])
    run = _run_of(entry, _arrays(i, state), history)
    weight = float(entry["weight"])
    if not (math.isfinite(weight) and weight > 0):
        raise ValueError(f"{MODEL} has a member of weight {weight}; weights are above 0")
    if isinstance(recipe, NetworkRecipe):
        need("torch", "torch", f"{recipe.label}, like all networks but PEGFAN and FSGNN,")
        from pegfan.training.networks import trained_network

        trained_network(recipe, run.state, columns, classes)  # fails if the weights are not its own
        return TrainedNetwork(recipe, classes, run, weight=weight)
    tree = None if entry["tree"] is None else trees[entry["tree"]]
    if (tree is not None) != recipe.has_tree:
        raise ValueError("a member and its recipe do not agree on a tree")
    first = entry.get("inner", [])
    if (recipe.stages > 1) != bool(first):
        raise ValueError("a member and its recipe do not agree on the number of stages")
    inner = tuple(
        _checked(Trained(recipe.changed(stages=1), tree, _facts_of(one), _run_of(one, _arrays(f"{i}.{f}", state), {})))
        for f, one in enumerate(first)
    )
    return _checked(Trained(recipe, tree, _facts_of(entry), run, fold=int(entry["fold"]), inner=inner, weight=weight))


def _facts_of(entry: Mapping[str, Any]) -> tuple[ChannelFacts, ...]:
    return tuple(ChannelFacts(*facts) for facts in entry["channels"])


def _checked(model: Trained) -> Trained:
    """The model, if its weights are those of its channels."""
    widths = tuple(facts.width for facts in model.channels)
    if model.network.widths != widths or len(model.run.attention) != len(widths):
        raise ValueError(f"{_WEIGHTS} holds a network whose channels are not those of {MODEL}")
    return model


def _complete_member(
    member: Trained | TrainedNetwork, known: Known | None, principal: PrincipalColumns | None, parts: Any
) -> Trained | TrainedNetwork:
    """The member with its parts of training nodes, if all that its channels are made of is there, and is that."""
    needs_labels = member.recipe.needs_labels if isinstance(member, TrainedNetwork) else bool(member.inner)
    if known is None and needs_labels:
        raise ValueError(f"{_INPUTS} lacks the training labels that predictions need")
    if isinstance(member, TrainedNetwork):
        return member
    if known is not None and not 0 <= member.fold < (1 if known.folds is None else len(known.folds)):
        raise ValueError(f"a member was trained on a fold that {_INPUTS} does not know")
    widths = [facts.width for facts in member.channels if facts.name == "spectrum"]
    if member.recipe.spectrum and (known is None or known.vectors is None or widths != [known.vectors.shape[1]]):
        raise ValueError(f"{_INPUTS} lacks the vectors that predictions need")
    if member.recipe.scaling == "principal" and (
        principal is None or member.channels[0].width != principal.vectors.shape[1]
    ):
        raise ValueError(f"{_INPUTS} lacks the principal columns that predictions need")
    if known is None or not member.inner:
        return member
    training = known.of_fold(member.fold).codes >= 0
    fits = parts is not None and parts.dtype == np.int8 and parts.shape == training.shape
    if not fits or not np.array_equal(parts >= 0, training) or parts.max(initial=-1) >= len(member.inner):
        raise ValueError(f"{_INPUTS} holds no parts of training nodes that fit the stages of a member")
    return replace(member, parts=parts)


def _read_history(path: Path, max_bytes: str | float | None) -> dict[str, Any]:
    """The numbers that a training is told by, which become lists."""
    most = allowed_for(path, max_bytes)
    history = read_npz(path, most)
    entries = sum(math.prod(max(size, 1) for size in array.shape) for array in history.values())
    require(f"{path}: {entries:,} numbers", _LISTED * entries, most)
    return history


def _are_places(array: Any, shape: tuple[int, ...], count: int) -> bool:
    """Whether an array of a file holds places among so many, or -1."""
    fits = array.dtype == np.int64 and array.shape == shape
    return bool(fits and array.min(initial=-1) >= -1 and array.max(initial=-1) < count)


def _are_scale(arrays: Mapping[str, Any], columns: int) -> bool:
    """Whether arrays of a file are those of a `FeatureScale`."""
    if set(arrays) != set(_SCALE) or any(array.shape != (columns,) for array in arrays.values()):
        return False
    numbers = [arrays["centre"], arrays["scale"]]
    flags = [arrays["tail"], arrays["full"]]
    return (
        all(array.dtype == np.bool_ for array in flags)
        and all(array.dtype == np.float64 and np.isfinite(array).all() for array in numbers)
        and bool((arrays["scale"] > 0).all())
    )


def _are_vectors(array: Any, rows: int) -> bool:
    """Whether an array of a file holds vectors, as columns with so many entries."""
    return bool(array.dtype == np.float64 and array.ndim == 2 and len(array) == rows and np.isfinite(array).all())


def _are_targets(array: Any, codes: Any) -> bool:
    """Whether an array of a file holds the targets of training nodes."""
    fits = array.dtype == np.float64 and array.shape == codes.shape
    return bool(fits and np.array_equal(np.isfinite(array), codes >= 0))


def _read_names(stored: Any, n: int) -> tuple[tuple[str, ...] | None, str | None]:
    """Digests of the nodes' names and their salt; None where nodes have no names."""
    if stored is None:
        return None, None
    names, salt = stored["digests"], stored["salt"]
    fits = isinstance(names, list) and len(names) == n and all(isinstance(name, str) for name in names)
    if not fits or not isinstance(salt, str):
        raise ValueError(f"{_NODES} does not fit {_INPUTS}")
    return tuple(names), salt


def _arrays(i: int | str, stored: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays of member i."""
    return {name.removeprefix(f"{i}/"): value for name, value in stored.items() if name.startswith(f"{i}/")}
