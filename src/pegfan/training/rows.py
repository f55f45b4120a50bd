"""The rows of channels that a part of a split takes, in an order that does not depend on how nodes are numbered."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from pegfan._arrays import IntArray
from pegfan.channels import Channels


class Rows(NamedTuple):
    """Rows of ``channels.canonical`` and the labels that belong to them.

    Nodes with equal rows share a place and may have different labels. They are sorted by place, then by label: nodes
    that come in one place with one label make no difference to training.
    """

    places: IntArray
    labels: IntArray

    @classmethod
    def of(cls, channels: Channels, nodes: IntArray, labels: IntArray) -> Self:
        """Those of some nodes; `labels` are those of all nodes."""
        places, own = channels.canonical.places[nodes], labels[nodes]
        order = np.lexsort((own, places))
        return cls(places[order], own[order])
