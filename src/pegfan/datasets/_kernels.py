"""Loops over text tables, in C; src/native/reading.c has them.

Texts are numbered by a table of 16 bytes per slot: a short text stands in it, so that finding its number reads one
place of the memory.
"""

from __future__ import annotations

from pegfan._loops import Loop

NUL, SPACE, TAB, QUOTE, RETURN, LOOSE = range(6)
"""The places of what `look_through` finds."""

SHORT = 11
"""Bytes of the longest text that stands in its slot."""

look_through = Loop("int64 look_through(const uint8 codes[n], int64 start, int64 delimiter, uint8 found[6])")
"""Note which bytes there are from `start` on, and return the number of lines that end there.

LOOSE: a cell starts with a 0 that goes on as a whole number, or with -0: as 007, 0x7 and -0 do."""

cut_cells = Loop(
    "int64 cut_cells(const uint8 block[n], int64 delimiter, int64 quoted, const uint8 wanted[width], "
    "int32 begins[>=n], int32 ends[>=n], int64 state[3])"
)
"""Cut whole lines into cells, and return how many there are in the columns that are wanted.

`state` becomes the bytes that were cut, the rows in them, and whether a row is another than it should be: it has more
or fewer cells than there are columns, or quotes that are not just around a cell."""

place_texts = Loop(
    "void place_texts(const uint8 texts[n_texts], int64 count, const int64 starts[>=count + 1], uint64 seed, "
    "uint64 slots[n_slots])"
)
"""Enter the first `count` texts into an empty table of slots."""

number_texts = Loop(
    "int64 number_texts(const uint8 data[n_data], const I begins[n], const I ends[n], int64 first, uint64 seed, "
    "uint64 slots[n_slots], uint8 texts[n_texts], int64 starts[n_starts], int32 codes[n])"
)
"""Number texts by their first appearance, from text `first` on, and return how many are done.

`slots` is a table with two numbers per slot, a power of two long, at most half full; in the lower half of the second
stands a code plus one. Text c is the bytes ``texts[starts[c]:starts[c + 1]]``, and the last place of `starts` holds how
many there are. It ends early where there is no more room."""

find_texts = Loop(
    "void find_texts(const uint8 data[n_data], const I begins[n], const I ends[n], uint64 seed, "
    "const uint64 slots[n_slots], const uint8 texts[_bytes], const int64 starts[_starts], int32 codes[n])"
)
"""Write the number of every text, -1 for those that are not in a table that `place_texts` filled.

Nothing but `codes` is written, so that several threads may look into one table. Texts of up to 11 bytes are compared in
the slots alone: where all are so short, `texts` and `starts` may be empty."""

text_keys = Loop(
    "void text_keys(const uint8 texts[n_texts], const int64 starts[_starts], const int64 rows[n], int64 depth, "
    "uint64 keys[n])"
)
"""Eight bytes of some texts from byte `depth` on, as numbers that sort as the texts do; zeros behind the end."""

take_all = Loop("void take_all(const int32 values[_n], const int32 places[n], int32 out[n])")
"""``out[k] = values[places[k]]``, without the copy of the places that NumPy makes."""

copy_texts = Loop(
    "void copy_texts(const uint8 texts[_bytes], const int64 starts[_starts], const int64 codes[n], uint8 out[_room])"
)
"""Write some texts one after the other."""

spread_texts = Loop(
    "void spread_texts(const uint8 texts[_bytes], const int64 starts[_starts], const int64 codes[n], "
    "uint32 out[n, width])"
)
"""Write every byte of some texts into a place of its own, a text per row."""
