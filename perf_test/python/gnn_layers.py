#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""A layer of GCN (X W, then A, 128 wide) and of AGNN (32 wide), forward and backward, over PyTorch and PyTorch Geometric.

    PYTHONPATH=build/release/python python3 perf_test/python/gnn_layers.py arxiv_like collab_like ddi_like COLLAB_a.mtx.gz
    ... --models gcn --precisions fp32,tf32,fp16 --modes calls,graph --csv layers.csv

Graphs are Matrix Market files, or generated: random edges whose ends are as frequent as the power of a rank says, a share of
them inside of a community. Patterns are taken as they are, without loops of their own; a number is 1 over the root of its
row's and its column's entries.

Forms (example/gnn/models.py): tessera and tessera-parts; torch (CSR with A^T kept, or gather and scatter); pyg
(GCNConv and AGNNConv, edge by edge); pyg-csr (GCNConv on a CSR tensor). fp32: TF32 in dense products alone; tf32: in
Tessera's sparse ones as well (attention's backward pass is FP32's); fp16: all of it. Results and gradients are compared with
those of float64. Times are medians by events of many calls in a row: "calls" as PyTorch is called, "graph" as a CUDA graph.
"""

import argparse
import csv
import gc
import math
import pathlib
import statistics
import sys
import time

import numpy
import scipy.io
import scipy.sparse
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "example" / "gnn"))
import models  # noqa: E402
import train  # noqa: E402

# nodes, edges drawn, power, share inside of a community, its nodes, both directions: as perf_test/matrices has them.
GENERATED = {"arxiv_like": (169343, 1300000, 0.62, 0.55, 600, False),
             "collab_like": (235868, 1330000, 0.40, 0.75, 150, True),
             "ddi_like": (4267, 1500000, 0.42, 0.0, 4267, True),
             "reddit_half": (232965, 33000000, 0.45, 0.6, 4000, True)}
WIDTHS = {"gcn": 128, "agnn": 32}
LIMITS = {"fp32": 3e-3, "tf32": 3e-3, "fp16": 2e-2}  # of the difference from float64; dense products are TF32 in fp32


class Pattern:
    """What models.Adjacency takes."""

    def __init__(self, name, matrix):
        matrix.sum_duplicates()
        self.name, self.nodes, self.edges = name, matrix.shape[0], matrix.nnz
        self.offsets, self.columns = matrix.indptr, matrix.indices.astype("int64")
        self.rows = numpy.repeat(numpy.arange(self.nodes), numpy.diff(matrix.indptr))

    def normalised(self):
        row, column = (numpy.maximum(1, numpy.bincount(x, minlength=self.nodes)) for x in (self.rows, self.columns))
        return 1 / numpy.sqrt(row[self.rows] * column[self.columns].astype("float64"))


def generate(nodes, edges, power, local, size, both, seed=1):
    rng = numpy.random.default_rng(seed)

    def drawn(count):
        return numpy.minimum(count - 1, count * rng.random(edges) ** (1 / (1 - power))).astype("int64")

    def any_node():
        return drawn(nodes) * 2654435761 % nodes  # frequent ones lie anywhere

    a = any_node()
    first = a // size * size
    near = first + drawn(numpy.minimum(size, nodes - first))
    b = numpy.where(rng.random(edges) < local, near, any_node())
    rows, columns = (numpy.r_[a, b], numpy.r_[b, a]) if both else (a, b)
    return scipy.sparse.csr_matrix((numpy.ones(rows.size, "int8"), (rows, columns)), (nodes, nodes))


def load(name):
    if name in GENERATED:
        return Pattern(name, generate(*GENERATED[name]))
    return Pattern(pathlib.Path(name).name.split(".")[0], scipy.sparse.csr_matrix(scipy.io.mmread(name)))


class GeometricCsr(models.Product):
    """The propagation of a GCNConv on a CSR tensor."""

    def __init__(self, graph, compute):
        from torch_geometric.nn import GCNConv

        self.conv = GCNConv(1, 1, normalize=False)
        self.A = torch.sparse_csr_tensor(graph.indptr.long(), graph.indices.long(), graph.numbers,
                                         (graph.nodes, graph.nodes))

    def __call__(self, h):
        return self.conv.propagate(self.A, x=h, edge_weight=None)


FORMS = {"gcn": {**models.PRODUCTS, "pyg-csr": GeometricCsr}, "agnn": models.ATTENTIONS}


class Layer:
    """Forward and backward: (result, gradient by x, gradient by W or beta)."""

    def __init__(self, name, part, drawn, dtype):
        self.x, self.grad, self.weight = (t.to(dtype) for t in drawn)
        self.x.requires_grad_(), self.weight.requires_grad_()
        beta = torch.ones((), device=self.x.device, dtype=dtype if dtype == torch.float64 else torch.float32)
        self.beta = beta.requires_grad_()
        self.of, self.part = name, part

    def __call__(self):
        learnt = self.weight if self.of == "gcn" else self.beta
        out = self.part.layer(self.x, self.weight, None, False) if self.of == "gcn" else self.part(self.x, self.beta)
        return (out, *torch.autograd.grad(out, (self.x, learnt), self.grad))


def draw(graph, width, device):
    """x, the gradient of the result, and W, in the narrowest type, so that only what is computed differs."""
    generator = torch.Generator(device).manual_seed(0)
    x, grad, weight = (torch.randn(rows, width, generator=generator, device=device)
                       for rows in (graph.nodes, graph.nodes, width))
    return x.half(), grad.half(), (0.1 * weight).half()


def microseconds(bench, function, least=0.01, runs=7):
    """Per call."""
    function = bench.repeated(function)
    function()
    once = bench.seconds(function)
    calls = max(1, min(500, int(least / max(once, 1e-6))))
    times = []
    for _ in range(runs):
        if bench.cuda:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(calls):
                function()
            end.record()
            end.synchronize()
            times.append(1e3 * begin.elapsed_time(end) / calls)
        else:
            start = time.perf_counter()
            for _ in range(calls):
                function()
            times.append(1e6 * (time.perf_counter() - start) / calls)
    return statistics.median(times)


def differences(results, right):
    """The largest of result and gradients, as parts of their norms. beta's gradient is a sum of what mostly cancels, and is
    left to the tests."""
    count = 3 if right[2].dim() else 2
    return max(float((a.double() - b).norm() / (b.norm() + 1e-300)) for a, b in zip(results[:count], right[:count]))


def measure(benches, graph, drawn, model, form, precision, right):
    """{mode: us} of one form; what is not possible is left out."""
    dtype = train.TYPES[precision]
    times, device = {}, next(iter(benches.values())).device
    try:
        adjacency = models.Adjacency(graph, device, dtype)
        part = FORMS[model][form](adjacency, "tf32" if precision == "tf32" else "auto")
        layer = Layer(model, part, drawn, dtype)
        off = differences([t.detach() for t in layer()], right)
        if not off < LIMITS[precision]:
            print(f"  {graph.name} {model} {form} {precision}: WRONG, differs by {off:.1e}")
            return {}
        for mode, bench in benches.items():
            times[mode] = microseconds(bench, layer)
    except (RuntimeError, ImportError) as error:
        print(f"  {graph.name} {model} {form} {precision}: {', '.join(times) or 'nothing'} done, then: "
              f"{str(error).splitlines()[0][:110]}")
    return times


def right_results(graph, drawn, model, device):
    """In float64, by PyTorch."""
    adjacency = models.Adjacency(graph, device, torch.float64)
    adjacency.numbers = torch.tensor(graph.normalised(), dtype=torch.float64, device=device)
    part = FORMS[model]["torch"](adjacency, "auto")
    return [t.detach() for t in Layer(model, part, drawn, torch.float64)()]


def rows_of(benches, graph, options):
    rows = []
    device = next(iter(benches.values())).device
    for model in options.models:
        drawn = draw(graph, WIDTHS[model], device)
        right = right_results(graph, drawn, model, device)
        known = {}  # peers know no TF32 of their own
        for precision in options.precisions:
            found = {}
            for form in FORMS[model]:
                ours = form.startswith("tessera")
                key = form, precision if ours or precision == "fp16" else "fp32"
                if key not in known:
                    known[key] = measure(benches, graph, drawn, model, form, precision, right)
                    gc.collect()
                    if device == "cuda":
                        torch.cuda.empty_cache()
                found[form] = known[key]
            for mode in benches:
                times = {form: t[mode] for form, t in found.items() if mode in t}
                ours = min((t for f, t in times.items() if f.startswith("tessera")), default=math.nan)
                other = min((t for f, t in times.items() if not f.startswith("tessera")), default=math.nan)
                rows.append({"graph": graph.name, "model": model, "precision": precision, "mode": mode,
                             "ratio": other / ours, "times": times})
                print(f"  {graph.name:16} {model:4} {precision:4} {mode:5} {other / ours:6.2f}  "
                      + ", ".join(f"{form} {t:.0f}" for form, t in times.items()), flush=True)
    return rows


def main():
    words = lambda text: text.split(",")  # noqa: E731
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", help=f"files, or {', '.join(GENERATED)}")
    parser.add_argument("--models", type=words, default=["gcn", "agnn"])
    parser.add_argument("--precisions", type=words, default=["fp32", "tf32", "fp16"])
    parser.add_argument("--modes", type=words, default=["calls", "graph"])
    parser.add_argument("--csv")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = True
    benches = {mode: train.Bench(device, mode == "graph") for mode in options.modes if mode == "calls" or device == "cuda"}
    print(f"us, PyTorch {torch.__version__}, {torch.cuda.get_device_name() if device == 'cuda' else 'host'}; first the "
          "fastest of the others over ours")
    rows = []
    for name in options.graphs:
        graph = load(name)
        print(f"{graph.name}: {graph.nodes} nodes, {graph.edges} edges")
        next(iter(benches.values())).wake()
        rows += rows_of(benches, graph, options)
    for model in options.models:
        for precision in options.precisions:
            for mode in benches:
                ratios = [r["ratio"] for r in rows if (r["model"], r["precision"], r["mode"]) == (model, precision, mode)
                          and r["ratio"] == r["ratio"]]
                if ratios:
                    print(f"{model:4} {precision:4} {mode:5} over the fastest of the others: geometric mean "
                          f"{statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}, {len(ratios)} graphs")
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["graph", "model", "precision", "mode", "form", "us"])
            writer.writerows([r["graph"], r["model"], r["precision"], r["mode"], form, f"{t:.6g}"]
                             for r in rows for form, t in r["times"].items())


if __name__ == "__main__":
    main()
