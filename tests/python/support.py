# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Matrices and error bounds that the tests share."""

import numpy
import scipy.sparse

DTYPES = ["float64", "float32", "float16"]
# (rows, columns, density): nothing, single numbers, empty rows, one long row, more rows than columns.
SHAPES = [(0, 0, 0), (0, 3, 0), (4, 0, 0), (1, 1, 1), (5, 9, 0), (1, 200, 0.9), (37, 50, 0.1), (200, 31, 0.05)]


class Csr:
    """Arrays of a matrix whose numbers are rounded to `dtype`, and the same numbers in float64."""

    def __init__(self, rows, cols, density, dtype, offsets="int32", seed=1):
        rng = numpy.random.default_rng(seed)
        pattern = scipy.sparse.random(rows, cols, density, "csr", random_state=seed)
        self.indptr = pattern.indptr.astype(offsets)
        self.indices = pattern.indices.astype("int32")
        self.data = rng.uniform(-1, 1, pattern.nnz).astype(dtype)
        self.shape = (rows, cols)

    @property
    def arrays(self):
        return self.indptr, self.indices, self.data, self.shape

    def exact(self):
        return scipy.sparse.csr_matrix((self.data.astype("float64"), self.indices, self.indptr), shape=self.shape)


def numbers(shape, dtype, seed=2):
    return numpy.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)


def bound(sizes, terms, result, dtype, result_dtype=None):
    """Of an error, element by element.

    A sum of `terms` products errs by at most (terms + 3) u times the sum of their sizes (Higham, section 3.1, and the
    roundings of alpha and beta; terms u is far below 1), u = 2^-53 in float64, else 2^-24: 16-bit numbers are summed in
    float32. A result of 16 bits is rounded once more: by 2^-11 of itself, or 2^-25 below the normal numbers. The
    factor 2 covers the reference's own error.
    """
    u = 2.0**-53 if dtype == "float64" else 2.0**-24
    error = 2 * (terms + 3) * u * sizes
    if (result_dtype or dtype) == "float16":
        error = error + 2 * 2.0**-11 * numpy.abs(result) + 2.0**-24
    return error


def assert_close(result, exact, sizes, terms, dtype):
    assert result.shape == exact.shape
    error = numpy.abs(result.astype("float64") - exact)
    assert numpy.all(error <= bound(sizes, terms, exact, dtype, str(result.dtype)))
