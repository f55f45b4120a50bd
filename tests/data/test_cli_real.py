"""The exploring commands on real graphs, as a new user would type them."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import pegfan as pf
from pegfan.cli import app

runner = CliRunner()


@pytest.fixture(autouse=True)
def _here(data, monkeypatch):
    monkeypatch.setenv("PEGFAN_DATA", str(data))
    monkeypatch.setenv("PEGFAN_OFFLINE", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FORCE_COLOR", raising=False)


def call(*words):
    result = runner.invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_datasets_fit_into_eighty_columns():
    shown = call("datasets")
    assert max(map(len, shown.splitlines())) <= 80
    rows = {line.split()[0]: line.split() for line in shown.splitlines() if line.strip()}
    assert rows["chameleon"] == ["chameleon", "2,277", "36,101", "2,325", "5", "0.23", "yes"]
    assert rows["chameleon-filtered-directed"][-1] == "yes", "long names are not cut"
    told = json.loads(call("datasets", "cora", "--json"))
    assert (told["nodes"], told["edges"], told["features"], told["classes"]) == (2708, 5278, 1433, 7)


def test_chameleon_leaks_and_info_says_so():
    told = json.loads(call("info", "Chameleon", "--json"))
    assert told["duplicates"]["neighbours"] == 1840
    assert told["duplicates"]["test_in_train"] > 0.5
    assert told["graph"]["edge_homophily"] == pytest.approx(0.234, abs=1e-3)
    filtered = json.loads(call("info", "chameleon_filtered_directed", "--json"))
    assert filtered["duplicates"]["test_in_train"] < 0.1
    assert len(filtered["warnings"]) == len(told["warnings"]) - 1
    shown = call("info", "chameleon")
    assert max(map(len, shown.splitlines())) <= 80


def test_a_raw_social_graph_by_its_folder(data, tmp_path):
    told = json.loads(call("info", data / "twitch" / "ES", "--label", "mature", "-o", tmp_path / "c.png", "--json"))
    assert (told["graph"]["nodes"], told["graph"]["edges"]) == (4648, 59382)
    assert [entry["name"] for entry in told["classes"]] == ["False", "True"]
    assert told["read"]["columns"]["id"].startswith("'new_id'")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    words = ["--signal", "views (log)", "--method", "matching", "--json"]
    told = json.loads(call("transform", data / "twitch" / "ES", *words))
    assert sum(told["energy"]) == pytest.approx(1)
    assert told["reconstruction_error"] < 1e-12


def test_tree_and_transform_of_chameleon(tmp_path):
    kept = tmp_path / "tree.npz"
    told = json.loads(call("tree", "chameleon", "--h", "8", "-o", kept, "--picture", tmp_path / "t.png", "--json"))
    assert told["info"]["h"] == 8
    assert sum(row["label energy"] for row in told["quality"]) == pytest.approx(1)
    out = tmp_path / "out.npz"
    words = ["--signal", "label:3", "--tree", kept, "-o", out, "--picture", tmp_path / "s.png"]
    call("transform", "chameleon", *words, "--denoise", "sure")
    with np.load(out) as arrays:
        assert arrays["signal"].sum() == (pf.datasets.load("chameleon").labels == 3).sum()
        assert np.allclose(sum(arrays[f"F_{j}"] for j in range(told["levels"])), arrays["signal"])
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in ("t.png", "s.png"))


def test_a_large_graph_in_npz(data, tmp_path):
    path = data / "graphs" / "musae_github.npz"
    told = json.loads(call("tree", path, "-o", tmp_path / "t.npz", "--picture", tmp_path / "t.png", "--json"))
    assert told["info"]["method"] == "matching"
    assert told["clusters"][-1] == 37_700
    assert pf.Hierarchy.load(tmp_path / "t.npz").h <= 8


def test_cornell_as_a_pair_of_tables(data, tmp_path):
    graph = pf.datasets.load("cornell")
    edges, _ = graph.edges()
    (tmp_path / "links.csv").write_text("from,to\n" + "".join(f"page{i},page{j}\n" for i, j in edges))
    rows = (f"page{i},{'staff' if c == 0 else f'kind{c}'}\n" for i, c in enumerate(graph.labels))
    (tmp_path / "pages.csv").write_text("page,role\n" + "".join(rows))
    words = [tmp_path / "links.csv", tmp_path / "pages.csv", "--label", "role", "--directed", "--json"]
    told = json.loads(call("info", *words))
    assert told["graph"]["edge_homophily"] == pytest.approx(pf.measures.edge_homophily(graph))
    assert {entry["nodes"] for entry in told["classes"]} == set(np.bincount(graph.labels).tolist())
