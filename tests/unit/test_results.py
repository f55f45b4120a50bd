"""Results: they come back from JSON as they were, distrust what they read, and measure what they say."""

import dataclasses
import json
import types
import typing
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pegfan as pf
from pegfan import results
from pegfan._plain import plain, versions
from pegfan.metrics import METRICS
from pegfan.recipe import Recipe
from pegfan.report import write_report
from pegfan.results import Data, Result, Spread
from support.results import STORED

texts = st.text(max_size=8)
numbers = st.floats(-1e6, 1e6)
counts = st.integers(0, 2**62)
values = st.recursive(
    st.none() | st.booleans() | counts | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
RECIPES = [{}, {"method": "none", "labels": True, "epochs": 3}, {"tree_file": ("a.npz", "0"), "lr_fc": 0.1}]
PLAIN = {str: texts, int: counts, float: numbers, bool: st.booleans(), Recipe: st.sampled_from(RECIPES)}


def valued(kind):
    """Values of an annotation of a part."""
    if kind in PLAIN:
        return PLAIN[kind]
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return st.none() | valued(args[0])
    if origin is typing.Literal:
        return st.sampled_from(args)
    if origin is tuple:
        several = args[-1] is ...
        return st.lists(valued(args[0]), max_size=3).map(tuple) if several else st.tuples(*map(valued, args))
    if origin is Mapping:
        return st.dictionaries(texts, values if args[1] is typing.Any else valued(args[1]), max_size=3)
    return parts(kind)


def parts(kind, **fixed):
    hints = typing.get_type_hints(kind)
    members = {member.name: valued(hints[member.name]) for member in dataclasses.fields(kind)}
    return st.fixed_dictionaries(members | fixed).map(lambda given: kind(**given))


@st.composite
def all_results(draw):
    k = draw(st.integers(1, 3))
    square = st.lists(st.lists(counts, min_size=k, max_size=k), min_size=k, max_size=k)
    names = st.lists(texts, min_size=k, max_size=k)
    sizes = st.lists(counts, min_size=k, max_size=k)
    metric = st.sampled_from(list(METRICS))
    data = parts(Data, classes=names, class_counts=sizes, ccns=st.none() | square, metric=metric, target=st.none())
    return draw(parts(Result, data=data, confusion=st.just(()) | square))


@given(all_results())
def test_results_come_back_as_they_were(result):
    again = Result.from_json(result.to_json())
    assert again == result
    assert again.to_json() == result.to_json()


@given(st.data())
def test_mutated_results_are_read_or_refused_in_a_sentence(data):
    stored = json.loads(STORED)
    for _ in range(data.draw(st.integers(1, 3))):
        place = stored
        while True:
            key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
            if not isinstance(place[key], (dict, list)) or not place[key] or data.draw(st.booleans()):
                break
            place = place[key]
        if data.draw(st.booleans()):
            del place[key]
        else:
            place[key] = data.draw(values | st.sampled_from([float("nan"), 10**400, -1, "x" * 100]))
        if not stored:
            break
    try:
        assert isinstance(Result.from_json(json.dumps(stored)), Result)
    except ValueError as error:
        assert 0 < len(str(error)) < 300


CANDIDATE = json.loads(STORED)["candidates"][0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"data": None}, "data must be an object, got None"),
        ({"data": {}}, "data.nodes is missing"),
        ({"seed": -1}, "seed must be a count, got -1"),
        ({"seed": True}, "seed must be a count, got True"),
        ({"budget": 10**400}, "budget must be a finite number"),
        ({"title": ["x"]}, "title must be a text of sensible length, got list"),
        ({"title": "x" * 10_000_001}, "title must be a text of sensible length"),
        ({"curves": [{"name": "x"}]}, r"curves\[0\].train_loss is missing"),
        ({"confusion": [[1, 2], [3]]}, "confusion must have one row and one column per class"),
        ({"test": {"mean": "high", "std": 0}}, "test.mean must be a finite number, got str"),
        ({"splits": {"sizes": [[1, 2]]}}, r"splits.sizes\[0\] must be a list of 3"),
        (
            {"candidates": [{**CANDIDATE, "recipe": {"h": 1}}]},
            r"candidates\[0\].recipe: h must be at least 2, got 1",
        ),
        ({"version": 4}, "it is of version 4, and this pegfan reads 3: train again"),
        ({"version": 2}, "it is of version 2, and this pegfan reads 3: train again"),
        ({"version": "3"}, "it is of version '3'"),
        ({"format": "other"}, "not written by pegfan"),
    ],
)
def test_what_is_wrong_is_named(change, words):
    stored = json.loads(STORED) | change
    with pytest.raises(ValueError, match=words):
        Result.from_json(json.dumps(stored))


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"format": "pegfan result", "version": 3}', b"\xff", "[" * 9999])
def test_what_is_no_result_is_refused(text):
    with pytest.raises(ValueError, match=r"damaged|not written by pegfan|data is missing|decode"):
        Result.from_json(text)


def test_deep_values_are_refused():
    deep = '{"x":' * 600 + "1" + "}" * 600
    text = STORED.replace('"options": {', f'"options": {{"deep": {deep},', 1)
    assert isinstance(Result.from_json(text.replace(deep, "{}")), Result)
    with pytest.raises(ValueError, match="too deep"):
        Result.from_json(text.replace(deep, '{"x":' * 5000 + "1" + "}" * 5000))


def test_a_stored_result_is_read_and_shown(tmp_path):
    result = Result.from_json(STORED)
    assert json.loads(result.to_json()) == json.loads(STORED)
    assert (result.candidates[1].recipe.method, result.candidates[1].recipe.scaling) == ("ward", "l1")
    graph = pf.Graph.from_edges([[i, i + 1] for i in range(59)])
    page = write_report(tmp_path / "report.html", result, graph, None, np.full((60, 4), 0.25)).read_text()
    for words in ("nodes.csv + edges.csv", "F₁ S X", "54.5% into the right class", "The test set has 11 nodes"):
        assert words in page or json.dumps(words)[1:-1] in page


def test_numpy_and_what_is_no_number_become_plain():
    spread = Spread.of(np.array([0.25, np.nan, 0.75]))
    assert spread == Spread(0.5, 0.25, (0.25, None, 0.75))
    assert all(type(value) in (float, type(None)) for value in spread.per_split)
    assert (f"{spread:.1f}", f"{Spread.of([0.5]):.1f}", f"{Spread.of([]):.1f}") == ("50.0 ± 25.0", "50.0", "–")
    assert plain({1: np.int64(3), "x": (np.inf, np.bool_(True), {2.0})}) == {"1": 3, "x": [None, True, "{2.0}"]}
    assert list(versions("no-such-package", "numpy")) == ["pegfan", "numpy"]


# --------------------------------------------------------------------- measures


def small_graph():
    nodes = np.arange(8)
    labels = [0, 0, 0, 1, 1, 0, 1, -1]
    return pf.Graph.from_edges(
        [[i, i + 1] for i in range(7)], labels=labels, splits=[pf.Split(nodes[:3], nodes[3:4], nodes[4:])]
    )


def test_predictions_are_judged_on_labelled_test_nodes():
    graph = small_graph()
    predicted = np.array([0, 0, 0, 1, 0, 0, 0, 1])
    confusion, rows = results.judged(graph, graph.splits[0], predicted)
    assert confusion == ((1, 0), (2, 0))
    assert [(row.name, row.support, row.precision, row.recall) for row in rows] == [
        ("0", 1, 1 / 3, 1.0),
        ("1", 2, None, 0.0),
    ]
    assert results.majority(graph, graph.splits[0]) == pytest.approx(1 / 3)
    assert results.parts(graph, graph.splits[0]).tolist() == ["train"] * 3 + ["val"] + ["test"] * 4


def test_the_least_margin_comes_first_and_test_nodes_before_others():
    graph = small_graph()
    high = np.array([0.5, 0.5, 0.5, 0.5, 0.9, 0.6, 0.8, 0.7])
    rows = results.unsure(graph, graph.splits[0], np.column_stack([high, 1 - high]))
    assert [row.id for row in rows] == ["5", "7", "6", "4", "0", "1", "2", "3"]
    assert (rows[1].true, rows[0].true, rows[0].predicted, rows[0].second) == (None, "0", "0", "1")
    early = results.unsure(graph, graph.splits[0], np.column_stack([high, 1 - high]), (0.0, np.log(0.2 / 0.8)))
    assert [row.id for row in early][:2] == ["6", "7"], "nearest to the threshold of 0.2, not to a half"
    assert (early[1].predicted, early[1].probability, early[1].second) == ("1", pytest.approx(0.3), "0")


def cautious(graph, test=0.9, floor=0.5, features=0.6, used=(0,), made=True):
    result = Result(
        data=results.data(graph),
        splits=results.Splits.of(graph.splits, used, made),
        test=Spread.of([test]),
        majority=Spread.of([floor]),
        features_only=Spread.of([features]),
    )
    return {note.kind: note.text for note in results.cautions(result, graph)}


def test_cautions():
    graph = small_graph()
    found = cautious(graph)
    assert list(found) == ["tiny test set", "one split", "no features", "unlabelled nodes"]
    assert "3 nodes: one node is 33.3 points" in found["tiny test set"]
    assert found["one split"].endswith("so its spread is not known.")
    assert "a larger budget" in cautious(graph.replace(splits=graph.splits * 2))["one split"]
    assert "largest class" in cautious(graph, test=0.5)["no better than a floor"]
    assert "features alone" in cautious(graph, features=0.9)["no better than a floor"]
    assert "spread" in cautious(graph.replace(splits=graph.splits * 2), used=(1, 0), made=False)
    none = pf.Split(*graph.splits[0][:2], np.array([7]))
    assert "nothing says how good" in cautious(graph.replace(splits=[none]), test=np.nan)["no test nodes"]
    rare = graph.replace(labels=[0] * 7 + [2], class_names=["a", "b", "c"])
    assert "class imbalance" not in cautious(rare), "no node is of class b, so it is not a small one"
    path = pf.Graph.from_edges([[i, i + 1] for i in range(19)], labels=[0] * 19 + [2], class_names=["a", "b", "c"])
    parts = np.arange(10), np.arange(10, 14)
    path = path.replace(
        splits=[pf.Split(*parts, np.arange(14, 20)), pf.Split(np.arange(10, 20), *np.split(np.arange(10), [4]))]
    )
    assert "from 1 (c) to 19" in cautious(path)["class imbalance"]
    assert "12 nodes" in cautious(path, used=(0, 1))["tiny test set"], "the test nodes of both folds"
    assert "6 nodes" in cautious(path, used=(0, 1), made=False)["tiny test set"]
    star = pf.Graph.from_edges([[0, 3], [1, 3], [2, 3]], n=5, labels=[0, 1, 0, 1, 0])
    copies = star.replace(splits=[pf.Split(np.array([0]), np.array([3]), np.array([1, 2, 4]))])
    assert "67% of the test nodes" in cautious(copies)["leaking duplicates"]
    assert "1 nodes have no edge" in cautious(copies)["isolated nodes"]
    about = results.data_cautions(copies.describe(), 2 / 3)  # what `pegfan info` says
    assert list(about) == ["leaking duplicates", "no features", "isolated nodes"]
    assert about.items() <= cautious(copies).items()
