#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""What a call of tessera and of tessera.torch takes of the host, beside PyTorch's own, where there is next to nothing to
compute: a matrix of 10 x 10 with 30 entries, float32, 4 columns.

    PYTHONPATH=build/release/python python3 perf_test/python/torch_calls.py [--rounds 60]

First calls in a loop, with a backward pass each where that is said; then chains of 20, whose backward pass is one, per step.
Least of the rounds' means, launches included and not waited for; on hosts processor time, so that other programs do not count.
"""

import argparse
import time

import tessera
import tessera.torch
import torch

PLACE = {"host": "cpu"}.get(tessera.build()["device"], tessera.build()["device"])
clock = time.perf_counter if PLACE == "cuda" else time.process_time
STEPS = 20


class Nothing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx, grad):
        return torch.empty_like(grad)


class Csr(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A, transposed, x):
        ctx.transposed = transposed
        return A @ x

    @staticmethod
    def backward(ctx, grad):
        return None, None, ctx.transposed @ grad


def wait():
    if PLACE == "cuda":
        torch.cuda.synchronize()


def least(functions, rounds, calls):
    """us per call of each; they take turns."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(rounds):
        for name, function in functions.items():
            function()
            wait()
            begin = clock()
            for _ in range(calls):
                function()
            best[name] = min(best[name], 1e6 * (clock() - begin) / calls)
            wait()
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    rounds = parser.parse_args().rounds
    indptr = torch.arange(0, 31, 3, dtype=torch.int32, device=PLACE)
    indices = torch.tensor([(i + 3 * k) % 10 for i in range(10) for k in range(3)], dtype=torch.int32, device=PLACE)
    values, b, grad = torch.ones(30, device=PLACE), torch.randn(10, 4, device=PLACE), torch.ones(10, 4, device=PLACE)
    W, x, out = torch.randn(10, 10, device=PLACE), b.clone().requires_grad_(), torch.empty_like(b)
    v, y = torch.ones(10, device=PLACE), torch.ones(10, device=PLACE)
    heads = [torch.randn(10, 32, device=PLACE).half().requires_grad_() for _ in range(3)]
    ones = torch.ones_like(heads[0])
    spmv, spmm = (plan(indptr, indices, values, (10, 10)) for plan in (tessera.SpmvPlan, tessera.SpmmPlan))
    A = torch.sparse_csr_tensor(indptr, indices, values, (10, 10))
    transposed = A.to_dense().t().to_sparse_csr()

    def product(h, constant=True):
        return tessera.torch.spmm(indptr, indices, values, h, constant=constant)

    def plain():
        with torch.no_grad():
            return product(b)

    def both(function, inputs, grad):
        return lambda: torch.autograd.grad(function(), inputs, grad)

    calls = {"SpmvPlan.apply, out=": lambda: spmv.apply(v, out=y),
             "SpmmPlan.apply, out=": lambda: spmm.apply(b, out=out), "SpmmPlan.apply": lambda: spmm.apply(b),
             "torch.mm": lambda: torch.mm(W, b), "spmm, no gradients": plain, "spmm": lambda: product(x),
             "spmm, both passes": both(lambda: product(x), x, grad),
             "spmm, both, values change": both(lambda: product(x, False), x, grad),
             "torch.mm, both": both(lambda: torch.mm(W, x), x, grad),
             "nothing, both": both(lambda: Nothing.apply(x), x, grad),
             "attention FP16, both": both(lambda: tessera.torch.attention(indptr, indices, *heads), heads, ones)}
    for name, us in least(calls, rounds, 50).items():
        print(f"{name:28} {us:7.2f} us", flush=True)

    def chain(step, backward):
        def run():
            h = x
            for _ in range(STEPS):
                h = step(h)
            return torch.autograd.grad(h, x, grad) if backward else h

        return run

    steps = {"relu": torch.relu, "torch.mm": lambda h: W @ h, "nothing": Nothing.apply, "spmm": product,
             "torch.sparse_csr": lambda h: Csr.apply(A, transposed, h)}
    chains = {f"{name}, {what}": chain(step, what == "both") for name, step in steps.items() for what in ("forward", "both")}
    for name, us in least(chains, rounds, 5).items():
        print(f"chain of {STEPS}: {name:25} {us / STEPS:7.2f} us per step", flush=True)


if __name__ == "__main__":
    main()
