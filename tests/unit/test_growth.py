"""New rows for the tables of before: what is joined is what one would have read at once, and all else is said."""

import numpy as np
import pandas as pd
import pytest

import pegfan as pf
from pegfan.datasets import Source, read_graph

NODES = (
    "id,size,town,since,kind\na,1,Rome,2020-01-01,x\nb,2,Oslo,2020-02-01,y\n"
    "c,6,Rome,2021-01-01,x\nd,4,Oslo,2021-05-01,\n"
)
EDGES = "payer,payee,amount,day\na,b,10,2022-01-01\na,b,5,2022-01-05\nb,c,7,2022-02-01\nd,a,1,2022-02-02\n"


@pytest.fixture
def place(tmp_path):
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "payments.csv").write_text(EDGES)
    return tmp_path


def grow(place, nodes=None, edges=None, schema=None, more=(), **options):
    source, new = Source.of(place / "nodes.csv", place / "payments.csv", *more), []
    for name, text in (("new-nodes.csv", nodes), ("new-payments.csv", edges)):
        if text is not None:
            (place / name).write_text(text)
            new.append(place / name)
    return source.grown(*new, schema=schema, **options)


def assert_same(one, other):
    assert one.ids.tolist() == other.ids.tolist()
    assert one.feature_names == other.feature_names
    for a, b in ((one.adjacency, other.adjacency), (one.features, other.features), *zip(
        one.edge_matrices.values(), other.edge_matrices.values(), strict=True
    )):  # fmt: skip
        np.testing.assert_allclose(*(m.toarray() if hasattr(m, "toarray") else m for m in (a, b)), rtol=1e-12)


@pytest.mark.parametrize(("seed", "old", "parquet"), [(0, 150, False), (1, 120, True), (2, 199, False)])
def test_joined_rows_are_read_as_if_they_had_been_there_at_once(tmp_path, seed, old, parquet):
    """Accounts, payments and devices, cut in two at a random place: the graph is that of the whole tables."""
    place = tmp_path
    made = pf.datasets.transactions(n=200, n_payments=800, seed=seed)
    tables = {name: pd.DataFrame(getattr(made, name)) for name in ("accounts", "payments", "devices")}
    tables["nodes"] = tables.pop("accounts")
    early = set(tables["nodes"]["id"][:old])
    first = {
        "nodes": tables["nodes"]["id"].isin(early),
        "payments": tables["payments"]["payer"].isin(early) & tables["payments"]["payee"].isin(early),
        "devices": tables["devices"]["account"].isin(early),
    }

    def write(folder, rows):
        (place / folder).mkdir()
        for name, table in tables.items():
            part = table[rows(name)]
            if parquet and folder == "new":
                part.to_parquet(place / folder / f"{name}.parquet", index=False)
            else:
                part.to_csv(place / folder / f"{name}.csv", index=False)

    write("old", lambda name: first[name])
    write("new", lambda name: ~first[name])
    write("all", lambda name: first[name] | ~first[name])
    source = Source.of(place / "old", label="fraud")
    before, report = source.open()
    assert source.open(report.schema)[1].schema == report.schema, "what was read by a schema is read by it again"
    growth = source.grown(place / "new", schema=report.schema)
    whole = read_graph(*sorted((place / "all").iterdir()), label="fraud", schema=report.schema)
    assert_same(growth.graph, whole)
    assert_same(growth.before, before)
    known = growth.places >= 0
    assert growth.before.ids[growth.places[known]].tolist() == growth.graph.ids[known].tolist()
    assert sorted(growth.places[known]) == list(range(before.n))
    assert growth.graph.labels.tolist() == whole.labels.tolist()
    assert (growth.updated, growth.repeated, growth.report.unknown) == (0, 0, 0)


def test_new_rows_of_known_nodes_win_and_are_counted(place):
    growth = grow(
        place, "id,size,town,since,kind\nb,20,Rome,2020-02-01,\na,1,Rome,2020-01-01,x\ne,3,Rome,2022-01-01,\n"
    )
    assert (growth.updated, growth.repeated, len(growth.new)) == (1, 1, 1)
    assert growth.graph.ids.tolist() == ["a", "b", "c", "d", "e"]
    assert growth.graph.features[:, [0]].toarray().ravel().tolist() == [1, 20, 6, 4, 3]
    assert "1 rows of known nodes were updated: what the new row says takes the place of the old" in growth.report.notes
    assert "1 rows of known nodes say what was known" in growth.report.notes
    assert growth.report.files["new-nodes.csv"] == "new nodes; comma, header, 3 rows"


def test_known_nodes_keep_what_new_rows_lack_and_new_ones_get_the_mean(place):
    growth = grow(place, "id,town,age\nb,Rome,7\ne,Oslo,8\n")
    sizes = growth.graph.features[:, [growth.graph.feature_names.index("size")]].toarray().ravel()
    assert sizes.tolist() == [1, 2, 6, 4, 13 / 4]
    assert growth.report.filled == ["size", "since"]
    assert growth.report.strange == ["age"]
    notes = "\n".join(growth.report.notes)
    assert "new-nodes.csv lacks columns that nodes.csv has: 'size', 'since'; they count as missing, numbers as" in notes
    assert "new-nodes.csv has columns that nodes.csv lacks; they are not used: 'age'" in notes
    assert growth.graph.feature_names == growth.before.feature_names
    assert growth.graph.labels.tolist() == [0, 1, 0, -1, -1]


def test_new_edges_are_events_of_old_nodes_too(place):
    growth = grow(place, edges="payer,payee,amount,day\na,c,100,2022-03-01\na,b,1,2022-02-02\n")
    total = growth.graph.feature_names.index("out amount sum")
    assert len(growth.new) == 0
    before, after = (graph.features[:, [total]].toarray().ravel() for graph in (growth.before, growth.graph))
    assert (before != after).tolist() == [True, False, False, False]
    assert growth.graph.edge_matrices["count"].toarray()[0].tolist() == [0, 3, 1, 0]
    recency = growth.graph.feature_names.index("out day recency")
    last = growth.graph.features[:, [recency]].toarray().ravel()
    assert last[0] == -27, "ages count from the newest day of the training"


def test_ends_in_neither_table_are_counted_and_left_out(place):
    growth = grow(
        place,
        "id,size,town,since,kind\ne,3,Rome,2022-01-01,\n",
        "payer,payee,amount,day\ne,f,1,2022-03-01\ne,a,1,\ng,f,2,\n",
    )
    assert (growth.report.unknown, growth.report.lost) == (2, 2)
    assert growth.graph.n == 5
    said = "2 ids of payments.csv and new-payments.csv are not in nodes.csv and new-nodes.csv: dropped with their edges"
    assert any(note.startswith(f"{said} ('f', 'g')") for note in growth.report.notes)
    with pytest.raises(ValueError, match=r"new-payments\.csv, line 2: node 'f' is not in nodes\.csv"):
        grow(place, edges="payer,payee,amount,day\na,f,1,2022-03-01\n", unknown="error")
    added = grow(place, edges="payer,payee,amount,day\na,f,1,2022-03-01\n", unknown="add")
    assert added.graph.ids.tolist() == ["a", "b", "c", "d", "f"]
    assert added.places.tolist() == [0, 1, 2, 3, -1]


def test_devices_are_told_from_accounts_as_before(place):
    (place / "devices.csv").write_text("account,device\na,d1\nb,d1\nc,d2\n")
    new = place / "more-devices.csv"
    new.write_text("account,device\nd,d2\na,d0\n")
    source = Source.of(*(place / name for name in ("nodes.csv", "payments.csv", "devices.csv")), label="kind")
    growth = source.grown(new)
    assert growth.graph.ids.tolist() == ["a", "b", "c", "d", "d0", "d1", "d2"]
    assert growth.places.tolist() == [0, 1, 2, 3, -1, 4, 5]
    nodes = place / "more-nodes.csv"
    nodes.write_text("id,size,town,since,kind\nd1,3,Rome,2022-01-01,\n")
    with pytest.raises(ValueError, match="the new node 'd1' has the id of something of another kind"):
        source.grown(nodes)


def test_edges_alone(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,z\n")
    (tmp_path / "more.csv").write_text("source,target\nc,b\nz,y\n")
    growth = Source.of(tmp_path / "edges.csv").grown(tmp_path / "more.csv")
    assert growth.graph.ids.tolist() == ["a", "b", "c", "y", "z"]
    assert growth.places.tolist() == [0, 1, -1, -1, 2]


def test_ids_stay_as_they_are_written(tmp_path):
    (tmp_path / "nodes.csv").write_text("id,size\n1,1\n7,2\n")
    (tmp_path / "edges.csv").write_text("source,target\n1,7\n")
    (tmp_path / "new.csv").write_text("id,size\n007,3\nA1,4\n")
    (tmp_path / "links.csv").write_text("source,target\n007,7\nA1,1\n")
    growth = Source.of(tmp_path / "nodes.csv", tmp_path / "edges.csv").grown(
        tmp_path / "new.csv", tmp_path / "links.csv"
    )
    assert growth.graph.ids.tolist() == ["1", "7", "007", "A1"]
    assert growth.places.tolist() == [0, 1, -1, -1]
    assert growth.graph.n_edges == 3


def test_rows_without_a_header_are_those_of_the_table_with_as_many_columns(tmp_path):
    (tmp_path / "nodes.csv").write_text("id,size\na,1\nb,2\n")
    (tmp_path / "edges.txt").write_text("a b\n")
    (tmp_path / "new.csv").write_text("c,3\nd,5\n")
    (tmp_path / "links.txt").write_text("c a\nd b\n")
    source = Source.of(tmp_path / "nodes.csv", tmp_path / "edges.txt")
    growth = source.grown(tmp_path / "links.txt", unknown="add")
    assert growth.graph.ids.tolist() == ["a", "b", "c", "d"]
    assert growth.report.files["links.txt"] == "new edges; white space, no header, 2 rows"


@pytest.mark.parametrize(
    ("nodes", "edges", "says"),
    [
        ("account,size\ne,3\n", None, r"new-nodes\.csv: its columns \('account', 'size'\) are those of no table"),
        ("id,size\ne,3\ne,4\n", None, r"new-nodes\.csv, line 3: id 'e' in column 'id' was already given in new-nodes"),
        ("id,size\n,3\ne,4\n", None, r"new-nodes\.csv, line 2: the id in column 'id' is blank"),
        ("id,size\ne,tall\nf,4\n", None, r"new-nodes\.csv, line 2: 'tall' in column 'size' is not a finite number"),
        ("id,since\ne,soon\n", None, r"new-nodes\.csv, line 2: 'soon' in column 'since' is not a date"),
        (None, "payer,payee,amount\na,b,much\n", r"new-payments\.csv, line 2: 'much' in column 'amount'"),
        (None, "payer,payee,amount\na,,1\n", r"new-payments\.csv, line 2: column 'payee' is blank"),
    ],
)
def test_what_is_wrong_is_said_with_the_file_and_the_line(place, nodes, edges, says):
    with pytest.raises(ValueError, match=says):
        grow(place, nodes, edges)


def test_what_rows_cannot_be_added_to(place):
    (place / "rows.csv").write_text("size\n10\n20\n")
    (place / "links.csv").write_text("source,target\n0,1\n")
    with pytest.raises(ValueError, match="have no ids but their row numbers"):
        Source.of(place / "rows.csv", place / "links.csv").grown(place / "payments.csv")
    np.savez(place / "graph.npz", edge_index=np.array([[0, 1], [1, 2]]))
    with pytest.raises(ValueError, match="holds a whole graph"):
        Source.of(place / "graph.npz").grown(place / "payments.csv")
    with pytest.raises(ValueError, match="cornell is a data set"):
        Source.of("cornell").grown(place / "payments.csv")
    with pytest.raises(ValueError, match=r"new-payments\.csv holds the rows of payments\.csv once more"):
        grow(place, edges=EDGES)


def test_rows_that_are_given_again_are_said(place):
    growth = grow(place, edges=EDGES + "c,d,3,2022-03-01\n")
    note = "4 of 5 rows of new-payments.csv are rows of payments.csv too, and count twice; give new rows only"
    assert note in growth.report.notes


def test_files_of_the_same_name_are_told_apart_by_their_folders(place):
    (place / "week2").mkdir()
    (place / "week2" / "nodes.csv").write_text("id,size\ne,oops\n")
    source = Source.of(place / "nodes.csv", place / "payments.csv")
    with pytest.raises(ValueError, match=r"week2.nodes\.csv, line 2: 'oops'"):
        source.grown(place / "week2" / "nodes.csv")


def test_files_that_were_kept_are_read_again_and_no_others(place):
    source = Source.of(place / "nodes.csv", place / "payments.csv", label="kind")
    assert source.keep(place / "data") == ["nodes.csv.gz", "payments.csv.gz"]
    kept = Source.kept(place / "data")
    assert_same(kept.open()[0], source.open()[0])
    assert kept.options == {"label": "kind"}
    source.keep(place / "again")
    for path in (place / "data").iterdir():
        assert path.read_bytes() == (place / "again" / path.name).read_bytes(), "the same files are the same bytes"
    (place / "again" / "nodes.csv.gz").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"nodes\.csv\.gz is not what was kept there; train again with --keep-data"):
        Source.kept(place / "again")
    description = place / "data" / "data.json"
    description.write_text(description.read_text().replace("nodes.csv.gz", "../nodes.csv"))
    with pytest.raises(ValueError, match="is not what was kept there"):
        Source.kept(place / "data")
    description.write_text("{}")
    with pytest.raises(ValueError, match=r"data\.json cannot be read"):
        Source.kept(place / "data")
    with pytest.raises(ValueError, match="no files to keep"):
        Source.of("cornell").keep(place / "other")


def test_two_files_of_new_rows_for_one_table(place):
    for k, name in enumerate(("e", "f")):
        (place / f"n{k}.csv").write_text(f"id,size\n{name},{k + 7}\n")
        (place / f"p{k}.csv").write_text(f"payer,payee,amount\n{name},a,{k + 1}\n")
    new = [place / name for name in ("n0.csv", "p1.csv", "p0.csv", "n1.csv")]
    growth = Source.of(place / "nodes.csv", place / "payments.csv").grown(*new)
    assert growth.graph.ids.tolist() == ["a", "b", "c", "d", "e", "f"]
    assert growth.graph.features[:, [0]].toarray().ravel().tolist() == [1, 2, 6, 4, 7, 8]
    assert growth.graph.edge_matrices["amount sum"].toarray()[4:, 0].tolist() == [1, 2]
    (place / "p1.csv").write_text("payer,payee,amount\nf,a,much\n")
    with pytest.raises(ValueError, match=r"p1\.csv, line 2: 'much'"):
        Source.of(place / "nodes.csv", place / "payments.csv").grown(*new)
