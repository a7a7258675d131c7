#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""SpmvPlan and SpmmPlan with arrays of CuPy against cupyx.scipy.sparse, which calls cuSPARSE.

    PYTHONPATH=build/release/python python3 perf_test/python/compare_cupy.py [--dtypes float64,float32] [--columns 1,32,128] FILE...

Times are medians by events of many calls in a row, each with a new result, warm; column 1 is a vector. Results are compared.
"""

import argparse
import pathlib
import statistics

import cupy
import cupyx.scipy.sparse
import numpy
import scipy.io
import scipy.sparse
import tessera


def microseconds(function, runs=7):
    def seconds(calls):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        for _ in range(calls):
            function()
        end.record()
        end.synchronize()
        return 1e3 * cupy.cuda.get_elapsed_time(begin, end) / calls

    seconds(3)
    calls = max(3, min(1000, int(5000 / seconds(3))))
    return statistics.median(seconds(calls) for _ in range(runs))


def compare(name, A, columns, dtype):
    """Time of CuPy over ours."""
    shape = (A.shape[1],) if columns == 1 else (A.shape[1], columns)
    B = cupy.asarray(numpy.random.default_rng(1).uniform(-1, 1, shape).astype(dtype))
    plan = tessera.SpmvPlan(A) if columns == 1 else tessera.SpmmPlan(A, num_columns_hint=columns)
    right, ours = (cupy.asnumpy(x @ B).astype("float64") for x in (A.astype("float64"), plan))
    off = numpy.linalg.norm(ours - right) / max(numpy.linalg.norm(right), 1e-300)
    if not off < (1e-5 if dtype == "float32" else 1e-13):
        raise SystemExit(f"{name}: differs by {off:.1e}")
    theirs, ours = microseconds(lambda: A @ B), microseconds(lambda: plan @ B)
    print(f"{name:20} {dtype:8} {columns:4} columns: CuPy {theirs:8.1f} us, Tessera {ours:8.1f} us, ratio {theirs / ours:.2f}",
          flush=True)
    return theirs / ours


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtypes", default="float64,float32")
    parser.add_argument("--columns", default="1,32,128")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    print(tessera.build(), "CuPy", cupy.__version__, cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())
    ratios = {}
    for file in options.files:
        matrix = scipy.sparse.csr_matrix(scipy.io.mmread(file))
        matrix.sort_indices()
        for dtype in options.dtypes.split(","):
            A = cupyx.scipy.sparse.csr_matrix(matrix.astype(dtype))
            for columns in map(int, options.columns.split(",")):
                ratios.setdefault((dtype, columns), []).append(compare(pathlib.Path(file).name.split(".")[0], A, columns, dtype))
    for (dtype, columns), found in ratios.items():
        print(f"{dtype:8} {columns:4} columns: geometric mean {statistics.geometric_mean(found):.2f}, least {min(found):.2f}")


if __name__ == "__main__":
    main()
