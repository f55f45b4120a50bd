"""The leak-free table: what it runs, what it says, and that it says only what ran."""

import json

import pytest

from pegfan.datasets import Source
from pegfan.experiments import Store
from pegfan.paper import leak_free
from pegfan.paper.documents import write
from pegfan.paper.leak_free import LeakFree

FIND, SETS = leak_free.find, leak_free.SETS
ONLY = ("easy", "hard", "pegfan", "mlp", "label-propagation")


@pytest.fixture(scope="module")
def here():
    """Two small generated graphs in place of the real ones, and a small budget."""
    graphs = {
        name: Source.of("synthetic", gamma=gamma, n=120, n_edges=500, n_features=8, splits=3)
        for name, gamma in (("easy", 0.0), ("hard", 1.0))
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leak_free, "SETS", {**dict.fromkeys(graphs, ""), "nowhere": "graphs"})
        patch.setattr(leak_free, "find", graphs.get)
        patch.setattr(leak_free, "CHANGES", {"epochs": 4, "patience": 4})
        patch.setattr(leak_free, "TRIES", 2)
        yield graphs


@pytest.fixture(scope="module")
def store(here, tmp_path_factory):
    return Store(tmp_path_factory.mktemp("leak-free"))


@pytest.fixture(scope="module")
def found(store):
    return list(LeakFree(ONLY).comparisons(store))


def test_every_model_has_the_same_budget_on_the_same_splits(found):
    assert [len(one.rows) for one in found] == [3, 3]
    assert {one.tries for one in found} == {2}
    assert {one.splits.used for one in found} == {(0, 1, 2)}
    for row in (row for one in found for row in one.rows):
        assert len(row.test.per_split) == 3
        if row.name != "label-propagation":
            assert (row.recipe["epochs"], row.recipe["patience"]) == (4, 4)


def test_what_ran_is_not_run_again_and_what_did_not_run_says_so(found, store, monkeypatch):
    def fails(*_, **__):
        raise AssertionError("it ran again")

    monkeypatch.setattr("pegfan.experiments.jobs.run_job", fails)
    again = list(LeakFree(ONLY).comparisons(store, run=False))
    assert [one.to_dict()["rows"] for one in again] == [one.to_dict()["rows"] for one in found]
    more = list(LeakFree((*ONLY, "gcn")).comparisons(store, run=False))
    assert {row.reason for one in more for row in one.rows if row.name == "gcn"} == {
        "the store does not hold all of its runs"
    }


def test_the_page(found, store, tmp_path):
    document = LeakFree(ONLY).document(found, "pegfan reproduce leak-free")
    write(document, tmp_path)
    text = (tmp_path / f"{document.name}.md").read_text()
    best = [one.rows[0] for one in found]
    for one, row in zip(found, best, strict=True):
        assert f"**{row.test:.2f}**" in text
        assert f"| {one.title} |" in text.replace("  ", " ")
    places = [[row.name for row in one.rows].index("pegfan") for one in found]
    assert document.summary["pegfan"]["graphs"] == 2
    assert len(document.summary["pegfan"]["best"]) == places.count(0)
    assert f"PEGFAN is the best on {places.count(0)} of 2 graphs" in text
    cells = json.loads((tmp_path / f"{document.name}.json").read_text())["cells"]
    assert len(cells) == 6
    first = next(cell for cell in cells if cell["row"] == best[0].name)
    assert first["ours"] == pytest.approx(100 * best[0].test.mean)
    assert len(first["values"]) == first["runs"] == 3


def test_the_guide_is_the_table_by_kinds_of_graphs(found, tmp_path):
    document = LeakFree(ONLY).guide(found, "pegfan reproduce leak-free")
    write(document, tmp_path)
    text = (tmp_path / "which-model.md").read_text()
    kinds = document.summary["kinds"]
    assert kinds["all graphs"]["graphs"] == ["easy", "hard"]
    behind = {row.name: [] for row in found[0].rows}
    for row in (row for one in found for row in one.rows):
        behind[row.name].append(-100 * (row.difference or 0.0))
    assert kinds["all graphs"]["distances"] == pytest.approx({name: sum(of) / 2 for name, of in behind.items()})
    assert list(kinds["all graphs"]["distances"].values()) == sorted(kinds["all graphs"]["distances"].values())
    for one in found:
        of = "say" if one.data.adjusted_homophily < 0.25 else "join"
        assert one.title in next(kind["graphs"] for words, kind in kinds.items() if words.startswith(f"edges {of}"))
    for one in found:
        place = [row.name for row in one.rows]
        alone = next(w for w, kind in kinds.items() if " alone" in w and one.title in kind["graphs"])
        assert alone.startswith("features") == (place.index("mlp") < place.index("label-propagation"))
    assert document.summary["cost"]["mlp"] == [1, 1]
    assert set(document.summary["cost"]) <= {"pegfan", "mlp", "label-propagation"}
    assert "| easy |" in text
    assert "<h2>" not in document.html()


def test_no_guide_before_anything_ran(store):
    document = LeakFree(("gcn",)).guide(list(LeakFree(("gcn", "easy")).comparisons(store, run=False)), "command")
    assert document.blocks == [leak_free._GUIDE]


def test_headings_are_headings_on_the_web_page(found):
    page = LeakFree(ONLY).document(found, "command").html()
    assert "<h2>What it says of PEGFAN</h2>" in page
    assert "##" not in page


def test_a_model_that_did_not_run_is_listed_with_its_reason(found, store):
    more = list(LeakFree((*ONLY, "gcn")).comparisons(store, run=False))
    text = LeakFree((*ONLY, "gcn")).document(more, "command").markdown()
    assert "## What did not run" in text
    assert f"- {more[0].title}, GCN: the store does not hold all of its runs" in text
    assert "mean place" not in text  # not all models ran on any graph
    none = list(LeakFree(("easy", "gcn", "sage")).comparisons(store, run=False))
    text = LeakFree(("easy", "gcn", "sage")).document(none, "command").markdown()
    assert text.endswith("## What did not run\n\n- easy, all models: the store does not hold all of its runs\n")


def test_graphs_that_are_not_there_are_left_out(monkeypatch, tmp_path):
    monkeypatch.setenv("PEGFAN_DATA", str(tmp_path))
    monkeypatch.setattr(leak_free, "SETS", SETS)
    assert FIND("dblp") is None
    assert FIND("minesweeper") == Source.of("minesweeper")
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "dblp.npz").touch()
    assert FIND("dblp") == Source.of(tmp_path / "graphs" / "dblp.npz")


def test_an_unknown_name_lists_those_that_there_are(monkeypatch):
    monkeypatch.setattr(leak_free, "SETS", SETS)
    with pytest.raises(ValueError, match=r"this table has no 'gnc'; it has chameleon-filtered, .*; and rows pegfan"):
        LeakFree(("gnc",))
