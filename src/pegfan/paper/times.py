"""Table IV: how long training takes, over settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from pegfan.experiments.jobs import Job
from pegfan.experiments.records import agreeing, disagreement
from pegfan.experiments.search import Entry, grid
from pegfan.paper import published
from pegfan.paper.cells import (
    SPLITS,
    Options,
    Records,
    Score,
    benchmark_job,
    named,
    sign_of,
    spread,
    state_gaps,
    state_versions,
)
from pegfan.paper.documents import MISSING, Document, Grid, Mark, Rows
from pegfan.paper.published import Model

__all__ = ["Measured", "Table4"]

COUNT = 12
QUICK = (2, 2)
"""Settings and splits of ``--quick``."""
_WARM = 4


@dataclass(frozen=True)
class Measured:
    """Seconds of the splits of each setting, and what the runs were.

    Attributes
    ----------
    cpu, wall
        One number per setting: CPU seconds; and elapsed seconds, the sum of the runs' over the number of runs side by
        side, which is nan where that is not known.
    busy
        The largest ratio of elapsed to CPU seconds: near one if nothing else used the cores.
    channels, epochs
        The number of channels; the mean number of epochs of a run.
    details
        Of every setting.
    """

    cpu: list[float]
    wall: list[float]
    busy: float
    channels: int
    epochs: float
    details: list[dict[str, Any]]


@dataclass(frozen=True)
class Table4:
    """Runs and document of Table IV."""

    options: Options

    @property
    def name(self) -> str:
        """Of the files."""
        trees = "" if self.options.trees is None else "authors-trees"
        return self.options.name("table4", trees, "all" if self.options.every else "")

    @cached_property
    def settings(self) -> list[Entry]:
        """The settings that are timed."""
        every: list[Entry] = [*grid("paper")]
        return every if self.options.every else spread(every, QUICK[0] if self.options.quick else COUNT)

    @cached_property
    def splits(self) -> range:
        """The splits that are run."""
        return range(QUICK[1] if self.options.quick else SPLITS)

    @cached_property
    def rows(self) -> list[tuple[str, Model]]:
        """Data sets and models."""
        names = list(dict.fromkeys(name for name, _ in published.TABLE4))
        kept, rows = named(self.options, names, (model for _, model in published.TABLE4))
        kept = kept or names[: 1 if self.options.quick else None]
        return [(name, model) for name, model in published.TABLE4 if name in kept and (not rows or model.name in rows)]

    def cell(self, name: str, model: Model, settings: Mapping[str, Any]) -> list[Job]:
        """The runs of a setting."""
        return [benchmark_job(name, model, settings, split, self.options.trees) for split in self.splits]

    def runs(self, name: str, model: Model) -> list[Job]:
        """The runs of a row, with all settings."""
        wanted = self.settings if (name, model) in self.rows else []
        return [job for settings in wanted for job in self.cell(name, model, settings)]

    def jobs(self, records: Records) -> Iterator[tuple[str, list[Job]]]:
        """A few epochs first, which compile what there is to compile; then one stage per row."""
        name, model = self.rows[0]
        warm = [{**settings, "epochs": 2} for settings in spread(list(grid("paper")), _WARM)]
        yield "warming up", [self.cell(name, model, settings)[0] for settings in warm]
        for name, model in self.rows:
            yield f"{name}, {model.label}", self.runs(name, model)

    def measured(self, records: Records, name: str, model: Model) -> Measured | None:
        """What the runs of a row took; None until all have run and agree."""
        agreed = agreeing(records, self.runs(name, model))
        if not agreed:
            return None
        chosen = {record.name: [record] for record in agreed}
        scores = [
            Score.of(lambda job: chosen[job.name], self.cell(name, model, settings)) for settings in self.settings
        ]
        details = [score.details for score in scores if score]
        if len(details) < len(scores):
            return None
        return Measured(
            cpu=[detail["seconds"] for detail in details],
            wall=[d["wall"] / _side_by_side(d["workers"]) for d in details],
            busy=max(detail["wall"] / detail["seconds"] for detail in details),
            channels=details[0]["channels"],
            epochs=float(np.mean([detail["epochs"] for detail in details])) / len(self.splits),
            details=details,
        )

    def document(self, records: Records, command: str, notes: Mapping[str, str]) -> Document:
        """Our seconds and the paper's."""
        del notes  # seconds of different machines cannot agree or differ
        title = f"Table IV: training time{' (quick: a part of it)' if self.options.quick else ''}"
        document = Document(self.name, title, command, [self._opening()])
        rows: Rows = []
        gaps: dict[str, str] = {}
        for (name, model), theirs in published.TABLE4.items():
            found = self.measured(records, name, model)
            document.cells.append(self._cell(name, model, found, theirs))
            row = [f"{name}, {model.label}{sign_of(document.cells[-1])}"]
            printed = [f"{theirs.mean:.1f} / {theirs.longest:.1f} / {theirs.shortest:.1f}", str(theirs.channels)]
            if found is None:
                if why := disagreement(records, self.runs(name, model)):
                    gaps[row[0]] = why
                rows.append([*row, *[Mark(MISSING, ("missing",))] * 6, *printed])
                continue
            beside = "/".join(str(n or "?") for n in sorted({n for detail in found.details for n in detail["workers"]}))
            row += [_three(found.cpu), _three(found.wall), beside, f"{found.busy:.2f}", f"{found.epochs:.0f}"]
            rows.append([*row, str(found.channels), *printed])
            document.summary[f"{name} {model.key}"] = {
                "cpu": float(np.mean(found.cpu)),
                "wall": float(np.mean(found.wall)),
                "paper": theirs.mean,
            }
        heads = ["CPU seconds, one core", "elapsed", "side by side", "elapsed / CPU", "epochs per split", "channels"]
        caption = (
            f"Seconds of {_count(len(self.splits))} splits together: average / maximum / minimum over "
            f"{len(self.settings)} settings"
        )
        document.blocks.append(Grid(caption, ["", *heads, "paper: RTX 3090, 108 settings", "paper's channels"], rows))
        document.blocks += state_versions(document.cells, document.summary) + state_gaps(gaps)
        document.blocks.append(
            "The paper's seconds are of another machine, a graphics card, and another program: they are here for "
            "orientation and not to be compared as speed of one method."
        )
        return document

    def _opening(self) -> str:
        chosen = (
            "all 108 settings of the paper's search table"
            if self.options.every
            else f"{len(self.settings)} of the paper's 108 settings, spread over them"
        )
        trees = "our own trees" if self.options.trees is None else "the authors' trees"
        text = (
            f"Training on {_count(len(self.splits))} public splits with {chosen}; dropout 0.5, at most 1500 epochs, "
            f"patience 100; {trees}. CPU seconds are those of the training runs, each on one core, added up; elapsed "
            "seconds are the sum of the runs' elapsed seconds over the number of runs that went side by side. The "
            "largest ratio of a setting's elapsed to CPU seconds, before that division, tells whether the machine was "
            "idle otherwise. Reading the data, building trees and compiling are not counted."
        )
        if self.options.quick:
            left_out = dict.fromkeys(name for name, _ in published.TABLE4 if (name, Model.of("c4")) not in self.rows)
            text += f" Left out: {', '.join([*left_out, 'eight splits'])}."
        return text

    def _cell(self, name: str, model: Model, found: Measured | None, theirs: published.Times) -> dict[str, Any]:
        cell: dict[str, Any] = {
            "table": "IV",
            "set": name,
            "row": model.key,
            "label": model.label,
            "paper_mean": theirs.mean,
            "paper_longest": theirs.longest,
            "paper_shortest": theirs.shortest,
            "paper_channels": theirs.channels,
        }
        if found is None:
            return cell
        keys = [key for detail in found.details for key in detail["keys"]]
        first = found.details[0]
        return cell | {
            "settings": [detail["settings"] for detail in found.details],
            "cpu": found.cpu,
            "wall": found.wall,
            "epochs": [detail["epochs"] for detail in found.details],
            "channels": found.channels,
            "numerics": first["numerics"],
            "tree": first["tree"],
            "splits": first["splits"],
            "seeds": first["seeds"],
            "keys": keys,
            "versions": first["versions"],
            "first": min(detail["first"] for detail in found.details),
            "last": max(detail["last"] for detail in found.details),
        }


def _three(values: Sequence[float]) -> str:
    return f"{np.mean(values):.1f} / {max(values):.1f} / {min(values):.1f}"


def _side_by_side(workers: Sequence[int]) -> float:
    """How many runs went side by side, if that is known and the same for all; nan otherwise."""
    return workers[0] or float("nan") if len(workers) == 1 else float("nan")


def _count(splits: int) -> str:
    return "the ten" if splits == SPLITS else f"{splits} of the ten"
