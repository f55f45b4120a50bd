"""Benchmarks by name, on small files in the three public layouts."""

import collections
import dataclasses
import hashlib
import io
import pickle
import re
import socket
import struct
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from pegfan import datasets
from pegfan._rows import l1_rows
from pegfan.datasets import benchmarks
from pegfan.datasets._pickles import read_pickle
from pegfan.datasets.registry import DATASETS, Dataset, File, find

# -------------------------------------------------------------------- small files in the public layouts

N = 12
EDGES = [(i, (i + 1) % N) for i in range(N)] + [(0, 5), (5, 0), (0, 5), (3, 3), (7, 2)]
BITS = np.random.default_rng(0).integers(0, 2, (N, 5))
BITS[4] = 0
LABELS = np.arange(N) % 3
LATE = [9, 11, 8]  # planetoid's test nodes: 10 is a gap, without features and label


class Python2(pickle._Pickler):
    """Writes strings and bytes as Python 2 wrote its strings."""

    def save_string(self, text):
        data = text.encode("latin-1") if isinstance(text, str) else text
        self.write(b"U" + bytes([len(data)]) if len(data) < 256 else b"T" + struct.pack("<i", len(data)))
        self.write(data)
        self.memoize(text)

    dispatch = pickle._Pickler.dispatch | {str: save_string, bytes: save_string}


def python2(value):
    buffer = io.BytesIO()
    Python2(buffer, protocol=2).dump(value)
    modules = {b"numpy._core.multiarray": b"numpy.core.multiarray", b"scipy.sparse._csr": b"scipy.sparse.csr"}
    data = buffer.getvalue()
    for new, old in modules.items():
        data = data.replace(b"c" + new + b"\n", b"c" + old + b"\n")
    return data


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def masks(k):
    part = (np.arange(N) + k) % 3
    return {name: part == i for i, name in enumerate(("train", "val", "test"))}


def split(k):
    # Cora's masks are booleans, actor's are bytes.
    return npz(**{f"{part}_mask": mask.astype([bool, np.uint8][k]) for part, mask in masks(k).items()})


def planetoid():
    x, y = csr_matrix(BITS.astype(np.float32)), np.eye(3, dtype=np.int32)[LABELS]
    lists = collections.defaultdict(list, {i: [] for i in range(N)})
    for i, j in EDGES:
        lists[i].append(j)
        lists[j].append(i)
    return {
        "allx": python2(x[:8]),
        "ally": python2(y[:8]),
        "tx": python2(x[LATE]),
        "ty": python2(y[LATE]),
        "graph": python2(lists),
        "index": "".join(f"{i}\n" for i in LATE).encode(),
        "split 0": split(0),
        "split 1": split(1),
    }


def geom_gcn(columns=None):
    order = np.random.default_rng(1).permutation(N)
    if columns is None:
        rows = [",".join(map(str, bits)) for bits in BITS]
    else:
        rows = [",".join(map(str, [*np.flatnonzero(bits), 0, 0])) for bits in BITS]
    nodes = [f"{i}\t{rows[i]}\t{LABELS[i]}\n" for i in order]
    return {
        "edges": "".join(["node_id\tnode_id\n", *(f"{i}\t{j}\n" for i, j in EDGES)]).encode(),
        "nodes": "".join(["node_id\tfeature\tlabel\n", *nodes]).encode(),
        "split 0": split(0),
        "split 1": split(1),
    }


def heterophilous():
    parts = {f"{part}_masks": np.array([masks(k)[part] for k in range(2)]) for part in ("train", "val", "test")}
    arrays = {
        "node_features": BITS.astype(np.float32),
        "node_labels": LABELS,
        "edges": np.array(EDGES),
        **parts,
    }
    return {"arrays": npz(**arrays)}


CONTENTS = {"planetoid": planetoid, "geom-gcn": geom_gcn, "heterophilous": heterophilous}


def register(folder, layout, contents=None, **attributes):
    """Write files and make the registry entry that vouches for them."""
    contents = contents or CONTENTS[layout]()
    files = []
    for role, data in contents.items():
        (folder / role).write_bytes(data)
        files.append(File(role, role, "http://127.0.0.1:9/", hashlib.sha256(data).hexdigest()))
    facts = {"directed": layout == "geom-gcn", "regime": "heterophily", "licence": "none", "citation": "nobody"}
    return Dataset(name="small", layout=layout, files=tuple(files), **{**facts, **attributes})


def read(folder, layout, contents=None, **attributes):
    return benchmarks.read_dataset(register(folder, layout, contents, **attributes), folder, offline=True)


def adjacency(directed):
    dense = np.zeros((N, N))
    for i, j in EDGES:
        dense[i, j] = 1
        if not directed:
            dense[j, i] = 1
    return dense


# -------------------------------------------------------------------- the three layouts


@pytest.mark.parametrize("layout", CONTENTS)
@pytest.mark.parametrize("directed", [True, False])
def test_every_layout_gives_the_graph_that_was_written(tmp_path, layout, directed):
    graph = read(tmp_path, layout, directed=directed, metric="roc_auc", sparse=layout != "heterophilous")
    features, labels, arcs = BITS.copy(), LABELS.copy(), adjacency(directed)
    if layout == "planetoid":  # lists each edge at both ends, and leaves node 10 without features and label
        features[10], labels[10] = 0, 0
        arcs = np.maximum(arcs, arcs.T)
    np.testing.assert_array_equal(graph.adjacency.toarray(), arcs)
    dense = graph.features if layout == "heterophilous" else graph.features.toarray()
    np.testing.assert_array_equal(dense, features)
    np.testing.assert_array_equal(graph.labels, labels)
    assert (graph.directed, graph.metric, graph.features.dtype) == (directed, "roc_auc", np.float32)
    assert len(graph.splits) == 2
    for k, parts in enumerate(graph.splits):
        for name, nodes in parts._asdict().items():
            np.testing.assert_array_equal(nodes, np.flatnonzero(masks(k)[name]))


def test_lists_of_columns_count_a_repeated_one_once(tmp_path):
    graph = read(tmp_path, "geom-gcn", geom_gcn(columns=7), columns=7)
    expected = np.zeros((N, 7))
    expected[:, :5] = BITS
    expected[:, 0] = 1
    np.testing.assert_array_equal(graph.features.toarray(), expected)


def test_sparse_features_of_an_npz_come_out_sparse(tmp_path):
    graph = read(tmp_path, "heterophilous", sparse=True)
    np.testing.assert_array_equal(graph.features.toarray(), BITS)


def test_other_bytes_than_the_registered_ones_are_not_read(tmp_path):
    dataset = register(tmp_path, "geom-gcn")
    with (tmp_path / "edges").open("ab") as file:
        file.write(b"1\t2\n")
    with pytest.raises(ValueError, match=r"edges is not the public file: its sha256 is [0-9a-f]{64}, expected"):
        benchmarks.read_dataset(dataset, tmp_path)


# -------------------------------------------------------------------- load and its options


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Put small sets in the registry for one test, and forbid the network."""
    sets = {}
    for name, layout, directed in (
        ("small", "geom-gcn", True),
        ("even", "heterophilous", False),
        ("even-directed", "heterophilous", True),
    ):
        (tmp_path / name).mkdir()
        dataset = register(tmp_path / name, layout, directed=directed, sparse=layout == "geom-gcn")
        files = tuple(dataclasses.replace(file, path=f"{name}/{file.path}") for file in dataset.files)
        sets[name] = dataclasses.replace(dataset, name=name, files=files)
    monkeypatch.setattr("pegfan.datasets.registry.DATASETS", sets)
    monkeypatch.setattr(benchmarks, "DATASETS", sets)
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("the network was touched"))
    monkeypatch.setenv("PEGFAN_DATA", str(tmp_path))
    monkeypatch.setenv("PEGFAN_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_load_finds_the_folder_by_the_variable_or_the_argument(small, monkeypatch):
    np.testing.assert_array_equal(datasets.load("small").adjacency.toarray(), adjacency(True))
    monkeypatch.delenv("PEGFAN_DATA")
    assert datasets.load("SMALL", small).n == N
    with pytest.raises(FileNotFoundError, match="small/edges is not in"):
        datasets.load("small", offline=True)


def test_directed_is_a_choice(small):
    undirected = datasets.load("small", directed=False)
    assert not undirected.directed
    np.testing.assert_array_equal(undirected.adjacency.toarray(), adjacency(False))
    assert datasets.load("small", directed=True).directed
    assert not datasets.load("even").directed
    with pytest.raises(TypeError, match="directed must be True, False or None, got 'yes'"):
        datasets.load("small", directed="yes")


def test_directed_takes_the_directed_version_where_there_is_one(small):
    np.testing.assert_array_equal(datasets.load("even", directed=True).adjacency.toarray(), adjacency(True))


def test_directed_without_directions_is_both(small, monkeypatch):
    monkeypatch.delitem(benchmarks.DATASETS, "even-directed")
    graph = datasets.load("even", directed=True)
    assert graph.directed
    np.testing.assert_array_equal(graph.adjacency.toarray(), adjacency(False))


@pytest.mark.parametrize("name", ["small", "even"])
def test_normalized_features_have_rows_of_norm_one_or_zero(small, name):
    features = datasets.load(name, unit_rows=True).features
    assert features.dtype == np.float32
    dense = features.toarray() if name == "small" else features
    sums = BITS.sum(axis=1, keepdims=True)
    assert sums.min() == 0
    np.testing.assert_allclose(dense, BITS / np.maximum(sums, 1), rtol=1e-6)


def test_negative_features_are_normalized_by_their_size():
    np.testing.assert_array_equal(l1_rows(np.array([[1.0, -3.0], [0, 0]])), [[0.25, -0.75], [0, 0]])


def test_largest_component(small, tmp_path):
    lonely = geom_gcn()
    lonely["edges"] = b"node_id\tnode_id\n0\t1\n1\t4\n7\t8\n"
    dataset = register(tmp_path / "small", "geom-gcn", lonely)
    files = tuple(dataclasses.replace(file, path=f"small/{file.path}") for file in dataset.files)
    benchmarks.DATASETS["small"] = dataclasses.replace(dataset, files=files)
    graph = datasets.load("small", largest_component=True)
    assert graph.labels.tolist() == LABELS[[0, 1, 4]].tolist()
    assert graph.edges()[0].tolist() == [[0, 1], [1, 2]]


def test_random_splits_in_place_of_the_public_ones(small):
    plain, drawn = datasets.load("small"), datasets.load("small", sizes=[0.6, 0.2, 0.2])
    wanted = datasets.random_splits(plain.labels, sizes=(0.6, 0.2, 0.2))
    assert len(drawn.splits) == 10
    for split, other in zip(drawn.splits, wanted, strict=True):
        assert [part.tolist() for part in split] == [part.tolist() for part in other]
    assert datasets.Source.of("small", sizes=[0.6, 0.2, 0.2]).fingerprint() != datasets.Source.of("small").fingerprint()
    with pytest.raises(ValueError, match="three shares"):
        datasets.load("small", sizes=[0.6, 0.4])


def test_table_leaves_out_what_is_not_there(small):
    (small / "even/arrays").unlink()
    frame = datasets.table()
    assert frame.index.tolist() == ["small", "even-directed"]
    assert list(frame.attrs["missing"]) == ["even"]
    assert "even/arrays is not in" in frame.attrs["missing"]["even"]
    row = frame.loc["small"]
    graph = datasets.load("small")
    assert (row.nodes, row.nonzeros, row.features, row.classes) == (N, graph.adjacency.nnz, 5, 3)
    assert row.density == graph.adjacency.nnz / N**2
    assert row.regime == "heterophily"
    assert row.edge_homophily == graph.describe().edge_homophily
    assert 0 <= row.ccns_between <= 1
    assert 0 <= row.ccns_within <= 1


def test_table_of_some(small):
    frame = datasets.table(["Even"], root=small)
    assert frame.index.tolist() == ["even"]
    assert frame.attrs["missing"] == {}
    assert datasets.table(iter(())).empty
    with pytest.raises(FileNotFoundError, match="not a folder"):
        datasets.table(root=small / "nowhere")


# -------------------------------------------------------------------- the registry


def test_names():
    assert datasets.names() == list(DATASETS)
    assert len(datasets.names()) == 18
    assert {"cora", "actor", "roman-empire", "squirrel-filtered-directed"} <= set(datasets.names())


@pytest.mark.parametrize(
    ("spelled", "name"),
    [("Cora", "cora"), ("film", "actor"), ("FILM", "actor"), ("roman_empire", "roman-empire"), (" texas ", "texas")],
)
def test_spelling_does_not_matter(spelled, name):
    assert find(spelled).name == name


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(
        ValueError, match=r"no data set 'squirel'; did you mean 'squirrel'\? There are cora, .*-directed"
    ):
        datasets.load("squirel")
    with pytest.raises(ValueError, match="no data set 'zzz'; There are"):
        datasets.info("zzz")
    with pytest.raises(TypeError, match="name of a data set, got 3"):
        datasets.load(3)


@pytest.mark.parametrize("name", DATASETS)
def test_a_set_knows_where_its_files_are_and_what_they_are(name):
    dataset = datasets.info(name)
    by_layout = {"planetoid": 16, "geom-gcn": 12, "heterophilous": 1}
    assert len(dataset.files) == len({file.path for file in dataset.files}) == by_layout[dataset.layout]
    assert {file.role for file in dataset.files} >= set(CONTENTS[dataset.layout]())
    for file in dataset.files:
        digits = {"sha256": 64, "git-sha1": 40}[file.algorithm]
        assert len(bytes.fromhex(file.digest)) * 2 == digits
        assert re.match(r"https://raw\.githubusercontent\.com/[\w-]+/[\w-]+/[0-9a-f]{40}/", file.url)
        folder, path = file.path.split("/", 1)
        assert f"/{folder}/" in file.url
        assert file.url.endswith("/" + path)
    assert dataset.metric == ("roc_auc" if name in ("minesweeper", "tolokers", "questions") else "accuracy")
    assert dataset.directed == (dataset.layout == "geom-gcn" or name.endswith("-directed"))
    assert dataset.regime == ("homophily" if dataset.layout == "planetoid" else "heterophily")
    for told in (name, dataset.metric, dataset.licence, dataset.files[-1].path):
        assert told in str(dataset)


@pytest.mark.long
def test_importing_the_package_stays_light():
    code = "import sys, pegfan.datasets; print({'pandas', 'rich', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# -------------------------------------------------------------------- pickles


class Asks:
    """Pickles as a call of any function."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def canary(path):
    """What hostile pickles call: it leaves a trace."""
    path.write_text("executed")


def hostile(trace, protocol):
    evil = Asks(canary, trace)
    good = planetoid()["graph"]
    whole = (evil, {0: [1], 1: [evil]}, np.array([evil], dtype=object), Asks(getattr, 1, "real"), Asks(eval, "1"))
    # The last one throws the result of the evil call away before good data.
    yield from (pickle.dumps(value, protocol) for value in whole)
    yield pickle.dumps(evil, protocol).removesuffix(b".") + b"0" + good


@pytest.mark.parametrize("protocol", range(6))
def test_a_hostile_pickle_is_refused_even_with_the_right_hash(tmp_path, protocol):
    path, trace = tmp_path / "ind.evil.x", tmp_path / "trace"
    for data in hostile(trace, protocol):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=r"ind\.evil\.x: it asks for [\w.]+, which no Planetoid file needs"):
            read_pickle(path, hashlib.sha256(data).hexdigest())
        assert not trace.exists()
    pickle.loads(pickle.dumps(Asks(canary, trace), protocol))  # the trap works
    assert trace.exists()


def test_a_pickle_with_another_hash_is_not_unpickled(tmp_path, monkeypatch):
    monkeypatch.setattr("pegfan.datasets._pickles._Unpickler.load", lambda *_: pytest.fail("it was unpickled"))
    path = tmp_path / "graph"
    path.write_bytes(planetoid()["graph"])
    with pytest.raises(ValueError, match=r"graph is not the public file: .* it was not read"):
        read_pickle(path, hashlib.sha256(b"").hexdigest())
