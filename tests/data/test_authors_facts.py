"""The numbers in `pegfan.paper.published` are those of the paper and of the authors' files, line by line."""

import csv

import pytest

from pegfan.experiments.search import grid
from pegfan.paper import published
from pegfan.paper.published import Model, Published, Times

SETTINGS = ("wd_sca", "wd_fc1", "wd_fc2", "lr_sca", "lr_fc", "dropout")


def lines(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def model(line):
    """The row of the paper's tables that a line is about."""
    if line["model"] == "PEGFAN":
        return Model.of(f"{line['channels']}{line['h']}")
    return Model.of(f"r{line['r']}" + (" all" if line["channels"] == "all" else ""))


def settings(line):
    return {name: float(line[name]) for name in SETTINGS}


def as_printed(line, name):
    if not line[name]:
        return None
    return Published(float(line[name]), float(line[f"{name}_std"]) if line[f"{name}_std"] else None)


def test_the_authors_best_settings(reference):
    found = lines(reference / "authors_best_configs.csv")
    assert len(found) == 54
    wanted = {(line["dataset"], Model.of(f"{line['type']}{line['h']}")): settings(line) for line in found}
    assert wanted == published.AUTHORS
    assert all(entry in grid("authors") for entry in wanted.values())
    for line in found:  # the accuracy that the file pairs with the settings is the one of the table
        cell = published.TABLE3[Model.of(f"{line['type']}{line['h']}")][line["dataset"]]
        assert cell == (float(line["paper"]), float(line["paper_std"]))


def test_fsgnns_settings_and_accuracies(reference):
    found = lines(reference / "fsgnn_configs.csv")
    assert len(found) == 38
    usual, without = {}, {}
    for line in found:
        row, own = model(line | {"model": "FSGNN"}), float(line["fsgnn_readme_test"])
        if line["hop_normalise"] == "1":
            usual[line["dataset"], row] = settings(line), own
        else:
            assert line["dataset"] == "actor"
            without[row] = settings(line) | {"hop_normalize": False}, own
    assert {cell: chosen for cell, (chosen, _) in usual.items()} == published.FSGNN
    assert {cell: own for cell, (_, own) in usual.items()} == published.FSGNN_PUBLISHED
    assert without == published.ACTOR_WITHOUT_NORM


@pytest.mark.parametrize(("number", "table"), [(1, published.TABLE1), (2, published.TABLE2)])
def test_tables_one_and_two(reference, number, table):
    found = lines(reference / "tables" / f"table{number}.csv")
    wanted = {model(line): {gamma: float(line[f"gamma_{gamma:g}"]) for gamma in published.GAMMAS} for line in found}
    assert len(wanted) == len(found) == 9
    assert wanted == table


def test_table_three(reference):
    found = lines(reference / "tables" / "table3.csv")
    assert len(found) == 16
    own, cited, averages = {}, {}, {}
    for line in found:
        cells = {name: as_printed(line, name) for name in published.DATASETS}
        if line["model"] in ("PEGFAN", "FSGNN"):
            key = model(line).key
            own[model(line)] = cells
        else:
            key = line["model"]
            cited[key] = cells
        if line["avg"]:
            averages[key] = float(line["avg"]), int(line["rank"])
    assert own == published.TABLE3
    assert cited == published.CITED
    assert averages == published.TABLE3_AVERAGE


def test_reruns_of_cited_systems(reference):
    found = [line for line in lines(reference / "rivals" / "published.csv") if line["system"].endswith("(GGCN rerun)")]
    names = {"GEOM-GCN": "Geom-GCN", "H2GCN": "H2GCN-1"}
    wanted = {name: {} for name in published.RERUNS}
    for line in found:
        system = line["system"].removesuffix(" (GGCN rerun)")
        wanted[names.get(system, system)][line["dataset"]] = Published(float(line["mean"]), float(line["std"]))
    assert wanted == published.RERUNS


def test_table_four(reference):
    found = lines(reference / "tables" / "table4.csv")
    wanted = {
        (line["dataset"], model(line)): Times(
            float(line["avg_s"]), float(line["max_s"]), float(line["min_s"]), int(line["n_channels"])
        )
        for line in found
    }
    assert len(wanted) == len(found) == 6
    assert wanted == published.TABLE4
