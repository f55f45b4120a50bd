"""Channels: what the network sees of a graph, as named linear operators on its features."""

from pegfan.channels import names
from pegfan.channels._density import density
from pegfan.channels.channels import Channel, Channels
from pegfan.channels.factors import Hop, Matrix, Projection
from pegfan.channels.hops import hop_matrix
from pegfan.channels.inputs import propagated_labels, structural_features
from pegfan.channels.leading import principal_vectors, spectral_vectors
from pegfan.channels.presets import make_channels, make_fsgnn_channels
from pegfan.channels.scaling import FeatureScale, PrincipalColumns

__all__ = [
    "Channel",
    "Channels",
    "FeatureScale",
    "Hop",
    "Matrix",
    "PrincipalColumns",
    "Projection",
    "density",
    "hop_matrix",
    "make_channels",
    "make_fsgnn_channels",
    "names",
    "principal_vectors",
    "propagated_labels",
    "spectral_vectors",
    "structural_features",
]
