"""A signal on a graph as a few numbers."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pegfan._arrays import FloatArray, IntArray
from pegfan._checks import check_number, check_path, check_places
from pegfan._npz import read_npz, write_npz
from pegfan.graph import Graph
from pegfan.running import Progress, Step, one_thread
from pegfan.signals._dictionary import Dictionary
from pegfan.signals.inpainting import as_values

__all__ = ["Compressed", "compress"]

_FORMAT = "pegfan compressed signal 2"
_NEAR = 1e-6


@dataclass(frozen=True, eq=False)
class Compressed:
    """A signal as amounts of a few atoms of its graph's dictionary; `compress` makes it.

    Attributes
    ----------
    places
        The numbers of the atoms, column after column.
    values
        Their amounts.
    counts
        How many atoms every column has.
    shape
        The shape of the signal.
    error
        ‖f − signal‖/‖f‖: what is lost.
    fingerprint
        Of the graph; `reconstruct` takes no other.
    check
        Two products per column of the signal with fixed vectors, by which `reconstruct` knows that it came back.
    signal
        The approximation.
    """

    places: NDArray[np.unsignedinteger[Any]] = field(repr=False)
    values: FloatArray = field(repr=False)
    counts: IntArray = field(repr=False)
    shape: tuple[int, ...]
    error: float
    fingerprint: str
    check: FloatArray = field(repr=False)
    signal: FloatArray = field(repr=False)

    @property
    def nbytes(self) -> int:
        """The bytes of places and values."""
        return self.places.nbytes + self.values.nbytes

    def reconstruct(self, graph: Any) -> FloatArray:
        """The signal again, from places and values alone.

        Parameters
        ----------
        graph
            The graph that it was compressed on, its nodes numbered as they were; any other is a ValueError.

        Notes
        -----
        Trees are the same on every machine. Eigenvectors are the same up to rounding: signs and bases of eigenspaces
        are fixed by the canonical order of nodes. What comes back is compared with two products that were kept, and is
        right to about 1e-6 of the signal's norm, or a ValueError.
        """
        found = _composed(Graph.of(graph), self.fingerprint, self.places, self.values, self.counts, self.shape)
        scale = np.linalg.norm(found.reshape(len(found), -1), axis=0)
        if (np.abs(_probed(found) - self.check) > _NEAR * (scale + np.abs(self.check).max(axis=0))).any():
            raise ValueError(
                "the atoms of this graph are not those that the signal was written in: another version of pegfan "
                "made them, or the file was changed; compress the signal again"
            )
        return found

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write places and values to an ``.npz``; returns the path written."""
        return write_npz(
            check_path(path, "path"),
            {
                "format": np.array(_FORMAT),
                "places": self.places,
                "values": self.values,
                "counts": self.counts,
                "shape": np.array(self.shape),
                "error": np.array(self.error),
                "fingerprint": np.array(self.fingerprint),
                "check": self.check,
            },
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], graph: Any, max_bytes: str | float | None = None) -> Self:
        """Read what `save` wrote, and the signal that it stands for; anything else is a ValueError.

        Parameters
        ----------
        path
            The file.
        graph
            The graph, as in `reconstruct`.
        max_bytes
            The memory that its arrays may take, in bytes or as ``"8GB"``; by default 80 % of what is free.
        """
        graph = Graph.of(graph)
        arrays = read_npz(check_path(path, "path"), max_bytes)
        if str(arrays.get("format")) != _FORMAT:
            raise ValueError(f"{path} is not a signal written by Compressed.save (no {_FORMAT!r} in it)")
        try:
            shape = tuple(int(size) for size in arrays["shape"])
            columns = shape[1] if len(shape) == 2 else 1
            if len(shape) not in (1, 2) or shape[0] != graph.n or columns < 0:
                raise ValueError(f"a signal of shape {shape} does not belong to {graph.n} nodes")
            places, values, counts, check = (arrays[name] for name in ("places", "values", "counts", "check"))
            if places.dtype not in (np.uint32, np.uint64) or places.ndim != 1 or values.shape != places.shape:
                raise ValueError(f"{places.dtype} places {places.shape} and values {values.shape} do not fit")
            if values.dtype != np.float64 or check.dtype != np.float64 or check.shape != (2, columns):
                raise ValueError("the amounts are not numbers")
            if not np.isfinite(values).all() or not np.isfinite(check).all():
                raise ValueError("the amounts are not finite")
            counts = check_places(counts, "counts", len(places) + 1)
            if len(counts) != columns or counts.sum() != len(places):
                raise ValueError(f"{len(places)} places do not fit {columns} columns")
            error = check_number(float(arrays["error"]), "error")
            fingerprint = str(arrays["fingerprint"])
        except (KeyError, TypeError, ValueError) as problem:
            raise ValueError(f"{path} is damaged: {problem}") from problem
        signal = _composed(graph, fingerprint, places, values, counts, shape)
        made = cls(places, values, counts, shape, error, fingerprint, check, signal)
        made.reconstruct(graph)
        return made

    def __repr__(self) -> str:
        return f"Compressed({self.shape}, {len(self.places)} atoms, {self.nbytes:,} bytes, error {self.error:.3g})"


def compress(graph: Any, f: Any, keep: float, *, progress: Progress | None = None) -> Compressed:
    """A signal as a few atoms: nodes, framelets and clusters of many trees, eigenvectors of the Laplacian.

    The atoms are chosen by orthogonal least squares: always the one that leaves the least, and amounts are those of the
    least error for all that are chosen. Signals that are sparse in the Fourier basis alone are written in it.

    Parameters
    ----------
    graph
        The graph, or what stands for one (`Graph.of`): PyGSP, NetworkX, a matrix, edges.
    f
        The signal, n or n × d; every column has atoms of its own. Gaps are filled by `inpaint` first.
    keep
        How many atoms per column: an integer is a count, a float up to 1.0 a share of n.
    progress
        Called with a `pegfan.running.Step` per column.

    Notes
    -----
    Trees are those of seeds 0, 1, ..., so that neither they nor the atoms are kept: only which atoms (4 bytes each) and
    how much of them (8 bytes). Up to 5,500 nodes the lowest quarter of the eigenvectors of the Laplacian are atoms,
    computed once per graph, which takes some seconds for 2,642 nodes. Beyond that, clusters blurred by diffusion
    stand for smooth signals. Beyond 1,200 atoms per column, and on graphs of more than 20,000 nodes, the others are the
    largest framelet coefficients of the best tree.

    Examples
    --------
    >>> import numpy as np
    >>> import pegfan as pf
    >>> graph = pf.Graph.from_edges([[i, i + 1] for i in range(199)])
    >>> f = np.where(np.arange(200) < 77, 1.0, -2.0) + np.sin(np.arange(200) / 30)
    >>> small = pf.compress(graph, f, keep=0.1)
    >>> small.nbytes, small.error < 0.02
    (240, True)
    >>> bool(np.allclose(small.reconstruct(graph), small.signal))
    True
    """
    graph = Graph.of(graph)
    signal = as_values(f, graph.n)
    if np.isnan(signal).any():
        raise ValueError(f"the signal has {int(np.isnan(signal).sum())} gaps (NaN); fill them with pf.inpaint first")
    wanted = check_number(keep, "keep")
    if isinstance(keep, float | np.floating):
        if wanted > 1:
            raise ValueError(f"keep is a whole number of atoms or a share up to 1.0, got {keep}")
        wanted = round(wanted * graph.n)
    count = max(min(int(wanted), graph.n), 1)
    columns = signal.reshape(graph.n, -1)
    with one_thread():
        dictionary = Dictionary.of(graph)
        found = []
        for c in range(columns.shape[1]):
            if progress:
                progress(Step(c, columns.shape[1], f"column {c + 1} of {columns.shape[1]}"))
            found.append(dictionary.approximate(columns[:, c], count))
        places = np.concatenate([np.empty(0, np.int64), *(one for one, _ in found)])
        kind = np.uint32 if dictionary.starts[-1] < 2**32 else np.uint64
    values = np.concatenate([np.empty(0), *(one for _, one in found)])
    counts = np.array([len(one) for one, _ in found], np.int64)
    fingerprint = graph.digest
    near = _composed(graph, fingerprint, places, values, counts, signal.shape)
    norm = float(np.linalg.norm(signal))
    error = float(np.linalg.norm(signal - near)) / norm if norm else 0.0
    return Compressed(np.asarray(places, kind), values, counts, signal.shape, error, fingerprint, _probed(near), near)


def _composed(
    graph: Graph, fingerprint: str, places: Any, values: FloatArray, counts: IntArray, shape: tuple[int, ...]
) -> FloatArray:
    """The signal of some atoms of a graph, column by column."""
    if graph.digest != fingerprint:
        raise ValueError(
            "the signal was compressed on another graph, or on this one with its nodes numbered in another way; give "
            "that graph"
        )
    out = np.zeros((graph.n, len(counts)))
    with one_thread():
        dictionary = Dictionary.of(graph)
        wide = check_places(places.astype(np.int64), "places", int(dictionary.starts[-1]))
        ends = np.cumsum(counts)
        for c, (start, end) in enumerate(zip(ends - counts, ends, strict=True)):
            out[:, c] = dictionary.compose(wide[start:end], values[start:end])
    return out.reshape(shape)


def _probed(signal: FloatArray) -> FloatArray:
    """Two products of every column with fixed vectors of unit size."""
    probes = np.random.default_rng(0).standard_normal((2, len(signal))) / np.sqrt(max(len(signal), 1))
    return np.asarray(probes @ signal.reshape(len(signal), -1))
