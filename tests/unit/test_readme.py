"""The README's Python runs as it stands, and says nothing that is not so."""

import json
import re

import matplotlib as mpl
import numpy as np
import pytest

from pegfan.experiments import Store
from pegfan.paper.cells import Options, lookup, parse_rungs, read_notes
from pegfan.paper.synthetic import Synthetic
from support import examples

README = examples.ROOT / "README.md"


def test_the_examples_run(tmp_path, monkeypatch):
    mpl.use("agg")
    monkeypatch.chdir(tmp_path)
    names = examples.run(README, kinds=("python",))
    assert abs(sum(names["system"].projections(names["f"])) - names["f"]).max() < 1e-12


def test_what_it_links_to_exists():
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text())
    assert links
    for link in links:
        assert (README.parent / link).exists(), link


def test_its_commands_are_targets():
    makefile = (README.parent / "Makefile").read_text()
    for target in set(re.findall(r"make ([a-z-]+)", README.read_text())):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


def test_constraints_hold_on_any_machine():
    lines = (README.parent / "constraints.txt").read_text().splitlines()
    assert len(lines) > 20
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!]+", line)] == []


def test_its_accuracies_are_those_of_the_results():
    """Every number of the table is in the documents that the command wrote, under the row and the set it stands at."""
    rows = [line.strip("| ").split(" | ") for line in README.read_text().splitlines() if line.startswith("| ")]
    names, rows = [name.lower() for name in rows[0][:-1]], rows[1:]
    assert len(names) == 9
    assert len(rows) == 4
    for label, *values, average in rows:
        table = "table3" if "our trees" in label else "table3-authors-trees"
        found = json.loads((README.parent / "docs" / "results" / f"{table}.json").read_text())["cells"]
        row = re.sub(r"(FSGNN|PEGFAN),? ", "", label)
        row = {"r = 3": "r3", "r = 8": "r8"}.get(row, "c8")
        cells = {cell["set"]: cell for cell in found if cell["table"] == "III" and cell["row"] == row}
        assert values == [f"{cells[name]['ours']:.2f} / {cells[name]['paper']:.2f}" for name in names]
        whose = {name for name in names if (cells[name].get("tree") or "").startswith("own:")}
        assert ("Pubmed: ours" in label) == (whose == {"pubmed"})  # where one tree of a row is not what the row says
        means = [np.mean([cells[name][whose] for name in names]) for whose in ("ours", "paper")]
        assert [float(mean) for mean in average.split(" / ")] == pytest.approx(means, abs=0.0051)


def result(name):
    return json.loads((README.parent / "docs" / "results" / f"{name}.json").read_text())


@pytest.mark.long
def test_the_sentences_about_searches_are_those_of_the_runs():
    """What `--only ... --rungs 108x1500` would print, from the store; and the rates that the results page speaks of."""
    records = lookup(Store(README.parent / "results"))
    notes = read_notes(README.parent / "docs" / "results", "table2")
    said = [re.search(r"`--only (\S+) --rungs (\S+)`\) it is ([0-9.]+[0-9])", note).groups() for note in notes.values()]
    assert len(said) == 5
    for only, rungs, number in said:
        table = Synthetic(Options(only=tuple(only.split(",")), rungs=parse_rungs(rungs)), 2)
        score = table.score(records, table.gammas[0], table.models[0])
        assert f"{score.mean:.1f}" == number, only
    winners = [cell["settings"] for name in ("table1", "table2") for cell in result(name)["cells"]]
    assert {settings["lr_fc"] for settings in winners} == {0.01}
    assert [settings["lr_sca"] for settings in winners].count(0.04) == len(winners) - 1


def test_its_gains_and_seconds_are_those_of_the_results():
    text = " ".join(README.read_text().split())
    first, times = result("table1")["summary"], result("table4-authors-trees")["summary"]
    gains = re.findall(r"[+-][0-9.]+[0-9]", first["claims"]["type b beats FSGNN r = 3 at every γ"]["numbers"])
    assert len(gains) == 6
    assert f"by {min(map(float, gains))} to {max(map(float, gains))} points" in text
    second = result("table2")["summary"]
    assert f"{first['agree']['agree']} of 54 cells of [Table I]" in text
    assert f"{second['agree']['agree']} of 54 cells of [Table II]" in text
    on_sx = [summary["agree with type a, h = 4 on SX"] for summary in (first, second)]
    assert f"and {on_sx[0]} and {on_sx[1]} cells in all" in text
    cells = [cell for name in ("table1", "table2") for cell in result(name)["cells"] if cell["row"] == "as4"]
    assert [cell["verdict"] for cell in cells] == ["agrees"] * 12
    chameleon, squirrel = times["chameleon c4"], times["squirrel c4"]
    assert f"{chameleon['wall']:.1f} seconds on chameleon and {squirrel['wall']:.1f} on squirrel" in text
    assert f"took {chameleon['paper']:.1f} and {squirrel['paper']:.1f}" in text
    for name, link in (("table3-authors-trees", "With the authors' trees"), ("table3", "with ours")):
        summary = result(name)["summary"]
        assert link in text
        agree = summary["pegfan"]["agree"]
        assert (f"{agree} of PEGFAN's 54 cells" if "authors" in name else f"equivariant, {agree};") in text
        assert f"all {summary['fsgnn']['agree']} of FSGNN agree" in text


def test_what_it_says_of_the_other_systems_is_what_the_tables_say():
    text = " ".join(README.read_text().split())
    folder = README.parent / "docs" / "results"
    cited = json.loads((folder / "table3.json").read_text())["summary"]["cited"]
    found = re.search(r"(\d+) of their (\d+) published figures agree with ours and (\d+) more rest on a point", text)
    assert tuple(map(int, found.groups())) == (cited["agree"], cited["of"], cited["rest on a point"])
    assert ("figures await runs" in text) == (cited["without verdict"] > 0)
    leak_free = json.loads((folder / "leak-free.json").read_text())
    ours, models = leak_free["summary"]["pegfan"], {cell["row"] for cell in leak_free["cells"]}
    found = re.search(r"(\d+) models on (\d+) graphs.*?best on (\d+), not to be told from the best on (\d+) more", text)
    assert tuple(map(int, found.groups())) == (len(models), ours["graphs"], len(ours["best"]), len(ours["even"]))
