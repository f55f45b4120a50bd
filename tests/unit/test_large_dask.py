"""Pieces on a Dask cluster: the same results, texts only, and errors that say what is wrong."""

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from copy import deepcopy

import pytest

from pegfan import _cluster
from pegfan.large import pieces
from pegfan.large.dask import DaskCluster, _error, _on_worker, is_address
from pegfan.large.pieces import FullError, Work, example
from support.tasks import an_object

pytest.importorskip("distributed")
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cluster():
    with DaskCluster(workers=2, memory=10**9) as made:
        yield made


def test_a_cluster_gives_what_threads_give(tmp_path, cluster):
    results = []
    for runs in (None, cluster):
        with Work(tmp_path / str(len(results)), cluster=runs) as work:
            stage = work.stage(example, {"power": 3}, count=7)
            results.append((stage.results, [stage.load("value", k).tolist() for k in range(7)]))
    assert results[0] == results[1]


def test_what_is_there_is_not_computed_again(tmp_path, cluster):
    for _ in range(2):
        with Work(tmp_path, cluster=cluster) as work:
            work.stage(example, {"power": 3}, count=4).run()
    assert (tmp_path / "log.jsonl").read_text().count('"ended"') == 4


@pytest.mark.parametrize("killed", ["one", "all"])
def test_a_worker_that_dies_is_replaced_and_its_pieces_are_done_again(tmp_path, cluster, killed):
    with Work(tmp_path, cluster=cluster) as work:
        stage = work.stage(example, {"power": 2, "seconds": 0.3}, count=8)
        before = set(cluster.processes.values())

        def kill():
            time.sleep(0.7)
            for process in sorted(before)[: None if killed == "all" else 1]:
                os.kill(process, signal.SIGKILL)

        thread = threading.Thread(target=kill)
        thread.start()
        assert [result["value"] for result in stage.results] == [k**2 for k in range(8)]
        thread.join()
    deadline = time.monotonic() + 30
    while len(cluster.processes) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert set(cluster.processes.values()) != before
    assert not list(tmp_path.glob("*/tmp-*"))


def test_errors_of_workers_are_what_they_were(tmp_path, cluster):
    with Work(tmp_path, cluster=cluster) as work:
        with pytest.raises(TypeError, match="unsupported operand"):
            work.stage(example, {"power": "x"}, count=3).run()
        with pytest.raises(RuntimeError, match=r"KeyError: 'power'\n(?s:.*)in example"):
            work.stage(example, {}, count=2).run()
        assert work.stage(example, {"power": 1}, count=2).results == [{"value": 0}, {"value": 1}]


@pytest.mark.parametrize(
    ("error", "wanted", "words"),
    [
        (OSError(28, "No space left on device"), FullError, "Nothing is lost"),
        (PermissionError(13, "Permission denied", "a.npy"), PermissionError, "a.npy"),
        (ValueError("the column 'x' is missing"), ValueError, "^the column 'x' is missing$"),
        (OSError("no words but these"), OSError, "^no words but these$"),
    ],
)
def test_errors_travel_as_texts(tmp_path, monkeypatch, error, wanted, words):
    def fails(task):
        raise error

    with Work(tmp_path) as work:
        stage = work.stage(example, {"power": 2})
        monkeypatch.setattr(pieces, "example", fails)
        order = {"function": stage.name, "params": {}, "block": 0, "count": 1, "inputs": {}, "memory": 1, "threads": 1}
        order |= {"folder": stage.folder.name, "place": str(tmp_path)}
        number, result, failure = json.loads(_on_worker(json.dumps([5, json.dumps(order)])))
    assert (number, result) == (5, None)
    with pytest.raises(wanted, match=words) as raised:
        raise _error(failure)
    assert raised.type is wanted


def test_a_pickled_result_is_not_opened(cluster):
    """A cluster that answers with objects instead of texts is not believed."""
    results = _cluster.on_client(cluster._client, an_object, iter(["x"]))
    with pytest.raises(Exception, match=r"(?i)deserialize"):
        next(results)
    results.close()


def test_a_folder_that_workers_do_not_see_is_said_at_once(tmp_path, cluster, monkeypatch):
    order = json.dumps({"place": str(tmp_path / "elsewhere")})
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(cluster._client, "run", lambda f, path: {"tcp://far:1": json.dumps(["", "0"])})
    with pytest.raises(OSError, match=r"tcp://far:1 does not see the working folder .*elsewhere.*--work"):
        list(cluster([order]))
    assert not list((tmp_path / "elsewhere").iterdir())


def test_another_version_on_a_worker_is_refused(tmp_path, cluster, monkeypatch):
    def answer(function, path):
        return {"tcp://far:1": json.dumps([path.rpartition("token-")[2], "0.0.1"])}

    monkeypatch.setattr(cluster._client, "run", answer)
    with pytest.raises(OSError, match=r"tcp://far:1 has pegfan 0\.0\.1"):
        cluster.check(tmp_path)


def test_a_worker_that_comes_later_and_sees_nothing_says_so(tmp_path, cluster):
    cluster._seen.add(str(tmp_path))
    with pytest.raises(FileNotFoundError, match="does not see the working folder"):
        list(cluster([json.dumps({"place": str(tmp_path)})]))


def test_a_scheduler_that_goes_is_said(tmp_path):
    from distributed import LocalCluster

    own = LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, silence_logs=50)
    closing = threading.Timer(1.0, own.close)
    with own, pytest.raises(OSError, match=r"scheduler .* is gone"), DaskCluster(own.scheduler_address) as cluster:
        closing.start()
        with Work(tmp_path, cluster=cluster) as work:
            work.stage(example, {"power": 2, "seconds": 0.5}, count=20).run()
    closing.join()


def test_a_cluster_without_workers_is_not_waited_for(tmp_path, monkeypatch):
    from distributed import LocalCluster

    monkeypatch.setattr(_cluster, "_PATIENCE", 3)
    monkeypatch.setattr(_cluster, "_LOOK", 0.2)
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=None, silence_logs=50) as own,
        pytest.raises(OSError, match="no workers for 3 seconds; start one"),
        DaskCluster(own.scheduler_address) as cluster,
        Work(tmp_path, cluster=cluster) as work,
    ):
        list(cluster([]))
        own.scale(0)
        while cluster._client.nthreads():
            time.sleep(0.1)
        cluster._seen.add(str(tmp_path))  # nobody could be asked
        work.stage(example, {"power": 2}, count=2).run()


def test_what_is_no_address_is_refused():
    with pytest.raises(ValueError, match=r"'nodes\.parquet' is no address.*tcp://host:8786"):
        DaskCluster("nodes.parquet")
    assert is_address("tls://head.example:8786")
    with pytest.raises(OSError, match="no Dask scheduler answers"), DaskCluster("tcp://127.0.0.1:1"):
        pass


@pytest.fixture
def certificates(tmp_path):
    """A folder for ``--tls``; the certificate is its own authority."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    folder = tmp_path / "tls"
    folder.mkdir()
    words = f"openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=test -keyout {folder}/key.pem"
    subprocess.run([*words.split(), "-out", f"{folder}/cert.pem"], check=True, capture_output=True)
    shutil.copy(folder / "cert.pem", folder / "ca.pem")
    return folder


def test_tls_by_a_folder_or_the_settings_of_dask(tmp_path, certificates):
    import dask
    from distributed import LocalCluster
    from distributed.security import Security

    own = {"cert": f"{certificates}/cert.pem", "key": f"{certificates}/key.pem"}
    files = {f"tls_{role}_{name}": path for role in ("scheduler", "worker") for name, path in own.items()}
    both = {f"tls_client_{name}": path for name, path in own.items()}
    with (
        LocalCluster(
            n_workers=1,
            processes=False,
            protocol="tls://",
            host="tls://127.0.0.1",
            dashboard_address=None,
            silence_logs=50,
            security=Security(tls_ca_file=f"{certificates}/ca.pem", require_encryption=True, **files, **both),
        ) as there,
    ):
        assert there.scheduler_address.startswith("tls://")
        with pytest.raises(OSError, match=r"at tls:.* cannot be spoken to .*--tls"):
            DaskCluster(there.scheduler_address).__enter__()
        before = deepcopy(dask.config.get("distributed.comm"))  # what `use_tls` changes is within it
        with dask.config.set({"distributed.comm": deepcopy(before)}):  # gives the settings back
            _cluster.use_tls(certificates)
            with DaskCluster(there.scheduler_address) as cluster, Work(tmp_path / "work", cluster=cluster) as work:
                assert [one["value"] for one in work.stage(example, {"power": 2}, count=3).results] == [0, 1, 4]
            with pytest.raises(OSError, match=r"at tcp:.* cannot be spoken to .*encrypt"):
                DaskCluster(there.scheduler_address.replace("tls:", "tcp:")).__enter__()
        assert dask.config.get("distributed.comm") == before


def test_a_client_that_cannot_start_leaves_nothing_to_the_garbage_collector():
    def loops():
        return {thread for thread in threading.enumerate() if thread.name == "IO loop"}

    before = loops()
    with socket.create_server(("127.0.0.1", 0)) as there:
        with pytest.raises(OSError, match=r"at tls:.* cannot be spoken to"):
            DaskCluster(f"tls://127.0.0.1:{there.getsockname()[1]}").__enter__()
        assert loops() <= before


def test_a_folder_for_tls_has_its_three_files(certificates):
    (certificates / "key.pem").unlink()
    with pytest.raises(FileNotFoundError, match=r"key\.pem is missing; a folder for TLS holds ca\.pem"):
        _cluster.use_tls(certificates)
