"""Declarations of loops: what they make of C, and what they refuse to pass to it."""

import numpy as np
import pytest

from pegfan import _declarations, _hashing
from pegfan._loops import Loop, native
from support.twins import all_twins

rows = Loop("void hash_dense_rows(const T x[n, d], uint64 out[n])")


def test_a_declaration_is_the_prototype_of_each_dtype():
    text = "int64 f(const I indptr[n + 1], const I _e[_m], maybe const T w[_m], float64 scale, T out[n, d])"
    lines = _declarations.prototypes([_declarations.parse(text)]).splitlines()
    assert [line.split("(")[0] for line in lines] == [
        *(f"int64_t f__{index}_{number}" for index in ("i4", "i8") for number in ("f4", "f8"))
    ]
    assert lines[1] == (
        "int64_t f__i4_f8(const int32_t * indptr, int64_t n, const int32_t * _e, const double * w, "
        "double scale, double * out, int64_t d);"
    )


def test_a_struct_is_declared_before_the_functions_that_take_it():
    texts = ["void step(net state)", "struct net(float32 w[n], int64 steps)"]
    header = _declarations.prototypes([*map(_declarations.parse, texts)])
    assert header == (
        "typedef struct {\n    float * w;\n    int64_t n;\n    int64_t steps;\n} net;\nvoid step(net * state);\n"
    )


@pytest.mark.parametrize("text", ["void f", "void f(x)", "void f(const float64 x[n) y"])
def test_what_is_no_declaration_is_refused(text):
    with pytest.raises(ValueError, match="declaration"):
        _declarations.parse(text)


@pytest.mark.parametrize(
    ("x", "out", "complaint"),
    [
        (np.zeros((2, 3)), np.zeros(3, np.uint64), "out must be uint64\\[n\\], not of shape \\(3,\\)"),
        (np.zeros((2, 3)), np.zeros(2, np.int64), "out must be uint64\\[n\\], not of dtype int64"),
        (np.zeros((2, 3), np.float16), np.zeros(2, np.uint64), "x must be T\\[n, d\\], not of dtype float16"),
        (np.zeros(2), np.zeros(2, np.uint64), "x must be T"),
        (np.zeros((2, 3), ">f8"), np.zeros(2, np.uint64), "x must be T"),
        ([[1.0]], np.zeros(1, np.uint64), "x must be an array"),
        (np.zeros((2, 3)), np.zeros(4, np.uint64)[::2], "out must be contiguous, aligned and writable"),
    ],
)
def test_arrays_that_do_not_agree_never_reach_c(x, out, complaint):
    with pytest.raises((TypeError, ValueError), match=f"hash_dense_rows: {complaint}"):
        rows(x, out)


def test_a_result_that_cannot_be_written_is_refused():
    out = np.zeros(2, np.uint64)
    out.setflags(write=False)
    with pytest.raises(ValueError, match="out must be contiguous, aligned and writable"):
        rows(np.zeros((2, 3)), out)


def test_letters_stand_for_one_dtype_in_a_call():
    indptr, indices = np.array([0, 1]), np.zeros(1, np.int32)
    out = np.zeros(1, np.uint64)
    _hashing.hash_rows(indptr[:1], indptr, indices, np.ones(1, np.uint64), False, out)  # two letters: two dtypes
    same = Loop("void same(const I indptr[n + 1], const I indices[_m])")
    with pytest.raises(TypeError, match="same: indices must be"):
        same(indptr, indices)
    with pytest.raises(TypeError, match="takes 2 arguments"):
        same(indptr)


def test_sizes_may_be_expressions_and_bounds():
    loop = Loop("void nothing(const float64 x[n], const float64 y[2 * n + 1], float64 room[>=n])")
    x = np.zeros(3)
    for y, room in ((np.zeros(6), x), (np.zeros(7), x[:2])):
        with pytest.raises(ValueError, match="nothing: "):
            loop(x, y, room)
    with pytest.raises(AttributeError, match="nothing"):  # all agree; there is no such function
        loop(x, np.zeros(7), np.zeros(9))


def test_every_loop_that_is_declared_has_a_twin():
    """Nothing in C is left without plain Python to compare it with."""
    from pathlib import Path

    import pegfan

    declared = [d for d in _declarations.collect(Path(pegfan.__file__).parent) if d.result != "struct"]
    assert {d.name for d in declared if not d.name.startswith("network_")} <= all_twins().keys()
    assert all(hasattr(native.lib, name) for d in declared for name, _ in d.variants())


def test_an_array_that_is_only_read_may_lie_as_it_likes():
    x = np.arange(12.0).reshape(3, 4)
    unaligned = np.frombuffer(b"0" + x.tobytes(), offset=1).reshape(3, 4)
    reversed_columns = np.ascontiguousarray(x[:, ::-1])[:, ::-1]
    expected, out = np.empty((2, 3), np.uint64)
    rows(x, expected)
    for array in (unaligned, reversed_columns, np.asfortranarray(x)):
        for _ in range(2):  # the second call goes by what the first one learned
            rows(array, out)
            np.testing.assert_array_equal(out, expected)


def test_what_users_give_may_lie_as_it_likes():
    import pegfan as pf

    graph = pf.Graph.from_edges([[i, i + 1] for i in range(9)])
    order = np.arange(10, dtype=np.int32)[::-1]
    tree = pf.build_tree(graph, lambda level, h: np.repeat(np.arange(level.n, dtype=np.int32)[::-1] // 2, 1)[::-1], h=2)
    assert tree.permute(order).n == 10
    assert pf.trees.canonical_order(graph, np.zeros(11, np.int32)[1:]).order.shape == (10,)
    signal = np.frombuffer(b"0" + np.arange(10.0).tobytes(), offset=1)
    system = pf.FrameletSystem(tree)
    np.testing.assert_array_equal(system.decompose(signal).array, system.decompose(np.arange(10.0)).array)
