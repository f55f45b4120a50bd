"""Arrays of saved models and trees, of other numbers, shapes and dtypes, with checksums that fit.

What is loaded from them is read by compiled loops, which look at no bounds: a place out of range would be a crash.
"""

from __future__ import annotations

import random
import shutil
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from torture.campaign import Fault, attack
from torture.files import PATIENCE, ROOM, require_documented, resign

Arrays = dict[str, Any]

_RECIPES: dict[str, dict[str, Any]] = {
    "boosting": {"method": "matching", "head": "boosting", "labels": True, "structure": True, "epochs": 3},
    "boosting-principal": {"method": "none", "hops": 1, "head": "boosting", "scaling": "principal", "epochs": 3},
    "linear": {"method": "none", "hops": 2, "head": "linear", "adjacency": True, "scaling": "columns"},
    "network": {"method": "matching", "kind": "b", "adjacency": True, "labels": True, "epochs": 2, "hidden": 8},
    "spectrum": {"method": "none", "hops": 1, "spectrum": True, "epochs": 2, "hidden": 8},
    "stages": {"method": "none", "hops": 1, "labels": True, "stages": 2, "epochs": 2, "hidden": 4},
}
_NETWORKS = ("gcn", "gat", "classic", "mixhop", "linkx", "label-propagation")


@dataclass(frozen=True)
class Victim:
    """A saved model, the arrays of its files, and a graph that it predicts."""

    folder: Path
    files: dict[str, Arrays]
    graph: Any


def _graph(classes: int, seed: int) -> Any:
    import pegfan as pf

    draw = np.random.default_rng(seed)
    features = draw.random((60, 4))
    truth = {"labels": np.arange(60) % classes} if classes else {"targets": features.sum(axis=1)}
    return pf.Graph.from_edges(draw.integers(0, 60, (200, 2)), n=60, features=features, **truth)


def _victims(place: Path) -> list[Victim]:
    warnings.simplefilter("ignore")
    import pegfan as pf

    graphs = {count: _graph(count, count) for count in (0, 2, 3)}
    made = place / "made"
    if not made.exists():
        part = place / "part"
        shutil.rmtree(part, ignore_errors=True)
        for name, recipe in _RECIPES.items():
            for count in (2, 3):
                model = pf.RecipeClassifier(recipe).fit(graphs[count], split="random")
                model.save(part / f"{count}-{name}")
        for name in _NETWORKS:
            pf.NetworkClassifier(name, epochs=2).fit(graphs[3], split="random").save(part / f"3-{name}")
        for head in ("boosting", "linear", "network"):
            pins = {"head": head} if head == "linear" else {"head": head, "epochs": 2}
            model = pf.AutoRegressor(recipes=[{"method": "none", "hops": 1, **pins}])
            model.fit(graphs[0], split="random").save(part / f"0-{head}")
        part.rename(made)
    return [
        Victim(folder, {file.name: _read(file) for file in sorted(folder.iterdir()) if file.suffix != ".json"}, graph)
        for folder in sorted(made.iterdir())
        for graph in [graphs[int(folder.name[0])]]
    ]


def _read(file: Path) -> Arrays:
    from safetensors.numpy import load

    return load(file.read_bytes()) if file.suffix == ".safetensors" else dict(np.load(file))


def _write(file: Path, arrays: Arrays) -> None:
    from safetensors.numpy import save

    if file.suffix == ".safetensors":
        file.write_bytes(save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))
    else:
        np.savez_compressed(file, **arrays)


# ------------------------------------------------------------------ damage to one array


def _extreme(array: Any, draw: random.Random) -> Any:
    """A number that an array may hold, at the ends of what its dtype or its shape allows."""
    kind = array.dtype.kind
    if kind == "b":
        return draw.random() < 0.5
    if kind == "f":
        limits = np.finfo(array.dtype)
        return draw.choice((np.nan, np.inf, -np.inf, limits.max, limits.min, limits.tiny, 0.0, -1.0, 1e10, 1e-10))
    limits = np.iinfo(array.dtype)
    if draw.random() < 0.5:
        return draw.choice((limits.min, limits.min + 1, limits.max, limits.max - 1))
    return min(draw.choice((0, array.size, *array.shape)) + draw.choice((-2, -1, 0, 1)), limits.max)


def _put(array: Any, draw: random.Random) -> Any:
    """Put an extreme number into some entries, or all."""
    changed = np.array(array)
    if array.dtype.kind in "biuf" and changed.size:
        value, flat = changed.dtype.type(_extreme(array, draw)), changed.reshape(-1)
        positive = np.flatnonzero(flat > 0)
        places = positive.tolist() if positive.size and draw.random() < 0.5 else range(flat.size)
        count = draw.choice((1, 1, 3, flat.size))
        flat[slice(None) if count == flat.size else [draw.choice(places) for _ in range(count)]] = value
    return changed


def _reorder(array: Any, draw: random.Random) -> Any:
    flat = np.array(array).reshape(-1)
    order = np.arange(flat.size)
    change = draw.choice(("shuffle", "reverse", "roll"))
    if change == "shuffle":
        draw.shuffle(order)
    order = order[::-1] if change == "reverse" else np.roll(order, 1) if change == "roll" else order
    return flat[order].reshape(np.shape(array))


def _shift(array: Any, draw: random.Random) -> Any:
    if array.dtype.kind not in "iuf":
        return array
    return (array + np.array(draw.choice((-1, 1, 2, 100))).astype(array.dtype)).astype(array.dtype)


def _scale(array: Any, draw: random.Random) -> Any:
    return array * array.dtype.type(draw.choice((0, 2, 100, 1e30))) if array.dtype.kind == "f" else array


def _retype(array: Any, draw: random.Random) -> Any:
    kind = draw.choice((np.int8, np.int32, np.int64, np.uint64, np.float16, np.float32, np.float64, np.bool_))
    return array.astype(kind) if array.dtype.kind in "biuf" else array


def _reshape(array: Any, draw: random.Random) -> Any:
    huge = draw.choice((10**6, 2**31, 2**40))
    changes: list[Callable[[], Any]] = [
        lambda: array[:-1],
        lambda: array[..., :-1],
        lambda: array[:1],
        lambda: array[..., :1],
        lambda: array[:0],
        lambda: array[..., :0],
        lambda: array.reshape(-1),
        lambda: array[None],
        lambda: array[..., None],
        lambda: array.T,
        lambda: np.concatenate([array, array]),
        lambda: np.concatenate([array, array], axis=-1),
        lambda: np.append(array, array[-1:], axis=0),
        lambda: array.reshape(-1)[0],
        lambda: np.empty((0, huge), array.dtype),
        lambda: np.empty((huge, 0), array.dtype),
        lambda: np.zeros(draw.choice((10**5, 10**6)), array.dtype),
    ]
    return np.asarray(draw.choice(changes)())


_CHANGES = (_put, _put, _put, _put, _reorder, _shift, _scale, _retype, _reshape, _reshape)


# ------------------------------------------------------------------ damage to several


def _same_for_all(arrays: Arrays, draw: random.Random) -> str:
    """Change all arrays of one shape alike, so that they still fit each other."""
    shape = np.shape(arrays[draw.choice(list(arrays))])
    seed = draw.random()
    for name, array in arrays.items():
        if np.shape(array) == shape:
            arrays[name] = _reshape(array, random.Random(seed))
    return f"all of shape {shape}"


def _swap(arrays: Arrays, draw: random.Random) -> str:
    one, other = draw.choice(list(arrays)), draw.choice(list(arrays))
    arrays[one], arrays[other] = arrays[other], arrays[one]
    return f"{one} and {other} changed places"


def _remove(arrays: Arrays, draw: random.Random) -> str:
    name = draw.choice(list(arrays))
    del arrays[name]
    return f"no {name}"


def _add(arrays: Arrays, draw: random.Random) -> str:
    name = draw.choice(list(arrays))
    other = name + draw.choice(("0", "x", "/x"))
    arrays[other] = arrays[name]
    return f"{other} like {name}"


def _change(arrays: Arrays, draw: random.Random) -> str:
    places = [name for name, array in arrays.items() if array.dtype.kind in "iu"]
    name = draw.choice(places if places and draw.random() < 0.5 else list(arrays))
    change = draw.choice(_CHANGES)
    arrays[name] = change(arrays[name], draw)
    return f"{name}{change.__name__}"


_MANY = (*[_change] * 12, _same_for_all, _swap, _remove, _add)


def damage(arrays: Arrays, draw: random.Random) -> tuple[Arrays, str]:
    """Arrays with one to three faults, and what they are."""
    arrays, words = dict(arrays), list[str]()
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        if arrays:
            # An array without entries, or of no dimension, cannot be changed in every way.
            with suppress(ValueError, IndexError, OverflowError):
                words.append(draw.choice(_MANY)(arrays, draw))
    return arrays, ", ".join(words)


@attack(
    "damaged arrays of models",
    "a model or tree whose arrays hold other numbers, or are of other shapes and dtypes, with checksums that fit, is "
    "refused with a sentence or predicts finite numbers",
    20_000,
    prepare=_victims,
    seconds=PATIENCE,
    memory=ROOM,
)
def forge_arrays(state: list[Victim], number: int, draw: random.Random, folder: Path) -> None:
    """Arrays of one or two files of a saved model are changed."""
    victim = state[number % len(state)]
    for file in victim.folder.iterdir():
        shutil.copyfile(file, folder / file.name)
    names = [name for name, arrays in victim.files.items() if arrays for _ in range(6 if name[0] == "w" else 1)]
    told = []
    for name in dict.fromkeys(draw.choice(names) for _ in range(draw.choice((1, 1, 2)))):
        arrays, words = damage(victim.files[name], draw)
        _write(folder / name, arrays)
        told.append(f"{name}: {words}")
    resign(folder)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            require_documented(lambda path: _use(path, victim.graph), folder)
    except Exception as error:
        raise Fault(f"{victim.folder.name}, {'; '.join(told)}: {type(error).__name__}: {str(error)[:200]}") from error


def _use(folder: Path, graph: Any) -> None:
    """Load a model and its trees, and let them do all that they do."""
    import pegfan as pf

    for file in sorted(folder.glob("tree_*.npz")):
        try:
            tree = pf.Hierarchy.load(file)
        except ValueError:
            continue
        system = pf.FrameletSystem(tree)
        system.reconstruct(system.decompose(np.ones(tree.n)))
    model = pf.load_model(folder)
    others = graph.replace(features=graph.features * 2)
    for known in (graph, others):
        said = model.predict(known) if model.fitted_.numeric else model.predict_proba(known)
        if not np.isfinite(said).all():
            raise Fault(f"predicted {said[~np.isfinite(said)][0]}")
    for member in model.fitted_.members:
        if hasattr(member, "network") and hasattr(member.network, "shares"):
            member.network.shares(np.ones((3, sum(member.network.widths)), np.float32))
