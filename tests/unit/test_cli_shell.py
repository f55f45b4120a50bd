"""The command line as a program: python -m, completion by the shell, what it tells and where."""

import logging
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import pegfan as pf
from pegfan.cli import app
from pegfan.cli._complete import complete_models, complete_names, complete_sources


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200", "TERM": "dumb"})


@pytest.fixture
def tables(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"n{i},n{(i * 7 + 1) % 40}\n" for i in range(40)))
    return tmp_path / "edges.csv"


@pytest.mark.long
def test_python_m_is_the_command():
    done = subprocess.run([sys.executable, "-m", "pegfan", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"pegfan {pf.__version__}\n"


# ----------------------------------------------------------------- completion


def test_names_and_files_are_offered(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("cora.csv", "edges.csv", ".hidden"):
        (tmp_path / name).write_text("")
    assert complete_names("cor") == ["cora", "cornell"]
    assert complete_sources("cor") == ["cora", "cornell", "cora.csv"]
    assert complete_sources("edg") == []  # no data set: the shell's own files, with their folders
    assert {"cora", "synthetic", "edges.csv"} <= set(complete_sources(""))
    assert ".hidden" not in complete_sources("")


def test_models_are_offered_one_by_one():
    assert complete_models("gcn") == ["gcn", "gcnii"]
    assert complete_models("pegfan,ml") == ["pegfan,mlp"]
    assert complete_models("qu") == ["quick"]


def test_the_shell_gets_them():
    words = {"_PEGFAN_COMPLETE": "complete_bash", "COMP_WORDS": "pegfan datasets chame", "COMP_CWORD": "2"}
    result = CliRunner().invoke(app, [], prog_name="pegfan", env=words)
    assert result.stdout.split() == [name for name in pf.datasets.names() if name.startswith("chame")]


@pytest.mark.long
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_installed(shell, tmp_path):
    """In a home of its own; the shell is named, for a test has none."""
    code = "from pegfan.cli import app; app(prog_name='pegfan')"
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    home = {**os.environ, "HOME": str(tmp_path), "USERPROFILE": str(tmp_path), **named}
    words = [sys.executable, "-c", code, "--install-completion", shell]
    done = subprocess.run(words, env=home, capture_output=True, text=True, check=True)
    assert f"{shell} completion installed" in done.stdout
    written = [path.read_text(encoding="utf-8") for path in tmp_path.rglob("*") if path.is_file()]
    assert any("_PEGFAN_COMPLETE" in text for text in written)


# -------------------------------------------------------------------- the log


def test_it_is_silent_unless_asked():
    log = logging.getLogger("pegfan")
    assert [type(handler) for handler in log.handlers] == [logging.NullHandler]
    assert log.level == logging.NOTSET


def test_verbose_tells_what_is_done(tables):
    quiet, told, more = (call("tree", tables, *words) for words in ((), ("-v",), ("-vv",)))
    assert [one.exit_code for one in (quiet, told, more)] == [0, 0, 0]
    assert quiet.stdout == told.stdout == more.stdout  # results can be piped whatever is told
    assert quiet.stderr == ""
    assert "edges.csv: 40 nodes, 36 edges" in told.stderr
    assert "building a tree over 40 nodes" in told.stderr
    assert "ordering 40 nodes" not in told.stderr
    assert "ordering 40 nodes" in more.stderr
    assert [type(handler) for handler in logging.getLogger("pegfan").handlers] == [logging.NullHandler]


def test_a_log_file_has_everything_and_grows(tables, tmp_path):
    path = tmp_path / "run.log"
    result = call("tree", tables, "--log-file", path)
    assert result.exit_code == 0
    assert result.stderr == ""
    first = path.read_text(encoding="utf-8")
    assert all(word in first for word in ("DEBUG pegfan.trees.build: tree: ordering 40", f"pegfan {pf.__version__}"))
    call("tree", tables, "--log-file", path)
    assert path.read_text(encoding="utf-8").startswith(first)
    assert len(path.read_text(encoding="utf-8")) > 1.8 * len(first)


def test_an_error_is_a_sentence_here_and_a_traceback_in_the_file(tmp_path):
    path = tmp_path / "run.log"
    result = call("info", tmp_path / "missing.csv", "-v", "--log-file", path)
    assert result.exit_code == 1
    assert "missing.csv: no such file" in result.stderr
    assert "Traceback" not in result.stderr
    assert "Traceback" in path.read_text(encoding="utf-8")


def test_a_log_file_that_cannot_be_written_is_a_sentence(tables, tmp_path):
    result = call("info", tables, "--log-file", tmp_path / "no" / "run.log")
    assert result.exit_code == 1
    assert result.stderr.endswith("No such file or directory. Is the path right?\n")


def test_training_and_its_files_are_logged(caplog, tmp_path):
    graph = pf.datasets.synthetic(0.0, n=80, n_edges=500, n_features=5, splits=2)
    with caplog.at_level("DEBUG", logger="pegfan"):
        model = pf.FSGNNClassifier(epochs=5).fit(graph)
        model.save(tmp_path / "model")
    told = [record.getMessage() for record in caplog.records]
    assert any("fast engine" in text for text in told)
    assert any("epoch 0: training loss" in text for text in told)
    assert any(text.startswith("training: split 0: ") for text in told)
    assert told[-1] == f"model written to {tmp_path / 'model'}"
