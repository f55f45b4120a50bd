"""Automatic trainings on public splits: their order, how they are kept and resumed, and what the page says of them."""

import json
import os
import signal
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from pegfan import results
from pegfan.auto import outcome
from pegfan.cli import app
from pegfan.cli.train import _resolve
from pegfan.comparison import CONTENDERS
from pegfan.datasets import Source
from pegfan.experiments import Record, Store
from pegfan.paper import automatic, automatic_page, leak_free
from pegfan.paper.automatic import GRAPHS, LEAK_FREE, SETS, VERSION, Automatic, Member, Run, Turn, members_of
from pegfan.paper.automatic_page import FAMILIES, Beside, family, render
from pegfan.paper.benchmarks import Table3
from pegfan.paper.cells import Options
from pegfan.paper.leak_free import LeakFree
from pegfan.paper.published import BEST, DATASETS
from pegfan.recipe import Recipe
from pegfan.running import cores

NETWORK, TREE = {"method": "none", "hops": 3}, {"method": "ward", "hops": 3}


def make_run(name="texas", split=0, test=0.8, **changes):
    """A run as the store would hold it."""
    parts = {"fingerprint": Source.of(name).fingerprint() if name not in GRAPHS else "0" * 16, "budget": 120.0}
    parts |= {"seed": 0, "metric": "accuracy", "val_metric": 0.7, "seconds": 110.0, "search_seconds": 90.0, "tried": 12}
    parts |= {"trainings": 14}
    parts |= {"how": "mean of two", "members": (Member("a", TREE, 0.75), Member("b", NETWORK, 0.25)), "cores": 2}
    parts |= {"workers": 2, "load": (0.5, 2.0), "when": "2026-01-01T00:00:00+00:00", "versions": {"pegfan": "0"}}
    return Run(set=name, split=split, test_metric=test, **{**parts, **changes})


def fill(folder, *runs):
    store = Store(folder)
    for run in runs:
        store.append(run.to_dict())
    return store


@pytest.fixture
def tiny(monkeypatch):
    """Two sets of generated graphs in place of the real ones: a public one with three splits, a file with two."""
    sources = {name: Source.of("synthetic", gamma=0.1, n=120, n_edges=500, n_features=8, splits=3) for name in "ab"}
    monkeypatch.setattr(automatic, "SETS", {"texas": 3, "dblp": 2})
    monkeypatch.setattr(automatic_page, "SETS", automatic.SETS)
    monkeypatch.setattr(Automatic, "sources", {"texas": sources["a"], "dblp": sources["b"]})
    monkeypatch.setattr(Automatic, "_fingerprints", {"texas": "t", "dblp": "d"})


@pytest.fixture
def ran(monkeypatch):
    """Trainings that take no time; the list of what was run."""
    done = []

    def fake(self, turn, progress):
        done.append(turn)
        return make_run(turn.set, turn.split, 0.5 + 0.01 * turn.split, fingerprint=turn.set[0], budget=self.budget)

    monkeypatch.setattr(Automatic, "_run", fake)
    return done


# ------------------------------------------------------------------------- what is run


def test_the_first_split_of_every_set_comes_before_the_second_of_any():
    turns = Automatic().turns
    assert len(turns) == len(set(turns)) == 10 * (len(DATASETS) + len(LEAK_FREE)) + 5 * len(GRAPHS)
    assert [turn.split for turn in turns] == sorted(turn.split for turn in turns)
    assert [turn.set for turn in turns[: len(SETS)]] == list(SETS)
    assert Automatic(splits=2).turns == turns[: 2 * len(SETS)]


def test_the_sets_are_those_of_the_issue():
    assert len(DATASETS) == 9
    assert len(GRAPHS) == 8
    assert set(BEST) == {*DATASETS, *LEAK_FREE}
    assert sum(BEST[name].mean for name in DATASETS) / 9 == pytest.approx(80.11, abs=0.01)


def test_a_run_is_what_pegfan_train_does(monkeypatch):
    asked = []

    def stop(graph, plan, progress=None, start=None):
        asked.append((graph, plan))
        raise InterruptedError

    read = Source.of("synthetic", gamma=0.1, n=120, n_edges=500, n_features=8, splits=4).open()
    monkeypatch.setattr(Source, "open", lambda self: read)
    monkeypatch.setattr(outcome, "carry_out", stop)
    with pytest.raises(InterruptedError):
        Automatic()._run(Turn("texas", 3), lambda _: None)
    [(graph, plan)] = asked
    wanted = _resolve(["texas"], {}, {"split": 3, "splits": 1}, {}, None)
    meant, known = wanted.judged(wanted.source.open()[0])
    assert plan == meant.plan
    assert graph.metric == known.metric
    assert plan.workers == cores()


def test_a_file_without_splits_has_those_of_compare(tmp_path):
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("id,x,label\n" + "".join(f"{i},{i % 7},{'ab'[i % 2]}\n" for i in range(60)))
    edges = tmp_path / "edges.csv"
    edges.write_text("source,target\n" + "".join(f"{i},{(i * 7 + 1) % 60}\n" for i in range(60)))
    source = Source.of(nodes, edges, label="label")
    known, why = automatic._judged(source, 1)
    drawn = automatic.draw_splits(source.open()[0], k=2)
    assert [part.tolist() for part in known.splits[1]] == [part.tolist() for part in drawn[1]]
    assert (known.metric, why) == ("accuracy", "the classes are not very unequal")


def test_an_unknown_set_lists_those_that_there_are():
    with pytest.raises(ValueError, match=r"this table has no 'texsa'; it has cora, .*musae_github"):
        Automatic(("texsa",))
    with pytest.raises(ValueError, match="positive number of seconds"):
        Automatic(budget=0.0)


def test_files_are_named_by_what_changes_the_page():
    assert Automatic().name == Automatic(splits=2).name == "automatic"
    assert Automatic(("texas",), budget=5, seed=1).name == "automatic-texas-5s-seed1"


# ------------------------------------------------------------------------ how it is kept


def test_what_ran_is_not_run_again(tiny, ran, tmp_path):
    store = Store(tmp_path)
    assert Automatic(splits=1).compute(store) == {}
    assert ran == [Turn("texas", 0), Turn("dblp", 0)]
    Automatic().compute(Store(tmp_path))
    assert ran[2:] == [Turn("texas", 1), Turn("dblp", 1), Turn("texas", 2)]
    Automatic().compute(store)
    assert len(ran) == 5
    assert [[run.split for run in runs] for runs in Automatic().runs(store).values()] == [[0, 1, 2], [0, 1]]
    Automatic(splits=1, budget=5).compute(store)
    assert len(ran) == 7
    assert Automatic().others(store) == 2


def test_a_kill_between_runs_loses_nothing(tiny, ran, tmp_path, monkeypatch):
    kept = Store.append

    def killed(self, record):
        kept(self, record)
        if len(ran) == 3:
            raise SystemExit

    monkeypatch.setattr(Store, "append", killed)
    with pytest.raises(SystemExit):
        Automatic().compute(Store(tmp_path))
    monkeypatch.setattr(Store, "append", kept)
    Automatic().compute(Store(tmp_path))
    assert len(ran) == len(set(ran)) == 5


def test_a_run_that_ctrl_c_ended_early_is_not_kept(tiny, ran, tmp_path, monkeypatch):
    whole = Automatic._run

    def interrupted(self, turn, progress):
        if turn.split == 1:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                signal.sigtimedwait([], 0.1)
            except KeyboardInterrupt:
                pass  # as a search does that keeps its best until then
        return whole(self, turn, progress)

    monkeypatch.setattr(Automatic, "_run", interrupted)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        Automatic().compute(Store(tmp_path))
    assert signal.getsignal(signal.SIGINT) is before
    assert [len(runs) for runs in Automatic().runs(Store(tmp_path)).values()] == [1, 1]


def test_a_run_that_fails_says_why_and_the_others_go_on(tiny, ran, tmp_path, monkeypatch):
    whole = Automatic._run

    def failing(self, turn, progress):
        if turn.set == "dblp":
            raise MemoryError("too large")
        return whole(self, turn, progress)

    monkeypatch.setattr(Automatic, "_run", failing)
    store = Store(tmp_path)
    failed = Automatic(splits=2).compute(store)
    assert failed == dict.fromkeys([Turn("dblp", 0), Turn("dblp", 1)], "MemoryError: too large")
    assert len(Automatic().runs(store)["texas"]) == 2
    text = render(Automatic(), store, tmp_path / "page", "command", failed).markdown()
    assert "- dblp, split 1: MemoryError: too large" in text
    assert "- not in the store: split 2 of texas" in text


def test_no_test_metric_is_told_while_it_runs(tiny, ran, tmp_path):
    steps = []
    Automatic().compute(Store(tmp_path), steps.append)
    assert [(step.done, step.planned) for step in steps] == [(i, 5) for i in range(6)]
    assert all(step.result is None and "0.5" not in step.text and "50" not in step.text for step in steps)


@given(
    test=st.floats(0, 1),
    val=st.none() | st.floats(0, 1),
    load=st.none() | st.tuples(st.floats(0, 99), st.floats(0, 99)),
    weights=st.lists(st.floats(0, 1), max_size=4),
)
def test_a_run_comes_back_as_it_was(test, val, load, weights):
    members = tuple(Member(f"m{i}", TREE, weight) for i, weight in enumerate(weights))
    run = make_run(test=test, val_metric=val, load=load, members=members)
    assert Run.of(json.loads(json.dumps(run.to_dict()))) == run


@pytest.mark.parametrize(
    "changes",
    [
        *({name: value} for name in ("test_metric", "split", "members", "metric") for value in (None, "x", [3], True)),
        {"test_metric": 1e999},
        {"test_metric": -0.1},
        {"set": "cora"},
        {"version": VERSION + 1},
        {"members": [{"name": "a", "recipe": 3, "weight": 1.0}]},
        {"members": [{"name": "a"}]},
        {"load": [1.0]},
        {"versions": {"pegfan": 3}},
        {"extra": 1},
    ],
)
def test_a_record_that_is_not_what_it_says_is_no_run(changes):
    stored = json.loads(json.dumps(make_run().to_dict()))
    assert Run.of(stored) is not None
    stored["run"] |= changes
    assert Run.of(stored) is None


def test_what_is_no_record_is_no_run():
    assert [Run.of(what) for what in (None, 3, {}, {"key": "a"}, {"key": "a", "run": []})] == [None] * 5


def test_members_are_those_with_a_weight():
    recipes = [Recipe(), Recipe(hops=2), Recipe(hops=1)]
    tried = [
        results.Candidate(recipe.name, recipe, 0.5, 0.5, 1.0, 5, chosen=weight > 0, weight=weight)
        for recipe, weight in zip(recipes, (0.25, 0.0, 0.75), strict=True)
    ]
    found = members_of(tried)
    assert [(one.name, one.weight) for one in found] == [(recipes[2].name, 0.75), (recipes[0].name, 0.25)]
    assert Recipe.of(found[0].recipe) == recipes[2]


# ------------------------------------------------------------------------------ the page


def test_families():
    assert family(Recipe("ward").to_dict()) == "network with a tree"
    assert family(Recipe("none").to_dict()) == "network without a tree"
    assert family(Recipe("none", hops=0).to_dict()) == "features alone"
    assert family(Recipe("none", head="boosting").to_dict()) == "boosting"
    assert family(Recipe("none", head="linear").to_dict()) == "linear"
    assert family({"model": "gcn"}) == "graph network"
    assert family({"method": "none", "hops": 3, "labels": True, "stages": 2}) == "second stage"
    assert len(set(FAMILIES)) == len(automatic_page._COLOURS)


def test_the_page_says_what_ran_and_of_how_many_splits(tmp_path):
    runs = [make_run("texas", i, 0.8 + 0.02 * i) for i in range(3)]
    runs += [make_run("cora", i, 0.9) for i in range(10)]
    document = render(Automatic(), fill(tmp_path / "store", *runs), tmp_path, "pegfan reproduce automatic")
    text = (tmp_path / "automatic.md").read_text()
    assert "| texas | 82.00 ± 1.63 (3 of 10 splits) |" in text
    assert "| cora | **90.00 ± 0.00** |" in text  # 88.49 is the best published
    assert "+1.51 |" in text
    assert "| wisconsin | not run |" in text
    assert "| average of 2 | 86.00 |" in text
    assert "Test nodes were looked at once per run, 13 times" in text
    assert "- not in the store: splits 3 to 9 of texas" in text
    assert "| texas | 3 | 3 (0.75) | 3 (0.25) | 2.0 |" in text
    assert document.summary["average"] == pytest.approx(86.0)
    assert document.summary["families"]["cora"]["network with a tree"] == {"runs": 10, "weight": 0.75}
    cells = {cell["set"]: cell for cell in json.loads((tmp_path / "automatic.json").read_text())["cells"]}
    assert list(cells) == list(SETS)
    assert (cells["texas"]["runs"], cells["texas"]["of"], cells["texas"]["splits"]) == (3, 10, [0, 1, 2])
    assert cells["texas"]["ours"] == pytest.approx(82.0)
    assert cells["cora"]["best_published_of"] == "GPRGNN"
    for suffix in ("csv", "html", "png", "svg"):
        assert (tmp_path / f"automatic.{suffix}").stat().st_size > 0
    assert (tmp_path / "automatic-families.png").exists()
    assert "<h2>What was chosen</h2>" in document.html()


def test_a_part_of_the_splits_is_never_bold(tmp_path):
    render(Automatic(("cora",)), fill(tmp_path / "store", make_run("cora", 0, 0.99)), tmp_path, "command")
    assert "| cora | 99.00 (1 of 10 splits) |" in (tmp_path / "automatic-cora.md").read_text()


def test_type_c_stands_beside_it_on_the_same_splits(tmp_path):
    store = fill(tmp_path / "store", make_run("texas", 1, 0.9))
    for split, job in enumerate(Table3(Options()).cell("texas", automatic_page.TYPE_C)):
        numbers = {"test_metric": 0.5 + 0.01 * split, "val_metric": 0.5, "val_loss": 1.0, "epochs": 9, "best_epoch": 5}
        about = {"channels": 7, "regime": None, "metric": "accuracy", "stand_in": None, "tree": None, "seconds": 1.0}
        about |= {"wall": 1.0, "versions": {}, "when": "2026-01-01T00:00:00+00:00", "channels_digest": "0" * 16}
        store.append(Record(job=job.to_dict(), **numbers, **about).to_dict())
    render(Automatic(("texas",)), store, tmp_path, "command")
    assert "| texas | 90.00 (1 of 10 splits) | 51.00 | 86.22 ± 3.30 | 90.27 | LSGNN | +39.00 | -0.27 |" in (
        tmp_path / "automatic-texas.md"
    ).read_text().replace("  ", " ")


def test_nothing_ran_is_said_and_not_drawn(tmp_path):
    document = render(Automatic(("texas",)), Store(tmp_path / "store"), tmp_path, "command")
    assert document.summary["runs"] == {"made": 0, "of": 10}
    assert "- not in the store: splits 0 to 9 of texas" in document.blocks
    assert not list(tmp_path.glob("*.png"))


def test_other_runs_in_the_store_count_as_looks(tmp_path):
    store = fill(tmp_path / "store", make_run(), make_run(version=VERSION - 1), make_run(seed=3), make_run("cora"))
    text = render(Automatic(("texas",)), store, tmp_path, "command").markdown()
    assert "once per run, 1 times" in text
    assert "also holds 2 runs on these sets" in text


def test_notes_are_shown(tmp_path):
    (tmp_path / "notes.toml").write_text('[automatic]\n"looks" = "The tests of the nine sets were looked at twice."\n')
    document = render(Automatic(), Store(tmp_path / "store"), tmp_path, "command")
    assert "The tests of the nine sets were looked at twice." in document.blocks


def test_graphs_stand_beside_the_best_model_on_the_same_splits(tmp_path, monkeypatch):
    source = Source.of("synthetic", gamma=0.0, n=120, n_edges=500, n_features=8, splits=3)
    monkeypatch.setattr(leak_free, "find", {"dblp": source}.get)
    monkeypatch.setattr(leak_free, "CHANGES", {"epochs": 4, "patience": 4})
    monkeypatch.setattr(leak_free, "TRIES", 1)
    store = Store(tmp_path / "store")
    [found] = LeakFree(("dblp", "fsgnn", "mlp")).comparisons(store)
    runs = [make_run("dblp", i, 1.0, fingerprint=source.fingerprint()) for i in (0, 2)]
    beside = Beside.of(runs, found)
    means = {row.label: (row.test.per_split[0] + row.test.per_split[2]) / 2 for row in found.rows}
    assert means[beside.label] == max(means.values())
    assert sum(beside.values) / 2 == pytest.approx(100 * max(means.values()))
    assert beside.difference == pytest.approx(100 * (1 - max(means.values())))
    assert beside.models == 2
    assert Beside.of(runs, None) is None
    assert Beside.of(runs[:1], found).means_nothing
    assert Beside.of([replace(run, metric="roc_auc") for run in runs], found) is None
    for run in runs:
        store.append(run.to_dict())
    document = render(Automatic(("dblp",)), store, tmp_path, "command")
    assert document.summary["graphs"]["ahead"] == document.summary["graphs"]["compared"] == ["dblp"]
    assert "on 1 of 1 graphs that have both (1 of them with a part of their splits)" in document.markdown()
    row = next(line for line in document.markdown().splitlines() if line.startswith("| dblp | 100.00"))
    assert f"| {beside.label} | 2 |" in row  # of all models, two ran
    assert len(CONTENDERS) > 2


def test_a_set_whose_file_is_missing_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(leak_free, "find", lambda name: None)
    document = render(Automatic(("dblp",)), Store(tmp_path / "store"), tmp_path, "command")
    assert any(isinstance(block, str) and "dblp: its file is not" in block for block in document.blocks)


# --------------------------------------------------------------------------- the command


def command(*words):
    return CliRunner().invoke(app, ["reproduce", *words])


def test_the_command_runs_then_renders(tiny, ran, tmp_path):
    words = ["automatic", "--splits", "1", "--store", f"{tmp_path}/store", "-o", f"{tmp_path}/page"]
    done = command(*words)
    assert done.exit_code == 0, done.output
    assert "2 of 5 runs are in the store" in done.output
    page = tmp_path / "page" / "automatic.md"
    first = page.read_text()
    assert "    pegfan reproduce automatic --store store -o page" in first
    again = command(*words, "--render-only")
    assert (again.exit_code, len(ran)) == (0, 2)
    assert page.read_text() == first


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table3", "--budget", "5"], "--budget is for automatic; leave it out."),
        (["leak-free", "--seed", "0"], "--seed is for automatic"),
        (["automatic", "--quick"], "--quick is for other tables"),
        (["automatic", "--scheduler", "tcp://x"], "--scheduler is for other tables"),
        (["automatic", "--budget", "-1"], "--budget is a positive number of seconds, not -1.0."),
        (["automatic", "--only", "texsa"], "this table has no 'texsa'"),
    ],
)
def test_options_that_do_not_fit_are_refused(words, message, tmp_path):
    done = command(*words, "--store", f"{tmp_path}/s", "-o", f"{tmp_path}/o")
    assert done.exit_code != 0
    assert message in " ".join(done.output.split())


@pytest.mark.long
def test_a_whole_training_of_a_tiny_set(tmp_path, monkeypatch):
    source = Source.of("synthetic", gamma=0.0, n=120, n_edges=500, n_features=8, splits=2)
    monkeypatch.setattr(Automatic, "sources", {"texas": source})
    table, store = Automatic(("texas",), splits=1, budget=2.0, workers=1), Store(tmp_path)
    assert table.compute(store) == {}
    [run] = table.runs(Store(tmp_path))["texas"]
    assert (run.split, run.budget, run.seed, run.metric) == (0, 2.0, 0, "accuracy")
    assert 0 <= run.test_metric <= 1
    assert run.trainings >= max(run.tried, len(run.members))
    assert min(run.tried, len(run.members)) >= 1
    assert sum(one.weight for one in run.members) == pytest.approx(1)
    assert 0 < run.search_seconds <= run.seconds
    assert all(family(one.recipe) in FAMILIES for one in run.members)
