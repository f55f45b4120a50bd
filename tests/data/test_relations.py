"""The relations that GEOM-GCN's authors publish, and ours, on real graphs."""

import gzip

import numpy as np
import pytest

from pegfan import datasets
from pegfan.relations import geom_divisions, geom_relations, read_geom_relations, struc2vec_relations


@pytest.fixture(scope="module")
def cornell(data):
    return datasets.load("cornell", data)


@pytest.mark.parametrize("method", ["MDS", "poincare", "struc2vec"])
def test_the_authors_file_of_cornell(cornell, reference, method):
    path = reference / "geom-gcn-relations" / f"cornell_{method}.txt.gz"
    with gzip.open(path, "rt") as file:
        rows = [line.rstrip("\n").split("\t") for line in list(file)[1:]]
    division = {}  # of the edge u → v, as their program has it
    for nodes, space, kind in rows:
        division[tuple(map(int, nodes.split(",")))] = 4 * (space == "latent_space") + int(kind)
    relations = read_geom_relations(path, cornell.n)
    assert sum(matrix.nnz for matrix in relations.matrices) == len(division)
    for (u, v), k in division.items():
        assert relations.matrices[k][v, u] == 1

    divisions = geom_divisions(cornell, relations)
    # Every edge is listed, both ways; so nothing but the loops is added to the file.
    assert [d.nnz for d in divisions] == [*(matrix.nnz for matrix in relations.matrices), cornell.n]
    into = np.bincount([v for _, v in division], minlength=cornell.n) + 1
    for (u, v), k in division.items():
        assert divisions[k][v, u] == pytest.approx(1 / np.sqrt(into[u] * into[v]))


def test_the_file_of_another_graph_is_refused(reference):
    with pytest.raises(ValueError, match=r"line \d+: node \d+ is outside the nodes 0\.\.182"):
        read_geom_relations(reference / "geom-gcn-relations" / "cora_MDS.txt.gz", 183)


def test_our_relations_of_cornell(cornell):
    relations = geom_relations(cornell)
    assert sum(matrix.nnz for matrix in relations.matrices[4:]) >= 554  # as many as edges, both ways
    assert len(geom_divisions(cornell, relations)) == 9


def test_struc2vec_of_cora(data):
    relations = struc2vec_relations(datasets.load("cora", data), layers=3)
    assert [relation.nnz for relation in relations] == [62284, 62284, 56527, 53796]
    for relation in relations:
        np.testing.assert_allclose(relation.sum(axis=1)[np.diff(relation.indptr) > 0], 1)
