"""Searches whose processes are killed on the way: nothing is lost, nothing is computed twice, nothing is different."""

import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

import pegfan as pf
from pegfan.datasets import Source
from pegfan.experiments import Job, Store, run
from pegfan.recipe import Recipe

COMMAND = [sys.executable, "-c", "from pegfan.cli import app; app()", "search"]
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A small graph as a user has it."""
    folder = tmp_path_factory.mktemp("graph")
    graph = pf.datasets.synthetic(0.1, n=120, n_edges=600, n_features=6)
    rows, columns = graph.adjacency.nonzero()
    edges, nodes = folder / "edges.csv", folder / "nodes.csv"
    edges.write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in zip(rows, columns, strict=True)))
    numbers = [",".join(f"{x:.3f}" for x in row) for row in np.asarray(graph.features)]
    text = "".join(f"{i},c{c},{x}\n" for i, (c, x) in enumerate(zip(graph.labels, numbers, strict=True)))
    nodes.write_text("id,kind,a,b,c,d,e,f\n" + text)
    return [str(edges), str(nodes), "--label", "kind"]


def numbers(folder):
    """What a store says, in no order and without times."""
    store = Store(folder, create=False)
    assert not store.damaged
    found = {}
    for record in store:
        assert record["key"] not in found, "a run was computed twice"
        result = {name: value for name, value in record["result"].items() if name not in ("seconds", "wall")}
        found[record["key"]] = {**record["job"], "result": result}
    return found


def lines(folder):
    path = folder / "records.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def gone(processes, seconds=30):
    """Whether processes end by themselves."""
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    return [process.pid for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


@pytest.mark.parametrize(("strategy", "workers", "kills"), [("halving", 2, 14), ("optuna", 1, 6)])
def test_a_search_that_is_killed_again_and_again_ends_as_if_it_had_not_been(tmp_path, files, strategy, workers, kills):
    options = [*files, "--strategy", strategy, "--trials", "16", "--splits", "4", "--epochs", "150", "--workers"]
    subprocess.run([*COMMAND, *options, "1", "-o", tmp_path / "whole"], check=True, env=ONE_THREAD, capture_output=True)
    moments = random.Random(6)
    hit = 0
    for turn in range(kills):
        before = lines(tmp_path / "killed")
        process = subprocess.Popen(
            [*COMMAND, *options, str(workers), "-o", tmp_path / "killed"],
            env=ONE_THREAD,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        if turn % 3 == 2:  # at any time, be it while it starts
            time.sleep(moments.uniform(0.1, 3.0))
        else:  # while it computes and writes
            wanted = before + moments.randrange(1, 7)
            while process.poll() is None and lines(tmp_path / "killed") < wanted:
                time.sleep(0.001)
            time.sleep(moments.uniform(0.0, 0.03))
        children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        process.send_signal(signal.SIGKILL)
        process.communicate()
        hit += process.returncode == -signal.SIGKILL
        assert gone(children), "workers outlive the search that was killed"
    assert hit >= kills - 1, "the search ended too soon for this test to mean anything"
    last = subprocess.run(
        [*COMMAND, *options, str(workers), "-o", tmp_path / "killed"], check=True, env=ONE_THREAD, capture_output=True
    )
    assert b"from the store" in last.stdout
    assert numbers(tmp_path / "killed") == numbers(tmp_path / "whole")
    tables = [(tmp_path / name / "search.csv").read_bytes() for name in ("killed", "whole")]
    assert tables[0] == tables[1]


def test_a_cluster_that_loses_a_worker_loses_no_run(tmp_path):
    """A Dask cluster of two workers, one of which is killed while it computes."""
    from distributed import Client, LocalCluster

    source = Source.of("synthetic", gamma=0.1, n=200, n_edges=1500, n_features=10, splits=4)
    wanted = [
        Job(source, Recipe.of({"h": 4, "kind": "b", "epochs": 300, "lr_fc": rate}), split, 42 + split)
        for rate in (0.005, 0.01, 0.02)
        for split in range(4)
    ]
    run(wanted, Store(tmp_path / "alone"))
    killed = []
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:

        def kill_one(step):
            if step.done == 3 and step.result is not None:
                with Client(cluster.scheduler_address, set_as_default=False) as client:
                    busy = client.processing()
                    address = max(busy, key=lambda worker: len(busy[worker]))
                    killed.append(client.run(os.getpid)[address])
                os.kill(killed[0], signal.SIGKILL)

        address = cluster.scheduler_address
        records = run(wanted, Store(tmp_path / "cluster"), scheduler=address, progress=kill_one)
    assert killed
    assert [record.name for record in records] == [job.name for job in wanted]
    assert numbers(tmp_path / "cluster") == numbers(tmp_path / "alone")
