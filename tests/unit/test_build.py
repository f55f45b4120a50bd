"""The C extension is built by the machine's compiler, or by one from PyPI; a build that fails says what to do."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Microsoft's compiler is left to setuptools")
ROOT = Path(__file__).parents[2]


def compiler(folder, status):
    """A folder to be the PATH, with a compiler that knows its version and compiles nothing, or not even that."""
    for name in ("cc", "gcc", "clang"):
        (folder / name).write_text(f'#!/bin/sh\n[ "$1" = --version ] && exit {status}\necho no room >&2\nexit 1\n')
        (folder / name).chmod(0o755)
    return {**{k: v for k, v in os.environ.items() if k != "CC"}, "PATH": f"{folder}:/bin:/usr/bin"}


HOOK = """
import backend
print(backend.get_requires_for_build_wheel() == backend.get_requires_for_build_editable() == [backend.ZIG])
"""


@pytest.mark.parametrize("status", [0, 1])
def test_a_compiler_is_asked_for_only_where_none_runs(tmp_path, status):
    env = compiler(tmp_path, status) | {"PYTHONPATH": str(ROOT / "src" / "native")}
    for own in ({}, {"CC": "false"}, {"CC": str(tmp_path / "cc")}):
        run = subprocess.run(
            [sys.executable, "-c", HOOK], cwd=ROOT, env=env | own, capture_output=True, text=True, check=True
        )
        assert run.stdout.splitlines()[-1] == str(status == 1 or own.get("CC") == "false")


def test_a_build_that_fails_names_the_fix(tmp_path):
    build = [sys.executable, "setup.py", "-q", "build_ext", "--build-temp", tmp_path / "temp", "--build-lib", tmp_path]
    run = subprocess.run(build, cwd=ROOT, env=compiler(tmp_path, 0), capture_output=True, text=True, check=False)
    assert run.returncode
    assert "no room" in run.stderr
    assert "The C extension of pegfan was not built: it needs Python's headers" in run.stderr
    assert not list(tmp_path.rglob("*.so"))


DIGEST = """
import hashlib
import numpy as np
import pegfan as pf
graph = pf.datasets.synthetic(0.2, n=300, n_edges=1500, n_features=12, splits=1)
tree = pf.build_tree(graph, "ward")
signal = np.random.default_rng(0).standard_normal((300, 3))
coefficients = pf.FrameletSystem(tree).decompose(signal)
channels = pf.make_channels(graph, pf.FrameletSystem(tree), kind="c", regime="heterophily")
result = pf.train(channels, graph.labels, graph.splits, {"epochs": 5})
state = hashlib.sha256(coefficients.array.tobytes() + repr(result.runs[0].val_loss).encode()).hexdigest()
print(pf.__file__, state)
"""


@pytest.mark.long
def test_a_clone_without_a_compiler_builds_the_extension_with_the_same_bits(tmp_path):
    """An editable installation, as README's commands make it; all other packages are the running environment's."""
    clone, environment = tmp_path / "a clone", tmp_path / "an environment"
    shutil.copytree(ROOT / "src", clone / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info"))
    for name in ("LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py"):
        shutil.copy(ROOT / name, clone)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    packages = next(environment.rglob("site-packages"))
    Path(packages, "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    env = {k: v for k, v in os.environ.items() if k not in ("CC", "PYTHONPATH")} | {"PATH": str(environment / "bin")}
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--editable", clone]
    subprocess.run(install, cwd=tmp_path, env=env, check=True)
    outputs = []
    for command, surroundings in ((python, env), (sys.executable, os.environ)):
        run = subprocess.run(
            [command, "-c", DIGEST], cwd=tmp_path, env=surroundings, capture_output=True, text=True, check=True
        )
        outputs.append(run.stdout.strip().rsplit(maxsplit=1))
    assert Path(outputs[0][0]).is_relative_to(clone)
    assert not Path(outputs[1][0]).is_relative_to(clone)
    assert outputs[0][1] == outputs[1][1]
