"""What everybody would try comes first, the model is never worse than it, and time and memory are planned."""

import gc
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pegfan as pf
from pegfan.auto import search
from pegfan.auto.classifier import search_memory
from pegfan.auto.ensemble import Judge, select
from pegfan.auto.outcome import LONGEST, Plan, carry_out
from pegfan.auto.recipes import baseline_recipes, memory
from pegfan.auto.search import Pool, Search, Task, Trial, choose, run_task, validate
from pegfan.channels import FeatureScale
from pegfan.framelets import Operator
from pegfan.graph import Split
from pegfan.metrics import METRICS
from pegfan.recipe import Recipe
from pegfan.running import Clock, Deadline

NOTHING = np.empty(0, np.int64)
QUICK = {"epochs": 6, "hidden": 8}


@pytest.fixture(scope="module")
def graph():
    return pf.datasets.synthetic(0.2, n=200, n_edges=800, n_features=6, splits=2)


# -------------------------------------------------------------------- baselines


def test_what_everybody_would_try_comes_first(graph):
    model = pf.AutoClassifier(budget=1e-6, workers=2).fit(graph)
    first = [(recipe.head, recipe.hops, recipe.has_tree) for recipe in model.ran_[:5]]
    assert first == [
        ("constant", 0, False),
        ("linear", 0, False),
        ("boosting", 0, False),
        ("boosting", 1, False),
        ("network", 3, True),
    ]


def test_wide_features_are_boosted_by_their_principal_columns(graph):
    wide = graph.replace(features=np.eye(graph.n)[:, :1].repeat(1200, axis=1))
    boosted = [one for one in baseline_recipes(wide, wide.subgraph(graph.splits[0].train)) if one.is_boosted]
    assert {one.scaling for one in boosted} == {"principal"}


def test_pins_hold_for_them(graph):
    every = baseline_recipes(graph, graph.subgraph(graph.splits[0].train), {"head": "boosting", "labels": True})
    assert {recipe.head for recipe in every} == {"boosting"}
    assert all(recipe.labels for recipe in every)
    networks = baseline_recipes(graph, graph.subgraph(graph.splits[0].train), {"hidden": 8})
    assert not any(recipe.is_boosted for recipe in networks), "boosting has nothing hidden"


@pytest.mark.parametrize("numeric", [False, True])
def test_a_constant_is_the_shares_of_training_nodes_or_their_mean(graph, numeric):
    known = graph.replace(targets=np.arange(graph.n) / 7) if numeric else graph
    part = known.splits[0]
    trial = run_task(search.Shared(known, None), Task(Recipe("none", hops=0, head="constant"), part, 0))
    if numeric:
        assert np.allclose(trial.log_probabilities, known.targets[part.train].mean())
        assert abs(trial.val_metric) < 0.1
    else:
        shares = np.bincount(graph.labels[part.train]) / len(part.train)
        assert np.allclose(np.exp(trial.log_probabilities), shares, atol=1e-4)
    fitted = pf.RecipeClassifier(Recipe("none", hops=0, head="constant")) if not numeric else None
    if fitted is not None:
        assert np.allclose(fitted.fit(graph).predict_proba(), shares, atol=1e-4)


@given(st.integers(0, 10**6), st.sampled_from([name for name in METRICS if not METRICS[name].numbers]))
def test_the_model_is_never_worse_on_validation_than_the_best_of_them(seed, metric):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 90))
    labels = np.r_[0, 1, rng.integers(2, size=n - 2)]
    graph = pf.Graph.from_edges([[0, 1]], n=n, labels=labels, features=rng.random((n, 1)), metric=metric)
    split, trials = Split(NOTHING, np.arange(n), NOTHING), []
    for place in range(7):
        p = np.clip(0.5 + rng.normal(0, 0.3, n) + rng.choice([0.0, 0.2]) * (labels - 0.5), 0.01, 0.99)
        output = np.log(np.column_stack([1 - p, p])).astype(np.float32)
        value, loss = validate(output, graph, split)
        gain = METRICS[metric].gain(value)
        trials.append(Trial(Recipe("none", hops=place), value, loss, 1, 1.0, output, object(), gain))
        trials[-1].baseline = place < 4
    choice = choose(trials, graph, split, 5)
    kept = METRICS[metric].gain(validate(choice.output, graph, split)[0])
    assert kept >= max(trial.gain for trial in trials if trial.baseline)


def test_a_recipe_of_lower_loss_gives_way_to_what_everybody_would_try():
    """Of 400 nodes, both miss twenty, one of them in all certainty; the other, of lower loss, misses one more."""
    n = 400
    graph = pf.Graph.from_edges([[0, 1]], n=n, labels=np.arange(n) % 2, metric="accuracy")
    split, trials = Split(NOTHING, np.arange(n), NOTHING), []
    for place, (sure, missed, last) in enumerate([(0.99, 0.001, 0.51), (0.9, 0.45, 0.05)]):
        right = np.r_[np.full(20, missed), last, np.full(n - 21, sure)]
        output = np.log(np.where((np.arange(n) % 2)[:, None] == [0, 1], right[:, None], 1 - right[:, None]))
        value, loss = validate(output.astype(np.float32), graph, split)
        trials.append(
            Trial(Recipe("none", hops=place), value, loss, 1, 1.0, output.astype(np.float32), object(), value)
        )
    assert [trial.val_metric for trial in trials] == [0.95, 0.9475]
    assert trials[1].val_loss < trials[0].val_loss
    assert choose(trials, graph, split, 5).members[0] is trials[1], "without the rule"
    trials[0].baseline = True
    choice = choose(trials, graph, split, 5)
    assert (choice.members, choice.how) == ([trials[0]], "best")
    assert "the best of what everybody would try: on validation X alone" in choice.reason


def test_where_there_is_no_metric_the_loss_decides():
    """Validation nodes of one class have no area under a curve: what is obvious is not kept for that."""
    n = 40
    labels = np.r_[np.ones(n, np.int64), 0]
    graph = pf.Graph.from_edges([[0, 1]], n=n + 1, labels=labels, metric="roc_auc")
    split, trials = Split(np.array([n]), np.arange(n), NOTHING), []
    rng = np.random.default_rng(0)
    for place, mean in enumerate((0.6, 0.8, 0.8)):
        p = np.clip(mean + rng.normal(0, 0.1, n + 1), 0.01, 0.99)
        output = np.log(np.column_stack([1 - p, p])).astype(np.float32)
        value, loss = validate(output, graph, split)
        assert np.isnan(value)
        trials.append(Trial(Recipe("none", hops=place), value, loss, 1, 1.0, output, object(), value))
    trials[0].baseline = True
    choice = choose(trials, graph, split, 5)
    assert trials[0] not in choice.members


def test_an_ensemble_that_does_worse_on_nodes_left_out_is_not_kept():
    """One is right more often but far too sure of itself; the mean with others has a lower loss, and errs more."""
    rng, n = np.random.default_rng(0), 60
    labels = np.arange(n) % 2
    graph = pf.Graph.from_edges([[0, 1]], n=n, labels=labels)
    split = Split(NOTHING, np.arange(n), NOTHING)
    refused = 0
    for _ in range(30):
        outputs = []
        for right, sure in ((0.85, 0.999), (0.75, 0.75), (0.75, 0.75), (0.75, 0.75)):
            said = np.where(rng.random(n) < right, labels, 1 - labels)
            p = np.where(said == 1, sure, 1 - sure)
            outputs.append(np.log(np.column_stack([1 - p, p])).astype(np.float32))
        chosen = select(outputs, Judge(graph, split, outputs=outputs), 10, [0])
        worse = chosen.ensemble[0] < chosen.single[0]
        refused += worse and chosen.ensemble[1] < chosen.single[1]
        assert not worse or chosen.weights.tolist() == [1.0, 0.0, 0.0, 0.0]
    assert refused, "some had a lower loss"


def test_replaying_a_run_keeps_its_rule(graph):
    plan = Plan(budget=4.0, splits=2, workers=2, pins=QUICK)
    outcome = carry_out(graph, plan)
    assert outcome.baselines == 3, "a constant, a linear model and a network"
    assert outcome.finalists is not None
    tried = {trial.place: trial for trial in outcome.model.trials_}
    best = min((trial for trial in tried.values() if trial.baseline), key=search.metric_first)
    assert best.place in outcome.finalists, "other splits choose by the same rule"
    again = carry_out(
        graph,
        Plan(recipes=outcome.model.ran_, splits=2, finalists=outcome.finalists, baselines=outcome.baselines, workers=1),
    )
    assert again.probabilities.tobytes() == outcome.probabilities.tobytes()
    assert again.model.reason_ == outcome.model.reason_


def test_a_recipe_that_ended_by_itself_has_no_cap(graph):
    """Planned epochs depend on the clock; where they made no difference, what is repeated does not."""
    pool = Pool(graph, FeatureScale.of(graph.features), 1)
    one = Search(pool, graph.splits[0], 0, budget=100.0, members=5)
    recipe = Recipe("none", hops=0, head="boosting").changed(epochs=400, patience=5)
    early = run_task(pool.shared, Task(recipe, graph.splits[0], 0))
    late = run_task(pool.shared, Task(recipe.changed(epochs=3), graph.splits[0], 0))
    for trial in (early, late):
        one._uncap(trial)
    assert early.epochs < 400
    assert early.recipe.settings.epochs == early.trained.recipe.settings.epochs == 1500
    assert late.recipe.settings.epochs == 3
    again = run_task(pool.shared, Task(early.recipe, graph.splits[0], 0))
    assert again.log_probabilities.tobytes() == early.log_probabilities.tobytes()


def test_a_head_that_is_clearly_behind_gets_little_time():
    """Columns decide by a threshold: once three networks were tried, boosting has most of the time."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 1000, (400, 3)).astype(float)
    labels = (x[:, 0] > 500).astype(int)
    pairs = rng.integers(400, size=(800, 2))
    graph = pf.Graph.from_edges(pairs, n=400, features=x, labels=labels)
    graph = graph.replace(splits=[Split(np.arange(240), np.arange(240, 320), np.arange(320, 400))])
    pool = Pool(graph, FeatureScale.of(graph.features), 1)
    one = Search(pool, graph.splits[0], 0, budget=100.0, members=5)
    one.space = search.Space(graph, {})
    constant = Recipe("none", hops=0, head="constant")
    boosted = Recipe("none", hops=0, head="boosting", scaling="none")
    networks = [Recipe("none", hops=hops, scaling="none").changed(epochs=3) for hops in (0, 1, 2)]
    for recipe in (constant, boosted, networks[0]):
        one.done.append(run_task(pool.shared, Task(recipe, graph.splits[0], 0)))
    assert one._deserved("network") == 1.0, "one try is not enough to tell"
    one.done += [run_task(pool.shared, Task(recipe, graph.splits[0], 0)) for recipe in networks[1:]]
    assert one._deserved("network") < 0.2
    assert one._deserved("boosting") >= 1.0
    assert one._heads() == ["boosting", "network"], "however little it has had"


# ------------------------------------------------------------------------- time


class Machine:
    """A clock on the wall and the time of cores, set by hand."""

    def __init__(self, monkeypatch):
        self.wall = self.cpu = 0.0
        monkeypatch.setattr("pegfan.running.time.perf_counter", lambda: self.wall)
        monkeypatch.setattr("pegfan.running.time.process_time", lambda: self.cpu)
        monkeypatch.setattr("pegfan.running.cores", lambda: 2)

    def work(self, seconds, cores):
        self.wall, self.cpu = self.wall + seconds, self.cpu + seconds * cores


def test_what_others_take_of_the_machine_is_not_counted(monkeypatch):
    machine = Machine(monkeypatch)
    clock = Clock(100.0, 200.0, lanes=2)
    machine.work(10.0, 1.0)  # reading, on one core
    assert clock.left() == pytest.approx(90.0)
    clock.set_running(2)
    machine.work(20.0, 2.0)
    assert clock.left() == pytest.approx(70.0)
    machine.work(40.0, 1.0)  # somebody else has one of the two cores
    assert clock.left() == pytest.approx(50.0)
    clock.set_running(0)
    machine.work(5.0, 0.5)
    assert clock.left() == pytest.approx(45.0)


def test_more_threads_than_cores_wait_for_themselves(monkeypatch):
    machine = Machine(monkeypatch)
    clock = Clock(100.0, 200.0, lanes=8)
    clock.set_running(8)
    machine.work(20.0, 2.0)
    assert clock.spent == pytest.approx(20.0)
    machine.work(20.0, 1.0)
    assert clock.spent == pytest.approx(30.0)


def test_the_clock_on_the_wall_ends_it_in_the_end(monkeypatch):
    machine = Machine(monkeypatch)
    clock = Clock(100.0, LONGEST * 100.0, lanes=2)
    clock.set_running(2)
    machine.work(150.0, 0.2)  # a machine that is hardly there
    assert clock.spent == pytest.approx(15.0)
    assert clock.left() == pytest.approx(5.0), "if it stays like that"
    assert clock.left(50.0) == pytest.approx(-5.0), "half of the work has half of the time"
    machine.work(60.0, 0.2)
    assert clock.left() < 0


def test_a_budget_that_was_named_is_by_the_wall_and_one_of_cpu_is_not(monkeypatch):
    machine = Machine(monkeypatch)
    wall, cpu = Clock(100.0, lanes=2), Clock(100.0, math.inf, lanes=2, only_cpu=True)
    wall.set_running(2)
    machine.work(60.0, 0.5)
    assert wall.left() == pytest.approx(10.0)
    assert cpu.left() == pytest.approx(85.0)
    with pytest.raises(ValueError, match="seconds must be a number"):
        Clock("much")


def test_a_part_of_a_task_counts_the_time_of_its_own_core(monkeypatch):
    now = {"monotonic": 0.0, "thread_time": 0.0}
    for name in ("monotonic", "thread_time"):
        monkeypatch.setattr(f"pegfan.running.time.{name}", lambda name=name: now[name])
    part = Deadline(100.0).within(0.0, 10.0)
    now["monotonic"] = 50.0  # waited for a core
    assert part.left == pytest.approx(10.0)
    now["thread_time"] = 11.0
    assert part.passed


# ----------------------------------------------------------------------- memory


def test_recipes_side_by_side_share_what_they_are_made_of():
    graph = pf.datasets.synthetic(0.2, n=1000, n_edges=5000, n_features=10)
    rows, matrix = 4.0 * 1000 * 10, 12.0 * graph.adjacency.nnz
    near, far = Recipe("none", hops=1, regime="heterophily"), Recipe("none", hops=3, regime="heterophily")
    other = near.changed(regime="homophily")
    assert memory([near], graph) == 2 * rows + matrix
    assert memory([near, far], graph) == memory([far], graph) == 4 * rows + matrix
    assert memory([near, other], graph) == 3 * rows + 2 * matrix


def test_what_does_not_fit_is_left_out_by_name():
    graph = pf.datasets.synthetic(0.2, n=400, n_edges=2000, n_features=60)
    small = 4.0 * 400 * 60
    most = 1.5 * small / search.ROWS_SHARE
    model = pf.AutoClassifier(budget=3, pins={"head": "boosting", "epochs": 5}, max_memory=most).fit(graph)
    assert {trial.recipe.hops for trial in model.trials_} == {0}
    assert "left out for lack of memory: S" in model.reason_


def test_recipes_wait_until_they_fit_beside_others(monkeypatch):
    graph = pf.datasets.synthetic(0.2, n=400, n_edges=2000, n_features=60)
    most = (2 * 4.0 * 400 * 60 + 12.0 * graph.adjacency.nnz + 1e3) / search.ROWS_SHARE
    seen, real = [], Pool.fits

    def watched(self, recipe, *others):
        fits = real(self, recipe, *others)
        seen.append((len(others), fits))
        return fits

    monkeypatch.setattr(Pool, "fits", watched)
    pins = {"head": "boosting", "epochs": 5}
    model = pf.AutoClassifier(budget=3, pins=pins, max_memory=most, workers=3).fit(graph)
    assert (1, False) in seen, "some had to wait"
    assert {trial.recipe.hops for trial in model.trials_} >= {0, 1}


def test_what_is_repeated_waits_for_memory_too(graph, monkeypatch):
    """Fixed recipes, and those of other splits, are side by side only where they fit."""
    running, most, real = [0], [0], search.run_task

    def counted(shared, task):
        running[0] += 1
        most[0] = max(most[0], running[0])
        try:
            return real(shared, task)
        finally:
            running[0] -= 1

    monkeypatch.setattr(search, "run_task", counted)
    recipes = [{"hops": hops, "epochs": 20} for hops in (1, 2, 3)]
    whole = pf.AutoClassifier(recipes=recipes, workers=3).fit(graph)
    assert most == [3]
    monkeypatch.setattr(Pool, "fits", lambda self, recipe, *others: not others)
    most[0] = 0
    alone = pf.AutoClassifier(recipes=recipes, workers=3).fit(graph)
    assert most == [1]
    assert alone.fitted_.raw().tobytes() == whole.fitted_.raw().tobytes()


def test_large_features_fit_where_there_is_memory_for_them():
    n, d = 5_000_000, 100
    x = np.broadcast_to(np.float32(1), (n, d))  # two gigabytes if they were there
    huge = SimpleNamespace(n=n, features=x, adjacency=SimpleNamespace(nnz=n), directed=False, edge_kinds=())
    near = Recipe("none", hops=1, regime="homophily", head="boosting")
    for gigabytes, fits in ((2, (True, False, False)), (4, (True, True, False)), (64, (True, True, True))):
        pool = Pool(huge, None, 1, large=True, max_memory=gigabytes * 1e9)
        constant, alone = near.changed(head="constant", hops=0), near.changed(hops=0)
        assert tuple(map(pool.fits, (constant, alone, near))) == fits


def trial_of(recipe, place, seed=0, held=True):
    output = np.zeros((2, 2), np.float32) if held else None
    return Trial(Recipe.of(recipe), 0.5, 0.5, 1, 1.0, output, output, 0.5, seed, place=place)


def test_what_cannot_be_chosen_comes_last_and_takes_its_repetitions_with_it(graph):
    """A plan lists what could be chosen; the second of equal recipes has the second seed when it is repeated."""
    found = Search(Pool(graph, None, 1), graph.splits[0], 7, 10.0, 5)
    near, far, other = {"hops": 1}, {"hops": 2}, {"hops": 5}
    found.done = [
        trial_of(far, 4, 7 + search.SEEDS),  # the second of its kind
        trial_of(near, 0, 7),
        trial_of(near, 1, 7 + search.SEEDS, held=False),
        trial_of(near, 2, 7 + 2 * search.SEEDS),
        trial_of(far, 3, 7),
        trial_of(other, 5, 7),
    ]
    found.done[-1].out_of_memory = True
    found.baselines = [Recipe.of(near)]
    trials = found._in_order()
    assert [(one.recipe.hops, one.seed) for one in trials[:3]] == [(1, 7), (2, 7), (2, 7 + search.SEEDS)]
    assert [one.log_probabilities is None for one in trials] == [False] * 3 + [True] * 2
    assert [one.place for one in trials] == [0, 1, 2, 3, 4]
    assert [one.baseline for one in trials] == [True] + [False] * 4


def test_a_plan_that_lacks_a_recipe_is_not_repeated(graph, monkeypatch):
    real = search.run_task

    def short(shared, task):
        if task.recipe.hops == 2:
            raise MemoryError("no room")
        return real(shared, task)

    recipes = [Recipe("none", hops=hops).changed(**QUICK) for hops in (1, 2)]
    plan = Plan(recipes=recipes, splits=2, finalists=[1])
    assert carry_out(graph, plan).finalists == [1]
    monkeypatch.setattr(search, "run_task", short)
    with pytest.raises(MemoryError, match="of 2 recipes of the plan, 1 came to their end"):
        carry_out(graph, plan)


def test_memory_that_runs_out_costs_a_recipe_not_the_search(graph, monkeypatch):
    real = search.run_task

    def short(shared, task):
        if task.recipe.is_boosted or (task.recipe.has_tree and task.split is not graph.splits[0]):
            raise MemoryError("no room")
        return real(shared, task)

    monkeypatch.setattr(search, "run_task", short)
    outcome = carry_out(graph, Plan(budget=3, splits=2, workers=2, pins={"epochs": 5}))
    assert not any(recipe.is_boosted for recipe in outcome.model.ran_)
    assert [trial.place for trial in sorted(outcome.model.trials_, key=lambda t: t.place)] == [
        *range(len(outcome.model.ran_))
    ]
    assert "left out for lack of memory: X alone columns boosted" in outcome.model.reason_
    monkeypatch.setattr(search, "run_task", lambda shared, task: short(shared, task._replace(recipe=boosted)))
    boosted = Recipe("none", hops=0, head="boosting")
    with pytest.raises(MemoryError, match="none of 2 recipes fits into the memory that a search may take"):
        pf.AutoClassifier(recipes=[{"hops": 1}, {"hops": 2}]).fit(graph)


def test_memory_is_named_or_follows_from_the_machine():
    assert search_memory("2GB") == 2e9
    assert 0 < search_memory(None) <= 4e9
    with pytest.raises(ValueError, match="max_memory is an amount of bytes"):
        pf.AutoClassifier(max_memory="much").fit(pf.datasets.synthetic(0.2, n=100, n_edges=300, n_features=3))


def test_a_search_that_could_not_end_does_not_begin(graph, monkeypatch):
    monkeypatch.setattr("pegfan.auto.classifier.free_memory", lambda: 3 * 10**8)
    with pytest.raises(MemoryError, match="A search needs 400 MB, and 300 MB are free"):
        pf.AutoClassifier(budget=1).fit(graph)


def test_what_a_training_made_goes_with_it():
    """No cycle holds channels, hop matrices or trees of a training that nobody asks for any more."""
    graph = pf.datasets.synthetic(0.2, n=300, n_edges=900, n_features=5)
    pool = Pool(graph, FeatureScale.of(graph.features), 1)
    recipes = [*baseline_recipes(graph, graph.subgraph(graph.splits[0].train)), Recipe("none", labels=True)]
    gc.collect()
    gc.disable()
    there = {id(thing) for thing in gc.get_objects()}  # of other tests
    try:
        for recipe in recipes:
            shared = pool.shared._replace(kept=None)
            task = Task(recipe if recipe.is_linear else recipe.changed(epochs=2), graph.splits[0], 0, pool.tree(recipe))
            run_task(shared, task)
            operators = (thing for thing in gc.get_objects() if issubclass(type(thing), Operator))
            left = {type(thing).__name__ for thing in operators if id(thing) not in there}
            assert not left, recipe.name
    finally:
        gc.enable()
