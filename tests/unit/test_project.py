"""The project's own files: what they say of it is so, and nothing in it needs one system."""

import ast
import re
import tomllib
from functools import cache

import pytest

import pegfan
from support import examples

yaml = pytest.importorskip("yaml")
ROOT = examples.ROOT
SOURCES = sorted((ROOT / "src").rglob("*.py"))


@cache
def nodes_of(path):
    """Everything in a module's syntax tree."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def test_the_citation_is_of_this_version_and_this_paper():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["version"] == pegfan.__version__
    assert cited["preferred-citation"]["title"] in " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()


def test_ci_runs_the_commands_of_the_readme_on_three_systems():
    flow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    matrix = flow["jobs"]["readme"]["strategy"]["matrix"]
    assert {name.split("-")[0] for name in matrix["os"]} == {"ubuntu", "windows", "macos"}
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    block = next(one for one in examples.blocks(ROOT / "README.md") if one.kind == "sh")
    commands = [line.split("#")[0].strip() for line in block.text.splitlines() if line.strip()]
    assert len(commands) == 2
    run = [step.get("run", "") for step in flow["jobs"]["readme"]["steps"]]
    for command in commands:
        assert any(step.startswith(command) for step in run), command


@pytest.mark.parametrize("name", ["bug", "idea", "wrong-number"])
def test_issue_forms_ask_for_something(name):
    form = yaml.safe_load((ROOT / f".github/ISSUE_TEMPLATE/{name}.yml").read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= form.keys()
    assert any(part.get("validations", {}).get("required") for part in form["body"])
    marks = [part["id"] for part in form["body"]]
    assert len(marks) == len(set(marks))


def test_every_exception_from_the_review_has_a_reason():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for code in tomllib.loads(text)["tool"]["repo-review"]["ignore"]:
        assert re.search(rf'^  "{code}", *# \S+', text, flags=re.MULTILINE), code


def test_no_module_of_one_system_is_imported():
    posix = {"fcntl", "grp", "pwd", "resource", "termios", "tty", "pty", "syslog", "msvcrt", "winreg", "_winapi"}
    for path in SOURCES:
        for node in nodes_of(path):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            assert not posix & set(names), f"{path}:{node.lineno}"


def test_calls_of_one_system_stand_behind_a_question():
    """What ``os`` and ``signal`` have on POSIX only is used in functions that ask for the platform or the attribute."""
    only = {
        "fork",
        "pread",
        "pwrite",
        "sched_getaffinity",
        "geteuid",
        "getuid",
        "killpg",
        "setsid",
        "mkfifo",
        "statvfs",
    }
    only |= {"O_CLOEXEC", "O_DIRECTORY", "SIGKILL", "pthread_sigmask", "SIGALRM", "SIGHUP", "alarm", "setitimer"}
    found = []
    for path in SOURCES:
        lines = path.read_text(encoding="utf-8").splitlines()
        for function in nodes_of(path):
            if not isinstance(function, ast.FunctionDef):
                continue
            used = {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)} & only
            own = "\n".join(lines[function.lineno - 1 : function.end_lineno])
            if used and "sys.platform" not in own and "hasattr" not in own:
                found.append(f"{path}:{function.lineno} {used}")
    assert found == []


def test_text_is_opened_with_its_encoding():
    """Windows reads text as cp1252 unless told otherwise."""
    for path in SOURCES:
        for node in nodes_of(path):
            name = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
            if name in ("read_text", "write_text"):
                given = "encoding" in {word.arg for word in node.keywords} or len(node.args) > (name == "write_text")
                assert given, f"{path}:{node.lineno}"
