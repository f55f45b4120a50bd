"""Renumbered graphs give renumbered channels, the same weights and renumbered predictions, to the last bit."""

from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csr_array, issparse, random_array
from scipy.sparse.linalg import aslinearoperator

import pegfan as pf
from pegfan.channels import Channel, Channels, FeatureScale, Hop, Projection, hop_matrix, structural_features
from pegfan.channels._sums import order_free_product, order_free_sums
from pegfan.graph import Split
from pegfan.splits import draw_splits, with_validation
from pegfan.testing import check_operator
from pegfan.trees import canonical_order
from support.equivariance import assert_same_run, graphs, same_bits

seeds = st.integers(0, 2**32 - 1)
SMALL = {"hidden": 8, "epochs": 4, "lr_fc": 0.05}


def renumbered(graph, seed):
    perm = np.random.default_rng(seed).permutation(graph.n)
    return graph.permute(perm), perm


def channels_of(graph, method="matching", h=2, kind="c", regime="all", **options):
    system = pf.FrameletSystem(pf.build_tree(graph, method, h=h))
    return pf.make_channels(graph, system, kind, regime, hops=2, **options)


def star(leaves=7):
    """A star whose leaves, all alike, have different labels, and one class of tree cannot hold them."""
    labels, nodes = np.arange(leaves + 1) % 2, np.arange(leaves + 1)
    edges = [[0, i] for i in range(1, leaves + 1)]
    return pf.Graph.from_edges(
        edges, features=np.ones((leaves + 1, 2)), labels=labels, splits=[(nodes[:4], nodes[4:6], nodes[6:])]
    )


# -------------------------------------------------------------------------- channels


@given(
    graphs(),
    st.sampled_from(list(pf.trees.BUILDERS)),
    st.sampled_from("abc"),
    st.sampled_from(["out", "both"]),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from(["dense", "sparse"]),
    seeds,
)
def test_channels_are_renumbered_bit_for_bit(graph, method, kind, direction, dtype, form, seed):
    moved, perm = renumbered(graph, seed)
    before, after = (channels_of(g, method, kind=kind, direction=direction) for g in (graph, moved))
    assume(before.info.get("arbitrary", 0) == 0)
    some = np.random.default_rng(seed).integers(0, graph.n, 9)
    old, new = before.materialize(dtype, form), after.materialize(dtype, form)
    assert all(same_bits(a[perm], b) for a, b in zip(old, new, strict=True))
    old, new = before.rows(perm[some], dtype), after.rows(some, dtype)
    assert all(same_bits(a, b) for a, b in zip(old, new, strict=True))
    weights = np.random.default_rng(seed).standard_normal((before.widths[0], 3)).astype(dtype)
    signal = np.random.default_rng(seed).standard_normal((graph.n, 3))
    tied = canonical_order(graph).tied
    for one, two in zip(before, after, strict=True):
        assert same_bits(one.materialize(dtype, form)[perm], two.materialize(dtype, form))
        assert same_bits(one.apply(weights)[perm], two.apply(weights))
        assert tied or same_bits((one.operator @ signal)[perm], two.operator @ signal[perm])


@given(graphs(features=("random",)), seeds)
def test_operators_of_ones_own_are_put_into_the_order(graph, seed):
    """Matrices, projections and what knows its product only; those of a graph with nodes that differ."""
    assume(canonical_order(graph).tied == 0)
    moved, perm = renumbered(graph, seed)
    rng = np.random.default_rng(seed)
    x, own = rng.standard_normal((graph.n, 3)), csr_array(rng.standard_normal((graph.n, graph.n)))
    tree = pf.Hierarchy.from_nested([list(range(3)), list(range(3, graph.n))])
    classes, wide = rng.integers(0, 3, graph.n), rng.standard_normal((4, graph.n))
    runs, values = [], []
    for g, p in ((graph, np.arange(graph.n)), (moved, perm)):
        channels = channels_of(g, hop=own[p][:, p])
        system = pf.FrameletSystem(tree.permute(p))
        channels += [
            Channel("own", own[p][:, p], x[p]),
            Channel("of X", own[p][:, p], channels["X"]),
            Channel("scale", Projection(system, 1, classes[p]), x[p]),
            Channel("product", aslinearoperator(np.diag(x[p, 0])), x[p]),
            Channel("narrow", [wide.T[p], wide[:, p]], x[p]),
        ]
        values.append(channels.materialize(np.float64, "dense"))
        runs += pf.train(channels, g.labels, g.splits, SMALL, history=True).runs
        for channel, value in zip(channels, values[-1], strict=True):
            np.testing.assert_allclose(channel.operator @ np.asarray(channel.input), value, atol=1e-9)
    assert all(same_bits(a[perm], b) for a, b in zip(*values, strict=True))
    np.testing.assert_allclose(values[0][-4], own @ np.asarray(channels_of(graph)["X"].input), atol=1e-9)
    assert_same_run(*runs)


@given(graphs(), st.sampled_from(["l1", "none", "columns"]), seeds)
def test_channels_of_fsgnn_are_renumbered_bit_for_bit(graph, scaling, seed):
    moved, perm = renumbered(graph, seed)
    before, after = (pf.make_fsgnn_channels(g, 3, "all", scaling=scaling) for g in (graph, moved))
    assert before.info.get("arbitrary", 0) == 0
    for old, new in zip(before.materialize(np.float64), after.materialize(np.float64), strict=True):
        assert same_bits(old[perm], new)


@given(graphs(), st.sampled_from(["ward", "matching"]))
def test_nodes_that_look_alike_get_equal_rows_that_are_right(graph, method):
    channels = channels_of(graph, method)
    colouring = canonical_order(graph)
    plain = channels_of(graph, method, average=False)
    assert channels.info.get("averaged", 0) == colouring.tied
    assert "averaged" not in plain.info
    classes = colouring.classes
    mean = (classes[:, None] == classes) / np.bincount(classes)[classes]
    for i, value in enumerate(channels.materialize(np.float64, "dense")):
        first = np.unique(classes, return_index=True)[1][classes]
        assert same_bits(value, value[first]), "nodes of one class"
        expected = plain[i].operator @ np.asarray(plain[i].input)
        np.testing.assert_allclose(value, mean @ expected, atol=1e-12)
        rows = channels.rows(np.arange(graph.n), np.float64)[i]
        np.testing.assert_allclose(rows.toarray() if issparse(rows) else rows, value, atol=1e-12)


def test_projections_of_a_star_do_not_depend_on_the_choice_among_its_leaves():
    channels = channels_of(star(), h=3, kind="a", scaling="none")
    for name in channels.names:
        value = channels[name].materialize(np.float64)
        assert len(np.unique(value[1:].round(12), axis=0)) == 1
    plain = channels_of(star(), h=3, kind="a", scaling="none", average=False)
    apart = max(np.ptp(value[1:], axis=0).max() for value in plain.materialize(np.float64))
    assert apart > 0.1, "without averaging the leaves are told apart"


def test_the_mirror_image_of_a_path_has_the_same_channels():
    path = pf.Graph.from_edges([[i, i + 1] for i in range(6)], features=np.ones((7, 1)))
    for value in channels_of(path).materialize(np.float64):
        assert same_bits(value, value[::-1])


@given(graphs(), seeds)
def test_a_tree_of_the_users_own_moves_along_and_is_not_averaged(graph, seed):
    moved, perm = renumbered(graph, seed)
    tree = pf.Hierarchy.from_nested([list(range(3)), list(range(3, graph.n))])
    before, after = (
        pf.make_channels(g, pf.FrameletSystem(t), "c", "all", scaling="none")
        for g, t in ((graph, tree), (moved, tree.permute(perm)))
    )
    assert not before.alike
    for old, new in zip(before.materialize(), after.materialize(), strict=True):
        assert same_bits(old[perm], new)


@pytest.mark.parametrize("average", [None, True])
def test_a_hop_of_the_users_own_may_tell_nodes_apart(average):
    graph = star()
    own = np.diag(np.arange(8.0))
    channels = channels_of(graph, hop=own, average=average)
    assert not channels.alike
    assert ("averaged" in channels.info) is bool(average)
    assert len(np.unique(channels.rows(np.arange(8))[1], axis=0)) == 8


@given(graphs(), st.integers(0, 3), seeds)
def test_averaged_projections_are_operators(graph, scale, seed):
    system = pf.FrameletSystem(pf.build_tree(graph, "matching", h=2))
    scale = min(scale, system.K - 1)
    classes = np.random.default_rng(seed).integers(0, graph.n // 2, graph.n)
    mean = (classes[:, None] == classes) / np.bincount(classes)[classes]
    twin = mean @ (system.operator("projection", scale) @ np.eye(graph.n))
    assume(np.abs(twin).max() > 1e-6)  # of noise, one is not the transpose of the other
    check_operator(Projection(system, scale, classes), twin)


def test_means_of_equal_rows_are_these_rows():
    x = np.random.default_rng(0).random((4, 50))[[0, 1, 0, 2, 3, 0, 1]]
    from pegfan.framelets._signals import class_means

    assert same_bits(class_means(x, np.array([5, 2, 5, 0, 1, 5, 2])), x)
    assert same_bits(class_means(csr_array(x), np.array([5, 2, 5, 0, 1, 5, 2])), x)


# ------------------------------------------------------------- added channels and slices


def test_added_channels_tell_nodes_apart_that_look_alike():
    graph = star()
    mark = np.zeros(8)
    mark[3] = 1.0
    channels = pf.make_fsgnn_channels(graph, 1, "all")
    assert channels.alike
    marked = channels + [Channel("mark", None, mark)]  # noqa: RUF005
    places = marked.places
    assert len(np.unique(channels.places)) == 2
    assert len(np.unique(places)) == 3
    assert (places == places[3]).sum() == 1
    for old, new in zip(Channels(list(marked)).rows(np.arange(8)), marked.rows(np.arange(8)), strict=True):
        np.testing.assert_allclose(new, old, atol=1e-6)
    assert marked[1:].alike
    assert marked[1:].names == ("S X", "S~ X", "mark")
    assert not (channels + [Channel("own", hop_matrix(graph), mark)]).alike  # noqa: RUF005


@pytest.mark.long
@given(graphs(), seeds)
def test_training_with_added_channels_is_the_same(graph, seed):
    moved, perm = renumbered(graph, seed)
    extra = np.random.default_rng(seed).integers(0, 2, (graph.n, 2)) / 3
    for convert in (np.asarray, csr_array):
        check_added(graph, moved, perm, extra, convert)


def check_added(graph, moved, perm, extra, convert):
    runs, outputs = [], []
    for g, x in ((graph, extra), (moved, extra[perm])):
        channels = channels_of(g) + [Channel("extra", None, convert(x)), Channel("first", None, x[:, 0])]  # noqa: RUF005
        runs += pf.train(channels, g.labels, g.splits, SMALL, history=True).runs
        outputs.append(pf.training.Network(runs[-1].state, SMALL).predict(channels))
    assert_same_run(*runs)
    assert same_bits(outputs[0][perm], outputs[1])


# -------------------------------------------------------------------------- training


@pytest.mark.parametrize(("engine", "batch"), [("fast", None), ("plain", None), ("plain", 2)])
def test_training_on_a_star_is_the_same_bit_for_bit(engine, batch):
    check_training(star(), engine, batch, 3)


@pytest.mark.long
@given(graphs(), st.sampled_from([("fast", None), ("plain", None), ("plain", 3)]), seeds)
def test_training_is_the_same_bit_for_bit(graph, way, seed):
    check_training(graph, *way, seed)


def check_training(graph, engine, batch, seed):
    moved, perm = renumbered(graph, seed)
    runs, outputs = [], []
    for g in (graph, moved):
        channels = channels_of(g)
        runs += pf.train(channels, g.labels, g.splits, SMALL, engine=engine, batch=batch, history=True).runs
        network = pf.training.Network(runs[-1].state, SMALL)
        outputs.append(network.predict(channels))
        some = np.argsort(perm)[:4] if g is moved else np.arange(4)
        outputs.append(network.predict(channels, some))
    assert_same_run(*runs)
    assert same_bits(outputs[0][perm], outputs[2])
    assert same_bits(outputs[1], outputs[3])


def test_nodes_that_look_alike_keep_their_own_labels():
    graph = star(9)
    channels = pf.make_fsgnn_channels(graph, 1, "all")
    train = Split(np.array([1, 2, 3]), np.array([4]), np.array([5]))  # leaves: two of class 1, one of class 0
    run = pf.train(channels, graph.labels, train, {"epochs": 300, "dropout": 0.0, "patience": 300}, history=True).runs[
        0
    ]
    assert run.history["train_loss"][-1] == pytest.approx(np.log(3) - 2 / 3 * np.log(2), abs=1e-3)


# ----------------------------------------------------------------- classifiers and recipes

RECIPES = {
    "tree": {"method": "matching", "h": 2},
    "no tree": {"method": "none", "regime": "all"},
    "adjacency": {"method": "matching", "h": 2, "adjacency": True},
    "adjacency both ways": {"method": "none", "adjacency": True, "direction": "both"},
    "labels": {"method": "none", "labels": True},
    "labels by what is in between": {"method": "none", "labels": True, "between": True},
    "labels on a tree": {"method": "matching", "h": 2, "labels": True, "structure": True, "adjacency": True},
    "structure": {"method": "none", "structure": True},
    "columns": {"method": "matching", "h": 2, "scaling": "columns", "labels": True},
    "ward": {"method": "ward", "h": 3, "kind": "b", "regime": "homophily"},
}


def check_classifier(model, other, graph, seed, split=0):
    """Fit a graph and its renumbering, with the split renumbered; everything is the same."""
    moved, perm = renumbered(graph, seed)
    back = np.argsort(perm)
    own = Split(*(back[part] for part in split)) if isinstance(split, Split) else split
    model.fit(graph, split)
    other.fit(moved, own)
    for one, two in zip(model.fitted_.members, other.fitted_.members, strict=True):
        assert one.recipe == two.recipe
        assert_same_run(one.run, two.run)
    assert same_bits(model.predict_proba(graph)[perm], other.predict_proba(moved))
    assert np.array_equal(model.score(graph), other.score(moved), equal_nan=True)


def test_a_star_is_fitted_the_same_with_all_that_recipes_know():
    recipe = pf.Recipe.of({"regime": "all", "hops": 1, **RECIPES["labels on a tree"], **SMALL})
    check_classifier(pf.RecipeClassifier(recipe), pf.RecipeClassifier(recipe), star(), 1)


@pytest.mark.long
@given(st.sampled_from(list(RECIPES)), graphs(), seeds)
def test_recipes_are_fitted_the_same(name, graph, seed):
    recipe = pf.Recipe.of({"regime": "heterophily", "hops": 1, **RECIPES[name], **SMALL})
    check_classifier(pf.RecipeClassifier(recipe), pf.RecipeClassifier(recipe), graph, seed)


def test_hops_along_each_kind_of_edges_are_the_same_where_nodes_look_alike():
    spokes, ring = np.zeros((2, 15, 15))
    spokes[0, 1:] = spokes[1:, 0] = 1
    for i in range(1, 15):
        ring[i, 1 + i % 14] = ring[1 + i % 14, i] = 1
    graph = pf.Graph(
        spokes + ring,
        edge_matrices={"spokes": csr_array(spokes), "ring": csr_array(ring)},
        edge_kinds=["spokes", "ring"],
        features=np.ones((15, 1)),
        labels=np.arange(15) % 2,
        splits=[(np.arange(5), np.arange(5, 10), np.arange(10, 15))],
    )
    assert pf.trees.canonical_order(graph).tied == 14
    recipe = pf.Recipe.of({"method": "none", "regime": "heterophily", "hops": 1, "kinds": True, **SMALL})
    for seed in range(4):
        check_classifier(pf.RecipeClassifier(recipe), pf.RecipeClassifier(recipe), graph, seed)


@pytest.mark.long
@given(st.sampled_from([pf.PEGFANClassifier, pf.FSGNNClassifier]), graphs(), seeds)
def test_classifiers_are_fitted_the_same(kind, graph, seed):
    check_classifier(kind(regime="all", **SMALL), kind(regime="all", **SMALL), graph, seed)


@pytest.mark.long
@given(graphs(), seeds)
def test_degrees_stand_in_the_same(graph, seed):
    bare = graph.replace(features=None)
    models = [pf.PEGFANClassifier(regime="all", stand_in="degree", **SMALL) for _ in range(2)]
    check_classifier(*models, bare, seed)


@pytest.mark.long
@given(graphs(), seeds)
def test_draws_go_by_what_nodes_are(graph, seed):
    models = [pf.FSGNNClassifier(regime="all", random_state=3, **SMALL) for _ in range(2)]
    check_classifier(*models, graph, seed, split="random")
    part = Split(*(np.concatenate([graph.splits[0].train, graph.splits[0].val]), [], graph.splits[0].test))
    models = [pf.FSGNNClassifier(regime="all", random_state=3, **SMALL) for _ in range(2)]
    check_classifier(*models, graph, seed, split=Split(*(np.asarray(nodes, np.int64) for nodes in part)))


@given(graphs(features=("random",)), seeds)
def test_drawn_nodes_are_renumbered_where_none_look_alike(graph, seed):
    assume(canonical_order(graph).tied == 0)
    moved, perm = renumbered(graph, seed)
    for old, new in zip(draw_splits(graph, k=2), draw_splits(moved, k=2), strict=True):
        assert all(set(a) == set(perm[b]) for a, b in zip(old, new, strict=True))
    whole = Split(graph.splits[0].train, np.empty(0, np.int64), graph.splits[0].test)
    other = Split(np.argsort(perm)[whole.train], whole.val, np.argsort(perm)[whole.test])
    old, new = with_validation(graph, whole, 1), with_validation(moved, other, 1)
    assert all(set(a) == set(perm[b]) for a, b in zip(old, new, strict=True))


def test_a_random_split_is_drawn_again_for_the_score_where_degrees_stand_in():
    graph = pf.datasets.synthetic(0.0, n=80, n_edges=400, n_features=0, splits=0)
    model = pf.FSGNNClassifier(regime="all", stand_in="degree", **SMALL).fit(graph, "random")
    assert model.score() == model.score(graph) == model.run_.test_metric


@pytest.mark.long
def test_the_automatic_search_is_the_same():
    graph = pf.datasets.synthetic(0.2, n=120, n_edges=500, n_features=6, splits=1)
    options = {"budget": 1000.0, "pins": {"epochs": 5, "hidden": 8}, "members": 3}
    check_classifier(pf.AutoClassifier(**options), pf.AutoClassifier(**options), graph, 0)


def test_models_keep_columns_on_disk(tmp_path):
    graph = star()
    model = pf.RecipeClassifier(pf.Recipe.of({"h": 2, "adjacency": True, "regime": "all", **SMALL})).fit(graph)
    assert model.fitted_.known.columns.max() == 1
    again = pf.load_classifier(model.save(tmp_path / "model"))
    assert same_bits(again.predict_proba(graph), model.predict_proba())


@pytest.mark.long
@given(graphs(), seeds)
def test_a_saved_model_predicts_the_same(graph, seed):
    """On the renumbered graph it builds the tree again."""
    model = pf.PEGFANClassifier(h=2, regime="all", **SMALL).fit(graph)
    assume(model.tree_.info["arbitrary"] == 0)
    with TemporaryDirectory() as folder:
        again = pf.PEGFANClassifier.load(model.save(f"{folder}/model"))
    perm = np.random.default_rng(seed).permutation(graph.n)
    assert same_bits(again.predict_proba(graph.permute(perm)), model.predict_proba()[perm])


# ----------------------------------------------------------------------- order-free sums


@given(seeds, st.integers(1, 30), st.sampled_from([1.0, 1e-300, 1e200]))
def test_products_do_not_depend_on_the_order_of_their_terms(seed, n, unit):
    rng = np.random.default_rng(seed)
    a = csr_array(random_array((5, n), density=0.7, rng=rng, data_sampler=rng.standard_normal)) * unit
    x = rng.standard_normal((n, 3)) * 10.0 ** rng.integers(-3, 3, (n, 3))
    perm = rng.permutation(n)
    result = order_free_product(a, x)
    assert same_bits(order_free_product(a[:, perm], x[perm]), result)
    size = abs(a) @ abs(x)
    assert (np.abs(result - a @ x) <= 1e-14 * size).all()
    assert same_bits(order_free_product(a, x[:, 0]), result[:, 0])


def test_integers_are_added_exactly():
    a = csr_array(np.array([[2.0**52, 1.0, 1.0], [1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]))
    assert order_free_sums(a).tolist() == [2.0**52 + 2, 6.0, 0.0]


@given(graphs(weighted=(True,)), seeds)
def test_inputs_made_of_sums_are_renumbered_bit_for_bit(graph, seed):
    moved, perm = renumbered(graph, seed)
    assert same_bits(structural_features(graph)[perm], structural_features(moved))
    for kind in ("S", "S~", "random-walk"):
        for side in ("out", "in", "symmetric"):
            old, new = (Hop(g, kind, side).matrix for g in (graph, moved))
            assert same_bits(old[perm][:, perm], new)
    steps = [hop_matrix(graph, "random-walk")] * 2, [hop_matrix(moved, "random-walk")] * 2
    old, new = (pf.channels.propagated_labels(g, s) for g, s in zip((graph, moved), steps, strict=True))
    assert same_bits(old[perm], new)
    old, new = (FeatureScale.of(g.features * 30.0) for g in (graph, moved))
    assert same_bits(old.centre, new.centre)
    assert same_bits(old.scale, new.scale)


# ------------------------------------------------------------------------ canonical order


def test_the_order_of_a_graph_is_found_once(monkeypatch):
    graph = star(6)
    first = canonical_order(graph)
    monkeypatch.setattr("pegfan.trees.canonical.colouring_of", None)
    assert canonical_order(graph.replace(labels=None, splits=())) is first
    with pytest.raises(TypeError):
        canonical_order(graph, labels=graph.labels)
    with pytest.raises(ValueError, match="read-only"):
        first.order[0] = 1


def test_labels_count_where_they_are_given():
    graph = star(4)
    assert canonical_order(graph).tied == 4
    apart = canonical_order(graph, labels=np.array([0, 1, 2, 3, 4]))
    assert apart.tied == 0
    assert graph.labels[canonical_order(graph, labels=graph.labels).order].tolist() in (
        [0, 0, 0, 1, 1],
        [0, 1, 1, 0, 0],
    )
