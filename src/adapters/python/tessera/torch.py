# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Sparse products and attention as PyTorch operators with derivatives, for modules and torch.compile.

A graph is three tensors in compressed rows: indptr, indices (int32; int64 is copied once per graph) and values. Plans
are made at the first product with a graph and kept in a cache, which knows a graph by where its index tensors lie: use
the same tensors again. Index tensors that were changed in place are another graph (but changes through .data go
unseen). Values may be others in every product, which costs what SpmmPlan.update_values costs; constant=True says that
they are those of the product before as long as they lie in the same place and were not changed in place.

compute="tf32" multiplies float32 in TF32, as plans do. Derivatives are of any order, those of attention of the first.
Products of width d take time O(nnz d) and memory for their results alone. They are deterministic, forward and backward,
and on devices asynchronous, on PyTorch's current stream (but the first one with a graph, which makes its plans). The
plans of a graph are the same on all streams: order streams that multiply with other values of one graph. Shapes
and types that do not fit raise DimensionMismatch or NotSupported, index tensors that are no graph InvalidArgument, what
is no tensor TypeError, before anything is written.

Needs PyTorch 2.4 or later. Operands are where this build of Tessera runs its plans (tessera.build()["device"]).
"""

from typing import Optional

from torch import Tensor

from . import _layers, _operators
from ._errors import DimensionMismatch, InvalidArgument
from ._graphs import cache as _cache


def clear_cache() -> None:
    """Lets go of all plans and of the tensors that they keep."""
    with _cache.lock:
        _cache.clear()


def cache_info() -> dict[str, int]:
    """How many plans are kept, and how many at most (set_cache_size)."""
    return {"plans": len(_cache.entries), "size": _cache.size}


def set_cache_size(size: int) -> None:
    """Keep the plans of so many graphs; per kind of function, type and compute one counts, its transpose included."""
    with _cache.lock:
        _cache.size = max(1, int(size))
        _cache.shrink()


def _is_vector(b):
    rank = b.dim() if isinstance(b, Tensor) else 2  # what is no tensor is refused later
    if not 1 <= rank <= 2:
        raise DimensionMismatch(f"Tessera: b is {tuple(b.shape)}; it must be a matrix or a vector")
    return rank == 1


def spmm(indptr: Tensor, indices: Tensor, values: Tensor, b: Tensor, *, compute: str = "auto",
         constant: bool = False) -> Tensor:
    """A @ b for the sparse A = (indptr, indices, values) of as many columns as b has rows.

    b has rank 2, or 1 (a vector). Differentiable by values and b. Sums are in the precision of the type, of 16-bit
    types in float32. constant: the values stay what they are, so that products need not pass them on.
    """
    if _is_vector(b):
        return spmm(indptr, indices, values, b.unsqueeze(1), compute=compute, constant=constant).squeeze(1)
    return _operators._call_spmm(indptr, indices, values, b, compute, constant)


def spmm_transposed(indptr: Tensor, indices: Tensor, values: Tensor, b: Tensor, cols: int, *, compute: str = "auto",
                    constant: bool = False) -> Tensor:
    """A.T @ b for the sparse A = (indptr, indices, values) with `cols` columns. See spmm."""
    if _is_vector(b):
        b = b.unsqueeze(1)
        return spmm_transposed(indptr, indices, values, b, cols, compute=compute, constant=constant).squeeze(1)
    return _operators._call_spmm_transposed(indptr, indices, values, b, cols, compute, constant)


def sddmm(indptr: Tensor, indices: Tensor, x: Tensor, y: Tensor, *, compute: str = "auto") -> Tensor:
    """<x[i], y[j]> for every entry (i, j) of the graph, in its order: values for spmm.

    x has a row per row of the graph, y a row per column. Differentiable by both.
    """
    return _operators._call_sddmm(indptr, indices, x, y, compute)


def attention(indptr: Tensor, indices: Tensor, q: Tensor, k: Tensor, v: Tensor, *, bias: Optional[Tensor] = None,
              factor: Optional[Tensor] = None, scale: Optional[float] = None, compute: str = "auto") -> Tensor:
    """softmax(scale <q[i], k[j]> over the entries (i, j) of row i) @ v, as AttentionPlan computes it.

    q is (rows, d), k (cols, d), v (cols, e), the result (rows, e); or all with one dimension more in front for heads.
    scale None is 1 / sqrt(d). Scores may have a number per entry, which heads share, added (bias; -inf hides an entry)
    or multiplied (factor). Differentiable once, by q, k, v and that number; scores are computed again in the backward
    pass, whose memory is that of its results (and of a number per entry and head for bias or factor). All tensors have
    one type. compute="tf32" multiplies float32 in TF32 in the forward pass (gradients are float32's), and needs a device
    with matrix units. A row without entries gives zeros. Deterministic.
    """
    if bias is not None and factor is not None:
        raise InvalidArgument("Tessera: attention takes a bias or a factor per entry, not both")
    values, kind = (bias, "bias") if bias is not None else (factor, "scale") if factor is not None else (None, "none")
    if scale is None:
        scale = max(1, q.shape[-1]) ** -0.5
    return _operators._call_attention(indptr, indices, values, q, k, v, float(scale), kind, compute)


def row_softmax(indptr: Tensor, x: Tensor) -> Tensor:
    """Softmax of numbers x of a graph's entries over those of each row; x is (nnz,), or (heads, nnz). Differentiable.

    Between sddmm and spmm, which it makes attention of any scores.
    """
    return _operators._call_row_softmax(indptr, x)


def graph_convolution(indptr: Tensor, indices: Tensor, values: Tensor, x: Tensor, weight: Tensor,
                      bias: Optional[Tensor] = None, *, relu: bool = False, compute: str = "auto",
                      constant: bool = True) -> Tensor:
    """A (x @ weight.T) + bias, and of that the positive part (relu): a layer of a graph convolution network.

    A = (indptr, indices, values) has as many columns as x (rows, in) has rows; weight is (out, in) and bias (out,), as
    torch.nn.Linear has them. The same as spmm, torch.mm, + and torch.relu, but one step of autograd, which costs the
    host a fraction of four. Where W does not narrow x, A x comes first, so that bias and relu are the dense product's, and
    no gradient passes through A if x wants none; A x is kept for the backward pass then. Computed in the type of values,
    which x and weight are converted to; compute is that of the sparse product (spmm), dense ones follow torch.backends.
    constant: as in spmm. Differentiable, by values as well (then by its parts). Asynchronous on devices; deterministic
    where PyTorch's dense products are.
    """
    return _layers.graph_convolution(indptr, indices, values, x, weight, bias, relu, compute, constant)


def cosine_attention(indptr: Tensor, indices: Tensor, h: Tensor, beta: Tensor, *, compute: str = "auto") -> Tensor:
    """softmax(beta cos(h[i], h[j]) over the entries (i, j) of row i) @ h: a layer of AGNN, beta of one number.

    The graph has as many rows as columns, h (rows, d) a row per node. The same as attention of normalised features, but
    one step of autograd. Lengths of 16-bit features are float32; shorter ones than 1e-12 count as that. Differentiable
    once, by h and beta. compute: as in attention. Asynchronous on devices; deterministic.
    """
    return _layers.cosine_attention(indptr, indices, h, beta, compute)


__all__ = ["attention", "cache_info", "clear_cache", "cosine_attention", "graph_convolution", "row_softmax", "sddmm",
           "set_cache_size", "spmm", "spmm_transposed"]
