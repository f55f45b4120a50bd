"""``pegfan explain``, ``--reasons`` and ``ranked.csv``."""

import csv
import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import pegfan as pf
from pegfan.cli import app

runner = CliRunner()
QUICK = ["--set", "epochs=10", "--set", "hidden=8", "--workers", "1", "--splits", "1", "--budget", "2"]


def run(*arguments, code=0):
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def table(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Accounts with leading zeros in their ids; the amount tells frauds, every fourth label is not known."""
    folder, rng, n = tmp_path_factory.mktemp("files"), np.random.default_rng(0), 80
    fraud = np.arange(n) % 5 == 0
    with (folder / "nodes.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "fraud", "amount", "channel"])
        for i in range(n):
            label = "" if i % 4 == 0 else "yes" if fraud[i] else "no"
            writer.writerow(
                [f"a{i:05}", label, round(float(rng.normal(5 * fraud[i], 1)), 3), "web" if i % 3 else "shop"]
            )
    with (folder / "edges.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["from", "to"])
        writer.writerows([f"a{i:05}", f"a{j:05}"] for i, j in rng.integers(0, n, (200, 2)) if i != j)
    return [folder / "nodes.csv", folder / "edges.csv"]


@pytest.fixture(scope="module")
def out(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "out"
    run("train", *files, "--label", "fraud", "-o", folder, "--method", "none", "--reasons", *QUICK)
    return folder


def test_a_node_is_explained_in_tables_that_add_up(out):
    shown = run("explain", out, "a00001", "--top", 2).output
    assert shown.startswith("a00001: yes")
    for title in ("by column", "by node", "by channel", "itself", "amount", "the features themselves"):
        assert title in shown
    difference = float(re.search(r"difference,\s+([+-][\d.]+)", shown)[1])
    nodes = shown.split("by node")[1].split("by channel")[0]
    assert sum(map(float, re.findall(r"[+-]\d+\.\d{3}", nodes))) == pytest.approx(difference, abs=0.005)


def test_json_holds_every_share(out):
    found = json.loads(run("explain", out, "a00001", "a00004", "--json", "--class", "no").output)["nodes"]
    assert [(one["id"], one["target"]) for one in found] == [("a00001", "no"), ("a00004", "no")]
    row = table(out / "predictions.csv")[1]
    assert found[0]["probability"] == pytest.approx(float(row["p_no"]), abs=1e-5)
    for one in found:
        difference = one["score"] - one["average"]
        for name in ("channels", "columns", "reasons"):
            assert sum(share["contribution"] for share in one[name]) == pytest.approx(difference, abs=1e-6)
        nodes = sum(share["contribution"] for share in one["nodes"]) + sum(one["rest"].values())
        assert nodes == pytest.approx(difference, abs=1e-6)


def test_another_graph_can_be_explained(out, files):
    same = [
        json.loads(run("explain", out, "a00001", "--json", *more).output)["nodes"]
        for more in ([], ["--on", files[0], "--on", files[1]])
    ]
    assert same[0] == same[1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["a1"], "there is no node 'a1'; did you mean 'a00001'"),
        (["a00001", "--class", "maybe"], "There is no class 'maybe'; there are 'no', 'yes'."),
    ],
)
def test_what_is_not_there_is_said(out, arguments, sentence):
    shown = run("explain", out, *arguments, code=1).output
    assert sentence in " ".join(shown.split())


def test_other_networks_are_refused(tmp_path, files, out):
    graph = pf.read_graph(*files, label="fraud").replace(splits=[])
    pf.NetworkClassifier("mlp", epochs=2).fit(graph, split="random").save(tmp_path / "mlp")
    shown = run("explain", tmp_path / "mlp", "a00001", "--on", files[0], "--on", files[1], code=1).output
    assert "reasons are for PEGFAN and FSGNN" in " ".join(shown.split())
    shown = run("explain", tmp_path / "mlp", "a00001", code=1).output
    assert "name the graph with --on" in " ".join(shown.split())


def test_the_ranked_table_holds_every_unlabelled_node(out):
    predicted = {row["id"]: row for row in table(out / "predictions.csv")}
    rows = table(out / "ranked.csv")
    assert {row["id"] for row in rows} == {f"a{i:05}" for i in range(0, 80, 4)}
    assert [int(row["rank"]) for row in rows] == list(range(1, 21))
    assert {row["class"] for row in rows} == {"yes"}
    chances = [float(row["probability"]) for row in rows]
    assert chances == sorted(chances, reverse=True)
    for row in rows:
        assert row["probability"] == predicted[row["id"]]["p_yes"]
        assert row["top_reasons"] == predicted[row["id"]]["top_reasons"]


def test_reasons_of_predictions_are_those_of_explain(out):
    row = table(out / "predictions.csv")[7]
    found = json.loads(run("explain", out, row["id"], "--json", "--top", 100).output)["nodes"][0]
    near = [reason for reason in found["reasons"] if "further node" not in reason["words"]]
    assert row["top_reasons"] == "; ".join(f"{r['words']} ({r['contribution']:+.2g})" for r in near[:3])


def test_predict_adds_reasons_when_asked(tmp_path, out, files):
    run("predict", out, *files, "-o", tmp_path / "p.csv", "--reasons")
    run("predict", out, *files, "-o", tmp_path / "q.csv")
    reasons = [row["top_reasons"] for row in table(out / "predictions.csv")]
    assert [row["top_reasons"] for row in table(tmp_path / "p.csv")] == reasons
    assert "top_reasons" not in table(tmp_path / "q.csv")[0]


def test_the_result_and_the_report_hold_them(out):
    result = pf.results.Result.from_json((out / "result.json").read_text())
    assert result.ranking.by == "yes"
    assert {row.id for row in result.ranking.rows} <= {row.id for row in result.reasons}
    assert {row.target for row in result.reasons} == {"yes"}
    named = {row.name for row in result.importances.rows}
    assert named  # columns are shuffled as far as the budget reaches, so that a busy machine may leave one out
    assert named <= {"amount", "channel"}
    assert len(named) + result.importances.left_out == 2
    assert [curve.name for curve in result.precision_recall] == ["yes"]
    assert result.command.endswith("--reasons")
    page = (out / "report.html").read_text()
    assert '"reasons":{"a' in page
