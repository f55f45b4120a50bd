"""The trees of the nine sets are the same for other kernels of BLAS, a generic CPU, one thread and two."""

import pytest

from support.digests import OTHER_MACHINES, SETS, committed, digests_on


@pytest.mark.parametrize("machine", OTHER_MACHINES)
def test_every_machine_builds_the_committed_trees(data, machine):
    assert digests_on(machine, data, SETS) == committed(SETS)
    assert len(committed(SETS)) == 54
