"""How tables were read, as a value: what became of every column, and the numbers that reading others alike needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

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
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """What `to_dict` gave."""

        def rules(given: Mapping[str, Any]) -> dict[str, Rule]:
            return {
                name: Rule(facts["kind"], {key: value for key, value in facts.items() if key != "kind"})
                for name, facts in given.items()
            }

        return cls(rules(stored["nodes"]), {table: rules(given) for table, given in stored["edges"].items()})
