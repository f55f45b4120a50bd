"""What 0.1 wrote and said: its models load, its settings repeat, its words are understood, its runs are found."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import pegfan as pf
from pegfan.cli import app
from pegfan.experiments import Store
from pegfan.paper.benchmarks import Table3
from pegfan.paper.cells import Options, lookup
from pegfan.paper.synthetic import Synthetic
from pegfan.recipe import Recipe, TreeFile

SAVED = Path(__file__).parents[1] / "support" / "saved_0_1"
RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def graph():
    """The graph that the models were fitted to."""
    with np.load(SAVED / "graph.npz") as arrays:
        split = [pf.Split(*(arrays[name] for name in pf.Split._fields))]
        adjacency = np.zeros((60, 60))
        adjacency[tuple(arrays["edges"])] = 1
        return pf.Graph(adjacency, features=arrays["features"], labels=arrays["labels"], splits=split)


# -------------------------------------------------------------------------- models


@pytest.mark.parametrize(
    ("name", "kind"),
    [("pegfan", pf.PEGFANClassifier), ("fsgnn", pf.FSGNNClassifier), ("auto", pf.AutoClassifier)],
)
def test_models_load_and_predict_as_they_did(graph, name, kind, tmp_path):
    model = pf.load_classifier(SAVED / name)
    assert type(model) is kind
    with np.load(SAVED / "expected.npz") as expected:
        np.testing.assert_allclose(model.predict_proba(graph), expected[name], atol=1e-6)
    again = pf.load_classifier(model.save(tmp_path / "model"))
    assert again.predict_proba(graph).tobytes() == model.predict_proba(graph).tobytes()
    assert json.loads((tmp_path / "model" / "model.json").read_text())["version"] == 3
    assert again.score(graph) == model.score(graph) > 0.25


def test_parameters_come_out_in_the_words_of_today():
    model = pf.load_classifier(SAVED / "pegfan")
    assert repr(model) == (
        "PEGFANClassifier(h=4, kind='b', regime='heterophily', stand_in=None, random_state=42, hidden=4, epochs=20)"
    )
    assert model.recipe == Recipe("auto", 4, None, "b", "heterophily", settings={"hidden": 4, "epochs": 20})
    assert sum(model.attention_.values()) == pytest.approx(1, rel=1e-5)
    fsgnn = pf.load_classifier(SAVED / "fsgnn")
    assert (fsgnn.hops, fsgnn.regime, fsgnn.scaling, fsgnn.stand_in) == (2, "all", "none", None)
    auto = pf.load_classifier(SAVED / "auto")
    assert [Recipe.of(recipe).scaling for recipe in auto.recipes] == ["columns", "none"]
    assert {member.recipe for member in auto.members_} == set(map(Recipe.of, auto.recipes))


def test_a_changed_graph_is_predicted_by_a_model_of_0_1(graph):
    arcs = graph.adjacency.toarray()
    arcs[0, 1] = arcs[1, 0] = 1 - arcs[0, 1]
    changed = graph.replace(adjacency=arcs)
    for name in ("pegfan", "fsgnn", "auto"):
        probabilities = pf.load_classifier(SAVED / name).predict_proba(changed)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)


# ------------------------------------------------------------------------ settings


@pytest.mark.long
def test_settings_of_0_1_are_run(tmp_path):
    """Splits are drawn, trees built and rows trained in another order since: predictions are nearly those of 0.1."""
    home = SAVED / "run"
    arguments = ["train", home / "nodes.csv", home / "edges.csv", "--label", "kind", "--config", home / "settings.toml"]
    done = CliRunner().invoke(app, [*map(str, arguments), "-o", str(tmp_path / "out"), "--workers", "1"])
    assert done.exit_code == 0, done.output
    ours, theirs = (
        list(csv.DictReader((folder / "predictions.csv").read_text().splitlines()))
        for folder in (tmp_path / "out", home)
    )
    assert [list(row) for row in ours] == [list(row) for row in theirs]
    assert [row["id"] for row in ours] == [row["id"] for row in theirs]
    # In 0.1, labelled nodes were predicted by what had learned from them, as the mean of all members does.
    fitted = pf.load_classifier(tmp_path / "out" / "model").fitted_
    graph = pf.read_graph(home / "nodes.csv", home / "edges.csv", label="kind")
    mean = fitted.classes[replace(fitted, known=None).raw(graph).argmax(axis=1)].tolist()
    assert np.mean([mine == its["predicted"] for mine, its in zip(mean, theirs, strict=True)]) > 0.8


# --------------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        (pf.PEGFANClassifier, {"channels": "b"}, {"kind": "b"}),
        (pf.PEGFANClassifier, {"normalize_features": False}, {"scaling": "none"}),
        (pf.PEGFANClassifier, {"normalize_features": "l1"}, {"scaling": "l1"}),
        (pf.PEGFANClassifier, {"features": None}, {"stand_in": None}),
        (pf.FSGNNClassifier, {"option": "all"}, {"regime": "all"}),
    ],
)
def test_words_of_0_1_name_their_successors(kind, old, new):
    (was,), (now,) = old, new
    with pytest.warns(FutureWarning, match=f"{was}= is called {now}= since 0.2") as caught:
        model = kind(**old)
    assert caught[0].filename == __file__, "the warning points at the line that used the word"
    assert model.get_params() == kind(**new).get_params()


def test_words_of_0_1_give_the_same_model(graph):
    with pytest.warns(FutureWarning):
        old = pf.PEGFANClassifier(channels="b", normalize_features=False, epochs=8).fit(graph)
    new = pf.PEGFANClassifier(kind="b", scaling="none", epochs=8).fit(graph)
    assert old.predict_proba().tobytes() == new.predict_proba().tobytes()


# ---------------------------------------------------------------------------- runs


@pytest.fixture(scope="module")
def records():
    """The committed store: 0.1 computed what is in it."""
    return lookup(Store(RESULTS, create=False))


def missing(table, records):
    """The runs of PEGFAN and FSGNN that are not in the store; 0.1 had no other systems."""
    jobs = [job for _, stage in table.jobs(records) for job in stage if isinstance(job.recipe, Recipe)]
    assert jobs
    return [job for job in jobs if not records(job)]


@pytest.mark.long
def test_the_runs_of_table_three_are_found(records):
    """Own trees, pubmed's at h = 4 with its seven levels; FSGNN, which has none."""
    assert missing(Table3(Options()), records) == []


@pytest.mark.long
def test_the_runs_on_the_authors_trees_are_found(records, tmp_path, monkeypatch):
    """By the hashes that the records hold, for the files are not here."""
    hashes = {}
    for record in Store(RESULTS, create=False):
        tree = record.get("job", {}).get("tree") or {}
        if "file" in tree:
            hashes[tree["file"]] = tree["sha256"]
            (tmp_path / tree["file"]).touch()
    assert len(hashes) == 16
    monkeypatch.setattr(TreeFile, "of", lambda path: TreeFile(path.name, hashes[path.name]))
    assert missing(Table3(Options(trees=tmp_path)), records) == []


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.long
def test_the_runs_of_the_synthetic_tables_are_found(records, number):
    """All rungs of the search and the winners, types a, b and c and FSGNN."""
    table = Synthetic(Options(only=("0.2",)), number)
    assert [stage for stage, _ in table.jobs(records)] == ["γ = 0.2, winners"]
    assert missing(table, records) == []


def test_an_old_word_and_its_new_one_together_are_refused():
    with pytest.warns(FutureWarning), pytest.raises(ValueError, match="kind is given twice"):
        pf.PEGFANClassifier(kind="a", channels="b")


def test_pins_and_settings_without_recipes_of_0_1_are_read(tmp_path):
    from pegfan import _saved
    from pegfan.cli.train import _read_settings

    folder = tmp_path / "auto"
    shutil.copytree(SAVED / "auto", folder)
    about = json.loads((folder / "model.json").read_text())
    del about["checksum"]
    about["parameters"]["pins"] = {"features": "raw"}
    (folder / "model.json").write_text(json.dumps({**about, "checksum": _saved._checksum(about)}))
    assert pf.load_classifier(folder).pins == {"scaling": "none"}
    (tmp_path / "settings.toml").write_text(
        'format = "pegfan settings"\nversion = 1\n[pins]\nfeatures = "scaled"\nh = 4\n'
    )
    assert _read_settings(tmp_path / "settings.toml")["pins"] == {"scaling": "columns", "h": 4}
