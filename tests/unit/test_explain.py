"""Reasons: shares that add up to what the network computes, on any graph, by columns, by nodes and by channels."""

import dataclasses
import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import pegfan as pf
from pegfan.explain import LINKS, Explainer, dense, find_nodes, source_columns
from pegfan.fitted import ChannelFacts, Fitted, Trained
from pegfan.graph import Split
from pegfan.recipe import Known, Recipe
from pegfan.training import Network, Run

RECIPES = {
    "a": {"kind": "a", "h": 3},
    "b": {"kind": "b", "h": 3, "regime": "all", "hops": 2},
    "c": {"kind": "c", "h": 4, "regime": "homophily", "hops": 2, "scaling": "columns"},
    "fsgnn": {"method": "none", "regime": "heterophily", "hops": 3, "direction": "both", "hop_normalize": False},
    "deep": {"method": "none", "regime": "homophily", "layers": 4, "scaling": "none"},
    "everything": {
        **{"kind": "b", "h": 3, "regime": "homophily", "scaling": "columns", "adjacency": True},
        **{"labels": True, "structure": True},
    },
}


def random_graph(seed, n=14, classes=3, sparse=False, directed=False):
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, n, (3 * n, 2))
    x = rng.standard_normal((n, 5)) * 10.0 ** rng.integers(-1, 3, 5)
    x[rng.random(x.shape) < 0.4] = 0.0
    labels = np.concatenate([np.arange(classes), rng.integers(-1, classes, n - classes)])
    return pf.Graph.from_edges(
        edges,
        n=n,
        directed=directed,
        features=csr_array(x) if sparse else x,
        labels=labels,
        class_names=[f"c{k}" for k in range(classes)],
        feature_names=["age", "kind=a", "kind=b", "amount", "sum"],
        node_names=[f"v{i:03}" for i in range(n)],
        splits=[Split(np.arange(0, n, 2), np.arange(1, n, 4), np.arange(3, n, 4))],
    )


def fitted(graph, *recipes, seed=0, spread=2.0):
    """A model with random weights: what is exact holds before any training."""
    split, members = graph.splits[0], []
    known = Known.of(graph, split.train)
    scale = pf.channels.FeatureScale.of(graph.features)
    for place, given_ in enumerate(recipes):
        recipe = Recipe.of({"hidden": 6, **given_})
        tree = recipe.build_tree(graph)
        channels = recipe.channels(
            graph, tree, split=split, known=known, scale=scale if recipe.scaling == "columns" else None
        )
        network = Network.draw(channels.widths, graph.n_classes, recipe.settings, seed + place)
        rng = np.random.default_rng(seed + place)
        state = {name: spread * value for name, value in network.state.items()}
        state["attention_logits"] = rng.standard_normal(len(channels)).astype(np.float32)
        numbers = dict.fromkeys(("epochs", "best_epoch"), 1)
        numbers |= dict.fromkeys(("val_loss", "val_metric", "test_metric", "seconds"), 0.5)
        run = Run(
            split=0, seed=0, attention=Network(state, recipe.settings).attention, state=state, history={}, **numbers
        )
        members.append(Trained(recipe, tree, tuple(map(ChannelFacts.of, channels)), run))
    return Fitted.of(members, graph, 0, 0, stood_in=False, known=known, scale=scale)


def sums(found):
    """The four ways in which a score is taken apart."""
    return {
        "channels": sum(share.contribution for share in found.channels),
        "columns": sum(share.contribution for share in found.columns),
        "nodes": sum(share.contribution for share in found.nodes) + sum(found.rest.values()),
        "reasons": sum(reason.contribution for reason in found.reasons),
        "groups": sum(found.groups.values()),
    }


@pytest.mark.parametrize("name", RECIPES)
@given(
    seed=st.integers(0, 2**20),
    classes=st.integers(2, 4),
    sparse=st.booleans(),
    directed=st.booleans(),
    top=st.sampled_from([None, 1, 3]),
)
def test_contributions_add_up_to_the_score(name, seed, classes, sparse, directed, top):
    graph = random_graph(seed, classes=classes, sparse=sparse, directed=directed)
    model = fitted(graph, RECIPES[name], seed=seed)
    logs = model.log_probabilities(graph).astype(np.float64)
    for found in Explainer(model, graph).explain([0, 5, 13], top=top):
        k = logs[found.node].argmax()
        assert found.target == f"c{k}"
        others = np.log(np.exp(np.delete(logs[found.node], k)).sum())
        assert found.score == pytest.approx(logs[found.node, k] - others, abs=1e-3, rel=1e-4)
        for way, total in sums(found).items():
            assert total == pytest.approx(found.score - found.average, abs=1e-5), way


@given(st.integers(0, 2**20), st.integers(0, 2))
def test_members_are_averaged_as_predictions_are(seed, target):
    graph = random_graph(seed)
    model = fitted(graph, *RECIPES.values(), seed=seed)
    p = np.exp(model.log_probabilities(graph).astype(np.float64))[:, target]
    for found in Explainer(model, graph).explain([2, 3], target):
        assert found.probability == pytest.approx(p[found.node], abs=1e-5)
        assert {share.member for share in found.channels} == {member.recipe.name for member in model.members}
        for way, total in sums(found).items():
            assert total == pytest.approx(found.score - found.average, abs=1e-5), way


@given(st.integers(0, 2**20))
def test_two_classes_are_reasons_for_and_against(seed):
    graph = random_graph(seed, classes=2)
    explainer = Explainer(fitted(graph, RECIPES["c"], RECIPES["fsgnn"], seed=seed))
    one, other = (explainer.explain([4], target)[0] for target in ("c0", "c1"))
    assert one.score == pytest.approx(-other.score)
    mirrored = {share.name: -share.contribution for share in other.columns}
    for share in one.columns:
        assert share.contribution == pytest.approx(mirrored[share.name], abs=1e-6)


def test_a_linear_network_by_hand():
    """Units that are on for every node make the score linear: a contribution is weight times deviation."""
    x = np.array([[1.0, 0.0], [3.0, 2.0], [2.0, 4.0]])
    graph = pf.Graph.from_edges(
        [[0, 1], [1, 2]], features=x, labels=[0, 1, 0], splits=[Split(*np.arange(3)[:, None])], feature_names=["a", "b"]
    )
    model = fitted(
        graph,
        {"method": "none", "hops": 1, "regime": "heterophily", "scaling": "none", "hop_normalize": False, "hidden": 1},
    )
    state = {
        "channel_layers.0.weight": [[1.0, 2.0]],
        "channel_layers.0.bias": [50.0],
        "channel_layers.1.weight": [[3.0, 0.0]],
        "channel_layers.1.bias": [50.0],
        "attention_logits": [0.0, 0.0],
        "output.weight": [[0.0, 0.0], [4.0, 2.0]],
        "output.bias": [0.0, -300.0],
    }
    member = model.members[0]
    run = dataclasses.replace(member.run, state={name: np.array(value, np.float32) for name, value in state.items()})
    model = dataclasses.replace(model, members=(dataclasses.replace(member, run=run),))
    (found,) = Explainer(model).explain([0], 1)
    # z = 4 · ½ (a + 2b) + 2 · ½ · 3 a', with a' = a_1 / √2 at node 0 and means 2, 2 and (3/√2 + 3/√2 + 3/√2) / 3.
    root = np.sqrt(2)
    own = {"a": 2 * (1 - 2), "b": 4 * (0 - 2)}
    columns = {share.name: share for share in found.columns}
    assert {name: share.own for name, share in columns.items()} == pytest.approx(own)
    assert columns["b"].contribution == pytest.approx(-8)
    assert columns["a"].contribution == pytest.approx(
        -2 + 3 * (3 / root - (3 / root + 3 / root + 3 / root) / 3), abs=1e-6
    )
    nodes = {share.id: share.contribution for share in found.nodes}
    assert nodes == pytest.approx({"0": -10, "1": 3 / root * (3 - 2)})
    assert found.rest[LINKS] == pytest.approx(3 * (1 / root * 2 - 3 / root), abs=1e-6)
    assert [(share.linked, share.label) for share in found.nodes] == [(False, "0"), (True, "1")]
    assert found.text(2) == "b low (-8); number and place of links (-2.1)"


@pytest.mark.parametrize("name", RECIPES)
def test_texts_are_the_largest_reasons_of_explain(name):
    graph = random_graph(7)
    explainer = Explainer(fitted(graph, RECIPES[name], RECIPES["fsgnn"], seed=7))
    texts = explainer.texts(target=1, top=4)
    for found, text in zip(explainer.explain(np.arange(graph.n), 1), texts, strict=True):
        near = [
            reason for reason in found.reasons if "further node" not in reason.words and "itself" not in reason.words
        ]
        assert text == "; ".join(map(str, near[:4]))


def test_large_channels_give_the_same_reasons(monkeypatch):
    graph = random_graph(7)
    model = fitted(graph, RECIPES["everything"], RECIPES["c"], seed=7)
    usual = Explainer(model).explain([3, 9])
    texts = Explainer(model).texts()
    monkeypatch.setattr("pegfan.explain._ROW_BYTES", 1)
    monkeypatch.setattr("pegfan.explain._CELLS", 20)
    assert Explainer(model).texts() == texts
    for one, other in zip(usual, Explainer(model).explain([3, 9]), strict=True):
        assert one.groups == pytest.approx(other.groups, abs=1e-9)
        assert {c.name: c.own for c in one.columns} == pytest.approx({c.name: c.own for c in other.columns}, abs=1e-9)


def test_rows_of_few_and_of_many_nodes_are_those_of_the_channels():
    graph = random_graph(7)
    network = Explainer(fitted(graph, RECIPES["everything"], seed=7)).networks[0]
    wanted = network.channels.rows(np.arange(graph.n), np.float64)
    for nodes in (np.array([3]), np.arange(graph.n), np.tile(np.arange(graph.n), 9)):
        for rows, whole in zip(network.rows(nodes), wanted, strict=True):
            np.testing.assert_allclose(rows, dense(whole)[nodes], atol=1e-12)


def test_memory_is_free_as_soon_as_nobody_holds_an_explainer():
    explainer = Explainer(fitted(random_graph(7), RECIPES["everything"], seed=7))
    explainer.explain([1])
    gone = weakref.ref(explainer.networks[0])
    gc.disable()  # which would find cycles
    try:
        del explainer
        assert gone() is None
    finally:
        gc.enable()


def test_categories_of_one_column_are_one_reason():
    graph = random_graph(3)
    (found,) = Explainer(fitted(graph, RECIPES["fsgnn"], seed=3)).explain([1])
    own = {share.name: share.own for share in found.columns}
    (kind,) = (reason for reason in found.reasons if "kind" in reason.words)
    assert kind.contribution == pytest.approx(own["kind=a"] + own["kind=b"])
    assert source_columns(["a", "k=1", "k=2", "words:x", "v[0]"]) == {"a": [0], "k": [1, 2], "words": [3], "v": [4]}


def test_a_changed_graph_is_explained_as_it_is_predicted():
    graph = random_graph(5)
    model = fitted(graph, RECIPES["everything"])
    changed = random_graph(6)
    logs = model.log_probabilities(changed)
    for found in Explainer(model, changed).explain([1, 8], 0):
        assert found.probability == pytest.approx(float(np.exp(logs[found.node, 0])), abs=1e-5)
        for way, total in sums(found).items():
            assert total == pytest.approx(found.score - found.average, abs=1e-5), way


def test_classifiers_explain_by_index_and_by_name():
    graph = random_graph(1, n=40)
    model = pf.FSGNNClassifier(epochs=5, regime="homophily").fit(graph)
    by_index, by_name = model.explain(graph, [7]), model.explain(graph, ["v007"])
    assert by_index[0].reasons == by_name[0].reasons
    assert len(model.explain(nodes=None, top=2)) == 40
    with pytest.raises(ValueError, match="no node 'v07'; did you mean 'v007'"):
        model.explain(graph, ["v07"])
    with pytest.raises(ValueError, match="there is no node 40"):
        model.explain(graph, [40])
    with pytest.raises(ValueError, match="no class 'x'; the model knows c0, c1, c2"):
        model.explain(graph, [1], target="x")


def test_other_networks_have_no_reasons():
    graph = random_graph(1, n=40)
    model = pf.NetworkClassifier("mlp", epochs=2).fit(graph)
    with pytest.raises(ValueError, match=r"reasons are for PEGFAN and FSGNN.*this model is MLP"):
        model.explain(graph, [1])


def test_find_nodes_takes_numbers_where_there_are_no_names():
    graph = pf.Graph.from_edges([[0, 1], [1, 2]])
    assert find_nodes(graph, ["2", "0"]).tolist() == [2, 0]
    assert find_nodes(graph, []).tolist() == []
