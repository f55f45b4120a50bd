"""``pegfan train``, ``predict`` and ``report``: what they write, what they refuse, and that nothing is half-written."""

import csv
import errno
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import pegfan as pf
from pegfan import comparison
from pegfan._saved import FORMAT_VERSION
from pegfan.cli import app
from pegfan.cli import train as cli_train

runner = CliRunner()
QUICK = ["--set", "epochs=10", "--set", "hidden=8", "--workers", "1", "--method", "none", "--splits", "1"]


def run(*arguments, code=0):
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """nodes.csv (id, kind, three numbers; some without a kind) and edges.csv."""
    folder = tmp_path_factory.mktemp("files")
    graph = pf.datasets.synthetic(0.1, n=90, n_edges=500, n_features=3, splits=0)
    kinds = ["red", "green", "blue", 'a "b", c']
    with (folder / "nodes.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "kind", "x", "y", "z"])
        for i, (label, row) in enumerate(zip(graph.labels, graph.features, strict=True)):
            writer.writerow([f"v{i}", "" if i % 9 == 0 else kinds[label], *row])
    with (folder / "edges.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["from", "to"])
        writer.writerows([f"v{i}", f"v{j}"] for i, j in graph.edges()[0])
    return [folder / "nodes.csv", folder / "edges.csv"]


@pytest.fixture(scope="module")
def out(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "new" / "out"
    run("train", *files, "--label", "kind", "-o", folder, "--budget", 6, *QUICK, "--splits", 2)
    return folder


def table(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def left_beside(folder):
    return sorted(path.name for path in folder.parent.iterdir())


# ----------------------------------------------------------------------- train


def test_absurd_settings_are_refused_before_anything_is_read(files, tmp_path):
    for words in (("--hops", 100_000), ("--set", "hidden=1000000"), ("--set", "leaves=100000000")):
        shown = run("train", *files, "-o", tmp_path / "out", "--budget", 2, *words, code=1)
        assert "must be at most" in shown.stderr


def test_a_narrow_terminal_breaks_no_number(out, monkeypatch):
    """The candidates of a training, in 40 columns: what has no room is left out, and words break between them."""
    from pegfan.cli import _shell, train

    monkeypatch.setenv("COLUMNS", "40")
    _shell.console.look()
    with _shell.console.capture() as shown:
        train._print_outcome(train._read_result(out), out)
    lines = shown.get().splitlines()
    names = {part for one in train._read_result(out).candidates for part in one.name.split()}
    body = lines[lines.index("─" * 40) + 1 :]
    rows = [line[20:] if line[:20].strip() == "" else line for line in body[: body.index("")]]
    for word in " ".join(rows).split():
        assert word in names or re.fullmatch(r"[0-9.]+%?", word), (word, shown.get())


def test_the_folder_holds_everything(out):
    held = sorted(path.name for path in out.iterdir())
    assert held == ["model", "predictions.csv", "ranked.csv", "report.html", "result.json", "settings.toml"]
    assert left_beside(out) == ["out"]
    rows = table(out / "predictions.csv")
    classes = ['a "b", c', "blue", "green", "red"]
    assert list(rows[0]) == ["id", "predicted", *(f"p_{name}" for name in classes), "split"]
    assert [row["id"] for row in rows] == [f"v{i}" for i in range(90)]
    for row in rows:
        shares = {name: float(row[f"p_{name}"]) for name in classes}
        assert max(shares, key=shares.get) == row["predicted"]
        assert sum(shares.values()) == pytest.approx(1, abs=1e-5)
    assert {row["id"] for row in rows if row["split"] == "none"} == {f"v{i}" for i in range(0, 90, 9)}


def test_the_result_says_what_was_done(out):
    result = json.loads((out / "result.json").read_text())
    assert (result["format"], result["version"]) == ("pegfan result", 3)
    assert result["data"]["nodes"] == 90
    assert result["data"]["labelled"] == 80
    assert result["splits"]["made"] is True
    assert len(result["test"]["per_split"]) == 2
    assert result["source"]["options"] == {"label": "kind"}
    assert "label" in result["data"]["report"]
    assert result["data"]["feature_names"] == ["x", "y", "z"]
    members = json.loads((out / "model" / "model.json").read_text())["members"]
    for fold in (0, 1):
        assert sum(member["weight"] for member in members if member["fold"] == fold) == pytest.approx(1)
    # What the model is made of, over both folds, the heaviest first.
    weights = [candidate["weight"] for candidate in result["candidates"]]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == pytest.approx(1)
    assert [candidate["chosen"] for candidate in result["candidates"]] == [weight > 0 for weight in weights]
    assert max(len(members) / 2, 1) <= sum(weight > 0 for weight in weights) <= len(members)


def test_settings_repeat_the_run_bit_for_bit(out, tmp_path):
    text = (out / "settings.toml").read_text()
    settings, candidates = tomllib.loads(text), json.loads((out / "result.json").read_text())["candidates"]
    assert len(settings["recipes"]) == len(candidates)
    assert len({json.dumps(recipe) for recipe in settings["recipes"]}) < len(candidates), "some with another seed"
    assert len(settings["finalists"]) > 1, "trained on the other fold, too"
    heads = [f"#   {c['weight']:.0%} {c['name']}" for c in candidates if c["chosen"]]
    assert [line for line in text.splitlines() if line.startswith("#   ")] == heads
    again = tmp_path / "again"
    run("train", "--config", out / "settings.toml", "-o", again)
    assert (again / "predictions.csv").read_bytes() == (out / "predictions.csv").read_bytes()
    assert (again / "settings.toml").read_bytes() == (out / "settings.toml").read_bytes()
    weights = Path("model", "weights.safetensors")
    assert (again / weights).read_bytes() == (out / weights).read_bytes()
    one, two = (json.loads((folder / "result.json").read_text()) for folder in (out, again))
    assert one["test"] == two["test"]
    assert (one["majority"], one["features_only"]) == (two["majority"], two["features_only"])
    assert one["chosen"] == two["chosen"]
    assert [c["weight"] for c in one["candidates"]] == [c["weight"] for c in two["candidates"]]


def test_the_command_line_overrides_the_file(out, tmp_path):
    run(
        "train",
        "--config",
        out / "settings.toml",
        "-o",
        tmp_path / "o",
        "--seed",
        5,
        "--splits",
        1,
        "--set",
        "epochs=3",
    )
    settings = tomllib.loads((tmp_path / "o" / "settings.toml").read_text())
    assert (settings["seed"], settings["splits"]) == (5, 1)
    networks = [recipe for recipe in settings["recipes"] if "head" not in recipe]
    assert {recipe["epochs"] for recipe in networks} == {3}


def test_json_is_all_there_is_on_stdout(files, tmp_path):
    done = run("train", *files, "--label", "kind", "-o", tmp_path / "o", "--budget", 1, *QUICK, "--hops", 1, "--json")
    told = json.loads(done.stdout)
    assert told["output"] == str(tmp_path / "o")
    assert {c["recipe"]["hops"] for c in told["candidates"]} == {1}
    networks = [c["recipe"] for c in told["candidates"] if "head" not in c["recipe"]]
    assert {recipe["hidden"] for recipe in networks} == {8}


@pytest.mark.long
def test_the_model_stands_among_quick_ones_on_its_own_splits(files, tmp_path, monkeypatch):
    small = comparison.Contender("small", "Small", {}, {"method": "none", "epochs": 3, "hidden": 4}, quick=True)
    slow = comparison.Contender("slow", "Slow", {})
    monkeypatch.setattr(comparison, "CONTENDERS", {"slow": slow, "small": small})
    seen = []
    monkeypatch.setattr(comparison, "_arrays", lambda graph, own=comparison._arrays: seen.append(graph) or own(graph))
    words = ["--label", "kind", "-o", tmp_path / "o", "--budget", 1, *QUICK, "--splits", 2, "--seed", 3]
    told = run("train", *files, *words, "--against").stdout
    result = json.loads((tmp_path / "o" / "result.json").read_text())
    rows = {row["name"]: row for row in result["against"]}
    assert rows.keys() == {"model", "small"}
    assert rows["model"]["test"] == result["test"]
    assert len(rows["small"]["test"]["per_split"]) == 2
    drawn = pf.splits.draw_folds(pf.read_graph(*files, label="kind"), k=5, seed=3)
    for one, other in zip(seen[0].splits, drawn, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True)), "those of the model, by its seed"
    assert "Against the others, 2 splits" in told
    assert '"against":{"rows"' in (tmp_path / "o" / "report.html").read_text()
    assert result["command"].endswith(" --against")
    assert "This model was searched for within the time budget of 1.0 s" in told


@pytest.mark.long
def test_people_see_the_plan_the_choice_and_the_floors(files, tmp_path):
    done = run("train", *files, "--label", "kind", "-o", tmp_path / "o", "--budget", 1, *QUICK, "--splits", 2)
    for words in (
        "Budget 1 s on ",
        " to find recipes on the first of 2 folds, ",
        "Candidates: those in the model with their weights, then the others by validation",
        "Chosen:",
        "features only",
        "majority class",
        "95% interval",
    ):
        assert words in done.output


@pytest.mark.long
def test_an_existing_folder_is_replaced_only_if_it_is_ours(files, out, tmp_path):
    arguments = ["train", *files, "--label", "kind", "--budget", 1, *QUICK]
    before = (out / "predictions.csv").read_bytes()
    assert "exists" in run(*arguments, "-o", out, code=1).stderr
    assert (out / "predictions.csv").read_bytes() == before
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("x")
    assert "did not write" in run(*arguments, "-o", mine, "--force", code=1).stderr
    assert (mine / "thesis.tex").read_text() == "x"
    (mine / "thesis.tex").rename(mine / "result.json")
    assert "damaged" in run(*arguments, "-o", mine, "--force", code=1).stderr
    (tmp_path / "file").write_text("x")
    assert "is a file" in run(*arguments, "-o", tmp_path / "file", code=1).stderr
    (tmp_path / "empty").mkdir()
    run(*arguments, "-o", tmp_path / "empty")
    run(*arguments, "-o", tmp_path / "empty", "--force", "--seed", 3)
    assert json.loads((tmp_path / "empty" / "result.json").read_text())["seed"] == 3


@pytest.mark.parametrize("name", ["thesis.tex", "model/thesis.tex", "data", "model/more/thesis.tex"])
def test_nobody_elses_files_are_replaced(files, out, tmp_path, name):
    mine = tmp_path / "mine"
    shutil.copytree(out, mine)
    (mine / name).parent.mkdir(exist_ok=True)
    (mine / name).write_text("years of work")
    before = {path: path.read_bytes() for path in mine.rglob("*") if path.is_file()}
    text = refused("train", *files, "--label", "kind", "-o", mine, "--force")
    assert repr("model/more" if "more" in name else name) in text
    assert "Move it elsewhere" in text
    assert {path: path.read_bytes() for path in mine.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("place", ["link", "."])
@pytest.mark.long
def test_a_link_and_the_current_folder_are_written(files, tmp_path, monkeypatch, place):
    (tmp_path / "real").mkdir()
    if place == "link":
        (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path if place == "link" else tmp_path / "real")
    for force in ([], ["--force"]):
        run("train", *files, "--label", "kind", "-o", place, "--budget", 1, *QUICK, *force)
        run("predict", place, *files, "-o", tmp_path / "p.csv", "--force")
        assert (tmp_path / "real" / "report.html").exists()
    assert sorted(os.listdir(tmp_path)) == sorted({"real", "p.csv", place} - {"."})


# ------------------------------------------------------------------- bad input


def refused(*arguments, code=1):
    """A single sentence in red, the right code, and no traceback."""
    result = run(*arguments, code=code)
    assert "Traceback" not in result.output
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    return result.stderr


@pytest.mark.parametrize("command", ["train", "predict"])
def test_bad_files_are_sentences(command, files, out, tmp_path):
    nodes, edges = files
    target = tmp_path / "o" if command == "train" else tmp_path / "o.csv"
    first = ["train"] if command == "train" else ["predict", out]
    tail = ["--label", "kind", "-o", target]
    assert "no such file (did you mean 'nodes.csv'?)" in refused(*first, nodes.parent / "node.csv", edges, *tail)
    (tmp_path / "empty.csv").write_text("")
    assert "is empty" in refused(*first, tmp_path / "empty.csv", edges, *tail)
    (tmp_path / "noise.csv").write_bytes(b"\x00\xff\xfe" * 50)
    refused(*first, tmp_path / "noise.csv", edges, *tail)
    refused(*first, nodes, *tail)
    assert "did you mean 'kind'" in refused(*first, *files, "--label", "knid", "-o", target)
    assert "neither a file nor a data set" in refused(*first, "cornel", "-o", target)
    assert not target.exists()


def test_nodes_given_as_edges_are_told_apart_or_refused(files, tmp_path):
    run("train", *files[::-1], "--label", "kind", "-o", tmp_path / "o", "--budget", 1, *QUICK)
    wrong = "\n".join(["from,to", "a,b", "b,c"])
    (tmp_path / "people.csv").write_text(wrong)
    refused("train", tmp_path / "people.csv", files[0], "--label", "kind", "-o", tmp_path / "p")
    assert not (tmp_path / "p").exists()


def test_without_labels_there_is_nothing_to_learn(files, tmp_path):
    text = refused("train", files[1], "-o", tmp_path / "o")
    assert "--label" in text
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("options", "words", "code"),
    [
        (["--method", "wart"], "method must be one of", 1),
        (["--set", "epoch=3"], "a recipe has no 'epoch'", 1),
        (["--set", "epochs"], "NAME=VALUE", 2),
        (["--metric", "f1"], "--metric does not know 'f1'", 2),
        (["--budget", "0"], "positive number", 2),
        (["--metric", "roc_auc"], "two classes", 1),
        (["--split", "9", "--set", "epochs=2"], "there is no split 9", 1),
    ],
)
def test_wrong_options_are_refused(files, tmp_path, options, words, code):
    source = ["synthetic"] if options[0] == "--split" else [*files, "--label", "kind"]
    assert words in refused("train", *source, "-o", tmp_path / "o", *options, code=code).replace("\n", " ")
    assert not (tmp_path / "o").exists()


def test_a_folder_to_write_and_a_graph_are_needed(files, tmp_path):
    assert "-o" in refused("train", *files, code=2)
    assert "Name a graph" in refused("train", "-o", tmp_path / "o", code=2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("seed = 'x'", "seed must not be"),
        ("sed = 1", "did you mean 'seed'"),
        ("= 1", "not a file of settings"),
        ("version = 9", "version 4: train again"),
        ("version = 3", "version 4: train again"),
        ("splits = 0", "at least 1"),
        ("recipes = [1]", "must be tables"),
        ("finalists = [0]", "finalists must be places in recipes, not 0"),
        ("finalists = [[0]]", "finalists must be places in recipes, not [0]"),
        ("finalists = [true]\n[[recipes]]\nh = 4\n[[recipes]]\nh = 8", "finalists must be places in recipes, not True"),
        ("[[recipes]]\nmethod = 'x'", "method must be one of"),
        ("[source]\nwhat = 1", "names no files"),
    ],
)
def test_wrong_settings_are_refused(tmp_path, text, words):
    (tmp_path / "s.toml").write_text(text)
    source = [] if "source" in text else ["cornell"]
    assert words in refused("train", *source, "--config", tmp_path / "s.toml", "-o", tmp_path / "o")
    assert "no such file" in refused("train", "--config", tmp_path / "none.toml", "-o", tmp_path / "o")


@pytest.mark.parametrize("name", ["result.json", "predictions.csv", "weights.safetensors"])
@pytest.mark.long
def test_a_full_disk_leaves_nothing(files, tmp_path, monkeypatch, name):
    """Writing fails half-way, as it does on a full disk."""
    import pegfan._atomic
    import pegfan._saved

    def full(path):
        if Path(path).name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    real_replace, real_write = os.replace, pegfan._saved._write_file
    monkeypatch.setattr(pegfan._atomic.os, "replace", lambda a, b: (full(b), real_replace(a, b)))
    monkeypatch.setattr("pegfan._saved._write_file", lambda path, data: (full(path), real_write(path, data)))
    text = refused("train", *files, "--label", "kind", "-o", tmp_path / "o", "--budget", 1, *QUICK)
    assert "No space left on device" in text
    assert "-o" in text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_what_cannot_be_written_in_the_end_is_written_elsewhere(files, tmp_path, monkeypatch):
    """Another process puts a file there while it trains, or the disk breaks."""
    import pegfan._atomic

    monkeypatch.chdir(tmp_path)
    train = ["train", *files, "--label", "kind", "-o", tmp_path / "a" / "o", "--budget", 1, *QUICK]
    real = pegfan._atomic._move

    def meddle(box, target, inside):
        if target == tmp_path / "a" / "o":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(box, target, inside)

    monkeypatch.setattr("pegfan._atomic._move", meddle)
    text = refused(*train, code=1).splitlines()[-1]
    place = Path(re.search(r"written to (\S+) instead", text)[1])
    assert "Input/output error" in text
    assert place.parent.parent.resolve() == tmp_path
    assert os.listdir(tmp_path / "a") == []
    run("predict", place, *files, "-o", "p.csv")

    def foreign(*_):
        (tmp_path / "a" / "o").mkdir()
        (tmp_path / "a" / "o" / "thesis.tex").write_text("years of work")

    complete = cli_train._complete
    monkeypatch.setattr(cli_train, "_complete", lambda *args: (foreign(), complete(*args))[1])
    text = refused(*train, "--force", code=1).splitlines()[-1]
    assert "'thesis.tex', which pegfan train did not write" in text
    run("predict", re.search(r"written to (\S+) instead", text)[1], *files, "-o", "q.csv")
    assert os.listdir(tmp_path / "a" / "o") == ["thesis.tex"]


def test_a_table_that_cannot_be_written_is_written_elsewhere(files, out, tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    real = os.replace

    def full(one, other):
        if Path(other).parent == tmp_path / "a":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(one, other)

    monkeypatch.setattr(os, "replace", full)
    text = refused("predict", out, *files, "-o", tmp_path / "a" / "p.csv")
    assert "No space left" in text
    assert len(table(Path(re.search(r"written to (\S+) instead", text)[1]))) == 90
    assert os.listdir(tmp_path / "a") == []


def test_a_place_that_cannot_be_written_is_found_out_first(files, tmp_path):
    (tmp_path / "file").write_text("")
    assert "Cannot write" in refused("train", *files, "--label", "kind", "-o", tmp_path / "file" / "o")


_INTERRUPTED = """
import os, signal, sys
import pegfan.auto.search as stage
real = stage.run_task
def ctrl_c(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGINT)
    return real(*args, **kwargs)
stage.run_task = ctrl_c
from pegfan.cli import app
app(sys.argv[1:])
"""


@pytest.mark.long
def test_ctrl_c_while_training_leaves_nothing(files, tmp_path):
    arguments = ["train", *map(str, files), "--label", "kind", "-o", str(tmp_path / "o"), "--budget", "1", *QUICK]
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 130, done.stderr
    assert "Interrupted" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "stage",
    [
        "pegfan.results.judged",
        "pegfan._saved._complete",
        "pegfan.cli.train._table",
        "pegfan._atomic._move",
    ],
)
@pytest.mark.long
def test_ctrl_c_before_the_folder_is_there_leaves_nothing(files, out, tmp_path, monkeypatch, stage):
    def ctrl_c(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(stage, ctrl_c)
    result = run("train", "--config", out / "settings.toml", "-o", tmp_path / "o", "--splits", 1, code=130)
    assert "Interrupted" in result.stderr
    assert list(tmp_path.iterdir()) == []


# --------------------------------------------------------------------- predict


def test_predictions_on_the_fitted_graph_are_those_of_the_training(files, out, tmp_path):
    run("predict", out, *files, "-o", tmp_path / "p.csv")
    one, two = table(out / "predictions.csv"), table(tmp_path / "p.csv")
    assert [{**row, "split": ""} for row in one] == [{**row, "split": ""} for row in two]
    run("predict", out / "model", *files, "-o", tmp_path / "q.csv", "--label", "kind")
    assert (tmp_path / "q.csv").read_bytes() == (tmp_path / "p.csv").read_bytes()
    assert "exists" in refused("predict", out, *files, "-o", tmp_path / "p.csv")
    run("predict", out, *files, "-o", tmp_path / "p.csv", "--force")


def write_nodes(path, rows, columns):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", *columns], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_columns_are_told_by_their_names(files, out, tmp_path):
    rows = [{**row, "extra": 3.5 * i} for i, row in enumerate(table(files[0]))]
    nodes = write_nodes(tmp_path / "nodes.csv", rows, ["z", "extra", "x", "y"])  # no label, one more, another order
    told = json.loads(run("predict", out, nodes, files[1], "-o", tmp_path / "p.csv", "--json").stdout)
    assert told["notes"] == ["nodes.csv has columns that the schema lacks; they are not used: 'extra'"]
    assert [{**row, "split": ""} for row in table(tmp_path / "p.csv")] == [
        {**row, "split": ""} for row in table(out / "predictions.csv")
    ]
    nodes = write_nodes(tmp_path / "fewer.csv", rows, ["x", "z"])
    told = json.loads(run("predict", out, nodes, files[1], "-o", tmp_path / "q.csv", "--json").stdout)
    assert told["notes"] == ["fewer.csv lacks columns that the schema has; they count as missing: 'y'"]
    same = write_nodes(tmp_path / "mean.csv", [{**row, "y": mean_of(files[0], "y")} for row in rows], ["x", "y", "z"])
    run("predict", out, same, files[1], "-o", tmp_path / "r.csv")
    assert (tmp_path / "q.csv").read_text() == (tmp_path / "r.csv").read_text()


def test_results_from_before_there_were_schemas_are_read_by_the_names_of_features(files, out, tmp_path):
    copy = Path(shutil.copytree(out, tmp_path / "copy"))
    result = json.loads((copy / "result.json").read_text())
    assert result["data"].pop("schema")["nodes"]["x"]["kind"] == "number"
    (copy / "result.json").write_text(json.dumps(result))
    run("predict", copy, *files, "-o", tmp_path / "p.csv")
    run("predict", out, *files, "-o", tmp_path / "q.csv")
    assert (tmp_path / "p.csv").read_text() == (tmp_path / "q.csv").read_text()


def test_options_of_reading_are_stored_with_the_settings(files, tmp_path):
    options = ["--header", "--missing", "zero", "--unknown", "drop", "--categories-max", 9]
    run("train", *files, "--label", "kind", *options, "-o", tmp_path / "o", "--budget", 1, *QUICK)
    stored = tomllib.loads((tmp_path / "o" / "settings.toml").read_text())["source"]["options"]
    assert stored == {"label": "kind", "header": True, "missing": "zero", "unknown": "drop", "categories_max": 9}
    run("train", "--config", tmp_path / "o" / "settings.toml", "-o", tmp_path / "again")
    assert tomllib.loads((tmp_path / "again" / "settings.toml").read_text())["source"]["options"] == stored


def test_ids_with_leading_zeros_are_predicted_as_they_are_written(files, tmp_path):
    for path in files:
        (tmp_path / path.name).write_text(path.read_text().replace("v", "00"))
    run(
        "train",
        *(tmp_path / path.name for path in files),
        "--label",
        "kind",
        "-o",
        tmp_path / "o",
        "--budget",
        1,
        *QUICK,
    )
    assert [row["id"] for row in table(tmp_path / "o" / "predictions.csv")] == [f"00{i}" for i in range(90)]


def mean_of(path, column):
    return np.mean([float(row[column]) for row in table(path)])


def test_new_nodes_are_predicted(files, out, tmp_path):
    rows = [*table(files[0]), {"id": "new", "x": 0.5, "y": 0.5, "z": 0.5}]
    nodes = write_nodes(tmp_path / "nodes.csv", rows, ["x", "y", "z"])
    told = json.loads(run("predict", out, nodes, files[1], "-o", tmp_path / "p.csv", "--json").stdout)
    assert told["nodes"] == sum(told["predicted"].values()) == 91
    assert table(tmp_path / "p.csv")[-1]["id"] == "new"


def test_models_that_are_none_are_refused(files, out, tmp_path):
    target = ["-o", tmp_path / "p.csv"]
    assert "no such folder" in refused("predict", tmp_path / "gone", *files, *target)
    (tmp_path / "empty").mkdir()
    assert "holds no model" in refused("predict", tmp_path / "empty", *files, *target)
    copy = Path(shutil.copytree(out, tmp_path / "copy"))
    about = copy / "model" / "model.json"
    text = about.read_text()
    about.write_text(text.replace(f'"version": {FORMAT_VERSION}', '"version": 7', 1))
    assert "train again" in refused("predict", copy, *files, *target)
    about.write_text(text)
    weights = copy / "model" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4])
    assert "checksum" in refused("predict", copy, *files, *target)
    assert not (tmp_path / "p.csv").exists()


def test_classifiers_saved_from_python_predict_too(files, tmp_path):
    graph = pf.read_graph(*files, label="kind")
    model = pf.FSGNNClassifier(epochs=3, hidden=4).fit(graph, split="random")
    model.save(tmp_path / "model")
    run("predict", tmp_path / "model", *files, "--label", "kind", "-o", tmp_path / "p.csv")
    assert [row["predicted"] for row in table(tmp_path / "p.csv")] == model.predict(graph).tolist()


@pytest.fixture(scope="module")
def numbered(files, tmp_path_factory):
    """Tables whose ids are 0, 1, ... in order, and a model of them that knows the labels of training nodes."""
    folder = tmp_path_factory.mktemp("numbered")
    paths = [folder / path.name for path in files]
    for path, new in zip(files, paths, strict=True):
        new.write_text(path.read_text().replace("v", ""))
    graph = pf.read_graph(*paths, label="kind")
    assert graph.node_names is None
    recipe = {"method": "matching", "h": 4, "hops": 1, "labels": True, "adjacency": True, "epochs": 20, "hidden": 8}
    pf.RecipeClassifier(recipe).fit(graph, split="random").save(folder / "model")
    return [*paths, folder / "model"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".graphml"])
def test_nodes_are_told_by_their_ids_whatever_their_order(numbered, tmp_path, suffix):
    nodes, edges, model = numbered
    order = np.random.default_rng(0).permutation(90)

    def predicted(rows, name):
        """What is predicted of a table of these rows, in this order."""
        kept = {row["id"] for row in rows}
        ends = [row for row in table(edges) if {row["from"], row["to"]} <= kept]
        paths = write_like(tmp_path / name, rows, ends, suffix)
        run("predict", model, *paths, "--label", "kind", "-o", tmp_path / f"{name}.csv")
        return {row["id"]: row for row in table(tmp_path / f"{name}.csv")}

    rows = table(nodes)
    whole = predicted(rows, "whole")
    assert {row["split"] for row in whole.values()} == {"train", "none"}
    assert predicted([rows[i] for i in order], "shuffled") == whole, "the same bits"
    fewer, moved = predicted(rows[1:], "fewer"), predicted([rows[i] for i in order if i], "moved")
    assert fewer == moved
    more = predicted([{**rows[0], "id": "1000"}, *rows], "more")
    for found in (fewer, more):
        assert [row["split"] for i, row in found.items() if i in whole and i != "0"] == [
            row["split"] for i, row in whole.items() if i in found and i != "0"
        ]
    assert more["1000"]["split"] == "none"


def write_like(folder, rows, ends, suffix):
    """Tables of nodes and edges in a format; numbers are numbers where it knows them."""
    import networkx as nx
    import pandas as pd

    folder.mkdir()
    typed = [{**row, "id": int(row["id"]), **{c: float(row[c]) for c in "xyz"}} for row in rows]
    if suffix == ".graphml":
        graph = nx.Graph()
        for row in typed:
            graph.add_node(row["id"], **{key: row[key] for key in ("kind", *"xyz")})
        graph.add_edges_from((int(row["from"]), int(row["to"])) for row in ends)
        nx.write_graphml(graph, folder / "graph.graphml")
        return [folder / "graph.graphml"]
    paths = [folder / f"{name}{suffix}" for name in ("nodes", "edges")]
    links = pd.DataFrame([{end: int(row[end]) for end in ("from", "to")} for row in ends])
    for frame, path in zip((pd.DataFrame(typed), links), paths, strict=True):
        frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    return paths


def test_nodes_that_only_their_place_tells_are_doubted(numbered, tmp_path):
    nodes, edges, _ = numbered
    graph = pf.read_graph(nodes, edges, label="kind").replace(feature_names=None)
    recipe = {"method": "none", "hops": 1, "labels": True, "epochs": 2, "hidden": 4}
    pf.RecipeClassifier(recipe).fit(graph, split="random").save(tmp_path / "model")
    for name, some in (("same", graph), ("fewer", graph.subgraph(np.arange(1, 90)))):
        np.savez(tmp_path / name, edge_index=some.edges()[0].T, x=some.features, y=some.labels)
        paths = [tmp_path / f"{name}.npz", "-o", tmp_path / f"{name}.csv", "--json"]
        notes = json.loads(run("predict", tmp_path / "model", *paths).stdout)["notes"]
        assert [("node i is taken for node i" in note) for note in notes] == ([] if name == "same" else [True])


def test_columns_are_not_taken_by_their_order_where_only_tables_have_names(numbered, tmp_path):
    nodes, edges, model = numbered
    rows = [{**row, "kind": row["kind"]} for row in table(nodes)]
    turned = write_nodes(tmp_path / "turned.csv", rows, ["z", "kind", "y", "x"])
    run("predict", model, nodes, edges, "--label", "kind", "-o", tmp_path / "p.csv")
    run("predict", model, turned, edges, "--label", "kind", "-o", tmp_path / "q.csv")
    assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "q.csv").read_bytes()
    nameless = pf.read_graph(nodes, edges, label="kind").replace(feature_names=None)
    pf.FSGNNClassifier(epochs=2, hidden=4).fit(nameless, split="random").save(tmp_path / "model")
    words = refused("predict", tmp_path / "model", turned, edges, "--label", "kind", "-o", tmp_path / "r.csv")
    assert "does not know the names of its feature columns" in words
    words = refused("explain", tmp_path / "model", "3", "--on", turned, "--on", edges)
    assert "does not know the names of its feature columns" in words


# ---------------------------------------------------------------------- report


def test_the_report_can_be_made_again(files, out, tmp_path):
    run("report", out, "-o", tmp_path / "r.html")
    assert (tmp_path / "r.html").read_bytes() == (out / "report.html").read_bytes()
    run("report", out / "model", "-o", tmp_path / "s.html")
    assert (tmp_path / "s.html").exists()
    other = Path(shutil.copytree(out, tmp_path / "other"))
    (other / "result.json").write_text((out / "result.json").read_text().replace('"version": 3', '"version": 2'))
    assert "version 2, and this pegfan reads 3: train again" in refused("report", other)
    (other / "result.json").write_text((out / "result.json").read_text().replace('"nodes": 90', '"nodes": "many"'))
    assert "data.nodes must be a count, got str" in refused("report", other)


@pytest.mark.long
def test_a_report_needs_its_data_as_they_were(files, tmp_path):
    nodes, edges = (tmp_path / path.name for path in files)
    nodes.write_bytes(files[0].read_bytes())
    edges.write_bytes(files[1].read_bytes())
    out = tmp_path / "out"
    run("train", nodes, edges, "--label", "kind", "-o", out, "--budget", 1, *QUICK)
    before = (out / "report.html").read_bytes()
    edges.write_text(edges.read_text() + "v0,v50\nv0,v51\nv0,v52\nv0,v53\nv0,v54\n")
    assert "has changed" in refused("report", out)
    edges.unlink()
    assert "cannot be read any more" in refused("report", out)
    assert (out / "report.html").read_bytes() == before
    assert "has no result.json" in refused("report", tmp_path)


@pytest.mark.long
def test_files_are_found_again_beside_the_output(files, tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    for path in files:
        (home / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(home)
    run("train", "nodes.csv", "edges.csv", "--label", "kind", "-o", "out", "--budget", 1, *QUICK)
    monkeypatch.chdir(tmp_path)
    run("report", "home/out")
    run("train", "--config", "home/out/settings.toml", "-o", "again")
    assert Path("again/predictions.csv").read_bytes() == Path("home/out/predictions.csv").read_bytes()


def test_probabilities_in_the_table_come_back_exactly(files, out):
    model = pf.AutoClassifier.load(out / "model")
    graph = pf.read_graph(*files, label="kind")
    rows = table(out / "predictions.csv")
    stored = np.array([[float(row[f"p_{name}"]) for name in model.classes_] for row in rows], dtype=np.float32)
    assert np.array_equal(stored, model.predict_proba(graph))


# ------------------------------------------------------------------- decisions


@pytest.fixture(scope="module")
def rare(tmp_path_factory):
    """nodes.csv with one node in ten of class "bad", which a number tells, and edges.csv."""
    folder = tmp_path_factory.mktemp("rare")
    rng = np.random.default_rng(0)
    bad = rng.random(300) < 0.1
    with (folder / "nodes.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "state", "x", "y"])
        for i in range(300):
            writer.writerow([f"v{i}", "bad" if bad[i] else "good", rng.normal() + 2.5 * bad[i], rng.normal()])
    with (folder / "edges.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["from", "to"])
        writer.writerows([f"v{i}", f"v{j}"] for i, j in rng.integers(300, size=(600, 2)))
    return [folder / "nodes.csv", folder / "edges.csv"]


RARE = [
    "--label",
    "state",
    "--budget",
    30,
    "--set",
    "hidden=8",
    "--set",
    "hops=1",
    "--method",
    "none",
    "--workers",
    "1",
]


@pytest.mark.long
def test_a_rare_class_gets_its_metric_its_threshold_and_an_interval(rare, tmp_path):
    out = tmp_path / "out"
    said = " ".join(run("train", *rare, "-o", out, *RARE, "--set", "epochs=40", "--splits", 2).output.split())
    assert "Judged by average precision of “bad”" in said
    assert "of the labelled nodes are “bad”, so accuracy would praise a model that finds none" in said
    assert "A node is predicted as “bad” from a probability of" in said
    assert re.search(r"this model [\d.]+ \([\d.]+ to [\d.]+\)", said)
    assert "±" not in said
    result = json.loads((out / "result.json").read_text())
    assert (result["data"]["metric"], result["data"]["positive"]) == ("average_precision", "bad")
    threshold = result["decided"]["threshold"]
    rows = table(out / "predictions.csv")
    assert list(rows[0]) == ["id", "predicted", "p_good", "p_bad", "split"]
    assert all((row["predicted"] == "bad") == (float(row["p_bad"]) >= threshold - 1e-6) for row in rows)
    assert any(row["predicted"] == "bad" for row in rows)
    page = (out / "report.html").read_text()
    assert "The line is the 95% interval" in page or "its 95% interval" in page

    again = tmp_path / "again"
    run("train", "--config", out / "settings.toml", "-o", again)
    same = [(folder / "predictions.csv").read_bytes() for folder in (out, again)]
    assert same[0] == same[1], "threshold and order of classes among it"
    told = [json.loads((folder / "result.json").read_text()) for folder in (out, again)]
    assert all(told[0][name] == told[1][name] for name in ("decided", "calibrated", "test", "metric_reason"))
    run("report", out)
    assert (out / "report.html").read_text() == page

    flagged = run("predict", out, *rare, "-o", tmp_path / "p.csv", "--flag-share", "0.02", "--json").stdout
    assert json.loads(flagged)["predicted"]["bad"] == 6
    strict = run("predict", out, *rare, "-o", tmp_path / "q.csv", "--threshold", "0.9").output
    assert "“bad” from a probability of 0.9 on (asked for)" in strict
    assert all((row["predicted"] == "bad") == (float(row["p_bad"]) >= 0.9) for row in table(tmp_path / "q.csv"))
    both = run("predict", out, *rare, "-o", tmp_path / "r.csv", "--threshold", "0.9", "--flag-share", "0.1", code=1)
    assert "not both" in both.output


@pytest.mark.long
def test_the_metric_the_positive_class_and_class_weights_can_be_asked_for(rare, tmp_path):
    out = tmp_path / "out"
    asked = ["--metric", "log_loss", "--positive", "good", "--class-weights", "--threshold", "0.7"]
    said = run("train", *rare, "-o", out, *RARE, "--set", "epochs=10", "--splits", 1, *asked).output
    assert "Judged by log loss" in said
    result = json.loads((out / "result.json").read_text())
    assert result["data"]["classes"] == ["bad", "good"]
    assert result["decided"]["threshold"] == pytest.approx(0.7)
    assert all(row["recipe"]["class_weights"] for row in result["candidates"])
    losses = [row["val_metric"] for row in result["candidates"] if not row["chosen"]]
    assert len(losses) > 1
    assert losses == sorted(losses), "of losses the smallest is best"
    (best,) = [row["val_metric"] for row in result["candidates"] if row["why"] == "best on validation"]
    assert best == min(row["val_metric"] for row in result["candidates"])
    text = (out / "settings.toml").read_text()
    assert 'metric = "log_loss"' in text
    assert "threshold = 0.7" in text
    wrong = run("train", *rare, "-o", tmp_path / "x", *RARE, "--positive", "worse", code=1)
    assert "must be one of the classes, 'bad' or 'good'" in " ".join(wrong.output.split())
