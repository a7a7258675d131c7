# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Whole layers of graph networks as one step of autograd each, forward and backward: on small graphs what a step of
training waits for is the host, and a step of autograd costs it more than a product does."""

import torch
from torch.nn.functional import linear

from ._graphs import attention_of, cache, product_of
from ._operators import (_applied, _attention_backward_operator, _call_attention, _call_spmm, _call_spmm_transposed,
                         _plain)

_masked = torch.ops.aten.threshold_backward.default
SHORTEST = 1e-12  # of features that are divided by their length, as torch.nn.functional.normalize


def _as(t, kind):
    """t.to(kind), which takes as long as a product's launch where there is nothing to do."""
    return t if t.dtype is kind else t.to(kind)


def _convolve(product, values, x, weight, bias, relu, constant, first):
    """(result, what W^T was multiplied with) of plain tensors, while nothing is recorded. first: A x comes first."""
    kind = values.dtype
    x, w = _as(x, kind), _as(weight, kind)
    with cache.lock:
        if first:
            x = product.apply(values, x, False, constant)
            out = _as(linear(x, w), kind)  # within autocast, linear has another type
        else:
            out = product.apply(values, _as(linear(x, w), kind), False, constant)
    if bias is not None:
        out.add_(bias)
    return out.relu_() if relu else out, x


class _Convolution(torch.autograd.Function):
    """relu(A (x W^T) + bias). Where x wants no gradient and W does not narrow it, A x comes first: then no gradient has
    to pass through A."""

    @staticmethod
    def forward(ctx, values, x, weight, bias, product, relu, constant):
        wanted = ctx.needs_input_grad[1]
        ctx.first = not wanted and weight.shape[0] >= weight.shape[1]
        out, factor = _convolve(product, values, x, weight, bias, relu, constant, ctx.first)
        # Where gradients have derivatives by x and weight, they find these themselves, not what they were converted to.
        ctx.save_for_backward(values, x if wanted else factor, weight if wanted else None, out if relu else None)
        ctx.product, ctx.constant, ctx.bias_type = product, constant, None if bias is None else bias.dtype
        return out

    @staticmethod
    def backward(ctx, grad):
        values, x, weight, out = ctx.saved_tensors
        _, to_x, to_weight, to_bias, *_ = ctx.needs_input_grad
        product = ctx.product
        if out is not None:
            grad = _masked(grad, out, 0)
        d_bias = grad.sum(0, dtype=ctx.bias_type) if to_bias else None
        if ctx.first:
            return None, None, torch.mm(grad.t(), x) if to_weight else None, d_bias, None, None, None
        product.require_unchanged()
        if torch.is_grad_enabled() or not _plain(grad):
            inner = _call_spmm_transposed(product.indptr, product.indices, values, grad, product.cols, product.compute,
                                          ctx.constant)
        else:
            with cache.lock:
                inner = product.apply(values, grad, True, ctx.constant)
        d_weight = torch.mm(inner.t(), _as(x, inner.dtype)) if to_weight else None
        d_x = torch.mm(inner, _as(weight, inner.dtype)) if to_x else None
        return None, d_x, d_weight, d_bias, None, None, None


_apply_convolution = _applied(_Convolution)


def graph_convolution(indptr, indices, values, x, weight, bias, relu, compute, constant):
    inputs = [t for t in (values, x, weight, bias) if t is not None]
    if _plain(indptr, indices, *inputs) and not values.requires_grad:
        with cache.lock:
            product = product_of(indptr, indices, values, min(weight.shape), x.shape[0], compute)
        if torch.is_grad_enabled():
            return _apply_convolution(values, x, weight, bias, product, relu, constant)
        # As in training, but for a first layer of equal widths.
        return _convolve(product, values, x, weight, bias, relu, constant, weight.shape[0] > weight.shape[1])[0]
    kind = values.dtype
    out = _call_spmm(indptr, indices, values, linear(x.to(kind), weight.to(kind)).to(kind), compute, constant)
    out = out if bias is None else (out + bias).to(out.dtype)
    return torch.relu(out) if relu else out


def _directions(h, beta):
    """(lengths, h over them, beta times that)"""
    lengths = torch.linalg.vector_norm(h, dim=1, keepdim=True, dtype=torch.float32 if h.element_size() == 2 else None)
    lengths = lengths.clamp_min(SHORTEST)
    n = _as(h / lengths, h.dtype)
    return lengths, n, n * _as(beta, n.dtype)


class _CosineAttention(torch.autograd.Function):
    """softmax(beta cos(h_i, h_j)) h."""

    @staticmethod
    def forward(ctx, h, beta, indptr, indices, compute):
        lengths, n, q = _directions(h, beta)
        with cache.lock:
            ctx.attention = attention_of(indptr, indices, q, n, "none", compute)
            out, lse = ctx.attention.get(None, q, True).apply(q, n, h, scale=1.0, lse=True)
        ctx.save_for_backward(indptr, indices, h, beta, lengths, n, q, out, lse)
        ctx.compute = compute
        return out

    @staticmethod
    def backward(ctx, grad):
        indptr, indices, h, beta, lengths, n, q, out, lse = ctx.saved_tensors
        if torch.is_grad_enabled() or not _plain(grad):
            d_q, d_k, d_v, _ = _attention_backward_operator(indptr, indices, None, q, n, h, out, lse, grad, 1.0, "none",
                                                            ctx.compute, False)
        else:
            with cache.lock:
                d_q, d_k, d_v = ctx.attention.get(None, q, True).backward(grad, q, n, h, out, lse, scale=1.0)
        to_h, to_beta, *_ = ctx.needs_input_grad
        d_h = d_beta = None
        if to_beta:
            d_beta = (d_q * n).sum(dtype=beta.dtype).reshape(beta.shape)
        if to_h:
            d_n = torch.addcmul(d_k, d_q, _as(beta, n.dtype))
            # What of it points along n changes the length alone.
            along = (d_n * n).sum(1, keepdim=True)
            d_h = torch.addcdiv(d_v, torch.addcmul(d_n, n, along, value=-1), _as(lengths, n.dtype))
        return d_h, d_beta, None, None, None


_apply_cosine = _applied(_CosineAttention)


def cosine_attention(indptr, indices, h, beta, compute):
    if _plain(indptr, indices, h, beta) and torch.is_grad_enabled() and (h.requires_grad or beta.requires_grad):
        return _apply_cosine(h, beta, indptr, indices, compute)
    _, n, q = _directions(h, beta)
    return _call_attention(indptr, indices, None, q, n, h, 1.0, "none", compute)
