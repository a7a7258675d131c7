# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""SpmvPlan and SpmmPlan against SciPy in float64."""

import numpy
import pytest
import scipy.sparse
from support import DTYPES, SHAPES, Csr, assert_close, numbers

import tessera

PLANS = [tessera.SpmvPlan, tessera.SpmmPlan]


def check(A, x, result, alpha=1.0, beta=0.0, before=None, transposed=False):
    matrix = A.exact().T.tocsr() if transposed else A.exact()
    wide = x.astype("float64")
    exact = alpha * (matrix @ wide)
    sizes = abs(alpha) * (abs(matrix) @ abs(wide))
    if before is not None:
        exact = exact + beta * before.astype("float64")
        sizes = sizes + abs(beta) * abs(before.astype("float64"))
    assert_close(result, exact, sizes, max(A.shape), str(A.data.dtype))


@pytest.mark.parametrize("offsets", ["int32", "int64"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_products_agree_with_scipy(shape, dtype, offsets):
    A = Csr(*shape, dtype, offsets)
    rows, cols = A.shape
    spmv = tessera.SpmvPlan(*A.arrays)
    spmm = tessera.SpmmPlan(*A.arrays, prepare_transpose=True)
    x = numbers(cols, dtype)
    y = spmv.apply(x)
    assert isinstance(y, numpy.ndarray) and y.dtype == dtype and y.shape == (rows,)
    check(A, x, y)
    for columns in (0, 1, 3, 32):
        B = numbers((cols, columns), dtype)
        check(A, B, spmm @ B)
        check(A, B, spmv @ B)
        C = numbers((rows, columns), dtype, 3)
        check(A, C, spmm.apply(C, op="T"), transposed=True)
        before = C.copy()
        assert spmm.apply(B, out=C, alpha=1.5, beta=-0.5) is C
        check(A, B, C, 1.5, -0.5, before)


@pytest.mark.parametrize("plan", PLANS)
def test_float16_into_float32(plan):
    A = Csr(40, 60, 0.2, "float16")
    x = numbers((60, 5), "float16")
    out = numpy.empty((40, 5), "float32")
    plan(*A.arrays).apply(x, out=out)
    check(A, x, out)


def test_float32_matrix_with_vectors_of_float64():
    A = Csr(40, 60, 0.2, "float32")
    x = numbers(60, "float64")
    y = tessera.SpmvPlan(*A.arrays) @ x
    assert y.dtype == "float64"
    check(A, x, y)


def views(array):
    """The same numbers in other layouts."""
    wide = numpy.zeros((2 * array.shape[0], 3 * array.shape[1]), array.dtype)
    wide[::2, ::3] = array
    return {
        "columns": numpy.asfortranarray(array),
        "strided": wide[::2, ::3],
        "reversed": array[::-1, ::-1].copy()[::-1, ::-1],
        "unaligned start": numpy.concatenate([array.ravel()[:1], array.ravel()])[1:].reshape(array.shape),
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("plan", PLANS)
def test_layouts(plan, dtype):
    A = Csr(37, 50, 0.1, dtype)
    product = plan(*A.arrays)
    B = numbers((50, 6), dtype)
    for view in views(B).values():
        check(A, B, product.apply(view))
    C = numbers((37, 6), dtype, 3)
    for name, view in views(C).items():
        if name == "reversed":
            with pytest.raises(tessera.InvalidArgument, match="strides"):
                product.apply(B, out=view)
            assert numpy.array_equal(view, C)
            continue
        product.apply(B, out=view, alpha=2.0, beta=3.0)
        check(A, B, view, 2.0, 3.0, C)
    # One row repeated by a stride of nothing.
    row = numpy.broadcast_to(B[0], B.shape)
    check(A, row, product.apply(row))


@pytest.mark.parametrize("kind", ["csr_matrix", "csr_array"])
def test_objects_of_scipy(kind):
    A = Csr(37, 50, 0.1, "float64")
    matrix = getattr(scipy.sparse, kind)(A.exact())
    x = numbers(50, "float64")
    check(A, x, tessera.SpmvPlan(matrix) @ x)
    # SciPy's own index type where a matrix is large: copied as int32.
    matrix.indices = matrix.indices.astype("int64")
    matrix.indptr = matrix.indptr.astype("int64")
    check(A, x, tessera.SpmvPlan(matrix) @ x)
    with pytest.raises(tessera.InvalidArgument, match="tocsr"):
        tessera.SpmvPlan(matrix.tocsc())


class Foreign:
    """An array that only DLPack knows."""

    def __init__(self, array):
        self.array = array
        self.taken = 0

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self):
        self.taken += 1
        return self.array.__dlpack__()


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_other_libraries(dtype):
    A = Csr(37, 50, 0.1, dtype)
    plan = tessera.SpmmPlan(*A.arrays)
    B, out = numbers((6, 50), dtype).T, numbers((37, 6), dtype)
    foreign = Foreign(B)
    result = plan.apply(foreign)
    assert isinstance(result, numpy.ndarray) and foreign.taken == 1
    check(A, B, result)
    place = Foreign(out)
    assert plan.apply(foreign, out=place) is place
    check(A, B, out)
    # The matrix, too; its arrays live by what DLPack gave.
    plan = tessera.SpmmPlan(*(Foreign(array) for array in A.arrays[:3]), A.shape, algorithm="csr")
    check(A, B, plan @ B)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("algorithm", ["csr", "auto"])
def test_unsorted_and_repeated_columns(plan, algorithm):
    A = Csr(2, 4, 0, "float64")
    A.indptr = numpy.array([0, 4, 5], "int32")
    A.indices = numpy.array([3, 0, 3, 1, 2], "int32")
    A.data = numpy.array([1.0, 2.0, 4.0, 8.0, 16.0])
    x = numpy.array([[1.0], [10.0], [100.0], [1000.0]])
    assert (plan(*A.arrays, algorithm=algorithm) @ x).tolist() == [[5082.0], [1600.0]]


@pytest.mark.parametrize("plan", PLANS)
def test_beta_zero_overwrites_nan(plan):
    A = Csr(37, 50, 0.1, "float64")
    B = numbers((50, 4), "float64")
    out = numpy.full((37, 4), numpy.nan)
    plan(*A.arrays).apply(B, out=out)
    check(A, B, out)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("plan", PLANS)
def test_update_values(plan, dtype):
    A = Csr(37, 50, 0.1, dtype)
    B = numbers((50, 4), dtype)
    product = plan(*A.arrays, prepare_transpose=True)
    A.data = numbers(A.data.size, dtype, 5)
    product.update_values(A.data)
    check(A, B, product @ B)
    C = numbers((37, 4), dtype)
    check(A, C, product.apply(C, op="T"), transposed=True)
    with pytest.raises(tessera.StalePlan):
        product.update_values(A.data[1:])
    with pytest.raises(tessera.NotSupported):
        product.update_values(A.data.astype("float64" if dtype != "float64" else "float32"))
    check(A, B, product @ B)
    with pytest.raises(tessera.StalePlan):
        plan(*A.arrays, updatable=False).update_values(A.data)


@pytest.mark.parametrize("algorithm", ["dasp", "csr5", "packed"])
def test_emulated_spmv(algorithm):
    A = Csr(200, 300, 0.05, "float64")
    x = numbers(300, "float64")
    plan = tessera.SpmvPlan(*A.arrays, algorithm=algorithm, backend="emulated-nvidia")
    assert plan.statistics()["algorithm"] == algorithm
    check(A, x, plan @ x)


KEYS = {
    "operation", "algorithm", "backend", "atom", "compute", "device", "why", "rows", "cols", "nnz", "stored",
    "padding_ratio", "matrix_unit_share", "row_mean", "row_max", "format_bytes", "map_bytes", "workspace_bytes",
    "csr_bytes", "setup_seconds", "launches", "fallback_taken", "transpose_prepared", "deterministic", "classes",
}


def test_statistics():
    A = Csr(37, 50, 0.1, "float16")
    plan = tessera.SpmmPlan(*A.arrays, prepare_transpose=True, algorithm="flash", backend="emulated-nvidia")
    statistics = plan.statistics()
    assert set(statistics) == KEYS
    assert (statistics["operation"], statistics["algorithm"], statistics["compute"]) == ("spmm", "flash", "fp16")
    assert (statistics["rows"], statistics["cols"], statistics["nnz"]) == (37, 50, A.data.size)
    assert statistics["transpose_prepared"] is True
    assert plan.shape == A.shape and plan.nnz == A.data.size
    assert plan.workspace_bytes(64) >= 0
