"""Trees are functions of graph and features: every machine has those whose digests are committed."""

import pytest

from support.digests import SETS, committed, digests, digests_on

SMALL = ["texas", "wisconsin", "cornell", "cora", "chameleon"]


@pytest.mark.parametrize("name", SETS)
def test_this_machine_builds_the_committed_trees(data, name):
    assert digests(data, [name]) == committed([name])
    assert len(committed([name])) == 6


@pytest.mark.parametrize("machine", ["Prescott", "two threads"])
def test_so_do_other_machines(data, machine):
    """A sample; tests/slow has all of them."""
    assert digests_on(machine, data, SMALL) == committed(SMALL)
