"""Search over settings: by which rule, on validation alone, and going on where it stopped."""

import csv
import itertools
import json
import math
import re
import signal
import subprocess
import sys
import time
import zlib
from dataclasses import asdict

import numpy as np
import pytest
from typer.testing import CliRunner

from pegfan.cli import app
from pegfan.datasets import Source
from pegfan.experiments import Job, OutOfTime, Record, Store, jobs
from pegfan.experiments.search import Rung, default_rungs, grid, search
from pegfan.recipe import Recipe
from pegfan.training import Settings

GRAPH = Source.of("synthetic", gamma=0.2, n=60, n_edges=200, n_features=4, splits=12)
FSGNN = Recipe("none", hops=1, regime="heterophily", scaling="none")


class Landscape:
    """Stands for training: numbers that follow from the settings by a formula, and a count of the runs."""

    def __init__(self, metric, test=lambda job: 0.5, loss=lambda job: 1.0):
        self.metric, self.test, self.loss, self.ran = metric, test, loss, []

    def __call__(self, job, trees=None, relations=None):
        self.ran.append(job)
        result = {"val_metric": self.metric(job), "val_loss": self.loss(job), "test_metric": self.test(job)}
        counts = {"epochs": 1, "best_epoch": 0, "channels": 2, "seconds": 0.1, "wall": 0.1, "metric": "accuracy"}
        about = {"regime": None, "stand_in": None, "tree": None, "versions": {}, "when": ""}
        return Record(job=job.to_dict(), channels_digest="0" * 16, **result, **counts, **about)


@pytest.fixture
def landscape(monkeypatch):
    def put(metric, **others):
        made = Landscape(metric, **others)
        monkeypatch.setattr(jobs, "run_job", made)
        return made

    return put


@pytest.fixture
def files(tmp_path):
    graph, _ = GRAPH.open()
    rows, columns = graph.adjacency.nonzero()
    edges, nodes = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    edges.write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in zip(rows, columns, strict=True)))
    numbers = [",".join(f"{x:.3f}" for x in row) for row in np.asarray(graph.features)]
    text = "".join(f"{i},c{c},{x}\n" for i, (c, x) in enumerate(zip(graph.labels, numbers, strict=True)))
    nodes.write_text("id,kind,a,b,c,d\n" + text)
    return edges, nodes


def noise(job, size=0.02):
    """The same in every run; different for every setting and split."""
    return size * (zlib.crc32(job.name.encode()) / 2**32 - 0.5)


def bowl(job):
    """Best at lr_fc 0.01, wd_fc1 1e-4; better with more epochs."""
    s = job.recipe.settings
    off = abs(math.log10(s.lr_fc / 0.01)) + abs(math.log10(max(s.wd_fc1, 1e-6) / 1e-4)) / 4
    return 0.9 - 0.3 * min(off, 2) - 0.1 / s.epochs + noise(job)


def find(folder, recipe=FSGNN, **options):
    return search(GRAPH, recipe, Store(folder), **options)


# --------------------------------------------------------------------------- grids


PUBLISHED = {
    "paper": {  # "Hyperparameter search range" of the appendix; dropout from the authors' code
        "wd_sca": {0, 0.001, 0.1},
        "lr_sca": {0.01, 0.04},
        "wd_fc1": {0, 0.0001, 0.001},
        "wd_fc2": {0, 0.0001, 0.001},
        "lr_fc": {0.005, 0.01},
        "dropout": {0.5},
    },
    "authors": {
        "wd_sca": {0, 0.0001, 0.001, 0.01, 0.1},
        "lr_sca": {0.005, 0.01, 0.02, 0.04},
        "wd_fc1": {0, 0.0001, 0.001},
        "wd_fc2": {0, 0.0001, 0.001},
        "lr_fc": {0.005, 0.01},
        "dropout": {0.5, 0.6, 0.7},
    },
}


@pytest.mark.parametrize(("name", "count"), [("paper", 108), ("authors", 1080)])
def test_the_grids_are_the_published_ones(name, count):
    entries, values = grid(name), PUBLISHED[name]
    assert len(entries) == count == math.prod(map(len, values.values()))
    assert {tuple(entry[key] for key in values) for entry in entries} == set(itertools.product(*values.values()))
    for entry in entries:
        assert entry.keys() == values.keys()
        Settings.of(entry)


def test_the_authors_grid_is_finer_than_the_papers():
    paper, authors = grid("paper"), grid("authors")
    assert all(entry in authors for entry in paper)
    # One winner of the authors' code is outside the paper's grid: the table was searched more finely.
    winner = {"wd_sca": 0.1, "wd_fc1": 1e-4, "wd_fc2": 0.0, "lr_sca": 0.005, "lr_fc": 0.01, "dropout": 0.7}
    assert winner in authors
    assert winner not in paper
    with pytest.raises(ValueError, match="'papers'"):
        grid("papers")


# ----------------------------------------------------------------------- full grid


@pytest.mark.long
def test_the_grid_runs_everything_and_takes_the_best_validation(tmp_path, landscape):
    made = landscape(bowl, test=lambda job: job.split / 10)
    result = find(tmp_path, strategy="grid", splits=3, seed=42)
    assert len(made.ran) == 324
    assert {(job.split, job.seed) for job in made.ran} == {(0, 42), (1, 43), (2, 44)}
    means = {
        json.dumps(entry): np.mean(
            [bowl(job) for job in made.ran if entry.items() <= asdict(job.recipe.settings).items()]
        )
        for entry in grid()
    }
    best = max(means, key=means.get)
    assert result.best.settings == json.loads(best)
    assert result.best.val_metric == pytest.approx(means[best])
    assert [c.val_metric for c in result.candidates] == sorted(means.values(), reverse=True)
    assert (result.computed, result.reused, result.complete) == (324, 0, True)
    assert result.test_metrics == (0.0, 0.1, 0.2)
    assert (result.test_mean, result.test_std) == (pytest.approx(0.1), pytest.approx(np.std([0, 0.1, 0.2])))


@pytest.mark.parametrize("strategy", ["grid", "halving", "optuna"])
@pytest.mark.long
def test_the_test_metric_has_no_part_in_it(tmp_path, landscape, strategy):
    """The metric on test nodes upside down: the same runs, the same winner."""
    outcomes = []
    for sign in (1, -1):
        made = landscape(bowl, test=lambda job, sign=sign: 0.5 + sign * (bowl(job) - 0.5))
        found = find(tmp_path / str(sign), strategy=strategy, splits=4, trials=8, settings=grid()[::5])
        outcomes.append((found.candidates, [job.name for job in made.ran]))
    assert outcomes[0] == outcomes[1]
    assert "test_metric" not in found.to_dict()["candidates"][0]


def test_ties_go_to_the_lower_validation_loss(tmp_path, landscape):
    landscape(lambda job: 0.5, loss=lambda job: abs(job.recipe.settings.lr_fc - 0.02))
    some = [{"lr_fc": rate} for rate in (0.01, 0.02, 0.03)]
    assert find(tmp_path, strategy="grid", settings=some).best.settings == {"lr_fc": 0.02}


def test_a_run_that_diverged_comes_last(tmp_path, landscape):
    lost = {"lr_fc": 0.9}
    wild = lambda value: lambda job: None if job.recipe.settings.lr_fc == 0.9 else value  # noqa: E731
    landscape(wild(0.2), loss=wild(3.0), test=wild(0.2))
    result = find(tmp_path, strategy="grid", settings=[lost, {"lr_fc": 0.01}], splits=2)
    assert [c.settings for c in result.candidates] == [{"lr_fc": 0.01}, lost]
    json.dumps(find(tmp_path, strategy="grid", settings=[lost], splits=2).test_metrics)


# ------------------------------------------------------------------------- halving


def test_halving_runs_its_rungs_and_finds_what_the_grid_finds(tmp_path, landscape):
    made = landscape(lambda job: bowl(job) - noise(job))  # the same order in every rung
    rungs = [Rung(108, 12, 1), (16, 60, 1), (4, 1500, 1)]
    result = find(tmp_path, rungs=rungs)
    assert [job.recipe.settings.epochs for job in made.ran] == [12] * 108 + [60] * 16 + [1500] * 4
    order = sorted(grid(), key=lambda entry: -bowl_of(entry))
    for count, epochs in ((16, 60), (4, 1500)):
        ran = [
            {name: getattr(job.recipe.settings, name) for name in order[0]}
            for job in made.ran
            if job.recipe.settings.epochs == epochs
        ]
        assert sorted(map(bowl_of, ran)) == pytest.approx(sorted(map(bowl_of, order[:count])))
    assert bowl_of(result.best.settings) == pytest.approx(bowl_of(order[0]))
    assert [c.rung for c in result.candidates] == [2] * 4 + [1] * 12 + [0] * 92
    assert result.best.epochs == 1500


def bowl_of(entry):
    job = Job(GRAPH, FSGNN.changed(**entry), 0, 42)
    return bowl(job) - noise(job)


@pytest.mark.long
def test_the_default_rungs_end_with_all_splits_and_epochs(tmp_path, landscape):
    made = landscape(bowl)
    find(tmp_path, FSGNN.changed(epochs=300), splits=10)
    assert default_rungs(108, 300, 10)[-1] == Rung(5, 300, 10)
    full = [job for job in made.ran if job.recipe.settings.epochs == 300]
    assert {job.split for job in full} == set(range(10))
    assert len(made.ran) < 108 + 36 + 50 + 1


def test_a_hopeless_setting_is_not_run_on_the_other_splits(tmp_path, landscape):
    """0.02 leads; 0.03 is behind by 0.004, too little to give up; 0.01 by 0.1 everywhere; 0.04 by 0.1 give or take."""
    value = {0.01: 0.7, 0.02: 0.8, 0.03: 0.796, 0.04: 0.7}
    swing = lambda job: 0.3 * (-1) ** job.split if job.recipe.settings.lr_fc == 0.04 else 0.0  # noqa: E731
    made = landscape(lambda job: value[job.recipe.settings.lr_fc] + swing(job))
    some = [{"lr_fc": rate} for rate in value]
    result = find(tmp_path, settings=some, splits=9, rungs=[(4, 5, 9)])
    ran = {rate: [job.split for job in made.ran if job.recipe.settings.lr_fc == rate] for rate in value}
    assert ran[0.02] == ran[0.03] == list(range(9))
    assert ran[0.01] == [0, 1, 2]
    assert ran[0.04] == list(range(9))
    assert [(c.settings["lr_fc"], c.splits) for c in result.candidates] == [(0.02, 9), (0.03, 9), (0.04, 9), (0.01, 3)]


@pytest.mark.parametrize(
    ("rungs", "words"),
    [
        ([], "each at least 1"),
        ([(4, 0, 1)], "each at least 1"),
        ([(4, 10, 2), (2, 5, 2)], "epochs and splits more"),
        ([(4, 10, 2), (5, 20, 2)], "settings get fewer"),
        ([(4, 10, 1)], "all 2 splits"),
    ],
)
def test_rungs_are_checked(tmp_path, rungs, words):
    with pytest.raises(ValueError, match=words):
        find(tmp_path, rungs=rungs, splits=2)


# -------------------------------------------------------------------------- optuna


def test_optuna_draws_the_same_trials_from_the_same_seed(tmp_path, landscape):
    drawn = []
    for name, seed in (("a", 42), ("b", 42), ("c", 7)):
        made = landscape(lambda job: bowl(job) - noise(job))
        find(tmp_path / name, strategy="optuna", trials=30, seed=seed)
        drawn.append([asdict(job.recipe.settings) for job in made.ran])
        assert len(drawn[-1]) == 30
    assert drawn[0] == drawn[1]
    assert drawn[0][1:] != drawn[2][1:]
    late = [bowl_of({name: entry[name] for name in ("lr_fc", "wd_fc1")}) for entry in drawn[0]]
    assert np.mean(late[20:]) > np.mean(late[1:11])  # it learns


def test_optuna_prunes_across_splits(tmp_path, landscape):
    made = landscape(bowl)
    result = find(tmp_path, strategy="optuna", trials=12, splits=6)
    assert len(made.ran) < 72
    assert {c.splits for c in result.candidates} == {3, 6}
    assert result.best.splits == 6
    assert len(result.candidates) == 12


# ------------------------------------------------------------------------- going on


@pytest.mark.parametrize("strategy", ["grid", "halving", "optuna"])
def test_a_search_that_was_stopped_goes_on_and_computes_nothing_twice(tmp_path, landscape, strategy):
    options = {"strategy": strategy, "splits": 4, "trials": 10, "settings": grid()[::9]}
    made = landscape(bowl)
    whole = find(tmp_path / "whole", **options)
    expected = [job.name for job in made.ran]
    ran = []
    for stop in (1, 2, 5, 9, 14, 3, 100):
        made = landscape(bowl)
        seen = []

        def end(step, stop=stop, seen=seen, made=made):
            seen.append(step)
            if len(made.ran) >= stop:
                raise KeyboardInterrupt

        try:
            found = find(tmp_path / "stopped", **options, progress=end)
        except KeyboardInterrupt:
            found = None
        ran += [job.name for job in made.ran]
        assert [step.done for step in seen] == sorted(step.done for step in seen)
        assert all(step.done <= step.planned for step in seen)
        if found is not None:
            break
    assert found is not None
    assert ran == expected
    assert found.candidates == whole.candidates
    assert (found.computed + found.reused, whole.computed) == (len(expected), len(expected))


def test_data_that_change_between_rungs_are_not_compared_with_what_they_were(tmp_path, files, landscape):
    made = landscape(bowl)

    def change(step):
        if len(made.ran) == 8:  # the last of the first rung
            files[0].write_text(files[0].read_text() + "1,2\n")

    options = {"settings": [{"lr_fc": 0.001 * k} for k in range(1, 9)], "rungs": [(8, 10, 1), (2, 20, 1)], "splits": 1}
    with pytest.raises(OSError, match=rf"^{re.escape(str(files[0]))} changed"):
        search(Source.of(*files, label="kind"), FSGNN, Store(tmp_path / "s"), progress=change, **options)
    assert len(made.ran) == 8


@pytest.mark.long
def test_a_search_that_is_killed_goes_on(tmp_path, files):
    """A small version of tests/slow/test_kill.py: one kill -9 in the middle of it."""
    options = [*map(str, files), "--label", "kind", "--strategy", "optuna", "--trials", "8", "--splits", "2"]
    options += ["--epochs", "200", "--workers", "1", "-o"]
    line = [sys.executable, "-c", "from pegfan.cli import app; app()", "search", *options]
    assert command(*options, tmp_path / "whole").exit_code == 0
    path = tmp_path / "killed" / "records.jsonl"
    process = subprocess.Popen([*line, path.parent], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while process.poll() is None and not (path.exists() and path.read_bytes().count(b"\n") >= 5):
        time.sleep(0.001)  # leaves the core to the search
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    subprocess.run([*line, path.parent], check=True, capture_output=True)
    found, whole = (
        sorted(
            (record["key"], record["result"]["val_loss"], record["result"]["test_metric"]) for record in Store(folder)
        )
        for folder in (path.parent, tmp_path / "whole")
    )
    assert found == whole
    assert len({key for key, *_ in found}) == len(found) == 16


@pytest.mark.long
def test_the_time_can_be_up(tmp_path, landscape, monkeypatch):
    landscape(bowl)
    with pytest.raises(OutOfTime, match="before a single run"):
        find(tmp_path, budget=0)
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])

    def tick(step):
        clock[0] += 1.0

    part = find(tmp_path, strategy="grid", splits=2, budget=10.5, progress=tick)
    assert not part.complete
    assert 8 <= part.computed <= 12
    assert part.best.splits == 2
    monkeypatch.undo()
    landscape(bowl)
    assert find(tmp_path, strategy="grid", splits=2).reused == part.computed


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"strategy": "random"}, "'random'"),
        ({"splits": 0}, "at least one split"),
        ({"splits": [1, 1]}, "each once"),
        ({"settings": []}, "no settings"),
        ({"settings": [{"lr": 1}]}, "a recipe has no 'lr'"),
    ],
)
def test_options_are_checked(tmp_path, options, words):
    with pytest.raises(ValueError, match=words):
        find(tmp_path, **options)


# ---------------------------------------------------------------- the command line


def command(*arguments):
    return CliRunner().invoke(app, ["search", *map(str, arguments)])


def test_the_command_searches_a_users_files_and_goes_on(tmp_path, files):
    options = ("--label", "kind", "-o", tmp_path / "store", "--strategy", "optuna", "--trials", 3, "--splits", 2)
    more = ("--epochs", 4, "--workers", 1, "--regime", "heterophily", "--hops", 1, "--h", 3, "--kind", "b")
    first = command(*files, *options, *more)
    assert first.exit_code == 0, first.output
    assert "Settings by validation" in first.output
    assert "6 runs computed, 0 from the store" in first.output
    assert "2 random splits" in first.output
    again = command(*files, *options, *more, "--json")
    assert again.exit_code == 0
    found = json.loads(again.stdout)
    assert (found["computed"], found["reused"], found["complete"]) == (0, 6, True)
    assert Recipe.of(found["recipe"]) == Recipe("auto", 3, None, "b", "heterophily", 1, settings={"epochs": 4})
    with (tmp_path / "store" / "search.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["place"] for row in rows] == ["1", "2", "3"]
    assert float(rows[0]["test_metric"]) == found["test_mean"]
    assert [row["test_metric"] for row in rows[1:]] == ["", ""]
    assert float(rows[0]["val_metric"]) == found["candidates"][0]["val_metric"]
    assert sum(len(row["keys"].split()) for row in rows) == 6


@pytest.mark.long
def test_ctrl_c_says_that_the_same_command_goes_on(tmp_path, landscape):
    def stop(job):
        if job.split == 1:
            raise KeyboardInterrupt
        return 0.5

    landscape(stop)
    result = command("synthetic", "-o", tmp_path, "--strategy", "grid", "--workers", 1, "--method", "none")
    assert result.exit_code == 0  # one split only: nothing stops it
    landscape(lambda job: stop(Job(GRAPH, FSGNN, int(job.recipe.settings.wd_sca > 0), 0)))
    result = command("synthetic", "-o", tmp_path / "b", "--strategy", "grid", "--workers", 1, "--method", "none")
    assert result.exit_code == 130
    assert "36 finished runs; the same command continues" in result.output.replace("\n", " ")
    assert len(Store(tmp_path / "b")) == 36


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("cornel",), "cornell"),
        (("synthetic", "--splits", 2), "has 1 splits; --splits 2 is too many"),
        (("synthetic", "--budget", 0, "--workers", 1), "Nothing to show yet"),
    ],
)
def test_errors_are_sentences(tmp_path, arguments, words):
    result = command(*arguments, "-o", tmp_path / "store")
    assert result.exit_code == 1
    assert words in result.output.replace("\n", " ")
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "wrong",
    [("--kind", "x"), ("--method", "x"), ("--regime", "x"), ("--scaling", "x"), ("--strategy", "x"), ("--workers", 0)],
)
def test_a_wrong_command_line_is_said_before_anything_is_done(tmp_path, wrong):
    result = command("synthetic", "-o", tmp_path / "store", *wrong)
    assert result.exit_code == 2
    assert wrong[0] in result.output
    assert not (tmp_path / "store").exists()


def test_a_store_that_is_a_file_is_an_error(tmp_path, files):
    result = command(*files, "--label", "kind", "-o", files[0])
    assert result.exit_code == 1
    assert "is a file; a store is a folder" in result.output.replace("\n", " ")


def test_a_table_of_others_is_not_overwritten(tmp_path, files):
    """It is found out before anything is computed, and by the names of columns."""
    table = tmp_path / "search.csv"
    for text in ("my,own,numbers\n1,2,3\n", "place,lr\n1,2\n", ""):
        table.write_text(text)
        done = command(*files, "--label", "kind", "-o", tmp_path)
        assert done.exit_code == 1
        assert "did not write it" in done.stderr
        assert table.read_text() == text
    assert not (tmp_path / "records.jsonl").exists()
