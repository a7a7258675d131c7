# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""The operators of tessera.torch with their derivatives: as torch.library has them, for compilers, and, where none is at
work, as autograd.Functions, since an operator of Python costs several times as much."""

from typing import Optional

import torch
from torch import Tensor

from . import _core
from ._graphs import attention_of, cache, product_of, untracked
from ._plans import SddmmPlan, _check_rows


def _multiply(indptr, indices, values, x, cols, transposed, compute, constant):
    with cache.lock:
        product = product_of(indptr, indices, values, x.shape[1], cols, compute)
        return product.apply(values, untracked(x), transposed, constant)


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

    with cache.lock:
        plan, *_ = cache.get("sddmm", compute, indptr, indices, y.shape[0], x.dtype, make)
        return plan.apply(untracked(x), untracked(y))


def _attention(indptr: Tensor, indices: Tensor, values: Optional[Tensor], q: Tensor, k: Tensor, v: Tensor,
               scale: float, kind: str, compute: str) -> tuple[Tensor, Tensor]:
    with cache.lock:
        plan = attention_of(indptr, indices, q, k, kind, compute).get(values, q, False)
        return plan.apply(untracked(q), untracked(k), untracked(v), scale=scale, lse=True)


def _attention_backward(indptr: Tensor, indices: Tensor, values: Optional[Tensor], q: Tensor, k: Tensor, v: Tensor,
                        out: Tensor, lse: Tensor, grad: Tensor, scale: float, kind: str,
                        compute: str, grad_values: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    with cache.lock:
        plan = attention_of(indptr, indices, q, k, kind, compute).get(values, q, True)
        results = plan.backward(*map(untracked, (grad, q, k, v, out, lse)), scale=scale, grad_values=grad_values)
    return _with_values(results, q, grad_values)


def _with_values(results, q, grad_values):
    """Four tensors, whether there is one of the values or not."""
    if not grad_values:
        return *results, q.new_empty(0)
    # Heads share the values.
    return *results[:3], results[3].sum(0) if q.dim() == 3 else results[3]


def _row_softmax(indptr: Tensor, x: Tensor) -> Tensor:
    def make():
        _check_rows(indptr, x)
        return (indptr,)

    with cache.lock:
        cache.get("rows", None, indptr, indptr, x.shape[-1], None, make)
        return _core.row_softmax(indptr, untracked(x))


def _row_softmax_backward(indptr: Tensor, y: Tensor, grad: Tensor) -> Tensor:
    with cache.lock:
        return _core.row_softmax_backward(indptr, untracked(y), untracked(grad))


_OWN = (Tensor, torch.nn.Parameter)


def _plain(*tensors):
    """Whether no compiler is at work, and no tensor is a fake of one or another library's: else operators are called."""
    for t in tensors:
        if type(t) not in _OWN and t is not None:
            return False
    return not torch.compiler.is_compiling()


def require_tensors(**tensors):
    """Of whoever is not plain: fakes are tensors, arrays of other libraries are not."""
    for name, t in tensors.items():
        if t is not None and not isinstance(t, Tensor):
            raise TypeError(f"Tessera: {name} must be a tensor of PyTorch, not {type(t).__name__}")


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
        with cache.lock:
            return product.apply(values, b, transposed, constant)

    @staticmethod
    def backward(ctx, grad):
        values, b = ctx.saved_tensors
        to_values, to_b, *_ = ctx.needs_input_grad
        product, d_values, d_b = ctx.product, None, None
        product.require_unchanged()
        indptr, indices = product.indptr, product.indices
        if to_b and not torch.is_grad_enabled() and type(grad) is Tensor:
            with cache.lock:
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
    with cache.lock:
        product = product_of(indptr, indices, values, b.shape[1], cols, compute)
        if not (torch.is_grad_enabled() and (values.requires_grad or b.requires_grad)):
            return product.apply(values, b, transposed, constant)
    return _apply_product(values, b, product, transposed, constant)


def _call_spmm(indptr, indices, values, b, compute, constant):
    if not _plain(indptr, indices, values, b):
        require_tensors(indptr=indptr, indices=indices, values=values, b=b)
        return _spmm_operator(indptr, indices, values, b, compute, constant)
    return _multiply_tracked(indptr, indices, values, b, b.shape[0], False, compute, constant)


def _call_spmm_transposed(indptr, indices, values, b, cols, compute, constant):
    if not _plain(indptr, indices, values, b):
        require_tensors(indptr=indptr, indices=indices, values=values, b=b)
        return _spmm_transposed_operator(indptr, indices, values, b, cols, compute, constant)
    return _multiply_tracked(indptr, indices, values, b, cols, True, compute, constant)


class _AttentionFunction(torch.autograd.Function):
    """The result alone: the log-sum-exp stays between the passes."""

    @staticmethod
    def forward(ctx, values, q, k, v, indptr, indices, scale, kind, compute):
        # A plan of both passes at once: the backward pass will come, and none is made while a CUDA graph is captured.
        with cache.lock:
            ctx.attention = attention_of(indptr, indices, q, k, kind, compute)
            out, lse = ctx.attention.get(values, q, True).apply(q, k, v, scale=scale, lse=True)
        ctx.save_for_backward(indptr, indices, values, q, k, v, out, lse)
        ctx.scale, ctx.kind, ctx.compute = scale, kind, compute
        return out

    @staticmethod
    def backward(ctx, grad):
        return *_attention_gradients_of(ctx, grad, ctx.needs_input_grad[0]), None, None, None, None, None


_apply_attention = _applied(_AttentionFunction)


def _call_attention(indptr, indices, values, q, k, v, scale, kind, compute):
    if not _plain(indptr, indices, values, q, k, v):
        require_tensors(indptr=indptr, indices=indices, values=values, q=q, k=k, v=v)
        return _attention_operator(indptr, indices, values, q, k, v, scale, kind, compute)[0]
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad
                                    or (values is not None and values.requires_grad)):
        return _apply_attention(values, q, k, v, indptr, indices, scale, kind, compute)
    return _attention(indptr, indices, values, q, k, v, scale, kind, compute)[0]


def _fake_spmm(indptr, indices, values, b, compute, constant):
    return b.new_empty((indptr.shape[0] - 1, b.shape[1]))


def _fake_spmm_transposed(indptr, indices, values, b, cols, compute, constant):
    return b.new_empty((cols, b.shape[1]))


def _fake_sddmm(indptr, indices, x, y, compute):
    return x.new_empty((indices.shape[0],))


def _fake_attention(indptr, indices, values, q, k, v, scale, kind, compute):
    sums = q.dtype if q.dtype == torch.float64 else torch.float32
    rows = (*q.shape[:-2], indptr.shape[0] - 1)
    return q.new_empty((*rows, v.shape[-1])), q.new_empty(rows, dtype=sums)


def _fake_attention_backward(indptr, indices, values, q, k, v, out, lse, grad, scale, kind, compute,
                             grad_values):
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
    *tensors, ctx.scale, ctx.kind, ctx.compute = inputs
    ctx.save_for_backward(*tensors, *output)
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _attention_gradients_of(ctx, grad, to_values):
    """By the numbers, q, k and v."""
    # The operator has no derivative and says so where one is asked for; it costs more than its kernel.
    if torch.is_grad_enabled() or not _plain(grad):
        d_q, d_k, d_v, d_values = _attention_backward_operator(*ctx.saved_tensors, grad, ctx.scale, ctx.kind, ctx.compute,
                                                               to_values)
        return d_values if to_values else None, d_q, d_k, d_v
    indptr, indices, values, *tensors = ctx.saved_tensors  # which refuses those that were changed in place
    with cache.lock:
        attention = getattr(ctx, "attention", None) or attention_of(indptr, indices, *tensors[:2], ctx.kind, ctx.compute)
        results = attention.get(values, tensors[0], True).backward(grad, *tensors, scale=ctx.scale, grad_values=to_values)
    return _with_values(results, tensors[0], True)[3] if to_values else None, *results[:3]


def _attention_gradients(ctx, grad, _):
    if grad is None:
        return (None,) * 9
    return None, None, *_attention_gradients_of(ctx, grad, ctx.needs_input_grad[2]), None, None, None


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
