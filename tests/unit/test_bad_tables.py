"""What is wrong with an analyst's tables is said in one sentence, with the line and a fix."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from pegfan.cli import app

runner = CliRunner()
IDS = [f"{i:04d}" for i in range(30)]


@pytest.fixture
def tables():
    rng = np.random.default_rng(0)
    nodes = pd.DataFrame({"account_no": IDS, "income": rng.random(30).round(3).astype(str), "fraud": "0"})
    nodes.loc[::5, "fraud"] = "1"
    ends = {"payer": IDS * 2, "payee": IDS[1:] + IDS[:1] + IDS[7:] + IDS[:7]}
    edges = pd.DataFrame({**ends, "amount": rng.random(60).round(2).astype(str), "date": "2024-03-01"})
    edges.loc[::2, "date"] = "2024-02-01"
    return nodes, edges


def told(tables, folder, *words, command="info"):
    """The exit code and the output of a command on the tables."""
    for name, table in zip(("n.csv", "e.csv"), tables, strict=True):
        table.to_csv(folder / name, index=False)
    arguments = [command, str(folder / "n.csv"), str(folder / "e.csv"), "--label", "fraud", *words]
    result = runner.invoke(app, arguments)
    return result.exit_code, " ".join(result.output.split())


def repeat_id(nodes, edges):
    nodes.loc[4, "account_no"] = IDS[2]
    return nodes, edges[~edges.isin([IDS[4]]).any(axis=1)]


def blank_id(nodes, edges):
    nodes.loc[4, "account_no"] = ""
    return nodes, edges[~edges.isin([IDS[4]]).any(axis=1)]


def word_in_income(nodes, edges):
    nodes.loc[3, "income"] = "lots"
    return nodes, edges


def no_rows(nodes, edges):
    return nodes, edges.iloc[:0]


def no_label(nodes, edges):
    return nodes.assign(fraud=""), edges


def word_among_prices(nodes, edges):
    rng = np.random.default_rng(1)
    nodes["fraud"] = rng.random(30).round(4).astype(str)
    nodes.loc[3, "fraud"] = "cheap"
    return nodes, edges


def repeat_edge(nodes, edges):
    return nodes, pd.concat([edges, edges.iloc[[1]]])


@pytest.mark.parametrize(
    ("spoil", "options", "words"),
    [
        (repeat_id, (), "n.csv, line 6: id '0002' in column 'account_no' was already given in n.csv, line 4"),
        (blank_id, (), "n.csv, line 6: the id in column 'account_no' is blank"),
        (word_in_income, (), "n.csv, line 5: 'lots' in column 'income' is not a number"),
        (no_rows, (), "e.csv has no rows, so nothing tells which column of n.csv holds the ids; add rows, or name"),
        (no_label, (), "fill some in, or leave out --label for a graph without labels"),
        (word_among_prices, (), "n.csv, line 5: 'cheap' in label column 'fraud' is not a number"),
        (word_among_prices, (), "correct it, leave it blank, or --label-kind classes"),
        (
            repeat_edge,
            ("--duplicates", "error"),
            "e.csv, line 62: the edge was already given in e.csv, line 3 (1 repeated rows); keep one of them, or "
            "choose --duplicates max, min, sum, mean or count",
        ),
    ],
)
def test_what_is_wrong_is_said_in_words_of_the_command_line(tables, tmp_path, spoil, options, words):
    code, said = told(spoil(*tables), tmp_path, *options)
    assert code == 1
    assert words in said
    for python in ("=", "False", "{", "None"):
        assert python not in said


def test_one_class_is_named(tables, tmp_path):
    nodes, edges = tables
    code, said = told((nodes.assign(fraud="no"), edges), tmp_path, "-o", str(tmp_path / "o"), command="train")
    assert code == 1
    assert "all 30 labelled nodes are of the class 'no', so there is nothing to tell apart; label some others" in said
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("stand_in", ["9999-12-31", "0001-01-01"])
def test_the_first_and_the_last_year_stand_for_no_date(tables, tmp_path, stand_in):
    nodes, edges = tables
    nodes["closed"] = [f"2020-{1 + i % 12:02d}-01" for i in range(30)]
    nodes.loc[7, "closed"] = edges.loc[3, "date"] = stand_in
    code, said = told((nodes, edges), tmp_path)
    assert code == 0
    assert "closed: date, year first: age in days on 2020-12-01" in said or "age in days on 2020-12-01" in said
    assert "1 missing: the mean and 'closed missing'; 1 of them of the year 1 or 9999, which stand for none" in said
    assert "newest 2024-03-01, 1 missing (1 of the year 1 or 9999, which stand for none)" in said


def test_numbers_with_words_are_classes_if_that_is_said(tables, tmp_path):
    code, said = told(word_among_prices(*tables), tmp_path, "--label-kind", "classes")
    assert code == 1
    assert "values that all differ: names, not classes" in said
