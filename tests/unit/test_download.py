"""Downloads from a server that truncates, lies, drops, stalls and refuses: right bytes, or nothing and a reason."""

import hashlib
import http.server
import io
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from pegfan.datasets import download
from pegfan.datasets.download import cache_folder, fetch
from pegfan.datasets.registry import File

BODY = np.random.default_rng(0).bytes(300_000)
HALF = 150_000


class Server(http.server.ThreadingHTTPServer):
    """Serves BODY at every path. `plan` says how to answer the next requests; after it, all goes well."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.plan = []
        self.seen = []  # path and Range of every request
        self.release = threading.Event()  # ends a stall

    def handle_error(self, request, client_address):
        pass  # the client hangs up on a stalled answer, as it should


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        wanted = self.headers.get("Range")
        self.server.seen.append((self.path, wanted))
        plan = self.server.plan.pop(0) if self.server.plan else "well"
        if isinstance(plan, int):
            self.send_error(plan)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and plan != "no ranges" else 0
        body = {"wrong": BODY[::-1], "truncated": BODY[:HALF]}.get(plan, BODY)[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start + (plan == 'other range')}-{len(BODY) - 1}/{len(BODY)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if plan in ("drop", "stall"):
            self.wfile.write(body[: HALF - start])
            self.wfile.flush()
            if plan == "stall":
                self.server.release.wait(10)
            return
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def cache(tmp_path, monkeypatch):
    for name in ("PEGFAN_DATA", "PEGFAN_OFFLINE", "PEGFAN_MIRROR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("PEGFAN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def server(cache):
    with Server() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        yield server
        server.release.set()
        server.shutdown()


def wanted(server=None, body=BODY, algorithm="sha256"):
    port = server.server_address[1] if server else 9  # nobody listens on 9
    prefix = b"blob %d\0" % len(body) if algorithm == "git-sha1" else b""
    digest = hashlib.new(algorithm.removeprefix("git-"), prefix + body).hexdigest()
    return File("arrays", "set/x.npz", f"http://127.0.0.1:{port}/public/x.npz", digest, algorithm)


def get(server, **options):
    return fetch([wanted(server)], **{"timeout": 0.3, "attempts": 3, "pause": 0.01, **options})[0]


def left(cache):
    return sorted(str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file())


@pytest.mark.parametrize("algorithm", ["sha256", "git-sha1"])
def test_a_good_download_is_placed_and_then_found(server, cache, algorithm):
    for _ in range(2):
        (path,) = fetch([wanted(server, algorithm=algorithm)])
        assert path == cache / "set/x.npz"
        assert path.read_bytes() == BODY
    assert left(cache) == ["set/x.npz"]
    assert server.seen == [("/public/x.npz", None)]


def test_the_git_id_is_the_one_git_gives():
    # git hash-object of an empty file
    assert wanted(body=b"", algorithm="git-sha1").digest == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


def test_a_drop_in_the_middle_is_resumed_where_it_ended(server, cache):
    server.plan = ["drop"]
    assert get(server).read_bytes() == BODY
    assert [asked for _, asked in server.seen] == [None, f"bytes={HALF}-"]
    assert left(cache) == ["set/x.npz"]


def test_a_server_without_ranges_sends_all_again(server):
    server.plan = ["drop", "no ranges"]
    assert get(server).read_bytes() == BODY
    assert len(server.seen) == 2


def test_another_range_than_asked_for_is_not_appended(server):
    server.plan = ["drop", "other range"]
    assert get(server).read_bytes() == BODY
    assert [asked for _, asked in server.seen] == [None, f"bytes={HALF}-", None]


@pytest.mark.parametrize("plan", ["truncated", "wrong"])
def test_wrong_bytes_are_thrown_away_and_fetched_again(server, cache, plan):
    server.plan = [plan]
    assert get(server).read_bytes() == BODY
    assert [asked for _, asked in server.seen] == [None, None]
    assert left(cache) == ["set/x.npz"]


@pytest.mark.parametrize("plan", ["truncated", "wrong"])
def test_bytes_that_stay_wrong_are_an_error_and_leave_nothing(server, cache, plan):
    server.plan = [plan] * 3
    with pytest.raises(OSError, match=rf"x\.npz: the sha256 .* expected {wanted().digest} \(3 attempts\)"):
        get(server)
    assert left(cache) == []


def test_a_slow_answer_times_out_and_is_tried_again(server):
    server.plan = ["stall"]
    assert get(server).read_bytes() == BODY
    assert [asked for _, asked in server.seen] == [None, f"bytes={HALF}-"]


@pytest.mark.parametrize("code", [429, 503])
def test_a_busy_server_is_asked_again(server, code):
    server.plan = [code, code]
    assert get(server).read_bytes() == BODY


def test_what_is_not_there_is_asked_for_once(server, cache):
    server.plan = [404]
    with pytest.raises(OSError, match=r"answers 404 Not Found \(1 attempts\); .*cache/set/x\.npz$"):
        get(server)
    assert len(server.seen) == 1
    assert left(cache) == []


def test_a_failure_leaves_a_part_that_the_next_call_completes(server, cache):
    server.plan = ["drop", 503, 503]
    with pytest.raises(OSError, match=r"503.*\(3 attempts\); try again"):
        get(server)
    assert left(cache) == ["set/x.npz.part"]
    assert get(server).read_bytes() == BODY
    assert server.seen[-1][1] == f"bytes={HALF}-"
    assert left(cache) == ["set/x.npz"]


@pytest.mark.parametrize("content", [BODY[:1000] + b"?" * 1000, BODY + b"more"], ids=["other bytes", "too long"])
def test_a_part_of_something_else_does_no_harm(server, cache, content):
    (cache / "set").mkdir(parents=True)
    (cache / "set/x.npz.part").write_bytes(content)
    if len(content) > len(BODY):
        server.plan = [416]
    assert get(server).read_bytes() == BODY
    assert left(cache) == ["set/x.npz"]


def test_a_complete_part_is_moved_without_asking(server, cache):
    (cache / "set").mkdir(parents=True)
    (cache / "set/x.npz.part").write_bytes(BODY)
    assert get(server).read_bytes() == BODY
    assert server.seen == []


def test_a_server_that_is_not_there(cache):
    with pytest.raises(OSError, match=r"cannot download http://127\.0\.0\.1:9/.*2 attempts"):
        get(None, attempts=2)
    assert left(cache) == []


def test_an_endless_answer_is_cut_off(server, cache, monkeypatch):
    monkeypatch.setattr(download, "_LARGEST", HALF)
    with pytest.raises(OSError, match="sends more than 150,000 bytes"):
        get(server)
    assert left(cache) == []


def test_a_mirror_has_the_layout_of_the_data_folder(server, monkeypatch):
    monkeypatch.setenv("PEGFAN_MIRROR", f"http://127.0.0.1:{server.server_address[1]}/mirror/")
    (path,) = fetch([wanted()])  # whose own address nobody serves
    assert path.read_bytes() == BODY
    assert server.seen == [("/mirror/set/x.npz", None)]
    monkeypatch.setenv("PEGFAN_MIRROR", "ftp://somewhere")
    path.unlink()
    with pytest.raises(ValueError, match="PEGFAN_MIRROR is 'ftp://somewhere'"):
        fetch([wanted()])


# -------------------------------------------------------------------- folders and offline


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_):
        pytest.fail("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_a_file_in_root_is_used_where_it_is(cache, tmp_path, monkeypatch, no_network):
    place = tmp_path / "data/set/x.npz"
    place.parent.mkdir(parents=True)
    place.write_bytes(BODY)
    assert fetch([wanted()], tmp_path / "data") == [place]
    monkeypatch.setenv("PEGFAN_DATA", str(tmp_path / "data"))
    assert fetch([wanted()]) == [place]
    assert not cache.exists()


def test_root_overrides_the_variable(cache, tmp_path, monkeypatch, no_network):
    for name in ("data", "root"):
        place = tmp_path / name / "set/x.npz"
        place.parent.mkdir(parents=True)
        place.write_bytes(BODY)
    monkeypatch.setenv("PEGFAN_DATA", str(tmp_path / "data"))
    assert fetch([wanted()], str(tmp_path / "root")) == [tmp_path / "root/set/x.npz"]


def test_a_wrong_file_in_root_is_an_error_and_stays(cache, tmp_path, no_network):
    place = tmp_path / "data/set/x.npz"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"mine")
    found = hashlib.sha256(b"mine").hexdigest()
    with pytest.raises(ValueError, match=rf"data/set/x\.npz is not .* {found}, expected {wanted().digest}"):
        fetch([wanted()], tmp_path / "data")
    assert place.read_bytes() == b"mine"


def test_a_wrong_file_in_the_cache_is_replaced(server, cache):
    (cache / "set").mkdir(parents=True)
    (cache / "set/x.npz").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="is not the public file"):
        get(server, offline=True)
    assert server.seen == []
    assert get(server).read_bytes() == BODY


@pytest.mark.parametrize("by", ["argument", "variable"])
def test_offline_never_connects_and_says_where_to_put_the_file(cache, tmp_path, monkeypatch, no_network, by):
    if by == "variable":
        monkeypatch.setenv("PEGFAN_OFFLINE", "1")
    with pytest.raises(FileNotFoundError) as error:
        fetch([wanted()], tmp_path, offline=True if by == "argument" else None)
    for told in ("set/x.npz", str(tmp_path), str(cache), wanted().url, "PEGFAN_OFFLINE"):
        assert told in str(error.value)
    assert not cache.exists()


def test_the_argument_overrides_the_variable(server, monkeypatch):
    monkeypatch.setenv("PEGFAN_OFFLINE", "1")
    assert get(server, offline=False).read_bytes() == BODY


def test_a_root_that_is_no_folder(cache, tmp_path, monkeypatch, no_network):
    with pytest.raises(FileNotFoundError, match=r"root is '.*nowhere', which is not a folder"):
        fetch([wanted()], tmp_path / "nowhere")
    monkeypatch.setenv("PEGFAN_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="PEGFAN_DATA is"):
        fetch([wanted()])


def test_the_cache_is_the_users_by_default(cache, monkeypatch):
    assert cache_folder() == cache
    monkeypatch.delenv("PEGFAN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    monkeypatch.setenv("HOME", "/home/ann")
    for system, place in (("linux", "/elsewhere/pegfan"), ("darwin", "/home/ann/Library/Caches/pegfan")):
        monkeypatch.setattr(sys, "platform", system)
        assert cache_folder() == Path(place)


# -------------------------------------------------------------------- more than one, and killed ones

SCRIPT = """
import sys
from pegfan.datasets.download import fetch
from pegfan.datasets.registry import File
fetch([File("arrays", "set/x.npz", *sys.argv[1:])], timeout=30)
"""


def start(server):
    file = wanted(server)
    return subprocess.Popen([sys.executable, "-c", SCRIPT, file.url, file.digest])


def test_many_threads_at_once_bring_one_file(server, cache):
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda _: get(server, timeout=10), range(8)))
    assert len(server.seen) == 1
    assert {path.read_bytes() for path in paths} == {BODY}
    assert left(cache) == ["set/x.npz"]


@pytest.mark.long
def test_two_processes_at_once_bring_one_file(server, cache):
    processes = [start(server) for _ in range(2)]
    assert [process.wait(30) for process in processes] == [0, 0]
    assert len(server.seen) == 1
    assert (cache / "set/x.npz").read_bytes() == BODY
    assert left(cache) == ["set/x.npz"]


@pytest.mark.long
def test_a_killed_process_leaves_a_part_to_resume(server, cache):
    server.plan = ["stall"]
    part = cache / "set/x.npz.part"
    with start(server) as process:
        deadline = time.monotonic() + 30
        while not (part.exists() and part.stat().st_size == HALF) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
    assert left(cache) == ["set/x.npz.part"]
    assert get(server).read_bytes() == BODY
    assert server.seen[-1][1] == f"bytes={HALF}-"


# -------------------------------------------------------------------- progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("stream", "shown"), [(Terminal, True), (io.StringIO, False)])
def test_progress_is_for_people_at_a_terminal(server, monkeypatch, stream, shown):
    screen = stream()
    monkeypatch.setattr(sys, "stderr", screen)
    get(server)
    assert ("x.npz: 0.3 of 0.3 MiB" in screen.getvalue()) == shown
    assert bool(screen.getvalue()) == shown
