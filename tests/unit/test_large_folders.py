"""Working folders: what is shown is what is there, and nothing is removed that is not ours."""

import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegfan.large.folders import NAME, find_folders, free_folder, note_command
from pegfan.large.pieces import MARKER, Work, _put, example


def make(folder, count=3):
    with Work(folder) as work:
        work.stage(example, {"power": 2}, count=count).run()
    return folder


def test_a_working_folder_is_described_and_freed(tmp_path):
    place = make(tmp_path / "a" / NAME)
    note_command(place, ["pegfan", "tree", "x"], finished=False)
    [found] = find_folders(tmp_path)
    assert (found.path, found.command, found.finished, found.busy) == (place, ("pegfan", "tree", "x"), False, False)
    [stage] = found.stages
    assert (stage.name, stage.pieces) == ("example", 3)
    on_disk = sum(512 * path.lstat().st_blocks for path in place.rglob("*") if path.is_file())
    assert found.size == on_disk
    assert 0 < stage.size < found.size
    note_command(place, ["pegfan", "tree", "x"], finished=True)
    assert find_folders(place)[0].finished
    freed = free_folder(place)
    assert not place.exists()
    assert 0 < on_disk - freed <= 8192  # the marker and the lock


def test_what_is_not_ours_stays(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep.npy").write_bytes(b"1")
    place = make(tmp_path / NAME)
    (place / "notes.txt").write_text("mine")
    (place / "example-0123").mkdir()  # not a key
    (place / ("example-" + "0" * 20)).symlink_to(outside)
    inner = next(place.glob("example-*/00000"))
    (inner / "link").symlink_to(outside)
    [found] = find_folders(tmp_path)
    assert found.foreign == ("example-" + "0" * 20, "example-0123", "notes.txt")
    free_folder(place)
    assert sorted(path.name for path in place.iterdir()) == sorted([*found.foreign, MARKER, "lock"])
    assert (outside / "keep.npy").read_bytes() == b"1"
    for name in found.foreign[1:]:
        path = place / name
        path.rmdir() if path.is_dir() else path.unlink()
    (place / found.foreign[0]).unlink()
    free_folder(place)  # and again, now that it is empty
    assert not place.exists()


@pytest.mark.parametrize("marker", [None, "text", "[]", '{"format": "x"}', "{}"])
def test_a_folder_without_our_marker_is_not_touched(tmp_path, marker):
    (tmp_path / ("sort-" + "a" * 20)).mkdir()
    if marker is not None:
        (tmp_path / MARKER).write_text(marker)
    assert find_folders(tmp_path) == []
    with pytest.raises(ValueError, match="not a working folder of pegfan"):
        free_folder(tmp_path)
    assert (tmp_path / ("sort-" + "a" * 20)).is_dir()


def test_links_are_not_followed(tmp_path):
    real = make(tmp_path / "real" / NAME)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / NAME).symlink_to(real)
    assert find_folders(tmp_path / "here") == []
    with pytest.raises(ValueError, match="not a working folder"):
        free_folder(tmp_path / "here" / NAME)
    other = tmp_path / "other"
    other.mkdir()
    (other / MARKER).symlink_to(real / MARKER)
    assert find_folders(other) == []


def test_a_folder_at_work_is_said_to_be_and_stays(tmp_path):
    with Work(tmp_path / NAME) as work:
        work.stage(example, {"power": 2}).run()
        assert find_folders(tmp_path)[0].busy
        with pytest.raises(ValueError, match="a process works in"):
            free_folder(tmp_path / NAME)
        assert len(work.stage(example, {"power": 2}).results) == 1


def test_working_folders_are_found_below_but_not_everywhere(tmp_path):
    near, far = make(tmp_path / "a" / "b" / NAME), make(tmp_path / "a" / "b" / "c" / "d" / NAME)
    assert [one.path for one in find_folders(tmp_path)] == [near]
    assert [one.path for one in find_folders(far)] == [far]
    with pytest.raises(FileNotFoundError, match="no such folder"):
        find_folders(tmp_path / "nowhere")


@given(st.lists(st.text("abc-0_.", min_size=1, max_size=30).filter(lambda name: name.strip(".")), unique=True))
def test_no_other_name_is_taken_for_ours(tmp_path_factory, names):
    place = make(tmp_path_factory.mktemp("x") / NAME, 1)
    names = [name for name in names if not (place / name).exists()]
    for name in names:
        (place / name).write_text("mine")
    free_folder(place)
    assert all((place / name).read_text() == "mine" for name in names)


def test_a_piece_that_is_there_is_not_replaced(tmp_path):
    """A worker that was taken for dead comes back, and finds its piece made by another."""
    with Work(tmp_path / "work") as work:
        stage = work.stage(example, {"power": 2}, count=2).run()
        target = stage.path("value.npy", 1).parent
        before = target.stat().st_ino
        late = tmp_path / "tmp-late"
        late.mkdir()
        np.save(late / "value.npy", np.array([7]))
        (late / "done.json").write_text(json.dumps({"result": {}, "files": {"value.npy": 136}}))
        _put(late, target)
        assert not late.exists()
        assert (target.stat().st_ino, stage.load("value", 1).tolist()) == (before, [1])
        os.truncate(target / "value.npy", 3)
        assert stage.missing() == [1]
        assert stage.load("value", 1).tolist() == [1]
