"""Channels of the paper's data sets, on the authors' trees."""

import numpy as np
import pytest
import torch
from scipy import sparse

import pegfan as pf
from pegfan import datasets
from pegfan._npz import read_npz
from pegfan.channels import density, hop_matrix, make_channels, make_fsgnn_channels
from pegfan.models import FSGNN, PEGFAN, to_tensors


def load(name, data, authors_trees):
    tree = pf.Hierarchy.from_labels(read_npz(authors_trees / f"{name}_h4.npz")["labels"])
    return name, datasets.load(name, data), pf.FrameletSystem(tree)


@pytest.fixture(scope="module", params=["chameleon", "squirrel"])
def example(request, data, authors_trees):
    return load(request.param, data, authors_trees)


def dense(array):
    return array.toarray() if sparse.issparse(array) else array


def test_channel_counts_of_table_iv(example):
    name, graph, system = example
    channels = make_channels(graph, system, "c", "auto", hops=3, split=0)
    assert channels.info["regime"] == "heterophily"
    assert len(channels) == {"chameleon": 13, "squirrel": 14}[name]
    assert len(make_fsgnn_channels(graph, 3, "heterophily")) == 4
    assert len(make_fsgnn_channels(graph, 8, "heterophily")) == 9


def test_cora_is_homophilous(data):
    graph = datasets.load("cora", data)
    system = pf.FrameletSystem(pf.Hierarchy([np.zeros(graph.n, int)]))
    channels = make_channels(graph, system, split=0)
    assert channels.info["regime"] == "homophily"
    assert channels.info["edge_homophily"] == pytest.approx(0.81, abs=0.04)


def test_the_hop_matrix_of_the_authors_code(example):
    """Row sums of the directed matrix on both sides, zero counting as one, by a product of diagonals."""
    _, graph, _ = example
    for kind, loops in (("S", 0), ("S~", 1)):
        matrix = graph.adjacency + loops * sparse.eye_array(graph.n)
        sums = matrix.sum(axis=1)
        scale = sparse.diags_array(np.power(sums + (sums == 0), -0.5))
        difference = scale @ matrix @ scale - hop_matrix(graph, kind)
        assert abs(difference).max() < 1e-15


def test_channels_of_type_c(example):
    """Sums of projections, lazy and materialised forms, rows, and stated memory on real data."""
    _, graph, system = example
    channels = make_channels(graph, system, "c", "heterophily")
    arrays = channels.materialize()
    step = hop_matrix(graph).astype(np.float32)
    np.testing.assert_allclose(dense(arrays[1]), dense(step @ dense(arrays[0])), atol=1e-6)
    total = sum(dense(array) for array in arrays[4:])
    np.testing.assert_allclose(total, dense(arrays[1]), atol=1e-5)
    size = sum(a.data.nbytes + (a.indices.nbytes + a.indptr.nbytes if sparse.issparse(a) else 0) for a in arrays)
    assert size <= channels.memory() < channels.memory(format="dense")
    nodes = np.random.default_rng(0).integers(0, graph.n, 50)
    weights = [torch.randn(d, 8) for d in channels.widths]
    lazy = channels.apply(weights)
    for array, rows, w, product in zip(arrays, channels.rows(nodes), weights, lazy, strict=True):
        np.testing.assert_allclose(dense(rows), dense(array)[nodes], atol=1e-5)
        np.testing.assert_allclose(product.numpy(), dense(array) @ w.numpy(), atol=1e-3)


def test_networks_on_real_channels(data, authors_trees):
    _, graph, system = load("chameleon", data, authors_trees)
    for network, channels in (
        (PEGFAN, make_channels(graph, system, "as", "heterophily")),
        (FSGNN, make_fsgnn_channels(graph, 2, "all")),
    ):
        model = network(channels.widths, graph.n_classes).eval()
        with torch.no_grad():
            materialised, lazy = model(to_tensors(channels.materialize())), model(channels)
        torch.testing.assert_close(materialised, lazy, atol=1e-4, rtol=0)


def test_projections_are_sparser_than_powers(example):
    """The paper's sparsity argument: fine projections against A³."""
    _, graph, system = example
    table = density(graph, system, powers=3)["density"]
    assert table["A"] == graph.adjacency.nnz / graph.n**2
    assert table["A"] < table["A^2"] < table["A^3"]
    assert table[f"F_{system.K - 1}"] < table["A"]
    assert (np.diff(table[1 : system.K]) < 0).all()
