"""Training runs as values, a store of their results, and search over settings (`pegfan.experiments.search`)."""

from pegfan.experiments.jobs import Job, OutOfTime, run, run_job
from pegfan.experiments.records import Record
from pegfan.experiments.store import Store

__all__ = ["Job", "OutOfTime", "Record", "Store", "run", "run_job"]
