"""Signals on the nodes of a graph: without noise, without gaps, in few numbers."""

from pegfan.signals.choosing import Pieces, best_pieces, best_tree
from pegfan.signals.compression import Compressed, compress
from pegfan.signals.denoising import denoise
from pegfan.signals.estimate import Estimate
from pegfan.signals.inpainting import inpaint
from pegfan.signals.stream import Stream

__all__ = [
    "Compressed",
    "Estimate",
    "Pieces",
    "Stream",
    "best_pieces",
    "best_tree",
    "compress",
    "denoise",
    "inpaint",
]
