"""The paper's numbers, counted in its LaTeX as LaTeX counts them, and found in docs/mathematics.md."""

import re

import pytest

from support import examples

NAMES = {"exam": "example"}


@pytest.fixture(scope="module")
def source(paper):
    """The paper without comments."""
    (file,) = paper.glob("*.txt")
    return re.sub(r"(?<!\\)%.*", "", file.read_text())


def table():
    text = (examples.ROOT / "docs" / "mathematics.md").read_text().split("## The paper by its numbers\n")[1]
    return re.findall(r"^\| (\w+ [^|]+?) \|", text.split("\n## ")[0], flags=re.MULTILINE)


@pytest.mark.parametrize(
    "kind",
    ["theorem", "corollary", "proposition", "remark", "exam", "definition", "algorithm", "figure", "table"],
)
def test_environments(source, kind):
    """Every kind has a counter of its own; floats count where their caption stands."""
    assert re.search(rf"\\newtheorem\{{{kind}\}}\{{", source) or kind in ("algorithm", "figure", "table")
    count = len(re.findall(rf"\\begin\{{{kind}\*?\}}", source))
    name = NAMES.get(kind, kind).capitalize()
    assert len([number for number in table() if number.startswith(f"{name} ")]) == count > 0


def test_equations(source):
    """Every row of an ``align`` has a number; rows inside its matrices have none."""
    count = 0
    for _, rows in re.findall(r"\\begin\{(align|equation)\}(.*?)\\end\{\1\}", source, flags=re.DOTALL):
        outer = re.sub(r"\\begin\{(bmatrix|aligned|cases)\}.*?\\end\{\1\}", "", rows, flags=re.DOTALL)
        count += len(outer.split(r"\\"))
    assert len([number for number in table() if number.startswith("Equation ")]) == count == 18
