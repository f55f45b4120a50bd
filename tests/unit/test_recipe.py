"""A recipe: one value for a model, with the same defaults everywhere, and the same model by every path."""

import contextlib
import dataclasses
import importlib
import inspect
import json
import os
import pkgutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import pegfan as pf
from pegfan import _defaults as default
from pegfan import demo
from pegfan._npz import write_npz
from pegfan.channels import FeatureScale, names
from pegfan.datasets import Source
from pegfan.experiments import Job, run_job
from pegfan.graph import Split
from pegfan.recipe import CHOICES, FIELDS, Known, Recipe, TreeFile
from pegfan.training import Network
from support.training import train_recipe

FULL = {
    "method": "matching",
    "h": 4,
    "regime": "all",
    "direction": "both",
    "scaling": "columns",
    "adjacency": True,
    "labels": True,
    "structure": True,
    "epochs": 12,
    "hidden": 8,
}

CHOICES = {
    "method": st.sampled_from(CHOICES["method"]),
    "h": st.integers(2, 12),
    "max_levels": st.none() | st.integers(2, 9),
    "kind": st.sampled_from(CHOICES["kind"]),
    "regime": st.sampled_from(["auto", "heterophily", "homophily", "all"]),
    "hops": st.integers(0, 9),
    "direction": st.sampled_from(["out", "in", "symmetric", "both", "words"]),
    "scaling": st.sampled_from(["none", "l1", "columns", "principal"]),
    "include_features": st.booleans(),
    "adjacency": st.booleans(),
    "labels": st.booleans(),
    "structure": st.booleans(),
    "hidden": st.integers(1, 100),
    "layers": st.integers(2, 4),
    "dropout": st.floats(0, 0.9),
    "hop_normalize": st.booleans(),
    **dict.fromkeys(("lr_fc", "lr_sca", "wd_fc1", "wd_fc2", "wd_sca"), st.floats(0, 1)),
    "epochs": st.integers(1, 3000),
    "patience": st.integers(1, 300),
    "stop": st.sampled_from(["loss", "metric"]),
    "class_weights": st.booleans(),
    "weight": st.none() | st.sampled_from(["count", "amount sum"]),
    "kinds": st.booleans(),
    "head": st.sampled_from(["network", "boosting", "linear"]),
    "leaves": st.integers(2, 40),
    "spectrum": st.booleans(),
    "between": st.booleans(),
    "stages": st.integers(1, 2),
}
REFUSED = (("adjacency", "boosting"), ("stages", "linear"))
WORDS = st.fixed_dictionaries({}, optional=CHOICES).map(
    lambda words: {k: v for k, v in words.items() if (k, words.get("head")) not in REFUSED}
)
TREE_FILES = st.none() | st.builds(TreeFile, st.sampled_from(["a.npz", "b.npz"]), st.sampled_from(["0" * 64, "f" * 64]))
RECIPES = st.builds(lambda words, file: Recipe.of(words).changed(tree_file=file), WORDS, TREE_FILES)


@pytest.fixture(scope="module")
def graph():
    """Directed, with named nodes and classes, features of different scales, and unlabelled nodes."""
    made = pf.datasets.synthetic(0.1, n=120, n_edges=700, n_features=6, splits=2)
    labels = made.labels.copy()
    labels[np.random.default_rng(1).choice(120, 10, replace=False)] = -1
    return pf.Graph(
        csr_array(np.triu(made.adjacency.toarray())),
        directed=True,
        features=np.asarray(made.features) * [1, 1, 1, 1, 1, 1000],
        labels=labels,
        splits=[Split(*(part[labels[part] >= 0] for part in split)) for split in made.splits],
        node_names=[f"n{i}" for i in range(120)],
        class_names=["red", "green", "blue", "white"],
    )


def dense(channel):
    return channel.materialize(np.float64, "dense")


# ---------------------------------------------------------------------- as a value


def test_every_field_and_setting_is_drawn():
    assert set(CHOICES) | {"tree_file"} == set(FIELDS)


@given(RECIPES)
def test_a_recipe_survives_a_round_trip_through_plain_values(recipe):
    again = Recipe.of(json.loads(json.dumps(recipe.to_dict())))
    assert again == recipe
    assert (hash(again), again.key, again.name) == (hash(recipe), recipe.key, recipe.name)


@given(RECIPES, RECIPES, WORDS)
def test_recipes_that_differ_differ_in_key_name_and_stored_form(one, other, changes):
    assume(not (one.adjacency and changes.get("head") == "boosting"))  # which is refused
    assume(not (one.is_boosted and changes.get("adjacency") and "head" not in changes))
    merged = {"labels": one.labels, "stages": one.stages, "head": one.head, **changes}
    assume(not (merged["labels"] and merged["stages"] == 2 and merged["head"] == "linear"))
    for two in (other, one.changed(**changes)):
        same = one == two
        assert (one.key == two.key) is same
        assert (one.to_dict() == two.to_dict()) is same
        if one.tree_file is None or two.tree_file is None:
            assert (one.name == two.name) is same


@pytest.mark.parametrize("words", [{"kind": "b"}, {"kind": "a", "direction": "both"}, {"method": "none"}])
def test_hops_are_told_apart(words):
    recipes = [Recipe.of({**words, "hops": hops}) for hops in (0, 1, 2)]
    assert len({recipe.key for recipe in recipes}) == len({recipe.name for recipe in recipes}) == 3


@given(WORDS, WORDS)
def test_changes_come_one_by_one_or_together(first, second):
    both = {**first, **second}
    assume(not both.get("adjacency") or both.get("head") != "boosting")
    assume(both.get("stages") != 2 or both.get("head") != "linear")  # refused, as it should be
    assert Recipe.of(first).changed(**second) == Recipe.of(first).changed(**second).changed(**second)
    if not {"head"} & {*first, *second} and not {"method", "hops", "kind", "direction", "adjacency"} & {
        *first,
        *second,
    }:  # nothing becomes idle
        assert Recipe.of(first).changed(**second) == Recipe.of({**first, **second})


def test_keys_stay_what_they_are():
    """Runs are stored by them."""
    assert Recipe().key == "b4033975b2b79b7e"
    words = {"method": "ward", "h": 4, "kind": "b", "regime": "heterophily", "labels": True, "lr_fc": 0.02}
    assert Recipe.of(words).key == "b1c84df6c53a7d4b"
    assert Recipe.of({**words, "hidden": 64}).key == Recipe.of(words).key != Recipe.of({**words, "hidden": 32}).key


def test_fields_that_make_no_difference_are_at_their_defaults():
    assert Recipe("none", h=3, max_levels=4, kind="a") == Recipe("none")
    assert Recipe("none", hops=0, regime="all", direction="in") == Recipe("none", hops=0)
    assert Recipe("none", hops=0, adjacency=True, direction="in").direction == "in", "rows of A have a side"
    assert Recipe("ward", kind="a", hops=7) == Recipe("ward", kind="a")
    assert Recipe("ward", kind="a", hops=7, direction="both").hops == 7
    assert Recipe("ward", kind="as", direction="words") == Recipe("ward", kind="as")
    file = TreeFile("t.npz", "0" * 64)
    assert Recipe("ward", 4, 5, tree_file=file) == Recipe(tree_file=file)
    assert Recipe("none", tree_file=file).has_tree


def test_what_equals_a_default_is_no_difference():
    assert Recipe.of({"lr_fc": 0.01, "wd_fc1": 0, "hidden": np.int64(64), "h": np.int64(8)}) == Recipe()
    assert Recipe.of({"adjacency": np.True_}).to_dict()["adjacency"] is True
    assert Recipe(settings={"epochs": 3}) == Recipe.of({"epochs": 3}) == Recipe().changed(settings={"epochs": 3})
    assert Recipe.of({"epochs": 3}).changed(settings={"lr_fc": 0.1}).settings == pf.Settings(lr_fc=0.1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Recipe().h = 3


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"method": "wart"}, "method must be one of auto, none, .*ward.*; got 'wart'"),
        ({"method": lambda level, h: 0}, r"build_tree\(graph, builder\).*make_channels"),
        ({"kind": "d"}, "kind must be one of a, b, c, as"),
        ({"regime": "hetero"}, "regime must be one of auto"),
        ({"direction": "up"}, "direction must be one of"),
        ({"scaling": False}, "scaling must be one of none, l1, columns, principal; got False"),
        ({"hops": -1}, "hops must be at least 0, got -1"),
        ({"hops": 100_000}, "hops must be at most 100, got 100000"),
        ({"leaves": 10**9}, "leaves must be at most 4,096"),
        ({"hidden": 10**6}, "hidden must be at most 4,096"),
        ({"layers": 1000}, "layers must be at most 64"),
        ({"h": True}, "h must be an integer"),
        ({"h": 2.5}, "h must be an integer"),
        ({"max_levels": 1}, "max_levels must be at least 2, got 1"),
        ({"adjacency": 1}, "adjacency must be true or false"),
        ({"epoch": 3}, "a recipe has no 'epoch'; it has adjacency, .*, and the settings class_weights, .*epochs"),
        ({"dropout": 2.0}, "dropout must be below 1"),
        ({"tree_file": "tree.npz"}, "tree_file must be the name of a file and its SHA-256"),
    ],
)
def test_wrong_recipes_are_refused(wrong, match):
    with pytest.raises((TypeError, ValueError), match=match):
        Recipe.of(wrong)


@pytest.mark.parametrize(
    ("kind", "powers", "projects"), [("a", False, False), ("b", True, False), ("c", True, True), ("as", False, True)]
)
def test_what_a_kind_needs_of_the_hops(kind, powers, projects):
    assert (Recipe(kind=kind).has_powers, Recipe(kind=kind).projects_hops) == (powers, projects)
    bare = Recipe("none", kind=kind)
    assert (bare.has_powers, bare.projects_hops) == (True, False)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ({}, "c auto h=8 S?^3 l1"),
        ({"method": "none", "hops": 0, "scaling": "none"}, "X alone unscaled"),
        ({"method": "none", "regime": "all", "hops": 2, "direction": "both"}, "S^2, S~^2 both l1"),
        ({"method": "none", "regime": "heterophily", "direction": "words"}, "S^3 words l1"),
        ({"method": "ward", "kind": "a", "max_levels": 7, "include_features": False}, "a ward h=8 K<=7 S? l1 -X"),
        ({"tree_file": ("cora_h4.npz", "0"), "regime": "homophily", "hops": 1}, "c cora_h4.npz S~ l1"),
        (FULL, "c matching h=4 S^3, S~^3 both columns +A +Y +degrees, hidden=8, epochs=12"),
    ],
)
def test_names_by_example(words, name):
    assert Recipe.of(words).name == name


# --------------------------------------------------------------------- on a graph


def test_auto_is_settled_by_the_training_nodes(graph):
    assert Recipe().settled(graph, 0) == Recipe(regime="heterophily")
    same = graph.replace(labels=np.zeros(120, int), class_names=None)
    assert Recipe().settled(same, 0) == Recipe(regime="homophily")
    for recipe in (Recipe(kind="a"), Recipe("none", hops=0), Recipe(regime="all")):
        assert recipe.settled(graph, None) is recipe, "there is nothing to settle"


def test_the_regime_of_words_makes_no_difference(graph):
    words = [Recipe("none", direction="words", regime=regime) for regime in ("auto", "homophily", "all")]
    assert {recipe.settled(graph, None) for recipe in words} == {words[0].changed(regime="heterophily")}
    undirected = graph.symmetrize()
    assert [words[0].settled(undirected, 0).regime, words[2].settled(undirected, 0).regime] == ["heterophily", "all"]
    projected = Recipe("ward", kind="c", direction="words")
    assert projected.settled(graph, 0).regime == "heterophily"
    assert projected.changed(regime="homophily").settled(graph, 0).regime == "homophily"


@pytest.mark.parametrize("words", [{"method": "none"}, {"kind": "b"}, {"kind": "c"}, {"kind": "a"}])
@pytest.mark.parametrize("direction", ["out", "symmetric", "both", "words"])
@pytest.mark.parametrize("regime", ["homophily", "all"])
def test_the_number_of_hops_is_known_beforehand(graph, words, direction, regime):
    recipe = Recipe.of({**words, "hops": 2, "direction": direction, "regime": regime})
    tree = pf.Hierarchy.from_nested([list(range(60)), list(range(60, 120))]) if recipe.has_tree else None
    for one in (graph, graph.symmetrize()):
        found = [channel for channel in recipe.channels(one, tree) if names.group(channel) == "hops"]
        assert len(found) == recipe.hop_count(one.directed)


def test_a_tree_comes_from_its_file_and_no_other(graph, tmp_path):
    tree = pf.build_tree(graph, "ward", 4)
    levels = np.array([tree.labels(level) for level in range(tree.K, 0, -1)])
    path = write_npz(tmp_path / "tree.npz", {"labels": levels[:-1]})
    recipe = Recipe(tree_file=TreeFile.of(path))
    read = recipe.build_tree(graph, trees=tmp_path)
    assert read.n_clusters == tree.n_clusters  # the root, which is missing, is added
    assert read.info["sha256"] == recipe.tree_file.sha256
    with pytest.raises(ValueError, match="say with trees="):
        recipe.build_tree(graph)
    write_npz(path, {"labels": levels[1:]})
    with pytest.raises(ValueError, match="SHA-256 differs"):
        recipe.build_tree(graph, trees=tmp_path)
    for name in ("../tree.npz", "/etc/passwd"):
        with pytest.raises(ValueError, match="plain name"):
            TreeFile(name, "0").read(tmp_path)
    other = write_npz(tmp_path / "other.npz", {"levels": levels})
    with pytest.raises(ValueError, match="no array 'labels'"):
        TreeFile.of(other).read(tmp_path)
    small = write_npz(tmp_path / "small.npz", {"labels": np.zeros((1, 5), int)})
    with pytest.raises(ValueError, match="tree of 5 nodes"):
        Recipe(tree_file=TreeFile.of(small)).build_tree(graph, trees=tmp_path)


def test_a_tree_has_as_many_levels_as_asked_for(graph):
    recipe = Recipe("ward", 4)
    for levels in (2, 3, 9):
        assert recipe.build_tree(graph, levels=levels).K == levels
    assert Recipe("none").build_tree(graph) is None


def test_no_channel_of_a_recipe_knows_a_nodes_own_label(graph):
    train = graph.splits[0].train
    known = Known.of(graph, train)
    recipe, tree = Recipe.of(FULL), pf.build_tree(graph, "matching", 4)
    before = recipe.channels(graph, tree, known=known)
    changed_somewhere = False
    for node in train[:6]:
        codes = known.codes.copy()
        codes[node] = (codes[node] + 1) % 4
        after = recipe.channels(graph, tree, known=dataclasses.replace(known, codes=codes))
        for one, two in zip(before, after, strict=True):
            assert np.allclose(dense(one)[node], dense(two)[node], atol=1e-12), one.name
            changed_somewhere |= not np.allclose(dense(one), dense(two))
    assert changed_somewhere, "other nodes do see it"


def test_only_training_labels_reach_the_channels(graph):
    known = Known.of(graph, graph.splits[0].train)
    assert (known.codes >= 0).sum() == len(graph.splits[0].train)
    assert (known.codes[graph.splits[0].val] == -1).all()
    assert (known.codes[graph.splits[0].test] == -1).all()
    with pytest.raises(ValueError, match="pass split= or known="):
        Recipe("none", hops=0, labels=True).channels(graph, None, split=None)


def test_channels_have_the_names_that_the_recipe_asks_for(graph):
    channels = Recipe("none", regime="all", hops=1, direction="both").channels(graph, None)
    assert channels.names == ("X", "S X", "S~ X", "S_in X", "S~_in X")
    tree = pf.Hierarchy.from_nested([list(range(60)), list(range(60, 120))])
    full = Recipe("ward", kind="b", hops=1, adjacency=True, labels=True).channels(graph, tree, split=0)
    assert full.names == ("X", "S X", "F_0 X", "F_1 X", "F_2 X", "A", "Y near", "Y far", "Y X")
    columns = pf.trees.canonical_order(graph).classes
    assert np.array_equal(dense(full["A"])[:, columns], graph.adjacency.toarray())
    against = Recipe("none", hops=0, adjacency=True, direction="in").channels(graph, None, split=0)
    assert np.array_equal(dense(against["A"])[:, columns], graph.adjacency.toarray().T)


def test_rows_of_the_adjacency_follow_the_nodes_names(graph):
    known = Known.of(graph, graph.splits[0].train)
    perm = np.random.default_rng(3).permutation(120)
    moved = Recipe("none", hops=0, adjacency=True).channels(graph.permute(perm), None, known=known)["A"]
    assert np.array_equal(dense(moved)[:, known.columns], graph.adjacency.toarray()[perm])


def test_new_nodes_have_no_label_and_no_column(graph):
    known = Known.of(graph, graph.splits[0].train)
    fewer = graph.subgraph(np.arange(20, 60)).replace(node_names=[*(f"n{i}" for i in range(20, 50)), *"abcdefghij"])
    assert known.places(fewer).tolist() == [*range(20, 50), *[-1] * 10]
    assert known.labels_of(fewer).tolist() == [*known.codes[20:50], *[-1] * 10]
    assert Recipe("none", hops=0, adjacency=True).channels(fewer, None, known=known)["A"].shape == (40, 120)


def test_nodes_without_names_are_called_by_their_numbers(graph):
    """Tables whose ids are 0, ..., n - 1 in order make graphs without names, and in another order graphs with them."""
    bare = graph.replace(node_names=None)
    known = Known.of(bare, graph.splits[0].train)
    for told in (known, known.hashed("salt")):
        assert told.places(bare).tolist() == list(range(120))
        assert told.places(bare.subgraph(np.arange(40))).tolist() == list(range(40))
        names = [7, 3, 500, 0, *range(200, 316)]
        assert told.places(bare.replace(node_names=names)).tolist() == [7, 3, -1, 0, *[-1] * 116]
    named = Known.of(graph.replace(node_names=np.arange(120)[::-1]), graph.splits[0].train)
    for told in (named, named.hashed("salt")):
        assert told.places(bare).tolist() == list(range(119, -1, -1))
    assert Known.of(graph, graph.splits[0].train).places(bare).max() == -1, "n0 is not 0"


# ----------------------------------------------------------------------- features


@pytest.mark.parametrize("sparse", [False, True])
def test_scaled_features_do_not_depend_on_units_or_storage(sparse):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 4)) * [1.0, 3.0, 1.0, 1.0]
    x[:, 2] = rng.random(50) < 0.1
    x[:, 3] = np.exp(rng.normal(5, 3, 50))
    scale = FeatureScale.of(csr_array(x) if sparse else x)
    got = scale.apply(csr_array(x) if sparse else x)
    got = got.toarray() if sparse else got
    got = got[:, [1, 2, 0, 3]] if sparse else got  # centred columns come last in sparse features
    assert scale.full.tolist() == [True, True, False, True]
    assert np.allclose(got[:, [0, 1, 3]].mean(axis=0), 0, atol=1e-6)
    assert np.allclose(got[:, [0, 1, 3]].std(axis=0), 1, atol=1e-5)
    assert np.array_equal(got[:, 2], x[:, 2]), "a bag of words stays"
    assert np.allclose(got[:, 3], (lambda v: (v - v.mean()) / v.std())(np.log1p(x[:, 3])), atol=1e-5)


def test_a_constant_column_scales_to_something_finite():
    x = np.column_stack([np.full(9, 7.0), np.full(9, 1e6), np.zeros(9)])
    assert np.isfinite(FeatureScale.of(x).apply(x)).all()
    assert np.isfinite(FeatureScale.of(csr_array(x)).apply(csr_array(x)).toarray()).all()


# ----------------------------------------------------------------------- defaults

WORDS_OF_ALL = {
    **{name.lower(): value for name, value in vars(default).items() if name.isupper()},
    **{field.name: field.default for field in dataclasses.fields(pf.Settings)},
    "include_features": Recipe.include_features,
    "max_levels": None,
    "random_state": default.SEED,
}
ELSEWHERE = {
    "channels.factors.Hop": {"kind": "S"},  # of a hop matrix, not of channels
    "channels.hops.hop_matrix": {"kind": "S"},
    "classifier.NodeModel.score": {"split": None},  # the one that was fitted
    "classifier.PEGFANRegressor": {"scaling": "columns"},  # sizes count for numbers, which shares of rows would lose
    "paper.published.Model": {"h": None, "kind": None},  # FSGNN has neither
    "trees.level.LevelGraph": {"direction": "symmetric"},  # as all levels but the first are
    # What the papers of these networks have.
    "models.classic.ClassicGNN": {"layers": 4},
    "models.gcnii.GCNII": {"layers": 16},
    "models.gprgnn.GPRGNN": {"hops": 10},
    "models.mixhop.MixHop": {"hops": 2},
    "models.sgc.SGC": {"hops": 2, "dropout": 0.0},
    "networks.NetworkRecipe": {"direction": "symmetric", "scaling": "columns"},
    "relations.struc2vec.struc2vec_relations": {"layers": 10},  # not those of a network
    # What ends by itself has no end in time.
    "cli.search.search": {"budget": None},
    "experiments.jobs.run": {"budget": None, "trees": None},
    "experiments.search.search": {"budget": None, "trees": None},
    # What is None on this command line is not pinned: it is Plan's.
    "cli.train.train": dict.fromkeys(
        [
            *("budget", "class_weights", "seed", "split"),
            *("method", "h", "kind", "regime", "hops", "direction", "scaling"),
        ]
    ),
    "cli.reproduce.reproduce": {"budget": None, "seed": None, "trees": "own"},  # not given: they are for one page only
    # Where trees are, and not how many.
    "experiments.jobs.run_job": {"trees": None},
    "paper.cells.Options": {"trees": None},
    "paper.cells.compute": {"trees": None},
    "recipe.Recipe.build_tree": {"trees": None},
    # How many, where every one of them is grown for the signal, and where the next column waits.
    "signals.choosing.best_tree": {"trees": 4},
    "signals.stream.Stream": {"trees": 8},
    # Not given: denoise's.
    "cli.transform.Wishes": {"trees": None},
    "cli.transform.transform": {"trees": None},
    # As in PyG, where a node hears from the sources of its edges; one layer is one hop; pools are of joined nodes.
    "nn.conv.FrameletConv": {"hops": 1, "direction": "in"},
    "nn.network.PEGFAN": {"direction": "in"},
    "nn.pool.FrameletPool": {"method": "matching", "direction": "in"},
    "graph.changes.symmetrize": {"rule": "max"},  # of weights, not of shrinkage
    "graph.graph.Graph.symmetrize": {"rule": "max"},
    "results.values.Result": {"budget": None, "seed": None},  # unknown
    "running.Step": {"budget": None},
    # An hour: what does not fit in memory is not trained in two minutes.
    "large.graph.LargeGraph.train": {"budget": 3600.0},
    "large.training.train": {"budget": 3600.0},
}
"""The only places where a word has another default, and why."""


def public():
    """Every function, class, method and command of the package, by its name in it."""
    for found in pkgutil.walk_packages(pf.__path__, "pegfan."):
        if "._" in found.name:
            continue
        for name, value in vars(importlib.import_module(found.name)).items():
            if name.startswith("_") or getattr(value, "__module__", None) != found.name or not callable(value):
                continue
            place = f"{found.name}.{name}".removeprefix("pegfan.")
            yield place, value
            if inspect.isclass(value):
                methods = {key: getattr(value, key) for key in vars(value) if not key.startswith("_")}
                yield from ((f"{place}.{key}", method) for key, method in methods.items() if callable(method))


def test_a_word_has_one_default_everywhere():
    """A function that is added has it too, or its place in the table above."""
    seen, others = set(), {}
    for place, value in public():
        with contextlib.suppress(ValueError):  # some classes have no signature
            for name, entry in inspect.signature(value).parameters.items():
                if name in WORDS_OF_ALL and entry.default is not entry.empty:
                    seen.add(place)
                    if entry.default != WORDS_OF_ALL[name]:
                        others.setdefault(place, {})[name] = entry.default
    assert others == ELSEWHERE
    faces = {"trees.build.build_tree", "integrations.pyg.Framelets", "models.pegfan.ChannelNetwork", "cli.tree.tree"}
    assert faces <= seen, "the walk reaches functions, classes and commands"


# ---------------------------------------------------- one model, whichever the path

SOURCE = Source.of("synthetic", gamma=0.1, n=120, n_edges=700, n_features=6)
FEW = {"epochs": 15, "hidden": 8}


@pytest.fixture(scope="module")
def plain():
    return SOURCE.open()[0]


def same_run(one, other):
    assert one.state.keys() == other.state.keys()
    assert all(one.state[name].tobytes() == other.state[name].tobytes() for name in one.state)
    assert (one.val_loss, one.test_metric, one.epochs) == (other.val_loss, other.test_metric, other.epochs)


def step_by_step(graph, method):
    """As the README has it."""
    if method == "none":
        return pf.make_fsgnn_channels(graph)
    tree = pf.build_tree(graph)
    return pf.make_channels(graph, pf.FrameletSystem(tree))


@pytest.mark.parametrize("kind", [pf.PEGFANClassifier, pf.FSGNNClassifier])
def test_step_by_step_is_the_classifier_is_the_recipe_bit_for_bit(plain, kind):
    model = kind(**FEW).fit(plain)
    assert model.recipe == Recipe.of({"method": "none" if kind is pf.FSGNNClassifier else "auto", **FEW})
    channels = step_by_step(plain, model.recipe.method)
    run = pf.train(channels, plain.labels, plain.splits[0], FEW).runs[0]
    same_run(run, model.run_)
    output = Network(run.state, FEW).predict(channels)
    assert np.exp(output).tobytes() == model.predict_proba(plain).tobytes()
    assert output.argmax(axis=1).tolist() == model.predict(plain).tolist()
    trained, own = train_recipe(model.recipe, plain, plain.splits[0], default.SEED)
    same_run(trained.run, run)
    assert trained.network.predict(own).tobytes() == output.tobytes()
    stored = run_job(Job(SOURCE, model.recipe, 0, default.SEED))
    assert (stored.val_loss, stored.test_metric) == (run.val_loss, run.test_metric)
    alone = pf.AutoClassifier(recipes=[model.recipe]).fit(plain)
    assert alone.fitted_.raw().tobytes() == model.fitted_.raw().tobytes()  # calibrated or not


def test_the_demo_trains_recipes_as_experiments_do():
    size = {"n": 100, "n_edges": 600, "n_features": 5, "splits": 2}
    found = demo.compare(**size, epochs=10)
    source = Source.of("synthetic", gamma=demo.GAMMA, **size, seed=0)
    for entry in found.entries:
        for split, trained in enumerate(entry.trained):
            stored = run_job(Job(source, trained.recipe, split, split))
            assert (stored.val_loss, stored.test_metric) == (trained.run.val_loss, trained.run.test_metric)


@pytest.mark.long
def test_fields_come_in_their_order_in_every_process():
    code = "import pegfan as pf; print(list(pf.Recipe.of({'wd_fc1': 1, 'epochs': 2, 'labels': True}).to_dict()))"
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    }
    assert len(told) == 1
    assert told.pop().startswith("['method', 'h', 'kind', 'regime', 'hops', 'direction', 'scaling'")
