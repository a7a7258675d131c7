# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Layers of tessera.torch that are one step of autograd, against the same by PyTorch's own operations; attention in
TF32; graphs that look like each other, and those of inference mode; values and operands that do not fit."""

import pytest

torch = pytest.importorskip("torch", minversion="2.4")

from test_torch import DEVICE, attend, close, dense, graph, sparse

import tessera
import tessera.torch


def convolution(indptr, indices, values, x, weight, bias=None, relu=False):
    rows = torch.repeat_interleave(torch.arange(indptr.numel() - 1, device=DEVICE), indptr.long().diff())
    A = torch.zeros(indptr.numel() - 1, x.shape[0], dtype=x.dtype, device=DEVICE)
    out = A.index_put((rows, indices.long()), values.to(x.dtype)) @ x @ weight.t()
    out = out if bias is None else out + bias
    return torch.relu(out) if relu else out


def cosine(indptr, indices, h, beta):
    n = torch.nn.functional.normalize(h, dim=1, eps=1e-12)
    return attend(indptr, indices, n, n, h, beta)


def gradients(out, inputs, grad):
    wanted = [t for t in inputs if t.requires_grad]
    return dict(zip([t for t, x in enumerate(inputs) if x.requires_grad], torch.autograd.grad(out, wanted, grad)))


# x wants a gradient or not, and W narrows or widens: A x comes first, or x W^T.
@pytest.mark.parametrize("wants", [True, False])
@pytest.mark.parametrize("widths", [(8, 5), (5, 8)])
@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_convolutions_agree_with_torch_dense(dtype, relu, widths, wants):
    indptr, indices, values = graph(dtype=dtype)
    tensors = [dense(50, widths[0], dtype=dtype), dense(widths[1], widths[0], dtype=dtype, seed=3),
               dense(widths[1], dtype=dtype, seed=4)]
    grad = dense(37, widths[1], dtype=dtype, seed=5)
    ours = [t.clone().requires_grad_(wants or i > 0) for i, t in enumerate(tensors)]
    theirs = [t.double().requires_grad_(t.requires_grad) for t in ours]
    for t, x in zip(theirs, ours):
        t.requires_grad_(x.requires_grad)
    out = tessera.torch.graph_convolution(indptr, indices, values, *ours, relu=relu)
    exact = convolution(indptr, indices, values.double(), *(t.detach() for t in theirs))
    # Sums of at most 50 terms twice over; in 16 bits what lies between them is rounded as well. Numbers are up to 10.
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-4, torch.float16: 0.1}[dtype]
    assert out.dtype == dtype
    assert torch.allclose(out.double(), exact.clamp_min(0) if relu else exact, rtol=0, atol=tolerance)
    # The same mask: a sum next to zero may be on either side of it.
    masked = grad.double() * (out.detach() > 0) if relu else grad.double()
    exact = convolution(indptr, indices, values.double(), *theirs)
    a, b = gradients(out, ours, grad), gradients(exact, theirs, masked)
    assert a.keys() == b.keys() and all(a[i].dtype == dtype for i in a)
    for i in a:
        assert torch.allclose(a[i].double(), b[i], rtol=0, atol=tolerance)


@pytest.mark.parametrize("wants", [True, False])
def test_derivatives_of_convolutions(wants):
    indptr, indices, values = graph(9, 7, 0.4)
    x, weight, bias = dense(7, 3), dense(4, 3, seed=3).requires_grad_(), dense(4, seed=4).requires_grad_()
    if wants:
        x.requires_grad_()
    for relu in (True, False):
        def layer(*inputs):
            return tessera.torch.graph_convolution(indptr, indices, values, *inputs, relu=relu)

        assert torch.autograd.gradcheck(layer, (x, weight, bias))
        assert torch.autograd.gradgradcheck(layer, (x, weight, bias))
    # By the values: then by its parts. Without a bias.
    values = values.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda v, x, w: tessera.torch.graph_convolution(indptr, indices, v, x, w),
                                    (values, x, weight))


def test_convolutions_convert_what_has_another_type():
    """As mixed precision wants them: weights and features of float32, a graph of float16."""
    indptr, indices, values = graph(dtype=torch.float16)
    x, weight, bias = (dense(*s, dtype=torch.float32, seed=i).requires_grad_() for i, s in enumerate([(50, 8), (8, 8), (8,)]))
    out = tessera.torch.graph_convolution(indptr, indices, values, x, weight, bias, relu=True)
    assert out.dtype == torch.float16
    for t, g in zip((x, weight, bias), torch.autograd.grad(out.sum(), (x, weight, bias))):
        assert g.dtype == torch.float32 and g.shape == t.shape
    with torch.no_grad():
        again = tessera.torch.graph_convolution(indptr, indices, values, x, weight, bias, relu=True)
    assert torch.equal(out, again)
    with torch.autocast(DEVICE, torch.bfloat16):
        assert tessera.torch.graph_convolution(*graph(dtype=torch.float32), x, weight, bias).dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_cosine_attention_agrees_with_torch_dense(dtype):
    indptr, indices, _ = graph(40, 40, 0.1)
    h, beta, grad = dense(40, 16, dtype=dtype), torch.full((), 1.5, device=DEVICE), dense(40, 16, dtype=dtype, seed=3)
    ours = h.clone().requires_grad_(), beta.to(torch.float64 if dtype == torch.float64 else torch.float32).requires_grad_()
    theirs = h.double().requires_grad_(), beta.double().requires_grad_()
    out = tessera.torch.cosine_attention(indptr, indices, *ours)
    exact = cosine(indptr, indices, *theirs)
    tolerance = {torch.float64: 1e-12, torch.float32: 1e-4, torch.float16: 2.0**-6}[dtype]
    assert out.dtype == dtype and torch.allclose(out.double(), exact, rtol=0, atol=tolerance)
    a, b = gradients(out, ours, grad), gradients(exact, theirs, grad.double())
    assert torch.allclose(a[0].double(), b[0], rtol=0, atol=tolerance)
    # beta's is a sum over all entries.
    assert torch.allclose(a[1].double(), b[1], rtol=0, atol=40 * tolerance)


def test_derivatives_of_cosine_attention():
    indptr, indices, _ = graph(9, 9, 0.4)
    inputs = dense(9, 4).requires_grad_(), torch.ones(1, dtype=torch.float64, device=DEVICE).requires_grad_()
    assert torch.autograd.gradcheck(lambda h, b: tessera.torch.cosine_attention(indptr, indices, h, b), inputs)
    out = tessera.torch.cosine_attention(indptr, indices, *inputs)
    gradient, = torch.autograd.grad(out.square().sum(), inputs[0], create_graph=True)
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.autograd.grad(gradient.square().sum(), inputs[0])
    # Nodes without features: nothing is divided by zero.
    h = torch.zeros(9, 4, dtype=torch.float64, device=DEVICE).requires_grad_()
    out = tessera.torch.cosine_attention(indptr, indices, h, inputs[1])
    assert bool(torch.isfinite(torch.autograd.grad(out.sum(), h)[0]).all()) and not bool(out.any())


class Layers(torch.nn.Module):
    def __init__(self, indptr, indices, values):
        super().__init__()
        self.graph = indptr, indices, values
        self.linear = torch.nn.Linear(8, 6, dtype=torch.float64, device=DEVICE)
        self.beta = torch.nn.Parameter(torch.ones((), dtype=torch.float64, device=DEVICE))

    def forward(self, x):
        h = tessera.torch.graph_convolution(*self.graph, x, self.linear.weight, self.linear.bias, relu=True)
        return tessera.torch.cosine_attention(*self.graph[:2], h, self.beta)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compile_without_a_graph_break(backend):
    torch.compiler.reset()
    module, x, results = Layers(*graph(30, 30, 0.2)), dense(30, 8), []
    for f in (module, torch.compile(module, fullgraph=True, backend=backend)):
        module.zero_grad()
        out = f(x)
        out.sum().backward()
        results.append([out.detach()] + [p.grad.clone() for p in module.parameters()])
    for a, b in zip(*results):
        assert torch.allclose(a, b, rtol=1e-12, atol=1e-12)


def test_what_is_changed_between_passes_is_seen():
    indptr, indices, values = graph(40, 40, 0.1)
    x, weight = dense(40, 8).requires_grad_(), dense(8, 8, seed=3).requires_grad_()
    for f in (lambda: tessera.torch.graph_convolution(indptr, indices, values, x, weight),
              lambda: tessera.torch.cosine_attention(indptr, indices, x, weight[0, 0])):
        out = f()
        indices.copy_(39 - indices)
        with pytest.raises(RuntimeError, match="in.?place"):
            out.sum().backward()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_same_bits(dtype):
    indptr, indices, values = graph(200, 200, 0.1, dtype)
    x, weight = dense(200, 32, dtype=dtype).requires_grad_(), dense(32, 32, dtype=dtype, seed=3).requires_grad_()
    beta, grad, first = torch.ones((), device=DEVICE).requires_grad_(), dense(200, 32, dtype=dtype, seed=4), None
    for _ in range(20):
        h = tessera.torch.graph_convolution(indptr, indices, values, x, weight, relu=True)
        results = torch.autograd.grad(tessera.torch.cosine_attention(indptr, indices, h, beta), (x, weight, beta), grad)
        first = first or results
        assert all(torch.equal(a, b) for a, b in zip(first, results))


def test_tf32_of_attention():
    """Scores and results of float32 by factors of 11 bits, gradients by float32 from what that gave."""
    indptr, indices, _ = graph(dtype=torch.float32)
    tensors = [dense(n, 16, dtype=torch.float32, seed=s).requires_grad_() for n, s in ((37, 2), (50, 3), (50, 4))]
    grad, results = dense(37, 16, dtype=torch.float32, seed=5), {}
    with pytest.raises(tessera.NotSupported, match="another precision"):
        tessera.torch.attention(indptr, indices, *(t.detach().double() for t in tensors), compute="tf32")
    if DEVICE == "cpu":  # whose kernel has none
        with pytest.raises(tessera.NotSupported, match="tf32"):
            tessera.torch.attention(indptr, indices, *tensors, compute="tf32")
    for compute in ("auto", "fp32") if DEVICE == "cpu" else ("auto", "fp32", "tf32"):
        out = tessera.torch.attention(indptr, indices, *tensors, scale=0.7, compute=compute)
        results[compute] = out.detach(), *torch.autograd.grad(out, tensors, grad)
    assert all(torch.equal(a, b) for a, b in zip(results["auto"], results["fp32"]))
    if DEVICE == "cpu":
        return
    # All numbers are up to 1. Two factors are off by 2^-11 each, so a score of 16 products by s = 0.7 16 2^-10, a weight p
    # by 2 s p, a result by that and 2^-10 (two roundings more). The backward pass has weights by lse, off by s p, and
    # D = <grad, result> of 16 products; its dS = p (dP - D), each of up to 16. A column sums as many rows as it has.
    s = 0.7 * 16 * 2.0**-10
    result = 2.1 * s + 2.0**-10
    d_s = 1.1 * s * 32 + 16 * result
    rows = torch.bincount(indices.long(), minlength=50)[:, None]
    for a, b, limit in zip(results["tf32"], results["auto"], (result, 0.7 * d_s, 0.7 * d_s * rows, 1.1 * s * rows)):
        assert bool(((a - b).abs() <= limit + 1e-5).all())
    assert not torch.equal(results["tf32"][0], results["auto"][0])


def test_what_does_not_fit_is_refused():
    indptr, indices, values = graph(40, 40, 0.1)
    x, weight, bias, beta = dense(40, 8), dense(6, 8), dense(6), torch.ones((), device=DEVICE)
    conv, cos, spmm = tessera.torch.graph_convolution, tessera.torch.cosine_attention, tessera.torch.spmm
    for wrong in ((x, dense(6, 7)), (x, weight[0]), (x[0], weight), (x[None], weight), (x, weight, bias[:1]),
                  (x, weight, dense(40, 6))):
        with pytest.raises(tessera.DimensionMismatch, match="graph_convolution"):
            conv(indptr, indices, values, *wrong)
    # Numbers per feature, or heads, would be another formula.
    for wrong in ((x, torch.ones(8, device=DEVICE)), (x[None], beta), (x[:, 0], beta)):
        with pytest.raises(tessera.DimensionMismatch, match="cosine_attention"):
            cos(indptr, indices, *wrong)
    with pytest.raises(tessera.DimensionMismatch, match="matrix or a vector"):
        spmm(indptr, indices, values, x[None])
    with pytest.raises(tessera.InvalidArgument, match="5 columns, as many as rows"):
        spmm(indptr, indices, values, x[:5])
    for call in (lambda: cos(indptr, indices, x, 1.0), lambda: conv(indptr, indices, values, x.cpu().numpy(), weight),
                 lambda: spmm(indptr.cpu().numpy(), indices, values, x)):
        with pytest.raises(TypeError, match="must be a tensor"):
            call()


def test_a_layer_of_pytorch_geometric_as_the_manual_has_it():
    conv_of = pytest.importorskip("torch_geometric.nn.conv.gcn_conv")
    n, generator = 30, torch.Generator().manual_seed(1)
    edge_index = torch.randint(n, (2, 150), generator=generator).to(DEVICE)  # some edges twice, some loops
    conv = conv_of.GCNConv(8, 6).to(device=DEVICE, dtype=torch.float64)
    x = dense(n, 8)
    edges, weights = conv_of.gcn_norm(edge_index, num_nodes=n, dtype=torch.float64)
    order = edges[1].argsort(stable=True)
    indptr = torch.searchsorted(edges[1][order], torch.arange(n + 1, device=edges.device)).int()
    indices, weights = edges[0][order].int(), weights[order]
    with torch.no_grad():
        conv.bias.copy_(torch.arange(6))
        h = tessera.torch.graph_convolution(indptr, indices, weights, x, conv.lin.weight, conv.bias)
        # Two sums of at most 150 and 8 products, in any order, of numbers that are small.
        assert torch.allclose(h, conv(x, edge_index), rtol=0, atol=1e-12)


def test_graphs_that_begin_at_the_same_place():
    """A view of every second number is no view of the first ones."""
    indptr = torch.tensor([0, 2, 3, 4], dtype=torch.int32, device=DEVICE)
    numbers_of_both = torch.tensor([0, 1, 2, 1, 3, 0, 0, 2], dtype=torch.int32, device=DEVICE)
    values, b = dense(4), dense(4, 2, seed=3)
    for indices in (numbers_of_both[:4], numbers_of_both[::2]):
        expected = sparse(indptr, indices, values, 4) @ b
        assert torch.allclose(tessera.torch.spmm(indptr, indices, values, b), expected, rtol=1e-13, atol=1e-13)
    with pytest.raises(tessera.InvalidArgument, match="of 2 columns"):
        tessera.torch.spmm_transposed(indptr, numbers_of_both[:4], values, dense(3, 2), 2)


def test_index_tensors_of_inference_mode():
    """They do not count changes, so that no plan of theirs is kept: changes in place are seen."""
    with torch.inference_mode():
        indptr, indices, values = graph()
        b, q = dense(51, 4), dense(37, 4)
        for _ in range(2):
            A = sparse(indptr, indices, values, 51)
            assert close(tessera.torch.spmm(indptr, indices, values, b), A @ b)
            assert close(tessera.torch.spmm_transposed(indptr, indices, values, q, 51), A.to_dense().t() @ q)
            rows = torch.repeat_interleave(torch.arange(37, device=DEVICE), indptr.long().diff())
            scores = tessera.torch.sddmm(indptr, indices, q, b)
            assert close(scores, (q[rows] * b[indices.long()]).sum(1))
            weights = sparse(indptr, indices, tessera.torch.row_softmax(indptr, scores), 51)
            assert close(tessera.torch.attention(indptr, indices, q, b, b, scale=1.0), weights @ b)
            indices.add_(1)


def test_as_many_values_as_entries():
    indptr, indices, values = graph()
    b, c = dense(50, 4), dense(37, 4)
    q, k = dense(37, 8), dense(50, 8)
    # Without plans of the graph, and with them.
    for _ in range(2):
        for numbers_ in (values[:-1], torch.cat([values, values]), torch.stack([values, values], 1)):
            with pytest.raises(tessera.DimensionMismatch, match="values"):
                tessera.torch.spmm(indptr, indices, numbers_, b)
            with pytest.raises(tessera.DimensionMismatch, match="values"):
                tessera.torch.spmm_transposed(indptr, indices, numbers_, c, 50)
            with pytest.raises(tessera.DimensionMismatch, match="values"):
                tessera.torch.attention(indptr, indices, q, k, k, bias=numbers_)
        tessera.torch.spmm(indptr, indices, values, b)
        tessera.torch.spmm_transposed(indptr, indices, values, c, 50)
        tessera.torch.attention(indptr, indices, q, k, k, bias=values)


def test_tensors_whose_sign_is_turned_when_they_are_read():
    indptr, indices, values = graph()
    turned = torch.complex(dense(50, 4), dense(50, 4, seed=5)).conj().imag
    assert turned.is_neg()
    exact = sparse(indptr, indices, values, 50) @ turned
    assert close(tessera.torch.spmm(indptr, indices, values, turned), exact, 4)
    plan = tessera.SpmmPlan(indptr, indices, values, (37, 50))
    assert close(plan.apply(turned), exact, 4)
    column = tessera.SpmvPlan(indptr, indices, values, (37, 50)).apply(turned[:, 1])
    assert close(column, exact[:, 1], 4)
    one = torch.complex(dense(1, 1), dense(1, 1, seed=5)).conj().imag
    first = torch.zeros(1, dtype=torch.int32, device=DEVICE)
    single = tessera.SpmmPlan(torch.cat([first, first + 1]), first, one[0], (1, 1))
    assert close(single.apply(one), one * one, 4)
    out = torch.complex(dense(37, 4), dense(37, 4, seed=5)).conj().imag
    with pytest.raises(tessera.InvalidArgument, match="resolve_neg"):
        plan.apply(turned, out=out)
