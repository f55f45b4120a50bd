"""How tables were read, as a value: what became of every column, and the numbers that reading others alike needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pegfan._checks import check_list, check_mapping, shown
from pegfan._plain import plain

__all__ = ["Rule", "Schema"]


@dataclass(frozen=True)
class Rule:
    """How one column was read.

    Attributes
    ----------
    kind
        What it was read as, such as ``"number"``, ``"category"`` or ``"date"``.
    facts
        What reading another table alike needs: the mean that fills gaps, the categories, the day that ages count from.
    """

    kind: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Schema:
    """How the tables of a graph were read: given to `read_graph`, it reads other tables alike.

    Attributes
    ----------
    nodes
        The rules of the node table, by column.
    edges
        The rules of the edge tables, by table and column.

    Examples
    --------
    >>> import pegfan as pf
    >>> nodes, edges = {"id": ["a", "b", "c"], "age": [30, None, 50], "town": ["Rome", "Oslo", "Rome"]}, [("a", "b")]
    >>> graph, report = pf.datasets.graph_from_tables(nodes, edges, report=True)
    >>> report.schema.nodes["age"]
    Rule(kind='number', facts={'flag': True, 'mean': 40.0})
    >>> nodes, edges = {"id": ["d", "e"], "town": ["Rome", "Bern"]}, [("d", "e")]
    >>> new = pf.datasets.graph_from_tables(nodes, edges, schema=report.schema)
    >>> new.feature_names == graph.feature_names
    True
    >>> new.features.toarray().tolist()
    [[40.0, 1.0, 0.0, 1.0], [40.0, 1.0, 0.0, 0.0]]
    """

    nodes: Mapping[str, Rule] = field(default_factory=dict)
    edges: Mapping[str, Mapping[str, Rule]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "nodes": {name: {"kind": rule.kind, **plain(dict(rule.facts))} for name, rule in self.nodes.items()},
            "edges": {
                table: {name: {"kind": rule.kind, **plain(dict(rule.facts))} for name, rule in rules.items()}
                for table, rules in self.edges.items()
            },
        }

    @classmethod
    def of_names(cls, names: Iterable[str]) -> Self:
        """The schema that the names of features speak of, for models that were trained before there were schemas.

        Examples
        --------
        >>> list(Schema.of_names(["age", "town=Oslo", "town=Rome", "tags:x", "where[0]", "where[1]"]).nodes)
        ['age', 'town', 'tags', 'where']
        """
        rules: dict[str, Rule] = {}
        for name in check_list(names, "names", str):
            vector, category, bag = (re.fullmatch(f"(?s)(.*?){end}", name) for end in (r"\[(\d+)\]", "=(.*)", ":(.*)"))
            found = category or vector or bag
            if found is None:
                rules[name] = Rule("number", {"flag": False, "mean": None})
            elif found is vector:
                rules[found[1]] = Rule("vector", {"length": int(found[2]) + 1, "mean": None})
            else:
                kind, key = ("category", "categories") if found is category else ("tokens", "tokens")
                before = rules[found[1]].facts.get(key, ()) if found[1] in rules else ()
                rules[found[1]] = Rule(kind, {key: [*before, found[2]]})
        return cls(rules)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """What `to_dict` gave."""
        check_mapping(stored, "stored")
        if missing := {"nodes", "edges"} - set(stored):
            raise ValueError(f"this is not what Schema.to_dict wrote: it has no {sorted(missing)[0]!r}")

        def rules(given: Mapping[str, Any]) -> dict[str, Rule]:
            return {
                name: Rule(_kind_of(facts), {key: value for key, value in facts.items() if key != "kind"})
                for name, facts in check_mapping(given, "the rules of a schema").items()
            }

        return cls(
            rules(stored["nodes"]),
            {table: rules(given) for table, given in check_mapping(stored["edges"], "edges").items()},
        )


def _kind_of(facts: Any) -> str:
    """The kind that a stored rule names."""
    kind = check_mapping(facts, "a rule of a schema").get("kind")
    if not isinstance(kind, str):
        raise ValueError(f"a rule of a schema names its kind, and this one does not: {shown(facts)}")
    return kind
