"""Which files are which: folders, patterns and parts, as the reader for graphs in memory sees them."""

import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegfan.large.inputs import expand, find_inputs, measure, rough_memory

NODES = pd.DataFrame({"id": ["a", "b", "c", "d"], "size": [1.0, 2, 3, 4], "kind": ["x", "y", "x", "y"]})
EDGES = pd.DataFrame({"source": ["a", "b", "c"], "target": ["b", "c", "d"]})


def write(folder, name, frame):
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / name
    frame.to_parquet(path) if name.endswith("parquet") else frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("suffix", ["csv", "parquet", "csv.gz"])
def test_folders_patterns_and_single_files_are_the_same(tmp_path, suffix):
    nodes = [write(tmp_path / "nodes", f"part-{k}.{suffix}", NODES[2 * k : 2 * k + 2]) for k in range(2)]
    edges = [write(tmp_path / "edges", f"part-{k}.{suffix}", EDGES) for k in range(3)]
    folders = find_inputs([tmp_path / "nodes", tmp_path / "edges"])
    assert (folders.nodes, folders.edges) == (tuple(nodes), tuple(edges))
    assert find_inputs([*edges, *nodes], label="kind") == folders
    assert find_inputs([f"{tmp_path}/nodes/*", f"{tmp_path}/edges/part-*.{suffix}"]) == folders
    found = measure(folders)
    assert (found.nodes, found.edges, found.columns) == (
        (4, 9, 2) if "gz" not in suffix else (found.nodes, found.edges, 2)
    )
    assert found.guessed == ("gz" in suffix)
    assert found.file_bytes == sum(file.stat().st_size for file in nodes + edges)


def test_one_folder_with_both(tmp_path):
    nodes, edges = write(tmp_path, "b.csv", NODES), write(tmp_path, "a.csv", EDGES)
    found = find_inputs([tmp_path])
    assert (found.nodes, found.edges, found.files) == ((nodes,), (edges,), (nodes, edges))


def test_edges_alone(tmp_path):
    edges = write(tmp_path, "a.csv", EDGES)
    found = find_inputs([edges])
    assert (found.nodes, found.edges) == ((), (edges,))
    assert measure(found).guessed


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["nothing/*.csv"], "no file fits nothing"),
        (["nope.csv"], "no such file"),
        (["chameleon"], "chameleon: no such file or folder; a data set that has a name fits: leave out --memory"),
        (["."], "holds no table"),
        (["graph.npz"], "no table that can be read in pieces"),
        (["a.csv", "b.csv", "c.csv"], "have different columns.*one table of nodes and one of edges"),
        (["a.csv", "a2.csv"], "two tables of edges"),
        (["bad.parquet"], "is not a Parquet file"),
    ],
)
def test_what_cannot_be_read_in_pieces_is_said(tmp_path, monkeypatch, names, words):
    monkeypatch.chdir(tmp_path)
    if names != ["."]:
        write(tmp_path, "a.csv", EDGES)
        write(tmp_path, "a2.csv", EDGES.assign(when=[1, 2, 3], source=[11, 12, 13], target=[14, 15, 16]))
        write(tmp_path, "b.csv", NODES)
        write(tmp_path, "c.csv", NODES.rename(columns={"size": "height"}))
        (tmp_path / "graph.npz").write_bytes(b"PK")
        (tmp_path / "bad.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises((ValueError, OSError), match=words):
        find_inputs(names)


def test_a_file_that_is_named_twice_is_one(tmp_path):
    edges = write(tmp_path, "a.csv", EDGES)
    assert expand([edges, tmp_path, f"{tmp_path}/*.csv"]) == [edges]


@settings(max_examples=8)
@given(st.integers(0, 2**32), st.floats(0.5, 2.5))
def test_lines_of_a_long_text_are_counted_to_a_few_per_cent(tmp_path_factory, seed, spread):
    rng = np.random.default_rng(seed)
    count = 120_000
    text = "source,target\n" + "".join(
        f"{a},{b}\n" for a, b in (10 ** (spread * rng.random((count, 2)) + 5)).astype(int)
    )
    path = tmp_path_factory.mktemp("x") / "edges.csv"
    path.write_text(text)
    inputs = find_inputs([path])
    found = measure(inputs)
    assert abs(found.edges - count) < 0.05 * count


def test_a_rough_idea_of_memory_grows_with_the_files(tmp_path):
    edges = write(tmp_path, "a.csv", EDGES)
    packed = tmp_path / "b.csv.gz"
    packed.write_bytes(gzip.compress(edges.read_bytes() * 1000))
    assert rough_memory([packed]) > rough_memory([edges]) >= edges.stat().st_size
