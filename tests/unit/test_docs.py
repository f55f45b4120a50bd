"""What the documentation shows runs as it stands, leads somewhere, and names what there is."""

import ast
import importlib
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

import pegfan
from pegfan.auto.recipes import Space
from support import examples

DOCS = examples.ROOT / "docs"
WRITTEN = sorted(page for page in DOCS.rglob("*.md") if not {"_build", "results"} & set(page.relative_to(DOCS).parts))
MARKUP = {"toctree", "include", "image", "pegfan-commands"}
PARTS = [page.stem for page in sorted((DOCS / "api").glob("*.rst"))]


def name(page: Path) -> str:
    return str(page.relative_to(DOCS))


@pytest.mark.parametrize("page", WRITTEN, ids=name)
@pytest.mark.long
def test_the_examples_run(page, tmp_path, monkeypatch):
    mpl.use("agg")
    monkeypatch.chdir(tmp_path)
    examples.run(page)


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_every_block_is_run_or_is_markup(page):
    for block in examples.blocks(page):
        assert block.kind in {*examples.KINDS, *MARKUP}, f"{block.place}: no test runs a block of {block.kind!r}"


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_its_roles_name_objects(page):
    """Sphinx says so too, but only where it is installed and only when the documentation is built."""
    for role in re.findall(r"\{(?:func|meth|class|data|mod)\}`([^`]+)`", page.read_text()):
        found = find(re.sub(r".*<(.*)>", r"\1", role).removeprefix("~"))
        assert found is not None, role


def find(path: str):
    """The object of a dotted name."""
    parts = path.split(".")
    assert parts[0] == "pegfan", f"{path} is not the full name of an object"
    found = pegfan
    for place, part in enumerate(parts[1:], start=2):
        if not hasattr(found, part):
            importlib.import_module(".".join(parts[:place]))
        found = getattr(found, part)
    return found


def test_the_page_on_automatic_training_has_every_part_that_is_varied():
    rng = np.random.default_rng(0)
    pairs, words = rng.integers(30, size=(90, 2)), (rng.random((30, 9)) < 0.3) * 1.0
    graph = pegfan.Graph.from_edges(pairs, n=30, directed=True, features=words, labels=np.arange(30) % 2)
    kinds = {"edge_matrices": {"paid": graph.adjacency * 2, "owes": graph.adjacency.T.tocsr()}, "edge_kinds": ("owes",)}
    spaces = [Space(graph, {}, unequal=True), Space(graph.replace(**kinds), {})]
    parts = {part for space in spaces for head in space.heads.values() for part, _ in head}
    assert {"scaling", "weight", "kinds", "direction", "class_weights", "leaves"} < parts
    table = (DOCS / "automatic.md").read_text().split("## What is varied")[1].split("##")[0]
    assert {part for part in parts if f"`{part}`" not in table} == set()


def test_pages_are_reached_from_the_first():
    first = (DOCS / "index.md").read_text()
    for page in WRITTEN:
        entry = str(page.relative_to(DOCS).with_suffix(""))
        assert entry == "index" or re.search(rf"^{entry}$", first, flags=re.MULTILINE), entry
    listed = (DOCS / "api" / "index.md").read_text()
    for part in PARTS:
        assert re.search(rf"^{part}$", listed, flags=re.MULTILINE), part


def test_the_reference_has_everything_that_pegfan_offers():
    documented = "".join(page.read_text() for page in (DOCS / "api").glob("*.rst"))
    modules = [importlib.import_module(found) for found in re.findall(r"automodule:: (\S+)", documented)]
    offered = {entry for module in modules for entry in getattr(module, "__all__", [])}
    doors = {module.__name__.removeprefix("pegfan.") for module in modules}
    assert set(pegfan.__all__) <= offered | doors, set(pegfan.__all__) - offered - doors


# --------------------------------------------------------------- the paper by its numbers

ROMAN = ("I", "II", "III", "IV", "V", "VI")
COUNTED = {"Theorem": 5, "Corollary": 1, "Proposition": 2, "Remark": 5, "Example": 1, "Definition": 1, "Algorithm": 4}
NUMBERS = [f"{kind} {i}" for kind, count in {**COUNTED, "Figure": 6}.items() for i in range(1, count + 1)]
NUMBERS += [*(f"Table {number}" for number in ROMAN), *(f"Equation ({i})" for i in range(1, 19))]


def by_number() -> dict[str, list[str]]:
    """The tests that the table of mathematics.md names, by the paper's number."""
    text = (DOCS / "mathematics.md").read_text().split("## The paper by its numbers\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")][1:]
    assert all(len(row) == 4 for row in rows)
    return {row[0]: re.findall(r"`([^`]+::[^`]+)`", row[3]) for row in rows}


def find_test(reference: str) -> ast.FunctionDef:
    file, test = reference.split("::")
    path = examples.ROOT / "tests" / (file if "/" in file else f"unit/{file}")
    found = [part for part in ast.parse(path.read_text()).body if isinstance(part, ast.FunctionDef)]
    return next(part for part in found if part.name == test)


def test_everything_that_the_paper_numbers_is_there_once_and_in_order():
    numbers = [number for number in by_number() if not number.startswith("Section")]
    assert sorted(numbers) == sorted(NUMBERS)
    for kind in {number.split()[0] for number in numbers}:
        mine = [number for number in numbers if number.split()[0] == kind]
        assert mine == [number for number in NUMBERS if number.split()[0] == kind]


@pytest.mark.parametrize("number", by_number())
def test_the_tests_of_a_number_exist_and_cite_it(number):
    tests = [find_test(reference) for reference in by_number()[number]]
    assert tests, f"no test holds {number}"
    kind, _, value = number.partition(" ")
    if kind not in ("Equation", "Section", "Table"):
        words = [f"{test.name.replace('_', ' ')} {ast.get_docstring(test) or ''}".lower() for test in tests]
        assert any(kind.lower() in text and re.search(rf"\b{value}\b", text) for text in words)


def test_every_sentence_of_the_promise_has_its_test():
    """Of docs/equivariance.md: the numbered sentences, and the tests that would fail if they did not hold."""
    text = (DOCS / "equivariance.md").read_text()
    stated, held = text.split("## What holds\n")[1].split("## Which test holds it\n")
    held = held.split("\n## ")[0]
    tests = dict(re.findall(r"^\| \*\*(\S+)\*\* \| (.*) \|$", held, flags=re.MULTILINE))
    numbers = re.findall(r"^\| \*\*(\d+)\*\* ", stated, flags=re.MULTILINE)
    assert numbers == [str(i) for i in range(1, 10)]
    assert set(numbers) <= set(tests)
    for references in tests.values():
        found = re.findall(r"`([^`]+::[^`]+)`", references)
        assert found
        for reference in found:
            assert find_test(reference)


def test_a_wrong_example_is_found(tmp_path):
    page = tmp_path / "page.md"
    for text in ("```python\n1 / 0\n```\n", "```pycon\n>>> 1 + 1\n3\n```\n", "```sh\nmake no-such-target\n```\n"):
        page.write_text(text)
        with pytest.raises((AssertionError, ZeroDivisionError)):
            examples.run(page)
    page.write_text("```sh\npegfan --version\n```\n\n```text\nsomething else\n```\n")
    with pytest.raises(AssertionError, match=r"page\.md:5 shows"):
        examples.run(page)


def test_the_page_of_signals_has_the_numbers_that_were_computed(monkeypatch):
    monkeypatch.syspath_prepend(str(examples.ROOT / "benchmarks"))
    signals = importlib.import_module("signals")
    text = signals.PAGE.read_text(encoding="utf-8")
    assert signals.page(text) == text
    for part in signals.PARTS:
        assert signals.table(part) in text
