"""The benchmarks by name: what each is, which files it is made of, and where they come from.

``SHA256SUMS`` beside this module lists the hashes of the files in the format of ``sha256sum``:
``cd $PEGFAN_DATA && sha256sum -c .../SHA256SUMS`` checks a whole folder. Three files were not available when it was
made; they are checked by their git blob ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files as package_files
from types import MappingProxyType
from typing import Any, Literal

from pegfan._checks import shown
from pegfan.datasets._table import nearest

__all__ = ["DATASETS", "Dataset", "File", "find"]

Layout = Literal["planetoid", "geom-gcn", "heterophilous"]


@dataclass(frozen=True)
class File:
    r"""One file of a data set.

    Attributes
    ----------
    role : str
        What it holds, as its loader calls it: ``"edges"``, ``"split 3"``.
    path : str
        Its place under the data folder, and under a mirror.
    url : str
        Its public address.
    digest : str
        Of its bytes, in hexadecimal.
    algorithm : {"sha256", "git-sha1"}
        The second is the blob id of git: SHA-1 of ``b"blob <size>\0"`` and the bytes.
    """

    role: str
    path: str
    url: str
    digest: str
    algorithm: Literal["sha256", "git-sha1"] = "sha256"


@dataclass(frozen=True)
class Dataset:
    """What is known about a benchmark; ``print`` it for its card.

    Attributes
    ----------
    name : str
    layout : {"planetoid", "geom-gcn", "heterophilous"}
        How its files are written.
    files : tuple of File
    directed : bool
        Whether it is used as a directed graph, by the paper's authors or by the set's own.
    regime : {"homophily", "heterophily"}
    citation, licence : str
    metric : str
    sparse : bool
        Whether its features are a bag of words.
    columns : int or None
        Number of features where the files list the columns that are 1, None where they hold them all.
    note : str
        What to know before quoting a result on it.
    """

    name: str
    layout: Layout
    files: tuple[File, ...] = field(repr=False)
    directed: bool
    regime: Literal["homophily", "heterophily"]
    citation: str = field(repr=False)
    licence: str = field(default="not stated", repr=False)
    metric: str = "accuracy"
    sparse: bool = True
    columns: int | None = field(default=None, repr=False)
    note: str = field(default="", repr=False)

    def __str__(self) -> str:
        facts = {"layout": self.layout, "edges": "directed" if self.directed else "undirected"}
        facts |= {name: getattr(self, name) for name in ("regime", "metric", "licence", "citation", "note")}
        facts["files"] = "\n".join(file.path for file in self.files)
        lines = [f"{fact:<10}" + text.replace("\n", "\n" + " " * 10) for fact, text in facts.items() if text]
        return "\n".join([self.name, *lines])


def find(name: str) -> Dataset:
    """Return the data set of that name; case, hyphens and underscores do not matter.

    Examples
    --------
    >>> find("Roman_Empire").name, find("film").name
    ('roman-empire', 'actor')
    >>> find("chamelion")
    Traceback (most recent call last):
    ValueError: there is no data set 'chamelion'; did you mean 'chameleon'? There are cora, citeseer, ...
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be the name of a data set, got {shown(name)}")
    wanted = name.strip().lower().replace("_", "-")
    wanted = _ALIASES.get(wanted, wanted)
    if wanted not in DATASETS:
        near = nearest(wanted, [*DATASETS, *_ALIASES])
        hint = f"did you mean {near!r}? " if near else ""
        raise ValueError(f"there is no data set {name!r}; {hint}There are {', '.join(DATASETS)}")
    return DATASETS[wanted]


_ALIASES = {"film": "actor"}
_GEOM_GCN = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/f1fc0d14b3b019c562737240d06ec83b07d16a8f"
_HETEROPHILOUS = (
    "https://raw.githubusercontent.com/yandex-research/heterophilous-graphs/a431395582e929d88271309716bea4fe24ce6318"
)
_GIT_BLOBS = {
    "heterophilous-graphs/roman_empire.npz": "1f9bae5e95b28e529015269e98acb237b65d8d3b",
    "heterophilous-graphs/amazon_ratings.npz": "29647a8b0ff0ef856d73d683a8c3595bd5efbd38",
    "heterophilous-graphs/questions.npz": "4c7cb65057dbc9771af00fdfdee64a41b3875079",
}

_PEI = "Pei et al., Geom-GCN: Geometric Graph Convolutional Networks, ICLR 2020 (splits)"
_YANG = (
    "Sen et al., Collective Classification in Network Data, AI Magazine 2008\n"
    f"Yang et al., Revisiting Semi-Supervised Learning with Graph Embeddings, ICML 2016 (files)\n{_PEI}"
)
_WEBKB = f"Craven et al., Learning to Extract Symbolic Knowledge from the World Wide Web, AAAI 1998\n{_PEI}"
_TANG = f"Tang et al., Social Influence Analysis in Large-scale Networks, KDD 2009\n{_PEI}"
_ROZEMBERCZKI = "Rozemberczki et al., Multi-scale Attributed Node Embedding, Journal of Complex Networks 2021"
_PLATONOV = (
    "Platonov et al., A Critical Look at the Evaluation of GNNs under Heterophily: Are We Really Making Progress?, "
    "ICLR 2023"
)

_SHARED_FILE = "Texas and cornell share one file of features and labels, an error in the public data."
_LEAK = "Most nodes share their out-neighbours with another node, in all parts of a split: see the filtered version."


def _sha256() -> dict[str, str]:
    lines = package_files("pegfan.datasets").joinpath("SHA256SUMS").read_text("ascii").splitlines()
    return {path: digest for digest, path in (line.split("  ") for line in lines)}


_SHA256 = _sha256()


def _geom_gcn_file(role: str, path: str) -> File:
    place = f"geom-gcn/{path}"
    return File(role, place, f"{_GEOM_GCN}/{path}", _SHA256[place])


def _splits(stem: str) -> list[File]:
    # The files are named after 60/20/20; what they hold is 48/32/20.
    return [_geom_gcn_file(f"split {k}", f"splits/{stem}_split_0.6_0.2_{k}.npz") for k in range(10)]


def _planetoid(name: str, note: str) -> Dataset:
    # ind.*.x and ind.*.y repeat the first rows of allx and ally.
    parts = [_geom_gcn_file(part, f"data/ind.{name}.{part}") for part in ("allx", "ally", "tx", "ty", "graph")]
    index = _geom_gcn_file("index", f"data/ind.{name}.test.index")
    files = (*parts, index, *_splits(name))
    return Dataset(name, "planetoid", files, directed=False, regime="homophily", citation=_YANG, note=note)


def _text(name: str, citation: str, note: str, stem: str | None = None, columns: int | None = None) -> Dataset:
    stem = stem or name
    texts = {"edges": "out1_graph_edges.txt", "nodes": "out1_node_feature_label.txt"}
    files = [_geom_gcn_file(role, f"new_data/{stem}/{text}") for role, text in texts.items()]
    about: dict[str, Any] = {"citation": citation, "columns": columns, "note": note}
    return Dataset(name, "geom-gcn", (*files, *_splits(stem)), directed=True, regime="heterophily", **about)


def _heterophilous(name: str, **about: Any) -> Dataset:
    stem = name.replace("-", "_")
    place, url = f"heterophilous-graphs/{stem}.npz", f"{_HETEROPHILOUS}/data/{stem}.npz"
    if place in _GIT_BLOBS:
        file = File("arrays", place, url, _GIT_BLOBS[place], "git-sha1")
    else:
        file = File("arrays", place, url, _SHA256[place])
    known: dict[str, Any] = {"directed": False, "sparse": False, "citation": _PLATONOV, **about}
    return Dataset(name, "heterophilous", (file,), regime="heterophily", licence="MIT", **known)


def _filtered(name: str, *, directed: bool) -> Dataset:
    note = f"{name.partition('-')[0].capitalize()} without the nodes that repeat another's out-neighbours."
    return _heterophilous(name, directed=directed, sparse=True, citation=f"{_ROZEMBERCZKI}\n{_PLATONOV}", note=note)


DATASETS: Mapping[str, Dataset] = MappingProxyType(
    {
        dataset.name: dataset
        for dataset in (
            _planetoid("cora", "The splits cover the largest component only, 2485 of 2708 nodes."),
            _planetoid(
                "citeseer",
                "15 nodes have neither label nor features and count as class 0, as everywhere. Splits 4 and 5 cover "
                "the largest component only, 2120 of 3327 nodes.",
            ),
            _planetoid("pubmed", ""),
            _text("texas", _WEBKB, f"{_SHARED_FILE} Class 1 has one node."),
            _text("wisconsin", _WEBKB, ""),
            _text("cornell", _WEBKB, f"{_SHARED_FILE} Class 1 has one node."),
            _text("actor", _TANG, "The public files call it film.", stem="film", columns=932),
            _text("chameleon", f"{_ROZEMBERCZKI}\n{_PEI}", _LEAK),
            _text("squirrel", f"{_ROZEMBERCZKI}\n{_PEI}", _LEAK),
            _heterophilous("minesweeper", metric="roc_auc"),
            _heterophilous("tolokers", metric="roc_auc"),
            _heterophilous("roman-empire"),
            _heterophilous("amazon-ratings"),
            _heterophilous("questions", metric="roc_auc"),
            _filtered("chameleon-filtered", directed=False),
            _filtered("chameleon-filtered-directed", directed=True),
            _filtered("squirrel-filtered", directed=False),
            _filtered("squirrel-filtered-directed", directed=True),
        )
    }
)
"""Every benchmark by its name, the nine of the paper first."""
