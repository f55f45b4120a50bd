"""The report's content: what is drawn, what is said, and that nothing from data gets out of its place."""

import base64
import hashlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import pegfan as pf
from pegfan import results
from pegfan.recipe import Recipe
from pegfan.report import graphview, sections, treeview, words, write_report
from pegfan.report.page import embedded
from pegfan.report.sections import SECTIONS
from pegfan.results import Result
from support.results import plain_result
from support.strategies import trees

HOSTILE = "</script><script>alert(1)</script>\u202e'\"&amp;{{script}}"
TREE = pf.Hierarchy.from_nested([[[0, 1], [2, 3]], [[4, 5], [6, 7]]])


def path_graph(n=8, **attributes):
    return pf.Graph.from_edges([[i, i + 1] for i in range(n - 1)], n=n, **attributes)


def content(page):
    found = re.search(r'<script type="application/json" id="content">(.*?)</script>', page.read_text(), re.S)
    return json.loads(found.group(1))


def written(folder, graph=None, tree=TREE, probabilities=None, **parts):
    graph = graph or path_graph()
    if probabilities is None:
        probabilities = np.full((graph.n, 2), 0.5)
    result = plain_result(graph, None if graph.n_classes else 2, **parts)
    return write_report(folder / "report.html", result, graph, tree, probabilities)


def shown_of(folder, *parts):
    return content(write_report(folder / "report.html", *parts))


def of(**parts):
    """A result with these parts, on a path with two classes."""
    return plain_result(path_graph(labels=np.arange(8) % 2), **parts)


def deep_tree(n, h=8):
    """A tree over n nodes in shuffled order, with clusters of h children."""
    order = np.random.default_rng(0).permutation(n)
    parents, count = [], n
    while count > 1:
        parents.append(np.arange(count) // h)
        count = -(-count // h)
    return pf.Hierarchy(parents, order)


# ------------------------------------------------------------------------- the file


def test_page_is_whole_and_names_nothing_outside(tmp_path):
    page = written(tmp_path, title="Bees & ants")
    text = page.read_text()
    assert page == tmp_path / "report.html"
    assert "<title>Bees &amp; ants – PEGFAN report</title>" in text
    assert re.findall(r"\{\{\w+\}\}", text) == []
    addresses = set(re.findall(r"\w+://[^\s\"')]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of SVG, which nobody loads
    assert re.findall(r"(?:src|href)=\"(?!#|data:)", text) == []


def test_same_result_gives_same_bytes(tmp_path):
    one, two = (written(tmp_path, title="x").read_bytes() for _ in range(2))
    assert one == two


def test_policy_admits_our_script_and_style_only(tmp_path):
    text = written(tmp_path).read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
    for tag, rule in ((r'<script type="module">(.*?)</script>', "script-src"), ("<style>(.*?)</style>", "style-src")):
        source = re.search(tag, text, re.S).group(1)
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none';")


@pytest.mark.parametrize("name", ["script.js", "style.css"])
def test_our_own_sources_cannot_end_their_element(name):
    source = (files("pegfan.report") / name).read_text()
    assert "</" not in source
    assert "\r" not in source
    assert "innerHTML" not in source


def test_nothing_half_written_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        written(tmp_path)
    assert list(tmp_path.iterdir()) == []


@given(st.recursive(st.text() | st.integers(-9, 9), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
@example(["</script><!--<script>&amp;\u2028\u2029"])
def test_embedded_data_comes_back_and_holds_no_markup(value):
    data = embedded(value)
    assert json.loads(data) == value
    assert not set("<>&\u2028\u2029") & set(data)


def test_hostile_names_are_data(tmp_path):
    graph = path_graph(
        labels=np.arange(8) % 2, class_names=[HOSTILE, "b"], node_names=[f"{HOSTILE}{i}" for i in range(8)]
    )
    page = written(
        tmp_path,
        graph,
        title=HOSTILE,
        command=HOSTILE,
        source=pf.datasets.Source((HOSTILE,), {HOSTILE: HOSTILE}),
        versions={HOSTILE: HOSTILE},
        candidates=[results.Candidate(HOSTILE, {"tree_file": [HOSTILE, HOSTILE]}, 0.5, 0.5, 1.0, 3, True, HOSTILE)],
        chosen=results.Chosen(HOSTILE, HOSTILE),
        attention=[results.Attention(HOSTILE, [results.ChannelWeight(*[HOSTILE] * 3, "other", None, 1.0)])],
        warnings=[results.Note(HOSTILE, HOSTILE)],
        unsure=[results.Unsure(f"{HOSTILE}3", HOSTILE, 0.5, "b", 0.5)],
    )
    text = page.read_text()
    assert text.count("</script>") == 2
    assert "alert(1)</script>" not in text
    shown = content(page)
    assert shown["classes"][0] == HOSTILE
    assert shown["graph"]["ids"][3] == f"{HOSTILE}3"


def test_strings_that_are_no_text_and_endless_strings(tmp_path):
    note = results.Note("y" * 100_000, "z" * 100_000)
    page = written(tmp_path, title="\ud800 lone", command="x" * 100_000, warnings=[note])
    assert page.stat().st_size < 150_000
    assert content(page)["warnings"]["rows"][0]["kind"].endswith("y…")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"probabilities": np.ones(8)}, "probabilities have shape"),
        ({"probabilities": np.ones((7, 2))}, "8 × 2"),
        ({"probabilities": np.ones((8, 3))}, "one column per class"),
        ({"tree": pf.Hierarchy.from_nested([0, 1])}, "the tree has 2 nodes and the graph 8"),
    ],
)
def test_parts_that_do_not_belong_together(tmp_path, change, sentence):
    with pytest.raises(ValueError, match=sentence):
        written(tmp_path, **change)
    with pytest.raises(TypeError, match="must be a pegfan"):
        write_report(tmp_path / "report.html", {"title": "no"}, path_graph(), TREE, np.ones((8, 2)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_large_graphs_make_small_files(tmp_path):
    rng = np.random.default_rng(0)
    n = 20_000
    graph = pf.Graph.from_edges(rng.integers(0, n, (100_000, 2)), n=n)
    graph = graph.replace(labels=np.arange(n) % 4)
    page = written(tmp_path, graph, deep_tree(n), rng.dirichlet(np.ones(4), n))
    assert page.stat().st_size < 1_500_000
    shown = content(page)["graph"]
    assert len(shown["ids"]) == 1500
    assert len(shown["edges"]) <= 2 * 9000


@pytest.mark.long
def test_import_stays_light():
    code = (
        "import sys, pegfan; print('pegfan.report' in sys.modules); import pegfan.report; "
        "print(sorted({'torch', 'pandas', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "[]"]


# ------------------------------------------------------------------------ the sample


def test_small_graphs_are_drawn_whole():
    assert graphview.sample(path_graph(), TREE).tolist() == list(range(8))


@pytest.mark.parametrize("with_tree", [True, False])
def test_sample_has_its_size_holds_what_is_wanted_and_is_the_same_twice(with_tree):
    rng = np.random.default_rng(1)
    graph = pf.Graph.from_edges(rng.integers(0, 500, (900, 2)), n=500)
    tree = deep_tree(500) if with_tree else None
    nodes = graphview.sample(graph, tree, wanted=[499, 3, 3], most=100)
    assert len(nodes) == len(set(nodes.tolist())) == 100
    assert {3, 499} <= set(nodes.tolist())
    assert np.array_equal(nodes, graphview.sample(graph, tree, wanted=[499, 3, 3], most=100))


def test_sample_keeps_clusters_together_and_visits_every_branch():
    n, tree = 2048, deep_tree(2048)
    graph = path_graph(n)
    nodes = graphview.sample(graph, tree, most=400)
    branches = tree.labels(2)
    assert set(branches[nodes].tolist()) == set(range(tree.n_clusters[1]))
    fine = tree.labels(tree.K - 1)
    touched = np.unique(fine[nodes])
    assert np.isin(fine, touched).sum() <= 1.1 * len(nodes)  # touched clusters are there whole, but for a few


def test_sample_prefers_clusters_with_links():
    tree = deep_tree(1024, h=4)
    linked = tree.order[:64]
    graph = pf.Graph.from_edges(np.column_stack([np.repeat(linked, 3), np.roll(np.repeat(linked, 3), 7)]), n=1024)
    nodes = graphview.sample(graph, tree, most=256)
    assert np.isin(linked, nodes).mean() == 1.0


@given(trees(), st.data())
def test_restricted_tree_has_the_same_clusters(tree, data):
    nodes = np.array(sorted(data.draw(st.sets(st.integers(0, tree.n - 1), min_size=1))))
    small, slots = graphview.restrict(tree, nodes)
    assert (small.n, small.K) == (len(nodes), tree.K)
    for level in range(1, tree.K + 1):
        assert np.array_equal(slots[level - 1][small.labels(level)], tree.labels(level)[nodes])


@given(trees(), st.integers(1, 6))
def test_framelets_are_those_of_the_system(tree, most):
    nodes = np.arange(0, tree.n, 2)
    system = pf.FrameletSystem(tree)
    shown = graphview.framelets_on(tree, nodes, most)
    assert len(shown) == tree.K - 1
    for level, framelets in enumerate(shown, start=1):
        rows = system.framelets(level).toarray()
        assert len(framelets) <= most
        for framelet in framelets:
            cluster = tree.cluster(tuple(framelet["cluster"]))
            a, b = framelet["children"]
            one, other = tree.members((*cluster.index, a)), tree.members((*cluster.index, b))
            first = int(system.n_framelets(level)[: cluster.slot].sum())
            own = rows[first : first + int(system.n_framelets(level)[cluster.slot])]
            row = own[(own[:, one[0]] > 0) & (own[:, other[0]] < 0)][0]
            assert framelet["support"] == len(one) + len(other)
            values = np.zeros(len(nodes))
            values[framelet["at"]] = framelet["values"]
            np.testing.assert_allclose(values, row[nodes], rtol=5e-3)


def test_every_cluster_has_its_turn():
    tree = pf.Hierarchy.from_nested([[0, 1, 2, 3], [4, 5, 6], [7, 8]])
    chosen = graphview.framelets_on(tree, np.arange(9), most=4)[1]
    assert [f["cluster"] for f in chosen] == [[1, 1], [1, 1], [1, 2], [1, 3]]


def test_links_are_drawn_once_without_loops():
    graph = pf.Graph.from_edges([[0, 1], [1, 0], [2, 2], [1, 2]], n=3, directed=True)
    shown = graphview.view(graph, None)
    assert shown["edges"] == [0, 1, 1, 2]
    assert shown["links"] == 2
    assert "tree_xy" not in shown


# --------------------------------------------------------------------------- the tree


@given(trees(), st.data())
def test_boxes_of_a_level_cover_the_leaves_with_their_classes(tree, data):
    predicted = np.array(data.draw(st.lists(st.integers(0, 3), min_size=tree.n, max_size=tree.n)))
    for row in treeview.boxes(tree, predicted):
        at = slot = 0
        for start, leaves, first, clusters, *mix in row["boxes"]:
            assert (start, first) == (at, slot)
            counts = dict(zip(mix[::2], mix[1::2], strict=True))
            own = predicted[tree.order[start : start + leaves]]
            assert counts == {int(k): int((own == k).sum()) for k in np.unique(own)}
            at, slot = at + leaves, slot + clusters
        assert (at, slot) == (tree.n, row["clusters"])


def test_rows_of_a_large_tree_stay_short():
    n = 30_000
    rows = treeview.boxes(deep_tree(n), np.arange(n) % 5)
    assert max(len(row["boxes"]) for row in rows) < 400


def test_deep_trees_show_some_levels():
    tree = pf.Hierarchy([*[np.arange(2)] * 60, np.zeros(2, int)])
    shown = [row["level"] for row in treeview.boxes(tree, np.zeros(2, int))]
    assert len(shown) <= 24
    assert (shown[0], shown[-1]) == (1, tree.K)


# ----------------------------------------------------------------------- the sections


def test_what_is_not_known_is_said_to_be_absent(tmp_path):
    shown = content(written(tmp_path, tree=None))
    absent = {name for name, section in shown.items() if isinstance(section, dict) and "absent" in section}
    assert absent == {*SECTIONS, "tree"} - {"data", "repeat"}
    assert all(shown[name]["absent"].endswith(".") for name in absent)
    assert "Without labelled test nodes" in shown["lede"]


def test_candidates_show_what_is_unusual_in_them():
    recipes = [{"h": 4, "method": "ward"}, {"h": 8, "method": "matching"}, {"h": 8, "method": "ward"}]
    tried = [results.Candidate(f"{i}", r, 0.5, 0.5, 1.0, 3, i == 1) for i, r in enumerate(recipes)]
    choice = sections.sections(of(candidates=tried))["choice"]
    assert [row["settings"] for row in choice["rows"]] == [["h 4"], ["method matching"], []]
    assert {"hops 3", "method ward", "h 8", "head network"} <= set(choice["usual"])
    assert [row["boosted"] for row in choice["rows"]] == [False] * 3


def test_members_have_their_weights_and_families():
    recipes = [{"method": "ward"}, {"head": "boosting", "method": "none"}, {"method": "matching"}, {"method": "none"}]
    weights = (0.5, 0.3, 0.2, 0.0)
    tried = [
        results.Candidate(f"{i}", r, 0.5, 0.5, 1.0, 3, w > 0, weight=w)
        for i, (r, w) in enumerate(zip(recipes, weights, strict=True))
    ]
    choice = sections.sections(of(candidates=tried))["choice"]
    assert [row["weight"] for row in choice["rows"]] == [0.5, 0.3, 0.2, None]
    assert choice["families"] == [
        {"name": "network on a tree", "weight": 0.7},
        {"name": "boosted trees", "weight": 0.3},
    ]
    assert "3 of them are in the model, which is their weighted mean" in choice["words"]
    alone = sections.sections(of(candidates=[replace(tried[0], weight=1.0), tried[3]]))["choice"]
    assert alone["families"] == []
    assert "weighted mean" not in alone["words"]
    for wild in (-1.0, 2.0):
        hostile = sections.sections(of(candidates=[replace(tried[0], weight=wild), tried[1]]))["choice"]
        assert (hostile["rows"][0]["weight"], hostile["families"]) == (None, [])


def test_a_family_is_what_a_recipe_makes():
    made = {
        "network on a tree": {"method": "ward"},
        "network on hops": {"method": "none", "hops": 2},
        "network on features alone": {"method": "none", "hops": 0},
        "boosted trees": {"method": "none", "head": "boosting"},
        "linear model": {"method": "none", "head": "linear"},
    }
    assert {words.family(Recipe.of(recipe)) for recipe in made.values()} == made.keys()
    assert all(words.family(Recipe.of(recipe)) == name for name, recipe in made.items())


def test_classes_that_no_node_has_are_not_listed(tmp_path):
    graph = pf.Graph.from_edges([[i, i + 1] for i in range(9)], labels=[0, 2] * 5, class_names=["ant", "bee", "cicada"])
    result = plain_result(graph, confusion=[[3, 0, 1], [0, 0, 0], [0, 0, 2]])
    shown = shown_of(tmp_path, result, graph, None, np.eye(3)[graph.labels])
    assert [bar["class"] for bar in shown["data"]["class_counts"]] == [0, 2]
    assert {"name": "classes", "value": 2} in shown["data"]["facts"]
    assert shown["data"]["ccns"]["classes"] == [0, 2]
    assert (shown["data"]["ccns"]["left_out"], shown["confusion"]["left_out"]) == (0, 0)
    assert shown["confusion"]["counts"] == [[3, 1], [0, 2]]
    assert shown["colours"] == [0, -2, 2]


def test_things_are_not_predicted(tmp_path):
    things = np.arange(6) >= 4
    graph = pf.Graph.from_edges([[0, 4], [1, 4], [2, 5], [3, 5]], labels=[0, 1, 0, -1, -1, -1], things=things)
    tree = pf.Hierarchy.from_nested([[0, 1, 4], [2, 3, 5]])
    shown = shown_of(tmp_path, plain_result(graph), graph, tree, np.eye(2)[[0, 1, 0, 0, 1, 1]])
    assert shown["graph"]["predicted"] == [0, 1, 0, 0, -1, -1]
    assert shown["tree"]["levels"][0]["boxes"][0][4:] == [-1, 2, 0, 3, 1, 1]
    assert shown["tree"]["levels"][0]["purity"] == 0.75
    assert "2 nodes are things" in shown["data"]["words"]
    assert {"name": "nodes", "value": 4} in shown["data"]["facts"]
    numbers = graph.replace(labels=None, targets=[1.0, 2.0, 3.0, np.nan, np.nan, np.nan])
    shown = shown_of(
        tmp_path, plain_result(numbers), numbers, None, np.array([[1.0], [2.0], [3.0], [4.0], [99.0], [-9.0]])
    )
    assert shown["graph"]["predicted"][4:] == [-1, -1]
    assert shown["graph"]["range"] == ["1", "4"]


def test_folds_say_once_whose_predictions_labelled_nodes_have():
    folds = results.Splits(((60, 20, 20),) * 5, used=(0, 1, 2, 3, 4), made=True)
    said = words.data(of(splits=folds))
    assert "dealt into 5 folds, each time 60 nodes to train on, 20 to choose on and 20 to test on" in said
    assert said.count("members that did not learn from it") == 1
    assert "3 of them trained" in words.data(of(splits=replace(folds, used=(0, 1, 2))))
    for other in (replace(folds, used=(0,)), replace(folds, made=False)):
        assert "did not learn" not in words.data(of(splits=other))
    assert "mean over 2 folds" in words.score(of(splits=folds, test=results.Spread.of([0.5, 0.6])))


def test_boosted_trees_are_no_networks():
    boosted = pf.Recipe(head="boosting")
    tried = (results.Candidate("trees", boosted, 0.5, 0.5, 1.0, 3, True),)
    channel = results.ChannelWeight("X", "X", "", "features", None, 1.0)
    curves = tuple(results.Curve(name, (1.0, 0.5), (1.0, 0.6), (0.5, 0.6), 1) for name in ("trees", "net"))
    attention = tuple(results.Attention(name, (channel,)) for name in ("trees", "net"))
    decided = results.Decided("F1", threshold=0.2)
    calibrated = results.Calibrated(False, 10, loss_before=0.5, loss_after=0.6)
    result = of(candidates=tried, curves=curves, attention=attention, decided=decided, calibrated=calibrated)
    shown = sections.sections(result)
    assert [member["boosted"] for member in shown["curves"]["members"]] == [True, False]
    assert [member["boosted"] for member in shown["attention"]["members"]] == [True, False]
    assert "network" not in words.decision(result) + words.calibration(result)


@pytest.mark.parametrize(
    ("same", "adjusted", "kind"),
    [
        (0.88, -0.055, "neither homophily nor heterophily"),
        (0.95, 0.16, "weak homophily"),
        (0.9, 0.8, "homophily"),
        (0.1, -0.4, "heterophily"),
    ],
)
def test_homophily_is_what_chance_does_not_give(same, adjusted, kind):
    result = of()
    result = replace(result, data=replace(result.data, edge_homophily=same, adjusted_homophily=adjusted))
    assert f"%: {kind}." in words.data(result)


def test_confusion_of_many_classes_keeps_the_largest_and_all_predictions():
    k = 30
    table = np.zeros((k, k), int)
    table[np.arange(k), np.arange(k)] = np.arange(k)
    table[29, 0] = 5  # to a class that is not shown
    shown = sections.sections(plain_result(path_graph(), k, confusion=table))["confusion"]
    assert shown["classes"] == list(range(10, 30))
    assert [sum(row) for row in shown["counts"]] == table.sum(axis=1)[10:].tolist()
    assert shown["counts"][-1][-1] == 5
    assert shown["left_out"] == 10


def test_long_curves_are_thinned_with_their_ends_kept():
    line = list(np.linspace(2, 1, 5000))
    curves = sections.sections(of(curves=[results.Curve("m", line, [1, np.nan], [], 4000)]))["curves"]
    (member,) = curves["members"]
    assert len(member["at"]) == len(member["train_loss"]) <= 240
    assert (member["at"][0], member["at"][-1], member["best"]) == (0, 4999, 4000)
    assert member["train_loss"][-1] == 1.0


def test_true_classes_follow_the_models_order(tmp_path):
    graph = path_graph(3, labels=["b", "a", None])
    tree = pf.Hierarchy.from_nested([0, 1, 2])
    result = Result(data=results.data(graph, ["b", "a"]))
    page = write_report(tmp_path / "report.html", result, graph, tree, np.full((3, 2), 0.5))
    assert content(page)["graph"]["true"] == [0, 1, -1]


def test_parts_are_those_of_the_models_split(tmp_path):
    graph = path_graph(splits=[([0], [1], [2]), ([3, 4], [5], [6])])

    def split(*used):
        return content(written(tmp_path, graph, splits=results.Splits.of(graph.splits, used)))["graph"]["split"]

    assert content(written(tmp_path, graph))["graph"]["split"] == [1, 2, 3, 0, 0, 0, 0, 0]
    assert split(1, 0) == [0, 0, 0, 1, 1, 2, 3, 0]
    assert split(7) is None
    folds = results.Splits.of(graph.splits, (0, 1), made=True)
    assert content(written(tmp_path, graph, splits=folds))["graph"]["split"] == [0, 0, 3, 0, 0, 0, 3, 0]
    assert content(written(tmp_path))["graph"]["split"] is None


# -------------------------------------------------------------------------- the words


def test_floors_decide_what_is_said():
    def said(mean, floor):
        test = results.Spread(mean, 0.01, [mean] * 3)
        return words.score(of(test=test, features_only=results.Spread.of([floor])))

    assert "adds 10.0 points" in said(0.8, 0.7)
    assert "within the spread" in said(0.705, 0.7)
    assert "does not help here: the features alone are 10.0 points better" in said(0.7, 0.8)
    assert "one split" in words.score(of(test=results.Spread.of([0.7])))


def test_lede_speaks_of_the_metric():
    auc = plain_result(
        path_graph(labels=np.arange(8) % 2, metric="roc_auc"), test=results.Spread(0.842, 0.013, [0.842])
    )
    assert all(part in words.lede(auc) for part in ("ROC AUC", "84.2", "1.3 points"))
    assert "86.0% into the right class" in words.lede(of(test=results.Spread.of([0.86])))


def test_attention_in_words():
    names = ["X", "S X", "F_0 X", "F_1 X", "F_2 X", "F_3 X"]

    def row(name, weight):
        kind, digit = name[0], name[2:3]
        scale = int(digit) if kind == "F" else None
        symbol = name if scale is None else f"F{chr(0x2080 + scale)} X"
        group = {"X": "features", "S": "hops", "F": "scales"}[kind]
        return results.ChannelWeight(name, words="", weight=weight, symbol=symbol, group=group, scale=scale)

    def said(names, weights):
        return words.attention(list(map(row, names, weights)))

    uneven = said(names, [1, 1, 1, 1, 4, 2])
    assert uneven.startswith("Scales of the tree 80% (an even share would be 67%)")
    assert "The heaviest channel is F₂ X with 2.4 times an even share." in uneven
    assert "the fine ones, F₂ to F₃, weigh more" in uneven
    assert "nearly even" in said(names, [1] * 6)
    assert "one channel" in said(["X"], [1])


@pytest.mark.parametrize(
    ("how", "reason", "said"),
    [
        ("best", "the only candidate", "Chosen: best; the only candidate."),
        ("mean of 5", "It is better by 1.2 points.", "Chosen: mean of 5. It is better by 1.2 points."),
        ("best", "", "Chosen: best."),
    ],
)
def test_choice_in_words(how, reason, said):
    assert words.choice(of(chosen=results.Chosen(how, reason))) == said
    assert words.choice(of()) == ""


def test_most_frequent_mistake():
    said = words.confusion([[5, 2], [1, 7]], ["ant", "bee"])
    assert all(part in said for part in ("3 of 15", "twice", "“ant” is taken for “bee”"))
    assert words.confusion([[2, 0], [0, 1]], ["a", "b"]).startswith("All 3 test nodes")
