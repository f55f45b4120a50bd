"""A run in pieces that is killed once goes on where it was, and ends with the same bits."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "support" / "large_run.py"

pytestmark = pytest.mark.long


def start(out, work):
    return subprocess.Popen([sys.executable, SCRIPT, out, work], stderr=subprocess.DEVNULL)


def run(out, work):
    subprocess.run([sys.executable, SCRIPT, out, work], check=True)


def finished(work):
    log = work / "log.jsonl"
    return log.read_text().count('"ended"') if log.exists() else 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_killed_goes_on(tmp_path, number):
    run(tmp_path / "whole.npz", tmp_path / "whole")
    every = finished(tmp_path / "whole")
    process = start(tmp_path / "killed.npz", tmp_path / "killed")
    while process.poll() is None and finished(tmp_path / "killed") < every // 2:
        time.sleep(0.001)
    process.send_signal(number)
    assert process.wait() != 0
    before = finished(tmp_path / "killed")
    assert not (tmp_path / "killed.npz").exists()
    run(tmp_path / "killed.npz", tmp_path / "killed")
    assert (tmp_path / "killed.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert finished(tmp_path / "killed") - every <= 3, "finished pieces were computed again"
    assert before >= every // 2
    assert not list((tmp_path / "killed").glob("tmp-*"))
