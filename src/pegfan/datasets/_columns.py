"""Every column of a node table becomes features, by a rule that is kept; what does not is said, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack, issparse

from pegfan._checks import BadInput
from pegfan.datasets import _lists
from pegfan.datasets._blocks import Block, Column, Unusable, gaps
from pegfan.datasets._categories import learn_categories, read_categories
from pegfan.datasets._dates import date_form, learn_date, read_date
from pegfan.datasets._ids import is_number
from pegfan.datasets._numbers import learn_number, read_number
from pegfan.datasets._schema import Rule, Schema
from pegfan.datasets._table import Options, ReadReport, Table, few, shown, unique_names
from pegfan.datasets._words import is_free_text, learn_words, read_words

ID_NAMES = ("id", "node", "node_id", "nodeid", "name", "node_name", "vertex", "key", "index", "unnamed: 0")
DROPPED = "dropped"


def read_features(nodes: Table, extra: int, options: Options, report: ReadReport) -> tuple[Any, list[str] | None]:
    """Return the features, dense if every column is, and their names; `extra` nodes without a row come last.

    The rules by which columns were read stand in the report's schema afterwards. With a schema among the options its
    rules are used: a column that the table lacks is filled as missing, one that the schema lacks is left out.
    """
    if options.schema is not None:
        blocks = _read_by(options.schema, nodes, extra, options, report)
        rules = dict(options.schema.nodes)
    else:
        blocks, rules = _learn(nodes, extra, options, report)
    report.schema = Schema(rules, report.schema.edges)
    if not blocks:
        return None, None
    names = unique_names(name for block in blocks for name in block.names)  # a number "a=b", a category "b" of "a"
    values = [block.values for block in blocks]
    dtype = np.float32 if all(block.dtype == np.float32 for block in values) else np.float64
    if any(issparse(block) for block in values):
        return hstack([csr_array(block) for block in values], format="csr", dtype=dtype), names
    return np.hstack(values, dtype=dtype), names


def asked_for(nodes: Table, options: Options) -> list[str]:
    """Return the columns to make features of."""
    if options.features is None:
        return nodes.columns
    if options.features is False:
        return []
    given = [options.features] if isinstance(options.features, str) else list(options.features)
    return [nodes.find(column, "feature") for column in given]


def _learn(nodes: Table, extra: int, options: Options, report: ReadReport) -> tuple[list[Block], dict[str, Rule]]:
    """Read every column, or those that were asked for, by rules that their content suggests."""
    columns = asked_for(nodes, options)
    chosen = set(columns)
    blocks: list[Block] = []
    rules: dict[str, Rule] = {}
    for name in nodes.columns:
        if name not in chosen:
            report.dropped[name] = "not asked for"
            rules[name] = Rule(DROPPED, {"why": "not asked for"})
    for name in columns:
        rules[name], block = learn_column(Column(nodes, name, extra), options)
        if block is None:
            report.dropped[name] = rules[name].facts["why"]
            continue
        blocks.append(block)
        report.features[name] = block.how
    return blocks, rules


def learn_column(column: Column, options: Options) -> tuple[Rule, Block | None]:
    """Return the rule that the content of a column suggests, and what it makes of it; None if it is left out."""
    asked = options.features is not None
    kinds: Mapping[str, str] = options.features if isinstance(options.features, Mapping) else {}
    try:
        rule, lists = _rule_for(column, options, kinds.get(column.name), asked=asked)
        return rule, _read(column, rule, lists, options.missing)
    except Unusable as why:
        if asked:
            raise BadInput(f"{column.table.name}: column {column.name!r} cannot be a feature: {why}") from None
        return Rule(DROPPED, {"why": str(why)}), None


def _read_by(schema: Schema, nodes: Table, extra: int, options: Options, report: ReadReport) -> list[Block]:
    """Read the columns that a schema has by its rules."""
    import pandas as pd

    blocks: list[Block] = []
    lacking: list[str] = []
    own = set(nodes.columns)
    for name, rule in schema.nodes.items():
        there = name in own
        if rule.kind == DROPPED:
            if there:
                report.dropped[name] = str(rule.facts.get("why", "not used before"))
            continue
        table = nodes
        if not there:
            lacking.append(name)
            nothing = pd.Series([None] * nodes.size, dtype=object)
            table = Table(pd.DataFrame({name: nothing}), nodes.name, nodes.line_of)
        block = read_by_rule(Column(table, name, extra), rule, options.missing)
        blocks.append(block)
        report.features[name] = block.how if there else "not in the table: all missing"
    strange = [name for name in nodes.columns if name not in schema.nodes]
    report.dropped.update(dict.fromkeys(strange, "not in the schema"))
    report.filled += lacking
    report.strange += strange
    if lacking:
        report.notes.append(f"{nodes.name} lacks columns that the schema has; they count as missing: {few(lacking)}")
    if strange:
        report.notes.append(f"{nodes.name} has columns that the schema lacks; they are not used: {few(strange)}")
    return blocks


def read_by_rule(column: Column, rule: Rule, missing: str) -> Block:
    """Return what a rule that was learnt before makes of a column."""
    try:
        return _read(column, rule, None, missing)
    except Unusable as why:
        name = column.table.name
        raise BadInput(f"{name}: column {column.name!r} cannot be read as {rule.kind!r}, as before: {why}") from None


def _read(column: Column, rule: Rule, lists: list[list[Any]] | None, missing: str) -> Block:
    if rule.kind == "number":
        return read_number(column, rule, missing)
    if rule.kind == "date":
        return read_date(column, rule, missing)
    if rule.kind == "category":
        return read_categories(column, rule)
    if rule.kind == "words":
        return read_words(column, rule)
    if lists is None:
        lists = _lists_of(column)
    return (
        _lists.read_bag(column, lists, rule)
        if rule.kind == "tokens"
        else _lists.read_vector(column, lists, rule, missing)
    )


def _lists_of(column: Column) -> list[list[Any]]:
    lists = _lists.as_lists(column.series)
    return _lists.split_texts(column.table, column.name) if lists is None else lists


def _rule_for(
    column: Column, options: Options, kind: str | None, *, asked: bool
) -> tuple[Rule, list[list[Any]] | None]:
    """Return how to read a column, and its lists if it holds some; raise `Unusable` with the reason if it cannot be."""
    if not asked and _looks_like_id(column.series):
        raise Unusable("whole numbers that all differ, in a column named like an id")
    lists: list[list[Any]] | None
    if kind in ("tokens", "vector"):
        lists = _lists_of(column)
        return _lists.learn_bag(lists) if kind == "tokens" else _lists.learn_vector(column, lists), lists
    if kind is None and (lists := _lists.as_lists(column.series)) is not None:
        return _lists.learn_vector(column, lists) if _lists.are_vectors(lists) else _lists.learn_bag(lists), lists
    form = None
    if kind is None:
        kind, form = _guess(column)
    if kind in ("number", "log"):
        # What was called a number by name is one as it is; only a guess may take logarithms.
        stated = column.name in options.features if isinstance(options.features, Mapping) else False
        return learn_number(column, asked=asked, log=kind == "log" if stated else None), None
    if kind == "category":
        return learn_categories(column, options.categories_max, asked=asked), None
    if kind == "words":
        return learn_words(column), None
    if kind in ("day first", "month first"):
        form = kind
    if form is None:
        form = date_form(column)
    if form is None:
        raise Unusable("its values are not dates")
    return learn_date(column, form, asked=asked), None


def _looks_like_id(series: Any) -> bool:
    name = str(series.name).strip().lower()
    named = name in ID_NAMES or name.endswith(("_id", " id"))
    return named and series.dtype.kind in "iu" and bool(series.is_unique) and len(series) > 1


def _guess(column: Column) -> tuple[str, str | None]:
    """Say how to read a column, and in which form if it holds dates; or raise why it cannot be read."""
    import pandas as pd

    series = column.series
    absent = gaps(series)
    if absent.all():
        raise Unusable("every value is missing")
    if (form := date_form(column)) is not None:
        return "date", form
    if is_number(series) or series.dtype.kind == "m":
        return "number", None
    inferred = pd.api.types.infer_dtype(series, skipna=True)
    if inferred in ("boolean", "categorical"):
        return "category", None
    if inferred in ("integer", "floating", "mixed-integer-float", "decimal"):
        return "number", None
    if inferred != "string":
        raise Unusable(f"values of unusual or unlike kinds ({inferred})")
    return _guess_text(column), None


def _guess_text(column: Column) -> str:
    import pandas as pd

    series = column.series
    present = ~gaps(series, placeholders=True)
    if not present.any():
        return "category"
    numeric = np.asarray(pd.to_numeric(series.where(present), errors="coerce").notna(), dtype=bool)
    texts = series[present].astype("str")
    if texts.str.fullmatch(r"\s*0\d+\s*").any():
        return "category"  # 007 is a code: as a number it would be 7
    if numeric.sum() == present.sum():
        return "number"
    if 2 * numeric.sum() >= present.sum():
        row = int((present & ~numeric).argmax())
        raise BadInput(
            f"{column.where(row)}: {shown(series.iloc[row])} in column {column.name!r} is not a number, as most values "
            f"there are; correct it or leave it blank, or pass features={{{column.name!r}: 'category', ...}} or a list "
            "of features without it"
        )
    return "words" if is_free_text(texts) else "category"
