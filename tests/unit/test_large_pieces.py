"""Stages and pieces: what is finished is found again, what is half or damaged is not taken for finished."""

import errno
import itertools
import json

import numpy as np
import pytest

from pegfan.large import pieces
from pegfan.large.pieces import MARKER, FullError, Work, run_piece


def runs(work):
    """How often a piece was computed in a folder."""
    log = work.folder / "log.jsonl"
    return log.read_text().count("ended") if log.exists() else 0


def test_finished_pieces_are_found_again(tmp_path):
    with Work(tmp_path / "work") as work:
        squares = work.stage(pieces.example, {"power": 2}, count=3)
        assert not squares.folder.exists()  # nothing is done before somebody asks
        assert [result["value"] for result in squares.results] == [0, 1, 4]
        assert runs(work) == 3
    with Work(tmp_path / "work") as work:
        again = work.stage(pieces.example, {"power": 2}, count=3)
        assert again.key == squares.key
        assert again.load("value", 2).tolist() == [4]
        assert runs(work) == 3
        other = work.stage(pieces.example, {"power": 3}, count=3)
        assert other.key != squares.key
        assert other.result(2) == {"value": 8}


def test_a_piece_takes_no_negative_time_though_the_clock_goes_back(tmp_path, monkeypatch):
    days = itertools.count(0, -86_400)
    monkeypatch.setattr(pieces.time, "time", lambda: float(next(days)))
    with Work(tmp_path / "work") as work:
        stage = work.stage(pieces.example, {"power": 1}, count=1).run()
    assert 0 <= json.loads(stage.path("done.json", 0).read_text())["seconds"] < 60


@pytest.mark.parametrize("damage", ["cut", "gone", "no word"])
def test_a_damaged_piece_is_computed_again(tmp_path, damage):
    with Work(tmp_path / "work") as work:
        stage = work.stage(pieces.example, {"power": 1}, count=4).run()
        path = stage.path("value.npy", 2)
        if damage == "cut":
            path.write_bytes(path.read_bytes()[:-3])
        elif damage == "gone":
            path.unlink()
        else:
            (path.parent / "done.json").write_text("{")
    with Work(tmp_path / "work") as work:
        stage = work.stage(pieces.example, {"power": 1}, count=4)
        assert stage.missing() == [2]
        assert stage.load("value", 2).tolist() == [2]
        assert runs(work) == 5


def test_freed_files_come_back_if_they_are_asked_for(tmp_path):
    with Work(tmp_path / "work") as work:
        stage = work.stage(pieces.example, {"power": 1}, count=2).run()
        work.free(stage)
        assert not list(stage.folder.rglob("*.npy"))
        assert [result["value"] for result in stage.results] == [0, 1]  # results stay
        assert runs(work) == 2
        assert stage.load("value", 1).tolist() == [1]
        assert runs(work) == 4  # both: a stage is there or not


def test_what_a_stage_reads_is_part_of_its_key(tmp_path):
    with Work(tmp_path / "work") as work:
        one, two = (work.stage(pieces.example, {"power": power}) for power in (1, 2))
        assert (
            work.stage(pieces.example, {"power": 1}, {"given": one}).key
            != work.stage(pieces.example, {"power": 1}, {"given": two}).key
        )


def test_one_process_at_a_time_works_in_a_folder(tmp_path):
    with Work(tmp_path / "work"), pytest.raises(ValueError, match="another process works in"):
        Work(tmp_path / "work")


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds other files; name a new or empty folder"):
        Work(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_leftovers_of_a_killed_process_are_removed(tmp_path):
    with Work(tmp_path / "work"):
        (tmp_path / "work" / "tmp-abc").mkdir()
        (tmp_path / "work" / "tmp-abc" / "half.npy").write_bytes(b"half")
    with Work(tmp_path / "work"):
        assert not (tmp_path / "work" / "tmp-abc").exists()


def test_a_full_disk_is_one_clear_error_and_loses_nothing(tmp_path, monkeypatch):
    with Work(tmp_path / "work", workers=1) as work:
        stage = work.stage(pieces.example, {"power": 1}, count=3)
        save, count = np.save, []

        def full(*args, **options):
            count.append(1)
            if len(count) == 2:
                raise OSError(errno.ENOSPC, "No space left on device")
            save(*args, **options)

        monkeypatch.setattr(np, "save", full)
        with pytest.raises(FullError, match=r"the disk is full: .*work needs more space. Nothing is lost"):
            stage.run()
        assert stage.missing() == [1, 2]
        assert not list(work.folder.glob("tmp-*"))
        assert [result["value"] for result in stage.results] == [0, 1, 2]
        assert runs(work) == 3


def test_an_error_of_a_piece_leaves_nothing_half(tmp_path):
    with Work(tmp_path / "work") as work:
        stage = work.stage(pieces.example, {"power": "x"}, count=1)
        with pytest.raises(TypeError):
            stage.run()
        assert not list(work.folder.glob("tmp-*"))
        assert stage.missing() == [0]


@pytest.mark.parametrize("name", ["os:system", "pegfan.large.pieces:Work.close", "pegfan.cli:app"])
def test_only_functions_of_ours_are_called(tmp_path, name):
    with pytest.raises(ValueError, match=r"a piece can be a function of pegfan\.large only"):
        run_piece(json.dumps({"function": name, "place": str(tmp_path), "folder": "x", "block": 0}))


def test_progress_says_stage_block_and_what_is_left(tmp_path):
    steps = []
    with Work(tmp_path / "work", workers=1, progress=steps.append) as work:
        work.stage(pieces.example, {"power": 1}, count=3, words="raising", size=300).run()
    texts = [str(step) for step in steps]
    assert texts[0] == "raising: block 0 of 3"
    assert texts[-1].startswith("raising: block 3 of 3, ")
    assert "million per second" in texts[-1]
    assert "left" in texts[1]
    assert [(step.done, step.planned) for step in steps] == [(0, 3), (1, 3), (2, 3), (3, 3)]


def test_a_folder_whose_mark_was_cut_short_is_empty(tmp_path):
    """What a kill left of the very first file is no file of others."""
    (tmp_path / f".{MARKER}.abcdefgh.part").write_bytes(b"{")
    with Work(tmp_path):
        pass
    (tmp_path / ".command.json.abcdefgh.part").touch()  # and of a later one, which is there since and not written again
    with Work(tmp_path):
        assert not list(tmp_path.glob(".*.part"))
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "notes.txt").touch()
    with pytest.raises(ValueError, match="holds other files"):
        Work(tmp_path / "others")
