"""Training runs as values: their names, their numbers, and that none is run twice."""

import dataclasses
import json
import math

import numpy as np
import pytest

import pegfan as pf
from pegfan._npz import write_npz
from pegfan.datasets import Source
from pegfan.experiments import Job, OutOfTime, Store, jobs, run, run_job, tree_file

GRAPH = Source.of("synthetic", gamma=0.2, n=150, n_edges=900, n_features=8, splits=3)
FSGNN = {"model": "fsgnn", "hops": 1, "option": "heterophily"}
PEGFAN = {"model": "pegfan", "kind": "b", "hops": 1, "regime": "heterophily"}


def job(**changes):
    given = {"source": GRAPH, "tree": None, "channels": FSGNN, "settings": {"epochs": 8}, "split": 0, "seed": 42}
    return Job(**{**given, **changes})


def several():
    return [
        job(tree=tree, channels=channels, settings={"epochs": 8, "wd_fc1": wd}, split=split, seed=42 + split)
        for wd in (0.0, 1e-3)
        for tree, channels in ((None, FSGNN), ({"method": "ward", "h": 4}, PEGFAN))
        for split in range(2)
    ]


def timeless(record):
    """What a record says but for the machine: how long it took, when, and beside how many others."""
    result = {name: value for name, value in record["result"].items() if name not in ("seconds", "wall")}
    return {**record, "result": result, "when": None, "workers": None}


def forbidden(*args, **kwargs):
    raise AssertionError("this was to be taken from the store")


# --------------------------------------------------------------------------- names


def test_keys_stay_what_they_are():
    """Stores hold results under these names: a change here would orphan all of them."""
    assert job().key == "dd7fb389dd8651aa"
    assert (
        job(tree={"method": "ward", "h": 8}, channels=PEGFAN, settings={"dropout": 0.7, "wd_sca": 0}).key
        == "dc7e8f215a61a5cc"
    )


def test_everything_that_numbers_depend_on_is_in_the_key():
    others = [
        job(source=Source.of("synthetic", gamma=0.3)),
        job(source=Source.of("chameleon")),
        job(tree={"h": 4}),
        job(tree={"h": 8}),
        job(channels={**FSGNN, "hops": 2}),
        job(channels=PEGFAN, tree={"h": 4}),
        job(settings={"epochs": 9}),
        job(settings={"epochs": 8, "dropout": 0.6}),
        job(split=1),
        job(seed=43),
    ]
    assert len({one.key for one in [job(), *others]}) == 11


def test_one_run_has_one_key_however_it_is_written():
    defaults = {"epochs": 8, "wd_fc1": 0, "dropout": np.float64(0.5), "hidden": np.int64(64)}
    assert job(settings=defaults) == job()
    assert job(settings=defaults).key == job().key
    assert job(channels=dict(reversed(FSGNN.items()))).key == job().key
    assert job(split=np.int64(0)).key == job().key
    assert Job.from_dict(json.loads(json.dumps(job().to_dict()))) == job()


def test_a_setting_that_is_new_and_at_its_default_does_not_change_keys(monkeypatch):
    old = job().key

    @dataclasses.dataclass(frozen=True)
    class Settings(pf.Settings):
        novelty: bool = False

    monkeypatch.setattr("pegfan.training.Settings", Settings)
    assert job().settings["novelty"] is False
    assert job().key == old
    assert job(settings={"epochs": 8, "novelty": True}).key != old


def test_files_count_by_what_is_in_them(tmp_path):
    rng = np.random.default_rng(0)
    edges = "source,target\n" + "".join(f"{a},{b}\n" for a, b in rng.integers(40, size=(120, 2)))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "edges.csv").write_text(edges)
    (tmp_path / "b" / "edges.csv").rename(tmp_path / "b" / "renamed.csv")
    keys = [job(source=Source.of(path)).key for path in (tmp_path / "a/edges.csv", tmp_path / "b/renamed.csv")]
    assert keys[0] == keys[1]
    (tmp_path / "a" / "edges.csv").write_text(edges + "1,2\n")
    assert job(source=Source.of(tmp_path / "a/edges.csv")).key != keys[0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"channels": {"model": "gcn"}}, "'gcn'"),
        ({"channels": {}}, "None"),
        ({"channels": {"model": "fsgnn", "hops": math.nan}}, "JSON"),
        ({"channels": PEGFAN}, "needs a tree"),
        ({"settings": {"lr": 0.1}}, "unknown setting 'lr'"),
        ({"split": -1}, "split"),
        ({"split": 0.5}, "split"),
        ({"seed": True}, "seed"),
    ],
)
def test_jobs_are_checked(changes, words):
    with pytest.raises(ValueError, match=words):
        job(**changes)


def test_what_is_no_job_is_refused():
    for stored in ({}, {**job().to_dict(), "source": 3}, {**job().to_dict(), "tree": 3}):
        with pytest.raises(ValueError, match=r"Job\.to_dict|dictionary|tree"):
            Job.from_dict(stored)
    with pytest.raises(TypeError, match=r"Source\.of"):
        job(source="chameleon")


# ------------------------------------------------------------------------- numbers


def test_a_record_holds_what_training_gives():
    one = job(tree={"method": "ward", "h": 4}, channels={**PEGFAN, "normalize_features": "l1"}, split=2, seed=7)
    record = run_job(one)
    graph, _ = GRAPH.open()
    tree = pf.build_tree(graph, "ward", 4)
    system = pf.FrameletSystem(tree)
    channels = pf.make_channels(graph, system, "b", "heterophily", hops=1, normalize_features="l1")
    expected = pf.train(channels, graph.labels, graph.splits[2], {"epochs": 8}, seed=7).runs[0]
    result = record["result"]
    for name in ("val_loss", "val_metric", "test_metric", "epochs", "best_epoch"):
        assert result[name] == getattr(expected, name)
    assert result["channels"] == len(channels)
    assert result["regime"] == "heterophily"
    assert result["tree"]["clusters"] == list(tree.n_clusters)
    assert result["tree"]["method"] == "ward"
    assert result["seconds"] > 0
    assert record["key"] == one.key
    assert Job.from_dict(record["job"]) == one
    assert record["versions"]["pegfan"] == pf.__version__


def test_a_tree_comes_from_a_file_of_labels(tmp_path):
    graph, _ = GRAPH.open()
    tree = pf.build_tree(graph, "ward", 8)
    levels = np.array([tree.labels(level) for level in range(tree.K, 0, -1)])
    path = write_npz(tmp_path / "tree_h8.npz", {"labels": levels[:-1], "n_clusters": np.array(tree.n_clusters)})
    given = job(tree=tree_file(path), channels=PEGFAN)
    built = run_job(job(tree={"method": "ward", "h": 8}, channels=PEGFAN))["result"]
    read = run_job(given, tmp_path)["result"]  # the root, which is missing, is added
    assert read["tree"]["clusters"] == built["tree"]["clusters"]
    assert read["val_metric"] == pytest.approx(built["val_metric"], abs=0.1)  # siblings may stand in another order
    jobs._trees.values.clear()
    with pytest.raises(ValueError, match="say with trees="):
        run_job(given)
    write_npz(path, {"labels": levels[1:]})
    with pytest.raises(ValueError, match="SHA-256 differs"):
        run_job(given, tmp_path)
    for name in ("../tree_h8.npz", "/etc/passwd", 3):
        with pytest.raises(ValueError, match="plain name"):
            run_job(job(tree={"file": name, "sha256": "0"}, channels=PEGFAN), tmp_path)
    with pytest.raises(ValueError, match="tree of 5 nodes"):
        run_job(
            job(tree=tree_file(write_npz(tmp_path / "s.npz", {"labels": np.zeros((1, 5), int)})), channels=PEGFAN),
            tmp_path,
        )


def test_splits_are_drawn_and_degrees_stand_in_where_a_graph_has_none(tmp_path):
    graph, _ = GRAPH.open()
    rows, columns = graph.adjacency.nonzero()
    (tmp_path / "edges.csv").write_text(
        "source,target\n" + "".join(f"{a},{b}\n" for a, b in zip(rows, columns, strict=True))
    )
    (tmp_path / "nodes.csv").write_text("id,kind\n" + "".join(f"{i},c{c}\n" for i, c in enumerate(graph.labels)))
    source = Source.of(tmp_path / "edges.csv", tmp_path / "nodes.csv", label="kind")
    result = run_job(job(source=source, channels={**FSGNN, "normalize_features": "l1"}, split=3))["result"]
    assert result["stand_in"] == "degree"
    read, _ = source.open()
    known = pf.datasets.stand_in_features(read)
    split = pf.datasets.random_splits(read.labels, k=9)[3]
    channels = pf.make_fsgnn_channels(known, 1, "heterophily")
    assert result["val_loss"] == pf.train(channels, read.labels, split, {"epochs": 8}).runs[0].val_loss


def test_the_regime_is_found_split_by_split():
    auto = {"model": "pegfan", "kind": "b", "hops": 1}
    jobs._channels.values.clear()
    first = run_job(job(tree={"h": 4}, channels=auto, split=0))
    second = run_job(job(tree={"h": 4}, channels=auto, split=1))
    assert first["result"]["regime"] == second["result"]["regime"] == "heterophily"
    assert [mark[-1] for mark in jobs._channels.values] == [1]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"split": 3}, "splits 0 to 2; split 3"),
        ({"channels": {"model": "fsgnn", "hop": 3}}, "do not fit the model"),
        ({"channels": PEGFAN, "tree": {"hh": 3}}, "do not fit build_tree"),
        ({"channels": PEGFAN, "tree": {"h": 1}}, "h must be at least 2"),
        ({"source": Source.of("synthetic", n=50, n_edges=100, n_features=0)}, None),
    ],
)
def test_what_cannot_be_run_says_why(changes, words):
    if words is None:
        assert run_job(job(**changes))["result"]["stand_in"] == "degree"
        return
    with pytest.raises(ValueError, match=words):
        run_job(job(**changes))


def test_a_run_that_diverges_is_a_result(monkeypatch):
    from pegfan.training import engine

    monkeypatch.setattr(engine._FastSteps, "step", lambda self, epoch: (math.nan, math.nan, None))
    result = run_job(job())["result"]
    assert result["val_metric"] is result["val_loss"] is result["test_metric"] is None
    assert "became nan" in result["diverged"]


# ------------------------------------------------------------------------- running


def test_runs_do_not_depend_on_workers_and_are_not_repeated(tmp_path, monkeypatch):
    wanted = several()
    seen = []
    alone = run(wanted, Store(tmp_path / "1"))
    both = run(wanted, Store(tmp_path / "2"), workers=2, progress=lambda *step: seen.append(step[:2]))
    assert list(map(timeless, alone)) == list(map(timeless, both))
    assert [record["key"] for record in both] == [one.key for one in wanted]
    assert seen == [(done, 8) for done in range(9)]
    for folder in "12":
        assert sorted(record["key"] for record in Store(tmp_path / folder)) == sorted(one.key for one in wanted)
    monkeypatch.setattr(jobs, "run_job", forbidden)
    assert run(reversed(wanted), Store(tmp_path / "1")) == alone[::-1]
    assert run([wanted[0], wanted[0]], Store(tmp_path / "1")) == [alone[0], alone[0]]


def test_jobs_of_one_graph_tree_and_channels_follow_each_other(tmp_path):
    store = Store(tmp_path)
    run(several(), store)
    kinds = [record["job"]["channels"]["model"] for record in store]
    assert kinds == ["fsgnn"] * 4 + ["pegfan"] * 4
    assert [record["job"]["split"] for record in store] == [0, 1, 0, 1, 0, 1, 0, 1]


def test_graphs_and_trees_are_made_once(tmp_path, monkeypatch):
    made = []
    build = pf.trees.build_tree
    monkeypatch.setattr("pegfan.trees.build_tree", lambda *a, **k: made.append("tree") or build(*a, **k))
    read = Source.open
    monkeypatch.setattr(Source, "open", lambda self: made.append("graph") or read(self))
    for kept in (jobs._graphs, jobs._trees, jobs._channels):
        kept.values.clear()
    run(several(), Store(tmp_path))
    assert made == ["graph", "tree"]


def test_what_stops_a_run_leaves_what_was_finished(tmp_path, monkeypatch):
    wanted, real, ran = several(), run_job, []

    def stop_at_the_fourth(one, trees=None):
        ran.append(one.key)
        if len(ran) == 4:
            raise KeyboardInterrupt
        return real(one, trees)

    monkeypatch.setattr(jobs, "run_job", stop_at_the_fourth)
    with pytest.raises(KeyboardInterrupt):
        run(wanted, Store(tmp_path))
    assert [record["key"] for record in Store(tmp_path)] == ran[:3]
    run(wanted, Store(tmp_path))
    assert len(ran) == 9  # only the one that was stopped is run again
    assert len(Store(tmp_path)) == 8


def test_an_error_in_a_worker_comes_out_and_the_rest_is_kept(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(ValueError, match="splits 0 to 2; split 9"):
        run([job(), job(split=1), job(split=9)], store, workers=2)
    run([job(), job(split=1)], store)  # those that were finished before are not run again
    assert len(Store(tmp_path)) == 2


def test_what_another_process_stores_meanwhile_is_not_run(tmp_path):
    wanted, other = [job(split=split) for split in range(3)], Store(tmp_path)
    theirs = {**run_job(wanted[2]), "when": "theirs"}

    def interfere(done, total, record):
        if done == 1:
            other.append(theirs)

    records = run(wanted, Store(tmp_path), progress=interfere)
    assert records[2]["when"] == "theirs"
    assert len(Store(tmp_path)) == 3


def test_the_time_can_be_up(tmp_path):
    store = Store(tmp_path)
    with pytest.raises(OutOfTime, match="3 of 3 runs to do"):
        run([job(split=split) for split in range(3)], store, budget=0)
    run([job()], store)
    run([job()], store, budget=0)  # nothing to do: no time needed


@pytest.mark.parametrize(
    "harm",
    [
        lambda record: {"key": record["key"]},
        lambda record: {**record, "job": job(split=1).to_dict()},
        lambda record: {**record, "job": {**record["job"], "settings": 3}},
        lambda record: {**record, "job": {**record["job"], "source": "?"}},
        lambda record: {**record, "result": {**record["result"], "val_metric": "0.99"}},
        lambda record: {**record, "result": {**record["result"], "epochs": 1.5}},
        lambda record: {**record, "result": [1, 2]},
    ],
)
def test_a_record_that_is_not_what_its_key_says_is_not_believed(tmp_path, harm):
    store, good = Store(tmp_path), run_job(job())
    store.append(harm(good))
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
