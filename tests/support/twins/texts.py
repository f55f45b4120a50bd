"""The loops of pegfan.datasets: text tables."""

from __future__ import annotations

import re

import numpy as np

from pegfan.datasets._kernels import SHORT

_WORD = 2**64 - 1


def look_through(codes, start, delimiter, found):
    text, mark = codes.tobytes(), re.escape(chr(delimiter)).encode()
    for place, byte in enumerate(b'\0 \t"\r'):
        found[place] |= byte in text[start:]
    found[5] |= bool(re.search(rb'(?<=[\n" %b])(0[0-9xX]|-0[^.])' % mark, text[1:], re.DOTALL))
    return text[start:].count(b"\n")


def cut_cells(block, delimiter, quoted, wanted, begins, ends, state):
    cells, rows, end, bad = 0, 0, 0, False
    for line in re.findall(rb"[^\n]*\n|[^\n]+\Z", block.tobytes()):
        whole, row, begin = line.endswith(b"\n"), [], end
        body = line.removesuffix(b"\n").removesuffix(b"\r") if whole else line
        for column, cell in enumerate(body.split(bytes([delimiter]))[: None if whole else -1]):
            around = quoted and len(cell) >= 2 and cell[:1] == cell[-1:] == b'"'
            if column < len(wanted) and wanted[column]:
                row.append((begin + around, begin + len(cell) - around))
                bad |= quoted and b'"' in cell[around : len(cell) - around]
            bad |= column >= len(wanted)
            begin += len(cell) + 1
        bad |= whole and bool(body) and column + 1 != len(wanted)
        if bad or not whole:
            break
        if body:
            begins[cells : cells + len(row)], ends[cells : cells + len(row)] = np.array(row, np.int32).reshape(-1, 2).T
            cells, rows = cells + len(row), rows + 1
        end += len(line)
    state[:] = end, rows, bad
    return cells


def _mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _WORD
    return x ^ (x >> 31)


def _key(text, seed):
    """What stands for a text in a slot, but for its code, and the hash that says in which."""
    first, *more = [int.from_bytes(text[k : k + 8], "little") for k in range(0, max(len(text), 1), 8)]
    hashed = _mix(first ^ seed)
    if len(text) <= SHORT:
        other = (sum(more) | len(text) << 24) << 32
        return first, other, _mix((hashed + other + 0x9E3779B97F4A7C15) & _WORD)
    for word in more:
        hashed = _mix((hashed + word + 0x9E3779B97F4A7C15) & _WORD)
    hashed = _mix(hashed + len(text) & _WORD)
    return hashed, (0xFF000000 | len(text) & 0xFFFFFF) << 32, hashed


def _list(data, begins, ends):
    return [data[begin:end].tobytes() for begin, end in zip(begins, ends, strict=True)]


def place_texts(texts, count, starts, seed, slots):
    mask = len(slots) // 2 - 1
    for code, text in enumerate(_list(texts, starts[:count], starts[1 : count + 1])):
        one, other, hashed = _key(text, int(seed))
        place = hashed & mask
        while int(slots[2 * place + 1]) & 0xFFFFFFFF:
            place = (place + 1) & mask
        slots[2 * place], slots[2 * place + 1] = one, other | code + 1


def number_texts(data, begins, ends, first, seed, slots, texts, starts, codes):
    count = int(starts[-1])
    numbers = {text: code for code, text in enumerate(_list(texts, starts[:count], starts[1 : count + 1]))}
    done = len(begins)
    for k, text in enumerate(_list(data, begins[first:], ends[first:]), first):
        if text not in numbers:
            end = starts[count] + len(text)
            if 4 * (count + 1) > len(slots) or count + 3 > len(starts) or end > len(texts):
                done = k
                break
            texts[starts[count] : end], starts[count + 1] = np.frombuffer(text, np.uint8), end
            numbers[text], count = count, count + 1
        codes[k] = numbers[text]
    slots[:], starts[-1] = 0, count
    place_texts(texts, count, starts, seed, slots)
    return done


def find_texts(data, begins, ends, seed, slots, texts, starts, codes):
    numbers = {text: code for code, text in enumerate(_list(texts, starts[:-1], starts[1:]))}
    codes[:] = [numbers.get(text, -1) for text in _list(data, begins, ends)]


def text_keys(texts, starts, rows, depth, keys):
    for k, text in enumerate(_list(texts, starts[rows], starts[rows + 1])):
        keys[k] = int.from_bytes(text[depth : depth + 8].ljust(8, b"\0"), "big")


def take_all(values, places, out):
    out[:] = values[places]


def copy_texts(texts, starts, codes, out):
    text = b"".join(_list(texts, starts[codes], starts[codes + 1]))
    out[: len(text)] = np.frombuffer(text, np.uint8)


def spread_texts(texts, starts, codes, out):
    for k, text in enumerate(_list(texts, starts[codes], starts[codes + 1])):
        out[k, : len(text)] = np.frombuffer(text, np.uint8)
