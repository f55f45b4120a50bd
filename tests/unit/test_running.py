"""The one runner: results as they come, from one process or several, and no trace left behind."""

import os
import subprocess
import sys
import time
import warnings

import pytest

from pegfan.running import Runner, one_thread
from support.tasks import add, pid_of, threads_of

pytestmark = pytest.mark.long


@pytest.mark.parametrize("workers", [1, 2])
def test_results_do_not_depend_on_workers(workers):
    with Runner(workers) as runner:
        assert sorted(runner.map(abs, [-3, 2, -1])) == [1, 2, 3]
        assert sorted(runner.map(abs, [-7])) == [7]
    with Runner(workers, shared=10) as runner:
        assert sorted(runner.map(add, [1, 2, 3])) == [11, 12, 13]


def test_processes_are_kept_while_the_block_lasts_and_not_used_for_short_tasks():
    with Runner(2) as runner:
        assert set(runner.map(pid_of, range(3), here=True)) == {os.getpid()}
        first, second = (set(runner.map(pid_of, range(8))) for _ in range(2))
    assert os.getpid() not in first | second
    assert len(first | second) <= 2


@pytest.mark.parametrize("workers", [1, 2])
def test_every_task_keeps_to_one_core(workers):
    with Runner(workers) as runner:
        assert set(runner.map(threads_of, range(2))) == {1}


def test_tasks_on_a_cluster_keep_to_one_core():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Runner(scheduler=cluster.scheduler_address) as runner,
    ):
        assert list(runner.map(threads_of, [0])) == [1]


def test_items_are_asked_for_only_when_there_is_room():
    asked = []

    def items():
        for i in range(6):
            asked.append(i)
            yield i

    with Runner(2) as runner:
        results = runner.map(abs, items(), ahead=0)
        next(results)
        assert len(asked) <= 3
        list(results)


def test_a_dead_worker_is_said_and_the_next_call_has_new_ones():
    with Runner(2) as runner:
        with pytest.raises(OSError, match="fewer workers"):
            list(runner.map(os._exit, [1]))
        assert sorted(runner.map(abs, [-3, 1, -2])) == [1, 2, 3]


def test_an_error_of_a_task_comes_out():
    with Runner(2) as runner, pytest.raises(TypeError):
        list(runner.map(abs, ["text"]))
    with pytest.raises(ValueError, match="workers"):
        Runner(0)
    with pytest.raises(ValueError, match="not sent to a Dask cluster"):
        Runner(scheduler="tcp://127.0.0.1:1", shared=1)


def test_warnings_filters_are_left_as_they_were():
    before = list(warnings.filters)
    with Runner(2) as runner:
        list(runner.map(abs, [1, 2]))
    assert warnings.filters == before


def test_threads_come_back():
    from threadpoolctl import threadpool_info

    before = [pool["num_threads"] for pool in threadpool_info()]
    with one_thread():
        pass
    assert [pool["num_threads"] for pool in threadpool_info()] == before


_ORPHANS = """
import os, sys, time
from pegfan.running import Runner

def wait(item):
    import ctypes, os, time
    with open(item, "w") as file:
        file.write(str(os.getpid()))
    # Code that is compiled may hold the interpreter, so that no thread of it runs.
    ctypes.PyDLL(None).sleep(60) if sys.argv[1] == "compiled" else time.sleep(60)

with Runner(2) as runner:
    list(runner.map(wait, sys.argv[2:]))
"""


@pytest.mark.parametrize(
    "code",
    ["plain", pytest.param("compiled", marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux ends them"))],
)
def test_workers_end_when_their_parent_is_killed(tmp_path, code):
    files = [tmp_path / "a", tmp_path / "b"]
    parent = subprocess.Popen([sys.executable, "-c", _ORPHANS, code, *map(str, files)])
    deadline = time.monotonic() + 60
    while not all(file.exists() and file.read_text() for file in files) and time.monotonic() < deadline:
        time.sleep(0.05)
    pids = [int(file.read_text()) for file in files]
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 10
    while any(_alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(_alive(pid) for pid in pids)


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().split(") ")[1][0] != "Z"
    except OSError:
        return False


def test_libraries_that_are_loaded_later_keep_to_one_thread_too():
    code = (
        "from pegfan.running import one_thread\n"
        "with one_thread(): pass\n"
        "import scipy.linalg, threadpoolctl\n"  # brings a BLAS of its own
        "def threads(): return {found['num_threads'] for found in threadpoolctl.threadpool_info()}\n"
        "before = threads()\n"
        "with one_thread():\n"
        "    assert threads() == {1}, threads()\n"
        "    with one_thread(): assert threads() == {1}\n"
        "    assert threads() == {1}\n"
        "assert threads() == before\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
