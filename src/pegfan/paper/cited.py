"""The rows of Table III that the paper cites, run here: the settings they get, and what their figures rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pegfan.experiments.jobs import Job
from pegfan.experiments.records import agreeing, disagreement
from pegfan.paper import published
from pegfan.paper.cells import NO_NUMBERS, SPLITS, Records, Score, mark_of, sign_of, verdict
from pegfan.paper.documents import MISSING, Grid, Mark, Rows
from pegfan.paper.published import DATASETS, Published
from pegfan.paper.rivals import POINTS, RIVALS, SEARCH_SPLITS, Variant, candidates, rival_job, variants

__all__ = ["BAR", "TOTAL", "Cited", "Way", "best_on_validation"]

BAR = 40
"""What the project asks of itself: cells that agree, or rest on a point that a run shows."""
TOTAL = sum(value is not None for row in published.CITED.values() for value in row.values())
LABELS = {network: label for label, network in RIVALS.items()}
BEST_ON_TEST = Variant(
    "best on test", "the best of three embeddings on test, which the cited row has, in place of the best on validation"
)
TABLE, OTHERWISE = "III, cited systems", "III, cited systems otherwise"
"""What the table of a cell is called: of the rows, and of their other ways."""

Key = tuple[str, str]
"""A data set and a network."""


class Way(NamedTuple):
    """Another way to run a cell, and what it gave: nothing yet, or a score that agrees with the cited figure or not."""

    variant: Variant
    score: Score | None
    agrees: bool


def best_on_validation(records: Records, rows: Sequence[Sequence[Job]]) -> int | None:
    """Which of several settings, each with its runs, has the highest mean validation metric; the first of equals.

    None before all have run. Test metrics are not looked at; a run that diverged counts as the worst.
    """
    agreed = agreeing(records, [job for row in rows for job in row])
    if agreed is None:
        return None
    metrics = np.array([-np.inf if record.val_metric is None else record.val_metric for record in agreed])
    return int(metrics.reshape(len(rows), -1).mean(axis=1).argmax())


@dataclass(frozen=True)
class Cited:
    """Runs and scores of the cited rows.

    Attributes
    ----------
    splits
        Those that a cell is run on.
    relations
        A folder of GEOM-GCN's relation files; None for our own relations.
    """

    splits: range
    relations: Path | None = None

    # ------------------------------------------------------------------------- runs

    def candidates(self, name: str, model: str) -> list[dict[str, Any]]:
        """The settings that a cell may have."""
        return candidates(model, name, self.relations)

    def searched(self, name: str, model: str) -> bool:
        """Whether a cell's settings are of a search, and not published ones."""
        return model != "geom-gcn" and len(self.candidates(name, model)) > 1

    def first(self, name: str, model: str) -> list[list[Job]]:
        """The runs that decide on the settings of a cell, by candidate: on a few splits, if they are searched."""
        splits = self.splits[: SEARCH_SPLITS.get(name, 1)] if self.searched(name, model) else self.splits
        return [[rival_job(name, one, split) for split in splits] for one in self.candidates(name, model)]

    def settings(self, records: Records, name: str, model: str) -> dict[str, Any] | None:
        """The settings of a cell: the only ones, or the best on validation; None before that is known."""
        every = self.candidates(name, model)
        place = 0 if len(every) == 1 else best_on_validation(records, self.first(name, model))
        return None if place is None else every[place]

    def cell(self, records: Records, name: str, model: str) -> list[Job]:
        """The runs of a cell; none before its settings are known."""
        settings = self.settings(records, name, model)
        return [] if settings is None else [rival_job(name, settings, split) for split in self.splits]

    def score(self, records: Records, name: str, model: str) -> Score | None:
        """A cell's score once all its splits have run."""
        how = "search" if self.searched(name, model) else "published"
        about = {"candidates": len(self.candidates(name, model)), "chosen": how}
        return Score.of(records, self.cell(records, name, model), about)

    def otherwise(
        self, records: Records, name: str, model: str, score: Score | None
    ) -> list[tuple[Variant, list[Job]]]:
        """The other ways to run a cell, where its score differs from the cited figure; none elsewhere.

        GEOM-GCN's are with the embedding that is the best on test, as its cited figure is.
        """
        printed = published.CITED[LABELS[model]][name]
        if printed is None or score is None or score.runs < SPLITS or verdict(score.mean, printed)[0]:
            return []
        settings = self._on_test(records, name) if model == "geom-gcn" else self.settings(records, name, model)
        return [
            (way, [rival_job(name, {**(settings or {}), **way.changes}, split, way.sizes) for split in self.splits])
            for way in variants(model, name)
        ]

    def _on_test(self, records: Records, name: str) -> dict[str, Any]:
        """The settings of GEOM-GCN's best embedding on test, all of which have run."""
        every = self.candidates(name, "geom-gcn")
        scores = [Score.of(records, row) for row in self.first(name, "geom-gcn")]
        return every[int(np.argmax([-np.inf if score is None else score.mean for score in scores]))]

    def ways(self, records: Records, name: str, model: str, score: Score | None) -> list[Way]:
        """The other ways of a cell that differs, with their scores."""
        printed = published.CITED[LABELS[model]][name]
        scores = [(way, Score.of(records, jobs)) for way, jobs in self.otherwise(records, name, model, score)]
        if scores and model == "geom-gcn" and len(self.candidates(name, model)) > 1:
            best = self._on_test(records, name)
            scores.insert(0, (BEST_ON_TEST, Score.of(records, [rival_job(name, best, i) for i in self.splits])))
        return [
            Way(way, score, score is not None and printed is not None and verdict(score.mean, printed)[0])
            for way, score in scores
        ]

    # ------------------------------------------------------------------------ cells

    def about(self, records: Records, name: str, model: str, score: Score | None) -> dict[str, Any]:
        """Everything about a cell with this score."""
        label = LABELS[model]
        printed, rerun = published.CITED[label][name], published.RERUNS.get(label, {}).get(name)
        cell: dict[str, Any] = {
            "table": TABLE,
            "set": name,
            "row": model,
            "label": label,
            "used": model,
            **(score.numbers if score else NO_NUMBERS),
            "paper": printed and printed.mean,
            "paper_std": printed and printed.std,
            "rerun": rerun and rerun.mean,
            "tolerance": printed and verdict(printed.mean, printed)[1],
            "verdict": "not computed",
            "rests_on": None,
            "explanation": self._gap(records, name, model) if score is None else None,
        }
        if score is None:
            return cell
        cell |= score.details
        if model == "geom-gcn":
            file = score.details["settings"].get("relation_file")
            cell["relations"] = f"{file[0]} (sha256 {file[1][:12]})" if file else "own"
        if score.runs < SPLITS:
            cell["verdict"] = "too few splits for a verdict"
        elif printed is None:
            cell["verdict"] = "nothing cited"
        elif verdict(score.mean, printed)[0]:
            cell["verdict"] = "agrees"
        else:
            ways = self.ways(records, name, model, score)
            cell |= _judge(score, rerun, ways)
            cell["ways"] = [
                {"name": way.variant.name, **(way.score.numbers if way.score else NO_NUMBERS), "agrees": way.agrees}
                for way in ways
            ]
        return cell

    def extras(self, records: Records, name: str, model: str, score: Score | None) -> list[dict[str, Any]]:
        """The other ways of a cell with this score, as cells of their own."""
        head = {"table": OTHERWISE, "set": name, "row": model, "label": LABELS[model], "used": model}
        return [
            {**head, "variant": way.name, **found.numbers, **found.details}
            for way, jobs in self.otherwise(records, name, model, score)
            if (found := Score.of(records, jobs))
        ]

    def _gap(self, records: Records, name: str, model: str) -> str | None:
        """Why a cell is missing, if not because its runs are."""
        jobs = self.cell(records, name, model)
        if not jobs:
            return None
        lost = sum(record.test_metric is None for record in agreeing(records, jobs) or [])
        return f"{lost} of {len(jobs)} runs diverged" if lost else disagreement(records, jobs)


def _judge(score: Score, rerun: Published | None, ways: Sequence[Way]) -> dict[str, Any]:
    """What to say of a cell that differs: on what its cited figure rests, as far as runs show it."""
    tried = [_way_words(way) for way in ways]
    by_rerun = rerun is not None and verdict(score.mean, rerun)[0]
    if rerun is not None:
        tried.append(f"another group's rerun has {_printed(rerun)}, with which ours {_agrees(by_rerun)}")
    shown = next((way.variant.words for way in ways if way.agrees and way.variant.shows), None)
    word = "rests on" if shown else "agrees with a rerun" if by_rerun else "differs"
    return {"verdict": word, "rests_on": shown, "explanation": "; ".join(tried) or "not explained"}


def _way_words(way: Way) -> str:
    ran = f"{way.score.text}, which {_agrees(way.agrees)}" if way.score else "not run yet"
    return f"{way.variant.name}: {ran}"


def _agrees(yes: bool) -> str:
    return "agrees" if yes else "differs"


def _printed(value: Published) -> str:
    return f"{value.mean:.2f}" + ("" if value.std is None else f"±{value.std:.2f}")


# --------------------------------------------------------------------------- the page

_SIGNS = {"agrees": " ✓", "rests on": " (✓)", "agrees with a rerun": " ≈", "differs": " ✗"}


def own_mark(score: Score | None) -> Mark:
    """A cell of the main grid; § where the settings are of a search."""
    mark = mark_of(score)
    if score is None or score.details["chosen"] != "search":
        return mark
    return Mark(f"{score.text}§{score.sign}", mark.styles, mark.tip)


def comparison(cells: Sequence[Mapping[str, Any]]) -> Grid:
    """Cited figures beside ours."""
    rows: Rows = [
        [f"{label} †", *(_compared(cell) for cell in cells if cell["row"] == network)]
        for label, network in RIVALS.items()
    ]
    return Grid(
        "Cited and ours: ours / cited † (/ another group's rerun). ✓ within one point or two standard errors (the "
        "cited std/√10), whichever is larger; (✓) outside, but a run of ours in another way agrees, and shows on what "
        "the cited figure rests; ≈ outside, but ours agrees with the rerun; ✗ neither. † cited from other papers. "
        f"Reruns: {published.RERUNS_BY}.",
        ["", *(name.capitalize() for name in DATASETS)],
        rows,
    )


def _compared(cell: Mapping[str, Any]) -> Mark:
    cited = MISSING if cell["paper"] is None else f"{cell['paper']:.2f}"
    rerun = "" if cell["rerun"] is None else f" / {cell['rerun']:.2f}"
    if cell["ours"] is None:
        return Mark(f"{MISSING} / {cited}{rerun}", ("missing",))
    sign = _SIGNS.get(cell["verdict"], "")
    style = "differs" if cell["verdict"] in ("differs", "agrees with a rerun") else "agrees"
    return Mark(f"{cell['ours']:.2f}{sign_of(cell)} / {cited}{rerun}{sign}", (style,), cell["explanation"] or "")


def sums(cells: Sequence[Mapping[str, Any]], summary: dict[str, Any]) -> list[str]:
    """How many cited figures agree, or rest on a point that a run shows; in the summary, too."""
    judged = [cell for cell in cells if cell["paper"] is not None]
    count = {word: sum(cell["verdict"] == word for cell in judged) for word in _SIGNS}
    missing = len(judged) - sum(count.values())
    good = count["agrees"] + count["rests on"]
    summary["cited"] = {
        "agree": count["agrees"],
        "rest on a point": count["rests on"],
        "agree with a rerun": count["agrees with a rerun"],
        "of": TOTAL,
        "without verdict": missing,
        "bar": BAR,
    }
    awaited = sum(cell["verdict"] != "rests on" and _awaits(cell) for cell in judged)
    met = "met" if good >= BAR else "not decided yet" if good + missing + awaited >= BAR else "not met"
    return [
        f"- Cited systems: {count['agrees']} of {TOTAL} cells agree, {count['rests on']} rest on a point that a run "
        f"shows; {count['agrees with a rerun']} more agree with another group's rerun only"
        + (f", {missing} are without a verdict" if missing else "")
        + (f", {awaited} await runs in other ways" if awaited else "")
        + f". The bar is {BAR} that agree or rest on a point: {met}."
    ]


def _awaits(cell: Mapping[str, Any]) -> bool:
    """Whether another way to run a cell that differs has not been run yet."""
    return any(way["ours"] is None for way in cell.get("ways", ()))


def notes(cells: Sequence[Mapping[str, Any]], relations: bool) -> list[str]:
    """What is known of the cited figures, and of each cell that differs from its own."""
    known = [f"- {label}: {words}." for label, words in POINTS.items()]
    if any(cell["row"] == "geom-gcn" and cell.get("relations") == "own" for cell in cells):
        which = "Squirrel, for which there is no public file" if relations else "all sets: no folder was given"
        known.append(f"- Geom-GCN has our own relations on {which}.")
    text = ["What the cited figures are:", *known]
    items = [
        f"- {cell['set']}, {cell['label']}: {cell['ours']:.2f}, cited {cell['paper']:.2f} "
        f"({cell['ours'] - cell['paper']:+.2f}, allowed {cell['tolerance']:.2f})"
        + (f", rests on: {cell['rests_on']}" if cell["rests_on"] else "")
        + f". {cell['explanation'][0].upper()}{cell['explanation'][1:]}."
        for cell in cells
        if cell["verdict"] in ("rests on", "agrees with a rerun", "differs")
    ]
    gaps = [f"- {cell['set']}, {cell['label']}: {cell['explanation']}." for cell in cells if _has_gap(cell)]
    text += ["Cells that differ from the cited figure, and all that was run of them:", *items] if items else []
    return text + (["Cited systems' cells without a score:", *gaps] if gaps else [])


def _has_gap(cell: Mapping[str, Any]) -> bool:
    return cell["ours"] is None and cell["explanation"] is not None
