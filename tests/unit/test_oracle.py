"""A table written in any equivalent way is the same graph by id: a few tries of those that `make torture` makes."""

import random
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torture import oracle


@settings(max_examples=6)
@given(kind=st.sampled_from(oracle.KINDS), seed=st.integers(0, 2**32))
def test_equivalent_tables_are_one_graph(kind, seed):
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        oracle.check_reading(oracle.draw_tables(draw, kind), draw, Path(folder), times=1)


@pytest.mark.parametrize(
    ("column", "cell", "where"),
    [
        ("id", "new", "nodes"),
        ("label", None, "labels"),
        ("split", None, "splits"),
        ("x", 99.0, "features"),
        ("weight", 99.0, "adjacency"),
    ],
)
def test_the_oracle_notices_a_single_cell(column, cell, where):
    ids = [f"v{k}" for k in range(6)]
    nodes = {"id": ids, "label": list("ababab"), "split": ["train"] * 6, "x": [k * 0.5 for k in range(6)]}
    edges = {"source": ids[:4], "target": ids[1:5], "weight": [2.0] * 4}
    nodes |= {"age": [20 + k * k for k in range(6)], "town": list("ppqqpq")}
    tables = oracle.Tables(nodes, edges, directed=False)
    expected = {**oracle.by_id(oracle.reference(tables)), **oracle.truth(tables)}
    assert oracle.differences(oracle.by_id(oracle.reference(tables)), expected) == []
    changed = [{name: list(cells) for name, cells in table.items()} for table in (nodes, edges)]
    next(table for table in changed if column in table)[column][5 if column == "id" else 0] = cell
    other = oracle.by_id(oracle.reference(replace(tables, nodes=changed[0], edges=changed[1])))
    assert any(words.startswith(where) for words in oracle.differences(other, expected))
