"""The six systems whose numbers the paper cites, as runs: published settings, and searches where there are none.

What is known of them was read in their public code; where that leaves a choice open, it is searched on validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

from pegfan.datasets import Source
from pegfan.experiments.jobs import Job
from pegfan.networks import NetworkRecipe
from pegfan.recipe import TreeFile

__all__ = ["RIVALS", "candidates", "rival_job"]

FIRST_SEED = 42

RIVALS = {
    "MixHop": "mixhop",
    "Geom-GCN": "geom-gcn",
    "GCNII": "gcnii",
    "H2GCN-1": "h2gcn",
    "WRGAT": "wrgat",
    "GPRGNN": "gprgnn",
}
"""The rows of Table III and our names of their networks."""

EMBEDDINGS = ("MDS", "poincare", "struc2vec")
"""Of GEOM-GCN's relation files; the published row is the best of the three."""

_FILES = {"actor": "film"}

_BASE: dict[str, dict[str, Any]] = {
    "mixhop": {
        **{"dropout": 0.7, "layer_dropout": 0.9, "batch_statistics": True, "scaling": "binary"},
        **{"optimizer": "sgd", "lr": 0.5, "schedule": "linear", "weight_decay": 1e-3},
        **{"epochs": 400, "patience": 50, "stop": "metric"},
    },
    "geom-gcn": {
        **{"direction": "out", "scaling": "l1", "lr": 0.05, "schedule": "plateau", "dropout": 0.5},
        **{"epochs": 5000, "patience": 100},
    },
    "gcnii": {
        **{"direction": "out", "scaling": "l1", "hidden": 64, "lr": 0.01, "dropout": 0.5, "scaled": False},
        **{"epochs": 1500, "patience": 100},
    },
    "h2gcn": {
        **{"scaling": "l1", "hidden": 64, "rounds": 1, "lr": 0.01},
        **{"epochs": 2000, "patience": 200, "stop": "metric"},
    },
    "wrgat": {
        **{"scaling": "none", "dropout": 0.5, "lr": 0.01, "weight_decay": 5e-5},
        **{"epochs": 300, "patience": 200, "stop": "metric"},
    },
    "gprgnn": {
        **{"scaling": "l1", "hidden": 64, "dropout": 0.5, "hops": 10},
        **{"epochs": 1000, "patience": 200},
    },
}
"""What all data sets have in common. Penalties of sums of squares are halved in our decay."""

_GEOM = """
cora      16 5e-6
citeseer  16 5e-6
pubmed    64 5e-6
texas     32 5e-5
wisconsin 32 5e-5
cornell   32 5e-5
actor     32 5e-6
chameleon 48 5e-6
squirrel  48 5e-6
"""

_GCNII = """
cora      64 .5  .2 1e-4
citeseer  64 .5  .5 5e-6
pubmed    64 .5  .1 5e-6
chameleon 8  1.5 .2 5e-4
cornell   16 1   .5 1e-3
texas     32 1.5 .5 1e-4
wisconsin 16 1   .5 5e-4
"""

_GPRGNN = """
chameleon .05 1  0    .7
squirrel  .05 0  0    .7
actor     .01 .9 0    .5
texas     .05 1  5e-4 .5
cornell   .05 .9 5e-4 .5
"""


def _read(block: str, *names: str) -> dict[str, dict[str, Any]]:
    rows = (line.split() for line in block.strip().splitlines())
    return {name: dict(zip(names, map(_number, values), strict=True)) for name, *values in rows}


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() and int(text) > 1 else float(text)


_PUBLISHED: dict[str, dict[str, dict[str, Any]]] = {
    "geom-gcn": _read(_GEOM, "hidden", "weight_decay"),
    "gcnii": _read(_GCNII, "layers", "lamda", "alpha", "weight_decay"),
    "gprgnn": _read(_GPRGNN, "lr", "alpha", "weight_decay", "smooth_dropout"),
}
"""Settings that authors published for a data set."""


def _grid(**choices: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


_SEARCHED: dict[str, list[dict[str, Any]]] = {
    "mixhop": _grid(hidden=(64, 192)),
    "h2gcn": _grid(relu=(True, False), dropout=(0.5, 0.0), weight_decay=(2e-5, 1e-3)),
    "wrgat": _grid(relations=(2, 0), hidden=(64,)),
    "gcnii": _grid(layers=(2, 8), lamda=(0.5, 1.5), alpha=(0.5, 0.2), weight_decay=(5e-4,)),
    "gprgnn": _grid(lr=(0.01, 0.05), alpha=(0.1, 0.2, 0.5, 0.9, 1.0, 0.0), weight_decay=(5e-4, 0.0)),
}
"""Grids for what is not published, by network; the authors' own where they name one."""


def candidates(model: str, name: str, relations: Path | None = None) -> list[dict[str, Any]]:
    """The settings that a network may have on a data set: one if they are published, else those of the search.

    Examples
    --------
    >>> candidates("gcnii", "texas")[0]["layers"], len(candidates("h2gcn", "texas")), len(candidates("gprgnn", "cora"))
    (32, 8, 24)
    """
    base = {"model": model, **_BASE[model]}
    known = _PUBLISHED.get(model, {}).get(name)
    if model == "geom-gcn":
        assert known is not None
        files = [] if relations is None else relation_files(name, relations)
        return [{**base, **known, "relation_file": list(file)} for file in files] or [{**base, **known}]
    if known is not None:
        return [{**base, **known}]
    return [{**base, **changes} for changes in _SEARCHED[model]]


def relation_files(name: str, folder: Path) -> list[TreeFile]:
    """GEOM-GCN's relation files of a data set that are in a folder."""
    stem = _FILES.get(name, name)
    paths = [folder / f"{stem}_{embedding}.txt.gz" for embedding in EMBEDDINGS]
    return [TreeFile.of(path) for path in paths if path.is_file()]


def rival_job(name: str, settings: Mapping[str, Any], split: int) -> Job:
    """A run of Table III."""
    return Job(Source.of(name), NetworkRecipe.of(settings), split, FIRST_SEED + split)
