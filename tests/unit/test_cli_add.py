"""``predict --add`` and ``train --keep-data``: next week's rows, for files that are still there or were kept."""

import csv
import json
import shutil
import subprocess
import sys
import tomllib

import numpy as np
import pytest
from typer.testing import CliRunner

import pegfan as pf
from pegfan.cli import app

runner = CliRunner()
QUICK = ["--set", "epochs=10", "--set", "hidden=8", "--workers", "1", "--splits", "1", "--budget", "2"]
QUICK += ["--method", "matching", "--h", "4", "--set", "head=network"]


def run(*arguments, code=0):
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def said(*arguments):
    """What a command that succeeds prints, on one line."""
    return " ".join(run(*arguments).output.split())


def refused(*arguments, code=1):
    return " ".join(run(*arguments, code=code).output.split())


def table(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def week(tmp_path_factory):
    """A folder with last week's nodes.csv and edges.csv, and this week's new-nodes.csv and new-edges.csv."""
    folder = tmp_path_factory.mktemp("week")
    graph = pf.datasets.synthetic(0.1, n=100, n_edges=500, n_features=3, splits=0)
    rows = [[f"v{i}", ["red", "blue"][graph.labels[i] % 2], *graph.features[i]] for i in range(100)]
    pairs = [(f"v{i}", f"v{j}", i < 90 and j < 90) for i, j in graph.edges()[0]]

    def write(name, head, lines):
        with (folder / name).open("w", newline="") as file:
            csv.writer(file).writerows([head, *lines])

    write("nodes.csv", ["id", "kind", "x", "y", "z"], rows[:90])
    write("edges.csv", ["from", "to"], [pair[:2] for pair in pairs if pair[2]])
    late = [[row[0], "", *row[2:]] for row in rows[90:]]
    write("new-nodes.csv", ["id", "kind", "x", "z", "Y"], [[*row[:3], row[4], row[3]] for row in [*late, rows[3]]])
    write("new-edges.csv", ["from", "to"], [*(pair[:2] for pair in pairs if not pair[2]), ("v95", "who")])
    return folder


@pytest.fixture(scope="module")
def out(week):
    run("train", week / "nodes.csv", week / "edges.csv", "--label", "kind", "-o", week / "out", *QUICK)
    return week / "out"


@pytest.fixture(scope="module")
def kept(week, out):
    """What ``out`` is, trained again from its settings with --keep-data, on files that are gone since."""
    place = week / "elsewhere"
    place.mkdir()
    for name in ("nodes.csv", "edges.csv"):
        shutil.copy(week / name, place)
    again = ["--config", out / "settings.toml", "--workers", "1", "-o", week / "kept"]
    told = said("train", place / "nodes.csv", place / "edges.csv", *again, "--keep-data")
    assert "data holds copies of nodes.csv + edges.csv, ids and labels included" in told
    shutil.rmtree(place)
    return week / "kept"


@pytest.mark.long
def test_new_rows_are_added_and_new_nodes_are_written(week, out, tmp_path):
    new = [week / "new-nodes.csv", week / "new-edges.csv"]
    told = said("predict", out, *new, "--add", "-o", tmp_path / "p.csv", "--reasons")
    assert "10 new nodes of new-nodes.csv + new-edges.csv" in told
    assert "Added to nodes.csv + edges.csv: 10 new nodes, 0 known" not in told
    assert (
        "1 ids at the ends of edges are in neither the old nor the new nodes, 1 edges were left out with them" in told
    )
    assert "Only the new nodes are written; --all writes all 100." in told
    assert "new-nodes.csv lacks columns that nodes.csv has: 'y'" in told
    assert "they are not used: 'Y'" in told
    rows = table(tmp_path / "p.csv")
    assert [row["id"] for row in rows] == [f"v{i}" for i in range(90, 100)]
    assert list(rows[0]) == ["id", "predicted", "p_blue", "p_red", "split", "top_reasons"]
    assert all(row["top_reasons"] for row in rows)
    told = json.loads(run("predict", out, *new, "--add", "--all", "-o", tmp_path / "q.csv", "--json").stdout)
    counts = {name: told[name] for name in ("nodes", "new", "updated", "repeated", "unknown_ends", "lost_edges", "all")}
    assert counts == {
        "nodes": 100,
        "new": 10,
        "updated": 0,
        "repeated": 1,
        "unknown_ends": 1,
        "lost_edges": 1,
        "all": 100,
    }
    assert (told["filled"], told["strange"]) == (["y"], ["Y"])
    every = {row["id"]: row for row in table(tmp_path / "q.csv")}
    assert all({k: v for k, v in row.items() if k != "top_reasons"} == every[row["id"]] for row in rows)
    assert {row["split"] for row in every.values()} == {"train", "none"}


@pytest.mark.long
def test_the_command_is_what_python_does(week, out, tmp_path):
    new = [week / "new-nodes.csv", week / "new-edges.csv"]
    run("predict", out, *new, "--add", "-o", tmp_path / "p.csv")
    stored = json.loads((out / "result.json").read_text())
    schema = pf.datasets.Schema.from_dict(stored["data"]["schema"])
    growth = pf.datasets.Source.from_dict(stored["source"]).grown(*new, schema=schema)
    model = pf.load_classifier(out / "model").extended(growth.graph, growth.places)
    found = np.array([[float(row["p_blue"]), float(row["p_red"])] for row in table(tmp_path / "p.csv")])
    np.testing.assert_allclose(found, model.predict_proba()[growth.new], rtol=1e-6)


@pytest.mark.long
def test_new_edges_alone_move_old_nodes(week, out, tmp_path):
    (tmp_path / "more.csv").write_text("from,to\nv1,v2\nv1,v80\n")
    told = said("predict", out, tmp_path / "more.csv", "--add", "-o", tmp_path / "p.csv")
    assert "0 new nodes; no ids at the ends of edges are in neither the old nor the new nodes" in told
    assert "All 90 nodes are written, as none is new." in told
    run("predict", out, week / "nodes.csv", week / "edges.csv", "-o", tmp_path / "q.csv")
    changed = [one["id"] for one, two in zip(table(tmp_path / "p.csv"), table(tmp_path / "q.csv"), strict=True)
               if one != two]  # fmt: skip
    assert {"v1", "v2", "v80"} <= set(changed)
    (tmp_path / "alone.csv").write_text("id,x,y,z\nw,0.1,0.2,0.3\n")
    told = json.loads(run("predict", out, tmp_path / "alone.csv", "--add", "-o", tmp_path / "r.csv", "--json").stdout)
    assert (told["new"], told["nodes"]) == (1, 1)


@pytest.mark.long
def test_data_that_was_kept_is_added_to(week, out, kept, tmp_path):
    new = [week / "new-nodes.csv", week / "new-edges.csv"]
    assert sorted(path.name for path in (kept / "data").iterdir()) == ["data.json", "edges.csv.gz", "nodes.csv.gz"]
    run("predict", kept, *new, "--add", "-o", tmp_path / "p.csv")
    run("predict", out, *new, "--add", "-o", tmp_path / "q.csv")
    assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "q.csv").read_bytes()
    run("report", kept, "-o", tmp_path / "report.html")
    run("explain", kept, "v1")
    assert tomllib.loads((kept / "settings.toml").read_text())["keep_data"] is True
    assert "keep_data" not in tomllib.loads((out / "settings.toml").read_text())
    assert not (out / "data").exists()
    copy = tmp_path / "copy"
    shutil.copytree(kept, copy)
    (copy / "data" / "nodes.csv.gz").write_bytes(b"")
    assert "is not what was kept there" in refused("predict", copy, *new, "--add", "-o", tmp_path / "r.csv")


@pytest.mark.long
def test_settings_keep_data_too(week, tmp_path):
    settings = tmp_path / "settings.toml"
    settings.write_text("keep_data = true\nbudget = 20\n")
    files = [week / "nodes.csv", week / "edges.csv", "--label", "kind", "--config", settings, *QUICK]
    run("train", *files, "-o", tmp_path / "one")
    assert (tmp_path / "one" / "data" / "data.json").is_file()
    run("train", *files, "-o", tmp_path / "two", "--no-keep-data")
    assert not (tmp_path / "two" / "data").exists()
    run("train", *files, "-o", tmp_path / "one", "--force")
    settings.write_text("keep_data = 1\n")
    assert "keep_data must not be 1" in refused("train", *files, "-o", tmp_path / "three")


@pytest.mark.long
def test_what_cannot_be_added_to_is_said_with_the_fix(week, out, tmp_path):
    new = [week / "new-nodes.csv", week / "new-edges.csv"]
    target = ["-o", tmp_path / "p.csv"]
    told = refused("predict", out, *new, *target)
    assert "is not in new-nodes.csv" in told
    assert "--unknown add" in told
    assert told.endswith("If these files hold only what is new since the training, pass --add")
    assert "--all is for --add" in refused("predict", out, *new, "--all", *target, code=2)
    assert "has no result.json" in refused(
        "predict", shutil.copytree(out / "model", tmp_path / "m"), *new, "--add", *target
    )
    place = tmp_path / "moved"
    place.mkdir()
    for name in ("nodes.csv", "edges.csv"):
        shutil.copy(week / name, place)
    copy = shutil.copytree(out, place / "out")
    result = json.loads((copy / "result.json").read_text())
    result["source"]["where"] = [str(place / "nodes.csv"), str(place / "edges.csv")]
    (copy / "result.json").write_text(json.dumps(result))
    run("predict", copy, *new, "--add", *target)
    fix = "pass the old rows and the new ones in the same files, without --add, or train again with --keep-data."
    text = (place / "nodes.csv").read_text()
    (place / "nodes.csv").write_text(text.replace("v1,", "w1,", 1).replace("red", "blue", 1))
    told = refused("predict", copy, *new, "--add", "--unknown", "drop", *target, "--force")
    assert "nodes.csv + edges.csv has changed since the model was trained; put it back as it was, or " + fix in told
    (place / "nodes.csv").unlink()
    told = refused("predict", copy, *new, "--add", *target, "--force")
    assert "nodes.csv, which the model was trained on, is not there any more; put it back, or " + fix in told


def test_data_sets_have_no_files_to_keep(tmp_path):
    told = refused("train", "synthetic", "--keep-data", "-o", tmp_path / "out", code=2)
    assert "--keep-data keeps copies of files, and synthetic is a data set" in told


def test_loading_a_model_imports_nothing_that_it_does_not_need(tmp_path):
    """Neither torch nor plots nor tables: reading a model again and again is cheap."""
    graph = pf.datasets.synthetic(0.0, n=60, n_edges=200, n_features=4)
    pf.AutoClassifier(recipes=[{"epochs": 3, "hidden": 4}]).fit(graph).save(tmp_path / "model")
    code = "import sys, pegfan; pegfan.load_classifier(sys.argv[1]); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model")], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert not {"torch", "matplotlib", "pandas", "pyarrow", "sklearn", "networkx"} & set(done.stdout.split())
