"""Digests of what must keep its bits: trees, coefficients, channels, trained weights and predictions.

    python tools/digests.py > digests.txt            200 random graphs, about a minute
    PEGFAN_DATA=folder python tools/digests.py > …   and the real graphs that are there

Run it with the code before a change and with the code after it, on one machine, and compare the two files with diff:
``PYTHONPATH=/old/src python tools/digests.py``. Only public names are used, so that it runs with either.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import pegfan as pf

NINE = ("cora", "citeseer", "pubmed", "texas", "wisconsin", "cornell", "actor", "chameleon", "squirrel")


def digest(*values: Any) -> str:
    """12 hex digits of arrays, sparse matrices (by row, column and value) and whatever has a repr."""
    state = hashlib.sha256()
    for value in values:
        if sparse.issparse(value):
            entries = value.tocoo()
            order = np.lexsort((entries.coords[1], entries.coords[0]))
            array = np.column_stack([*(part[order].astype(np.float64) for part in (*entries.coords, entries.data))])
        else:
            array = np.asarray(value)
        state.update(repr((array.shape, array.dtype.kind)).encode())
        state.update(repr(value).encode() if array.dtype == object else np.ascontiguousarray(array).tobytes())
    return state.hexdigest()[:12]


def random_graphs(count: int = 200) -> Iterator[tuple[str, pf.Graph]]:
    """Small graphs of many kinds: directed, weighted, with twins, isolated nodes, sparse or no useful features."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        n, classes = int(rng.integers(8, 90)), int(rng.integers(2, 5))
        edges = rng.integers(0, n, (int(rng.integers(n // 2, 4 * n)), 2))
        edges = edges[edges[:, 0] != edges[:, 1]]
        features = rng.standard_normal((n, int(rng.integers(2, 9)))) if seed % 3 else rng.integers(0, 2, (n, 6)) * 1.0
        if seed % 4 == 0:
            features = sparse.csr_array(features * (rng.random(features.shape) < 0.4))
        labels = np.arange(n) % classes
        weights = rng.integers(1, 4, len(edges)) * 0.5 if seed % 5 == 0 else None
        parts = np.array_split(rng.permutation(n), 3)
        options: dict[str, Any] = {"directed": bool(seed % 2)} | ({} if weights is None else {"weights": weights})
        graph = pf.Graph.from_edges(edges, n=n, **options)
        yield f"random {seed}", graph.replace(features=features, labels=labels, splits=[tuple(map(np.sort, parts))])


def real_graphs(root: Path) -> Iterator[tuple[str, pf.Graph]]:
    """The nine sets, and the graphs of ``graphs`` with labels for all or -1."""
    for name in NINE:
        yield name, pf.datasets.load(name, root=root, offline=True)
    for path in sorted((root / "graphs").glob("*.npz")):
        yield path.stem, pf.read_graph(path)


def trees_of(graph: pf.Graph) -> Iterator[tuple[str, pf.Hierarchy]]:
    """Every builder that suits the size."""
    for method in ("ward", "adjacency", "matching"):
        if method == "matching" or graph.n <= 12_000:
            for h in (4, 8):
                yield f"{method} {h}", pf.build_tree(graph, method, h)


RECIPES: dict[str, dict[str, Any]] = {
    "c": {"method": "ward", "h": 4, "regime": "heterophily"},
    "b both": {
        "method": "adjacency",
        "h": 8,
        "kind": "b",
        "regime": "homophily",
        "direction": "both",
        "adjacency": True,
    },
    "hops": {"method": "none", "regime": "all", "labels": True, "structure": True, "scaling": "columns"},
    "boosting": {
        "method": "none",
        "regime": "homophily",
        "hops": 1,
        "labels": True,
        "head": "boosting",
        "scaling": "none",
    },
    "linear": {"method": "none", "regime": "heterophily", "hops": 2, "head": "linear", "scaling": "columns"},
}


def models_of(graph: pf.Graph, epochs: int) -> Iterator[tuple[str, str]]:
    """Digests of predictions of models after a few epochs."""
    for name, fields in RECIPES.items():
        recipe = pf.Recipe.of({**fields, "epochs": epochs})
        model = pf.RecipeClassifier(recipe).fit(graph, 0)
        state = getattr(model.run_, "state", None) or {}
        yield f"model {name}", digest(model.predict_proba(graph), *(np.asarray(state[key]) for key in sorted(state)))


def lines_of(name: str, graph: pf.Graph, small: bool) -> Iterator[str]:
    """All digests of a graph."""
    signal = np.random.default_rng(1).standard_normal((graph.n, 3))
    for what, tree in trees_of(graph):
        yield f"{name}: tree {what} {tree.digest} {digest(tree.order, *tree.parents)}"
        for filters in ("binary-haar", "haar-basis") if small else ("haar-basis",):
            system = pf.FrameletSystem(tree, filters)
            c = system.decompose(signal)
            yield f"{name}: {filters} {what} {digest(c.array, system.reconstruct(c), *system.projections(signal))}"
            if small and filters == "binary-haar":
                for kind in ("a", "b", "c", "as"):
                    channels = pf.make_channels(graph, system, kind, "heterophily", direction="both")
                    yield f"{name}: channels {kind} {what} {digest(*channels.materialize())}"
    if graph.n <= 12_000:
        for what, value in models_of(graph, 10 if small else 5):
            yield f"{name}: {what} {value}"


def main() -> None:
    """Print a line for each."""
    for name, graph in random_graphs():
        for line in lines_of(name, graph, small=True):
            print(line, flush=True)
    if "PEGFAN_DATA" in os.environ:
        for name, graph in real_graphs(Path(os.environ["PEGFAN_DATA"])):
            print(f"digests of {name}", file=sys.stderr, flush=True)
            for line in lines_of(name, graph, small=False):
                print(line, flush=True)


if __name__ == "__main__":
    main()
