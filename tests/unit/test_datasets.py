"""Benchmarks by name, on small files in the three public layouts, sound and not."""

import collections
import dataclasses
import hashlib
import io
import os
import pickle
import re
import socket
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from pegfan import datasets
from pegfan.channels.scaling import l1_rows
from pegfan.datasets import _pickles, benchmarks
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


def heterophilous(**changes):
    parts = {f"{part}_masks": np.array([masks(k)[part] for k in range(2)]) for part in ("train", "val", "test")}
    arrays = {
        "node_features": BITS.astype(np.float32),
        "node_labels": LABELS,
        "edges": np.array(EDGES),
        **parts,
        **changes,
    }
    return {"arrays": npz(**{name: array for name, array in arrays.items() if array is not None})}


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
    features = datasets.load(name, normalize_features=True).features
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


def test_importing_the_package_stays_light():
    code = "import sys, pegfan.datasets; print({'pandas', 'pooch', 'rich', 'torch'} & set(sys.modules))"
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


HOSTILE = {
    "os.system": Asks(os.system, "true"),
    "eval": Asks(eval, "1"),
    "numpy.load": Asks(np.load, "x.npy", None, True),
    "subprocess": Asks(subprocess.Popen, ["true"]),
    "getattr": Asks(getattr, 1, "real"),
    "csr of eval": Asks(csr_matrix, Asks(eval, "1")),
    "in a dict": {0: [1], 1: [Asks(os.system, "true")]},
    "in an array": np.array([Asks(eval, "1")], dtype=object),
}
READERS = (_pickles.read_array, _pickles.read_csr, _pickles.read_lists)


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_pickle_is_refused_by_name(tmp_path, what, protocol):
    path = tmp_path / "ind.evil.x"
    path.write_bytes(pickle.dumps(HOSTILE[what], protocol))
    for reader in READERS:
        with pytest.raises(ValueError, match=r"ind\.evil\.x asks for \w+") as error:
            reader(path)
        if what in ("os.system", "in a dict"):
            assert "posix.system" in str(error.value)
        if what == "eval":
            assert re.search(r"(__builtin__|builtins)\.eval", str(error.value))


@pytest.mark.parametrize("protocol", range(6))
def test_nothing_is_called_even_beside_good_data(tmp_path, protocol):
    path, trace = tmp_path / "graph", tmp_path / "trace"
    good = planetoid()["graph"]
    # The end of a good pickle, then an evil one run after it; and an evil call whose result is thrown away.
    evil = pickle.dumps(Asks(canary, trace), protocol)
    path.write_bytes(good + evil)
    assert len(_pickles.read_lists(path)) == N
    path.write_bytes(evil.removesuffix(b".") + b"0" + good)
    with pytest.raises(ValueError, match="asks for "):
        _pickles.read_lists(path)
    assert not trace.exists()
    pickle.loads(evil)  # the trap works
    assert trace.exists()


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        (b"", "damaged"),
        (b".", "damaged"),
        (b"\x80\x02.", "damaged"),
        (b"N.", "holds no"),
        (b"}.", ""),
        (b"\x80\x02T\xff\xff\xff\x7fabc.", "expected 2147483647 bytes .* only 4 remain"),
        (b"Nr\xff\xff\xff\xff.", "holds no"),  # memo place 2**32 - 1 costs nothing
        (b"h\x07.", "damaged"),
        (b"t.", "damaged"),
        (b"\x85.", "more from its stack"),
        (b"N)R.", "a NoneType where a str"),
        (b"}(NNu.", "neither a number nor a string"),
        (b"](K\x01e}a.", "damaged|holds no"),
        (b"NK\x01a.", "a NoneType where a list"),
        (b"NNb.", "a NoneType where a _Record"),
        (b"c__builtin__\nlist\n)R(NNtb(NNtb.", "sets the state of an object twice"),
        (b"}](q\x01]h\x01e.", "damaged|uses a list"),
        (b"}]q\x01(K\x00h\x01u.", "uses a list or dict twice"),
        (b"S'\\q'\n.", "instruction STRING|damaged"),
        (b"cos\nsystem", "damaged"),
        (b"\x82\x01.", "asks for the pickle instruction EXT1"),
        (b"Pwho\n.", "asks for the pickle instruction PERSID"),
    ],
)
def test_strange_programs(tmp_path, program, complaint):
    path = tmp_path / "strange"
    path.write_bytes(program)
    for reader in READERS[:2]:
        with pytest.raises(ValueError, match=rf"strange .*({complaint})"):
            reader(path)


def test_keys_that_would_take_for_ever_to_hash(tmp_path):
    # Sixty tuples, each holding the one before twice: 2**60 visits to hash. A million nested: the C stack.
    twice = b"}(N" + b"".join(b"q%c0h%ch%c\x86" % (k, k, k) for k in range(60)) + b"Nu."
    for program in (twice, b"}(N" + b"\x85" * 10**6 + b"Nu."):
        (tmp_path / "deep").write_bytes(program)
        with pytest.raises(ValueError, match="deep "):
            _pickles.read_lists(tmp_path / "deep")


def test_a_file_too_large_to_be_one_of_them(tmp_path):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(2**24 + 1)
    with pytest.raises(ValueError, match="more than any Planetoid pickle"):
        _pickles.read_array(tmp_path / "large")


def array_with(old, new):
    return python2(np.arange(6, dtype=np.int32).reshape(2, 3)).replace(old, new)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (array_with(b"K\x02K\x03\x86", b"K\x02K\x04\x86"), "24 bytes, which do not fit its shape"),
        (array_with(b"K\x02K\x03\x86", b"J\xff\xff\xff\xffK\x03\x86"), "shape of an array is not made"),
        (array_with(b"U\x02i4", b"U\x02O8"), "not made of plain numbers"),
        (array_with(b"U\x01<", b"U\x01>"), "not made of plain numbers"),
        (array_with(b"cnumpy\nndarray\n", b"cnumpy\ndtype\n"), "holds no array"),
        (python2({1: [2], 3: [4]}), "holds no array"),
    ],
)
def test_arrays_that_are_not(tmp_path, data, complaint):
    (tmp_path / "y").write_bytes(data)
    with pytest.raises(ValueError, match=complaint):
        _pickles.read_array(tmp_path / "y")


def broken_csr(**changes):
    matrix = csr_matrix(BITS.astype(np.float32))
    matrix.__dict__.update(changes)
    return python2(matrix)


@pytest.mark.parametrize(
    "data",
    [
        broken_csr(indices=np.full(BITS.sum(), 99, dtype=np.int32)),
        broken_csr(indices=np.zeros(3, dtype=np.int32)),
        broken_csr(indptr=np.zeros(3, dtype=np.int32)),
        broken_csr(indptr=np.arange(N + 1, dtype=np.float64)),
        # Pointers whose differences overflow to something positive, and those of a matrix that claims to be empty.
        broken_csr(indptr=np.array([0, 2**31 - 1, *[-(2**31)] * (N - 2), BITS.sum()], dtype=np.int32)),
        broken_csr(indptr=np.array([0, 2**31 - 1, *[0] * (N - 1)], dtype=np.int32)),
        broken_csr(data=np.ones((BITS.sum(), 1), dtype=np.float32)),
        broken_csr(data=None),
        broken_csr(_shape=(N, -5)),
        broken_csr(_shape=(N,)),
        broken_csr(_shape=(N, None)),
        python2(np.eye(3)),
    ],
)
def test_sparse_matrices_that_are_not(tmp_path, data):
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(ValueError, match="x is not a Planetoid pickle"):
        _pickles.read_csr(tmp_path / "x")


@pytest.mark.parametrize("lists", [{"a": [1], 2: [3]}, {1: ["a"], 2: [3]}, {1: 2, 3: 4}, [1, 2]])
def test_lists_that_are_not(tmp_path, lists):
    (tmp_path / "graph").write_bytes(python2(lists))
    with pytest.raises(ValueError, match="graph is not a Planetoid pickle"):
        _pickles.read_lists(tmp_path / "graph")


# -------------------------------------------------------------------- files that are not what they should be


def changed(layout, role, change):
    contents = CONTENTS[layout]()
    contents[role] = change(contents[role])
    return contents


EVERY_FILE = [(layout, role) for layout, write in CONTENTS.items() for role in write()]


@pytest.mark.parametrize(("layout", "role"), EVERY_FILE)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda data: b"", id="empty"),
        pytest.param(lambda data: data[: len(data) // 2 + 1], id="truncated"),
        pytest.param(lambda data: b"\xff\xfe\x00caf\xe9" * 50, id="not UTF-8"),
        pytest.param(lambda data: b"<html>404</html>\n", id="a web page"),
        pytest.param(lambda data: npz(something=np.zeros(3)), id="another npz"),
        pytest.param(lambda data: python2({1: [2], 3: [4]}), id="another pickle"),
        pytest.param(lambda data: b"node_id\tfeature\tlabel\n", id="a header only"),
    ],
)
def test_a_file_of_another_kind(tmp_path, layout, role, change):
    with pytest.raises(ValueError, match=rf"{re.escape(str(tmp_path))}|fit together"):
        read(tmp_path, layout, changed(layout, role, change))


def sub(old, new):
    def change(data):
        assert old in data
        return data.replace(old, new, 1)

    return change


@pytest.mark.parametrize(
    ("layout", "role", "change", "complaint"),
    [
        ("geom-gcn", "edges", sub(b"2\t3\n", b"2\t12\n"), r"edges, line 4: \[2, 12\] is outside the nodes 0..11"),
        ("geom-gcn", "edges", sub(b"2\t3\n", b"2\t\n"), r"edges, line 4: expected two .*got b'2\\t'"),
        ("geom-gcn", "edges", sub(b"2\t3\n", b"\n"), "edges, line 4: expected two"),
        ("geom-gcn", "edges", sub(b"2\t3\n", b"-2\t3\n"), "edges, line 4"),
        ("geom-gcn", "edges", sub(b"2\t3\n", b"2\t99999999999999999999\n"), "edges, line 4"),
        ("geom-gcn", "edges", sub(b"2\t3\n", "2\t٣\n".encode()), "edges, line 4"),
        ("geom-gcn", "nodes", sub(b"\n11\t", b"\n10\t"), "node 11 is missing or there twice"),
        ("geom-gcn", "nodes", sub(b"\n11\t", b"\nx\t"), r"nodes, line \d+: expected a node"),
        ("geom-gcn", "nodes", sub(b"0,0,0,0,0", b"0,0,0,0,2"), r"nodes, line \d+: expected 5 features, 0 or 1"),
        ("geom-gcn", "nodes", sub(b"0,0,0,0,0", b"0,0,0,0"), r"nodes, line \d+: expected \d features"),
        ("geom-gcn", "nodes", sub(b"0,0,0,0,0", b"0,0;0,0,0"), r"nodes, line \d+: expected 5 features"),
        ("planetoid", "index", sub(b"9\n", b"7\n"), "index must hold distinct nodes among 8..11"),
        ("planetoid", "index", sub(b"9\n", b"11\n"), "index must hold distinct nodes"),
        ("planetoid", "index", sub(b"9\n", b"12\n"), "index must hold distinct nodes"),
        ("planetoid", "index", sub(b"9\n", b""), "do not fit together"),
        ("planetoid", "index", sub(b"9\n", b"nine\n"), "index, line 1: expected the number of a node"),
        ("planetoid", "tx", lambda _: python2(csr_matrix(np.eye(3, 4))), r"tx \(3, 4\)"),
        ("planetoid", "ty", lambda _: python2(np.eye(3, 4, dtype=np.int32)), r"ty \(3, 4\)"),
        ("planetoid", "ty", lambda _: python2(np.ones((3, 3), dtype=np.int32)), "ty must hold one row a node"),
        ("planetoid", "ty", lambda _: python2(np.arange(9)), "ty must hold one row a node"),
        ("planetoid", "graph", lambda _: python2({i: [99] for i in range(N)}), "outside the nodes 0..11"),
        (
            "planetoid",
            "split 1",
            lambda _: npz(train_mask=np.ones(N, bool)),
            "holds train_mask, but no array 'val_mask'",
        ),
    ],
)
def test_a_fault_is_named_with_file_and_line(tmp_path, layout, role, change, complaint):
    with pytest.raises(ValueError, match=complaint):
        read(tmp_path, layout, changed(layout, role, change))


@pytest.mark.parametrize(("row", "complaint"), [(b"1,7", "there are 7 features"), (b"1,,2", "expected numbers of fea")])
def test_a_column_that_is_not_there(tmp_path, row, complaint):
    contents = geom_gcn(columns=7)
    contents["nodes"] = re.sub(rb"\t[0-9,]+\t", b"\t" + row + b"\t", contents["nodes"], count=1)
    with pytest.raises(ValueError, match=rf"nodes, line 2: {complaint}"):
        read(tmp_path, "geom-gcn", contents, columns=7)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"edges": None}, "but no array 'edges'"),
        ({"edges": np.zeros((4, 3), dtype=int)}, r"edges must have shape \(m, 2\)"),
        ({"edges": np.array([[0, 12]])}, "outside the nodes"),
        ({"edges": np.array([[0.0, 1.0]])}, "'edges' has shape .* float64, which is another layout"),
        ({"node_labels": np.zeros(N - 1, dtype=int)}, "should be a mask of shape"),
        ({"node_labels": np.full(N, -7)}, "not a class number"),
        ({"node_features": np.full((N, 2), np.nan, dtype=np.float32)}, "not finite"),
        ({"node_features": np.zeros((N + 1, 2), dtype=np.float32)}, "features has 13 rows"),
        ({"val_masks": np.zeros((3, N), dtype=bool)}, r"'val_masks' should be a mask of shape \(2, 12\)"),
        ({"val_masks": np.ones((2, N), dtype=bool)}, "more than one of train, val and test"),
        ({"test_masks": np.full((2, N), 7, dtype=np.uint8)}, "'test_masks' should be a mask"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path, changes, complaint):
    with pytest.raises(ValueError, match=complaint):
        read(tmp_path, "heterophilous", heterophilous(**changes))


def test_booleans_that_are_neither(tmp_path):
    # A damaged file can hold the boolean 7, over which NumPy stumbles.
    odd = np.full((2, N), 7, dtype=np.uint8).view(bool)
    with pytest.raises(ValueError, match="'test_masks' should be a mask"):
        read(tmp_path, "heterophilous", heterophilous(test_masks=odd))


def test_an_npz_with_a_damaged_compression_method(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("edges.npy", b"\x09\x04\x05\x00" + b"\xff" * 200)  # impossible settings of LZMA
    data = bytearray(buffer.getvalue())
    for header, method in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        data[data.index(header) + method] = zipfile.ZIP_LZMA
    with pytest.raises(ValueError, match=r"arrays is not a readable npz archive \(Invalid or unsupported options"):
        read(tmp_path, "heterophilous", {"arrays": bytes(data)})


def mutated(data, rng):
    """Change, cut, double or remove some bytes."""
    data = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        at, size = int(rng.integers(len(data) + 1)), int(rng.integers(1, 9))
        change = rng.integers(5)
        if change == 0:
            data[at : at + size] = rng.bytes(size)
        elif change == 1:
            del data[at:]
        elif change == 2:
            data[at:at] = data[at : at + size]
        elif change == 3:
            del data[at : at + size]
        elif at < len(data):
            data[at] ^= 1 << int(rng.integers(8))
    return bytes(data)


@pytest.mark.parametrize("layout", CONTENTS)
@given(seed=st.integers(0, 2**32 - 1))
def test_mutated_files_give_a_graph_or_our_error(layout, seed, tmp_path_factory):
    rng = np.random.default_rng(seed)
    folder = tmp_path_factory.getbasetemp() / f"mutated {layout}"
    folder.mkdir(exist_ok=True)
    whole = CONTENTS[layout]()
    for _ in range(8):
        role = list(whole)[rng.integers(len(whole))]
        try:
            graph = read(folder, layout, {**whole, role: mutated(whole[role], rng)})
        except (ValueError, OSError) as error:
            assert "small" in str(error) or str(folder) in str(error)
        else:
            assert graph.n == len(graph.labels)
