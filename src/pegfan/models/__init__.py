"""The networks, as torch modules."""

from pegfan.models.pegfan import FSGNN, PEGFAN, ChannelNetwork, to_tensors

__all__ = ["FSGNN", "PEGFAN", "ChannelNetwork", "to_tensors"]
