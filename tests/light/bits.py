"""Prints digests of what training and prediction give; the same in every installation on one machine."""

import hashlib
import tempfile

import numpy as np

import pegfan as pf


def digest(*arrays):
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


graph = pf.datasets.synthetic(0.2, n=300, n_edges=2400, n_features=12, splits=2)
for model in (
    pf.PEGFANClassifier(epochs=25, hidden=16),
    pf.FSGNNClassifier(epochs=25, hidden=16, scaling="columns"),
    pf.AutoClassifier(recipes=[{"epochs": 15, "labels": True, "adjacency": True}, {"method": "none", "epochs": 15}]),
):
    model.fit(graph)
    states = [array for member in model.fitted_.members for array in member.run.state.values()]
    with tempfile.TemporaryDirectory() as folder:
        loaded = pf.load_classifier(model.save(f"{folder}/model"))
        assert np.array_equal(loaded.predict_proba(graph), model.predict_proba())
    print(type(model).__name__, digest(*states), digest(model.predict_proba()))
