"""PyTorch Geometric: the channels as a transform, for use in models of your own."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np

from pegfan import _defaults as default
from pegfan._checks import shown
from pegfan._extras import need
from pegfan.graph import Graph
from pegfan.recipe import Recipe

__all__ = ["Framelets"]

BaseTransform: Any = need("torch_geometric.transforms", "torch", "this transform").BaseTransform


class Framelets(BaseTransform):  # type: ignore[misc]
    """Write the channels of PEGFAN to ``data.x1``, ``data.x2``, ..., as PyG's ``SIGN`` does with its hops.

    ``data.channel_names`` says what they are: ``data.x{i}`` is ``data.channel_names[i - 1]``, such as X, S X or
    F_0 S X. All are dense, of the dtype and on the device of ``data.x``, which is left as it is; channels of an
    earlier transform are replaced. `data` is one graph: a batch of several would get one tree over all of them.

    Parameters
    ----------
    h, kind, regime, hops, **fields
        Of the recipe, see `pegfan.Recipe`. Its settings make no difference here. ``direction="out"``, as in the
        paper's code, lets a node look at the targets of its edges; PyG's message passing looks at the sources, which
        is ``"in"``.
    split
        Which column of ``data.train_mask`` says whose labels, of ``data.y``, are seen: those that decide
        ``regime="auto"``, and those in channels of labels.

    Attributes
    ----------
    recipe : pegfan.Recipe

    Examples
    --------
    >>> import pegfan as pf
    >>> from pegfan.integrations.pyg import Framelets
    >>> data = pf.datasets.synthetic(0.0, n=300, n_edges=3000, n_features=20).to_pyg()
    >>> data = Framelets(h=8, kind="c", regime="heterophily", hops=1)(data)
    >>> data.channel_names
    ['X', 'S X', 'F_0 S X', 'F_1 S X', 'F_2 S X', 'F_3 S X', 'F_4 S X']
    >>> data.x5.shape
    torch.Size([300, 20])
    """

    def __init__(
        self,
        h: int = default.H,
        kind: str = default.KIND,
        regime: str = default.REGIME,
        hops: int = default.HOPS,
        *,
        split: int = default.SPLIT,
        **fields: Any,
    ) -> None:
        self.recipe = Recipe.of({"h": h, "kind": kind, "regime": regime, "hops": hops, **fields})
        self.split = split

    def forward(self, data: Any) -> Any:
        """Write the channels of `data` to it."""
        import torch

        if getattr(data, "x", None) is None:
            raise ValueError("data.x is missing, and the channels are made of it; set it, for example to degrees")
        recipe = self.recipe
        told = recipe.regime_is_open or recipe.labels or recipe.adjacency
        if told and (getattr(data, "y", None) is None or getattr(data, "train_mask", None) is None):
            fix = "; name the regime instead" if recipe.regime_is_open else ""
            raise ValueError(f"{shown(recipe)} needs data.y and data.train_mask{fix}")
        # Where labels are not needed, those of a regression, or several per node, do no harm.
        unused: dict[str, Any] = {} if told else {"labels": None, "splits": ()}
        readable = data.x.float() if data.x.dtype == torch.bfloat16 else data.x  # NumPy has no bfloat16
        graph = Graph.from_pyg(copy(data).update({"x": readable}), **unused)
        channels = recipe.channels(graph, recipe.build_tree(graph), split=self.split if told else None)
        dtype = data.x.dtype if data.x.is_floating_point() else torch.float32
        exact = np.float64 if dtype == torch.float64 else np.float32
        for i in range(1, len(getattr(data, "channel_names", ())) + 1):
            del data[f"x{i}"]  # of an earlier transform, which may have had more channels
        for i, values in enumerate(channels.materialize(exact, format="dense"), start=1):
            data[f"x{i}"] = torch.tensor(values, dtype=dtype, device=data.x.device)
        data.channel_names = list(channels.names)
        return data

    def __repr__(self) -> str:
        return repr(self.recipe).replace("Recipe", "Framelets", 1)
