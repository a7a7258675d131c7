#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
"""Times SciPy's Matrix Market reader; the columns are those of `tessera_bench --op read`, on one thread."""

import argparse
import os
import statistics
import sys
import time

# SciPy's current reader takes as many threads as it finds; the comparison is between single cores.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import scipy  # noqa: E402
import scipy.io  # noqa: E402


def readers():
    """Name and function of every reader this SciPy has: the compiled one came with 1.12."""
    found = []
    try:
        import scipy.io._fast_matrix_market as fast

        fast.PARALLELISM = 1
        found.append(("scipy.io.mmread", lambda f: fast.mmread(f)))
    except ImportError:
        pass
    try:
        from scipy.io._mmio import mmread

        found.append(("scipy.io, Python reader" if found else "scipy.io.mmread", mmread))
    except ImportError:
        if not found:
            found.append(("scipy.io.mmread", scipy.io.mmread))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", help="Matrix Market files (.mtx, .mtx.gz)")
    parser.add_argument("--repeat", type=int, default=5, help="readings a median is taken from")
    parser.add_argument("--csr", action="store_true", help="include the conversion to CSR, which tessera_bench includes")
    arguments = parser.parse_args()
    print(f"SciPy {scipy.__version__}")
    print(f"{'file':32} {'entries':>12} {'MB':>10} {'time':>12} {'M entries/s':>16} {'MB/s':>10}")
    for name in arguments.files:
        try:
            entries = scipy.io.mminfo(name)[2]
        except (OSError, ValueError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            return 3
        megabytes = os.path.getsize(name) / 1e6
        short = os.path.basename(name)
        for ending in (".gz", ".mtx"):
            short = short[: -len(ending)] if short.endswith(ending) else short
        for label, read in readers():
            samples = []
            for _ in range(max(1, arguments.repeat)):
                begin = time.perf_counter()
                matrix = read(name)
                if arguments.csr and hasattr(matrix, "tocsr"):
                    matrix = matrix.tocsr()
                samples.append(time.perf_counter() - begin)
            seconds = statistics.median(samples)
            print(
                f"{short:32} {entries:12d} {megabytes:10.1f} {1e3 * seconds:9.1f} ms "
                f"{1e-6 * entries / seconds:16.2f} {megabytes / seconds:10.1f}  {label}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
