# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""The plans, as classes that take any matrix in compressed rows and options by name."""

from __future__ import annotations

from typing import Any

from . import _core
from ._csr import contiguous, dtype_name, is_torch_csr, narrowed, taken, with_dtype
from ._errors import InvalidArgument


class SpmvPlan(_core.SpmvPlan):
    """y := alpha op(A) x + beta y, for repeated use of one sparsity pattern.

    A is given as indptr, indices, data and shape, or as one object that has these (scipy.sparse.csr_array and
    csr_matrix, CuPy's, a PyTorch tensor of layout sparse_csr). The arrays are not copied (but indices of int64 are,
    once, as int32) and stay alive with the plan: change numbers by update_values(), never in place.

    algorithm: auto, dasp, csr, csr5, packed. backend: auto, kokkos, reference, emulated-nvidia, emulated-amd, cuda,
    hip. compute: auto (the type of data); plans of other products know tf32, too, which SpMV does not have (raises
    NotSupported). selection: predict, measure. reuse: many, once. op='T' in apply needs prepare_transpose. check=False
    leaves out the look at every column index.
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


class AttentionPlan(_core.AttentionPlan):
    """softmax(scale <q_i, k_j> [+ a_ij] [* a_ij] over the entries j of every row i of A) v, and its gradients.

    The matrix and common options: see SpmvPlan (an indptr of int64 is copied as int32, once). data has the type of q, k
    and v in any case; values says what its numbers are: none (they are not read), bias (added to scores; -inf hides an
    entry) or scale (scores are multiplied by them). algorithm: auto, fused, rows, chain. prepare_backward: backward()
    may be called. dimension_hint: columns that q, k and v of a head will mostly have. Precision: sums and softmax are float64
    for float64, else float32; compute="tf32" multiplies float32 in TF32 where a backend has matrix units.
    """

    def __init__(self, indptr: Any, indices: Any = None, data: Any = None, shape: tuple[int, int] | None = None, *,
                 check: bool = True, stream: int | None = None, algorithm: str = "auto",
                 backend: str = "auto", compute: str = "auto", selection: str = "predict", values: str = "none",
                 prepare_backward: bool = False, dimension_hint: int = 64, updatable: bool = True,
                 fallback: bool = True) -> None:
        indptr, *rest = taken(indptr, indices, data, shape, check)
        super().__init__(contiguous(narrowed(indptr, "indptr of an attention's pattern", check)), *rest, check, stream,
                         dict(algorithm=algorithm, backend=backend, compute=compute, selection=selection,
                              values=values, prepare_backward=prepare_backward, dimension_hint=dimension_hint,
                              updatable=updatable, fallback=fallback))


def _check_rows(indptr, numbers):
    if not all(hasattr(array, "shape") for array in (indptr, numbers)) or len(indptr) == 0 or len(numbers.shape) == 0:
        return  # the extension says what is wrong
    if int(indptr[0]) != 0 or int(indptr[-1]) != numbers.shape[-1] or not bool((indptr[1:] >= indptr[:-1]).all()):
        raise InvalidArgument(f"Tessera: indptr must ascend from 0 to the {numbers.shape[-1]} entries that there are "
                              "numbers for")


def row_softmax(indptr: Any, x: Any, out: Any = None, *, check: bool = True, stream: int | None = None) -> Any:
    """out_e := e^x_e / sum of e^x over the entries of e's row, for numbers x of the entries of a pattern.

    x is (nnz,), or (heads, nnz), in the order of the pattern, whose rows indptr says. The largest x of a row is taken
    off first, so that x may be of any size; -inf gives 0, a row of nothing else zeros. out may be x. Without out,
    returns a new array of x's library, type and device. check=False leaves out the look at indptr (on a device it
    waits). stream: as SpmmPlan.apply. Sums are float64 for float64, else float32. Time O(nnz), one launch;
    deterministic.
    """
    if check:
        _check_rows(indptr, x)
    return _core.row_softmax(indptr, x, out, stream)


def row_softmax_backward(indptr: Any, y: Any, grad_y: Any, out: Any = None, *, check: bool = True,
                         stream: int | None = None) -> Any:
    """The gradient by x from grad_y, that by y, the result of row_softmax: y_e (grad_y_e - sum of y grad_y in e's row).

    All arrays have the shape and type of y. out may be grad_y. See row_softmax.
    """
    if check:
        _check_rows(indptr, y)
    return _core.row_softmax_backward(indptr, y, grad_y, out, stream)


def spgemm(A: Any, B: Any, *, check: bool = True, stream: int | None = None, algorithm: str = "auto",
           backend: str = "auto") -> Any:
    """C = A B of two sparse matrices of float64 or float32; columns of C ascend in every row.

    A and B are matrices in compressed rows (see SpmvPlan) or tuples (indptr, indices, data, shape). C is of A's kind,
    its indptr as wide as the wider one of A and B: where C may have 2^31 entries or more, pass int64. Waits for the
    result. algorithm: auto, spa, hash, heap, coo, binned, dia, ell.
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


__all__ = ["AttentionPlan", "SddmmPlan", "SpmmPlan", "SpmvPlan", "row_softmax", "row_softmax_backward", "spgemm"]
