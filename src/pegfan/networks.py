"""The other networks as values: a `NetworkRecipe` says which one, on what, and how it is trained.

What stands here needs no torch; the modules are in `pegfan.models`, their training in `pegfan.training.networks`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

from pegfan import _defaults as default
from pegfan._checks import check_choice, check_flag, check_integer, check_mapping, check_number
from pegfan._plain import plain
from pegfan.recipe import Recipe, TreeFile
from pegfan.trees.build import DIRECTIONS

__all__ = ["NETWORKS", "NetworkRecipe", "recipe_of"]


class Kind(NamedTuple):
    """What is known of a network without torch.

    Attributes
    ----------
    label
        Its name in tables.
    module
        The class in `pegfan.models`.
    options
        What its class takes beside the columns of features and the classes, and what it has by default.
    base
        What its recipes start from, where that differs from the defaults.
    space
        What a search chooses from, beside `COMMON`.
    quick
        Whether it is trained in seconds where others take minutes.
    """

    label: str
    module: str
    options: Mapping[str, Any]
    base: Mapping[str, Any] = {}
    space: Mapping[str, tuple[Any, ...]] = {}
    quick: bool = False


COMMON: dict[str, tuple[Any, ...]] = {
    "lr": (0.01, 0.003),
    "weight_decay": (5e-4, 0.0, 5e-5, 1e-3),
    "scaling": ("columns", "l1"),
    "direction": ("symmetric", "out"),
}
"""What a search chooses from for every network that is trained; the direction only on directed graphs."""

_RATES = (0.5, 0.2, 0.7)
_WIDE = {"hidden": default.HIDDEN, "dropout": default.DROPOUT}
_DEEP = {"hidden": default.HIDDEN, "layers": default.LAYERS, "dropout": default.DROPOUT}

NETWORKS: dict[str, Kind] = {
    "mlp": Kind("MLP", "MLP", _DEEP, space={"hidden": (64, 128), "layers": (2, 3), "dropout": _RATES}, quick=True),
    "label-propagation": Kind(
        "label propagation",
        "LabelPropagation",
        {"steps": 50, "alpha": 0.9},
        space={"alpha": (0.9, 0.5, 0.7, 0.99), "steps": (50, 10, 3)},
        quick=True,
    ),
    "sgc": Kind(
        "SGC",
        "SGC",
        {"hops": 2, "dropout": 0.0},
        space={"hops": (2, 1, 3), "dropout": (0.0, 0.5)},
        quick=True,
    ),
    "gcn": Kind("GCN", "GCN", _DEEP, space={"hidden": (64, 128), "layers": (2, 3), "dropout": _RATES}, quick=True),
    "sage": Kind("GraphSAGE", "GraphSAGE", _DEEP, space={"hidden": (64, 128), "layers": (2, 3), "dropout": _RATES}),
    "gat": Kind("GAT", "GAT", {**_DEEP, "heads": 8}, space={"heads": (8, 4), "layers": (2, 3), "dropout": _RATES}),
    "sign": Kind("SIGN", "SIGN", {**_WIDE, "hops": default.HOPS}, space={"hops": (3, 2, 5), "dropout": _RATES}),
    "linkx": Kind("LINKX", "LINKX", _WIDE, space={"hidden": (64, 32), "dropout": _RATES}),
    "classic": Kind(
        "tuned classic",
        "ClassicGNN",
        {**_DEEP, "layers": 4, "convolution": "gcn", "residual": True, "norm": "batch", "heads": 1},
        space={
            "convolution": ("gcn", "sage", "gat"),
            "layers": (4, 2, 8),
            "hidden": (64, 128),
            "residual": (True, False),
            "norm": ("batch", "layer", "none"),
            "dropout": _RATES,
        },
    ),
    "mixhop": Kind(
        "MixHop",
        "MixHop",
        {**_WIDE, "hops": 2, "layer_dropout": 0.5, "batch_statistics": False},
        space={"hidden": (64, 192), "dropout": (0.5, 0.7), "layer_dropout": (0.5, 0.9)},
    ),
    "geom-gcn": Kind(
        "GEOM-GCN", "GeomGCN", {**_WIDE, "divisions": 9}, {"hidden": 32}, {"hidden": (32, 16), "dropout": (0.5, 0.2)}
    ),
    "gcnii": Kind(
        "GCNII",
        "GCNII",
        {**_DEEP, "layers": 16, "alpha": 0.5, "lamda": 0.5, "variant": True, "scaled": True},
        base={"layers": 8},
        space={"layers": (8, 4, 16), "alpha": (0.5, 0.2, 0.1), "lamda": (0.5, 1.0, 1.5), "dropout": (0.5, 0.2)},
    ),
    "h2gcn": Kind(
        "H2GCN",
        "H2GCN",
        {**_WIDE, "rounds": 1, "relu": True},
        space={"rounds": (1, 2), "relu": (True, False), "dropout": (0.5, 0.0), "weight_decay": (2e-5, 1e-3, 5e-4)},
    ),
    "wrgat": Kind(
        "WRGAT",
        "WRGAT",
        {**_WIDE, "relations": 3, "edges": True, "mean": False},
        base={"hidden": 32},
        space={"relations": (2, 1, 3), "edges": (True, False), "hidden": (32, 64), "dropout": (0.5, 0.2)},
    ),
    "gprgnn": Kind(
        "GPRGNN",
        "GPRGNN",
        {**_WIDE, "hops": 10, "alpha": 0.1, "smooth_dropout": 0.5},
        space={"alpha": (0.1, 0.2, 0.5, 0.9, 1.0), "smooth_dropout": (0.5, 0.0, 0.7), "dropout": (0.5, 0.2)},
    ),
}
"""The networks by the names that commands take."""

_CHOICES: dict[str, tuple[str, ...]] = {
    "model": tuple(NETWORKS),
    "direction": DIRECTIONS,
    "scaling": ("none", "l1", "columns", "binary"),
    "stop": ("loss", "metric"),
    "keep": ("best", "last"),
    "optimizer": ("adam", "sgd"),
    "schedule": ("constant", "plateau", "linear"),
}


@dataclass(frozen=True, repr=False)
class NetworkRecipe:
    """A graph network as it is trained.

    Attributes
    ----------
    model
        Which: a name of `pegfan.networks.NETWORKS`.
    direction
        Which side of directed edges nodes listen to: both (``"symmetric"``), those that they point at (``"out"``), or
        those that point at them (``"in"``).
    scaling
        What is done to the features first, as in `pegfan.Recipe`; ``"binary"`` puts ones for all that is not zero.
    options
        Of the module in `pegfan.models`: hidden, layers, dropout and so on; what is left out has its default there.
    lr, weight_decay, epochs, patience, stop, class_weights
        Of the training, as in `pegfan.Settings`; of epochs with equal metrics, the one with the lower loss is better.
    optimizer, schedule
        ``"adam"`` or ``"sgd"``; the learning rate stays (``"constant"``), falls by a fifth when the validation loss has
        not improved for 50 epochs (``"plateau"``), or by a hundredth of its start every 40 epochs (``"linear"``).
    keep
        Which weights are kept: those of the epoch that is ``"best"`` on validation, or of the ``"last"`` one, as some
        published numbers have it.
    relation_file
        A file with GEOM-GCN's relations, in place of our own.

    Examples
    --------
    >>> recipe = NetworkRecipe.of({"model": "gcn", "hidden": 32, "lr": 0.05})
    >>> recipe.name
    'gcn hidden=32, lr=0.05'
    >>> NetworkRecipe.of(recipe.to_dict()) == recipe, len(recipe.key)
    (True, 16)
    """

    model: str = "gcn"
    direction: str = "symmetric"
    scaling: str = "columns"
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    lr: float = 0.01
    weight_decay: float = 5e-4
    epochs: int = 1500
    patience: int = 100
    stop: str = "loss"
    class_weights: bool = False
    optimizer: str = "adam"
    schedule: str = "constant"
    keep: str = "best"
    relation_file: TreeFile | None = None

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            check_choice(getattr(self, name), name, allowed)
        for name in ("epochs", "patience"):
            self._put(name, check_integer(getattr(self, name), name, 1))
        for name in ("lr", "weight_decay"):
            check_number(getattr(self, name), name)
            self._put(name, float(getattr(self, name)))
        self._put("class_weights", check_flag(self.class_weights, "class_weights"))
        kind = NETWORKS[self.model]
        check_mapping(self.options, "options")
        unknown = [name for name in self.options if name not in kind.options]
        if unknown:
            raise ValueError(f"{kind.label} has no {unknown[0]!r}; it has {', '.join((*kind.options, *_OWN))}")
        self._put("options", {name: plain(value) for name, value in sorted(self.options.items())})
        if self.relation_file is not None:
            if self.model != "geom-gcn":
                raise ValueError("relation_file is for geom-gcn")
            self._put("relation_file", TreeFile(*self.relation_file))

    def _put(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)  # the class is frozen

    @classmethod
    def of(cls, given: NetworkRecipe | Mapping[str, Any]) -> NetworkRecipe:
        """A recipe from its fields and options, all in one mapping; what `to_dict` gives."""
        if isinstance(given, NetworkRecipe):
            return given
        check_mapping(given, "a recipe")
        model = given.get("model", "gcn")
        check_choice(model, "model", tuple(NETWORKS))
        return cls(model=model, options=dict(_own_base(model)[1]), **_own_base(model)[0]).changed(**given)

    def to_dict(self) -> dict[str, Any]:
        """Plain values in one level: the model, its options and all fields."""
        own = {name: getattr(self, name) for name in _OWN}
        if self.relation_file is not None:
            own["relation_file"] = list(self.relation_file)
        return {"model": self.model, **self.options, **own}

    @property
    def whole(self) -> dict[str, Any]:
        """All values, also those that are left to the network: the same for recipes that train the same."""
        return {**NETWORKS[self.model].options, **self.to_dict()}

    def changes(self) -> dict[str, Any]:
        """What differs from the recipe that the network starts from."""
        standard = NetworkRecipe.of({"model": self.model}).to_dict()
        return {name: value for name, value in self.to_dict().items() if standard.get(name, _NOTHING) != value}

    def changed(self, **changes: Any) -> NetworkRecipe:
        """The recipe with other fields or options."""
        own = {name: value for name, value in changes.items() if name in _OWN or name in ("model", "relation_file")}
        options = {name: value for name, value in changes.items() if name not in own}
        return replace(self, **own, options={**self.options, **options})

    @cached_property
    def key(self) -> str:
        """16 hex digits that tell recipes apart, in any process and on any machine."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        """A short line that tells recipes apart."""
        words = [f"{k}={v[0] if k == 'relation_file' else v}" for k, v in self.changes().items()]
        return f"{self.model} {', '.join(words)}".strip()

    def __repr__(self) -> str:
        shown = {"model": self.model, **self.changes()}
        return f"NetworkRecipe({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    @property
    def label(self) -> str:
        """The network's name in tables."""
        return NETWORKS[self.model].label

    @property
    def module(self) -> str:
        """Its class in `pegfan.models`."""
        return NETWORKS[self.model].module

    @property
    def needs_labels(self) -> bool:
        """Whether predictions need the training labels."""
        return self.model == "label-propagation"

    @property
    def inputs(self) -> tuple[Any, ...]:
        """What recipes of the same inputs have in common."""
        return (self.direction, self.scaling, self.relation_file)


_OWN = tuple(f.name for f in fields(NetworkRecipe) if f.name not in ("model", "options", "relation_file"))
_NOTHING: Any = object()


def _own_base(model: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What recipes of a network start from: fields, and options."""
    base = NETWORKS[model].base
    return {k: v for k, v in base.items() if k in _OWN}, {k: v for k, v in base.items() if k not in _OWN}


def recipe_of(given: Recipe | NetworkRecipe | Mapping[str, Any]) -> Recipe | NetworkRecipe:
    """A recipe of either kind from a mapping: one that names a ``"model"`` is a network's.

    Examples
    --------
    >>> recipe_of({"model": "gcn"}), recipe_of({"h": 4})
    (NetworkRecipe(model='gcn'), Recipe(h=4))
    """
    if isinstance(given, (Recipe, NetworkRecipe)):
        return given
    return NetworkRecipe.of(given) if "model" in check_mapping(given, "a recipe") else Recipe.of(given)
