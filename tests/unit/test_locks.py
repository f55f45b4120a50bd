"""One process at a time, and a lock that does not outlive its holder."""

import os
import subprocess
import sys
import threading

import filelock
import pytest

from pegfan import _locks
from pegfan._locks import claim, locked

HOLD = """
import sys, time
from pathlib import Path
from pegfan._locks import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def is_free(path):
    """Whether nobody holds the lock, by the library's own means."""
    handle = os.open(path, os.O_RDONLY)
    try:
        return filelock.lock_descriptor(handle, blocking=False)
    finally:
        os.close(handle)


@pytest.fixture(params=["file", "folder"])
def place(request, tmp_path):
    path = tmp_path / "place"
    path.mkdir() if request.param == "folder" else path.write_text("")
    return path


@pytest.mark.skipif(sys.platform == "win32", reason="locks are beside the file there")
def test_it_is_held_for_the_block_and_leaves_nothing(place):
    with locked(place):
        assert not is_free(place)
    assert is_free(place)
    with pytest.raises(ZeroDivisionError), locked(place):
        raise ZeroDivisionError
    assert is_free(place)
    assert os.listdir(place.parent) == ["place"]


def test_blocks_take_turns(place):
    inside, most = [], []

    def enter():
        for _ in range(20):
            with locked(place):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 80


def test_a_killed_holder_gives_it_back(place):
    with subprocess.Popen([sys.executable, "-c", HOLD, place], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline().strip() == b"held"
        holder.kill()
        holder.wait()
    with locked(place):
        pass


def test_a_descriptor_that_is_open_already_stays_open(tmp_path):
    path = tmp_path / "file"
    handle = os.open(path, os.O_RDWR | os.O_CREAT)
    with locked(path, handle):
        pass
    os.write(handle, b"still open")
    os.close(handle)
    assert path.read_bytes() == b"still open"


def test_on_windows_the_lock_is_beside_the_file(tmp_path, monkeypatch):
    """A locked file could not be read there, and a folder not be opened."""
    monkeypatch.setattr(_locks.sys, "platform", "win32")
    monkeypatch.setattr(_locks.os, "open", lambda *_: pytest.fail("opened"))
    entered = []

    class Recorder:
        def __init__(self, path, poll_interval):
            entered.append(path)

        def acquire(self, blocking):
            if not blocking:
                raise filelock.Timeout("held")

        def release(self):
            entered.append("released")

    monkeypatch.setattr(_locks, "FileLock", Recorder)
    with locked(tmp_path / "records.jsonl") as held:
        assert entered == [f"{tmp_path / 'records.jsonl'}.lock"]
        assert held
    assert entered.pop() == "released"
    with locked(tmp_path / "records.jsonl", wait=False) as held:
        assert not held
    assert "released" not in entered


def test_whoever_does_not_wait_is_told(place):
    with locked(place) as first, locked(place, wait=False) as second:
        assert (first, second) == (True, False)
    with locked(place, wait=False) as alone:
        assert alone


def test_a_claim_is_for_one_and_leaves_nothing(tmp_path):
    path = tmp_path / "claims" / "a1"
    give_back = claim(path)
    assert claim(path) is None
    assert claim(path.with_name("b2"))() is None
    assert os.listdir(tmp_path / "claims") == ["a1"]
    give_back()
    assert not os.listdir(tmp_path / "claims")
    claim(path)()


CLAIM = """
import sys, time
from pathlib import Path
from pegfan._locks import claim
claim(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def test_a_killed_holder_gives_its_claim_back(tmp_path):
    path = tmp_path / "claims" / "a1"
    with subprocess.Popen([sys.executable, "-c", CLAIM, path], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline().strip() == b"held"
        assert claim(path) is None
        holder.kill()
        holder.wait()
    claim(path)()


def test_claims_that_are_given_back_and_taken_at_once_are_never_held_twice(tmp_path):
    inside, most = [], []

    def enter():
        for _ in range(200):
            if give_back := claim(tmp_path / "claims" / "a1"):
                inside.append(1)
                most.append(len(inside))
                inside.pop()
                give_back()

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(most) == {1}
