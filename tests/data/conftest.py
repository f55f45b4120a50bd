"""Real data: the folder that PEGFAN_DATA names, and the authors' trees beside it."""

import os
from pathlib import Path

import pytest


def folder(variable: str, default: str | None, what: str) -> Path:
    named = os.environ.get(variable, default)
    if named is None or not Path(named).is_dir():
        pytest.exit(f"these tests need {what}: set {variable} to the folder (it is {named!r} now)", returncode=2)
    return Path(named)


@pytest.fixture(scope="session")
def data() -> Path:
    """Public data sets in the layout of their sources."""
    return folder("PEGFAN_DATA", None, "the public data sets")


@pytest.fixture(scope="session")
def authors_trees(data: Path) -> Path:
    """The authors' clusterings, one npz a data set and h, with the labels of every level."""
    return folder("PEGFAN_TREES", str(data.parent / "reference" / "trees"), "the authors' trees")
