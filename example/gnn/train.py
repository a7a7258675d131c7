#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Trains GCN and AGNN on graphs with Tessera, PyTorch and PyTorch Geometric: accuracy, loss curves, time per epoch.

    PYTHONPATH=build/debian/python python3 example/gnn/train.py planted:nodes=2000,degree=12
    example/gnn/train.py cora.mtx.gz PPI.mtx.gz --precisions fp32,tf32,fp16 --seeds 5 --curves curves.svg --csv runs.csv
    example/gnn/train.py cora.mtx.gz --layers        # single layers, forward and backward

Graphs are Matrix Market files (.gz or not) or planted:nodes=N,degree=D,classes=C. Labels and features are made here, from
a fixed seed (communities of the graph, and noise around a centre for each): they are not those of the data sets that the
files come from, and accuracies compare libraries and precisions with each other only. README.md tells how.
Without PyTorch it ends with status 5; libraries that are not installed are left out, with a line that says so.
"""

import argparse
import csv
import gc
import math
import statistics
import sys
import time
import warnings

try:
    import torch
except ImportError as error:
    print(f"example/gnn needs PyTorch: {error}")
    sys.exit(5)

import curves
import graphs
import models

# That its CSR tensors are young, and unchecked, is not what a reader of times looks for.
warnings.filterwarnings("ignore", message="Sparse (CSR|invariant)")

TYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16}


class Bench:
    """One device, and how work on it is started and waited for."""

    def __init__(self, device, graphs=False):
        self.device = device
        self.cuda = device == "cuda"
        self.stream = torch.cuda.Stream() if graphs and self.cuda else None

    def repeated(self, function):
        """The function, or, with --cuda-graph, the launches that it made once, started together."""
        if self.stream is None:
            return function
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for _ in range(3):
                function()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        # What is destroyed during a capture ends it: plans and graphs of the run before.
        gc.collect()
        gc.disable()
        try:
            with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
                result = function()
        finally:
            gc.enable()

        def replay():
            graph.replay()
            return result

        return replay

    def wait(self):
        if self.cuda:
            torch.cuda.synchronize()

    def seconds(self, function):
        self.wait()
        begin = time.perf_counter()
        function()
        self.wait()
        return time.perf_counter() - begin

    def wake(self):
        """Processors that had nothing to do, or other work, are slow at first."""
        x, end = torch.randn(512, 512, device=self.device), time.perf_counter() + (0.5 if self.cuda else 0)
        while time.perf_counter() < end:
            self.seconds(lambda: [torch.relu(x @ x) for _ in range(20)])

    def median(self, function, rounds):
        function = self.repeated(function)
        function()
        return statistics.median(self.seconds(function) for _ in range(rounds))


def choose_precision(precision):
    """For the dense products; the sparse ones of Tessera are told (TF32), or multiply what has the type (FP16)."""
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    return "tf32" if precision == "tf32" else "auto"


class Run:
    """A model on a graph with a library, in a precision."""

    def __init__(self, bench, graph, name, library, precision, options):
        self.bench, self.graph, self.options = bench, graph, options
        self.dtype, compute = TYPES[precision], choose_precision(precision)
        self.title = f"{graph.name} {name} {library} {precision}"
        self.features = torch.tensor(graph.features, device=bench.device)
        self.labels = torch.tensor(graph.labels, dtype=torch.int64, device=bench.device)
        torch.manual_seed(0)
        self.setup = bench.seconds(lambda: self.prepare(name, library, compute))

    def prepare(self, name, library, compute):
        adjacency = models.Adjacency(self.graph, self.bench.device, self.dtype)
        self.make = lambda: models.MODELS[name](adjacency, self.options.features, int(self.graph.labels.max()) + 1,
                                                library, compute).to(self.bench.device)
        self.model = self.make()

    def forward(self):
        with torch.autocast(self.bench.device, torch.float16, enabled=self.dtype == torch.float16, cache_enabled=False):
            return self.model(self.features)

    def start(self, seed):
        """Other weights, and other nodes to learn from: three of ten."""
        torch.manual_seed(seed)
        old, self.model = self.model, self.make()
        self.model.propagation = old.propagation  # with its plans
        learn = torch.rand(self.graph.nodes, generator=torch.Generator().manual_seed(seed)) < 0.3
        self.learn = torch.nonzero(learn)[:, 0].to(self.bench.device)
        self.judge = torch.nonzero(~learn)[:, 0].to(self.bench.device)
        cuda = self.bench.cuda
        self.rate = torch.zeros((), device=self.bench.device)
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=self.rate if cuda else 0.0, fused=cuda,
                                          capturable=cuda)
        self.learned = self.labels[self.learn]
        self.step = self.epoch
        if self.bench.stream is not None:
            # What is captured is run before: at a rate of zero, which leaves the weights, and the moments go back to 0.
            self.step = self.bench.repeated(self.epoch)
            for state in self.optimiser.state.values():
                for moment in state.values():
                    moment.zero_()

    def set_rate(self, epoch):
        """Along a cosine to nothing, so that what is judged does not depend on the last steps."""
        rate = self.model.rate / 2 * (1 + math.cos(math.pi * epoch / self.options.epochs))
        if self.bench.cuda:
            self.rate.fill_(rate)
        else:
            self.optimiser.param_groups[0]["lr"] = rate

    def epoch(self):
        scale = models.loss_scale(self.dtype)
        self.optimiser.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(self.forward().index_select(0, self.learn).float(), self.learned)
        (loss * scale if scale != 1 else loss).backward()
        if scale != 1:
            torch._foreach_div_([p.grad for p in self.model.parameters()], scale)
        self.optimiser.step()
        return loss.detach()

    def accuracy(self):
        with torch.no_grad():
            best = self.forward().argmax(1)
        return 100 * float((best[self.judge] == self.labels[self.judge]).float().mean())

    def train(self, seed):
        """(losses, test accuracy, seconds per epoch)"""
        self.start(seed)
        losses, times = [], []
        for epoch in range(self.options.epochs):
            self.set_rate(epoch)
            times.append(self.bench.seconds(self.step_and_keep(losses)))
            if epoch % 10 == 9 or epoch + 1 == self.options.epochs:
                progress(f"{self.title} seed {seed}: epoch {epoch + 1} of {self.options.epochs}, "
                         f"loss {float(losses[-1]):.3f}")
        return [float(loss) for loss in losses], self.accuracy(), times

    def step_and_keep(self, losses):
        return lambda: losses.append(self.step().clone())

    def sparse_seconds(self):
        """Of what is sparse in an epoch, forward and backward, each part by itself."""
        total, known = 0.0, {}
        for part, width in self.model.sparse_parts():
            if width not in known:
                h = torch.randn(self.graph.nodes, width, device=self.bench.device, dtype=self.dtype)
                h, grad = h.requires_grad_(), torch.randn_like(h)
                known[width] = self.bench.median(lambda: torch.autograd.grad(part(h), h, grad), 10)
            total += known[width]
        return total


def progress(text):
    if sys.stderr.isatty():
        print(f"\r{text:100}", end="", file=sys.stderr, flush=True)


def measure(bench, graph, name, library, precision, options):
    """A row of the table, and the losses of each seed."""
    try:
        run = Run(bench, graph, name, library, precision, options)
        prepared = bench.seconds(lambda: run.start(0))
        results = [run.train(seed) for seed in range(options.seeds)]
        sparse = run.sparse_seconds()
    except RuntimeError as error:
        print(f"  {name} {library} {precision}: not possible: {str(error).splitlines()[0]}")
        return None, None
    progress("")
    losses, accuracies, times = zip(*results)
    first, later = times[0][0], statistics.median(sum((t[1:] for t in times), []) or times[0])
    row = {"graph": graph.name, "nodes": graph.nodes, "edges": graph.edges, "model": name, "library": library,
           "precision": precision, "accuracy": statistics.mean(accuracies),
           "deviation": statistics.pstdev(accuracies), "loss": statistics.mean(l[-1] for l in losses),
           "epoch_ms": 1e3 * later, "sparse_ms": 1e3 * sparse, "dense_ms": 1e3 * max(0.0, later - sparse),
           "setup_ms": 1e3 * (run.setup + prepared + max(0.0, first - later)), "seeds": options.seeds, "epochs": options.epochs}
    return row, losses


def show(row, base):
    ratio = f"{row['epoch_ms'] / base:6.2f}" if base else "      "
    print(f"  {row['model']:5}{row['library']:14}{row['precision']:5} accuracy {row['accuracy']:6.2f} +- "
          f"{row['deviation']:4.2f} %  loss {row['loss']:6.3f}  epoch {row['epoch_ms']:8.3f} ms (sparse "
          f"{row['sparse_ms']:8.3f}, dense {row['dense_ms']:7.3f})  set-up {row['setup_ms']:8.1f} ms  over tessera "
          f"{ratio}", flush=True)


def layers(bench, graph, options):
    """A GCN layer, X W then A, 128 wide, and an AGNN layer, 32 wide: forward and backward, times in us."""
    for precision in options.precisions:
        dtype, compute = TYPES[precision], choose_precision(precision)
        adjacency = models.Adjacency(graph, bench.device, dtype)
        for name, width in (("gcn", 128), ("agnn", 32)):
            forms = models.MODELS[name].sparse if name in options.models else {}
            x = torch.randn(graph.nodes, width, device=bench.device, dtype=dtype).requires_grad_()
            grad = torch.randn(graph.nodes, width, device=bench.device, dtype=dtype)
            weight = torch.nn.Parameter(0.1 * torch.randn(width, width, device=bench.device, dtype=dtype))
            beta, found, first = torch.nn.Parameter(torch.ones((), device=bench.device)), {}, None
            for library in [form for form in forms if form in options.libraries]:
                part = forms[library](adjacency, compute)

                def layer():
                    out = part.layer(x, weight, None, False) if name == "gcn" else part(x, beta)
                    return (out, *torch.autograd.grad(out, (x, weight if name == "gcn" else beta), grad))

                try:
                    results = [t.detach().float() for t in layer()]  # without the stream of its derivatives
                    found[library] = 1e6 * bench.median(layer, 100)
                except RuntimeError as error:
                    print(f"  {name} layer {library} {precision}: not possible: {str(error).splitlines()[0]}")
                    continue
                first = results if first is None else first
                off = max(float((a - b).norm() / (b.norm() + 1e-30)) for a, b in zip(results, first))
                if off > {"fp32": 1e-4, "tf32": 1e-2, "fp16": 2e-2}[precision]:
                    print(f"  {name} layer {library} {precision}: differs from the first by {off:.1e}")
            ours = min((t for form, t in found.items() if form.startswith("tessera")), default=None)
            others = min((t for form, t in found.items() if not form.startswith("tessera")), default=None)
            ratio = f"  fastest other over tessera {others / ours:.2f}" if ours and others else ""
            if found:
                print(f"  {name} layer {width} {precision}: "
                      + ", ".join(f"{form} {t:.0f} us" for form, t in found.items()) + ratio, flush=True)


def check(rows, losses, options):
    """Whether training did what it must: for --check. Everything that was asked for is possible on hosts in FP32."""
    wanted = sum(form in options.libraries for model in options.models for form in models.MODELS[model].sparse)
    faults = [] if len(rows) >= wanted else [f"{len(rows)} of {wanted} runs were possible"]
    for key, row in rows.items():
        curve = losses[key][0]
        if not models.finite(curve[-1]) or curve[-1] > 0.5 * curve[0]:
            faults.append(f"{key}: the loss went from {curve[0]:.3f} to {curve[-1]:.3f}")
        if row["accuracy"] < 80:
            faults.append(f"{key}: accuracy {row['accuracy']:.1f} %, planted communities are learnt to 80 %")
        # The same weights and numbers: first losses differ by roundings only, FP16 by those of its 11 bits.
        first = next(losses[k][0] for k in rows if k[:2] == key[:2])
        limit = 0.02 if key[3] == "fp16" else 1e-3
        if any(abs(a - b) > limit * abs(b) for a, b in zip(curve[:3], first[:3])):
            faults.append(f"{key}: losses {curve[:3]} are not those of the first, {first[:3]}")
    for fault in faults:
        print("WRONG", fault)
    return 1 if faults else 0


def words(known):
    def split(text):
        found = text.split(",")
        for word in found:
            if word not in known:
                raise argparse.ArgumentTypeError(f"'{word}' is none of {', '.join(known)}")
        return found

    return split


def positive(text):
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of 1 or more")
    return int(text)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    precisions, libraries = words(list(TYPES)), list(models.PRODUCTS)
    parser.add_argument("graphs", nargs="+", help="Matrix Market files, or planted:OPTIONS")
    parser.add_argument("--models", type=words(list(models.MODELS)), default=["gcn", "agnn"], help="gcn,agnn")
    parser.add_argument("--libraries", type=words(libraries), default=libraries, help=",".join(libraries))
    parser.add_argument("--precisions", type=precisions, default=["fp32"], help=",".join(TYPES))
    parser.add_argument("--peer-precisions", type=precisions, default=["fp32", "tf32"], help="of torch and pyg")
    parser.add_argument("--peer-seeds", type=positive, help="of torch and pyg, if fewer")
    parser.add_argument("--epochs", type=positive, default=100)
    parser.add_argument("--seeds", type=positive, default=5)
    parser.add_argument("--classes", type=positive, default=8, help="of labels that are made for a file's graph")
    parser.add_argument("--features", type=positive, default=128, help="numbers per node")
    parser.add_argument("--device", help="cuda or cpu; else where Tessera runs")
    parser.add_argument("--cuda-graph", action="store_true", help="capture an epoch, so that the host does not count")
    parser.add_argument("--layers", action="store_true", help="single layers instead of training")
    parser.add_argument("--curves", help="SVG file to draw the losses into; takes no other package")
    parser.add_argument("--csv", help="file for the table of all runs")
    parser.add_argument("--check", action="store_true", help="status 1 where training went wrong")
    return parser.parse_args()


def open_bench(options):
    """On the device where Tessera runs; libraries that are not there leave the list."""
    for library in list(options.libraries):
        reason = models.missing(library)
        if reason:
            print(f"left out: {reason}")
            options.libraries.remove(library)
    device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if any(library.startswith("tessera") for library in options.libraries):
        import tessera

        place = {"host": "cpu"}.get(tessera.build()["device"], tessera.build()["device"])
        if options.device not in (None, place):
            raise SystemExit(f"this build of Tessera runs on {place}")
        device = place
    if options.cuda_graph and device != "cuda":
        print("--cuda-graph: not on this device")
    bench = Bench(device, options.cuda_graph)
    torch.randn(8, 8, device=device).matmul(torch.randn(8, 8, device=device))  # cuBLAS' own set-up is nobody's
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name() if bench.cuda else 'the host'}")
    return bench


def train_all(bench, graph, options, panels):
    """(rows, losses) by graph, model, library and precision; what was not possible is left out."""
    rows, losses = {}, {}
    for model in options.models:
        for library in [form for form in models.MODELS[model].sparse if form in options.libraries]:
            ours = library.startswith("tessera")
            for precision in [p for p in options.precisions if ours or p in options.peer_precisions]:
                seeds = options.seeds if ours else options.peer_seeds or options.seeds
                row, curve = measure(bench, graph, model, library, precision,
                                     argparse.Namespace(**{**vars(options), "seeds": seeds}))
                if row is None:
                    continue
                key = graph.name, model, library, precision
                rows[key], losses[key] = row, curve
                base = [r["epoch_ms"] for k, r in rows.items()
                        if k[1] == model and k[3] == precision and k[2].startswith("tessera")]
                show(row, min(base, default=None))
                panels.setdefault(f"{graph.name}, {model}: loss", {})[f"{library} {precision}"] = [
                    statistics.mean(values) for values in zip(*curve)]
    return rows, losses


def main():
    options = arguments()
    for path in filter(None, (options.curves, options.csv)):
        try:
            open(path, "a", encoding="utf-8").close()  # and not after an hour of training
        except OSError as error:
            raise SystemExit(f"{path}: {error.strerror}") from None
    bench = open_bench(options)
    panels, table, status = {}, [], 0
    for name in options.graphs:
        graph = graphs.load(name, options.features, options.classes)
        largest = 100 * max(graph.labels.tolist().count(c) for c in range(int(graph.labels.max()) + 1)) / graph.nodes
        print(f"{graph.name}: {graph.nodes} nodes, {graph.edges} edges with loops; communities made here: "
              f"{100 * graph.same_label():.0f} % of edges inside of one, the largest has {largest:.0f} % of the nodes; "
              "so are features")
        bench.wake()
        if options.layers:
            layers(bench, graph, options)
            continue
        rows, losses = train_all(bench, graph, options, panels)
        table += rows.values()
        status = max(status, check(rows, losses, options) if options.check else 0)
    if options.curves and panels:
        curves.draw(panels, options.curves)
    if options.csv and table:
        with open(options.csv, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=list(table[0]))
            writer.writeheader()
            writer.writerows({key: f"{value:.6g}" if isinstance(value, float) else value
                              for key, value in row.items()} for row in table)
    return status


if __name__ == "__main__":
    sys.exit(main())
