"""kill -9 before every change of a file, and at random moments: nothing is lost, half or computed twice."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from torture.campaign import attack
from torture.commands import (
    KILL_BEFORE,
    Command,
    State,
    graph_files,
    leftovers,
    outlived,
    output_facts,
    pages_facts,
    prepare,
    require,
    settings,
    store_facts,
    without_optional,
    work_facts,
)

_PROMISE = (
    "old output or new, whole; the same command then ends with the bits of an undisturbed run, or report adds what is "
    "optional; no leftovers, no process"
)
_STORE = (
    "all finished runs are in the store, none twice; the same command then ends with the bits of an undisturbed run"
)


def kill(every: bool) -> Callable[[State, int, random.Random, Path], None]:
    """Kill a command at the change that is the number of the try, or at a drawn one; of the later tries, at any moment.

    What holds before a change holds after the one before, so that no change is missed.
    """

    def attempt(state: State, number: int, draw: random.Random, folder: Path) -> None:
        target = state.targets[number % len(state.targets)]
        command, number = target.command, number // len(state.targets)
        disk = command.begin(folder)
        old, moment = command.facts(disk), None
        if number < target.calls if every else draw.random() < 0.7:
            state.commands.arm(KILL_BEFORE, number if every else draw.randrange(target.calls), disk)
        else:
            moment = draw.uniform(0, target.seconds)
        done = state.commands.run(command.words, folder / command.here, moment)
        _, hit = state.commands.disarm()
        where = f"{' '.join(command.words[:1])} killed before {hit}" if hit else f"killed after {moment} s"
        alive = outlived(done.session)
        require(not alive, f"{where}: {len(alive)} processes outlive it")
        try:
            command.check_between(disk, old, target.expected)
            is_done = without_optional(command.facts(disk)) == without_optional(target.expected)
            again = state.commands.run(command.words, folder / command.here)
            # Without --force, what was finished is not replaced; what it lacks is added by another command.
            finished = is_done and again.code == 1 and "exists" in again.err
            require(again.code == 0 or finished, f"again: {again.text}")
            if finished and command.complete:
                added = state.commands.run(command.complete, folder / command.here)
                require(added.code == 0, f"{' '.join(command.complete)}: {added.text}")
            command.check_results(disk, target.expected, "the second run has results")
            left = leftovers(disk)
            require(not left, f"left after the second run: {left}")
            command.check_foreign(disk)
        except Exception as error:
            raise type(error)(f"{where}: {error}") from error

    return attempt


def trained(place: Path, old: Path, *, force: bool = False, inside: bool = False) -> Command:
    """`train` to a new folder, over an old one, or in the current one."""
    output = "." if inside else "../disk/out"
    words = ("train", "--config", settings(place, 0), "-o", output)

    def setup(disk: Path) -> None:
        if force:
            shutil.copytree(old, disk / "out")

    return Command(
        (*words, "--force") if force else words,
        lambda disk: output_facts(disk / "out"),
        setup,
        whole=not inside,
        here="disk/out" if inside else "here",
        complete=("report", output),
    )


def searched(place: Path, strategy: str, workers: int) -> Command:
    """`search` with a strategy."""
    how = ["--strategy", strategy, "--trials", "8", "--splits", "1", "--epochs", "3", "--method", "none"]
    words = ("search", *graph_files(place), "--label", "kind", "-o", "../disk/store", *how, "--workers", str(workers))
    return Command(words, lambda disk: store_facts(disk / "store"))


def reproduced(place: Path, old: Path) -> Sequence[Command]:
    """A cell of the paper's first table."""
    cell = ["--quick", "--only", "0.2,r3", "--workers", "1", "--seeds", "1", "--rungs", "4x3x1,2x3x1"]
    words = ("reproduce", "table1", *cell, "--store", "../disk/store", "-o", "../disk/tables")
    return [Command(words, lambda disk: store_facts(disk / "store") | pages_facts(disk / "tables"))]


def in_pieces(place: Path, old: Path) -> Sequence[Command]:
    """The stages of graphs beyond memory."""
    tree = ("tree", *graph_files(place), "--memory", "300MB", "-o", "../disk/tree.npz")
    train = ("train", "--config", settings(place, 0), "--memory", "300MB", "-o", "../disk/out")

    def tree_facts(disk: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in disk.glob("tree.npz")} | work_facts(disk)

    return [
        Command(tree, tree_facts, whole=True),
        Command(train, lambda disk: output_facts(disk / "out") | work_facts(disk), whole=True),
    ]


attack(
    "kill -9: train",
    _PROMISE,
    150,
    prepare=prepare(lambda place, old: [trained(place, old)]),
)(kill(every=True))
attack(
    "kill -9: train --force",
    _PROMISE,
    170,
    prepare=prepare(lambda place, old: [trained(place, old, force=True)]),
)(kill(every=True))
attack(
    "kill -9: train --force into the current folder",
    "every file is the old or the new one, whole; the same command then ends with the bits of an undisturbed run",
    170,
    prepare=prepare(lambda place, old: [trained(place, old, force=True, inside=True)]),
)(kill(every=True))
attack(
    "kill -9: search (grid, halving, optuna; 1 and 2 workers)",
    _STORE,
    120,
    prepare=prepare(
        lambda place, old: [
            searched(place, strategy, workers)
            for strategy, workers in (
                ("optuna", 1),
                ("halving", 1),
                ("grid", 1),
                ("optuna", 2),
                ("halving", 2),
                ("grid", 2),
            )
        ]
    ),
    seconds=120,
)(kill(every=False))
attack("kill -9: reproduce", _STORE, 110, prepare=prepare(reproduced))(kill(every=True))
attack(
    "kill -9: stages of graphs beyond memory",
    "no finished piece is computed again; the same command then ends with the bits of an undisturbed run",
    120,
    prepare=prepare(in_pieces),
)(kill(every=False))
