# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""The plans, as classes that take any matrix in compressed rows and options by name."""

from __future__ import annotations

from typing import Any

from . import _core
from ._csr import dtype_name, is_torch_csr, taken, with_dtype
from ._errors import InvalidArgument


class SpmvPlan(_core.SpmvPlan):
    """y := alpha op(A) x + beta y, for repeated use of one sparsity pattern.

    A is given as indptr, indices, data and shape, or as one object that has these (scipy.sparse.csr_array and
    csr_matrix, CuPy's, a PyTorch tensor of layout sparse_csr). The arrays are not copied (but indices of int64 are,
    once, as int32) and stay alive with the plan: change numbers by update_values(), never in place.

    algorithm: auto, dasp, csr, csr5, packed. backend: auto, kokkos, reference, emulated-nvidia, emulated-amd, cuda,
    hip. compute: auto (the type of data), or tf32. selection: predict, measure. reuse: many, once. op='T' in apply
    needs prepare_transpose. check=False leaves out the look at every column index.
    """

    def __init__(self, indptr: Any, indices: Any = None, data: Any = None, shape: tuple[int, int] | None = None, *,
                 check: bool = True, stream: int | None = None, algorithm: str = "auto",
                 backend: str = "auto", compute: str = "auto", selection: str = "predict", reuse: str = "many",
                 prepare_transpose: bool = False, updatable: bool = True, fallback: bool = True) -> None:
        super().__init__(*taken(indptr, indices, data, shape, check), check, stream,
                         dict(algorithm=algorithm, backend=backend, compute=compute, selection=selection, reuse=reuse,
                              prepare_transpose=prepare_transpose, updatable=updatable, fallback=fallback))

    def __matmul__(self, x: Any) -> Any:
        return self.apply(x)


class SpmmPlan(_core.SpmmPlan):
    """C := alpha op(A) B + beta C with dense B and C, for repeated use of one sparsity pattern.

    The matrix and common options: see SpmvPlan. algorithm: auto, panels, flash, gespmm, csr. reordering (of rows in
    windows, invisible in C): none, auto, nearest, clusters, greedy. num_columns_hint: columns that B will mostly have.
    """

    def __init__(self, indptr: Any, indices: Any = None, data: Any = None, shape: tuple[int, int] | None = None, *,
                 check: bool = True, stream: int | None = None, algorithm: str = "auto",
                 backend: str = "auto", compute: str = "auto", selection: str = "predict", reuse: str = "many",
                 num_columns_hint: int = 64, reordering: str = "none", prepare_transpose: bool = False,
                 updatable: bool = True, fallback: bool = True) -> None:
        super().__init__(*taken(indptr, indices, data, shape, check), check, stream,
                         dict(algorithm=algorithm, backend=backend, compute=compute, selection=selection, reuse=reuse,
                              num_columns_hint=num_columns_hint, reordering=reordering,
                              prepare_transpose=prepare_transpose, updatable=updatable, fallback=fallback))

    def __matmul__(self, x: Any) -> Any:
        return self.apply(x)


class SddmmPlan(_core.SddmmPlan):
    """p_ij := alpha <x_i, y_j> [* s_ij] + beta p_ij at the entries (i, j) of a pattern S.

    The matrix and common options: see SpmvPlan; its numbers enter with scale_by_values only, but their type is that of
    x and y in any case. algorithm: auto, panels, rows, flash, bsmr, csr. inner_hint: length that rows of x will mostly
    have.
    """

    def __init__(self, indptr: Any, indices: Any = None, data: Any = None, shape: tuple[int, int] | None = None, *,
                 check: bool = True, stream: int | None = None, algorithm: str = "auto",
                 backend: str = "auto", compute: str = "auto", selection: str = "predict", reuse: str = "many",
                 inner_hint: int = 64, scale_by_values: bool = False, updatable: bool = True,
                 fallback: bool = True) -> None:
        super().__init__(*taken(indptr, indices, data, shape, check), check, stream,
                         dict(algorithm=algorithm, backend=backend, compute=compute, selection=selection, reuse=reuse,
                              inner_hint=inner_hint, scale_by_values=scale_by_values, updatable=updatable,
                              fallback=fallback))


def spgemm(A: Any, B: Any, *, check: bool = True, stream: int | None = None, algorithm: str = "auto",
           backend: str = "auto") -> Any:
    """C = A B of two sparse matrices of float64 or float32; columns of C ascend in every row.

    A and B are matrices in compressed rows (see SpmvPlan) or tuples (indptr, indices, data, shape). C is of A's kind,
    its indptr as wide as the wider one of A and B: where C may have 2^31 entries or more, pass int64. Waits for the
    result. algorithm: auto, spa, hash, heap, coo, binned.
    """
    a, b = (list(taken(M, None, None, None, check)) for M in (A, B))
    if dtype_name(a[0]) != dtype_name(b[0]):
        a[0], b[0] = (with_dtype(indptr, "int64") for indptr in (a[0], b[0]))
    if dtype_name(a[2]) != dtype_name(b[2]):
        raise InvalidArgument(f"Tessera: A holds {dtype_name(a[2])}, B holds {dtype_name(b[2])}")
    indptr, indices, data = _core.spgemm(*a, *b, check, stream, dict(algorithm=algorithm, backend=backend))
    shape = (a[3], b[4])
    if isinstance(A, tuple):
        return indptr, indices, data, shape
    if is_torch_csr(A):
        import torch

        # PyTorch wants both index arrays of one type.
        return torch.sparse_csr_tensor(indptr, indices.to(indptr.dtype), data, shape)
    return type(A)((data, indices, indptr), shape=shape)


__all__ = ["SddmmPlan", "SpmmPlan", "SpmvPlan", "spgemm"]
