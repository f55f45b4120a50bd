"""Arrays that start on a cache line."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegfan._arrays import LINE, aligned


@given(st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple), st.sampled_from([np.float32, np.float64]))
def test_arrays_start_on_a_cache_line(shape, dtype):
    array = aligned(shape, np.dtype(dtype))
    assert (array.shape, array.dtype, array.ctypes.data % LINE) == (shape, dtype, 0)
    assert array.flags.c_contiguous
    assert array.flags.writeable


def test_too_large_is_a_memory_error():
    with pytest.raises(MemoryError):
        aligned((2**40, 2**15), np.dtype(np.float32))
