"""The table of metrics beside scikit-learn's, the metric that suits some classes, and intervals that hold."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn import metrics as other

import pegfan as pf
from pegfan.metrics import METRICS, amount, interval, score, suitable, unequal

OF_CLASSES = [name for name, metric in METRICS.items() if not metric.numbers]
OF_NUMBERS = [name for name, metric in METRICS.items() if metric.numbers]


@st.composite
def judged(draw, classes=None):
    """Outputs (ties among them) and labels of some nodes."""
    k = draw(st.integers(2, 4)) if classes is None else classes
    n = draw(st.integers(2, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    digits = draw(st.sampled_from([0, 1, 6]))
    return np.round(rng.normal(size=(n, k)), digits), rng.integers(k, size=n)


def recalls(labels, output):
    return other.recall_score(labels, output.argmax(1), average=None, labels=np.unique(labels), zero_division=0)


def loss(labels, output):
    p = np.exp(output) / np.exp(output).sum(axis=1, keepdims=True)
    return other.log_loss(labels, p, labels=np.arange(p.shape[1]))


def gaps(output):
    return output[:, 1] - output[:, 0]


TWINS = {
    "accuracy": lambda y, output: other.accuracy_score(y, output.argmax(1)),
    "roc_auc": lambda y, output: other.roc_auc_score(y, gaps(output)) if len(set(y.tolist())) == 2 else np.nan,
    "balanced_accuracy": lambda y, output: recalls(y, output).mean(),
    "macro_f1": lambda y, output: other.f1_score(y, output.argmax(1), average="macro", zero_division=0),
    "average_precision": lambda y, output: other.average_precision_score(y, gaps(output)) if y.any() else np.nan,
    "log_loss": loss,
    "r2": other.r2_score,
    "mae": other.mean_absolute_error,
}
"""Every metric once more, of the truth and of outputs."""


def test_every_metric_has_a_twin():
    assert TWINS.keys() == METRICS.keys()


@given(st.data(), st.sampled_from(OF_CLASSES))
def test_metrics_of_classes_are_their_twins(data, name):
    output, labels = data.draw(judged(2 if METRICS[name].two_classes else None))
    assert score(output, labels, name) == pytest.approx(TWINS[name](labels, output), nan_ok=True)


@given(st.data(), st.sampled_from([name for name in OF_CLASSES if METRICS[name].decides]))
def test_metrics_of_decisions_have_their_values_at_every_threshold(data, name):
    output, labels = data.draw(judged(2))
    assume(len(set(labels.tolist())) == 2)
    order = np.argsort(-gaps(output), kind="stable")
    hits, misses = np.cumsum(labels[order] == 1), np.cumsum(labels[order] == 0)
    values = METRICS[name].cells.at_thresholds(hits, misses)
    for count in range(1, len(labels) + 1):
        decided = np.zeros((len(labels), 2))
        decided[:, 0], decided[order[:count], 1] = 0.5, 1.0
        assert values[count - 1] == pytest.approx(score(decided, labels, name))


def test_roc_auc_is_of_outputs_as_they_come_for_stored_runs_are():
    output, labels = np.float32([[0, 1], [1e-9, 1]]), np.array([1, 0])  # a tie in single precision only
    assert score(output, labels, "roc_auc") == 0.5
    assert score(output.astype(np.float64), labels, "roc_auc") == score(output, labels, "average_precision") == 1.0


@given(judged(classes=2), st.sampled_from(OF_CLASSES))
def test_cells_give_the_value_and_do_not_depend_on_the_order(given_, name):
    output, labels = given_
    cells = METRICS[name].cells(output, labels)
    value = cells.value(cells.counts[None])[0]
    assert value == pytest.approx(score(output, labels, name), nan_ok=True)
    assert cells.counts.sum() == len(labels)
    twice = cells.value(2 * cells.counts[None])[0]
    assert twice == pytest.approx(value, nan_ok=True), "as shares, twice as many are the same"
    order = np.random.default_rng(0).permutation(len(labels))
    for a, b in zip(cells[:2], METRICS[name].cells(output[order], labels[order])[:2], strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("name", OF_CLASSES)
def test_every_metric_speaks_for_itself(name):
    metric = METRICS[name]
    assert (metric.name, bool(metric.words), bool(metric.says)) == (name, True, True)
    good, bad = np.log([[0.9, 0.1], [0.1, 0.9]]), np.log([[0.1, 0.9], [0.9, 0.1]])
    truth = np.array([0, 1])
    assert metric.gain(score(good, truth, name)) > metric.gain(score(bad, truth, name))
    assert np.isnan(score(good[:0], truth[:0], name))
    assert pf.Graph.from_edges([[0, 1]], labels=truth, metric=name).metric == name


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.numbers])
def test_numbers_that_are_nearer_gain_more(name):
    truth = np.array([0.0, 1.0, 3.0])
    near, far = (METRICS[name].gain(score(truth + error, truth, name)) for error in (0.1, 0.5))
    assert near > far


def test_a_metric_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="'r2' or 'mae', got 'f1'"):
        pf.Graph.from_edges([[0, 1]], metric="f1")


# ------------------------------------------------------------------ the choice


@pytest.mark.parametrize(
    ("counts", "metric"),
    [
        ([970, 30], "average_precision"),
        ([30, 970], "average_precision"),
        ([200, 800], "accuracy"),
        ([199, 801], "average_precision"),
        ([100, 100, 1000], "accuracy"),
        ([100, 99, 1000], "balanced_accuracy"),
        ([100, 0, 900], "balanced_accuracy"),
    ],
)
def test_the_metric_follows_from_the_sizes_of_classes(counts, metric):
    chosen, why = suitable(counts, list("abc"))
    assert chosen == metric
    assert unequal(counts) == (metric != "accuracy")
    assert ("“" in why) == (metric != "accuracy"), "it names the classes that it is about"


def test_the_positive_class_is_the_rarer_one_or_the_one_asked_for():
    graph = pf.Graph.from_edges([[0, 1], [1, 2], [2, 3]], labels=["bad", "good", None, "good"])
    rare = graph.with_positive()
    assert (rare.classes.tolist(), rare.labels.tolist()) == (["good", "bad"], [1, 0, -1, 0])
    assert rare.with_positive() is rare
    assert graph.with_positive("good") is graph
    numbered = pf.Graph.from_edges([[0, 1], [1, 2]], labels=[0, 1, 1]).with_positive()
    assert (numbered.classes.tolist(), numbered.labels.tolist()) == ([1, 0], [1, 0, 0])
    with pytest.raises(ValueError, match="positive must be one of the classes, 'bad' or 'good', got 'worse'"):
        graph.with_positive("worse")
    with pytest.raises(ValueError, match="one of two, and this graph has 3 classes"):
        graph.replace(labels=[0, 1, 2, 0], class_names=None).with_positive()


# ------------------------------------------------------------------- intervals


def draws(seed, n=300, share=0.2):
    rng = np.random.default_rng(seed)
    labels = (np.arange(n) < share * n).astype(int)  # splits are stratified: classes have the same sizes in all
    gap = rng.normal(size=n) + 1.5 * labels - 1.5
    return np.stack([np.zeros(n), gap], axis=1), labels


@pytest.mark.parametrize("name", OF_CLASSES)
def test_intervals_hold_what_they_claim(name):
    """Of 60 samples, nearly all have an interval that holds the value of a very large one."""
    truth = score(*draws(10**6, 200_000), name)
    found = [interval([draws(seed)], name, resamples=200) for seed in range(60)]
    held = np.mean([low <= truth <= high for low, high in found])
    assert held >= 0.85
    assert all(high - low > 0.01 for low, high in found)


def test_an_interval_does_not_shrink_because_two_splits_agree():
    one, two = draws(0), draws(0)
    low, high = interval([one], "average_precision")
    both = interval([one, two], "average_precision")
    assert both[1] - both[0] > 0.8 * (high - low)
    far = interval([one, draws(1, share=0.5)], "average_precision")
    assert far[1] - far[0] > high - low, "splits that differ make it wider"


def test_intervals_are_the_same_in_any_order_and_absent_where_nothing_is_measured():
    output, labels = draws(3)
    order = np.random.default_rng(1).permutation(len(labels))
    for name in OF_CLASSES:
        assert interval([(output[order], labels[order])], name) == interval([(output, labels)], name)
    assert interval([], "accuracy") is None
    assert interval([(output[:0], labels[:0])], "accuracy") is None
    assert interval([(output[labels == 0], labels[labels == 0])], "average_precision") is None


# --------------------------------------------------------------------- numbers


@given(st.integers(0, 2**31), st.integers(2, 60), st.sampled_from([0.0, 1e6]), st.sampled_from([1.0, 1e-3, 1e4]))
def test_metrics_of_numbers_are_those_of_scikit_learn(seed, n, shift, scale):
    rng = np.random.default_rng(seed)
    truth = shift + scale * rng.normal(size=n)
    output = truth + scale * rng.normal(size=n)
    order = rng.permutation(n)
    for name in OF_NUMBERS:
        assert score(output[:, None], truth, name) == pytest.approx(TWINS[name](truth, output), rel=1e-6, abs=1e-6)
        assert score(output[order], truth[order], name) == score(output, truth, name)
        assert interval([(output[order], truth[order])], name) == interval([(output, truth)], name)


def test_numbers_that_are_all_the_same_have_no_r2():
    truth = np.full(5, 3.25)
    assert np.isnan(score(truth, truth, "r2"))
    assert score(truth + 1, truth, "mae") == 1.0
    assert interval([(truth, truth)], "r2") is None


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_intervals_of_numbers_hold_what_they_claim(name):
    def draw(seed, n):
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=n)
        return truth + 0.5 * rng.normal(size=n), truth

    value = score(*draw(10**6, 200_000), name)
    found = [interval([draw(seed, 300)], name, resamples=200) for seed in range(60)]
    assert np.mean([low <= value <= high for low, high in found]) >= 0.85
    assert all(high - low > 0.01 for low, high in found)


def test_amounts_are_written_in_a_few_digits_and_large_ones_to_the_last():
    assert METRICS["mae"].show(33112.4) == "33,112"
    assert METRICS["r2"].show(-0.00001) == "0.0000"
    assert (amount(0.0), amount(12345.6), amount(-0.5)) == ("0", "12,346", "-0.5")
