# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Sparse matrix kernels: plans for y = A x, C = A B with dense B, sampled products, attention on a pattern, and
products of sparse matrices.

    import scipy.sparse, tessera
    plan = tessera.SpmmPlan(scipy.sparse.random(1000, 1000, 0.01, "csr"))
    C = plan @ B                          # or plan.apply(B, out=C, alpha=2.0, beta=1.0)

Operands are NumPy arrays, or, in a build for a device, arrays of CuPy and PyTorch on it; none is copied. tessera.torch
has the products as operators with derivatives. The first plan initialises Kokkos (initialize() before it chooses
threads and device), the end of the process finalises it.
"""

import atexit as _atexit

from ._core import build, finalize, initialize
from ._errors import (DeviceError, DimensionMismatch, Error, FileError, InvalidArgument, NotCompiled, NotSupported,
                      OutOfMemory, StalePlan, WorkspaceTooSmall)
from ._plans import AttentionPlan, SddmmPlan, SpmmPlan, SpmvPlan, row_softmax, row_softmax_backward, spgemm

_atexit.register(finalize)

__all__ = [
    "AttentionPlan", "DeviceError", "DimensionMismatch", "Error", "FileError", "InvalidArgument", "NotCompiled",
    "NotSupported", "OutOfMemory", "SddmmPlan", "SpmmPlan", "SpmvPlan", "StalePlan", "WorkspaceTooSmall", "build",
    "finalize", "initialize", "row_softmax", "row_softmax_backward", "spgemm",
]
