"""Strange surroundings: locales, homes, terminals, closed streams, limits, signals; and names that steer terminals.

Commands run in forks of a process that has imported what they need, so that a try takes a fraction of a second. What
Python decides before the first line of ours (locale, encodings) is tried in processes that start from nothing.
"""

from __future__ import annotations

import csv
import fcntl
import io
import os
import random
import re
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torture.campaign import Fault, attack

MB = 2**20
HELD = {signal.SIGINT, signal.SIGTERM}
FEW = ["--set", "epochs=10", "--set", "hidden=8", "--workers", "1", "--method", "none", "--splits", "1"]
SEARCHED = [
    "--label",
    "kind",
    "--strategy",
    "halving",
    "--trials",
    "2",
    "--epochs",
    "3",
    "--hops",
    "1",
    "--workers",
    "1",
]
COMMANDS: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "info": (["info", "{nodes}", "{edges}", "--label", "kind", "-v"], ()),
    "info --json": (["info", "{nodes}", "{edges}", "--label", "kind", "--json"], ()),
    "info -o": (["info", "{nodes}", "{edges}", "--label", "kind", "-o", "{here}/ccns.png"], ("ccns.png",)),
    "tree": (["tree", "{nodes}", "{edges}", "-o", "{here}/tree.npz"], ("tree.npz",)),
    "transform": (["transform", "{nodes}", "{edges}", "--signal", "size", "-o", "{here}/t.npz"], ("t.npz",)),
    "train": (
        ["train", "--config", "{place}/one.toml", "-o", "{here}/out"],
        ("out/predictions.csv", "out/ranked.csv", "out/settings.toml"),
    ),
    "predict": (["predict", "{place}/out", "{nodes}", "{edges}", "-o", "{here}/p.csv"], ("p.csv",)),
    "explain": (["explain", "{place}/out", "n3", "n4"], ()),
    "report": (["report", "{place}/out", "-o", "{here}/r.html"], ("r.html",)),
    "search": (["search", "{nodes}", "{edges}", "-o", "{here}/store", *SEARCHED], ("store/search.csv",)),
    "datasets": (["datasets"], ()),
    "clean": (["clean", "{here}"], ()),
    "help": (["train", "--help"], ()),
    "version": (["--version"], ()),
    "a wrong option": (["info", "--nothing"], ()),
    "a file that is missing": (["info", "{here}/missing.csv"], ()),
}
"""Their words, and the files in which no time stands."""
RECIPE = 'splits = 1\nworkers = 1\n[[recipes]]\nmethod = "none"\nepochs = 5\nhidden = 4\n'
_FAIL = {"a wrong option": 2, "a file that is missing": 1}


@dataclass
class Ended:
    """What came of a command."""

    code: int
    out: bytes
    err: bytes
    files: dict[str, bytes] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def tail(self) -> str:
        return repr((self.err or self.out)[-500:])


@dataclass(frozen=True)
class Around:
    """One kind of surroundings; what is done in the process of the command, before it runs."""

    name: str
    env: Mapping[str, str | None] = field(default_factory=dict)
    do: Callable[[Path, random.Random], None] = lambda folder, draw: None
    codes: tuple[int, ...] = (0,)
    """With which codes a command may end that ends with 0 elsewhere."""
    cold: bool = False
    """Whether a new process of Python is needed."""
    size: tuple[int, int] | None = None
    """Lines and columns of a terminal, if there is one."""
    number: int = 0
    """A signal that is sent at a random moment."""


def _delete(folder: Path, draw: random.Random) -> None:
    gone = folder / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()


def _close(*which: int) -> Callable[[Path, random.Random], None]:
    def do(folder: Path, draw: random.Random) -> None:
        for one in which:
            os.close(one)

    return do


def _fill(which: int) -> Callable[[Path, random.Random], None]:
    return lambda folder, draw: os.dup2(os.open("/dev/full", os.O_WRONLY), which) and None


def _memory(folder: Path, draw: random.Random) -> None:
    text = Path("/proc/self/statm").read_text(encoding="ascii")
    held = int(text.split()[0]) * os.sysconf("SC_PAGESIZE")
    resource.setrlimit(resource.RLIMIT_AS, (held + draw.randrange(1, 200) * MB,) * 2)


def _umask(mask: int) -> Callable[[Path, random.Random], None]:
    return lambda folder, draw: os.umask(mask) and None


AROUND = [
    *(Around(f"COLUMNS={text}", {"COLUMNS": text}) for text in ("0", "1", "5", "40", "-1", "²", "9" * 40, "x", "")),
    Around("TERM=dumb", {"TERM": "dumb"}),
    Around("TERM unset, NO_COLOR", {"TERM": None, "NO_COLOR": "1"}),
    Around("FORCE_COLOR", {"FORCE_COLOR": "1"}),
    *(Around(f"TZ={zone}", {"TZ": zone}) for zone in ("Pacific/Kiritimati", ":nowhere", "XXX-26:61")),
    Around("HOME unset", {"HOME": None, "XDG_CACHE_HOME": None, "MPLCONFIGDIR": None}),
    Around("HOME missing", {"HOME": "/nowhere/at/all"}),
    Around("HOME is a file", {"HOME": "/dev/null"}),
    Around("TMPDIR missing", {"TMPDIR": "/nowhere/at/all"}),
    Around("umask 077", do=_umask(0o077)),
    Around("umask 000", do=_umask(0)),
    Around("the working folder deleted", do=_delete),
    Around("standard input closed", do=_close(0)),
    Around("standard output closed", do=_close(1)),
    Around("standard error closed", do=_close(2)),
    Around("all streams closed", do=_close(0, 1, 2)),
    Around("standard output full", do=_fill(1), codes=(0, 1)),
    Around("standard error full", do=_fill(2)),
    Around("64 files", do=lambda folder, draw: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))),
    Around("little memory", do=_memory, codes=(0, 1)),
    Around("a terminal of 40 columns", {"TERM": "xterm-256color"}, size=(24, 40)),
    Around("a terminal of 7 columns", {"TERM": "xterm"}, size=(3, 7)),
    Around("a terminal of no size", {"TERM": "xterm"}, size=(0, 0)),
    *(Around("Ctrl-C", number=signal.SIGINT, codes=(0, 130, -2)) for _ in range(6)),
    *(Around("kill", number=signal.SIGTERM, codes=(0, 143, -15)) for _ in range(6)),
    Around("LANG=C", {"LANG": "C", "LC_ALL": None}, cold=True),
    Around("LC_ALL=POSIX", {"LC_ALL": "POSIX"}, cold=True),
    Around("ASCII", {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}, cold=True),
    Around("PYTHONIOENCODING=ascii", {"PYTHONIOENCODING": "ascii"}, cold=True),
    Around("PYTHONIOENCODING=latin-1:strict", {"PYTHONIOENCODING": "latin-1:strict"}, cold=True),
    Around("Ctrl-C from the start", number=signal.SIGINT, codes=(0, 130, -2), cold=True),
    Around("kill from the start", number=signal.SIGTERM, codes=(0, 143, -15), cold=True),
]
PLACES = ["plain", "with space", "a\nb", "ü [red]", "x" * 200, "deep/" * 20 + "er", "'\"$(x)`;", "-o"]


# ------------------------------------------------------------------- running


def _main(words: Sequence[str]) -> int:
    """The program, in this process; as Python does it, streams are flushed at the end."""
    from pegfan.__main__ import main

    sys.argv = ["pegfan", *words]
    try:
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except KeyboardInterrupt:  # before the first line of ours, or after the last
        code = 130
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            code = 120
    return code


def _child(words: Sequence[str], around: Around, folder: Path, draw: random.Random, slave: int | None) -> None:
    """Never returns."""
    code = 99
    try:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for name, value in around.env.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        time.tzset()
        import tempfile

        tempfile.tempdir = None
        os.dup2(os.open(os.devnull, os.O_RDONLY) if slave is None else slave, 0)
        for stream, name in ((1, "stdout"), (2, "stderr")):
            place = os.open(folder / name, os.O_WRONLY | os.O_CREAT) if slave is None else slave
            os.dup2(place, stream)
        around.do(folder, draw)
        for stream, name in ((1, "stdout"), (2, "stderr")):
            try:
                os.fstat(stream)
                made: Any = io.TextIOWrapper(
                    io.FileIO(stream, "w", closefd=False), encoding="utf-8", write_through=True
                )
            except OSError:
                made = None
            setattr(sys, name, made)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD)
        code = _main(words)
    except KeyboardInterrupt:
        code = 130
    finally:
        os._exit(code)


def run(words: Sequence[str], around: Around, folder: Path, draw: random.Random, after: float = 0.0) -> Ended:
    """Run a command; the signal of the surroundings is sent after so many seconds."""
    begun, master, slave, seen = time.monotonic(), None, None, bytearray()
    if around.size is not None:
        master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *around.size, 0, 0))
    started: subprocess.Popen[bytes] | None = None
    if around.cold:
        env = {**os.environ, **{k: v for k, v in around.env.items() if v is not None}}
        env = {k: v for k, v in env.items() if around.env.get(k, "") is not None}
        with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
            line = [sys.executable, "-m", "pegfan", *words]
            started = subprocess.Popen(line, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        child = started.pid
    else:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD)  # until the child is ready for them
        child = os.fork()
        if child == 0:
            _child(words, around, folder, draw, slave)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if slave is not None:
        os.close(slave)
    sent, status = not around.number, None
    try:
        while status is None:
            if master is not None and select.select([master], [], [], 0.005)[0]:
                try:
                    seen += os.read(master, 65_536)
                except OSError:  # the other end is closed
                    os.close(master)
                    master = None
            elif master is None:
                time.sleep(0.002)
            if not sent and time.monotonic() - begun > after:
                os.kill(child, around.number)
                sent = True
            done, found = os.waitpid(child, os.WNOHANG)
            status = found if done else None
        while master is not None and select.select([master], [], [], 0)[0]:
            try:
                seen += os.read(master, 65_536)
            except OSError:
                break
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    finally:
        if master is not None:
            os.close(master)
        if started is not None:
            started.returncode = 0  # it was waited for
    texts = [(folder / name).read_bytes() if (folder / name).exists() else b"" for name in ("stdout", "stderr")]
    code = os.waitstatus_to_exitcode(status)
    return Ended(code, bytes(seen) or texts[0], texts[1], seconds=time.monotonic() - begun)


# -------------------------------------------------------------- surroundings


def make_tables(place: Path) -> None:
    """Sixty nodes of two kinds."""
    draw = random.Random(0)
    nodes = [("id", "kind", "size"), *((f"n{i}", "xy"[i % 2], i % 7 + i % 2 * 3) for i in range(60))]
    edges = [("source", "target"), *((f"n{i}", f"n{(i * 7 + 2 * draw.randrange(9)) % 60}") for i in range(60))]
    for name, rows in (("nodes.csv", nodes), ("edges.csv", edges)):
        with (place / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


def _words(name: str, place: Path, here: Path) -> list[str]:
    names = {"nodes": place / "nodes.csv", "edges": place / "edges.csv", "place": place, "here": here}
    return [word.format(**names) for word in COMMANDS[name][0]]


def _ordinary(name: str, place: Path) -> Ended:
    here = place / "ordinary" / name.replace(" ", "_")
    shutil.rmtree(here, ignore_errors=True)
    (here / "o").mkdir(parents=True)
    ended = run(_words(name, place, here / "o"), Around("ordinary"), here, random.Random(0))
    if ended.code != _FAIL.get(name, 0):
        raise RuntimeError(f"{name} ends with {ended.code} in ordinary surroundings: {ended.tail}")
    ended.files = {path: (here / "o" / path).read_bytes() for path in COMMANDS[name][1]}
    return ended


def prepare(place: Path) -> tuple[Path, dict[str, Ended]]:
    """Tables, a model, settings of one recipe that is quick, and what every command gives in ordinary surroundings."""
    _load(place)
    quiet = Around("ordinary", {"COLUMNS": "100"})
    if not (place / "one.toml").exists():
        make_tables(place)
        shutil.rmtree(place / "out", ignore_errors=True)
        line = ["train", str(place / "nodes.csv"), str(place / "edges.csv"), "--label", "kind", "--budget", "2"]
        ended = run([*line, "-o", str(place / "out"), *FEW], quiet, place, random.Random(0))
        if ended.code:
            raise RuntimeError(f"there is no model to begin with: {ended.tail}")
        text = (place / "out" / "settings.toml").read_text(encoding="utf-8")
        head, first, *_ = text.split("[[recipes]]")
        head = re.sub(r"finalists = \[[^]]*\]\n", "", head)
        (place / "one.toml").write_text(f"{head}[[recipes]]{first}", encoding="utf-8")
    return place, {name: _ordinary(name, place) for name in COMMANDS}


def _load(place: Path) -> None:
    """Import what commands need, and forget what this machine's environment says."""
    for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "PEGFAN_DATA", "PYTHONWARNINGS"):
        os.environ.pop(name, None)
    os.environ |= {"PEGFAN_CACHE": str(place / "cache"), "PEGFAN_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "SOURCE_DATE_EPOCH": "0", "MPLBACKEND": "agg"}
    os.environ |= {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    # Commands that run once here have imported and compiled what their forks need.
    from typer.testing import CliRunner

    from pegfan.cli import app

    first = place / "first"
    shutil.rmtree(first, ignore_errors=True)
    first.mkdir()
    make_tables(first)
    recipe = first / "settings.toml"
    recipe.write_text(RECIPE, encoding="utf-8")
    tables, out = [str(first / "nodes.csv"), str(first / "edges.csv")], str(first / "out")
    for words in (
        ["info", *tables, "--label", "kind", "-o", str(first / "ccns.png")],
        ["tree", *tables, "-o", str(first / "tree.npz")],
        ["transform", *tables, "--signal", "size", "-o", str(first / "t.npz")],
        ["train", *tables, "--label", "kind", "-o", out, "--config", str(recipe)],
        ["predict", out, *tables, "-o", str(first / "p.csv")],
        ["explain", out, "n3"],
        ["report", out],
        ["search", *tables, "-o", str(first / "store"), *SEARCHED],
        ["train", "--help"],
    ):
        ended = CliRunner().invoke(app, words)
        if ended.exit_code:
            raise RuntimeError(f"{words}: {ended.output}")


@attack(
    "strange surroundings",
    "exit 0, 1, 2, 130 or 143, never 3; no traceback; files are those of ordinary surroundings, or there are none",
    500,
    prepare=prepare,
    seconds=60,
)
def surroundings(state: tuple[Path, dict[str, Ended]], number: int, draw: random.Random, folder: Path) -> None:
    place, ordinary = state
    around, name = AROUND[number % len(AROUND)], draw.choice(list(COMMANDS))
    named = draw.choice(PLACES)
    # Where the locale has no other letters, such names are refused with a sentence.
    here = folder / "o" / (named if named.isascii() or around.name != "ASCII" else "plain")
    here.mkdir(parents=True)
    expected = ordinary[name]
    after = draw.uniform(0, 1.2) * expected.seconds + (draw.uniform(0, 1.5) if around.cold else 0)
    ended = run(_words(name, place, here), around, folder, draw, after)
    about = f"{name}, {around.name}, {here.name!r}: exit {ended.code}: {ended.tail}"
    usual = _FAIL.get(name, 0)
    if ended.code != usual and ended.code not in (code for code in around.codes if code):
        raise Fault(about)
    # Before the first line of ours, Python itself complains of a Ctrl-C.
    ours = not (around.cold and around.number) or b"in main" in ended.err
    if ours and any(word in ended.out + ended.err for word in (b"Traceback", b"bug in pegfan", b"Exception ignored")):
        raise Fault(f"a traceback: {about}")
    if ended.code == 1 and usual == 0 and around.name != "standard output full" and not ended.err.strip():
        raise Fault(f"no sentence: {about}")
    tops = {path.split("/")[0] for path in expected.files} | ({"store"} if name == "search" else set())
    strange = {path.name for path in here.iterdir()} - tops
    if strange:
        raise Fault(f"left behind {sorted(strange)}: {about}")
    for path, data in expected.files.items():
        if (here / path).exists():
            own = (here / path).read_bytes()
            if _plain(path, own, here) != _plain(path, data, place / "ordinary" / name.replace(" ", "_") / "o"):
                raise Fault(f"{path} is not what it is elsewhere: {about}")
        elif ended.code == usual == 0:
            raise Fault(f"there is no {path}: {about}")


def _plain(path: str, data: bytes, here: Path) -> bytes:
    """A file's contents but for the place that it names, and times."""
    data = data.replace(str(here).encode(), b"HERE")
    if path.endswith("search.csv"):  # seconds stand in it
        rows = list(csv.DictReader(data.decode().splitlines()))
        return repr([{k: v for k, v in row.items() if "second" not in k} for row in rows]).encode()
    return data


# ------------------------------------------------------------ names on terminals

PARTS = [
    *(
        "\x1b[5;8m",
        "\x1b[2J",
        "\x1b[H",
        "\x1b]0;title\x07",
        "\x1b]8;;http://x\x1b\\",
        "\x1bc",
        "\x1bP1$r\x1b\\",
        "\x1b",
    ),
    *("\x9b2J", "\x9d0;t\x9c", "\x07", "\x08\x08", "\x7f", "\x0b", "\x0c", "\x0e", "\x00", "\x85", "\r"),
    *("\u202e", "\u2066", "\u200f", "\u061c", "\u2028", "\u2029"),
    *(
        "[red]",
        "[/red]",
        "[/]",
        "[link=http://x]",
        "[bold",
        "[@click=x]",
        "[/nothing]",
        "[[",
        "]]",
        "\\",
        "\\\\",
        "\\[",
    ),
    *(":warning:", "{task}", "{0}", "%s", "%(x)s", "é", "名", "a", "b c", "=1+1", "'", "<b>", "&amp;", "${x}"),
]
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
OWN = re.compile(
    r"\x1b\[(?:(?:[0-47]|2[2-479]|3[0-79]|[34]8;(?:5;\d+|2;\d+;\d+;\d+)|4[0-79]|9[0-7]|10[0-7])?(?:;(?=\d)|(?=m)))*m"
    r"|\x1b\[\?25[lh]|\x1b\[2K|\x1b\[\d*A|\x1b\[1?G|\r"
)
"""What rich itself sends to a terminal."""


def _name(draw: random.Random, banned: str = "") -> str:
    text = "".join(draw.choice(PARTS) for _ in range(draw.randrange(1, 6)))
    return "".join(letter for letter in text if letter not in banned) or "n"


def prepare_terminal(place: Path) -> Path:
    _load(place)
    return place


@attack(
    "names that steer terminals",
    "no control character reaches standard output, standard error or a terminal, but for those of the program itself; "
    "names are shown as they are",
    500,
    prepare=prepare_terminal,
    seconds=60,
)
def names(state: Path, number: int, draw: random.Random, folder: Path) -> None:
    # Quotes and ends of lines are the business of other attacks: here tables shall be read.
    banned = '\r\n\0"\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029'
    kinds = [f"{k}{_name(draw, banned)}".strip() for k in range(2)]
    ids = [f"{i}{_name(draw, banned)}".strip() for i in range(24)]
    label, size = f"k{_name(draw, banned)}".strip(), f"s{_name(draw, banned)}".strip()
    nodes = [("id", label, size), *((ids[i], kinds[i % 2], i % 5) for i in range(24))]
    edges = [("source", "target"), *((ids[i], ids[(i * step + 1) % 24]) for i in range(24) for step in (5, 7))]
    beside = folder / f"f{_name(draw, '/' + chr(0))}"
    beside.mkdir()
    paths = []
    for word, rows in (("nodes", nodes), ("edges", edges)):
        paths.append(str(beside / f"{word}{_name(draw, '/' + chr(0))}.csv"))
        with open(paths[-1], "w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
    given, out = [*paths, "--label", label], str(beside / "out")
    choices = [
        ["info", *given],
        ["info", *given, "-vv", "--log-file", str(beside / "log")],
        ["info", *given, "--json"],
        ["info", *paths, "--label", _name(draw, "\0")],
        ["info", paths[0] + "x", paths[1]],
        ["info", *given, f"--{_name(draw, chr(0))}"],
        ["tree", *paths, "-vv", "-o", str(beside / "tree.npz")],
        ["transform", *paths, "--signal", size],
        ["explain", str(beside), ids[0], "--debug"],
        ["predict", out, *paths],
        ["clean", str(beside)],
        [_name(draw, "\0")],
        ["train", *given, "-o", out, "--budget", "1", *FEW, "--set", f"head={_name(draw, chr(0))}"],
    ]
    words = choices[number % len(choices)]
    if number % 10 == 0:
        _train_and_use(folder, beside, given, out, paths, ids, draw)
        return
    _look(words, folder, draw)
    if words == ["info", *given]:
        ended = run(words, Around("wide", {"COLUMNS": "900"}), folder, draw)
        shown = ended.out.decode()
        for kind in kinds if ended.code == 0 else ():
            if _written(kind) not in shown:
                raise Fault(f"{kind!r} is not shown as it is: {shown[-2000:]!r}")


def _train_and_use(
    folder: Path, beside: Path, given: list[str], out: str, paths: list[str], ids: list[str], draw: random.Random
) -> None:
    """A whole training, and what uses it."""
    recipe = beside / "settings.toml"
    recipe.write_text(RECIPE, encoding="utf-8")
    if _look(["train", *given, "-o", out, "--config", str(recipe), "-v"], folder, draw) == 0:
        _look(["predict", out, *paths, "-o", str(beside / "p.csv")], folder, draw)
        _look(["explain", out, "--", ids[0]], folder, draw)
        _look(["report", out], folder, draw)


def _written(text: str) -> str:
    from pegfan.cli._shell import visible

    return visible(text).replace("\t", r"\t").replace("\n", r"\n")


def _look(words: list[str], folder: Path, draw: random.Random) -> int:
    """Run a command at a pipe or a terminal, and look at what it printed."""
    for name in ("stdout", "stderr"):
        (folder / name).unlink(missing_ok=True)
    terminal = draw.random() < 0.5
    size = (24, draw.choice((40, 80, 200))) if terminal else None
    ended = run(words, Around("names", {"TERM": "xterm-256color"}, size=size), folder, draw)
    about = f"{words[:1]} {words!r}: exit {ended.code}: {ended.tail}"
    if ended.code not in (0, 1, 2):
        raise Fault(about)
    for data in (ended.out, ended.err):
        text = data.decode(errors="surrogateescape")
        if terminal:
            text = OWN.sub("", text)
        found = STEERING.search(text)
        if found:
            raise Fault(f"{found[0]!r} is printed: {text[max(found.start() - 60, 0) : found.end() + 60]!r}: {about}")
    if b"Traceback" in ended.err and "--debug" not in words:
        raise Fault(f"a traceback: {about}")
    return ended.code
