"""Graph: the boundary (what is accepted, what is refused and how), conversions, and graphs made from graphs."""

import copy
import itertools
import pickle
import sys
from types import SimpleNamespace

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from pegfan.graph import Graph, Split, as_split

# 0 -2- 1 -1- 2, and 3 alone with a self loop
PATH = np.array([[0, 2, 0, 0], [2, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 5]], dtype=float)
ARCS = np.array([[0, 2, 0], [0, 0, 1], [0, 3, 0]], dtype=float)
FORMATS = ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"]


def dense(features):
    return None if features is None else features.toarray() if sp.issparse(features) else features


def assert_same(g, h, *, skip=()):
    """Equal in content, attribute by attribute, types included."""
    np.testing.assert_array_equal(g.adjacency.toarray(), h.adjacency.toarray())
    assert g.directed == h.directed
    for name in {"features", "feature_names", "labels", "positions", "node_names", "class_names", "metric"} - set(skip):
        a, b = getattr(g, name), getattr(h, name)
        assert type(a) is type(b), name
        assert getattr(a, "dtype", None) == getattr(b, "dtype", None), name
        np.testing.assert_array_equal(dense(a), dense(b), err_msg=name)
    if "splits" not in skip:
        assert len(g.splits) == len(h.splits)
        for one, other in zip(g.splits, h.splits, strict=True):
            for part, twin in zip(one, other, strict=True):
                np.testing.assert_array_equal(part, twin)


def assert_sound(g):
    """Check what every Graph promises, however it was made."""
    a = g.adjacency
    assert type(a) is sp.csr_array
    assert a.dtype == np.float64
    assert a.indices.dtype.kind == a.indptr.dtype.kind == "i"
    assert a.shape == (g.n, g.n)
    assert g.n >= 1
    assert a.has_canonical_format
    assert np.isfinite(a.data).all()
    assert (a.data > 0).all()
    assert g.directed or (a.toarray() == a.toarray().T).all()
    arrays = [a.data, a.indices, a.indptr, g.labels, g.positions, g.node_names, g.class_names]
    arrays += [part for split in g.splits for part in split]
    arrays += [g.features.data if sp.issparse(g.features) else g.features]
    assert not any(array.flags.writeable for array in arrays if isinstance(array, np.ndarray))
    for split in g.splits:
        assert all(part.dtype == np.int64 for part in split)
        assert len(set(np.concatenate(split).tolist())) == sum(part.size for part in split)
    if g.labels is not None:
        assert g.labels.dtype == np.int64
        assert -1 <= g.labels.min() <= g.labels.max() < max(g.n_classes, 1)


@st.composite
def graphs(draw, max_n=6):
    """Small graphs with every kind of attribute, present or not."""
    n = draw(st.integers(1, max_n))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    a = rng.choice([0, 0, 0, 1, 1, 2.5, 0.1], size=(n, n))
    directed = draw(st.booleans())
    if not directed:
        a = np.maximum(a, a.T)
    x = rng.choice([0, 1, -2.5], size=(n, 3)).astype(draw(st.sampled_from([np.float32, np.float64])))
    part = [rng.integers(0, 4, size=n) for _ in range(draw(st.integers(0, 3)))]
    features = draw(st.sampled_from([None, x, sp.csr_array(x)]))
    return Graph(
        a,
        directed=directed,
        features=features,
        feature_names=None if features is None else draw(st.sampled_from([None, ["x", "y=1", "y=2"]])),
        labels=draw(st.sampled_from([None, rng.integers(-1, 3, size=n)])),
        splits=[tuple(p == k for k in range(3)) for p in part],
        metric=draw(st.sampled_from(["accuracy", "roc_auc"])),
        node_names=draw(st.sampled_from([None, [f"node {i}" for i in range(n)]])),
        class_names=draw(st.sampled_from([None, ["c", "b", "a"]])),
        positions=draw(st.sampled_from([None, rng.random((n, 2))])),
    )


# ------------------------------------------------------------------ the constructor


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.uint16, bool])
def test_every_scipy_format_gives_the_same_graph(fmt, kind, dtype):
    expected = PATH.astype(dtype).astype(float)
    g = Graph(getattr(sp, f"{fmt}_{kind}")(PATH.astype(dtype)))
    assert_sound(g)
    np.testing.assert_array_equal(g.adjacency.toarray(), expected)
    assert_same(g, Graph(expected))
    assert_same(g, Graph(expected.tolist()))


def test_counts_and_repr():
    g = Graph(PATH, features=sp.eye_array(4, 7), labels=[0, 2, -1, 0], splits=[([0], [1], [2])])
    assert (g.n, g.n_edges, g.n_classes, g.directed) == (4, 3, 3, False)
    assert repr(g) == "Graph(n=4, edges=3, undirected, features=7 sparse, classes=3, splits=1)"
    h = Graph(ARCS, features=np.ones((3, 2)))
    assert (h.n, h.n_edges, h.n_classes, h.directed) == (3, 3, 0, True)
    assert repr(h) == "Graph(n=3, edges=3, directed, features=2)"
    assert Graph([[0.0]]).n_edges == 0
    assert Graph([[0.0]], class_names=["a", "b"]).n_classes == 2


def test_duplicates_are_summed_and_zeros_dropped():
    coo = sp.coo_array((np.array([100, 100, 0], dtype=np.int8), ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    g = Graph(coo)
    np.testing.assert_array_equal(g.adjacency.toarray(), [[0, 200], [0, 0]])
    assert g.adjacency.nnz == 1
    assert (coo.nnz, coo.data.dtype) == (3, np.int8)


def test_the_input_is_neither_changed_nor_shared():
    data, indices, indptr = np.array([1.0, 0.0, 2.0]), np.array([2, 1, 0]), np.array([0, 2, 3, 3])
    a = sp.csr_array((data, indices, indptr), shape=(3, 3))
    x, y = np.ones((3, 2)), np.array([0, 1, 1])
    xs = sp.csr_array(x)
    part, names, pos = np.array([2, 0]), np.array(["a", "b", "c"]), np.zeros((3, 2))
    before = [array.copy() for array in (data, indices, indptr)]
    g = Graph(a, features=x, labels=y, splits=[(part, [], [1])], node_names=names, positions=pos)
    h = Graph(a, features=xs)
    for array, old in zip((a.data, a.indices, a.indptr), before, strict=True):
        np.testing.assert_array_equal(array, old)
    for array in (a.data, x, y, xs.data, part, pos):
        array[:] = 7
    a.indices[:] = 0
    names[:] = "z"
    np.testing.assert_array_equal(g.adjacency.toarray(), [[0, 0, 1], [2, 0, 0], [0, 0, 0]])
    assert (g.features == 1).all()
    assert (h.features.toarray() == 1).all()
    assert g.labels.tolist() == [0, 1, 1]
    assert g.splits[0].train.tolist() == [0, 2]
    assert g.node_names.tolist() == g.ids.tolist() == ["a", "b", "c"]
    assert not g.positions.any()


def test_dense_input_is_copied():
    a = PATH.copy()
    g = Graph(a)
    a[:] = 0
    np.testing.assert_array_equal(g.adjacency.toarray(), PATH)


def test_attributes_and_arrays_are_read_only():
    g = Graph(PATH, labels=[0, 1, 1, 0])
    with pytest.raises(AttributeError, match=r"graph\.replace\(labels=\.\.\.\)"):
        g.labels = np.zeros(4)
    with pytest.raises(AttributeError, match="splits"):
        del g.splits
    with pytest.raises(ValueError, match="read-only"):
        g.labels[0] = 3
    with pytest.raises(ValueError, match="read-only"):
        g.adjacency.data[0] = 3


def test_copies_and_pickles():
    g = Graph(PATH, labels=[0, 1, 1, 0], node_names=list("abcd"), splits=[([0], [1], [2])])
    for twin in (copy.copy(g), copy.deepcopy(g), pickle.loads(pickle.dumps(g))):
        assert_same(g, twin)


def test_directed_is_inferred_or_chosen():
    assert not Graph(PATH).directed
    assert Graph(ARCS).directed
    assert Graph(PATH, directed=True).directed
    assert Graph(PATH, directed=True).n_edges == 5


@pytest.mark.parametrize(
    ("given_dtype", "kept"),
    [("f4", "f4"), ("f8", "f8"), ("f2", "f4"), ("i4", "f8"), ("u1", "f8"), ("?", "f8"), ("g", "f8")],
)
def test_feature_dtypes(given_dtype, kept):
    x = np.array([[1, 0], [0, 1], [1, 1], [0, 0]]).astype(given_dtype)
    assert Graph(PATH, features=x).features.dtype == kept
    np.testing.assert_array_equal(Graph(PATH, features=x).features, x.astype(kept))
    if given_dtype != "f2":  # SciPy has no sparse half precision
        sparse = Graph(PATH, features=sp.csc_array(x)).features
        assert (type(sparse), sparse.dtype, sparse.nnz) == (sp.csr_array, kept, 4)


@pytest.mark.parametrize(
    ("labels", "codes", "names"),
    [
        ([0, 2, -1, 1], [0, 2, -1, 1], None),
        (np.array([0, 2, 0, 1], dtype=np.uint8), [0, 2, 0, 1], None),
        ([True, False, True, True], [1, 0, 1, 1], None),
        ([0.0, np.nan, 2.0, -1.0], [0, -1, 2, -1], None),
        ([0, None, 2, np.float32("nan")], [0, -1, 2, -1], None),
        ([None] * 4, [-1] * 4, None),
        (["b", "a", None, "b"], [1, 0, -1, 1], ["a", "b"]),
        (["b", "a", float("nan"), "b"], [1, 0, -1, 1], ["a", "b"]),
        (np.array(["b", "a", "c", "b"]), [1, 0, 2, 1], ["a", "b", "c"]),
        (np.array([(2, 1), None, (1, 1), (2, 1), 0], dtype=object)[:4], [1, -1, 0, 1], [(1, 1), (2, 1)]),
    ],
)
def test_labels(labels, codes, names):
    g = Graph(PATH, labels=labels)
    assert g.labels.tolist() == codes
    assert (g.class_names if names is None else g.class_names.tolist()) == names


def test_string_labels_follow_given_class_names():
    g = Graph(PATH, labels=["b", "a", None, "b"], class_names=["b", "x", "a"])
    assert g.labels.tolist() == [0, 2, -1, 0]
    assert g.n_classes == 3


@pytest.mark.parametrize(
    "split",
    [
        ([2, 0], [], np.array([3], dtype=np.uint8)),
        Split(np.array([0, 2]), np.array([], dtype=np.int64), np.array([3])),
        ([True, False, True, False], np.zeros(4, dtype=bool), [False, False, False, True]),
        {"train": [0, 2], "val": [], "test": [3]},
        {"test": [3], "valid": [], "train": (2, 0)},
        [range(0, 3, 2), range(0), range(3, 4)],
    ],
)
def test_splits_in_every_form(split):
    (found,) = Graph(PATH, splits=[split]).splits
    assert isinstance(found, Split)
    assert [part.tolist() for part in found] == [[0, 2], [], [3]]


def test_names_keep_their_types():
    assert Graph(PATH, node_names=["a", "b", "c", "dd"]).node_names.dtype == "<U2"
    assert Graph(PATH, node_names=[5, 6, 7, 8]).node_names.dtype.kind == "i"
    mixed = [1, "1", (1, 2), None]
    assert Graph(PATH, node_names=mixed).node_names.tolist() == mixed


nan = float("nan")
invalid_csr = sp.csr_array(PATH)
invalid_csr.indices[0] = 99
invalid_coo = sp.coo_array(PATH)
invalid_coo.coords[0][0] = 99
BAD_INPUTS = [
    (ValueError, r"square.*\(2, 3\)", {"adjacency": np.ones((2, 3))}),
    (ValueError, r"at least one node.*\(0, 0\)", {"adjacency": np.ones((0, 0))}),
    (ValueError, r"adjacency must have the shape .any, any., got .4,.", {"adjacency": np.ones(4)}),
    (ValueError, "2 dimension", {"adjacency": sp.coo_array(np.ones(4))}),
    (ValueError, r"adjacency\[0, 1\] = nan is not finite", {"adjacency": [[0, nan], [0, 0]]}),
    (ValueError, r"adjacency\[1, 0\] = inf is not finite", {"adjacency": [[0, 1], [np.inf, 0]]}),
    (ValueError, r"adjacency\[1, 0\] = -2.0 is negative", {"adjacency": [[0, 1], [-2, 0]]}),
    (ValueError, "not finite", {"adjacency": np.array([[np.longdouble("1e4000")]])}),
    (ValueError, "adjacency is not a valid sparse matrix", {"adjacency": invalid_csr}),
    (ValueError, "adjacency is not a valid sparse matrix.*99", {"adjacency": invalid_coo}),
    (ValueError, "adjacency cannot be read", {"adjacency": [[0, 1], [0]]}),
    (TypeError, "adjacency.*complex", {"adjacency": np.ones((2, 2), dtype=complex)}),
    (TypeError, "adjacency.*complex", {"adjacency": sp.csr_array(np.ones((2, 2), dtype=complex))}),
    (TypeError, "adjacency.*<U1", {"adjacency": [["a"]]}),
    (TypeError, "adjacency.*set.*from_networkx", {"adjacency": {1, 2}}),
    (TypeError, "masked array.*filled", {"adjacency": np.ma.masked_array(PATH, PATH > 1)}),
    (ValueError, r"\[0, 1\] = 2.0 and \[1, 0\] = 0.0.*symmetrize", {"adjacency": ARCS, "directed": False}),
    (TypeError, "directed.*'no'", {"directed": "no"}),
    (ValueError, "metric.*'f1'", {"metric": "f1"}),
    (ValueError, r"features.*reshape\(-1, 1\)", {"features": np.ones(4)}),
    (ValueError, "features has 3 rows.*4 nodes", {"features": np.ones((3, 2))}),
    (ValueError, "features has 3 rows.*4 nodes", {"features": sp.csr_array(np.ones((3, 2)))}),
    (ValueError, "row 2, column 1", {"features": [[0, 0], [0, 0], [0, nan], [nan, 0]]}),
    (ValueError, r"features\[1, 0\] = nan", {"features": sp.csr_array([[0], [nan], [0], [0]])}),
    (TypeError, "features.*object", {"features": [["a", 1], [2, 3], [None, 0], [0, 0]]}),
    (TypeError, "features.*str", {"features": "x"}),
    (ValueError, "labels has 3 rows.*4 nodes", {"labels": [0, 1, 0]}),
    (ValueError, r"labels.*\(4, 1\)", {"labels": np.zeros((4, 1))}),
    (ValueError, r"labels\[2\] = -2", {"labels": [0, 1, -2, 0]}),
    (ValueError, r"labels\[1\] = 0.5", {"labels": [0, 0.5, 1, 0]}),
    (ValueError, r"labels\[3\].*np.unique", {"labels": [0, 1, 0, 10**12]}),
    (ValueError, r"labels\[3\] = inf", {"labels": [0, 1, 0, np.inf]}),
    (ValueError, r"labels.*0..k-1", {"labels": [0, 1, None, 10**400]}),
    (ValueError, "'z' is not among class_names", {"labels": list("abza"), "class_names": ["a", "b"]}),
    (ValueError, "labels go up to 2.*only 2 class_names", {"labels": [0, 1, 2, 0], "class_names": ["a", "b"]}),
    (TypeError, "labels.*one kind", {"labels": ["a", 1, "b", 2]}),
    (TypeError, "labels.*datetime", {"labels": np.zeros(4, dtype="M8[s]")}),
    (ValueError, "class_names.*'a'", {"class_names": ["a", "a"]}),
    (ValueError, "node_names.*'a' occurs more", {"node_names": ["a", "b", "a", "c"]}),
    (ValueError, "node_names has 2 rows", {"node_names": ["a", "b"]}),
    (ValueError, "node_names.*1 dimension", {"node_names": np.ones((4, 2))}),
    (TypeError, r"node_names.*hashable.*\[\]", {"node_names": [[], 1, 2, 3]}),
    (TypeError, "node_names.*str", {"node_names": "abcd"}),
    (ValueError, "positions must have 2 or 3 columns, got 4", {"positions": np.ones((4, 4))}),
    (ValueError, "positions has 3 rows", {"positions": np.ones((3, 2))}),
    (ValueError, "row 0, column 1", {"positions": np.full((4, 2), [0, np.inf])}),
    (ValueError, "feature_names are given, but no features", {"feature_names": ["a"]}),
    (TypeError, "sequence of strings, got str", {"features": np.ones((4, 1)), "feature_names": "a"}),
    (TypeError, "must be strings, got 1", {"features": np.ones((4, 1)), "feature_names": [1]}),
    (ValueError, "2 names, but features has 1 columns", {"features": np.ones((4, 1)), "feature_names": ["a", "b"]}),
    (ValueError, "distinct, but 'a' occurs more", {"features": np.ones((4, 2)), "feature_names": ["a", "a"]}),
    (ValueError, "wrap a single one in a list", {"splits": {"train": [0], "val": [1], "test": [2]}}),
    (ValueError, "wrap a single one in a list", {"splits": Split(*np.eye(3, 4, dtype=bool))}),
    (ValueError, r"splits\[0\].*triple", {"splits": [([0], [1])]}),
    (ValueError, r"splits\[1\].*keys.*dev", {"splits": [([0], [1], [2]), {"train": [], "dev": []}]}),
    (ValueError, r"splits\[0\].train.*must have the shape .any., got .1, 1.", {"splits": [([[0]], [1], [2])]}),
    (TypeError, r"splits\[0\].train must be an array, got int", {"splits": ([0, 1, 2], [3], [])}),
    (ValueError, r"splits\[0\].val holds 4; it must be from 0 to 3", {"splits": [([0], [4], [1])]}),
    (ValueError, r"splits\[0\].test holds -1", {"splits": [([0], [1], [-1])]}),
    (ValueError, r"splits\[0\].train holds node 2 more than once", {"splits": [([2, 2], [], [])]}),
    (ValueError, r"splits\[0\]: node 1 is in more than one", {"splits": [([0, 1], [1], [2])]}),
    (ValueError, r"splits\[0\].train.*mask of length 2", {"splits": [([True, False], [], [])]}),
    (TypeError, r"splits\[0\].test.*float64", {"splits": [([0], [1], [2.5])]}),
    (TypeError, "splits.*int", {"splits": 3}),
]


@pytest.mark.parametrize(("error", "message", "attributes"), BAD_INPUTS)
def test_bad_input_is_named(error, message, attributes):
    with pytest.raises(error, match=message):
        Graph(**{"adjacency": PATH, **attributes})


# ------------------------------------------------------------------ edge lists


def test_from_edges_by_hand():
    edges, weights = [[0, 1], [1, 0], [2, 2], [1, 2]], [3, 4, 5, 0]
    undirected = Graph.from_edges(edges, weights)
    np.testing.assert_array_equal(undirected.adjacency.toarray(), [[0, 4, 0], [4, 0, 0], [0, 0, 5]])
    assert (undirected.n_edges, undirected.adjacency.nnz) == (2, 3)  # a weight of 0 is no edge, a loop is one
    directed = Graph.from_edges(edges, weights, directed=True, n=4, duplicates="error", labels=[0, 1, 1, 0])
    expected = [[0, 3, 0, 0], [4, 0, 0, 0], [0, 0, 5, 0], [0, 0, 0, 0]]
    np.testing.assert_array_equal(directed.adjacency.toarray(), expected)
    assert directed.n_classes == 2


def test_from_edges_without_edges():
    for empty in ([], np.empty((0, 2)), np.empty((0, 2), dtype=int)):
        assert repr(Graph.from_edges(empty, n=3)) == "Graph(n=3, edges=0, undirected)"


@given(st.data())
def test_from_edges_against_a_plain_loop(data):
    n = data.draw(st.integers(1, 5))
    node = st.integers(0, n - 1)
    rows = data.draw(st.lists(st.tuples(node, node, st.integers(0, 3)), max_size=12))
    rule = data.draw(st.sampled_from(["max", "min", "sum"]))
    directed, weighted = data.draw(st.booleans()), data.draw(st.booleans())
    dtype = data.draw(st.sampled_from([np.int64, np.int32, np.uint8, np.uint64]))
    groups = {}
    for i, j, w in rows:
        if not weighted or w > 0:
            key = (i, j) if directed else (min(i, j), max(i, j))
            groups.setdefault(key, []).append(w if weighted else 1)
    expected = np.zeros((n, n))
    for (i, j), values in groups.items():
        expected[i, j] = {"max": max, "min": min, "sum": sum}[rule](values)
        if not directed:
            expected[j, i] = expected[i, j]
    edges = np.array([row[:2] for row in rows], dtype=dtype).reshape(-1, 2)
    weights = [row[2] for row in rows] if weighted else None
    g = Graph.from_edges(edges, weights, n=n, directed=directed, duplicates=rule)
    np.testing.assert_array_equal(g.adjacency.toarray(), expected)
    assert g.n_edges == np.count_nonzero(expected if directed else np.triu(expected))
    assert_sound(g)


@given(graphs())
def test_edges_and_from_edges_are_inverse(g):
    edges, weights = g.edges()
    assert edges.dtype == np.int64
    assert edges.shape == (g.n_edges, 2)
    assert g.directed or (edges[:, 0] <= edges[:, 1]).all()
    back = Graph.from_edges(edges, weights, n=g.n, directed=g.directed, duplicates="error")
    assert_same(back, Graph(g.adjacency, directed=g.directed))


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (ValueError, r"\(2, 3\); transpose", {"edges": [[0, 1, 2], [1, 2, 0]]}),
        (ValueError, r"shape \(m, 2\).*\(4,\)", {"edges": [0, 1, 1, 2]}),
        (TypeError, "float64", {"edges": [[0.0, 1.0]]}),
        (TypeError, "bool", {"edges": [[True, False]]}),
        (TypeError, "<U1", {"edges": [["a", "b"]]}),
        (TypeError, "generator", {"edges": (pair for pair in [(0, 1)])}),
        (ValueError, r"edges\[1\] = \[-1, 0\]", {"edges": [[0, 1], [-1, 0]]}),
        (ValueError, r"edges\[1\] = \[0, 2\] is outside the nodes 0..1", {"edges": [[0, 1], [0, 2]], "n": 2}),
        (ValueError, r"edges\[0\].*outside", {"edges": np.array([[2**63 + 1, 0]], dtype=np.uint64), "n": 2}),
        (ValueError, r"positions 0..n-1.*np.unique", {"edges": [[10**9, 2 * 10**9]]}),
        (ValueError, "give n", {"edges": []}),
        (ValueError, "n must be between 1", {"edges": [], "n": 0}),
        (ValueError, "n must be between 1", {"edges": [], "n": 10**12}),
        (TypeError, "n must be an integer, got 2.5", {"edges": [[0, 1]], "n": 2.5}),
        (ValueError, "weights has length 1, but there are 2 edges", {"edges": [[0, 1], [1, 2]], "weights": [1]}),
        (ValueError, r"weights\[0\] = -1.0", {"edges": [[0, 1]], "weights": [-1]}),
        (ValueError, r"weights\[0\] = nan", {"edges": [[0, 1]], "weights": [nan]}),
        (TypeError, "weights.*object", {"edges": [[0, 1]], "weights": [None]}),
        (ValueError, "weights must have the shape .any., got .1, 1.", {"edges": [[0, 1]], "weights": [[1.0]]}),
        (
            ValueError,
            r"edge \(0, 1\) is given more than once",
            {"edges": [[1, 0], [2, 1], [0, 1]], "duplicates": "error"},
        ),
        (ValueError, "duplicates.*'median'", {"edges": [[0, 1]], "duplicates": "median"}),
        (ValueError, "inf is not finite", {"edges": [[0, 1]] * 2, "weights": [1e308] * 2, "duplicates": "sum"}),
        (TypeError, "directed.*None", {"edges": [[0, 1]], "directed": None}),
    ],
)
def test_bad_edges_are_named(error, message, arguments):
    with pytest.raises(error, match=message):
        Graph.from_edges(**arguments)


# ------------------------------------------------------------------ other libraries


def test_from_networkx_by_hand():
    import networkx as nx

    source = nx.DiGraph()
    source.add_node("b", size=1.0, vec=[1, 2], kind="x", pos=(0, 1))
    source.add_node("a", size=2.0, vec=[3, 4], kind=None, pos=(1, 1))
    source.add_node(7, size=3.0, vec=[5, 6], pos=(2, 1))
    source.add_edge("a", "b", weight=2.5)
    source.add_edge(7, "a")
    g = Graph.from_networkx(source, features=["size", "vec"], labels="kind", metric="roc_auc")
    np.testing.assert_array_equal(g.adjacency.toarray(), [[0, 0, 0], [2.5, 0, 0], [0, 1, 0]])
    assert g.directed
    assert g.node_names.tolist() == ["b", "a", 7]
    np.testing.assert_array_equal(g.features, [[1, 1, 2], [2, 3, 4], [3, 5, 6]])
    assert (g.labels.tolist(), g.class_names.tolist()) == ([0, -1, -1], ["x"])
    np.testing.assert_array_equal(g.positions, [[0, 1], [1, 1], [2, 1]])
    assert g.metric == "roc_auc"
    plain = Graph.from_networkx(source, features="size", weight=None, positions=None)
    assert plain.adjacency.data.tolist() == [1, 1]
    assert plain.features.tolist() == [[1], [2], [3]]
    assert plain.positions is None


@pytest.mark.parametrize(("rule", "weight"), [("sum", 5), ("max", 3), ("min", 2)])
def test_parallel_edges_of_a_multigraph_are_merged(rule, weight):
    import networkx as nx

    source = nx.MultiGraph([(0, 1, {"weight": 2}), (1, 0, {"weight": 3}), (1, 1, {"weight": 4})])
    g = Graph.from_networkx(source, duplicates=rule)
    np.testing.assert_array_equal(g.adjacency.toarray(), [[0, weight], [weight, 4]])
    directed = Graph.from_networkx(nx.MultiDiGraph(source), duplicates=rule)
    assert directed.directed


@pytest.mark.parametrize(
    ("error", "message", "options"),
    [
        (ValueError, "node 1 has no attribute 'size'", {"features": "size"}),
        (ValueError, "no attribute 'colour'", {"labels": "colour"}),
        (ValueError, "node 1 has no attribute 'where'", {"positions": "where"}),
        (TypeError, "'name'.*<U1", {"features": "name"}),
        (ValueError, "'ragged' cannot be read", {"features": "ragged"}),
        (TypeError, "weights.*object", {"weight": "odd"}),
    ],
)
def test_bad_networkx_attributes_are_named(error, message, options):
    import networkx as nx

    source = nx.Graph([(0, 1, {"odd": None})])
    source.nodes[0].update(size=1, where=(0, 0), name="a", ragged=[1])
    source.nodes[1].update(name="b", ragged=[1, 2])
    with pytest.raises(error, match=message):
        Graph.from_networkx(source, **options)


def test_what_is_not_a_graph_of_the_library_is_refused():
    import networkx as nx

    with pytest.raises(TypeError, match="NetworkX graph, got list"):
        Graph.from_networkx([])
    with pytest.raises(ValueError, match="no nodes"):
        Graph.from_networkx(nx.Graph())
    with pytest.raises(TypeError, match="PyGSP graph, got Graph"):
        Graph.from_pygsp(nx.Graph())
    with pytest.raises(TypeError, match="edge_index, got Graph"):
        Graph.from_pyg(nx.Graph())
    with pytest.raises(TypeError, match=r"got Graph; see also Graph\.from_edges, from_networkx"):
        Graph(nx.Graph([(0, 1)]))


@given(graphs())
def test_networkx_round_trip(g):
    there = g.to_networkx()
    assert there.is_directed() == g.directed
    assert (there.number_of_nodes(), there.number_of_edges()) == (g.n, g.n_edges)
    options = {} if g.labels is None else {"labels": "label"}
    if isinstance(g.features, np.ndarray):
        options["features"] = "features"
    back = Graph.from_networkx(there, **options, class_names=g.class_names, metric=g.metric)
    lost = {"splits"} | ({"features", "feature_names"} if sp.issparse(g.features) else set())
    if g.feature_names is None and "features" in options:
        assert back.feature_names[0].startswith("features")  # after the attribute
        lost.add("feature_names")
    if g.node_names is None:
        assert back.node_names.tolist() == list(range(g.n))
        lost.add("node_names")
    assert_same(g, back, skip=lost)


# ------------------------------------------------------------------ names of features


NAMED = {"features": np.arange(12.0).reshape(4, 3), "feature_names": ["age", "city=Oslo", "city=Rome"]}


@pytest.mark.parametrize("array", [np.asarray, sp.csr_array])
def test_names_stay_with_their_columns(array):
    g = Graph(PATH, features=array(NAMED["features"]), feature_names=np.array(NAMED["feature_names"]))
    assert g.feature_names == ("age", "city=Oslo", "city=Rome")
    assert {type(name) for name in g.feature_names} == {str}
    for h in (g.permute([3, 1, 0, 2]), g.subgraph([2, 1]), g.symmetrize(), g.replace(labels=[0, 1, 0, 1])):
        assert h.feature_names == g.feature_names
    assert g.replace(features=g.features * 2).feature_names == g.feature_names
    assert g.replace(features=array(np.ones((4, 2)))).feature_names is None
    assert g.replace(features=None).feature_names is None
    assert g.replace(features=array(np.ones((4, 2))), feature_names=["a", "b"]).feature_names == ("a", "b")
    assert g.replace(feature_names=None).feature_names is None


def test_data_frames_bring_the_names_of_their_columns():
    import pandas as pd

    frame = pd.DataFrame({"a": [1, 2, 3, 4], 7: [1.5, 2, 3, 4]})
    assert Graph(PATH, features=frame).feature_names == ("a", "7")
    assert Graph(PATH, features=frame, feature_names=["x", "y"]).feature_names == ("x", "y")
    assert Graph(PATH, features=pd.DataFrame(np.ones((4, 2)))).feature_names is None
    assert Graph(PATH, **NAMED).replace(features=frame).feature_names == ("a", "7")
    assert Graph.from_edges([[0, 1]], n=4, features=frame).feature_names == ("a", "7")


@pytest.mark.parametrize("array", [np.asarray, sp.csr_array])
def test_align_brings_columns_into_order(array):
    g = Graph(PATH, features=array(NAMED["features"].astype(np.float32)), feature_names=NAMED["feature_names"])
    assert g.align_features(g.feature_names) is g
    h = g.align_features(["city=Rome", "city=Paris", "age"])
    assert h.feature_names == ("city=Rome", "city=Paris", "age")
    assert (h.features.dtype, sp.issparse(h.features)) == (np.float32, sp.issparse(g.features))
    np.testing.assert_array_equal(dense(h.features), NAMED["features"][:, [2, 0, 0]] * [1, 0, 1])
    h = g.align_features(["height", "age"], missing="zero")
    np.testing.assert_array_equal(dense(h.features), NAMED["features"][:, [0, 0]] * [0, 1])


@pytest.mark.parametrize(
    ("graph", "names", "options", "message"),
    [
        (
            Graph(PATH, **NAMED),
            ["age", "x", "y=1"],
            {},
            "2 of 3 features are missing: 'x', 'y=1'; add .*missing='zero'",
        ),
        (Graph(PATH, **NAMED), [f"f{i}" for i in range(12)], {}, "12 of 12 .* 'f9' and 2 more; add"),
        (Graph(PATH, features=np.ones((4, 1))), ["age"], {}, "features without names, and 1 named"),
        (Graph(PATH), ["age"], {}, "the graph has no features, and"),
        (Graph(PATH, **NAMED), ["age"], {"missing": "mean"}, "'error' or 'zero', got 'mean'"),
    ],
)
def test_align_says_what_is_missing(graph, names, options, message):
    with pytest.raises(ValueError, match=message):
        graph.align_features(names, **options)


def test_names_go_through_networkx_and_pygsp():
    import networkx as nx
    import pygsp

    g = Graph(PATH, **NAMED)
    assert_same(g, Graph.from_networkx(g.to_networkx(), features="features"), skip={"node_names"})
    there = nx.path_graph(2)
    nx.set_node_attributes(there, {0: {"age": 3, "where": [1, 2]}, 1: {"age": 4, "where": [3, 4]}})
    assert Graph.from_networkx(there, features=["age", "where"]).feature_names == ("age", "where[0]", "where[1]")
    assert Graph.from_networkx(there, features="age", feature_names=["years"]).feature_names == ("years",)
    assert_same(g, Graph.from_pygsp(g.to_pygsp()))
    assert Graph.from_pygsp(pygsp.graphs.Ring(5)).features is None


def test_names_go_through_pyg(pyg):
    g = Graph(PATH, **NAMED)
    data = g.to_pyg()
    assert_same(g, Graph.from_pyg(data))
    assert Graph.from_pyg(data, features=None).feature_names is None
    assert Graph.from_pyg(data, features=np.ones((4, 3))).feature_names is None


# ------------------------------------------------------------------ PyG


def test_from_pyg_by_hand(pyg):
    import torch

    data = pyg.Data(
        edge_index=torch.tensor([[0, 1, 0, 2], [1, 0, 1, 2]]),
        edge_attr=torch.tensor([[1.0], [3.0], [3.0], [0.5]]),
        x=torch.eye(4, dtype=torch.float32).to_sparse(),
        y=torch.tensor([[0.0], [nan], [2.0], [1.0]], requires_grad=True),
        pos=torch.zeros(4, 3),
        train_mask=torch.tensor([[1, 0], [0, 1], [0, 0], [0, 0]], dtype=torch.bool),
        val_mask=torch.tensor([[0, 1], [1, 0], [0, 0], [0, 0]], dtype=torch.bool),
        test_mask=torch.tensor([0, 0, 1, 1], dtype=torch.bool),
    )
    g = Graph.from_pyg(data)
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 3
    expected[2, 2] = 0.5
    np.testing.assert_array_equal(g.adjacency.toarray(), expected)
    assert not g.directed
    assert Graph.from_pyg(data, duplicates="sum").directed
    assert Graph.from_pyg(data, directed=True).directed
    assert (type(g.features), g.features.dtype) == (sp.csr_array, np.float32)
    np.testing.assert_array_equal(g.features.toarray(), np.eye(4))
    assert g.labels.tolist() == [0, -1, 2, 1]
    assert g.positions.shape == (4, 3)
    found = [[part.tolist() for part in split] for split in g.splits]
    assert found == [[[0], [1], [2, 3]], [[1], [0], [2, 3]]]
    assert Graph.from_pyg(data, labels=None, splits=()).labels is None


def test_from_pyg_without_a_count_of_nodes(pyg):
    import torch

    data = pyg.Data(edge_index=torch.tensor([[0, 1], [1, 2]]), edge_attr=torch.ones(2, 5))
    assert repr(Graph.from_pyg(data)) == "Graph(n=3, edges=2, directed)"
    data.num_nodes = 5
    data.train_mask = torch.tensor([True] + [False] * 4)
    g = Graph.from_pyg(data)
    assert g.n == 5
    assert [part.tolist() for part in g.splits[0]] == [[0], [], []]
    with pytest.raises(ValueError, match=r"\[0, 1\].*symmetrize"):
        Graph.from_pyg(data, directed=False)


def test_from_pyg_reads_any_object_with_the_same_names():
    ogb = SimpleNamespace(edge_index=np.array([[0, 1], [1, 0]]), num_nodes=3, y=np.array([[0], [1], [1]]))
    assert repr(Graph.from_pyg(ogb)) == "Graph(n=3, edges=1, undirected, classes=2)"
    with pytest.raises(ValueError, match=r"edge_index must have shape \(2, m\), got \(4, 2\)"):
        Graph.from_pyg(SimpleNamespace(edge_index=np.ones((4, 2), dtype=int)))
    masks = {"train_mask": np.ones((3, 2), dtype=bool), "val_mask": np.ones((3, 4), dtype=bool)}
    with pytest.raises(ValueError, match=r"different numbers of splits: \[2, 4\]"):
        Graph.from_pyg(SimpleNamespace(edge_index=np.zeros((2, 0), dtype=int), num_nodes=3, **masks))
    with pytest.raises(ValueError, match=r"labels must have 1 dimension, got shape \(3, 2\)"):
        Graph.from_pyg(SimpleNamespace(edge_index=ogb.edge_index, num_nodes=3, y=np.ones((3, 2))))


@given(g=graphs())
def test_pyg_round_trip(pyg, g):
    data = g.to_pyg()
    assert isinstance(data, pyg.Data)
    assert data.num_nodes == g.n
    assert data.validate(raise_on_error=True)
    back = Graph.from_pyg(
        data, directed=g.directed, metric=g.metric, node_names=g.node_names, class_names=g.class_names
    )
    assert_same(g, back)


@given(graphs())
def test_pygsp_round_trip(g):
    there = g.to_pygsp()
    assert (there.n_vertices, there.is_directed()) == (g.n, (g.adjacency != g.adjacency.T).nnz > 0)
    back = Graph.from_pygsp(there, directed=g.directed)
    signals = {} if g.feature_names is None or sp.issparse(g.features) else {"features": g.features}
    names = g.feature_names if signals else None
    plain = Graph(g.adjacency, directed=g.directed, positions=g.positions, feature_names=names, **signals)
    assert_same(back, plain)
    there.W.data[:] = 9
    assert not (g.adjacency.data == 9).any()


def test_from_pygsp_by_hand():
    import pygsp

    grid = Graph.from_pygsp(pygsp.graphs.Grid2d(2, 3))
    assert (grid.n, grid.n_edges, grid.positions.shape) == (6, 7, (6, 2))
    assert Graph.from_pygsp(pygsp.graphs.Path(4, directed=True)).directed
    assert Graph.from_pygsp(pygsp.graphs.Graph(PATH)).positions is None


def test_signals_of_pygsp_become_features():
    import pygsp

    there = pygsp.graphs.Path(4)
    there.set_signal(np.float32([1, 2, 3, 4]), "a")
    assert Graph.from_pygsp(there).features.dtype == np.float32
    there.set_signal(np.arange(8).reshape(4, 2), "b")
    g = Graph.from_pygsp(there)
    assert g.feature_names == ("a", "b[0]", "b[1]")
    np.testing.assert_array_equal(g.features, [[1, 0, 1], [2, 2, 3], [3, 4, 5], [4, 6, 7]])
    assert list(g.to_pygsp().signals) == ["a", "b[0]", "b[1]"]
    there.set_signal([1.0, nan, 2.0, 3.0], "c")
    with pytest.raises(ValueError, match=r"signal 'c' has a value that is not finite.*features=None"):
        Graph.from_pygsp(there)
    assert Graph.from_pygsp(there, features=None).features is None


def test_anything_that_stands_for_a_graph(pyg):
    import networkx as nx
    import pygsp
    import torch

    g = Graph.from_edges([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])
    assert Graph.of(g) is g
    there = g.to_pygsp()
    there.set_signal([nan, 1, 2, 3], "gaps")  # of no concern here
    data = pyg.Data(edge_index=torch.tensor(np.array(g.adjacency.nonzero())), x=torch.full((4, 1), nan), num_nodes=4)
    pairs = g.edges()[0]
    for one in (there, g.to_networkx(), data, g.adjacency, g.adjacency.toarray(), pairs, pairs.tolist()):
        found = Graph.of(one)
        assert (found.adjacency != g.adjacency).nnz == 0
        assert (found.directed, found.features, found.labels) == (False, None, None)
    whole = g.replace(features=np.eye(4), labels=[0, 1, -1, 1])
    assert_same(Graph.of((g.adjacency, np.eye(4), [0, 1, -1, 1]), "labels"), whole)
    assert_same(Graph.of(whole.to_pyg(), "labels"), whole)
    numeric = g.replace(features=np.eye(4), targets=[0.0, 1.0, nan, 1.0])
    assert_same(Graph.of(whole.to_pyg(), "targets"), numeric)  # numbers all of which happen to be whole
    assert_same(Graph.of(numeric.to_networkx(), "targets"), numeric, skip=["node_names", "feature_names"])
    assert_same(Graph.of(whole.to_networkx(), "labels"), whole, skip=["node_names", "class_names", "feature_names"])
    W = np.diag(np.float32([1.5, 0, 0, 0]))
    W[1, 2] = 0.5
    directed = Graph.of(pygsp.graphs.Graph(W))
    assert directed.directed
    np.testing.assert_array_equal(directed.adjacency.toarray(), W)
    assert Graph.of(pygsp.graphs.Grid2d(2, 3)).positions.shape == (6, 2)
    assert Graph.of(nx.DiGraph([(0, 1)])).directed
    for one, error, words in (
        ("cora", TypeError, "an adjacency matrix or a list of edges; got str"),
        (None, TypeError, "got None"),
        (np.ones((3, 4)), ValueError, "square"),
        ([[0.5, 1], [1, 2], [2, 3]], TypeError, "integer node ids"),
    ):
        with pytest.raises(error, match=words):
            Graph.of(one)


@pytest.mark.parametrize(
    ("missing", "extra", "method"),
    [
        ("networkx", "graphs", "to_networkx"),
        ("torch", "torch", "to_pyg"),
        ("torch_geometric", "torch", "to_pyg"),
        ("pygsp", "graphs", "to_pygsp"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(monkeypatch, missing, extra, method):
    for name in [name for name in sys.modules if name.split(".")[0] == missing] + [missing]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf"needs {missing}: pip install 'pegfan\[{extra}\]'$"):
        getattr(Graph(PATH), method)()


# ------------------------------------------------------------------ graphs from graphs


def test_a_split_by_its_place_or_of_ones_own():
    g = Graph(PATH, splits=[([0], [1], [2]), ([3], [], [])])
    assert g.split(1) is g.splits[1]
    assert g.split(np.int64(0)) is g.splits[0]
    assert [part.tolist() for part in g.split(([3, 1], [], [True, False, False, False]))] == [[1, 3], [], [0]]
    for graph, which, error, message in (
        (g, 2, ValueError, "no split 2: the graph has splits 0 to 1; name one of them"),
        (g, -1, ValueError, "no split -1"),
        (Graph(PATH), 0, ValueError, "the graph has no splits; pass a Split"),
        (g, True, TypeError, "split must be a Split .*got bool"),
        (g, "train", TypeError, "split must be a Split .*got str"),
        (g, ([4], [], []), ValueError, r"split\.train holds 4; it must be from 0 to 3"),
    ):
        with pytest.raises(error, match=message):
            graph.split(which)


def test_a_split_for_training_has_labels():
    labels = np.array([0, 1, -1, 1])
    assert as_split(([0], [1], [2, 3]), 4, labels=labels).test.tolist() == [3]
    for split, message in (
        (([], [1], []), "split 7 has no train nodes; training needs them"),
        (([0], [], [1]), "split 7 has no val nodes"),
        (([0], [2, 1], []), "split 7: node 2 is in val but has no label; leave it out"),
    ):
        with pytest.raises(ValueError, match=message):
            as_split(split, 4, "split 7", labels=labels)


def test_replace_checks_again():
    g = Graph(PATH, labels=[0, 1, 1, 0], metric="roc_auc")
    h = g.replace(labels=None, features=np.ones((4, 1)))
    assert (h.labels, h.metric, g.features) == (None, "roc_auc", None)
    with pytest.raises(TypeError, match=r"no attribute 'colour'.*labels"):
        g.replace(colour=1)
    with pytest.raises(ValueError, match="labels has 1 rows"):
        g.replace(labels=[0])
    with pytest.raises(ValueError, match="symmetric"):
        g.replace(adjacency=np.triu(PATH))


@given(graphs(), st.data())
def test_permute_moves_everything(g, data):
    perm = np.array(data.draw(st.permutations(range(g.n))))
    h = g.permute(perm)
    assert_sound(h)
    for i, j in itertools.product(range(g.n), repeat=2):
        assert h.adjacency[i, j] == g.adjacency[perm[i], perm[j]]
    for name in ("features", "labels", "node_names", "positions"):
        old, new = dense(getattr(g, name)), dense(getattr(h, name))
        np.testing.assert_array_equal(new, None if old is None else old[perm])
    for old, new in zip(g.splits, h.splits, strict=True):
        for part, moved in zip(old, new, strict=True):
            assert sorted(perm[moved]) == part.tolist()
            assert sorted(moved) == moved.tolist()


@given(graphs(), st.data())
def test_permutations_compose_and_invert(g, data):
    p = np.array(data.draw(st.permutations(range(g.n))))
    q = np.array(data.draw(st.permutations(range(g.n))))
    assert_same(g.permute(p).permute(q), g.permute(p[q]))
    assert_same(g.permute(p).permute(np.argsort(p)), g)


@pytest.mark.parametrize(
    ("error", "message", "perm"),
    [
        (ValueError, r"perm must have shape \(4,\), got \(3,\)", [0, 1, 2]),
        (ValueError, "perm holds node 1 more than once", [0, 1, 1, 2]),
        (ValueError, "perm holds 4", [0, 1, 4, 2]),
        (TypeError, "perm.*float64", [0.0, 1.0, 2.0, 3.0]),
        (TypeError, "perm.*mask", [True] * 4),
        (TypeError, "perm.*NoneType", None),
    ],
)
def test_bad_permutations_are_named(error, message, perm):
    with pytest.raises(error, match=message):
        Graph(PATH).permute(perm)


@given(graphs())
def test_symmetrize_against_dense(g):
    a = g.adjacency.toarray()
    largest, total = g.symmetrize(), g.symmetrize("sum")
    np.testing.assert_array_equal(largest.adjacency.toarray(), np.maximum(a, a.T))
    np.testing.assert_array_equal(total.adjacency.toarray(), a + a.T - np.diag(a.diagonal()))
    assert not largest.directed
    assert not total.directed
    assert_sound(total)
    assert_same(largest.symmetrize(), largest)
    if not g.directed:
        assert_same(largest, g)


def test_symmetrize_by_hand():
    g = Graph(np.array([[4, 2], [3, 0]]), labels=[0, 1])
    np.testing.assert_array_equal(g.symmetrize().adjacency.toarray(), [[4, 3], [3, 0]])
    np.testing.assert_array_equal(g.symmetrize("sum").adjacency.toarray(), [[4, 5], [5, 0]])
    assert g.symmetrize().labels.tolist() == [0, 1]
    with pytest.raises(ValueError, match="'mean'"):
        g.symmetrize("mean")


def test_subgraph_by_hand():
    g = Graph(
        PATH,
        labels=["a", "b", "c", None],
        features=np.arange(8).reshape(4, 2),
        node_names=list("wxyz"),
        splits=[([0, 1], [2], [3]), ([3], [0], [])],
        positions=np.arange(8).reshape(4, 2),
    )
    h = g.subgraph([2, 1])
    np.testing.assert_array_equal(h.adjacency.toarray(), [[0, 1], [1, 0]])
    assert (h.labels.tolist(), h.class_names.tolist()) == ([2, 1], ["a", "b", "c"])
    assert h.features.tolist() == h.positions.tolist() == [[4, 5], [2, 3]]
    assert h.node_names.tolist() == ["y", "x"]
    assert [[p.tolist() for p in s] for s in h.splits] == [[[1], [0], []], [[], [], []]]
    assert_same(g.subgraph([False, True, True, False]), g.subgraph([1, 2]))
    assert Graph(ARCS).subgraph([0]).directed
    for nodes, message in [([], "empty"), ([1, 1], "node 1 more than once"), ([4], "nodes holds 4")]:
        with pytest.raises(ValueError, match=message):
            g.subgraph(nodes)


@given(graphs(), st.data())
def test_a_subgraph_on_all_nodes_is_a_permutation(g, data):
    perm = data.draw(st.permutations(range(g.n)))
    assert_same(g.subgraph(perm), g.permute(perm))


def test_largest_component():
    g = Graph.from_edges([[5, 0], [1, 4], [4, 3]], n=7, directed=True, node_names=range(7))
    assert g.largest_component().node_names.tolist() == [1, 3, 4]
    tie = Graph.from_edges([[3, 1], [2, 0]], node_names=range(4))
    assert tie.largest_component().node_names.tolist() == [0, 2]
    assert Graph.from_edges([], n=3, node_names=range(3)).largest_component().node_names.tolist() == [0]


@given(graphs())
def test_largest_component_against_networkx(g):
    import networkx as nx

    sizes = [len(c) for c in nx.connected_components(g.to_networkx().to_undirected())]
    largest = g.largest_component()
    assert largest.n == max(sizes)
    assert nx.is_connected(largest.to_networkx().to_undirected())


def test_describe_is_the_measures_description():
    from pegfan.measures import describe

    g = Graph(PATH, labels=[0, 1, 1, 0])
    assert g.describe() == describe(g)
    assert g.describe().self_loops == 1


# ------------------------------------------------------------------ anything at all

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 6), st.integers(), st.floats(), st.text(max_size=3), st.binary(max_size=2)
)
arrays = st.one_of(
    hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)),
    hnp.arrays(np.int64, hnp.array_shapes(min_dims=1, max_dims=2, max_side=4), elements=st.integers(-1, 4)),
    hnp.arrays(np.float64, (3, 3), elements=st.sampled_from([0, 1, 0.5])),
)


@st.composite
def sparse(draw):
    dense = draw(
        hnp.arrays(st.sampled_from(["?", "i1", "f4", "f8", "c8"]), hnp.array_shapes(min_dims=2, max_dims=2, max_side=4))
    )
    return sp.coo_array(dense).asformat(draw(st.sampled_from(FORMATS)))


anything = st.one_of(
    arrays,
    sparse(),
    st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.tuples(inner, inner, inner),
            st.dictionaries(st.sampled_from(["train", "val", "test", "x"]), inner, max_size=3),
        ),
        max_leaves=12,
    ),
    st.sampled_from([object(), Graph, np.float64(2), {1, 2}, len, range(3), Graph(PATH)]),
)


def sound_or_refused(make):
    """Either a sound graph or one of the two errors that are part of the interface; a warning is an error."""
    try:
        g = make()
    except (ValueError, TypeError):
        return
    assert_sound(g)


@given(anything, st.dictionaries(st.sampled_from(["directed", "metric"]), anything))
def test_fuzz_adjacency(adjacency, options):
    sound_or_refused(lambda: Graph(adjacency, **options))
    sound_or_refused(lambda: Graph(adjacency))


@given(
    st.sampled_from(["features", "feature_names", "labels", "splits", "node_names", "class_names", "positions"]),
    st.one_of(anything, st.lists(scalars, min_size=3, max_size=3)),
)
def test_fuzz_attributes(name, value):
    sound_or_refused(lambda: Graph(ARCS, **{name: value}))


@given(
    st.one_of(anything, st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=4)),
    st.one_of(st.none(), anything),
    st.one_of(st.none(), st.integers(-1, 9), st.floats()),
    st.sampled_from(["max", "min", "sum", "error"]),
    st.booleans(),
)
def test_fuzz_edges(edges, weights, n, duplicates, directed):
    sound_or_refused(lambda: Graph.from_edges(edges, weights, n=n, duplicates=duplicates, directed=directed))


@given(st.one_of(anything, st.lists(st.integers(0, 3), min_size=4, max_size=4)))
def test_fuzz_permute_and_subgraph(perm):
    sound_or_refused(lambda: Graph(PATH).permute(perm))
    sound_or_refused(lambda: Graph(PATH).subgraph(perm))
