"""Work in pieces that is killed on the way: the same bits in the end, and little is done twice."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]
SCRIPT = [sys.executable, str(HOME / "tests" / "support" / "large_run.py"), "{out}", "{work}"]


@pytest.fixture(scope="module")
def kills():
    spec = importlib.util.spec_from_file_location("_kills", HOME / "benchmarks" / "_kills.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["_kills"] = module
    spec.loader.exec_module(module)
    return module


def test_killed_again_and_again(tmp_path, kills):
    found = kills.kill_again_and_again(SCRIPT, tmp_path, ".npz", kills=12, env=dict(os.environ))
    assert found.same
    assert found.kills >= 10, "the command ended too soon for this test to mean anything"
    assert found.repeated < 0.5
    assert len(set(found.stages)) >= 3


def test_workers_that_are_killed_in_every_stage(tmp_path, kills):
    found = kills.kill_workers([*SCRIPT, "dask"], tmp_path, ".npz", times=1, env=dict(os.environ))
    assert found.same
    assert found.kills >= 6
