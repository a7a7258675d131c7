#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Lets SciPy check what tessera_bench --op sddmm writes: P_ij = alpha <X_i, Y_j> for the entries (i, j) of S.

    check_sddmm.py TESSERA_BENCH FOLDER

The program gets X and Y from files (--x, --y) and writes its own (--write-operands). A number of P may err by

    2 (K + 4) u |alpha| <|X_i|, |Y_j|>

with u the unit roundoffs of the program's sums and of NumPy's together; check_spmm.py has the derivation, K stands for
the entries of a row. Ends with 1 and a message where it errs by more.
"""

import pathlib
import subprocess
import sys

from check_spmm import ROUNDOFF, TYPE  # first: it looks for a Python that has SciPy

import numpy
import scipy.io
import scipy.sparse


def run(bench, folder, *arguments):
    """The program must end with 0. It says "no CUDA device" where its Kokkos wants one that is not here."""
    line = [bench, "--op", "sddmm", "--baseline", "none", "--budget", "0.01", "--repeat", "3", *arguments]
    result = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
    if "no CUDA device" in result.stderr:
        print(f"bench skipped: {result.stderr}")
        sys.exit(0)
    if result.returncode != 0:
        sys.exit(f"{' '.join(line)}: ended with {result.returncode}\n{result.stdout}{result.stderr}")


def by_place(matrix):
    """Rows, columns and numbers of the stored entries, row by row: zeros that are stored stay."""
    matrix = scipy.sparse.coo_matrix(matrix)
    order = numpy.lexsort((matrix.col, matrix.row))
    return matrix.row[order], matrix.col[order], matrix.data[order]


def check(folder, result, s, x, y, alpha, precision):
    """Compares folder/result with alpha <X_i, Y_j> on the pattern of s, X and Y rounded to the precision first."""
    x, y = (numpy.asarray(v, dtype=TYPE[precision]).astype(numpy.float64) for v in (x, y))
    written = scipy.io.mmread(folder / result)
    rows, columns, got = by_place(written)
    expected_rows, expected_columns, _ = by_place(s)
    if written.shape != s.shape or not (numpy.array_equal(rows, expected_rows) and
                                        numpy.array_equal(columns, expected_columns)):
        sys.exit(f"{result}: the pattern is not that of the matrix")
    expected = alpha * numpy.einsum("ek,ek->e", x[rows], y[columns])
    magnitude = abs(alpha) * numpy.einsum("ek,ek->e", abs(x[rows]), abs(y[columns]))
    bound = 2 * (x.shape[1] + 4) * (ROUNDOFF[precision] + 2.0**-53) * magnitude
    error = abs(got - expected)
    if not (error <= bound).all():
        at = numpy.argmax(error - bound)
        sys.exit(f"{result}: ({rows[at]}, {columns[at]}) is {got[at]}, NumPy has {expected[at]}, "
                 f"the bound is {bound[at]}")
    print(f"{result}: {got.size} entries, largest error {error.max():.3g}, all within the bound")


def written_operands(bench, folder):
    """The program's own numbers, read by SciPy; a matrix that is not square tells X from Y."""
    run(bench, folder, "--matrix", "gen:uniform:rows=400:cols=40:per_row=8", "--inner", "19", "--algorithm", "csr",
        "--alpha", "-2", "--write-operands", ".", "--write-result", "own.mtx")
    s, x, y = (scipy.io.mmread(folder / f"{name}.mtx") for name in ("A", "X", "Y"))
    check(folder, "own.mtx", s, x, y, -2.0, "fp64")


def read_operands(bench, folder):
    """SciPy's numbers, read by the program: every algorithm a host has, both types of offsets."""
    random = numpy.random.default_rng(7)
    s = scipy.sparse.random(211, 97, density=0.06, random_state=7, data_rvs=random.standard_normal).tocsr()
    for inner in (1, 37):
        x, y = random.standard_normal((211, inner)), random.standard_normal((97, inner))
        for name, matrix in (("in_S", s), ("in_X", x), ("in_Y", y)):
            scipy.io.mmwrite(folder / f"{name}.mtx", matrix, precision=17)
        for offset_bits in ("32", "64"):
            run(bench, folder, "--matrix", "in_S.mtx", "--x", "in_X.mtx", "--y", "in_Y.mtx", "--alpha", "1.5",
                "--offset-bits", offset_bits, "--algorithm", "csr,rows", "--precision", "fp64,fp32", "--write-result",
                "out.mtx")
            for algorithm in ("csr", "rows"):
                for precision in ("fp64", "fp32"):
                    check(folder, f"out_{algorithm}_{precision}.mtx", s, x, y, 1.5, precision)


def main():
    bench, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    written_operands(bench, folder)
    read_operands(bench, folder)


if __name__ == "__main__":
    main()
