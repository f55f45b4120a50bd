"""The command line as a program: python -m, completion by the shell, what it tells and where."""

import csv
import errno
import json
import logging
import os
import re
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import pegfan as pf
from pegfan.cli import _shell, app
from pegfan.cli._complete import complete_models, complete_names, complete_sources
from pegfan.cli._shell import console, errors, literal, visible


def call(*words, **env):
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200", "TERM": "dumb", **env})


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


# --------------------------------------------------------- names from outside

HOSTILE = "a\x1b[31m\x1b]0;t\x07\x9b2J\u202eb\n\t[red]c[/red][/][link=x]:warning:\\\\\\"
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


def test_what_steers_a_terminal_is_written_out():
    assert visible("a\x1b[0m\x9b\u2066\udcff\té\u200d") == r"a\x1b[0m\x9b\u2066\udcff" + "\té\u200d"


@pytest.mark.parametrize("name", [HOSTILE, "[/bold]", "x\\", "x\\\\", "[b]\\\\\\"])
def test_a_name_is_shown_as_it_is_between_tags(name):
    with console.capture() as shown:
        console.print(f"[bold]{literal(name)}[/bold]|", soft_wrap=True)
    assert shown.get() == visible(name).replace("\n", r"\n").replace("\t", r"\t") + "|\n"


def test_nothing_steers_a_terminal_even_where_nobody_thought_of_it():
    """Strings, cells, texts and the words beside a spinner, without `literal`."""
    from rich.table import Table
    from rich.text import Text

    table = Table("\x1b[31m")
    table.add_row("\x1b[31m")
    with console.capture() as shown:
        for one in ("\x1b[31m", Text("\x1b[31m"), table, console.status("\x1b[31m").renderable):
            console.print(one)
    assert shown.get().count(r"\x1b[31m") == 5
    assert "\x1b" not in shown.get()


def test_hostile_names_go_through_commands_without_a_trace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name, cell = HOSTILE.replace("/", "").replace("\\", ""), HOSTILE.replace("\n", "")
    rows = [(f"{i}{cell}", cell if i % 2 else "y", i % 3) for i in range(12)]
    nodes = [("id", cell, f"{cell}2"), *rows]
    edges = [("source", "target"), *((f"{i}{cell}", f"{i * 5 % 12}{cell}") for i in range(12))]
    for path, table in ((f"{name}.csv", nodes), ("edges.csv", edges)):
        with open(path, "w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(table)
    tables, missing = (f"{name}.csv", "edges.csv"), f"{name}.txt"
    for words in (
        ("info", *tables, "--label", cell, "-vv", "--log-file", "log.txt"),
        ("info", *tables, "--label", "z"),
        ("tree", *tables),
        ("info", missing, "--debug"),
        ("info", *tables, f"--{name}"),
        (name,),
    ):
        shown = call(*words)
        assert shown.exit_code in (0, 1, 2), shown.output
        assert STEERING.search(shown.output) is None, words
        assert shown.output.strip()
    assert STEERING.search((tmp_path / "log.txt").read_text(encoding="utf-8")) is None
    shown = call("info", *tables, "--label", cell)
    assert visible(cell).replace("\t", r"\t") in shown.stdout
    told = json.loads(call("info", *tables, "--label", cell, "--json").stdout)
    assert cell in [entry["name"] for entry in told["classes"]]


def test_a_name_that_is_no_text_is_a_sentence(tables, tmp_path):
    for words in (("info", "\udcff.csv"), ("tree", tables, "-o", tmp_path / "\udcff.npz")):
        shown = call(*words)
        assert shown.exit_code == 1
        assert r"\udcff" in shown.stderr
        assert "is not UTF-8" in shown.stderr


# ----------------------------------------------------------- the surroundings


@pytest.mark.parametrize("columns", ["0", "1", "5", "-3", "text", "²", "9" * 30, ""])
def test_any_number_of_columns_prints(columns, tables):
    shown = call("info", tables, COLUMNS=columns)
    assert shown.exit_code == 0
    assert max(map(len, shown.stdout.splitlines())) < 400
    assert "components" in shown.stdout
    assert "Usage" in call("info", "--help", COLUMNS=columns).stdout


class _Full:
    """A stream to a full disk."""

    encoding = "utf-8"

    def write(self, text):
        raise OSError(errno.ENOSPC, "No space left on device")

    def flush(self):
        pass


@pytest.mark.parametrize("words", [("info",), ("info", "--json"), ("info", "--help"), ("--version",)])
def test_a_full_standard_output_is_a_sentence_that_names_it(words, tables, monkeypatch, capfd):
    line = [*words[:1], str(tables), *words[1:]] if words[0] == "info" else words
    monkeypatch.setattr(sys, "stdout", _Full())
    with pytest.raises(SystemExit) as ended:
        app(list(line))
    assert ended.value.code == 1
    assert capfd.readouterr().err.startswith("standard output: No space left on device.")


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_without_standard_output_a_command_does_its_work(words, tables, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as ended:
        app(["tree", str(tables), "-o", str(tmp_path / "tree.npz"), *words])
    assert ended.value.code == 0
    assert (tmp_path / "tree.npz").exists()


def test_a_full_standard_error_stops_nothing(tables, monkeypatch):
    monkeypatch.setattr(sys, "stderr", _Full())
    with pytest.raises(SystemExit) as ended:
        app(["tree", str(tables), "-vv"])
    assert ended.value.code == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_log_that_cannot_be_written_is_given_up(tables):
    shown = call("tree", tables, "--log-file", "/dev/full")
    assert shown.exit_code == 0
    assert shown.stderr.count("No more is written to /dev/full: No space left on device") == 1
    assert "Traceback" not in shown.stderr


class OutOfMemoryError(RuntimeError):
    """As torch calls it."""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: 9 bytes"), "Not enough memory."),
        (OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB."), "Not enough memory."),
        (RuntimeError("can't start new thread"), "Not enough memory."),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "Not enough memory."),
        (ImportError("_lbfgsb.so: failed to map segment from shared object"), "Not enough memory."),
        (MemoryError(), "Not enough memory."),
        (RecursionError("maximum recursion depth exceeded"), "nested too deeply"),
    ],
)
def test_what_the_machine_lacks_is_no_bug(error, words):
    with errors.capture() as shown:
        assert _shell._explain(error, debug=False) == 1
    assert words in shown.get()
    assert "bug" not in shown.get()
    if "memory" in words:
        assert "--memory" in shown.get()


def test_another_runtime_error_is_one():
    with errors.capture() as shown:
        assert _shell._explain(RuntimeError("oops"), debug=False) == 3
    assert "This is a bug in pegfan" in shown.get()


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_it_starts_ends_it_without_a_word(number, code):
    """Before the command line is imported, where nothing else could hear it."""
    text = (
        "import os, sys, pegfan.__main__ as m\n"
        "class Stop:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == 'typer': os.kill(os.getpid(), {int(number)})\n"
        "sys.meta_path.insert(0, Stop())\n"
        "m.main()"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_that_a_callback_swallows_is_heard_all_the_same(number, code):
    text = (
        "import os, sys, time, weakref, pegfan.__main__ as m, pegfan.cli as c\n"
        "class Thing: pass\n"
        "def app(**_):\n"
        "    thing = Thing()\n"
        f"    kept = weakref.ref(thing, lambda _: [os.kill(os.getpid(), {int(number)}), time.sleep(1)])\n"
        "    del thing\n"
        "    time.sleep(20)\n"
        "c.app = app\n"
        "m.main()"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="descriptors of POSIX")
def test_a_closed_stream_is_not_taken_by_a_file():
    text = (
        "import pegfan.__main__ as m; m._fill_streams(); import os, sys; sys.exit(os.open(os.devnull, os.O_RDONLY) < 3)"
    )
    assert subprocess.run(["sh", "-c", f'"{sys.executable}" -c "{text}" <&- >&- 2>&-'], check=False).returncode == 0
