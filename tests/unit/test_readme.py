"""The README's Python runs as it stands, and says nothing that is not so."""

import re
from pathlib import Path

import matplotlib as mpl

README = Path(__file__).parents[2] / "README.md"


def test_the_examples_run():
    mpl.use("agg")
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert len(blocks) >= 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
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
