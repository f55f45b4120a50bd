"""Delimited text: its delimiter, header, comments and quotes are detected, then Arrow parses it.

The file is read in blocks. A line number costs a second, slow pass and is worked out for an error message only.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import re
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from pegfan._checks import BadInput
from pegfan._limits import BYTE, CELL, COLUMN, MOST_COLUMNS, NUMBER, NUMBER_DIGITS, require
from pegfan.datasets import _kernels
from pegfan.datasets._coded import Cells, Coded, Numberer
from pegfan.datasets._header import has_header, is_number
from pegfan.datasets._ids import WHOLE_NUMBER
from pegfan.datasets._table import MISSING_WORDS, Table, unique_names

BLOCK = 2**20
"""Bytes that are read at once: small enough for the processor's cache."""
LARGEST_BLOCK = 2**26
"""Bytes that a row must fit into."""
_LARGE = 2**20  # bytes, from which on texts are numbered while they are read
_SHORT = 64  # characters of a text that may be an id
_CUT, _LARGEST_CUT = 2**18, 2**22  # bytes that are cut into cells at once, and with a long line
_SAMPLE_LINES = 50
_LONG, _LINES = 2**20, 15  # bytes of first lines that are looked at anyway, and of memory per byte of more than those
_DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar", " ": "white space"}
_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARKS = {
    **{codecs.BOM_UTF32_LE: "UTF-32", codecs.BOM_UTF32_BE: "UTF-32"},  # first: one begins like a mark of UTF-16
    **{codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"},
}
COMMENTS = "#%"
"""What comments start with, unless the caller says it."""


@dataclass(frozen=True)
class TextSettings:
    """What the caller says about text files; None leaves it to a guess."""

    delimiter: str | None = None
    header: bool | None = None
    comments: str | None = None
    max_bytes: int | None = None  # that reading may take, see `pegfan._limits`; None where it is done in pieces
    known_names: frozenset[str] = frozenset()  # in lower case; any of them in the first line makes it a header

    @property
    def marks(self) -> str:
        """The characters that a comment may start with."""
        return COMMENTS if self.comments is None else self.comments


@dataclass(frozen=True)
class _Layout:
    path: Path
    settings: TextSettings
    delimiter: str
    header: bool
    names: list[str]
    skip: int  # lines before the first row of data
    decimal: str  # "." or ","
    spaced: bool  # every delimiter is followed by a space, which belongs to it
    as_text: list[str]  # columns of digits too long for an integer
    sure: bool = True  # whether the first line alone shows if it is a header
    quoted: bool = False
    odd_quotes: bool = False
    commented: int = 0  # lines that are comments
    blanked: bool = False  # whether some of them are among the rows
    doubtful: int = 0  # those of them that have as many cells as a row
    marked: int = 0  # rows that begin like a comment
    numeric: bool = True  # whether rows begin with numbers, as far as the first ones show
    numbers: int = 0  # columns of numbers alone, likewise
    text_share: float = 1.0  # of the bytes, the part in other columns, likewise
    uneven: bool = False  # white space of several characters, or at the end of lines
    loose: bool = False  # a whole number may be written in another way than Python would: 007, +7, " 7"
    sample: tuple[str, ...] = ()  # the first rows, as they are written
    size: int = 0  # bytes after what is skipped
    lines: int = 0  # line ends in them
    returns: bool = False  # carriage returns that end a line by themselves


class _Unpacked(io.RawIOBase):
    """The bytes in a gzip file; no more than allowed, and damage reported with the name of the file."""

    def __init__(self, path: Path, max_bytes: int | None, cost: int) -> None:
        self._path, self._limit, self._cost, self._read = path, max_bytes, cost, 0
        self._file = path.open("rb")
        self._stream = gzip.GzipFile(fileobj=self._file)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            count = int(self._stream.readinto(buffer))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise BadInput(f"{self._path} is damaged or cut short: {error}") from error
        self._read += count
        if self._limit is not None:
            what = f"{self._path} unpacks to {self._read:,} bytes or more, which"
            require(what, self._cost * self._read, self._limit, pieces=self._cost == 1)
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def is_packed(path: Path) -> bool:
    """Whether a file is packed by gzip, whatever its name."""
    with path.open("rb") as file:
        return file.read(len(_GZIP)) == _GZIP


def open_bytes(path: Path, max_bytes: int | None, cost: int = 1) -> io.BufferedReader:
    """Open a file, packed by gzip or not, of which every byte takes `cost` in memory, up to `max_bytes` in all.

    What a table of text takes is known by its rows and columns: see `_require_room`.
    """
    if is_packed(path):
        return io.BufferedReader(_Unpacked(path, max_bytes, cost), buffer_size=2**20)
    if max_bytes is not None:
        size = path.stat().st_size
        require(f"{path}: {size:,} bytes", cost * size, max_bytes, pieces=cost == 1)
    return path.open("rb")


# -------------------------------------------------------------------- detecting the layout


def read_text(path: Path, settings: TextSettings) -> tuple[Table, str]:
    """Return the table in a delimited text file, and what was detected about it."""
    layout = find_layout(path, settings)
    cells = _parse(layout)
    how = f"{_DELIMITERS.get(layout.delimiter, repr(layout.delimiter))}{' and space' if layout.spaced else ''}"
    how += f", {'' if layout.header else 'no '}header{', decimal comma' if layout.decimal == ',' else ''}"
    how += f", {len(cells):,} rows" + marked_words(layout)
    table = Table(
        cells,
        path.name,
        partial(line_of, layout),
        header=layout.header,
        other=None if layout.sure else partial(read_text, path, replace(settings, header=not layout.header)),
        verbatim=cache(partial(_as_written, layout)),
    )
    return table, how


def marked_words(layout: _Layout) -> str:
    """Say what was made of lines that begin like a comment."""
    words, marks = "", " or ".join(layout.settings.marks)
    if layout.commented:
        words += f", {layout.commented:,} comment lines"
    if layout.doubtful:
        words += f" ({layout.doubtful:,} of them with as many cells as a row; --comments '' reads them)"
    if layout.marked:
        words += f", {layout.marked:,} rows begin with {marks} (--comments {layout.settings.marks!r} skips them)"
    return words


def _as_written(layout: _Layout, column: str) -> Any:
    """Return a column as the texts that the file holds."""
    name = layout.names[layout.names.index(column)]
    table = _arrow_table(replace(layout, as_text=[name]), LARGEST_BLOCK, only=[name])
    return table.column(0).to_pandas().rename(column)


def read_numbers(path: Path, names: list[str], skip: int, comments: str, max_bytes: int | None) -> Table:
    """Return the table of white-space separated columns, none of them named, after `skip` lines."""
    settings = TextSettings(delimiter=" ", header=False, comments=comments, max_bytes=max_bytes)
    layout = _inspect(_Layout(path, settings, " ", False, names, skip, ".", spaced=False, as_text=[]))
    return Table(_parse(layout), path.name, partial(line_of, layout), header=False)


def line_of(layout: _Layout, row: int) -> int:
    """The line of a row of data."""
    return next((line for line, _ in islice(_records(layout), row, None)), 0)


def find_layout(path: Path, settings: TextSettings, look: bool = True) -> _Layout:
    """Say how a file is laid out; without `look`, from its first lines alone, which do not say how to parse it."""
    lines = _first_lines(path, settings.max_bytes)
    kept = [k for k, line in enumerate(lines) if line.strip() and line.lstrip()[0] not in settings.marks]
    if not kept:
        raise BadInput(f"{path} holds no rows, only blank lines and comments (comments={settings.marks!r})")
    sample = [lines[k] for k in kept][:_SAMPLE_LINES]
    delimiter = settings.delimiter or _guess_delimiter(sample, path)
    if len(delimiter) != 1:
        raise ValueError(f"delimiter must be a single character (' ' for white space), got {delimiter!r}")
    rows = _split(sample, delimiter)
    require_columns(path, max(map(len, rows)))
    found = has_header(rows, settings.known_names) if settings.header is None else settings.header
    header = len(rows[0]) > 3 and not any(map(is_number, rows[0])) if found is None else found
    names = _column_names(rows, header)
    cells = [cell for row in rows[header:] for cell in row]
    long = {k for row in rows[header:] for k, cell in enumerate(row) if len(cell) > 18 and cell.strip().isdigit()}
    numbers, text_share = _number_columns(rows[header:], len(names))
    layout = _Layout(
        path=path,
        settings=settings,
        delimiter=delimiter,
        header=header,
        names=names,
        skip=kept[0] + header,
        decimal="," if delimiter == ";" and _has_decimal_commas(cells) else ".",
        spaced=delimiter != " " and _is_spaced(rows),
        as_text=[names[k] for k in sorted(long) if k < len(names)],
        sure=found is not None,
        sample=tuple(sample[header:]),
        numeric=all(is_number(row[0]) for row in rows[header:]),
        numbers=numbers,
        text_share=text_share,
        commented=sum(bool(line.strip()) for line in lines[: kept[0]]),
    )
    return _inspect(layout) if look else layout


def _number_columns(rows: list[list[str]], width: int) -> tuple[int, float]:
    """How many columns hold nothing but numbers and gaps; and of all letters, the share in the other columns."""
    columns = [[row[k] for row in rows if k < len(row)] for k in range(width)]
    sizes = [sum(map(len, column)) + len(column) for column in columns]
    numbers = [all(is_number(cell) or cell in MISSING_WORDS for cell in column) for column in columns]
    texts = sum(size for size, number in zip(sizes, numbers, strict=True) if not number)
    return sum(numbers), texts / max(sum(sizes), 1)


def _first_lines(path: Path, max_bytes: int | None) -> list[str]:
    """Return the whole lines at the start of the file, at least two."""
    with open_bytes(path, max_bytes) as stream:
        start = stream.read(2**16)
        while start.count(b"\n") < (_SAMPLE_LINES if len(start) < 2**20 else 2) and len(start) < LARGEST_BLOCK:
            more = stream.read(2**18)
            if not more:
                break
            start += more
        complete = not stream.read(1)
    if max_bytes is not None and len(start) > _LONG:
        require(f"{path}: {len(start):,} bytes in its first lines", _LINES * len(start), max_bytes)
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS.items() if start.startswith(mark)), None)
    if encoding is not None:
        raise BadInput(f"{path} is {encoding} text; save it as UTF-8")
    if b"\0" in start:
        raise BadInput(f"{path} is not a text table: it holds zero bytes; is its suffix right?")
    lines = start.removeprefix(b"\xef\xbb\xbf").splitlines()
    if not complete and len(lines) > 1:
        lines.pop()
    return list(_decoded(lines, path))


def _decoded(lines: Iterable[bytes], path: Path) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        try:
            yield line.decode()
        except UnicodeDecodeError:
            raise BadInput(f"{path}, line {number}: not UTF-8 text; save the file as UTF-8") from None


def _split(lines: list[str], delimiter: str) -> list[list[str]]:
    if delimiter == " ":
        lines = [" ".join(line.split()) for line in lines]
    try:
        return [row for row in csv.reader([line + "\n" for line in lines], delimiter=delimiter) if row]
    except csv.Error:  # a stray quote; the parser will say where
        return [line.split(delimiter) for line in lines]


def _guess_delimiter(lines: list[str], path: Path) -> str:
    """Return the delimiter that cuts the most lines into equally many fields, at least two."""
    tabbed = any(suffix in (".tsv", ".tab") for suffix in path.suffixes)
    best, most = ",", 0.0
    for delimiter in sorted(_DELIMITERS, key=lambda mark: mark != "\t" if tabbed else False):
        counts = [len(row) for row in _split(lines, delimiter)]
        usual = max(counts[1:] or counts, key=counts.count)
        # R leaves out the name of the first column; a decimal comma looks alike, so that counts for less.
        agreeing = counts.count(usual) + (counts[0] == usual - 1) / 2
        if usual > 1 and agreeing > most:
            best, most = delimiter, agreeing
    return best


def _is_spaced(rows: list[list[str]]) -> bool:
    """Whether every delimiter is followed by a space and no line starts with one: then spaces are no part of cells."""
    later = [cell for row in rows for cell in row[1:] if cell]
    return bool(later) and all(cell[0] == " " for cell in later) and not any(row[0][:1] == " " for row in rows)


def _has_decimal_commas(cells: list[str]) -> bool:
    marks = {match[1] for cell in cells if (match := re.fullmatch(r"-?\d+([.,])\d+", cell.strip()))}
    return marks == {","}


def require_columns(path: Path, count: int) -> None:
    """Refuse a table that is too wide to be looked at column by column."""
    if count > MOST_COLUMNS:
        raise BadInput(
            f"{path} has {count:,} columns, and a table may have {MOST_COLUMNS:,}; keep features of so many columns as "
            "an array in an npz file"
        )


def _column_names(rows: list[list[str]], header: bool) -> list[str]:
    width = len(rows[header]) if len(rows) > header else len(rows[0])
    if not header:
        return ["source", "target", "weight"][:width] if width in (2, 3) else [f"column{k}" for k in range(width)]
    given = [cell.strip() for cell in rows[0]]
    given = ["", *given] if len(given) == width - 1 else given
    return unique_names(name or ("index" if k == 0 else f"column{k}") for k, name in enumerate(given))


def _inspect(layout: _Layout) -> _Layout:
    """Look through the whole file for what changes how it must be parsed."""
    marks, comment = [mark.encode() for mark in layout.settings.marks], _comment_lines(layout)
    mark = layout.delimiter.encode()
    ragged = [b"  ", b"\t", b" \n", b"\n ", b" \r"] if mark == b" " else []
    padding = [] if mark == b" " else [mark + b" ", b" " + mark, b"\n ", b" \n", b" \r", b'" ', b' "']
    quotes, marked, uneven, loose, last = 0, 0, False, False, b"\n\n\n"
    size, lines, returns = 0, 0, 0
    with open_bytes(layout.path, layout.settings.max_bytes) as stream:
        for _ in range(layout.skip):
            returns += b"\r" in stream.readline().rstrip(b"\r\n")
        while block := stream.read(BLOCK):
            whole = last + block  # the first cell has no line before it, and a pad may lie across two blocks
            found = np.zeros(6, np.uint8)
            lines += int(_kernels.look_through(np.frombuffer(whole, np.uint8), len(last), mark[0], found))
            size += len(block)
            _require_room(layout, lines, size)
            if found[_kernels.NUL]:
                raise BadInput(f"{layout.path} is not a text table: it holds zero bytes; is its suffix right?")
            quotes += block.count(b'"') if found[_kernels.QUOTE] else 0
            if found[_kernels.RETURN] or last[-1:] == b"\r":
                returns += block.count(b"\r") - whole[len(last) - 1 :].count(b"\r\n")
            if comment is not None and any(mark in block for mark in marks):
                marked += len(comment.findall(block))
                marked -= last[-1:] != b"\n" and comment.match(block) is not None
            uneven = uneven or (bool(ragged) and (block[:1] == b" " or any(mark in block for mark in ragged)))
            padded = (found[_kernels.SPACE] or b" " in last) and any(pad in whole for pad in padding)
            loose = bool(loose or padded or found[_kernels.LOOSE])
            last = whole[-3:]
    layout = replace(
        layout,
        quoted=quotes > 0,
        odd_quotes=quotes % 2 == 1,
        uneven=uneven,
        loose=loose,
        size=size,
        lines=lines,
        returns=returns > 0,
    )
    # Among quotes, a line may start with # inside a text: only the comments at the top count there.
    return _look_at_marked(layout) if marked and not quotes else layout


def _comment_lines(layout: _Layout) -> re.Pattern[bytes] | None:
    """What matches lines that begin like a comment."""
    marks = re.escape(layout.settings.marks).encode()
    return re.compile(rb"(?m)^[ \t]*[" + marks + rb"][^\n]*") if marks else None


def _look_at_marked(layout: _Layout) -> _Layout:
    """Count the lines after the first row that begin like a comment, and are one or not."""
    comment = _comment_lines(layout)
    assert comment is not None
    commented, doubtful, marked = 0, 0, 0
    with open_bytes(layout.path, layout.settings.max_bytes) as stream:
        for line in islice(stream, layout.skip, None):
            if comment.match(line):
                skipped = _is_comment(layout, line)
                commented, marked = commented + skipped, marked + (not skipped)
                doubtful += skipped and layout.settings.comments is None and _is_row(layout, line)
    total = layout.commented + commented
    return replace(layout, commented=total, doubtful=doubtful, marked=marked, blanked=commented > 0)


def _is_row(layout: _Layout, line: bytes) -> bool:
    """Whether a line that begins like a comment has as many cells as a row."""
    if layout.delimiter == " ":
        cells = line.split()
        return len(cells) == len(layout.names) and cells[0].decode(errors="replace") not in layout.settings.marks
    return line.count(layout.delimiter.encode()) + 1 == len(layout.names)


def _is_comment(layout: _Layout, line: bytes) -> bool:
    """Whether a line after the first row that begins like a comment is one: always, if the caller said so.

    Else it is a row, if it has as many cells, and rows do not begin with numbers: ids may start with anything.
    """
    return layout.settings.comments is not None or layout.numeric or not _is_row(layout, line)


def _require_room(layout: _Layout, lines: int, size: int) -> None:
    """Refuse a table that has too many cells for the memory, however few bytes they are."""
    width, most = len(layout.names), layout.settings.max_bytes
    if most is not None:
        what = f"{layout.path}: {max(lines, 1):,} rows of {width:,} columns"
        numbers = lines * layout.numbers
        text = max(layout.text_share * size, size - NUMBER_DIGITS * numbers)
        held = NUMBER * numbers + CELL * (lines * width - numbers) + BYTE * text + COLUMN * width
        require(what, held, most, pieces=True)


def _require_texts(layout: _Layout, table: Any) -> None:
    """Refuse texts that take too much memory, where the first rows had nothing but numbers."""
    import pyarrow as pa

    if layout.settings.max_bytes is not None:
        texts = [column for column in table.columns if pa.types.is_string(column.type)]
        held = sum(CELL * len(column) + BYTE * column.nbytes for column in texts)
        what = f"{layout.path}: texts in {len(texts):,} columns"
        require(
            what, held + NUMBER * len(table) * (table.num_columns - len(texts)), layout.settings.max_bytes, pieces=True
        )


# -------------------------------------------------------------------- parsing


def _parse(layout: _Layout) -> Any:
    """Return the rows: a data frame, or cells if there are many texts."""
    if layout.odd_quotes:
        require_quotes_to_close(layout)
    coded = _coded_columns(layout)
    others = [name for name in layout.names if name not in coded]
    if not others:
        return Cells(layout.names, coded, None)
    frame = _frame(layout, others if coded else None)
    if not coded:
        return frame
    if len(frame) != len(next(iter(coded.values())).codes):  # Arrow sees other rows: it decides
        return _frame(layout, None)
    return Cells(layout.names, coded, frame)


def _frame(layout: _Layout, only: list[str] | None) -> Any:
    """Return all columns, or some, as Arrow reads them."""
    import pyarrow as pa

    try:
        table = _arrow_table(layout, BLOCK, only)
    except pa.ArrowInvalid as error:
        try:
            if "straddl" not in str(error):  # Arrow has no class for it
                raise
            table = _arrow_table(layout, LARGEST_BLOCK, only)  # a row longer than a block
        except pa.ArrowInvalid as final:
            raise BadInput(diagnosis(layout, str(final))) from final
    _require_texts(layout, table)
    if layout.quoted and hold_line_ends(table.columns):
        require_quotes_to_close(layout)
    for k, column in enumerate(table.columns):
        if pa.types.is_binary(column.type):
            raise BadInput(diagnosis(layout, "it is not UTF-8 text"))
        if pa.types.is_string(column.type):
            table = table.set_column(k, table.column_names[k], _numbers_if_all(column, layout))
    if layout.loose:
        table = _with_codes(table, layout)
    return table.to_pandas(split_blocks=True, self_destruct=True, date_as_object=False)


def _coded_columns(layout: _Layout) -> dict[str, Coded]:
    """Return the columns of short texts as numbers, if there are many rows and nothing about them is unusual."""
    unusual = layout.spaced or layout.odd_quotes or layout.returns or len(layout.delimiter.encode()) > 1
    wanted = [] if unusual or layout.size < _LARGE else _text_columns(layout)
    return _number_cells(layout, wanted) if wanted else {}


def _text_columns(layout: _Layout) -> list[str]:
    """Return the columns that Arrow, which looks at every cell, can only find to be texts, as the first ones show."""
    import pyarrow as pa

    try:
        table = _read_csv(io.BytesIO("\n".join(layout.sample).encode()), replace(layout, skip=0), BLOCK)
    except pa.ArrowInvalid:  # to be said about the whole file
        return []
    found = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_string(column.type) and name not in layout.as_text:
            cells = column.to_pylist()
            texts = [cell for cell in cells if not is_number(cell) and cell not in MISSING_WORDS]
            if texts and max(map(len, cells)) <= _SHORT:
                found.append(name)
    return found


def _number_cells(layout: _Layout, names: list[str]) -> dict[str, Coded]:
    """Return columns of texts as numbers; none where a row is not as expected, which is left to Arrow."""
    import pyarrow as pa

    wanted = np.array([name in names for name in layout.names])
    codes = np.empty((len(names), layout.lines + 1), np.int32)
    numberer, rows, rest = Numberer(), 0, b""
    mark, state = ord(layout.delimiter), np.zeros(3, np.int64)
    begins, ends, some = np.empty((3, 0), np.int32)
    with _clean_stream(layout) as stream:
        for _ in range(layout.skip):
            stream.readline()
        while True:
            more = stream.read(_CUT)
            block = rest + (more or b"\n")
            if len(block) > _LARGEST_CUT:
                return {}
            if len(begins) < len(block):
                begins, ends, some = np.empty((3, len(block)), np.int32)
            data = np.frombuffer(block, np.uint8)
            found = int(_kernels.cut_cells(data, mark, layout.quoted, wanted, begins, ends, state))
            cut, new, bad = state.tolist()
            if bad or rows + new > codes.shape[1]:
                return {}
            numberer.number(data, begins[:found], ends[:found], some[:found])
            codes[:, rows : rows + new] = some[:found].reshape(new, len(names)).T
            rows, rest = rows + new, block[cut:]
            if not more:
                break
    texts = numberer.texts()
    try:
        texts.arrow.validate(full=True)
    except pa.ArrowInvalid:  # not UTF-8
        return {}
    texts = texts.in_order([column[:rows] for column in codes])
    return {name: Coded(codes[k, :rows], texts) for k, name in enumerate(n for n in layout.names if n in names)}


def _with_codes(table: Any, layout: _Layout) -> Any:
    """Return the table with texts in place of whole numbers that are not written as such: 007 and 7 are two ids."""
    import pyarrow as pa
    import pyarrow.compute as arrow

    whole = [name for name in table.column_names if pa.types.is_integer(table.schema.field(name).type)]
    if not whole:
        return table
    texts = _arrow_table(replace(layout, as_text=whole), LARGEST_BLOCK, only=whole)
    for name in whole:
        text = texts[name]
        plain = arrow.or_(arrow.match_substring_regex(text, f"^({WHOLE_NUMBER})?$"), arrow.is_null(text))
        odd = arrow.or_(arrow.invert(plain), arrow.equal(text, "-0"))
        if arrow.any(odd).as_py():
            table = table.set_column(table.column_names.index(name), name, text)
    return table


def _numbers_if_all(column: Any, layout: _Layout) -> Any:
    """Return a column of texts as numbers if it holds nothing but numbers and words for missing ones."""
    import pyarrow as pa
    import pyarrow.compute as arrow

    if any(not is_number(text) and text not in MISSING_WORDS for text in column.slice(0, 100).to_pylist()):
        return column  # as nearly every column of texts
    missing = arrow.is_in(column, value_set=pa.array(MISSING_WORDS))
    if arrow.all(missing).as_py() or not arrow.any(missing).as_py() or layout.decimal != ".":
        return column
    try:
        return arrow.cast(arrow.if_else(missing, None, column), pa.float64())
    except pa.ArrowInvalid:
        return column


def _arrow_table(layout: _Layout, block: int, only: list[str] | None = None) -> Any:
    import pyarrow as pa
    import pyarrow.compute as arrow

    as_it_is = not (layout.blanked or layout.uneven or is_packed(layout.path))
    with contextlib.nullcontext(str(layout.path)) if as_it_is else _clean_stream(layout) as source:
        table = _read_csv(source, layout, block, only)
    for k, column in enumerate(table.columns if layout.spaced else ()):
        if pa.types.is_string(column.type):
            table = table.set_column(k, table.column_names[k], arrow.ascii_trim(column, characters=" "))
    return table


def _read_csv(source: Any, layout: _Layout, block: int, only: list[str] | None = None) -> Any:
    from pyarrow import csv as arrow_csv

    return arrow_csv.read_csv(source, **_csv_options(layout, block, only))


def _csv_options(layout: _Layout, block: int, only: list[str] | None = None) -> dict[str, Any]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    return {
        "read_options": arrow_csv.ReadOptions(column_names=layout.names, skip_rows=layout.skip, block_size=block),
        "parse_options": arrow_csv.ParseOptions(delimiter=layout.delimiter, newlines_in_values=layout.quoted),
        "convert_options": arrow_csv.ConvertOptions(
            null_values=[""],  # "NA" may be a name; each column decides what it means
            decimal_point=layout.decimal,
            column_types={name: pa.string() for name in layout.as_text},
            include_columns=only,
        ),
    }


@contextlib.contextmanager
def open_as_text(layout: _Layout, block: int) -> Iterator[Any]:
    """Open a file for reading in batches, every cell as the text that it holds."""
    from pyarrow import csv as arrow_csv

    options = _csv_options(replace(layout, as_text=layout.names), block)
    with _clean_stream(layout) as stream, arrow_csv.open_csv(stream, **options) as reader:
        yield reader


def one_column(path: Path, name: str, decimal: str, *, as_text: bool) -> Any:
    """Return the data frame of a file without a header that has one column, every cell in quotes."""
    settings = TextSettings(delimiter=",", header=False, comments="")
    layout = _Layout(path, settings, ",", False, [name], 0, decimal, spaced=False, as_text=[name] if as_text else [])
    return _frame(replace(layout, quoted=True, loose=True), None)


def _clean_stream(layout: _Layout) -> io.BufferedReader:
    stream = open_bytes(layout.path, layout.settings.max_bytes)
    return io.BufferedReader(_Cleaned(stream, layout), BLOCK) if layout.blanked or layout.uneven else stream


class _Cleaned(io.RawIOBase):
    """A stream with comment lines blanked and runs of white space made single spaces; lines keep their numbers."""

    def __init__(self, stream: io.BufferedReader, layout: _Layout) -> None:
        self._stream, self._layout = stream, layout
        self._ready, self._rest = b"", b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            block = self._stream.read(BLOCK)
            whole, newline, rest = block.rpartition(b"\n")
            if not block:
                self._ready, self._rest = self._clean(self._rest), b""
                break
            if not newline and len(self._rest) > LARGEST_BLOCK:
                raise BadInput(f"{self._layout.path} has a line of more than {LARGEST_BLOCK:,} bytes")
            if newline:
                self._ready, self._rest = self._clean(self._rest + whole + newline), rest
            else:
                self._rest += rest
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count

    def _clean(self, block: bytes) -> bytes:
        layout, comment = self._layout, _comment_lines(self._layout)
        if layout.blanked and comment is not None:
            block = comment.sub(lambda line: b"" if _is_comment(layout, line[0]) else line[0], block)
        if layout.uneven:
            # What stands between quotes is a text, spaces and all.
            spaces = rb'"[^"\n]*"|[ \t]+' if layout.quoted else rb"[ \t]+"
            block = re.sub(spaces, lambda found: found[0] if found[0][:1] == b'"' else b" ", block)
            block = re.sub(rb"(?m)^ | (?=\r?$)", b"", block)
        return block

    def close(self) -> None:
        self._stream.close()
        super().close()


# -------------------------------------------------------------------- saying where


def _records(layout: _Layout) -> Iterator[tuple[int, list[str]]]:
    """Yield every row of data with the number of its (last) line."""
    with _text_lines(layout) as lines:
        if not layout.quoted:
            for number, line in enumerate(lines, layout.skip + 1):
                if line.strip("\r\n"):
                    yield number, line.rstrip("\r\n").split(layout.delimiter)
            return
        reader = csv.reader(lines, delimiter=layout.delimiter)
        with _long_cells():
            for row in reader:
                if row:
                    yield layout.skip + reader.line_num, row


@contextlib.contextmanager
def _text_lines(layout: _Layout) -> Iterator[Iterator[str]]:
    """Open the lines after those that are skipped; a carriage return ends one by itself, as it does for Arrow."""
    with io.TextIOWrapper(_clean_stream(layout), encoding="utf-8", errors="replace", newline="") as stream:
        yield islice(stream, layout.skip, None)


@contextlib.contextmanager
def _long_cells() -> Iterator[None]:
    """Let `csv` read cells as long as Arrow reads them; by itself it ends at 128 KB."""
    before = csv.field_size_limit(LARGEST_BLOCK)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def require_quotes_to_close(layout: _Layout) -> None:
    """Refuse a quoted text that runs to the end of the file, or to a quote that does not end a cell.

    Arrow would take all lines up to there for one cell.
    """
    with _text_lines(layout) as lines, _long_cells():
        reader = csv.reader(lines, delimiter=layout.delimiter, strict=True)
        while True:
            line = reader.line_num
            where = f"{layout.path}, line {layout.skip + line + 1}: a quoted text starts here and"
            try:
                next(reader)
            except StopIteration:
                return
            except csv.Error as error:  # csv has no classes for them
                if "end of data" in str(error):
                    raise BadInput(f"{where} never ends") from None
                if "field limit" in str(error):
                    raise BadInput(f"{where} does not end within {LARGEST_BLOCK:,} bytes") from None
                if reader.line_num > line + 1:
                    last = layout.skip + reader.line_num
                    raise BadInput(
                        f"{where} ends in line {last}, in the midst of a cell; is a quote missing?"
                    ) from None


def hold_line_ends(columns: Iterable[Any]) -> bool:
    """Whether texts in columns of Arrow go over several lines."""
    import pyarrow as pa
    import pyarrow.compute as arrow

    texts = (column for column in columns if pa.types.is_string(column.type))
    return any(arrow.any(arrow.match_substring(column, "\n"), min_count=0).as_py() for column in texts)


def diagnosis(layout: _Layout, complaint: str) -> str:
    """Say what is wrong and in which line; `complaint` is what the parser said."""
    with open_bytes(layout.path, layout.settings.max_bytes) as stream:
        deque(_decoded(stream, layout.path), maxlen=0)  # to the first line that is not UTF-8
    width = len(layout.names)
    try:
        for number, row in _records(layout):
            if len(row) != width:
                text = layout.delimiter.join(row)
                shown = text if len(text) <= 80 else text[:80] + "..."
                return (
                    f"{layout.path}, line {number}: {len(row)} fields where {width} are expected "
                    f"({_DELIMITERS.get(layout.delimiter, layout.delimiter)} separated): {shown!r}"
                )
    except csv.Error:  # quotes that never end: there is no telling rows apart
        complaint = "a quoted text does not end"
    return f"{layout.path} cannot be read as a table: {complaint.splitlines()[0][:200]}"
