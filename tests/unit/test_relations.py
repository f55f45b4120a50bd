"""Relations equal their plain twins, follow the numbering of nodes, and files from outside are checked."""

import gzip
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pegfan as pf
from pegfan.relations import (
    GeomRelations,
    geom_divisions,
    geom_relations,
    read_geom_relations,
    struc2vec,
    struc2vec_relations,
)
from pegfan.relations._kernels import add_distances
from pegfan.relations.geometry import NAMES

HEADER = "node1,node2\tspace\trelation_type\n"


@st.composite
def graphs(draw, most=24):
    """Sparse and dense, directed or not, with loops, isolated nodes, several components, or one node."""
    n = draw(st.integers(1, most), label="n")
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="seed"))
    A = (rng.random((n, n)) < draw(st.sampled_from([0.0, 0.05, 0.1, 0.3, 0.8]))).astype(float)
    return pf.Graph(A if draw(st.booleans(), label="directed") else np.maximum(A, A.T))


def well_formed(relation, n):
    assert relation.shape == (n, n)
    assert (relation.data.dtype, relation.indices.dtype) == (np.float64, np.int32)
    assert relation.has_canonical_format
    assert (relation.data > 0).all()


# -------------------------------------------------------------------- struc2vec


def plain_rings(neighbours, root):
    """The rings 0, 1, .. of a node that are not empty."""
    seen, rings = {root}, [[root]]
    while ring := sorted({j for i in rings[-1] for j in neighbours[i]} - seen):
        rings.append(ring)
        seen.update(ring)
    return rings


def compact(degrees):
    return sorted((d, degrees.count(d)) for d in set(degrees))


def plain_warping(a, b):
    """The textbook's recursion."""

    def cost(i, j):
        (x, p), (y, q) = a[i], b[j]
        return ((max(x, y) + 0.5) / (min(x, y) + 0.5) - 1) * max(p, q)

    @cache
    def best(i, j):
        if i < 0 or j < 0:
            return 0.0 if i == j else math.inf
        return cost(i, j) + min(best(i - 1, j), best(i, j - 1), best(i - 1, j - 1))

    return best(len(a) - 1, len(b) - 1)


def plain_relations(graph, layers, ties):
    A = graph.adjacency.toarray()
    n = len(A)
    neighbours = {i: {j for j in range(n) if j != i and (A[i, j] or A[j, i])} for i in range(n)}
    degree = {i: len(neighbours[i]) for i in range(n)}
    rings = {i: plain_rings(neighbours, i) for i in range(n)}
    order = pf.trees.canonical_order(graph).order.tolist()
    place = {node: k for k, node in enumerate(order)}

    def rank(i, j):
        gap = degree[j] - degree[i]
        inside = place[j]
        if ties == "around":
            inside = (place[j] - place[i]) % n if gap == 0 else place[j] if gap > 0 else -place[j]
        return abs(gap), gap < 0, inside

    found = [np.zeros((n, n)) for _ in range(layers + 1)]
    for i in range(n):
        others = sorted((j for j in range(n) if j != i), key=lambda j: rank(i, j))
        others = others[: math.floor(2 * math.log2(n)) + 1]
        total = dict.fromkeys(others, 0.0)
        for k in range(layers + 1):
            total = {j: f for j, f in total.items() if len(rings[i]) > k and len(rings[j]) > k}
            for j in total:
                total[j] += plain_warping(*(compact([degree[v] for v in rings[node][k]]) for node in (i, j)))
            for j in total:
                found[k][i, j] = math.exp(-total[j]) / sum(math.exp(-f) for f in total.values())
    while len(found) > 1 and not found[-1].any():
        found.pop()
    return found


@given(graphs(), st.integers(0, 5), st.sampled_from(["first", "around"]))
def test_struc2vec_is_its_plain_twin(graph, layers, ties):
    relations, wanted = struc2vec_relations(graph, layers=layers, ties=ties), plain_relations(graph, layers, ties)
    assert len(relations) == len(wanted)
    for relation, plain in zip(relations, wanted, strict=True):
        well_formed(relation, graph.n)
        np.testing.assert_allclose(relation.toarray(), plain, rtol=1e-12, atol=0)
        sums = relation.sum(axis=1)
        np.testing.assert_allclose(sums[np.diff(relation.indptr) > 0], 1)


@given(graphs(), st.integers(1, 4), st.integers(1, 40))
def test_struc2vec_in_blocks_is_the_same(graph, layers, block):
    whole = struc2vec_relations(graph, layers=layers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(struc2vec, "_ENTRIES", block)
        patch.setattr(struc2vec, "_ROWS", block)
        parts = struc2vec_relations(graph, layers=layers)
    assert all((one != two).nnz == 0 for one, two in zip(whole, parts, strict=True))


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), min_size=1, max_size=12),
)
def test_the_band_of_the_warping_leaves_nothing_out(a, b):
    """Lists of any kind, far apart too; the graphs above are small."""
    a, b = sorted(dict(a).items()), sorted(dict(b).items())
    which, many = (np.array(column, np.int32) for column in zip(*a, *b, strict=True))
    lists = np.array([[0, len(a)], [len(a), len(a) + len(b)]])
    candidates, total = np.array([[1], [0]], np.int32), np.zeros((2, 1))
    add_distances(0, 2, candidates, lists, which, many, np.arange(41) + 0.5, total, np.full((4, 41), np.nan))
    warped = total[0, 0]
    assert warped == pytest.approx(plain_warping(a, b), rel=1e-12, abs=1e-12)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["first", "around"]))
def test_a_renumbered_graph_has_the_renumbered_relations(seed, ties):
    rng = np.random.default_rng(seed)
    n = 20
    graph = pf.Graph(rng.random((n, n)) < 0.1, features=rng.standard_normal((n, 2)))
    assert pf.trees.canonical_order(graph).tied == 0
    perm = rng.permutation(n)
    for one, two in zip(
        struc2vec_relations(graph, ties=ties), struc2vec_relations(graph.permute(perm), ties=ties), strict=True
    ):
        assert np.array_equal(one.toarray()[np.ix_(perm, perm)], two.toarray())
    for embedding in ("spectral", "adjacency"):
        one, two = (geom_relations(g, embedding=embedding).matrices for g in (graph, graph.permute(perm)))
        assert all(np.array_equal(a.toarray()[np.ix_(perm, perm)], b.toarray()) for a, b in zip(one, two, strict=True))


def test_a_path_by_hand():
    """Degrees 1 and 2 differ by 2.5 / 1.5 - 1 = 2/3; so do the rings {2} and {1, 2}, and the last ones {2} and {1}."""
    relations = struc2vec_relations(pf.Graph.from_edges([[0, 1], [1, 2], [2, 3]]))
    assert len(relations) == 4
    for k, relation in enumerate(relations[:3]):
        near = 1 / (1 + 2 * math.exp(-(k + 1) * 2 / 3))
        far = (1 - near) / 2
        wanted = [[0, far, far, near], [far, 0, near, far], [far, near, 0, far], [near, far, far, 0]]
        np.testing.assert_allclose(relation.toarray(), wanted)
    assert relations[3].toarray().tolist() == [[0, 0, 0, 1], [0] * 4, [0] * 4, [1, 0, 0, 0]]  # the ends are 3 apart


def test_candidates_need_not_be_mutual():
    """All leaves of a star list the centre last, if at all; the centre lists leaves."""
    star = pf.Graph.from_edges([[0, i] for i in range(1, 40)])
    relation = struc2vec_relations(star, layers=0)[0].toarray()
    assert (relation[0] > 0).sum() == 11
    assert not relation[1:, 0].any()
    assert ((relation > 0).sum(axis=1) == 11).all()
    assert (relation[1:] > 0).any(axis=0).sum() == 12  # the same ones for all, and one more for these
    around = struc2vec_relations(star, layers=0, ties="around")[0].toarray()
    assert ((around[1:, 1:] > 0).sum(axis=0) == 11).all()


def test_graphs_without_edges_and_of_one_node():
    one = struc2vec_relations(pf.Graph(np.zeros((1, 1))))
    assert [relation.nnz for relation in one] == [0]
    three = struc2vec_relations(pf.Graph(np.zeros((3, 3))))
    assert len(three) == 1
    np.testing.assert_allclose(three[0].toarray(), (1 - np.eye(3)) / 2)


def test_large_distances_leave_no_empty_row():
    """The centre is more than 745 from all leaves: exp(-f) is zero, its share is not."""
    star = pf.Graph.from_edges([[0, i] for i in range(1, 3000)])
    first = struc2vec_relations(star, layers=0)[0]
    assert first[[0]].sum() == pytest.approx(1)


def test_too_much_work_is_refused(monkeypatch):
    monkeypatch.setattr(struc2vec, "MOST_VISITS", 100)
    ring = pf.Graph.from_edges([[i, (i + 1) % 30] for i in range(30)])
    with pytest.raises(ValueError, match=r"layers=5 .* 1e\+02 edges, the limit; layers=1 stays within it"):
        struc2vec_relations(ring, layers=5)
    assert len(struc2vec_relations(ring, layers=1)) == 2


def test_arguments_are_checked():
    path = pf.Graph.from_edges([[0, 1]])
    with pytest.raises(ValueError, match="layers must be at least 0"):
        struc2vec_relations(path, layers=-1)
    with pytest.raises(ValueError, match="ties must be 'first' or 'around'"):
        struc2vec_relations(path, ties="last")
    with pytest.raises(ValueError, match="embedding must be 'spectral' or 'adjacency'"):
        geom_relations(path, embedding="isomap")
    for function in (struc2vec_relations, geom_relations, lambda graph: geom_divisions(graph, geom_relations(path))):
        with pytest.raises(TypeError, match=r"must be a pegfan\.Graph"):
            function(path.adjacency)


# -------------------------------------------------------------------- files


def entries(matrices):
    return {(k, int(i), int(j)) for k, matrix in enumerate(matrices) for i, j in zip(*matrix.nonzero(), strict=True)}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_good_file(tmp_path, packed, end):
    path = tmp_path / "relations.txt"
    text = HEADER + "0,1\tgraph\t0\n1,0\tgraph\t3\n2,0\tlatent_space\t1\n0,1\tlatent_space\t2\n3,3\tgraph\t1"
    data = text.replace("\n", end).encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    relations = read_geom_relations(path, 4)
    assert relations.names == NAMES
    assert (NAMES[0], NAMES[7]) == ("graph 0", "latent_space 3")
    assert entries(relations.matrices) == {(3, 0, 1), (5, 0, 2), (6, 1, 0), (1, 3, 3)}  # 0,1 was listed last as 6
    for matrix in relations.matrices:
        well_formed(matrix, 4)


def test_a_file_without_rows(tmp_path):
    path = tmp_path / "relations.txt"
    path.write_text(HEADER)
    assert entries(read_geom_relations(path, 2).matrices) == set()


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("0,1\tgraph", "3 fields with tabs between them, this one has 2"),
        ("", "this one has 1"),
        ("0,1\tgraph\t0\t0", "this one has 4"),
        ("0 1\tgraph\t0", "two numbers such as '101,120', got '0 1'"),
        ("0,x\tgraph\t0", "two numbers"),
        ("-1,0\tgraph\t0", "two numbers"),
        ("0,1.0\tgraph\t0", "two numbers"),
        ("٣,1\tgraph\t0", "two numbers"),
        ("0,99999999999\tgraph\t0", "two numbers"),
        ("0,4\tgraph\t0", r"node 4 is outside the nodes 0\.\.3"),
        ("9999999999,0\tgraph\t0", "node 9999999999 is outside"),
        ("0,1\tspace\t0", "'graph' or 'latent_space', got 'space'"),
        ("0,1\tgraph\t4", "0, 1, 2 or 3, got '4'"),
        ("0,1\tgraph\t-1", "0, 1, 2 or 3"),
        ("0,1\tgraph\t0 ", "0, 1, 2 or 3, got '0 '"),
        ("0,1\tgraph\t" + "0" * 500, "longer than 200 bytes"),
        ("\0" * 20, "3 fields"),
    ],
)
def test_a_broken_row(tmp_path, row, complaint):
    path = tmp_path / "relations.txt"
    path.write_text(f"{HEADER}0,1\tgraph\t0\n{row}\n1,2\tgraph\t0\n", encoding="utf-8")
    with pytest.raises(ValueError, match=f"relations.txt, line 3: .*{complaint}"):
        read_geom_relations(path, 4)


@pytest.mark.parametrize("text", ["", "0,1\tgraph\t0\n", "node1\tnode2\n", "x" * 1000, "\xff\xfe\n"])
def test_a_wrong_header(tmp_path, text):
    path = tmp_path / "relations.txt"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match="line 1: the header must be"):
        read_geom_relations(path, 4)


def test_large_and_damaged_files(tmp_path):
    path = tmp_path / "relations.txt"
    data = (HEADER + "0,1\tgraph\t0\n" * 1000).encode()
    for packed in (data, gzip.compress(data)):
        path.write_bytes(packed)
        with pytest.raises(ValueError, match=r"1\.0 kB are allowed"):
            read_geom_relations(path, 4, max_bytes=1000)
    path.write_bytes(gzip.compress(data)[:-20])
    with pytest.raises(ValueError, match="damaged or cut short"):
        read_geom_relations(path, 4)
    with pytest.raises(ValueError, match="n must be at least 1"):
        read_geom_relations(path, 0)


# -------------------------------------------------------------------- divisions


def test_divisions_by_hand(tmp_path):
    """Of 0 → 1, 1 → 2 and a loop, the file lists the first as type 3; it adds 2 → 0 and 1 → 0."""
    graph = pf.Graph.from_edges([[0, 1], [1, 2], [2, 2]], directed=True)
    path = tmp_path / "relations.txt"
    path.write_text(f"{HEADER}0,1\tgraph\t3\n2,0\tlatent_space\t1\n1,0\tgraph\t2\n1,1\tgraph\t2\n")
    divisions = geom_divisions(graph, read_geom_relations(path, 3))
    degree = [3, 2, 2]  # into 0 from 2, 1 and itself; into 1 from 0 and itself; into 2 from 1 and itself
    wanted = np.zeros((9, 3, 3))
    for k, target, source in [(3, 1, 0), (0, 2, 1), (5, 0, 2), (2, 0, 1), (8, 0, 0), (8, 1, 1), (8, 2, 2)]:
        wanted[k, target, source] = 1 / math.sqrt(degree[target] * degree[source])
    assert len(divisions) == 9
    for division, plain in zip(divisions, wanted, strict=True):
        well_formed(division, 3)
        np.testing.assert_allclose(division.toarray(), plain, rtol=1e-15)


@given(graphs(), st.sampled_from(["spectral", "adjacency"]))
def test_divisions_are_the_merged_graph(graph, embedding):
    relations = geom_relations(graph, embedding=embedding)
    divisions = geom_divisions(graph, relations)
    merged = sum(division.toarray() > 0 for division in divisions)
    assert merged.max() == 1, "every pair is of one division"
    A = graph.adjacency.toarray() > 0
    assert (merged >= (A | A.T | np.eye(graph.n, dtype=bool))).all()
    degree = merged.sum(axis=1)
    np.testing.assert_allclose(sum(d.toarray() for d in divisions), merged / np.sqrt(np.outer(degree, degree)))


@given(graphs(), st.sampled_from(["spectral", "adjacency"]))
def test_latent_neighbours_are_as_many_as_neighbours_and_within_the_cap(graph, embedding):
    relations = geom_relations(graph, embedding=embedding)
    for matrix in relations.matrices:
        well_formed(matrix, graph.n)
        assert not matrix.diagonal().any()
    A = graph.adjacency.toarray() > 0
    edges = (A | A.T) & ~np.eye(graph.n, dtype=bool)
    latent = sum(matrix.toarray() for matrix in relations.matrices[4:])
    assert edges.sum() <= latent.sum()
    assert latent.sum(axis=1).max(initial=0) <= min(math.ceil(4 * edges.sum() / graph.n), graph.n - 1)
    both = sum(matrix.toarray() for matrix in relations.matrices)
    assert np.array_equal(both > 0, edges | (latent > 0))


def test_quadrants_and_radius_by_hand(monkeypatch):
    """Points at the corners of a rectangle and far away; two edges, so four ordered pairs of latent neighbours."""
    from pegfan.relations import geometry

    points = np.array([[0.0, 0.0], [1.0, 0.5], [10.0, 0.0], [11.0, -1.0]])
    graph = pf.Graph.from_edges([[0, 2], [1, 3]], n=4)
    order = pf.trees.canonical_order(graph).order
    monkeypatch.setattr(geometry, "_plane", lambda edges, embedding: points[order])
    found = entries(geom_relations(graph).matrices)
    upper_left, upper_right, lower_left, lower_right = range(4)
    near = {(upper_right, 0, 1), (lower_left, 1, 0), (lower_right, 2, 3), (upper_left, 3, 2)}
    far = {(upper_right, 0, 2), (upper_left, 2, 0), (lower_right, 1, 3), (upper_left, 3, 1)}
    assert found == {(k + 4, v, u) for k, v, u in near} | far


def test_many_nodes_at_one_point_take_no_more_than_the_cap():
    n = 5000
    graph = pf.Graph.from_edges([[0, i] for i in range(1, n - 1000)], n=n)
    latent = sum(geom_relations(graph).matrices[4:])
    cap = math.ceil(4 * 2 * (n - 1001) / n)
    assert np.diff(latent.tocsr().indptr).max() <= cap


def test_relations_of_another_graph_are_refused():
    path = pf.Graph.from_edges([[0, 1], [1, 2]])
    others = geom_relations(pf.Graph.from_edges([[0, 1]]))
    with pytest.raises(ValueError, match=r"'graph 0' must be a sparse array of shape \(3, 3\)"):
        geom_divisions(path, others)
    with pytest.raises(ValueError, match="must hold 8 matrices"):
        geom_divisions(path, GeomRelations(others.matrices[:4]))
