#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
"""Draws what `tessera_bench --json FILE` wrote, in the manner of the figures of the DASP paper (Lu & Liu, SC'23).

  PREFIX_speedup_CASE.png    speedup over each baseline, matrices in the order of their entries (Figures 1, 12, 14)
  PREFIX_bandwidth_CASE.png  GB/s against entries, with the streaming ceiling (Figure 13)
  PREFIX_classes_CASE.png    shares of DASP's row classes, rows above entries (Figure 15)
  PREFIX_indices_CASE.png    shares of the entries of packed slices by the width of their indices

A CASE is an operation, a precision, and where there are several columns their number (SpMM: N, SDDMM: K, attention: d)
and that of heads: spmm_fp16_n64, sddmm_tf32_k128, attention_bf16_d64_heads4, spgemm_fp64; of SpMV the precision alone.

Every algorithm of the files is drawn; auto is one of them, whatever it took.
Wrong results and, unless --emulated is given, emulated matrix units are left out.
"""

import argparse
import json
import math
import sys
import typing

import matplotlib
import matplotlib.ticker

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

# Distinguishable without colour vision (Okabe and Ito), and by marker in print.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
MARKERS = ["o", "^", "s", "D", "v", "P", "X"]

# What titles call an operation, and the number of columns of its dense operands.
OPERATIONS = {
    "spmv": ("SpMV", "n"),
    "spmm": ("SpMM", "N"),
    "sddmm": ("SDDMM", "K"),
    "attention": ("attention", "d"),
    "attention-backward": ("gradients of attention", "d"),
    "spgemm": ("SpGEMM", "n"),
}


def fail(message):
    print(f"plot.py: {message}", file=sys.stderr)
    sys.exit(2)


def label(record):
    """The name of a system; auto is one, whatever it took (older files have it as a variant)."""
    if "auto" in (record.get("asked"), record.get("variant")):
        return "auto"
    if not record.get("variant"):
        return record["algorithm"]
    return record.get("label") or f"{record['algorithm']}[{record['variant']}]"


class Case(typing.NamedTuple):
    """What has figures of its own."""

    op: str
    precision: str
    n: int
    heads: int

    @classmethod
    def of(cls, record):
        return cls(record.get("op", "spmv"), record["precision"], record.get("n", 1), record.get("heads", 1))

    def title(self):
        title, letter = OPERATIONS.get(self.op, (self.op, "n"))
        words = [title, self.precision]
        words += [f"{letter} = {self.n}"] if self.n > 1 else []
        words += [f"{self.heads} heads"] if self.heads > 1 else []
        return ", ".join(words)

    def __str__(self):
        """For names of files."""
        _, letter = OPERATIONS.get(self.op, (self.op, "n"))
        words = [self.precision] if self.op == "spmv" else [self.op, self.precision]
        words += [f"{letter.lower()}{self.n}"] if self.n > 1 else []
        words += [f"heads{self.heads}"] if self.heads > 1 else []
        return "_".join(words)


def style(i):
    """Colour and marker of the i-th system; no pair comes twice before all are used."""
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[(i + i // len(COLOURS)) % len(MARKERS)]}


class Data:
    """Records by case, matrix and system; later files win over earlier ones."""

    def __init__(self, files, emulated):
        self.cases = {}
        self.roles = {}
        self.ceiling = 0
        for name in files:
            try:
                with open(name, encoding="utf-8") as stream:
                    content = json.load(stream)
                records = content["records"]
            except (OSError, ValueError, KeyError, TypeError) as error:
                fail(f"{name}: {error}")
            self.ceiling = content.get("context", {}).get("stream_gbytes_per_second") or self.ceiling
            for record in records:
                if not record["verified"] or (record["emulated"] and not emulated):
                    continue
                case, system = Case.of(record), label(record)
                self.cases.setdefault(case, {}).setdefault(record["matrix"], {})[system] = record
                self.roles.setdefault(case, {})[system] = record["role"]
        for matrices in self.cases.values():
            for systems in matrices.values():
                algorithms = [r for s, r in systems.items() if s.startswith("cusparse-alg")]
                if algorithms:
                    systems["cusparse"] = min(algorithms, key=lambda r: r["seconds_median"])

    def systems(self, case, role):
        names = [s for s, r in self.roles[case].items() if r == role and not s.startswith("cusparse-alg")]
        if role == "baseline" and any(s.startswith("cusparse-alg") for s in self.roles[case]):
            names.append("cusparse")
        return names

    def in_order(self, case):
        matrices = self.cases[case]
        return sorted(matrices, key=lambda m: next(iter(matrices[m].values()))["nnz"])


def draw_speedup(data, case, baselines, seconds, file):
    figure, axes = plt.subplots(len(baselines), 1, figsize=(9, 3.2 * len(baselines)), squeeze=False, sharex=True)
    order = data.in_order(case)
    drawn = False
    for axis, baseline in zip(axes[:, 0], baselines):
        own = [s for s in data.systems(case, "tessera") if s != baseline]
        for i, system in enumerate(own):
            points = []
            for position, matrix in enumerate(order):
                records = data.cases[case][matrix]
                if system not in records or baseline not in records:
                    continue
                mine, other = records[system][seconds], records[baseline][seconds]
                if mine and other:
                    points.append((position, other / mine))
            if not points:
                continue
            drawn = True
            mean = math.exp(sum(math.log(s) for _, s in points) / len(points))
            wins = sum(s > 1 for _, s in points)
            axis.scatter(
                *zip(*points),
                s=18,
                label=f"{system}: {mean:.2f}x, {wins} of {len(points)} won",
                **style(i),
            )
            axis.axhline(mean, color=style(i)["color"], linewidth=1, linestyle="--")
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda v, _: f"{v:g}"))
        axis.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
        axis.set_ylabel(f"speedup over\n{baseline}")
        axis.grid(True, linewidth=0.3)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=8)
    last = axes[-1, 0]
    if len(order) <= 40:
        last.set_xticks(range(len(order)), [short(m) for m in order], rotation=60, ha="right", fontsize=7)
        last.set_xlabel("matrices by number of entries")
    else:
        last.set_xlabel(f"{len(order)} matrices by number of entries")
    axes[0, 0].set_title(f"{case.title()}{', cold cache' if 'cold' in seconds else ''}")
    return save(figure, file) if drawn else close(figure)


def draw_bandwidth(data, case, ceiling, seconds, file):
    figure, axis = plt.subplots(figsize=(8, 5))
    systems = data.systems(case, "baseline") + data.systems(case, "tessera")
    for i, system in enumerate(systems):
        points = []
        for records in data.cases[case].values():
            record = records.get(system)
            if record and record[seconds] and record["nnz"] > 0:
                scale = record["seconds_median"] / record[seconds]
                points.append((record["nnz"], record["csr_gbytes_per_second"] * scale))
        if points:
            axis.scatter(
                *zip(*sorted(points)),
                s=20,
                label=system,
                **style(i),
            )
    if not axis.collections:
        return close(figure)
    if ceiling:
        axis.axhline(ceiling, color="black", linestyle="--", linewidth=1, label=f"streaming read, {ceiling:.0f} GB/s")
    axis.set_xscale("log")
    axis.set_ylim(bottom=0)
    axis.set_xlabel("entries")
    axis.set_ylabel("GB/s (bytes of CSR and dense operands)")
    axis.set_title(f"{case.title()}{', cold cache' if 'cold' in seconds else ''}")
    axis.grid(True, linewidth=0.3)
    axis.legend(fontsize=8)
    return save(figure, file)


def with_classes(data, case, algorithm):
    """One record per matrix of those that have classes of this algorithm."""
    found = []
    for matrix in data.in_order(case):
        records = data.cases[case][matrix].values()
        found += [r for r in records if r["algorithm"] == algorithm and r["classes"]][:1]
    return found


def draw_classes(data, case, file):
    rows = with_classes(data, case, "dasp")
    panels = (("rows", "% of rows"), ("nnz", "% of entries"))
    return draw_shares(rows, panels, lambda name: True, f"DASP row classes, {case.title()}", file)


def draw_indices(data, case, file):
    rows = with_classes(data, case, "packed")
    panels = (("nnz", "% of slots"),)
    return draw_shares(rows, panels, lambda name: "ind" in name, f"indices of packed slices, {case.title()}", file)


def draw_shares(rows, panels, wanted, title, file):
    """Stacked bars, one per record: the classes that are wanted, as shares of their sum."""
    names = list(dict.fromkeys(c["name"] for r in rows for c in r["classes"] if wanted(c["name"])))
    if not names:
        return None
    size = (max(6, 0.28 * len(rows) + 3), 1 + 3 * len(panels))
    figure, axes = plt.subplots(len(panels), 1, figsize=size, squeeze=False, sharex=True)
    axes = axes[:, 0]
    for axis, (key, what) in zip(axes, panels):
        bottom = [0.0] * len(rows)
        for i, name in enumerate(names):
            share = []
            for record in rows:
                count = sum(c[key] for c in record["classes"] if c["name"] == name)
                total = sum(c[key] for c in record["classes"] if wanted(c["name"]))
                share.append(100.0 * count / total if total else 0.0)
            hatch = "//" if i >= len(COLOURS) else None
            axis.bar(range(len(rows)), share, bottom=bottom, width=0.85, label=name, color=COLOURS[i % len(COLOURS)],
                     hatch=hatch, edgecolor="white", linewidth=0.3)
            bottom = [b + s for b, s in zip(bottom, share)]
        axis.set_ylabel(what)
        axis.set_ylim(0, 100)
    axes[0].legend(fontsize=8, ncol=4, loc="lower center", bbox_to_anchor=(0.5, 1.01))
    axes[-1].set_xticks(range(len(rows)), [short(r["matrix"]) for r in rows], rotation=60, ha="right", fontsize=7)
    axes[0].set_title(title, pad=48)
    return save(figure, file)


def short(name):
    name = name[4:] if name.startswith("gen:") else name
    return name if len(name) <= 28 else name[:27] + "\u2026"


def save(figure, file):
    figure.savefig(file, dpi=150, bbox_inches="tight")
    plt.close(figure)
    return file


def close(figure):
    plt.close(figure)
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="JSON", help="written by tessera_bench --json")
    parser.add_argument("--output", default="tessera", metavar="PREFIX", help="of the files' names")
    parser.add_argument("--baseline", metavar="NAME,...",
                        help="draw the speedup over these only; any system will do, cusparse is its best CSR algorithm")
    parser.add_argument("--ceiling", type=float, metavar="GB/S",
                        help="streaming rate (default: the one tessera_bench --ceiling measured)")
    parser.add_argument("--cold", action="store_true", help="use the times with overwritten caches")
    parser.add_argument("--emulated", action="store_true", help="also draw emulated matrix units")
    parser.add_argument("--format", default="png", help="png, pdf, svg")
    arguments = parser.parse_args()

    data = Data(arguments.files, arguments.emulated)
    if not data.cases:
        fail("no verified records" + ("" if arguments.emulated else " (emulated ones need --emulated)"))
    seconds = "seconds_cold_median" if arguments.cold else "seconds_median"
    written = []
    for case in data.cases:
        name = {kind: f"{arguments.output}_{kind}_{case}.{arguments.format}"
                for kind in ("speedup", "bandwidth", "classes", "indices")}
        known = {s for records in data.cases[case].values() for s in records}
        if arguments.baseline:
            baselines = [b for b in arguments.baseline.split(",") if b in known]
        else:
            baselines = data.systems(case, "baseline") or [s for s in ("csr", "chain") if s in known]
        if baselines:
            written.append(draw_speedup(data, case, baselines, seconds, name["speedup"]))
        elif arguments.baseline:
            print(f"plot.py: {case}: no {arguments.baseline}; there are {', '.join(sorted(known))}",
                  file=sys.stderr)
        written.append(draw_bandwidth(data, case, arguments.ceiling or data.ceiling, seconds, name["bandwidth"]))
        written.append(draw_classes(data, case, name["classes"]))
        written.append(draw_indices(data, case, name["indices"]))
    written = [w for w in written if w]
    for file in written:
        print(file)
    if not written:
        fail("nothing to draw")
    return 0


if __name__ == "__main__":
    sys.exit(main())
