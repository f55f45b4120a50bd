"""Sparse matrices and hashes that loops in C are tried on."""

import numpy as np
from scipy import sparse


def matrix(rng, rows, columns, index, per_row=4.0):
    """A sparse matrix of weights that span many powers of ten; some rows are long, some empty."""
    density = min(per_row / max(columns, 1), 1.0)
    made = sparse.csr_array(sparse.random_array((rows, columns), density=density, rng=rng, format="csr"))
    if rows and rng.random() < 0.5:
        made = made.tolil()
        made[int(rng.integers(rows))] = rng.random(columns)
        made = sparse.csr_array(made)
    made.data[:] = rng.random(made.nnz) * 10.0 ** rng.integers(-5, 5, made.nnz)
    made.sum_duplicates()
    made.indices, made.indptr = made.indices.astype(index), made.indptr.astype(index)
    return made


def square(rng, n, index, symmetric=False):
    made = matrix(rng, n, n, index)
    if symmetric:
        made = sparse.csr_array(made + made.T)
        made.indices, made.indptr = made.indices.astype(index), made.indptr.astype(index)
    return made


def parts(made):
    return made.indptr, made.indices, made.data


def hashes(rng, size):
    return rng.integers(0, 2**64, size, dtype=np.uint64)
