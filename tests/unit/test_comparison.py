"""Models against each other: the same splits, the same budget, validation alone decides, and no model stops others."""

import inspect
import json
import math
import re
import shlex
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import pegfan as pf
from pegfan import comparison, results
from pegfan.cli import app
from pegfan.comparison import CONTENDERS, Comparison, Contender, _chosen, compare, quick_ones
from pegfan.datasets import Source
from pegfan.experiments import Record, Store, jobs
from pegfan.networks import NETWORKS, NetworkRecipe
from pegfan.report import write_comparison
from pegfan.results import Rival, Splits, Spread

GRAPH = Source.of("synthetic", gamma=0.2, n=60, n_edges=200, n_features=4, splits=4)
FAST = {"epochs": 4, "hidden": 4}
OURS = ["--label", "kind", "--models", "pegfan,fsgnn"]
A = Contender("a", "A", {"dropout": (0.3, 0.4, 0.6)}, {"method": "none", "hops": 1})
B = Contender("b", "B", {"lr_fc": (0.001, 0.002)}, {"method": "none", "hops": 2})


class Landscape:
    """Stands for training: metrics by a formula of the job; keeps the jobs that ran."""

    def __init__(self, validation, test):
        self.validation, self.test, self.ran = validation, test, []

    def __call__(self, job, **folders):
        self.ran.append(job)
        metrics = {"val_metric": self.validation(job), "test_metric": self.test(job), "val_loss": 1.0}
        counts = {"epochs": 1, "best_epoch": 0, "channels": 2, "seconds": 2.0, "wall": 0.1, "metric": "accuracy"}
        about = {"regime": None, "stand_in": None, "tree": None, "versions": {}, "when": "", "memory": 1000 + job.split}
        lost = {"diverged": "the loss is infinite"} if metrics["val_metric"] is None else {"engine": "fast"}
        return Record(job=job.to_dict(), channels_digest="0" * 16, **metrics, **counts, **about, **lost)


@pytest.fixture
def landscape(monkeypatch):
    def put(validation=lambda job: 0.5, test=lambda job: 0.5):
        made = Landscape(validation, test)
        monkeypatch.setattr(jobs, "run_job", made)
        return made

    return put


def dropout(job):
    return job.recipe.settings.dropout


# ------------------------------------------------------------------------ contenders


def test_candidates_are_the_default_then_distinct_draws():
    found = CONTENDERS["pegfan"].candidates(20, seed=3)
    assert found[0] == pf.Recipe()
    assert len({recipe.key for recipe in found}) == 20
    assert found[:5] == CONTENDERS["pegfan"].candidates(5, seed=3), "more tries keep the first ones"
    assert found != CONTENDERS["pegfan"].candidates(20, seed=4)


def test_a_small_space_is_tried_whole():
    drawn = [recipe.settings.dropout for recipe in A.candidates(10)]
    assert drawn[0] == 0.5
    assert sorted(drawn) == [0.3, 0.4, 0.5, 0.6]
    assert len(Contender("c", "C", {}).candidates(10)) == 1
    alike = Contender("d", "D", {"h": (2, 3, 4)}, {"method": "none"})
    assert len(alike.candidates(10)) == 1, "without a tree h makes no difference"


def test_changes_hold_in_every_candidate():
    assert {recipe.settings.dropout for recipe in A.candidates(10, changes={"dropout": 0.1})} == {0.1}


def test_networks_have_their_own_defaults_and_spaces():
    for name, kind in NETWORKS.items():
        found = CONTENDERS[name].candidates(4)
        assert found[0] == NetworkRecipe.of({"model": name}), "the default"
        assert len(found) == 4
        assert {recipe.model for recipe in found} == {name}
        assert (CONTENDERS[name].label, CONTENDERS[name].quick) == (kind.label, kind.quick)
    assert not CONTENDERS["label-propagation"].space.keys() & {"lr", "weight_decay"}, "it is not trained"


def test_a_default_that_is_spelled_out_is_no_second_try():
    """`hidden=64` and no word of it train the same."""
    every = CONTENDERS["label-propagation"].candidates(100)
    assert len(every) == 12, "its whole space: four times three"
    for name in NETWORKS:
        found = CONTENDERS[name].candidates(40)
        assert len({json.dumps(recipe.whole, sort_keys=True) for recipe in found}) == len(found)


def test_the_defaults_of_options_are_those_of_the_modules():
    from pegfan import models

    for kind in NETWORKS.values():
        taken = inspect.signature(getattr(models, kind.module)).parameters
        assert {name: taken[name].default for name in kind.options} == kind.options
        assert {one.name for one in taken.values() if one.default is not one.empty} == kind.options.keys()


def test_nothing_is_tried_that_makes_no_difference(landscape):
    assert "direction" not in CONTENDERS["mlp"].space, "it sees no edges"
    graph = pf.datasets.synthetic(0.2, n=60, n_edges=200, n_features=4, splits=1).replace(features=None)
    ran = landscape()
    compare(graph, ["gcn"], tries=12)
    assert {job.recipe.scaling for job in ran.ran} == {"columns"}
    ran = landscape()
    compare(graph, ["pegfan"], tries=12)
    settled = [job.recipe.settled(graph, 0, stood_in=True).key for job in ran.ran]
    assert len(set(settled)) == len(settled) == 12


def test_sides_of_edges_are_searched_on_directed_graphs_only(landscape):
    sides = {}
    for directed in (False, True):
        parts = pf.Split(*np.arange(6).reshape(3, 2))
        graph = pf.Graph.from_edges([[0, 1], [1, 2]], n=6, labels=[0, 1] * 3, splits=[parts], directed=directed)
        ran = landscape()
        compare(graph, ["gcn"], tries=12)
        compare(graph, ["fsgnn"], tries=12)
        sides[directed] = {(getattr(job.recipe, "label", "FSGNN"), job.recipe.direction) for job in ran.ran}
    both = {(model, side) for model in ("GCN", "FSGNN") for side in ("symmetric", "out")}
    assert sides == {False: {("GCN", "symmetric"), ("FSGNN", "out")}, True: both}


# ---------------------------------------------------------------------------- search


def test_validation_alone_decides(landscape):
    """The settings that are best on test nodes are worst on validation: they lose, and are not run on other splits."""
    ran = landscape(validation=lambda job: 1 - dropout(job), test=dropout)
    (row,) = compare(GRAPH, [A], tries=4).rows
    assert row.recipe["dropout"] == 0.3
    assert row.test == Spread.of([0.3] * 4)
    assert {dropout(job) for job in ran.ran if job.split > 0} == {0.3}


def test_test_metrics_of_losers_change_nothing(landscape):
    found = []
    for test in (dropout, lambda job: dropout(job) if dropout(job) == 0.3 else 0.99):
        landscape(validation=lambda job: 1 - dropout(job), test=test)
        found.append(compare(GRAPH, [A], tries=4).rows)
    assert found[0] == found[1]


def test_of_equal_settings_the_first_wins(landscape):
    landscape()
    assert compare(GRAPH, [A], tries=4).rows[0].recipe.get("dropout", 0.5) == 0.5


def test_all_have_the_same_splits_seeds_and_tries(landscape):
    ran = landscape()
    found = compare(GRAPH, [A, B], tries=3, search_splits=2, splits=[3, 0, 1], seed=5)
    assert found.splits.used == (3, 0, 1)
    for hops in (1, 2):
        own = [job for job in ran.ran if job.recipe.hops == hops]
        assert {job.split for job in own} == {0, 1, 3}
        assert {(job.split, job.seed) for job in own} == {(3, 8), (0, 5), (1, 6)}
        assert len({job.recipe for job in own if job.split in (3, 0)}) == 3
        assert len({job.recipe for job in own if job.split == 1}) == 1, "only the winner"
        assert len(own) == 3 * 2 + 1


def test_the_mean_over_search_splits_counts(landscape):
    scores = {(0.5, 0): 0.9, (0.5, 1): 0.1}
    landscape(validation=lambda job: scores.get((dropout(job), job.split), 0.6 if dropout(job) == 0.4 else 0.2))
    assert compare(GRAPH, [A], tries=4, search_splits=2).rows[0].recipe["dropout"] == 0.4


def test_what_was_run_is_not_run_again(landscape, tmp_path):
    ran = landscape()
    first = compare(GRAPH, [A, B], tries=2, store=tmp_path)
    count = len(ran.ran)
    assert count == 2 * (1 + 4), "the winner's run of the search counts for its split"
    again = compare(GRAPH, [A, B], tries=2, store=tmp_path)
    assert len(ran.ran) == count
    assert again.rows == first.rows
    compare(GRAPH, [A, B], tries=3, store=Store(tmp_path))
    assert len(ran.ran) == count + 2, "one more try each"


def test_progress_counts_to_the_end(landscape):
    steps = []
    landscape()
    compare(GRAPH, [A, B], tries=2, progress=steps.append)
    assert (steps[-1].done, steps[-1].planned) == (10, 10)
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert str(steps[-1]).startswith("B, run 10")


# ---------------------------------------------------------------- what cannot run


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("it needs features"), "it needs features"),
        (MemoryError("9 GB for A²"), "not enough memory. 9 GB for A²"),
        (MemoryError(), "not enough memory"),
        (ImportError("it needs torch: pip install 'pegfan[torch]'"), "pip install 'pegfan[torch]'"),
        (OSError("a worker process died"), "a worker process died"),
        (ZeroDivisionError("no edges"), "ZeroDivisionError: no edges"),
    ],
)
def test_a_model_that_cannot_run_says_why_and_the_others_go_on(landscape, error, reason):
    def validation(job):
        if job.recipe.hops == 1:
            raise error
        return 0.5

    landscape(validation)
    found = compare(GRAPH, [A, B], tries=2)
    assert [row.name for row in found.rows] == ["b", "a"]
    assert found.rows[1].reason.endswith(reason)
    assert found.rows[1].test is None
    assert reason in str(found)
    assert found.complete


def test_settings_that_cannot_run_are_left_out(landscape):
    def validation(job):
        if dropout(job) == 0.5:
            raise ValueError("not this one")
        return dropout(job)

    landscape(validation)
    (row,) = compare(GRAPH, [A], tries=4).rows
    assert row.recipe["dropout"] == 0.6


def test_a_loss_that_diverges_loses_or_is_the_reason(landscape):
    landscape(lambda job: None if dropout(job) == 0.6 else dropout(job))
    assert compare(GRAPH, [A], tries=4).rows[0].recipe.get("dropout", 0.5) == 0.5
    landscape(lambda job: None)
    assert compare(GRAPH, [A], tries=4).rows[0].reason == "in all of 4 tries: the loss is infinite"
    landscape(test=lambda job: None if job.split == 2 else 0.5)
    assert compare(GRAPH, [A], tries=1).rows[0].reason.startswith("split 2: ")


def test_one_setting_without_memory_costs_a_try_not_the_model(landscape):
    def validation(job):
        if dropout(job) == 0.6:
            raise MemoryError("a matrix of everything")
        return dropout(job)

    landscape(validation)
    (row,) = compare(GRAPH, [A], tries=4).rows
    assert row.test is not None
    assert pf.Recipe.of(row.recipe).settings.dropout == 0.5


def test_a_metric_that_is_undefined_on_validation_nodes_stops_nobody(landscape):
    """As ROC AUC is where the validation nodes of a split are of one class."""
    made = landscape()

    def undefined(at):
        def run(job, **folders):
            gone = {"val_metric": None} if job.split in at and job.recipe.hops == 1 else {}
            return replace(made(job), **gone)

        return run

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "run_job", undefined({2}))
        one, other = sorted(compare(GRAPH, [A, B], tries=1).rows, key=lambda row: row.name)
        assert one.validation.per_split == (0.5, 0.5, None, 0.5)
        assert one.test.mean == other.test.mean == 0.5
        patch.setattr(jobs, "run_job", undefined({0}))
        other, one = compare(GRAPH, [A, B], tries=2).rows
        assert (one.name, one.reason) == ("a", "in all of 2 tries: the metric is not defined on the validation nodes")
        other, one = compare(GRAPH, [A, B], tries=1).rows
        assert one.reason.startswith("in its only try: ")


def test_a_smaller_search_is_not_passed_off_as_the_whole(landscape, tmp_path):
    landscape()
    compare(GRAPH, [A], tries=1, store=tmp_path)
    (row,) = compare(GRAPH, [A], tries=1, store=tmp_path, run=False).rows
    assert row.test is not None
    (row,) = compare(GRAPH, [A], tries=3, store=tmp_path, run=False).rows
    assert (row.test, row.reason) == (None, "the store does not hold all of its runs")


@pytest.mark.parametrize(
    ("models", "changes", "words"),
    [
        (["pegfan", "gcn"], {"model": "gcn"}, "model is what GCN is told by"),
        (["pegfan"], {"model": "gcn"}, "model is what a network is told by"),
        (["pegfan", "fsgnn"], {"method": "ward"}, "method is what FSGNN is told by"),
        (["pegfan"], {"method": "none"}, "PEGFAN without a tree is FSGNN"),
        (["pegfan", "gcn"], {"epochss": 3}, "epochss"),
        (["gcn"], {"epochs": -3}, "epochs"),
    ],
)
def test_changes_that_mix_models_up_or_that_none_takes_are_refused_before_any_run(landscape, models, changes, words):
    ran = landscape()
    with pytest.raises(ValueError, match=re.escape(words)):
        compare(GRAPH, models, changes=changes)
    assert ran.ran == []


def test_a_change_that_only_some_take_is_the_reason_of_the_others(landscape):
    landscape()
    gcn, mlp = compare(GRAPH, ["gcn", "label-propagation"], changes={"hidden": 8}, tries=1).rows
    assert gcn.test is not None
    assert "label propagation has no 'hidden'" in mlp.reason


def test_two_models_of_one_name_are_refused():
    for other in (["gcn", Contender("gcn", "mine", {})], [Contender("gcn", "mine", {})], [A, replace(A, label="B")]):
        with pytest.raises(ValueError, match=r"there are two models of the name '(gcn|a)'; choose another name"):
            compare(GRAPH, other)


def test_a_full_disk_ends_it(landscape):
    def full(job):
        raise OSError(28, "No space left on device")

    landscape(full)
    with pytest.raises(OSError, match="No space"):
        compare(GRAPH, [A, B], tries=1)


def test_an_interrupt_keeps_what_is_finished(landscape, tmp_path):
    def validation(job):
        if job.recipe.hops == 2 and job.split == 1:
            raise KeyboardInterrupt
        return 0.5

    ran = landscape(validation)
    found = compare(GRAPH, [A, B, "fsgnn"], tries=1, store=tmp_path)
    assert not found.complete
    assert [row.test is None for row in found.rows] == [False, True, True]
    assert "stopped" in found.rows[1].reason
    ran = landscape()
    assert compare(GRAPH, [A, B], tries=1, store=tmp_path).complete
    assert [job.split for job in ran.ran] == [1, 2, 3], "what was finished before is not run again"


# ----------------------------------------------------------------------- the table


def test_the_interval_by_hand():
    """Differences −1, 0, −2 in points: mean −1, variance 1; t(2; 0.975) = 4.3027; 3 splits with test/train = 1/3."""
    low, high = (-0.01 + side * 4.302652729911275 * math.sqrt(1 / 3 + 1 / 3) * 0.01 for side in (-1, 1))
    rows = [
        Rival("x", "X", test=Spread.of([0.60, 0.70, 0.80])),
        Rival("y", "Y", test=Spread.of([0.59, 0.70, 0.78])),
        Rival("z", "Z", test=Spread.of([0.10, 0.20, 0.30])),
    ]
    best, near, far = results.ranked(reversed(rows), Splits(((60, 20, 20),) * 3, used=(0, 1, 2)))
    assert (best.name, near.name, far.name) == ("x", "y", "z")
    assert (best.difference, best.interval, best.means_nothing) == (None, None, False)
    assert near.difference == pytest.approx(-0.01)
    assert near.interval == pytest.approx((low, high))
    assert near.means_nothing
    assert far.interval == pytest.approx((-0.5, -0.5)), "all differences are the same"
    assert not far.means_nothing
    words = results.verdict((best, near, far), "accuracy")
    assert words.endswith(
        "Its difference to Y means nothing: the interval holds 0. Z is behind by more than splits explain."
    )


def test_one_split_says_nothing(landscape):
    landscape(test=lambda job: job.recipe.hops / 4)
    found = compare(GRAPH, [A, B], tries=1, splits=1)
    assert found.rows[1].interval is None
    assert found.rows[1].means_nothing
    assert "no difference means anything" in found.verdict


def test_rows_are_ordered_and_measured(landscape):
    landscape(test=lambda job: job.recipe.hops / 4 + job.split / 100)
    found = compare(GRAPH, [A, B], tries=2)
    assert [row.name for row in found.rows] == ["b", "a"]
    best, other = found.rows
    assert best.test == Spread.of([0.5, 0.51, 0.52, 0.53])
    assert other.difference == pytest.approx(-0.25)
    assert (best.seconds, best.search_seconds, best.memory) == (2.0, 4.0, 1003)
    assert found.best is best
    assert "A is behind by more than splits explain." in found.verdict
    assert "at most 2 settings" in found.budget


def test_it_is_plain_json(landscape):
    landscape()
    found = compare(GRAPH, [A, B], tries=1, changes={"epochs": 7})
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (plain["format"], plain["version"], plain["changes"]) == ("pegfan comparison", 1, {"epochs": 7})
    assert plain["rows"][0].keys() == set(Rival.__dataclass_fields__)
    assert plain["source"] == {"where": ["synthetic"], "options": dict(GRAPH.options)}
    assert {"verdict", "budget", "splits", "data", "seed", "tries", "search_splits"} < plain.keys()


def test_its_table_is_aligned(landscape):
    landscape()
    lines = str(compare(GRAPH, [A, B], tries=1)).splitlines()
    assert re.fullmatch(r"A +50\.00 ± 0\.00 +2\.00 +0  best", lines[1])
    assert re.fullmatch(r"B +50\.00 ± 0\.00 +\+0\.00 \(\+0\.00 to \+0\.00\) +2\.00 +0  means nothing", lines[2])


def test_the_picture_is_grey_where_nothing_is_meant(landscape):
    from matplotlib.colors import to_hex

    from pegfan.plots import _drawing as drawing

    landscape(test=lambda job: {1: 0.5, 2: 0.51, 3: 0.2}[job.recipe.hops] + 0.01 * job.split * (job.recipe.hops != 2))
    c = Contender("c", "C", {}, {"method": "none", "hops": 3})
    ax = compare(GRAPH, [A, B, c], tries=1).plot().axes[0]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["A", "B", "C"]
    colours = [to_hex(dots.get_facecolor()[0]) for dots in ax.collections[1::2]]
    assert colours == [drawing.VERMILION, drawing.GREY, drawing.BLUE]


def test_nothing_is_drawn_of_nothing(landscape):
    def refuse(job):
        raise ValueError("no")

    landscape(refuse)
    found = compare(GRAPH, [A], tries=1)
    assert found.verdict == "No model ran."
    with pytest.raises(ValueError, match="nothing to draw"):
        found.plot()


def test_the_page_holds_the_table_and_nothing_of_a_training(landscape, tmp_path):
    landscape(test=lambda job: job.recipe.hops / 4)
    hostile = Contender("x", "</script><b>", {}, {"method": "none", "hops": 3})
    page = write_comparison(tmp_path / "page.html", compare(GRAPH, [A, hostile], tries=1)).read_text()
    stored = re.search(r'<script type="application/json" id="content">(.*?)</script>', page, re.S).group(1)
    content = json.loads(stored)
    assert [row["kind"] for row in content["against"]["rows"]] == ["best", "behind"]
    assert content["against"]["budget"].startswith("Every model tried")
    assert not {"score", "tree", "graph", "confusion"} & content.keys()
    assert "<b>" not in page.split("</style>")[1].split("<script")[0]
    assert content["repeat"]["command"] is None, "no command knows a contender of one's own"


# ------------------------------------------------------------------- what is asked


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"models": ["gnc"]}, f"there is no model 'gnc'; there are {', '.join(CONTENDERS)}"),
        ({"models": []}, "no models are named"),
        ({"splits": 5}, "synthetic has 4 splits"),
        ({"splits": []}, "at least one split"),
        ({"splits": [1, 1]}, "each once"),
        ({"splits": 2, "search_splits": 3}, "search_splits is 3, but there are 2"),
        ({"tries": 0}, "tries"),
    ],
)
def test_wrong_questions_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        compare(GRAPH, **options)


def test_what_is_no_graph_is_refused():
    with pytest.raises(TypeError, match="a Graph, a Source"):
        compare(7)
    with pytest.raises(ValueError, match="no labels"):
        compare(pf.Graph.from_edges([[0, 1]]))


def test_splits_without_test_nodes_are_refused():
    nodes = np.arange(6)
    graph = pf.Graph.from_edges([[0, 1]], n=6, labels=[0, 1] * 3, splits=[pf.Split(nodes[:3], nodes[3:], nodes[:0])])
    with pytest.raises(ValueError, match="no labelled test nodes"):
        compare(graph)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_a_graph_in_memory_is_the_same_for_its_runs(tmp_path, sparse, directed):
    from scipy.sparse import csr_array

    rng = np.random.default_rng(0)
    x = rng.random((8, 3)) * (rng.random((8, 3)) < 0.5)
    nodes = np.arange(8)
    graph = pf.Graph.from_edges(
        [[0, 1], [1, 2], [3, 2], [7, 7]],
        [1.0, 2.0, 0.5, 1.0],
        n=8,
        directed=directed,
        features=csr_array(x) if sparse else x,
        labels=[0, 1, -1, 1, 0, 1, 0, 1],
        splits=[pf.Split(nodes[:3], nodes[3:5], nodes[5:]), pf.Split(nodes[4:], nodes[2:4], nodes[:2])],
        metric="roc_auc",
    )
    source = comparison._source(graph, tmp_path)
    read, _ = source.open()
    assert (read.adjacency != graph.adjacency).nnz == 0
    assert (read.directed, read.metric) == (directed, "roc_auc")
    assert np.array_equal(read.labels, graph.labels)
    found = read.features.toarray() if sparse else read.features
    assert np.array_equal(found, graph.features.toarray() if sparse else graph.features)
    for one, other in zip(read.splits, graph.splits, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    again = comparison._source(graph, tmp_path)
    assert again == source
    assert again.fingerprint() == source.fingerprint()


# ------------------------------------------------------------- from files to the table


@pytest.fixture
def files(tmp_path):
    graph, _ = GRAPH.open()
    edges, nodes = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    edges.write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in graph.edges()[0]))
    rows = zip(graph.labels, np.asarray(graph.features), strict=True)
    text = "".join(f"{i},c{c},{','.join(map(str, x))}\n" for i, (c, x) in enumerate(rows))
    nodes.write_text("id,kind,a,b,c,d\n" + text)
    return [str(edges), str(nodes)]


def call(*words, code=0):
    result = CliRunner().invoke(app, ["compare", *map(str, words)], env={"COLUMNS": "160"})
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def test_two_files_become_a_table_a_picture_and_a_page(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [*files, *OURS, "--splits", 2, "--tries", 1, "--set", "epochs=4", "--set", "hidden=4"]
    shown = call(*words, "-o", "models.svg", "--report", "page.html").stdout
    assert "test nodes of 2 random splits" in shown
    assert "PEGFAN" in shown
    assert "is best, with a test accuracy of" in shown
    assert "<svg" in (tmp_path / "models.svg").read_text()
    page = (tmp_path / "page.html").read_text()
    assert "Against the others" in page
    monkeypatch.setattr(jobs, "run_job", None)  # all of it is in the store
    found = json.loads(call(*words, "--json").stdout)
    command = shlex.split(re.search(r"pegfan compare [^\"]*", page)[0])
    again = json.loads(call(*command[2:], "--json").stdout)
    assert again["rows"] == found["rows"], "the page tells how to repeat it"
    assert [row["reason"] for row in found["rows"]] == ["", ""]
    assert all(row["memory"] is None or row["memory"] > 2**20 for row in found["rows"])
    assert found["changes"] == {"epochs": 4, "hidden": 4}


def test_the_command_names_the_models_that_there_are(files):
    said = call(*files, "--models", "fsgnn,gnc", code=2).stderr
    assert f"--models does not know 'gnc'; there are {', '.join(CONTENDERS)}, and quick." in " ".join(said.split())


def test_a_table_without_a_model_that_ran_is_no_success(files, tmp_path, landscape):
    def refuse(job):
        raise ValueError("it needs more edges")

    landscape(refuse)
    words = [*files, *OURS, "--tries", 1, "--store", tmp_path / "store", "-o", tmp_path / "no.png"]
    shown = call(*words, code=1).stdout
    assert shown.count("it needs more edges") == 2
    assert "No model ran." in shown
    assert not (tmp_path / "no.png").exists()


def test_ctrl_c_shows_the_table_so_far(files, tmp_path, landscape):
    def stop(job):
        if not job.recipe.has_tree:
            raise KeyboardInterrupt
        return 0.5

    landscape(stop)
    outputs = tmp_path / "a.svg", tmp_path / "a.html"
    words = "--tries", 1, "--splits", 2, "--store", tmp_path / "store", "-o", outputs[0], "--report", outputs[1]
    found = call(*files, *OURS, *words, code=130)
    assert "PEGFAN alone ran" in found.stdout
    assert "The same command continues from" in found.stderr
    assert not any(path.exists() for path in outputs)
    landscape()
    call(*files, *OURS, *words)
    assert all(path.exists() for path in outputs)


@pytest.mark.parametrize("words", [["-o", "a.gif"], ["--report", "a.txt"]])
def test_outputs_are_refused_before_any_work(files, words, monkeypatch):
    monkeypatch.setattr(jobs, "run_job", None)
    call(*files, "--label", "kind", *words, code=2)


@pytest.mark.long
def test_other_processes_give_the_same_table(tmp_path):
    graph = pf.datasets.synthetic(0.2, n=80, n_edges=300, n_features=4, splits=2)
    alone, both = (compare(graph, ["pegfan", "fsgnn"], tries=2, changes=FAST, workers=workers) for workers in (1, 2))
    assert [(row.name, row.test, row.recipe) for row in alone.rows] == [
        (row.name, row.test, row.recipe) for row in both.rows
    ]


@pytest.mark.long
def test_a_graph_without_features_or_edges_is_compared_all_the_same():
    bare = pf.Graph.from_edges(np.empty((0, 2), int), n=40, labels=np.arange(40) % 2)
    found = compare(bare, ["pegfan", "fsgnn"], splits=2, tries=1, changes=FAST)
    assert isinstance(found, Comparison)
    assert all(row.reason or row.test for row in found.rows)
    assert found.data.features == 0


@pytest.mark.long
def test_networks_stand_beside_our_own():
    pytest.importorskip("torch")
    graph = pf.datasets.synthetic(0.2, n=80, n_edges=300, n_features=4, splits=2)
    found = compare(graph, ["fsgnn", *comparison.quick_ones(), "gat"], tries=2, changes={"epochs": 3})
    assert {row.name: row.reason for row in found.rows} == dict.fromkeys(["fsgnn", *comparison.quick_ones(), "gat"], "")
    assert next(row for row in found.rows if row.name == "gcn").recipe["model"] == "gcn"


def test_quick_stands_for_pegfan_and_those_that_train_in_seconds():
    names = [one.name for one in _chosen(["gat", "quick", "mlp"])]
    assert names == ["gat", "pegfan", *quick_ones()]
    assert {"fsgnn", "mlp", "gcn", "label-propagation", "sgc"} == set(quick_ones())
