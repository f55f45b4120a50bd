"""Table III: nine public data sets, and the filtered versions of two of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pegfan.experiments.jobs import Job
from pegfan.experiments.records import Record, disagreement
from pegfan.experiments.search import Rung, grid
from pegfan.paper import cited, published
from pegfan.paper.cells import (
    NO_NUMBERS,
    SPLITS,
    Cells,
    Claims,
    Halving,
    Options,
    Records,
    Score,
    Scores,
    benchmark_job,
    mark_of,
    named,
    sign_of,
    state_claims,
    state_gaps,
    state_versions,
    verdict,
)
from pegfan.paper.cited import Cited
from pegfan.paper.documents import MISSING, Document, Grid, Mark, Rows
from pegfan.paper.published import DATASETS, Model, Published
from pegfan.paper.rivals import RIVALS, SEARCH_SPLITS

__all__ = ["Table3", "verdict"]

BY_SIZE = ("texas", "cornell", "wisconsin", "chameleon", "cora", "citeseer", "squirrel", "actor", "pubmed")
FILTERED = {
    "chameleon-filtered-directed": "chameleon",
    "squirrel-filtered-directed": "squirrel",
    "chameleon-filtered": "chameleon",
    "squirrel-filtered": "squirrel",
}
"""The filtered sets, and the set whose settings they take: as directed as the full sets, and undirected."""
IN_TURN = (*BY_SIZE[:3], *FILTERED, *BY_SIZE[3:])
ON_SX = Model.of("as8")
"""Type a, h = 8 on SX: two cells of the paper are known to be that, so it is run on every set."""
ON_FILTERED = (Model.of("b8"), Model.of("c8"), Model.of("r3"))
QUICK = ("texas", "cornell", "wisconsin", "chameleon")
QUICK_RIVALS = ("gcnii", "gprgnn")
"""Of ``--quick``: the cited systems that have published settings for most sets."""
QUICK_ON_CHAMELEON = tuple(map(Model.of, ("r3", "b8", "c8", "as8")))
SEARCH = (Rung(108, 40, 1), Rung(24, 150, 3), Rung(4, 1500, SPLITS))
"""Of ``--settings search``: the paper's 108 on split 0, the best 24 on three splits, the best 4 in full."""
BAR = {"pegfan": 48, "fsgnn": 30, "average": 77.5}
"""What the project asks of itself: cells that agree, of 54 and of 36; the average of type c, h = 8."""

DUPLICATES = (
    "Many nodes of chameleon and squirrel are duplicates: 1,840 of 2,277 and 4,148 of 5,201 share their out-neighbours "
    "with another node, and duplicates of training nodes are in the test sets. The filtered sets (Platonov et al., "
    "2023) are without them."
)


@dataclass(frozen=True)
class Table3:
    """Runs and document of Table III."""

    options: Options

    @property
    def name(self) -> str:
        """Of the files."""
        trees = "" if self.options.trees is None else "authors-trees"
        return self.options.name("table3", trees, "search" if self.options.settings == "search" else "")

    @cached_property
    def splits(self) -> range:
        """The splits that are run."""
        return range(2 if self.options.quick else SPLITS)

    @cached_property
    def sets(self) -> list[str]:
        """The data sets that are run, small ones first."""
        return self._named[0] or list(QUICK if self.options.quick else IN_TURN)

    def models(self, name: str) -> list[Model]:
        """The rows that are run on a data set."""
        rows = self._named[1]
        every = list(ON_FILTERED if name in FILTERED else published.TABLE3)
        known = (name, Model.of("a8")) in published.CORRIGENDUM
        if name not in FILTERED and (self.options.settings == "authors" or known):
            every.append(ON_SX)
        if rows:
            return [model for model in every if model.name in rows]
        if self.options.quick and name not in (*QUICK[:3], *FILTERED):
            return [model for model in every if model in QUICK_ON_CHAMELEON]
        return every

    def rivals(self, name: str) -> list[str]:
        """The cited systems that are run on a data set, by their networks; none beside our own search."""
        if name in FILTERED:
            return []
        if self._named[1]:
            return [model for model in RIVALS.values() if model in self._named[1]]
        if self.options.settings == "search":
            return []
        if self.options.quick:
            return [model for model in QUICK_RIVALS if not self.cited.searched(name, model)]
        return list(RIVALS.values())

    @cached_property
    def cited(self) -> Cited:
        """The cited systems' runs."""
        return Cited(self.splits, self.options.relations)

    @cached_property
    def _named(self) -> tuple[list[str], list[str]]:
        return named(self.options, IN_TURN, published.TABLE3, RIVALS.values())

    # ------------------------------------------------------------------------- runs

    def jobs(self, records: Records) -> Iterator[tuple[str, list[Job]]]:
        """One stage per data set; with a search one per rung; then those of the cited systems."""
        yield from ((stage, jobs) for stage, jobs in self._own_jobs(records) if jobs)
        yield from ((stage, jobs) for stage, jobs in self._cited_jobs(records) if jobs)

    def _cited_jobs(self, records: Records) -> Iterator[tuple[str, list[Job]]]:
        """By data set: what decides on settings, then the winners; at last, what differing cells may rest on."""
        for name in self.sets:
            first = [self.cited.first(name, model) for model in self.rivals(name)]
            yield f"{name}, cited systems", [job for rows in first for row in rows for job in row]
            cells = [self.cited.cell(records, name, model) for model in self.rivals(name)]
            yield f"{name}, cited systems, winners", [job for jobs in cells for job in jobs]
        for name in self.sets:
            found = {model: self.cited.score(records, name, model) for model in self.rivals(name)}
            ways = [way for cell in found.items() for way in self.cited.otherwise(records, name, *cell)]
            yield f"{name}, what cited figures rest on", [job for _, jobs in ways for job in jobs]

    def _own_jobs(self, records: Records) -> Iterator[tuple[str, list[Job]]]:
        for name in self.sets:
            models = self.models(name)
            if self.options.settings == "authors" or name in FILTERED:
                yield name, [job for model in models for job in self.cell(name, model)]
                if name == "actor" and not self.options.quick:
                    rows = [model for model in published.ACTOR_WITHOUT_NORM if model in models]
                    yield "actor, not normalised", [job for model in rows for job in self.extra(model)]
                continue
            for model in models:
                search = self.search(name, model)
                while (state := search.walk(records)).jobs:
                    yield f"{name}, {model.label}, rung {state.place + 1}", state.jobs
                if state.winner is not None:
                    yield f"{name}, {model.label}, winner", self.cell(name, model, state.winner)

    def cell(self, name: str, model: Model, settings: Mapping[str, Any] | None = None) -> list[Job]:
        """The runs of a cell, by default with the authors' settings."""
        like = FILTERED.get(name)
        settings = settings or authors_settings(like or name, model)
        folder = None if like else self.options.trees
        return [benchmark_job(name, model, settings, split, folder, like) for split in self.splits]

    def extra(self, model: Model) -> list[Job]:
        """FSGNN on Actor without row normalisation, which the paper leaves out."""
        settings = published.ACTOR_WITHOUT_NORM[model][0]
        return [benchmark_job("actor", model, settings, split, None) for split in self.splits]

    def search(self, name: str, model: Model) -> Halving:
        """The search for a cell's settings."""
        trees = self.options.trees
        job = lambda settings, split: benchmark_job(name, model, settings, split, trees)  # noqa: E731
        return Halving(job, grid("paper"), self._rungs())

    def runs(self, records: Records, name: str, model: Model) -> tuple[list[Job], dict[str, Any]]:
        """The runs of a cell, none before a search has its winner; and what there is to say of the search."""
        if self.options.settings == "authors" or name in FILTERED:
            return self.cell(name, model), {}
        found = self.search(name, model).walk(records)
        jobs = self.cell(name, model, found.winner) if found.winner else []
        return jobs, {"search_numerics": found.numerics}

    def score(self, records: Records, name: str, model: Model) -> Score | None:
        """A cell's score once all its splits have run."""
        return Score.of(records, *self.runs(records, name, model))

    def gaps(self, records: Records, scores: Scores) -> dict[tuple[str, Model], str]:
        """Why cells are missing whose runs do not agree."""
        missing = [cell for cell, score in scores.items() if score is None]
        return {cell: why for cell in missing if (why := disagreement(records, self.runs(records, *cell)[0]))}

    # --------------------------------------------------------------------- document

    def document(self, records: Records, command: str, notes: Mapping[str, str]) -> Document:
        """The table, the comparison with the paper, what differs, the corrigendum, the filtered sets."""
        scores = {
            (name, model): self.score(records, name, model)
            for name in DATASETS
            if name in self.sets
            for model in self.models(name)
        }
        gaps = self.gaps(records, scores)
        cells = [self._cell(name, model, scores, notes, gaps) for model in published.TABLE3 for name in DATASETS]
        run = [(name, model) for model in RIVALS.values() for name in DATASETS if name in self.sets]
        rivals = {cell: self.cited.score(records, *cell) for cell in run if cell[1] in self.rivals(cell[0])}
        theirs = [
            self.cited.about(records if (name, model) in rivals else _nothing, name, model, rivals.get((name, model)))
            for model in RIVALS.values()
            for name in DATASETS
        ]
        document = Document(self.name, self._title(), command, cells=cells)
        document.blocks += [self._opening(), *self._statistics(), self._main(scores, rivals)]
        document.blocks += state_versions(cells, document.summary) + _list_gaps(gaps)
        document.blocks += self._sums(cells, scores, document.summary)
        document.blocks += cited.sums(theirs, document.summary) if rivals else []
        document.blocks += self._claims(scores, document.summary)
        document.blocks.append(self._comparison(cells, scores))
        document.blocks += self._differences(cells)
        document.blocks.append(cited.comparison(theirs))
        document.blocks += cited.notes(theirs, self.options.relations is not None) if rivals else []
        document.blocks += self._corrigendum(scores, cells)
        document.blocks += self._unnormalised(records, cells)
        document.blocks += self._filtered(records, scores, cells)
        if rivals:
            cells += theirs
            cells += [one for cell, score in rivals.items() for one in self.cited.extras(records, *cell, score)]
        return document

    def _title(self) -> str:
        trees = "our own trees" if self.options.trees is None else "the authors' trees"
        how = "authors' settings" if self.options.settings == "authors" else "settings by our own search"
        part = " (quick: a part of it)" if self.options.quick else ""
        return f"Table III: nine data sets, {trees}, {how}{part}"

    def _opening(self) -> str:
        splits = len(self.splits)
        text = [
            f"Test accuracy in percent, mean ± standard deviation over the first {splits} of the ten public splits"
            if splits < SPLITS
            else "Test accuracy in percent, mean ± standard deviation over the ten public splits.",
            "Split i is trained with seed 42 + i. Graphs are as directed as in the authors' code; features in rows of "
            "sum one; hops S (heterophily) and S̃ (homophily).",
        ]
        if self.options.quick:
            left_out = [name for name in DATASETS if name not in self.sets]
            large = [name for name in self.sets if name not in QUICK[:3]]
            rows = f"; on {', '.join(large)} all but four rows" if large and not self._named[1] else ""
            text[0] += f". Left out: {', '.join(left_out)}{rows}."
        if self.options.settings == "search":
            text.append(
                "Settings are chosen on validation from the paper's 108 by successive halving: "
                + ", ".join(f"{r.settings} for {r.epochs} epochs on {r.splits} splits" for r in self._rungs())
                + ". The test metric of the winner is the only one that is looked at."
            )
        else:
            text.append(
                "PEGFAN has the settings that the authors' result files name as the best on validation (kept to three "
                "decimals there: 20 of the 54 cells tie, and of those the one with the printed test accuracy is "
                "taken). FSGNN has those that its own authors published, not those of the paper's search, which are "
                "not known."
            )
        if any(self.rivals(name) for name in self.sets):
            text.append(
                "The six systems that the paper cites are run here, too, on the same splits, with the settings that "
                "their authors published; where there are none, § marks those of a search: the best of a few on the "
                f"validation nodes of the first split (of the first three on {', '.join(SEARCH_SPLITS)}), then run on "
                "all. Graphs and features are as in their own public code, but for what is said of them below."
            )
        if self.options.trees is None:
            text.append(
                "Trees are our equivariant ones: Ward on the spectral embedding of what nodes point at; Pubmed at h = "
                "4 has the paper's six clustering steps."
            )
        else:
            text.append(
                "Trees are the authors', recovered from their stored framelets and read from the folder; texas h = 4 "
                "has a root added."
            )
            known = {path.name.split("_h")[0] for h in (4, 8) for path in self.options.trees.glob(f"*_h{h}.npz")}
            missing = [name for name in DATASETS if name in self.sets and name not in known]
            if missing:
                text.append(f"There is none for {', '.join(missing)}: cells marked ° use our own.")
        return " ".join(text)

    def _rungs(self) -> Sequence[Rung]:
        return self.options.rungs or (_quick(SEARCH) if self.options.quick else SEARCH)

    def _counted(self, name: str, model: Model) -> Model:
        """The row that counts in a cell: what the paper used."""
        return published.CORRIGENDUM.get((name, model), model)

    def _cell(
        self, name: str, model: Model, scores: Scores, notes: Mapping[str, str], gaps: Mapping[Any, str]
    ) -> dict[str, Any]:
        """Everything about a cell."""
        used = self._counted(name, model)
        score, printed = scores.get((name, used)), published.TABLE3[model][name]
        own = published.FSGNN_PUBLISHED.get((name, model))
        cell: dict[str, Any] = {
            "table": "III",
            "set": name,
            "row": model.key,
            "label": model.label,
            "used": used.key,
            **(score.numbers if score else NO_NUMBERS),
            "paper": printed.mean,
            "paper_std": printed.std,
            "fsgnn_own": own,
            "tolerance": verdict(printed.mean, printed)[1],
            "verdict": "not computed",
            "explanation": gaps.get((name, used)),
        }
        if score is None:
            return cell
        agrees, _ = verdict(score.mean, printed)
        by_own = own is not None and verdict(score.mean, Published(own, printed.std))[0]
        cell["verdict"] = "agrees" if agrees else "agrees with FSGNN's own figure" if by_own else "differs"
        if score.runs < SPLITS:
            cell["verdict"] = "too few splits for a verdict"
        elif cell["verdict"] == "differs":
            remark = published.REMARKS.get((name, model))
            found = notes.get(f"{name} {model.key}") or _by_projecting_sx(model, scores.get((name, ON_SX)), printed)
            cell["explanation"] = found or (remark and f"perhaps: {remark}") or "not explained"
        return cell | score.details

    def _main(self, scores: Scores, rivals: Mapping[tuple[str, str], Score | None]) -> Grid:
        """The table as the paper prints it, with our numbers alone."""
        rows: list[tuple[str, dict[str, float], list[Mark], str]] = []
        for label, network in RIVALS.items():
            found = {name: score for (name, model), score in rivals.items() if model == network}
            marks = [cited.own_mark(found.get(name)) for name in DATASETS]
            rows += [(label, {n: s.mean for n, s in found.items() if s}, marks, label)] if found else []
        for model in published.TABLE3:
            found = {name: scores.get((name, self._counted(name, model))) for name in DATASETS}
            marks = [self._own_mark(name, model, found[name]) for name in DATASETS]
            rows.append((model.label, {n: s.mean for n, s in found.items() if s}, marks, model.key))
        averages = {key: float(np.mean(list(v.values()))) for _, v, _, key in rows if len(v) == len(DATASETS)}
        complete = all(model.key in averages for model in published.TABLE3)
        ranking = sorted(averages, key=lambda key: -averages[key]) if complete else []
        ours = [values for _, values, _, key in rows if key not in RIVALS]
        columns = {  # marks wait for the whole column
            name: [values[name] for _, values, _, _ in rows if name in values]
            for name in DATASETS
            if all(name in values for values in ours)
        }
        grid: Rows = []
        for label, values, marks, key in rows:
            places = [_place(values.get(name), columns.get(name, ())) for name in DATASETS]
            styled = [replace(mark, styles=mark.styles + place) for mark, place in zip(marks, places, strict=True)]
            older = sorted({mark.text[-1] for mark in marks if "old" in mark.styles})
            average = f"{averages[key]:.2f}{''.join(older)}" if key in averages else MISSING
            rank = ranking.index(key) + 1 if key in ranking else 0
            style = {1: ("best",), 2: ("second",)}.get(rank, ())
            theirs = published.TABLE3_AVERAGE.get(key)
            printed = f"{theirs[0]:.2f} ({theirs[1]})" if theirs else MISSING
            grid.append([label, *styled, Mark(average, style), Mark(str(rank or MISSING), style), printed])
        return Grid(
            "All rows are ours, run here; what the paper cites from other papers stands apart, further down. Best in "
            "bold, second best in italics (blue on the HTML page); ranks are among the rows that have all nine sets. "
            "‡ projects SX, as the corrigendum says that the paper did. ° our own tree. § settings of our own search.",
            ["", *(name.capitalize() for name in DATASETS), "Avg.", "Rank", "paper's avg. (rank)"],
            grid,
        )

    def _own_mark(self, name: str, model: Model, score: Score | None) -> Mark:
        mark = mark_of(score)
        if score is None:
            return mark
        sign = "‡" if self._counted(name, model) != model else ""
        return replace(mark, text=score.text + sign + self._own_sign(score) + score.sign)

    def _own_sign(self, score: Score | None) -> str:
        """Of cells with our own tree where the others have the folder's."""
        return "°" if self.options.trees is not None and score and score.own_tree else ""

    def _comparison(self, cells: Cells, scores: Scores) -> Grid:
        def mark(cell: Mapping[str, Any], model: Model) -> Mark:
            return _compared(cell, self._own_sign(scores.get((cell["set"], self._counted(cell["set"], model)))))

        rows: Rows = [
            [model.label, *(mark(cell, model) for cell in cells if cell["row"] == model.key)]
            for model in published.TABLE3
        ]
        return Grid(
            "Ours / the paper's (/ FSGNN's own published figure). ✓ within one point or two standard errors (the "
            "paper's std/√10), whichever is larger; (✓) so with FSGNN's own figure only; ✗ outside.",
            ["", *(name.capitalize() for name in DATASETS)],
            rows,
        )

    def _sums(self, cells: Cells, scores: Scores, summary: dict[str, Any]) -> list[str]:
        text = []
        for family, total in (("pegfan", 54), ("fsgnn", 36)):
            own = [cell for cell in cells if (Model.of(cell["row"]).kind is None) == (family == "fsgnn")]
            good = sum(cell["verdict"].startswith("agrees") for cell in own)
            missing = sum(cell["verdict"] in ("not computed", "too few splits for a verdict") for cell in own)
            exact = sum(cell["verdict"] == "agrees" for cell in own)
            summary[family] = {"agree": good, "of": total, "without verdict": missing, "bar": BAR[family]}
            sentence = f"- {family.upper()}: {good} of {total} cells agree"
            if family == "fsgnn":
                sentence += f" with the paper or with FSGNN's own figure ({exact} with the paper)"
            sentence += f", {missing} without a verdict" if missing else ""
            if self.options.trees is not None or family == "fsgnn":  # other trees may well give other numbers
                sentence += f". The bar is {BAR[family]}: {_met(good, missing, BAR[family])}"
            text.append(f"{sentence}.")
        found = [score.mean for name in DATASETS if (score := scores.get((name, Model.of("c8"))))]
        complete = len(found) == len(DATASETS) and not self.options.quick
        average = float(np.mean(found)) if complete else None
        summary["average of c8"] = {"ours": average, "paper": published.TABLE3_AVERAGE["c8"][0], "bar": BAR["average"]}
        if average is None:
            text.append(f"- Average of type c, h = 8 over nine sets: {len(found)} of them so far.")
        else:
            ours = [name.capitalize() for name in DATASETS if self._own_sign(scores.get((name, Model.of("c8"))))]
            beside = f" ({', '.join(ours)} with our tree)" if ours else ""
            text.append(
                f"- Average of type c, h = 8 over nine sets{beside}: {average:.2f}; the paper has "
                f"{published.TABLE3_AVERAGE['c8'][0]:.2f}. The bar is {BAR['average']}: "
                f"{_met(average, 0, BAR['average'])}."
            )
        return text

    def _claims(self, scores: Scores, summary: dict[str, Any]) -> list[str]:
        """The paper's claims about the table, each with the numbers that decide it; none before all cells are there."""
        ours = {
            model: {name: score.mean for name in DATASETS if (score := scores.get((name, self._counted(name, model))))}
            for model in published.TABLE3
        }
        if self.options.quick or any(len(row) < len(DATASETS) for row in ours.values()):
            return []
        means = {model: np.mean(list(row.values())) for model, row in ours.items()}
        best, second, *_ = sorted(means, key=lambda model: -means[model])
        c8 = Model.of("c8")
        other = f"then {second.label}" if best == c8 else f"type c, h = 8 {means[c8]:.2f}"
        numbers = f"{best.label} has {means[best]:.2f}, {other}"
        claims: Claims = {"type c, h = 8 has the best average": (best == c8, numbers)}
        for name in ("chameleon", "squirrel"):
            top = max(ours, key=lambda model: ours[model][name])
            rival = max((model for model in ours if model.kind is None), key=lambda model: ours[model][name])
            numbers = f"{top.label} {ours[top][name]:.2f}, the best of FSGNN {ours[rival][name]:.2f}"
            claims[f"PEGFAN is the best on {name}"] = top.kind is not None, numbers
        return state_claims(claims, summary)

    def _differences(self, cells: Cells) -> list[str]:
        text = [
            f"- {cell['set']}, {cell['label']}: {cell['ours']:.2f}, the paper {cell['paper']:.2f} "
            f"({cell['ours'] - cell['paper']:+.2f}, allowed {cell['tolerance']:.2f}): {cell['explanation']}."
            for cell in cells
            if cell["verdict"] == "differs"
        ]
        return ["Cells that differ:", *text] if text else []

    def _corrigendum(self, scores: Scores, cells: Cells) -> list[str | Grid]:
        rows: Rows = []
        model = Model.of("a8")
        for name in (name for name in DATASETS if name in self.sets and ON_SX in self.models(name)):
            on_sx, on_x = scores.get((name, ON_SX)), scores.get((name, model))
            known = (name, model) in published.CORRIGENDUM
            printed = published.TABLE3[model][name]
            marks = [_judged(score, printed) for score in (on_sx, on_x)]
            rows.append([name + ("‡" if known else ""), *marks, _printed(printed)])
            other, used = (on_x, model) if known else (on_sx, ON_SX)
            if other:
                cells.append(_extra("III, type a both ways", name, model, other) | {"used": used.key})
        caption = (
            "Type a, h = 8, both ways: projecting SX, as the corrigendum says the paper did on the two sets marked ‡, "
            "and projecting X"
        )
        return [Grid(caption, ["", "F_j(SX)", "F_j(X)", "the paper's"], rows)] if rows else []

    def _unnormalised(self, records: Records, cells: Cells) -> list[str | Grid]:
        if "actor" not in self.sets or self.options.quick or self.options.settings == "search":
            return []
        rows: Rows = []
        for model, (_, own) in published.ACTOR_WITHOUT_NORM.items():
            if model in self.models("actor"):
                score = Score.of(records, self.extra(model))
                rows.append([model.label, mark_of(score), f"{own:.2f}"])
                cells += [_extra("III, not normalised", "actor", model, score) | {"fsgnn_own": own}] if score else []
        caption = (
            "Actor with FSGNN's other published settings, without row normalisation of hidden layers (not in the paper)"
        )
        return [Grid(caption, ["", "ours", "FSGNN's own"], rows)] if rows else []

    def _filtered(self, records: Records, scores: Scores, cells: Cells) -> list[str | Grid]:
        names = [name for name in FILTERED if name in self.sets]
        if not names:
            return [DUPLICATES] if {"chameleon", "squirrel"} & set(self.sets) else []
        full = [name for name in ("chameleon", "squirrel") if name in self.sets]
        models = self.models(names[0])
        found = {(name, model): self.score(records, name, model) for model in models for name in names}
        both = {**scores, **found}
        rows: Rows = [[m.label, *(mark_of(both.get((name, m))) for name in (*names, *full))] for m in models]
        cells += [_extra("III, filtered", *cell, score) for cell, score in found.items() if score]
        caption = (
            "Without the duplicates: filtered sets with our trees and the authors' settings for the full ones, not "
            "tuned anew; full sets beside them"
        )
        if not rows:
            return [DUPLICATES]
        grid = Grid(caption, ["", *(name.replace("-", " ") for name in names), *full], rows)
        return [DUPLICATES, grid, *_list_gaps(self.gaps(records, found)), *_drop(found, scores)]

    def _statistics(self) -> list[str | Grid]:
        """The upper part of the paper's table, counted in the data."""
        from pegfan.datasets import table

        try:
            frame = table([name for name in DATASETS if name in self.sets])
        except (OSError, ValueError) as error:
            return [f"Statistics of the data sets are left out: {error}"]
        if not len(frame):
            return []
        rows = [[heading, *map(form.format, frame[column])] for heading, column, form in _STATISTICS]
        caption = "As counted here. (The paper prints 6 classes for Cora, 7 for Citeseer and 931 features for Actor.)"
        return [Grid(caption, ["", *(name.capitalize() for name in frame.index)], rows)]


_STATISTICS = (
    ("Nodes", "nodes", "{:,}"),
    ("‖A‖₀", "nonzeros", "{:,}"),
    ("Features", "features", "{:,}"),
    ("Density", "density", "{:.2e}"),
    ("Classes", "classes", "{}"),
    ("Type", "regime", "{}"),
    ("Edge homophily", "edge_homophily", "{:.2f}"),
)


def _nothing(_: Job) -> list[Record]:
    """The records where there are none."""
    return []


def authors_settings(name: str, model: Model) -> dict[str, Any]:
    """The published settings of a cell; type a on SX has those of type a."""
    if model.kind is None:
        return published.FSGNN[name, model]
    return published.AUTHORS[name, model.printed]


def _extra(table: str, name: str, model: Model, score: Score) -> dict[str, Any]:
    """A cell that the paper does not have."""
    head = {"table": table, "set": name, "row": model.key, "label": model.label, "used": model.key}
    return head | score.numbers | score.details


def _by_projecting_sx(model: Model, on_sx: Score | None, printed: Published) -> str | None:
    """What to say about a cell of type a, h = 8 that agrees with the paper once SX is projected."""
    if model != Model.of("a8") or on_sx is None or not verdict(on_sx.mean, printed)[0]:
        return None
    return (
        f"with F_j(SX) in place of F_j(X) it is {on_sx.text}, which agrees; the corrigendum says that of chameleon "
        "and squirrel only, so this cell may be another such cell"
    )


def _printed(value: Published | None) -> str:
    if value is None:
        return MISSING
    return f"{value.mean:.2f}" + ("" if value.std is None else f"±{value.std:.2f}")


def _place(value: float | None, column: Sequence[float]) -> tuple[str, ...]:
    """Best or second best of a column, to two decimals, as printed."""
    ranked = sorted({round(other, 2) for other in column}, reverse=True)
    places = dict(zip(ranked, (("best",), ("second",)), strict=False))
    return () if value is None else places.get(round(value, 2), ())


def _compared(cell: Mapping[str, Any], own_tree: str) -> Mark:
    if cell["ours"] is None:
        return Mark(f"{MISSING} / {cell['paper']:.2f}", ("missing",))
    own = f" / {cell['fsgnn_own']:.2f}" if cell["fsgnn_own"] else ""
    sign = {"agrees": " ✓", "differs": " ✗", "agrees with FSGNN's own figure": " (✓)"}.get(cell["verdict"], "")
    style = "differs" if cell["verdict"] == "differs" else "agrees"
    ours = f"{cell['ours']:.2f}{own_tree}{sign_of(cell)}"
    return Mark(f"{ours} / {cell['paper']:.2f}{own}{sign}", (style,), cell["explanation"] or "")


def _judged(score: Score | None, printed: Published) -> Mark:
    mark = mark_of(score)
    if score is None or score.runs < SPLITS:
        return mark
    sign, style = ("✓", "agrees") if verdict(score.mean, printed)[0] else ("✗", "differs")
    return Mark(f"{mark.text} {sign}", (style,), mark.tip)


def _list_gaps(gaps: Mapping[tuple[str, Model], str]) -> list[str]:
    return state_gaps({f"{name}, {model.label}": why for (name, model), why in gaps.items()})


def _met(good: float, missing: int, bar: float) -> str:
    return "met" if good >= bar else "not decided yet" if good + missing >= bar else "not met"


def _drop(filtered: Scores, full: Scores) -> list[str]:
    """What the numbers say about the filtered sets, where they are complete."""
    text = []
    for name in ("chameleon", "squirrel"):
        before = [score.mean for model in ON_FILTERED if (score := full.get((name, model)))]
        after = [score.mean for model in ON_FILTERED if (score := filtered.get((f"{name}-filtered-directed", model)))]
        if len(before) == len(after) == len(ON_FILTERED):
            text.append(
                f"- {name}: {min(before):.1f} to {max(before):.1f} on the full set, {min(after):.1f} to "
                f"{max(after):.1f} on the filtered one; type c, h = 8 minus FSGNN r = 3: "
                f"{before[1] - before[2]:+.1f} and {after[1] - after[2]:+.1f}."
            )
    return text


def _quick(rungs: Sequence[Rung]) -> list[Rung]:
    """A search of minutes: twelve settings, two splits."""
    return [
        Rung(min(rung.settings, most), min(rung.epochs, 300), min(rung.splits, 2))
        for rung, most in zip(rungs, (12, 4, 2), strict=True)
    ]
