"""The rooms of the package and which of them import which, drawn; fails where an import leads back.

    python tools/rooms.py            checks, and says what is wrong
    python tools/rooms.py --draw     checks, and writes docs/images/rooms.svg

A room is a module or a package of `pegfan`; imports inside functions and those for types only count as well, and a name
from the door (`from pegfan import Graph`) counts as its room. Rooms stand in rows: a room may import those of the rows
above it, and of its own row those to its left.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

HOME = Path(__file__).parents[1]
SOURCE = HOME / "src" / "pegfan"
PICTURE = HOME / "docs" / "images" / "rooms.svg"

ROWS: dict[str, tuple[str, ...]] = {
    "ground": (
        "_defaults",
        "_extras",
        "_plain",
        "_locks",
        "_atomic",
        "_checks",
        "_cache",
        "_limits",
        "_npz",
        "_rows",
        "_arrays",
        "_declarations",
        "_loops",
        "_hashing",
        "_matrices",
        "_products",
        "_pairs",
        "_cluster",
        "running",
    ),
    "data": ("metrics", "graph", "measures", "datasets"),
    "mathematics": ("trees", "relations", "framelets", "signals", "channels", "testing"),
    "learning": ("models", "training"),
    "models as values": (
        *("splits", "decisions", "recipe", "stages", "networks", "fitted", "_saved"),
        *("explain", "importance", "classifier"),
    ),
    "runs": ("results", "auto", "experiments", "comparison", "_families", "large"),
    "faces": ("layouts", "plots", "integrations", "nn", "paper", "report", "demo", "cli", "__main__"),
}

SHORTCUTS = {
    ("graph", "measures"): "Graph.describe",
    ("trees", "plots"): "Hierarchy.draw",
    ("comparison", "plots"): "Comparison.plot",
}
"""Methods that call a later room, for those who look for it there; nothing else may lead back."""


DOOR = "the door"
"""What ``import pegfan`` leads to: all rooms, and so no room may take it."""


def door() -> dict[str, str]:
    """The names that the package itself offers, lazy ones as its imports for types have them, and their rooms."""
    nodes = ast.walk(ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8")))
    found = [node for node in nodes if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pegfan.")]
    return {alias.name: str(node.module).split(".")[1] for node in found for alias in node.names}


def rooms_of(node: ast.AST, names: dict[str, str]) -> list[str]:
    """The rooms that an import names; `names` are those of the door."""
    if isinstance(node, ast.Import):
        parts = [alias.name.split(".") for alias in node.names]
        return [part[1] if len(part) > 1 else DOOR for part in parts if part[0] == "pegfan"]
    if isinstance(node, ast.ImportFrom) and node.module == "pegfan":
        return [names.get(alias.name, alias.name) for alias in node.names if alias.name != "__version__"]
    parts = (node.module or "").split(".") if isinstance(node, ast.ImportFrom) else []
    return parts[1:2] if parts[:1] == ["pegfan"] else []


def imports() -> dict[str, dict[str, str]]:
    """For every room, the rooms that it imports, each with a place where it does."""
    names = door()
    found: dict[str, dict[str, str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if own == "__init__":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for other in rooms_of(node, names):
                if other != own:
                    found.setdefault(own, {}).setdefault(other, f"{path.relative_to(HOME)}:{node.lineno}")
        found.setdefault(own, {})
    return found


def faults(found: dict[str, dict[str, str]]) -> list[str]:
    """Rooms that stand nowhere, places for rooms that are gone, and imports that lead back."""
    place = {room: (row, column) for row, rooms in enumerate(ROWS.values()) for column, room in enumerate(rooms)}
    wrong = [f"{room} is in no row of tools/rooms.py" for room in found if room not in place]
    wrong += [f"{room} is in a row of tools/rooms.py, but not in the package" for room in place if room not in found]
    wrong += [
        f"{where}: {room} imports {other}, which is no room: name the module that is meant"
        for room, others in found.items()
        for other, where in others.items()
        if other not in found
    ]
    wrong += [
        f"{where}: {room} imports {other}, which stands after it"
        for room, others in found.items()
        for other, where in others.items()
        if room in place and other in place and place[other] > place[room] and (room, other) not in SHORTCUTS
    ]
    return wrong


def needed(found: dict[str, dict[str, str]]) -> dict[str, list[str]]:
    """The imports that do not follow from others: a room that imports another has all that the other one has."""
    ahead = {room: [o for o in others if (room, o) not in SHORTCUTS] for room, others in found.items()}

    def reach(room: str) -> set[str]:
        return {room}.union(*(reach(other) for other in ahead[room]))

    return {room: [o for o in own if not any(o in reach(p) for p in own if p != o)] for room, own in ahead.items()}


def draw(found: dict[str, dict[str, str]]) -> str:
    """The picture: rooms in their rows, and an arrow to every room that another one needs; the ground is left out."""
    width, height, gap, left = 108, 30, 92, 190
    visible = {name: [room for room in rooms if room[0] != "_"] for name, rooms in ROWS.items() if name != "ground"}
    where = {
        room: (left + column * (width + 40), 24 + row * gap)
        for row, rooms in enumerate(visible.values())
        for column, room in enumerate(rooms)
    }
    total = (left + 6 * (width + 40), len(visible) * gap)
    line = 'fill="none" stroke="#5b6673" stroke-opacity="0.6" marker-end="url(#head)"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total[0]} {total[1]}"',
        ' font-family="sans-serif" font-size="13">',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto">',
        '<path d="M0 0 8 4 0 8z" fill="#5b6673"/></marker></defs>',
        f'<rect width="{total[0]}" height="{total[1]}" fill="white"/>',
    ]
    for row, name in enumerate(visible):
        parts.append(f'<text x="14" y="{44 + row * gap}" fill="#5b6673" font-style="italic">{name}</text>')
    for room, others in needed(found).items():
        for other in others:
            if room not in where or other not in where:
                continue
            (x1, y1), (x2, y2) = where[room], where[other]
            if y1 == y2:  # a flat arc over what stands between
                start, end = (x1, y1 + height / 2), (x2 + width, y2 + height / 2)
                middle = ((start[0] + end[0]) / 2, y1 + height / 2 - 0.25 * (start[0] - end[0] - 40))
            else:
                start, end = (x1 + width / 2, y1), (x2 + width / 2, y2 + height)
                middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
            points = [f"{x:.0f} {y:.0f}" for x, y in (start, middle, end)]
            parts.append(f'<path d="M{points[0]}Q{points[1]} {points[2]}" {line}/>')
    for room, (x, y) in where.items():
        box = f'x="{x}" y="{y}" width="{width}" height="{height}" rx="6"'
        parts.append(f'<rect {box} fill="#e8f1f8" stroke="#0b6fb3"/>')
        parts.append(f'<text x="{x + width / 2}" y="{y + 20}" text-anchor="middle">{room}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> int:
    """Check, and draw where asked to; without `--draw` the picture must be what would be drawn."""
    found = imports()
    wrong = faults(found)
    if not wrong and "--draw" in sys.argv:
        PICTURE.write_text(draw(found), encoding="utf-8")
    elif not wrong and (not PICTURE.is_file() or PICTURE.read_text(encoding="utf-8") != draw(found)):
        wrong.append("docs/images/rooms.svg is not of today: python tools/rooms.py --draw")
    count = sum(map(len, found.values()))
    right = f"{len(found)} rooms, {count} imports between them; none leads back but {len(SHORTCUTS)} shortcuts"
    print("\n".join(wrong) or right)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
