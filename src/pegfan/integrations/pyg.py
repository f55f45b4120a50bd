"""PyTorch Geometric: the channels as a transform, for use in models of your own."""

from __future__ import annotations

from copy import copy
from typing import Any, Literal

import numpy as np

from pegfan import _defaults as default
from pegfan._extras import need
from pegfan.graph import Graph
from pegfan.trees import build_tree

__all__ = ["Framelets"]

BaseTransform: Any = need("torch_geometric.transforms", "torch", "this transform").BaseTransform


class Framelets(BaseTransform):  # type: ignore[misc]
    """Write the channels of PEGFAN to ``data.x1``, ``data.x2``, ..., as PyG's ``SIGN`` does with its hops.

    ``data.channel_names`` says what they are: ``data.x{i}`` is ``data.channel_names[i - 1]``, such as X, S X or
    F_0 S X. All are dense, of the dtype and on the device of ``data.x``, which is left as it is; channels of an
    earlier transform are replaced. `data` is one graph: a batch of several would get one tree over all of them.

    Parameters
    ----------
    h, method
        Of the tree, see `pegfan.build_tree`.
    kind, regime, hops, include_features, scaling
        Of the channels, see `pegfan.make_channels`. ``regime="auto"`` needs ``data.y`` and ``data.train_mask``.
    direction
        Which side of directed edges tree and hops use: ``"out"``, as the paper's code, lets a node look at the
        targets of its edges; PyG's message passing looks at the sources, which is ``"in"``.
    split
        Which column of the masks decides ``regime="auto"``.

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
        kind: Literal["a", "b", "c", "as"] = default.KIND,
        regime: Literal["homophily", "heterophily", "auto"] = default.REGIME,
        hops: int = default.HOPS,
        *,
        method: Literal["auto", "ward", "matching", "adjacency"] = default.METHOD,
        direction: Literal["out", "in", "symmetric"] = default.DIRECTION,
        include_features: bool = True,
        scaling: Literal["none", "l1", "columns"] = default.SCALING,
        split: int = 0,
    ) -> None:
        self.h, self.kind, self.regime, self.hops = h, kind, regime, hops
        self.method, self.direction, self.include_features = method, direction, include_features
        self.scaling, self.split = scaling, split

    def forward(self, data: Any) -> Any:
        """Write the channels of `data` to it."""
        import torch

        from pegfan.channels import make_channels
        from pegfan.framelets import FrameletSystem

        if getattr(data, "x", None) is None:
            raise ValueError("data.x is missing, and the channels are made of it; set it, for example to degrees")
        auto = self.regime == "auto"
        if auto and (getattr(data, "y", None) is None or getattr(data, "train_mask", None) is None):
            raise ValueError("regime='auto' needs data.y and data.train_mask; name the regime instead")
        # Labels decide the regime and nothing else: those of a regression, or several per node, do no harm.
        unused: dict[str, Any] = {} if auto else {"labels": None, "splits": ()}
        readable = data.x.float() if data.x.dtype == torch.bfloat16 else data.x  # NumPy has no bfloat16
        graph = Graph.from_pyg(copy(data).update({"x": readable}), **unused)
        channels = make_channels(
            graph,
            FrameletSystem(build_tree(graph, self.method, self.h, direction=self.direction)),
            kind=self.kind,
            regime=self.regime,
            hops=self.hops,
            include_features=self.include_features,
            direction=self.direction,
            scaling=self.scaling,
            split=self.split if auto else None,
        )
        dtype = data.x.dtype if data.x.is_floating_point() else torch.float32
        exact = np.float64 if dtype == torch.float64 else np.float32
        for i in range(1, len(getattr(data, "channel_names", ())) + 1):
            del data[f"x{i}"]  # of an earlier transform, which may have had more channels
        for i, values in enumerate(channels.materialize(exact, format="dense"), start=1):
            data[f"x{i}"] = torch.tensor(values, dtype=dtype, device=data.x.device)
        data.channel_names = list(channels.names)
        return data

    def __repr__(self) -> str:
        return f"Framelets(h={self.h}, kind={self.kind!r}, regime={self.regime!r}, hops={self.hops})"
