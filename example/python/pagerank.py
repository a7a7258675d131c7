#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""PageRank of a graph of the internet's providers: one plan, many products without a new array.

    PYTHONPATH=build/debian/python python3 example/python/pagerank.py [FILE.mtx.gz]
"""

import pathlib
import sys

import numpy
import scipy.io
import scipy.sparse
import tessera

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"


def pagerank(links, damping=0.85, tolerance=1e-12):
    """links[i, j] != 0: j links to i. @return  the ranks, and how many products they took"""
    n = links.shape[0]
    out = numpy.asarray(links.sum(axis=0)).ravel()
    weights = scipy.sparse.csr_matrix(links @ scipy.sparse.diags(numpy.divide(1.0, out, where=out > 0, out=0 * out)))
    plan = tessera.SpmvPlan(weights)
    rank, new = numpy.full(n, 1.0 / n), numpy.empty(n)
    for step in range(1, 1000):
        new[:] = (1 - damping) / n + damping / n * rank[out == 0].sum()
        plan.apply(rank, out=new, alpha=damping, beta=1.0)
        change = abs(new - rank).sum()
        rank, new = new, rank
        if change < tolerance:
            break
    return rank, step


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else DATA / "as-caida20071105.mtx.gz"
    links = abs(scipy.sparse.csr_matrix(scipy.io.mmread(path), dtype="float64"))
    rank, steps = pagerank(links)
    best = numpy.argsort(-rank)[:5]
    print(f"{links.shape[0]} nodes, {links.nnz} links, {steps} products; first:",
          ", ".join(f"{node} ({rank[node]:.4f})" for node in best))
    # The ranks are shares, and a stationary point of the same iteration by SciPy.
    out = numpy.asarray(links.sum(axis=0)).ravel()
    share = numpy.divide(rank, out, where=out > 0, out=0 * rank)
    again = 0.15 / len(rank) + 0.85 * (links @ share + rank[out == 0].sum() / len(rank))
    return 0 if abs(rank.sum() - 1) < 1e-10 and abs(again - rank).sum() < 1e-10 else 1


if __name__ == "__main__":
    sys.exit(main())
