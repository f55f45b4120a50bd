"""How property tests run (the same examples every time, so that a red run can be repeated), and where real data is."""

import os
import signal
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Threads that wait by spinning take the cores from the other test process: most of the time went there.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

settings.register_profile(
    "quick", max_examples=10, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", parent=settings.get_profile("quick"), max_examples=200)
settings.register_profile("thorough", parent=settings.get_profile("quick"), max_examples=300, derandomize=False)
settings.load_profile(os.environ.get("PEGFAN_HYPOTHESIS", "quick"))

# A shell in the background has its commands ignore Ctrl-C, and theirs too: tests of Ctrl-C would wait for nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Say it once, before any worker starts, if tests on real data are asked for and there is none."""
    wanted = any(part in str(argument) for argument in config.args for part in ("tests/data", "tests/slow"))
    if wanted and "PEGFAN_DATA" not in os.environ:
        pytest.exit("these tests need the public data sets: set PEGFAN_DATA to their folder", returncode=2)


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
    """The authors' clusterings, one npz per data set and h, with the labels of every level."""
    return folder("PEGFAN_TREES", str(data.parent / "reference" / "trees"), "the authors' trees")


@pytest.fixture(scope="session")
def reference(data: Path) -> Path:
    """What was read in the paper and in the authors' files, as tables."""
    return folder("PEGFAN_REFERENCE", str(data.parent / "reference"), "the paper's tables and the authors' settings")


@pytest.fixture(scope="session")
def paper(data: Path) -> Path:
    """The paper's LaTeX."""
    return folder("PEGFAN_PAPER", str(data.parent / "paper"), "the paper's LaTeX")


@pytest.fixture(scope="session")
def pyg():
    """PyG, imported only where it is tested: it takes seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns about torch.jit as it loads
        import torch_geometric.data
    return torch_geometric.data
