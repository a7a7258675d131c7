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

import threading
from typing import Optional

import torch
from torch import Tensor

from . import _core
from ._errors import InvalidArgument
from ._plans import AttentionPlan, SddmmPlan, SpmmPlan, _check_rows


class _Kept:
    """What was made for a graph, the tensors that it was last asked for with, as they were then, and when that was."""

    __slots__ = ("made", "tensors", "near", "state", "used")


def _state(indptr, indices):
    """Where index tensors lie, and how often they were changed in place."""
    return (indptr.data_ptr(), indptr.numel(), indptr._version, indices.data_ptr(), indices.numel(), indices._version)


class _Cache:
    """The plans of the graphs used last. Holding their index tensors, it sees no other graph at the same address.

    recent finds a graph by the tensor objects, which costs a third of what finding it by where they lie does.
    """

    def __init__(self, size):
        self.size = size
        self.lock = threading.RLock()
        self.entries, self.recent = {}, {}
        self.clock = 0

    def get(self, kind, indptr, indices, cols, dtype, make):
        self.clock += 1
        near = kind, id(indptr), id(indices), cols, dtype
        kept = self.recent.get(near)
        state = _state(indptr, indices)
        if kept is None or kept.state != state:
            kept = self._find((kind, cols, dtype, indices.device, indptr.dtype, *state), make)
            self.recent.pop(kept.near, None)
            kept.tensors, kept.near, kept.state = (indptr, indices), near, state
            self.recent[near] = kept
        kept.used = self.clock
        return kept.made

    def _find(self, key, make):
        kept = self.entries.get(key)
        if kept is None:
            kept = _Kept()
            kept.made, kept.near, kept.used = make(), None, self.clock
            self.entries[key] = kept
            self.shrink()
        return kept

    def shrink(self):
        while len(self.entries) > self.size:
            oldest = min(self.entries, key=lambda key: self.entries[key].used)
            self.recent.pop(self.entries.pop(oldest).near, None)

    def clear(self):
        self.entries.clear()
        self.recent.clear()


_cache = _Cache(64)


def clear_cache() -> None:
    """Lets go of all plans and of the tensors that they keep."""
    with _cache.lock:
        _cache.clear()


def cache_info() -> dict[str, int]:
    """How many plans are kept, and how many at most (set_cache_size)."""
    return {"plans": len(_cache.entries), "size": _cache.size}


def set_cache_size(size: int) -> None:
    """Keep the plans of so many products; a training step with one graph uses two."""
    with _cache.lock:
        _cache.size = max(1, int(size))
        _cache.shrink()


def _untracked(t):
    """What plans take; most tensors are that already."""
    return t.detach() if t.requires_grad else t


class _Product:
    """A graph's SpmmPlan, and one of its transpose from the first product with that.

    They are two, since values that change are then filled in where they are multiplied with, and not into both.
    """

    def __init__(self, indptr, indices, cols, columns, compute):
        self.indptr, self.indices, self.cols, self.columns, self.compute = indptr, indices, cols, columns, compute
        self.plans = [None, None]
        self.known = [None, None]
        self.order = None
        self.state = _state(indptr, indices)

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
        return plan.apply(_untracked(x))

    def require_unchanged(self):
        """A backward pass multiplies with the graph of its forward pass."""
        if _state(self.indptr, self.indices) != self.state:
            raise RuntimeError("Tessera: index tensors of a graph were changed in place between a forward pass and its "
                               "backward pass")

    def _numbers(self, values, transposed):
        values = _untracked(values)
        return values[self.order] if transposed else values.contiguous()


class _Attention:
    """A graph's AttentionPlan. The first call that wants gradients makes it for both passes, which it stays."""

    def __init__(self, indptr, indices, cols, columns, kind):
        self.indptr, self.indices, self.cols, self.columns, self.kind = indptr, indices, cols, columns, kind
        self.plan = None
        self.backwards = False

    def get(self, values, q, backwards):
        if self.plan is None or (backwards and not self.backwards):
            self.backwards = self.backwards or backwards
            # Numbers that are not read, but their type is the plan's.
            numbers = q.new_empty(self.indices.numel()) if values is None else _untracked(values).contiguous()
            self.plan = AttentionPlan(self.indptr, self.indices, numbers, (self.indptr.numel() - 1, self.cols),
                                      values=self.kind, prepare_backward=self.backwards,
                                      dimension_hint=self.columns)
        elif values is not None:
            self.plan.update_values(_untracked(values).contiguous())
        return self.plan


def _product(indptr, indices, values, x, cols, compute):
    return _cache.get(("spmm", compute), indptr, indices, cols, values.dtype,
                      lambda: _Product(indptr, indices, cols, max(1, x.shape[1]), compute))


def _multiply(indptr, indices, values, x, cols, transposed, compute, constant):
    with _cache.lock:
        return _product(indptr, indices, values, x, cols, compute).apply(values, x, transposed, constant)


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
        return plan.apply(_untracked(x), _untracked(y))


def _attention_plan(indptr, indices, values, q, k, kind, backwards):
    attention = _cache.get(("attention", kind), indptr, indices, k.shape[-2], q.dtype,
                           lambda: _Attention(indptr, indices, k.shape[-2], max(1, q.shape[-1]), kind))
    return attention.get(values, q, backwards)


def _attention(indptr: Tensor, indices: Tensor, values: Optional[Tensor], q: Tensor, k: Tensor, v: Tensor,
               scale: float, kind: str) -> tuple[Tensor, Tensor]:
    with _cache.lock:
        plan = _attention_plan(indptr, indices, values, q, k, kind, False)
        return plan.apply(_untracked(q), _untracked(k), _untracked(v), scale=scale, lse=True)


def _attention_backward(indptr: Tensor, indices: Tensor, values: Optional[Tensor], q: Tensor, k: Tensor, v: Tensor,
                        out: Tensor, lse: Tensor, grad: Tensor, scale: float, kind: str,
                        grad_values: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    with _cache.lock:
        plan = _attention_plan(indptr, indices, values, q, k, kind, True)
        results = plan.backward(*map(_untracked, (grad, q, k, v, out, lse)), scale=scale,
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
        return _core.row_softmax(indptr, _untracked(x))


def _row_softmax_backward(indptr: Tensor, y: Tensor, grad: Tensor) -> Tensor:
    with _cache.lock:
        return _core.row_softmax_backward(indptr, _untracked(y), _untracked(grad))


_OWN = (Tensor, torch.nn.Parameter)


def _plain(*tensors):
    """Whether no compiler is at work, and no tensor is a fake of one or another library's: else operators are called."""
    for t in tensors:
        if type(t) not in _OWN and t is not None:
            return False
    return not torch.compiler.is_compiling()


def _applied(function):
    """function.apply without its look for tensors that vmap and its like have wrapped, where none of these is at work."""
    at_work = getattr(torch._C, "_are_functorch_transforms_active", None)
    if at_work is None:
        return function.apply
    apply = super(torch.autograd.Function, function).apply

    def call(*inputs):
        return function.apply(*inputs) if at_work() else apply(*inputs)

    return call


def _operator(name, kernel, fake, save, backward):
    """tessera::name with its derivative."""
    operator = torch.library.custom_op("tessera::" + name, kernel, mutates_args=())
    operator.register_fake(fake)
    operator.register_autograd(backward, setup_context=save)
    return operator


def _differentiable(name, kernel, fake, save, backward):
    """The operator tessera::name with its derivative, and a function of it.

    Outside of a compiler that is an autograd.Function, since an operator of Python costs several times as much.
    """
    operator = _operator(name, kernel, fake, save, backward)

    def forward(ctx, *inputs):
        # With a setup_context of its own, PyTorch would look at the signature in every call.
        output = kernel(*inputs)
        save(ctx, inputs, output)
        return output

    function = type(name, (torch.autograd.Function,),
                    {"forward": staticmethod(forward), "backward": staticmethod(backward)})
    apply = _applied(function)

    def call(*inputs):
        if not _plain(*(t for t in inputs if isinstance(t, Tensor))):
            return operator(*inputs)
        return apply(*inputs) if torch.is_grad_enabled() else kernel(*inputs)

    return call


class _ProductFunction(torch.autograd.Function):
    """A b or A^T b with a graph's plans at hand, so that no pass looks for them. Keeps of b and values what the
    gradients that are asked for need."""

    @staticmethod
    def forward(ctx, values, b, product, transposed, constant):
        ctx.product, ctx.transposed, ctx.constant = product, transposed, constant
        to_values, to_b, *_ = ctx.needs_input_grad
        ctx.save_for_backward(values if to_b else None, b if to_values else None)
        with _cache.lock:
            return product.apply(values, b, transposed, constant)

    @staticmethod
    def backward(ctx, grad):
        values, b = ctx.saved_tensors
        to_values, to_b, *_ = ctx.needs_input_grad
        product, d_values, d_b = ctx.product, None, None
        product.require_unchanged()
        indptr, indices = product.indptr, product.indices
        if to_b and not torch.is_grad_enabled() and type(grad) is Tensor:
            with _cache.lock:
                d_b = product.apply(values, grad, not ctx.transposed, ctx.constant)
        elif to_b and ctx.transposed:
            d_b = _call_spmm(indptr, indices, values, grad, product.compute, ctx.constant)
        elif to_b:
            d_b = _call_spmm_transposed(indptr, indices, values, grad, product.cols, product.compute, ctx.constant)
        if to_values:
            x, y = (b, grad) if ctx.transposed else (grad, b)
            d_values = _call_sddmm(indptr, indices, x, y, product.compute)
        return d_values, d_b, None, None, None


_apply_product = _applied(_ProductFunction)


def _multiply_tracked(indptr, indices, values, b, cols, transposed, compute, constant):
    """Of plain tensors."""
    with _cache.lock:
        product = _product(indptr, indices, values, b, cols, compute)
        if not (torch.is_grad_enabled() and (values.requires_grad or b.requires_grad)):
            return product.apply(values, b, transposed, constant)
    return _apply_product(values, b, product, transposed, constant)


def _call_spmm(indptr, indices, values, b, compute, constant):
    if not _plain(indptr, indices, values, b):
        return _spmm_operator(indptr, indices, values, b, compute, constant)
    return _multiply_tracked(indptr, indices, values, b, b.shape[0], False, compute, constant)


def _call_spmm_transposed(indptr, indices, values, b, cols, compute, constant):
    if not _plain(indptr, indices, values, b):
        return _spmm_transposed_operator(indptr, indices, values, b, cols, compute, constant)
    return _multiply_tracked(indptr, indices, values, b, cols, True, compute, constant)


class _AttentionFunction(torch.autograd.Function):
    """The result alone: the log-sum-exp stays between the passes."""

    @staticmethod
    def forward(ctx, values, q, k, v, indptr, indices, scale, kind):
        # A plan of both passes at once: the backward pass will come, and none is made while a CUDA graph is captured.
        with _cache.lock:
            plan = _attention_plan(indptr, indices, values, q, k, kind, True)
            out, lse = plan.apply(*map(_untracked, (q, k, v)), scale=scale, lse=True)
        ctx.save_for_backward(indptr, indices, values, q, k, v, out, lse)
        ctx.scale, ctx.kind = scale, kind
        return out

    @staticmethod
    def backward(ctx, grad):
        return *_attention_gradients_of(ctx, grad, ctx.needs_input_grad[0]), None, None, None, None


_apply_attention = _applied(_AttentionFunction)


def _call_attention(indptr, indices, values, q, k, v, scale, kind):
    if not _plain(indptr, indices, values, q, k, v):
        return _attention_operator(indptr, indices, values, q, k, v, scale, kind)[0]
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad
                                    or (values is not None and values.requires_grad)):
        return _apply_attention(values, q, k, v, indptr, indices, scale, kind)
    return _attention(indptr, indices, values, q, k, v, scale, kind)[0]


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


def _attention_gradients_of(ctx, grad, to_values):
    """By the numbers, q, k and v."""
    # The operator has no derivative and says so where one is asked for; it costs more than its kernel.
    tracked = torch.is_grad_enabled() or not _plain(grad)
    backward = _attention_backward_operator if tracked else _attention_backward
    d_q, d_k, d_v, d_values = backward(*ctx.saved_tensors, grad, ctx.scale, ctx.kind, to_values)
    return d_values if to_values else None, d_q, d_k, d_v


def _attention_gradients(ctx, grad, _):
    if grad is None:
        return (None,) * 8
    return None, None, *_attention_gradients_of(ctx, grad, ctx.needs_input_grad[2]), None, None


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


_spmm_operator = _operator("spmm", _spmm, _fake_spmm, _save_product, _spmm_backward)
_spmm_transposed_operator = _operator("spmm_transposed", _spmm_transposed, _fake_spmm_transposed, _save_product,
                                      _spmm_transposed_backward)
_call_sddmm = _differentiable("sddmm", _sddmm, _fake_sddmm, _save_product, _sddmm_backward)
_attention_operator = _operator("attention", _attention, _fake_attention, _save_attention, _attention_gradients)
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
    return _call_attention(indptr, indices, values, q, k, v, float(scale), kind)


def row_softmax(indptr: Tensor, x: Tensor) -> Tensor:
    """Softmax of numbers x of a graph's entries over those of each row; x is (nnz,), or (heads, nnz). Differentiable.

    Between sddmm and spmm, which it makes attention of any scores.
    """
    return _call_row_softmax(indptr, x)


__all__ = ["attention", "cache_info", "clear_cache", "row_softmax", "sddmm", "set_cache_size", "spmm",
           "spmm_transposed"]
