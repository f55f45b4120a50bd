"""The loops over the bytes of text tables, compiled; src/native/reading.c has them in C.

Texts are numbered by a table of 16 bytes per slot: a short text stands in it, so that finding its number reads one
place of the memory.
"""

from __future__ import annotations

import numpy as np

from pegfan._compiled import compiled
from pegfan._hashing import mix

NUL, SPACE, TAB, QUOTE, RETURN, LOOSE = range(6)
"""The places of what `look_through` finds."""

_STEP = np.uint64(0x9E3779B97F4A7C15)
_CODE = np.uint64(0xFFFFFFFF)
SHORT = 11
"""Bytes of the longest text that stands in its slot."""
"""Bytes of a text that stands in its slot."""


@compiled("look_through")
def look_through(codes, start, delimiter, found):  # type: ignore[no-untyped-def]
    """Note which bytes there are from `start` on, and return the number of lines that end there.

    LOOSE: a cell starts with a 0 that goes on as a whole number, or with -0: as 007, 0x7 and -0 do.
    """
    lines = 0
    for k in range(start, len(codes)):
        c = codes[k]
        if c == 0:
            found[0] = 1
        elif c == 32:
            found[1] = 1
        elif c == 9:
            found[2] = 1
        elif c == 34:
            found[3] = 1
        elif c == 13:
            found[4] = 1
        elif c == 10:
            lines += 1
    for k in range(2, len(codes) - 1):
        if codes[k] == 48:
            signed = codes[k - 1] == 45
            before, after = codes[k - 2] if signed else codes[k - 1], codes[k + 1]
            starts = before in (delimiter, 10, 34, 32)
            goes_on = 48 <= after <= 57 or after in (120, 88) or (signed and after != 46)
            if starts and goes_on:
                found[5] = 1
    return lines


@compiled("cut_cells")
def cut_cells(block, delimiter, quoted, wanted, begins, ends, state):  # type: ignore[no-untyped-def]
    """Cut whole lines into cells, and return how many there are in the columns that are wanted.

    `state` becomes the bytes that were cut, the rows in them, and whether a row is another than it should be: it has
    more or fewer cells than there are columns, or quotes that are not just around a cell.
    """
    width, start, column, line, cells, held, rows = len(wanted), 0, 0, 0, 0, 0, 0
    good = True
    for k in range(len(block)):
        if block[k] != delimiter and block[k] != 10:
            continue
        newline = block[k] == 10
        begin, stop = start, k
        start = k + 1
        if newline and stop > begin and block[stop - 1] == 13:
            stop -= 1
        if newline and column == 0 and stop == begin:
            line = start
            continue
        good = column < width and (not newline or column + 1 == width)
        if good and wanted[column]:
            if quoted:
                if stop - begin >= 2 and block[begin] == 34 and block[stop - 1] == 34:
                    begin, stop = begin + 1, stop - 1
                for q in range(begin, stop):
                    good = good and block[q] != 34
            begins[held], ends[held] = begin, stop
            held += 1
        if not good:
            break
        column += 1
        if newline:
            column, line, cells = 0, start, held
            rows += 1
    state[0], state[1], state[2] = line, rows, 0 if good else 1
    return cells


@compiled()
def _word(data, begin, length):  # type: ignore[no-untyped-def]
    """Up to eight bytes, the first the lowest."""
    word = np.uint64(0)
    for k in range(min(max(length, 0), 8)):
        word |= np.uint64(data[begin + k]) << np.uint64(8 * k)
    return word


@compiled()
def _key(data, begin, length, seed):  # type: ignore[no-untyped-def]
    """What stands for a text in a slot, but for its code, and the hash that says in which.

    Of a short text its bytes and its length; of a longer one a hash, its length as far as there is room, and a mark
    that no short one has.
    """
    one = _word(data, begin, length)
    if length <= SHORT:
        other = (_word(data, begin + 8, length - 8) | (np.uint64(length) << np.uint64(24))) << np.uint64(32)
        return one, other, mix(mix(one ^ seed) + other + _STEP)
    hashed = mix(one ^ seed)
    for k in range(8, length, 8):
        hashed = mix(hashed + _word(data, begin + k, length - k) + _STEP)
    hashed = mix(hashed + np.uint64(length))
    return hashed, (np.uint64(0xFF000000) | np.uint64(length & 0xFFFFFF)) << np.uint64(32), hashed


@compiled("place_texts")
def place_texts(texts, starts, count, seed, slots):  # type: ignore[no-untyped-def]
    """Enter the first `count` texts into an empty table of slots."""
    mask = np.uint64(len(slots) // 2 - 1)
    for code in range(count):
        one, other, hashed = _key(texts, starts[code], starts[code + 1] - starts[code], np.uint64(seed))
        place = np.int64(hashed & mask)
        while slots[2 * place + 1] & _CODE:
            place = (place + 1) & np.int64(mask)
        slots[2 * place] = one
        slots[2 * place + 1] = other | np.uint64(code + 1)


@compiled("number_texts")
def number_texts(data, begins, ends, first, seed, slots, texts, starts, codes):  # type: ignore[no-untyped-def]
    """Number texts by their first appearance, from text `first` on, and return how many are done.

    `slots` is a table with two numbers per slot, a power of two long, at most half full; in the lower half of the
    second stands a code plus one. Text c is the bytes ``texts[starts[c]:starts[c + 1]]``, and the last place of
    `starts` holds how many there are. It ends early where there is no more room.
    """
    mask = np.int64(len(slots) // 2 - 1)
    count = starts[-1]
    for k in range(first, len(begins)):
        begin = np.int64(begins[k])
        length = np.int64(ends[k]) - begin
        if 4 * (count + 1) > len(slots) or count + 3 > len(starts) or starts[count] + length > len(texts):
            starts[-1] = count
            return k
        one, other, hashed = _key(data, begin, length, np.uint64(seed))
        place = np.int64(hashed & np.uint64(mask))
        while True:
            code = np.int64(slots[2 * place + 1] & _CODE) - 1
            if code < 0:
                slots[2 * place] = one
                slots[2 * place + 1] = other | np.uint64(count + 1)
                for b in range(length):
                    texts[starts[count] + b] = data[begin + b]
                starts[count + 1] = starts[count] + length
                codes[k] = count
                count += 1
                break
            same = slots[2 * place] == one and (slots[2 * place + 1] ^ other) <= _CODE
            if same and length > SHORT:
                same = starts[code + 1] - starts[code] == length
                for b in range(length if same else 0):
                    same = same and texts[starts[code] + b] == data[begin + b]
            if same:
                codes[k] = code
                break
            place = (place + 1) & mask
    starts[-1] = count
    return len(begins)


@compiled("find_texts")
def find_texts(data, begins, ends, seed, slots, texts, starts, codes):  # type: ignore[no-untyped-def]
    """Write the number of every text, -1 for those that are not in a table that `place_texts` filled.

    Nothing but `codes` is written, so that several threads may look into one table. Texts of up to 11 bytes are
    compared in the slots alone: where all are so short, `texts` and `starts` may be empty.
    """
    mask = np.int64(len(slots) // 2 - 1)
    for k in range(len(begins)):
        begin = np.int64(begins[k])
        length = np.int64(ends[k]) - begin
        one, other, hashed = _key(data, begin, length, np.uint64(seed))
        place = np.int64(hashed & np.uint64(mask))
        codes[k] = -1
        while True:
            code = np.int64(slots[2 * place + 1] & _CODE) - 1
            if code < 0:
                break
            same = slots[2 * place] == one and (slots[2 * place + 1] ^ other) <= _CODE
            if same and length > SHORT:
                same = starts[code + 1] - starts[code] == length
                for b in range(length if same else 0):
                    same = same and texts[starts[code] + b] == data[begin + b]
            if same:
                codes[k] = code
                break
            place = (place + 1) & mask


@compiled("text_keys")
def text_keys(texts, starts, rows, depth, keys):  # type: ignore[no-untyped-def]
    """Eight bytes of some texts from byte `depth` on, as numbers that sort as the texts do; zeros behind the end."""
    for k in range(len(rows)):
        begin = starts[rows[k]] + depth
        word = np.uint64(0)
        for b in range(min(max(starts[rows[k] + 1] - begin, 0), 8)):
            word |= np.uint64(texts[begin + b]) << np.uint64(56 - 8 * b)
        keys[k] = word


@compiled("take_all")
def take_all(values, places, out):  # type: ignore[no-untyped-def]
    """``out[k] = values[places[k]]``, without the copy of the places that NumPy makes."""
    for k in range(len(places)):
        out[k] = values[places[k]]


@compiled("copy_texts")
def copy_texts(texts, starts, codes, out):  # type: ignore[no-untyped-def]
    """Write some texts one after the other."""
    place = 0
    for k in range(len(codes)):
        for b in range(starts[codes[k]], starts[codes[k] + 1]):
            out[place] = texts[b]
            place += 1


@compiled("spread_texts")
def spread_texts(texts, starts, codes, out):  # type: ignore[no-untyped-def]
    """Write every byte of some texts into a place of its own, a text per row."""
    for k in range(len(codes)):
        begin = starts[codes[k]]
        for b in range(starts[codes[k] + 1] - begin):
            out[k, b] = texts[begin + b]
