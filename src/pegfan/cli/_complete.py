"""What a shell offers when Tab is pressed; nothing here imports more than the names."""

from __future__ import annotations

from pathlib import Path

__all__ = ["complete_models", "complete_names", "complete_sources"]


def complete_names(incomplete: str) -> list[str]:
    """Names of data sets."""
    from pegfan.datasets.registry import DATASETS

    return [name for name in DATASETS if name.startswith(incomplete)]


def complete_sources(incomplete: str) -> list[str]:
    """Names of data sets, and files beside them; where no name fits, nothing, so that the shell looks for files."""
    names = [name for name in [*complete_names(incomplete), "synthetic"] if name.startswith(incomplete)]
    if not names:
        return []
    beside = sorted(path.name for path in Path().iterdir() if not path.name.startswith("."))
    return names + [name for name in beside if name.startswith(incomplete) and name not in names]


def complete_models(incomplete: str) -> list[str]:
    """Names of models, after those before the last comma."""
    from pegfan.comparison import CONTENDERS

    before, comma, begun = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in [*CONTENDERS, "quick"] if name.startswith(begun)]
