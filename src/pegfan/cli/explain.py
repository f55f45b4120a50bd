"""``pegfan explain``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegfan.cli._options import Json, choices
from pegfan.cli._shell import USAGE, Fail, command, console, errors, literal
from pegfan.cli._show import make_table, print_json, print_table
from pegfan.cli.train import load_model, read_like, reopen, require_names

if TYPE_CHECKING:
    from pegfan.explain import Explanation

_LISTS = ("channels", "columns", "nodes", "reasons")
_GROUPS = {
    "features": "the features themselves",
    "hops": "hops: averages over neighbours",
    "scales": "scales of the tree",
    "other": "other channels",
}


@command("pegfan explain out 0046873")
def explain(
    *,
    model: Annotated[Path, typer.Argument(metavar="OUT", help="What pegfan train wrote.")],
    nodes: Annotated[list[str], typer.Argument(metavar="NODE...", help="The ids of nodes.")],
    on: Annotated[
        list[str] | None,
        typer.Option(
            "--on", metavar="GRAPH", help="Another graph; twice for nodes and edges. By default the training's."
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--class", help="The class whose score is explained: by default the rarer of two, or the predicted."
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many columns and nodes to list.")] = 5,
    as_json: Json = False,
) -> None:
    """Say which columns, neighbours and scales carried the scores of nodes.

    A score is the log-odds of a class, or the number that is predicted. What is listed adds up, exactly, to its
    difference from the score of the average node.
    """
    from pegfan.explain import Explainer, find_nodes
    from pegfan.results import rarer_class

    trained, stored = load_model(model)
    classes = [str(name) for name in trained.fitted_.classes.tolist()]
    if target is not None and trained.fitted_.numeric:
        raise Fail("--class names one of the classes, and this model predicts numbers; leave it out.", USAGE)
    if target is not None and target not in classes:
        raise Fail(f"There is no class {target!r}; {choices(target, classes)}.")
    if on:
        _, known, _ = read_like(on, {}, stored)
        require_names(trained, known)
    elif stored is not None:
        _, known = reopen(stored, model if (model / "result.json").is_file() else model.parent)
    else:
        raise Fail(f"{model} has no result.json that says what it was trained on; name the graph with --on.")
    with errors.status("finding reasons"):
        explainer = Explainer(trained.fitted_, known)
        if target is None and stored is not None and (rare := rarer_class(stored.data.class_counts)) is not None:
            target = classes[rare]
        found = explainer.explain(find_nodes(explainer.graph, nodes), target, top)
    if as_json:
        print_json({"model": str(model), "nodes": [_as_dict(one) for one in found]})
        return
    for one in found:
        _print(one, top)


def _as_dict(one: Explanation) -> dict[str, Any]:
    parts = {name: [share._asdict() for share in getattr(one, name)] for name in _LISTS}
    plain = {name: value for name, value in vars(one).items() if name not in parts}
    return plain | parts | {"groups": one.groups}


def _print(one: Explanation, top: int) -> None:
    from pegfan.explain import OTHERS
    from pegfan.metrics import amount

    numeric = one.probability is None
    told = f"predicted {amount(one.score)}, that"
    if one.probability is not None:
        told = f"{literal(one.target)} {one.probability:.1%}. The log-odds are {one.score:+.3f}, those"

    def signed(value: float) -> str:
        return f"{'+' if value >= 0 else ''}{amount(value)}" if numeric else f"{value:+.3f}"

    average = amount(one.average) if numeric else f"{one.average:+.3f}"
    console.print(
        f"[bold]{literal(one.id)}[/bold]: {told} of the average node {average}; the difference, "
        f"{signed(one.score - one.average)}, is\n",
        soft_wrap=True,
    )
    table = make_table("by column", "", "value", "average", "contribution", "by its own value")
    named = [column for column in one.columns if column.name != OTHERS][:top]
    for column in named:
        values = ["" if value is None else f"{value:.4g}" for value in (column.value, column.usual)]
        table.add_row(literal(column.name), *values, signed(column.contribution), signed(column.own))
    left = [column for column in one.columns if column not in named]
    if left:
        both = (sum(column.contribution for column in left), sum(column.own for column in left))
        table.add_row(OTHERS, "", "", *map(signed, both))
    print_table(table)
    table = make_table("by node", "", "contribution", "number" if numeric else "class<", "<")
    for node in one.nodes:
        place = "itself" if node.node == one.node else "neighbour" if node.linked else "further away"
        table.add_row(literal(node.id), signed(node.contribution), literal(node.label or "–"), place)
    for name, value in sorted(one.rest.items(), key=lambda part: -abs(part[1])):
        table.add_row(literal(name), signed(value))
    print_table(table)
    table = make_table("by channel", "", "contribution")
    for group, value in sorted(one.groups.items(), key=lambda part: -abs(part[1])):
        table.add_row(_GROUPS[group], signed(value))
        sums: dict[str, float] = {}  # networks of several folds have channels of the same names
        for share in one.channels:
            if share.group == group:
                sums[share.words] = sums.get(share.words, 0.0) + share.contribution
        for words, part in sorted(sums.items(), key=lambda one: -abs(one[1]))[:top]:
            table.add_row(f"  [dim]{literal(words)}[/dim]", f"[dim]{signed(part)}[/dim]")
    print_table(table)
