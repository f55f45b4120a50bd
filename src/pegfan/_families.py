"""What can be named: the words that functions, recipes and commands take."""

from __future__ import annotations

from pegfan import _defaults
from pegfan.channels import hops
from pegfan.comparison import CONTENDERS
from pegfan.datasets import registry
from pegfan.experiments import search
from pegfan.framelets.filters import FAMILIES
from pegfan.metrics import METRICS
from pegfan.recipe import CHOICES
from pegfan.training import engine

__all__ = ["families"]


def families() -> dict[str, tuple[str, ...]]:
    """The words that each parameter takes, by parameter.

    Examples
    --------
    >>> import pegfan as pf
    >>> pf.families()["filters"], pf.families()["kind"]
    (('binary-haar', 'haar-basis'), ('a', 'b', 'c', 'as'))
    >>> list(pf.families())
    ['method', 'kind', 'regime', 'direction', 'scaling', 'head', 'hop', 'filters', 'rules', 'metric', 'engine',
     'strategy', 'grid', 'datasets', 'models']
    """
    return {
        **CHOICES,
        "hop": tuple(hops.HOPS),
        "filters": tuple(FAMILIES),
        "rules": _defaults.RULES,
        "metric": tuple(METRICS),
        "engine": engine.ENGINES,
        "strategy": search.STRATEGIES,
        "grid": tuple(search.GRIDS),
        "datasets": tuple(registry.DATASETS),
        "models": tuple(CONTENDERS),
    }
