"""Experiments: training runs as values, a store of their results, search over settings.

Search is in `pegfan.experiments.search`, the paper's tables in `pegfan.paper`.
"""

from pegfan.experiments.jobs import Job, OutOfTime, run, run_job, tree_file
from pegfan.experiments.store import Store

__all__ = ["Job", "OutOfTime", "Store", "run", "run_job", "tree_file"]
