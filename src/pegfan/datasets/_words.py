"""Columns of free text: how often each word occurs, words hashed into a fixed number of columns."""

from __future__ import annotations

import re
import zlib
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from pegfan.datasets._blocks import Block, Column, Unusable, gaps
from pegfan.datasets._schema import Rule

MOST = 256
"""Columns that the words of one column become, at most."""

_WORD = re.compile(r"\w+")
_SENTENCE = 3.0
"""Words per text, on average, from which on texts are sentences and not names."""


def is_free_text(texts: Any) -> bool:
    """Whether texts are sentences, most of them different."""
    some = texts.iloc[:: max(1, len(texts) // 1000)]
    words = sum(len(text.split()) for text in some)  # an address of mail is one
    return bool(words >= _SENTENCE * len(some) and 2 * texts.nunique() > len(texts))


def learn_words(column: Column) -> Rule:
    """Return the number of columns: a power of two that has room for the words, up to `MOST`."""
    words = {word for text in _texts(column) for word in _words(text)}
    if not words:
        raise Unusable("texts without words")
    return Rule("words", {"columns": min(MOST, 1 << max(len(words) - 1, 1).bit_length()), "words": len(words)})


def read_words(column: Column, rule: Rule) -> Block:
    """How often each word occurs, in small letters; words whose checksums agree share a column."""
    width = int(rule.facts["columns"])
    place: dict[str, int] = {}
    indptr, codes = [0], []
    for text in _texts(column):
        for word in _words(text):
            if word not in place:
                place[word] = zlib.crc32(word.encode()) % width  # the same on every machine, in every run
            codes.append(place[word])
        indptr.append(len(codes))
    indptr += [len(codes)] * column.extra
    block = csr_array(
        (np.ones(len(codes)), np.array(codes, np.int64), np.array(indptr)), shape=(len(indptr) - 1, width)
    )
    block.sum_duplicates()
    lacking = int(gaps(column.series).sum())
    how = f"free text: {len(place):,} different words hashed into {width} columns" + (
        f", {lacking} missing" if lacking else ""
    )
    return Block(block, [f"{column.name}#{k}" for k in range(width)], how)


def _texts(column: Column) -> list[str]:
    absent = gaps(column.series)
    return ["" if gone else str(text) for text, gone in zip(column.series, absent.tolist(), strict=True)]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
