"""A small file that claims much is refused before memory is taken, within what the machine has free."""

import gzip
import json
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from torture import files

import pegfan as pf
from pegfan import _limits
from pegfan._checks import BadInput
from pegfan._limits import check_memory
from pegfan._saved import read_classes
from pegfan.datasets import Source, read_graph
from pegfan.datasets._table import unique_names

torch = pytest.importorskip("torch")

GB = 10**9


@pytest.fixture
def machine(monkeypatch):
    """A machine with 4 GB free, whatever this one has."""
    monkeypatch.setattr(_limits, "free_memory", lambda: 4 * GB)


def test_what_is_allowed_follows_from_what_is_free(machine, monkeypatch):
    assert _limits.allowed() == 3.2 * GB
    assert (_limits.allowed("8GB"), _limits.allowed(10**6)) == (8 * GB, 10**6)
    monkeypatch.setattr(_limits, "free_memory", lambda: None)
    assert _limits.allowed() == 0.8 * _limits.UNKNOWN_MEMORY
    for wrong in ("much", "-1GB", 0):
        with pytest.raises(ValueError, match="max_bytes is an amount of bytes"):
            _limits.allowed(wrong)


def test_the_limit_of_a_control_group_counts(tmp_path, monkeypatch):
    there = _limits.free_memory()
    for name, text in {"max": "900000000", "current": "500000000", "stat": "inactive_file 100000000\n"}.items():
        (tmp_path / f"memory.{name}").write_text(text)
    monkeypatch.setattr(_limits, "_limits", lambda: [tmp_path / "memory.max"])
    assert _limits.free_memory() == min(500_000_000, there or 500_000_000)
    (tmp_path / "memory.max").write_text("max")
    assert _limits.free_memory() != 500_000_000


def claims(folder, pyg):
    """Small files, each of which claims more than 2 GB; what is said of them, and whether --memory is a way out."""
    np.savez(folder / "nodes.npz", edge_index=np.zeros((2, 200_000), np.int8), num_nodes=10**8)
    yield "nodes.npz", "100,000,000 nodes", False
    np.savez(folder / "wide.npz", edges=[[0, 1]], x_data=[], x_indices=[], x_indptr=[0, 0, 0], x_shape=[2, 10**9])
    yield "wide.npz", "1,000,000,000 feature columns", False
    pair = torch.tensor([[0], [1]])
    torch.save(pyg.Data(edge_index=pair.expand(2, 10**8)), folder / "arcs.pt")
    yield "arcs.pt", "tensors of 200,000,000 numbers", False
    torch.save(pyg.Data(edge_index=pair, x=torch.ones(1, 1).expand(2, 10**9)), folder / "x.pt")
    yield "x.pt", "tensors of 2,000,000,002 numbers", False
    torch.save(pyg.Data(edge_index=pair, num_nodes=2 * 10**8), folder / "nodes.pt")
    yield "nodes.pt", "200,000,000 nodes", False
    (folder / "n.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n900000 900000 99999999999\n1 2\n")
    yield "n.mtx", "99,999,999,999 entries", False
    rows = np.zeros(10_000, int)
    texts = pa.DictionaryArray.from_arrays(pa.array(rows, pa.int32()), pa.array(["x" * 10**5]))
    lists = pa.ListArray.from_arrays(np.arange(10_001), texts)
    for name, column in (("text", texts), ("list", lists)):
        table = pa.table({"source": rows, "target": rows + 1, "note": column})
        parquet.write_table(table, folder / f"{name}.parquet", store_schema=False)
    yield "text.parquet", "texts that repeat", True
    yield "list.parquet", "texts that repeat", True


def test_small_files_that_claim_much_are_refused_at_once(tmp_path, machine, pyg):
    for name, words, pieces in claims(tmp_path, pyg):
        assert (tmp_path / name).stat().st_size < 10**6
        with pytest.raises(BadInput, match=words) as refused:
            read_graph(tmp_path / name)
        assert "not believable" in str(refused.value) or "--max-bytes (max_bytes=)" in str(refused.value)
        assert ("--memory" in str(refused.value)) == pieces


@pytest.mark.parametrize(
    ("name", "text"),
    [("e.csv", b"1,2\n"), ("b.json", b"[],"), ("g.gml", b"node [ id 1 ]\n"), ("g.graphml", b"<a/>")],
)
def test_what_unpacks_to_too_much_is_refused_on_the_way(tmp_path, name, text):
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(text * 10**5))
    with pytest.raises(BadInput, match=f"{name}.gz.* take up to .* and 1.0 MB are allowed"):
        read_graph(path, max_bytes="1MB")


def test_nodes_that_each_have_an_attribute_of_their_own_are_counted(tmp_path):
    nodes = "".join(f'node [ id {k} label "{k}" a{k} {k} ]\n' for k in range(300))
    (tmp_path / "g.gml").write_text(f"graph [\n{nodes}]\n")
    with pytest.raises(BadInput, match="300 nodes with 300 attributes take up to"):
        read_graph(tmp_path / "g.gml", max_bytes="2MB")


def test_a_class_number_far_beyond_the_nodes_is_refused(tmp_path):
    np.savez(tmp_path / "g.npz", edge_index=[[0, 1], [1, 2]], y=[0, 18176, 1])
    with pytest.raises(BadInput, match=r"labels\[1\] = 18176 is not a class number"):
        read_graph(tmp_path / "g.npz")
    assert pf.Graph.from_edges([[0, 1]], labels=[0, 900]).n_classes == 901


def test_one_long_vector_among_blanks_is_not_filled_in(tmp_path, monkeypatch):
    monkeypatch.setattr(_limits, "free_memory", lambda: 10**8)
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    edges.write_text("source,target\n0,1\n")
    nodes.write_text(f'id,v\n0,"[{",".join(["1.5"] * 3000)}]"\n' + "".join(f'{k},""\n' for k in range(1, 3000)))
    with pytest.raises(MemoryError, match="a vector of 3,000 numbers for 3,000 nodes takes up to"):
        read_graph(nodes, edges)


def test_the_similarity_of_very_many_classes_is_refused(monkeypatch):
    graph = pf.Graph.from_edges([[0, 1]], n=2000, labels=np.arange(2000))
    monkeypatch.setattr(_limits, "free_memory", lambda: 10**7)
    with pytest.raises(MemoryError, match="2,000 classes"):
        pf.measures.ccns(graph)
    with pytest.raises(MemoryError):
        check_memory(10**8, "anything")


def test_models_and_trees_are_limited_alike(tmp_path):
    graph = pf.datasets.synthetic(0.0, n=300, n_edges=900, n_features=5)
    model = pf.PEGFANClassifier(epochs=2).fit(graph).save(tmp_path / "model")
    tree = pf.Hierarchy([[0, 0, 0]]).save(tmp_path / "tree.npz")
    assert pf.Hierarchy.load(tree, max_bytes="1MB").n == 3
    with pytest.raises(ValueError, match="max_bytes="):
        pf.Hierarchy.load(tree, max_bytes=100)
    with pytest.raises(ValueError, match="max_bytes="):
        pf.load_model(model, max_bytes=100)
    assert pf.load_model(model, max_bytes="1GB").predict(graph).shape == (300,)


def test_the_limit_is_no_part_of_what_is_read(tmp_path):
    (tmp_path / "e.csv").write_text("source,target\n0,1\n")
    one, other = (Source.of(tmp_path / "e.csv", max_bytes=size) for size in (None, "1GB"))
    assert one.fingerprint() == other.fingerprint()
    assert Source.from_dict(json.loads(json.dumps(other.to_dict()))).open()[0].n == 2


def test_wide_tables_are_read_in_time_that_grows_with_them(tmp_path, monkeypatch):
    # Columns that all have one name: their names must neither be compared with all before, nor grow with each.
    assert unique_names(["a"] * 100_000)[-1] == "a.99999"
    (tmp_path / "e.csv").write_text(",".join(["a"] * 100_001) + "\n" + ",".join(["1"] * 100_001) + "\n")
    with pytest.raises(BadInput, match="has 100,001 columns, and a table may have 100,000"):
        read_graph(tmp_path / "e.csv")
    pd.DataFrame([[1] * 30], columns=[f"c{k}" for k in range(30)]).to_parquet(tmp_path / "e.parquet")
    monkeypatch.setattr("pegfan.datasets._text.MOST_COLUMNS", 20)
    with pytest.raises(BadInput, match="has 30 columns, and a table may have 20"):
        read_graph(tmp_path / "e.parquet")


def test_stand_in_features_fit_the_model_or_it_says_so():
    graph = pf.datasets.synthetic(0.0, n=60, n_edges=240, n_features=4).replace(features=None)
    model = pf.RecipeClassifier({"method": "matching", "epochs": 2}).fit(graph)
    pairs, _ = graph.edges()
    directed = pf.Graph.from_edges(pairs, n=60, directed=True)
    with pytest.raises(ValueError, match="2 feature columns, and the model was fitted to 1"):
        model.predict(directed)


# ------------------------------------------------------------------ models and trees


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Folders of small models, by the name of what they are."""
    graph = pf.datasets.synthetic(0.0, n=60, n_edges=240, n_features=4)
    folder = tmp_path_factory.mktemp("saved")
    models = {
        "network": pf.RecipeClassifier({"method": "matching", "epochs": 2, "labels": True}),
        "gcn": pf.NetworkClassifier("gcn", epochs=2),
    }
    return graph, {name: model.fit(graph).save(folder / name) for name, model in models.items()}


def forge(source, target, arrays=None, file="", **changes):
    """A copy of a model with other arrays in a file, or other members of its description, and checksums that fit."""
    shutil.copytree(source, target)
    about = json.loads((target / "model.json").read_text())
    for name, value in changes.items():
        about[name] = value(about[name]) if callable(value) else value
    if file:
        np.savez_compressed(target / file, **{**np.load(target / file), **arrays})
    (target / "model.json").write_text(json.dumps(about))
    files.resign(target)
    return target


@pytest.mark.parametrize(
    ("file", "arrays", "words"),
    [
        (
            "history.npz",
            {"0/x": np.zeros(10**8, np.int8)},
            r"history\.npz: arrays of .* take up to 100 MB .* 17 MB are",
        ),
        ("history.npz", {"0/x": np.zeros((10**7, 0))}, r"history\.npz: 10,000,\d+ numbers take up to 1\.0 GB"),
        ("inputs.npz", {"x": np.zeros(10**8, np.int8)}, r"inputs\.npz: arrays of .* take up to 100 MB"),
        ("tree_0.npz", {"x": np.zeros(10**8, np.int8)}, r"tree_0\.npz: arrays of .* take up to 100 MB"),
        ("tree_0.npz", {"parents": np.zeros(10**6, np.int8)}, "numbers of less than 32 bits"),
        ("tree_0.npz", {"info": np.array("[" * 10**6)}, "a description of 1,000,000 characters take up to 30 MB"),
        ("inputs.npz", {"columns": np.full(60, 2**62)}, "columns that do not fit its nodes"),
        ("inputs.npz", {"codes": np.full(60, -(2**62))}, "classes that model.json does not know"),
        ("inputs.npz", {"codes": np.zeros(60, np.int8)}, "classes that model.json does not know"),
        ("inputs.npz", {"codes": np.empty(0, np.int64)}, "classes that model.json does not know"),
    ],
    ids=["history", "no history", "inputs", "tree", "thin tree", "info", "columns", "codes", "thin codes", "no codes"],
)
def test_a_small_model_takes_memory_in_proportion(saved, tmp_path, file, arrays, words):
    """Packed zeros are a thousandth of what they unpack to: a model of 3 MB took 3 GB."""
    with pytest.raises(ValueError, match=words):
        pf.load_model(forge(saved[1]["network"], tmp_path / "model", arrays, file))


def test_whoever_asks_for_more_memory_gets_it(saved, tmp_path):
    folder = forge(saved[1]["network"], tmp_path / "model", {"0/x": np.zeros(10**5)}, "history.npz")
    assert len(pf.load_model(folder).fitted_.members[0].run.history["x"]) == 10**5
    with pytest.raises(ValueError, match=r"5\.0 MB are allowed"):
        pf.load_model(folder, max_bytes="5MB")
    folder = forge(saved[1]["network"], tmp_path / "other", {"0/x": np.zeros(10**6)}, "history.npz")
    with pytest.raises(ValueError, match="17 MB are allowed"):
        pf.load_model(folder)
    assert pf.load_model(folder, max_bytes="1GB")


def test_a_network_that_claims_many_columns_is_not_made(saved, tmp_path, monkeypatch):
    from pegfan.training import networks

    made, real = [], networks.make_network

    def make(*sizes):
        made.append(torch.get_default_device())
        return real(*sizes)

    monkeypatch.setattr(networks, "make_network", make)
    with pytest.raises(ValueError, match="not the weights of gcn"):
        pf.load_model(forge(saved[1]["gcn"], tmp_path / "model", columns=10**6))
    assert {device.type for device in made} == {"meta"}


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        ({"dtype": ",".join("i" * 10**5), "names": [1]}, "neither numbers nor names"),
        ({"dtype": ["<i8"], "names": [1]}, "neither numbers nor names"),
        ({"dtype": "<U4", "names": ["a", "b" * 1001]}, "a name of 1,001 characters, and it may have 1,000"),
    ],
)
def test_classes_of_models_are_names_or_numbers(classes, words):
    with pytest.raises(ValueError, match=words):
        read_classes(classes)


def test_one_long_name_among_many_short_ones_takes_its_own_room_only():
    names = ["a" * 1000, *map(str, range(100_000))]
    classes = read_classes({"dtype": "<U1000", "names": names})
    assert classes.dtype == object
    assert classes.tolist() == names
    assert read_classes({"dtype": "<U3", "names": ["a", "bcd"]}).dtype == "<U3"


def test_texts_are_no_names_of_classes(tmp_path):
    """Every row of a table of predictions holds the names of classes: of 10 MB each, they fill a disk."""
    (tmp_path / "nodes.csv").write_text(f"id,label\n0,{'a' * 1001}\n1,b\n2,b\n")
    (tmp_path / "edges.csv").write_text("source,target\n0,1\n")
    with pytest.raises(BadInput, match=r"nodes\.csv: in label column 'label' a class has a name of 1,001 characters"):
        read_graph(tmp_path / "edges.csv", tmp_path / "nodes.csv", label="label", duplicates="max")
    with pytest.raises(ValueError, match="a class has a name of 1,001 characters"):
        pf.Graph.from_edges([[0, 1]], labels=["a" * 1001, "b"])
    assert pf.Graph.from_edges([[0, 1]], labels=["a" * 1000, "b"]).n_classes == 2


@pytest.mark.parametrize("value", [3e38, np.nan], ids=["large", "nan"])
def test_predictions_are_numbers_or_none_are_given(saved, value):
    graph, folders = saved
    for folder in folders.values():
        model = pf.load_model(folder)
        for name, weights in model.fitted_.members[0].run.state.items():
            if name.endswith("weight"):
                weights[...] = value
        with np.errstate(all="ignore"), pytest.raises(ValueError, match="the model's predictions are not numbers"):
            model.predict_proba(graph)


def test_numbers_of_a_table_take_less_than_texts_wherever_these_begin(tmp_path):
    numbers = tmp_path / "numbers.csv"
    rows = [f"{k}," + ",".join([f"0.{k:07d}"] * 4) for k in range(20_000)]
    numbers.write_text("\n".join(["id,a,b,c,d", *rows]) + "\n")
    edges = tmp_path / "edges.csv"
    edges.write_text("source,target\n0,1\n")
    assert read_graph(numbers, edges, max_bytes="4MB").n == 20_000
    with pytest.raises(BadInput, match=r"numbers.csv: 20,000 rows of 5 columns take up to 2.5 MB"):
        read_graph(numbers, edges, max_bytes="2MB")
    texts = tmp_path / "texts.csv"
    late = [row if k < 15_000 else row.replace("0.", "x") for k, row in enumerate(rows)]
    texts.write_text("\n".join(["id,a,b,c,d", *late]) + "\n")
    with pytest.raises(BadInput, match=r"texts.csv: texts in 4 columns take up to .* and 4.0 MB are allowed"):
        read_graph(texts, edges, max_bytes="4MB")
    with pytest.raises(BadInput, match="is not a number, as most values"):  # read whole
        read_graph(texts, edges, max_bytes="9MB")


def test_first_lines_are_not_cut_into_more_cells_than_there_is_memory_for(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("\n".join([",".join("a" * 10**6), ",".join("1" * 10**6)]) + "\n")
    with pytest.raises(ValueError, match=r"wide\.csv: .* bytes in its first lines take up to .* are allowed"):
        read_graph(path, max_bytes="50MB")
    with pytest.raises(ValueError, match="has 1,000,000 columns, and a table may have 100,000"):
        read_graph(path, max_bytes="200MB")
