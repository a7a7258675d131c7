# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Sparse products and attention as PyTorch operators with derivatives, for modules and torch.compile.

A graph is three tensors in compressed rows: indptr, indices (int32; int64 is copied once per graph) and values. Plans
are made at the first product with a graph and kept in a cache, which knows a graph by where its index tensors lie: use
the same tensors again. Index tensors that were changed in place are another graph (but changes through .data go
unseen). Values may be others in every product, which costs what SpmmPlan.update_values costs; constant=True says that
they are those of the product before as long as they lie in the same place and were not changed in place.

compute="tf32" multiplies float32 in TF32, as SpmmPlan and SddmmPlan do. Derivatives are of any order, those of attention
of the first.

Needs PyTorch 2.4 or later. Operands are where this build of Tessera runs its plans (tessera.build()["device"]).
"""

import collections
import threading
from typing import Optional

import torch
from torch import Tensor

from . import _core
from ._errors import InvalidArgument
from ._plans import AttentionPlan, SddmmPlan, SpmmPlan, _check_rows


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
    """A graph's SpmmPlan, and one of its transpose from the first product with that.

    They are two, since values that change are then filled in where they are multiplied with, and not into both.
    """

    def __init__(self, indptr, indices, cols, columns, compute):
        self.indptr, self.indices, self.cols, self.columns, self.compute = indptr, indices, cols, columns, compute
        self.plans = [None, None]
        self.known = [None, None]
        self.order = None

    def _transpose(self):
        """Its pattern; order says which entry of the graph each of its entries is."""
        counts = self.indptr.diff()
        rows = torch.arange(counts.numel(), dtype=torch.int32, device=counts.device)
        rows = torch.repeat_interleave(rows, counts, output_size=self.indices.numel())
        columns, self.order = torch.sort(self.indices, stable=True)
        starts = torch.arange(self.cols + 1, dtype=columns.dtype, device=columns.device)
        indptr = torch.searchsorted(columns, starts).to(self.indptr.dtype)
        return indptr, rows[self.order], (self.cols, counts.numel())

    def apply(self, values, x, transposed, constant):
        # Values that are known are kept, so that no others lie there. Those of inference mode have no version.
        known = None
        if constant and not values.is_inference():
            known = values.data_ptr(), values._version, values.shape, values.stride(), values
        plan = self.plans[transposed]
        if plan is None:
            pattern = self._transpose() if transposed else (self.indptr, self.indices,
                                                            (self.indptr.numel() - 1, self.cols))
            plan = self.plans[transposed] = SpmmPlan(*pattern[:2], self._numbers(values, transposed), pattern[2],
                                                     num_columns_hint=self.columns, compute=self.compute)
        elif known is None or self.known[transposed] is None or self.known[transposed][:4] != known[:4]:
            # Whether numbers are still the same cannot be known: changes through .data leave no trace.
            plan.update_values(self._numbers(values, transposed))
        self.known[transposed] = known
        return plan.apply(x.detach())

    def _numbers(self, values, transposed):
        values = values.detach()
        return values[self.order] if transposed else values.contiguous()


class _Attention:
    """A graph's AttentionPlan. The first backward pass makes it anew for both, which it stays."""

    def __init__(self, indptr, indices, cols, columns, kind):
        self.indptr, self.indices, self.cols, self.columns, self.kind = indptr, indices, cols, columns, kind
        self.plan = None
        self.backwards = False

    def get(self, values, q, backwards):
        if self.plan is None or (backwards and not self.backwards):
            self.backwards = self.backwards or backwards
            # Numbers that are not read, but their type is the plan's.
            numbers = q.new_empty(self.indices.numel()) if values is None else values.detach().contiguous()
            self.plan = AttentionPlan(self.indptr, self.indices, numbers, (self.indptr.numel() - 1, self.cols),
                                      values=self.kind, prepare_backward=self.backwards,
                                      dimension_hint=self.columns)
        elif values is not None:
            self.plan.update_values(values.detach().contiguous())
        return self.plan


def _multiply(indptr, indices, values, x, cols, transposed, compute, constant):
    with _cache.lock:
        columns = max(1, x.shape[1])
        product = _cache.get(("spmm", compute), indptr, indices, cols, values.dtype,
                             lambda: _Product(indptr, indices, cols, columns, compute))
        return product.apply(values, x, transposed, constant)


def _spmm(indptr: Tensor, indices: Tensor, values: Tensor, b: Tensor, compute: str,
          constant: bool) -> Tensor:
    return _multiply(indptr, indices, values, b, b.shape[0], False, compute, constant)


def _spmm_transposed(indptr: Tensor, indices: Tensor, values: Tensor, b: Tensor, cols: int, compute: str,
                     constant: bool) -> Tensor:
    return _multiply(indptr, indices, values, b, cols, True, compute, constant)


def _sddmm(indptr: Tensor, indices: Tensor, x: Tensor, y: Tensor, compute: str) -> Tensor:
    def make():
        shape = (x.shape[0], y.shape[0])
        # Its numbers do not enter, but their type is the plan's.
        return SddmmPlan(indptr, indices, x.new_empty(indices.numel()), shape, inner_hint=max(1, x.shape[1]),
                         updatable=False, compute=compute), indptr, indices

    with _cache.lock:
        plan, *_ = _cache.get(("sddmm", compute), indptr, indices, y.shape[0], x.dtype, make)
        return plan.apply(x.detach(), y.detach())


def _attention_plan(indptr, indices, values, q, k, kind, backwards):
    attention = _cache.get(("attention", kind), indptr, indices, k.shape[-2], q.dtype,
                           lambda: _Attention(indptr, indices, k.shape[-2], max(1, q.shape[-1]), kind))
    return attention.get(values, q, backwards)


def _attention(indptr: Tensor, indices: Tensor, values: Optional[Tensor], q: Tensor, k: Tensor, v: Tensor,
               scale: float, kind: str) -> tuple[Tensor, Tensor]:
    with _cache.lock:
        plan = _attention_plan(indptr, indices, values, q, k, kind, False)
        return plan.apply(q.detach(), k.detach(), v.detach(), scale=scale, lse=True)


def _attention_backward(indptr: Tensor, indices: Tensor, values: Optional[Tensor], q: Tensor, k: Tensor, v: Tensor,
                        out: Tensor, lse: Tensor, grad: Tensor, scale: float, kind: str,
                        grad_values: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    with _cache.lock:
        plan = _attention_plan(indptr, indices, values, q, k, kind, True)
        results = plan.backward(*(t.detach() for t in (grad, q, k, v, out, lse)), scale=scale,
                                grad_values=grad_values)
    if not grad_values:
        return *results, q.new_empty(0)
    # Heads share the values.
    return *results[:3], results[3].sum(0) if q.dim() == 3 else results[3]


def _row_softmax(indptr: Tensor, x: Tensor) -> Tensor:
    def make():
        _check_rows(indptr, x)
        return (indptr,)

    with _cache.lock:
        _cache.get("rows", indptr, indptr, x.shape[-1], None, make)
        return _core.row_softmax(indptr, x.detach())


def _row_softmax_backward(indptr: Tensor, y: Tensor, grad: Tensor) -> Tensor:
    with _cache.lock:
        return _core.row_softmax_backward(indptr, y.detach(), grad.detach())


def _plain(inputs):
    """Whether all tensors are just that: neither fakes of a compiler nor another library's."""
    for t in inputs:
        if isinstance(t, Tensor) and type(t) is not Tensor and type(t) is not torch.nn.Parameter:
            return False
    return True


def _differentiable(name, kernel, fake, save, backward):
    """The operator tessera::name with its derivative, and a function of it.

    Outside of a compiler that is an autograd.Function, since an operator of Python costs several times as much.
    """
    operator = torch.library.custom_op("tessera::" + name, kernel, mutates_args=())
    operator.register_fake(fake)
    operator.register_autograd(backward, setup_context=save)

    def forward(ctx, *inputs):
        # With a setup_context of its own, PyTorch would look at the signature in every call.
        output = kernel(*inputs)
        save(ctx, inputs, output)
        return output

    function = type(name, (torch.autograd.Function,),
                    {"forward": staticmethod(forward), "backward": staticmethod(backward)})

    def call(*inputs):
        if torch.compiler.is_compiling() or not _plain(inputs):
            return operator(*inputs)
        return function.apply(*inputs) if torch.is_grad_enabled() else kernel(*inputs)

    return call


def _fake_spmm(indptr, indices, values, b, compute, constant):
    return b.new_empty((indptr.shape[0] - 1, b.shape[1]))


def _fake_spmm_transposed(indptr, indices, values, b, cols, compute, constant):
    return b.new_empty((cols, b.shape[1]))


def _fake_sddmm(indptr, indices, x, y, compute):
    return x.new_empty((indices.shape[0],))


def _fake_attention(indptr, indices, values, q, k, v, scale, kind):
    sums = q.dtype if q.dtype == torch.float64 else torch.float32
    rows = (*q.shape[:-2], indptr.shape[0] - 1)
    return q.new_empty((*rows, v.shape[-1])), q.new_empty(rows, dtype=sums)


def _fake_attention_backward(indptr, indices, values, q, k, v, out, lse, grad, scale, kind, grad_values):
    return (*(t.new_empty(t.shape) for t in (q, k, v)), q.new_empty((indices.shape[0] if grad_values else 0,)))


def _fake_row_softmax(indptr, x):
    return x.new_empty(x.shape)


def _fake_row_softmax_backward(indptr, y, grad):
    return y.new_empty(y.shape)


def _save_product(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:4])
    ctx.compute = inputs[-2] if isinstance(inputs[-1], bool) else inputs[-1]
    ctx.constant = inputs[-1] is True


def _spmm_backward(ctx, grad):
    indptr, indices, values, b = ctx.saved_tensors
    _, _, to_values, to_b, *_ = ctx.needs_input_grad
    return (None, None, _call_sddmm(indptr, indices, grad, b, ctx.compute) if to_values else None,
            _call_spmm_transposed(indptr, indices, values, grad, b.shape[0], ctx.compute, ctx.constant)
            if to_b else None, None, None)


def _spmm_transposed_backward(ctx, grad):
    indptr, indices, values, b = ctx.saved_tensors
    _, _, to_values, to_b, *_ = ctx.needs_input_grad
    return (None, None, _call_sddmm(indptr, indices, b, grad, ctx.compute) if to_values else None,
            _call_spmm(indptr, indices, values, grad, ctx.compute, ctx.constant) if to_b else None, None, None, None)


def _sddmm_backward(ctx, grad):
    indptr, indices, x, y = ctx.saved_tensors
    _, _, to_x, to_y, _ = ctx.needs_input_grad
    return (None, None, _call_spmm(indptr, indices, grad, y, ctx.compute, False) if to_x else None,
            _call_spmm_transposed(indptr, indices, grad, x, y.shape[0], ctx.compute, False) if to_y else None, None)


def _save_attention(ctx, inputs, output):
    *tensors, ctx.scale, ctx.kind = inputs
    ctx.save_for_backward(*tensors, *output)
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _attention_gradients(ctx, grad, _):
    if grad is None:
        return (None,) * 8
    to_values = ctx.needs_input_grad[2]
    # The operator has no derivative and says so where one is asked for; it costs more than its kernel.
    tracked = torch.compiler.is_compiling() or torch.is_grad_enabled() or not _plain((grad,))
    backward = _attention_backward_operator if tracked else _attention_backward
    d_q, d_k, d_v, d_values = backward(*ctx.saved_tensors, grad, ctx.scale, ctx.kind, to_values)
    return None, None, d_values if to_values else None, d_q, d_k, d_v, None, None


def _save_row_softmax(ctx, inputs, output):
    ctx.save_for_backward(inputs[0], output)


def _row_softmax_gradient(ctx, grad):
    indptr, y = ctx.saved_tensors
    return None, _call_row_softmax_backward(indptr, y, grad)


def _save_row_softmax_backward(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _row_softmax_second(ctx, h):
    """Of d = y (g - s), s the row's sum of y g, where the gradient by d is h."""
    indptr, y, g = ctx.saved_tensors
    lengths = indptr.diff()

    def rows_sum(x):
        sums = torch.segment_reduce(x.movedim(-1, 0), "sum", offsets=indptr, axis=0, unsafe=True, initial=0)
        return torch.repeat_interleave(sums, lengths, 0, output_size=x.shape[-1]).movedim(0, -1)

    to_y = h * (g - rows_sum(y * g)) - g * rows_sum(y * h) if ctx.needs_input_grad[1] else None
    return None, to_y, _call_row_softmax_backward(indptr, y, h) if ctx.needs_input_grad[2] else None


_call_spmm = _differentiable("spmm", _spmm, _fake_spmm, _save_product, _spmm_backward)
_call_spmm_transposed = _differentiable("spmm_transposed", _spmm_transposed, _fake_spmm_transposed, _save_product,
                                        _spmm_transposed_backward)
_call_sddmm = _differentiable("sddmm", _sddmm, _fake_sddmm, _save_product, _sddmm_backward)
_call_attention = _differentiable("attention", _attention, _fake_attention, _save_attention, _attention_gradients)
_attention_backward_operator = torch.library.custom_op("tessera::attention_backward", _attention_backward,
                                                       mutates_args=())
_attention_backward_operator.register_fake(_fake_attention_backward)
_call_row_softmax = _differentiable("row_softmax", _row_softmax, _fake_row_softmax, _save_row_softmax,
                                    _row_softmax_gradient)
_call_row_softmax_backward = _differentiable("row_softmax_backward", _row_softmax_backward,
                                             _fake_row_softmax_backward, _save_row_softmax_backward,
                                             _row_softmax_second)


def spmm(indptr: Tensor, indices: Tensor, values: Tensor, b: Tensor, *, compute: str = "auto",
         constant: bool = False) -> Tensor:
    """A @ b for the sparse A = (indptr, indices, values) of as many columns as b has rows.

    b has rank 2, or 1 (a vector). Differentiable by values and b. Sums are in the precision of the type, of 16-bit
    types in float32. constant: the values stay what they are, so that products need not pass them on.
    """
    if b.dim() == 1:
        return spmm(indptr, indices, values, b.unsqueeze(1), compute=compute, constant=constant).squeeze(1)
    return _call_spmm(indptr, indices, values, b, compute, constant)


def spmm_transposed(indptr: Tensor, indices: Tensor, values: Tensor, b: Tensor, cols: int, *, compute: str = "auto",
                    constant: bool = False) -> Tensor:
    """A.T @ b for the sparse A = (indptr, indices, values) with `cols` columns. See spmm."""
    if b.dim() == 1:
        b = b.unsqueeze(1)
        return spmm_transposed(indptr, indices, values, b, cols, compute=compute, constant=constant).squeeze(1)
    return _call_spmm_transposed(indptr, indices, values, b, cols, compute, constant)


def sddmm(indptr: Tensor, indices: Tensor, x: Tensor, y: Tensor, *, compute: str = "auto") -> Tensor:
    """<x[i], y[j]> for every entry (i, j) of the graph, in its order: values for spmm.

    x has a row per row of the graph, y a row per column. Differentiable by both.
    """
    return _call_sddmm(indptr, indices, x, y, compute)


def attention(indptr: Tensor, indices: Tensor, q: Tensor, k: Tensor, v: Tensor, *, bias: Optional[Tensor] = None,
              factor: Optional[Tensor] = None, scale: Optional[float] = None) -> Tensor:
    """softmax(scale <q[i], k[j]> over the entries (i, j) of row i) @ v, as AttentionPlan computes it.

    q is (rows, d), k (cols, d), v (cols, e), the result (rows, e); or all with one dimension more in front for heads.
    scale None is 1 / sqrt(d). Scores may have a number per entry, which heads share, added (bias; -inf hides an entry)
    or multiplied (factor). Differentiable once, by q, k, v and that number; scores are computed again in the backward
    pass, whose memory is that of its results (and of a number per entry and head for bias or factor). All tensors have
    one type. A row without entries gives zeros. Deterministic.
    """
    if bias is not None and factor is not None:
        raise InvalidArgument("Tessera: attention takes a bias or a factor per entry, not both")
    values, kind = (bias, "bias") if bias is not None else (factor, "scale") if factor is not None else (None, "none")
    if scale is None:
        scale = max(1, q.shape[-1]) ** -0.5
    return _call_attention(indptr, indices, values, q, k, v, float(scale), kind)[0]


def row_softmax(indptr: Tensor, x: Tensor) -> Tensor:
    """Softmax of numbers x of a graph's entries over those of each row; x is (nnz,), or (heads, nnz). Differentiable.

    Between sddmm and spmm, which it makes attention of any scores.
    """
    return _call_row_softmax(indptr, x)


__all__ = ["attention", "cache_info", "clear_cache", "row_softmax", "sddmm", "set_cache_size", "spmm",
           "spmm_transposed"]
