# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Exceptions by name, and arguments that are as they were."""

import inspect

import numpy
import pytest
from support import Csr, numbers

import tessera

PLANS = [tessera.SpmvPlan, tessera.SpmmPlan]


def test_names_and_bases():
    names = {"InvalidArgument", "DimensionMismatch", "NotSupported", "NotCompiled", "StalePlan", "WorkspaceTooSmall",
             "OutOfMemory", "DeviceError", "FileError"}
    classes = {name for name, value in vars(tessera).items()
               if inspect.isclass(value) and issubclass(value, tessera.Error)}
    assert classes == names | {"Error"}
    assert issubclass(tessera.DimensionMismatch, ValueError) and issubclass(tessera.OutOfMemory, MemoryError)


@pytest.mark.parametrize("plan", PLANS)
def test_operands(plan):
    A = Csr(4, 6, 0.5, "float64")
    product = plan(*A.arrays)
    x, out = numbers((6, 2), "float64"), numbers((4, 2), "float64", 3)
    before = x.copy(), out.copy()

    def refused(error, *args, match=None, **options):
        with pytest.raises(error, match=match) as caught:
            product.apply(*args, **options)
        assert type(caught.value) is error and str(caught.value) != ""
        assert numpy.array_equal(x, before[0]) and numpy.array_equal(out, before[1])

    refused(tessera.DimensionMismatch, x[1:], out=out, match="5")
    refused(tessera.DimensionMismatch, x, out=out[:, :1])
    refused(tessera.DimensionMismatch, x, out=out[:, 0])
    refused(tessera.DimensionMismatch, x[None, None], out=out)
    refused(tessera.DimensionMismatch, numpy.array(1.0), out=out)
    refused(tessera.NotSupported, x.astype("float16"), out=out, match="half_t")
    refused(tessera.NotSupported, x, out=numpy.zeros((4, 2), "float32"))
    refused(tessera.NotSupported, x.astype("int64"), match="int64")
    refused(tessera.NotSupported, x.astype(">f8"), match=">f8")
    refused(tessera.NotSupported, x.astype("complex128"))
    refused(tessera.NotSupported, x.astype("datetime64[s]"), match="datetime64")
    refused(tessera.NotSupported, x.astype("object"))
    refused(tessera.NotSupported, x.repeat(2, 0)[:4], out=out, op="T", match="prepare_transpose")
    refused(tessera.InvalidArgument, x, out=out, op="X", match="known")
    refused(tessera.InvalidArgument, x, beta=1.0, match="out")
    refused(TypeError, [1.0] * 6)
    refused(TypeError, None)
    refused(TypeError, x, out=out, stream="default", match="pointer")
    refused(TypeError, x, out=out, stream=-1, match="pointer")
    unaligned = numpy.zeros(out.nbytes + 1, "uint8")[1:].view("float64").reshape(out.shape)
    refused(tessera.InvalidArgument, x, out=unaligned, match="aligned")
    out.flags.writeable = False
    refused(tessera.InvalidArgument, x, out=out, match="read-only")


@pytest.mark.parametrize("plan", PLANS)
def test_overlap(plan):
    A = Csr(6, 6, 0.5, "float64")
    x = numbers((6, 2), "float64")
    before = x.copy()
    with pytest.raises(tessera.InvalidArgument, match="overlap"):
        plan(*A.arrays).apply(x, out=x)
    assert numpy.array_equal(x, before)


def test_read_only_operands_are_taken():
    A = Csr(4, 6, 0.5, "float64")
    x = numbers(6, "float64")
    for array in (*A.arrays[:3], x):
        array.flags.writeable = False
    tessera.SpmvPlan(*A.arrays).apply(x)


def test_operands_between_addresses_are_copied():
    """Numbers that begin one byte behind an address of such numbers, as in records read from a file."""
    A = Csr(4, 6, 0.5, "float64")
    x = numbers(6, "float64")

    def moved(array):
        to = numpy.zeros(array.nbytes + 1, "uint8")[1:].view(array.dtype)
        to[:] = array
        assert not to.flags.aligned
        return to

    wanted = tessera.SpmvPlan(*A.arrays).apply(x)
    got = tessera.SpmvPlan(moved(A.indptr), moved(A.indices), moved(A.data), A.shape).apply(moved(x))
    assert numpy.array_equal(got, wanted)


@pytest.mark.parametrize("plan", [*PLANS, tessera.SddmmPlan])
def test_matrices(plan):
    def refused(error, match=None, **changed):
        A = Csr(4, 6, 0.5, "float64")
        arrays = {"indptr": A.indptr, "indices": A.indices, "data": A.data, "shape": A.shape, **changed}
        with pytest.raises(error, match=match) as caught:
            plan(arrays.pop("indptr"), **arrays)
        assert type(caught.value) is error

    A = Csr(4, 6, 0.5, "float64")
    assert A.data.size == 12
    refused(tessera.DimensionMismatch, indptr=A.indptr[:-1], match="4 elements")
    refused(tessera.DimensionMismatch, data=A.data[1:])
    refused(tessera.InvalidArgument, shape=(4, 3), match="column")
    refused(tessera.InvalidArgument, shape=(4,))
    refused(tessera.InvalidArgument, shape=(4, 2**31), match="2147483648")
    refused(tessera.InvalidArgument, shape=None)
    refused(tessera.InvalidArgument, indices=A.indices - 1, match="column")
    refused(tessera.InvalidArgument, indices=A.indices.astype("int64") + 2**32, match="indices")
    refused(tessera.InvalidArgument, indptr=A.indptr + 1)
    refused(tessera.InvalidArgument, indptr=A.indptr[::-1].copy())
    refused(tessera.NotSupported, data=A.data.astype("int32"))
    refused(tessera.NotSupported, indices=A.indices.astype("int16"))
    refused(tessera.NotSupported, indptr=A.indptr.astype("uint32"))
    refused(tessera.InvalidArgument, algorithm="fastest", match="known")
    refused(tessera.InvalidArgument, backend="abacus", match="known")
    refused(tessera.InvalidArgument, reuse="never", match="known")
    refused(tessera.NotSupported, compute="fp16")
    refused(TypeError, indptr=A.indptr.tolist())
    refused(TypeError, shape=(4.0, 6))
    refused(tessera.InvalidArgument, shape=4, match="rows, columns")
    refused(tessera.InvalidArgument, indices=numpy.array(3), match="indices")
    refused(TypeError, algorithm=None, match="algorithm must be a string, not NoneType")
    refused(TypeError, updatable="no", match="updatable must be True or False, not str")
    refused(TypeError, algorithms="csr")


def test_backend_of_another_build():
    A = Csr(4, 6, 0.5, "float64")
    with pytest.raises((tessera.NotCompiled, tessera.NotSupported)):
        tessera.SpmvPlan(*A.arrays, backend="cuda", fallback=False)


def test_numbers_of_other_types():
    A = Csr(4, 6, 0.5, "float64")
    with pytest.raises(TypeError, match="num_columns_hint must be a whole number"):
        tessera.SpmmPlan(*A.arrays, num_columns_hint=2.5)
    q, k = numbers((4, 3), "float64"), numbers((6, 3), "float64")
    with pytest.raises(TypeError, match="scale must be a number"):
        tessera.AttentionPlan(*A.arrays).apply(q, k, k, scale="auto")


class Nowhere:
    """Does not know where it is."""

    def __dlpack_device__(self):
        return 7

    def __dlpack__(self, **_):
        raise AssertionError("nobody may look")


class OnDevice:
    """Says that it is an array on a CUDA device."""

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, **_):
        raise AssertionError("nobody may look")


def test_arrays_of_another_device():
    A = Csr(4, 6, 0.5, "float64")
    with pytest.raises(tessera.NotSupported, match="device"):
        tessera.SpmvPlan(*A.arrays).apply(OnDevice())
    with pytest.raises(TypeError, match="device"):
        tessera.SpmvPlan(*A.arrays).apply(Nowhere())


def test_initialize_comes_first():
    tessera.SpmvPlan(*Csr(4, 6, 0.5, "float64").arrays)
    with pytest.raises(tessera.InvalidArgument, match="before"):
        tessera.initialize(threads=1)
