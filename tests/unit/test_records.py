"""Records: what their keys hold, and that runs of different keys are never averaged, ranked or mixed."""

import dataclasses
import itertools
import json
import math
import pathlib
import warnings
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pegfan as pf
from pegfan.datasets import Source
from pegfan.experiments import Job, Record, Store, jobs, run, run_job
from pegfan.experiments.records import NUMERICS, agreeing, disagreement
from pegfan.experiments.search import Rung
from pegfan.paper.benchmarks import Table3
from pegfan.paper.cells import Halving, Options, Score, lookup
from pegfan.paper.published import Model
from pegfan.paper.synthetic import Synthetic
from pegfan.recipe import Recipe, TreeFile

RESULTS = pathlib.Path(__file__).parents[2] / "results"
GRAPH = Source.of("synthetic", gamma=0.2, n=90, n_edges=500, n_features=6, splits=3)
OTHER = Source.of("synthetic", gamma=0.2, n=90, n_edges=500, n_features=6, splits=3, seed=1)
WARD = {"method": "ward", "h": 4, "kind": "b", "regime": "heterophily", "hops": 1, "epochs": 4}
A, B = "a" * 16, "b" * 16
TEXAS = Table3(Options(only=("texas", "c8")))
CELL = TEXAS.cell("texas", Model.of("c8"))


def job(split=0, source=GRAPH, **changes):
    return Job(source, Recipe.of({**WARD, **changes}), split, 42 + split)


def record(one, tree=A, channels=A, numerics=NUMERICS, when="2026-01-01", clusters=(1, 9), count=9, **numbers):
    """What a run of a job would leave."""
    numbers = {"val_metric": 0.8, "val_loss": 0.5, "test_metric": 0.8, **numbers}
    about = {"epochs": 10, "best_epoch": 5, "seconds": 1.0, "wall": 1.0, "regime": None, "metric": "accuracy"}
    digests = {"digest": tree} if numerics > 1 else {}
    return Record(
        job=one.to_dict(),
        numerics=numerics,
        **numbers,
        **about,
        engine="fast",
        channels=count,
        stand_in=None,
        tree={"K": len(clusters), "clusters": list(clusters), **digests},
        channels_digest=channels if numerics > 1 else None,
        versions={"pegfan": "0"},
        when=when,
    )


def filled(folder, *records):
    store = Store(folder)
    for one in records:
        store.append(one.to_dict())
    return store


def of_cell(numbers, **about):
    return [record(CELL[i], **about) for i in numbers]


# ------------------------------------------------------------------------------ keys


def test_a_key_holds_the_tree_the_channels_and_the_version():
    alike = [record(job()), record(job(), when="later", test_metric=0.1)]
    others = [record(job(), tree=B), record(job(), channels=B), record(job(), numerics=1), record(job(split=1))]
    assert len({one.key for one in alike}) == 1
    assert len({one.key for one in [*alike, *others]}) == 5
    assert {one.name for one in [*alike, *others[:3]]} == {job().name}


def test_memory_is_kept_where_it_is_known_and_changes_no_key():
    before = record(job())
    assert "memory" not in before.to_dict(), "lines of earlier versions come back as they were"
    assert Record.of(before.to_dict()) == before
    measured = dataclasses.replace(before, memory=2**30)
    assert (Record.of(measured.to_dict()), measured.key) == (measured, before.key)
    assert Record.of({**measured.to_dict(), "memory": "much"}) is None


def test_a_run_names_what_it_is_made_of():
    one = run_job(job())
    graph, _ = GRAPH.open()
    tree = pf.build_tree(graph, "ward", 4)
    assert one.tree_digest == tree.digest
    assert one.numerics == NUMERICS
    assert one.channels_digest != run_job(job(hops=2)).channels_digest
    assert one.channels_digest == run_job(job(split=1)).channels_digest
    stored = json.loads(json.dumps(one.to_dict()))
    assert (stored["name"], stored["numerics"]) == (job().name, NUMERICS)
    assert Record.of(stored) == one


@pytest.mark.parametrize(
    "forge",
    [
        lambda line: line["result"]["tree"].update(digest=B),
        lambda line: line["result"]["tree"].pop("digest"),
        lambda line: line["result"].update(tree=None),
        lambda line: line["result"].update(tree=[1]),
        lambda line: line["result"].update(channels_digest=B),
        lambda line: line["result"].pop("channels_digest"),
        lambda line: line.update(numerics=NUMERICS + 1),
        lambda line: line.update(numerics=1),
        lambda line: line.update(numerics="2"),
        lambda line: line.pop("numerics"),
        lambda line: line.update(name=job(split=1).name),
        lambda line: line.update(key=job().name),
        lambda line: line["job"].update(seed=7),
        lambda line: line["result"].update(metric="beauty"),
        lambda line: line["result"].pop("metric"),
        lambda line: line["result"].update(val_loss=10**400),
        lambda line: line["result"].update(test_metric=math.inf),
    ],
)
def test_forged_records_are_refused(forge):
    line = record(job()).to_dict()
    assert Record.of(line) == record(job())
    line = json.loads(json.dumps(line))
    forge(line)
    assert Record.of(line) is None


def test_digests_that_are_none_are_refused_though_the_key_fits():
    for tree, channels in (("?", A), (A, "?"), (None, A), (A, None)):
        assert Record.of(record(job(), tree=tree, channels=channels).to_dict()) is None


def test_runs_of_version_1_have_no_digests(tmp_path):
    line = record(job(), numerics=1).to_dict()
    assert Record.of(line).numerics == 1
    assert Record.of({**line, "result": {**line["result"], "channels_digest": A}}) is None
    store = Store(tmp_path)
    store.append(line)
    assert Score.of(lookup(store), [job()]).details["numerics"] == 1


# ----------------------------------------------------------------------------- cells


@pytest.fixture
def no_statistics(monkeypatch):
    """Unit tests have no data sets to count."""
    monkeypatch.setattr(Table3, "_statistics", lambda self: [])


def test_five_runs_of_one_tree_and_five_of_another_are_no_cell(tmp_path, no_statistics):
    store = filled(tmp_path, *of_cell(range(5), tree=A), *of_cell(range(5, 10), tree=B, channels=B))
    assert Score.of(lookup(store), CELL) is None
    why = f"5 runs of tree {A}, 5 of tree {B}: not averaged"
    assert disagreement(lookup(store), CELL) == why
    document = TEXAS.document(lookup(store), "x", {})
    (cell,) = (one for one in document.cells if (one["set"], one["row"]) == ("texas", "c8"))
    assert (cell["ours"], cell["verdict"], cell["explanation"]) == (None, "not computed", why)
    assert f"- texas, PEGFAN type c, h = 8: {why}." in document.blocks


def test_five_runs_of_version_1_with_each_of_two_trees_are_no_cell(tmp_path):
    """What version 1 stored of them tells them apart: the clusters of the tree, the number of channels."""
    for about in ({"clusters": (1, 8)}, {"count": 8}):
        store = filled(
            tmp_path / str(len(about)) / next(iter(about)),
            *of_cell(range(5), numerics=1),
            *of_cell(range(5, 10), numerics=1, **about),
        )
        assert Score.of(lookup(store), CELL) is None
        assert disagreement(lookup(store), CELL).startswith("5 runs of ")


def test_of_two_whole_trees_the_newest_is_taken_and_named(tmp_path):
    older = of_cell(range(10), tree=A, test_metric=0.1, when="2026-01-02")
    newer = of_cell(range(10), tree=B, test_metric=0.9, when="2026-01-03")
    store = filled(tmp_path, *newer[:4], *older, *newer[4:])
    score = Score.of(lookup(store), CELL)
    assert score.mean == pytest.approx(90)
    assert score.details["tree"].endswith(f"digest {B}")
    assert score.details["keys"] == [one.key for one in newer]
    store.append(record(CELL[0], tree="c" * 16, when="2026-01-04").to_dict())
    assert Score.of(lookup(store), CELL) == score, "a newer tree that is not whole"
    assert disagreement(lookup(store), CELL) is None


def test_the_newest_is_the_last_in_the_store_though_the_clock_went_back(tmp_path):
    older = of_cell(range(10), tree=A, test_metric=0.1, when="2026-01-02")
    newer = of_cell(range(10), tree=B, test_metric=0.9, when="2025-01-03")
    assert Score.of(lookup(filled(tmp_path, *older, *newer)), CELL).mean == pytest.approx(90)


def test_versions_are_never_averaged(tmp_path, no_statistics):
    old, new = of_cell(range(10), numerics=1, test_metric=0.2), of_cell(range(10), test_metric=0.6)
    store = filled(tmp_path, *old[:5], *new[5:])
    assert Score.of(lookup(store), CELL) is None
    assert disagreement(lookup(store), CELL) == "5 runs of version 1, 5 of version 2: not averaged"
    filled(tmp_path, *old[5:])
    store.refresh()
    score = Score.of(lookup(store), CELL)
    assert (score.mean, score.details["numerics"], score.sign) == (pytest.approx(20), 1, "¹")
    document = TEXAS.document(lookup(store), "x", {})
    assert "20.00±0.00¹" in document.markdown()
    assert "Cells with ¹ hold runs of version 1" in document.markdown()
    assert document.summary["versions"] == {"1": 1}
    filled(tmp_path, *new[:5])
    store.refresh()
    score = Score.of(lookup(store), CELL)
    assert (score.mean, score.details["numerics"], score.sign) == (pytest.approx(60), NUMERICS, "")
    assert "¹" not in TEXAS.document(lookup(store), "x", {}).markdown()


def test_graphs_have_trees_of_their_own():
    """The runs of a cell of Tables I and II are on several graphs."""
    both = [job(), job(source=OTHER)]
    known = {both[0].name: [record(both[0], tree=A)], both[1].name: [record(both[1], tree=B, channels=B)]}
    score = Score.of(lambda one: known[one.name], both)
    assert score.runs == 2
    assert score.details["tree"].endswith(f"digest {A} {B}")


KINDS = st.tuples(st.sampled_from([1, NUMERICS]), st.sampled_from([A, B]), st.sampled_from([A, B]), st.integers(1, 4))
SOME = [job(0), job(1), job(0, OTHER), job(0, regime="auto"), job(1, regime="auto")]


def agree(found, jobs):
    """The rule, pair by pair."""
    return all(
        one.numerics == two.numerics
        and (a.cell != b.cell or one.made_of[0] == two.made_of[0])
        and (a.channels_mark != b.channels_mark or one.made_of[1] == two.made_of[1])
        for (a, one), (b, two) in itertools.combinations(list(zip(jobs, found, strict=True)), 2)
    )


@given(st.lists(st.lists(KINDS, min_size=2, max_size=4), min_size=len(SOME), max_size=len(SOME)))
def test_a_score_is_of_runs_that_agree(kinds):
    known = {
        one.name: [
            record(one, tree, channels, numerics, f"2026-01-0{day}", (1, 9 + (tree == A)), 9 + (channels == A))
            for numerics, tree, channels, day in own
        ]
        for one, own in zip(SOME, kinds, strict=True)
    }
    records = lambda one: known[one.name]  # noqa: E731
    found = agreeing(records, SOME)
    choices = [many for many in itertools.product(*map(records, SOME)) if agree(many, SOME)]
    if not choices:
        assert found is None
        assert Score.of(records, SOME) is None
        assert "not averaged" in disagreement(records, SOME)
        return
    assert agree(found, SOME)
    assert all(one in records(a) for a, one in zip(SOME, found, strict=True))
    assert found[0].numerics == max(many[0].numerics for many in choices)
    assert Score.of(records, SOME).details["keys"] == [one.key for one in found]


# -------------------------------------------------------------------------- searches


def halving():
    make = lambda settings, split: job(split, **settings)  # noqa: E731
    return Halving(make, [{"lr_fc": rate} for rate in (0.01, 0.02, 0.03)], [Rung(3, 4, 2), Rung(1, 8, 2)])


def test_a_rung_is_of_one_version_and_one_tree():
    search = halving()
    first = search.walk(lambda one: []).jobs
    assert len(first) == 6

    def world(one):
        """Version 1 likes the small rate, the current one, where there is one, the large one."""
        rate = one.recipe.settings.lr_fc
        old = record(one, numerics=1, val_loss=rate, val_metric=1 - rate)
        return [old, *([record(one, val_loss=-rate, val_metric=rate)] if one.name in current else [])]

    current = {one.name for one in first[2:]}
    found = search.walk(world)
    assert (found.winner["lr_fc"], found.numerics) == (0.01, 1), "two runs lack the current version"
    current = {one.name for one in first}
    found = search.walk(world)
    assert (found.winner["lr_fc"], found.numerics) == (0.03, 1), "the second rung is of version 1 alone"
    only_new = lambda one: [new for new in world(one) if new.numerics == NUMERICS]  # noqa: E731
    assert [one.recipe.settings.epochs for one in search.walk(only_new).jobs] == [8, 8]
    current = {one.name for one in first[2:]}
    assert search.walk(only_new).jobs == first[:2]
    mixed = lambda one: [record(one, tree=A if one in first[:3] else B)]  # noqa: E731
    assert search.walk(mixed).jobs == first, "all have run, and are run again until they have one tree"


# ------------------------------------------------------------------------------ runs


@pytest.fixture
def builder(monkeypatch):
    """Says which tree this machine builds."""

    def put(h):
        other = lambda graph, method, _, **more: pf.build_tree(graph, method, h, **more)  # noqa: E731
        monkeypatch.setattr("pegfan.recipe.build_tree", other)
        forget()

    def forget():
        jobs._trees.values.clear()
        jobs._channels.values.clear()

    yield put
    forget()


@pytest.mark.parametrize("many", [2, 3])
def test_another_tree_gets_other_keys_a_warning_and_whole_cells(tmp_path, builder, many):
    """Two of three splits, or all but for another setting, have run where trees were others."""
    store, wanted = Store(tmp_path), [job(split) for split in range(3)]
    first = run(wanted[:many], store)
    builder(8)
    more = [*wanted, *(job(split, lr_fc=0.02) for split in range(3))]
    with pytest.warns(UserWarning, match="not mixed") as caught:
        records = run(more, store)
    assert first[0].tree_digest in str(caught[0].message)
    assert records[0].tree_digest in str(caught[0].message)
    assert len({one.tree_digest for one in [*records, first[0]]}) == 2
    assert {one.tree_digest for one in records} != {first[0].tree_digest}
    assert [one.name for one in records] == [one.name for one in more]
    assert len(store) == many + 6, "every job ran once with the new tree"
    assert Score.of(lookup(store), wanted).details["keys"] == [one.key for one in records[:3]]
    for one in first:
        assert store.get(one.key) is not None, "old records stay"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(more, store) == [dataclasses.replace(one, workers=1) for one in records]


def test_runs_that_disagree_are_run_again_until_they_do_not(tmp_path, builder):
    store, wanted = Store(tmp_path), [job(split) for split in range(3)]
    run(wanted[:1], store)
    builder(8)
    run(wanted[1:], store)
    assert disagreement(lookup(store), wanted)
    with pytest.warns(UserWarning, match="not mixed"):
        records = run(wanted, store)
    assert len({one.tree_digest for one in records}) == 1
    assert disagreement(lookup(store), wanted) is None
    assert len(store) == 4


def test_records_of_version_1_are_not_taken_for_runs(tmp_path):
    store = filled(tmp_path, record(job(), numerics=1))
    (new,) = run([job()], store)
    assert new.numerics == NUMERICS
    assert [one.numerics for one in lookup(store)(job())] == [1, NUMERICS]


def test_workers_that_build_different_trees_are_found_out(tmp_path, monkeypatch):
    turns = itertools.cycle([A, B])
    monkeypatch.setattr(jobs, "run_job", lambda one, **_: record(one, tree=next(turns)))
    wanted, store = [job(split) for split in range(3)], Store(tmp_path)
    with pytest.raises(RuntimeError, match=r"2 runs of tree a+, 1 of tree b+: not averaged; do the workers"):
        run(wanted, store)
    assert len(store) == 3


def test_a_search_that_meets_another_tree_ends_with_one(tmp_path, monkeypatch):
    """The runs of the first three splits are in the store, by a machine with other trees."""
    from pegfan.experiments.search import search

    source = Source.of("synthetic", gamma=0.2, n=60, n_edges=200, n_features=4, splits=6)
    settings = [{"lr_fc": rate} for rate in (0.01, 0.02)]
    rungs = [(2, 4, 6)]
    values = Counter()

    def ran(one, **_):
        values[one.name] += 1
        return record(one, tree=B, channels=B, val_metric=one.recipe.settings.lr_fc)

    monkeypatch.setattr(jobs, "run_job", ran)
    before = [
        record(Job(source, Recipe.of({**WARD, **one}), split, split), tree=A, val_metric=0.5 - one["lr_fc"] / 10)
        for one in settings
        for split in range(3)
    ]
    store = filled(tmp_path, *before)
    with pytest.warns(UserWarning, match="not mixed"):
        result = search(source, Recipe.of(WARD), store, settings=settings, rungs=rungs, splits=6, seed=0)
    assert result.best.settings == {"lr_fc": 0.02}
    assert result.best.val_metric == pytest.approx(0.02)
    trees = {Record.of(store.get(key)).tree_digest for one in result.candidates for key in one.keys}
    assert trees == {B}
    assert sum(values.values()) == 12


# ------------------------------------------------------------------- the committed store


@pytest.fixture(scope="module")
def committed():
    """The runs that the committed pages show."""
    return Store(RESULTS, create=False)


def missing(table, store):
    """The runs of PEGFAN and FSGNN that are not in the store."""
    records = lookup(store)
    jobs = [job for _, stage in table.jobs(records) for job in stage if isinstance(job.recipe, Recipe)]
    assert jobs
    return [job for job in jobs if not records(job)]


def test_every_committed_line_is_a_record(committed):
    for store in (committed, Store(RESULTS / "times", create=False)):
        lines = [line for line in store if line["name"] != "automatic"]
        assert len(lines) > 500
        assert all(Record.of(line) for line in lines)
        assert not store.damaged


@pytest.mark.long
def test_the_runs_of_table_three_are_found(committed):
    """Own trees, pubmed's at h = 4 with its seven levels; FSGNN, which has none."""
    assert missing(Table3(Options()), committed) == []


@pytest.mark.long
def test_the_runs_on_the_authors_trees_are_found(committed, tmp_path, monkeypatch):
    """By the hashes that the records hold, for the files are not here."""
    files = [line.get("job", {}).get("recipe", {}).get("tree_file") for line in committed]
    hashes = dict(filter(None, files))
    for name in hashes:
        (tmp_path / name).touch()
    assert len(hashes) == 16
    monkeypatch.setattr(TreeFile, "of", lambda path: TreeFile(path.name, hashes[path.name]))
    assert missing(Table3(Options(trees=tmp_path)), committed) == []


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.long
def test_the_runs_of_the_synthetic_tables_are_found(committed, number):
    """All rungs of the search and the winners, types a, b and c and FSGNN."""
    table = Synthetic(Options(only=("0.2",)), number)
    assert [stage for stage, _ in table.jobs(lookup(committed))] == ["γ = 0.2, winners"]
    assert missing(table, committed) == []
