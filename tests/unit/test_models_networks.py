"""Graph networks: each equals its dense twin and PyG's, whatever the graph; kernels, caches, bad input."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from torch.nn import functional as F

import pegfan as pf
from pegfan import models
from pegfan.models import Neighbours, Sparse, _sparse
from pegfan.models._sparse import attend, dropout, relu_dropout
from pegfan.relations import geom_divisions, geom_relations, struc2vec_relations

FEATURES, CLASSES = 4, 3
seeds = st.integers(0, 2**32 - 1)
pytestmark = pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")  # torch calls its own layout new

# --------------------------------------------------------------------------- graphs


class Edges:
    """A graph as PyG has it, and dense: entry (i, j) is the weight of the edge from j to i."""

    def __init__(self, n, index, weight=None):
        self.n, self.index, self.weight = n, torch.as_tensor(index).reshape(2, -1), weight
        self.dense = torch.zeros(n, n, dtype=torch.float64)
        values = torch.ones(self.index.shape[1]) if weight is None else weight
        self.dense.index_put_((self.index[1], self.index[0]), values.double(), accumulate=True)

    def kinds(self, count):
        """A type for every edge."""
        return torch.arange(self.index.shape[1]) % count

    def of_kind(self, kinds, k):
        own = kinds == k
        return Edges(self.n, self.index[:, own], None if self.weight is None else self.weight[own]).dense


def random_edges(n, seed, weighted=False, loops=True, count=None):
    """Directed edges, no two alike, some nodes without any."""
    rng = np.random.default_rng(seed)
    pairs = np.array([(a, b) for a in range(n) for b in range(n) if loops or a != b], np.int64).reshape(-1, 2)
    index = rng.permutation(pairs)[: 2 * n if count is None else count].T.copy()
    return Edges(n, index, torch.from_numpy(rng.uniform(0.2, 2.0, index.shape[1])) if weighted else None)


@st.composite
def edges(draw):
    """Directed, weighted or not, with loops and isolated nodes; also one node, and no edges at all."""
    n = draw(st.integers(1, 9), label="nodes")
    count = draw(st.sampled_from([0, n // 2, 2 * n, 4 * n]), label="edges")
    return random_edges(n, draw(seeds), draw(st.booleans(), label="weighted"), draw(st.booleans()), count)


def rows_of(n, seed, columns=FEATURES):
    """Features, a third of them zero."""
    rng = np.random.default_rng(seed)
    return torch.from_numpy(rng.standard_normal((n, columns)) * (rng.random((n, columns)) < 0.67))


# --------------------------------------------------------------------------- dense twins


def inverse(d):
    return torch.where(d > 0, 1 / torch.where(d > 0, d, 1), 0)


def symmetric(a):
    root = inverse(a.sum(1)).sqrt()
    return root[:, None] * a * root


def with_loops(a):
    return a + torch.diag((a.diagonal() == 0).to(a))


def smooth(a):
    return symmetric(with_loops(a))


def layer(x, weight):
    y = x @ weight.weight.T
    return y if weight.bias is None else y + weight.bias


def attention(mask, z, source, target, factors=1.0):
    """One head: softmax over the nodes that are attended to."""
    scores = F.leaky_relu((z @ source)[None, :] + (z @ target)[:, None], 0.2)
    values = torch.where(mask != 0, scores.exp(), 0)
    return (values * inverse(values.sum(1))[:, None] * factors) @ z


def gat_layer(part, x, a):
    z = layer(x, part.weight).reshape(len(x), part.heads, -1)
    heads = [attention(with_loops(a), z[:, k], part.source[k], part.target[k]) for k in range(part.heads)]
    return (torch.cat(heads, 1) if part.joined else torch.stack(heads).mean(0)) + part.bias


def mlp(m, x, a):
    for part in m.layers[:-1]:
        x = layer(x, part).relu()
    return layer(x, m.layers[-1])


def gcn(m, x, a):
    p = smooth(a)
    for part in m.layers[:-1]:
        x = layer(p @ x, part).relu()
    return layer(p @ x, m.layers[-1])


def sage(m, x, a):
    mean = inverse(a.sum(1))[:, None] * a
    for i, (own, around) in enumerate(zip(m.own, m.around, strict=True)):
        x = layer(x, own) + layer(mean @ x, around)
        x = x.relu() if i + 1 < len(m.own) else x
    return x


def gat(m, x, a):
    for part in m.layers[:-1]:
        x = F.elu(gat_layer(part, x, a))
    return gat_layer(m.layers[-1], x, a)


def gcnii(m, x, a):
    p, first = smooth(a), layer(x, m.first).relu()
    h, one = first, torch.eye(first.shape[1]).to(first)
    for number, weights in enumerate(m.weights, start=1):
        beta, shares = np.log(m.lamda / number + 1), (1 - m.alpha, m.alpha)
        near, own = (
            share * (1 - beta) * one + (share if m.scaled else 1) * beta * weights[k if len(weights) > 1 else 0]
            for k, share in enumerate(shares)
        )
        h = (p @ h @ near + first @ own).relu()
    return layer(h, m.output)


def sgc(m, x, a):
    return layer(torch.linalg.matrix_power(smooth(a), m.hops) @ x, m.weight)


def sign(m, x, a):
    p = smooth(a)
    blocks = [layer(torch.linalg.matrix_power(p, k) @ x, part) for k, part in enumerate(m.powers)]
    return layer(torch.cat(blocks, 1).relu(), m.output)


def gprgnn(m, x, a):
    h, p = layer(layer(x, m.first).relu(), m.second), smooth(a)
    return sum(gamma * torch.linalg.matrix_power(p, k) @ h for k, gamma in enumerate(m.gamma))


def h2gcn(m, x, a):
    one = (a != 0).to(a)
    one.fill_diagonal_(0)
    two = ((one @ one != 0) & (one == 0)).to(a)
    two.fill_diagonal_(0)
    rounds = [layer(x, m.first).relu() if m.relu else layer(x, m.first)]
    for _ in range(m.rounds):
        rounds.append(torch.cat([symmetric(one) @ rounds[-1], symmetric(two) @ rounds[-1]], 1))
    return layer(torch.cat(rounds, 1), m.output)


def linkx(m, x, a):
    by_edges, by_features = layer(a, m.edges), layer(x, m.features)
    h = (layer(torch.cat([by_edges, by_features], 1), m.joined) + by_edges + by_features).relu()
    return layer(layer(h, m.inner).relu(), m.output)


def mixhop(m, x, a):
    p = smooth(a)

    def mix(part, z):
        return [torch.linalg.matrix_power(p, k) @ layer(z, power) for k, power in enumerate(part.powers)]

    norms = x.norm(dim=1, keepdim=True)
    h = torch.cat(mix(m.first, x / torch.where(norms > 0, norms, 1)), 1)
    own = m.training or m.norm.running_mean is None
    mean, var = (h.mean(0), h.var(0, correction=0)) if own else (m.norm.running_mean, m.norm.running_var)
    h = ((h - mean) / (var + 1e-3).sqrt() + m.shift).relu()
    return sum(q * part for q, part in zip(m.q.exp() / m.q.exp().sum(), mix(m.output, h), strict=True))


def classic(m, x, a):
    matrix = inverse(a.sum(1))[:, None] * a if m.convolution == "sage" else smooth(a)
    for i, (part, norm) in enumerate(zip(m.layers, m.norms, strict=True)):
        h = gat_layer(part, x, a) if m.convolution == "gat" else layer(matrix @ x, part)
        h = h if m.residual is None else h + layer(x, m.residual[i])
        if isinstance(norm, torch.nn.Identity):
            x = h.relu()
            continue
        if isinstance(norm, torch.nn.LayerNorm):
            mean, var = h.mean(1, keepdim=True), h.var(1, correction=0, keepdim=True)
        elif m.training:
            mean, var = h.mean(0), h.var(0, correction=0)
        else:
            mean, var = norm.running_mean, norm.running_var
        x = ((h - mean) / (var + 1e-5).sqrt() * norm.weight + norm.bias).relu()
    return layer(x, m.output)


def geom(matrices):
    def twin(m, x, a):
        parts = matrices(a)
        h = torch.cat([part @ layer(x, weight) for part, weight in zip(parts, m.first, strict=False)], 1)
        h = F.pad(h, (0, m.output[0].weight.shape[1] - h.shape[1])).relu()
        return sum(part @ layer(h, weight) for part, weight in zip(parts, m.output, strict=False)) / len(m.output)

    return twin


def own_divisions(a):
    graph = pf.Graph(sparse.csr_array(a.numpy().T), directed=True)
    return [torch.from_numpy(part.toarray()) for part in geom_divisions(graph, geom_relations(graph))]


def wrgat(matrices):
    def part(m, x, relations, mean):
        y = layer(x, m.own)
        for r, a in enumerate(relations):
            share = a * inverse((a != 0).sum(1).to(a))[:, None] if mean else a
            y = y + attention(a, layer(x, m.weights[r]), m.source[r], m.target[r], share)
        return y

    def twin(m, x, a):
        relations = matrices(a, m.relations)
        return part(m.output, part(m.first, x, relations, m.mean).relu(), relations, m.mean)

    return twin


def own_relations(a, count):
    graph = pf.Graph(sparse.csr_array(a.numpy()), directed=True)  # the direction only breaks ties
    found = struc2vec_relations(graph, layers=count)[:count]
    return [(a != 0).to(a), *(torch.from_numpy(relation.toarray()) for relation in found)]


def own_structure(a, count):
    return own_relations(a, count)[1:]


NONE = {"dropout": 0.0}
TWINS = {
    "mlp": (models.MLP, {"layers": 3}, mlp),
    "gcn": (models.GCN, {"layers": 3}, gcn),
    "gcn narrow": (models.GCN, {"hidden": 2, "layers": 2}, gcn),
    "sage": (models.GraphSAGE, {"layers": 3}, sage),
    "gat": (models.GAT, {"layers": 3, "heads": 3}, gat),
    "gcnii*": (models.GCNII, {"layers": 3, "alpha": 0.3}, gcnii),
    "gcnii": (models.GCNII, {"layers": 2, "variant": False}, gcnii),
    "gcnii* of the code": (models.GCNII, {"layers": 2, "alpha": 0.3, "scaled": False}, gcnii),
    "sgc": (models.SGC, {"hops": 3}, sgc),
    "sgc 0": (models.SGC, {"hops": 0}, sgc),
    "sign": (models.SIGN, {"hops": 3}, sign),
    "gprgnn": (models.GPRGNN, {"hops": 3, "smooth_dropout": 0.0}, gprgnn),
    "h2gcn": (models.H2GCN, {"rounds": 2}, h2gcn),
    "h2gcn linear": (models.H2GCN, {"relu": False}, h2gcn),
    "linkx": (models.LINKX, {"nodes": None}, linkx),
    "mixhop": (models.MixHop, {"hidden": 7, "layer_dropout": 0.0}, mixhop),
    "mixhop of the batch": (models.MixHop, {"layer_dropout": 0.0, "batch_statistics": True}, mixhop),
    "classic gcn": (models.ClassicGNN, {"layers": 2, "residual": False}, classic),
    "classic sage": (models.ClassicGNN, {"layers": 2, "convolution": "sage", "norm": "none"}, classic),
    "classic gat": (models.ClassicGNN, {"layers": 2, "convolution": "gat", "norm": "layer", "heads": 2}, classic),
    "geom-gcn": (models.GeomGCN, {}, geom(own_divisions)),
    "wrgat": (models.WRGAT, {"relations": 2}, wrgat(own_relations)),
    "wrgat without edges": (models.WRGAT, {"relations": 2, "edges": False}, wrgat(own_structure)),
    "wrgat with the mean": (models.WRGAT, {"relations": 2, "mean": True}, wrgat(own_relations)),
    "wrgat of edges": (models.WRGAT, {"relations": 0}, wrgat(own_relations)),
}


def build(kind, options, n, seed, **more):
    """A network in double precision, none of whose numbers are those that it starts with."""
    sizes = {"nodes": n} if "nodes" in options else {}
    hidden = {} if kind is models.SGC else {"hidden": 6}
    with torch.random.fork_rng():
        torch.manual_seed(seed % 2**31)
        model = kind(FEATURES, CLASSES, **{**hidden, **NONE, **options, **sizes, **more}).double()
        with torch.no_grad():
            for name, value in model.named_parameters():
                if value.ndim == 1:
                    value.copy_(0.5 * torch.randn_like(value) + ("norm" in name))
        for name, value in model.named_buffers():
            if "running" in name:
                value.copy_(0.5 + torch.rand_like(value))
    return model


def run(model, call, seed=0):
    """An output, and gradients by all parameters."""
    out = call()
    by = torch.randn(out.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    wanted = list(model.parameters())
    gradients = torch.autograd.grad((out * by).sum(), wanted, allow_unused=True)
    return [out.detach(), *(torch.zeros_like(p) if g is None else g for p, g in zip(wanted, gradients, strict=True))]


def assert_equal(found, wanted, atol=1e-10):
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, atol=atol, rtol=1e-8)


def forms(x):
    """The features in every form that networks take."""
    return [x, x.to_sparse_csr(), x.to_sparse_coo(), Sparse(sparse.csr_array(x.numpy()))]


@pytest.mark.parametrize("name", TWINS)
@given(graph=edges(), seed=seeds, training=st.booleans())
def test_every_network_equals_its_dense_twin(name, graph, seed, training):
    kind, options, twin = TWINS[name]
    statistics = "mixhop" in name or name == "classic gcn"
    model = build(kind, options, graph.n, seed).train(training and not (statistics and graph.n == 1))
    if name == "mixhop of the batch" and graph.n == 1:
        return  # torch takes no statistics of one row
    x = rows_of(graph.n, seed)
    with torch.random.fork_rng():
        wanted = run(model, lambda: F.log_softmax(twin(model, x, graph.dense), 1))
        for given_x in forms(x):
            assert_equal(run(model, lambda x=given_x: model(x, graph.index, graph.weight)), wanted)
    torch.testing.assert_close(wanted[0].exp().sum(1), torch.ones(graph.n).double())


@pytest.mark.parametrize("name", ["gcn", "gat", "wrgat", "classic gat", "linkx", "mixhop"])
def test_where_nothing_is_compiled_the_numbers_are_the_same(name, monkeypatch):
    """What other devices run, here on the CPU; and half precision comes close."""
    kind, options, _ = TWINS[name]
    graph, x = random_edges(7, 1, weighted=True), rows_of(7, 2)
    model = build(kind, options, 7, 3).eval()
    call = lambda: model(x, graph.index, graph.weight)  # noqa: E731
    wanted = run(model, call)
    with monkeypatch.context() as patch:
        patch.setattr(_sparse, "_compiled", lambda _: False)
        patch.setattr(Sparse, "times", lambda self, x: self._tensor(x.device, x.dtype) @ x)
        assert_equal(run(model, call), wanted)
    low = model.to(torch.bfloat16)(x.to(torch.bfloat16), graph.index, graph.weight)
    torch.testing.assert_close(low.double(), wanted[0], atol=0.1, rtol=0)


@given(edges(), seeds)
def test_label_propagation_equals_its_dense_twin(graph, seed):
    rng = np.random.default_rng(seed)
    y = torch.from_numpy(np.eye(CLASSES)[rng.integers(0, CLASSES, graph.n)] * (rng.random((graph.n, 1)) < 0.4))
    total = y
    for _ in range(5):
        total = 0.7 * symmetric(graph.dense) @ total + 0.3 * y
    found = models.LabelPropagation(steps=5, alpha=0.7)(y, graph.index, graph.weight).exp()
    reached = total.sum(1) > 0
    torch.testing.assert_close(found[reached], total[reached] / total[reached].sum(1, keepdim=True), atol=1e-9, rtol=0)
    torch.testing.assert_close(found[~reached], torch.full_like(found[~reached], 1 / CLASSES))


@given(edges(), seeds)
def test_given_types_of_edges(graph, seed):
    """GEOM-GCN and WRGAT take relations as PyG does: one number for every edge."""
    kinds, x = graph.kinds(2), rows_of(graph.n, seed)
    parts = [graph.of_kind(kinds, k) for k in range(len(kinds.unique()))]
    root = inverse(graph.dense.sum(1)).sqrt()
    joint = geom(lambda _: [root[:, None] * part * root for part in parts] or [torch.zeros_like(graph.dense)])
    model = build(models.GeomGCN, {"divisions": 3}, graph.n, seed)
    wanted = run(model, lambda: F.log_softmax(joint(model, x, graph.dense), 1))
    assert_equal(run(model, lambda: model(x, graph.index, graph.weight, kinds)), wanted)
    model = build(models.WRGAT, {"relations": 2}, graph.n, seed)
    twin = wrgat(lambda *_: parts)
    wanted = run(model, lambda: F.log_softmax(twin(model, x, graph.dense), 1))
    assert_equal(run(model, lambda: model(x, graph.index, graph.weight, kinds)), wanted)


def test_own_divisions_given_as_types_are_the_same():
    graph, x = random_edges(9, 4, loops=False), rows_of(9, 5)
    model = build(models.GeomGCN, {}, 9, 6)
    whole = pf.Graph(sparse.csr_array(graph.dense.numpy().T), directed=True)
    pairs = [part.tocoo().coords for part in geom_divisions(whole, geom_relations(whole))]
    index = torch.from_numpy(np.concatenate([np.array([source, target]) for target, source in pairs], axis=1)).long()
    kinds = torch.repeat_interleave(torch.arange(9), torch.tensor([len(target) for target, _ in pairs]))
    torch.testing.assert_close(model(x, index, None, kinds), model(x, graph.index))


def test_attention_does_not_look_at_weights():
    graph, x = random_edges(8, 0, weighted=True), rows_of(8, 1)
    model = build(models.GAT, {"heads": 2}, 8, 2)
    assert torch.equal(model(x, graph.index, graph.weight), model(x, graph.index))


# --------------------------------------------------------------------------- PyG


@pytest.fixture(scope="module")
def nn(pyg):
    import torch_geometric.nn

    return torch_geometric.nn


def copied(parts):
    """Put numbers into PyG's parameters."""
    with torch.no_grad():
        for target, source in parts:
            target.copy_(source.reshape(target.shape))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loops", [False, True])
def test_pygs_layers_give_the_same(nn, weighted, loops):
    graph, x = random_edges(12, 7, weighted, loops), rows_of(12, 8)
    index, weight = graph.index, graph.weight
    found, wanted = {}, {}

    m = build(models.GCN, {"layers": 2}, 12, 1)
    h = x
    for i, part in enumerate(m.layers):
        conv = nn.GCNConv(part.weight.shape[1], part.weight.shape[0]).double()
        copied([(conv.lin.weight, part.weight), (conv.bias, part.bias)])
        h = conv(h if i == 0 else h.relu(), index, weight)
    found["gcn"], wanted["gcn"] = m(x, index, weight), h.log_softmax(1)

    m = build(models.SGC, {"hops": 3}, 12, 2)
    conv = nn.SGConv(FEATURES, CLASSES, K=3).double()
    copied([(conv.lin.weight, m.weight.weight), (conv.lin.bias, m.weight.bias)])
    found["sgc"], wanted["sgc"] = m(x, index, weight), conv(x, index, weight).log_softmax(1)

    for shared in (False, True):
        m = build(models.GCNII, {"layers": 3, "alpha": 0.3, "variant": not shared}, 12, 3)
        first = h = layer(x, m.first).relu()
        for i, weights in enumerate(m.weights, start=1):
            conv = nn.GCN2Conv(6, alpha=m.alpha, theta=m.lamda, layer=i, shared_weights=shared).double()
            copied(zip((conv.weight1, conv.weight2), weights, strict=False))
            h = conv(h, first, index, weight).relu()
        found["gcnii", shared], wanted["gcnii", shared] = m(x, index, weight), layer(h, m.output).log_softmax(1)

    m = build(models.MixHop, {}, 12, 4)
    conv = nn.MixHopConv(FEATURES, 2, powers=[0, 1, 2], bias=False).double()
    copied((lin.weight, part.weight) for lin, part in zip(conv.lins, m.first.powers, strict=True))
    found["mixhop"] = torch.cat(m.first(x, Neighbours.of(index, weight, 12).normalized), 1)
    wanted["mixhop"] = conv(x, index, weight)

    m = build(models.LINKX, {"nodes": 12}, 12, 5)
    other = nn.LINKX(12, FEATURES, 6, CLASSES, num_layers=2).double().eval()
    other.final_mlp.norms = torch.nn.ModuleList(torch.nn.Identity() for _ in other.final_mlp.norms)
    near, own = m.joined.weight.split(6, dim=1)
    copied(
        [
            (other.edge_lin.weight, m.edges.weight.T),
            (other.edge_lin.bias, m.edges.bias),
            *zip(other.node_mlp.lins[0].parameters(), (m.features.weight, m.features.bias), strict=True),
            *zip(other.cat_lin1.parameters(), (near, m.joined.bias), strict=True),
            *zip(other.cat_lin2.parameters(), (own, torch.zeros(6)), strict=True),
            *zip(other.final_mlp.lins[0].parameters(), (m.inner.weight, m.inner.bias), strict=True),
            *zip(other.final_mlp.lins[1].parameters(), (m.output.weight, m.output.bias), strict=True),
        ]
    )
    found["linkx"], wanted["linkx"] = m(x, index, weight), other(x, index, weight).log_softmax(1)

    m = build(models.GAT, {"heads": 3}, 12, 6)
    h = x
    for i, part in enumerate(m.layers):
        heads, width = part.source.shape
        conv = nn.GATConv(part.weight.weight.shape[1], width, heads, concat=part.joined).double()
        names = ((conv.lin.weight, part.weight.weight), (conv.att_src, part.source), (conv.att_dst, part.target))
        copied([*names, (conv.bias, part.bias)])
        h = conv(h if i == 0 else F.elu(h), index)
    found["gat"], wanted["gat"] = m(x, index, weight), h.log_softmax(1)

    if not weighted:  # PyG's mean leaves weights out
        m = build(models.GraphSAGE, {"layers": 2}, 12, 7)
        h = x
        for i, (own, around) in enumerate(zip(m.own, m.around, strict=True)):
            conv = nn.SAGEConv(own.weight.shape[1], own.weight.shape[0]).double()
            copied(
                [(conv.lin_r.weight, own.weight), (conv.lin_l.weight, around.weight), (conv.lin_l.bias, around.bias)]
            )
            h = conv(h if i == 0 else h.relu(), index)
        found["sage"], wanted["sage"] = m(x, index), h.log_softmax(1)
    for name, output in found.items():
        torch.testing.assert_close(output, wanted[name], atol=1e-10, rtol=1e-8, msg=lambda told, n=name: f"{n}: {told}")


# --------------------------------------------------------------------------- compiled loops


@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 20), seeds)
def test_products_and_their_gradients(rows, columns, width, seed):
    matrix = sparse.random_array((rows, columns), density=0.4, rng=np.random.default_rng(seed))
    x = rows_of(columns, seed, width).requires_grad_()
    ours = Sparse(matrix)
    torch.testing.assert_close(ours @ x, torch.from_numpy(matrix.toarray()) @ x)
    assert torch.autograd.gradcheck(lambda x: ours @ x, x)
    assert torch.autograd.gradgradcheck(lambda x: ours @ x, x)
    assert np.array_equal(ours.t.scipy().toarray(), matrix.T.toarray())
    assert np.array_equal(
        Sparse.of(torch.from_numpy(matrix.toarray()).to_sparse_coo()).scipy().toarray(), matrix.toarray()
    )
    norms = np.linalg.norm(matrix.toarray(), axis=1, keepdims=True)
    np.testing.assert_allclose(ours.unit_rows().scipy().toarray(), matrix.toarray() / np.where(norms > 0, norms, 1))


def test_a_symmetric_matrix_is_its_own_transpose():
    ring = Sparse(sparse.csr_array(np.roll(np.eye(4), 1, 0) + np.roll(np.eye(4), -1, 0)))
    assert ring.t is ring
    arrow = Sparse(sparse.csr_array(np.roll(np.eye(4), 1, 0)))
    assert arrow.t is not arrow
    assert repr(arrow) == "Sparse(4 x 4, 4 entries)"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_products_of_half_precision(dtype):
    matrix = Sparse(sparse.csr_array([[0.0, 2.0], [1.0, 0.0]]))
    x = torch.tensor([[1.0], [3.0]], dtype=dtype, requires_grad=True)
    (matrix @ x).sum().backward()
    assert (matrix @ x).dtype == x.grad.dtype == dtype
    assert (matrix @ x).tolist() == [[6], [1]]
    assert x.grad.tolist() == [[1], [2]]


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("kind", ["dropout", "relu_dropout", "sparse"])
def test_dropout(kind, rate, dtype):
    """A share of 1 - rate is kept and scaled up; nothing flows back through what is dropped; seeds repeat it."""
    x = torch.randn(200, 150, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).to(dtype)
    x[x == 0] = 1
    plain = x.relu() if kind == "relu_dropout" else x
    if kind == "sparse":
        if dtype == torch.bfloat16:
            return  # NumPy has no such numbers
        matrix = Sparse(sparse.csr_array(x.numpy()))

        def act(_):
            return torch.from_numpy(dropout(matrix, rate, True).scipy().toarray())
    else:

        def act(x):
            return (dropout if kind == "dropout" else relu_dropout)(x, rate, True)

    with torch.random.fork_rng():
        torch.manual_seed(1)
        x.requires_grad_()
        first, second = act(x), act(x)
        torch.manual_seed(1)
        again = act(x)
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert first.dtype == dtype
    positive, kept = plain != 0, first != 0
    assert abs(kept[positive].double().mean() - (1 - rate)) < 0.02
    assert abs((kept & (second != 0))[positive].double().mean() - (1 - rate) ** 2) < 0.02, "calls are independent"
    tolerance = 1e-2 if dtype == torch.bfloat16 else 1e-4
    torch.testing.assert_close(first[kept], plain[kept] / (1 - rate), rtol=tolerance, atol=0)
    if kind != "sparse":
        (first * 2).sum().backward()
        assert torch.equal(x.grad != 0, kept)
        torch.testing.assert_close(x.grad[kept], torch.full_like(x.grad[kept], 2 / (1 - rate)), rtol=tolerance, atol=0)


def test_no_dropout_where_none_is_asked_for():
    x = torch.randn(3, 2)
    assert dropout(x, 0.5, False) is dropout(x, 0.0, True) is x
    assert torch.equal(relu_dropout(x, 0.5, False), x.relu())
    assert torch.equal(relu_dropout(x, 0.0, True), x.relu())
    matrix = Sparse(sparse.csr_array(x.numpy()))
    assert dropout(matrix, 0.5, False) is dropout(matrix, 0.0, True) is matrix


def test_a_dropped_matrix_and_its_transpose_are_one():
    matrix = Sparse(sparse.random_array((30, 20), density=0.3, rng=np.random.default_rng(0))).drop(0.5)
    assert np.array_equal(matrix.t.scipy().toarray(), matrix.scipy().toarray().T)


def test_values_that_are_no_numbers_are_not_hidden():
    x = torch.tensor([[float("nan")] * 40])
    assert relu_dropout(x, 0.5, True).isnan().all()


def scores_of(n, heads, width, seed):
    rng = np.random.default_rng(seed)
    parts = (rng.standard_normal((n, heads, width)), *rng.standard_normal((2, n, heads)))
    return [torch.from_numpy(part).requires_grad_() for part in parts]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_attention_and_its_gradients(weighted, rate):
    matrix, inputs = Sparse(random_edges(6, 3, True).dense.numpy()), scores_of(6, 2, 3, 4)

    def act(*inputs):
        torch.manual_seed(0)  # the same is dropped every time
        return attend(matrix, *inputs, rate=rate, weighted=weighted)

    with torch.random.fork_rng():
        assert torch.autograd.gradcheck(act, inputs)
        out = act(*inputs)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        (first,) = torch.autograd.grad(out.square().sum(), inputs[:1], create_graph=True)
        first.sum().backward()


@given(edges(), seeds, st.booleans())
def test_attention_in_torch_is_the_same(graph, seed, weighted):
    """Also where a node attends to nobody."""
    matrix, inputs = Sparse(sparse.csr_array(graph.dense.numpy())), scores_of(graph.n, 2, 3, seed)
    by = rows_of(graph.n, seed, 6).reshape(-1, 2, 3)
    outputs = [
        attend(matrix, *inputs, weighted=weighted),
        _sparse._attend_anywhere(matrix, *inputs, 0.2, 0.0, weighted),
    ]
    torch.testing.assert_close(*outputs)
    for one, other in zip(*(torch.autograd.grad((out * by).sum(), inputs) for out in outputs), strict=True):
        torch.testing.assert_close(one, other)


def test_attention_in_torch_drops_as_much():
    matrix, (z, *scores) = Sparse(sparse.csr_array(np.ones((60, 60)))), scores_of(60, 4, 1, 0)
    flat = [torch.zeros_like(part) for part in scores]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        outputs = [_sparse._attend_anywhere(matrix, torch.ones_like(z), *flat, 0.2, 0.5, False)]
        outputs.append(attend(matrix, torch.ones_like(z), *flat, rate=0.5, weighted=False))
    for out in outputs:
        assert abs(out.mean() - 1) < 0.02
        assert 0.05 < out.std() < 0.2  # sqrt(1 / 60) were it exact


# --------------------------------------------------------------------------- caches


def test_changed_edges_are_noticed():
    index, weight = torch.tensor([[0, 1], [1, 2]]), torch.tensor([1.0, 2.0])
    first = Neighbours.of(index, weight, 3)
    assert Neighbours.of(index, weight, 3) is first
    assert Neighbours.of(first) is first
    weight.mul_(2)
    assert Neighbours.of(index, weight, 3).matrix.data.tolist() == [2, 4]
    index[1, 1] = 0
    assert Neighbours.of(index, weight, 3).matrix.toarray().tolist() == [[0, 4, 0], [2, 0, 0], [0, 0, 0]]
    assert Neighbours.of(index, None, 3).matrix.data.tolist() == [1, 1]
    assert Neighbours.of(index, weight, 4).n == 4
    assert first.matrix.data.tolist() == [1, 2]


def test_new_tensors_in_the_place_of_old_ones_are_not_mistaken_for_them():
    index = torch.tensor([[0, 1], [1, 2]])
    seen = set()
    for k in range(1, 30):
        weight = torch.full((2,), float(k))
        seen.add(id(weight))
        assert Neighbours.of(index, weight, 3).matrix.data.tolist() == [k, k]
        x = torch.full((3, 2), float(k)).to_sparse_coo()
        assert models.MLP.read_features(x).scipy().toarray().tolist() == [[k] * 2] * 3
        del weight, x
    assert len(seen) < 29, "Python has used places again; else this test says nothing"


@pytest.mark.parametrize("layout", ["csr", "coo"])
def test_changed_features_are_noticed(layout):
    x = torch.eye(3, dtype=torch.float64)
    x = x.to_sparse_csr() if layout == "csr" else x.to_sparse_coo().coalesce()
    model = models.MLP(3, 2, layers=1).double().eval()
    before = model(x)
    assert torch.equal(model(x), before)
    assert models.MLP.read_features(x) is models.MLP.read_features(x)
    x.values().mul_(2)
    torch.testing.assert_close(model(x), model(2 * torch.eye(3, dtype=torch.float64)))


def test_changed_types_are_noticed():
    graph, x = random_edges(6, 0), rows_of(6, 0)
    kinds, model = graph.kinds(2), build(models.WRGAT, {"relations": 2}, 6, 1)
    before = model(x, graph.index, None, kinds)
    kinds.copy_(1 - kinds)
    after = model(x, graph.index, None, kinds)
    assert not torch.equal(after, before)
    assert torch.equal(after, model(x, graph.index, None, kinds.clone()))


def test_in_inference_mode():
    graph, x = random_edges(6, 0, True), rows_of(6, 0)
    model = build(models.GCN, {}, 6, 1)
    wanted = model(x, graph.index, graph.weight).detach()
    with torch.inference_mode():
        for _ in range(2):
            assert torch.equal(model(x.clone(), graph.index.clone(), graph.weight.clone()), wanted)
        weight = graph.weight.clone()
        model(x, graph.index, weight)
        weight.mul_(2)
        assert not torch.equal(model(x, graph.index, weight), wanted)


def test_few_graphs_are_kept():
    from pegfan.models._neighbours import _NEWEST

    held = [torch.tensor([[0], [1]]) for _ in range(20)]
    for index in held:
        Neighbours.of(index, None, 2)
    assert len(_NEWEST.values) == _NEWEST.most


# --------------------------------------------------------------------------- bad input

EDGE = torch.tensor([[0, 1], [1, 2]])


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ((torch.zeros(3, 2, dtype=torch.long),), ValueError, r"two rows of node numbers, got int64 \(3, 2\)"),
        ((torch.zeros(4, dtype=torch.long),), ValueError, r"two rows of node numbers, got int64 \(4,\)"),
        ((EDGE.float(),), ValueError, "two rows of node numbers, got float32"),
        ((EDGE + 1,), ValueError, "names node 3, and x has 3 rows"),
        ((EDGE - 1,), ValueError, "names node -1, and x has 3 rows"),
        ((EDGE, torch.ones(3)), ValueError, "3 weights for 2 edges"),
        ((EDGE.numpy(),), TypeError, "edge_index must be a tensor, got numpy.ndarray"),
        ((None,), TypeError, "edge_index must be a tensor, got NoneType"),
        ((EDGE, [1.0, 1.0]), TypeError, "edge_weight must be a tensor, got list"),
        ((Neighbours.of(EDGE, n=4),), ValueError, "the graph has 4 nodes, and x has 3 rows"),
    ],
)
def test_bad_edges(given, error, message):
    with pytest.raises(error, match=message):
        models.GCN(5, 2)(torch.ones(3, 5), *given)


def test_bad_features():
    model = models.GCN(5, 2)
    with pytest.raises(TypeError, match="x must be a tensor, dense or sparse, got ndarray"):
        model(np.ones((3, 5)), EDGE)
    with pytest.raises(ValueError, match=r"a row for every node, got the shape \(3,\)"):
        model(torch.ones(3), EDGE)
    with pytest.raises(ValueError, match=r"2 columns cannot multiply a tensor of shape \(3, 1\)"):
        Sparse(sparse.csr_array(np.eye(2))) @ torch.ones(3, 1)
    with pytest.raises(ValueError, match=r"2 columns cannot multiply a tensor of shape \(2,\)"):
        Sparse(sparse.csr_array(np.eye(2))) @ torch.ones(2)
    with pytest.raises(ValueError, match="square"):
        Neighbours(np.ones((2, 3)))


@pytest.mark.parametrize("kind", [models.GeomGCN, models.WRGAT])
def test_bad_types(kind):
    model = kind(5, 2)
    for kinds, message in [
        (torch.tensor([0]), r"each of 2 edges, got int64 \(1,\)"),
        (torch.tensor([0, -1]), "from 0 on"),
        (torch.tensor([0.0, 1.0]), "got float32"),
        (torch.tensor([0, 9]), r"the edges have 10 (divisions|relations), and the network has (9|4)"),
    ]:
        with pytest.raises(ValueError, match=message):
            model(torch.ones(3, 5), EDGE, None, kinds)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        *((name, {"hidden": 0}, "hidden must be at least 1, got 0") for name in TWINS if "sgc" not in name),
        *((name, {"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0") for name in TWINS),
        ("gcn", {"dropout": float("nan")}, "dropout must be"),
        ("gcn", {"layers": 0}, "layers must be at least 1"),
        ("gat", {"heads": 4}, "4 heads do not divide 6 hidden columns"),
        ("classic gat", {"heads": 4}, "4 heads do not divide 6"),
        ("classic gat", {"norm": "group"}, "norm must be 'none', 'batch' or 'layer', got 'group'"),
        ("classic gat", {"convolution": "gin"}, "convolution must be 'gcn', 'sage' or 'gat'"),
        ("gcnii", {"alpha": 1.5}, "alpha is between 0 and 1 and lamda positive, got 1.5"),
        ("gcnii", {"lamda": 0}, "lamda positive"),
        ("gprgnn", {"smooth_dropout": 1.0}, "smooth_dropout below 1"),
        ("gprgnn", {"hops": -1}, "hops must be at least 0"),
        ("mixhop", {"layer_dropout": 1.0}, "dropout must be"),
        ("mixhop", {"hidden": 2}, "hidden must be at least 3, a column for every power, got 2"),
        ("wrgat", {"relations": -1}, "relations must be at least 0"),
        ("h2gcn", {"rounds": 0}, "rounds must be at least 1"),
    ],
)
def test_bad_networks(name, options, message):
    kind, standard, _ = TWINS[name]
    with pytest.raises(ValueError, match=message):
        build(kind, {**standard, **options}, 3, 0)


def test_bad_label_propagation():
    with pytest.raises(ValueError, match="alpha is between 0 and 1"):
        models.LabelPropagation(alpha=2)
    with pytest.raises(ValueError, match="steps"):
        models.LabelPropagation(steps=-1)


def test_linkx_is_for_its_graph():
    model = build(models.LINKX, {"nodes": 3}, 3, 0)
    with pytest.raises(ValueError, match="weights for the 3 nodes of its graph, and this one has 4"):
        model(rows_of(4, 0), EDGE)
