#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Lets SciPy check what tessera_bench --op spgemm writes: C = A A, A A^T of matrices that are not square, and A B.

    check_spgemm.py TESSERA_BENCH FOLDER

The numbers of A are random, so that no sum cancels and the columns of C are SciPy's. A sum of k products in a precision
with unit roundoff u errs by k u / (1 - k u) times their magnitudes, SciPy's in double likewise: |A| |A| and the product
of the pattern give both. Ends with 1 and a message where a number errs by more.
"""

import pathlib
import subprocess
import sys

from check_spmm import ROUNDOFF, TYPE  # first: it looks for a Python that has SciPy

import numpy
import scipy.io
import scipy.sparse


def check(bench, folder, name, a, b, precision, algorithm):
    """b: None: the benchmark's choice."""
    scipy.io.mmwrite(folder / f"{name}.mtx", a, precision=17)
    line = [bench, "--op", "spgemm", "--baseline", "none", "--budget", "0.01", "--repeat", "3", "--precision", precision,
            "--algorithm", algorithm, "--matrix", f"{name}.mtx", "--write-result", f"{name}_c.mtx"]
    if b is not None:
        scipy.io.mmwrite(folder / f"{name}_b.mtx", b, precision=17)
        line += ["--matrix-b", f"{name}_b.mtx"]
    result = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
    if "no CUDA device" in result.stderr or "runs on host" in result.stdout + result.stderr:
        print(f"bench skipped: {result.stderr}")
        sys.exit(0)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, line))}: ended with {result.returncode}\n{result.stdout}{result.stderr}")
    a = a.astype(TYPE[precision]).astype(numpy.float64)
    if b is not None:
        b = b.astype(TYPE[precision]).astype(numpy.float64)
    else:
        b = a if a.shape[0] == a.shape[1] else a.T.tocsr()
    ones = [scipy.sparse.csr_matrix((numpy.ones(m.nnz), m.indices, m.indptr), m.shape) for m in (a, b)]
    expected, magnitude, products, found = (m.tocsr() for m in (
        a @ b, abs(a) @ abs(b), ones[0] @ ones[1], scipy.io.mmread(folder / f"{name}_c.mtx")))
    for m in (expected, magnitude, products, found):
        m.sort_indices()
    if not (numpy.array_equal(found.indptr, expected.indptr) and numpy.array_equal(found.indices, expected.indices)):
        sys.exit(f"{name}, {algorithm} in {precision}: other columns than SciPy's")
    k = products.data
    bound = sum(k * u / (1 - k * u) for u in (ROUNDOFF[precision], 2.0**-53)) * magnitude.data
    worst = numpy.max(abs(found.data - expected.data) / bound, initial=0)
    if not worst <= 1:
        sys.exit(f"{name}, {algorithm} in {precision}: {worst} times the bound")
    print(f"{name}, {algorithm} in {precision}: {found.nnz} entries, {worst:.3f} of the bound")


def main():
    bench, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng(7)

    def matrix(rows, cols, density):
        return scipy.sparse.random(rows, cols, density=density, format="csr", random_state=random,
                                   data_rvs=lambda n: random.uniform(-1, 1, n))

    for name, a, b in (("square", matrix(300, 300, 0.03), None), ("wide", matrix(60, 5000, 0.004), None),
                       ("tall", matrix(300, 40, 0.05), None),
                       ("two", matrix(70, 400, 0.05), matrix(400, 90, 0.04))):
        for precision in ("fp64", "fp32"):
            few_diagonals = ("dia",) if name in ("square", "two") else ()
            for algorithm in ("auto", "spa", "hash", "heap", "coo", "binned", "ell") + few_diagonals:
                check(bench, folder, name, a, b, precision, algorithm)


if __name__ == "__main__":
    main()
