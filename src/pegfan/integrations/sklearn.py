"""scikit-learn: nodes of one graph as rows, for cross-validation, searches, pipelines and calibration."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import as_array, shown
from pegfan._extras import need
from pegfan.auto import AutoClassifier
from pegfan.classifier import FSGNNClassifier, NetworkClassifier, NodeClassifier, PEGFANClassifier, as_graph
from pegfan.datasets._table import suggestion
from pegfan.graph import Graph, Split
from pegfan.networks import NETWORKS
from pegfan.splits import draw_splits

_base = need("sklearn.base", "sklearn", "this estimator")
BaseEstimator: Any = _base.BaseEstimator
ClassifierMixin: Any = _base.ClassifierMixin
_validation = need("sklearn.utils.validation", "sklearn", "this estimator")
_multiclass = need("sklearn.utils.multiclass", "sklearn", "this estimator")

__all__ = ["EXPECTED_FAILED_CHECKS", "TransductiveClassifier"]

_OWN: dict[str, Any] = {"pegfan": PEGFANClassifier, "fsgnn": FSGNNClassifier, "auto": AutoClassifier}


class TransductiveClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Nodes of a graph as rows of X: any classifier of this package, for scikit-learn's tools.

    X says which nodes are meant, y has their classes. Learning is transductive: structure and features of *all* nodes
    are seen, of labels only those in y. So whatever cuts X into parts (``cross_val_score``, ``GridSearchCV``,
    ``CalibratedClassifierCV``) hides the labels of the other parts, and nothing else; labels that the graph itself has
    are never looked at. For early stopping, `fit` puts a part of X aside.

    Parameters
    ----------
    graph
        The graph: a `pegfan.Graph`, or what its classifiers take besides. It may instead be given to `fit` as metadata:
        ``TransductiveClassifier().set_fit_request(graph=True)`` with scikit-learn's metadata routing enabled.
    model
        What is fitted: ``"pegfan"``, ``"fsgnn"``, ``"auto"`` or a name of `pegfan.networks.NETWORKS`; or a classifier,
        such as ``pf.PEGFANClassifier(h=4)``. The parameters of a classifier are searched as ``model__h`` and so on; its
        ``random_state`` is the only source of chance.
    validation
        The share of the nodes in X, stratified by class, that decides when training stops.
    class_weight
        ``"balanced"``, or weights by class; multiplied with ``sample_weight``. None: all alike.

    Attributes
    ----------
    classes_ : array
        The classes, sorted.
    model_ : NodeClassifier
        The fitted classifier.
    probabilities_ : array
        Of all nodes of the graph, in the order of ``classes_``.
    n_features_in_ : int
        1: the node.

    Notes
    -----
    X has one column, or is a vector. Integers are places of nodes, 0 to n − 1; texts are ids, as in ``graph.ids``. A
    node that is given twice counts twice, and so does one with the weight 2; a node has one class. A weight of 0 is as
    if the row were not there.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> from pegfan.integrations.sklearn import TransductiveClassifier
    >>> from sklearn.model_selection import cross_val_score
    >>> graph = pf.datasets.synthetic(0.0, n=300, n_edges=3000, n_features=20)
    >>> nodes = np.arange(graph.n)
    >>> model = TransductiveClassifier(graph, pf.FSGNNClassifier(regime="all", epochs=40))
    >>> bool(cross_val_score(model, nodes, graph.labels, cv=2).mean() > 0.5)
    True
    """

    def __init__(
        self,
        graph: Any = None,
        model: str | NodeClassifier = "pegfan",
        *,
        validation: float = 0.25,
        class_weight: Any = None,
    ) -> None:
        self.graph, self.model, self.validation, self.class_weight = graph, model, validation, class_weight

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn may expect."""
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.categorical = tags.input_tags.string = True  # a node is a name, not a quantity
        tags.classifier_tags.poor_score = True  # of the checks' own data, which know nothing of the graph
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, graph: Any = None) -> Self:
        """Learn from nodes with known classes.

        Parameters
        ----------
        X
            Nodes: a column or a vector, see the notes of the class.
        y
            Their classes.
        sample_weight
            Per row of X, how much it counts in the losses of training and of early stopping.
        graph
            In place of the graph that was given at construction.

        Returns
        -------
        self
        """
        if y is None:
            raise ValueError("This TransductiveClassifier requires y to be passed, but the target y is None")
        target = _validation.column_or_1d(y, warn=True)
        _multiclass.check_classification_targets(target)
        _validation.assert_all_finite(target, input_name="y")
        rows, known = self._rows(X, fitting=True), self._known(graph)
        _validation.check_consistent_length(rows, target)
        nodes = _places(rows, known)
        self.classes_, codes = np.unique(target, return_inverse=True)
        given = _validation._check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
        weights = given * _class_weights(self.class_weight, self.classes_, codes, given)
        labels, per_node = _per_node(nodes, codes, weights, known, self.classes_)
        learnt = _to_learn(known, labels, len(self.classes_))
        model = _made(self.model)
        split = self._split(learnt, labels, model)
        uniform = len(np.unique(per_node[labels >= 0])) == 1
        self.model_ = model.fit(learnt, split, sample_weight=None if uniform else per_node)
        self.probabilities_ = self.model_.predict_proba(learnt)
        return self

    def predict(self, X: Any, graph: Any = None) -> NDArray[Any]:
        """The most probable class of each node.

        Parameters
        ----------
        X
            Nodes, as in `fit`; any of the graph.
        graph
            Another graph, such as this one with new nodes; by default the one that was fitted.
        """
        best = self.predict_proba(X, graph).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any, graph: Any = None) -> FloatArray:
        """The probabilities of the classes, in the order of ``classes_``; one row per row of X.

        Parameters
        ----------
        X, graph
            As in `predict`.
        """
        _validation.check_is_fitted(self)
        rows = self._rows(X, fitting=False)
        found, known = self.probabilities_, self.model_.fitted_.graph
        if graph is not None:
            known = as_graph(graph)
            found = self.model_.predict_proba(known)
        assert known is not None
        chosen = found[_places(rows, known)].astype(np.float64)
        return np.asarray(chosen / chosen.sum(axis=1, keepdims=True))

    def _known(self, graph: Any) -> Graph:
        given = self.graph if graph is None else graph
        if given is None:
            raise ValueError(
                "there is no graph: give it at construction, TransductiveClassifier(graph), or to fit as "
                "fit(X, y, graph=graph)"
            )
        return as_graph(given)

    def _rows(self, X: Any, fitting: bool) -> NDArray[Any]:
        """X as a vector, whatever it holds."""
        column = X if (hasattr(X, "columns") and hasattr(X, "ndim")) or issparse(X) else as_array(X, "X")
        if column.ndim == 1 and not issparse(column):
            column = column.reshape(-1, 1)
        checked = _validation.validate_data(self, column, dtype=None, reset=fitting)
        if checked.shape[1] != 1:
            raise ValueError(
                f"X has {checked.shape[1]} columns, and it takes one: the nodes, by number or id. Features are those "
                "of the graph"
            )
        return np.asarray(checked[:, 0])

    def _split(self, graph: Graph, labels: IntArray, model: Any) -> Split:
        share = self.validation
        if isinstance(share, bool) or not isinstance(share, (int, float, np.number)) or not 0 < share < 1:
            raise ValueError(f"validation is a share of the nodes, more than 0 and less than 1; got {shown(share)}")
        sizes = (1.0 - float(share), float(share), 0.0)
        options: Any = {"k": 1, "sizes": sizes, "seed": int(model.random_state)}
        split = draw_splits(graph, labels, **options)[0]
        if not len(split.val):  # a node per class, or so
            split = draw_splits(graph, labels, stratify=False, **options)[0]
        if not len(split.train) or not len(split.val):
            raise ValueError(
                f"X has {int((labels >= 0).sum())} sample; fit needs two at least: a node to learn from, one to stop by"
            )
        return split


# ------------------------------------------------------------------ the boundary


def _places(rows: NDArray[Any], graph: Graph) -> IntArray:
    """The places of nodes that are given by number or by id."""
    if rows.dtype.kind in "OUST" and any(isinstance(entry, str) for entry in rows.tolist()):
        place = {str(name): i for i, name in enumerate(graph.ids.tolist())}
        found = [place.get(str(entry), -1) for entry in rows.tolist()]
        missing = next((str(entry) for entry, at in zip(rows.tolist(), found, strict=True) if at < 0), None)
        if missing is not None:
            raise ValueError(
                f"the graph has no node {shown(missing)}; {suggestion(missing, list(place), there='it has')}"
            )
        return np.array(found, np.int64)
    numbers = rows.astype(np.float64) if rows.dtype.kind == "O" else rows
    if numbers.dtype.kind not in "iuf":
        raise ValueError(f"X holds node numbers or ids, got {rows.dtype}")
    if (numbers < 0).any():
        raise ValueError(
            f"Negative values in data passed to TransductiveClassifier: X holds node numbers, and {numbers.min()} is "
            "none; nodes are numbered from 0"
        )
    wrong = (numbers >= graph.n) | (numbers != np.floor(numbers))
    if wrong.any():
        raise ValueError(
            f"X holds node numbers, 0 to {graph.n - 1}, and one of them is {numbers[wrong][0]}; features are those of "
            "the graph, they do not go here"
        )
    return numbers.astype(np.int64)


def _class_weights(wanted: Any, classes: NDArray[Any], codes: IntArray, given: FloatArray) -> FloatArray:
    """The weight of each row by its class; "balanced" gives all classes the same total."""
    if wanted is None:
        return np.ones(len(codes))
    if isinstance(wanted, str):
        if wanted != "balanced":
            raise ValueError(f"class_weight is 'balanced', weights by class, or None; got {shown(wanted)}")
        totals = np.bincount(codes, given, minlength=len(classes))
        by_class = given.sum() / (max((totals > 0).sum(), 1) * np.where(totals > 0, totals, 1.0))
    else:
        unknown = [name for name in wanted if name not in classes.tolist()]
        if unknown:
            raise ValueError(f"class_weight names the class {unknown[0]!r}, which is not in y: {classes.tolist()}")
        by_class = np.array([float(wanted.get(name, 1.0)) for name in classes.tolist()])
        if not (np.isfinite(by_class) & (by_class >= 0)).all():
            raise ValueError(f"class_weight must be finite numbers of at least 0, got {shown(wanted)}")
    return np.asarray(by_class[codes])


def _per_node(
    nodes: IntArray, codes: IntArray, weights: FloatArray, graph: Graph, classes: NDArray[Any]
) -> tuple[IntArray, FloatArray]:
    """Labels of all nodes, −1 where none is given, and their weights; rows of one node add up."""
    counted = weights > 0
    if not counted.any():
        raise ValueError("all weights are 0, by sample_weight or class_weight, so there is nothing to learn from")
    labels = np.full(graph.n, -1, np.int64)
    labels[nodes[counted]] = codes[counted]
    torn = counted & (labels[nodes] != codes)
    if torn.any():
        node = nodes[torn.argmax()]
        one, other = (classes[code : code + 1].tolist()[0] for code in (codes[torn.argmax()], labels[node]))
        raise ValueError(
            f"X has the node {graph.ids[node]} twice, as {shown(one)} and as {shown(other)}; a node has one class"
        )
    return labels, np.bincount(nodes, weights, minlength=graph.n).astype(np.float64)


def _to_learn(graph: Graph, labels: IntArray, classes: int) -> Graph:
    """The graph with these labels and none of its own; classes are named by number, so that none is forgotten."""
    metric = graph.metric if classes == 2 or graph.metric != "roc_auc" else "accuracy"
    names = [str(code) for code in range(classes)]
    return graph.replace(labels=labels, class_names=names, splits=(), metric=metric)


def _made(model: Any) -> Any:
    """A classifier to fit: of a name, or a copy of the one that was given."""
    if isinstance(model, NodeClassifier):
        return type(model)(**model.get_params())
    if isinstance(model, str) and model in _OWN:
        return _OWN[model]()
    if isinstance(model, str) and model in NETWORKS:
        return NetworkClassifier(model)
    raise ValueError(f"model is a classifier of pegfan, or one of {', '.join([*_OWN, *NETWORKS])}; got {shown(model)}")


_FEATURES = "gives rows of features; here X has one column, which nodes of a graph are meant"
_VECTOR = "wants a vector to be refused; here it is taken as the nodes"
EXPECTED_FAILED_CHECKS = {
    "check_fit2d_predict1d": _VECTOR,
    **dict.fromkeys(
        (
            "check_all_zero_sample_weights_error",
            "check_class_weight_classifiers",
            "check_classifier_data_not_an_array",
            "check_classifiers_classes",
            "check_classifiers_one_label",
            "check_classifiers_one_label_sample_weights",
            "check_classifiers_train",
            "check_dict_unchanged",
            "check_dont_overwrite_parameters",
            "check_dtype_object",
            "check_estimators_dtypes",
            "check_estimators_fit_returns_self",
            "check_estimators_nan_inf",
            "check_estimators_overwrite_params",
            "check_estimators_pickle",
            "check_f_contiguous_array_estimator",
            "check_fit2d_1sample",
            "check_fit_check_is_fitted",
            "check_fit_idempotent",
            "check_fit_score_takes_y",
            "check_methods_sample_order_invariance",
            "check_methods_subset_invariance",
            "check_n_features_in",
            "check_n_features_in_after_fitting",
            "check_pipeline_consistency",
            "check_positive_only_tag_during_fit",
            "check_readonly_memmap_input",
            "check_sample_weight_equivalence_on_dense_data",
            "check_sample_weights_list",
            "check_sample_weights_not_an_array",
            "check_sample_weights_not_overwritten",
            "check_sample_weights_pandas_series",
            "check_sample_weights_shape",
            "check_supervised_y_2d",
        ),
        _FEATURES,
    ),
}
"""Checks of scikit-learn that its data make meaningless here, each with the reason.

For ``check_estimator(model, expected_failed_checks=EXPECTED_FAILED_CHECKS)``. The tests run them once more with nodes
in place of the rows; all but those that look at columns or bypass the exchange then pass.
"""
