"""PEGFAN and FSGNN: one network, which differs in the channels it is given (Section IV of the paper)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Self

import numpy as np
import torch
from scipy.sparse import csr_array, issparse
from torch import Tensor, nn
from torch.nn import functional as F

from pegfan import _defaults as default
from pegfan._checks import (
    check_flag,
    check_integer,
    check_kind,
    check_list,
    check_mapping,
    check_number,
    check_places,
    kind_of,
    shown,
)
from pegfan._limits import check_memory
from pegfan._matrices import as_matrix
from pegfan.framelets._torch import sparse_csr


class ChannelNetwork(nn.Module):
    """A network of n_C channels with attention.

    ::

        H_1 = ‖_i α_i · N(X_i W_i + b_i)
        Ŷ   = log softmax(dropout(ReLU(H_1)) W + b)

    ‖ puts columns side by side, α = softmax(a) with trainable a that starts at ones, and N divides each row
    by its Euclidean norm. (The paper writes no biases and no dropout; the authors' code has both.)

    Parameters
    ----------
    widths
        The numbers of columns d_1, ..., d_(n_C) of the channels: ``channels.widths``.
    classes
        The number of classes.
    hidden
        The width of each channel's output.
    layers
        2 is the network above; every further layer is ReLU and dropout of a linear map to `hidden` columns,
        before the last one.
    dropout
        The probability that an entry is dropped in training.
    hop_normalize
        Whether N is applied.

    Notes
    -----
    Half precision works by ``torch.autocast`` or ``model.half()``; norms and the softmax are then computed in
    float32, and so is the output.

    Examples
    --------
    >>> import torch
    >>> model = ChannelNetwork([5, 3], classes=4)
    >>> model([torch.ones(7, 5), torch.ones(7, 3)]).shape
    torch.Size([7, 4])
    >>> model.attention
    tensor([0.5000, 0.5000])
    """

    def __init__(
        self,
        widths: Sequence[int],
        classes: int,
        hidden: int = default.HIDDEN,
        layers: int = default.LAYERS,
        dropout: float = default.DROPOUT,
        hop_normalize: bool = default.HOP_NORMALIZE,
    ) -> None:
        super().__init__()
        widths = check_places(widths if hasattr(widths, "shape") else list(widths), "widths", 2**40).tolist()
        if not widths:
            raise ValueError("a network needs at least one channel; widths is empty")
        for name, value, least in (("classes", classes, 1), ("hidden", hidden, 1), ("layers", layers, 2)):
            check_integer(value, name, least, most=1000 if name == "layers" else 2**40)
        check_flag(hop_normalize, "hop_normalize")
        check_memory(4.0 * hidden * (sum(widths) + len(widths) * hidden + classes), "the weights of the network")
        if not 0 <= check_number(dropout, "dropout") < 1:
            raise ValueError(f"dropout must be at least 0 and below 1, got {dropout}")
        self.widths = tuple(widths)
        self.dropout, self.hop_normalize = dropout, hop_normalize
        self.channel_layers = nn.ModuleList(nn.Linear(width, hidden) for width in widths)
        self.attention_logits = nn.Parameter(torch.ones(len(widths)))
        inner = [len(widths) * hidden, *[hidden] * (layers - 2)]
        self.hidden_layers = nn.ModuleList(nn.Linear(d, hidden) for d in inner[:-1])
        self.output = nn.Linear(inner[-1], classes)
        self.units: tuple[float, float] | None = None

    @classmethod
    def from_state(cls, state: Mapping[str, Any], settings: Any = None) -> Self:
        """The network of a trained state, such as that of a `pegfan.training.Run`, ready to predict (``eval``).

        Parameters
        ----------
        state
            Arrays or tensors by name; sizes are read from it. Tensors are used as they are. With ``"target"``, the mean
            and scale of numeric targets, the network predicts numbers in their units.
        settings
            A mapping or an object with ``dropout`` and ``hop_normalize``; where it has none, the defaults hold.

        Examples
        --------
        >>> model = PEGFAN([5, 3], classes=4, hidden=8)
        >>> PEGFAN.from_state(model.state_dict(), {"hop_normalize": False})
        PEGFAN(
          channels=2, dropout=0.5, hop_normalize=False
          ...
        """
        check_mapping(state, "state")
        given: Any = {} if settings is None else settings
        if not isinstance(given, Mapping):
            given = {name: getattr(given, name) for name in ("dropout", "hop_normalize") if hasattr(given, name)}
        options = {name: given[name] for name in ("dropout", "hop_normalize") if name in given}
        try:
            if odd := next((name for name, value in state.items() if not hasattr(value, "shape")), None):
                raise ValueError(f"{shown(odd)} is not an array")
            count = len(state["attention_logits"])
            widths = [state[f"channel_layers.{i}.weight"].shape[1] for i in range(count)]
            classes, hidden = len(state["output.bias"]), len(state["channel_layers.0.bias"])
            layers = 2 + sum(name.startswith("hidden_layers.") for name in state) // 2
            with torch.device("meta"):  # the weights are known: draw none, and take no memory
                model = cls(widths, classes, hidden, layers, **options)
            tensors = {name: torch.as_tensor(value) for name, value in state.items() if name != "target"}
            model.load_state_dict(tensors, assign=True)
            if "target" in state:
                model.units = (float(state["target"][0]), float(state["target"][1]))
        except (KeyError, IndexError, RuntimeError, TypeError) as error:
            raise ValueError(f"this is not the state of a ChannelNetwork: {error}") from error
        return model.eval()

    def forward(self, channels: Iterable[Any]) -> Tensor:
        """Log-probabilities of the classes, or predicted numbers in one column; one row per node.

        Parameters
        ----------
        channels
            As in `outputs`.
        """
        found = at_least_single(self.outputs(channels))
        if self.units is not None:
            centre, scale = self.units
            return found * scale + centre
        return F.log_softmax(found, dim=1)

    def outputs(self, channels: Iterable[Any]) -> Tensor:
        """What the last layer gives, one row per node.

        Parameters
        ----------
        channels
            X_1, ..., X_(n_C): dense or sparse (CSR) tensors, or `pegfan.channels.Channel` objects, which act
            on the weights without being formed. A `Channels` set is such a list.
        """
        inputs = self._check(channels)
        alpha = self.attention_logits.softmax(dim=0)
        parts = []
        for i, (x, layer) in enumerate(zip(inputs, self.channel_layers, strict=True)):
            h = linear(x, layer)
            if self.hop_normalize:
                h = normalize_rows(h)
            parts.append(alpha[i] * h)
        h = self._activate(torch.cat(parts, dim=1))
        for hidden_layer in self.hidden_layers:
            h = self._activate(hidden_layer(h))
        found: Tensor = self.output(h)
        return found

    def _activate(self, h: Tensor) -> Tensor:
        return F.dropout(F.relu(h), self.dropout, training=self.training)

    @property
    def attention(self) -> Tensor:
        """The weights α of the channels; they sum to one."""
        return self.attention_logits.detach().softmax(dim=0)

    def parameter_groups(self, settings: Any) -> list[dict[str, Any]]:
        """The three groups of parameters that the authors' Adam treats differently.

        Parameters
        ----------
        settings
            A mapping or an object with ``wd_fc1``, ``wd_fc2``, ``wd_sca``, ``lr_fc`` and ``lr_sca``: weight
            decays of the channel layers, of what follows them, and of the attention; learning rates of the
            layers and of the attention.

        Examples
        --------
        >>> import torch
        >>> settings = {"wd_fc1": 1e-4, "wd_fc2": 1e-3, "wd_sca": 0.1, "lr_fc": 0.01, "lr_sca": 0.04}
        >>> optimizer = torch.optim.Adam(PEGFAN([5, 3], classes=4).parameter_groups(settings))
        >>> [(group["name"], group["lr"], group["weight_decay"]) for group in optimizer.param_groups]
        [('output', 0.01, 0.001), ('channels', 0.01, 0.0001), ('attention', 0.04, 0.1)]
        """
        read: Callable[[str], Any] = partial(getattr, settings)
        if isinstance(settings, Mapping):
            read = check_mapping(settings, "settings").__getitem__
        groups: list[tuple[str, list[Any], str, str]] = [
            ("output", [*self.hidden_layers.parameters(), *self.output.parameters()], "lr_fc", "wd_fc2"),
            ("channels", [*self.channel_layers.parameters()], "lr_fc", "wd_fc1"),
            ("attention", [self.attention_logits], "lr_sca", "wd_sca"),
        ]
        try:
            return [
                {"name": name, "params": parameters, "lr": float(read(rate)), "weight_decay": float(read(decay))}
                for name, parameters, rate, decay in groups
            ]
        except (KeyError, AttributeError) as error:
            missing = getattr(error, "name", None) or error.args[0]
            raise ValueError(
                f"settings have no {shown(missing)}; parameter_groups needs wd_fc1, wd_fc2, wd_sca, lr_fc and lr_sca"
            ) from None

    def _check(self, channels: Iterable[Any]) -> list[Any]:
        if not isinstance(channels, Iterable):
            raise TypeError(f"channels must be a list of tensors or Channels, got {kind_of(channels)}")
        inputs = list(islice(channels, len(self.widths) + 1))
        if len(inputs) != len(self.widths):
            many = "more" if len(inputs) > len(self.widths) else len(inputs)
            raise ValueError(f"the network has {len(self.widths)} channels, got {many}")
        for i, (x, width) in enumerate(zip(inputs, self.widths, strict=True)):
            if not (isinstance(x, Tensor) or (hasattr(x, "apply") and hasattr(x, "shape"))):
                raise TypeError(f"channel {i} must be a tensor or a Channel, got {type(x).__name__}; use to_tensors")
            if len(x.shape) != 2 or x.shape[1] != width or x.shape[0] != inputs[0].shape[0]:
                raise ValueError(
                    f"channel {i} has shape {tuple(x.shape)}; it must be a matrix of {inputs[0].shape[0]} rows, as "
                    f"channel 0, and {width} columns"
                )
            weight = self.attention_logits
            if isinstance(x, Tensor) and x.device != weight.device:
                raise ValueError(f"channel {i} is on {x.device} and the network on {weight.device}; move one of them")
            if isinstance(x, Tensor) and x.dtype != weight.dtype and not torch.is_autocast_enabled(weight.device.type):
                raise ValueError(
                    f"channel {i} is {x.dtype} and the network {weight.dtype}; convert one of them "
                    "(materialize(dtype), model.to(dtype)), or use torch.autocast"
                )
        return inputs

    def extra_repr(self) -> str:
        """What ``print`` says beside the layers."""
        return f"channels={len(self.widths)}, dropout={self.dropout}, hop_normalize={self.hop_normalize}"


class PEGFAN(ChannelNetwork):
    """The permutation equivariant graph framelet augmented network: channels of `pegfan.make_channels`.

    See `ChannelNetwork` for its equations and parameters.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> from pegfan.channels import make_channels
    >>> graph = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3]], features=np.eye(4, dtype=np.float32))
    >>> system = pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1], [2, 3]]))
    >>> channels = make_channels(graph, system, kind="c", regime="heterophily")
    >>> model = PEGFAN(channels.widths, classes=3).eval()
    >>> materialised, lazy = model(to_tensors(channels.materialize())), model(channels)
    >>> bool((materialised - lazy).abs().max() < 1e-5)
    True
    """


class FSGNN(ChannelNetwork):
    """The feature selection graph neural network: channels of `pegfan.make_fsgnn_channels`.

    See `ChannelNetwork` for its equations and parameters.

    References
    ----------
    .. [1] Maurya, Liu, Murata, "Simplifying approach to node classification in graph neural networks",
       Journal of Computational Science 62, 2022.
    """


def to_tensors(
    arrays: Iterable[Any], dtype: torch.dtype | None = None, device: torch.device | str | None = None
) -> list[Tensor]:
    """Turn materialised channels into tensors: arrays into dense ones, CSR arrays into sparse CSR ones.

    Parameters
    ----------
    arrays
        What `Channels.materialize` or `Channels.rows` gave.
    dtype
        By default that of each array.
    device
        By default the CPU. There, memory is shared with arrays that can be written to.

    Examples
    --------
    >>> import numpy as np
    >>> to_tensors([np.ones((2, 1))])
    [tensor([[1.],
            [1.]], dtype=torch.float64)]
    """
    try:
        place = torch.device("cpu" if device is None else device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"device must be one that torch knows, got {shown(device)}") from error
    if dtype is not None:
        check_kind(dtype, "dtype", torch.dtype)
    tensors: list[Tensor] = []
    listed: list[Any] = check_list(arrays, "arrays", object)
    for array in listed:
        matrix = as_matrix(array, f"arrays[{len(tensors)}]")
        if issparse(matrix):
            kind = dtype or torch.from_numpy(np.empty(0, matrix.dtype)).dtype
            tensors.append(sparse_csr(csr_array(matrix), kind, place))
        else:
            tensor = torch.from_numpy(matrix) if matrix.flags.writeable else torch.tensor(matrix)
            tensors.append(tensor.to(place, dtype))
    return tensors


def linear(x: Any, layer: Any) -> Tensor:
    """X W + b for a dense or sparse tensor, or for a channel P X, as P(X W) + b; torch stores Wᵀ."""
    product: Tensor
    if isinstance(x, Tensor) and x.layout == torch.strided:
        product = F.linear(x, layer.weight, layer.bias)
        return product
    if isinstance(x, Tensor):
        with torch.autocast(x.device.type, enabled=False):  # half precision has no sparse products on CPUs
            product = torch.sparse.mm(x, layer.weight.T.to(x.dtype))
    else:
        product = x.apply(layer.weight.T)
    result: Tensor = product + layer.bias
    return result


def normalize_rows(h: Tensor) -> Tensor:
    """Each row divided by its Euclidean norm; in half precision, small entries would vanish in the squares."""
    return F.normalize(at_least_single(h), dim=1).to(h.dtype)


def at_least_single(h: Tensor) -> Tensor:
    """Half precision as float32."""
    return h.float() if h.dtype in (torch.float16, torch.bfloat16) else h
