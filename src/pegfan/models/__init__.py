"""The networks, as torch modules."""

from pegfan._extras import need

need("torch", "torch", "pegfan.models")

from pegfan.models.pegfan import FSGNN, PEGFAN, ChannelNetwork, to_tensors  # noqa: E402 - torch was looked for first

__all__ = ["FSGNN", "PEGFAN", "ChannelNetwork", "to_tensors"]
