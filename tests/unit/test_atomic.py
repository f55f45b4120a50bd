"""Files and folders appear whole or not at all, whatever interrupts the writing, and nobody else's are touched."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from pegfan import _atomic
from pegfan._atomic import replacing, replacing_folder, try_folder, try_replacing

posix = pytest.mark.skipif(sys.platform == "win32", reason="kills, links and locks of POSIX")


def tree(folder):
    """Every file below a folder, with what is in it."""
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    return {name: path.read_text() if path.is_file() else None for name, path in found.items()}


def write(folder, text, *names):
    """Write a folder with a file, and a folder in it with another."""
    with replacing_folder(folder) as new:
        (new / "a").write_text(text)
        (new / "model").mkdir()
        (new / "model" / "b").write_text(text)
        for name in names:
            (new / name).write_text(text)


def written(text, *names):
    return {"a": text, "model": None, "model/b": text, **dict.fromkeys(names, text)}


@pytest.fixture(params=["exchanged", "in place"])
def way(request, monkeypatch):
    """Both ways to replace a folder that is there."""
    if request.param == "in place":

        def refuse(one, other):
            raise OSError(errno.EBUSY, "busy", str(other))

        monkeypatch.setattr(_atomic, "_exchange", refuse)
    elif not hasattr(os, "fork"):
        pytest.skip("the system exchanges nothing")
    return request.param


# ----------------------------------------------------------------------- files


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


@posix
def test_what_is_renamed_is_on_the_disk_and_its_name_too(tmp_path, monkeypatch, way):
    """The order of calls: whatever gets a new name was synced before, and the folder of the name after."""
    steps = []

    def noted(name, real):
        def call(*args, **options):
            places = [os.readlink(f"/proc/self/fd/{a}") if isinstance(a, int) else str(a) for a in args[:2]]
            steps.append((name, *places))
            return real(*args, **options)

        return call

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc")
    for name in ("fsync", "replace", "rename"):
        monkeypatch.setattr(os, name, noted(name, getattr(os, name)))
    monkeypatch.setattr(_atomic, "_exchange", noted("exchange", _atomic._exchange))
    with replacing(tmp_path / "file") as file:
        file.write(b"new")
    assert [step[0] for step in steps] == ["fsync", "replace", "fsync"]
    assert steps[0][1] == steps[1][1]
    assert steps[2][1] == str(tmp_path)
    write(tmp_path / "out", "old")
    steps.clear()
    write(tmp_path / "out", "new")
    moved = next(i for i, step in enumerate(steps) if step[0] != "fsync" and step[1].endswith(("/new", "/new/a")))
    synced = {step[1].rpartition("/new/")[2] for step in steps[:moved] if step[0] == "fsync"}
    assert {"a", "model", "model/b"} <= synced
    assert steps[-1] == ("fsync", str(tmp_path if way == "exchanged" else tmp_path / "out"))


# --------------------------------------------------------------------- folders


def test_a_folder_is_replaced_whole(tmp_path, way):
    out = tmp_path / "out"
    write(out, "old", "stale")
    (out / "model").chmod(0o700)
    assert tree(out) == written("old", "stale")
    write(out, "new", "fresh")
    assert tree(out) == written("new", "fresh")
    assert os.listdir(tmp_path) == ["out"]


def test_a_folder_keeps_its_permissions(tmp_path, way):
    write(tmp_path / "out", "old")
    (tmp_path / "out").chmod(0o700)
    write(tmp_path / "out", "new")
    assert (tmp_path / "out").stat().st_mode & 0o077 == 0 or sys.platform == "win32"


@pytest.mark.parametrize("interruption", [OSError("disk full"), KeyboardInterrupt()])
def test_an_interrupted_folder_leaves_the_old_one(tmp_path, way, interruption):
    write(tmp_path / "out", "old")
    with pytest.raises(type(interruption)), replacing_folder(tmp_path / "out") as new:
        (new / "a").write_text("half")
        raise interruption
    assert tree(tmp_path) == {"out": None, **{f"out/{name}": text for name, text in written("old").items()}}


@posix
def test_where_a_link_leads_is_replaced_and_the_link_stays(tmp_path):
    write(tmp_path / "real", "old")
    (tmp_path / "out").symlink_to("real")
    try_folder(tmp_path / "out")
    write(tmp_path / "out", "new")
    assert (tmp_path / "out").is_symlink()
    assert tree(tmp_path / "real") == written("new")


@posix
@pytest.mark.parametrize("folder", ["one", "one/inside"])
def test_links_that_lead_in_a_circle_are_named(tmp_path, folder):
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to("one")
    with pytest.raises(OSError, match="symbolic links") as caught:
        try_folder(tmp_path / folder)
    assert (caught.value.errno, caught.value.filename) == (errno.ELOOP, str(tmp_path / folder))


def test_whoever_stands_in_a_folder_still_does(tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    for text in ("old", "new"):
        try_folder(".")
        write(".", text)
        assert sorted(os.listdir()) == ["a", "model"]
        assert tree(tmp_path / "out") == written(text)
    assert os.listdir(tmp_path) == ["out"]


def test_a_folder_whose_parent_is_closed_is_written(tmp_path, monkeypatch):
    (tmp_path / "out").mkdir()
    real = os.mkdir

    def mkdir(path, *args, **options):
        if os.path.dirname(path) == str(tmp_path):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        real(path, *args, **options)

    monkeypatch.setattr(os, "mkdir", mkdir)
    for text in ("old", "new"):
        try_folder(tmp_path / "out")
        write(tmp_path / "out", text)
        assert tree(tmp_path / "out") == written(text)
    with pytest.raises(PermissionError):
        try_folder(tmp_path / "other")


def test_a_closed_place_is_found_out(tmp_path, monkeypatch):
    def refuse(path, *_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    (tmp_path / "out").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, "mkdir", refuse)
        with pytest.raises(PermissionError):
            try_folder(tmp_path / "out")
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(PermissionError):
        try_replacing(tmp_path / "file")
    with pytest.raises(PermissionError):
        try_folder(tmp_path / "out")
    assert tree(tmp_path) == {"out": None}


# ----------------------------------------------------------------------- kills

KILLED = """
import os, signal, sys
from pegfan import _atomic
sys.path.insert(0, {tests!r})
from test_atomic import write
if {way!r} == "in place":
    def refuse(one, other):
        raise OSError(16, "busy", str(other))
    _atomic._exchange = refuse
left = None
def counted(real):
    def call(*args, **options):
        global left
        if left is not None:
            left -= 1
            if left < 0:
                os._exit(9)
        return real(*args, **options)
    return call
for name in ("fsync", "rename", "replace", "rmdir", "unlink", "mkdir"):
    setattr(os, name, counted(getattr(os, name)))
_atomic._exchange = counted(_atomic._exchange)
number = 0
while True:
    target = os.path.join({place!r}, str(number))
    os.makedirs(target)
    write(os.path.join(target, "out"), "old", "stale")
    child = os.fork()
    if child == 0:
        left = number
        write(os.path.join(target, "out"), "new", "fresh")
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        break
    number += 1
print(number)
"""


@posix
def test_killed_at_any_step_the_old_or_the_new_folder_is_there(tmp_path, way):
    script = KILLED.format(tests=os.path.dirname(__file__), way=way, place=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    steps = int(done.stdout)
    assert steps > 10
    seen = set()
    for number in range(steps):
        out = tmp_path / str(number) / "out"
        if way == "in place":
            try_folder(out)  # the next writer finishes what was begun
        found = {name: text for name, text in tree(out).items() if not _atomic.is_passing(name)}
        assert found in (written("old", "stale"), written("new", "fresh")), number
        seen.add(found["a"])
        write(out, "next")
        assert tree(out) == written("next")
        assert os.listdir(out.parent) == ["out"], "leftovers"
    assert seen == {"old", "new"}


WRITES = """
import sys, time
from pegfan._atomic import replacing, replacing_folder
with replacing(sys.argv[1] + "/file") as file, replacing_folder(sys.argv[1] + "/out") as new:
    print("begun", flush=True)
    sys.stdin.read()
"""


@posix
def test_only_leftovers_of_the_dead_are_removed(tmp_path):
    mine = [".file.notes.part", ".file2.abcdefgh.part", ".file.abcdefgh.part2"]
    for name in mine:
        (tmp_path / name).write_text("mine")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen([sys.executable, "-c", WRITES, str(tmp_path)], **pipes) as dead,
        subprocess.Popen([sys.executable, "-c", WRITES, str(tmp_path)], **pipes) as alive,
    ):
        for process in (dead, alive):
            assert process.stdout.readline() == "begun\n"
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        assert len([name for name in os.listdir(tmp_path) if _atomic.is_passing(name)]) == 5
        with replacing(tmp_path / "file") as file:
            file.write(b"x")
        write(tmp_path / "out", "x")
        assert len([name for name in os.listdir(tmp_path) if _atomic.is_passing(name)]) == 3
        alive.communicate("")
        assert alive.returncode == 0
    assert sorted(os.listdir(tmp_path)) == sorted([*mine, "file", "out"])


@pytest.mark.parametrize("text", ["{", "[" * 100_000, '["../mine"]', '[".."]', "7", '[["a"]]'])
def test_a_list_of_stale_entries_leads_nowhere_else(tmp_path, text):
    out, box = tmp_path / "out", tmp_path / "out" / ".pegfan.abcdefgh.part"
    (box / "new").mkdir(parents=True)
    (box / "new" / "a").write_text("hostile")
    (box / "stale.json").write_text(text)
    (out / "a").write_text("old")
    (tmp_path / "mine").write_text("mine")
    try_folder(out)
    assert (out / "a").read_text() == "old"
    assert (tmp_path / "mine").read_text() == "mine"


def test_what_fails_half_way_out_is_finished_by_the_next_writer(tmp_path, monkeypatch):
    """In place, entries move one by one; where the disk breaks meanwhile, the rest of them is not thrown away."""
    monkeypatch.chdir(tmp_path)
    write(".", "old", "stale")
    real, moved = os.replace, []

    def breaks(one, other):
        moved.append(other)
        if os.path.basename(other) == "fresh":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(one, other)

    with monkeypatch.context() as patch, pytest.raises(OSError, match="Input/output") as caught:
        patch.setattr(os, "replace", breaks)
        write(".", "new", "fresh", "other")
    assert caught.value.filename == str(tmp_path)
    try_folder(".")
    assert tree(tmp_path) == written("new", "fresh", "other")
