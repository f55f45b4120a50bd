"""Texts as numbers, and pairs of nodes as numbers: what is fast equals its plain twin, for ids of all kinds."""

import csv
import io
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.sparse import coo_array

from pegfan import _pairs
from pegfan._pairs import are_first, in_order, pack, rows_of, unpack, without_repeats
from pegfan.datasets import _kernels, _text, read_graph
from pegfan.datasets._coded import Cells, Numberer, Texts, places
from pegfan.datasets._table import BadInput
from pegfan.graph import Joined, join_edges
from support.twins import twin_of

seeds = st.integers(0, 2**32 - 1)
words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
ids = st.one_of(
    st.integers(-5, 200).map(lambda k: f"user{k}"),
    st.sampled_from(["1", "01", "1.0", " 1", "1 ", "é", "e\u0301", "NA", "nan", "true", "-0", "0x1", "12345678901"]),
    st.text("ab", min_size=1, max_size=20),
    st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters='",;|#%'), min_size=1),
)


def numbered(texts):
    """The numbers of texts, and the different ones."""
    numberer, codes = Numberer(), np.empty(len(texts), np.int32)
    numberer.number_series(pd.Series(texts, dtype="str"), codes)
    return codes, numberer.texts()


def listed(texts: Texts):
    return texts.arrow.to_pylist()


# -------------------------------------------------------------------------- texts


@given(st.lists(words))
@example([f"{k}" * (k % 30) for k in range(9000)])  # more than there is room for at first
def test_texts_are_numbered_by_their_first_appearance(given_texts):
    codes, texts = numbered(given_texts)
    assert listed(texts) == list(dict.fromkeys(given_texts))
    place = {text: k for k, text in enumerate(dict.fromkeys(given_texts))}
    assert codes.tolist() == [place[text] for text in given_texts]


@given(st.lists(st.text("ab\0é", max_size=30)))
def test_texts_are_sorted_as_python_sorts_them(given_texts):
    codes, texts = numbered(given_texts)
    distinct = listed(texts)
    assert [distinct[k] for k in texts.sorted()] == sorted(distinct)
    some = np.arange(len(texts))[::2]
    assert [distinct[k] for k in texts.sorted(some)] == sorted(distinct[::2])
    in_order = texts.in_order([codes])
    assert listed(in_order) == sorted(distinct)
    assert [listed(in_order)[k] for k in codes] == given_texts


@given(st.lists(words, unique=True), st.lists(words))
def test_places_are_those_of_a_dict(among, texts):
    place = {text: k for k, text in enumerate(among)}
    found = places(pd.Series(texts, dtype="str"), pd.Series(among, dtype="str"))
    assert found.tolist() == [place.get(text, -1) for text in texts]


@given(st.lists(st.text(" \t\u00a0\u2003ab\0", max_size=4)))
def test_blank_texts_and_arrays_are_those_of_python(given_texts):
    codes, texts = numbered(given_texts)
    assert texts.blank[codes].tolist() == [not text.strip() for text in given_texts]
    assert texts.ends_with_nul[codes].tolist() == [text.endswith("\0") for text in given_texts]
    array = texts.array(codes)
    if array is not None:
        assert array.tolist() == given_texts


@given(st.lists(words), seeds)
def test_numbering_in_c_equals_its_twin(given_texts, seed):
    data = np.frombuffer("".join(given_texts).encode(), np.uint8)
    ends = np.cumsum([len(text.encode()) for text in given_texts], dtype=np.int64)
    begins = np.concatenate([[0], ends])[:-1].astype(np.int64)
    found = []
    for kind in (np.int32, np.int64):
        for choose in (lambda loop: loop, twin_of):
            slots, texts = np.zeros(2**9, np.uint64), np.zeros(2**12, np.uint8)
            starts, codes = np.zeros(2**7 + 2, np.int64), np.full(len(given_texts), -1, np.int32)
            cells = data, begins.astype(kind), ends.astype(kind)
            done = choose(_kernels.number_texts)(*cells, 0, seed, slots, texts, starts, codes)
            again = np.zeros_like(slots)
            choose(_kernels.place_texts)(texts, int(starts[-1]), starts, seed, again)
            assert sorted(again.tolist()) == sorted(slots.tolist())
            keys = np.zeros(int(starts[-1]), np.uint64)
            rows = np.arange(len(keys))
            choose(_kernels.text_keys)(texts, starts, rows, 3, keys)
            found.append((done, *(array.tolist() for array in (slots, texts, starts, codes, keys))))
    assert all(other == found[0] for other in found)


@given(st.lists(words, min_size=1, unique=True), st.lists(words), seeds)
def test_texts_are_found_where_they_were_placed(known, asked, seed):
    def cut(given_texts, kind):
        ends = np.cumsum([len(text.encode()) for text in given_texts], dtype=np.int64)
        data = np.frombuffer("".join(given_texts).encode(), np.uint8)
        return data, np.concatenate([[0], ends])[: len(given_texts)].astype(kind), ends.astype(kind)

    asked = [*asked, *known]
    data, begins, ends = cut(known, np.int64)
    starts, slots = np.append(begins, ends[-1]), np.zeros(2 * 2 ** (2 * len(known)).bit_length(), np.uint64)
    _kernels.place_texts(data, len(known), starts, seed, slots)
    before = slots.copy()
    for kind in (np.int32, np.int64):
        for loop in (_kernels.find_texts, twin_of(_kernels.find_texts)):
            codes = np.full(len(asked), 7, np.int32)
            loop(*cut(asked, kind), seed, slots, data, starts, codes)
            assert codes.tolist() == [known.index(text) if text in known else -1 for text in asked]
    assert slots.tolist() == before.tolist()


# ------------------------------------------------------------------------- blocks


@given(st.text("0-x7.\"' ,\n\r\t", max_size=60), st.sampled_from([",", " ", "\t"]))
def test_looking_through_a_block_in_c_equals_its_twin(text, delimiter):
    whole = np.frombuffer(("\n\n\n" + text).encode(), np.uint8)
    ours, theirs = np.zeros((2, 6), np.uint8)
    lines = _kernels.look_through(whole, 3, ord(delimiter), ours)
    assert lines == twin_of(_kernels.look_through)(whole, 3, ord(delimiter), theirs) == text.count("\n")
    assert ours.tolist() == theirs.tolist()
    for place, mark in enumerate('\0 \t"\r'):
        assert bool(ours[place]) == (mark in text)


@pytest.mark.parametrize(
    ("cells", "loose"),
    [("1,07", True), ("1,0", False), ("-0,1", True), ("1,-0.5", False), ("0x1,2", True), ("10,200", False),
     ("0.5,1", False), ('"007"', True), ("a0,b01", False), ("1, 03", True)],
)  # fmt: skip
def test_numbers_that_are_not_written_as_such_are_found(cells, loose):
    found = np.zeros(6, np.uint8)
    _kernels.look_through(np.frombuffer(f"\n\n\n{cells}\n".encode(), np.uint8), 3, ord(","), found)
    assert bool(found[_kernels.LOOSE]) == loose


@given(st.text('ab",\n\r', max_size=60), st.booleans(), st.sampled_from([[1], [1, 0], [0, 1], [1, 1, 1]]))
def test_cutting_a_block_in_c_equals_its_twin(text, quoted, wanted):
    block = np.frombuffer(text.encode(), np.uint8)
    found = []
    for loop in (_kernels.cut_cells, twin_of(_kernels.cut_cells)):
        begins, ends = np.full((2, len(block) + 1), -1, np.int32)
        state = np.zeros(3, np.int64)
        cells = loop(block, ord(","), quoted, np.array(wanted, bool), begins, ends, state)
        found.append((cells, state.tolist(), begins[:cells].tolist(), ends[:cells].tolist()))
    assert found[0] == found[1]


# -------------------------------------------------------------------------- files


@pytest.fixture
def numbering(monkeypatch):
    """Small files are read as large ones are, in blocks of a few lines."""
    monkeypatch.setattr(_text, "_LARGE", 0)
    monkeypatch.setattr(_text, "_CUT", 64)


@given(
    *(st.lists(st.tuples(ids, ids, st.sampled_from(["", "3", "2.5"])), min_size=1), st.sampled_from(",;\t")),
    *(st.sampled_from(["\n", "\r\n"]), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]), st.booleans()),
)
def test_cells_are_those_that_python_reads(tmp_path_factory, rows, delimiter, newline, quoting, ended):
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator=newline, quoting=quoting)
    writer.writerows([("source", "target", "weight"), ("some", "text", "1"), *rows])
    written = stream.getvalue() if ended else stream.getvalue().rstrip("\r\n")
    path = tmp_path_factory.mktemp("files") / "edges.csv"
    path.write_bytes(written.encode())
    settings = _text.TextSettings(delimiter=delimiter, header=True, comments="", max_bytes=2**20)
    tables = {}
    for large in (0, 2**30):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_text, "_LARGE", large)
            patch.setattr(_text, "_CUT", 64)
            tables[large], _ = _text.read_text(path, settings)
    fast, plain = tables[0], tables[2**30]
    pd.testing.assert_frame_equal(fast.frame, plain.frame)
    expected = list(csv.reader(io.StringIO(written, newline=""), delimiter=delimiter))[1:]
    for k, column in enumerate(("source", "target")):
        assert fast.series(column).tolist() == [row[k] for row in expected if row]
        assert fast.series(column, 2).tolist() == [row[k] for row in expected if row][:2]
    if isinstance(fast.data, Cells):
        assert fast.coded("source").texts is fast.coded("target").texts
        assert fast.size == plain.size


@pytest.mark.usefixtures("numbering")
def test_a_graph_of_numbered_texts_is_the_one_of_a_data_frame(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"src": rng.integers(0, 40, 300), "dst": rng.integers(0, 40, 300)}).map("user{}".format)
    frame["kind"] = rng.choice(["call", "text", "longer than eleven bytes"], 300)
    frame["amount"] = rng.random(300).round(3)
    frame.to_csv(tmp_path / "edges.csv", index=False)
    frame[["src"]].drop_duplicates().rename(columns={"src": "id"}).to_csv(tmp_path / "nodes.csv", index=False)
    for options in ({}, {"edge_columns": False}, {"duplicates": "sum", "weight": "amount"}, {"directed": True}):
        ours, said = read_graph(tmp_path / "edges.csv", report=True, **options)
        from pegfan.datasets import graph_from_tables

        twin, told = graph_from_tables(None, frame, report=True, **options)
        assert (ours.adjacency != twin.adjacency).nnz == 0
        assert ours.node_names.tolist() == twin.node_names.tolist() == sorted(set(frame.src) | set(frame.dst))
        assert said.features.keys() == {key.replace("edges ", "edges.csv ", 1) for key in told.features}
        if twin.features is not None:
            assert np.array_equal(ours.features, twin.features)
    with_nodes = read_graph(tmp_path / "edges.csv", tmp_path / "nodes.csv", unknown="add")
    assert with_nodes.ids.tolist()[: frame.src.nunique()] == list(dict.fromkeys(frame.src))


@pytest.mark.usefixtures("numbering")
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\nx1,y1\nx2\nx3,y3\n", "line 3: 1 fields where 2 are expected"),
        ("a,b\nx1,y1\nx2,y2,z\n", "line 3: 3 fields where 2 are expected"),
        ("a,b\nx1,y1\nx2, \n", "line 3: column 'b' is blank"),
        (b"a,b\nx1,y1\nx2,\xff\n", "line 3: not UTF-8 text"),
        (b"a,b\nx1,\xc3\n\xa9,y2\n", "line 2: not UTF-8 text"),  # two halves of a letter, in two cells
        ('a,b\n"x1",y1\n"x2,y2\n', "line 3: a quoted text starts here and never ends"),
        (b"a,b\nx1,y1\nx2,y\0\n", "zero bytes"),
    ],
)
def test_a_bad_file_is_refused_with_its_line(tmp_path, content, words):
    path = tmp_path / "edges.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BadInput, match=words):
        read_graph(path, header=True)


@pytest.mark.usefixtures("numbering")
@pytest.mark.parametrize(
    "content",
    ["a b\nx1 y1\n# no row\nx2 y2\n", "a b\nx1  y1\n x2\ty2 \n", "a,b\rx1,y1\rx2,y2\r", "a, b\nx1, y1\nx2, y2\n",
     'a,b\n"x1","y1"\n"x2","y2"\n', "a,b\nx1,y1\n\n\nx2,y2"],
)  # fmt: skip
def test_unusual_files_are_read_all_the_same(tmp_path, content):
    path = tmp_path / "edges.csv"
    path.write_bytes(content.encode())
    graph = read_graph(path, header=True)
    assert graph.ids.tolist() == ["x1", "x2", "y1", "y2"]
    assert graph.n_edges == 2


# -------------------------------------------------------------------------- pairs


@st.composite
def some_pairs(draw):
    n = draw(st.integers(1, 12))
    m = draw(st.integers(0, 40))
    rng = np.random.default_rng(draw(seeds))
    return n, rng.integers(n, size=m), rng.integers(n, size=m)


@given(some_pairs(), st.booleans(), st.sampled_from([np.int32, np.int64]))
def test_pairs_are_numbers_and_rows(drawn, both, dtype):
    n, i, j = drawn
    keys = pack(i.astype(dtype), j.astype(dtype), n, both=both)
    first, second = (np.minimum(i, j), np.maximum(i, j)) if both else (i, j)
    assert [a.tolist() for a in unpack(keys, n)] == [first.tolist(), second.tolist()]
    ordered, order = in_order(keys, n)
    assert order.tolist() == np.lexsort((second, first)).tolist()
    assert are_first(ordered).tolist() == [k == 0 or ordered[k] != ordered[k - 1] for k in range(len(keys))]
    distinct = without_repeats(ordered.copy())
    assert distinct.tolist() == np.unique(keys).tolist()
    a, b = unpack(distinct, n)
    weights = np.arange(1.0, len(a) + 1)
    for given_weights in (None, weights):
        rows = rows_of(distinct, given_weights, n, both=both)
        rows.check_format(full_check=True)
        assert rows.has_canonical_format
        twin = coo_array((np.ones(len(a)) if given_weights is None else weights, (a, b)), shape=(n, n)).toarray()
        twin = np.maximum(twin, twin.T) if both else twin
        assert np.array_equal(rows.toarray(), twin)


def test_numbers_without_room_for_their_places_are_sorted_too():
    n = 2**31
    i, j = np.array([5, 2**31 - 1, 5, 0]), np.array([7, 1, 7, 2**31 - 1])
    keys, order = in_order(pack(i, j, n, both=False), n)
    assert order.tolist() == [3, 0, 2, 1]
    assert [a.tolist() for a in unpack(keys, n)] == [i[order].tolist(), j[order].tolist()]


@given(some_pairs(), st.booleans(), st.sampled_from([np.int32, np.int64]))
def test_pairs_in_c_equal_their_twins(drawn, both, dtype):
    n, i, j = drawn
    found = []
    for choose in (lambda loop: loop, twin_of):
        keys = np.empty(len(i), np.uint64)
        choose(_pairs._pack)(i.astype(dtype), j.astype(dtype), 4, both, keys)
        keys.sort()
        keys = keys[: choose(_pairs._drop_repeats)(keys)]
        loops = choose(_pairs._count_loops)(keys, 4)
        size = 2 * len(keys) - loops if both else len(keys)
        indptr, indices, data = np.empty(n + 1, dtype), np.empty(size, dtype), np.empty(size)
        weights = np.arange(len(keys), dtype=np.float64)
        choose(_pairs._fill)(keys, 4, both, weights, indptr, indices, data, np.empty(n if both else 0, dtype))
        found.append([loops, *(array.tolist() for array in (keys, indptr, indices, data))])
    assert found[0] == found[1]


@given(some_pairs(), st.booleans(), st.sampled_from(["max", "min", "sum", "mean", "count"]), st.booleans(), seeds)
def test_joined_edges_are_those_of_a_loop(drawn, mirror, duplicates, weighed, seed):
    n, i, j = drawn
    weights = np.random.default_rng(seed).integers(0, 4, len(i)).astype(np.float64) if weighed else None
    held = {}
    for a, b, w in zip(i.tolist(), j.tolist(), [1.0] * len(i) if weights is None else weights.tolist(), strict=True):
        if w:
            held.setdefault((min(a, b), max(a, b)) if mirror else (a, b), []).append(w)
    merge = {"max": max, "min": min, "sum": sum, "mean": lambda w: sum(w) / len(w), "count": len}[duplicates]
    twin = np.zeros((n, n))
    for (a, b), given_weights in held.items():
        twin[a, b] = merge(given_weights)
        if mirror:
            twin[b, a] = twin[a, b]
    made = join_edges(np.column_stack([i, j]), weights, n, duplicates, mirror=mirror)
    assert isinstance(made, Joined)
    assert made.symmetric == mirror
    assert np.array_equal(made.matrix.toarray(), twin)
    assert made.matrix.data.all()


# ----------------------------------------------------------------------- starting


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import pegfan", ("numpy", "scipy", "pandas", "pyarrow", "torch", "typer", "rich", "sklearn")),
        ("import pegfan; pegfan.Graph", ("pandas", "pyarrow", "torch", "typer", "rich", "scipy.optimize")),
        ("import pegfan.cli", ("numpy", "scipy", "pandas", "pyarrow", "torch")),
        (
            "import sys; sys.argv = ['pegfan', '--help']; from pegfan.cli import app; app(standalone_mode=False)",
            ("numpy", "scipy", "pandas", "pyarrow", "torch"),
        ),
    ],
)
def test_nothing_is_loaded_before_it_is_needed(code, heavy):
    report = f"import sys; print([name for name in {heavy!r} if name in sys.modules], file=sys.stderr)"
    run = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True)
    assert run.stderr.strip() == "[]"


def test_names_that_can_change_are_copied_and_others_are_not():
    from pegfan import Graph

    fixed = np.array(["a", "b"])
    fixed.setflags(write=False)
    open_to_change = np.array(["a", "b"])
    view = open_to_change[:]
    view.setflags(write=False)  # its base can still be written to
    held = [Graph.from_edges([[0, 1]], node_names=names).node_names for names in (fixed, open_to_change, view)]
    assert [np.shares_memory(a, b) for a, b in zip(held, (fixed, open_to_change, view), strict=True)] == [
        True,
        False,
        False,
    ]
