"""Layers for PyG: they are their formulas, whatever the numbering, the batch, the order of edges or the dtype."""

import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import pegfan as pf
from pegfan._cache import Cache
from pegfan.models import PEGFAN as OnChannels
from pegfan.nn import PEGFAN, FrameletConv, FrameletPool, _forest

KINDS = [("a", 2), ("b", 2), ("c", 0), ("c", 3), ("as", 1)]


def both_ways(pairs):
    edges = torch.tensor(pairs).reshape(-1, 2).T
    return torch.cat([edges, edges.flip(0)], dim=1)


def ring(n):
    return both_ways([[i, (i + 1) % n] for i in range(n)])


def star(n):
    return both_ways([[0, i] for i in range(1, n)])


@st.composite
def graphs(draw, most=14):
    """x, edges and weights of any graph: directed ones, loops, repeated edges, isolated nodes, symmetric ones."""
    n, seed = draw(st.integers(1, most)), draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    shape = draw(st.sampled_from(["ring", "star", "empty", "any", "undirected"]))
    if shape in ("ring", "star") and n > 2:
        edges = {"ring": ring, "star": star}[shape](n)
    elif shape == "empty":
        edges = torch.empty(2, 0, dtype=torch.long)
    else:
        edges = torch.tensor(rng.integers(n, size=(2, draw(st.integers(0, 3 * n)))))
        edges = torch.cat([edges, edges.flip(0)], dim=1) if shape == "undirected" else edges
    weights = torch.tensor(rng.integers(0, 4, edges.shape[1])).double() if draw(st.booleans()) else None
    return torch.tensor(rng.standard_normal((n, 3))), edges, weights


@pytest.fixture(scope="module")
def graph():
    """All of whose nodes differ, so that its tree is that of `build_tree`."""
    plain = pf.datasets.synthetic(0.0, n=120, n_edges=700, n_features=3)
    graph = plain.replace(features=plain.features.astype(np.float64))
    assert pf.build_tree(graph.replace(features=None)).info["tied"] == 0
    return graph


def tensors(graph):
    return torch.tensor(graph.features), torch.tensor(np.array(graph.adjacency.tocoo().coords))


# ------------------------------------------------------------------------------ what they compute


@pytest.mark.parametrize(("kind", "hops"), KINDS)
@pytest.mark.parametrize(("levels", "weights"), [(1, "equal"), (2, "size"), (4, "equal"), (9, "size")])
def test_a_layer_is_its_formula(graph, kind, hops, levels, weights):
    x, edges = tensors(graph)
    conv = FrameletConv(3, 2, levels, kind=kind, hops=hops, weights=weights, h=4).double()
    system = pf.FrameletSystem(pf.build_tree(graph.replace(features=None), h=4), weights=weights)
    S = torch.tensor(pf.channels.hop_matrix(graph, "S").toarray())
    with_hops, projected = pf.channels.presets.KINDS[kind]
    inputs = [torch.linalg.matrix_power(S, i) @ x for i in range((hops if with_hops else 0) + 1)]
    scales = system.projections(S @ x if projected else x)
    coarse = max(system.K - levels + 1, 1)
    inputs += [sum(scales[:coarse]), *[torch.zeros_like(x)] * max(levels - system.K, 0), *scales[coarse:]]
    assert len(inputs) == len(conv.parts) == len(conv.weight)
    expected = sum(one @ weight for one, weight in zip(inputs, conv.weight, strict=True)) + conv.bias
    torch.testing.assert_close(conv(x, edges), expected)


def test_the_network_is_the_papers_on_the_papers_channels(graph):
    x, edges = tensors(graph)
    system = pf.FrameletSystem(pf.build_tree(graph.replace(features=None), h=4))
    channels = pf.make_channels(graph, system, "c", "heterophily", hops=2, scaling="none")
    ours = PEGFAN(3, 8, 3, 4, levels=system.K, hops=2, h=4).double().eval()
    paper = OnChannels(channels.widths, 4, hidden=8, layers=3).double().eval()
    paper.load_state_dict(ours.network.state_dict())
    assert ours.parts == list(channels.names)
    torch.testing.assert_close(ours(x, edges).log_softmax(dim=1), paper(channels))


def test_a_node_looks_at_the_sources_of_its_edges():
    conv = FrameletConv(1, 1, levels=1, kind="b", hop="A", bias=False)
    with torch.no_grad():
        conv.weight[:, 0, 0] = torch.tensor([0.0, 1.0, 0.0])
    found = conv(torch.tensor([[1.0], [10.0], [100.0]]), torch.tensor([[0, 0, 1], [1, 2, 2]]))
    assert found.flatten().tolist() == [0.0, 1.0, 11.0]


def test_edges_that_are_repeated_add_up_and_weights_of_zero_are_none():
    x, conv = torch.randn(4, 3), FrameletConv(3, 2)
    twice = torch.cat([ring(4), ring(4)[:, :2]], dim=1)
    weights = torch.tensor([2.0, 2, 1, 1, 1, 1, 1, 1])
    torch.testing.assert_close(conv(x, twice), conv(x, ring(4), weights))
    more = torch.cat([ring(4), torch.tensor([[0], [2]])], dim=1)
    torch.testing.assert_close(conv(x, ring(4)), conv(x, more, torch.tensor([1.0] * 8 + [0.0])))


def test_a_sparse_matrix_stands_for_its_edges():
    x, conv = torch.randn(4, 3), FrameletConv(3, 2)
    edges, weights = torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.tensor([1.0, 2.0, 3.0])
    matrix = torch.sparse_coo_tensor(edges.flip(0), weights, (4, 4), check_invariants=True)
    torch.testing.assert_close(conv(x, matrix), conv(x, edges, weights))
    with pytest.raises(ValueError, match="weights of its own"):
        conv(x, matrix, weights)


# ------------------------------------------------------------------------------ numbering, batches


@given(graphs(), st.sampled_from(["a", "b", "c"]), st.integers(0, 2**32 - 1))
def test_renumbered_graphs_have_renumbered_outputs(drawn, kind, seed):
    x, edges, weights = drawn
    torch.manual_seed(0)
    conv, network = FrameletConv(3, 2, kind=kind, h=2).double(), PEGFAN(3, 4, 2, 2, kind=kind, h=2).double().eval()
    rng = np.random.default_rng(seed)
    perm, shuffle = torch.tensor(rng.permutation(len(x))), torch.tensor(rng.permutation(edges.shape[1]))
    moved = torch.argsort(perm)[edges[:, shuffle]], None if weights is None else weights[shuffle]
    for layer in (conv, network):
        torch.testing.assert_close(layer(x[perm], *moved), layer(x, edges, weights)[perm])


def test_ties_that_are_broken_show_and_have_more_scales():
    x, conv = torch.randn(24, 1), FrameletConv(1, 1, h=2, ties="break")
    assert len(_forest.forest_of(x, ring(24), None, None, conv.trees).steps) > 3
    assert len(_forest.forest_of(x, ring(24), None, None, FrameletConv(1, 1, h=2).trees).steps) == 1


@given(st.lists(graphs(most=8), min_size=1, max_size=4), st.integers(0, 2**32 - 1))
def test_a_batch_is_its_graphs(drawn, seed):
    """Numbers of graphs may have gaps, and nodes of graphs may be interleaved."""
    torch.manual_seed(0)
    conv, rng = FrameletConv(3, 2, h=2).double(), np.random.default_rng(seed)
    alone = torch.cat([conv(x, edges) for x, edges, _ in drawn])
    starts = np.cumsum([0] + [len(x) for x, _, _ in drawn])
    x = torch.cat([x for x, _, _ in drawn])
    edges = torch.cat([edges + start for (_, edges, _), start in zip(drawn, starts[:-1], strict=True)], dim=1)
    batch = torch.repeat_interleave(2 * torch.arange(len(drawn)), torch.tensor(np.diff(starts)))
    torch.testing.assert_close(conv(x, edges, batch=batch), alone)
    perm = torch.tensor(rng.permutation(len(x)))
    torch.testing.assert_close(conv(x[perm], torch.argsort(perm)[edges], batch=batch[perm]), alone[perm])


def test_no_nodes_at_all():
    none, edges = torch.empty(0, 3), torch.empty(2, 0, dtype=torch.long)
    assert FrameletConv(3, 2)(none, edges).shape == (0, 2)
    assert PEGFAN(3, 4, 2, 5)(none, edges, batch=torch.empty(0, dtype=torch.long)).shape == (0, 5)
    assert FrameletPool()(none, edges)[0].shape == (0, 3)


# ------------------------------------------------------------------------------ what is kept


@pytest.fixture
def built(monkeypatch):
    """The sizes of graphs whose trees are built; nothing is known at first."""
    sizes, build = [], _forest.build_tree
    monkeypatch.setattr(_forest, "build_tree", lambda graph, *a, **k: sizes.append(graph.n) or build(graph, *a, **k))
    for name in ("_TREES", "_FORESTS"):
        monkeypatch.setattr(_forest, name, Cache(2**30))
    return sizes


def test_a_tree_is_built_once_per_graph(built):
    x, conv = torch.randn(9, 3), FrameletConv(3, 2)
    weights = torch.rand(14)
    conv(x[:7], ring(7), weights)
    FrameletConv(3, 5, hop="A")(x[:7], ring(7).clone(), weights)
    order = torch.randperm(14)
    conv(x[:7], ring(7)[:, order], weights[order])  # the same graph
    assert built == [7]
    first, second = ring(4), star(5)
    conv(x, torch.cat([first, second + 4], dim=1), batch=torch.tensor([0] * 4 + [1] * 5))
    assert built == [7, 4, 5]
    conv(x, torch.cat([second, first + 5], dim=1), batch=torch.tensor([0] * 5 + [1] * 4))  # another batch
    assert built == [7, 4, 5]
    FrameletConv(3, 2, h=2)(x[:7], ring(7), weights)
    assert built == [7, 4, 5, 7]


def test_tensors_that_change_in_place_are_other_graphs(built):
    x, conv = torch.randn(5, 3), FrameletConv(3, 2)
    memory = np.ascontiguousarray(ring(5).numpy())
    edges, weights = torch.from_numpy(memory), torch.ones(10)
    conv(x, edges, weights)
    memory[:, 0] = [0, 2]  # torch does not know of it
    fresh = FrameletConv(3, 2)
    fresh.load_state_dict(conv.state_dict())
    torch.testing.assert_close(conv(x, edges, weights), fresh(x, edges.clone(), weights.clone()))
    weights[3] = 7
    torch.testing.assert_close(conv(x, edges, weights), fresh(x, edges.clone(), weights.clone()))
    assert built == [5, 5, 5]


def test_no_more_is_kept_than_was_said(built):
    _forest._TREES.limit, _forest._FORESTS.limit = 9_000, 3 * 256 * 100
    conv = FrameletConv(1, 1)
    for n in range(20, 30):
        conv(torch.randn(n, 1), star(n))
    conv(torch.randn(22, 1), star(22))
    assert built == [*range(20, 30), 22], "it had to go for newer ones"
    conv(torch.randn(29, 1), star(29))
    assert built == [*range(20, 30), 22], "it had not"


# ------------------------------------------------------------------------------ as torch has it


@pytest.mark.parametrize("make", [FrameletConv, lambda a, b: PEGFAN(a, 4, 2, b)])
def test_modules_are_copied_saved_and_loaded_without_trees(make):
    x, edges = torch.randn(6, 3), ring(6)
    module = make(3, 2).eval()
    found = module(x, edges)
    again = make(3, 2).eval()
    again.load_state_dict(module.state_dict())
    names = {name for name, _ in module.named_parameters()}
    assert set(module.state_dict()) == names
    for other in (again, copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert torch.equal(other(x, edges), found)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    torch.manual_seed(3)
    module.reset_parameters()
    drawn = [name for name in names if not name.endswith(("bias", "logits"))]
    assert not any(torch.equal(before[name], module.state_dict()[name]) for name in drawn)
    with torch.device("meta"):
        empty = make(3, 2)
    assert all(p.is_meta for p in empty.parameters())
    empty.to_empty(device="cpu").reset_parameters()
    assert empty.eval()(x, edges).isfinite().all()


def test_gradients():
    edges, batch = torch.cat([ring(5), star(4) + 5], dim=1), torch.tensor([0] * 5 + [1] * 4)
    x = torch.randn(9, 2, dtype=torch.float64, requires_grad=True)
    conv, pool = FrameletConv(2, 2, h=2).double(), FrameletPool(reduce="framelet", h=2)
    outputs = PEGFAN(2, 3, 2, 2, levels=2, h=2).double().eval()
    weights = tuple(conv.parameters())

    def call(x, *weights):
        return torch.func.functional_call(conv, dict(zip(("weight", "bias"), weights, strict=True)), (x, edges))

    assert torch.autograd.gradcheck(call, (x, *weights))
    assert torch.autograd.gradgradcheck(call, (x, *weights))
    assert torch.autograd.gradcheck(lambda x: outputs(x, edges, batch=batch), x)
    assert torch.autograd.gradcheck(lambda x: pool(x, edges, batch=batch)[0], x)


@pytest.mark.parametrize("make", [FrameletConv, lambda a, b: PEGFAN(a, 8, 2, b)])
def test_half_precision(make):
    x, edges, module = torch.randn(6, 3), ring(6), make(3, 2).eval()
    expected = module(x, edges)
    with torch.autocast("cpu"):
        torch.testing.assert_close(module(x, edges).float(), expected, atol=0.05, rtol=0.05)
    found = module.bfloat16()(x.bfloat16(), edges)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, atol=0.05, rtol=0.05)


class UNet(torch.nn.Module):
    def __init__(self, reduce="framelet"):
        super().__init__()
        self.into, self.out = FrameletConv(3, 3, 2, h=2), FrameletConv(3, 3, 2, h=2)
        self.pool = FrameletPool(reduce=reduce, h=2)

    def forward(self, x, edge_index):
        coarse, edges, weights, batch, pooling = self.pool(x, edge_index)
        return self.out(self.pool.unpool(self.into(coarse, edges, weights, batch), pooling), edge_index)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # what torch says of itself
@pytest.mark.parametrize("module", [FrameletConv(3, 2), PEGFAN(3, 4, 2, 2).eval(), UNet()], ids=["conv", "net", "unet"])
def test_compiled_modules_have_the_same_numbers(module):
    compiled = torch.compile(module)
    for n in (6, 9):
        x, edges = torch.randn(n, 3), ring(n)
        found, expected = compiled(x, edges), module(x, edges)
        torch.testing.assert_close(found, expected)
        weights = list(module.parameters())
        ours, theirs = (torch.autograd.grad(y.square().sum(), weights) for y in (found, expected))
        torch.testing.assert_close(ours, theirs)


@pytest.mark.usefixtures("pyg")
def test_among_modules_of_pyg():
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader
    from torch_geometric.nn import Sequential, global_mean_pool

    model = Sequential(
        "x, edge_index, edge_weight, batch",
        [
            (FrameletConv(3, 4), "x, edge_index, edge_weight, batch -> x"),
            torch.nn.ReLU(),
            (FrameletPool(), "x, edge_index, edge_weight, batch -> x, edge_index, edge_weight, batch, pooling"),
            (FrameletConv(4, 4), "x, edge_index, edge_weight, batch -> x"),
            (global_mean_pool, "x, batch -> x"),
        ],
    )
    data = [Data(x=torch.randn(n, 3), edge_index=ring(n)) for n in (3, 5, 9, 4)]
    alone = torch.cat([model(one.x, one.edge_index, None, torch.zeros(len(one.x), dtype=torch.long)) for one in data])
    batches = DataLoader(data, batch_size=3, num_workers=1)
    found = torch.cat([model(batch.x, batch.edge_index, None, batch.batch) for batch in batches])
    torch.testing.assert_close(found, alone)


# ------------------------------------------------------------------------------ pooling


@given(graphs(), st.integers(1, 3))
def test_unpooling_gives_back_what_was_pooled(drawn, levels):
    x, edges, weights = drawn
    pool = FrameletPool(levels, "framelet", h=2)
    coarse, *_, pooling = pool(x, edges, weights)
    torch.testing.assert_close(pool.unpool(coarse, pooling), x)
    torch.testing.assert_close(coarse.square().sum() + pooling.detail.square().sum(), x.square().sum())  # orthogonal
    assert pool(torch.ones_like(x), edges, weights)[-1].detail.abs().max() < 1e-12


def test_pooling_by_hand():
    """Two pairs of nodes along heavy edges, and a lone pair in a second graph."""
    x = torch.tensor([[1.0], [3.0], [5.0], [9.0], [2.0], [-6.0]])
    edges = torch.tensor([[0, 2, 1, 2, 4], [1, 3, 2, 1, 5]])
    edges, weights = torch.cat([edges, edges.flip(0)], dim=1), torch.tensor([4.0, 5.0, 1.0, 0.5, 1.0] * 2)
    batch = torch.tensor([3, 3, 3, 3, 7, 7])
    for reduce, expected in {"mean": [2, 7, -2], "sum": [4, 14, -4], "max": [3, 9, 2]}.items():
        pool = FrameletPool(reduce=reduce, h=2)
        coarse, links, between, graphs, pooling = pool(x, edges, weights, batch)
        found = coarse[pooling.cluster[[0, 2, 4]]]
        assert found.flatten().tolist() == expected
        assert torch.equal(pooling.cluster[[0, 2, 4]], pooling.cluster[[1, 3, 5]])
        assert sorted(links.T.tolist()) == [[0, 1], [1, 0]]
        assert between.tolist() == [1.5, 1.5]
        assert graphs.tolist() == [3, 3, 7]
        assert pool.unpool(coarse, pooling).shape == x.shape


@given(graphs(), st.integers(0, 2**32 - 1))
def test_pooled_graphs_do_not_depend_on_the_numbering(drawn, seed):
    x, edges, weights = drawn
    pool, perm = FrameletPool(h=2), torch.tensor(np.random.default_rng(seed).permutation(len(x)))
    one, other = pool(x, edges, weights), pool(x[perm], torch.argsort(perm)[edges], weights)
    torch.testing.assert_close(other[0][other[-1].cluster], one[0][one[-1].cluster][perm])
    torch.testing.assert_close(sum(one[2]), sum(other[2]))


def test_what_is_given_away_is_not_what_is_kept():
    pool, x = FrameletPool(reduce="framelet", h=2), torch.randn(8, 2, dtype=torch.float64)
    edges, expected = torch.cat([ring(4), star(4) + 4], dim=1), None
    for _ in range(2):
        coarse, links, weights, batch, pooling = pool(x, edges, batch=torch.arange(8) // 4)
        found = [coarse, links, weights, batch, *pooling]
        assert expected is None or all(map(torch.equal, found, expected))
        expected = [part.clone() for part in found]
        for part in found:
            part.add_(1)


# ------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": [[1.0]]}, "x must be a tensor"),
        ({"x": torch.ones(4, 3, dtype=torch.long)}, r"x\.float\(\)"),
        ({"x": torch.ones(4, 3, device="meta")}, "meta"),
        ({"edge_index": torch.ones(3, 2, dtype=torch.long)}, r"two rows of node numbers, got torch\.int64 of shape"),
        ({"x": torch.ones(4, 5)}, "x has 5 columns, and the layer was made for in_channels=3"),
        ({"edge_index": ring(4).bool()}, r"two rows of node numbers, got torch\.bool"),
        ({"edge_index": torch.tensor([[0], [4]])}, "names node 4, and x has 4 rows"),
        ({"edge_index": torch.tensor([[-1], [0]])}, "names node -1"),
        ({"edge_weight": torch.ones(3)}, r"edge_weight has the shape \(3,\), and edge_index 8 edges"),
        ({"edge_weight": -torch.ones(8)}, r"holds -1\.0"),
        ({"edge_weight": torch.full((8,), torch.nan)}, "holds nan"),
        ({"edge_weight": torch.ones(8, requires_grad=True)}, r"edge_weight\.detach\(\)"),
        ({"batch": torch.zeros(3, dtype=torch.long)}, "the graph of each of the 4 nodes"),
        ({"batch": torch.tensor([0, 0, 1, 1])}, "leads from one graph of the batch to another"),
    ],
)
def test_what_cannot_be_is_refused(change, message):
    given = {"x": torch.ones(4, 3), "edge_index": ring(4)} | change
    with pytest.raises((ValueError, TypeError), match=message):
        FrameletConv(3, 2)(**given)


@pytest.mark.parametrize("make", [lambda **k: FrameletConv(3, 2, **k), lambda **k: PEGFAN(3, 4, 2, 2, **k)])
@pytest.mark.parametrize(
    "wrong", [{"levels": 0}, {"kind": "d"}, {"hops": -1}, {"hop": "B"}, {"h": 1}, {"method": "no"}, {"ties": "maybe"}]
)
def test_settings_that_cannot_be_are_refused(make, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        make(**wrong)


def test_details_of_another_width_are_refused():
    pool, x = FrameletPool(reduce="framelet"), torch.ones(4, 3)
    *_, pooling = pool(x, ring(4))
    with pytest.raises(ValueError, match="x has 5 columns and the detail 3: pass detail=False"):
        pool.unpool(torch.ones(4, 5), pooling)
    assert pool.unpool(torch.ones(4, 5), pooling, detail=False).shape == (4, 5)
