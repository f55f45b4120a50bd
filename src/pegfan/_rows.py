"""Rows of feature matrices, dense or sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse


def l1_rows(x: Any) -> Any:
    """The matrix with rows divided by the sums of their absolute values; rows of zeros stay as they are."""
    sums = np.asarray(abs(x).sum(axis=1)).ravel()
    sums[sums == 0] = 1
    return csr_array(diags_array(1 / sums, dtype=x.dtype) @ x) if issparse(x) else x / sums[:, None]
