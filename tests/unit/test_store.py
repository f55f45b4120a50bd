"""The results store: what is in it stays, whatever happens to its writers."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import warnings
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegfan.experiments import store as module
from pegfan.experiments.store import Store


def sealed(text):
    """A line with the check that belongs to it, whatever is in it; `text` lacks its last brace."""
    body = text if isinstance(text, bytes) else text.encode()
    return body + f',"check":"{zlib.crc32(body):08x}"}}\n'.encode()


def filled(folder, count=5):
    store = Store(folder)
    for i in range(count):
        store.append({"key": f"k{i}", "value": i / 3, "text": "Ünïcode\n\u2028"})
    return store


def test_records_come_back_in_order_and_the_newest_of_a_key_counts(tmp_path):
    store = filled(tmp_path / "a" / "b")
    store.append({"key": "k1", "value": "new"})
    for one in (store, Store(tmp_path / "a" / "b", create=False)):
        assert [record["key"] for record in one] == ["k0", "k1", "k2", "k3", "k4", "k1"]
        assert len(one) == 6
        assert one.get("k1") == {"key": "k1", "value": "new"}
        assert one.get("k2") == {"key": "k2", "value": 2 / 3, "text": "Ünïcode\n\u2028"}
        assert "k4" in one
        assert "k5" not in one
        assert one.get("k5") is None
        assert not one.damaged
    assert os.listdir(store.folder) == ["records.jsonl"]


def test_any_tool_reads_the_lines_and_appending_adds_one(tmp_path):
    store = filled(tmp_path)
    before = store.path.read_bytes()
    store.append({"key": "more"})
    after = store.path.read_bytes()
    assert after.startswith(before)
    lines = after.decode().split("\n")
    assert lines.pop() == ""
    assert [json.loads(line)["key"] for line in lines] == ["k0", "k1", "k2", "k3", "k4", "more"]
    body, check = lines[-1][:-1].split(',"check":')
    assert json.loads(check) == f"{zlib.crc32(body.encode()):08x}"


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text('aé\0\n"\\€'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(values, min_size=1, max_size=4))
def test_values_come_back_exactly(tmp_path_factory, entries):
    folder = tmp_path_factory.mktemp("store")
    store = Store(folder)
    for entry in entries:
        store.append({"key": "k", "value": entry})
    assert repr([record["value"] for record in Store(folder)]) == repr(entries)  # -0.0 is not 0.0


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({}, "key"),
        ({"key": 3}, "key"),
        ({"key": "../x"}, "key"),
        ({"key": "a\n"}, "key"),
        ({"key": ""}, "key"),
        ({"key": "k" * 101}, "key"),
        ({"key": "k", "check": 1}, "check"),
        ({"key": "k", "value": float("nan")}, "JSON"),
        ({"key": "k", "value": float("inf")}, "JSON"),
        ({"key": "k", "value": {1, 2}}, "JSON"),
        ({"key": "k", "value": "\ud800"}, "JSON"),
        ({"key": "k", "value": "x" * 2**20}, "bytes"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_leaves_nothing(tmp_path, record, words):
    store = filled(tmp_path, 1)
    before = store.path.read_bytes()
    with pytest.raises(ValueError, match=words):
        store.append(record)
    assert store.path.read_bytes() == before


# ---------------------------------------------------------------- torn and damaged


def test_a_line_torn_anywhere_is_ignored_and_mended(tmp_path):
    whole = filled(tmp_path).path.read_bytes()
    start = whole.rstrip(b"\n").rindex(b"\n") + 1
    for cut in range(start, len(whole)):
        (tmp_path / "records.jsonl").write_bytes(whole[:cut])
        store = Store(tmp_path)
        assert [record["key"] for record in store] == ["k0", "k1", "k2", "k3"]
        assert not store.damaged
        store.append({"key": "next"})
        kept = ["k4"] if cut == len(whole) - 1 else []  # all of it but the newline: nothing is lost
        expected = ["k0", "k1", "k2", "k3", *kept, "next"]
        assert [record["key"] for record in store] == expected
        fresh = Store(tmp_path)
        assert [record["key"] for record in fresh] == expected
        assert not fresh.damaged


def test_a_first_line_that_is_torn_is_mended_too(tmp_path):
    (tmp_path / "records.jsonl").write_bytes(b'{"key":"k0","val')
    store = Store(tmp_path)
    assert len(store) == 0
    store.append({"key": "a"})
    assert [record["key"] for record in Store(tmp_path)] == ["a"]


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"<<<<<<< HEAD\n",
        b"\xff\xfe\n",
        b'{"key":"x"}\n',
        b'{"key":"x","check":"00000000"}\n',
        b'{"key":"x","check":12}\n',
        sealed('{"key":"x","value":NaN'),
        sealed('{"key":"x","value":-Infinity'),
        sealed('{"key":"x","value":'),
        sealed('["key","x"'),
        sealed('{"key":7'),
        sealed('{"key":["x"]'),
        sealed('{"value":7'),
        sealed('{"key":"a/b"'),
        sealed(b'{"key":"\xff"'),
        sealed('{"key":"x","value":' + "[" * 200_000),
        sealed('{"key":"x","value":' + "9" * 10_000),
        sealed('{"key":"x","value":"' + "y" * 2**20 + '"'),
        sealed('{"key":"x","value":"' + "y" * 2**22 + '"'),
    ],
    ids=lambda line: f"{line[:24]!r}-{len(line)}",
)
def test_damaged_and_hostile_lines_are_ignored_and_counted(tmp_path, line):
    path = filled(tmp_path).path
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*whole[:2], line, *whole[2:]]))
    with pytest.warns(UserWarning, match="1 damaged lines ignored; line 3"):
        store = Store(tmp_path)
    assert [record["key"] for record in store] == ["k0", "k1", "k2", "k3", "k4"]
    assert [number for number, _ in store.damaged] == [3]
    store.append({"key": "more"})  # warns no more, and leaves the line for a human to see
    assert line in path.read_bytes()
    with pytest.warns(UserWarning, match="line 3"):
        assert "more" in Store(tmp_path)


def test_a_bit_that_flips_in_a_record_costs_that_record_only(tmp_path):
    path = filled(tmp_path).path
    whole = path.read_bytes()
    for place in range(0, whole.index(b"\n"), 7):
        changed = bytearray(whole)
        changed[place] ^= 4
        path.write_bytes(changed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert [record["key"] for record in Store(tmp_path)] == ["k1", "k2", "k3", "k4"]


def test_a_file_that_is_too_large_is_refused(tmp_path, monkeypatch):
    filled(tmp_path)
    monkeypatch.setattr(module, "MAX_BYTES", 100)
    with pytest.raises(ValueError, match="100"):
        Store(tmp_path)


# ----------------------------------------------------------------------- the disk


@pytest.mark.parametrize("taken", [0, 1, 30])
def test_a_full_disk_is_a_clear_error_and_costs_nothing(tmp_path, monkeypatch, taken):
    store = filled(tmp_path)
    before, write, left = store.path.read_bytes(), os.write, [taken]

    def full(file, data):
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        count, left[0] = write(file, data[: left[0]]), 0
        return count

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="the disk is full: the record new was not stored, all others are safe") as caught:
        store.append({"key": "new", "value": "x" * 100})
    monkeypatch.undo()
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(store.path)
    assert store.path.read_bytes() == before
    assert "new" not in store
    store.append({"key": "new"})
    assert "new" in Store(tmp_path)


def test_an_error_of_fsync_is_one_too(tmp_path, monkeypatch):
    store = filled(tmp_path)
    before = store.path.read_bytes()

    def fail(file):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output error: the record new was not stored"):
        store.append({"key": "new"})
    monkeypatch.undo()
    assert store.path.read_bytes() == before


def test_places_that_cannot_be_stores(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is a file"):
        Store(tmp_path / "file")
    with pytest.raises(FileNotFoundError, match="not a store"):
        Store(tmp_path, create=False)
    assert not (tmp_path / "records.jsonl").exists()


# ------------------------------------------------------------------ several writers


def test_what_others_append_is_seen(tmp_path):
    one, other = filled(tmp_path), Store(tmp_path)
    other.append({"key": "theirs"})
    assert "theirs" not in one
    one.refresh()
    assert "theirs" in one
    other.append({"key": "again"})
    one.append({"key": "mine"})
    assert [record["key"] for record in one][-3:] == ["theirs", "again", "mine"]


def test_a_file_that_was_exchanged_is_read_anew(tmp_path):
    store = filled(tmp_path / "a")
    filled(tmp_path / "b", 2)
    os.replace(tmp_path / "b" / "records.jsonl", store.path)
    store.append({"key": "more"})
    assert [record["key"] for record in store] == ["k0", "k1", "more"]
    store.path.write_bytes(store.path.read_bytes().splitlines(keepends=True)[0])
    store.refresh()
    assert [record["key"] for record in store] == ["k0"]
    store.path.unlink()
    store.refresh()
    assert len(store) == 0


def test_writers_at_once_lose_nothing(tmp_path):
    def write(name):
        store = Store(tmp_path)
        for i in range(20):
            store.append({"key": f"{name}-{i}", "text": "x" * 5000})

    threads = [threading.Thread(target=write, args=(name,)) for name in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [record["key"] for record in Store(tmp_path)]
    assert sorted(found) == sorted(f"{name}-{i}" for name in range(5) for i in range(20))
    assert [key for key in found if key.startswith("3-")] == [f"3-{i}" for i in range(20)]


WRITER = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("store", sys.argv[1])
store = importlib.util.module_from_spec(spec)
spec.loader.exec_module(store)
mine = store.Store(sys.argv[2])
for i in range(10**6):
    mine.append({"key": f"{sys.argv[3]}-{i}", "text": "x" * 20000})
    print(i, flush=True)
"""


@pytest.mark.long
def test_writers_that_are_killed_lose_only_what_they_did_not_finish(tmp_path):
    """Two at once, killed at any moment: what one said to be stored is there, whole and in order."""
    for turn in range(3):
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", WRITER, module.__file__, tmp_path, f"{turn}{name}"], stdout=subprocess.PIPE
            )
            for name in "ab"
        ]
        said = []
        for writer in writers:
            for _ in range(5 + 3 * turn):
                writer.stdout.readline()
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
            rest = writer.communicate()[0].split()
            said.append(int(rest[-1]) if rest else 4 + 3 * turn)
        store = Store(tmp_path)
        assert not store.damaged
        for name, last in zip("ab", said, strict=True):
            mine = [record["key"] for record in store if record["key"].startswith(f"{turn}{name}-")]
            assert mine == [f"{turn}{name}-{i}" for i in range(len(mine))]
            assert last + 1 <= len(mine) <= last + 2
        store.append({"key": f"after-{turn}"})
    assert not Store(tmp_path).damaged
