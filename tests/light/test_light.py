"""The plain installation: no torch, no matplotlib, none of the other extras; run by its own interpreter.

`make test-light` makes the environment; PEGFAN_FULL names the interpreter of the one that has everything.
"""

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pegfan as pf

HERE = Path(__file__).parent
EXTRAS = {
    "torch": ("torch", "torch_geometric"),
    "plots": ("matplotlib",),
    "graphs": ("networkx", "pygsp"),
    "search": ("distributed", "optuna"),
    "sklearn": ("sklearn",),
    "large": ("distributed",),
}


def run(*words, folder=None, code=0):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def pegfan(*words, **options):
    return run(Path(sys.executable).with_name("pegfan"), *words, **options)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A table of nodes and one of edges."""
    folder = tmp_path_factory.mktemp("tables")
    graph = pf.datasets.synthetic(0.1, n=80, n_edges=500, n_features=4)
    pairs, _ = graph.edges()
    lines = [
        ",".join([f"n{i}", *(f"{x:.4f}" for x in row), "abcd"[k]])
        for i, (row, k) in enumerate(zip(graph.features, graph.labels, strict=True))
    ]
    (folder / "nodes.csv").write_text("\n".join(["id,x0,x1,x2,x3,kind", *lines, ""]))
    (folder / "edges.csv").write_text("\n".join(["source,target", *(f"n{a},n{b}" for a, b in pairs), ""]))
    return folder


def test_this_is_the_plain_installation():
    assert [name for names in EXTRAS.values() for name in names if importlib.util.find_spec(name)] == []


def test_signals_and_trees():
    graph = pf.datasets.synthetic(0.2, n=200, n_edges=900, n_features=3)
    system = pf.FrameletSystem(pf.build_tree(graph))
    f = np.random.default_rng(0).standard_normal((200, 2))
    np.testing.assert_allclose(system.reconstruct(system.decompose(f)), f, atol=1e-12)
    np.testing.assert_allclose(sum(system.projections(f)), f, atol=1e-12)
    assert system.denoise(f, "sure").shape == f.shape
    assert len(pf.framelets.quality(graph, system.hierarchy)) == system.K


def test_recipes_of_networks_need_no_torch():
    from pegfan.networks import NETWORKS, NetworkRecipe

    for name in NETWORKS:
        recipe = NetworkRecipe.of({"model": name, "lr": 0.1})
        assert NetworkRecipe.of(recipe.to_dict()) == recipe
        assert pf.NetworkClassifier(name, lr=0.1).recipe == recipe
    job = pf.experiments.Job(pf.datasets.Source.of("synthetic"), recipe, split=0, seed=0)
    assert len(job.name) == 16
    assert "torch" not in sys.modules


def test_the_networks_of_the_demo():
    found = pf.demo.compare(n=200, n_edges=1500, n_features=10, splits=2, epochs=5)
    assert found.result(found.probabilities()).test.mean > 0


def test_every_command_of_an_analyst_runs(tables):
    names = ("nodes.csv", "edges.csv", "--label", "kind")
    assert "80" in pegfan("info", *names, folder=tables)
    assert "clusters" in pegfan("tree", *names, "-o", "tree.npz", folder=tables)
    told = pegfan("train", *names, "-o", "out", "--budget", "2", "--set", "epochs=15", "--workers", "2", folder=tables)
    assert "this model" in told
    assert (tables / "out" / "report.html").stat().st_size > 10_000
    pegfan("predict", "out", "nodes.csv", "edges.csv", "-o", "again.csv", folder=tables)
    rows = [
        [line.split(",")[:-1] for line in (tables / name).read_text().splitlines()]
        for name in ("out/predictions.csv", "again.csv")
    ]
    assert rows[0] == rows[1]
    pegfan("report", "out", "-o", "again.html", folder=tables)
    options = ("--strategy", "grid", "--grid", "paper", "--epochs", "1", "--splits", "1", "--workers", "1")
    assert "Best on validation" in pegfan("search", *names, "-o", "store", *options, folder=tables)


def test_tables_of_nodes_and_edges_are_worked_on_in_pieces(tables):
    names = ("nodes.csv", "edges.csv", "--label", "kind", "--memory", "1GB")
    pegfan("tree", *names, "-o", "pieces.npz", folder=tables)
    told = pegfan("train", *names, "-o", "large", "--budget", "2", folder=tables)
    assert "this model" in told
    assert "clusters" in pegfan("tree", "edges.csv", "--memory", "1GB", "-o", "alone.npz", folder=tables)
    told = pegfan("tree", *names, "--dask", "-o", "other.npz", folder=tables, code=1)
    assert "pegfan[large]" in re.sub(r"\s+", "", told)


def test_what_is_missing_is_named_with_its_extra(tables):
    graph = pf.datasets.synthetic(0.2, n=40, n_edges=100, n_features=3)
    with pytest.raises(ImportError, match=r"pip install 'pegfan\[plots\]'"):
        pf.plots.levels(graph, pf.build_tree(graph))
    with pytest.raises(ImportError, match=r"pip install 'pegfan\[torch\]'"):
        pf.models.ChannelNetwork([3], 2)
    with pytest.raises(ImportError, match=r"pegfan\.nn needs torch: pip install 'pegfan\[torch\]'"):
        importlib.import_module("pegfan.nn")
    channels = pf.make_fsgnn_channels(graph, regime="all")
    with pytest.raises(ImportError, match=r"needs torch: pip install 'pegfan\[torch\]'"):
        pf.train(channels, graph.labels, graph.splits[0], {"layers": 3, "epochs": 1})
    with pytest.raises(ImportError, match=r"pip install 'pegfan\[torch\]'"):
        graph.to_pyg()
    with pytest.raises(ImportError, match=r"GCN, .* needs torch: pip install 'pegfan\[torch\]'"):
        pf.NetworkClassifier("gcn").fit(graph)
    with pytest.raises(ImportError, match=r"this estimator needs sklearn: pip install 'pegfan\[sklearn\]'"):
        importlib.import_module("pegfan.integrations.sklearn")
    for call in (graph.to_networkx, graph.to_pygsp):
        with pytest.raises(ImportError, match=r"pip install 'pegfan\[graphs\]'"):
            call()
    told = pegfan("tree", "nodes.csv", "edges.csv", "--picture", "t.png", folder=tables, code=1)
    assert "pegfan[plots]" in re.sub(r"\s+", "", told)
    told = pegfan(
        "search", "nodes.csv", "edges.csv", "--label", "kind", "-o", "s", "--strategy", "optuna", folder=tables, code=1
    )
    assert "pegfan[search]" in re.sub(r"\s+", "", told)


def test_the_same_bits_as_with_everything_installed():
    full = os.environ["PEGFAN_FULL"]
    assert run(full, "-c", "import torch") == ""
    ours, theirs = (run(python, HERE / "bits.py") for python in (sys.executable, full))
    assert ours == theirs
    assert ours.count("\n") == 3
