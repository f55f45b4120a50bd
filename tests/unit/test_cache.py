"""The cache of values: each made once, the newest up to a limit; and the digest by which equal graphs share them."""

import gc
import pickle
import threading
import weakref

import numpy as np
import pytest
from scipy.sparse import csr_array

import pegfan as pf
from pegfan._cache import Cache, Same, bytes_of
from pegfan.measures import class_edges


def never():
    pytest.fail("made again")


def test_the_newest_stay_up_to_a_limit():
    cache = Cache(2_500)
    for key in "abc":
        cache.get(key, lambda: np.zeros(100))
    assert cache.get("b", never).shape == (100,)
    cache.get("d", lambda: np.zeros(100))  # c was asked for before b
    cache.get("b", never)
    assert cache.get("c", lambda: "again") == "again"


def test_a_value_beyond_the_limit_is_alone():
    cache = Cache(1_000)
    cache.get("small", lambda: 1)
    cache.get("large", lambda: np.zeros(10_000))
    cache.get("large", never)
    assert cache.get("small", lambda: 2) == 2
    assert cache.get("large", lambda: 3) == 3  # the small one took its place


def test_what_could_not_be_made_is_tried_again():
    cache = Cache(1_000)
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: 1 // 0)
    assert cache.get("a", lambda: None) is None
    assert cache.get("a", never) is None


def test_threads_that_ask_for_one_value_wait_and_others_do_not():
    cache, started, go = Cache(10_000), threading.Event(), threading.Event()

    def slow():
        started.set()
        assert go.wait(10)
        return []

    found = []
    threads = [threading.Thread(target=lambda: found.append(cache.get("slow", slow))) for _ in range(3)]
    threads[0].start()
    assert started.wait(10)
    for thread in threads[1:]:
        thread.start()
    assert cache.get("other", lambda: 1) == 1
    assert found == []
    go.set()
    for thread in threads:
        thread.join(10)
    assert len(found) == 3
    assert all(one is found[0] for one in found)


def test_bytes_are_those_of_arrays_wherever_they_are():
    class Holder:
        def __init__(self):
            self.array, self.itself, self.kind = np.zeros(1000), self, Holder

    matrix = csr_array(np.eye(100))
    shared = np.zeros(1000)
    assert bytes_of(np.zeros(1000)) == 8_100
    assert 8_000 < bytes_of(Holder()) < 9_000
    assert 2_000 <= bytes_of(matrix) < 3_000
    assert 8_000 < bytes_of({"a": shared, "b": [shared, (shared,)]}) < 9_000


def test_what_was_computed_from_a_graph_goes_with_it():
    graph = pf.Graph.from_edges([[0, 1], [1, 2]], labels=[0, 0, 1])
    value = graph.cache.get("own", lambda: np.zeros(3))
    there = weakref.ref(value)
    copied = pickle.loads(pickle.dumps(graph))
    assert copied.cache.get("own", lambda: "again") == "again"
    del graph, value
    gc.collect()
    assert there() is None


def test_counts_of_edges_are_made_once_and_cannot_be_spoiled():
    graph = pf.Graph.from_edges([[0, 1], [1, 2]], labels=[0, 0, 1])
    class_edges(graph)[:] = 7
    graph.cache.get("class edges", never)
    assert class_edges(graph).tolist() == [[2, 1], [1, 0]]


def test_a_digest_tells_edges_and_features_and_nothing_else():
    pairs, weights = [[0, 1], [1, 2], [2, 0]], [1.0, 2.0, 3.0]
    graph = pf.Graph.from_edges(pairs, weights, features=np.eye(3), edge_matrices={})
    same = [
        pf.Graph(graph.adjacency.tocoo(), features=np.eye(3)),
        pf.Graph(graph.adjacency.toarray().astype(np.float32), features=np.eye(3, dtype=int)),
        graph.replace(labels=[0, 1, 0], splits=[([0], [1], [2])], node_names=["a", "b", "c"], positions=np.eye(3)),
        graph.permute([1, 0, 2]).permute([1, 0, 2]),
        pickle.loads(pickle.dumps(graph)),
    ]
    both = {"a": graph.adjacency, "b": 2 * graph.adjacency}
    one, two = (graph.replace(edge_matrices={name: both[name] for name in names}) for names in ("ab", "ba"))
    assert one.digest == two.digest
    other = [
        graph.permute([1, 0, 2]),
        pf.Graph.from_edges(pairs, features=np.eye(3)),
        pf.Graph(graph.adjacency, directed=True, features=np.eye(3)),
        graph.replace(features=None),
        graph.replace(features=csr_array(np.eye(3))),
        graph.replace(features=np.eye(3)[:, ::-1]),
        graph.replace(features=np.eye(3, dtype=np.float32)),
        graph.replace(edge_matrices={"a": graph.adjacency}),
        graph.replace(edge_matrices={"b": graph.adjacency}),
        graph.replace(edge_matrices={"a": graph.adjacency}, edge_kinds=["a"]),
        graph.replace(edge_matrices={"a": 2 * graph.adjacency}),
    ]
    assert {one.digest for one in same} == {graph.digest}
    assert len({one.digest for one in [graph, *other]}) == 1 + len(other)
    assert all(len(one.digest) == 32 for one in other)


def test_the_value_that_was_just_made_stays_and_what_is_being_made_too():
    """A slow large value is not thrown away for a quick one that was asked for later."""
    cache, order = Cache(1000), []

    def slow():
        cache.get("quick", lambda: order.append("quick") or np.zeros(60))
        return order.append("slow") or np.zeros(100)

    cache.get("slow", slow)
    cache.get("slow", never)
    assert order == ["quick", "slow"]


def test_a_value_that_could_not_be_made_leaves_nothing():
    cache = Cache(1000)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            cache.get("a", lambda: 1 // 0)
    assert cache.size == 0
    assert cache.get("a", lambda: 7) == 7


def test_an_object_as_a_key_is_held():
    import gc
    import weakref

    class Thing:
        pass

    thing = Thing()
    alive, key = weakref.ref(thing), Same(thing)
    assert key == Same(thing)
    assert key != Same(Thing())
    del thing
    gc.collect()
    assert alive() is not None  # its id cannot come again while the key lives
    del key
    gc.collect()
    assert alive() is None
