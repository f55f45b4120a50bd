"""PEGFAN and FSGNN: the equations in plain NumPy, Proposition 2, gradients, precision, bad input."""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from torch.nn import functional as F

import pegfan as pf
from pegfan.channels import make_channels, make_fsgnn_channels
from pegfan.channels.presets import KINDS
from pegfan.models import FSGNN, PEGFAN, ChannelNetwork, to_tensors
from support.strategies import trees

SETTINGS = {"wd_fc1": 1e-4, "wd_fc2": 1e-3, "wd_sca": 0.1, "lr_fc": 0.01, "lr_sca": 0.04}
seeds = st.integers(0, 2**32 - 1)


def random_graph(n, seed, columns=4, dtype=np.float64):
    rng = np.random.default_rng(seed)
    adjacency = sparse.random_array((n, n), density=0.3, rng=rng)
    return pf.Graph(adjacency, features=rng.standard_normal((n, columns)).astype(dtype), directed=True)


def random_network(widths, seed, dtype=torch.float64, **options):
    """A network in eval mode with weights and attention that are not the starting ones."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = ChannelNetwork(widths, 3, hidden=6, **options)
        with torch.no_grad():
            model.attention_logits.copy_(torch.randn(len(widths)))
    return model.to(dtype).eval()


def plain_forward(model, channels):
    """Section IV with NumPy, layer by layer."""
    state = {name: value.detach().numpy() for name, value in model.state_dict().items()}
    attention = np.exp(state["attention_logits"]) / np.exp(state["attention_logits"]).sum()
    parts = []
    for i, x in enumerate(channels):
        h = x @ state[f"channel_layers.{i}.weight"].T + state[f"channel_layers.{i}.bias"]
        if model.hop_normalize:
            h = h / np.sqrt((h**2).sum(axis=1, keepdims=True))
        parts.append(attention[i] * h)
    h = np.maximum(np.concatenate(parts, axis=1), 0)
    for i in range(len(model.hidden_layers)):
        h = np.maximum(h @ state[f"hidden_layers.{i}.weight"].T + state[f"hidden_layers.{i}.bias"], 0)
    scores = h @ state["output.weight"].T + state["output.bias"]
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(1, 9), seeds, st.booleans(), st.integers(2, 4))
def test_the_network_equals_a_plain_one(widths, n, seed, hop_normalize, layers):
    rng = np.random.default_rng(seed)
    model = random_network(widths, seed, hop_normalize=hop_normalize, layers=layers)
    channels = [rng.standard_normal((n, d)) for d in widths]
    wanted = plain_forward(model, channels)
    assert wanted.shape == (n, 3)
    np.testing.assert_allclose(model(to_tensors(channels)).detach().numpy(), wanted, atol=1e-12)
    mixed = [sparse.csr_array(x) if i % 2 == 0 else x for i, x in enumerate(channels)]
    np.testing.assert_allclose(model(to_tensors(mixed)).detach().numpy(), wanted, atol=1e-12)
    np.testing.assert_allclose(np.exp(wanted).sum(axis=1), 1)


def test_sizes_start_and_names():
    model = PEGFAN([5, 3], classes=4)
    assert {name: tuple(value.shape) for name, value in model.state_dict().items()} == {
        "attention_logits": (2,),
        "channel_layers.0.weight": (64, 5),
        "channel_layers.0.bias": (64,),
        "channel_layers.1.weight": (64, 3),
        "channel_layers.1.bias": (64,),
        "output.weight": (4, 128),
        "output.bias": (4,),
    }
    assert model.attention_logits.tolist() == [1, 1]
    assert not model.attention.requires_grad
    deep = FSGNN([5], classes=2, hidden=8, layers=4)
    assert [tuple(layer.weight.shape) for layer in [*deep.hidden_layers, deep.output]] == [(8, 8), (8, 8), (2, 8)]
    assert "channels=2, dropout=0.5, hop_normalize=True" in repr(model)


def test_dropout_acts_on_the_hidden_layer_in_training_only():
    model = PEGFAN([2], classes=2, hidden=500, dropout=0.6)
    x = [torch.ones(1, 2)]
    seen = []
    model.output.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach()))
    model.eval()
    first, second = model(x), model(x)
    assert torch.equal(first, second)
    model.train()
    model(x)
    kept, dropped = seen[0], seen[2]
    positive = kept > 0
    assert 0.5 < (dropped[positive] == 0).float().mean() < 0.7
    survivors = positive & (dropped != 0)
    torch.testing.assert_close(dropped[survivors], kept[survivors] / 0.4)


def test_gradients():
    rng = np.random.default_rng(0)
    model = random_network([3, 2], 1, layers=3)
    x, csr = to_tensors([rng.standard_normal((5, 3)), sparse.csr_array(rng.standard_normal((5, 2)))])
    names = [name for name, _ in model.named_parameters()]

    def output(*values):
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), ([x, csr],))

    start = [value.detach().clone().requires_grad_() for value in model.parameters()]
    assert torch.autograd.gradcheck(output, start)
    gradients = torch.autograd.grad(F.nll_loss(output(*start), torch.tensor([0, 1, 2, 0, 1])), start)
    assert all(gradient.abs().max() > 0 for gradient in gradients)


def test_lazy_channels_give_the_same_output_and_gradients():
    graph = random_graph(9, 2)
    system = pf.FrameletSystem(pf.Hierarchy.from_nested([[0, 1, [2, 3]], [4, 5, 6], [7, 8]]))
    channels = make_channels(graph, system, "c", "heterophily")
    model = random_network(channels.widths, 3)
    labels = torch.arange(9) % 3
    found = []
    for given_channels in (to_tensors(channels.materialize(np.float64)), channels, list(channels)):
        model.zero_grad()
        loss = F.nll_loss(model(given_channels), labels)
        loss.backward()
        found.append([loss.detach(), *(parameter.grad.clone() for parameter in model.parameters())])
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            torch.testing.assert_close(a, b, atol=1e-12, rtol=1e-10)


# ---------------------------------------------------------------- Proposition 2


@given(trees(limit=20), seeds, st.sampled_from(list(KINDS)), st.sampled_from(["homophily", "heterophily"]))
def test_proposition_2(tree, seed, kind, regime):
    """Permuted features, adjacency and system give permuted predictions."""
    graph = random_graph(tree.n, seed)
    perm = np.random.default_rng(seed).permutation(tree.n)
    channels = make_channels(graph, pf.FrameletSystem(tree), kind, regime)
    moved = make_channels(graph.permute(perm), pf.FrameletSystem(tree.permute(perm)), kind, regime)
    model = random_network(channels.widths, seed % 2**31)
    before = model(to_tensors(channels.materialize(np.float64)))
    after = model(to_tensors(moved.materialize(np.float64)))
    torch.testing.assert_close(after, before[perm], atol=1e-9, rtol=0)


@given(st.integers(2, 15), seeds, st.sampled_from(["homophily", "heterophily", "all"]))
def test_fsgnn_is_equivariant(n, seed, option):
    graph = random_graph(n, seed)
    perm = np.random.default_rng(seed).permutation(n)
    channels, moved = (make_fsgnn_channels(g, regime=option) for g in (graph, graph.permute(perm)))
    model = random_network(channels.widths, seed % 2**31)
    before, after = (model(to_tensors(c.materialize(np.float64))) for c in (channels, moved))
    torch.testing.assert_close(after, before[perm], atol=1e-9, rtol=0)


def test_equivariant_end_to_end_with_our_trees():
    """The tree is built anew on the permuted graph."""
    rng = np.random.default_rng(5)
    n = 60
    graph = pf.Graph.from_edges(rng.integers(0, n, (150, 2)), n=n, features=rng.standard_normal((n, 4)))
    perm = rng.permutation(n)
    outputs = []
    for g in (graph, graph.permute(perm)):
        system = pf.FrameletSystem(pf.build_tree(g, h=4))
        channels = make_channels(g, system, "c", "heterophily")
        outputs.append(random_network(channels.widths, 0)(to_tensors(channels.materialize(np.float64))))
    torch.testing.assert_close(outputs[1], outputs[0][perm], atol=1e-9, rtol=0)


# -------------------------------------------------------- optimiser, state, precision


@pytest.mark.parametrize("settings", [SETTINGS, SimpleNamespace(**SETTINGS)])
def test_parameter_groups(settings):
    model = PEGFAN([3, 2], classes=2, layers=3)
    output, channels, attention = model.parameter_groups(settings)
    assert (output["lr"], output["weight_decay"]) == (0.01, 1e-3)
    assert (channels["lr"], channels["weight_decay"]) == (0.01, 1e-4)
    assert (attention["lr"], attention["weight_decay"]) == (0.04, 0.1)
    assert output["params"][-2:] == [model.output.weight, model.output.bias]
    assert len(output["params"]) == 4
    assert channels["params"] == list(model.channel_layers.parameters())
    assert attention["params"] == [model.attention_logits]
    grouped = {id(p) for group in (output, channels, attention) for p in group["params"]}
    assert grouped == {id(p) for p in model.parameters()}


def test_training_lowers_the_loss_and_state_can_be_carried_over(tmp_path):
    graph = random_graph(12, 0, dtype=np.float32)
    channels = make_fsgnn_channels(graph, 2, "all")
    tensors = to_tensors(channels.materialize())
    labels = torch.arange(12) % 3
    torch.manual_seed(0)
    model = FSGNN(channels.widths, 3, dropout=0.0)
    optimizer = torch.optim.Adam(model.parameter_groups(SETTINGS))
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = F.nll_loss(model(tensors), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    torch.testing.assert_close(model.attention.sum(), torch.tensor(1.0))
    assert model.attention.std() > 0
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    other = FSGNN(channels.widths, 3, dropout=0.0)
    other.load_state_dict(torch.load(tmp_path / "weights.pt", weights_only=True))
    assert torch.equal(other(tensors), model(tensors))


def test_half_precision():
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((8, 3)), sparse.csr_array(rng.standard_normal((8, 2)))]
    model = random_network([3, 2], 0, dtype=torch.float32)
    inputs = to_tensors(arrays, torch.float32)
    wanted = model(inputs)
    with torch.autocast("cpu", torch.bfloat16):
        found = model(inputs)
    F.nll_loss(found, torch.zeros(8, dtype=torch.long)).backward()
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, wanted, atol=0.03, rtol=0)
    assert model.channel_layers[0].weight.grad.dtype == torch.float32

    dense = [torch.tensor(array.toarray() if sparse.issparse(array) else array) for array in arrays]
    for dtype in (torch.float16, torch.bfloat16):
        low = random_network([3, 2], 0, dtype=dtype)([x.to(dtype) for x in dense])
        assert low.dtype == torch.float32
        torch.testing.assert_close(low, wanted, atol=0.05, rtol=0)


def test_norms_of_tiny_half_precision_rows():
    """Squares of 1e-4 vanish in float16; the norm does not."""
    from pegfan.models.pegfan import normalize_rows

    row = torch.full((1, 4), 1e-4, dtype=torch.float16)
    torch.testing.assert_close(normalize_rows(row), torch.full((1, 4), 0.5, dtype=torch.float16))
    assert not normalize_rows(torch.zeros(2, 3)).any()


def test_to_tensors():
    writeable, frozen = np.arange(4.0).reshape(2, 2), np.arange(4.0).reshape(2, 2)
    frozen.setflags(write=False)
    csr = sparse.csr_array(np.eye(2, dtype=np.float32))
    csr.data.setflags(write=False)
    shared, copied, sparse_tensor = to_tensors([writeable, frozen, csr])
    writeable[0, 0] = 7
    assert shared[0, 0] == 7
    assert copied.tolist() == [[0, 1], [2, 3]]
    assert (sparse_tensor.layout, sparse_tensor.dtype) == (torch.sparse_csr, torch.float32)
    assert sparse_tensor.to_dense().tolist() == [[1, 0], [0, 1]]
    assert {x.dtype for x in to_tensors([writeable, csr], torch.float64)} == {torch.float64}
    assert to_tensors([writeable, csr], device="meta")[0].device.type == "meta"


@pytest.mark.long
def test_importing_channels_does_not_import_torch():
    code = "import sys, pegfan, pegfan.channels; sys.exit(any(m in sys.modules for m in ('torch', 'matplotlib')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"widths": []}, "at least one channel"),
        ({"classes": 0}, "classes must be at least 1, got 0"),
        ({"hidden": 0}, "hidden must be at least 1"),
        ({"layers": 1}, "layers must be at least 2, got 1"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
        ({"dropout": float("nan")}, "dropout must be"),
    ],
)
def test_bad_networks(options, message):
    with pytest.raises(ValueError, match=message):
        PEGFAN(**{"widths": [2], "classes": 2, **options})


def test_bad_inputs():
    model = PEGFAN([3, 2], classes=2)
    x, y = torch.ones(4, 3), torch.ones(4, 2)
    graph = random_graph(4, 0, columns=5)
    for error, message, channels in [
        (ValueError, "the network has 2 channels, got 1", [x]),
        (ValueError, r"channel 1 has shape \(4, 3\); it must be a matrix of 4 rows, as channel 0, and 2 c", [x, x]),
        (ValueError, r"channel 1 has shape \(3, 2\)", [x, y[:3]]),
        (ValueError, r"channel 0 has shape \(3,\)", [x[0], y]),
        (ValueError, r"channel 0 has shape \(4, 5\)", make_fsgnn_channels(graph, 1, "heterophily")),
        (TypeError, "must be a tensor or a Channel, got ndarray; use to_tensors", [x.numpy(), y]),
        (ValueError, "channel 1 is torch.float64 and the network torch.float32; convert", [x, y.double()]),
    ]:
        with pytest.raises(error, match=message):
            model(channels)
    with pytest.raises(ValueError, match="settings have no 'wd_fc2'; parameter_groups needs"):
        model.parameter_groups({"lr_fc": 0.1})
    with pytest.raises(ValueError, match="settings have no 'lr_fc'"):
        model.parameter_groups(SimpleNamespace())
