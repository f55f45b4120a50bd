"""Commands with --memory: the words and results of those without, refusals, the plan, and what is kept."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import pegfan as pf
from pegfan import _limits
from pegfan.cli import _large, app
from pegfan.large import inputs, pieces
from pegfan.large.folders import find_folders

runner = CliRunner()


def call(*words, code=0):
    result = runner.invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def sentence(*words, code=1):
    return " ".join(call(*words, code=code).stderr.split())


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    for name in ("FORCE_COLOR", "PEGFAN_DATA", "PEGFAN_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def files(tmp_path):
    """Folders of nodes and edges in parts, and the same in single files."""
    rng = np.random.default_rng(5)
    n = 400
    kinds = rng.integers(0, 2, n)
    nodes = pd.DataFrame({"id": [f"u{i:04d}" for i in rng.permutation(n)], "kind": np.array(["a", "b"])[kinds]})
    nodes["size"] = (kinds + rng.normal(0, 0.5, n)).round(3)
    nodes["age"] = rng.integers(20, 60, n)
    nodes.loc[::7, "kind"] = None
    ends = rng.integers(0, n, (1600, 2))
    edges = pd.DataFrame({"source": nodes.id.to_numpy()[ends[:, 0]], "target": nodes.id.to_numpy()[ends[:, 1]]})
    for name, table, count in (("nodes", nodes, 3), ("edges", edges, 4)):
        (tmp_path / name).mkdir()
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        for k in range(count):
            part = table[k * len(table) // count : (k + 1) * len(table) // count]
            part.to_parquet(tmp_path / name / f"part-{k}.parquet", index=False)
    return [tmp_path / "nodes", tmp_path / "edges"], [tmp_path / "nodes.csv", tmp_path / "edges.csv"]


def test_info_in_pieces_is_info(files):
    many, single = files
    there = json.loads(call("info", *single, "--label", "kind", "--json").stdout)
    here = json.loads(call("info", *many, "--label", "kind", "--memory", "300MB", "--json").stdout)
    here["degrees"].pop("quantiles")
    for name in ("degrees", "components", "classes"):
        assert here[name] == there[name]
    assert here["graph"] == pytest.approx(there["graph"])
    np.testing.assert_allclose(here["ccns"], there["ccns"])
    shown = call("info", *many, "--label", "kind", "--memory", "300MB").stdout
    for words in (
        "400",
        "kind",
        "Plan: 400 nodes, 1,600 edges",
        "Next: pegfan train",
        "--memory 300MB",
        "pegfan clean",
    ):
        assert words in shown


def test_comments_in_pieces_are_those_in_memory(tmp_path):
    (tmp_path / "links.csv").write_text("from,to\na,b\n#b,c\nc,a\n# the end\n")
    for more, arcs, words in (([], 3, "1 rows begin with # or %"), (["--comments", "#"], 2, "2 comment lines")):
        for beyond in ([], ["--memory", "300MB", "--work", f"work{arcs}"]):
            told = call("info", "links.csv", *more, *beyond, "--json").stdout
            assert json.loads(told)["graph"]["edges"] == arcs
            assert words in told


def test_tree_in_pieces_is_the_tree(tmp_path, files):
    many, single = files
    call("tree", *single, "--label", "kind", "--method", "matching", "--h", 3, "-o", "memory.npz")
    out = call("tree", *many, "--label", "kind", "--memory", "300MB", "--h", 3, "-o", "pieces.npz").stdout
    assert pf.Hierarchy.load("memory.npz") == pf.Hierarchy.load("pieces.npz")
    assert "Tree: pieces.npz" in out
    [kept] = find_folders(tmp_path)
    assert (kept.path.name, kept.finished, kept.foreign) == ("pegfan.work", True, ())
    before = (tmp_path / "pegfan.work" / "log.jsonl").read_text()
    call("tree", *many, "--label", "kind", "--memory", "300MB", "--h", 3, "-o", "pieces.npz", "--force")
    assert (tmp_path / "pegfan.work" / "log.jsonl").read_text() == before, "finished pieces were computed again"


@pytest.mark.parametrize("signal", ["degree", "size", "0", "label:a"])
def test_transform_in_pieces_is_the_transform(files, signal):
    many, single = files
    options = ["--label", "kind", "--signal", signal, "--denoise", "sure", "--method", "matching"]
    call("transform", *single, *options, "-o", "memory.npz")
    call("transform", *many, *options, "--memory", "300MB", "-o", "pieces.npz")
    with np.load("memory.npz") as there, np.load("pieces.npz") as here:
        assert sorted(here) == ["coefficients", "denoised", "offsets", "signal"]
        for name in here:
            np.testing.assert_array_equal(here[name], there[name])


@pytest.mark.long
def test_train_and_predict_in_pieces(tmp_path, files):
    many, _ = files
    out = call("train", *many, "--label", "kind", "--memory", "300MB", "--budget", 10, "-o", "out").stdout
    assert "Predictions: out/predictions.csv" in out
    table = pd.read_csv("out/predictions.csv")
    assert sorted(table.id) == sorted(pd.read_csv("nodes.csv").id)
    call("predict", "out", *many, "--memory", "300MB", "-o", "again.csv")
    again = pd.read_csv("again.csv")
    pd.testing.assert_frame_equal(again.drop(columns="split"), table.drop(columns="split"))
    call("predict", "out", "nodes.csv", "edges.csv", "-o", "memory.csv")
    memory = pd.read_csv("memory.csv").set_index("id").loc[table.id]
    assert (memory.predicted.to_numpy() == table.predicted.to_numpy()).mean() > 0.99
    call("train", "--config", "out", "--memory", "300MB", "-o", "repeated")
    assert (tmp_path / "repeated/predictions.csv").read_bytes() == (tmp_path / "out/predictions.csv").read_bytes()
    assert find_folders(tmp_path)[0].foreign == ()


@pytest.mark.long
def test_the_seconds_of_a_training_in_pieces_are_those_of_the_command(tmp_path, files, monkeypatch):
    times = iter([0.0, 5000.0])
    monkeypatch.setattr("pegfan.cli.train.time", SimpleNamespace(perf_counter=lambda: next(times)))
    out = call("train", *files[0], "--label", "kind", "--memory", "300MB", "--budget", 5, "-o", "out").stdout
    assert "5000 s in total" in out
    assert json.loads((tmp_path / "out/result.json").read_text())["seconds"]["total"] == 5000.0


def test_a_dry_run_shows_the_plan_and_does_nothing(tmp_path, files):
    many, _ = files
    before = sorted(tmp_path.rglob("*"))
    out = call("train", *many, "--label", "kind", "--memory", "1GB", "-o", "out", "--dry-run").stdout
    for words in ("stage", "pieces", "disk", "memory", "time", "reading edges", "training", "all, at most"):
        assert words in out
    told = json.loads(call("tree", *many, "--memory", "1GB", "--dry-run", "--json").stdout)["plan"]
    assert told["sizes"] | {"file_bytes": 0} == {
        "nodes": 400,
        "edges": 1600,
        "columns": 3,
        "file_bytes": 0,
        "guessed": False,
    }
    assert [stage["name"] for stage in told["stages"]][-1] == "tree"
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["info", "-o", "x.png", "--memory", "1GB"], "--output needs the whole graph in memory"),
        (["tree", "--method", "ward", "--memory", "1GB"], "--method ward needs the whole graph in memory"),
        (["tree", "--memory", "much"], "--memory is an amount of bytes, not 'much'; write it as 4GB"),
        (["tree", "--work", "x"], "--work is for work in pieces; say in how much memory, as in --memory 4GB"),
        (["tree", "--dask"], "--dask is for work in pieces"),
        (["tree", "--dry-run"], "--dry-run is for work in pieces"),
        (["train", "-o", "x", "--against", "--memory", "1GB"], "--against needs the whole graph in memory"),
        (["train", "-o", "x", "--splits", "3", "--memory", "1GB"], "--splits needs the whole graph in memory"),
        (["transform", "--signal", "degree", "-o", "x.csv", "--memory", "1GB"], "The result is written as .npz"),
    ],
)
def test_what_cannot_be_done_in_pieces_is_said(files, words, told):
    assert told in sentence(words[0], *files[0], *words[1:], code=2)


def test_too_little_memory_or_disk_is_said_at_once(tmp_path, files, monkeypatch):
    many, _ = files
    assert "400 nodes need --memory 0.3GB at least" in sentence("tree", *many, "--memory", "10MB")
    monkeypatch.setattr("pegfan.large.plan.shutil.disk_usage", lambda path: type("Usage", (), {"free": 10})())
    told = sentence("tree", *many, "--memory", "1GB", "--work", "w")
    assert "the working folder w needs about" in told
    assert "10 B are free there" in told
    assert "--work" in told
    assert not (tmp_path / "w").exists()


def test_a_full_disk_is_one_sentence_and_nothing_is_lost(tmp_path, files, monkeypatch):
    many, _ = files
    save, left = pieces.Task.save, [6]

    def full(task, name, array):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        save(task, name, array)

    monkeypatch.setattr(pieces.Task, "save", full)
    told = sentence("tree", *many, "--memory", "300MB", "-o", "tree.npz")
    assert "pegfan.work needs more space. Nothing is lost" in told
    assert told.startswith("the disk is full: ")
    [kept] = find_folders(tmp_path)
    assert not kept.finished
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    call("tree", *many, "--memory", "300MB", "-o", "tree.npz")
    assert find_folders(tmp_path)[0].finished


def test_ctrl_c_says_what_is_kept(files, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("pegfan.large.LargeGraph.tree", interrupted)
    told = sentence("tree", *files[0], "--memory", "300MB", code=130)
    assert "Interrupted. What is finished is kept in pegfan.work: the same command goes on" in told


@pytest.mark.long
def test_dask_without_an_address_is_a_cluster_of_its_own(files):
    pytest.importorskip("distributed")
    many, single = files
    call("tree", *single, "--method", "matching", "-o", "memory.npz")
    told = call("tree", "--dask", *many, "--memory", "500MB", "-o", "pieces.npz")
    assert "workers on this machine" in told.stderr
    assert pf.Hierarchy.load("memory.npz") == pf.Hierarchy.load("pieces.npz")
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in sentence(
        "tree", *many, "--memory", "500MB", "--dask", "tcp://127.0.0.1:1", "-o", "other.npz"
    )


def test_clean_shows_and_frees(tmp_path, files):
    call("tree", *files[0], "--memory", "300MB", "-o", "tree.npz")
    shown = call("clean").stdout
    assert "finished" in shown
    assert "--yes" in shown
    assert (tmp_path / "pegfan.work").exists()
    told = json.loads(call("clean", "--json").stdout)
    assert told["folders"][0]["path"] == "pegfan.work"
    assert told["freed"] == {}
    assert "Freed" in call("clean", "pegfan.work", "--yes").stdout
    assert not (tmp_path / "pegfan.work").exists()
    assert "No working folder" in call("clean").stdout
    assert "no such folder" in sentence("clean", "nowhere")


def test_training_in_memory_that_will_not_fit_is_said_first(files, monkeypatch, capsys):
    monkeypatch.setattr(_limits, "machine_memory", lambda: 20_000)
    _large.warn_of_memory(inputs.expand(files[0]))
    told = " ".join(capsys.readouterr().err.split())
    assert "in memory, and this machine has 20 kB. --memory 1GB works in pieces on disk instead" in told
    monkeypatch.setattr(_limits, "machine_memory", lambda: 10**12)
    _large.warn_of_memory(inputs.expand(files[0]))
    assert capsys.readouterr().err == ""
