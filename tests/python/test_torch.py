# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""tessera.torch and plans with PyTorch's tensors, on the device that this build runs on."""

import gc
import threading

import pytest
from support import Csr, numbers

import tessera

torch = pytest.importorskip("torch", minversion="2.4")

import tessera.torch

DEVICE = {"host": "cpu", "cuda": "cuda"}.get(tessera.build()["device"])
if DEVICE is None or (DEVICE == "cuda" and not torch.cuda.is_available()):
    pytest.skip("PyTorch does not reach the device of this build", allow_module_level=True)

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
# Of a sum of n products in this type (16 bits: in float32) and of the store.
UNIT = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-24, torch.bfloat16: 2.0**-24}
STORE = {torch.float64: 0.0, torch.float32: 0.0, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


def graph(rows=37, cols=50, density=0.1, dtype=torch.float64, index=torch.int32, seed=1):
    A = Csr(rows, cols, density, "float64", seed=seed)
    indptr = torch.tensor(A.indptr, dtype=index, device=DEVICE)
    indices = torch.tensor(A.indices, dtype=index, device=DEVICE)
    return indptr, indices, torch.tensor(A.data, device=DEVICE).to(dtype)


def dense(*shape, dtype=torch.float64, seed=2):
    return torch.tensor(numbers(shape, "float64", seed), device=DEVICE).to(dtype)


def sparse(indptr, indices, values, cols):
    """PyTorch's own matrix of these numbers, in float64."""
    return torch.sparse_csr_tensor(indptr.long(), indices.long(), values.double(), (indptr.numel() - 1, cols))


def assert_close(result, exact, sizes, terms, dtype):
    """2 (terms + 3) u of the sum of sizes, 2 roundings of a 16-bit result: support.bound."""
    limit = 2 * (terms + 3) * UNIT[dtype] * sizes
    if result.dtype == dtype:
        limit = limit + 2 * STORE[dtype] * exact.abs() + (2.0**-24 if STORE[dtype] else 0)
    assert result.shape == exact.shape
    assert bool(((result.double() - exact).abs() <= limit).all())


def close(result, exact, size=1.0):
    """Whether these are the same sums of at most 50 products of at most `size` in float64: support.bound."""
    limit = 2 * (50 + 3) * 2.0**-53 * (50 * size)
    return result.shape == exact.shape and bool(((result - exact).abs() <= limit).all())


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", DTYPES)
def test_plans_take_tensors(dtype, index):
    indptr, indices, values = graph(dtype=dtype, index=index)
    A, size = sparse(indptr, indices, values, 50), sparse(indptr, indices, values.abs(), 50)
    plan = tessera.SpmmPlan(indptr, indices, values, (37, 50))
    for b in (dense(50, 16, dtype=dtype), dense(16, 50, dtype=dtype).t(), dense(50, 33, dtype=dtype)[:, ::2],
              dense(50, 1, dtype=dtype).expand(50, 4)):
        result = plan @ b
        assert (result.dtype, result.device.type) == (dtype, DEVICE)
        assert_close(result, A @ b.double(), size @ b.double().abs(), 50, dtype)
    vector = dense(50, dtype=dtype)
    result = tessera.SpmvPlan(torch.sparse_csr_tensor(indptr, indices, values, (37, 50))) @ vector
    assert_close(result, A @ vector.double(), size @ vector.double().abs(), 50, dtype)


def test_the_result_is_written_where_it_is_asked_for():
    indptr, indices, values = graph()
    plan = tessera.SpmmPlan(indptr, indices, values, (37, 50))
    b, c = dense(50, 8), dense(37, 8, seed=3)
    expected = 2 * (sparse(indptr, indices, values, 50) @ b) - c
    place = c.data_ptr()
    assert plan.apply(b, out=c, alpha=2.0, beta=-1.0) is c and c.data_ptr() == place
    assert torch.allclose(c, expected, rtol=1e-13, atol=1e-13)


def test_plans_refuse_gradients():
    indptr, indices, values = graph()
    plan = tessera.SpmmPlan(indptr, indices, values, (37, 50))
    with pytest.raises(tessera.InvalidArgument, match="tessera.torch"):
        plan.apply(dense(50, 8).requires_grad_())
    with torch.no_grad():  # where nobody asks for one
        assert not plan.apply(dense(50, 8).requires_grad_()).requires_grad


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_agree_with_torch_sparse(dtype):
    indptr, indices, values = graph(dtype=dtype)
    A, size = sparse(indptr, indices, values, 50), sparse(indptr, indices, values.abs(), 50)
    b, c = dense(50, 16, dtype=dtype), dense(37, 16, dtype=dtype, seed=3)
    assert_close(tessera.torch.spmm(indptr, indices, values, b), A @ b.double(), size @ b.double().abs(), 50, dtype)
    turned, turned_size = A.to_dense().t(), size.to_dense().t()
    assert_close(tessera.torch.spmm_transposed(indptr, indices, values, c, 50), turned @ c.double(),
                 turned_size @ c.double().abs(), 50, dtype)
    rows = torch.repeat_interleave(torch.arange(37, device=DEVICE), indptr.long().diff())
    pairs = c.double()[rows] * b.double()[indices.long()]
    assert_close(tessera.torch.sddmm(indptr, indices, c, b), pairs.sum(1), pairs.abs().sum(1), 16, dtype)


def test_derivatives():
    indptr, indices, values = graph(9, 7, 0.4)
    values.requires_grad_()
    b, c = dense(7, 3).requires_grad_(), dense(9, 3, seed=3).requires_grad_()

    def spmm(v, x):
        return tessera.torch.spmm(indptr, indices, v, x)

    def turned(v, x):
        return tessera.torch.spmm_transposed(indptr, indices, v, x, 7)

    def sddmm(x, y):
        return tessera.torch.sddmm(indptr, indices, x, y)

    for f, inputs in ((spmm, (values, b)), (turned, (values, c)), (sddmm, (c, b))):
        assert torch.autograd.gradcheck(f, inputs)
        assert torch.autograd.gradgradcheck(f, inputs)


def test_gradients_agree_with_torch_dense():
    indptr, indices, values = graph(dtype=torch.float32)
    values.requires_grad_()
    b = dense(50, 16, dtype=torch.float32).requires_grad_()
    (tessera.torch.spmm(indptr, indices, values, b) ** 2).sum().backward()
    rows = torch.repeat_interleave(torch.arange(37, device=DEVICE), indptr.long().diff())
    v, x = values.detach().double().requires_grad_(), b.detach().double().requires_grad_()
    A = torch.zeros(37, 50, dtype=torch.float64, device=DEVICE).index_put((rows, indices.long()), v)
    ((A @ x) ** 2).sum().backward()
    # Sums of at most 50 terms of about 1, twice, in float32.
    assert torch.allclose(values.grad.double(), v.grad, rtol=1e-5, atol=1e-4)
    assert torch.allclose(b.grad.double(), x.grad, rtol=1e-5, atol=1e-4)


def test_operators_are_what_the_dispatcher_wants():
    indptr, indices, values = graph(9, 7, 0.4)
    values.requires_grad_()
    b, c = dense(7, 3).requires_grad_(), dense(9, 3, seed=3).requires_grad_()
    ops = torch.ops.tessera
    heads = [dense(2, n, 4, seed=s).requires_grad_() for n, s in ((9, 4), (7, 5), (7, 6))]
    scores, weights = (dense(2, values.numel(), seed=s).requires_grad_() for s in (7, 8))
    for op, inputs in ((ops.spmm, (indptr, indices, values, b, "auto", False)),
                       (ops.sddmm, (indptr, indices, c, b, "auto")),
                       (ops.spmm_transposed, (indptr, indices, values, c, 7, "auto", True)),
                       (ops.attention, (indptr, indices, values, *heads, 0.5, "bias", "auto")),
                       (ops.attention, (indptr, indices, None, *heads, 0.5, "none", "auto")),
                       (ops.row_softmax, (indptr, scores)),
                       (ops.row_softmax_backward, (indptr, weights, scores))):
        torch.library.opcheck(op, inputs)


def attend(indptr, indices, q, k, v, scale, bias=None, factor=None):
    """One head by dense matrices, which autograd differentiates."""
    rows = torch.repeat_interleave(torch.arange(indptr.numel() - 1, device=DEVICE), indptr.long().diff())
    at = rows, indices.long()
    scores = scale * (q @ k.t())[at]
    scores = scores if bias is None else scores + bias
    scores = scores if factor is None else scores * factor
    dense_scores = torch.full((q.shape[0], k.shape[0]), -torch.inf, dtype=q.dtype, device=DEVICE)
    # A row without entries: softmax of nothing is NaN.
    weights = torch.softmax(dense_scores.index_put(at, scores), 1).nan_to_num(0.0)
    return weights @ v


@pytest.mark.parametrize("kind", ["none", "bias", "factor"])
@pytest.mark.parametrize("heads", [(), (3,)])
def test_derivatives_of_attention(heads, kind):
    indptr, indices, numbers_ = graph(9, 7, 0.4)
    q, k, v = (dense(*heads, n, d, seed=s).requires_grad_() for n, d, s in ((9, 5, 2), (7, 5, 3), (7, 4, 4)))
    inputs = (q, k, v) if kind == "none" else (q, k, v, numbers_.requires_grad_())

    def f(q, k, v, numbers_=None):
        named = {} if numbers_ is None else {kind: numbers_}
        return tessera.torch.attention(indptr, indices, q, k, v, **named)

    assert torch.autograd.gradcheck(f, inputs)
    # Derivatives that are not there are not taken for zeros.
    gradient, = torch.autograd.grad(f(*inputs).square().sum(), q, create_graph=True)
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.autograd.grad(gradient.square().sum(), q)


@pytest.mark.parametrize("kind", ["none", "bias", "factor"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_attention_agrees_with_torch_dense(dtype, kind):
    indptr, indices, numbers_ = graph(37, 50, 0.1, dtype=dtype)
    tensors = [dense(2, n, 16, dtype=dtype, seed=s) for n, s in ((37, 2), (50, 3), (50, 4))] + [numbers_]
    grad = dense(2, 37, 16, dtype=dtype, seed=5)
    ours = [t.clone().requires_grad_() for t in tensors]
    theirs = [t.double().requires_grad_() for t in tensors]
    named = (lambda t: {}) if kind == "none" else (lambda t: {kind: t[3]})
    out = tessera.torch.attention(indptr, indices, *ours[:3], scale=0.7, **named(ours))
    exact = torch.stack([attend(indptr, indices, *(t[h] for t in theirs[:3]), 0.7, **named(theirs)) for h in range(2)])
    out.backward(grad)
    exact.backward(grad.double())
    # Sums of at most 50 terms of about 1 one after the other, in float64 or float32 (tests/python/test_attention.py
    # derives bounds); of 16 bits, results of up to 8 and an output that are rounded.
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-4, torch.float16: 2.0**-7}[dtype]
    assert out.dtype == dtype and torch.allclose(out.double(), exact, rtol=0, atol=tolerance)
    for a, b in list(zip(ours, theirs))[:3 if kind == "none" else 4]:
        assert a.grad.dtype == dtype and torch.allclose(a.grad.double(), b.grad, rtol=0, atol=tolerance)


def test_attention_refuses():
    indptr, indices, values = graph()
    q, k, v = dense(37, 8), dense(50, 8), dense(50, 8)
    with pytest.raises(tessera.InvalidArgument, match="both"):
        tessera.torch.attention(indptr, indices, q, k, v, bias=values, factor=values)
    with pytest.raises(tessera.DimensionMismatch):
        tessera.torch.attention(indptr, indices, q[1:], k, v)
    with pytest.raises(tessera.NotSupported):
        tessera.torch.attention(indptr, indices, q, k, v.float())
    with pytest.raises(tessera.InvalidArgument, match="ascend"):
        tessera.torch.row_softmax(indptr, values[1:])


def test_attention_is_the_chain_of_its_parts():
    indptr, indices, _ = graph()
    q, k, v = (dense(n, 8, seed=s).requires_grad_() for n, s in ((37, 2), (50, 3), (50, 4)))
    grad = dense(37, 8, seed=5)
    scores = tessera.torch.sddmm(indptr, indices, q, k) / 8**0.5
    chain = tessera.torch.spmm(indptr, indices, tessera.torch.row_softmax(indptr, scores), v)
    by_parts = torch.autograd.grad(chain, (q, k, v), grad)
    out = tessera.torch.attention(indptr, indices, q, k, v)
    assert torch.allclose(out, chain, rtol=1e-13, atol=1e-13)
    for a, b in zip(torch.autograd.grad(out, (q, k, v), grad), by_parts):
        assert torch.allclose(a, b, rtol=1e-12, atol=1e-12)


def test_derivatives_of_row_softmax():
    indptr, indices, values = graph(9, 7, 0.4)
    for x in (values, dense(3, values.numel())):
        x.requires_grad_()
        assert torch.autograd.gradcheck(lambda x: tessera.torch.row_softmax(indptr, x), x)
        assert torch.autograd.gradgradcheck(lambda x: tessera.torch.row_softmax(indptr, x), x)


def test_backward_gives_the_same_bits():
    indptr, indices, values = graph(200, 300, 0.1, torch.float32)
    tensors = [dense(2, n, 32, dtype=torch.float32, seed=s) for n, s in ((200, 2), (300, 3), (300, 4))] + [values]
    grad = dense(2, 200, 32, dtype=torch.float32, seed=5)
    first = None
    for _ in range(20):
        q, k, v, bias = (t.clone().requires_grad_() for t in tensors)
        tessera.torch.attention(indptr, indices, q, k, v, bias=bias).backward(grad)
        product = tessera.torch.spmm(indptr, indices, bias, v[0])
        product.backward(grad[0])
        gradients = [t.grad for t in (q, k, v, bias)]
        first = first or gradients
        assert all(torch.equal(a, b) for a, b in zip(first, gradients))


def test_constant_values():
    indptr, indices, values = graph()
    b = dense(50, 4).requires_grad_()

    def product():
        return tessera.torch.spmm(indptr, indices, values, b, constant=True)

    for step in range(3):
        exact = sparse(indptr, indices, values, 50) @ b.detach()
        assert close(product(), exact, 6)
        gradient, = torch.autograd.grad(product(), b, torch.ones_like(exact))
        turned = torch.zeros(37, 50, dtype=torch.float64, device=DEVICE)
        rows = torch.repeat_interleave(torch.arange(37, device=DEVICE), indptr.long().diff())
        turned = turned.index_put((rows, indices.long()), values).t()
        assert close(gradient, turned.sum(1, keepdim=True).expand(50, 4), 6)
        # Others in another place, and then changed where they are: both are seen. At most 6 in the end.
        values = 2 * values if step == 0 else values.mul_(3)


def test_inference_mode():
    indptr, indices, values = graph()
    b = dense(50, 4)
    with torch.inference_mode():
        for factor in (1, 2):
            result = tessera.torch.spmm(indptr, indices, factor * values, b, constant=True)
            exact = factor * (sparse(indptr, indices, values, 50) @ b)
            assert close(result, exact, 2)


def test_constant_values_of_another_place_and_length():
    indptr, indices, values = graph()
    b = dense(50, 4)
    wide = torch.stack([values, 3 * values], 1)
    tessera.torch.spmm(indptr, indices, values, b, constant=True)
    # A column begins where the whole does.
    for numbers_ in (wide[:, 0], wide[:, 1], wide.flatten()[:values.numel()]):
        exact = sparse(indptr, indices, numbers_.contiguous(), 50) @ b
        result = tessera.torch.spmm(indptr, indices, numbers_, b, constant=True)
        assert close(result, exact, 3)
    with pytest.raises(tessera.DimensionMismatch):
        tessera.torch.spmm(indptr, indices, values[:-1], b, constant=True)


def test_tf32():
    indptr, indices, values = graph(dtype=torch.float32)
    b, c = dense(50, 16, dtype=torch.float32), dense(37, 16, dtype=torch.float32)
    A, size = sparse(indptr, indices, values, 50), sparse(indptr, indices, values.abs(), 50)
    # Both factors are rounded to 11 bits of mantissa: 2 * 2^-11 of the sum of sizes, and half of it to spare.
    limit = 3 * 2.0**-11 * (size @ b.double().abs())
    result = tessera.torch.spmm(indptr, indices, values, b, compute="tf32")
    assert bool(((result.double() - A @ b.double()).abs() <= limit).all())
    rows = torch.repeat_interleave(torch.arange(37, device=DEVICE), indptr.long().diff())
    pairs = c.double()[rows] * b.double()[indices.long()]
    scores = tessera.torch.sddmm(indptr, indices, c, b, compute="tf32")
    assert bool(((scores.double() - pairs.sum(1)).abs() <= 3 * 2.0**-11 * pairs.abs().sum(1)).all())


class Attention(torch.nn.Module):
    """A layer of AGNN in one call, and by its parts."""

    def __init__(self, indptr, indices, parts, dtype=torch.float64):
        super().__init__()
        self.register_buffer("indptr", indptr)
        self.register_buffer("indices", indices)
        self.linear = torch.nn.Linear(8, 8, dtype=dtype, device=DEVICE)
        self.parts = parts

    def forward(self, x):
        h = self.linear(x)
        n = torch.nn.functional.normalize(h, dim=1)
        if not self.parts:
            return tessera.torch.attention(self.indptr, self.indices, n, n, h, scale=1.0)
        scores = tessera.torch.sddmm(self.indptr, self.indices, n, n)
        weights = tessera.torch.row_softmax(self.indptr, scores)
        return tessera.torch.spmm(self.indptr, self.indices, weights, h)


class Convolution(torch.nn.Module):
    """Attention without a softmax: every product is there."""

    def __init__(self, indptr, indices):
        super().__init__()
        self.register_buffer("indptr", indptr)
        self.register_buffer("indices", indices)
        self.linear = torch.nn.Linear(8, 8, dtype=torch.float64, device=DEVICE)

    def forward(self, x):
        h = self.linear(x)
        weights = torch.tanh(tessera.torch.sddmm(self.indptr, self.indices, h, h))
        return torch.relu(tessera.torch.spmm(self.indptr, self.indices, weights, h))


@pytest.mark.parametrize("layer", [Convolution, lambda *graph: Attention(*graph, False),
                                   lambda *graph: Attention(*graph, True)])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compile_without_a_graph_break(backend, layer):
    torch.compiler.reset()
    indptr, indices, _ = graph(30, 30, 0.2)
    module = layer(indptr, indices)
    x = dense(30, 8)
    expected = module(x)
    expected.sum().backward()
    gradient = module.linear.weight.grad.clone()
    module.zero_grad()
    compiled = torch.compile(module, fullgraph=True, backend=backend)
    result = compiled(x)
    result.sum().backward()
    assert torch.allclose(result, expected, rtol=1e-12, atol=1e-12)
    assert torch.allclose(module.linear.weight.grad, gradient, rtol=1e-12, atol=1e-12)


def test_plans_are_kept_per_graph():
    tessera.torch.clear_cache()
    first, second = graph(), graph(seed=5)
    b = dense(50, 4)
    for _ in range(3):
        for indptr, indices, values in (first, second):
            tessera.torch.spmm(indptr, indices, values, b)
    assert tessera.torch.cache_info()["plans"] == 2
    # New values, old plan; the transpose joins it.
    indptr, indices, values = first
    result = tessera.torch.spmm(indptr, indices, 2 * values, b)
    assert close(result, 2 * (sparse(indptr, indices, values, 50) @ b), 2)
    tessera.torch.spmm_transposed(indptr, indices, values, dense(37, 4), 50)
    assert tessera.torch.cache_info()["plans"] == 2
    # Values changed in place, and an index tensor changed in place.
    values.mul_(3)
    result = tessera.torch.spmm(indptr, indices, values, b)
    assert close(result, sparse(indptr, indices, values, 50) @ b, 3)
    indices.copy_(49 - indices)
    result = tessera.torch.spmm(indptr, indices, values, b)
    exact = sparse(indptr, 49 - indices, values, 50) @ b.flip(0)
    assert close(result, exact, 3)
    assert tessera.torch.cache_info()["plans"] == 3
    tessera.torch.set_cache_size(1)
    assert tessera.torch.cache_info() == {"plans": 1, "size": 1}
    tessera.torch.set_cache_size(64)
    tessera.torch.clear_cache()


def test_plans_used_last_are_kept(monkeypatch):
    """Whether a graph is found by its tensors or, as other objects, by where they lie."""
    made = []
    plan = tessera.SpmmPlan
    monkeypatch.setattr(tessera._graphs, "SpmmPlan", lambda *a, **k: made.append(a[0].data_ptr()) or plan(*a, **k))
    graphs, b = [graph(seed=seed) for seed in (1, 2, 3)], dense(50, 4)
    tessera.torch.clear_cache()
    tessera.torch.set_cache_size(2)
    for number in (0, 1, 0, 2, 0, 1):
        indptr, indices, values = graphs[number]
        for at in (indptr, indptr.view(-1), indptr):
            result = tessera.torch.spmm(at, indices, values, b)
            assert close(result, sparse(indptr, indices, values, 50) @ b)
    assert made == [graphs[number][0].data_ptr() for number in (0, 1, 2, 1)]
    tessera.torch.set_cache_size(64)
    tessera.torch.clear_cache()


def test_what_is_kept_for_gradients():
    indptr, indices, values = graph()
    b = dense(50, 4).requires_grad_()
    for tracked in (False, True):
        kept = []
        values.requires_grad_(tracked)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.data_ptr()) or t, lambda t: t):
            out = tessera.torch.spmm(indptr, indices, values, b)
        assert (values.data_ptr() in kept, b.data_ptr() in kept) == (True, tracked)
        out.sum().backward()


def test_graphs_changed_between_passes():
    """As PyTorch says of tensors that it has kept."""
    for transposed in (False, True):
        indptr, indices, values = graph()
        b = dense(37 if transposed else 50, 4).requires_grad_()
        out = (tessera.torch.spmm_transposed(indptr, indices, values, b, 50) if transposed
               else tessera.torch.spmm(indptr, indices, values, b))
        indices.copy_(49 - indices)
        with pytest.raises(RuntimeError, match="in place"):
            out.sum().backward()


def edges_of(indptr, indices):
    """As PyTorch Geometric has them: source, then target."""
    rows = torch.repeat_interleave(torch.arange(indptr.numel() - 1, device=DEVICE), indptr.long().diff())
    return torch.stack([indices.long(), rows])


def test_products_agree_with_message_passing():
    """GCNConv's propagation, its gradients by features and weights of edges."""
    layers = pytest.importorskip("torch_geometric.nn")
    indptr, indices, values = graph(40, 40, 0.15)
    x, grad = dense(40, 16), dense(40, 16, seed=3)
    conv = layers.GCNConv(16, 16, normalize=False, bias=False).to(device=DEVICE, dtype=torch.float64)
    results = []
    for f in (lambda v, h: tessera.torch.spmm(indptr, indices, v, h),
              lambda v, h: conv.propagate(edges_of(indptr, indices), x=h, edge_weight=v)):
        inputs = values.clone().requires_grad_(), x.clone().requires_grad_()
        out = f(*inputs)
        results.append((out.detach(), *torch.autograd.grad(out, inputs, grad)))
    # Sums of at most 40 products of numbers up to 1, in any order: 2 (40 + 3) 2^-53 40.
    for ours, theirs in zip(*results):
        assert torch.allclose(ours, theirs, rtol=0, atol=2 * 43 * 2.0**-53 * 40)


def test_attention_agrees_with_message_passing():
    """AGNNConv, its gradients by features and beta. Some nodes have no neighbours."""
    layers = pytest.importorskip("torch_geometric.nn")
    indptr, indices, _ = graph(40, 40, 0.06)
    assert int(indptr.diff().min()) == 0
    conv = layers.AGNNConv(add_self_loops=False).to(device=DEVICE, dtype=torch.float64)
    x, grad = dense(40, 16), dense(40, 16, seed=3)
    results = []

    def ours(h, beta):
        n = torch.nn.functional.normalize(h, dim=1)
        return tessera.torch.attention(indptr, indices, beta * n, n, h, scale=1.0)

    def theirs(h, beta):
        conv.beta = beta
        return conv(h, edges_of(indptr, indices))

    for f in (ours, theirs):
        inputs = x.clone().requires_grad_(), torch.nn.Parameter(torch.ones(1, dtype=torch.float64, device=DEVICE))
        out = f(*inputs)
        results.append((out.detach(), *torch.autograd.grad(out, inputs, grad)))
    # PyTorch Geometric adds 1e-16 to each sum of exponentials, of 1 at least: less than a rounding. Then sums of at most
    # 40 entries of some 16 numbers of about 1, in chains of five operations; beta's gradient is one over all entries.
    for a, b in zip(*results):
        assert torch.allclose(a, b, rtol=1e-11, atol=1e-12)


def test_graphs_that_come_and_go():
    """A new graph where an old one lay in memory is not taken for it."""
    tessera.torch.clear_cache()
    b = dense(50, 4)
    for seed in range(100):
        indptr, indices, values = graph(density=0.05, seed=seed)
        exact = sparse(indptr, indices, values, 50) @ b
        assert close(tessera.torch.spmm(indptr, indices, values, b), exact)
        del indptr, indices, values
    assert tessera.torch.cache_info()["plans"] <= 64


def test_threads():
    indptr, indices, values = graph()
    wrong = []

    def work(seed):
        own, b = values * seed, dense(50, 4, seed=seed)
        exact = sparse(indptr, indices, own, 50) @ b
        for _ in range(20):
            if not close(tessera.torch.spmm(indptr, indices, own, b), exact, 2):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.skipif(DEVICE != "cuda", reason="a build for the host takes them")
def test_arrays_of_the_host_are_refused():
    A = Csr(37, 50, 0.1, "float64")
    with pytest.raises(tessera.NotSupported, match="host"):
        tessera.SpmmPlan(*A.arrays)
    plan = tessera.SpmmPlan(*graph(), (37, 50))
    with pytest.raises(tessera.NotSupported, match="host"):
        plan.apply(dense(50, 4).cpu())


@pytest.mark.skipif(DEVICE != "cuda", reason="streams are a device's")
def test_current_stream():
    """Products wait for what is on the current stream before them, and not for others."""
    indptr, indices, values = graph()
    plan = tessera.SpmmPlan(indptr, indices, values, (37, 50))
    b = dense(50, 16)
    exact = sparse(indptr, indices, values, 50) @ (3 * b)
    torch.cuda.synchronize()
    for _ in range(5):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(20_000_000)
            x = 3 * b
            result = plan @ x
        assert not stream.query()
        stream.synchronize()
        assert close(result, exact, 3)


@pytest.mark.skipif(DEVICE != "cuda", reason="CUDA graphs are a device's")
@pytest.mark.parametrize("layer", [Convolution, lambda *graph: Attention(*graph, True),
                                   lambda *graph: Attention(*graph, False, torch.float16),
                                   lambda *graph: Attention(*graph, False, torch.bfloat16)])
def test_captured_as_a_cuda_graph(layer):
    """Forward and backward, captured once: replays see new numbers. Attention of 16 bits is on matrix units, and with
    rows of 270 entries in windows of up to 19 blocks, so that some are split."""
    indptr, indices, _ = graph(300, 300, 0.9)
    module, stream = layer(indptr, indices), torch.cuda.Stream()
    dtype = module.linear.weight.dtype
    x = dense(300, 8, dtype=dtype).requires_grad_()
    # The same kernels, but PyTorch may choose others for its dense products.
    tolerance = 1e-12 if dtype == torch.float64 else 8 * STORE[dtype]

    def step():
        out = module(x)
        return out.detach(), *torch.autograd.grad(out, (x, module.linear.weight), torch.ones_like(out))

    with torch.cuda.stream(stream):
        for _ in range(2):
            step()
    torch.cuda.synchronize()
    captured = torch.cuda.CUDAGraph()
    gc.collect()
    with torch.cuda.graph(captured, stream=stream, capture_error_mode="thread_local"):
        results = step()
    for seed in (3, 4):
        with torch.no_grad():
            x.copy_(dense(300, 8, seed=seed))
        captured.replay()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            expected = step()
        torch.cuda.synchronize()
        for a, b in zip(results, expected):
            assert torch.allclose(a, b, rtol=tolerance, atol=tolerance * float(b.abs().max()))


@pytest.mark.skipif(DEVICE != "cuda", reason="CuPy's arrays are on a device")
def test_cupy():
    cupy = pytest.importorskip("cupy")
    sparse_module = pytest.importorskip("cupyx.scipy.sparse")
    indptr, indices, values = (cupy.from_dlpack(t) for t in graph())
    A = sparse_module.csr_matrix((values, indices, indptr), shape=(37, 50))
    b = cupy.asarray(numbers((50, 16), "float64"))
    result = tessera.SpmmPlan(A) @ b
    assert isinstance(result, cupy.ndarray)
    assert cupy.allclose(result, A @ b, rtol=1e-12, atol=1e-12)
    C = tessera.spgemm(A, A.T.tocsr())
    assert cupy.allclose(C.toarray(), (A @ A.T).toarray(), rtol=1e-12, atol=1e-12)
