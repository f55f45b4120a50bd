"""Stored values whose members are missing or of other kinds, with checksums that fit: none is believed blindly."""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
from typer.testing import CliRunner

import pegfan as pf
from pegfan import _saved
from pegfan.cli import app
from pegfan.cli._shell import Fail
from pegfan.cli.train import _resolve
from pegfan.datasets import Source
from pegfan.experiments import Job, Store, jobs, run_job
from pegfan.experiments.records import _hash, job_name
from pegfan.experiments.search import search
from pegfan.recipe import Recipe
from pegfan.report import write_report
from pegfan.results import Result
from torture.campaign import Fault, attack
from torture.processes import tables

DOCUMENTED = (ValueError, TypeError, OSError, MemoryError, ImportError, Fail)


def _deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


REMOVED = object()
OTHERS: tuple[Any, ...] = (
    *(
        REMOVED,
        None,
        True,
        0,
        -1,
        2**63,
        10**400,
        0.5,
        1e308,
        -1e-308,
        "",
        "x",
        "a\x1b[31m\u202e",
        "1" * 10_000,
        [],
        {},
    ),
    *([None], [[1, 2], [3]], {"x": 1}, _deep(50), _deep(900)),
)
"""What a member is replaced by."""


def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all members of a value, at any depth; of long lists the first and the last."""
    keys: list[Any] = []
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = sorted({0, len(value) - 1}) if value else []
    for key in keys:
        yield (*at, key)
        yield from paths(value[key], (*at, key))


def damaged(value: Any, at: tuple[Any, ...], other: Any) -> Any:
    """A copy of a value with one member replaced, or removed."""
    key, *rest = at
    result = copy.copy(value)  # along the way only: another member may be nested as deep as an earlier damage made it
    if rest:
        result[key] = damaged(value[key], tuple(rest), other)
    elif other is REMOVED:
        del result[key]
    else:
        result[key] = other
    return result


@dataclass
class Target:
    """A kind of file: what a real one holds, and what is done with a damaged one."""

    name: str
    value: Any
    use: Callable[[Any], None]

    def try_(self, value: Any) -> None:
        """Use it; only errors that are documented may come of it."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.use(value)
        except DOCUMENTED:
            pass


def targets(place: Path) -> list[Target]:
    """The files of a small training and of a run, made once in a folder."""
    files, out = tables(place)[:2], place / "out"
    if not (out / "settings.toml").exists():
        shutil.rmtree(out, ignore_errors=True)
        told = CliRunner().invoke(
            app, ["train", *files, "--label", "kind", "--budget", "0.5", "--workers", "1", "-o", str(out)]
        )
        assert told.exit_code == 0, told.output
    graph, _ = Source.of(*files, label="kind").open()
    scratch = place / f"scratch{os.getpid()}"
    found = [_result(out, scratch), _settings(out, scratch), _record(files, scratch)]
    return [*found, _model("the model of train", out / "model", scratch, graph), _network(place, scratch, graph)]


def _result(out: Path, scratch: Path) -> Target:
    def use(value: Any) -> None:
        result = Result.from_json(json.dumps(value))
        if random.random() < 0.02:  # takes a hundred times as long
            if Result.from_json(result.to_json()) != result:
                raise Fault("a result that was read is not the same when it is written and read again")
            scratch.mkdir(exist_ok=True)
            write_report(scratch / "page.html", result)

    return Target("result.json", json.loads((out / "result.json").read_text(encoding="utf-8")), use)


def _settings(out: Path, scratch: Path) -> Target:
    import tomllib

    def use(value: Any) -> None:
        scratch.mkdir(exist_ok=True)
        path = scratch / "settings.toml"
        try:
            text = tomli_w.dumps(value)
        except (TypeError, ValueError, AttributeError, RecursionError):
            return  # TOML has no such value
        path.write_text(text, encoding="utf-8")
        _resolve(None, {}, dict.fromkeys(("budget", "seed", "split", "metric", "positive", "threshold")), {}, path)

    return Target("settings.toml", tomllib.loads((out / "settings.toml").read_text(encoding="utf-8")), use)


def _record(files: list[str], scratch: Path) -> Target:
    source = Source.of(*files, label="kind")
    recipe = Recipe.of({"h": 4, "kind": "b", "epochs": 5})
    job = Job(source, recipe, 0, 42)
    genuine = run_job(job)

    def use(value: Any) -> None:
        if not isinstance(value, dict) or not isinstance(value.get("job"), dict):
            return
        shutil.rmtree(scratch, ignore_errors=True)
        store = Store(scratch)
        store.append({**value, "key": job.name})
        _forge(value)
        store.append(value)
        jobs.run_job = lambda *_, **__: genuine  # what is missing is found at once
        try:
            found = search(source, recipe, store, strategy="grid", settings=[{"epochs": 5}], splits=1, seed=42)
        finally:
            jobs.run_job = run_job
        found.to_dict()
        found.write_csv(scratch / "search.csv")

    return Target("a record", json.loads(json.dumps(genuine.to_dict())), use)


def _forge(value: dict[str, Any]) -> None:
    """Give a damaged record the name and the key that fit it, as far as it has any."""
    try:
        name, result = job_name(value["job"]), value["result"]
        parts = {"name": name, "numerics": value["numerics"], "tree": result["tree"]["digest"]}
        value |= {"name": name, "key": _hash({**parts, "channels": result["channels_digest"]})}
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
        value["key"] = value["name"] = "forged"


def _model(name: str, folder: Path, scratch: Path, graph: pf.Graph, often: float = 0.02) -> Target:
    copied = scratch.with_name(f"{scratch.name}-{folder.parent.name}-{folder.name}")
    nodes = folder / "nodes.json"
    value = {"model": json.loads((folder / "model.json").read_text(encoding="utf-8"))}
    if nodes.exists():
        value["nodes"] = json.loads(nodes.read_text(encoding="utf-8"))

    def use(value: Any) -> None:
        if not copied.exists():
            shutil.copytree(folder, copied)
        about = value.get("model")
        if "nodes" in value:
            text = json.dumps(value["nodes"]).encode()
            (copied / "nodes.json").write_bytes(text)
            if isinstance(about, dict) and isinstance(about.get("files"), dict) and "nodes.json" in about["files"]:
                about["files"]["nodes.json"] = _saved._digest(text)
        if isinstance(about, dict):
            about.pop("checksum", None)
            about["checksum"] = _saved._checksum(about)
        (copied / "model.json").write_text(json.dumps(about), encoding="utf-8")
        model = pf.load_model(copied)
        if random.random() < often:
            model.predict(graph)

    return Target(name, value, use)


def _network(place: Path, scratch: Path, graph: pf.Graph) -> Target:
    folder = place / "plain" / "model"
    if not folder.exists():
        pf.PEGFANClassifier(h=4, epochs=5).fit(graph, split="random").save(folder)
    return _model("the model of a classifier", folder, scratch, graph, often=1.0)


def singles(target: Target) -> list[tuple[tuple[Any, ...], Any]]:
    """Every place with everything it is replaced by."""
    return [(at, other) for at in paths(target.value) for other in OTHERS]


@attack(
    "damaged structures: results, settings, records, models",
    "a stored file whose members are missing or of another kind, with checksums that fit, is refused with a sentence",
    20_000,
    prepare=targets,
    seconds=20,
)
def damage(state: list[Target], number: int, draw: random.Random, folder: Path) -> None:
    """One or two members of a stored file are replaced."""
    target = state[number % len(state)]
    random.seed(draw.random())
    value, places = target.value, list(paths(target.value))
    what = []
    for _ in range(draw.choice((1, 1, 2))):
        at, other = draw.choice(places), draw.choice(OTHERS)
        what.append(f"{'.'.join(map(str, at))} = {'removed' if other is REMOVED else repr(other)[:40]}")
        try:
            value = damaged(value, at, other)
        except (KeyError, IndexError, TypeError):  # the first has taken the place of the second
            break
    try:
        target.try_(value)
    except (Fault, Exception) as error:
        raise Fault(f"{target.name}, {'; '.join(what)}: {type(error).__name__}: {str(error)[:200]}") from error
