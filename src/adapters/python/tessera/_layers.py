# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Whole layers of graph networks as one step of autograd each, forward and backward: on small graphs what a step of
training waits for is the host, and a step of autograd costs it more than a product does."""

import torch
from torch.nn.functional import linear

from ._errors import DimensionMismatch
from ._graphs import attention_of, cache, product_of
from ._operators import (_applied, _attention_backward_operator, _call_attention, _call_spmm, _call_spmm_transposed,
                         _plain, require_tensors)

_masked = torch.ops.aten.threshold_backward.default
SHORTEST = 1e-12  # of features that are divided by their length, as torch.nn.functional.normalize


def _as(t, kind):
    """t.to(kind), which takes as long as a product's launch where there is nothing to do."""
    return t if t.dtype is kind else t.to(kind)


_dense_relu = getattr(torch, "_addmm_activation", None)


def _dense(x, w, bias, relu):
    """relu(x W^T + bias), in one launch where PyTorch has one for it."""
    if relu and bias is not None and _dense_relu is not None:
        return _dense_relu(_as(bias, x.dtype), x, w.t())
    out = linear(x, w, None if bias is None else _as(bias, x.dtype))
    return out.relu_() if relu else out


def _sparse_first(weight):
    """Whether (A x) W^T is computed, and not A (x W^T): bias and relu are the dense product's then."""
    return weight.shape[0] >= weight.shape[1]


def _convolve(product, values, x, w, bias, relu, constant):
    """(result, A x if that came first) of plain tensors, while nothing is recorded; w has the type of values."""
    kind = values.dtype
    x = _as(x, kind)
    with cache.lock:
        # Within autocast, dense products have another type.
        if _sparse_first(w):
            x = product.apply(values, x, False, constant)
            return _as(_dense(x, w, bias, relu), kind), x
        out = product.apply(values, _as(linear(x, w), kind), False, constant)
    if bias is not None:
        out.add_(bias)
    return out.relu_() if relu else out, None


class _Convolution(torch.autograd.Function):
    """relu(A x W^T + bias)."""

    @staticmethod
    def forward(ctx, values, x, weight, bias, product, relu, constant):
        _, to_x, to_weight, to_bias, *_ = ctx.needs_input_grad
        w = _as(weight, values.dtype)
        out, inner = _convolve(product, values, x, w, bias, relu, constant)
        # x and weight as they are: derivatives of gradients look for them, and not for what they were converted to.
        ctx.save_for_backward(values, x if to_x or inner is None else None, weight if to_x else None,
                              w if to_x and w is not weight else None, inner if to_weight else None,
                              out if relu else None)
        ctx.product, ctx.constant, ctx.bias_type = product, constant, bias.dtype if to_bias else None
        ctx.first = inner is not None
        return out

    @staticmethod
    def backward(ctx, grad):
        values, x, weight, w, inner, out = ctx.saved_tensors
        _, to_x, to_weight, to_bias, *_ = ctx.needs_input_grad
        product, tracked = ctx.product, torch.is_grad_enabled() or not _plain(grad)
        product.require_unchanged()
        d_x = d_weight = None

        def multiply(b, transposed):
            if not tracked:
                with cache.lock:
                    return product.apply(values, b, transposed, ctx.constant)
            graph = product.indptr, product.indices, values, b
            if transposed:
                return _call_spmm_transposed(*graph, product.cols, product.compute, ctx.constant)
            return _call_spmm(*graph, product.compute, ctx.constant)

        if out is not None:
            grad = _masked(grad, out, 0)
        d_bias = grad.sum(0, dtype=ctx.bias_type) if to_bias else None
        if not ctx.first:
            grad = multiply(grad, True) if to_x or to_weight else None
            inner = x
        elif tracked and to_x and to_weight:
            inner = multiply(_as(x, values.dtype), False)
        if to_weight:
            d_weight = torch.mm(grad.t(), _as(inner, values.dtype))
        if to_x:
            d_x = torch.mm(grad, _as(weight, values.dtype) if tracked or w is None else w)
            d_x = multiply(d_x, True) if ctx.first else d_x
        return None, d_x, d_weight, d_bias, None, None, None


_apply_convolution = _applied(_Convolution)


def graph_convolution(indptr, indices, values, x, weight, bias, relu, compute, constant):
    plain = _plain(indptr, indices, values, x, weight, bias)
    if not plain:
        require_tensors(indptr=indptr, indices=indices, values=values, x=x, weight=weight, bias=bias)
    sizes, widths = x.shape, weight.shape
    if len(sizes) != 2 or len(widths) != 2 or sizes[1] != widths[1] or (bias is not None and bias.shape != widths[:1]):
        raise DimensionMismatch(f"Tessera: graph_convolution: x is {tuple(sizes)}, weight {tuple(widths)}, bias "
                                f"{None if bias is None else tuple(bias.shape)}; they must be (rows, in), (out, in) and "
                                "(out,)")
    if plain and not values.requires_grad:
        with cache.lock:
            product = product_of(indptr, indices, values, min(widths), sizes[0], compute)
        if torch.is_grad_enabled():
            return _apply_convolution(values, x, weight, bias, product, relu, constant)
        return _convolve(product, values, x, _as(weight, values.dtype), bias, relu, constant)[0]
    kind = values.dtype
    x, w, first = x.to(kind), weight.to(kind), _sparse_first(weight)
    x = x if first else linear(x, w).to(kind)
    out = _call_spmm(indptr, indices, values, x, compute, constant)
    out = linear(out, w).to(kind) if first else out
    out = out if bias is None else (out + bias).to(kind)
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
    plain = _plain(indptr, indices, h, beta)
    if not plain:
        require_tensors(indptr=indptr, indices=indices, h=h, beta=beta)
    if h.dim() != 2 or beta.numel() != 1:
        raise DimensionMismatch(f"Tessera: cosine_attention: h is {tuple(h.shape)}, beta {tuple(beta.shape)}; they must be "
                                "(rows, d) and of one number")
    if plain and torch.is_grad_enabled() and (h.requires_grad or beta.requires_grad):
        return _apply_cosine(h, beta, indptr, indices, compute)
    _, n, q = _directions(h, beta)
    return _call_attention(indptr, indices, None, q, n, h, 1.0, "none", compute)
