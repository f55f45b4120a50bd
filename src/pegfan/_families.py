"""What can be named: the words that functions, recipes and commands take."""

from __future__ import annotations

__all__ = ["families"]


def families() -> dict[str, tuple[str, ...]]:
    """The words that each parameter takes, by parameter.

    Examples
    --------
    >>> import pegfan as pf
    >>> pf.families()["filters"], pf.families()["kind"]
    (('binary-haar', 'haar-basis'), ('a', 'b', 'c', 'as'))
    >>> list(pf.families())
    ['method', 'filters', 'rules', 'hop', 'kind', 'regime', 'direction', 'scaling', 'metric', 'engine',
     'strategy', 'grid', 'datasets']
    """
    from pegfan.channels import hops, presets, scaling
    from pegfan.datasets import registry
    from pegfan.experiments import search
    from pegfan.framelets import _levels, shrinkage
    from pegfan.training import engine, metrics
    from pegfan.trees import build

    return {
        "method": ("auto", "none", *build.BUILDERS),
        "filters": tuple(_levels.FAMILIES),
        "rules": shrinkage.RULES,
        "hop": hops.KINDS,
        "kind": tuple(presets.KINDS),
        "regime": ("auto", *presets.REGIMES),
        "direction": (*hops.DIRECTIONS, "both"),
        "scaling": scaling.SCALINGS,
        "metric": metrics.METRICS,
        "engine": engine.ENGINES,
        "strategy": search.STRATEGIES,
        "grid": tuple(search.GRIDS),
        "datasets": tuple(registry.DATASETS),
    }
