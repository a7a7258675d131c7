#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""tessera.torch.attention against PyTorch's FlexAttention and scaled_dot_product_attention with the same mask: forward,
forward and backward, memory, errors.

    PYTHONPATH=build/release/python perf_test/python/compare_attention.py --csv attention.csv
    ... [--dtype fp16|bf16] [--heads 1,8] [--methods tessera,flex,sdpa,padded] PATTERN...

A PATTERN is a Matrix Market file or one that attention_patterns.py makes (which says how). Methods:

    tessera   tessera.torch.attention
    flex      flex_attention under torch.compile, with the block mask of the pattern (tiles of 128 x 128)
    sdpa      scaled_dot_product_attention with a dense boolean mask, up to 16384 rows
    padded    scaled_dot_product_attention of a batch of graphs padded to the largest; padding itself is not timed

A time is the median of --rounds, each of as many calls, one after the other, as take 2 ms, by events of the device (on
hosts by the clock), all warm, gradients by q, k and v. Memory is what PyTorch allocates at the peak of a forward and
backward pass, gradients and O included, and what the mask, or the plan with its CSR arrays, keeps. The error is the
largest of all errors over their bounds in outputs of 48 rows and gradients of 12 columns (of fewer, where these have many
rows), FP64 the reference: more than 1 is wrong, and then there is no ratio.
"""

import argparse
import csv
import gc
import statistics
import sys
import time

import torch
from torch.nn.functional import scaled_dot_product_attention

import attention_patterns as patterns
import tessera
import tessera.torch

DEVICE = {"host": "cpu"}.get(tessera.build()["device"], tessera.build()["device"])
TYPES = {"fp16": (torch.float16, 2.0**-11), "bf16": (torch.bfloat16, 2.0**-8)}
USUAL = ["batch:graphs=1000,least=20,most=40", "batch:graphs=3000,least=20,most=40,degree=4",
         "blocks:rows=8192,size=64,density=0.05", "blocks:rows=8192,size=64,density=0.1",
         "blocks:rows=8192,size=64,density=0.25", "blocks:rows=8192,size=128,density=0.05",
         "blocks:rows=8192,size=128,density=0.1", "blocks:rows=8192,size=128,density=0.25",
         "band:rows=8192,width=256"]


# --- the methods: each a function of q, k, v, (heads, rows, d) -----------------------------------------------------------


def with_tessera(pattern):
    indptr, indices = pattern.tensors(DEVICE)

    def plan_bytes():
        """Of the plan of both passes and of the CSR arrays that it keeps; its scratch: attention_memory.py."""
        plan = list(tessera.torch._cache.entries.values())[-1].made.plan
        facts = plan.statistics()
        return facts["format_bytes"] + facts["map_bytes"]

    return lambda q, k, v: tessera.torch.attention(indptr, indices, q, k, v), plan_bytes


def with_flex(pattern):
    from torch.nn.attention.flex_attention import flex_attention

    mask, size = patterns.block_mask(pattern, DEVICE)
    compiled = torch.compile(flex_attention, dynamic=False)
    return lambda q, k, v: compiled(q[None], k[None], v[None], block_mask=mask)[0], lambda: size


def with_sdpa(pattern):
    if pattern.rows > 16384:
        return None
    mask = patterns.dense_mask(pattern, DEVICE)
    return (lambda q, k, v: scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=mask)[0],
            lambda: mask.numel())


METHODS = {"tessera": with_tessera, "flex": with_flex, "sdpa": with_sdpa}


# --- the reference --------------------------------------------------------------------------------------------------------


class Reference:
    """A few rows of O and dQ, a few columns' dK and dV, of one head, in FP64, with bounds of their errors.

    With u the rounding of the 16-bit type, weights p and gradients ds of scores are rounded to it before they are
    summed, in FP32, and results once more. So O errs by u (sum of p |v|) and u |o|; ds = p (dp - delta), where delta is
    the sum of dO O with the rounded O, errs by u |ds| and p u (sum of |dO| |O|), and with it dQ and dK; all twice, since
    scores and p have errors of their own, of d roundings of FP32, and libraries may round once more. Below its normal
    numbers a type of 16 bits rounds to multiples: 2^-24 per entry that is summed, of weights up to 1.
    """

    def __init__(self, pattern, q, k, v, grad, unit, rows=48, columns=12):
        indptr, indices = (t.long() for t in pattern.tensors(q.device))
        self.q, self.k, self.v, self.grad = (t.double() for t in (q, k, v, grad))
        self.scale, self.unit = q.shape[1] ** -0.5, unit
        generator = torch.Generator().manual_seed(3)
        self.rows = torch.randperm(pattern.rows, generator=generator)[:rows].sort().values.to(q.device)
        self.columns = torch.randperm(pattern.rows, generator=generator)[:columns].to(q.device)
        every = torch.repeat_interleave(torch.arange(pattern.rows, device=q.device), indptr.diff())
        self.o, self.o_bound, self.dq, self.dq_bound = self._by_rows(indptr, indices)
        self._by_columns(indptr, indices, every)

    def _entries(self, indptr, indices, rows):
        """(which of the rows, column, weight) of their entries."""
        counts = indptr[rows + 1] - indptr[rows]
        of = torch.repeat_interleave(torch.arange(len(rows), device=rows.device), counts)
        at = torch.arange(len(of), device=rows.device) - (counts.cumsum(0) - counts)[of] + indptr[rows][of]
        columns = indices[at]
        scores = self.scale * (self.q[rows][of] * self.k[columns]).sum(1)
        top = torch.full((len(rows),), -torch.inf, dtype=torch.float64, device=rows.device)
        weights = torch.exp(scores - top.scatter_reduce(0, of, scores, "amax")[of])
        return of, columns, weights / self._sum(len(rows), of, weights)[of]

    @staticmethod
    def _sum(n, of, x):
        return torch.zeros(n, *x.shape[1:], dtype=x.dtype, device=x.device).index_add_(0, of, x)

    def _row_facts(self, indptr, indices, rows):
        of, columns, p = self._entries(indptr, indices, rows)
        o = self._sum(len(rows), of, p[:, None] * self.v[columns])
        grad = self.grad[rows]
        dp = (grad[of] * self.v[columns]).sum(1)
        ds = p * (dp - (grad * o).sum(1)[of])
        # Sizes of what ds is the difference of, and delta's error, per entry.
        error = self.unit * (p * (dp.abs() + (grad * o).sum(1).abs()[of] + (grad * o).abs().sum(1)[of])) + 2.0**-24
        return of, columns, p, o, ds, error

    def _by_rows(self, indptr, indices):
        n, u = len(self.rows), self.unit
        of, columns, p, o, ds, error = self._row_facts(indptr, indices, self.rows)
        o_bound = 2 * (self._sum(n, of, (u * p + 2.0**-24)[:, None] * self.v[columns].abs()) + u * o.abs()) + 2.0**-24
        dq = self.scale * self._sum(n, of, ds[:, None] * self.k[columns])
        dq_bound = 2 * (self.scale * self._sum(n, of, error[:, None] * self.k[columns].abs()) + u * dq.abs()) + 2.0**-24
        return o, o_bound, dq, dq_bound

    def _by_columns(self, indptr, indices, every):
        while True:
            n, u = len(self.columns), self.unit
            place = torch.full((indptr.numel() - 1,), -1, device=indices.device)
            place[self.columns] = torch.arange(n, device=indices.device)
            rows = every[place[indices] >= 0].unique()
            # All of these rows' entries are computed, with some numbers of d times 8 bytes for each.
            if n == 1 or int((indptr[rows + 1] - indptr[rows]).sum()) < 1 << 22:
                break
            self.columns = self.columns[:n // 3]
        of, columns, p, _, ds, error = self._row_facts(indptr, indices, rows)
        mine = place[columns] >= 0
        of, to, p, ds, error = rows[of[mine]], place[columns[mine]], p[mine], ds[mine], error[mine]
        self.dk = self.scale * self._sum(n, to, ds[:, None] * self.q[of])
        self.dk_bound = 2 * (self.scale * self._sum(n, to, error[:, None] * self.q[of].abs())
                             + u * self.dk.abs()) + 2.0**-24
        self.dv = self._sum(n, to, p[:, None] * self.grad[of])
        self.dv_bound = 2 * (self._sum(n, to, (u * p + 2.0**-24)[:, None] * self.grad[of].abs())
                             + u * self.dv.abs()) + 2.0**-24

    def error(self, o, d_q, d_k, d_v):
        """The largest error over its bound; None where gradients are not there."""
        pairs = [(o[self.rows], self.o, self.o_bound)]
        if d_q is not None:
            pairs += [(d_q[self.rows], self.dq, self.dq_bound), (d_k[self.columns], self.dk, self.dk_bound),
                      (d_v[self.columns], self.dv, self.dv_bound)]
        return max(float(((a.double() - b).abs() / bound).nan_to_num(torch.inf).max()) for a, b, bound in pairs)


# --- measuring ------------------------------------------------------------------------------------------------------------


def wait():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def seconds(function, calls):
    if DEVICE != "cuda":
        begin = time.perf_counter()
        for _ in range(calls):
            function()
        return (time.perf_counter() - begin) / calls
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for _ in range(calls):
        function()
    last.record()
    last.synchronize()
    return 1e-3 * first.elapsed_time(last) / calls


def median(function, rounds):
    """Of `rounds` times, each of so many calls as take 2 ms."""
    for _ in range(3):
        function()
    calls = max(1, min(100, int(2e-3 / max(1e-7, seconds(function, 3)))))
    return statistics.median(seconds(function, calls) for _ in range(rounds))


def peak(function):
    """Bytes that PyTorch allocates at most beyond what was there."""
    if DEVICE != "cuda":
        return 0
    gc.collect()
    wait()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    function()
    wait()
    return torch.cuda.max_memory_allocated() - before


class Operands:
    def __init__(self, pattern, heads, options):
        torch.manual_seed(1)
        dtype, self.unit = TYPES[options.dtype]
        make = lambda: torch.randn(heads, pattern.rows, options.dimension, device=DEVICE).to(dtype)
        self.q, self.k, self.v, self.grad = (make() for _ in range(4))
        # The first and the last head, as indexing that does no harm where these are one.
        self.checked = sorted({0, heads - 1})
        self.references = [Reference(pattern, *(t[h] for t in (self.q, self.k, self.v, self.grad)), self.unit)
                           for h in self.checked]

    def error(self, results):
        results = list(results) + [None] * (4 - len(results))
        return max(reference.error(*(None if t is None else t[h] for t in results))
                   for h, reference in zip(self.checked, self.references))


def measure(pattern, heads, method, operands, options):
    """A row of the table; None where the method does not apply."""
    unpad = lambda x: x
    q, k, v, grad = operands.q, operands.k, operands.v, operands.grad
    begin = time.perf_counter()
    if method == "padded":
        if pattern.kind != "batch":
            return None
        form = patterns.Padded(pattern, DEVICE)
        q, k, v, grad = (form.pad(t) for t in (q, k, v, grad))
        unpad = form.unpad
        function, bytes_of = (lambda q, k, v: scaled_dot_product_attention(q, k, v, attn_mask=form.mask),
                              lambda: form.mask.numel())
    else:
        made = METHODS[method](pattern)
        if made is None:
            return None
        function, bytes_of = made
    both = method != "flex" or DEVICE == "cuda"  # FlexAttention has no backward pass on hosts
    leaves = [t.detach().requires_grad_(both) for t in (q, k, v)]
    row = {"pattern": pattern.name, "rows": pattern.rows, "entries": pattern.entries, "heads": heads, "method": method}

    def step():
        out = function(*leaves)
        return (out, *torch.autograd.grad(out, leaves, grad))

    try:
        with torch.set_grad_enabled(both):
            results = step() if both else (function(*leaves),)
        wait()
        row["setup_ms"] = 1e3 * (time.perf_counter() - begin)
        row["error"] = operands.error([unpad(t.detach()) for t in results])
        del results
        # The same compiled function, so that nothing is compiled twice: it keeps the log-sum-exp.
        with torch.set_grad_enabled(both):
            row["forward_us"] = 1e6 * median(lambda: function(*leaves), options.rounds)
        if both:
            row["both_us"] = 1e6 * median(step, options.rounds)
            row["peak_mb"] = (peak(step) + bytes_of()) / 1e6
        row["kept_mb"] = bytes_of() / 1e6
    except (RuntimeError, NotImplementedError, tessera.Error) as error:
        print(f"{pattern.name} {heads} {method}: not possible: {str(error).splitlines()[0][:150]}", flush=True)
        return None
    return row


def show(rows):
    """One line of the table per pattern and number of heads; times in us, memory in MB."""
    first = rows.get("tessera")
    if first is None:
        return
    cells = [f"{first['pattern']} | {first['rows']} | {first['entries']} | {first['heads']}"]
    for name in ("tessera", "flex", "sdpa", "padded"):
        row = rows.get(name)
        if row is None:
            cells.append("")
            continue
        text = " / ".join(f"{row[key]:.4g}" for key in ("forward_us", "both_us") if key in row)
        if row is not first and row["error"] <= 1 and first["error"] <= 1:
            text += " (" + ", ".join(f"{row[key] / first[key]:.2f}" for key in ("forward_us", "both_us")
                                     if key in row and key in first) + ")"
        text += f"; {row['peak_mb']:.4g}" if "peak_mb" in row else ""
        cells.append(text + (f" WRONG {row['error']:.2g}" if row["error"] > 1 else f"; {row['error']:.2f}"))
    print("| " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", default=USUAL)
    parser.add_argument("--dtype", default="fp16", choices=TYPES)
    parser.add_argument("--heads", default="1,8")
    parser.add_argument("--dimension", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--methods", default="tessera,flex,sdpa,padded")
    parser.add_argument("--csv")
    options = parser.parse_args()
    # A pattern's mask is a function of its own, and each is compiled.
    torch._dynamo.config.recompile_limit = torch._dynamo.config.accumulated_recompile_limit = 256
    name = torch.cuda.get_device_name() if DEVICE == "cuda" else "the host"
    print(f"PyTorch {torch.__version__} on {name}, {options.dtype}, d = {options.dimension}; us: forward / forward and "
          "backward (over ours); MB beyond the inputs; largest error over its bound\n\n"
          "| pattern | rows | entries | heads | tessera | flex | sdpa | padded |\n|---|--:|--:|--:|--:|--:|--:|--:|")
    fields = ["pattern", "rows", "entries", "heads", "method", "setup_ms", "forward_us", "both_us", "peak_mb",
              "kept_mb", "error"]
    file = open(options.csv, "w", newline="", encoding="utf-8") if options.csv else None
    writer = csv.DictWriter(file, fields) if file else None
    if writer:
        writer.writeheader()
    wrong = 0
    for text in options.patterns:
        pattern = patterns.load(text)
        for heads in map(int, options.heads.split(",")):
            operands, rows = Operands(pattern, heads, options), {}
            for method in options.methods.split(","):
                row = measure(pattern, heads, method, operands, options)
                tessera.torch.clear_cache()
                gc.collect()
                if row is not None:
                    rows[method] = row
                    wrong += method == "tessera" and row["error"] > 1
                    if writer:
                        writer.writerow({k: f"{x:.6g}" if isinstance(x, float) else x for k, x in row.items()})
                        file.flush()
            show(rows)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
