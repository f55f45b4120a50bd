"""The training engine: the fast path is the plain one, the protocol is the paper's, bad input is answered."""

import dataclasses
import hashlib
import itertools
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import pegfan as pf
from pegfan._products import sparse_product
from pegfan.channels import Channel, Channels, hop_matrix
from pegfan.channels.presets import KINDS
from pegfan.framelets import Operator
from pegfan.graph import Split
from pegfan.models import ChannelNetwork, to_tensors
from pegfan.training import Diverged, Network, Settings, chains, head, score, train
from pegfan.training.fast import ChainSteps
from pegfan.training.plain import PlainSteps
from pegfan.training.rows import Labelled, loss_weights

seeds = st.integers(0, 2**32 - 1)
RATES = Settings(hidden=16, dropout=0.0, lr_fc=0.01, lr_sca=0.04, wd_fc1=1e-3, wd_fc2=1e-4, wd_sca=1e-2)


def make(seed=0, kind="c", n=120, sparse_features=True, **options):
    rng = np.random.default_rng(seed)
    graph = pf.datasets.synthetic(0.2, n=n, n_edges=6 * n, n_features=0, seed=seed, splits=2)
    X = rng.standard_normal((n, 30)) * (rng.random((n, 30)) < 0.15)
    X[:, 7] = 0  # a column that nobody has
    graph = graph.replace(features=sparse.csr_array(X) if sparse_features else X)
    system = pf.FrameletSystem(pf.build_tree(graph, "matching", h=4))
    return graph, pf.make_channels(graph, system, kind=kind, regime="heterophily", scaling="none", **options)


def both(channels, graph, settings=RATES, by_class=False, truth=None, seed=1):
    """A plain network in float64, and steps of the fast path from its weights."""
    truth = graph.labels if truth is None else truth
    classes = 1 if truth.dtype.kind == "f" else graph.n_classes
    part = Split(*(nodes[np.argsort(channels.places[nodes])] for nodes in graph.splits[0]))
    model = ChannelNetwork(
        channels.widths, classes, settings.hidden, dropout=0.0, hop_normalize=settings.hop_normalize
    ).double()
    state = Network.draw(channels.widths, classes, settings, seed).state
    train, val = (Labelled.of(channels, nodes, truth) for nodes in (part.train, part.val))
    weights = loss_weights(train.labels, by_class)
    steps = ChainSteps(channels, state, train, val, weights, settings, seed)
    load(model, steps)
    inputs = to_tensors(channels.rows(np.concatenate([part.train, part.val]), np.float64))
    return model, steps, inputs, part, torch.tensor(weights)


def load(model, steps):
    state = steps.state(steps.snapshot())
    model.load_state_dict({name: torch.tensor(value, dtype=torch.float64) for name, value in state.items()})


def plain_loss(model, inputs, truth, weights, masks=None, scale=1.0):
    """The loss with given dropout masks, written out with autograd."""
    n = len(truth)
    alpha = model.attention_logits.softmax(dim=0)
    blocks = []
    for i, (x, layer) in enumerate(zip(inputs, model.channel_layers, strict=True)):
        dense = x.to_dense() if x.layout != torch.strided else x
        h = dense[:n] @ layer.weight.T + layer.bias
        h = torch.nn.functional.normalize(h, dim=1) if model.hop_normalize else h
        a = torch.relu(alpha[i] * h)
        blocks.append(a if masks is None else a * torch.tensor(masks[i], dtype=a.dtype) * scale)
    output = torch.cat(blocks, dim=1) @ model.output.weight.T + model.output.bias
    if truth.dtype.kind == "f":
        return (weights * (output[:, 0] - torch.tensor(truth)) ** 2).sum()
    return -(weights * torch.log_softmax(output, dim=1)[torch.arange(n), torch.tensor(truth)]).sum()


def masks_of(steps, epoch):
    """The masks of an epoch whose step is still to come."""
    bits = steps.masks[epoch % 2]
    unpacked = np.unpackbits(bits.view(np.uint8), axis=-1, bitorder="little")
    return unpacked[..., : steps.layout.hidden].astype(float)


def decays(layout, settings):
    """The weight decay of every weight."""
    decay = np.zeros(layout.starts[-1], np.float32)
    *W, b, V, c, a = layout.views(decay)
    for part in (*W, b):
        part[:] = settings.wd_fc1
    V[:], c[:], a[:] = settings.wd_fc2, settings.wd_fc2, settings.wd_sca
    return decay


def gradient_of(steps, settings, take):
    """The gradient that a step had, from what it did to the first moments."""
    w, m = steps.w.astype(float), steps.m.astype(float)
    take()
    gradient = (steps.m - np.float32(0.9) * m) / (1 - np.float32(0.9)) - decays(steps.layout, settings) * w
    return steps.layout.state(gradient.astype(np.float32))


def relative(a, b):
    return np.abs(np.asarray(a) - np.asarray(b)).max() / max(np.abs(np.asarray(b)).max(), 1e-5)


def follow_autograd(graph, channels, settings, truth=None, epochs=30):
    """Compare losses and all gradients, epoch after epoch."""
    model, steps, inputs, part, weights = both(channels, graph, settings, truth=truth)
    truth = graph.labels if truth is None else truth
    scale = head.drawing(0, settings.dropout)[2]
    losses = []
    for epoch in range(epochs):
        load(model, steps)
        model.zero_grad()
        masks = masks_of(steps, epoch) if settings.dropout else None
        wanted = plain_loss(model, inputs, truth[part.train], weights, masks, scale)
        wanted.backward()
        found = gradient_of(steps, settings, lambda epoch=epoch: losses.append(steps.step(epoch)))
        assert losses[-1][0] == pytest.approx(wanted.item(), rel=1e-5)
        for name, parameter in model.named_parameters():
            expected = parameter.grad.numpy()
            if name.startswith("channel_layers") and name.endswith("weight"):
                used = steps.layout.columns[int(name.split(".")[1])]
                expected = np.where(np.isin(np.arange(expected.shape[1]), used), expected, 0)
            assert relative(found[name], expected) < 2e-4, (epoch, name)
        load(model, steps)
        val = [x.to_dense()[len(part.train) :] if x.layout != torch.strided else x[len(part.train) :] for x in inputs]
        shares = torch.full((len(part.val),), 1 / len(part.val), dtype=torch.float64)
        assert losses[-1][1] == pytest.approx(plain_loss(model, val, truth[part.val], shares).item(), rel=1e-5)
    assert losses[-1][0] < losses[0][0], "it learns"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sparse_features", [True, False])
@pytest.mark.parametrize("normalize", [True, pytest.param(False, marks=pytest.mark.long)])
def test_losses_and_gradients_equal_autograds_along_30_epochs(kind, sparse_features, normalize):
    graph, channels = make(3, kind, sparse_features=sparse_features)
    follow_autograd(graph, channels, replace(RATES, dropout=0.5, hop_normalize=normalize))


@pytest.mark.parametrize("processor", range(len(head.PROCESSORS)))
@pytest.mark.parametrize(
    ("hidden", "dropout", "numeric"), [(64, 0.0, False), (10, 0.3, False), (100, 0.5, True), (3, 0.7, False)]
)
def test_every_processor_goes_the_way_of_autograd(processor, hidden, dropout, numeric):
    graph, channels = make(5, "c")
    truth = np.random.default_rng(0).standard_normal(graph.n) if numeric else None
    before = head.processor()
    head.use_processor(processor)  # where this machine has another kind, that of this machine again
    try:
        follow_autograd(graph, channels, replace(RATES, hidden=hidden, dropout=dropout), truth, epochs=8)
    finally:
        head.use_processor(before)


def test_processors_that_fuse_products_and_sums_give_the_same_bits():
    graph, channels = make(2)
    before, weights = head.processor(), set()
    for processor in (1, 2):
        if head.use_processor(processor):
            _, steps, *_ = both(channels, graph, replace(RATES, hidden=64, dropout=0.5))
            for epoch in range(5):
                steps.step(epoch)
            weights.add(steps.w.tobytes())
    head.use_processor(before)
    assert len(weights) <= 1


def test_hidden_units_that_fill_up_lines_stay_zero():
    graph, channels = make(2)
    _, steps, *_ = both(channels, graph, replace(RATES, hidden=10, dropout=0.5))
    for epoch in range(5):
        steps.step(epoch)
    *W, b, V, _, _ = steps.layout.views(steps.w)
    assert not any(part[..., 10:].any() for part in (*W, b, V))
    assert all(part[..., :10].any() for part in (*W, b, V))


def test_the_network_of_pegfan_models_is_the_one_trained():
    graph, channels = make(1)
    model, steps, inputs, part, _ = both(channels, graph)
    model.eval()
    n = len(part.train)
    wanted = torch.nn.functional.nll_loss(model(inputs)[:n], torch.tensor(graph.labels[part.train])).item()
    loss, val_loss, logits = steps.step(0)
    assert loss == pytest.approx(wanted, rel=1e-5)
    load(model, steps)
    output = model(inputs)
    wanted = torch.nn.functional.nll_loss(output[n:], torch.tensor(graph.labels[part.val])).item()
    assert val_loss == pytest.approx(wanted, rel=1e-5)
    np.testing.assert_allclose(torch.log_softmax(torch.tensor(logits), 1), output[n:].detach(), atol=1e-5)


def test_steps_of_adam_are_torchs():
    graph, channels = make(2)
    model, steps, *_ = both(channels, graph)
    model.float()
    optimizer = torch.optim.Adam(model.parameter_groups(RATES))
    for epoch in range(4):
        gradients = gradient_of(steps, RATES, lambda epoch=epoch: steps.step(epoch))
        for name, parameter in model.named_parameters():
            parameter.grad = torch.tensor(gradients[name])
        optimizer.step()
    for name, value in steps.state(steps.snapshot()).items():
        theirs = model.state_dict()[name].numpy()
        used = np.delete(np.arange(30), 7) if name.startswith("channel") and "weight" in name else slice(None)
        np.testing.assert_allclose(value[..., used], theirs[..., used], rtol=1e-5, atol=1e-6)


@given(seeds, st.sampled_from([1, 5, 16, 24, 64, 80]), st.sampled_from([np.float32, np.float64]))
def test_sparse_products_equal_scipys(seed, width, dtype):
    rng = np.random.default_rng(seed)
    M = sparse.random_array((20, 15), density=0.3, rng=rng, format="csr").astype(dtype)
    B = rng.standard_normal((15, width)).astype(dtype)
    out = np.full((20, width), np.nan, dtype)
    sparse_product(M.indptr.astype(np.int64), M.indices.astype(np.int64), M.data, B, out, 0, 20)
    assert out.tobytes() == (M @ B).tobytes()


@given(seeds, st.integers(1, 15), st.sampled_from([np.float32, np.float64]))
def test_narrow_products_are_rounded_as_single_columns_are(seed, width, dtype):
    """Less than a cache line goes in halves and quarters of one, to the same bits as column by column."""
    width = width if dtype == np.float32 else max(width // 2, 1)
    rng = np.random.default_rng(seed)
    M = sparse.random_array((20, 15), density=0.5, rng=rng, format="csr").astype(dtype)
    B = rng.standard_normal((15, width)).astype(dtype)
    rows = M.indptr.astype(np.int64), M.indices.astype(np.int64), M.data
    out, column = np.full((20, width), np.nan, dtype), np.empty((20, 1), dtype)
    sparse_product(*rows, B, out, 0, 20)
    for t in range(width):
        sparse_product(*rows, np.ascontiguousarray(B[:, t : t + 1]), column, 0, 20)
        assert out[:, t].tobytes() == column[:, 0].tobytes()


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.7])
def test_dropout_keeps_its_share_and_repeats(rate):
    graph, channels = make()
    first, again, other = (
        np.concatenate(masks_of(both(channels, graph, replace(RATES, dropout=rate), seed=seed)[1], 0), axis=1)
        for seed in (3, 3, 4)
    )
    assert first.mean() == pytest.approx(1 - rate, abs=0.02)
    assert head.drawing(0, rate)[2] == pytest.approx(1 / (1 - rate), rel=1e-3)
    assert np.abs(np.corrcoef(first.T)[np.triu_indices(first.shape[1], 1)]).mean() < 0.15
    assert (first == again).all()
    assert (first != other).any()
    _, steps, *_ = both(channels, graph, replace(RATES, dropout=rate), seed=3)
    steps.step(0)
    assert (np.concatenate(masks_of(steps, 1), axis=1) != first).any(), "every epoch has its own"


@given(seeds)
def test_chains_are_the_channels(seed):
    graph, channels = make(seed % 1000, "c", n=60)
    A = hop_matrix(graph, "A")
    extra = [Channel("rows", A, "I"), Channel("mine", aslinearoperator(A.toarray()), np.eye(graph.n)[:, :5])]
    rng = np.random.default_rng(seed)
    rows = rng.permutation(graph.n)[:40]
    channels = Channels([*channels, *extra])
    for channel in channels:
        chain = chains.Chain.of(channel)
        assert chains.Chain.of(channel) is chain
        forward, back = chain.links(channels.places[rows], 25)
        dense = channel.materialize(np.float64, "dense")[rows]
        assert not np.delete(dense, chain.used, axis=1).any()
        W, G = rng.standard_normal((len(chain.used), 16)), rng.standard_normal((25, 16))
        np.testing.assert_allclose(apply(forward, W), dense[:, chain.used] @ W, atol=1e-4)
        np.testing.assert_allclose(apply(back, G), dense[:25, chain.used].T @ G, atol=1e-4)


def apply(links, x):
    """What the kernels compute, with SciPy."""
    for link in links:
        if link.dense:
            x = link.data.reshape(link.shape) @ x
        else:
            x = sparse.csr_array((link.data, link.indices, link.pointers), shape=link.shape) @ x
    return x


@given(seeds, st.integers(1, 12))
def test_repeated_rows_are_taken_out(seed, distinct):
    rng = np.random.default_rng(seed)
    few = rng.standard_normal((distinct, 30)) * (rng.random((distinct, 30)) < 0.5)
    factors = rng.choice([-2.0, 0.25, 1.0, 3.0], 60)
    M = sparse.csr_array(factors[:, None] * few[rng.integers(0, distinct, 60)])
    parts = chains._distinct(M)
    product = parts[0] if len(parts) == 1 else parts[0] @ parts[1]
    np.testing.assert_allclose(product.toarray(), M.toarray(), rtol=1e-12)
    if M.nnz > 400:
        assert len(parts) == 2
        assert parts[1].shape[0] <= distinct


@given(seeds, st.integers(2, 6))
def test_repeated_rows_beside_a_diagonal_are_taken_out(seed, distinct):
    """Those of S~: neighbours that many share, and every node itself."""
    rng = np.random.default_rng(seed)
    few = rng.standard_normal((distinct, 60)) * (rng.random((distinct, 60)) < 0.5)
    R = few[rng.integers(0, distinct, 60)]
    np.fill_diagonal(R, 0)
    M = sparse.csr_array(R + np.diag(rng.uniform(1, 2, 60)))
    parts = chains._distinct(M)
    product = parts[0] if len(parts) == 1 else parts[0] @ parts[1]
    np.testing.assert_allclose(product.toarray(), M.toarray(), rtol=1e-12, atol=1e-14)


def test_s_with_loops_shares_the_rows_of_nodes_with_the_same_neighbours():
    hubs = [[i, hub] for i in range(100, 400) for hub in range(i % 3, 30, 3)]
    graph = pf.Graph.from_edges(hubs, n=400)
    S = hop_matrix(graph, "S~")
    parts = chains._distinct(sparse.csr_array(S))
    assert len(parts) == 2
    assert sum(part.nnz for part in parts) < 0.8 * S.nnz
    np.testing.assert_allclose((parts[0] @ parts[1]).toarray(), S.toarray(), rtol=1e-12)


def test_rows_that_are_nearly_the_same_are_not_taken_for_the_same():
    M = np.ones((40, 20))
    M[::2, 3] += 1e-9
    parts = chains._distinct(sparse.csr_array(M))
    product = parts[0] if len(parts) == 1 else parts[0] @ parts[1]
    assert (product.toarray() == M).all()


@given(seeds)
def test_simplified_products_are_the_product(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 40, rng.integers(2, 6))
    matrices = []
    for rows, columns in itertools.pairwise(sizes):
        dense = rng.standard_normal((rows, columns)) * (rng.random((rows, columns)) < rng.choice([0.05, 0.3, 1.0]))
        matrices.append(dense if rng.random() < 0.3 else sparse.csr_array(dense[rng.integers(0, rows, rows)]))
    wanted = matrices[0] if not sparse.issparse(matrices[0]) else matrices[0].toarray()
    for matrix in matrices[1:]:
        wanted = wanted @ (matrix.toarray() if sparse.issparse(matrix) else matrix)
    found = np.eye(sizes[0])
    for matrix in chains.simplify(matrices):
        found = found @ (matrix.toarray() if sparse.issparse(matrix) else matrix)
    np.testing.assert_allclose(found, wanted, atol=1e-9)


# ------------------------------------------------------------ the network in NumPy


@given(
    st.lists(st.integers(1, 300), min_size=1, max_size=4),
    st.integers(1, 7),
    st.integers(0, 2**63 - 10**6),
    st.sampled_from([1, 5, 16, 64]),
    st.integers(2, 4),
)
@example([2325, 1], 5, 2**32 + 7, 64, 2)
def test_first_weights_are_torchs_bit_for_bit(widths, classes, seed, hidden, layers):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        wanted = ChannelNetwork(widths, classes, hidden, layers).state_dict()
    found = Network.draw(widths, classes, {"hidden": hidden, "layers": layers}, seed)
    fused = torch.backends.cpu.get_cpu_capability() != "DEFAULT"  # else torch rounds twice: see Network.draw
    assert found.state.keys() == wanted.keys()
    for name, value in wanted.items():
        assert found.state[name].dtype == np.float32
        np.testing.assert_allclose(found.state[name], value.numpy(), rtol=0, atol=0 if fused else 1e-7)
    assert (found.widths, found.classes) == (tuple(widths), classes)


def test_first_weights_stay_what_they_are():
    """Of the seed that the paper's tables have: the numbers of 0.1, with torch or without."""
    state = Network.draw([2325, 3], 5, seed=42).state
    parts = b"".join(state[name].tobytes() for name in sorted(state))
    assert hashlib.sha256(parts).hexdigest()[:16] == "9f18b2b0c96549ea"


@pytest.mark.parametrize("hop_normalize", [True, False])
@pytest.mark.parametrize("layers", [2, 4])
@pytest.mark.parametrize("hidden", [8, 64])  # 30 columns: wider than 8, narrower than 64
@pytest.mark.parametrize("sparse_features", [True, False])
def test_predictions_are_the_torch_modules(hop_normalize, layers, hidden, sparse_features, monkeypatch):
    graph, channels = make(2, sparse_features=sparse_features)
    channels += [Channel("mine", aslinearoperator(hop_matrix(graph, "A").toarray()), np.eye(graph.n)[:, :5])]
    options = {"hidden": hidden, "layers": layers, "hop_normalize": hop_normalize}
    network = Network.draw(channels.widths, 3, options, seed=1)
    network.state["attention_logits"][:] = np.linspace(-1, 1, len(channels))
    model = ChannelNetwork.from_state(network.state, network.settings)
    with torch.no_grad():
        wanted = model(to_tensors(channels.rows(np.arange(graph.n)))).numpy()
    found = network.predict(channels)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, atol=2e-6)
    np.testing.assert_allclose(network.attention, model.attention.numpy(), rtol=1e-6)
    monkeypatch.setattr("pegfan.training.network._ROWS", 17)
    nodes = np.random.default_rng(0).permutation(graph.n)[:50]
    np.testing.assert_allclose(network.predict(channels, nodes), wanted[nodes], atol=2e-6)
    assert network.predict(channels, []).shape == (0, 3)


def test_predictions_of_rows_that_are_zero():
    """As in torch, a row without a norm stays zero."""
    network = Network.draw([2], 2, {"hidden": 4})
    network.state["channel_layers.0.bias"][:] = 0
    output = network.predict(Channels([Channel("X", None, np.zeros((3, 2)))]))
    bias = torch.tensor(network.state["output.bias"])
    np.testing.assert_allclose(output, np.tile(bias.log_softmax(0).numpy(), (3, 1)), rtol=1e-6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"output.bias": None}, "the state has no 'output.bias'"),
        ({"output.weight": None}, "the state has no 'output.weight'"),
        ({"channel_layers.0.weight": None, "channel_layers.1.weight": None}, "has no 'channel_layers.0.weight'"),
        ({"output.weight": np.ones(3)}, r"output.weight must be a matrix, got shape \(3,\)"),
        ({"output.bias": np.ones(3)}, r"output.bias has shape \(3,\), and in a network of channels of 3, 2 col"),
        ({"attention_logits": np.ones(3)}, "4 classes, hidden=8 and layers=2 it has"),
        ({"hidden_layers.0.bias": np.ones(8)}, "has no 'hidden_layers.0.bias'"),
    ],
)
def test_states_of_other_networks_are_refused(changes, message):
    state = Network.draw([3, 2], 4, {"hidden": 8}).state | changes
    state = {name: value for name, value in state.items() if value is not None}
    with pytest.raises(ValueError, match=message):
        Network(state, {"hidden": 8})
    with pytest.raises(ValueError, match="not the state of a ChannelNetwork"):
        ChannelNetwork.from_state(state)


def test_channels_and_nodes_that_do_not_fit_are_refused():
    network, channels = Network.draw([3], 2), Channels([Channel("X", None, np.ones((4, 3)))])
    with pytest.raises(ValueError, match=r"for channels of \(3,\) columns, these have \(2,\)"):
        network.predict(Channels([Channel("X", None, np.ones((4, 2)))]))
    with pytest.raises(ValueError, match="no node -1: nodes are numbered 0 to 3"):
        network.predict(channels, [-1, 4])
    with pytest.raises(TypeError, match="nodes must be a vector of node indices, got float64"):
        network.predict(channels, [0.5])


# Blocks torch as if it were not installed.
WITHOUT_TORCH = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ImportError("blocked")

sys.meta_path.insert(0, Blocked())
"""
WORK = """
import hashlib, sys
import numpy as np
import pegfan as pf
from pegfan.training import Network

graph = pf.datasets.synthetic(0.1, n=200, n_edges=1500, n_features=70, splits=2)
system = pf.FrameletSystem(pf.build_tree(graph))
coefficients = system.decompose(graph.features)
assert np.allclose(system.reconstruct(coefficients), graph.features, atol=1e-5)
signal = system.denoise(graph.features)
channels = pf.make_channels(graph, system, kind="c", regime="heterophily")
result = pf.train(channels, graph.labels, graph.splits, {"epochs": 5})
assert result.engine == "fast"
output = Network(result.runs[0].state, result.settings).predict(channels)
digest = hashlib.sha256(signal.tobytes() + output.tobytes())
for run in result.runs:
    for name in sorted(run.state):
        digest.update(run.state[name].tobytes())
assert sys.modules.get("torch") is None
print(digest.hexdigest(), [run.test_metric for run in result.runs])
"""


def run_python(code):
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_signals_training_and_prediction_are_the_same_bits_without_torch():
    """And where torch is installed it is not imported."""
    assert run_python(WORK) == run_python(WITHOUT_TORCH + WORK)


def test_what_needs_torch_says_so():
    says = run_python(
        WITHOUT_TORCH
        + """
import numpy as np
import pegfan as pf
from pegfan.channels import Channel, Channels

channels, part = Channels([Channel("X", None, np.eye(4))]), pf.Split(np.array([0, 1]), np.array([2]), np.array([3]))
for call in (
    lambda: pf.train(channels, np.array([0, 1, 0, 1]), part, engine="plain"),
    lambda: pf.train(channels, np.array([0, 1, 0, 1]), part, {"layers": 3}),
    lambda: pf.train(channels, np.array([0, 1, 0, 1]), part, device="cuda"),
    lambda: __import__("pegfan.models"),
):
    try:
        call()
    except ImportError as error:
        print(error)
"""
    ).splitlines()
    assert len(says) == 4
    assert all(line.endswith("needs torch: pip install 'pegfan[torch]'") for line in says)
    assert says[0].startswith("the plain engine")


# ------------------------------------------------------------------- protocol


def engines_on(seed, **settings):
    """Histories of both engines on one graph, from the same first weights."""
    graph = pf.datasets.synthetic(0.3, n=300, n_edges=3000, n_features=8, separation=2.0, seed=seed)
    channels = pf.make_channels(
        graph, pf.FrameletSystem(pf.build_tree(graph, "matching", h=4)), kind="b", regime="heterophily", scaling="none"
    )
    results = [
        train(
            channels, graph.labels, graph.splits[0], {"epochs": 60, **settings}, engine=engine, seed=seed, history=True
        )
        for engine in ("fast", "plain")
    ]
    assert [result.engine for result in results] == ["fast", "plain"]
    return [result.runs[0] for result in results]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_without_dropout_both_engines_take_the_same_path(seed):
    fast, plain = engines_on(seed, dropout=0.0)
    assert 0.5 < fast.test_metric < 1.0, "it learns, and not everything"
    assert (fast.epochs, fast.best_epoch, fast.test_metric) == (plain.epochs, plain.best_epoch, plain.test_metric)
    assert fast.history["train_loss"][-1] < 0.5 * fast.history["train_loss"][0], "else the path is short"
    for name in ("train_loss", "val_loss", "attention"):
        np.testing.assert_allclose(fast.history[name], plain.history[name], atol=2e-3)


@pytest.mark.long
def test_with_dropout_both_engines_learn_alike():
    """Masks differ, and losses by 0.5 % per run; were the rate 0.45 or 0.55 in one engine, it would be 1.5 %."""
    pairs = [engines_on(seed, dropout=0.5, lr_fc=0.03, patience=60) for seed in range(3, 7)]
    for name in ("train_loss", "val_loss"):
        ratios = [np.mean(fast.history[name]) / np.mean(plain.history[name]) for fast, plain in pairs]
        assert np.mean(ratios) == pytest.approx(1, abs=0.007)


@pytest.mark.long
def test_results_do_not_depend_on_workers_or_on_other_splits():
    graph, channels = make(5)
    options = {"epochs": 25}
    one = train(channels, graph.labels, graph.splits, options)
    two = train(channels, graph.labels, graph.splits, options, workers=2)
    alone = train(channels, graph.labels, graph.splits[1], options, seed=1)
    for a, b in ((one.runs[0], two.runs[0]), (one.runs[1], two.runs[1]), (one.runs[1], alone.runs[0])):
        assert (a.val_loss, a.test_metric, a.epochs) == (b.val_loss, b.test_metric, b.epochs)
        assert all((a.state[name] == b.state[name]).all() for name in a.state)
    other = train(channels, graph.labels, graph.splits, options, seed=7)
    assert other.runs[0].val_loss != one.runs[0].val_loss


def test_early_stopping_keeps_the_best_epoch():
    graph, channels = make(6)
    result = train(channels, graph.labels, graph.splits[0], {"epochs": 200, "patience": 10}, history=True)
    run = result.runs[0]
    losses = run.history["val_loss"]
    assert run.epochs == len(losses) == len(run.history["attention"])
    assert run.best_epoch == int(np.argmin(losses))
    assert run.val_loss == min(losses)
    assert run.epochs == min(200, run.best_epoch + 11)
    assert run.history["train_loss"][-1] < run.history["train_loss"][0]
    np.testing.assert_allclose(sum(run.history["attention"][0]), 1, rtol=1e-5)
    by_metric = train(
        channels, graph.labels, graph.splits[0], {"epochs": 60, "patience": 60, "stop": "metric"}, history=True
    )
    assert by_metric.runs[0].val_metric == max(by_metric.runs[0].history["val_metric"])


@pytest.mark.parametrize("engine", ["fast", "plain"])
def test_the_weights_of_the_best_epoch_are_kept_and_tested(engine, monkeypatch):
    graph, channels = make(3)
    part, options = graph.splits[0], {"epochs": 80, "patience": 15, "lr_fc": 0.05, "dropout": 0.0, "hidden": 16}
    run = train(channels, graph.labels, part, options, engine=engine, history=True).runs[0]

    def output(nodes):
        with torch.no_grad():
            return ChannelNetwork.from_state(run.state)(to_tensors(channels.rows(nodes)))

    losses, on_val = run.history["val_loss"], output(part.val)
    loss = torch.nn.functional.nll_loss(on_val, torch.tensor(graph.labels[part.val])).item()
    assert loss == pytest.approx(min(losses), rel=1e-4)
    assert losses[-1] > min(losses) + 0.02
    assert run.val_metric == score(on_val.numpy(), graph.labels[part.val], "accuracy")
    assert run.test_metric == score(output(part.test).numpy(), graph.labels[part.test], "accuracy")

    steps = {"fast": ChainSteps, "plain": PlainSteps}[engine]
    state = steps.state
    monkeypatch.setattr(steps, "state", lambda self, kept: state(self, self.snapshot()))  # the last weights
    last = train(channels, graph.labels, part, options, engine=engine).runs[0]
    assert last.test_metric != run.test_metric, "else the test says little"


@pytest.mark.parametrize("engine", ["fast", "plain"])
@pytest.mark.parametrize("stop", ["loss", "metric"])
def test_labels_of_test_nodes_have_no_part_in_training(engine, stop):
    graph = pf.datasets.synthetic(0.3, n=120, n_edges=1200, n_features=8, separation=2.0)
    system = pf.FrameletSystem(pf.build_tree(graph))
    channels = pf.make_channels(graph, system, kind="b", regime="heterophily", scaling="none")
    part, options = graph.splits[0], {"epochs": 60, "patience": 30, "lr_fc": 0.05, "hidden": 16, "stop": stop}
    shuffled, unknown = graph.labels.copy(), graph.labels.copy()
    shuffled[part.test] = np.random.default_rng(0).permutation(shuffled[part.test])
    unknown[part.test] = -1
    run, *others = (
        train(channels, labels, part, options, engine=engine, history=True).runs[0]
        for labels in (graph.labels, shuffled, unknown)
    )
    assert run.test_metric > 0.5, "it learns"
    for other in others:
        assert not other.test_metric > 0.5  # there they are seen
        assert (other.epochs, other.best_epoch, other.val_loss) == (run.epochs, run.best_epoch, run.val_loss)
        for name in ("train_loss", "val_loss", "val_metric"):
            assert other.history[name] == run.history[name]
        for name, value in run.state.items():
            np.testing.assert_array_equal(other.state[name], value)


def test_mean_and_population_deviation():
    graph, channels = make(5)
    result = train(channels, graph.labels, graph.splits, {"epochs": 5})
    runs = [dataclasses.replace(run, test_metric=value) for run, value in zip(result.runs, (0.25, 0.75), strict=True)]
    told = dataclasses.replace(result, runs=runs)  # splits whose metrics are equal would show no deviation
    assert (told.mean, told.std) == (0.5, 0.25)
    assert "2 splits, 10 epochs" in str(result)
    assert result.to_dict()["runs"][0]["epochs"] == 5


def test_ctrl_c_returns_what_is_finished():
    graph, channels = make(5)

    def interrupt(step):
        if step.done:
            raise KeyboardInterrupt

    result = train(channels, graph.labels, graph.splits, {"epochs": 5}, progress=interrupt)
    assert result.interrupted
    assert len(result.runs) == 1


def test_class_weights_count_classes_equally():
    labels = np.array([0] * 90 + [1] * 10)
    weights = loss_weights(labels, True)
    assert weights[labels == 0].sum() == pytest.approx(0.5)
    assert weights.sum() == pytest.approx(1)
    graph, channels = make(4)
    model, steps, inputs, part, shares = both(channels, graph, by_class=True)
    wanted = plain_loss(model, inputs, graph.labels[part.train], shares).item()
    assert steps.step(0)[0] == pytest.approx(wanted, rel=1e-5)
    weighted, plain = (
        train(channels, graph.labels, graph.splits[0], {"epochs": 5, "class_weights": on}).runs[0]
        for on in (True, False)
    )
    assert weighted.val_loss != plain.val_loss


@given(seeds, st.integers(2, 40))
def test_roc_auc_is_the_share_of_pairs_in_order(seed, n):
    rng = np.random.default_rng(seed)
    y = np.concatenate([[0, 1], rng.integers(0, 2, n)])
    values = rng.integers(0, 5, n + 2) / 4.0
    output = np.column_stack([np.zeros(n + 2), values])
    pairs = [(a > b) + 0.5 * (a == b) for a in values[y == 1] for b in values[y == 0]]
    assert score(output, y, "roc_auc") == pytest.approx(np.mean(pairs))
    assert np.isnan(score(output[:1], y[:1], "roc_auc"))
    assert np.isnan(score(output[:0], y[:0], "accuracy"))


def test_roc_auc_trains():
    graph, channels = make(7)
    labels = (graph.labels > 1).astype(int)
    result = train(channels, labels, graph.splits, {"epochs": 30}, metric="roc_auc")
    for run, split in zip(result.runs, graph.splits, strict=True):
        output = Network(run.state, result.settings).predict(channels, split.test)
        assert run.test_metric == pytest.approx(score(output, labels[split.test], "roc_auc"))


def test_more_layers_take_the_plain_engine():
    graph, channels = make(5)
    result = train(channels, graph.labels, graph.splits[0], {"epochs": 3, "layers": 3})
    assert result.engine == "plain"
    assert any(name.startswith("hidden_layers") for name in result.runs[0].state)


def test_batches_of_rows_bound_what_is_formed(monkeypatch):
    graph, channels = make(5)
    part = graph.splits[0]
    options = {"epochs": 3, "dropout": 0.0}
    whole = train(channels, graph.labels, part, options, engine="plain").runs[0]
    one_batch = train(channels, graph.labels, part, options, batch=500).runs[0]
    assert one_batch.val_loss == pytest.approx(whole.val_loss, rel=1e-4)
    asked = []
    rows = Channels.rows_at

    def counted(self, nodes, *args):
        asked.append(len(nodes))
        return rows(self, nodes, *args)

    monkeypatch.setattr(Channels, "rows_at", counted)
    run = train(channels, graph.labels, part, options, batch=16, history=True).runs[0]
    assert max(asked) == 16
    assert run.history["train_loss"][-1] < run.history["train_loss"][0]


def test_a_class_without_training_nodes_works():
    graph, channels = make(5)
    labels = graph.labels.copy()
    part = graph.splits[0]
    labels[part.test[0]] = 4
    result = train(channels, labels, part, {"epochs": 5})
    assert result.runs[0].state["output.bias"].shape == (5,)


# ------------------------------------------------------------------- bad input

GRAPH, CHANNELS = make(0)
PART = GRAPH.splits[0]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: train([], GRAPH.labels, PART), TypeError, "make_channels"),
        (lambda: train(CHANNELS, GRAPH.labels[:5], PART), ValueError, "120 integers"),
        (lambda: train(CHANNELS, GRAPH.labels.astype(str), PART), ValueError, "integers"),
        (lambda: train(CHANNELS, GRAPH.labels, []), ValueError, "no split"),
        (lambda: train(CHANNELS, GRAPH.labels, [3]), TypeError, "split 0 must be a Split"),
        (lambda: train(CHANNELS, GRAPH.labels, PART._replace(val=np.array([], int))), ValueError, "no val nodes"),
        (lambda: train(CHANNELS, GRAPH.labels, PART._replace(train=np.array([], int))), ValueError, "no train nodes"),
        (lambda: train(CHANNELS, GRAPH.labels, PART._replace(test=np.array([999]))), ValueError, "holds 999"),
        (
            lambda: train(CHANNELS, GRAPH.labels, PART._replace(val=PART.train)),
            ValueError,
            "in more than one of",
        ),
        (lambda: train(CHANNELS, np.full(120, -1), PART), ValueError, "has no label"),
        (lambda: train(CHANNELS, GRAPH.labels, PART, {"lr": 1}), ValueError, "unknown setting 'lr'"),
        (lambda: train(CHANNELS, GRAPH.labels, PART, 5), TypeError, "mapping"),
        (lambda: train(CHANNELS, GRAPH.labels, PART, {"dropout": 1.0}), ValueError, "dropout"),
        (lambda: train(CHANNELS, GRAPH.labels, PART, {"lr_fc": -1}), ValueError, "lr_fc"),
        (lambda: train(CHANNELS, GRAPH.labels, PART, {"hidden": 2.5}), TypeError, "hidden"),
        (lambda: train(CHANNELS, GRAPH.labels, PART, {"stop": "never"}), ValueError, "stop"),
        (lambda: train(CHANNELS, GRAPH.labels, PART, {"epochs": 0}), ValueError, "epochs"),
        (lambda: train(CHANNELS, GRAPH.labels, PART, engine="slow"), ValueError, "engine"),
        (lambda: train(CHANNELS, GRAPH.labels, PART, {"layers": 3}, engine="fast"), ValueError, "plain"),
        (lambda: train(CHANNELS, GRAPH.labels, PART, batch=0), ValueError, "batch"),
        (lambda: train(CHANNELS, GRAPH.labels, PART, batch=8, engine="fast"), ValueError, "all rows at once"),
        (lambda: train(CHANNELS, GRAPH.labels, PART, metric="f1"), ValueError, "metric"),
        (lambda: train(CHANNELS, GRAPH.labels, PART, metric="roc_auc"), ValueError, "two classes"),
        (lambda: train(CHANNELS, GRAPH.labels, PART, device="cuda"), ValueError, "no CUDA device"),
        (lambda: train(CHANNELS, GRAPH.labels, PART, {"lr_fc": 1e38}), Diverged, "loss became"),
    ],
)
def test_bad_input_is_answered(call, error, words):
    with np.errstate(all="ignore"), pytest.raises(error, match=words):
        call()


def test_masks_and_an_empty_test_part_are_fine():
    masks = Split(*(np.isin(np.arange(120), part) for part in PART))
    one, two = (train(CHANNELS, GRAPH.labels, part, {"epochs": 3}).runs[0] for part in (PART, masks))
    assert one.val_loss == two.val_loss
    empty = train(CHANNELS, GRAPH.labels, PART._replace(test=np.array([], int)), {"epochs": 3})
    assert np.isnan(empty.runs[0].test_metric)


def test_settings_by_hand():
    chosen = Settings.of({"hidden": 8})
    assert (chosen.hidden, chosen.patience) == (8, 100)
    assert Settings.of(chosen) is chosen
    assert Settings.of(None) == Settings()


def test_progress_tells_rates_and_time_left(monkeypatch):
    from pegfan.training import loop

    graph, channels = make()
    monkeypatch.setattr(loop, "_TELL", 0.0)
    steps = []
    train(channels, graph.labels, graph.splits, {"epochs": 3}, progress=steps.append)
    assert [(step.done, step.planned) for step in steps] == [(0, 2)] * 4 + [(1, 2)] * 4 + [(2, 2)]
    told = list(map(str, steps))
    assert "fast engine" in told[0]
    assert [line.startswith(("split 0: epoch", "split 1: epoch")) for line in told[1:]].count(True) == 6
    assert "per second" in told[1]
    assert "left" in told[1]
    assert sum("on test" in line for line in told) == 2
    assert "s left" in next(line for line in told if "on test" in line)
    assert "left" not in told[-1], "nothing is left"


def test_splits_that_are_not_nodes_are_refused():
    graph, channels = make()
    train_nodes, val, test = graph.splits[0]
    for bad, message in (
        (train_nodes + 0.7, "split 0.train must be a boolean mask or node indices"),
        (np.ones(graph.n - 1, bool), "119"),
        (np.ones((graph.n, 2), bool), "120"),
        (np.array([-1, 3]), "holds -1"),
        (np.array([500]), "holds 500"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            train(channels, graph.labels, Split(bad, val, test), {"epochs": 1})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": None}, "seed must be"),
        ({"seed": 1.5}, "seed must be"),
        ({"seed": -1}, "seed must be"),
        ({"workers": 0}, "workers"),
        ({"device": "foo"}, "no device 'foo'"),
        ({"classes": 2.5}, "classes must be an integer"),
        ({"settings": {"class_weights": "no"}}, "class_weights must be True or False"),
        ({"splits": None}, "splits are"),
        ({"labels": np.full(120, 10**8)}, "number classes from 0"),
    ],
)
def test_arguments_are_checked(options, message):
    graph, channels = make()
    given = {"labels": graph.labels, "splits": graph.splits[0], "settings": {"epochs": 1}} | options
    with pytest.raises((ValueError, TypeError), match=message):
        train(channels, given.pop("labels"), given.pop("splits"), given.pop("settings"), **given)


def test_training_leaves_the_callers_random_numbers_alone():
    graph, channels = make()
    before = torch.random.get_rng_state()
    first = train(channels, graph.labels, graph.splits[0], {"epochs": 2}, seed=np.int64(3))
    assert (torch.random.get_rng_state() == before).all()
    again = train(channels, graph.labels, graph.splits[0], {"epochs": 2}, seed=3)
    assert first.runs[0].val_loss == again.runs[0].val_loss


def test_auc_of_one_class_does_not_stop_a_training():
    graph, channels = make()
    part = graph.splits[0]
    y = graph.labels % 2
    y[part.val] = 1
    with pytest.raises(ValueError, match="stop='loss'"):
        train(channels, y, part, {"stop": "metric", "epochs": 2}, metric="roc_auc")


class Centre(Operator):
    """x − mean(x), and how many columns it has met."""

    def __init__(self, n):
        self.columns = []
        super().__init__("C", (n, n), self.centre, self.centre)

    def centre(self, x):
        self.columns.append(x.shape[1])
        return x - x.mean(axis=0)


def test_operators_of_the_users_act_on_the_input_and_are_never_formed():
    graph, _ = make()
    centre, step = Centre(graph.n), hop_matrix(graph)
    mine = Channels([Channel("S C S X", [step, centre, step], graph.features), Channel("C X", centre, graph.features)])
    result = train(mine, graph.labels, graph.splits[0], {"epochs": 3})
    assert result.engine == "fast"
    assert set(centre.columns) == {graph.features.shape[1]}
    plain = train(mine, graph.labels, graph.splits[0], {"epochs": 3, "dropout": 0}, engine="plain").runs[0]
    fast = train(mine, graph.labels, graph.splits[0], {"epochs": 3, "dropout": 0}).runs[0]
    assert fast.val_loss == pytest.approx(plain.val_loss, rel=1e-3)
