#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Lets SciPy check what tessera_bench --op spmm writes: C = alpha A B + beta C.

    check_spmm.py TESSERA_BENCH FOLDER

The program gets operands from files (--x, --y) and writes its own (--write-operands). An element of C may err by

    2 (k + 4) u (|alpha| |A| |B| + |beta C0|)

with k entries in its row of A and u the unit roundoffs of the program's sums and of SciPy's together: k rounded products
in any order err by at most k u / (1 - k u) times the sum of the magnitudes, alpha, beta, their sum and the store add
four roundings, and the factor 2 covers 1 / (1 - k u). Ends with 1 and a message where it errs by more.
"""

import pathlib
import subprocess
import sys

try:
    import numpy
    import scipy.io
    import scipy.sparse
except ImportError as error:
    debian = pathlib.Path("/usr/bin/python3")  # what python3-scipy belongs to; another one may come first in PATH
    if debian.exists() and pathlib.Path(sys.executable) != debian:
        sys.exit(subprocess.run([debian, *sys.argv], check=False).returncode)
    print(f"bench skipped: {error}")
    sys.exit(0)

ROUNDOFF = {"fp64": 2.0**-53, "fp32": 2.0**-24}
TYPE = {"fp64": numpy.float64, "fp32": numpy.float32}


def run(bench, folder, *arguments):
    """The program must end with 0. It says "no CUDA device" where its Kokkos wants one that is not here."""
    line = [bench, "--op", "spmm", "--baseline", "none", "--budget", "0.01", "--repeat", "3", *arguments]
    result = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
    if "no CUDA device" in result.stderr:
        print(f"bench skipped: {result.stderr}")
        sys.exit(0)
    if result.returncode != 0:
        sys.exit(f"{' '.join(line)}: ended with {result.returncode}\n{result.stdout}{result.stderr}")


def check(folder, result, a, b, c, alpha, beta, precision):
    """Compares folder/result with alpha a b + beta c, each operand rounded to the precision first."""
    rounded = [numpy.asarray(x, dtype=TYPE[precision]).astype(numpy.float64) for x in (a.data, b, c)]
    a = scipy.sparse.csr_matrix((rounded[0], a.indices, a.indptr), shape=a.shape)
    b, c = rounded[1:]
    got = scipy.io.mmread(folder / result)
    expected = alpha * (a @ b) + beta * c
    magnitude = abs(alpha) * (abs(a) @ abs(b)) + abs(beta) * abs(c)
    entries = numpy.diff(a.indptr)[:, None]
    bound = 2 * (entries + 4) * (ROUNDOFF[precision] + 2.0**-53) * magnitude
    if got.shape != expected.shape:
        sys.exit(f"{result}: {got.shape} instead of {expected.shape}")
    error = abs(got - expected)
    if not (error <= bound).all():
        at = numpy.unravel_index(numpy.argmax(error - bound), error.shape)
        sys.exit(f"{result}: element {at} is {got[at]}, SciPy has {expected[at]}, the bound is {bound[at]}")
    print(f"{result}: {got.shape[0]} x {got.shape[1]}, largest error {error.max():.3g}, all within the bound")


def written_operands(bench, folder):
    """The program's own numbers, read by SciPy."""
    run(bench, folder, "--matrix", "gen:circuit:n=700", "--columns", "3,8", "--algorithm", "csr", "--alpha", "-2",
        "--beta", "0.5", "--write-operands", ".", "--write-result", "own.mtx")
    a = scipy.io.mmread(folder / "A.mtx").tocsr()
    for n in (3, 8):
        b, c = (scipy.io.mmread(folder / f"{name}_N{n}.mtx") for name in "BC")
        check(folder, f"own_N{n}.mtx", a, b, c, -2.0, 0.5, "fp64")


def read_operands(bench, folder):
    """SciPy's numbers, read by the program: every algorithm a host has, both layouts, both types of offsets."""
    random = numpy.random.default_rng(7)
    a = scipy.sparse.random(211, 97, density=0.06, random_state=7, data_rvs=random.standard_normal).tocsr()
    b, c = random.standard_normal((97, 5)), random.standard_normal((211, 5))
    for name, matrix in (("in_A", a), ("in_B", b), ("in_C", c)):
        scipy.io.mmwrite(folder / f"{name}.mtx", matrix, precision=17)
    files = ["--matrix", "in_A.mtx", "--x", "in_B.mtx", "--write-result", "out.mtx"]
    for layout, offset_bits in (("right", "32"), ("left", "64")):
        run(bench, folder, *files, "--y", "in_C.mtx", "--alpha", "1.5", "--beta", "-1", "--layout", layout,
            "--offset-bits", offset_bits, "--algorithm", "csr,gespmm", "--precision", "fp64,fp32")
        for algorithm in ("csr", "gespmm"):
            for precision in ("fp64", "fp32"):
                check(folder, f"out_{algorithm}_{precision}.mtx", a, b, c, 1.5, -1.0, precision)
    run(bench, folder, *files, "--algorithm", "csr", "--columns", "5")
    check(folder, "out.mtx", a, b, numpy.zeros((211, 5)), 1.0, 0.0, "fp64")


def main():
    bench, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    written_operands(bench, folder)
    read_operands(bench, folder)


if __name__ == "__main__":
    main()
