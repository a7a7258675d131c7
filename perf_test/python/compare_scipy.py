#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""What a call from Python costs, SpmmPlan against SciPy's A @ B, and spgemm() against its A @ A. The programs take turns;
each time is the least.

    PYTHONPATH=build/debian/python python3 perf_test/python/compare_scipy.py [--dtype TYPE] [--columns 32,128] [--rounds 15]
                                                                                   FILE...
    ... --spgemm FILE...    A A alone, of square matrices; SciPy leaves the columns of C unsorted, ours ascend
    OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive ... --calls 0 --rounds 2000 FILE...    with a Kokkos that has OpenMP, where other
                            programs use the processors as well: the least needs both threads to run at once
"""

import argparse
import pathlib
import time

import numpy
import scipy.io
import scipy.sparse
import tessera


def least(functions, rounds, calls=1):
    """Seconds per call of each, which take turns."""
    times = [numpy.inf] * len(functions)
    for _ in range(rounds):
        for i, function in enumerate(functions):
            begin = time.perf_counter()
            for _ in range(calls):
                function()
            times[i] = min(times[i], (time.perf_counter() - begin) / calls)
    return times


def print_calls(rounds):
    """Of a matrix of 10 x 10 with 30 entries: next to nothing to compute."""
    indptr, data = numpy.arange(0, 31, 3, dtype="int32"), numpy.ones(30)
    indices = numpy.array([(i + 3 * k) % 10 for i in range(10) for k in range(3)], "int32")
    spmv, spmm = (plan(indptr, indices, data, (10, 10)) for plan in (tessera.SpmvPlan, tessera.SpmmPlan))
    x, y, B, C = numpy.ones(10), numpy.ones(10), numpy.ones((10, 4)), numpy.ones((10, 4))
    attention = tessera.AttentionPlan(indptr, indices, data, (10, 10))
    names = ["nothing", "spmv, out=", "spmv", "spmm, out=", "spmm", "attention, out=", "attention", "row_softmax, out="]
    functions = [lambda: None, lambda: spmv.apply(x, out=y), lambda: spmv.apply(x), lambda: spmm.apply(B, out=C),
                 lambda: spmm.apply(B), lambda: attention.apply(B, B, B, out=C, lse=y), lambda: attention.apply(B, B, B),
                 lambda: tessera.row_softmax(indptr, data, out=data, check=False)]
    for name, seconds in zip(names, least(functions, rounds, 1000)):
        print(f"a call of {name:17} {1e6 * seconds:.2f} us")


def print_products(files, dtype):
    """Of whole calls, checks of the arrays included. C is compared, so that no ratio of a wrong one is printed."""
    ratios = []
    for file in files:
        A = read(file, dtype)
        theirs, ours = A @ A, tessera.spgemm(A, A)
        difference = abs(theirs - ours).max() if theirs.nnz else 0
        # Sums in other orders, of numbers that may cancel: n products err by n eps / 2 of the sum of their magnitudes,
        # in either program.
        ones = A.copy()
        ones.data[:] = 1
        bound = (ones @ ones).max() * numpy.finfo(dtype).eps * (abs(A) @ abs(A)).max() if theirs.nnz else 0
        if ours.nnz < theirs.nnz or difference > bound:
            raise SystemExit(f"{file}: C differs by {difference}")
        entries = ours.nnz
        del theirs, ours
        seconds = least([lambda: A @ A, lambda: tessera.spgemm(A, A)], 7)
        ratios.append(seconds[0] / seconds[1])
        print(f"{pathlib.Path(file).name:24} {A.shape[0]:8} rows {A.nnz:9} entries, C {entries:10}: "
              f"SciPy {1e3 * seconds[0]:9.2f} ms, spgemm {1e3 * seconds[1]:9.2f} ms, ratio {ratios[-1]:.2f}", flush=True)
    if ratios:
        print(f"A A: geometric mean {numpy.exp(numpy.log(ratios).mean()):.2f}, least {min(ratios):.2f}")


def read(file, dtype):
    A = scipy.sparse.csr_matrix(scipy.io.mmread(file)).astype(dtype)
    A.sort_indices()
    return A


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--columns", default="32,128")
    parser.add_argument("--rounds", type=int, default=15, help="of SpMM, of which the least counts")
    parser.add_argument("--calls", type=int, default=200, help="rounds of 8000 single calls, of which the least counts")
    parser.add_argument("--spgemm", action="store_true")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    print(tessera.build(), "SciPy", scipy.__version__)
    if options.spgemm:
        print_products(options.files, options.dtype)
        return
    if options.calls > 0:
        print_calls(options.calls)
    for columns in map(int, options.columns.split(",")):
        ratios = []
        for file in options.files:
            A = read(file, options.dtype)
            B = numpy.random.default_rng(1).uniform(-1, 1, (A.shape[1], columns)).astype(options.dtype)
            plan = tessera.SpmmPlan(A, num_columns_hint=columns)
            theirs, ours = least([lambda: A @ B, lambda: plan @ B], options.rounds)
            ratios.append(theirs / ours)
            print(f"{pathlib.Path(file).name:24} {A.shape[0]:8} rows {A.nnz:9} entries, {columns:3} columns: "
                  f"SciPy {1e3 * theirs:8.2f} ms, plan @ B {1e3 * ours:8.2f} ms, ratio {ratios[-1]:.2f}", flush=True)
        if ratios:
            mean = numpy.exp(numpy.log(ratios).mean())
            print(f"{columns} columns: geometric mean {mean:.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
