"""Gradient boosting on channels beside LightGBM and scikit-learn's: seconds of one core and log loss, in one run.

    python benchmarks/boosting.py                    20,000 rows of 300 columns, 200 rounds of 8 leaves
    python benchmarks/boosting.py --rows 100000 --columns 64

All three see the same rows, use one thread, at most 255 bins, a learning rate of 0.05, at least 20 rows per leaf and
all columns in every round. The log loss is on as many rows that were not learned from.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from pegfan.channels import Channel, Channels
from pegfan.graph import Split
from pegfan.training import boosting
from pegfan.training.boosting import Boosted, boost


def made(rows: int, columns: int, seed: int = 0) -> tuple[Any, Any]:
    """Rows of numbers, a few of which tell a class by thresholds and products."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2 * rows, columns)).astype(np.float32)
    score = 2.0 * (x[:, 0] > 0.5) - 1.5 * (np.abs(x[:, 1]) < 0.5) + x[:, 2] * x[:, 3] + 0.5 * x[:, 4]
    return x, (score + rng.logistic(size=2 * rows) > 1).astype(np.int64)


def ours(x: Any, y: Any, rounds: int, leaves: int) -> Any:
    """Probabilities of the second half."""
    half = len(y) // 2
    channels = Channels([Channel("X", None, x)])
    split = Split(np.arange(half), np.arange(half), np.empty(0, np.int64))  # no early stop: all rounds are kept
    run = boost(channels, y, split, {"epochs": rounds, "patience": rounds}, leaves=leaves)
    trees = Boosted({**run.state})
    return np.exp(trees.predict(channels, np.arange(half, 2 * half)))[:, 1]


def lightgbm(x: Any, y: Any, rounds: int, leaves: int) -> Any:
    """Likewise."""
    from lightgbm import LGBMClassifier

    half = len(y) // 2
    model = LGBMClassifier(
        n_estimators=rounds, num_leaves=leaves, learning_rate=0.05, reg_lambda=1.0, n_jobs=1, verbose=-1
    )
    return model.fit(x[:half], y[:half]).predict_proba(x[half:])[:, 1]


def sklearn(x: Any, y: Any, rounds: int, leaves: int) -> Any:
    """Likewise."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    half = len(y) // 2
    model = HistGradientBoostingClassifier(
        max_iter=rounds, max_leaf_nodes=leaves, learning_rate=0.05, l2_regularization=1.0, early_stopping=False
    )
    return model.fit(x[:half], y[:half]).predict_proba(x[half:])[:, 1]


def main() -> None:
    """Print a line per implementation."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("rows", 20_000), ("columns", 300), ("rounds", 200), ("leaves", 8)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    boosting.COLUMNS = 1.0
    x, y = made(options.rows, options.columns)
    truth = y[options.rows :]
    ours(x[:400], y[:400], 3, options.leaves)  # compiles
    seconds: dict[str, float] = {}
    with threadpool_limits(1):
        for one in (ours, lightgbm, sklearn):
            start = time.process_time()
            p = np.clip(one(x, y, options.rounds, options.leaves), 1e-9, 1 - 1e-9)
            seconds[one.__name__] = time.process_time() - start
            loss = -float(np.mean(np.where(truth, np.log(p), np.log1p(-p))))
            ratio = seconds[one.__name__] / seconds["ours"]
            print(
                f"{one.__name__:<10} {seconds[one.__name__]:7.2f} s CPU  {ratio:5.2f}x ours  log loss {loss:.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
