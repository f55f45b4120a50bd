"""The exploring commands on small files, and how all commands fail."""

import errno
import inspect
import io
import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import pegfan as pf
from pegfan._plain import plain
from pegfan.cli import _options, _shell, _show, app, bench, info, transform
from pegfan.cli._shell import Fail, add_commands, command

runner = CliRunner()
PNG = b"\x89PNG\r\n\x1a\n"
SUBCOMMANDS = ["demo", "datasets", "info", "tree", "transform", "bench"]


def call(*words, code=0):
    """Run a command; it must end with the code, and without a traceback."""
    result = runner.invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), "no traceback"
    assert "Traceback" not in result.output
    return result


def sentence(*words, code=1):
    """The sentence with which a command fails; nothing is printed as a result."""
    result = call(*words, code=code)
    assert result.stdout == ""
    return " ".join(result.stderr.split())


@pytest.fixture(autouse=True)
def _plain(monkeypatch, tmp_path):
    """A wide terminal without colours; data sets that are nowhere."""
    for name in ("FORCE_COLOR", "PEGFAN_DATA", "PEGFAN_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("PEGFAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PEGFAN_OFFLINE", "1")


@pytest.fixture
def files(tmp_path):
    """Two triangles joined by an edge, and a node with the neighbours of another: nodes.csv and edges.csv."""
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    nodes.write_text("id,kind,size\na,x,1\nb,x,2\nc,x,3\nd,y,10\ne,y,20\nf,y,30\ng,,7\n")
    edges.write_text("source,target\na,b\na,c\nb,c\nc,d\nd,e\nd,f\ne,f\ng,b\ng,c\n")
    return nodes, edges


# ----------------------------------------------------------------------- help


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_help_has_an_example_that_names_the_command(name):
    shown = " ".join(call(name, "--help").stdout.split())
    assert f"Example: pegfan {name}" in shown
    for option in ("--json", "--debug"):
        assert option in shown


def test_help_lists_the_commands_under_headings():
    shown = call("--help").stdout
    places = [shown.index(heading) for heading in ("Start here", "Look at a graph", "This machine")]
    assert places == sorted(places)
    for name in SUBCOMMANDS:
        assert f" {name} " in shown


@pytest.mark.long
def test_help_and_import_stay_light():
    heavy = ("torch", "pandas", "matplotlib", "optuna", "distributed", "sklearn")
    code = f"import sys, pegfan.cli; print([name for name in {heavy!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert found.strip() == "[]"


# ---------------------------------------------------------------------- shell


def ends_with(error, *words):
    """What a command prints that raises an error, and its exit code."""

    def raising(option: int = 0) -> None:
        """Raise."""
        raise error

    raising.__module__ = __name__
    own = typer.Typer()
    own.callback()(lambda: None)
    own.command(**(declared := command("x raising")(raising)).declared)(declared)
    result = CliRunner().invoke(own, ["raising", *words])
    return result.exit_code, " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (Fail("Do this."), 1, "Do this."),
        (Fail("Wrong [option].", 2), 2, "Wrong [option]."),
        (ValueError("bad label='x'; pass label="), 1, "bad --label 'x'; pass --label"),
        (ImportError("install it"), 1, "install it"),
        (MemoryError("of 3 GB"), 1, "Not enough memory. of 3 GB"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "x.csv"), 1, "x.csv: No such file or directory."),
        (PermissionError(errno.EACCES, "Permission denied", "x.csv"), 1, "Permission denied. Change its permissions"),
        (OSError(errno.ENOSPC, "No space left on device"), 1, "No space left on device. Free some space"),
        (KeyError("oops"), 3, "This is a bug in pegfan; --debug shows where."),
        (KeyboardInterrupt(), 130, "Interrupted."),
    ],
)
def test_errors_are_sentences_with_codes(error, code, words):
    found, shown = ends_with(error)
    assert found == code
    assert words in shown
    assert "Traceback" not in shown


def test_debug_shows_where():
    code, shown = ends_with(KeyError("oops"), "--debug")
    assert code == 3
    assert "Traceback" in shown
    assert "raise error" in shown


def test_who_ends_a_command_on_purpose_is_let_through():
    assert ends_with(typer.Exit(7)) == (7, "")
    code, shown = ends_with(typer.BadParameter("not so"))
    assert code == 2
    assert "not so" in shown


def test_an_interrupt_during_imports_comes_after_them(monkeypatch):
    loaded = []

    def load(name):
        os.kill(os.getpid(), signal.SIGINT)
        loaded.append(name)

    monkeypatch.setattr(_shell.importlib, "import_module", load)
    with pytest.raises(KeyboardInterrupt):
        _shell.load_packages("one", "two")
    assert loaded == ["one", "two"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_docstrings_flow_in_the_help():
    def words() -> None:
        """First line.

        A paragraph
        of two lines.
        - an item
        """

    assert command("x")(words).declared["help"] == "First line.\n\nA paragraph of two lines.\n- an item"


def test_only_the_commands_of_a_module_are_added():
    own = typer.Typer()
    add_commands(own, transform)
    assert [entry.callback for entry in own.registered_commands] == [transform.transform]


def test_json_is_json_whatever_the_numbers():
    value = {"a": np.float32(np.nan), "b": [np.int64(2), float("inf")], "c": np.arange(2), 3: True, "d": None}
    assert plain(value) == {"a": None, "b": [2, None], "c": [0, 1], "3": True, "d": None}


def test_consoles_look_when_a_command_starts(files, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in runner.invoke(app, ["info", *map(str, files)], color=True).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR")
    assert "\x1b[" not in runner.invoke(app, ["info", *map(str, files)], color=True).stdout
    monkeypatch.setenv("COLUMNS", "60")
    lines = [line for line in call("info", *files).stdout.splitlines() if str(files[0].parent) not in line]
    assert max(map(len, lines)) <= 60


def test_bars():
    assert _show.bar(0.5, 4) == "[cyan]██[/cyan]"
    assert _show.bar(1 / 16, 2) == "[cyan]▏[/cyan]"
    assert _show.bar(float("nan"), 4) == ""
    assert _show.bar(7.0, 2) == "[cyan]██[/cyan]"


RUN = [sys.executable, "-c", "from pegfan.cli import app; app()"]


def test_a_terminal_without_unicode_gets_question_marks(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    _shell.console.look()
    _shell.console.print("3 ± █")
    sys.stdout.flush()
    assert raw.getvalue().split() == [b"3", b"?", b"?"]


@pytest.mark.long
def test_a_reader_that_goes_away_is_no_error():
    process = subprocess.Popen([*RUN, "datasets", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    process.wait()
    assert errors == b""


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize("name", ["info", "tree", "transform"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no such file (did you mean 'nodes.csv'?)"),
        (b"", "is empty; was it written to the end? Give another file"),
        (bytes(range(256)) * 9, "is not a text table"),
    ],
)
def test_files_that_are_missing_empty_or_damaged(files, name, content, words):
    bad = files[0].with_name("nodez.csv")
    if content is not None:
        bad.write_bytes(content)
    more = ["--signal", "size"] if name == "transform" else []
    found = sentence(name, bad, files[1], *more)
    assert "nodez.csv" in found
    assert words in found


def test_a_file_that_may_not_be_read(files, monkeypatch):
    files[0].chmod(0)
    if os.geteuid() == 0:  # root reads everything: it is told otherwise
        real = io.open

        def refuse(file, *args, **options):
            if str(file) == str(files[0]):
                raise PermissionError(errno.EACCES, "Permission denied", str(file))
            return real(file, *args, **options)

        monkeypatch.setattr("io.open", refuse)
        monkeypatch.setattr("builtins.open", refuse)
    assert "Permission denied. Change its permissions" in sentence("info", *files)


def test_nodes_given_as_edges(files):
    found = sentence("info", files[0])
    assert "looks like a table of nodes" in found
    assert "--source and --target" in found
    assert sentence("tree", files[0]) == found


def test_the_order_of_files_does_not_matter(files):
    one, other = (json.loads(call("info", *pair, "--json").stdout) for pair in (files, files[::-1]))
    assert one["graph"] == other["graph"]


def test_a_label_that_is_misspelled(files):
    assert "did you mean 'kind'?" in sentence("info", *files, "--label", "knid")
    assert "--label 'kind' is a column of the nodes" in sentence("tree", files[1], "--label", "kind")


def test_names_that_nobody_knows(monkeypatch):
    assert "did you mean 'chameleon'?" in sentence("info", "chamelion")
    assert "did you mean 'chameleon'?" in sentence("datasets", "chamelion")
    assert "leave out --label" in sentence("info", "cora", "--label", "x")
    assert "leave out --directed" in sentence("info", "synthetic", "--directed")
    assert "geom-gcn" in sentence("info", "Film"), "case and aliases do not matter: the files of actor are missing"


def test_data_that_is_not_here(monkeypatch, tmp_path):
    assert "downloads are off" in sentence("info", "cora")
    monkeypatch.setenv("PEGFAN_DATA", str(tmp_path / "nowhere"))
    assert "is not a folder" in sentence("datasets")


@pytest.mark.parametrize(
    ("words", "ends"),
    [(["info", "-o"], "png"), (["tree", "-o"], "npz"), (["tree", "--picture"], "svg")]
    + [(["transform", "--signal", "size", option], ends) for option, ends in (("-o", "csv"), ("--picture", "pdf"))],
)
def test_outputs_are_refused_before_any_work(files, words, ends, monkeypatch):
    name, *options = words
    where = files[0].parent
    label = ["--label", "kind"]
    monkeypatch.setattr(_options, "open_source", None)  # so that reading the graph first would fail
    old = where / f"old.{ends}"
    old.write_bytes(b"old")
    found = sentence(name, *files, *label, *options, old)
    assert "exists" in found
    assert "--force" in found
    assert old.read_bytes() == b"old"
    assert "there is no folder" in sentence(name, *files, *label, *options, where / "no" / f"x.{ends}")
    assert "Rename it" in sentence(name, *files, *label, *options, where / "x.jpg", code=2)
    (where / f"folder.{ends}").mkdir()
    assert "is a folder" in sentence(name, *files, *label, *options, where / f"folder.{ends}")


@pytest.mark.parametrize("words", [["info", "-o"], ["tree", "-o"], ["transform", "--signal", "size", "-o"]])
def test_a_full_disk_leaves_nothing(files, words, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    name, *options = words
    target = files[0].with_name({"info": "x.png", "tree": "x.npz", "transform": "x.csv"}[name])
    found = sentence(name, *files, "--label", "kind", *options, target)
    assert f"Cannot write to {target}: No space left on device" in found
    assert "-o" in found
    assert sorted(file.name for file in target.parent.iterdir()) == ["edges.csv", "nodes.csv"]


def test_force_overwrites(files):
    target = files[0].with_name("x.npz")
    target.write_bytes(b"old")
    call("tree", *files, "-o", target, "--force")
    assert pf.Hierarchy.load(target).n == 7


@pytest.mark.long
def test_an_interrupt_is_one_word(files):
    # The tree of these files is made at once, so the command interrupts itself as its reader starts.
    code = (
        "import os, signal, pegfan.datasets.sources as s; from pegfan.cli import app\n"
        "s.read_graph = lambda *a, **k: os.kill(os.getpid(), signal.SIGINT)\n"
        f"app(['tree', {str(files[1])!r}, '-o', {str(files[1].with_name('t.npz'))!r}])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "Interrupted.\n")
    assert not files[1].with_name("t.npz").exists()


# ----------------------------------------------------------------------- info


def test_info_tells_what_is_there(files):
    told = json.loads(call("info", *files, "--label", "kind", "--json").stdout)
    assert told["graph"]["nodes"] == 7
    assert told["graph"]["edges"] == 9
    assert told["degrees"]["degree"] == {"min": 2, "median": 2.0, "mean": 18 / 7, "max": 4}
    assert told["degrees"]["histogram"] == {"2": 6, "4": 1}
    assert told["components"] == {"count": 1, "largest": [7]}
    assert told["classes"] == [{"name": "x", "nodes": 3}, {"name": "y", "nodes": 3}]
    graph = pf.read_graph(*files, label="kind")
    assert np.allclose(told["ccns"], pf.measures.ccns(graph))
    assert told["read"]["columns"]["label"].startswith("'kind' (as given)")
    assert any("1 of 7 nodes have no label" in warning for warning in told["warnings"])
    assert any("fewer than 10 nodes: x, y" in warning for warning in told["warnings"])


def test_info_prints_it(files):
    shown = call("info", *files, "--label", "kind").stdout
    for text in ("homophily", "label informativeness", "CCNS", "What was read, and guessed", "'kind' (as given)"):
        assert text in shown
    assert f"pegfan train {files[0]} {files[1]}" in shown


def test_info_lists_every_column_and_takes_the_options_of_reading(tmp_path):
    nodes = "who,town,since,age,note,same\n" + "".join(
        f"p{k:02d},{'Rome' if k % 3 else 'Oslo'},{k + 1:02d}.0{k % 9 + 1}.2020,{'' if k == 3 else 20 + k},text{k},1\n"
        for k in range(28)
    )
    (tmp_path / "nodes.csv").write_text(nodes)
    (tmp_path / "edges.csv").write_text("giver,taker\n" + "".join(f"p{k:02d},p{k + 1:02d}\n" for k in range(27)))
    files = [tmp_path / "nodes.csv", tmp_path / "edges.csv"]
    shown = call("info", *files).stdout
    for line in (
        "town: 2 categories",
        "since: date, day first: age in days on 2020-",
        "age: number, 1 missing: the mean and 'age missing'",
        "note: texts that all differ: names, not categories",
        "same: constant: every value is 1",
        "edges.csv: edges; comma, header, 27 rows; a header, as 'giver' and 'taker' are not among the ids of nodes.csv",
    ):
        assert line in " ".join(shown.split())
    assert "pegfan tree" in shown  # nothing to train on
    told = json.loads(call("info", *files, "--missing", "zero", "--categories-max", "2", "--json").stdout)
    assert told["read"]["features"]["age"] == "number, 1 missing: 0 and 'age missing'"
    assert told["read"]["schema"]["nodes"]["town"] == {"kind": "category", "categories": ["Oslo", "Rome"]}
    assert json.loads(call("info", files[1], "--json").stdout)["graph"]["nodes"] == 28
    assert json.loads(call("info", files[1], "--no-header", "--json").stdout)["graph"]["nodes"] == 30
    files[1].write_text("giver,taker\np01,p02\np02,p99\n")
    told = call("info", *files, code=1).output
    assert "--unknown add" in told
    assert "--unknown drop" in told
    assert json.loads(call("info", *files, "--unknown", "add", "--json").stdout)["graph"]["nodes"] == 29
    assert "does not know 'median'" in call("info", *files, "--missing", "median", code=2).stderr


def test_classes_that_no_node_has_are_not_listed(tmp_path):
    np.savez(tmp_path / "g.npz", edges=[[0, 1], [1, 2], [2, 3]], y=[0, 0, 2, 2])
    told = json.loads(call("info", tmp_path / "g.npz", "--json").stdout)
    assert [entry["name"] for entry in told["classes"]] == ["0", "2"]
    assert np.shape(told["ccns"]) == (2, 2)
    assert "2; 4 nodes labelled" in call("info", tmp_path / "g.npz").stdout


def test_info_without_labels_or_features(files):
    shown = call("info", files[1]).stdout
    assert "No classes: name their column with --label" in shown
    assert "no features" in shown
    assert "CCNS" not in shown
    assert "--label" in sentence("info", files[1], "-o", files[1].with_name("x.png"))


def test_info_draws_the_heat_map(files):
    target = files[0].with_name("ccns.png")
    call("info", *files, "--label", "kind", "-o", target)
    assert target.read_bytes().startswith(PNG)


def test_the_heat_map_has_a_cell_for_every_pair():
    matrix = np.array([[1.0, 0.25], [0.25, np.nan]])
    text = info._heat_map(matrix, ["red", "blue"])
    lines = text.plain.splitlines()
    assert lines[2].split() == ["red", "1.00", "0.25"]
    assert lines[3].split() == ["blue", "0.25", "-"]
    styles = [str(span.style) for span in text.spans]
    assert "white on rgb(8,48,107)" in styles, "1 is the darkest blue"
    many = info._heat_map(np.eye(20), [f"class {i}" for i in range(20)])
    assert "16 of 20 classes" in many.plain
    assert max(map(len, many.plain.splitlines())) <= 80


# ----------------------------------------------------------------------- tree


def test_tree_writes_what_build_tree_makes(files):
    target = files[0].with_name("tree.npz")
    told = json.loads(call("tree", *files, "--label", "kind", "--h", "2", "-o", target, "--json").stdout)
    graph = pf.read_graph(*files, label="kind")
    tree = pf.build_tree(graph, h=2)
    assert pf.Hierarchy.load(target) == tree
    assert told["clusters"] == list(tree.n_clusters)
    assert told["info"]["method"] == "ward"
    quality = pf.framelets.quality(graph, tree)
    assert [row["level"] for row in told["quality"]] == quality.index.tolist()
    assert [row["label energy"] for row in told["quality"]] == pytest.approx(quality["label energy"].tolist())


def test_tree_prints_its_levels_and_warns(files):
    shown = call("tree", *files, "--h", "2", "--max-levels", "3", "--method", "matching").stdout
    assert "matching" in shown
    assert "cut short by --max-levels" in shown
    star = files[0].with_name("star.csv")
    star.write_text("source,target\n" + "".join(f"hub,leaf{i}\n" for i in range(6)))
    assert "tied" in call("tree", star).stdout


@pytest.mark.parametrize(("option", "near"), [("--method", "ward"), ("--direction", "out")])
def test_tree_options_that_nobody_knows(files, option, near):
    found = sentence("tree", *files, option, near + "x", code=2)
    assert f"did you mean '{near}'?" in found


@pytest.mark.long
def test_pictures_of_small_and_large_trees(files):
    small, large = files[0].with_name("small.png"), files[0].with_name("large.svg")
    call("tree", *files, "--picture", small)
    assert small.read_bytes().startswith(PNG)
    many = files[0].with_name("many.csv")
    many.write_text("source,target\n" + "".join(f"{i},{(i * 7 + 1) % 600}\n" for i in range(600)))
    call("tree", many, "--picture", large)
    assert b"<svg" in large.read_bytes()


# ------------------------------------------------------------------ transform


def test_transform_takes_a_column_apart(files):
    target = files[0].with_name("out.npz")
    told = json.loads(call("transform", *files, "--signal", "size", "-o", target, "--json").stdout)
    graph = pf.read_graph(*files)
    system = pf.FrameletSystem(pf.build_tree(graph))
    f = np.array([1.0, 2, 3, 10, 20, 30, 7])
    c = system.decompose(f)
    assert told["energy"] == pytest.approx([energy / (f @ f) for energy in c.energies()])
    assert sum(told["energy"]) == pytest.approx(1)
    assert told["reconstruction_error"] < 1e-14
    assert told["removed"] is None
    with np.load(target) as arrays:
        assert np.array_equal(arrays["signal"], f)
        assert np.allclose(arrays["coefficients"], c.array)
        assert tuple(arrays["offsets"]) == system.offsets()
        assert np.allclose(sum(arrays[f"F_{j}"] for j in range(system.K)), f)


def test_transform_writes_one_row_per_node(files):
    import pandas as pd

    target = files[0].with_name("out.csv")
    shown = call("transform", *files, "--signal", "size", "--denoise", "4", "-o", target, "--weights", "size").stdout
    table = pd.read_csv(target)
    assert table["id"].tolist() == list("abcdefg")
    system = pf.FrameletSystem(pf.build_tree(pf.read_graph(*files)), weights="size")
    assert np.allclose(table["denoised"], system.denoise(table["signal"].to_numpy(), 4.0))
    assert re.search(r"Denoising .*% of the energy", shown)
    assert str(target) in shown


def test_transform_uses_a_tree_that_was_kept(files):
    kept = files[0].with_name("tree.npz")
    call("tree", *files, "--h", "2", "-o", kept)
    told = json.loads(call("transform", *files, "--signal", "degree", "--tree", kept, "--json").stdout)
    assert told["clusters"] == list(pf.Hierarchy.load(kept).n_clusters)
    turned = files[0].with_name("turned.csv")
    head, *rows = files[0].read_text().splitlines()
    turned.write_text("\n".join([head, *rows[::-1]]) + "\n")
    told = sentence("transform", turned, files[1], "--signal", "degree", "--tree", kept)
    assert "a tree of other nodes than the graph has, or of the same in another order" in told
    pieces = ["--memory", "300MB", "--work", files[0].with_name("work")]
    call("transform", *files, "--signal", "degree", "--tree", kept, *pieces)
    failed = call("transform", turned, files[1], "--signal", "degree", "--tree", kept, *pieces, code=1)
    assert "in another order" in " ".join(failed.stderr.split())
    call("tree", *files, "--method", "matching", *pieces, "-o", kept, "--force")
    call("transform", *files, "--signal", "degree", "--tree", kept)
    pf.Hierarchy.from_nested([[0, 1], [2]]).save(kept)
    assert "a tree of 3 nodes, and the graph has 7" in sentence("transform", *files, "--signal", "size", "--tree", kept)
    kept.write_bytes(b"PK")
    assert "not a readable npz" in sentence("transform", *files, "--signal", "size", "--tree", kept)
    assert "No such file" in sentence("transform", *files, "--signal", "size", "--tree", files[0].with_name("no.npz"))


def test_signals(files):
    graph = pf.read_graph(*files, label="kind")
    signal_of = lambda wanted: transform._signal(graph, wanted)  # noqa: E731
    assert signal_of("size")[1].tolist() == [1, 2, 3, 10, 20, 30, 7]
    assert signal_of("0")[0] == "size"
    assert signal_of("degree")[1].tolist() == [2, 3, 4, 3, 2, 2, 2]
    assert signal_of("label:y")[1].tolist() == [0, 0, 0, 1, 1, 1, 0]
    by_name = transform._signal(pf.datasets.synthetic(0.0, n=60, n_edges=90, n_features=3), "2")
    assert by_name[0] == "feature 2"


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("sise", "did you mean 'size'?"),
        ("9", "There is no feature 9: the features are 0 to 0"),
        ("label:z", "There is no class 'z'; there are 'x', 'y'"),
    ],
)
def test_signals_that_are_not_there(files, wanted, words):
    assert words in sentence("transform", *files, "--label", "kind", "--signal", wanted)


def test_signals_of_graphs_without_classes_or_features(files):
    assert "the graph has no features" in sentence("transform", files[1], "--signal", "0")
    assert "--label" in sentence("transform", files[1], "--signal", "label:x")


@pytest.mark.parametrize("rule", ["soft", "-1", "nan", "inf"])
def test_rules_that_nobody_knows(files, rule):
    found = sentence("transform", *files, "--signal", "size", f"--denoise={rule}", code=2)
    assert "best, empirical, block, sure, bayes, universal or a number" in found


@pytest.fixture
def line(tmp_path):
    """Sixty nodes in a row: heat with gaps, and three days."""
    rng = np.random.default_rng(0)
    days = np.repeat([1.0, 4.0, 2.0], 20)[:, None] + 0.3 * rng.standard_normal((60, 3))
    heat = np.where(np.arange(60) % 9 == 4, np.nan, np.sin(np.arange(60) / 9) + 0.1 * rng.standard_normal(60))
    rows = [f"{i},{'' if np.isnan(heat[i]) else heat[i]},{','.join(map(str, days[i]))}" for i in range(60)]
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    nodes.write_text("id,heat,mon,tue,wed\n" + "\n".join(rows) + "\n")
    edges.write_text("source,target\n" + "".join(f"{i},{i + 1}\n" for i in range(59)))
    return (nodes, edges), pf.read_graph(nodes, edges), heat, days


def test_gaps_of_a_signal_are_told_and_kept(line, tmp_path):
    import pandas as pd

    files, graph, heat, _ = line
    shown = " ".join(call("transform", *files, "--signal", "heat", "-o", tmp_path / "a.csv").stdout.split())
    assert "7 of 60 values are missing; the mean stands for them in the parts. --inpaint or --denoise best" in shown
    table = pd.read_csv(tmp_path / "a.csv")
    np.testing.assert_allclose(table["signal"], heat)
    whole = np.where(np.isnan(heat), np.nanmean(heat), heat)
    np.testing.assert_allclose(sum(table[f"F_{j}"] for j in range(table.shape[1] - 2)), whole)
    told = json.loads(call("transform", *files, "--signal", "heat", "--missing", "zero", "--json").stdout)
    assert told["missing"] == 7
    system = pf.FrameletSystem(pf.build_tree(graph))
    c = system.decompose(np.where(np.isnan(heat), 0.0, heat))
    assert told["energy"] == pytest.approx([energy / sum(c.energies()) for energy in c.energies()])


def test_columns_that_features_have_logarithms_of(tmp_path):
    visits = [int(10 ** (i / 20)) if i % 9 else None for i in range(1, 101)]
    nodes, edges = tmp_path / "nodes.csv", tmp_path / "edges.csv"
    rows = "".join(f"v{i},{'' if v is None else v}\n" for i, v in enumerate(visits))
    nodes.write_text("id,visits\n" + rows)
    edges.write_text("source,target\n" + "".join(f"v{i},v{i + 1}\n" for i in range(99)))
    for name, wanted in (("visits", np.array(visits, float)), ("visits (log)", np.log1p(np.array(visits, float)))):
        call("transform", nodes, edges, "--signal", name, "-o", tmp_path / "out.npz", "--force")
        with np.load(tmp_path / "out.npz") as arrays:
            np.testing.assert_allclose(arrays["signal"], wanted, rtol=0 if name == "visits" else 1e-12)


def test_transform_denoises_by_all_that_there_is(line, tmp_path):
    files, graph, heat, days = line
    target = tmp_path / "out.npz"
    told = json.loads(call("transform", *files, "--signal", "heat", "--denoise", "--json", "-o", target).stdout)
    found = pf.denoise(graph, heat, report=True)
    with np.load(target) as arrays:
        np.testing.assert_allclose(arrays["denoised"], found.signal)
    assert told["denoise"] == "best"
    assert told["sigma"] == pytest.approx(float(np.sqrt(np.mean(np.square(found.sigma)))))
    assert told["shares"] == pytest.approx(found.shares)
    assert told["snr"] == pytest.approx(20 * np.log10(found.signal.std() / told["sigma"]))
    options = ["--signal", "mon", "--denoise", "best", "--noise", "heavy", "--trees", "2", "-o", target, "--force"]
    shown = " ".join(call("transform", *files, *options).stdout.split())
    assert re.search(r"standard deviation of [\d.]+; signal to noise [\d.]+ dB\. Made of", shown)
    with np.load(target) as arrays:
        np.testing.assert_allclose(arrays["denoised"], pf.denoise(graph, days[:, 0], noise="heavy", trees=2))


def test_transform_takes_columns_as_steps_in_time(line, tmp_path):
    import pandas as pd

    files, graph, _, days = line
    signals = [word for day in ("mon", "tue", "wed") for word in ("--signal", day)]
    call(
        "transform", *files, *signals, "--denoise", "--time", "-o", tmp_path / "a.csv", "--picture", tmp_path / "a.png"
    )
    table = pd.read_csv(tmp_path / "a.csv")
    found = pf.denoise(graph, days, time=True)
    for k, day in enumerate(("mon", "tue", "wed")):
        np.testing.assert_allclose(table[day], days[:, k])
        np.testing.assert_allclose(table[f"{day} denoised"], found[:, k])
        parts = [name for name in table if name.startswith(f"{day} F_")]
        np.testing.assert_allclose(table[parts].sum(axis=1), days[:, k])


def test_transform_fills_gaps_with_intervals(line, tmp_path):
    import pandas as pd

    files, graph, heat, _ = line
    target = tmp_path / "out.csv"
    told = json.loads(call("transform", *files, "--signal", "heat", "--inpaint", "-o", target, "--json").stdout)
    found = pf.inpaint(graph, heat, report=True)
    table = pd.read_csv(target)
    assert told["level"] == 0.9
    for name, wanted in (("inpainted", found.signal), ("low", found.low), ("high", found.high)):
        np.testing.assert_allclose(table[name], wanted)
    parts = [name for name in table if name.startswith("F_")]
    np.testing.assert_allclose(table[parts].sum(axis=1), found.signal)
    shown = call("transform", *files, "--signal", "mon", "--inpaint", "--level", "0.5").stdout
    assert "No value is missing" in shown


def test_transform_compresses(line, tmp_path):
    files, graph, _, days = line
    target = tmp_path / "out.npz"
    told = json.loads(call("transform", *files, "--signal", "mon", "--compress", "5", "-o", target, "--json").stdout)
    small = pf.compress(graph, days[:, 0], 5)
    assert told["compressed"] == {"error": pytest.approx(small.error), "bytes": small.nbytes}
    with np.load(target) as arrays:
        np.testing.assert_allclose(arrays["compressed"], small.signal)
    shown = call("transform", *files, "--signal", "heat", "--compress", "0.1").stdout
    assert re.search(r"Compressed to \d+ bytes: [\d.]+% of its norm is lost", shown)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--denoise", "--noise", "loud"], "--noise does not know 'loud'"),
        (["--denoise", "--noise", "heavy", "--sigma", "1"], "give one of them"),
        (["--denoise", "--time"], "--time is for several signals"),
        (["--denoise", "sure", "--trees", "3"], "--trees is for --denoise best"),
        (["--noise", "heavy"], "--noise is for --denoise best"),
        (["--denoise", "0.3", "--sigma", "1"], "--sigma is for --denoise by best or a rule"),
        (["--level", "0.5"], "--level is for --inpaint"),
        (["--compress", "1.5"], "--compress is a share of the nodes"),
        (["--compress", "0"], "--compress is a share of the nodes"),
        (["--signal", "size"], "--signal size is given more than once"),
        (["--denoise", "--memory", "1GB"], "--denoise best needs the whole graph in memory: name a rule"),
        (["--signal", "degree", "--memory", "1GB"], "In pieces there is one --signal at a time"),
        (["--inpaint", "--memory", "1GB"], "--inpaint needs the whole graph in memory"),
        (["--compress", "0.1", "--memory", "1GB"], "--compress needs the whole graph in memory"),
    ],
)
def test_wishes_that_do_not_go_together(files, options, words):
    assert words in sentence("transform", *files, "--signal", "size", *options, code=2)


def test_transform_draws(files):
    target = files[0].with_name("x.png")
    shown = call("transform", *files, "--signal", "size", "--denoise", "universal", "--picture", target).stdout
    assert target.read_bytes().startswith(PNG)
    assert "F_0" in shown


def test_a_signal_of_zeros_has_no_shares():
    found = transform._transform(pf.Hierarchy.from_nested([[0, 1], [2]]), np.zeros(3), "size", "sure")
    assert plain(found["energy"]) == [None] * 3
    assert found["removed"] is None
    assert found["reconstruction_error"] == 0


def test_colours_end_where_outliers_begin():
    assert transform._limits(np.array([1.0, -2, 3])) is None
    low, high = transform._limits(np.concatenate([np.linspace(-1, 1, 1000), [50.0]]))
    assert low == -high
    assert 0.9 < high < 1


# ------------------------------------------------------------------- datasets


def test_datasets_lists_all_and_says_what_is_here():
    told = json.loads(call("datasets", "--json").stdout)
    assert [entry["name"] for entry in told] == pf.datasets.names()
    assert not any(entry["here"] for entry in told)
    assert told[0]["origin"] == "geom-gcn"
    shown = call("datasets").stdout
    assert all(name in shown for name in pf.datasets.names())
    assert "--download" in shown


def test_one_dataset_in_detail():
    shown = call("datasets", "Texas").stdout
    assert "Class 1 has one node" in shown
    assert "pegfan datasets texas --download" in shown
    assert 'pf.datasets.load("texas")' in shown
    told = json.loads(call("datasets", "texas", "--json").stdout)
    assert (told["name"], told["directed"], told["metric"]) == ("texas", True, "accuracy")


def test_a_damaged_file_is_told(monkeypatch, tmp_path):
    for file in pf.datasets.info("minesweeper").files:
        (tmp_path / file.path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file.path).write_bytes(b"not it")
    monkeypatch.setenv("PEGFAN_DATA", str(tmp_path))
    told = json.loads(call("datasets", "minesweeper", "--json").stdout)
    assert not told["here"]
    assert "minesweeper.npz" in told["problem"]
    assert "damaged" in call("datasets").stdout


def test_downloads_are_asked_for(monkeypatch):
    from pegfan.datasets import download

    asked = []
    fetch = download.fetch
    monkeypatch.setattr(
        download, "fetch", lambda files, *a, **k: asked.append(k.get("offline")) or fetch(files, *a, **k)
    )
    assert "downloads are off" in sentence("datasets", "minesweeper", "--download")
    assert None in asked, "not offline: what is missing may be fetched"


# ---------------------------------------------------------------------- bench


@pytest.mark.long
def test_bench_measures_each_part(monkeypatch):
    monkeypatch.setattr(bench, "_QUICK", 200)
    told = json.loads(call("bench", "--quick", "--json").stdout)
    rows = {row["name"]: row for row in told["rows"]}
    assert list(rows) == ["copy", "sgemm", "hop", "decompose", "reconstruct", "tree", "epoch"]
    assert all(row["seconds"] > 0 and row["rate"] > 0 for row in rows.values())
    assert {name for name in rows if rows[name]["ratio"] is not None} == {"hop", "decompose", "reconstruct", "epoch"}
    assert told["versions"]["pegfan"] == pf.__version__


def test_bench_counts_products_by_hand():
    graph = pf.datasets.synthetic(0.0, n=100, n_edges=200, n_features=3)
    split = graph.splits[0]
    once = 2 * len(split.train) + len(split.val)
    assert bench._flops((3, 5), graph) == 2 * 8 * 64 * once


def test_bench_gives_the_threads_back():
    import torch

    before = torch.get_num_threads()
    with bench._one_core():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_medians_leave_the_first_round_out(monkeypatch):
    ticks = iter([0, 100, 100, 101, 101, 103, 103, 106])
    monkeypatch.setattr(bench.time, "process_time", lambda: next(ticks))
    assert bench._seconds(lambda: None, repeats=3) == [2]


def test_every_command_is_declared_with_its_panel():
    for registered in app.registered_commands:
        name = registered.name or registered.callback.__name__
        assert registered.rich_help_panel, f"{name} stands under no heading: add it to PANELS"
        assert "debug" in inspect.signature(registered.callback).parameters


GROWING = {"kind": lambda word: pf.Recipe("ward", kind=word), "metric": lambda word: pf.Graph(np.eye(2), metric=word)}
"""Words of tables that anybody may add a row to: the help has examples of them, and a wrong word's error all."""


@pytest.mark.parametrize("word", GROWING)
def test_a_wrong_word_of_a_growing_table_is_answered_with_all_of_them(word):
    with pytest.raises(ValueError, match="nonsense") as error:
        GROWING[word]("nonsense")
    assert set(pf.families()[word]) <= set(re.findall(r"\w+", str(error.value)))


@pytest.mark.parametrize("name", ["search", "train"])
def test_the_help_of_an_option_names_all_its_words(name):
    (made,) = [one.callback for one in app.registered_commands if one.name == name]
    options = {"grid": "settings"} if name == "search" else {}
    for word, known in pf.families().items():
        if word in GROWING:
            continue
        option = inspect.signature(made).parameters.get(options.get(word, word))
        if option is not None:
            shown = set(re.findall(r"\w+", option.annotation.__metadata__[0].help))
            assert set(known) - {"auto"} <= shown, word
