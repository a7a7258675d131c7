# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Matrices in compressed rows, whatever library they come from, as the arrays that plans take."""

import operator

from ._errors import InvalidArgument, NotSupported

LIMIT = 2**31 - 1


def is_torch_csr(matrix):
    return str(getattr(matrix, "layout", "")) == "torch.sparse_csr"


def dtype_name(array):
    """'float32' whether of NumPy ('float32') or of PyTorch ('torch.float32')."""
    return str(array.dtype).rpartition(".")[2]


def with_dtype(array, name):
    """A copy with another type, by the array's own library."""
    if hasattr(array, "astype"):
        return array.astype(name)
    import torch

    return array.to(getattr(torch, name))


def contiguous(array):
    if hasattr(array, "is_contiguous"):
        return array.contiguous()
    flags = getattr(array, "flags", None)
    return array if flags is None or flags["C_CONTIGUOUS"] or array.ndim != 1 else array.copy()


def narrowed(array, what, check):
    """As int32, copied once where it is int64."""
    if not hasattr(array, "dtype") or dtype_name(array) == "int32":
        return array
    if dtype_name(array) != "int64":
        raise NotSupported(f"Tessera: {what} must be int32 or int64, not {array.dtype}")
    if check and array.shape != () and len(array) > 0 and not (int(array.min()) >= 0 and int(array.max()) <= LIMIT):
        raise InvalidArgument(f"Tessera: {what} has numbers outside 0 ... 2^31 - 1")
    return with_dtype(array, "int32")


def arrays_of(matrix):
    """(indptr, indices, data, shape) of anything that is CSR."""
    if isinstance(matrix, tuple):
        if len(matrix) != 4:
            raise InvalidArgument("Tessera: a matrix as a tuple is (indptr, indices, data, shape)")
        return matrix
    if is_torch_csr(matrix):
        return matrix.crow_indices(), matrix.col_indices(), matrix.values(), matrix.shape
    layout = getattr(matrix, "format", "csr")
    if layout != "csr" or not all(hasattr(matrix, name) for name in ("indptr", "indices", "data", "shape")):
        raise InvalidArgument(
            f"Tessera: {type(matrix).__name__} is no matrix in compressed rows with indptr, indices, data and shape; "
            "SciPy's others become one by tocsr()"
        )
    return matrix.indptr, matrix.indices, matrix.data, matrix.shape


def taken(indptr, indices, data, shape, check):
    """(indptr, indices, data, rows, cols) as the extension wants them.

    indices of int64 are copied as int32, once; indptr of int64 stays, but for 16-bit data it is copied as int32.
    """
    if indices is None and data is None:
        indptr, indices, data, matrix_shape = arrays_of(indptr)
        shape = matrix_shape if shape is None else shape
    if indices is None or data is None or shape is None:
        raise InvalidArgument("Tessera: give indptr, indices, data and shape, or one matrix that has them")
    if not hasattr(shape, "__len__") or len(shape) != 2:
        raise InvalidArgument(f"Tessera: the shape of a matrix is (rows, columns), not {shape}")
    indices = narrowed(indices, "indices", check)
    if hasattr(data, "dtype") and dtype_name(data) in ("float16", "bfloat16"):
        indptr = narrowed(indptr, "indptr of a matrix of 16-bit numbers", check)
    return contiguous(indptr), contiguous(indices), contiguous(data), operator.index(shape[0]), operator.index(shape[1])
