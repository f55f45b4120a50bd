"""``pegfan train`` saves as it goes: model and tables first, then what is optional, and none of that can cost them."""

import contextlib
import csv
import errno
import json
import os
import pkgutil
import shutil
import signal
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pegfan as pf
from pegfan import _atomic as atomic
from pegfan import comparison
from pegfan.auto import reasons, search
from pegfan.cli import app
from pegfan.cli import train as cli_train
from pegfan.explain import Explainer
from pegfan.results import Result

RECIPE = """
splits = 2
workers = 1
[[recipes]]
method = "none"
hops = 1
epochs = 5
hidden = 4
"""
WHOLE = {"model", "predictions.csv", "ranked.csv", "result.json", "settings.toml"}
EVERY_PART = ["--reasons", "--against"]
STAGES = {
    "importance of columns": "pegfan.importance._Scored",
    "reasons": "pegfan.explain.Explainer.explain",
    "the column top_reasons": "pegfan.explain.Explainer.texts",
    "--against": "pegfan.comparison.compare",
    "report.html": "pegfan.report.write_report",
}
ERRORS = {
    "memory": (MemoryError(), "Not enough memory."),
    "disk": (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "No space left on device."),
    "bug": (RuntimeError("oops"), "RuntimeError: oops. This is a bug in pegfan"),
    "wrong value": (ValueError("oops"), "oops. This is a bug in pegfan"),
}


def run(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Nodes of two kinds, some of them without one, and edges; and settings that train in a moment."""
    folder = tmp_path_factory.mktemp("files")
    graph = pf.datasets.synthetic(0.1, n=60, n_edges=200, n_features=2, splits=0)
    with (folder / "nodes.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "kind", "x", "y"])
        for i, (label, row) in enumerate(zip(graph.labels, graph.features, strict=True)):
            writer.writerow([f"v{i}", "" if i % 9 == 0 else "ab"[label % 2], *row])
    with (folder / "edges.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["from", "to"])
        writer.writerows([f"v{i}", f"v{j}"] for i, j in graph.edges()[0])
    (folder / "recipe.toml").write_text(RECIPE)
    return folder


@pytest.fixture
def train(files, tmp_path, monkeypatch):
    """The command, and the folder that it writes."""
    monkeypatch.chdir(tmp_path)
    small = comparison.Contender("small", "Small", {}, {"method": "none", "epochs": 2, "hidden": 4}, quick=True)
    monkeypatch.setattr(comparison, "CONTENDERS", {"small": small})
    return words_of(files), Path("out")


def words_of(files):
    options = ["--label", "kind", "--config", files / "recipe.toml", "-o", "out"]
    return [str(word) for word in ("train", files / "nodes.csv", files / "edges.csv", *options)]


def names_in(folder):
    return {path.name for path in folder.iterdir()}


def result_in(folder):
    """What stands in result.json, but for times and what commands were asked for."""
    result = json.loads((folder / "result.json").read_text())
    Result.from_json((folder / "result.json").read_text())
    for candidate in result["candidates"]:
        del candidate["seconds"]
    return {name: value for name, value in result.items() if name not in ("seconds", "when", "command")}


def check_whole(folder, files):
    """Everything that is not optional is there, and can be used."""
    assert names_in(folder) >= WHOLE
    run("predict", folder, files / "nodes.csv", files / "edges.csv", "-o", "p.csv", "--force")
    saved = (folder / "predictions.csv").read_text().splitlines()
    count = len(Path("p.csv").read_text().splitlines()[0].split(","))
    columns = [line.split(",")[:4] for line in saved]
    assert [line.split(",")[:4] for line in Path("p.csv").read_text().splitlines()] == columns
    assert len(saved[0].split(",")) in (count, count + 1)


def fail_at(monkeypatch, stage, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(STAGES[stage], fail)


@pytest.mark.parametrize("kind", ["memory", *(pytest.param(kind, marks=pytest.mark.long) for kind in [*ERRORS][1:])])
@pytest.mark.parametrize("stage", STAGES)
def test_a_part_that_fails_costs_itself_and_is_said_by_name(train, files, monkeypatch, stage, kind):
    words, out = train
    error, sentence = ERRORS[kind]
    with monkeypatch.context() as patch:
        fail_at(patch, stage, error)
        done = run(*words, *EVERY_PART)
    warnings = [line for line in done.stderr.splitlines() if line.startswith("! ")]
    assert [line for line in warnings if f"Left out: {stage}. {sentence}" in line] == warnings
    assert len(warnings) == 1
    assert ("bug in pegfan" in warnings[0]) == (kind in ("bug", "wrong value"))
    made_up = stage not in ("the column top_reasons", "--against")
    assert (f"pegfan report out adds {stage} later." in warnings[0]) == made_up
    check_whole(out, files)
    result, notes = result_in(out), {note["kind"] for note in result_in(out)["warnings"]}
    assert (result["importances"] is None) == (stage == "importance of columns")
    assert (not result["reasons"]) == (stage == "reasons")
    assert (not result["against"]) == (stage == "--against")
    assert ("top_reasons" not in (out / "ranked.csv").read_text()) == (stage == "the column top_reasons")
    assert (out / "report.html").exists() == (stage != "report.html")
    assert (f"without {stage}" in notes) == (stage != "report.html")
    run("report", out)
    again = result_in(out)
    assert (out / "report.html").exists()
    assert again["reasons"]
    assert again["importances"] is not None
    left = {"the column top_reasons", "--against"} & {stage}
    assert {note["kind"] for note in again["warnings"] if note["kind"].startswith("without")} == {
        f"without {name}" for name in left
    }


@pytest.mark.parametrize("stage", STAGES)
def test_ctrl_c_ends_what_is_optional_and_keeps_the_rest(train, files, monkeypatch, stage):
    words, out = train
    with monkeypatch.context() as patch:
        fail_at(patch, stage, KeyboardInterrupt())
        done = run(*words, *EVERY_PART, code=130)
    left = [*STAGES][[*STAGES].index(stage) :]
    later = [name for name in left if name not in ("the column top_reasons", "--against")]
    said = f"The model is complete. Left out: {', '.join(left)}. pegfan report out adds {', '.join(later)} later."
    assert said in done.stderr
    assert "Interrupted." in done.stderr
    check_whole(out, files)
    run("report", out)
    assert result_in(out)["reasons"]
    assert (out / "report.html").exists()


def test_the_folder_is_whole_before_anything_optional_begins(train, monkeypatch):
    words, out = train
    pools, seen, make = [], [], search.Pool.__init__

    def noted(self, *options, **more):
        pools.append(weakref.ref(self))
        make(self, *options, **more)

    monkeypatch.setattr(search.Pool, "__init__", noted)

    def look(result, fitted, graph):
        seen.append((names_in(out), [pool() for pool in pools]))
        return result

    monkeypatch.setattr(reasons, "add_importances", look)
    run(*words)
    assert seen == [(WHOLE, [None])], "and what the search had in memory is free"


def test_one_explainer_is_in_memory_at_a_time(train, monkeypatch):
    words, _ = train
    made, make = [], Explainer.__init__

    def alone(self, *options):
        assert [one() for one in made] == [None] * len(made)
        make(self, *options)
        made.append(weakref.ref(self))

    monkeypatch.setattr(Explainer, "__init__", alone)
    assert "Left out" not in run(*words, "--reasons").stderr
    assert len(made) == 3


_KILLED = """
import os, signal, sys
import {module} as module
def killed(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
module.{name} = killed
from pegfan.cli import app
app(sys.argv[1:])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal")
@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "name"), [("pegfan.explain", "Explainer.explain"), ("pegfan.importance", "_Scored"),
                         ("pegfan.report", "write_report")]
)  # fmt: skip
def test_a_kill_loses_nothing_and_the_report_makes_up_for_it(train, files, module, name):
    words, out = train
    run(*words)
    undisturbed = result_in(out)
    shutil.rmtree(out)
    program = [sys.executable, "-c", _KILLED.format(module=module, name=name), *words]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert names_in(out) == WHOLE
    check_whole(out, files)
    run("report", out)
    assert names_in(out) == {*WHOLE, "report.html"}
    assert result_in(out) == undisturbed


def test_a_report_adds_what_a_folder_lacks(train):
    words, out = train
    run(*words)
    undisturbed, page = result_in(out), (out / "report.html").read_bytes()
    run("report", out)
    assert result_in(out) == undisturbed
    assert (out / "report.html").read_bytes() == page, "what is there is not made again"
    bare = json.loads((out / "result.json").read_text()) | {"importances": None, "reasons": []}
    (out / "result.json").write_text(json.dumps(bare))
    (out / "report.html").unlink()
    (out / ".result.json.abcdefgh.part").write_text("{")
    run("report", out)
    assert result_in(out) == undisturbed
    assert names_in(out) == {*WHOLE, "report.html"}


def test_a_folder_that_is_not_finished_is_replaced_by_force_only(train):
    words, out = train
    run(*words)
    (out / "report.html").unlink()
    (out / ".result.json.abcdefgh.part").write_text("{")
    assert "exists" in run(*words, code=1).stderr
    run(*words, "--force")
    assert names_in(out) == {*WHOLE, "report.html"}


@pytest.mark.parametrize("stage", list(STAGES))
def test_what_another_process_wrote_is_not_replaced(train, monkeypatch, stage):
    """It may begin at any moment: from then on, nothing is added to what it wrote."""
    words, out = train
    there: list[dict[str, bytes]] = []
    owner, name = STAGES[stage].rsplit(".", 1)
    parent = pkgutil.resolve_name(owner)
    own = getattr(parent, name)

    def meddle(*options, **more):
        if not there and out.exists():
            other = json.loads((out / "result.json").read_text()) | {"title": "another run"}
            (out / "result.json").write_text(json.dumps(other))
            there.append(contents(out))
        return own(*options, **more)

    monkeypatch.setattr(parent, name, meddle)
    done = run(*words, *EVERY_PART)
    now = contents(out)
    if stage == "report.html":  # it was looked at just before
        now.pop("report.html")
    assert now == there[0]
    if stage != "report.html":
        assert "out was written by another process meanwhile" in done.stderr
        assert done.stderr.count("Left out: ") == 1
        assert "report.html" in done.stderr


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_folder_that_was_being_replaced_is_finished_before_it_is_read(train, monkeypatch):
    """In place, entries move one by one; a kill half-way leaves the model of one run and the result of another."""
    words, out = train
    run(*words, "--seed", 1)
    (out / "report.html").unlink()
    old = json.loads((out / "result.json").read_text()) | {"importances": None, "reasons": []}
    (out / "result.json").write_text(json.dumps(old))
    run(*words[:-1], "new")
    new = Path("new")
    box = out / ".pegfan.abcdefgh.part"
    box.mkdir()
    shutil.move(new, box / "new")
    (box / "stale.json").write_text(json.dumps(sorted(path.name for path in (box / "new").iterdir())))
    finished = contents(box / "new")
    run("report", out)
    assert names_in(out) == {*WHOLE, "report.html"}
    assert {name: text for name, text in contents(out).items() if name != "report.html"} == {
        name: text for name, text in finished.items() if name != "report.html"
    }


def test_both_tables_get_their_column_or_none(train, monkeypatch):
    words, out = train
    run(*words)
    before = contents(out)
    shutil.rmtree(out)
    real = atomic.replacing

    @contextlib.contextmanager
    def full(path):
        with real(path) as file:
            yield file if Path(path) != out / "ranked.csv" else FullDisk()

    monkeypatch.setattr(atomic, "replacing", full)
    done = run(*words, "--reasons")
    assert "Left out: the column top_reasons. out/ranked.csv: No space left on device." in done.stderr
    for name in ("predictions.csv", "ranked.csv"):
        assert (out / name).read_bytes() == before[name]


def test_a_disk_that_breaks_once_costs_what_was_being_stored(train, monkeypatch):
    """The new result is in its place already when the disk says that the folder was not synced."""
    words, out = train
    real, calls = atomic.sync_folder, []

    def breaks(folder):
        if (out / "result.json").exists() and folder == out:
            calls.append(0)
            if len(calls) == 1:
                raise OSError(errno.EIO, os.strerror(errno.EIO), str(out / "result.json"))
        real(folder)

    monkeypatch.setattr(atomic, "sync_folder", breaks)
    done = run(*words)
    assert "Left out of result.json: importance of columns. out/result.json: Input/output error." in done.stderr
    assert "another process" not in done.stderr
    assert result_in(out)["reasons"]
    assert names_in(out) == {*WHOLE, "report.html"}


class FullDisk:
    def write(self, _):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_page_shows_what_cannot_be_stored(train, monkeypatch):
    words, out = train
    run(*words)
    bare = json.loads((out / "result.json").read_text()) | {"importances": None, "reasons": [], "seconds": None}
    (out / "result.json").write_text(json.dumps(bare))
    before = contents(out)

    def fail(*_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patch:
        patch.setattr(cli_train._Whole, "write", fail)
        done = run("report", out, "-o", "page.html")
    assert done.stderr.count("Left out of result.json: ") == 2
    assert contents(out) == before
    run("report", out, "-o", "again.html")
    assert result_in(out)["reasons"]
    assert result_in(out)["importances"] is not None
    pages = [Path(name).read_text() for name in ("page.html", "again.html")]
    assert pages[0] == pages[1]


def test_what_is_written_elsewhere_has_its_parts_too(train, monkeypatch):
    words, out = train
    write = cli_train._write_all

    def broken(folder, *options):
        if folder == out:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return write(folder, *options)

    monkeypatch.setattr(cli_train, "_write_all", broken)
    text = " ".join(run(*words, code=1).stderr.split())
    assert "written to" in text
    (place,) = Path().glob("pegfan-*/out")
    assert names_in(place) == {*WHOLE, "report.html"}
    assert result_in(place)["reasons"]


# ----------------------------------------------------------------------- the clock


class Clock:
    """A clock that only moves when it is told to."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


def timed(monkeypatch, clock, owner, name, seconds):
    own = getattr(owner, name)

    def slow(self, *options, **more):
        clock.now += seconds(*options)
        return own(self, *options, **more)

    monkeypatch.setattr(owner, name, slow)


@pytest.fixture
def explained(train):
    words, out = train
    run(*words)
    result, (model, _) = cli_train._read_result(out), cli_train.load_model(out)
    _, graph = cli_train.reopen(result, out)
    graph, _ = pf.auto.outcome.with_splits(graph, pf.auto.outcome.Plan(splits=5))
    return result, model.fitted_, graph


@pytest.mark.parametrize(
    ("cost", "count"),
    [(0.001, None), (2.0, 3), (6.0, 1)],
)
def test_reasons_end_at_most_a_node_after_their_time(explained, monkeypatch, cost, count):
    clock, sizes = Clock(), []
    monkeypatch.setattr(reasons, "time", clock)
    timed(monkeypatch, clock, Explainer, "explain", lambda nodes, *_: sizes.append(len(nodes)) or cost * len(nodes))
    result, fitted, graph = explained
    listed = reasons.listed_nodes(result)
    done = reasons.add_reasons(result, fitted, graph).reasons
    assert [one.id for one in done] == (listed if count is None else listed[:count])
    assert sizes[0] == 1
    assert clock.now <= reasons.SHORT + cost


def test_columns_end_at_most_one_after_their_time(explained, monkeypatch):
    from pegfan import importance

    clock = Clock()
    monkeypatch.setattr(reasons, "time", clock)
    monkeypatch.setattr(importance, "time", clock)
    timed(monkeypatch, clock, importance._Scored, "__init__", lambda *_: 100.0)
    result, fitted, graph = explained
    found = reasons.add_importances(result, fitted, graph).importances
    assert (len(found.rows), found.left_out) == (1, 1), "what comes before the first column counts as well"
