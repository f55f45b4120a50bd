"""The table of tree builders: a file in src/pegfan/trees/builders is a builder everywhere."""

import inspect
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import pegfan as pf
from pegfan.trees import BUILDERS, Builder
from support.graphs import random_graph

FOLDER = Path(inspect.getfile(pf.trees.builders)).parent
OPTIONS = {"signals": np.repeat([0.0, 1.0, 5.0], 20), "seed": 1}
GRAPH = random_graph(3, 60, 6.0, weighted=True)


def test_every_file_of_the_folder_is_a_builder():
    names = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    assert set(BUILDERS) == names
    for name, builder in BUILDERS.items():
        assert isinstance(builder, Builder)
        assert builder.name == name, f"builders/{name}.py holds a function of that name under @builder"


@pytest.mark.parametrize("name", BUILDERS)
def test_every_builder_has_a_test_file_and_says_what_it_does(name):
    assert (Path(__file__).parent / f"test_builder_{name}.py").exists()
    assert BUILDERS[name].summary.endswith("."), "the first line of its docstring is what help and pages show"
    assert f'``"{name}"``: {BUILDERS[name].summary}' in pf.build_tree.__doc__


@pytest.mark.parametrize("name", BUILDERS)
def test_options_that_a_builder_takes_make_a_difference_and_others_are_refused(name):
    plain = pf.build_tree(GRAPH, name, h=4)
    for option, value in OPTIONS.items():
        if option in BUILDERS[name].takes:
            assert pf.build_tree(GRAPH, name, h=4, **{option: value}) != plain, option
        else:
            with pytest.raises(ValueError, match=f"takes no {option}"):
                pf.build_tree(GRAPH, name, h=4, **{option: value})
    assert BUILDERS[name].takes <= OPTIONS.keys()


@pytest.mark.parametrize("name", BUILDERS)
def test_recipes_and_commands_know_every_builder(name):
    from pegfan.cli import app

    assert name in pf.families()["method"]
    assert pf.Recipe(method=name).build_tree(GRAPH).info["method"] == name
    for command in ("tree", "train", "search", "transform"):
        assert name in " ".join(CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "300"}).output.split())


def test_more_nodes_than_a_builder_is_for_are_refused_with_an_alternative():
    for name in ("ward", "adjacency"):
        assert BUILDERS[name].most_nodes == 200_000
        few = pf.trees.builder(most_nodes=10)(BUILDERS[name].cluster)
        with pytest.raises(ValueError, match=r"60 nodes .* GB\); above 10 use method='matching'"):
            pf.build_tree(GRAPH, few)
    assert BUILDERS["matching"].most_nodes is None


def test_a_builder_of_the_users_is_a_function():
    seen = []

    def pairs(level, h):
        seen.append((level.n, h))
        return np.arange(level.n) // 2

    tree = pf.build_tree(random_graph(0, 20), pairs, h=3)
    assert (tree.n, tree.info["method"]) == (20, "pairs")
    assert tree.n_clusters == (1, 3, 5, 10, 20)
    assert seen == [(20, 3), (10, 3), (5, 3)]


def test_options_of_the_users_builders_are_those_that_they_say():
    def in_turn(level, h):
        order = np.arange(level.n) if level.signals is None else np.argsort(level.signals.means[:, 0], kind="stable")
        labels = np.empty(level.n, int)
        labels[order] = np.arange(level.n) // h
        return labels

    following = pf.trees.builder("signals")(in_turn)
    assert pf.build_tree(GRAPH, following, signals=OPTIONS["signals"][::-1]) != pf.build_tree(GRAPH, following)
    for refusing, options in ((in_turn, OPTIONS), (following, {"seed": 1})):
        for option, value in options.items():
            with pytest.raises(ValueError, match=rf"'in_turn' takes no {option}: .*@builder\('{option}'\)"):
                pf.build_tree(GRAPH, refusing, **{option: value})


@pytest.mark.parametrize("labels", [[0, 1], np.zeros(20), np.zeros((20, 1), int)])
def test_what_a_builder_of_the_users_returns_is_checked(labels):
    with pytest.raises(ValueError, match="20 integers, one label per node"):
        pf.build_tree(random_graph(0, 20), lambda level, h: labels, h=4)
