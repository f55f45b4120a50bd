"""Damaged files of every format, and small files that claim much.

What a reader makes of a damaged file is a result or an error that it documents, within a few seconds and little memory.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import re
import shutil
import struct
import time
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from torture.campaign import Fault, attack

DOCUMENTED = (ValueError, TypeError, OSError, ImportError)
"""BadInput is a ValueError; MemoryError is documented too, where it says beforehand what would be taken."""
PATIENCE = 20.0
ROOM = 600 * 10**6

Reader = Callable[[Path], Any]


@dataclass(frozen=True)
class Specimen:
    """A valid file or folder, which of its files is damaged, and who reads it."""

    place: Path
    file: str
    read: Reader
    repair: Callable[[Path], None] | None = None
    """Makes checksums fit again, so that damage gets past them."""


# ------------------------------------------------------------------ valid files

_ROWS = [
    (f"n{k}", k % 3, 1.5 * k, ("red", "blue")[k % 2], f"2020-0{k % 9 + 1}-11", "a b c d"[: k % 7]) for k in range(12)
]


def _pairs() -> list[tuple[str, str, float, int]]:
    return [(f"n{k}", f"n{(3 * k + 1) % 12}", 0.5 + k, 1_600_000_000 + 1000 * k) for k in range(12)]


def _text(rows: Any, names: list[str], mark: str, quote: str = "") -> str:
    return "\n".join(mark.join(f"{quote}{cell}{quote}" for cell in row) for row in [names, *rows]) + "\n"


def _tables(place: Path) -> list[Specimen]:
    import pandas as pd

    from pegfan import read_graph

    names, ends = ["id", "label", "size", "colour", "day", "note"], ["source", "target", "weight", "time"]
    (place / "nodes.csv").write_text(_text(_ROWS, names, ","))
    (place / "edges.csv").write_text(_text(_pairs(), ends, ","))
    (place / "quoted.csv").write_text(_text(_ROWS, names, ";", '"'))
    (place / "tabs.tsv").write_text(_text(_pairs(), ends, "\t"))
    (place / "plain.txt").write_text("# c\n" + "".join(f" {k}  {k * k % 12}\n" for k in range(12)) + "% d\n")
    (place / "packed.csv.gz").write_bytes(gzip.compress((place / "nodes.csv").read_bytes()))
    (place / "bags.json").write_text(json.dumps({row[0]: ["t", "u", k] for k, row in enumerate(_ROWS)}))
    (place / "vectors.csv").write_text(_text([(r[0], f"[{k},2,{k}.5]") for k, r in enumerate(_ROWS)], ["id", "v"], ";"))
    nodes, edges = pd.DataFrame(_ROWS, columns=names), pd.DataFrame(_pairs(), columns=ends)
    nodes.assign(tags=[["x", "y"]] * len(nodes)).to_parquet(place / "nodes.parquet")
    edges.to_parquet(place / "edges.parquet", compression=None, use_dictionary=False)
    beside = {"edges.csv": "nodes.csv", "tabs.tsv": None, "plain.txt": None, "edges.parquet": "nodes.csv"}
    files = ["nodes.csv", "edges.csv", "quoted.csv", "tabs.tsv", "plain.txt", "packed.csv.gz", "bags.json"]
    files += ["vectors.csv", "nodes.parquet", "edges.parquet"]

    def reader(other: str | None) -> Reader:
        if other is None:
            return lambda path: read_graph(path)
        return lambda path: read_graph(path, place / other, unknown="drop")

    return [Specimen(place, file, reader(beside.get(file, "edges.csv"))) for file in files]


def _graphs(place: Path) -> list[Specimen]:
    import networkx as nx
    import numpy as np
    import scipy.io
    import scipy.sparse as sp
    import torch
    import torch_geometric.data  # noqa: F401 - it takes seconds, which no try should pay

    from pegfan import Graph, read_graph
    from pegfan.relations import read_geom_relations

    draw = np.random.default_rng(0)
    pairs = draw.integers(0, 9, (14, 2))
    graph = Graph.from_edges(pairs, n=9, features=draw.random((9, 3)), labels=draw.integers(0, 3, 9))
    masks = {f"{part}_mask": np.arange(9) % 3 == k for k, part in enumerate(("train", "val", "test"))}
    np.savez(place / "arrays.npz", edge_index=pairs.T, x=graph.features, y=graph.labels, **masks)
    sparse = sp.csr_array(graph.features)
    parts = {f"x_{name}": getattr(sparse, name) for name in ("data", "indices", "indptr", "shape")}
    np.savez_compressed(place / "parts.npz", edges=pairs, num_nodes=9, edge_weight=np.ones(14), **parts)
    sp.save_npz(place / "sparse.npz", sp.csr_matrix(graph.adjacency))
    scipy.io.mmwrite(place / "g.mtx", sp.coo_matrix(graph.adjacency))
    (place / "array.mtx").write_text("%%MatrixMarket matrix array real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n")
    other = graph.replace(features=None).to_networkx()
    nx.write_graphml(other, place / "g.graphml")
    nx.write_gml(nx.Graph(other), place / "g.gml")
    nx.write_edgelist(other, place / "g.edgelist")
    (place / "g.graphml.gz").write_bytes(gzip.compress((place / "g.graphml").read_bytes()))
    torch.save(graph.to_pyg(), place / "g.pt")
    torch.save(dict(graph.to_pyg().to_dict()), place / "dict.pt")
    rows = "".join(f"{k},{k + 1}\t{('graph', 'latent_space')[k % 2]}\t{k % 4}\n" for k in range(8))
    (place / "geom.txt").write_text(f"node1,node2\tspace\trelation_type\n{rows}")
    files = ["arrays.npz", "parts.npz", "sparse.npz", "g.mtx", "array.mtx", "g.graphml", "g.gml", "g.edgelist"]
    files += ["g.graphml.gz", "g.pt", "dict.pt"]
    found = [Specimen(place, file, lambda path: read_graph(path)) for file in files]
    return [*found, Specimen(place, "geom.txt", lambda path: read_geom_relations(path, 9))]


def _saved(place: Path, models: bool) -> list[Specimen]:
    import pegfan as pf
    from pegfan import results
    from pegfan.cli._shell import Fail
    from pegfan.cli.train import _read_settings
    from pegfan.datasets import Source, read_graph
    from pegfan.experiments import Store
    from pegfan.results import Result

    graph = pf.datasets.synthetic(0.0, n=60, n_edges=240, n_features=4)
    made = place / "made"
    if not made.exists():
        shutil.rmtree(place / "part", ignore_errors=True)
        part = place / "part"
        part.mkdir()
        quick = {"epochs": 2, "hidden": 4}
        pf.PEGFANClassifier(**quick).fit(graph).save(part / "pegfan")
        for head in ("boosting", "linear", "network"):
            recipe = {"method": "matching", "head": head, **({} if head == "linear" else {"epochs": 2})}
            pf.RecipeClassifier(recipe).fit(graph).save(part / head)
        pf.AutoClassifier(budget=1.0).fit(graph).save(part / "auto")
        pf.build_tree(graph, h=4).save(part / "tree.npz")
        store = Store(part / "store")
        for k in range(4):
            store.append({"key": f"k{k}", "result": {"val_metric": k / 7, "words": ["a", None, True]}})
        summary = Result(title="t", data=results.data(graph), test=results.Spread.of([0.5, 1.0]))
        (part / "result.json").write_text(summary.to_json())
        (part / "settings.toml").write_text(
            'format = "pegfan settings"\nversion = 4\nseed = 3\nbudget = 2.5\nsplit = 0\n'
            '[source]\nwhere = ["synthetic"]\n[source.options]\nn = 60\n[[recipes]]\nmethod = "ward"\nh = 4\n'
        )
        (part / "e.csv").write_text("source,target\n1,2\n2,3\n")
        Source.of(part / "e.csv").keep(part / "kept")
        part.rename(made)

    def model(path: Path) -> None:
        pf.load_model(path.parent).predict(graph)

    def settings(path: Path) -> None:
        try:
            _read_settings(path)
        except Fail as error:
            raise ValueError(str(error)) from error

    def store(path: Path) -> None:
        held = Store(path.parent)
        assert len(list(held)) == len(held)
        held.append({"key": "new", "result": {}})
        if "new" not in Store(path.parent):
            raise Fault("a record that was written to a damaged store is lost")

    def kept(path: Path) -> None:
        source = Source.kept(path.parent)
        read_graph(*source.files, **dict(source.options))

    if models:
        folders = [made / name for name in ("pegfan", "boosting", "linear", "network", "auto")]
        return [Specimen(folder, file.name, model, resign) for folder in folders for file in sorted(folder.iterdir())]
    found = [Specimen(made, "tree.npz", lambda path: pf.Hierarchy.load(path))]
    found += [Specimen(made / "store", file.name, store) for file in sorted((made / "store").glob("*.jsonl"))]
    found += [Specimen(made / "kept", file.name, kept) for file in sorted((made / "kept").iterdir())]
    found += [Specimen(made, "result.json", lambda path: Result.from_json(path.read_bytes()))]
    return [*found, Specimen(made, "settings.toml", settings)]


def resign(folder: Path) -> None:
    """Let the checksums of a model fit its damaged files."""
    from pegfan._saved import MODEL, _checksum, _digest

    try:
        about = json.loads((folder / MODEL).read_bytes())
    except (ValueError, RecursionError):
        return
    if not isinstance(about, dict):
        return
    about.pop("checksum", None)
    if isinstance(about.get("files"), dict):
        about["files"] = {
            name: _digest((folder / name).read_bytes()) for name in about["files"] if (folder / name).is_file()
        }
    about["checksum"] = _checksum(about)
    (folder / MODEL).write_text(json.dumps(about))


def _prepare(make: Callable[[Path], list[Specimen]]) -> Callable[[Path], tuple[list[Specimen], list[bytes]]]:
    def prepare(place: Path) -> tuple[list[Specimen], list[bytes]]:
        warnings.simplefilter("ignore")
        folder = place / "valid"
        folder.mkdir(exist_ok=True)
        found = make(folder)
        for one in found:
            if one.repair is None and one.place.name != "store":
                one.read(one.place / one.file)  # what is not damaged is read
        return found, [(one.place / one.file).read_bytes() for one in found]

    return prepare


# ------------------------------------------------------------------ damage

_WORDS = [
    b'"',
    b"'",
    b",,",
    b"\n\n",
    b"{[<",
    b"\0",
    b"\r",
    b"\xff\xfe",
    b"nan",
    b"inf",
    b"-0",
    b"1e999",
    b"null",
    b"[]",
    b"{}",
]
_WORDS += [
    b"true",
    b"#",
    b"%",
    b"\\",
    b"\\ud800",
    b"\xe2\x80",
    b"&amp;",
    b"<!DOCTYPE a>",
    b"]]>",
    b"=",
    b";",
    b"\t",
    b" ",
]
_NUMBERS = [
    b"-1",
    b"0",
    b"1",
    b"4294967296",
    b"9223372036854775808",
    b"1" * 400,
    b"1" * 5000,
    b"1e308",
    b"0.1",
    b"200000000",
]
_LENGTHS = [0, 1, 2, 127, 255, 2**15, 2**16 - 1, 2**24, 2**31 - 1, 2**31, 2**32 - 1]


def damage(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """Bytes with one to four faults."""
    for _ in range(draw.choice((1, 1, 2, 4))):
        data = draw.choice(_FAULTS)(data, draw, others)
    return data


def _flip(data: bytes, draw: random.Random, _: list[bytes]) -> bytes:
    changed = bytearray(data)
    for _k in range(min(len(data), draw.choice((1, 1, 3, 20)))):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _cut(data: bytes, draw: random.Random, _: list[bytes]) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _drop(data: bytes, draw: random.Random, _: list[bytes]) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + data[at + draw.choice((1, 4, 30, 300)) :]


def _repeat(data: bytes, draw: random.Random, _: list[bytes]) -> bytes:
    at = draw.randrange(len(data) + 1)
    piece = data[at : at + draw.choice((1, 5, 40))]
    return data[:at] + piece * draw.choice((1, 2, 50, 2000)) + data[at:]


def _splice(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    other = draw.choice(others)
    at, start = draw.randrange(len(data) + 1), draw.randrange(len(other) + 1)
    piece = other[start : start + draw.choice((8, 60, 500))]
    return data[:at] + piece + data[at + draw.choice((0, len(piece))) :]


def _insert(data: bytes, draw: random.Random, _: list[bytes]) -> bytes:
    at = draw.randrange(len(data) + 1)
    word = draw.choice(_WORDS) if draw.random() < 0.7 else draw.randbytes(draw.randrange(1, 9))
    return data[:at] + word + data[at + draw.choice((0, len(word))) :]


def _number(data: bytes, draw: random.Random, _: list[bytes]) -> bytes:
    places = list(re.finditer(rb"-?\d+(?:\.\d+)?", data))
    if not places:
        return data
    place = draw.choice(places)
    return data[: place.start()] + draw.choice(_NUMBERS) + data[place.end() :]


def _length(data: bytes, draw: random.Random, _: list[bytes]) -> bytes:
    """Change what may be a length in a binary header: most are near the beginning or the end."""
    if len(data) < 8:
        return data
    at = (
        draw.randrange(len(data) - 4)
        if draw.random() < 0.3
        else draw.choice(
            (draw.randrange(min(64, len(data) - 4)), len(data) - 1 - draw.randrange(4, min(64, len(data))))
        )
    )
    return data[:at] + struct.pack("<I", draw.choice(_LENGTHS)) + data[at + 4 :]


def _nest(data: bytes, draw: random.Random, _: list[bytes]) -> bytes:
    at = draw.randrange(len(data) + 1)
    return (
        data[:at]
        + draw.choice((b"[", b'{"a":', b"<a>", b"(", b'"', b"a=[", b"node [ ")) * draw.choice((3, 200, 20_000))
        + data[at:]
    )


_FAULTS = [_flip, _cut, _drop, _repeat, _splice, _insert, _number, _number, _length, _nest]


def damage_inside(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """Damage what is packed, and pack it again: checksums then do not give it away."""
    if data[:2] == b"\x1f\x8b":
        return gzip.compress(damage(gzip.decompress(data), draw, others), 1)
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(packed, "w") as target:
        chosen = draw.randrange(max(1, len(source.namelist())))
        for k, member in enumerate(source.infolist()):
            inside = source.read(member)
            target.writestr(member.filename, damage(inside, draw, others) if k == chosen else inside)
    return packed.getvalue()


def damage_json(data: bytes, draw: random.Random, others: list[bytes]) -> bytes:
    """Put something else in the place of a value, or take it away: the text stays JSON."""
    lines = data.splitlines() if data.count(b"\n{") else [data]
    k = draw.randrange(len(lines))
    try:
        value = json.loads(lines[k])
    except ValueError:
        return damage(data, draw, others)
    for _ in range(draw.choice((1, 1, 3))):
        _change(value, draw)
    lines[k] = json.dumps(value).encode()
    return b"\n".join(lines) + b"\n"


def _change(value: Any, draw: random.Random) -> None:
    odd: list[Any] = [
        None,
        True,
        -1,
        0,
        1,
        7,
        2**63,
        10**400,
        1e308,
        -0.5,
        "",
        "x",
        "ward",
        [],
        [1],
        [[]],
        {},
        {"a": 1},
    ]
    while isinstance(value, dict | list) and value:
        key = draw.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if not (isinstance(value[key], dict | list) and value[key]) or draw.random() < 0.15:
            if draw.random() < 0.2:
                del value[key]
            elif isinstance(value, list) and draw.random() < 0.2:
                value += value[:50]
            else:
                value[key] = draw.choice(odd)
            return
        value = value[key]


def _attempt(state: tuple[list[Specimen], list[bytes]], number: int, draw: random.Random, folder: Path) -> None:
    specimens, contents = state
    k = number % len(specimens)
    one, data = specimens[k], contents[k]
    path = folder / one.file
    if one.place.name in ("store", "kept") or one.repair is not None:
        for file in one.place.iterdir():
            shutil.copyfile(file, folder / file.name)
    if data[:2] in (b"PK", b"\x1f\x8b") and draw.random() < 0.7:
        damaged = damage_inside(data, draw, contents)
    elif one.file.endswith((".json", ".jsonl")) and draw.random() < 0.8:
        damaged = damage_json(data, draw, contents)
    else:
        damaged = damage(data, draw, contents)
    path.write_bytes(damaged)
    if one.repair is not None and draw.random() < 0.9:
        one.repair(folder)
    require_documented(one.read, path)


def require_documented(read: Reader, path: Path) -> None:
    """Read a file: a result, or an error that is documented."""
    try:
        read(path)
    except MemoryError as error:
        if "takes up to" not in str(error):
            raise Fault(f"{path.name}: memory ran out: {error}") from error
    except DOCUMENTED as error:
        if "more memory than there is" in str(error):
            raise Fault(f"{path.name}: memory ran out: {error}") from error


_PROMISE = "a result or a documented error, in 20 s and 0.6 GB"

_LIMITS: dict[str, Any] = {"seconds": PATIENCE, "memory": ROOM}

attack("damaged tables", _PROMISE, 25_000, prepare=_prepare(_tables), **_LIMITS)(_attempt)
attack("damaged graph files", _PROMISE, 30_000, prepare=_prepare(_graphs), **_LIMITS)(_attempt)
attack("damaged models", _PROMISE, 10_000, prepare=_prepare(partial(_saved, models=True)), **_LIMITS)(_attempt)
attack("damaged trees, stores, results", _PROMISE, 40_000, prepare=_prepare(partial(_saved, models=False)), **_LIMITS)(
    _attempt
)


# ------------------------------------------------------------------ small files that claim much

_ALLOWED = 50 * 10**6


def _bomb(path: Path, draw: random.Random) -> Path:
    """A small file that claims, or unpacks to, between a little and very much."""
    size = int(10 ** draw.uniform(2, 10))
    kind = draw.choice(("npz", "npy", "pt", "mtx", "parquet", "gz", "wide", "labels", "vector"))
    return _BOMBS[kind](path, size, draw)


def _npz_bomb(path: Path, size: int, draw: random.Random) -> Path:
    import numpy as np

    pairs = np.zeros((2, draw.choice((1, 100, 10_000))), np.int8)
    claims = {"num_nodes": size, "x_shape": [2, size], "x_data": [], "x_indices": [], "x_indptr": [0, 0, 0]}
    some = {name: claims[name] for name in claims if name == "num_nodes" or draw.random() < 0.8}
    np.savez_compressed(path / "b.npz", edge_index=pairs, **some)
    return path / "b.npz"


def _npy_bomb(path: Path, size: int, draw: random.Random) -> Path:
    import numpy as np

    small = min(size, 10**7)
    name = draw.choice(("edge_index", "x", "y"))
    shape = {"edge_index": (2, small // 2), "x": (3, small // 3), "y": (small,)}[name]
    arrays = {"edge_index": np.array([[0], [1]]), name: np.zeros(shape, draw.choice((np.int8, np.float64, bool)))}
    np.savez_compressed(path / "b.npz", **arrays)
    return path / "b.npz"


def _pt_bomb(path: Path, size: int, draw: random.Random) -> Path:
    import torch
    from torch_geometric.data import Data

    pair, one = torch.tensor([[0], [1]]), torch.ones(1, 1)
    fields = {"edge_index": pair, "num_nodes": size}
    fields |= draw.choice(
        ({}, {"edge_index": pair.expand(2, size)}, {"x": one.expand(2, size)}, {"x": one.expand(size, 3)})
    )
    torch.save(Data(**fields), path / "b.pt")
    return path / "b.pt"


def _mtx_bomb(path: Path, size: int, draw: random.Random) -> Path:
    entries = draw.choice((1, size))
    head = draw.choice(("coordinate pattern general", "coordinate real symmetric", "array real general"))
    sizes = f"{size} {size}" if head.startswith("array") else f"{size} {size} {entries}"
    (path / "b.mtx").write_text(f"%%MatrixMarket matrix {head}\n{'%' * draw.choice((1, 10**5))}\n{sizes}\n1 2 3\n")
    return path / "b.mtx"


def _parquet_bomb(path: Path, size: int, draw: random.Random) -> Path:
    import pyarrow as pa
    from pyarrow import parquet

    rows = min(int(size**0.5) + 1, 10**5)
    text = "x" * min(size // rows, 10**6 // 2)
    codes = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))
    note = codes.cast(pa.string()) if draw.random() < 0.5 and rows * len(text) < 10**7 else codes
    table = pa.table({"source": pa.array([1] * rows), "target": pa.array([2] * rows), "note": note})
    parquet.write_table(table, path / "b.parquet", compression="gzip", store_schema=False)
    return path / "b.parquet"


def _gz_bomb(path: Path, size: int, draw: random.Random) -> Path:
    name, head, piece = draw.choice(
        (
            *(("b.csv", b"source,target\n", b"1,2\n"), ("b.csv", b"source,target\n1,2\n", b"1"), ("b.csv", b"", b"\n")),
            *(("b.csv", b"a,b\n", b'"'), ("b.csv", b"source,target,x\n", b"1,2,a b\n"), ("b.csv", b"a b\n", b" ")),
            *(("b.json", b'{"a":[', b"[],"), ("b.json", b"", b"["), ("b.json", b'{"a":[', b'"q",')),
            *(
                ("b.gml", b"graph [\n", b"node [ id 1 ]\n"),
                ("b.graphml", b"<graphml>", b"<a>"),
                ("b.mtx", b"%%M", b"%\n"),
            ),
            *(("b.edgelist", b"1 2 {}\n", b"1 2 {}\n"), ("b.csv", b"# ", b"#\n")),
        )
    )
    content = head + piece * (min(size, 3 * 10**7) // len(piece))
    (path / f"{name}.gz").write_bytes(gzip.compress(content, 1))
    return path / f"{name}.gz"


def _wide_bomb(path: Path, size: int, draw: random.Random) -> Path:
    width = min(size, draw.choice((10**3, 2 * 10**6)))
    name = draw.choice(("a", "", "{}"))
    text = ",".join(name.format(k) for k in range(width)) + "\n" + ",".join("1" * width) + "\n"
    (path / "b.csv").write_text(text)
    return path / "b.csv"


def _label_bomb(path: Path, size: int, draw: random.Random) -> Path:
    import numpy as np

    n = draw.choice((3, 1000))
    np.savez_compressed(path / "b.npz", edges=[[0, 1]], y=np.append(np.zeros(n - 1, int), size))
    return path / "b.npz"


def _vector_bomb(path: Path, size: int, draw: random.Random) -> Path:
    length = min(int(size**0.5) + 1, 5_000)
    (path / "edges.csv").write_text("source,target\n0,1\n")
    rows = "".join(f"{k};\n" for k in range(1, length))
    (path / "b.csv").write_text(f"id;v\n0;[{','.join(['1.5'] * length)}]\n{rows}")
    return path / "b.csv"


_BOMBS: dict[str, Callable[[Path, int, random.Random], Path]] = {
    "npz": _npz_bomb,
    "npy": _npy_bomb,
    "pt": _pt_bomb,
    "mtx": _mtx_bomb,
    "parquet": _parquet_bomb,
    "gz": _gz_bomb,
    "wide": _wide_bomb,
    "labels": _label_bomb,
    "vector": _vector_bomb,
}


def _ready(place: Path) -> None:
    """Import what readers import, once."""
    warnings.simplefilter("ignore")
    (place / "valid").mkdir(exist_ok=True)
    for make in (_tables, _graphs):
        for one in make(place / "valid"):
            one.read(one.place / one.file)


@attack(
    "small files that claim much",
    "read within 50 MB as max_bytes says, and 50 MB for all else, or refused",
    3_000,
    prepare=_ready,
    seconds=60.0,
    memory=2 * _ALLOWED,
)
def _claim(_: None, number: int, draw: random.Random, folder: Path) -> None:
    from pegfan import _limits, measures, read_graph

    child = _made_apart(lambda: _bomb(folder, draw))  # making it takes memory, too
    _limits.free_memory = lambda: _ALLOWED
    assert _limits.allowed("50MB") == _ALLOWED
    beside = [folder / "edges.csv"] if (folder / "edges.csv").exists() else []

    def read(path: Path) -> None:
        graph = read_graph(path, *beside, max_bytes=_ALLOWED)
        if graph.labels is not None:
            measures.ccns(graph)

    require_documented(read, child)


def _made_apart(make: Callable[[], Path]) -> Path:
    """What a function returns that is run in a process of its own."""

    ours, theirs = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.write(theirs, str(make()).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    os.waitpid(child, 0)
    with open(ours, "rb") as stream:
        return Path(stream.read().decode())


# ------------------------------------------------------------------ time that grows with the file


def _rows(count: int, row: Callable[[int], str], head: str = "source,target\n") -> str:
    return head + "".join(map(row, range(count)))


_EDGES = "source,target\n0,1\n"
_SHAPES: dict[str, tuple[int, str, Callable[[int], str]]] = {
    "many columns": (500, "b.csv", lambda n: ",".join(f"c{k}" for k in range(n)) + "\n" + ",".join("1" * n) + "\n"),
    "columns of one name": (500, "b.csv", lambda n: ",".join(["id"] * n) + "\n" + ",".join("1" * n) + "\n"),
    "many quotes": (20_000, "b.csv", lambda n: _rows(n, lambda k: '"a""b","c"\n')),
    "a quote that never ends": (50_000, "b.csv", lambda n: _EDGES + '"' + "1,2\n" * n),
    "a long line": (200_000, "b.csv", lambda n: _EDGES + "1" * n + ",2\n"),
    "blank lines": (200_000, "b.csv", lambda n: _EDGES + "\n" * n + "1,2\n"),
    "white space": (200_000, "b.txt", lambda n: "1 2\n" + " " * n + "3\n"),
    "comments": (50_000, "b.csv", lambda n: _EDGES + "# a\n" * n + "1,2\n"),
    "self loops": (50_000, "b.csv", lambda n: _rows(n, lambda k: f"{k},{k}\n")),
    "one edge again and again": (50_000, "b.csv", lambda n: _rows(n, lambda k: "1,2\n")),
    "ids that hash alike": (20_000, "b.csv", lambda n: _rows(n, lambda k: f"{k << 40},{(k + 1) << 40}\n")),
    "texts that hash alike": (20_000, "b.csv", lambda n: _rows(n, lambda k: f"{k:0300b},a\n")),
    "events": (5_000, "b.csv", lambda n: _rows(n, lambda k: f"{k},{k % 7},2020-01-01 10:{k % 60:02}\n", "a,b,when\n")),
    "many classes": (3_000, "nodes.csv", lambda n: _rows(n, lambda k: f"{k},c{k // 2}\n", "id,label\n")),
    "many categories": (3_000, "nodes.csv", lambda n: _rows(n, lambda k: f"{k},t{k // 3}\n", "id,town\n")),
    "nearly dates": (3_000, "nodes.csv", lambda n: _rows(n, lambda k: f"{k},2020-01-{k}T1{' ' * 50}\n", "id,day\n")),
    "many lists": (2_000, "nodes.csv", lambda n: _rows(n, lambda k: f"{k};[{k},b,c]\n", "id;tags\n")),
    "free texts": (2_000, "nodes.csv", lambda n: _rows(n, lambda k: f"{k},some words {k} here\n", "id,note\n")),
    "ids that are not there": (5_000, "nodes.csv", lambda n: _rows(n, lambda k: f"A{k},{k}\n", "id,size\n")),
    "keys of JSON": (20_000, "b.json", lambda n: json.dumps({str(k): [k] for k in range(n)})),
    "one key of JSON again": (20_000, "b.json", lambda n: "{" + ",".join(['"a":[1]'] * n) + "}"),
    "deep JSON": (20_000, "b.json", lambda n: "[" * n),
    "deep XML": (20_000, "b.graphml", lambda n: "<a>" * n),
    "attributes of XML": (2_000, "b.graphml", lambda n: "<a " + " ".join(f'b{k}="1"' for k in range(n)) + "/>"),
    "nodes of GML": (500, "b.gml", lambda n: "graph [\n" + "".join(f"node [ id {k} ]\n" for k in range(n)) + "]\n"),
    "one node of GML again": (500, "b.gml", lambda n: "graph [\n" + "node [ id 1 ]\n" * n + "]\n"),
    "deep GML": (5_000, "b.gml", lambda n: "graph [\n" + "a [ " * n),
    "attributes of nodes": (200, "b.gml", lambda n: _attributes(n)),
    "NetworkX edges": (2_000, "b.edgelist", lambda n: "".join(f"{k} {k + 1} {{}}\n" for k in range(n))),
    "braces": (2_000, "b.edgelist", lambda n: "1 2 {}\n1 2 " + "{" * n + "}" * n + "\n"),
    "Matrix Market": (
        20_000,
        "b.mtx",
        lambda n: (
            f"%%MatrixMarket matrix coordinate pattern general\n{n} {n} {n}\n"
            + "".join(f"{k + 1} {n - k}\n" for k in range(n))
        ),
    ),
}
_GROWTH = 4


def _attributes(n: int) -> str:
    """Nodes that each have an attribute of their own."""
    nodes = "".join(f'node [ id {k} label "{k}" a{k} {k} ]\n' for k in range(n))
    return f"graph [\n{nodes}edge [ source 0 target 1 ]\n]\n"


@attack(
    "files that grow",
    "four times the file takes at most twelve times the time",
    len(_SHAPES),
    prepare=_ready,
    seconds=300.0,
)
def _grow(_: None, number: int, draw: random.Random, folder: Path) -> None:
    from pegfan import read_graph

    what, (size, name, make) = list(_SHAPES.items())[number % len(_SHAPES)]
    (folder / "edges.csv").write_text(_EDGES)
    beside = [folder / "edges.csv"] if name in ("nodes.csv", "b.json") else []

    def taken(count: int) -> float:
        (folder / name).write_text(make(count))
        before = time.process_time()
        require_documented(lambda path: read_graph(path, *beside, unknown="drop"), folder / name)
        return time.process_time() - before

    taken(size // 10)
    one, other = taken(size), taken(_GROWTH * size)
    if other > 0.5 + 3 * _GROWTH * one:
        raise Fault(f"{what}: {one:.2f} s for {size:,}, and {other:.2f} s for {_GROWTH} times as much")
