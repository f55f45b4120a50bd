"""Silently wrong: the same tables, written in many equivalent ways, are the same graph and get the same predictions.

What the graph must be is known from the tables themselves: who is joined to whom, labels and splits. What columns of
features become is the reader's business, but it must be the same for every way of writing.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from torture.campaign import Fault, attack

ODD = (
    *(
        "anna",
        "New York",
        " ben",
        "ben",
        "ben ",
        "a,b",
        "a;b",
        "a|b",
        "tab\there",
        'say "hi"',
        '"',
        "it's",
        "two\nlines",
    ),
    *(
        "#1",
        "# 2",
        "%3",
        "user#4",
        "Ωmega",
        "日本",
        "é",
        "1",
        "01",
        "001",
        "1.0",
        "1e0",
        "1e1",
        "10",
        "0x10",
        "16",
        "+7",
    ),
    *("-0", "NA", "nan", "null", "None", "true", "False", "2020-01-01", "12:30", "[1]", "{}", "\\", "--", "?", "a=b"),
)
"""Ids that some reader somewhere takes for something else."""
CLASSES = (("red", "green", "café, noir"), ("0", "1", "2"), ("3", "7", "11"), ("01", "1", "1e0"), ("yes", "no"))


@dataclass(frozen=True)
class Tables:
    """A table of nodes and one of edges; every cell as a Python value, None where there is none."""

    nodes: Mapping[str, list[Any]]
    edges: Mapping[str, list[Any]]
    directed: bool

    @property
    def ids(self) -> list[Any]:
        """Whole numbers or texts."""
        return self.nodes["id"]

    @property
    def counted(self) -> bool:
        """Whether the ids are 0, 1, ... in order."""
        return self.ids == list(range(len(self.ids)))

    @property
    def plain(self) -> bool:
        """Whether edges have a weight at most."""
        return set(self.edges) <= {"source", "target", "weight"}

    def renamed(self, names: Mapping[Any, Any]) -> Tables:
        """The same with other ids."""
        nodes = {**self.nodes, "id": [names[name] for name in self.ids]}
        ends = {end: [names[name] for name in self.edges[end]] for end in ("source", "target")}
        return replace(self, nodes=nodes, edges={**self.edges, **ends})

    def moved(self, draw: random.Random) -> Tables:
        """The same with rows and columns in another order."""
        return replace(self, nodes=_shuffled(self.nodes, draw), edges=_shuffled(self.edges, draw))


def _shuffled(table: Mapping[str, list[Any]], draw: random.Random) -> dict[str, list[Any]]:
    names, rows = list(table), list(range(len(next(iter(table.values())))))
    draw.shuffle(names)
    draw.shuffle(rows)
    return {name: [table[name][row] for row in rows] for name in names}


# ------------------------------------------------------------------ tables


def draw_ids(draw: random.Random, n: int, kind: str) -> list[Any]:
    """Distinct ids of a kind."""
    if kind == "counted":
        return list(range(n))
    if kind == "numbers":
        return draw.sample(range(-5, 10 * n), n)
    if kind == "padded":
        return [f"{number:04d}" for number in draw.sample(range(1, 10 * n), n)]
    if kind == "names":
        return [f"v{number}" for number in draw.sample(range(10 * n), n)]
    if kind == "marked":  # such as nobody puts into quotes
        return [f"{draw.choice(('#', '%', '', '', 'u#'))}{number}" for number in draw.sample(range(10 * n), n)]
    some = draw.sample(ODD, min(n - 1, len(ODD), draw.randint(1, n)))
    return [*some, *(f"v{number}" for number in range(n - len(some)))]


KINDS = ("counted", "numbers", "padded", "marked", "odd", "odd")


def draw_tables(
    draw: random.Random, kind: str | None = None, n: int | None = None, events: bool | None = None
) -> Tables:
    """Tables of a size that a person could look through."""
    n = draw.randint(8, 30) if n is None else n
    ids = draw_ids(draw, n, kind or draw.choice(KINDS))
    draw.shuffle(ids) if ids != list(range(n)) else None

    def gaps(values: list[Any], share: float) -> list[Any]:
        return [None if draw.random() < share else value for value in values]

    classes = draw.choice(CLASSES)
    towns = draw.choice((("Rome", "Oslo", "São Paulo", "a, b", "#9"), ("Rome", "Oslo", "#9")))
    share = draw.choice((0.0, 0.2))
    nodes: dict[str, list[Any]] = {
        "id": ids,
        "x": [round(draw.gauss(0, 1), 6) for _ in range(n)],
        "age": gaps([draw.randint(18, 90) for _ in range(n)], share),
        "town": gaps([draw.choice(towns) for _ in range(n)], share),
        "joined": gaps(
            [f"20{draw.randint(10, 24)}-0{draw.randint(1, 9)}-{draw.randint(10, 28)}" for _ in range(n)], share
        ),
        "label": gaps([classes[i % len(classes)] for i in range(n)], share),
    }
    if draw.random() < 0.5:
        del nodes["joined"]
    if draw.random() < 0.3:
        nodes["tags"] = [draw.sample(("red", "blue", "x1", "a b"), draw.randint(0, 3)) for _ in range(n)]
        nodes["tags"][0] = ["red", "x1"]
    if draw.random() < 0.5:
        nodes["split"] = [draw.choice(("train", "val", "test", None)) for _ in range(n)]
        nodes["split"][0] = "train"
    elif draw.random() < 0.5:
        where = [draw.choice(("train", "val", "test", None)) for _ in range(n)]
        nodes |= {f"{part}_mask": [one == part for one in where] for part in ("train", "val", "test")}
    m = draw.randint(n, 3 * n)
    edges: dict[str, list[Any]] = {"source": draw.choices(ids, k=m), "target": draw.choices(ids, k=m)}
    if draw.random() < 0.5:
        edges["weight"] = [draw.randint(1, 40) / 4 for _ in range(m)]
    if events or (events is None and draw.random() < 0.3):
        edges["amount"] = [round(draw.lognormvariate(3, 1), 2) for _ in range(m)]
        edges["channel"] = [draw.choice(("web", "shop, town")) for _ in range(m)]
    return Tables(nodes, edges, directed=draw.random() < 0.5)


# ------------------------------------------------------------------ ways of writing


Way = Callable[[Tables, Path, random.Random], list[Path]]
"""Writes tables to a folder, and returns the files."""


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return f"[{'|'.join(value)}]"
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)


def write_text(tables: Tables, folder: Path, draw: random.Random) -> list[Path]:
    """Text files, each with a delimiter, quotes and line ends of its own; lists in a column or as JSON by id."""
    paths, nodes = [], dict(tables.nodes)
    if "tags" in nodes and draw.random() < 0.5:
        lists = zip(map(str, tables.ids), nodes.pop("tags"), strict=True)
        paths.append(folder / "tags.json")
        paths[0].write_text(json.dumps({name: tags for name, tags in lists if tags}), encoding="utf-8")
    for name, table in (("nodes", nodes), ("edges", tables.edges)):
        lines = any("\n" in str(cell) for column in table.values() for cell in column)
        mark = draw.choice(",,;\t|" if lines else ",,;\t| ")
        quoting = draw.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC))
        quoting = csv.QUOTE_ALL if mark == " " else quoting
        text = io.StringIO()
        end = draw.choice(("\n", "\r\n"))
        writer = csv.writer(text, delimiter=mark, quoting=quoting, lineterminator=end)
        writer.writerow(list(table))
        for row in zip(*table.values(), strict=True):
            writer.writerow([value if isinstance(value, int | float) else _cell(value) for value in row])
        content = text.getvalue()
        if draw.random() < 0.2:
            content = f"# made by hand{end}% on a Monday{end}{content}"
        if draw.random() < 0.2:
            content = content.removesuffix(end)
        data = content.encode("utf-8-sig" if draw.random() < 0.2 else "utf-8")
        suffix = draw.choice((".csv", ".txt", ".tsv" if mark == "\t" else ".csv"))
        packed = draw.random() < 0.3
        path = folder / f"{name}{suffix}{'.gz' if packed else ''}"
        path.write_bytes(gzip.compress(data, 1) if packed else data)
        paths.append(path)
    return paths


def _frame(table: Mapping[str, list[Any]]) -> Any:
    import pandas as pd

    kinds = {"age": "Int64", "x": "float64", "weight": "float64", "amount": "float64"}
    return pd.DataFrame({name: pd.Series(column, dtype=kinds.get(name)) for name, column in table.items()})


def write_parquet(tables: Tables, folder: Path, draw: random.Random) -> list[Path]:
    """Parquet, texts as they are or as dictionaries, in row groups of any size."""
    paths = [folder / "nodes.parquet", folder / "edges.pq"]
    for path, table in zip(paths, (tables.nodes, tables.edges), strict=True):
        frame = _frame(table)
        texts = [name for name in frame.columns if name in ("town", "channel", "label")]
        frame = frame.astype(dict.fromkeys(texts, "category")) if draw.random() < 0.3 else frame
        frame.to_parquet(path, index=False, row_group_size=draw.choice((3, 10, 1000)))
    return paths


def write_mixed(tables: Tables, folder: Path, draw: random.Random) -> list[Path]:
    """Nodes as the one, edges as the other."""
    one, other = write_text(tables, folder, draw), write_parquet(tables, folder, draw)
    return [*one[:-1], other[1]] if draw.random() < 0.5 else [other[0], one[-1]]


def write_networkx(tables: Tables, folder: Path, draw: random.Random) -> list[Path]:
    """GraphML or GML."""
    import networkx as nx

    graph = (nx.DiGraph if tables.directed else nx.Graph)()
    for k, name in enumerate(tables.ids):
        cells = {column: values[k] for column, values in tables.nodes.items() if column != "id"}
        cells |= {"tags": _cell(cells["tags"])} if "tags" in cells else {}  # which GraphML does not hold
        graph.add_node(name, **{column: value for column, value in cells.items() if value is not None})
    weights = tables.edges.get("weight", [1.0] * len(tables.edges["source"]))
    for source, target, weight in zip(tables.edges["source"], tables.edges["target"], weights, strict=True):
        known = graph.edges[source, target]["weight"] if graph.has_edge(source, target) else 0.0
        graph.add_edge(source, target, weight=max(weight, known))
    path = folder / "graph.graphml"
    nx.write_graphml(graph, path)
    if draw.random() < 0.3:
        packed = path.with_suffix(".graphml.gz")
        packed.write_bytes(gzip.compress(path.read_bytes(), 1))
        path = packed
    return [path]


def _arrays(tables: Tables) -> tuple[Any, dict[str, Any]]:
    """The graph of the tables, and its arrays."""
    graph = reference(tables)
    arrays = {"edge_index": np.array(graph.adjacency.nonzero()), "x": _dense(graph.features), "y": graph.labels}
    if graph.splits:
        for part, nodes in graph.splits[0]._asdict().items():
            arrays[f"{part}_mask"] = np.isin(np.arange(graph.n), nodes)
    return graph, arrays


def write_npz(tables: Tables, folder: Path, draw: random.Random) -> list[Path]:
    """NumPy's arrays."""
    graph, arrays = _arrays(tables)
    path = folder / "graph.npz"
    np.savez(path, feature_names=np.array(graph.feature_names), **arrays)
    return [path]


def write_pt(tables: Tables, folder: Path, draw: random.Random) -> list[Path]:
    """PyG's data; it names no columns."""
    import torch
    from torch_geometric.data import Data

    _, arrays = _arrays(tables)
    path = folder / "graph.pt"
    torch.save(Data(**{name: torch.tensor(array) for name, array in arrays.items()}), path)
    return [path]


_ARRAYS = (write_npz, write_pt)
"""Of nodes by their place, and classes by their numbers."""


def ways_of(tables: Tables) -> list[Way]:
    """The ways of writing that can carry all that these tables say."""
    ways: list[Way] = [write_text, write_text, write_parquet, write_mixed]
    if tables.plain:
        ways.append(write_networkx)
    if tables.plain and "weight" not in tables.edges and tables.counted:
        ways += _ARRAYS
    return ways


# ------------------------------------------------------------------ what must be so


def reference(tables: Tables) -> Any:
    """What the reader makes of the tables in memory."""
    from pegfan.datasets import graph_from_tables

    return graph_from_tables(_frame(tables.nodes), _frame(tables.edges), id="id", directed=tables.directed)


def _dense(features: Any) -> Any:
    return features.toarray() if hasattr(features, "toarray") else np.asarray(features)


def by_id(graph: Any, named: bool = True) -> dict[str, Any]:
    """All that a graph says, by the ids of its nodes as texts."""
    ids = [str(name) for name in graph.ids.tolist()]
    said: dict[str, Any] = {"nodes": sorted(ids), "directed": graph.directed}
    for name, matrix in {"adjacency": graph.adjacency, **graph.edge_matrices}.items():
        arcs = matrix.tocoo()
        said[name] = {(ids[i], ids[j]): float(w) for i, j, w in zip(*arcs.coords, arcs.data, strict=True)}
    classes = [str(name) for name in graph.classes.tolist()] if named else list(map(str, range(graph.n_classes)))
    said["labels"] = {ids[i]: classes[k] for i, k in enumerate(graph.labels.tolist()) if k >= 0}
    said["splits"] = [
        {part: sorted(ids[i] for i in nodes) for part, nodes in s._asdict().items()} for s in graph.splits
    ]
    columns = _dense(graph.features).T if graph.features is not None else []
    names = graph.feature_names or [f"column {k}" for k in range(len(columns))]
    said["features"] = {
        (name, ids[i]): float(value)
        for name, column in zip(names, columns, strict=True)
        for i, value in enumerate(column)
    }
    return said


def truth(tables: Tables) -> dict[str, Any]:
    """What the tables say, without any reader."""
    ids = list(map(str, tables.ids))
    arcs: dict[tuple[str, str], float] = {}
    weights = tables.edges.get("weight", [1.0] * len(tables.edges["source"]))
    for source, target, weight in zip(tables.edges["source"], tables.edges["target"], weights, strict=True):
        for pair in {(str(source), str(target))} | (set() if tables.directed else {(str(target), str(source))}):
            arcs[pair] = max(weight, arcs.get(pair, 0.0))
    labels = {name: label for name, label in zip(ids, tables.nodes["label"], strict=True) if label is not None}
    parts: list[dict[str, list[str]]] = []
    if "split" in tables.nodes:
        words = tables.nodes["split"]
        parts = [{part: sorted(n for n, w in zip(ids, words, strict=True) if w == part) for part in _PARTS}]
    elif "train_mask" in tables.nodes:
        masks = {part: tables.nodes[f"{part}_mask"] for part in _PARTS}
        parts = [{part: sorted(n for n, w in zip(ids, mask, strict=True) if w) for part, mask in masks.items()}]
    return {"nodes": sorted(ids), "directed": tables.directed, "adjacency": arcs, "labels": labels, "splits": parts}


_PARTS = ("train", "val", "test")


def differences(said: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    """What of the expected is said otherwise; numbers may differ by the rounding of sums in another order."""
    found = []
    for what, wanted in expected.items():
        own = said.get(what)
        if isinstance(wanted, dict) and isinstance(own, dict):
            if own.keys() != wanted.keys():
                odd = sorted(map(str, own.keys() ^ wanted.keys()))
                found.append(f"{what}: {odd[:3]} only on one side, of {len(odd)}")
                continue
            wrong = [key for key, value in wanted.items() if not _same(own[key], value)]
            found += [f"{what} of {key!r}: {own[key]!r} for {wanted[key]!r}" for key in wrong[:1]]
        elif own != wanted:
            found.append(f"{what}: {str(own)[:200]} for {str(wanted)[:200]}")
    return found


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 1e-9 * max(1.0, abs(other))
    return bool(one == other)


def check_reading(tables: Tables, draw: random.Random, folder: Path, times: int = 2) -> None:
    """Write tables in some ways, read them, and compare."""
    graph = reference(tables)
    expected = {**by_id(graph), **truth(tables)}
    codes = by_id(graph, named=False)["labels"]
    for time in range(times):
        (folder / str(time)).mkdir()
        way = draw.choice(ways_of(tables))
        said, names = _read_back(tables, way, draw, folder / str(time))
        own = expected
        if way in _ARRAYS:
            own = {**expected, "labels": codes}
        if way is write_pt:  # which names no columns
            columns = dict.fromkeys(column for column, _ in expected["features"])
            place = {column: f"column {k}" for k, column in enumerate(columns)}
            own["features"] = {(place[column], name): x for (column, name), x in expected["features"].items()}
        wrong = differences(said, own)
        if wrong:
            raise Fault(f"{way.__name__} ({names}): {'; '.join(wrong)}")


def _read_back(tables: Tables, way: Way, draw: random.Random, folder: Path) -> tuple[dict[str, Any], str]:
    """What files of tables say, by the ids of the tables; rows, columns and ids are changed on the way."""
    from pegfan.datasets import read_graph

    back, own = {str(name): str(name) for name in tables.ids}, tables
    if way not in _ARRAYS:
        if draw.random() < 0.3:
            kind = draw.choice(("names", "odd", "padded", "marked"))
            names = dict(zip(tables.ids, draw_ids(draw, len(tables.ids), kind), strict=True))
            own, back = tables.renamed(names), {str(new): str(old) for old, new in names.items()}
        own = own.moved(draw)
    paths = way(own, folder, draw)
    draw.shuffle(paths)
    graph = _with_names(read_graph(*paths, directed=tables.directed), back)
    return by_id(graph, named=way not in _ARRAYS), ", ".join(path.name for path in paths)


def _with_names(graph: Any, back: Mapping[str, str]) -> Any:
    strange = [name for name in map(str, graph.ids.tolist()) if name not in back]
    if strange:
        raise Fault(f"an id that nobody wrote: {strange[0]!r}")
    return graph.replace(node_names=[back[str(name)] for name in graph.ids.tolist()])


def _import(place: Path) -> None:
    """What takes long to import is imported before a try is timed."""
    import networkx  # noqa: F401
    import torch_geometric.data  # noqa: F401


@attack(
    "oracle: equivalent tables, read",
    "a table written in two equivalent ways (order, quotes, delimiters, gz, Parquet, GraphML, npz, PyG, other ids) is "
    "the same graph by id",
    2000,
    prepare=_import,
    seconds=60,
)
def equivalent_tables(state: None, number: int, draw: random.Random, folder: Path) -> None:
    check_reading(draw_tables(draw), draw, folder)


# ------------------------------------------------------------------ predictions


def _train(place: Path) -> list[tuple[Tables, Path, dict[str, dict[str, str]]]]:
    """Tables, a model that was trained on them by the command, and what it predicts of them as they are."""
    found = []
    for kind in ("counted", "numbers", "odd"):
        draw = random.Random(f"predictions {kind}")
        tables = draw_tables(draw, kind, n=80, events=kind == "numbers")
        tables = replace(tables, nodes={k: v for k, v in tables.nodes.items() if k != "split" and "mask" not in k})
        folder = place / kind
        if not (folder / "out" / "result.json").exists():
            (folder / "files").mkdir(parents=True, exist_ok=True)
            paths = [folder / "files" / "nodes.csv", folder / "files" / "edges.csv"]
            for path, table in zip(paths, (tables.nodes, tables.edges), strict=True):
                _frame(table).to_csv(path, index=False)
            settings = [
                "--set",
                "epochs=20",
                "--set",
                "hidden=8",
                "--workers",
                "1",
                "--splits",
                "1",
                "--label-kind",
                "classes",
            ]
            way = [
                "--directed" if tables.directed else "--undirected",
                "--set",
                "labels=true",
                "--set",
                "adjacency=true",
            ]
            _command(
                "train", *paths, "-o", folder / "out", "--budget", "4", "--force", "--label", "label", *way, *settings
            )
            _command("predict", folder / "out", *paths, "-o", folder / "predictions.csv", "--force")
        found.append((tables, folder / "out", _rows(folder / "predictions.csv")))
    return found


def _command(*words: Any) -> str:
    from typer.testing import CliRunner

    from pegfan.cli import app

    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exit_code:
        raise Fault(f"pegfan {words[0]} ended with {result.exit_code}: {' '.join(result.output.split())[:500]}")
    return result.stdout


def _rows(path: Path) -> dict[str, dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


@attack(
    "oracle: equivalent tables, predicted",
    "predictions for a table written in any equivalent way are the same by id, bit for bit, and so is the split column",
    300,
    prepare=_train,
    seconds=60,
)
def equivalent_predictions(state: Any, number: int, draw: random.Random, folder: Path) -> None:
    tables, model, expected = draw.choice(state)
    way = draw.choice([way for way in ways_of(tables) if way not in _ARRAYS])
    paths = way(tables.moved(draw), folder, draw)
    draw.shuffle(paths)
    told = json.loads(_command("predict", model, *paths, "-o", folder / "p.csv", "--json"))
    found = _rows(folder / "p.csv")
    if found != expected:
        wrong = [name for name in expected if found.get(name) != expected[name]]
        name = wrong[0] if wrong else min(found.keys() - expected.keys())
        raise Fault(
            f"{way.__name__}: {len(wrong)} of {len(expected)} rows differ, such as {name!r}: {found.get(name)} for "
            f"{expected.get(name)}; notes {told['notes']}"
        )
