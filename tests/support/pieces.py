"""Graphs cut into pieces by hand, so that what reads pieces can be tested without what makes them."""

import json
from itertools import pairwise

import numpy as np

import pegfan as pf
from pegfan.large.arcs import narrow
from pegfan.large.channels import GraphPieces
from pegfan.large.pieces import Made, example
from pegfan.trees import canonical_order


def stage_of(work, name, pieces):
    """A stage whose pieces, pairs of arrays by name and a result, are there already."""
    stage = work.stage(example, {"name": name, "power": 0}, count=len(pieces))
    for block, (arrays, result) in enumerate(pieces):
        folder = Made.path(stage, "", block)
        folder.mkdir(parents=True, exist_ok=True)
        for key, array in arrays.items():
            if isinstance(array, pf.Hierarchy):
                array.save(folder / f"{key}.npz")
            else:
                np.save(folder / f"{key}.npy", array)
        files = {path.name: path.stat().st_size for path in folder.iterdir() if path.name != "done.json"}
        (folder / "done.json").write_text(json.dumps({"result": result, "files": files}))
    return stage


def arc_blocks(work, name, matrix, bounds):
    """A matrix as arc blocks."""
    pieces = []
    for start, stop in pairwise(bounds):
        part = matrix[start:stop].sorted_indices()
        arrays = {"pointers": part.indptr.astype(np.int32), "columns": part.indices.astype(np.int32)}
        weights = narrow(part.data)
        arrays |= {} if weights is None else {"weights": weights}
        loops = int(part.diagonal(start).sum() != 0)
        about = {"start": start, "stop": stop, "arcs": part.nnz, "loops": loops, "largest": 1.0}
        pieces.append((arrays, about))
    return stage_of(work, name, pieces)


def graph_pieces(work, graph, tree=None, blocks=2, slabs=2):
    """A graph in memory as pieces on disk; blocks and slabs say how it is cut."""
    n, columns = graph.features.shape
    cuts = np.unique(np.linspace(0, columns, slabs + 1).astype(int)).tolist()
    x = np.asarray(graph.features)
    features = stage_of(
        work,
        "features",
        [({"values": np.ascontiguousarray(x[:, a:b])}, {"start": a, "stop": b}) for a, b in pairwise(cuts)],
    )
    found = canonical_order(graph)
    about = {"tied": int(found.tied), "arbitrary": int(found.arbitrary)}
    order = stage_of(work, "order", [({"order": found.order, "classes": found.classes}, about)])
    bounds = np.unique(np.linspace(0, n, blocks + 1).astype(int)).tolist()

    def arcs(stage, turned):
        order = stage.load("order")
        matrix = graph.adjacency.T.tocsr() if turned else graph.adjacency
        return arc_blocks(work, f"arcs {stage.key} {turned}", matrix[order][:, order], bounds)

    def tree_of(recipe):
        made = tree if tree is not None and recipe.max_levels is None else recipe.build_tree(graph)
        return stage_of(work, f"tree {recipe.tree_key}", [({"tree": made}, {})])

    return GraphPieces(n, columns, graph.directed, features, order, arcs, tree_of)
