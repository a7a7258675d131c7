# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Sparse products as PyTorch operators with derivatives of any order, for modules and torch.compile.

A graph is three tensors in compressed rows: indptr, indices (int32; int64 is copied once per graph) and values. Plans
are made at the first product with a graph and kept in a cache, which knows a graph by where its index tensors lie: use
the same tensors again. Index tensors that were changed in place are another graph (but changes through .data go
unseen). Values may be others in every product, which costs what SpmmPlan.update_values costs: where they never change,
an SpmmPlan multiplies faster.

Needs PyTorch 2.4 or later. Operands are where this build of Tessera runs its plans (tessera.build()["device"]).
"""

import collections
import threading

import torch
from torch import Tensor

from ._plans import SddmmPlan, SpmmPlan


class _Cache:
    """The plans of the graphs used last. Holding their index tensors, it sees no other graph at the same address."""

    def __init__(self, size):
        self.size = size
        self.lock = threading.RLock()
        self.entries = collections.OrderedDict()

    def get(self, kind, indptr, indices, cols, dtype, make):
        key = (kind, indptr.data_ptr(), indptr.numel(), indptr._version, indices.data_ptr(), indices.numel(),
               indices._version, cols, dtype, indices.device, indptr.dtype)
        entry = self.entries.get(key)
        if entry is None:
            entry = self.entries[key] = make()
            while len(self.entries) > self.size:
                self.entries.popitem(last=False)
        else:
            self.entries.move_to_end(key)
        return entry


_cache = _Cache(64)


def clear_cache() -> None:
    """Lets go of all plans and of the tensors that they keep."""
    with _cache.lock:
        _cache.entries.clear()


def cache_info() -> dict[str, int]:
    """How many plans are kept, and how many at most (set_cache_size)."""
    return {"plans": len(_cache.entries), "size": _cache.size}


def set_cache_size(size: int) -> None:
    """Keep the plans of so many products; a training step with one graph uses two."""
    with _cache.lock:
        _cache.size = max(1, int(size))
        while len(_cache.entries) > _cache.size:
            _cache.entries.popitem(last=False)


class _Product:
    """A graph's SpmmPlan. The first product with the transpose makes it anew for both, which it stays."""

    def __init__(self, indptr, indices, cols, columns):
        self.indptr, self.indices, self.cols, self.columns = indptr, indices, cols, columns
        self.plan = None
        self.transposes = False

    def apply(self, values, x, transposed):
        values = values.detach().contiguous()
        if self.plan is None or (transposed and not self.transposes):
            self.transposes = self.transposes or transposed
            shape = (self.indptr.numel() - 1, self.cols)
            self.plan = SpmmPlan(self.indptr, self.indices, values, shape, prepare_transpose=self.transposes,
                                 num_columns_hint=self.columns)
        else:
            # Whether numbers are still the same cannot be known: changes through .data leave no trace.
            self.plan.update_values(values)
        return self.plan.apply(x.detach(), op="T" if transposed else "N")


def _multiply(indptr, indices, values, x, cols, transposed):
    with _cache.lock:
        columns = max(1, x.shape[1])
        product = _cache.get("spmm", indptr, indices, cols, values.dtype,
                             lambda: _Product(indptr, indices, cols, columns))
        return product.apply(values, x, transposed)


@torch.library.custom_op("tessera::spmm", mutates_args=())
def _spmm(indptr: Tensor, indices: Tensor, values: Tensor, b: Tensor) -> Tensor:
    return _multiply(indptr, indices, values, b, b.shape[0], False)


@torch.library.custom_op("tessera::spmm_transposed", mutates_args=())
def _spmm_transposed(indptr: Tensor, indices: Tensor, values: Tensor, b: Tensor, cols: int) -> Tensor:
    return _multiply(indptr, indices, values, b, cols, True)


@torch.library.custom_op("tessera::sddmm", mutates_args=())
def _sddmm(indptr: Tensor, indices: Tensor, x: Tensor, y: Tensor) -> Tensor:
    def make():
        shape = (x.shape[0], y.shape[0])
        # Its numbers do not enter, but their type is the plan's.
        return SddmmPlan(indptr, indices, x.new_empty(indices.numel()), shape, inner_hint=max(1, x.shape[1]),
                         updatable=False), indptr, indices

    with _cache.lock:
        plan, *_ = _cache.get("sddmm", indptr, indices, y.shape[0], x.dtype, make)
        return plan.apply(x.detach(), y.detach())


@_spmm.register_fake
def _(indptr, indices, values, b):
    return b.new_empty((indptr.shape[0] - 1, b.shape[1]))


@_spmm_transposed.register_fake
def _(indptr, indices, values, b, cols):
    return b.new_empty((cols, b.shape[1]))


@_sddmm.register_fake
def _(indptr, indices, x, y):
    return x.new_empty((indices.shape[0],))


def _save(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:4])


def _spmm_backward(ctx, grad):
    indptr, indices, values, b = ctx.saved_tensors
    _, _, to_values, to_b = ctx.needs_input_grad
    return (None, None, _sddmm(indptr, indices, grad, b) if to_values else None,
            _spmm_transposed(indptr, indices, values, grad, b.shape[0]) if to_b else None)


def _spmm_transposed_backward(ctx, grad):
    indptr, indices, values, b = ctx.saved_tensors
    _, _, to_values, to_b, _ = ctx.needs_input_grad
    return (None, None, _sddmm(indptr, indices, b, grad) if to_values else None,
            _spmm(indptr, indices, values, grad) if to_b else None, None)


def _sddmm_backward(ctx, grad):
    indptr, indices, x, y = ctx.saved_tensors
    _, _, to_x, to_y = ctx.needs_input_grad
    return (None, None, _spmm(indptr, indices, grad, y) if to_x else None,
            _spmm_transposed(indptr, indices, grad, x, y.shape[0]) if to_y else None)


_spmm.register_autograd(_spmm_backward, setup_context=_save)
_spmm_transposed.register_autograd(_spmm_transposed_backward, setup_context=_save)
_sddmm.register_autograd(_sddmm_backward, setup_context=_save)


def spmm(indptr: Tensor, indices: Tensor, values: Tensor, b: Tensor) -> Tensor:
    """A @ b for the sparse A = (indptr, indices, values) of as many columns as b has rows.

    b has rank 2, or 1 (a vector). Differentiable by values and b. Sums are in the precision of the type, of 16-bit
    types in float32.
    """
    if b.dim() == 1:
        return _spmm(indptr, indices, values, b.unsqueeze(1)).squeeze(1)
    return _spmm(indptr, indices, values, b)


def spmm_transposed(indptr: Tensor, indices: Tensor, values: Tensor, b: Tensor, cols: int) -> Tensor:
    """A.T @ b for the sparse A = (indptr, indices, values) with `cols` columns. See spmm."""
    if b.dim() == 1:
        return _spmm_transposed(indptr, indices, values, b.unsqueeze(1), cols).squeeze(1)
    return _spmm_transposed(indptr, indices, values, b, cols)


def sddmm(indptr: Tensor, indices: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """<x[i], y[j]> for every entry (i, j) of the graph, in its order: values for spmm.

    x has a row per row of the graph, y a row per column. Differentiable by both.
    """
    return _sddmm(indptr, indices, x, y)


__all__ = ["cache_info", "clear_cache", "sddmm", "set_cache_size", "spmm", "spmm_transposed"]
