# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""SddmmPlan and spgemm against NumPy and SciPy in float64."""

import numpy
import pytest
import scipy.sparse
from support import DTYPES, SHAPES, Csr, assert_close, numbers

import tessera


def check_sampled(S, x, y, p, alpha=1.0, beta=0.0, before=None, scaled=False):
    rows = numpy.repeat(numpy.arange(S.shape[0]), numpy.diff(S.indptr))
    factor = alpha * (S.data.astype("float64") if scaled else 1.0)
    x, y = x.astype("float64"), y.astype("float64")
    exact = factor * numpy.einsum("ek,ek->e", x[rows], y[S.indices])
    sizes = abs(factor) * numpy.einsum("ek,ek->e", abs(x[rows]), abs(y[S.indices]))
    if before is not None:
        exact, sizes = exact + beta * before, sizes + abs(beta) * abs(before)
    assert_close(p, exact, sizes, x.shape[1] + 1, str(S.data.dtype))


@pytest.mark.parametrize("offsets", ["int32", "int64"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_sddmm(shape, dtype, offsets):
    S = Csr(*shape, dtype, offsets)
    plan = tessera.SddmmPlan(*S.arrays)
    for inner in (0, 1, 5, 32):
        x, y = numbers((S.shape[0], inner), dtype), numbers((S.shape[1], inner), dtype, 3)
        p = plan.apply(x, y)
        assert p.dtype == dtype and p.shape == S.data.shape
        check_sampled(S, x, y, p)
        check_sampled(S, x, y, plan.apply(x, numpy.ascontiguousarray(y.T), op_y="T"))
        before = numbers(S.data.size, "float32" if dtype == "float16" else dtype, 7)
        out = before.copy()
        plan.apply(x, y, out=out, alpha=0.5, beta=2.0)
        check_sampled(S, x, y, out, 0.5, 2.0, before)


def test_sddmm_layouts_heads_and_values():
    S = Csr(37, 50, 0.1, "float64")
    plan = tessera.SddmmPlan(*S.arrays, scale_by_values=True)
    x, y = numbers((3, 37, 8), "float64"), numbers((3, 50, 8), "float64", 3)
    p = plan.apply(x, y)
    assert p.shape == (3, S.data.size)
    for head in range(3):
        check_sampled(S, x[head], y[head], p[head], scaled=True)
    check_sampled(S, x[0], y[0], plan.apply(numpy.asfortranarray(x[0]), y[0][::-1].copy()[::-1]), scaled=True)
    S.data = numbers(S.data.size, "float64", 9)
    plan.update_values(S.data)
    check_sampled(S, x[0], y[0], plan.apply(x[0], y[0]), scaled=True)
    assert plan.statistics()["operation"] == "sddmm"


def test_sddmm_refuses():
    S = Csr(4, 6, 0.5, "float32")
    plan = tessera.SddmmPlan(*S.arrays)
    x, y = numbers((4, 3), "float32"), numbers((6, 3), "float32")
    for error, args in [
        (tessera.DimensionMismatch, (y, x)),
        (tessera.DimensionMismatch, (x, y[:, :2])),
        (tessera.DimensionMismatch, (x, y[None])),
        (tessera.NotSupported, (x.astype("float64"), y)),
        (tessera.NotSupported, (x.astype("float64"), y.astype("float64"))),
        (tessera.DimensionMismatch, (x, y, numpy.zeros(3, "float32"))),
    ]:
        with pytest.raises(error) as caught:
            plan.apply(*args)
        assert type(caught.value) is error


def check_matrix(C, A, B, dtype):
    exact = (A.exact() @ B.exact()).toarray()
    sizes = (abs(A.exact()) @ abs(B.exact())).toarray()
    assert C.has_sorted_indices
    assert_close(C.toarray(), exact, sizes, A.shape[1], dtype)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", SHAPES)
def test_spgemm(shape, dtype):
    rows, cols, density = shape
    A, B = Csr(rows, cols, density, dtype, "int64"), Csr(cols, 23, density, dtype, "int32", 4)
    indptr, indices, data, size = tessera.spgemm(A.arrays, B.arrays)
    # As wide as the wider one.
    assert (indptr.dtype, indices.dtype, data.dtype, size) == ("int64", "int32", dtype, (rows, 23))
    check_matrix(scipy.sparse.csr_matrix((data, indices, indptr), shape=size), A, B, dtype)


@pytest.mark.parametrize("algorithm", ["spa", "hash", "heap", "coo", "binned"])
def test_spgemm_of_scipy(algorithm):
    A, B = Csr(40, 50, 0.1, "float64"), Csr(50, 30, 0.1, "float64", seed=4)
    C = tessera.spgemm(A.exact(), B.exact(), algorithm=algorithm)
    assert isinstance(C, scipy.sparse.csr_matrix)
    check_matrix(C, A, B, "float64")


def test_spgemm_keeps_no_more_than_c():
    """One thread of a host multiplies into arrays for every product, which are shortened afterwards."""
    A = Csr(40, 40, 0.9, "float64")  # many products per entry
    indptr, indices, data, _ = tessera.spgemm(A.arrays, A.arrays)
    assert indices.base is None and data.base is None and indices.size == data.size == indptr[-1]
    again = tessera.spgemm(A.arrays, tuple(a.copy() if hasattr(a, "copy") else a for a in A.arrays))
    assert all((x == y).all() for x, y in zip((indptr, indices, data), again))
    assert_close(data, (A.exact() @ A.exact()).sorted_indices().data,
                 (abs(A.exact()) @ abs(A.exact())).sorted_indices().data, 42, "float64")


def test_spgemm_refuses():
    A, B = Csr(4, 6, 0.5, "float64"), Csr(5, 3, 0.5, "float64")
    with pytest.raises(tessera.DimensionMismatch):
        tessera.spgemm(A.arrays, B.arrays)
    with pytest.raises(tessera.InvalidArgument):
        tessera.spgemm(A.arrays, Csr(6, 3, 0.5, "float32").arrays)
    half = Csr(6, 6, 0.5, "float16")
    with pytest.raises(tessera.NotSupported):
        tessera.spgemm(half.arrays, half.arrays)
    with pytest.raises(tessera.InvalidArgument):
        tessera.spgemm(A.exact(), A.exact().toarray())
