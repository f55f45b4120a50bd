"""Memory: on cache lines, and of large results that come again."""

import gc
import mmap
import threading

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import pegfan as pf
from pegfan import _arrays
from pegfan._arrays import LINE, aligned, reused

FLOAT = np.dtype(np.float32)
PIECE = 2 * 2**20
kept = pytest.mark.skipif(not hasattr(mmap, "MADV_FREE"), reason="this system cannot take memory back")


@pytest.fixture(autouse=True)
def empty(monkeypatch):
    """No memory is kept from before."""
    monkeypatch.setattr(_arrays, "_kept", [])
    monkeypatch.setattr(_arrays, "_LARGE", PIECE)


def address(array):
    return array.ctypes.data


@given(st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple), st.sampled_from([np.float32, np.float64]))
def test_arrays_start_on_a_cache_line(shape, dtype):
    for make in (aligned, reused):
        array = make(shape, np.dtype(dtype))
        assert (array.shape, array.dtype, address(array) % LINE) == (shape, dtype, 0)
        assert array.flags.c_contiguous
        assert array.flags.writeable


@kept
def test_the_memory_of_an_array_that_is_gone_comes_again():
    first = reused((PIECE // 4,), FLOAT)
    where = address(first)
    other = reused((PIECE // 4,), FLOAT)
    assert address(other) != where
    del first
    third = reused((PIECE // 8, 2), FLOAT)  # of that many bytes
    assert address(third) == where
    third[:] = 1
    assert third.sum() == PIECE // 4


@kept
@pytest.mark.parametrize(
    "view",
    [
        lambda array: array[3:].reshape(-1, 1)[::2],
        lambda array: array[:8].view(np.int32).view(FLOAT),
        lambda array: np.frombuffer(memoryview(array), FLOAT),
        lambda array: torch.from_numpy(array).reshape(2, -1)[1].numpy(),
    ],
)
def test_views_keep_the_memory(view):
    array = reused((PIECE // 4,), FLOAT)
    array[:] = 5
    seen = view(array)
    del array
    reused((PIECE // 4,), FLOAT)[:] = 7
    assert (seen == 5).all()
    del seen
    gc.collect()
    assert len(_arrays._kept) == 2


@kept
def test_not_more_than_a_limit_is_kept(monkeypatch):
    monkeypatch.setattr(_arrays, "_KEPT", 3 * PIECE)
    arrays = [reused((PIECE // 4 * k,), FLOAT) for k in (1, 2, 1)]
    arrays.clear()
    assert [len(piece) for piece in _arrays._kept] == [2 * PIECE, PIECE]  # the oldest goes first
    alone = reused((PIECE,), FLOAT)
    del alone
    assert _arrays._kept == []  # more than the limit by itself


@kept
def test_nobody_waits_for_another_thread():
    array = reused((PIECE // 4,), FLOAT)
    with _arrays._lock:
        del array  # as in a collection while the lock is held
        reused((PIECE // 4,), FLOAT)[:] = 1
    assert _arrays._kept == []


@kept
def test_threads_never_share_memory():
    wrong = []

    def work(number):
        for _ in range(40):
            array = reused((PIECE // 4,), FLOAT)
            array[:] = number
            if (array != number).any():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@kept
def test_too_large_is_a_memory_error():
    with pytest.raises(MemoryError, match="unable to allocate"):
        reused((2**58,), FLOAT)


@kept
@pytest.mark.parametrize("filters", ["binary-haar", "haar-basis"])
def test_results_in_memory_of_earlier_ones_are_right(filters):
    """Whatever an earlier result left there is overwritten."""
    n, rng = 2**14, np.random.default_rng(0)
    parents = [np.arange(n // 2**k) // 2 for k in range(14)]
    system = pf.FrameletSystem(pf.Hierarchy(parents, rng.permutation(n)), filters)
    f = rng.standard_normal((n, 32), dtype=np.float32)
    expected = [system.decompose(f).array, *system.projections(f), system.reconstruct(system.decompose(f))]
    for value in (np.nan, 3.0):
        spoilt = [reused(array.shape, array.dtype) for array in expected]
        for array in spoilt:
            array[:] = value
        spoilt.clear()
        gc.collect()
        found = [system.decompose(f).array, *system.projections(f), system.reconstruct(system.decompose(f))]
        assert all(np.array_equal(one, two) for one, two in zip(expected, found, strict=True))
