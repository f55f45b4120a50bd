"""Families of filters: what every row of the table keeps to, and what is special about each."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pegfan as pf
from pegfan.framelets import FAMILIES, Family
from pegfan.framelets.filters import halves

families = pytest.mark.parametrize("name", FAMILIES)
weights = st.lists(st.floats(0.1, 10.0), min_size=1, max_size=9).map(lambda p: np.array(p) / np.linalg.norm(p))


def pairs(p):
    """Rows p_j e_i − p_i e_j for i < j."""
    unit = np.eye(len(p))
    rows = [p[j] * unit[i] - p[i] * unit[j] for i, j in combinations(range(len(p)), 2)]
    return np.reshape(rows, (-1, len(p)))


def halved(p):
    """Every row a unit vector on a run of children, orthogonal to p, and a multiple of p on both halves of the run."""
    rows = np.zeros((len(p) - 1, len(p)))
    for k, (start, middle, stop) in enumerate(zip(*halves(len(p)), strict=True)):
        a, b = (p[start:middle] ** 2).sum(), (p[middle:stop] ** 2).sum()
        rows[k, start:middle], rows[k, middle:stop] = p[start:middle] * b, -p[middle:stop] * a
        rows[k] /= np.linalg.norm(rows[k])
    return rows


TWINS = {"binary-haar": pairs, "haar-basis": halved}
"""B from p, plainly: one for every family."""


def test_every_family_has_a_plain_twin_here():
    assert set(TWINS) == set(FAMILIES)


@families
@given(p=weights)
def test_filters_are_tight_and_those_of_the_twin(name, p):
    found = FAMILIES[name].filters(p)
    assert pf.check_filters(*found).tight
    np.testing.assert_allclose(found.p, p, atol=1e-12)
    np.testing.assert_allclose(found.B.toarray(), TWINS[name](p), atol=1e-12)


@families
@given(p=weights)
def test_entries_stand_where_equal_weights_have_them(name, p):
    family, many = FAMILIES[name], np.stack([p, np.roll(p, 1)])
    equal = family.filters(len(p))
    np.testing.assert_array_equal(equal.p, np.full(len(p), 1 / np.sqrt(len(p))))
    for row, entries in zip(many, family.entries(many), strict=True):
        B = family.filters(row).B
        np.testing.assert_array_equal(B.indptr, equal.B.indptr)
        np.testing.assert_array_equal(B.indices, equal.B.indices)
        np.testing.assert_allclose(entries, B.data, atol=1e-12)


@families
def test_a_family_is_described_and_taken_by_its_name(name):
    summary = FAMILIES[name].summary
    assert summary.endswith(".")
    assert f'* ``"{name}"``: {summary}' in pf.FrameletSystem.__doc__
    assert name in pf.families()["filters"]
    with pytest.raises(ValueError, match=repr(name)):
        pf.FrameletSystem(pf.Hierarchy([np.zeros(3, int)]), "something else")


def test_a_row_is_all_that_a_new_family_needs(monkeypatch):
    """The reverse of Haar's rows, without a function for many clusters at once."""

    def turned(children):
        """Haar's rows with the signs turned."""
        p, B = pf.haar_basis(children)
        return pf.framelets.Filters(p, -B)

    monkeypatch.setitem(FAMILIES, "turned", Family(turned))
    tree = pf.Hierarchy.from_nested([[[0, 1, 2], [3]], [[4, 5], [6, 7, 8]]])
    for weights in ("equal", "size"):
        new, haar = (pf.FrameletSystem(tree, name, weights) for name in ("turned", "haar-basis"))
        f = np.arange(9.0) ** 2
        np.testing.assert_allclose(new.decompose(f).array[1:], -haar.decompose(f).array[1:], atol=1e-12)
        np.testing.assert_allclose(new.reconstruct(new.decompose(f)), f, atol=1e-12)
