"""Two stages: parts, worlds of beliefs and their channels; no node sees its own label; renumbered, saved, explained."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pegfan as pf
from pegfan import fitted, stages
from pegfan._npz import read_npz, write_npz
from pegfan._saved import load_fitted
from pegfan.auto.outcome import Plan, carry_out
from pegfan.auto.search import Shared, Task, run_task
from pegfan.channels import hop_matrix
from pegfan.channels.labels import BETWEEN, FAR, JOINT, NEAR, Beliefs, belief_channels, label_channels, labels_between
from pegfan.explain import Explainer
from pegfan.fitted import Fitted, Trained
from pegfan.graph import Split
from pegfan.importance import permutation_importance
from pegfan.recipe import Known, Recipe
from pegfan.running import Deadline
from pegfan.stages import believe, deal, without_part
from pegfan.training.loop import Unfinished
from pegfan.trees import canonical_order
from support.equivariance import assert_same_run, graphs, same_bits
from support.training import train_recipe

seeds = st.integers(0, 2**32 - 1)
NOTHING = np.empty(0, np.int64)
TWICE = Recipe("none", regime="heterophily", hops=1, scaling="none", labels=True, between=True, stages=2)
HEADS = {
    "boosting": TWICE.changed(head="boosting", epochs=15),
    "network": TWICE.changed(epochs=15, hidden=8),
}


@pytest.fixture(scope="module")
def graph() -> pf.Graph:
    made = pf.datasets.synthetic(0.0, n=160, n_edges=800, n_features=5)
    return made.replace(node_names=[f"n{i}" for i in range(160)])


@pytest.fixture(scope="module", params=list(HEADS))
def model(request, graph) -> pf.RecipeClassifier:
    return pf.RecipeClassifier(HEADS[request.param]).fit(graph)


def member_of(model) -> Trained:
    (member,) = model.fitted_.members
    return member


# --------------------------------------------------------------------- as a recipe


def test_a_second_stage_is_for_labels_and_not_for_linear_models():
    assert Recipe("none", stages=2) == Recipe("none")
    assert "stages" not in TWICE.changed(stages=1).to_dict()
    assert Recipe.of(TWICE.to_dict()) == TWICE
    assert TWICE.name == "S unscaled +Y between in two stages"
    with pytest.raises(ValueError, match="stages must be 1 or 2"):
        TWICE.changed(stages=3)
    with pytest.raises(ValueError, match="use stages=1 with head='linear'"):
        TWICE.changed(head="linear")
    numbers = pf.Graph.from_edges([[0, 1], [1, 2]], features=np.eye(3), targets=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"a second stage .* is for classes"):
        train_recipe(TWICE, numbers, Split(np.array([0, 1]), np.array([2]), NOTHING), 0)


# ------------------------------------------------------------------------- the parts


@given(graphs(), seeds)
def test_parts_are_dealt_by_class_and_alike_nodes_stay_together(graph, seed):
    codes = Known.of(graph, graph.splits[0].train).codes
    groups = canonical_order(graph, labels=codes).classes
    parts = deal(graph, codes, seed % 7)
    assert np.array_equal(parts >= 0, codes >= 0)
    for group in np.unique(groups[codes >= 0]):
        assert len(set(parts[groups == group].tolist())) == 1
    for code in (0, 1):  # of groups of one class, no part has two more than another
        own = np.unique(np.column_stack([groups, parts])[codes == code], axis=0)[:, 1]
        counts = np.bincount(own, minlength=stages.PARTS)
        assert counts.max() - counts.min() <= 1
    perm = np.random.default_rng(seed).permutation(graph.n)
    assert np.array_equal(deal(graph.permute(perm), codes[perm], seed % 7), parts[perm])


def test_another_seed_deals_other_parts(graph):
    codes = Known.of(graph, graph.splits[0].train).codes
    one, two = (deal(graph, codes, seed) for seed in (0, 1))
    assert not np.array_equal(one, two)
    assert np.bincount(one[one >= 0]).tolist() == np.bincount(two[two >= 0]).tolist()


def test_training_nodes_that_are_all_alike_are_refused():
    star = pf.Graph.from_edges([[0, 1], [0, 2], [0, 3]], features=np.ones((4, 1)), labels=[1, 0, 0, 0])
    with pytest.raises(ValueError, match="two stages need training nodes that differ"):
        deal(star, np.array([-1, 0, 0, -1]), 0)


# ----------------------------------------------------------------------- the beliefs


def test_worlds_by_hand(graph):
    """Five nodes: 0 and 1 in part 0, 2 in part 1, the others not in training; the graph has a sixth, which is new."""
    small = pf.Graph.from_edges([[0, 1]], n=6, node_names=list("abcdez"))
    known = Known(np.array([1, 0, 1, -1, -1]), tuple("abcde"), 2, np.arange(5))
    parts = np.array([0, 0, 1, -1, -1], np.int8)
    p, q = 0.25, 0.75
    first, second = (np.log(np.tile([1 - share, share], (6, 1)).astype(np.float32)) for share in (p, q))
    worlds, seen = believe(small, known, parts, [first, second])
    assert seen.tolist() == [0, 0, 1, 2, 2, 2]
    assert worlds[0][:, 1].tolist() == [p, p, 1, p, p, p]
    assert worlds[1][:, 1].tolist() == [1, 0, q, q, q, q]
    assert worlds[2][:, 1].tolist() == [1, 0, 1, 0.5, 0.5, 0.5]
    assert without_part(known, parts, 0).codes.tolist() == [-1, -1, 1, -1, -1]


@given(graphs(), seeds)
def test_channels_of_beliefs_are_those_of_the_formulas(graph, seed):
    rng = np.random.default_rng(seed)
    worlds = tuple(rng.dirichlet([1.0, 1.0], graph.n) for _ in range(3))
    seen = rng.integers(0, 3, graph.n)
    x = np.asarray(graph.features)
    channels = {channel.name: channel.input for channel in belief_channels(graph, x, Beliefs(worlds, seen), True)}
    assert list(channels) == [NEAR, FAR, JOINT, BETWEEN]
    a, walk = (hop_matrix(graph, kind, "symmetric").toarray() for kind in ("A", "random-walk"))
    walks = [
        hop_matrix(graph, "random-walk", side).toarray() for side in (("out", "in") if graph.directed else ["out"])
    ]
    twice = walk @ walk
    for matrix in (a, walk, *walks, twice):
        np.fill_diagonal(matrix, 0.0)
    for node in range(graph.n):
        y = worlds[seen[node]]
        near = [*(step[node] @ y for step in walks), np.log1p(a[node] @ y)]
        np.testing.assert_allclose(channels[NEAR][node], np.concatenate(near), atol=1e-12)
        np.testing.assert_allclose(channels[FAR][node], twice[node] @ y, atol=1e-12)
        by_class = np.concatenate([walk[node] @ (x * y[:, [k]]) for k in range(2)])
        np.testing.assert_allclose(channels[JOINT][node], by_class, atol=1e-12)
        assert same_bits(channels[BETWEEN][node], labels_between(graph, x, y)[node])


def test_certain_beliefs_are_labels(graph):
    """Where every label is known, one world of them has the channels of the labels."""
    x = np.asarray(graph.features)
    certain = Beliefs((np.eye(graph.n_classes)[graph.labels],), np.zeros(graph.n, np.int64))
    of_beliefs = belief_channels(graph, x, certain, True)
    of_labels = label_channels(graph, x, graph.labels, graph.n_classes, True)
    for one, two in zip(of_beliefs, of_labels, strict=True):
        given = two.input[:, x.shape[1] :] if one.name == JOINT else two.input  # no neighbour is without a label
        np.testing.assert_allclose(one.input, given, atol=1e-12, err_msg=one.name)


# ---------------------------------------------------------------------- the training


@pytest.mark.parametrize("head", HEADS)
def test_no_training_node_sees_its_own_label(graph, head, monkeypatch):
    part = Split(*graph.splits[0][:2], NOTHING)
    recipe = HEADS[head]
    before, seen = train_recipe(recipe, graph, part, 0)
    monkeypatch.setattr(fitted, "deal", lambda *_: before.parts)  # the draw goes by labels, too
    node = int(part.train[7])
    labels = graph.labels.copy()
    labels[node] = (labels[node] + 1) % graph.n_classes
    after, changed = train_recipe(recipe, graph.replace(labels=labels), part, 0)
    own = before.parts[node]
    assert_same_run(before.inner[own].run, after.inner[own].run)
    moved = False
    for one, two in zip(seen, changed, strict=True):
        assert same_bits(one.materialize(np.float64, "dense")[node], two.materialize(np.float64, "dense")[node])
        moved |= not same_bits(one.materialize(np.float64, "dense"), two.materialize(np.float64, "dense"))
    assert moved, "other nodes do see it"


def test_no_label_but_of_training_and_validation_nodes_counts(graph, model):
    part, labels = graph.splits[0], graph.labels.copy()
    labels[part.test] = 0
    other = pf.RecipeClassifier(model.recipe).fit(graph.replace(labels=labels, class_names=list("abcd")))
    assert same_bits(other.predict_proba(), model.predict_proba())


def test_the_first_stage_is_kept(graph, model):
    member = member_of(model)
    assert len(member.inner) == stages.PARTS
    assert all(one.recipe == member.recipe.changed(stages=1) for one in member.inner)
    assert np.array_equal(np.flatnonzero(member.parts >= 0), graph.splits[0].train)
    assert member.run.seconds > sum(one.run.seconds for one in member.inner)
    assert [facts.words for facts in member.channels][-1].startswith("labels two steps away, known or predicted")
    assert [facts.words for facts in member.inner[0].channels][-1].startswith("training labels two steps away")
    # By hand: what the inner models say of the graph, as the outer one sees it.
    known, recipe = Known.of(graph, graph.splits[0].train), member.recipe
    plain = recipe.channels(graph, None, split=0)
    outputs = [
        one.network.predict(recipe.relabelled(plain, graph, without_part(known, member.parts, k)))
        for k, one in enumerate(member.inner)
    ]
    seen = recipe.relabelled(plain, graph, believe(graph, known, member.parts, outputs))
    assert same_bits(np.exp(member.network.predict(seen).astype(float)), np.exp(model.fitted_.raw().astype(float)))


def test_parts_of_a_task_share_its_time_and_its_grace():
    now = time.monotonic()
    whole = Deadline(1000, grace=5.0)
    assert 90 < whole.within(now, 100).left <= 100
    assert 990 < whole.within(now).left <= 1000
    part, late = whole.within(now), whole.within(now - 5.0)
    whole.at = 0.0
    assert (part.passed, late.passed) == (False, True)  # the grace counts from when the task began
    assert 4 < part.left <= 5


def test_time_that_is_over_ends_it(graph):
    with pytest.raises(Unfinished, match="the time was over before the second stage of S unscaled"):
        train_recipe(HEADS["boosting"], graph, 0, 0, until=Deadline(-1.0))
    enough, _ = train_recipe(HEADS["boosting"], graph, 0, 0, until=Deadline(-1.0, grace=60.0))
    whole, _ = train_recipe(HEADS["boosting"], graph, 0, 0, until=Deadline())
    assert_same_run(enough.run, whole.run)
    assert_same_run(enough.run, train_recipe(HEADS["boosting"], graph, 0, 0)[0].run)


@pytest.mark.parametrize("head", HEADS)
def test_a_share_of_the_time_is_as_many_epochs_for_all(graph, head, monkeypatch):
    """The first model runs out of its share after some epochs; what comes of it can be trained without a clock."""
    clock = iter(range(10**6))
    for name in ("monotonic", "thread_time"):
        monkeypatch.setattr(f"pegfan.running.time.{name}", lambda: next(clock))
    recipe = HEADS[head].changed(epochs=300, patience=300)
    short, _ = train_recipe(recipe, graph, 0, 0, until=Deadline(400.0))
    monkeypatch.undo()
    epochs = short.recipe.settings.epochs
    assert 5 < epochs < 100
    assert [one.run.epochs for one in (short, *short.inner)] == [epochs] * 6
    again, _ = train_recipe(short.recipe, graph, 0, 0)
    for one, two in zip((short, *short.inner), (again, *again.inner), strict=True):
        assert one.recipe == two.recipe
        assert_same_run(one.run, two.run)


@pytest.mark.parametrize("head", HEADS)
def test_what_two_stages_had_time_for_is_what_a_plan_says(graph, head, monkeypatch):
    """Whether or not the whole was over: the first model had its share, and the recipe has that many epochs."""
    clock = iter(range(10**6))
    recipe = HEADS[head].changed(epochs=300, patience=300)
    with monkeypatch.context() as patch:
        for name in ("monotonic", "thread_time"):
            patch.setattr(f"pegfan.running.time.{name}", lambda: next(clock))
        short = run_task(Shared(graph, None), Task(recipe, graph.splits[0], 0, until=Deadline(400.0)))
    assert short.epochs == short.recipe.settings.epochs < 300
    again = run_task(Shared(graph, None), Task(short.recipe, graph.splits[0], 0))
    assert same_bits(again.log_probabilities, short.log_probabilities)


@pytest.mark.parametrize("head", HEADS)
def test_a_second_stage_that_is_cut_short_is_worth_nothing(graph, head, monkeypatch):
    """Its epochs would be others than those of the first, so that no recipe could say what was trained."""
    real, count = fitted._train_channels, []

    def late(*args, until, **options):
        count.append(0)
        if len(count) == 6:
            until = Deadline(-1.0)
        found = real(*args, until=until, **options)
        if len(count) == 6:
            whole.at = 0.0
        return found

    whole = Deadline(1000.0)
    monkeypatch.setattr(fitted, "_train_channels", late)
    found = run_task(Shared(graph, None), Task(HEADS[head], graph.splits[0], 0, until=whole))
    assert len(count) == 6
    assert (found.trained, found.log_probabilities) == (None, None)


def grid(side: int, seed: int) -> pf.Graph:
    """Cells of which a fifth are mines; half of them show how many of their neighbours are, as one of nine columns."""
    rng = np.random.default_rng(seed)
    mines = rng.random((side, side)) < 0.2
    cells = np.arange(side * side).reshape(side, side)
    pairs = [(cells[:, :-1], cells[:, 1:]), (cells[:-1], cells[1:])]
    pairs += [(cells[:-1, :-1], cells[1:, 1:]), (cells[:-1, 1:], cells[1:, :-1])]
    edges = np.vstack([np.column_stack([a.ravel(), b.ravel()]) for a, b in pairs])
    bare = pf.Graph.from_edges(edges, labels=mines.ravel().astype(int), metric="roc_auc")
    shown = np.eye(9)[(bare.adjacency @ mines.ravel()).astype(int)] * (rng.random(side * side) < 0.5)[:, None]
    parts = np.split(rng.permutation(side * side), [side * side // 2, side * side * 3 // 4])
    return bare.replace(features=shown, splits=[tuple(map(np.sort, parts))])


@pytest.mark.long
def test_mines_are_found_by_the_node_in_between_and_by_a_second_stage():
    mined = grid(70, 0)
    recipe = TWICE.changed(head="boosting", hops=2, structure=True)
    tries = [recipe.changed(stages=1, between=False), recipe.changed(stages=1), recipe]
    found = [pf.RecipeClassifier(one).fit(mined).score() for one in tries]
    assert found[1] > found[0] + 0.02
    assert found[2] > found[1] + 0.005


# ------------------------------------------------------------------- renumbered, elsewhere


@pytest.mark.long
@given(st.sampled_from(list(HEADS)), graphs(), seeds)
def test_two_stages_are_fitted_the_same(head, graph, seed):
    codes = Known.of(graph, graph.splits[0].train).codes
    assert len(np.unique(canonical_order(graph, labels=codes).classes[codes >= 0])) > 1
    perm = np.random.default_rng(seed).permutation(graph.n)
    recipe = HEADS[head].changed(epochs=4)
    one, two = (pf.RecipeClassifier(recipe).fit(g) for g in (graph, graph.permute(perm)))
    assert_same_run(member_of(one).run, member_of(two).run)
    for first, second in zip(member_of(one).inner, member_of(two).inner, strict=True):
        assert_same_run(first.run, second.run)
    assert same_bits(one.predict_proba()[perm], two.predict_proba())


def test_other_graphs_know_training_nodes_by_name(graph, model):
    perm = np.random.default_rng(0).permutation(graph.n)
    assert same_bits(model.predict_proba(graph.permute(perm)), model.predict_proba()[perm])
    strange = graph.replace(node_names=[f"m{i}" for i in range(graph.n)])
    known = model.predict_proba(graph)
    assert not np.allclose(model.predict_proba(strange), known)
    assert np.allclose(model.predict_proba(strange).sum(axis=1), 1.0)


def test_a_grown_graph_keeps_the_parts(graph, model):
    order = np.random.default_rng(1).permutation(graph.n)
    grown = model.fitted_.extended(graph.permute(order), order)
    assert np.array_equal(grown.members[0].parts, member_of(model).parts[order])
    assert same_bits(grown.raw(), model.fitted_.raw()[order])


# --------------------------------------------------------------------------- on disk


def test_it_comes_back_from_disk(graph, model, tmp_path: Path):
    again = pf.load_classifier(model.save(tmp_path / "model"))
    assert same_bits(again.predict_proba(graph), model.predict_proba())
    member = member_of(again)
    assert np.array_equal(member.parts, member_of(model).parts)
    for old, new in zip(member_of(model).inner, member.inner, strict=True):
        assert_same_run(old.run, new.run)
        assert (old.recipe, old.channels) == (new.recipe, new.channels)


def test_strange_files_are_answered(graph, tmp_path: Path):
    source = pf.RecipeClassifier(HEADS["boosting"]).fit(graph).save(tmp_path / "model")
    good = read_npz(source / "inputs.npz")
    parts = good["parts_0"]
    for wrong in (parts[1:], parts.astype(np.int64), np.full_like(parts, -1), np.where(parts == 4, 5, parts), None):
        changed = {**good, "parts_0": wrong} if wrong is not None else {k: v for k, v in good.items() if k != "parts_0"}
        with pytest.raises(ValueError, match="no parts of training nodes that fit"):
            _load_changed(source, inputs=changed)
    about = json.loads((source / "model.json").read_text())
    for entry in ({"inner": []}, {"recipe": HEADS["boosting"].changed(stages=1).to_dict()}):
        with pytest.raises(ValueError, match="do not agree on the number of stages"):
            _load_changed(source, about={**about, "members": [{**about["members"][0], **entry}]})
    fewer = about["members"][0]["inner"][:3]
    with pytest.raises(ValueError, match="no parts of training nodes that fit"):
        _load_changed(source, about={**about, "members": [{**about["members"][0], "inner": fewer}]})


def _load_changed(source: Path, about=None, inputs=None) -> Fitted:
    """What a folder with other contents, and the hashes that fit them, gives."""
    about = about or json.loads((source / "model.json").read_text())
    original = (source / "inputs.npz").read_bytes()
    try:
        if inputs is not None:
            write_npz(source / "inputs.npz", inputs)
            about = {**about, "files": {**about["files"], "inputs.npz": _hash(source / "inputs.npz")}}
        return load_fitted(source, about)
    finally:
        (source / "inputs.npz").write_bytes(original)


def _hash(path: Path) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()


# ------------------------------------------------------------------- folds and reasons


@pytest.mark.long
@pytest.mark.parametrize("head", HEADS)
def test_members_of_folds_know_the_labels_of_their_own(graph, head, tmp_path: Path):
    bare = graph.replace(splits=())
    outcome = carry_out(bare, Plan(recipes=[HEADS[head]], choose="mean", splits=3, budget=120.0))
    whole = outcome.model.fitted_
    assert sorted(member.fold for member in whole.members) == [0, 1, 2]
    for fold, split in enumerate(outcome.graph.splits[:3]):
        own = tuple(member for member in whole.members if member.fold == fold)
        assert np.array_equal(np.flatnonzero(own[0].parts >= 0), split.train)
        alone = replace(whole, members=own, known=whole.known.of_fold(fold)).raw()
        assert alone[split.test].tobytes() == whole.raw()[split.test].tobytes()
    loaded = pf.load_classifier(outcome.model.save(tmp_path / "model"))
    assert same_bits(loaded.predict_proba(bare), outcome.model.predict_proba())
    assert outcome.probabilities.tobytes() == loaded.predict_proba(bare).tobytes()


def test_reasons_add_up_and_columns_are_shuffled(graph, model):
    explainer = Explainer(model.fitted_)
    raw = np.exp(model.fitted_.raw().astype(float))
    for found in explainer.explain([3, int(graph.splits[0].test[0])]):
        p = raw[found.node, explainer.classes.index(found.target)]
        assert found.score == pytest.approx(np.log(p / (1 - p)), abs=1e-4)
        for parts in (found.reasons, found.columns, found.channels):
            assert sum(part.contribution for part in parts) == pytest.approx(found.score - found.average, abs=1e-8)
    assert any("labelled or taken for" in reason.words for found in explainer.explain([3]) for reason in found.reasons)
    rows, left = permutation_importance(explainer, graph.labels, graph.splits[0].test, "accuracy", repeats=1)
    assert (len(rows), left) == (5, 0)
    for name in (JOINT, BETWEEN):  # beliefs stay as they are
        channel = explainer.networks[0].channels[name]
        np.testing.assert_allclose(channel.of_features(graph.features), channel.input, atol=1e-9)
