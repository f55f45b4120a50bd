"""``pegfan reproduce`` on real data: a few cells, from the files to the tables."""

import json

import pytest
from typer.testing import CliRunner

from pegfan.cli import app
from pegfan.experiments import Store
from pegfan.paper import published
from pegfan.paper.benchmarks import Table3
from pegfan.paper.cells import Options
from pegfan.paper.published import Model
from pegfan.paper.times import Table4
from pegfan.recipe import Recipe
from support.digests import committed


def invoke(*words):
    outcome = CliRunner().invoke(app, ["reproduce", *map(str, words)])
    assert outcome.exit_code == 0, outcome.output
    return outcome


def test_the_authors_trees_serve_all_sets_but_pubmed(authors_trees):
    every = [job for _, stage in Table3(Options(trees=authors_trees)).jobs(lambda job: []) for job in stage]
    jobs = [job for job in every if isinstance(job.recipe, Recipe)]
    own = {job.source.where[0] for job in jobs if job.recipe.has_tree and job.recipe.tree_file is None}
    assert own == {"pubmed", *(name for name in {job.source.where[0] for job in jobs} if "filtered" in name)}
    assert {job.recipe.tree_file.name for job in jobs if job.recipe.tree_file} == {
        f"{name}_h{h}.npz" for name in published.DATASETS if name != "pubmed" for h in (4, 8)
    }


def test_some_cells_of_table_three(data, authors_trees, tmp_path, monkeypatch):
    """Two cells on two splits; the second call computes nothing and writes the same bytes."""
    monkeypatch.setattr(Table3, "models", lambda self, name: [Model.of("c8"), Model.of("r3")])
    monkeypatch.setattr(Table3, "rivals", lambda self, name: [])
    store, output = tmp_path / "store", tmp_path / "out"
    words = ["table3", "--quick", "--only", "texas", "--trees", authors_trees, "--store", store, "-o", output]
    words += ["--workers", 1]
    summary = json.loads(invoke(*words, "--json").stdout)
    assert list(summary) == ["table3-authors-trees-texas-quick"]
    assert len(Store(store)) == 4
    before = {path.name: path.read_bytes() for path in output.iterdir()}
    invoke(*words)
    invoke(*words, "--render-only")
    assert len(Store(store)) == 4
    assert {path.name: path.read_bytes() for path in output.iterdir()} == before

    text = before["table3-authors-trees-texas-quick.md"].decode()
    assert "| Nodes | 183 |" in text
    assert "| ‖A‖₀ | 325 |" in text
    assert "Left out: cora" in text
    cells = json.loads(before["table3-authors-trees-texas-quick.json"])["cells"]
    done = {cell["row"]: cell for cell in cells if cell["runs"]}
    assert set(done) == {"c8", "r3"}
    assert done["c8"]["tree"].startswith("texas_h8.npz (sha256 ")
    assert done["c8"]["seeds"] == [42, 43]
    assert done["c8"]["channels"] == 8  # X, three hops, four scales
    assert done["r3"]["tree"] is None
    for cell in done.values():
        assert 60 < cell["ours"] < 100
        assert cell["verdict"] == "too few splits for a verdict"


def test_a_search_for_one_cell(data, tmp_path, monkeypatch):
    monkeypatch.setattr(Table3, "models", lambda self, name: [Model.of("a4")])
    words = ["table3", "--quick", "--settings", "search", "--rungs", "4x5,2x30x2", "--only", "cornell", "--workers", 1]
    invoke(*words, "--store", tmp_path / "store", "-o", tmp_path)
    assert len(Store(tmp_path / "store")) == 4 + 2 * 2
    cells = json.loads((tmp_path / "table3-search-cornell-4x5x1_2x30x2-quick.json").read_text())["cells"]
    (cell,) = (cell for cell in cells if cell["runs"])
    digest = committed(["cornell"])["cornell ward 4"]
    assert cell["tree"] == f"own: method=ward h=4 direction=out; digest {digest}"
    assert cell["settings"]["epochs"] == 30


def test_table_four_counts_the_paper_s_channels(data, authors_trees, tmp_path, monkeypatch):
    """With the authors' trees type c has 13 channels on chameleon, as the paper says."""
    monkeypatch.setattr(Table4, "rows", [("chameleon", Model.of("c4")), ("chameleon", Model.of("r3"))])
    monkeypatch.setattr(Table4, "settings", [{"epochs": 3}])
    words = ["table4", "--quick", "--trees", authors_trees, "--store", tmp_path, "-o", tmp_path, "--workers", 1]
    invoke(*words)
    cells = json.loads((tmp_path / "table4-authors-trees-quick.json").read_text())["cells"]
    for cell in cells:
        if (cell["set"], cell["row"]) in (("chameleon", "c4"), ("chameleon", "r3")):
            assert cell["channels"] == cell["paper_channels"]
            assert cell["cpu"][0] > 0
    assert len(Store(tmp_path / "times")) == 4 + 4  # four to warm up, in a store of their own


@pytest.mark.usefixtures("data")
def test_every_figure_is_drawn_twice_alike(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        invoke("figures", "--store", tmp_path / "none", "-o", tmp_path / name / "results")
    names = sorted(path.name for path in (tmp_path / "a" / "results").iterdir())
    drawn = ("architecture", "ccns", "framelets", "partition-permutation")
    pictures = [f"{name}.{suffix}" for name in drawn for suffix in ("png", "svg")]
    assert names == sorted(pictures + [f"figures.{suffix}" for suffix in ("md", "csv", "json", "html")])
    for suffix in ("md", "html"):
        page = (tmp_path / "a" / "results" / f"figures.{suffix}").read_text()
        assert all(f"{name}.png" in page for name in drawn)
        assert page.count("Not drawn: its runs are not in the store") == 3
    for name in names:
        assert (tmp_path / "a" / "results" / name).read_bytes() == (tmp_path / "b" / "results" / name).read_bytes()
