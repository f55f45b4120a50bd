"""The loops of training in C are near their plain twins on every processor; those of boosting have the same bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegfan._products import keep_mask
from pegfan.training import boosting, head
from support.twins import twin_of

seeds = st.integers(0, 2**32 - 1)


def processors():
    return [name for kind, name in enumerate(head.PROCESSORS) if use(kind)]


def use(kind):
    before = head.processor()
    runs = head.use_processor(kind)
    head.use_processor(before)
    return runs


@pytest.fixture(params=processors())
def processor(request):
    before = head.processor()
    assert head.use_processor(head.PROCESSORS.index(request.param))
    yield request.param
    head.use_processor(before)


def near(loop, *args, rtol=2e-5, atol=2e-6):
    """What a loop in C and its twin write, and what they return, is the same but for rounding."""
    copies = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    result, expected = loop(*args), twin_of(loop)(*copies)
    assert (result is None) == (expected is None)
    if result is not None:
        assert result == pytest.approx(expected, rel=1e-4, abs=1e-5)
    for ours, theirs in zip(args, copies, strict=True):
        if isinstance(ours, np.ndarray):
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)


def same(loop, *args, but=()):
    """A loop in C and its twin write the same bits, except into arguments that are memory to work in."""
    copies = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    result, expected = loop(*args), twin_of(loop)(*copies)
    assert result == expected
    for place, (ours, theirs) in enumerate(zip(args, copies, strict=True)):
        if isinstance(ours, np.ndarray) and place not in but:
            assert ours.tobytes() == theirs.tobytes(), place
    return result


# ------------------------------------------------------------------------ the network


def test_the_kind_of_processor_is_chosen_and_an_unknown_one_refused():
    before = head.processor()
    assert head.PROCESSORS[before] == processors()[-1]
    assert not head.use_processor(3)
    assert not head.use_processor(-1)
    assert head.processor() == before


@pytest.mark.parametrize(("hidden", "masked"), [(64, True), (16, False), (80, True), (128, False)])
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("rows", [1, 8, 23])
def test_the_head_goes_forward_and_back_as_its_twins(processor, hidden, masked, normalized, rows):
    rng = np.random.default_rng(hidden + rows)
    lines, classes = hidden // 16, 5

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    H, bias, V = normal(rows, hidden), normal(hidden), normal(classes, hidden)
    inverse, Z, scratch = np.zeros(rows, np.float32), np.zeros((rows, classes), np.float32), normal(4, hidden)
    bits = np.zeros((rows, (lines + 3) // 4) if masked else (0, 0), np.uint64)
    if masked:
        head.draw_masks(7, 32768, hidden, bits)
    copies = H.copy(), inverse.copy(), Z.copy()
    head.rows_forward(lines, H, bias, normalized, inverse, V, 0.3, bits, scratch, Z)
    twin_of(head.rows_forward)(*(lines, copies[0], bias, normalized, copies[1], V, 0.3, bits, scratch, copies[2]))
    for ours, theirs in zip((H, inverse, Z), copies, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)

    error, results = normal(rows, classes), []
    for way in (head.rows_back, twin_of(head.rows_back)):
        gradient, grad_V, grad_b = np.zeros_like(H), np.zeros_like(V), np.zeros_like(bias)
        by_alpha = way(
            *(lines, H, inverse, normalized, 0.3, V, bits, 2.0, error, scratch.copy(), gradient, grad_V, grad_b)
        )
        results.append((np.array([by_alpha]), gradient, grad_V, grad_b))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


@given(st.integers(0, 2**63), st.one_of(st.just(32768), st.integers(1, 65535)), st.integers(1, 5), st.integers(1, 150))
def test_masks_as_bits_are_those_as_bytes(seed, threshold, rows, hidden):
    bits, mask = np.full((rows, -(-hidden // 64)), 2**64 - 1, np.uint64), np.zeros((rows, hidden), np.uint8)
    head.draw_masks(seed, threshold, hidden, bits)
    keep_mask(np.uint64(seed), np.uint64(threshold), mask)
    unpacked = np.unpackbits(bits.view(np.uint8).reshape(rows, -1), axis=1, bitorder="little")
    assert (unpacked[:, :hidden] == mask).all()
    assert not unpacked[:, hidden:].any()


@given(seeds, st.integers(1, 40), st.integers(1, 7), st.booleans())
def test_losses_and_their_gradients_are_those_of_the_twins(seed, rows, classes, wanted):
    rng = np.random.default_rng(seed)
    logits, targets = rng.standard_normal((rows, classes)).astype(np.float32), rng.normal(size=rows).astype(np.float32)
    weights = (rng.random(rows) / rows).astype(np.float32)
    error = np.zeros((rows, classes) if wanted else (0, 0), np.float32)
    near(head.cross_entropy, logits * 5, rng.integers(classes, size=rows), weights, error)
    near(head.squared_error, logits[:, :1].copy(), targets, weights, error[:, :1].copy())


@given(seeds, st.integers(1, 5), st.integers(1, 1000), st.sampled_from([0.0, 1e-3]))
def test_a_step_of_adam_is_that_of_its_twin(seed, lines, steps, decay):
    rng = np.random.default_rng(seed)
    w, m, g = rng.standard_normal((3, 16 * lines)).astype(np.float32)
    near(head.adam_step, lines, w, m, rng.random(16 * lines).astype(np.float32), g, 0.01, decay, steps)


@given(seeds, st.integers(1, 30))
def test_the_gradient_by_attention_is_that_of_its_twin(seed, n):
    alpha, by_alpha = np.random.default_rng(seed).random((2, n)).astype(np.float32)
    near(head.attention_gradient, alpha / alpha.sum(), by_alpha, np.zeros(n, np.float32))


# -------------------------------------------------------------------------- boosting


def growing(n, columns, leaves, asked, most=255):
    """Arguments of a tree's growth behind the gradients."""
    size = 2 * leaves - 1
    order, spare, near_ = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros((n, 4), np.int64)
    sums, places = np.zeros((leaves, asked, most, 4), np.int64), np.zeros((size, 8), np.int64)
    column, bin_at, child = np.zeros((3, size), np.int32)
    return [order, spare, near_, sums, places, np.zeros(size), column, bin_at, child, np.zeros(size), np.zeros(columns)]


@given(
    *(seeds, st.integers(1, 80), st.integers(1, 4), st.integers(1, 6)),
    *(st.integers(1, 5), st.sampled_from([1, 2**10, 2**30])),
)
def test_trees_grow_and_are_walked_as_their_twins(seed, n, columns, leaves, fewest, size):
    rng = np.random.default_rng(seed)
    widths = rng.choice([1, 2, 9, 255], columns)
    bins = (rng.random((columns, n)) * widths[:, None]).astype(np.uint8)
    chosen = np.sort(rng.choice(columns, rng.integers(1, columns + 1), replace=False))
    g, h = rng.integers(-size, size + 1, n), rng.integers(0, size + 1, n)
    work = growing(n, columns, leaves, len(chosen))
    count = same(boosting._grow, bins, widths, chosen, g, h, leaves, fewest, 1.0, 0.05, *work, but=(10, 11, 12, 13, 14))
    assert 1 <= count <= 2 * leaves - 1
    order, places, (column, bin_at, child, value) = work[0], work[4], work[6:10]
    assert sorted(order) == list(range(n))
    same(boosting._add_rows, order, places, child, value, np.zeros(n))
    same(boosting._add_bins, bins, column, bin_at, child, value, np.zeros(n))
    x = rng.standard_normal((n, columns)).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    trees = [np.stack([part, part]) for part in (column, bin_at.astype(np.float32) / 128 - 1, child, value)]
    for outputs in (1, 2):
        same(boosting._walk, x, *trees, np.zeros((n, outputs)))
        same(boosting._walk_apart, x, *trees, np.zeros((n, outputs, columns)))


@pytest.mark.parametrize(
    ("width", "chosen", "most"), [(300, [0], 255), (0, [0], 255), (9, [1], 255), (9, [-1], 255), (9, [0, 0], 255),
                                  (257, [0], 257)]
)  # fmt: skip
def test_histograms_without_room_are_refused(width, chosen, most):
    n = 12
    work = growing(n, 1, 3, 1, most)
    g = np.ones(n, np.int64)
    args = np.zeros((1, n), np.uint8), np.array([width]), np.array(chosen), g, g
    assert boosting._grow(*args, 3, 1, 1.0, 0.05, *work) == -1
