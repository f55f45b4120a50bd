"""The README's Python runs as it stands, and says nothing that is not so."""

import re

import matplotlib as mpl

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
