"""The paper's tables: its numbers, the plan of runs, verdicts, rendering and the command."""

import csv
import io
import json
import re
from collections import Counter

import numpy as np
import pytest
from typer.testing import CliRunner

from pegfan.cli import app
from pegfan.experiments import Job, Record, Store
from pegfan.experiments.search import Rung, grid
from pegfan.networks import NetworkRecipe
from pegfan.paper import cells, cited, figures, published
from pegfan.paper.benchmarks import FILTERED, Table3, verdict
from pegfan.paper.cells import Halving, Options, Score, parse_rungs, read_notes, spread
from pegfan.paper.documents import Document, Grid, Mark, write
from pegfan.paper.published import DATASETS, GAMMAS, Model, Published
from pegfan.paper.rivals import EMBEDDINGS, POINTS, RIVALS, SEARCH_SPLITS, VARIANTS, candidates, rival_job, variants
from pegfan.paper.synthetic import APART, RUNGS, Synthetic, agreement, claims_of
from pegfan.paper.times import Table4
from support import examples

FEW = (Rung(4, 2, 1), Rung(2, 10, 1))
NOTHING = lambda job: []  # noqa: E731


def record(job: Job, test: float = 0.8, val: float = 0.8, loss: float = 0.5) -> Record:
    """What a run of a job would leave."""
    numbers = {"test_metric": test, "val_metric": val, "val_loss": loss, "epochs": 100, "best_epoch": 50}
    about = {"channels": 7, "regime": None, "metric": "accuracy", "stand_in": None, "tree": None, "workers": 2}
    made = {"seconds": 2.0, "wall": 3.0, "versions": {"pegfan": "0"}, "when": "2026-01-01T00:00:00+00:00"}
    return Record(job=job.to_dict(), channels_digest="0" * 16, **numbers, **about, **made)


def row_of(job: Job) -> Model | str:
    """The row that a job belongs to; of a cited system, its label."""
    recipe = job.recipe
    if isinstance(recipe, NetworkRecipe):
        return cited.LABELS[recipe.model]
    if recipe.method == "none":
        return Model(hops=recipe.hops, all_hops=recipe.regime == "all")
    return Model(recipe.kind, recipe.h)


class World:
    """Records of every job, by a rule; it remembers what was asked for."""

    def __init__(self, test=lambda job: 0.8, val=lambda job: 0.8):
        self.test, self.val, self.asked = test, val, {}

    def __call__(self, job):
        self.asked[job.name] = job
        return [record(job, self.test(job), self.val(job))]


# ------------------------------------------------------------------ the paper's numbers


def test_the_rows_average_to_what_the_paper_prints():
    """The paper's own arithmetic, so that a slip of the pen in one of the 160 numbers shows."""
    for model, row in published.TABLE3.items():
        assert np.mean([row[name].mean for name in DATASETS]) == pytest.approx(
            published.TABLE3_AVERAGE[model.key][0], abs=0.0151
        )
    for key, row in published.CITED.items():
        if None in row.values():
            assert key == "GCNII"
            continue
        average = np.mean([row[name].mean for name in DATASETS])
        assert average == pytest.approx(published.TABLE3_AVERAGE[key][0], abs=0.0151)
    averages = [average for average, _ in sorted(published.TABLE3_AVERAGE.values(), key=lambda pair: pair[1])]
    assert averages == sorted(averages, reverse=True)
    assert sorted(rank for _, rank in published.TABLE3_AVERAGE.values()) == list(range(1, 16))


def test_every_cell_has_settings_of_the_grid_they_were_searched_in():
    every = [tuple(sorted(settings.items())) for settings in grid("authors")]
    assert len(published.AUTHORS) == 54
    assert len(published.FSGNN) == len(published.FSGNN_PUBLISHED) == 36
    for settings in (*published.AUTHORS.values(), *published.FSGNN.values()):
        assert tuple(sorted(settings.items())) in every
    assert [settings["hop_normalize"] for settings, _ in published.ACTOR_WITHOUT_NORM.values()] == [False, False]


def test_tables_one_and_two_have_nine_rows_and_six_gammas():
    for table in (published.TABLE1, published.TABLE2):
        assert [model.key for model in table] == ["a12", "a8", "a4", "b4", "c4", "r3", "r3 all", "r8", "r8 all"]
        assert all(tuple(row) == GAMMAS for row in table.values())
    # What the text says about them: type b gains over FSGNN at every γ in Table I, and less so in Table II.
    tables = (published.TABLE1, published.TABLE2)
    gain = [[table[Model.of("b4")][g] - table[Model.of("r3")][g] for g in GAMMAS] for table in tables]
    assert min(gain[0]) > 0
    assert np.mean(gain[1]) < np.mean(gain[0])


@pytest.mark.parametrize("key", ["", "d4", "c", "r", "r3 both", "4c"])
def test_a_model_that_is_none_is_refused(key):
    with pytest.raises(ValueError, match="no model"):
        Model.of(key)


# ---------------------------------------------------------------------------- the plan


def test_table_three_runs_every_cell_on_ten_splits_small_sets_first(tmp_path):
    stages = [(name, jobs) for name, jobs in Table3(Options()).jobs(NOTHING) if "cited" not in name]
    jobs = [job for _, stage in stages for job in stage]
    assert len({job.name for job in jobs}) == len(jobs) == 9 * 11 * 10 + 2 * 10 + len(FILTERED) * 3 * 10
    assert [name for name, _ in stages][:3] == ["texas", "cornell", "wisconsin"]
    assert stages[-1][0] == "pubmed"
    for job in jobs:
        assert job.seed == 42 + job.split
        assert (job.recipe.scaling, job.recipe.direction) == ("l1", "out")
        settings = job.recipe.settings
        assert (settings.epochs, settings.patience, settings.stop) == (1500, 100, "loss")
    c8 = next(job.recipe for job in jobs if job.source.where == ("cora",) and row_of(job) == Model.of("c8"))
    assert (c8.method, c8.regime, c8.hops, c8.include_features) == ("ward", "homophily", 3, True)
    assert (c8.settings.wd_fc1, c8.settings.lr_sca) == (0.001, 0.02)
    pubmed = {row_of(job).h: job.recipe.max_levels for job in jobs if job.source.where == ("pubmed",)}
    assert pubmed == {4: 7, 8: None, None: None}


def test_trees_of_a_folder_are_used_where_it_has_them(tmp_path):
    np.savez(tmp_path / "texas_h4.npz", labels=np.zeros((2, 3), int))
    jobs = dict(Table3(Options(trees=tmp_path)).jobs(NOTHING))
    files = Counter(job.recipe.tree_file and job.recipe.tree_file.name for job in jobs["texas"])
    assert files == {"texas_h4.npz": 30, None: 80}
    assert not any(job.recipe.tree_file for job in jobs["cornell"])


def test_the_corrigendum_cells_are_run_both_ways():
    jobs = dict(Table3(Options()).jobs(NOTHING))
    for name in ("chameleon", "squirrel", "texas"):
        rows = Counter(row_of(job).key for job in jobs[name] if row_of(job).h == 8)
        assert rows == {"a8": 10, "as8": 10, "b8": 10, "c8": 10}
        settings = {job.recipe.kind: job.recipe.settings for job in jobs[name] if row_of(job).h == 8}
        assert settings["as"] == settings["a"]


def test_only_keeps_sets_and_names_what_there_is():
    stages = [name for name, _ in Table3(Options(only=("cornell", "texas"))).jobs(NOTHING)]
    assert stages[:2] == ["texas", "cornell"]
    assert stages[2::2] == ["texas, cited systems", "cornell, cited systems"]
    with pytest.raises(
        ValueError, match=r"no 'texs'; it has texas, cornell.*; and rows r3, r8, .*c8, mixhop, .*gprgnn"
    ):
        list(Table3(Options(only=("texs",))).jobs(NOTHING))


def test_only_keeps_rows(no_statistics):
    table = Table3(Options(only=("texas", "r3-all", "a8")))
    assert [name for name, _ in table.jobs(NOTHING)] == ["texas"]
    assert set(table.models("texas")) == {Model.of("r3 all"), Model.of("a8"), Model.of("as8")}  # a cell may count on SX
    assert table.models("chameleon-filtered") == []
    every = Table3(Options(only=("c8",)))
    assert len(every.sets) == 13
    assert {model for name in every.sets for model in every.models(name)} == {Model.of("c8")}
    assert sum(len(jobs) for _, jobs in every.jobs(NOTHING)) == 130
    text = [block for block in every.document(NOTHING, "x", {}).blocks if isinstance(block, Grid)]
    assert not any("normalisation" in grid.caption for grid in text)
    opening = Table3(Options(only=("chameleon", "c8"), quick=True)).document(NOTHING, "x", {}).blocks[0]
    assert "all but four rows" not in opening

    synthetic = Synthetic(Options(only=("0.2", "r3-all"), quick=True), 2)
    assert (synthetic.gammas, synthetic.models) == ([0.2], [Model.of("r3 all")])
    assert Synthetic(Options(only=("r8",), quick=True), 1).gammas == [0.0, 0.4, 1.0]
    assert Table4(Options(only=("c4", "squirrel"))).rows == [("squirrel", Model.of("c4"))]


def test_claims_need_their_rows():
    document = Synthetic(Options(only=("b4", "r3")), 1).document(World(lambda _: 0.9), "x", {})
    assert "claims" not in document.summary
    assert any("claims need all rows" in block for block in document.blocks if isinstance(block, str))
    assert "Left out: PEGFAN type a, h = 12;" in document.blocks[0]


def test_a_search_that_leaves_out_nothing_says_so():
    document = Synthetic(Options(rungs=parse_rungs("108x1500")), 1).document(NOTHING, "x", {})
    assert "all of them run to the end" in document.blocks[0]
    assert "may be missed" not in document.blocks[0]


def test_the_synthetic_tables_share_a_graph_and_leave_x_out():
    table = Synthetic(Options(seeds=2, rungs=FEW), 2)
    world = World()
    stages = list(table.jobs(world))
    assert len(stages) == len(GAMMAS)  # all rungs are in the world, winners are handed out
    jobs = [job for _, stage in stages for job in stage]
    assert len({job.source.fingerprint() for job in jobs}) == 2 * len(GAMMAS)
    for job in world.asked.values():
        assert job.source.options["separation"] == 1.0
        assert job.source.options["seed"] == job.seed
        assert (job.recipe.include_features, job.recipe.scaling) == (False, "none")
        assert job.recipe.regime in ("heterophily", "all")


def test_the_synthetic_search_goes_rung_by_rung():
    """Settings with the larger weight decay are best on validation: they must win, whatever the test says."""
    done = {}

    def known(job):
        return [done[job.name]] if job.name in done else []

    def value(job):
        settings = job.recipe.settings
        return 0.5 + 100 * settings.wd_fc1 + settings.lr_fc + 1e-4 * settings.epochs / 1500

    table = Synthetic(Options(only=("0.2",), seeds=3), 1)
    epochs = []
    for _stage, jobs in table.jobs(known):
        epochs.append(sorted({job.recipe.settings.epochs for job in jobs}))
        new = [job for job in jobs if job.name not in done]
        done.update({job.name: record(job, 1 - value(job), value(job), 1 - value(job)) for job in new})
    assert epochs == [[12], [1500], [1500]]
    counts = Counter(Job.from_dict(entry.job).recipe.settings.epochs for entry in done.values())
    assert counts == {12: 10 * 108, 1500: 10 * (9 + 2)}  # nine rows, and type a, h = 4 on SX
    score = table.score(known, 0.2, Model.of("b4"))
    assert score.runs == 3
    assert score.details["seeds"] == [0, 1, 2]
    assert score.details["settings"]["wd_fc1"] == 0.001
    assert score.details["settings"]["lr_fc"] == 0.01


def test_weight_decays_are_not_compared_early():
    """The best of each go on, though the first rung likes one of them best by far."""

    def value(job):
        settings = job.recipe.settings
        early = settings.epochs < 100
        return (0.9 if early else 0.1) - 100 * settings.wd_fc1 * (1 if early else -1) + settings.lr_fc

    world = lambda job: [record(job, 0.5, value(job), 1 - value(job))]  # noqa: E731
    job = lambda settings, split: Synthetic(Options(), 1).job(0.0, Model.of("r3"), settings, split)  # noqa: E731
    winner = Halving(job, grid("paper"), RUNGS, APART).walk(world).winner
    assert winner["wd_fc1"] == 0.001
    assert winner["lr_fc"] == 0.01
    winner = Halving(job, grid("paper"), RUNGS).walk(world).winner
    assert winner["wd_fc1"] == 0.0


def test_a_diverged_run_does_not_win_and_leaves_its_cell_empty():
    def world(job):
        lost = job.recipe.settings.lr_fc == 0.01
        return [record(job, None if lost else 0.8, None if lost else 0.8, None if lost else 0.5)]

    job = lambda settings, split: Synthetic(Options(), 1).job(0.0, Model.of("r3"), settings, split)  # noqa: E731
    winner = Halving(job, grid("paper"), (Rung(108, 12, 1), Rung(3, 20, 1))).walk(world).winner
    assert winner["lr_fc"] == 0.005
    jobs = [job({"lr_fc": rate}, 0) for rate in (0.005, 0.01)]
    assert Score.of(world, jobs) is None
    assert Score.of(world, jobs[:1]).mean == 80.0


def test_a_searched_winner_runs_on_every_split():
    """Rungs on one split choose; the table wants all ten."""
    done = {}
    table = Table3(Options(settings="search", only=("texas",), rungs=parse_rungs("4x2,2x5")))
    known = lambda job: done.get(job.name, [])  # noqa: E731
    for _, jobs in table.jobs(known):
        done.update({job.name: [record(job)] for job in jobs})
    for model in table.models("texas"):
        assert table.score(known, "texas", model).runs == 10


def test_a_record_that_its_key_does_not_fit_is_not_shown(tmp_path):
    store = Store(tmp_path)
    one, other = (Synthetic(Options(), 1).job(0.0, Model.of("r3"), {}, seed) for seed in (0, 1))
    store.append({**record(one).to_dict(), "job": other.to_dict()})
    store.append(record(other).to_dict())
    assert cells.lookup(store)(one) == []
    assert cells.lookup(store)(other) == [record(other)]


def test_early_rungs_go_by_the_loss_and_the_last_by_the_metric():
    job = lambda settings, split: Synthetic(Options(), 1).job(0.0, Model.of("r3"), settings, split)  # noqa: E731
    rates = (0.01, 0.02, 0.03)
    halving = Halving(job, [{"lr_fc": rate} for rate in rates], [Rung(3, 5, 1), Rung(2, 9, 1)])
    val, loss = dict(zip(rates, (0.9, 0.5, 0.6), strict=True)), dict(zip(rates, (0.9, 0.1, 0.2), strict=True))

    def records(job):
        rate = job.recipe.settings.lr_fc
        return [record(job, val=val[rate], loss=loss[rate])]

    winner = halving.walk(records).winner
    assert winner == {"lr_fc": 0.03, "epochs": 9}  # 0.01 has the best metric but left after the first rung


def test_halving_uses_the_loss_where_metrics_tie_and_then_the_order():
    losses = {0.005: 0.4, 0.01: 0.3}
    job = lambda settings, split: Synthetic(Options(), 1).job(0.0, Model.of("r3"), settings, split)  # noqa: E731
    halving = Halving(job, [{"lr_fc": 0.005}, {"lr_fc": 0.01}], [Rung(2, 5, 1)])
    records = lambda job: [record(job, loss=losses[job.recipe.settings.lr_fc])]  # noqa: E731
    assert halving.walk(records).winner["lr_fc"] == 0.01
    assert halving.walk(World()).winner["lr_fc"] == 0.005
    nowhere = halving.walk(NOTHING)
    assert nowhere.winner is None
    assert nowhere.place == 0
    assert len(nowhere.jobs) == 2


def test_twelve_settings_are_spread_evenly():
    chosen = spread(grid("paper"), 12)
    assert all(settings in grid("paper") for settings in chosen)
    for name in chosen[0]:
        counts = Counter(settings[name] for settings in chosen)
        assert len(set(counts.values())) == 1
        assert set(counts) == {settings[name] for settings in grid("paper")}
    assert len({tuple(settings.values()) for settings in chosen}) == 12
    every = spread(grid("paper"), 108)
    assert len({tuple(settings.values()) for settings in every}) == 108


@pytest.mark.parametrize("text", ["", "108", "108x", "108xten", "108x10,200x20", "0x10", "3x1x1x1"])
def test_rungs_that_make_no_sense_are_refused(text):
    with pytest.raises(ValueError, match="rungs"):
        parse_rungs(text)


def test_table_four_times_settings_on_ten_splits():
    table = Table4(Options())
    stages = list(table.jobs(NOTHING))
    assert [len(jobs) for _, jobs in stages] == [4] + [120] * 6
    assert len(Table4(Options(every=True)).settings) == 108
    found = table.measured(World(), "chameleon", Model.of("r3"))
    assert found.cpu == [20.0] * 12  # ten runs of 2 s
    assert found.wall == [15.0] * 12  # ten of 3 s, two at a time


# ------------------------------------------------------------------- verdicts and tables


def test_a_verdict_is_one_point_or_two_standard_errors():
    assert verdict(81.0, Published(80.0, 0.1)) == (True, 1.0)
    assert not verdict(81.01, Published(80.0, 0.1))[0]
    agrees, tolerance = verdict(83.0, Published(80.0, 5.0))
    assert agrees
    assert tolerance == pytest.approx(2 * 5 / np.sqrt(10))
    assert not verdict(76.8, Published(80.0, 5.0))[0]


def test_agreement_on_generated_graphs_counts_both_spreads():
    exact, wide = (agreement(Score(80.0, std, 4, {}), 82.0)[1] for std in (0.0, 4.0))
    theirs = 100 * np.sqrt(0.82 * 0.18 / 600)
    assert exact == pytest.approx(2 * theirs)
    assert wide == pytest.approx(2 * np.hypot(theirs, 2.0))


def printed_world(offset=0.0):
    """A world in which every cell of Table III gives what the paper prints, plus an offset."""

    def test(job):
        name = job.source.where[0]
        if name in FILTERED:
            return 0.4
        if (name, row_of(job)) in published.CORRIGENDUM:
            return 0.5
        if isinstance(job.recipe, NetworkRecipe):
            return ((published.CITED[row_of(job)][name] or Published(35.0, None)).mean + offset) / 100
        return (published.TABLE3[row_of(job).printed][name].mean + offset) / 100

    return World(test)


@pytest.fixture
def no_statistics(monkeypatch):
    """Unit tests have no data sets to count."""
    monkeypatch.setattr(Table3, "_statistics", lambda self: [])


def test_table_three_as_printed_agrees_everywhere(no_statistics):
    document = Table3(Options()).document(printed_world(), "pegfan reproduce table3", {})
    assert document.summary["pegfan"] == {"agree": 54, "of": 54, "without verdict": 0, "bar": 48}
    assert document.summary["fsgnn"]["agree"] == 36
    assert document.summary["average of c8"]["ours"] == pytest.approx(78.18, abs=0.01)
    assert all(claim["holds"] for claim in document.summary["claims"].values())
    text = document.markdown()
    assert "Cells that differ" not in text
    assert "77.48±0.00‡" in text  # the corrigendum's cell counts with F_j(SX)
    assert "| chameleon‡ | 77.48±0.00 ✓ | 50.00±0.00 ✗ | 77.48±1.71 |" in text
    assert document.summary["cited"] == {
        **{"agree": 52, "rest on a point": 0, "agree with a rerun": 0, "of": 52, "without verdict": 0, "bar": 40}
    }
    assert "| MixHop † | 87.61 / 87.61 ✓ |" in text
    assert "35.00 / – / 37.44 |" in text  # GCNII on Actor, which nobody cites
    last = next(line for line in text.splitlines() if line.startswith("| PEGFAN type c, h = 8 |"))
    assert "**80.31±0.00**" in last
    assert "**78.18** | **1** | 78.18 (1)" in last
    row = next(line for line in text.splitlines() if line.startswith("| GCNII |"))
    assert "**90.30±0.00**" in row
    assert row.count("§") == 2  # Actor and Squirrel, for which nothing is published
    assert "_79.65±0.00_" in text  # second best on chameleon, as in the paper
    assert not re.search(r"20\d\d-\d\d", text)  # no dates


def test_a_claim_that_does_not_hold_is_said_not_to(no_statistics):
    as_printed = printed_world()

    def better(job):
        row = row_of(job)
        return as_printed.test(job) + (0.1 if isinstance(row, Model) and row.key.startswith("r8") else 0)

    text = Table3(Options()).document(World(better), "x", {}).markdown()
    assert "- type c, h = 8 has the best average: does not hold; FSGNN r = 8 has" in text
    assert "- PEGFAN is the best on squirrel: does not hold; FSGNN r = 8" in text
    assert "claims" not in Table3(Options(only=("texas",))).document(as_printed, "x", {}).summary


def test_cells_that_differ_are_listed_with_their_explanation(no_statistics):
    document = Table3(Options()).document(printed_world(-1.5), "x", {"cora b4": "the moon was full"})
    text = document.markdown()
    assert "cora, PEGFAN type b, h = 4: 85.62, the paper 87.12 (-1.50, allowed 1.00): the moon was full." in text
    assert "cora, PEGFAN type b, h = 8: 85.72, the paper 87.22 (-1.50, allowed 1.00): not explained." in text
    assert "nowhere in the authors' result file" in text  # citeseer b4
    assert document.summary["pegfan"]["agree"] < 54
    texas = next(cell for cell in document.cells if (cell["set"], cell["row"]) == ("texas", "a4"))
    assert texas["verdict"] == "agrees"  # two standard errors are more than three points there


def test_a_cell_that_agrees_on_sx_says_so(no_statistics):
    printed = printed_world()

    def low(job):
        row = row_of(job)
        own = isinstance(row, Model) and row.kind == "a"
        return 0.75 if job.source.where == ("texas",) and own else printed.test(job)

    document = Table3(Options()).document(World(low), "x", {})
    cells = {(cell["set"], cell["row"]): cell for cell in document.cells if cell["table"] == "III"}
    assert cells["texas", "a8"]["verdict"] == "differs"
    assert cells["texas", "a8"]["explanation"].startswith("with F_j(SX) in place of F_j(X) it is 84.32±0.00")
    assert cells["texas", "a4"]["explanation"] == "not explained"


def test_fsgnn_cells_may_agree_with_its_own_figure(no_statistics):
    document = Table3(Options()).document(printed_world(3.0), "x", {})
    texas = next(cell for cell in document.cells if (cell["set"], cell["row"]) == ("texas", "r3"))
    assert (texas["paper"], texas["fsgnn_own"]) == (84.51, 87.57)
    assert texas["verdict"] == "agrees with FSGNN's own figure"


# ---------------------------------------------------------------------- the cited systems


def relation_folder(path, *sets):
    """Files with the names of GEOM-GCN's; nobody reads them here."""
    path.mkdir(exist_ok=True)
    for stem in sets:
        for embedding in EMBEDDINGS:
            (path / f"{stem}_{embedding}.txt.gz").write_bytes(f"{stem} {embedding}".encode())
    return path


def test_cited_systems_have_published_settings_or_a_search(tmp_path):
    counts = {label: [len(candidates(model, name)) for name in DATASETS] for label, model in RIVALS.items()}
    assert counts == {
        "MixHop": [2] * 9,
        "Geom-GCN": [1] * 9,
        "GCNII": [1, 1, 1, 1, 1, 1, 8, 1, 8],
        "H2GCN-1": [8] * 9,
        "WRGAT": [2] * 9,
        "GPRGNN": [24, 24, 24, 1, 24, 1, 1, 1, 1],
    }
    for model in RIVALS.values():
        for name in DATASETS:
            every = candidates(model, name)
            assert len({NetworkRecipe.of(one).key for one in every}) == len(every)
    folder = relation_folder(tmp_path / "relations", "texas", "film")
    assert [one["relation_file"][0] for one in candidates("geom-gcn", "actor", folder)] == [
        f"film_{embedding}.txt.gz" for embedding in EMBEDDINGS
    ]
    assert ["relation_file" in one for one in candidates("geom-gcn", "squirrel", folder)] == [False]
    assert set(POINTS) == set(RIVALS) == set(published.CITED)
    assert cited.TOTAL == 52


def test_variants_are_changes_that_their_network_knows():
    for (model, sets), ways in VARIANTS.items():
        for name in sets:
            plain = candidates(model, name)[0]
            for way in ways:
                job = rival_job(name, {**plain, **way.changes}, 0, way.sizes)
                assert job != rival_job(name, plain, 0), way.name
                assert Job.from_dict(json.loads(json.dumps(job.to_dict()))).name == job.name
    assert [way.name for way in variants("mixhop", "pubmed")] == ["training statistics", "features kept"]
    assert [way.sizes for way in variants("wrgat", "cora")] == [None, *[(0.6, 0.2, 0.2)] * 2]


def steps(table, test, val):
    """The stages of a table, run by a rule, and the records: a job is known once its stage has come."""
    done, stages = {}, []
    known = lambda job: done.get(job.name, [])  # noqa: E731
    for stage, jobs in table.jobs(known):
        stages.append((stage, [job for job in jobs if job.name not in done]))
        done.update({job.name: [record(job, test(job), val(job))] for job in jobs})
    return stages, known


def test_the_winner_is_never_chosen_by_test():
    """The second candidate is best on validation, and the worst on test; it is the one that runs on all splits."""
    good = candidates("h2gcn", "texas")[1]
    chosen = lambda job: job.recipe == NetworkRecipe.of(good)  # noqa: E731
    table = Table3(Options(only=("texas", "h2gcn")))
    stages, known = steps(table, lambda job: 0.1 if chosen(job) else 0.9, lambda job: 0.8 if chosen(job) else 0.7)
    assert [(stage, len(jobs)) for stage, jobs in stages] == [
        ("texas, cited systems", 8 * SEARCH_SPLITS["texas"]),
        ("texas, cited systems, winners", 10 - SEARCH_SPLITS["texas"]),
        ("texas, what cited figures rest on", 10),
    ]
    assert all(chosen(job) for job in stages[1][1])
    score = table.cited.score(known, "texas", "h2gcn")
    assert (score.mean, score.runs, score.details["chosen"]) == (pytest.approx(10.0), 10, "search")
    assert score.details["settings"]["relu"] == NetworkRecipe.of(good).options["relu"] or "relu" not in good
    assert table.cited.settings(World(), "texas", "h2gcn") == candidates("h2gcn", "texas")[0]  # the first of equals
    assert table.cited.settings(NOTHING, "texas", "h2gcn") is None


def test_a_diverged_candidate_does_not_win():
    first, *rest = candidates("mixhop", "texas")
    lost = lambda job: job.recipe == NetworkRecipe.of(first)  # noqa: E731
    world = lambda job: [record(job, *((None,) * 3 if lost(job) else (0.8, 0.1, 2.0)))]  # noqa: E731
    assert cited.Cited(range(10)).settings(world, "texas", "mixhop") == rest[0]
    everywhere = lambda job: [record(job, None, None, None)]  # noqa: E731
    cell = cited.Cited(range(10)).about(everywhere, "texas", "mixhop", None)
    assert (cell["ours"], cell["verdict"], cell["explanation"]) == (None, "not computed", "10 of 10 runs diverged")


def test_geom_gcn_is_the_best_on_validation_and_its_cited_figure_the_best_on_test(tmp_path, no_statistics):
    folder = relation_folder(tmp_path / "relations", "texas")
    which = lambda job: job.recipe.relation_file.name.split("_")[1].split(".")[0]  # noqa: E731
    tests = {"MDS": 0.60, "poincare": 0.68, "struc2vec": 0.62}
    table = Table3(Options(only=("texas", "geom-gcn"), relations=folder))
    stages, known = steps(table, lambda job: tests[which(job)], lambda job: 0.9 if which(job) == "MDS" else 0.8)
    assert [len(jobs) for _, jobs in stages] == [30, 0, 10]
    assert {(which(job), job.recipe.keep) for job in stages[2][1]} == {("poincare", "last")}
    cell = table.cited.about(known, "texas", "geom-gcn", table.cited.score(known, "texas", "geom-gcn"))
    assert (cell["ours"], cell["verdict"]) == (pytest.approx(60.0), "rests on")
    assert cell["rests_on"].startswith("the best of three embeddings on test")
    assert cell["explanation"] == (
        "best on test: 68.00±0.00, which agrees; last weights: 68.00±0.00, which agrees; another group's rerun has "
        "66.76±2.72, with which ours differs"
    )
    assert cell["relations"].startswith("texas_MDS.txt.gz (sha256 ")
    unfinished = lambda job: [] if job.recipe.keep == "last" else known(job)  # noqa: E731
    assert table.cited.ways(unfinished, "texas", "geom-gcn", Score(60.0, 0.0, 10, {}))[1].score is None
    text = table.document(known, "x", {}).markdown()
    assert "60.00 / 67.57 / 66.76 (✓)" in text
    assert "our own relations" not in text


def test_without_a_folder_relations_are_our_own(no_statistics):
    text = Table3(Options(only=("texas", "geom-gcn"))).document(printed_world(), "x", {}).markdown()
    assert "- Geom-GCN has our own relations on all sets: no folder was given." in text


@pytest.mark.parametrize(
    ("name", "model", "ours", "drawn", "verdict", "sign"),
    [
        ("chameleon", "gprgnn", 66.0, 0.0, "agrees", " ✓"),
        ("chameleon", "gprgnn", 60.0, 66.5, "rests on", " (✓)"),
        ("chameleon", "gprgnn", 46.6, 50.0, "agrees with a rerun", " ≈"),
        ("chameleon", "gprgnn", 60.0, 50.0, "differs", " ✗"),
        ("actor", "gcnii", 37.0, 0.0, "nothing cited", ""),
        ("cora", "gcnii", 80.0, 0.0, "differs", " ✗"),
    ],
)
def test_verdicts_of_cited_systems(name, model, ours, drawn, verdict, sign):
    world = World(lambda job: (drawn if job.source.options else ours) / 100)
    ten, two = cited.Cited(range(10)), cited.Cited(range(2))
    cell = ten.about(world, name, model, ten.score(world, name, model))
    assert cell["verdict"] == verdict
    assert cited._compared(cell).text.endswith(sign or " / 37.44")
    assert (cell["rests_on"] is not None) == (verdict == "rests on")
    if verdict == "rests on":
        assert cell["rests_on"].startswith("random splits of 60/20/20")
    few = two.score(world, name, model)
    assert two.about(world, name, model, few)["verdict"] == "too few splits for a verdict"
    assert two.otherwise(world, name, model, few) == []


def test_cited_cells_do_not_count_as_ours(no_statistics):
    """Every cited system misses by far: the counts of PEGFAN and FSGNN, and the claims, are as before."""
    printed = printed_world()

    def low(job):
        return 0.3 if isinstance(job.recipe, NetworkRecipe) else printed.test(job)

    document = Table3(Options()).document(World(low), "x", {})
    summary = document.summary
    assert (summary["pegfan"]["agree"], summary["fsgnn"]["agree"]) == (54, 36)
    assert summary["cited"]["agree"] == 0
    assert all(claim["holds"] for claim in summary["claims"].values())
    rows = Counter(cell["row"] for cell in document.cells if cell["table"] == "III")
    assert set(rows) == {model.key for model in published.TABLE3}
    assert Counter(cell["table"] for cell in document.cells)["III, cited systems"] == 54
    grid = next(block for block in document.blocks if isinstance(block, Grid) and block.columns[-2] == "Rank")
    labels, ranks = [row[0] for row in grid.rows], [row[-2].text for row in grid.rows]
    assert labels[:6] == list(RIVALS)
    assert sorted(map(int, ranks)) == list(range(1, 17))
    assert not any("†" in label for label in labels)
    assert "The bar is 40 that agree or rest on a point: not met." in document.markdown()
    assert next(csv.DictReader(io.StringIO(document.csv().split("\n", 1)[1])))["row"] == "r3"


def test_a_quick_table_has_some_cited_systems(no_statistics):
    table = Table3(Options(quick=True))
    assert {name: table.rivals(name) for name in table.sets} == {
        **{"texas": ["gcnii", "gprgnn"], "cornell": ["gcnii", "gprgnn"], "wisconsin": ["gcnii"]},
        "chameleon": ["gcnii", "gprgnn"],
    }
    assert Table3(Options(quick=True, only=("mixhop", "texas"))).rivals("texas") == ["mixhop"]
    for quick in (True, False):
        assert Table3(Options(settings="search", quick=quick)).rivals("texas") == []
    assert Table3(Options()).rivals("chameleon-filtered") == []
    searched = Options(settings="search", only=("texas",), rungs=FEW)
    assert "cited" not in Table3(searched).document(NOTHING, "x", {}).summary


def test_what_has_not_run_is_marked(no_statistics):
    only = printed_world()

    def some(job):
        return only(job) if job.source.where == ("texas",) and job.split < 9 else []

    document = Table3(Options()).document(some, "x", {})
    assert document.summary["pegfan"] == {"agree": 0, "of": 54, "without verdict": 54, "bar": 48}
    assert "not decided yet" in document.markdown()
    assert "| PEGFAN type c, h = 8 | – | – | – | – | – | – | – | – | – | – | – | 78.18 (1) |" in document.markdown()


def test_claims_are_decided_by_the_numbers():
    ours = {(g, model): row[g] for model, row in published.TABLE1.items() for g in GAMMAS}
    claims = claims_of(ours, published.TABLE1, GAMMAS, 1)
    assert all(holds for holds, _ in claims.values())
    ours[0.6, Model.of("b4")] = ours[0.6, Model.of("r3")] - 0.1
    assert not claims_of(ours, published.TABLE1, GAMMAS, 1)["type b beats FSGNN r = 3 at every γ"][0]
    ours[1.0, Model.of("a8")] = 40.0
    assert not claims_of(ours, published.TABLE1, GAMMAS, 1)["type a wins at γ = 1 with h = 8"][0]
    assert not claims_of(ours, published.TABLE1, GAMMAS, 1)["type a is flat in γ at h = 8"][0]


def synthetic_world(fine_on_x=None):
    """A world in which every cell gives what the paper prints; type a, h = 4 may be another on X, not on SX."""
    tables = {6.0: published.TABLE1, 1.0: published.TABLE2}

    def test(job):
        if row_of(job) == Model.of("a4") and fine_on_x is not None:
            return fine_on_x
        return tables[job.source.options["separation"]][row_of(job).printed][job.source.options["gamma"]] / 100

    return World(test)


def test_the_synthetic_documents_compare_and_claim():
    document = Synthetic(Options(rungs=FEW), 2).document(synthetic_world(), "x", {})
    assert document.summary["agree"] == {"agree": 54, "of": 54, "without verdict": 0}
    claims = document.summary["claims"]
    assert claims["type b gains less over FSGNN r = 3 than in Table I"]["holds"]
    assert "41.0 / 42 " not in document.markdown()
    assert "42.0 / 42 ✓" in document.markdown()
    assert Synthetic(Options(), 2).rungs == RUNGS


def test_type_a_of_h_4_stands_both_ways():
    """On X all but one of the six cells differ; on SX they agree, and the page says so without counting them."""
    document = Synthetic(Options(rungs=FEW), 1).document(synthetic_world(fine_on_x=0.63), "x", {})
    assert document.summary["agree"]["agree"] == 49
    assert document.summary["agree with type a, h = 4 on SX"] == 54
    differing = [cell for cell in document.cells if cell.get("verdict") == "differs"]
    assert {cell["row"] for cell in differing} == {"a4"}
    assert differing[-1]["explanation"].startswith("with F_j(SX) in place of F_j(X) it is 27.7, which agrees")
    grid = next(block for block in document.blocks if isinstance(block, Grid) and "both ways" in block.caption)
    assert [cell if isinstance(cell, str) else cell.text for cell in grid.rows[-1]] == [
        *("γ = 1", "27.70±0.00 ✓", "63.00±0.00 ✗", "27.7")
    ]
    assert [cell["row"] for cell in document.cells if cell["table"] == "I, type a both ways"] == ["as4"] * 6
    assert "on SX h = 4 has 43.3" in document.summary["claims"]["type a is sensitive to h"]["numbers"]
    assert "PEGFAN type a on SX" not in document.summary["claims"]["type a wins at γ = 1 with h = 8"]["numbers"]
    assert "both ways" not in Synthetic(Options(rungs=FEW, only=("b4",)), 1).document(World(), "x", {}).markdown()


def test_table_four_stands_beside_the_paper_s():
    text = Table4(Options()).document(World(), "x", {}).markdown()
    row = next(line for line in text.splitlines() if line.startswith("| squirrel, PEGFAN type c"))
    assert row.endswith("| 20.0 / 20.0 / 20.0 | 15.0 / 15.0 / 15.0 | 2 | 1.50 | 100 | 7 | 59.8 / 198.8 / 32.9 | 14 |")


# ----------------------------------------------------------------------------- rendering


def hostile() -> Document:
    evil = '<script>alert("x")</script> | & "quoted"'
    cells = [{"row": evil, "ours": float("nan"), "list": [1, 2.5], "map": {"a": 1}, "none": None}]
    return Document(
        "t",
        evil,
        evil,
        [evil, "- item", "- item", Grid(evil, ["", evil], [[evil, Mark(evil, ("best",), evil)]])],
        cells,
    )


def test_html_escapes_everything():
    page = hostile().html()
    assert "<script" not in page
    assert 'title="&lt;script&gt;' in page
    assert page.count("<p class=item>") == 2


def test_csv_and_json_hold_every_cell():
    document = hostile()
    lines = document.csv().splitlines()
    assert lines[0].startswith("# <script>")
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[1:]))))
    assert rows == [{"row": document.cells[0]["row"], "ours": "nan", "list": "1 2.5", "map": "a=1", "none": ""}]
    stored = json.loads(document.json())
    assert stored["cells"][0]["ours"] is None
    assert stored["command"] == document.command


def test_markdown_keeps_bars_out_of_cells_and_lists_together():
    text = hostile().markdown()
    assert "- item\n- item" in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) == 1


def test_the_same_document_gives_the_same_bytes(tmp_path):
    first, second = (write(hostile(), tmp_path / name) for name in "ab")
    assert [path.name for path in first] == ["t.md", "t.csv", "t.json", "t.html"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_notes_are_sentences_by_cell(tmp_path):
    assert read_notes(tmp_path, "table3") == {}
    (tmp_path / cells.NOTES).write_text('[table3]\n"cora a4" = "because"\n')
    assert read_notes(tmp_path, "table3") == {"cora a4": "because"}
    (tmp_path / cells.NOTES).write_text("[table3]\ncora = 1\n")
    with pytest.raises(ValueError, match="sentences by cell"):
        read_notes(tmp_path, "table3")
    (tmp_path / cells.NOTES).write_text("[table3")
    with pytest.raises(ValueError, match="not TOML"):
        read_notes(tmp_path, "table3")


# ------------------------------------------------------------------------------- figures


@pytest.mark.long
def test_lines_and_times_are_drawn_from_scores(tmp_path):
    """Figures 4 and 5."""
    table = Synthetic(Options(rungs=FEW), 1)
    scores = {cell: score for cell, score in table.scores(synthetic_world()).items() if score}
    pictures = [figures.synthetic_lines(scores, table.printed, "Table I") for _ in range(2)]
    left, right = pictures[0].axes
    assert left.lines[-1].get_label() == "PEGFAN type a on SX, h = 4"
    for line, other in zip(left.lines[:-1], right.lines, strict=True):
        np.testing.assert_allclose(line.get_ydata(), other.get_ydata())
    one, two = (figures.save(figure, tmp_path / name) for figure, name in zip(pictures, "ab", strict=True))
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
    timed = Table4(Options())
    measured = {row: timed.measured(World(), *row) for row in timed.rows}
    assert [ax.get_title(loc="left") for ax in figures.training_times(measured, 10).axes] == ["Chameleon", "Squirrel"]


def test_the_architecture_is_the_network_s():
    """Figure 3."""
    import pegfan as pf
    from pegfan.models import PEGFAN

    graph = pf.datasets.synthetic(0.0, n=60, n_edges=200, n_features=5)
    system = pf.FrameletSystem(pf.build_tree(graph, h=4))
    channels = pf.make_channels(graph, system, kind="c", regime="heterophily")
    network = PEGFAN(channels.widths, classes=4, hidden=16)
    texts = " ".join(text.get_text() for text in figures.architecture(channels, network).axes[0].texts)
    assert f"{len(channels)} channels" in texts
    assert f"{sum(p.numel() for p in network.parameters()):,} parameters" in texts
    assert "$S^{3}\\,X$" in texts
    with pytest.raises(ValueError, match="widths"):
        figures.architecture(channels[:2], network)


def test_figure_2_is_the_papers_example():
    """The children of s_(1,1,1) = {1, 2} of the tree of Figure 1 are swapped: one framelet, the other sign."""
    figure = figures._partition_permutation()
    before, after, psi, other = figure.axes
    assert [ax.get_title() for ax in figure.axes] == [
        *("$s_{(1,1,1)}$", r"$\tilde{s}_{(1,1,1)}$"),
        *(r"$\psi_{(1,1,1)}$", r"$\tilde{\psi}_{(1,1,1)}$"),
    ]
    for ax, leaves in ((before, ["1", "2"]), (after, ["2", "1"])):
        assert [label.get_text() for label in ax.get_xticklabels()] == leaves
        assert [label.get_text() for label in ax.get_yticklabels()] == ["level 3", "level 4"]

    def values(ax):
        """The framelet at nodes 1 to 8, off its stems."""
        found = np.zeros(8)
        for stems in ax.collections:
            for (x, bottom), (_, top) in stems.get_segments() if stems.get_gid() == "stems" else []:
                found[round(7 * x)] = top - bottom
        return found

    np.testing.assert_allclose(values(psi), [0.5**0.5, -(0.5**0.5), *[0] * 6])
    np.testing.assert_allclose(values(other), -values(psi))


def test_figures_stand_under_the_papers_numbers():
    folder = examples.ROOT / "docs" / "results"
    cells = json.loads((folder / "figures.json").read_text())["cells"]
    numbers = ["Figure 1", "Figure 2", "Figure 3", "Figure 4 (a)", "Figure 4 (b)", "Figure 5", "Figure 6"]
    files = ["framelets", "partition-permutation", "architecture", "table1", "table2", "table4", "ccns"]
    assert [(cell["paper"], cell["figure"]) for cell in cells] == list(zip(numbers, files, strict=True))
    for suffix in ("md", "html"):
        page = (folder / f"figures.{suffix}").read_text()
        places = [page.index(f"{number}: ") for number in numbers]
        assert places == sorted(places)
    assert all((folder / file).is_file() for cell in cells for file in cell["files"])


# --------------------------------------------------------------------------- the command


def invoke(*words):
    return CliRunner().invoke(app, ["reproduce", *map(str, words)])


def test_the_command_renders_an_empty_store(tmp_path, no_statistics):
    words = ["table3", "--render-only", "--store", tmp_path / "s", "-o", tmp_path / "o", "--json"]
    assert "not a folder" in " ".join(invoke(*words).stderr.split())
    assert not (tmp_path / "s").exists()
    assert not (tmp_path / "o").exists()
    (tmp_path / "s").mkdir()
    outcome = invoke(*words)
    assert outcome.exit_code == 0, outcome.output
    assert json.loads(outcome.stdout)["table3"]["pegfan"]["without verdict"] == 54
    text = (tmp_path / "o" / "table3.md").read_text()
    assert "    pegfan reproduce table3 --store s -o o\n" in text
    assert str(tmp_path) not in "".join(path.read_text() for path in (tmp_path / "o").iterdir())


def filled(folder, table, test):
    """A store with a record of every run of a table: the metric given, and two points more, in turn."""
    store = Store(folder)
    for _, stage in table.jobs(cells.lookup(store)):
        for number, job in enumerate(job for job in stage if not store.named(job.name)):
            store.append(record(job, test + 0.02 * (number % 2)).to_dict())


def shown(outcome):
    """The words of every line that was printed."""
    assert outcome.exit_code == 0, outcome.output
    return [line.split() for line in outcome.stdout.splitlines()]


@pytest.mark.parametrize("only", [["--only", "texas,c8"], ["--only", "texas", "--only", "c8"]])
def test_one_cell_is_printed(tmp_path, no_statistics, only):
    filled(tmp_path / "s", Table3(Options(only=("texas", "c8"))), test=0.85)
    words = ["table3", *only, "--store", tmp_path / "s", "-o", tmp_path / "o"]
    for more in ([], ["--render-only"]):  # all runs are there, so neither computes anything
        lines = shown(invoke(*words, *more))
        at = lines.index(["texas,", "PEGFAN", "type", "c,", "h", "=", "8"])
        assert lines[at + 1 : at + 6] == [
            ["ours", "86.00", "±", "1.00"],
            ["paper", "86.22", "±", "3.30"],
            ["verdict", "agrees"],
            ["runs", "10"],
            ["tree", "own:", "method=ward", "h=8", "direction=out"],
        ]
        assert lines[-1][:2] == ["Written:", f"{tmp_path / 'o' / 'table3-texas-c8'}.md,"]
    outcome = invoke(*words, "--json")
    assert list(json.loads(outcome.stdout)) == ["table3-texas-c8"]


def test_a_cited_cell_is_printed(tmp_path, no_statistics):
    folder = relation_folder(tmp_path / "relations", "texas")
    filled(tmp_path / "s", Table3(Options(only=("texas", "geom-gcn"), relations=folder)), test=0.6)
    words = ["--relations", folder, "--store", tmp_path / "s", "-o", tmp_path / "o"]
    lines = shown(invoke("table3", "--only", "geom-gcn,texas", *words, "--render-only"))
    assert any(line[:4] == ["texas", "geom-gcn", "61.00", "±"] for line in lines)
    text = (tmp_path / "o" / "table3-geom-gcn-texas.md").read_text()
    assert "reproduce table3 --relations relations --only geom-gcn,texas" in text
    assert str(tmp_path) not in "".join(path.read_text() for path in (tmp_path / "o").iterdir())


def test_a_cell_that_has_not_run_says_so(tmp_path, no_statistics):
    (tmp_path / "s").mkdir()
    words = ["--render-only", "--store", tmp_path / "s", "-o", tmp_path / "o"]
    lines = shown(invoke("table3", "--only", "texas,c8", *words))
    assert ["verdict", "not", "computed"] in lines
    assert ["runs", "0"] in lines
    lines = shown(invoke("table4", "--only", "chameleon,c4", *words))
    assert ["paper", "47.7", "(RTX", "3090)"] in lines
    assert ["runs", "0"] in lines


def test_several_cells_are_a_table(tmp_path, no_statistics):
    only = ("texas", "chameleon-filtered", "a8", "c8", "r3")
    filled(tmp_path / "s", Table3(Options(only=only)), test=0.7)
    words = ["--render-only", "--store", tmp_path / "s", "-o", tmp_path / "o"]
    outcome = invoke("table3", "--only", ",".join(only), *words)
    lines = shown(outcome)
    at = lines.index(["cell", "ours", "paper", "verdict", "runs", "tree"])
    text = " ".join(word for line in lines[at:] for word in line)
    assert "texas r3 71.00 ± 1.00 84.51 ± 4.71 differs 10 none" in text
    assert "texas c8 71.00 ± 1.00 86.22 ± 3.30 differs 10 own: ward h=8 out" in text
    assert "texas a8 on SX" in text
    assert "84.05" not in text  # cornell's, which --only does not name
    assert max(map(len, outcome.stdout.splitlines()[at:-1])) <= 80


def test_generated_graphs_are_printed_by_gamma(tmp_path):
    options = Options(only=("0.2", "b4", "r3"), rungs=FEW)
    filled(tmp_path / "s", Synthetic(options, 1), test=0.9)
    rungs = ",".join(f"{rung.settings}x{rung.epochs}" for rung in FEW)
    words = ["--rungs", rungs, "--render-only", "--store", tmp_path / "s", "-o", tmp_path / "o"]
    lines = shown(invoke("table1", "--only", "0.2,b4,r3", *words))
    assert [line[:2] for line in lines if line[:1] == ["0.2"]] == [["0.2", "b4"], ["0.2", "r3"]]
    lines = shown(invoke("table1", "--only", "0.2,b4", *words))
    assert ["γ", "=", "0.2,", "PEGFAN", "type", "b,", "h", "=", "4"] in lines
    assert ["paper", "92.30"] in lines


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["table3", "--trees", "/nowhere"], "not a folder"),
        (["table3", "--relations", "/nowhere"], "--relations /nowhere is not a folder"),
        (["table3", "--relations", "."], "holds no relations"),
        (["table3", "--only", "texs"], "no 'texs'"),
        (["table1", "--only", "0.3"], "no '0.3'"),
        (["table1", "--rungs", "many"], "rungs are settings x epochs"),
        (["all", "--only", "texas"], "leave it out"),
    ],
)
def test_mistakes_are_sentences(tmp_path, words, sentence):
    outcome = invoke(*words, "--store", tmp_path / "s", "-o", tmp_path / "o")
    assert outcome.exit_code == 1
    assert sentence in " ".join(outcome.stderr.split())
    assert "Traceback" not in outcome.stderr


@pytest.mark.long
def test_a_table_is_computed_once_and_comes_out_the_same(tmp_path, monkeypatch):
    """The real thing on a small graph: two models, three values of γ, and a second run that only reads."""
    models = {Model.of("b4"): dict.fromkeys(GAMMAS, 90.0), Model.of("r3"): dict.fromkeys(GAMMAS, 85.0)}
    monkeypatch.setattr(Synthetic, "printed", property(lambda self: models))
    monkeypatch.setattr(Synthetic, "_claims", lambda *_: [])
    real = Synthetic.job

    def small(self, gamma, model, settings, seed):
        job = real(self, gamma, model, settings, seed)
        options = {**job.source.options, "n": 120, "n_edges": 700, "n_features": 6}
        return Job(type(job.source)(job.source.where, options), job.recipe, 0, seed)

    monkeypatch.setattr(Synthetic, "job", small)
    words = ["table1", "--only", "0,1", "--seeds", 2, "--rungs", "3x2,1x20", "--workers", 1, "--store", tmp_path / "s"]
    first = invoke(*words, "-o", tmp_path / "o")
    assert first.exit_code == 0, first.output
    count = len(Store(tmp_path / "s"))
    assert count == 2 * 2 * (3 + 1 + 1)
    before = {path.name: path.read_bytes() for path in (tmp_path / "o").iterdir()}
    assert invoke(*words, "-o", tmp_path / "o").exit_code == 0
    assert len(Store(tmp_path / "s")) == count
    assert {path.name: path.read_bytes() for path in (tmp_path / "o").iterdir()} == before
    cells = json.loads((tmp_path / "o" / "table1-2-seeds-0-1-3x2x1_1x20x1.json").read_text())["cells"]
    done = [cell for cell in cells if cell["runs"]]
    assert len(done) == 4
    for cell in done:
        assert {"settings", "tree", "seeds", "keys", "seconds", "versions"} <= set(cell)
        assert all(key in Store(tmp_path / "s") for key in cell["keys"])
