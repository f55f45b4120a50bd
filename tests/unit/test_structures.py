"""Stored files whose members are missing or of other kinds, systematically: only documented errors."""

import itertools

import pytest
from torture import structures

from pegfan._saved import read_classes

pytestmark = pytest.mark.long

EVERY = {
    "settings.toml": 1,
    "a record": 3,
    "result.json": 50,
    "the model of train": 25,
    "the model of a classifier": 13,
}
"""Of so many damages one is tried here; the campaign tries all of them, and pairs."""


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    return {target.name: target for target in structures.targets(tmp_path_factory.mktemp("structures"))}


@pytest.mark.parametrize("name", EVERY)
def test_only_documented_errors_come_of_damaged_structures(targets, name):
    target = targets[name]
    target.use(target.value)  # the real one is fine
    for at, other in itertools.islice(structures.singles(target), 0, None, EVERY[name]):
        target.try_(structures.damaged(target.value, at, other))


def test_a_dtype_of_classes_that_is_none_is_refused():
    with pytest.raises(ValueError, match="neither numbers nor names"):
        read_classes({"names": ["a"], "dtype": "1" * 10_000})
