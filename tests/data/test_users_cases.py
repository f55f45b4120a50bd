"""What new users would try first, each in one command: their own files in, predictions and a report out."""

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import pegfan as pf
from pegfan.cli import app

runner = CliRunner()
SHORT = ["--budget", "6", "--workers", "1"]


def train(*arguments, short=SHORT):
    result = runner.invoke(app, ["train", *map(str, arguments), *short, "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    for name in ("predictions.csv", "report.html", "settings.toml", "result.json"):
        assert os.path.getsize(os.path.join(told["output"], name)) > 100
    return told


def rows(folder):
    with (folder / "predictions.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def check(told, nodes, classes):
    assert told["data"]["nodes"] == nodes
    assert told["data"]["classes"] == classes
    assert told["majority"]["mean"] <= told["test"]["mean"] + 0.02
    order = [(-c["weight"], -c["val_metric"] if not c["weight"] else 0.0) for c in told["candidates"]]
    assert order == sorted(order), "members first, by their weights; then the best on validation"
    assert order[0][0] < 0


@pytest.fixture(scope="module")
def cornell(data):
    folder = data / "geom-gcn" / "new_data" / "cornell"
    table = pd.read_csv(folder / "out1_node_feature_label.txt", sep="\t")
    words = np.array([row.split(",") for row in table["feature"]], dtype=np.int8)
    nodes = pd.DataFrame(words, columns=[f"word{k}" for k in range(words.shape[1])])
    nodes.insert(0, "page", "www/" + table["node_id"].astype(str))
    nodes["kind"] = table["label"].map(dict(enumerate(["course", "faculty", "student", "project", "staff"])))
    edges = "www/" + pd.read_csv(folder / "out1_graph_edges.txt", sep="\t").set_axis(["from", "to"], axis=1).astype(str)
    return nodes, edges


def test_the_raw_files_of_twitch(data, tmp_path):
    told = train(data / "twitch" / "ES", "--label", "mature", "-o", tmp_path / "out", "--metric", "roc_auc")
    check(told, 4648, ["False", "True"])
    assert told["test"]["mean"] > 0.55
    assert {row["predicted"] for row in rows(tmp_path / "out")} <= {"False", "True"}


def test_a_csv_pair(cornell, tmp_path):
    for frame, name in zip(cornell, ("nodes.csv", "edges.csv"), strict=True):
        frame.to_csv(tmp_path / name, index=False)
    told = train(tmp_path / "nodes.csv", tmp_path / "edges.csv", "--label", "kind", "-o", tmp_path / "out")
    check(told, 183, ["course", "faculty", "project", "staff", "student"])
    assert told["test"]["mean"] > told["majority"]["mean"] + 0.1
    assert not any(w["kind"] == "tiny test set" for w in told["warnings"]), "all folds together are not tiny"
    assert rows(tmp_path / "out")[7]["id"] == cornell[0]["page"][7]


def test_a_parquet_pair_with_missing_labels(cornell, tmp_path):
    nodes, edges = cornell[0].copy(), cornell[1]
    nodes.loc[nodes.index % 5 == 0, "kind"] = None
    nodes.to_parquet(tmp_path / "nodes.parquet")
    edges.to_parquet(tmp_path / "edges.parquet")
    told = train(tmp_path / "nodes.parquet", tmp_path / "edges.parquet", "--label", "kind", "-o", tmp_path / "out")
    assert told["data"]["labelled"] == int(nodes["kind"].notna().sum())
    predicted = pd.read_csv(tmp_path / "out" / "predictions.csv")
    hidden = predicted["split"].fillna("none") == "none"
    assert hidden.tolist() == nodes["kind"].isna().tolist()
    assert (predicted["predicted"][hidden] == cornell[0]["kind"][hidden]).mean() > 0.6


def test_a_graphml_file_with_labels_as_attributes(data, tmp_path):
    import networkx as nx

    g = pf.datasets.load("texas")
    made = nx.DiGraph()
    x = g.features.toarray()
    useful = np.argsort(-(x.mean(axis=0) * (1 - x.mean(axis=0))))[:60]
    for i in range(g.n):
        made.add_node(f"p{i}", kind=f"class {g.labels[i]}", **{f"w{k}": float(x[i, k]) for k in useful})
    made.add_edges_from((f"p{i}", f"p{j}") for i, j in g.edges()[0])
    nx.write_graphml(made, tmp_path / "texas.graphml")
    told = train(tmp_path / "texas.graphml", "--label", "kind", "-o", tmp_path / "out")
    check(told, 183, [f"class {k}" for k in range(5)])
    assert told["data"]["directed"] is True


def test_tolokers_by_name_is_scored_by_roc_auc(data, tmp_path):
    pinned = ["--method", "none", "--hops", "2", "--set", "epochs=120", "--splits", "1"]
    told = train("tolokers", "-o", tmp_path / "out", *pinned, short=["--budget", "1", "--workers", "1"])
    assert told["data"]["metric"] == "roc_auc"
    assert len(told["splits"]["sizes"]) == 10
    assert told["majority"]["mean"] == pytest.approx(0.5)
    assert told["test"]["mean"] > 0.7


def test_musae_github_within_a_small_budget(data, tmp_path):
    path = data / "graphs" / "musae_github.npz"
    pinned = ["--set", "epochs=60", "--splits", "1"]
    told = train(path, "-o", tmp_path / "out", *pinned, short=["--budget", "1", "--workers", "1"])
    check(told, 37700, ["0", "1"])
    assert told["test"]["mean"] > 0.78


def test_processes_do_not_change_what_a_recipe_gives(data, tmp_path):
    train("chameleon", "-o", tmp_path / "one", "--set", "epochs=60", "--splits", "2", short=["--budget", "4"])
    settings = tmp_path / "one" / "settings.toml"
    for workers in (1, 2):
        train("--config", settings, "-o", tmp_path / f"w{workers}", short=["--workers", str(workers)])
    first = (tmp_path / "one" / "predictions.csv").read_bytes()
    assert (tmp_path / "w1" / "predictions.csv").read_bytes() == first
    assert (tmp_path / "w2" / "predictions.csv").read_bytes() == first


def test_ctrl_c_ends_every_thread_and_leaves_nothing(data, tmp_path):
    recipe = '[[recipes]]\nmethod = "none"\nepochs = 1000000\npatience = 1000000\nhops = {}\n'
    (tmp_path / "endless.toml").write_text(recipe.format(1) + recipe.format(2))
    arguments = ["train", "texas", "-o", str(tmp_path / "out"), "--workers", "2"]
    running = subprocess.Popen(
        [sys.executable, "-m", "pegfan", *arguments, "--config", str(tmp_path / "endless.toml")],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    threads = []
    deadline = time.monotonic() + 120
    try:
        while len(threads) < 2 and time.monotonic() < deadline and running.poll() is None:
            threads = _threads(running.pid)
            time.sleep(0.2)
        assert len(threads) >= 2, "the recipes are trained side by side"
        time.sleep(1.0)
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=100)
    finally:
        running.kill()
    assert running.returncode == 130, told
    assert "Interrupted" in told
    assert "Traceback" not in told
    assert [path.name for path in tmp_path.iterdir()] == ["endless.toml"]
    assert not [thread for thread in threads if _alive(thread)]


def _threads(pid):
    """Threads of a process that have been busy for a second, without the first one."""
    found = []
    for entry in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{entry}/stat", encoding="utf-8") as file:
            busy = int(file.read().rpartition(")")[2].split()[11]) / os.sysconf("SC_CLK_TCK")
            found += [int(entry)] if busy > 1.0 and int(entry) != pid else []
    return found


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
