"""Sources: what a name means does not depend on how it is spelled, or on what lies in the working folder."""

import json
from pathlib import Path

import pytest

from pegfan.datasets import Source


def test_spellings_and_other_names_are_the_same_source():
    assert Source.of("Film").files == Source.of("actor").files == []
    assert Source.of("film").fingerprint() == Source.of("Actor").fingerprint() == Source.of("actor").fingerprint()
    assert Source.of("cora").fingerprint() != Source.of("actor").fingerprint()
    with pytest.raises(ValueError, match=r"neither a file nor a data set; did you mean 'cora'\?"):
        Source.of("corra").open()


def test_fingerprints_hold():
    # The names of every stored run are made of these.
    assert Source.of("synthetic", gamma=0.2, separation=6.0, seed=0).fingerprint() == "cfae8fd21ef09e63"
    assert Source.of("texas").fingerprint() == "a1cb96cf2eb63041"
    assert Source.of("cora", unit_rows=True).fingerprint() != Source.of("cora").fingerprint()
    table = {"where": ["nodes.csv"], "options": {"features": ["age"]}}
    assert Source.from_dict(table).to_dict() == table


def test_a_folder_named_like_a_data_set_does_not_stand_in_for_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = Source.of("cora").fingerprint()
    Path("cora").mkdir()
    Path("cora", "edges.csv").write_text("source,target\n0,1\n1,2\n")
    assert Source.of("cora").fingerprint() == before
    for where in ("./cora", Path("cora")):
        source = Source.of(where)
        assert [path.name for path in source.files] == ["edges.csv"]
        assert Source.from_dict(json.loads(json.dumps(source.to_dict()))).files == source.files
        assert source.open()[0].n == 3
