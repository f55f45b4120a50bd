"""The channels as a PyG transform: they are those of make_channels, written as SIGN writes its hops."""

import numpy as np
import pytest
import torch

import pegfan as pf

pytestmark = pytest.mark.usefixtures("pyg")


def Framelets(**options):
    from pegfan.integrations.pyg import Framelets

    return Framelets(**options)


@pytest.fixture(scope="module")
def graph():
    plain = pf.datasets.synthetic(0.0, n=300, n_edges=3000, n_features=20)
    return plain.replace(features=plain.features.astype(np.float64))


@pytest.mark.parametrize(("kind", "hops", "with_x"), [("a", 0, True), ("b", 2, True), ("c", 3, False), ("as", 0, True)])
def test_transform_writes_the_channels_of_make_channels(graph, kind, hops, with_x):
    data = graph.to_pyg()
    result = Framelets(h=4, kind=kind, regime="heterophily", hops=hops, include_features=with_x)(data)
    system = pf.FrameletSystem(pf.build_tree(graph, h=4, direction="out"))
    expected = pf.make_channels(graph, system, kind, "heterophily", hops, include_features=with_x)
    assert result.channel_names == list(expected.names)
    for i, values in enumerate(expected.materialize(np.float64, format="dense"), start=1):
        assert result[f"x{i}"].dtype == data.x.dtype
        np.testing.assert_allclose(result[f"x{i}"].numpy(), values, atol=1e-12)
    assert f"x{len(expected) + 1}" not in result
    assert "x1" not in data, "the transform works on a copy, as all of PyG's do"
    assert result.x is data.x


@pytest.mark.parametrize(
    "words",
    [
        {"method": "none", "hops": 2},
        {"direction": "both", "hops": 1},
        {"regime": "all", "hops": 1},
        {"method": "none", "labels": True, "adjacency": True, "structure": True},
    ],
)
def test_whatever_a_recipe_can_say_is_written(graph, words):
    data, recipe = graph.replace(directed=True).to_pyg(), pf.Recipe.of(words)
    own = pf.Graph.from_pyg(data)
    expected = recipe.channels(own, recipe.build_tree(own), split=0)
    result = Framelets(**words)(data)
    assert result.channel_names == list(expected.names)
    for i, values in enumerate(expected.materialize(np.float64, format="dense"), start=1):
        assert np.array_equal(result[f"x{i}"].numpy(), values)


def test_labels_are_asked_for_only_where_they_are_seen(graph):
    bare = graph.replace(labels=None, splits=()).to_pyg()
    assert Framelets(kind="a")(bare).channel_names[0] == "X"
    with pytest.raises(ValueError, match=r"needs data\.y and data\.train_mask$"):
        Framelets(method="none", hops=0, labels=True)(bare)


def test_one_hop_by_hand():
    data = pf.Graph.from_edges([[0, 1], [1, 2]], features=np.array([[1.0], [2.0], [4.0]])).to_pyg()
    data.x = data.x.float()
    result = Framelets(h=4, kind="b", regime="heterophily", hops=1, scaling="none")(data)
    assert result.channel_names == ["X", "S X", "F_0 X", "F_1 X"]
    r = 2**-0.5
    torch.testing.assert_close(result.x2, torch.tensor([[2 * r], [5 * r], [2 * r]]))
    torch.testing.assert_close(result.x3, torch.full((3, 1), 7 / 3))
    torch.testing.assert_close(result.x3 + result.x4, result.x)


def test_auto_regime_needs_labels_and_a_mask(graph):
    data = graph.to_pyg()
    assert Framelets(h=8, hops=1)(data).channel_names[1] == "S X"
    del data.train_mask
    with pytest.raises(ValueError, match=r"train_mask; name the regime"):
        Framelets()(data)
    del data.x
    with pytest.raises(ValueError, match=r"data\.x is missing"):
        Framelets(regime="heterophily")(data)


def test_labels_that_are_no_classes_do_not_matter_where_the_regime_is_named(graph):
    data = graph.to_pyg()
    expected = Framelets(h=4, kind="a", regime="heterophily")(data)
    for y in (torch.rand(graph.n), torch.rand(graph.n, 3)):
        data.y = y
        result = Framelets(h=4, kind="a", regime="heterophily")(data)
        assert torch.equal(result.x3, expected.x3)
        assert result.y is y


def test_bfloat16(graph):
    data = graph.to_pyg()
    data.x = data.x.to(torch.bfloat16)
    result = Framelets(h=4, kind="b", regime="heterophily", hops=1, scaling="none")(data)
    assert result.x is data.x
    assert result.x2.dtype == torch.bfloat16
    data.x = data.x.float()
    expected = Framelets(h=4, kind="b", regime="heterophily", hops=1, scaling="none")(data)
    torch.testing.assert_close(result.x2, expected.x2.to(torch.bfloat16))


def test_channels_of_an_earlier_transform_are_replaced(graph):
    data = Framelets(h=4, kind="c", regime="heterophily", hops=3)(graph.to_pyg())
    again = Framelets(h=8, kind="a", regime="heterophily")(data)
    fresh = Framelets(h=8, kind="a", regime="heterophily")(graph.to_pyg())
    assert len(again.channel_names) < len(data.channel_names)
    assert set(again.keys()) == set(fresh.keys())
    assert all(torch.equal(again[key], fresh[key]) for key in fresh.keys() if key.startswith("x"))  # noqa: SIM118


def test_repr_and_compose(graph):
    from torch_geometric.transforms import Compose, NormalizeFeatures

    transform = Framelets(h=4, kind="b", regime="homophily", hops=2)
    assert repr(transform) == "Framelets(h=4, kind='b', regime='homophily', hops=2)"
    data = Compose([NormalizeFeatures(), transform])(graph.to_pyg())
    torch.testing.assert_close(data.x1, data.x)
