"""Figures: what is drawn where, and with which names."""

import importlib
import itertools
import subprocess
import sys
from io import BytesIO

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from scipy.cluster.hierarchy import linkage

import pegfan as pf
from pegfan import layouts, plots
from pegfan.plots import _drawing, _frames

BINARY = pf.Hierarchy.from_nested([[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
MIXED = pf.Hierarchy.from_nested([[0, 1, 2], [[3, 4], [5]], [6, 7]])


def path_graph(n, order=None):
    order = np.arange(n) if order is None else np.asarray(order)
    return pf.Graph.from_edges(np.column_stack([order[:-1], order[1:]]), n=n)


def plane_graph(n=30, seed=0):
    positions = np.random.default_rng(seed).random((n, 2))
    distance = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    return pf.Graph.from_edges(np.argwhere(np.triu(distance < 0.3, 1)), n=n, positions=positions)


def plane_tree(graph):
    return pf.Hierarchy.from_linkage(linkage(graph.positions, "ward"), sizes=[4, 12])


def png(figure):
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=40)
    return buffer.getvalue()


def nodes_of(ax):
    """The last collection of a graph's axes are its nodes."""
    return ax.collections[-1]


def stems_of(ax):
    """Base points and heights of the stems, from left to right."""
    segments = np.concatenate([c.get_segments() for c in ax.collections if c.get_gid() == "stems" and c.get_segments()])
    assert np.array_equal(segments[:, 0, 0], segments[:, 1, 0]), "stems are vertical"
    order = np.argsort(segments[:, 0, 0])
    return segments[order, 0], (segments[:, 1, 1] - segments[:, 0, 1])[order]


def titles(axes):
    return [ax.get_title() for ax in axes]


# ------------------------------------------------------------------------- trees


def test_tree_names_levels_and_leaves():
    tree = pf.Hierarchy.from_nested([[3, 1], [0, 2]])
    ax = plots.tree(tree)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["level 1", "level 2", "level 3"]
    assert [t.get_text() for t in ax.get_xticklabels()] == ["3", "1", "0", "2"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the root is on top"


def test_tree_joins_every_cluster_to_its_parent():
    ax = plots.tree(BINARY)
    segments = {
        tuple(map(tuple, segment)) for c in ax.collections if hasattr(c, "get_segments") for segment in c.get_segments()
    }
    expected = {((3.5, 1.0), (1.5, 2.0)), ((3.5, 1.0), (5.5, 2.0))}
    expected |= {((1.5 + 4 * (i // 2), 2.0), (0.5 + 2 * i, 3.0)) for i in range(4)}
    expected |= {((0.5 + 2 * (i // 2), 3.0), (float(i), 4.0)) for i in range(8)}
    assert segments == expected


def test_tree_highlights_a_subtree():
    ax = plots.tree(BINARY, highlight=(1, 2))
    accent = to_rgba(_drawing.VERMILION)
    dots = [c for c in ax.collections if not hasattr(c, "get_segments")]
    painted = sorted(
        (float(level), float(x))
        for c in dots
        for (x, level), colour in zip(c.get_offsets(), c.get_facecolors(), strict=True)
        if tuple(colour) == accent
    )
    assert painted == [(2, 5.5), (3, 4.5), (3, 6.5), (4, 4), (4, 5), (4, 6), (4, 7)]
    lines = [c for c in ax.collections if hasattr(c, "get_segments")]
    assert sum(int((c.get_colors() == accent).all(axis=1).sum()) for c in lines) == 6


def test_tree_takes_names_by_node_and_none():
    tree = pf.Hierarchy.from_nested([[2, 0], [1]])
    named = plots.tree(tree, labels=["a", "b", "c"])
    assert [t.get_text() for t in named.get_xticklabels()] == ["c", "a", "b"]
    assert len(plots.tree(tree, labels=False).get_xticks()) == 0
    with pytest.raises(ValueError, match="2 labels given for 3 nodes"):
        plots.tree(tree, labels=["a", "b"])


def test_a_large_tree_counts_its_clusters_instead_of_naming_its_leaves():
    tree = pf.Hierarchy.from_labels([np.arange(20_000) // 4**k for k in range(7)])
    ax = plots.tree(tree)
    assert len(ax.get_xticks()) == 0
    assert ax.get_yticklabels()[-1].get_text() == f"level {tree.K}  (20,000)"
    assert png(ax.figure).startswith(b"\x89PNG")


@pytest.mark.parametrize("nested", [[[[[0]]]], [0, 1], [[[0], [1]]]], ids=["chain", "pair", "late"])
def test_narrow_trees(nested):
    ax = plots.tree(pf.Hierarchy.from_nested(nested))
    assert len(ax.get_yticks()) == pf.Hierarchy.from_nested(nested).K
    assert png(ax.figure)


def test_a_tree_of_one_node():
    ax = plots.tree(pf.Hierarchy([]), highlight=(1,))
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0"]
    assert png(ax.figure)


def test_a_deep_tree_names_some_levels():
    tree = pf.Hierarchy([np.zeros(1, int)] * 99)
    assert len(plots.tree(tree).get_yticks()) == 20


def test_trees_draw_where_they_are_told():
    ax = Figure().subplots()
    assert plots.tree(BINARY, ax=ax) is ax
    assert BINARY.draw(ax=ax, labels=False) is ax


# ----------------------------------------------------------------------- signals


@pytest.mark.parametrize(
    ("values", "limits"),
    [
        ([1.0, -2.0, 0.0], (-2.0, 2.0)),
        ([1.0, 2.0, 5.0], (1.0, 5.0)),
        ([0.0, 0.0, 0.0], (-1.0, 1.0)),
        ([3.0, 3.0, 3.0], (0.0, 3.0)),
        ([-3.0, -3.0, -3.0], (-3.0, 0.0)),
    ],
)
def test_colour_limits(values, limits):
    nodes = nodes_of(plots.signal(path_graph(3), values))
    assert nodes.get_clim() == limits
    assert nodes.get_array().tolist() == values
    diverging = limits[0] < 0 < limits[1]
    assert (nodes.get_cmap() == _drawing.DIVERGING) == diverging


def test_signal_options():
    ax = plots.signal(
        path_graph(3), [0.0, 1.0, 9.0], limits=(0, 2), cmap="magma", title="heat", node_size=4, colorbar=False
    )
    nodes = nodes_of(ax)
    assert (nodes.get_clim(), nodes.get_cmap().name, ax.get_title(), nodes.get_sizes().tolist()) == (
        (0, 2),
        "magma",
        "heat",
        [16.0],
    )
    assert len(ax.figure.axes) == 1
    assert len(plots.signal(path_graph(3), [0.0, 1.0, 9.0]).figure.axes) == 2, "a colour bar"


def test_positions_come_from_the_caller_then_from_the_graph():
    graph = plane_graph(5)
    f = np.arange(5.0)
    given = np.random.default_rng(1).random((5, 2))
    assert np.array_equal(nodes_of(plots.signal(graph, f)).get_offsets(), graph.positions)
    assert np.array_equal(nodes_of(plots.signal(graph, f, given)).get_offsets(), given)
    solid = graph.replace(positions=np.column_stack([given, np.ones(5)]))
    assert np.array_equal(nodes_of(plots.signal(solid, f)).get_offsets(), given)
    line = nodes_of(plots.signal(graph, f, [4.0, 3.0, 2.0, 1.0, 0.0])).get_offsets()
    assert np.array_equal(line, [[4, 0], [3, 0], [2, 0], [1, 0], [0, 0]])


def test_edges_are_drawn_between_their_nodes():
    graph = plane_graph(8)
    lines = plots.signal(graph, np.zeros(8)).collections[0]
    assert np.array_equal(np.array(lines.get_segments()), graph.positions[graph.edges()[0]])


@pytest.mark.parametrize(
    ("values", "positions", "message"),
    [
        ([1.0, 2.0], None, r"shape \(2,\), the graph 3 nodes; give one number per node"),
        (np.ones((3, 2)), None, "choose one column"),
        ([1.0, np.nan, 2.0], None, "at node 1 is nan"),
        (["a", "b", "c"], None, "one number per node"),
        (np.ones(3), np.ones((2, 2)), r"positions have shape \(2, 2\); give one row \(x, y\) per node, shape \(3, 2\)"),
        (np.ones(3), [[0, 0], [1, np.inf], [2, 0]], r"positions\[1\] is \[1.0, inf\]"),
        (np.ones(3), {"a": 1}, "positions must be numbers"),
    ],
)
def test_signal_errors(values, positions, message):
    with pytest.raises(ValueError, match=message):
        plots.signal(path_graph(3), values, positions)


def test_wrong_types_are_named():
    with pytest.raises(TypeError, match=r"must be a pegfan\.Graph, got numpy\.ndarray"):
        plots.signal(np.eye(3), np.ones(3))
    with pytest.raises(TypeError, match=r"must be a pegfan\.FrameletSystem, got Hierarchy"):
        plots.framelets(path_graph(8), BINARY)
    with pytest.raises(ValueError, match="has 8 nodes, the graph 5"):
        plots.framelets(path_graph(5), pf.FrameletSystem(BINARY))


def test_several_signals_share_one_scale():
    graph = plane_graph(12)
    panels = {f"signal {i}": np.full(12, float(i)) for i in range(5)}
    figure = plots.signals(graph, panels)
    *axes, bar = figure.axes
    assert titles(axes) == list(panels)
    assert {nodes_of(ax).get_clim() for ax in axes} == {(0.0, 4.0)}
    assert bar.get_ylim() == (0.0, 4.0)
    assert len({ax.get_subplotspec().rowspan.start for ax in axes}) == 2, "five panels are three and two"
    with pytest.raises(ValueError, match="no signals given"):
        plots.signals(graph, {})


def test_values_beyond_the_limits_point_the_colour_bar():
    graph = path_graph(3)
    assert nodes_of(plots.signal(graph, [0.0, 1.0, 9.0], limits=(0, 2))).colorbar.extend == "max"
    assert nodes_of(plots.signal(graph, [-5.0, 1.0, 9.0], limits=(0, 2))).colorbar.extend == "both"
    assert nodes_of(plots.signal(graph, [-5.0, 1.0, 2.0], limits=(0, 2))).colorbar.extend == "min"
    assert nodes_of(plots.signal(graph, [0.0, 1.0, 2.0])).colorbar.extend == "neither"


# ----------------------------------------------------------------------- layouts


def layout(graph):
    return np.asarray(nodes_of(plots.signal(graph, np.zeros(graph.n), colorbar=False)).get_offsets())


def test_a_path_lies_on_a_line_in_its_order():
    order = np.random.default_rng(3).permutation(12)
    xy = layout(path_graph(12, order))
    assert np.array_equal(xy[:, 1], np.zeros(12))
    along = np.argsort(xy[:, 0])
    assert along.tolist() in (order.tolist(), order[::-1].tolist())
    assert np.array_equal(np.sort(xy[:, 0]), np.arange(12))


def test_a_directed_path_with_a_loop_is_a_path():
    graph = pf.Graph.from_edges([[1, 0], [1, 2], [1, 1]], directed=True)
    assert np.ptp(layout(graph)[:, 1]) == 0


@pytest.mark.parametrize(
    "edges",
    [
        [[0, 1], [1, 2], [2, 0]],
        [[0, i] for i in range(1, 9)],
        [[i, j] for i in range(6) for j in range(i)],
        [[0, 1], [1, 2], [2, 3], [3, 0]],
    ],
    ids=["triangle", "star", "complete", "cycle"],
)
def test_layouts_part_all_nodes(edges):
    graph = pf.Graph.from_edges(edges)
    xy = layout(graph)
    distance = np.linalg.norm(xy[:, None] - xy[None], axis=2) + np.eye(graph.n)
    assert distance.min() > 0.05 * np.ptp(xy, axis=0).max()
    assert np.array_equal(xy, layout(graph)), "the same in every call"


@pytest.mark.parametrize("sizes", [(40, 6, 1, 1, 1), (9, 9, 9, 2), (1, 1)], ids=["crumbs", "equal", "no edges"])
def test_components_do_not_overlap(sizes):
    ends = np.cumsum((0, *sizes))
    rings = [[start + i, start + (i + 1) % size] for start, size in zip(ends, sizes, strict=False) for i in range(size)]
    xy = layout(pf.Graph.from_edges(rings))
    boxes = [(xy[a:b].min(axis=0), xy[a:b].max(axis=0)) for a, b in itertools.pairwise(ends)]
    for (low, high), (other_low, other_high) in itertools.combinations(boxes, 2):
        assert (high < other_low).any() or (low > other_high).any()


def test_small_components_lie_below_one_that_dominates():
    xy = layout(pf.Graph.from_edges([[i, (i + 1) % 40] for i in range(40)], n=43))
    assert xy[40:, 1].max() < xy[:40, 1].min()


def test_without_networkx_the_layout_is_spectral(monkeypatch):
    monkeypatch.setattr(layouts, "find_spec", lambda name: None)
    cycle = pf.Graph.from_edges([[i, (i + 1) % 10] for i in range(10)])
    xy = layout(cycle)
    assert np.isfinite(xy).all()
    radius = np.linalg.norm(xy - xy.mean(axis=0), axis=1)
    step = np.linalg.norm(xy - np.roll(xy, 1, axis=0), axis=1)
    assert radius.min() > 0.5
    assert step.max() < radius.max(), "neighbours are near each other"


def test_a_large_graph_has_a_spectral_layout():
    side = 26
    node = np.arange(side**2).reshape(side, side)
    edges = np.concatenate(
        [
            np.column_stack([node[1:].ravel(), node[:-1].ravel()]),
            np.column_stack([node[:, 1:].ravel(), node[:, :-1].ravel()]),
        ]
    )
    graph = pf.Graph.from_edges(edges)
    xy = layout(graph)
    lengths = np.linalg.norm(xy[edges[:, 0]] - xy[edges[:, 1]], axis=1)
    assert lengths.mean() < 0.1 * np.ptp(xy, axis=0).max()
    assert np.array_equal(xy, layout(graph))


# --------------------------------------------------------------------- framelets


def test_figure_1_of_the_paper():
    figure = plots.framelets(path_graph(8), pf.FrameletSystem(BINARY))
    graph_axes, tree_axes, *panels = figure.axes
    assert len(nodes_of(graph_axes).get_offsets()) == 8
    assert tree_axes.get_yticklabels()[3].get_text() == "level 4"
    assert titles(panels) == [
        r"$\varphi_{(1)}$",
        r"$\psi_{(1)}$",
        r"$\psi_{(1,1)}$",
        r"$\psi_{(1,2)}$",
        r"$\psi_{(1,1,1)}$",
        r"$\psi_{(1,1,2)}$",
        r"$\psi_{(1,2,1)}$",
        r"$\psi_{(1,2,2)}$",
    ]
    assert len({panel.get_ylim() for panel in panels}) == 1, "heights are comparable"
    base, height = stems_of(panels[2])
    assert np.allclose(base, np.column_stack([np.arange(4) / 7, np.zeros(4)]))
    assert np.allclose(height, [0.5, 0.5, -0.5, -0.5])


@pytest.mark.parametrize("j0", [1, 2, 3])
@pytest.mark.parametrize("filters", ["binary-haar", "haar-basis"])
def test_stems_on_a_line_are_the_rows_of_the_matrix(j0, filters):
    system = pf.FrameletSystem(MIXED, filters)
    figure = plots.framelets(path_graph(8), system, j0, max_panels=100)
    panels = figure.axes[2:]
    rows = system.matrix(j0).toarray()
    assert len(panels) == len(rows)
    for panel, row in zip(panels, rows, strict=True):
        base, height = stems_of(panel)
        assert np.allclose(height, row[row != 0])
        assert np.allclose(base[:, 0], np.flatnonzero(row) / 7)
    assert figure.get_supxlabel() == ""


def test_stems_in_the_plane_are_the_rows_of_the_matrix():
    graph = plane_graph()
    system = pf.FrameletSystem(plane_tree(graph))
    vectors = [0, 1, 5, system.count() - 1]
    figure = plots.framelets(graph, system, vectors=vectors)
    low, high = graph.positions.min(axis=0), graph.positions.max(axis=0)
    unit = (graph.positions - low) / (high - low)
    across = unit[:, 0] + _frames.SHEAR * unit[:, 1]
    order = np.argsort(across)
    rows = system.matrix().toarray()
    for panel, vector in zip(figure.axes[2:], vectors, strict=True):
        base, height = stems_of(panel)
        row = rows[vector][order]
        assert np.allclose(base[:, 0], across[order][row != 0])
        assert np.allclose(height, row[row != 0])
        bottom, top = panel.get_ylim()
        assert (base[:, 1] + height > bottom).all()
        assert (base[:, 1] + height < top).all()


def test_positive_stems_and_negative_stems_have_their_colours():
    panel = plots.framelets(path_graph(8), pf.FrameletSystem(BINARY)).axes[3]
    up, down = (c for c in panel.collections if c.get_gid() == "stems")
    assert tuple(up.get_color()[0]) == to_rgba(_drawing.BLUE)
    assert tuple(down.get_color()[0]) == to_rgba(_drawing.VERMILION)
    assert all(segment[1, 1] > 0 for segment in up.get_segments())
    assert all(segment[1, 1] < 0 for segment in down.get_segments())


def test_titles_carry_m_where_a_cluster_has_several_framelets():
    figure = plots.framelets(path_graph(8), pf.FrameletSystem(MIXED), max_panels=100)
    found = titles(figure.axes[2:])
    assert found[:5] == [
        r"$\varphi_{(1)}$",
        r"$\psi_{((1),1)}$",
        r"$\psi_{((1),2)}$",
        r"$\psi_{((1),3)}$",
        r"$\psi_{((1,1),1)}$",
    ]
    assert found[-3:] == [r"$\psi_{(1,2)}$", r"$\psi_{(1,3)}$", r"$\psi_{(1,2,1)}$"]
    assert len(set(found)) == len(found) == pf.FrameletSystem(MIXED).count()
    assert titles(plots.framelets(path_graph(8), pf.FrameletSystem(MIXED), j0=2).axes[2:5]) == [
        r"$\varphi_{(1,1)}$",
        r"$\varphi_{(1,2)}$",
        r"$\varphi_{(1,3)}$",
    ]


def test_m_counts_from_one_in_every_cluster():
    tree = pf.Hierarchy.from_nested([[0, 1, 2], [3, 4, 5]])
    found = titles(plots.framelets(path_graph(6), pf.FrameletSystem(tree)).axes[2:])
    assert found[2:] == [rf"$\psi_{{((1,{cluster}),{m})}}$" for cluster in (1, 2) for m in (1, 2, 3)]


@pytest.mark.parametrize("most", [4, 5, 9, 16])
def test_a_selection_has_some_of_every_level_and_says_so(most):
    graph = plane_graph()
    system = pf.FrameletSystem(plane_tree(graph))
    assert system.K == 4
    figure = plots.framelets(graph, system, max_panels=most)
    panels = figure.axes[2:]
    assert len(panels) == most
    assert figure.get_supxlabel() == f"{most} of {system.count()} vectors"
    names = titles(panels)
    assert len(set(names)) == most
    rows = _frames._spread(system.offsets(), most)
    levels = np.searchsorted(system.offsets(), rows, side="right") - 1
    assert set(levels) == {0, 1, 2, 3}
    assert (np.diff(rows) > 0).all()


def test_fewer_panels_than_levels():
    assert len(plots.framelets(path_graph(8), pf.FrameletSystem(BINARY), max_panels=2).axes) == 4


def test_coarse_vectors_that_one_scale_would_hide_have_their_own():
    n = 64
    tree = pf.Hierarchy.from_labels([np.arange(n) // 2**k for k in range(7)])
    panels = plots.framelets(path_graph(n), pf.FrameletSystem(tree)).axes[2:]
    assert [text.get_text() for text in panels[0].texts] == ["max 0.12"]
    assert panels[0].get_ylim()[1] < 0.2 < panels[-1].get_ylim()[1]
    assert np.allclose(stems_of(panels[0])[1], 0.125)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vectors": [0, 8]}, "vectors holds 8; .* rows 0 to 7"),
        ({"vectors": [-1]}, "vectors holds -1"),
        ({"vectors": []}, "must be a list of row numbers"),
        ({"vectors": [0.5]}, "must be a list of row numbers"),
        ({"max_panels": 0}, "max_panels must be at least 1, got 0"),
        ({"j0": 5}, "level 5 is out of range"),
        ({"positions": np.ones((3, 2))}, r"positions have shape \(3, 2\)"),
    ],
)
def test_framelets_errors(options, message):
    with pytest.raises(ValueError, match=message):
        plots.framelets(path_graph(8), pf.FrameletSystem(BINARY), **options)


def test_framelets_draw_in_part_of_a_figure():
    figure = Figure(figsize=(8, 5), layout="constrained")
    left, right = figure.subfigures(1, 2)
    assert plots.framelets(path_graph(8), pf.FrameletSystem(BINARY), figure=left) is figure
    assert (len(left.axes), len(right.axes)) == (10, 0)
    assert png(figure)


def test_the_graph_of_one_node():
    system = pf.FrameletSystem(pf.Hierarchy([]))
    figure = plots.framelets(pf.Graph([[0.0]]), system)
    assert titles(figure.axes[2:]) == [r"$\varphi_{(1)}$"]
    assert stems_of(figure.axes[2])[1].tolist() == [1.0]
    assert png(figure)
    assert png(plots.signal(pf.Graph([[0.0]]), [2.0]).figure)


# -------------------------------------------------------- partition permutations


def test_figure_2_of_the_paper():
    figure = plots.partition_permutation(path_graph(8), BINARY, (1, 1, 1), [1, 0])
    before, after, psi, psi_after = figure.axes
    assert [t.get_text() for t in before.get_xticklabels()] == ["0", "1"]
    assert [t.get_text() for t in after.get_xticklabels()] == ["1", "0"]
    assert [t.get_text() for t in after.get_yticklabels()] == ["level 3", "level 4"]
    assert np.allclose(stems_of(psi)[1], [np.sqrt(0.5), -np.sqrt(0.5)])
    assert np.allclose(stems_of(psi_after)[1], [-np.sqrt(0.5), np.sqrt(0.5)])
    assert np.allclose(stems_of(psi_after)[0], stems_of(psi)[0])
    # A child keeps its colour where it moves.
    leaf_colours = [ax.collections[0].get_facecolors() for ax in (before, after)]
    assert np.array_equal(leaf_colours[0], leaf_colours[1][::-1])


def test_a_permutation_of_three_children_keeps_the_filters():
    graph = plane_graph(8)
    system = pf.FrameletSystem(MIXED, "haar-basis", weights="size")
    figure = plots.partition_permutation(graph, system, (1,), [2, 0, 1])
    panels = figure.axes[2:]
    after = pf.FrameletSystem(MIXED.permute_children({(1,): [2, 0, 1]}), "haar-basis", weights="size")
    assert titles(panels) == [
        r"$\psi_{((1),1)}$",
        r"$\tilde{\psi}_{((1),1)}$",
        r"$\psi_{((1),2)}$",
        r"$\tilde{\psi}_{((1),2)}$",
    ]
    for k, s in ((0, system), (1, after)):
        for m in range(2):
            row = s.framelets(1).toarray()[m]
            assert np.allclose(np.sort(stems_of(panels[2 * m + k])[1]), np.sort(row[row != 0]))


def test_a_cluster_with_many_framelets_shows_some():
    tree = pf.Hierarchy.from_nested(list(range(6)))
    figure = plots.partition_permutation(path_graph(6), tree, (1,), [5, 4, 3, 2, 1, 0], max_panels=4)
    assert len(figure.axes) == 2 + 8
    assert figure.get_supxlabel() == "4 of 15 framelets of the cluster"


def test_a_cluster_with_one_child_has_no_framelets():
    figure = plots.partition_permutation(path_graph(8), MIXED, (1, 1, 1), [0])
    assert len(figure.axes) == 2
    assert figure.get_supxlabel() == "a cluster with one child has no framelets"
    assert png(figure)


def test_partition_permutation_errors():
    with pytest.raises(ValueError, match="single node"):
        plots.partition_permutation(path_graph(8), BINARY, (1, 1, 1, 1), [0])
    with pytest.raises(ValueError, match="3 entries"):
        plots.partition_permutation(path_graph(8), BINARY, (1,), [0, 1, 2])
    with pytest.raises(ValueError, match="max_panels must be at least 1"):
        plots.partition_permutation(path_graph(8), BINARY, (1,), [1, 0], max_panels=0)
    with pytest.raises(ValueError, match="has no child number 3"):
        plots.partition_permutation(path_graph(8), BINARY, (1, 3), [0, 1])


# ------------------------------------------------------------------ decomposition


def test_decomposition_shows_all_parts_and_their_shares():
    graph = plane_graph()
    system = pf.FrameletSystem(plane_tree(graph))
    f = np.random.default_rng(4).standard_normal(graph.n)
    figure = plots.decomposition(graph, system, f)
    *axes, _bar = figure.axes
    shown = [np.asarray(nodes_of(ax).get_array()) for ax in axes]
    assert np.array_equal(shown[0], f)
    assert np.allclose(sum(shown[1:]), f)
    for j, part in enumerate(shown[1:]):
        assert np.allclose(part, system.project(f, j))
    shares = [float(ax.get_title().split("quad")[1].split("\\")[0]) for ax in axes[1:]]
    assert abs(sum(shares) - 100) < 0.3
    assert len({nodes_of(ax).get_clim() for ax in axes}) == 1
    assert nodes_of(axes[0]).get_clim()[1] >= np.abs(f).max()


def test_decomposition_of_nothing():
    figure = plots.decomposition(path_graph(8), pf.FrameletSystem(BINARY), np.zeros(8))
    assert figure.axes[1].get_title() == r"$F_{0}f\quad0.0\,\%$"


# ---------------------------------------------------------------------- surroundings


def test_figures_show_themselves_in_notebooks():
    figure = plots.decomposition(path_graph(8), pf.FrameletSystem(BINARY), np.arange(8.0))
    assert figure._repr_png_().startswith(b"\x89PNG")


@pytest.mark.long
def test_plots_are_lazy_and_leave_pyplot_alone():
    script = """
import sys
import pegfan as pf
assert "matplotlib" not in sys.modules, "import pegfan is light"
tree = pf.Hierarchy.from_nested([[0, 1], [2, 3]])
tree.draw().figure._repr_png_()
from pegfan import plots
plots.decomposition(pf.Graph.from_edges([[0, 1], [1, 2], [2, 3]]), pf.FrameletSystem(tree), [1.0, 2, 3, 4])
assert "matplotlib.pyplot" not in sys.modules, "no global state"
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [name for name in sys.modules if name.startswith("pegfan.plots")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r"needs matplotlib: pip install 'pegfan\[plots\]'"):
        importlib.import_module("pegfan.plots")
