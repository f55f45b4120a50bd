"""The plan: it grows with the work, keeps to memory, and refuses what cannot fit before anything is done."""

import errno
import json
import os
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegfan._limits import machine_memory, read_bytes, show_bytes
from pegfan.large.inputs import Sizes
from pegfan.large.plan import NEEDED, REFERENCE, least_memory, make_plan, probe

SIZES = Sizes(10**6, 10**7, 16, 10**9)


@given(
    st.sampled_from(sorted(NEEDED)),
    st.integers(1, 10**9),
    st.integers(0, 10**10),
    st.integers(0, 500),
    st.integers(10**8, 10**11),
)
def test_more_of_anything_takes_no_less(command, nodes, edges, columns, memory):
    plan = make_plan(command, Sizes(nodes, edges, columns, 1), memory, REFERENCE)
    for more in (Sizes(2 * nodes, edges, columns, 1), Sizes(nodes, 2 * edges + 1, columns, 1)):
        larger = make_plan(command, more, memory, REFERENCE)
        assert larger.disk >= plan.disk
        assert larger.seconds >= plan.seconds
    assert plan.disk >= max(stage.disk + stage.passing for stage in plan.stages)
    assert all(stage.memory <= memory and stage.pieces >= 1 for stage in plan.stages)
    slower = make_plan(command, plan.sizes, memory, replace(REFERENCE, arcs=REFERENCE.arcs / 2, write=1e6))
    assert slower.seconds >= plan.seconds
    assert json.loads(json.dumps(plan.to_dict()))["least_memory"] == least_memory(nodes)


def test_less_memory_means_more_pieces():
    pieces = [
        make_plan("tree", SIZES, memory, REFERENCE).stages[-1].pieces for memory in (10**9, 4 * 10**9, 64 * 10**9)
    ]
    assert pieces == sorted(pieces, reverse=True)
    assert pieces[0] > pieces[-1] == 1


def test_what_is_known_of_a_stage_counts(tmp_path):
    plan = make_plan("train", SIZES, 10**9, REFERENCE, more={"training": 7.0})
    assert {stage.name: stage.seconds for stage in plan.stages}["training"] == 7.0
    plan.check(tmp_path / "not" / "there")


def test_too_little_memory_names_what_is_enough(tmp_path):
    with pytest.raises(ValueError, match=r"1,000,000 nodes need --memory 0\.4GB at least.*100 MB are too little"):
        make_plan("tree", SIZES, 10**8, REFERENCE).check(tmp_path)
    make_plan("tree", SIZES, read_bytes("0.4GB"), REFERENCE).check(tmp_path)


def test_what_is_on_disk_already_is_not_needed_again(tmp_path, monkeypatch):
    plan = make_plan("tree", SIZES, 10**9, REFERENCE)
    usage = type("Usage", (), {"free": round(plan.disk / 2)})()
    monkeypatch.setattr("pegfan.large.plan.shutil.disk_usage", lambda path: usage)
    with pytest.raises(OSError, match="name a folder on a larger disk with --work"):
        plan.check(tmp_path / "w")
    plan.check(tmp_path / "w", held=plan.disk)


def test_a_probe_leaves_nothing(tmp_path):
    found = probe(tmp_path / "w", size=2**20)
    assert min(found.arcs, found.write, found.read, found.cores) > 0
    assert list(tmp_path.iterdir()) == []


@given(st.integers(1, 10**15))
def test_amounts_are_read_as_they_are_shown(size):
    assert read_bytes(size) == size == read_bytes(str(size))
    assert abs(read_bytes(show_bytes(size).replace(",", "")) - size) <= 0.051 * size


@pytest.mark.parametrize("wrong", ["", "GB", "4XB", "-1GB", "4 G i B", "0", "1e400", "4iB", "nan"])
def test_other_amounts_are_refused(wrong):
    with pytest.raises(ValueError, match="write it as 4GB"):
        read_bytes(wrong)
    with pytest.raises(TypeError, match="write it as 4GB"):
        read_bytes(True)


def test_units():
    assert [read_bytes(text) for text in ("1kB", "1KiB", "2m", "3GiB", ".5TB", "7 b")] == [
        *(1000, 1024, 2 * 10**6, 3 * 2**30),
        *(5 * 10**11, 7),
    ]
    assert machine_memory() is None or machine_memory() > 10**7


def test_a_probe_on_a_full_disk_names_the_folder(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=f"the disk is full: {re.escape(str(tmp_path))} needs more space"):
        probe(tmp_path, 2**20)
