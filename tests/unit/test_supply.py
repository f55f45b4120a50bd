"""What the project is made of: pinned by hash, looked up, listed in the wheel, signed by the workflow."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest

import pegfan
from support import examples

ROOT = examples.ROOT
CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def supply():
    """tools/supply.py, which is no part of the package."""
    found = importlib.util.spec_from_file_location("supply", ROOT / "tools" / "supply.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_lock_pins_what_the_constraints_pin_and_every_line_has_a_hash(supply):
    pins = supply.read_pins(CONSTRAINTS)
    assert len(pins) == len(CONSTRAINTS.splitlines())
    assert supply.read_pins(LOCK) == {name: version for name, version in pins.items() if name != "torch"}
    entries = re.split(r"^(?=[A-Za-z])", LOCK.replace(" \\\n", ""), flags=re.MULTILINE)[1:]
    for entry in entries:
        assert re.fullmatch(r"\S+==\S+( +--hash=sha256:[0-9a-f]{64})+\n", entry), entry
    assert "://" not in LOCK


def test_installing_takes_no_other_files():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "--no-deps --require-hashes --requirement requirements.lock" in text


def test_the_hashes_are_those_of_the_version_on_any_system(supply):
    files = {
        "a_b-1.0-py3-none-any.whl": "1",
        "a_b-1.0.tar.gz": "2",
        "a_b-1.0-cp312-cp312-win_amd64.whl": "3",
        "a_b-1.0-cp38-abi3-macosx_11_0_arm64.whl": "4",
        "a_b-1.0-cp39-cp39-win_amd64.whl": "no: an older Python",
        "a_b-1.0-pp310-pypy310_pp73-win_amd64.whl": "no: another Python",
        "a_b-1.0.1.tar.gz": "no: another version",
        "a-1.0.tar.gz": "no: another package",
        "a_b-1.0.exe": "no: what pip does not install",
    }
    links = [f'<a href="x/{file}#sha256={sign[0] * 64}">' for file, sign in files.items()]
    links.append('<a href="x/a_b-1.0-1-py3-none-any.whl#md5=00">')
    assert supply.hashes("\n".join(links), "A.b", "1.0") == [sign * 64 for sign in "1234"]


def test_known_holes_are_told_unless_they_were_withdrawn(supply, monkeypatch, capsys):
    hole = {"id": "PYSEC-1", "aliases": ["CVE-1"], "fixed_in": ["2.0"], "summary": "It runs code."}
    about = {"vulnerabilities": [hole, {"id": "PYSEC-2", "withdrawn": "2026"}]}
    assert supply.holes_of(about) == ["PYSEC-1, CVE-1; mended in 2.0: It runs code."]
    assert supply.holes_of({}) == []
    monkeypatch.setattr(supply, "_index", lambda: ("", ""))
    answers = {"numpy": about}
    monkeypatch.setattr(supply, "_get", lambda address: json.dumps(answers.get(address.split("/")[1], {})))
    assert supply.audit() == 1
    assert "PYSEC-1" in capsys.readouterr().out
    answers.clear()
    assert supply.audit() == 0
    assert "no known holes" in capsys.readouterr().out


def test_an_audit_without_a_database_says_so_and_fails(supply, monkeypatch, capsys):
    def nothing(address):
        raise OSError("no route to host")

    monkeypatch.setattr(supply, "_index", lambda: ("", ""))
    monkeypatch.setattr(supply, "_get", nothing)
    assert supply.audit() == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "nothing was looked up" in told.err


def test_releases_are_signed_with_as_few_rights_as_can_be():
    yaml = pytest.importorskip("yaml")
    flow = yaml.safe_load((ROOT / ".github/workflows/wheels.yml").read_text(encoding="utf-8"))
    assert flow["permissions"] == {"contents": "read"}
    assert "permissions" not in flow["jobs"]["wheels"]
    signed = flow["jobs"]["provenance"]
    assert signed["permissions"] == {"id-token": "write", "attestations": "write"}
    assert any("attest-build-provenance" in step["uses"] for step in signed["steps"])
    assert "refs/tags/v" in signed["if"]


@pytest.mark.long
def test_a_wheel_has_a_bill_of_materials(tmp_path):
    """Built from a copy, so that nothing is left in this folder, by a compiler that writes empty files in no time."""
    copy, compiler = tmp_path / "copy", tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\n[ "$1" = --version ] && exit\nwhile [ "$1" != -o ]; do shift; done\n: > "$2"\n')
    compiler.chmod(0o755)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run(
        [*words, "-w", tmp_path, copy], env={**os.environ, "CC": str(compiler)}, check=True, capture_output=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        name = f"pegfan-{pegfan.__version__}.dist-info/sboms/pegfan.cdx.json"
        bill = json.loads(packed.read(name))
        assert name in packed.read(f"pegfan-{pegfan.__version__}.dist-info/RECORD").decode()
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["purl"] == f"pkg:pypi/pegfan@{pegfan.__version__}"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = {part["properties"][0]["value"]: part for part in bill["components"]}
    assert all(listed[line]["scope"] == "required" for line in project["dependencies"])
    assert bill["dependencies"][0]["dependsOn"] == [part["bom-ref"] for part in bill["components"]]
