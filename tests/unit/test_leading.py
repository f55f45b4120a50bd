"""Leading vectors: against NumPy's, renumbered, in models that predict other graphs, are saved, and explained."""

import hashlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import pegfan as pf
from pegfan._npz import read_npz, write_npz
from pegfan._saved import _checksum
from pegfan.channels import PrincipalColumns, hop_matrix, make_fsgnn_channels, principal_vectors, spectral_vectors
from pegfan.channels.leading import COUNT, _dots, _eigen
from pegfan.explain import Explainer
from pegfan.fitted import Fitted
from pegfan.importance import permutation_importance
from pegfan.recipe import Known, Recipe
from pegfan.trees import canonical_order

seeds = st.integers(0, 2**32 - 1)
MORE = [{"spectrum": True}, {"scaling": "principal"}, {"scaling": "principal", "labels": True, "spectrum": True}]
DIGESTS = ["a56d80fecbf1c134", "5351ed033ef58269"]
QUICK = {"epochs": 8, "hidden": 4}
HEADS = [{"method": "none", "hops": 1, **QUICK}, {"method": "none", "hops": 1, "head": "boosting", "epochs": 8}]


@pytest.fixture(scope="module")
def graph():
    """Directed and named, with labels and a split."""
    made = pf.datasets.synthetic(0.1, n=120, n_edges=700, n_features=6, splits=1)
    return pf.Graph(
        sparse.csr_array(np.triu(made.adjacency.toarray())),
        directed=True,
        features=made.features,
        labels=made.labels,
        splits=made.splits,
        node_names=[f"n{i}" for i in range(120)],
    )


def symmetric(graph):
    return hop_matrix(graph, "S", "symmetric").toarray()


# ------------------------------------------------------------------------- vectors


@given(st.integers(1, 40), seeds)
def test_small_eigenproblems_are_those_of_numpy(size, seed):
    matrix = np.random.default_rng(seed).standard_normal((size, size))
    matrix += matrix.T
    values, vectors = _eigen(matrix)
    np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(matrix), atol=1e-12 * size)
    np.testing.assert_allclose(vectors @ np.diag(values) @ vectors.T, matrix, atol=1e-12 * size)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(size), atol=1e-12)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 300), seeds)
def test_products_of_rows_do_not_depend_on_the_order_of_terms(rows, others, n, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((rows, n)) * 10.0 ** rng.integers(-9, 9), rng.standard_normal((others, n))
    perm = rng.permutation(n)
    found = _dots(a, b)
    np.testing.assert_array_equal(_dots(a[:, perm], b[:, perm]), found)
    sizes = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)
    assert (np.abs(found - a @ b.T) <= 1e-9 * sizes).all()


@given(st.integers(1, 80), st.integers(1, 60), seeds, st.booleans())
def test_principal_vectors_span_what_numpys_do(n, d, seed, as_sparse):
    """Of a matrix whose singular values fall off; as many as its rank."""
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.7)) * 2.0 ** -np.arange(d)
    vectors = principal_vectors(sparse.csr_array(x) if as_sparse else x)
    values = np.linalg.svd(x, compute_uv=False)
    rank = int((values > 1e-4 * values[0]).sum()) if values[0] else 1
    assert min(rank, COUNT) <= vectors.shape[1] <= min(n, d, COUNT)
    if values[0]:
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(vectors.shape[1]), atol=1e-6)
        kept = np.linalg.norm(x @ vectors, axis=0)
        np.testing.assert_allclose(kept[:rank], values[: len(kept)][:rank], rtol=1e-3)
        assert (vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])] > 0).all()


@given(st.integers(1, 60), st.integers(1, 50), seeds)
def test_principal_vectors_do_not_depend_on_the_order_of_rows(n, d, seed):
    rng = np.random.default_rng(seed)
    x = sparse.random_array((n, d), density=0.3, rng=rng, format="csr")
    perm = rng.permutation(n)
    np.testing.assert_array_equal(principal_vectors(x), principal_vectors(x[perm]))


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1e200])
def test_principal_vectors_of_tiny_and_huge_numbers(size):
    x = np.array([[3.0, 4.0], [4.0, -3.0], [3.0, 4.0]]) * size
    np.testing.assert_allclose(principal_vectors(x), [[0.6, 0.8], [0.8, -0.6]], atol=1e-9)
    assert principal_vectors(np.zeros((3, 2))).shape == (2, 1)


def test_spectral_vectors_are_those_of_the_largest_values(graph):
    """Two groups that are joined by few edges: values that stand out, of which the largest ones are found."""
    step, classes = symmetric(graph), canonical_order(graph).classes
    vectors = spectral_vectors(graph)[classes] / np.sqrt(graph.n)
    assert vectors.shape == (120, COUNT)
    values = np.sort(np.abs(np.linalg.eigvalsh(step)))[::-1]
    found = np.linalg.norm(step @ vectors, axis=0)
    assert abs(found[0] - 1) < 1e-6
    np.testing.assert_allclose(found[:8], values[:8], rtol=0.02)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(COUNT), atol=1e-6)


@given(st.integers(1, 40), seeds)
def test_spectral_vectors_of_a_renumbered_graph_are_the_same(n, seed):
    rng = np.random.default_rng(seed)
    graph = pf.Graph(sparse.random_array((n, n), density=0.1, rng=rng, format="csr"), directed=True)
    moved = graph.permute(rng.permutation(n))
    if not canonical_order(graph).arbitrary:
        np.testing.assert_array_equal(spectral_vectors(graph), spectral_vectors(moved))


def test_every_machine_finds_the_same_bits():
    """Digests that were made once; products of matrices may be anybody's, for their sums are exact."""
    i = np.arange(500)
    edges = np.concatenate([np.column_stack([i, (i * i + step) % 500]) for step in (1, 7, 30)])
    x = (i[:, None] * np.arange(1, 61) % 17 == 3) * (1.0 + i[:, None] % 5) / 3
    found = spectral_vectors(pf.Graph.from_edges(edges, directed=True)), principal_vectors(x)
    assert [hashlib.sha256(vectors.tobytes()).hexdigest()[:16] for vectors in found] == DIGESTS


def test_nodes_that_look_alike_share_a_place_and_a_bare_graph_has_none():
    ring = pf.Graph.from_edges([[i, (i + 1) % 6] for i in range(6)])
    vectors = spectral_vectors(ring)
    np.testing.assert_allclose(vectors[0], [1.0] + [0.0] * (COUNT - 1), atol=1e-12)
    assert len(vectors) == 1
    bare = Recipe("none", hops=0, spectrum=True).channels(
        ring.replace(adjacency=sparse.csr_array((6, 6)), features=np.eye(6)), None
    )
    assert not bare["spectrum"].materialize(format="dense").any()


# -------------------------------------------------------------------------- models


def places(graph, known=None):
    channel = Recipe("none", hops=0, spectrum=True).channels(graph, None, known=known)["spectrum"]
    return channel.materialize(np.float64, "dense")


def test_the_channel_is_the_vectors_after_one_hop(graph):
    vectors = spectral_vectors(graph)[canonical_order(graph).classes]
    np.testing.assert_allclose(places(graph), symmetric(graph) @ vectors, atol=1e-12)
    perm = np.random.default_rng(1).permutation(120)
    np.testing.assert_array_equal(places(graph.permute(perm)), places(graph)[perm])


def test_new_nodes_have_a_place_by_their_neighbours(graph):
    """Vectors are those of the fitted graph, and hops those of the graph itself."""
    part = graph.subgraph(np.arange(100))
    known = Known.of(part, np.arange(10))
    with pytest.raises(ValueError, match="lacks the vectors"):
        places(graph, known)
    told = Known(known.codes, known.names, known.classes, known.columns, vectors=spectral_vectors(part))
    np.testing.assert_array_equal(places(part, told), places(part))
    vectors = np.vstack([spectral_vectors(part)[known.columns], np.zeros((20, COUNT))])
    np.testing.assert_allclose(places(graph, told), symmetric(graph) @ vectors, atol=1e-12)
    perm = np.random.default_rng(1).permutation(120)
    np.testing.assert_array_equal(places(graph.permute(perm), told), places(graph, told)[perm])


@pytest.mark.parametrize("words", HEADS)
@pytest.mark.parametrize("more", MORE)
def test_models_predict_renumbered_and_other_graphs_and_come_back(graph, words, more, tmp_path):
    model = pf.RecipeClassifier(Recipe.of({**words, **more})).fit(graph)
    found = model.predict_proba(graph)
    perm = np.random.default_rng(2).permutation(120)
    moved = graph.permute(perm)
    assert model.predict_proba(moved).tobytes() == found[perm].tobytes()
    again = pf.RecipeClassifier(model.recipe).fit(moved)
    assert again.predict_proba(moved).tobytes() == found[perm].tobytes()
    part = graph.subgraph(np.arange(50, 120))
    loaded = pf.load_classifier(model.save(tmp_path / "model"))
    assert loaded.predict_proba(graph).tobytes() == found.tobytes()
    assert loaded.predict_proba(part).tobytes() == model.predict_proba(part).tobytes()


@pytest.mark.parametrize("words", HEADS)
@pytest.mark.parametrize("more", MORE)
def test_reasons_add_up(graph, words, more):
    model = pf.RecipeClassifier(Recipe.of({**words, **more, "structure": True})).fit(graph)
    explainer = Explainer(model.fitted_)
    for found in explainer.explain([3, 50], top=None):
        whole = pytest.approx(found.score - found.average, abs=1e-6)
        assert sum(share.contribution for share in found.columns) == whole
        assert sum(share.contribution for share in found.channels) == whole
        assert sum(share.contribution for share in found.nodes) + sum(found.rest.values()) == whole
        assert sum(reason.contribution for reason in found.reasons) == whole
    assert all(explainer.texts([3, 50]))


def test_scores_and_importances_are_those_of_the_columns(graph):
    """A column that decides is found, through mixtures of columns."""
    rng = np.random.default_rng(0)
    x = rng.random((120, 40)) * 0.1
    x[:, 7] = graph.labels % 2
    told = graph.replace(features=x, labels=graph.labels % 2)
    for words in HEADS:
        recipe = Recipe.of({**words, "scaling": "principal", "labels": True, "epochs": 40})
        model = pf.RecipeClassifier(recipe).fit(told)
        explainer = Explainer(model.fitted_)
        total = dict.fromkeys(explainer.names, 0.0)
        for found in explainer.explain(np.arange(40)):
            p = model.predict_proba(told)[found.node].max()
            assert found.probability == pytest.approx(p, abs=1e-4)
            for share in found.columns:
                total[share.name] = total.get(share.name, 0.0) + abs(share.contribution) * (share.value is not None)
        assert max(total, key=total.__getitem__) == "column 7"
        rows, left = permutation_importance(explainer, told.labels, told.splits[0].test, "accuracy", most=5)
        assert (rows[0].name, left) == ("column 7", 35)


def test_both_scales_are_kept_side_by_side(graph, tmp_path):
    recipes = [{**HEADS[0], "scaling": scaling} for scaling in ("columns", "principal", "none")]
    model = pf.AutoClassifier(recipes=recipes, choose="mean").fit(graph)
    assert {member.recipe.scaling for member in model.members_} == {"columns", "principal", "none"}
    part = graph.subgraph(np.arange(30, 120))
    loaded = pf.load_classifier(model.save(tmp_path / "model"))
    assert loaded.predict_proba(part).tobytes() == model.predict_proba(part).tobytes()
    kept = loaded.fitted_
    assert (kept.scale is not None, kept.principal is not None) == (True, True)
    np.testing.assert_array_equal(kept.principal.vectors, principal_vectors(graph.features))


def test_principal_columns_are_those_of_the_fitted_graph(graph):
    fitted, part = PrincipalColumns.of(graph.features), graph.subgraph(np.arange(40))
    channels = make_fsgnn_channels(part, 1, "heterophily", scaling=fitted)
    assert channels.info["scaling"] == "principal"
    x = channels["X"].materialize(np.float64, "dense")
    np.testing.assert_allclose(x, part.features @ principal_vectors(graph.features), rtol=1e-6)
    assert PrincipalColumns.of_graph(graph) is PrincipalColumns.of_graph(graph)
    same = make_fsgnn_channels(graph, 1, "heterophily", scaling="principal")["X"].materialize(np.float64, "dense")
    np.testing.assert_array_equal(same, fitted.apply(graph.features))


def test_other_members_find_what_they_need(graph):
    """As where folds take the place of the members that were chosen first."""
    model = pf.RecipeClassifier(Recipe.of({**HEADS[0], "spectrum": True, "scaling": "principal"})).fit(graph)
    first = pf.RecipeClassifier(Recipe.of(HEADS[0])).fit(graph).fitted_
    bag, alone = (
        Fitted.of(model.fitted_.members, graph, first.split, first.seed, stood_in=False, known=known)
        for known in (Known.of_folds(graph, graph.splits), None)
    )
    assert bag.known.folds is not None
    assert alone.raw().tobytes() == model.fitted_.raw().tobytes()
    assert bag.raw().tobytes() == model.fitted_.raw().tobytes()


def test_a_grown_graph_keeps_its_vectors(graph, tmp_path):
    old = np.arange(100)
    model = pf.RecipeClassifier(Recipe.of({**HEADS[0], "spectrum": True})).fit(graph.subgraph(old), "random")
    places = np.where(np.arange(120) < 100, np.arange(120), -1)
    after = model.extended(graph, places)
    assert after.predict_proba().tobytes() == model.predict_proba(graph).tobytes()
    loaded = pf.load_classifier(after.save(tmp_path / "model"))
    assert loaded.predict_proba(graph).tobytes() == after.predict_proba().tobytes()


def test_numbers_have_a_place_too(graph, tmp_path):
    told = graph.replace(labels=None, targets=graph.labels + graph.features[:, 0], metric="r2")
    recipe = {**HEADS[1], "spectrum": True, "regime": "heterophily"}
    model = pf.AutoRegressor(recipes=[recipe]).fit(told, "random")
    loaded = pf.load_model(model.save(tmp_path / "model"))
    assert loaded.predict(told).tobytes() == model.predict(told).tobytes()


def rewrite(folder, change):
    """Change the arrays of a saved model, with checksums that fit."""
    arrays = read_npz(folder / "inputs.npz")
    change(arrays)
    write_npz(folder / "inputs.npz", arrays)
    about = json.loads((folder / "model.json").read_text())
    about["files"]["inputs.npz"] = hashlib.sha256((folder / "inputs.npz").read_bytes()).hexdigest()
    del about["checksum"]
    (folder / "model.json").write_text(json.dumps({**about, "checksum": _checksum(about)}))


HOSTILE = [
    ("spectrum", lambda a: a.pop("vectors"), "lacks the vectors"),
    ("spectrum", lambda a: a.update(vectors=a["vectors"][:5]), "do not fit its nodes"),
    ("spectrum", lambda a: a.update(vectors=a["vectors"] * np.nan), "do not fit its nodes"),
    ("spectrum", lambda a: a.update(vectors=a["vectors"].astype(np.complex128)), "do not fit its nodes"),
    ("spectrum", lambda a: a.update(vectors=a["vectors"][:, :9].copy()), "lacks the vectors"),
    ("spectrum", lambda a: a.pop("columns"), "not a usable model"),
    ("principal", lambda a: a.pop("principal"), "lacks the principal columns"),
    ("principal", lambda a: a.update(principal=a["principal"][:3]), "do not fit the 6 feature columns"),
    ("principal", lambda a: a.update(principal=np.full((6, 6), np.inf)), "do not fit the 6 feature columns"),
    ("principal", lambda a: a.update(principal=a["principal"][:, :2].copy()), "lacks the principal columns"),
]


@pytest.mark.parametrize(("what", "change", "told"), HOSTILE)
def test_hostile_files_are_refused(graph, what, change, told, tmp_path):
    recipe = Recipe.of({**HEADS[0], "epochs": 1, **({"spectrum": True} if what == "spectrum" else {"scaling": what})})
    folder = pf.RecipeClassifier(recipe).fit(graph).save(tmp_path / "model")
    rewrite(folder, change)
    with pytest.raises(ValueError, match=told):
        pf.load_classifier(folder)
