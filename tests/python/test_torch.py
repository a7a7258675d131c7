# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""tessera.torch and plans with PyTorch's tensors, on the device that this build runs on."""

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
    for op, inputs in ((ops.spmm, (indptr, indices, values, b)), (ops.sddmm, (indptr, indices, c, b)),
                       (ops.spmm_transposed, (indptr, indices, values, c, 7))):
        torch.library.opcheck(op, inputs)


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


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compile_without_a_graph_break(backend):
    indptr, indices, _ = graph(30, 30, 0.2)
    module = Convolution(indptr, indices)
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
    assert torch.allclose(result, 2 * (sparse(indptr, indices, values, 50) @ b), rtol=1e-12, atol=1e-12)
    tessera.torch.spmm_transposed(indptr, indices, values, dense(37, 4), 50)
    assert tessera.torch.cache_info()["plans"] == 2
    # Values changed in place, and an index tensor changed in place.
    values.mul_(3)
    result = tessera.torch.spmm(indptr, indices, values, b)
    assert torch.allclose(result, sparse(indptr, indices, values, 50) @ b, rtol=1e-12, atol=1e-12)
    indices.copy_(49 - indices)
    result = tessera.torch.spmm(indptr, indices, values, b)
    exact = sparse(indptr, 49 - indices, values, 50) @ b.flip(0)
    assert torch.allclose(result, exact, rtol=1e-12, atol=1e-12)
    assert tessera.torch.cache_info()["plans"] == 3
    tessera.torch.set_cache_size(1)
    assert tessera.torch.cache_info() == {"plans": 1, "size": 1}
    tessera.torch.set_cache_size(64)
    tessera.torch.clear_cache()


def test_graphs_that_come_and_go():
    """A new graph where an old one lay in memory is not taken for it."""
    tessera.torch.clear_cache()
    b = dense(50, 4)
    for seed in range(100):
        indptr, indices, values = graph(density=0.05, seed=seed)
        exact = sparse(indptr, indices, values, 50) @ b
        assert torch.allclose(tessera.torch.spmm(indptr, indices, values, b), exact, rtol=1e-12, atol=1e-12)
        del indptr, indices, values
    assert tessera.torch.cache_info()["plans"] <= 64


def test_threads():
    indptr, indices, values = graph()
    wrong = []

    def work(seed):
        own, b = values * seed, dense(50, 4, seed=seed)
        exact = sparse(indptr, indices, own, 50) @ b
        for _ in range(20):
            if not torch.allclose(tessera.torch.spmm(indptr, indices, own, b), exact, rtol=1e-12, atol=1e-12):
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
        assert torch.allclose(result, exact, rtol=1e-12, atol=1e-12)


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
