"""Training runs as values: their names, their numbers, and that none is run twice."""

import dataclasses
import json
import math
import os
import pathlib
import re
import threading

import numpy as np
import pytest

import pegfan as pf
from pegfan._npz import write_npz
from pegfan.auto.outcome import Plan, carry_out
from pegfan.datasets import Source
from pegfan.experiments import Job, OutOfTime, Record, Store, jobs, run, run_job
from pegfan.experiments.jobs import ChangedData
from pegfan.recipe import Recipe, TreeFile
from pegfan.splits import draw_splits
from support.training import train_recipe

GRAPH = Source.of("synthetic", gamma=0.2, n=150, n_edges=900, n_features=8, splits=3)
FSGNN = {"method": "none", "regime": "heterophily", "hops": 1, "scaling": "none"}
PEGFAN = {**FSGNN, "method": "ward", "h": 4, "kind": "b"}


def job(source=GRAPH, split=0, seed=42, **changes):
    return Job(source, Recipe.of({**FSGNN, "epochs": 8, **changes}), split, seed)


def several(source=GRAPH):
    return [
        job(source, split, 42 + split, **model, wd_fc1=wd)
        for wd in (0.0, 1e-3)
        for model in (FSGNN, PEGFAN)
        for split in range(2)
    ]


def timeless(record):
    """What a record says but for the machine: how long it took, when, and beside how many others."""
    return dataclasses.replace(record, seconds=0.0, wall=0.0, when="", workers=None, memory=None)


def forbidden(*args, **kwargs):
    raise AssertionError("this was to be taken from the store")


# --------------------------------------------------------------------------- names


def test_names_stay_what_they_are():
    """Stores hold results under these names: a change here would orphan all of them."""
    assert job().name == "5a9088640ebcffd5"
    assert Job(GRAPH, Recipe.of({**PEGFAN, "h": 8, "dropout": 0.7, "wd_sca": 0}), 0, 42).name == "cb30380757fda051"


def test_everything_that_numbers_depend_on_is_in_the_key():
    others = [
        job(source=Source.of("synthetic", gamma=0.3)),
        job(source=Source.of("chameleon")),
        job(method="auto", h=4),
        job(method="auto", h=8),
        job(hops=2),
        job(**PEGFAN),
        job(epochs=9),
        job(dropout=0.6),
        job(split=1),
        job(seed=43),
    ]
    assert len({one.name for one in [job(), *others]}) == 11


def test_one_run_has_one_key_however_it_is_written():
    defaults = {"epochs": 8, "wd_fc1": 0, "dropout": np.float64(0.5), "hidden": np.int64(64), "hops": np.int64(1)}
    assert job(**defaults) == job()
    assert job(**defaults).name == job().name
    assert job(h=5, kind="a").name == job().name, "without a tree these make no difference"
    assert job(split=np.int64(0)).name == job().name
    assert Job.from_dict(json.loads(json.dumps(job().to_dict()))) == job()


def test_files_count_by_what_is_in_them(tmp_path):
    rng = np.random.default_rng(0)
    edges = "source,target\n" + "".join(f"{a},{b}\n" for a, b in rng.integers(40, size=(120, 2)))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "edges.csv").write_text(edges)
    (tmp_path / "b" / "edges.csv").rename(tmp_path / "b" / "renamed.csv")
    keys = [job(source=Source.of(path)).name for path in (tmp_path / "a/edges.csv", tmp_path / "b/renamed.csv")]
    assert keys[0] == keys[1]
    (tmp_path / "a" / "edges.csv").write_text(edges + "1,2\n")
    assert job(source=Source.of(tmp_path / "a/edges.csv")).name != keys[0]


@pytest.mark.parametrize("moment", ["between", "while it is read"])
def test_data_that_change_end_the_runs_and_nothing_is_stored_under_a_wrong_name(tmp_path, monkeypatch, moment):
    rng, nodes, edges = np.random.default_rng(len(moment)), tmp_path / "nodes.csv", tmp_path / "edges.csv"
    nodes.write_text("id,kind\n" + "".join(f"{i},c{i % 2}\n" for i in range(40)))
    text = "source,target\n" + "".join(f"{a},{b}\n" for a, b in rng.integers(40, size=(120, 2)))
    edges.write_text(text)
    source = Source.of(nodes, edges, label="kind")
    wanted = [job(source, split) for split in range(3)]
    names = [one.name for one in wanted]

    def change(*_):
        edges.write_text(f"{text}1,2\n")

    if moment != "between":
        read = Source.open
        monkeypatch.setattr(Source, "open", lambda self: (read(self), change())[0])
    with pytest.raises(ChangedData, match=rf"^{re.escape(str(edges))} changed while"):
        run(wanted, Store(tmp_path / "s"), progress=lambda step: step.done == 1 and change())
    assert [record["name"] for record in Store(tmp_path / "s")] == (names[:1] if moment == "between" else [])
    with pytest.raises(ChangedData):
        run_job(wanted[1])
    monkeypatch.undo()
    edges.write_text(text)
    assert [record.name for record in run(wanted, Store(tmp_path / "s"))] == names


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"lr": 0.1}, "a recipe has no 'lr'"),
        ({"split": -1}, "split"),
        ({"split": 0.5}, "split"),
        ({"seed": True}, "seed"),
    ],
)
def test_jobs_are_checked(changes, words):
    with pytest.raises((TypeError, ValueError), match=words):
        job(**changes)


def test_what_is_no_job_is_refused():
    for stored in ({}, {**job().to_dict(), "source": 3}, {**job().to_dict(), "recipe": 3}):
        with pytest.raises(ValueError, match=r"Job\.to_dict|dictionary"):
            Job.from_dict(stored)
    with pytest.raises(TypeError, match=r"Source\.of"):
        job(source="chameleon")
    with pytest.raises(TypeError, match=r"Recipe\.of"):
        Job(GRAPH, {"h": 4}, 0, 0)


# ------------------------------------------------------------------------- numbers


def test_a_record_holds_what_training_gives():
    one = job(**{**PEGFAN, "scaling": "l1"}, split=2, seed=7)
    record = run_job(one)
    graph, _ = GRAPH.open()
    tree = pf.build_tree(graph, "ward", 4)
    system = pf.FrameletSystem(tree)
    channels = pf.make_channels(graph, system, "b", "heterophily", hops=1, scaling="l1")
    expected = pf.train(channels, graph.labels, graph.splits[2], {"epochs": 8}, seed=7).runs[0]
    for name in ("val_loss", "val_metric", "test_metric", "epochs", "best_epoch"):
        assert getattr(record, name) == getattr(expected, name)
    assert record.channels == len(channels)
    assert record.regime == "heterophily"
    assert record.tree["clusters"] == list(tree.n_clusters)
    assert record.tree["method"] == "ward"
    assert record.seconds > 0
    assert record.name == one.name
    assert Job.from_dict(record.job) == one
    assert record.versions["pegfan"] == pf.__version__
    assert Record.of(json.loads(json.dumps(record.to_dict()))) == record


def test_stored_lines_keep_their_shape():
    for line in (pathlib.Path(__file__).parents[2] / "results/times/records.jsonl").read_text().splitlines()[:20]:
        stored = json.loads(line)
        del stored["check"]
        assert json.dumps(Record.of(stored).to_dict()) == json.dumps(stored)


def test_a_tree_comes_from_a_file_of_labels(tmp_path):
    graph, _ = GRAPH.open()
    tree = pf.build_tree(graph, "ward", 8)
    levels = np.array([tree.labels(level) for level in range(tree.K, 0, -1)])
    path = write_npz(tmp_path / "tree_h8.npz", {"labels": levels[:-1], "n_clusters": np.array(tree.n_clusters)})
    given = job(**PEGFAN, tree_file=TreeFile.of(path))
    built = run_job(job(**{**PEGFAN, "h": 8}))
    read = run_job(given, tmp_path)  # the root, which is missing, is added
    assert read.tree["clusters"] == built.tree["clusters"]
    assert read.val_metric == pytest.approx(built.val_metric, abs=0.1)  # siblings may stand in another order
    with pytest.raises(ValueError, match="say with trees="):
        run_job(given)
    (tmp_path / "other").mkdir()
    write_npz(tmp_path / "other" / path.name, {"labels": levels[1:]})
    with pytest.raises(ValueError, match="SHA-256 differs"):
        run_job(given, tmp_path / "other")
    small = write_npz(tmp_path / "s.npz", {"labels": np.zeros((1, 5), int)})
    with pytest.raises(ValueError, match="tree of 5 nodes"):
        run_job(job(**PEGFAN, tree_file=TreeFile.of(small)), tmp_path)


def test_splits_are_drawn_and_degrees_stand_in_where_a_graph_has_none(tmp_path):
    graph, _ = GRAPH.open()
    rows, columns = graph.adjacency.nonzero()
    (tmp_path / "edges.csv").write_text(
        "source,target\n" + "".join(f"{a},{b}\n" for a, b in zip(rows, columns, strict=True))
    )
    (tmp_path / "nodes.csv").write_text("id,kind\n" + "".join(f"{i},c{c}\n" for i, c in enumerate(graph.labels)))
    source = Source.of(tmp_path / "edges.csv", tmp_path / "nodes.csv", label="kind")
    result = run_job(job(source=source, scaling="l1", split=3))
    assert result.stand_in == "degree"
    read, _ = source.open()
    known = pf.datasets.stand_in_features(read)
    split = draw_splits(read, k=9)[3]
    channels = pf.make_fsgnn_channels(known, 1, "heterophily", scaling="none")
    assert result.val_loss == pf.train(channels, read.labels, split, {"epochs": 8}, seed=42).runs[0].val_loss


def test_a_file_trains_the_same_network_by_every_path(tmp_path):
    """Two training nodes without a label, and no validation nodes."""
    graph, _ = GRAPH.open()
    train, _, test = (np.isin(np.arange(graph.n), nodes) for nodes in graph.splits[0])
    labels = np.where(np.isin(np.arange(graph.n), graph.splits[0].train[:2]), -1, graph.labels)
    masks = {"train_mask": train, "val_mask": np.zeros_like(train), "test_mask": test}
    edges = np.array(graph.adjacency.nonzero())
    file = write_npz(tmp_path / "graph.npz", {"edge_index": edges, "x": graph.features, "y": labels, **masks})
    one = job(Source.of(file), seed=0)
    known, _ = one.source.open()
    model = pf.RecipeClassifier(one.recipe, random_state=0).fit(known)
    trained, _ = train_recipe(one.recipe, known, known.splits[0], 0)
    outcome = carry_out(known, Plan(recipes=[one.recipe], seed=0))
    losses = {run_job(one).val_loss, trained.run.val_loss, outcome.model.members_[0].run.val_loss}
    assert losses == {model.run_.val_loss}


def test_the_regime_is_found_split_by_split(tmp_path):
    """Half of the graph joins like to like, the other half does not; one split learns from each."""
    rng, labels = np.random.default_rng(0), np.arange(80) % 2
    like = [(i, j) for i, j in rng.integers(40, size=(300, 2)) if labels[i] == labels[j]]
    unlike = [(i + 40, j + 40) for i, j in rng.integers(40, size=(300, 2)) if labels[i] != labels[j]]
    turns = np.add.outer([0, 40], np.arange(80)) % 80  # the second half has its turn in the second split
    masks = {"train_mask": turns < 30, "val_mask": (turns >= 30) & (turns < 35), "test_mask": turns >= 35}
    arrays = {"edge_index": np.array(like + unlike).T, "x": np.eye(80), "y": labels, **masks}
    source = Source.of(write_npz(tmp_path / "halves.npz", arrays))
    records = [run_job(job(source, split, **{**PEGFAN, "regime": "auto"})) for split in (0, 1, 0)]
    assert [record.regime for record in records] == ["homophily", "heterophily", "homophily"]
    assert timeless(records[0]) == timeless(records[2])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"split": 3}, "no split 3: the graph has splits 0 to 2"),
        ({"h": 1}, "h must be at least 2, got 1"),
        ({"source": Source.of("synthetic", n=50, n_edges=100, n_features=0)}, None),
    ],
)
def test_what_cannot_be_run_says_why(changes, words):
    if words is None:
        assert run_job(job(**changes)).stand_in == "degree"
        return
    with pytest.raises(ValueError, match=words):
        run_job(job(**changes))


def test_a_run_that_diverges_is_a_result(monkeypatch):
    from pegfan.training import engine

    monkeypatch.setattr(engine.ChainSteps, "step", lambda self, epoch: (math.nan, math.nan, None))
    result = run_job(job())
    assert result.val_metric is result.val_loss is result.test_metric is result.engine is None
    assert "became nan" in result.to_dict()["result"]["diverged"]


# ------------------------------------------------------------------------- running


@pytest.mark.long
def test_runs_do_not_depend_on_workers_and_are_not_repeated(tmp_path, monkeypatch):
    wanted = several()
    seen = []
    alone = run(wanted, Store(tmp_path / "1"))
    both = run(wanted, Store(tmp_path / "2"), workers=2, progress=lambda step: seen.append((step.done, step.planned)))
    assert list(map(timeless, alone)) == list(map(timeless, both))
    assert [record.name for record in both] == [one.name for one in wanted]
    assert seen == [(done, 8) for done in range(9)]
    for folder in "12":
        assert sorted(record["name"] for record in Store(tmp_path / folder)) == sorted(one.name for one in wanted)
    monkeypatch.setattr(jobs, "run_job", forbidden)
    assert run(reversed(wanted), Store(tmp_path / "1")) == alone[::-1]
    assert run([wanted[0], wanted[0]], Store(tmp_path / "1")) == [alone[0], alone[0]]


def test_jobs_of_one_graph_tree_and_channels_follow_each_other(tmp_path):
    store = Store(tmp_path)
    run(several(), store)
    methods = [record["job"]["recipe"]["method"] for record in store]
    assert methods == ["none"] * 4 + ["ward"] * 4
    assert [record["job"]["split"] for record in store] == [0, 1, 0, 1, 0, 1, 0, 1]


def test_graphs_and_trees_are_made_once(tmp_path, monkeypatch):
    made = []
    build = pf.build_tree
    monkeypatch.setattr("pegfan.recipe.build_tree", lambda *a, **k: made.append("tree") or build(*a, **k))
    read = Source.open
    monkeypatch.setattr(Source, "open", lambda self: made.append("graph") or read(self))
    run(several(Source.of("synthetic", gamma=0.21, n=150, n_edges=900, n_features=8, splits=2)), Store(tmp_path))
    assert made == ["graph", "tree"]


def test_what_stops_a_run_leaves_what_was_finished(tmp_path, monkeypatch):
    wanted, real, ran = several(), run_job, []

    def stop_at_the_fourth(one, trees=None, relations=None):
        ran.append(one.name)
        if len(ran) == 4:
            raise KeyboardInterrupt
        return real(one, trees)

    monkeypatch.setattr(jobs, "run_job", stop_at_the_fourth)
    with pytest.raises(KeyboardInterrupt):
        run(wanted, Store(tmp_path))
    assert [record["name"] for record in Store(tmp_path)] == ran[:3]
    run(wanted, Store(tmp_path))
    assert len(ran) == 9  # only the one that was stopped is run again
    assert len(Store(tmp_path)) == 8


@pytest.mark.long
def test_an_error_in_a_worker_comes_out_and_the_rest_is_kept(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(ValueError, match="no split 9: the graph has splits 0 to 2"):
        run([job(), job(split=1), job(split=9)], store, workers=2)
    run([job(), job(split=1)], store)  # those that were finished before are not run again
    assert len(Store(tmp_path)) == 2


def test_what_another_process_stores_meanwhile_is_not_run(tmp_path):
    wanted, other = [job(split=split) for split in range(3)], Store(tmp_path)
    theirs = {**run_job(wanted[2]).to_dict(), "when": "theirs"}

    def interfere(step):
        if step.done == 1:
            other.append(theirs)

    records = run(wanted, Store(tmp_path), progress=interfere)
    assert records[2].when == "theirs"
    assert len(Store(tmp_path)) == 3


def test_two_at_once_share_the_work(tmp_path):
    wanted, found = several(), {}

    def work(name):
        found[name] = run(wanted, Store(tmp_path))

    both = [threading.Thread(target=work, args=(name,)) for name in "ab"]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert found["a"] == found["b"]
    assert sorted(record["name"] for record in Store(tmp_path)) == sorted(one.name for one in wanted)
    assert not os.listdir(tmp_path / "claims")


def test_what_another_process_is_at_comes_last_and_is_taken_over_if_it_ends_without_a_record(tmp_path):
    wanted, store = [job(split=split) for split in range(3)], Store(tmp_path)
    give_back = store.claim(wanted[0].name)
    with pytest.raises(OutOfTime, match="1 of 3 runs"):
        run(wanted, store, budget=2)
    steps = []
    ending = threading.Timer(0.5, give_back)
    ending.start()
    run(wanted, store, progress=steps.append)
    ending.join()
    assert [record["name"] for record in store] == [wanted[k].name for k in (1, 2, 0)]
    assert [(step.done, step.result is None) for step in steps] == [(2, True), (3, False)]


def test_a_run_that_nobody_asked_for_is_refused_and_not_stored(tmp_path, monkeypatch):
    other = run_job(job(split=1))
    monkeypatch.setattr(jobs, "run_job", lambda *_, **__: other)
    with pytest.raises(OSError, match=f"{other.name}, which was not asked for"):
        run([job()], Store(tmp_path))
    assert not len(Store(tmp_path))


def test_the_time_can_be_up(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(OutOfTime, match="3 of 3 runs"):
        run([job(split=split) for split in range(3)], store, budget=0)
    run([job()], store)
    run([job()], store, budget=0)  # nothing to do: no time needed


@pytest.mark.parametrize(
    "harm",
    [
        lambda record: {"key": record["key"]},
        lambda record: {**record, "job": job(split=1).to_dict()},
        lambda record: {**record, "job": {**record["job"], "recipe": 3}},
        lambda record: {**record, "job": {**record["job"], "source": "?"}},
        lambda record: {**record, "result": {**record["result"], "val_metric": "0.99"}},
        lambda record: {**record, "result": {**record["result"], "epochs": 1.5}},
        lambda record: {**record, "result": [1, 2]},
    ],
)
def test_a_record_that_is_not_what_its_key_says_is_not_believed(tmp_path, harm):
    store, good = Store(tmp_path), run_job(job())
    store.append(harm(good.to_dict()))
    assert timeless(run([job()], store)[0]) == timeless(good)
    assert len(store) == 2


def test_bad_numbers_of_workers_and_schedulers_that_do_not_answer(tmp_path):
    with pytest.raises(ValueError, match="workers"):
        run([job()], Store(tmp_path), workers=0)
    for address, words in (("tcp://127.0.0.1:1", "refused"), ("nonsense", "looks like"), ("host:port", "Port|port")):
        with pytest.raises(OSError, match=rf"no Dask scheduler answers at {address} \(.*({words}).*\)"):
            run([job()], Store(tmp_path), scheduler=address)
    run([job()], Store(tmp_path))
    run([job()], Store(tmp_path), scheduler="nonsense")  # with nothing to do, nobody is asked
