#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Memory of AttentionPlan beyond operands, results and the CSR arrays, as a tool of Kokkos sees it allocated.

    PYTHONPATH=build/release/python perf_test/python/attention_memory.py [--heads 1,8] [--csv FILE] [PATTERN...]

A PATTERN is a Matrix Market file or one that attention_patterns.py makes. Without patterns, 65536 rows whose entries
grow from 4 to 256 per row. Per pattern, algorithm and number of heads:

    plan        kept by a plan of the forward pass, per entry, and of both passes
    set-up      at most while the plan is made, beyond what it keeps
    forward     kept by the first apply, per row, for that many heads; "again": allocations of the second apply
    backward    the same of backward()
    scores      what a score per entry and head would be, per row, to compare with: FP32

The tool is compiled with c++ (CXX), and the plan's numbers, which it does not read, are not counted.
"""

import argparse
import csv
import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile

import torch

import attention_patterns as patterns

USUAL = [f"entries:rows=65536,degree={degree}" for degree in (4, 16, 64, 256)]


class Tool:
    """Has to be there before Kokkos is initialised."""

    def __init__(self, folder):
        source = pathlib.Path(__file__).with_name("Tessera_MemoryTool.cpp")
        path = str(pathlib.Path(folder) / "memory_tool.so")
        subprocess.run([os.environ.get("CXX", "c++"), "-std=c++17", "-O1", "-shared", "-fPIC", str(source), "-o", path],
                       check=True)
        # The first is the variable's name up to Kokkos 3.6.
        os.environ["KOKKOS_PROFILE_LIBRARY"] = os.environ["KOKKOS_TOOLS_LIBS"] = path
        library = ctypes.CDLL(path)
        for name in ("now", "most", "count"):
            function = getattr(library, "tessera_memory_" + name)
            function.restype = ctypes.c_int64
            setattr(self, name, function)
        self.reset = library.tessera_memory_reset


class Step:
    """Bytes that are kept of what happens inside, bytes at most beyond these, and allocations."""

    def __init__(self, tool, device):
        self.tool, self.device = tool, device

    def __enter__(self):
        self.before = self.tool.now()
        self.tool.reset()
        return self

    def __exit__(self, *_):
        if self.device == "cuda":
            torch.cuda.synchronize()
        self.kept = self.tool.now() - self.before
        self.besides = self.tool.most() - self.before - self.kept
        self.allocations = self.tool.count()


def measure(tessera, tool, pattern, algorithm, heads, options):
    device = {"host": "cpu"}.get(tessera.build()["device"], tessera.build()["device"])
    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}[options.dtype]
    indptr, indices = pattern.tensors(device)
    numbers = torch.zeros(pattern.entries, dtype=dtype, device=device)
    make = lambda: torch.randn(heads, pattern.rows, options.dimension, device=device).to(dtype)
    q, k, v, grad, out = (make() for _ in range(5))
    lse = torch.empty(heads, pattern.rows, dtype=torch.float32, device=device)
    into = tuple(torch.empty_like(t) for t in (q, k, v))
    step = lambda: Step(tool, device)
    arguments = dict(algorithm=algorithm, backend=options.backend, dimension_hint=options.dimension)
    with step() as plan_step:
        plan = tessera.AttentionPlan(indptr, indices, numbers, (pattern.rows,) * 2, **arguments)
    with step() as forward:
        plan.apply(q, k, v, out=out, lse=lse)
    with step() as forward_again:
        plan.apply(q, k, v, out=out, lse=lse)
    facts = plan.statistics()
    del plan
    with step() as both_step:
        plan = tessera.AttentionPlan(indptr, indices, numbers, (pattern.rows,) * 2, prepare_backward=True, **arguments)
    plan.apply(q, k, v, out=out, lse=lse)
    with step() as backward:
        plan.backward(grad, q, k, v, out, lse, into=into)
    with step() as backward_again:
        plan.backward(grad, q, k, v, out, lse, into=into)
    return {"pattern": pattern.name, "rows": pattern.rows, "entries": pattern.entries, "algorithm": facts["algorithm"],
            "backend": facts["backend"], "heads": heads, "plan_per_entry": plan_step.kept / pattern.entries,
            "both_per_entry": both_step.kept / pattern.entries, "setup_per_entry": plan_step.besides / pattern.entries,
            "forward_per_row": forward.kept / pattern.rows, "backward_per_row": backward.kept / pattern.rows,
            "again": forward_again.allocations + backward_again.allocations,
            "scores_per_row": 4 * heads * pattern.entries / pattern.rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", default=USUAL)
    parser.add_argument("--dtype", default="fp16", choices=["fp16", "bf16", "fp32"])
    parser.add_argument("--dimension", type=int, default=64)
    parser.add_argument("--heads", default="1,8")
    parser.add_argument("--algorithms", default="fused,chain")
    parser.add_argument("--backend", default="auto", help="emulated-nvidia: a device's formats and scratch, on hosts, slowly")
    parser.add_argument("--csv")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(folder)
        import tessera

        print(f"{options.dtype}, d = {options.dimension}, bytes\n\n| pattern | rows | entries | algorithm | heads | plan "
              "per entry | plan of both per entry | set-up per entry | forward per row | backward per row | again | "
              "scores per row |\n|---|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|")
        for text in options.patterns:
            pattern = patterns.load(text)
            for algorithm in options.algorithms.split(","):
                for heads in map(int, options.heads.split(",")):
                    row = measure(tessera, tool, pattern, algorithm, heads, options)
                    rows.append(row)
                    print("| " + " | ".join(f"{x:.1f}" if isinstance(x, float) else str(x)
                                            for key, x in row.items() if key != "backend") + " |", flush=True)
        chains = [row for row in rows if row["algorithm"] == "chain"]
        if chains and all(row["forward_per_row"] == 0 for row in chains):
            print("nothing was counted: did Kokkos load the tool?")
            return 1
    if options.csv and rows:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows({k: f"{x:.6g}" if isinstance(x, float) else x for k, x in row.items()} for row in rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
