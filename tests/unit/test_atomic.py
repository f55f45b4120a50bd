"""Files appear whole or not at all, whatever interrupts the writing."""

import os

import pytest

from pegfan._atomic import replacing


@pytest.mark.parametrize("interruption", [OSError("disk full"), KeyboardInterrupt(), ValueError("bad row")])
def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path, interruption):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(type(interruption)), replacing(target) as file:
        file.write(b"half")
        raise interruption
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_failed_replacement_leaves_the_old_file(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("read-only")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="read-only"), replacing(tmp_path / "a.txt") as file:
        file.write(b"new")
    assert os.listdir(tmp_path) == []


def test_the_file_gets_ordinary_permissions(tmp_path):
    with replacing(tmp_path / "a") as file:
        file.write(b"new")
    (tmp_path / "b").write_bytes(b"")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode
    assert (tmp_path / "a").read_bytes() == b"new"
