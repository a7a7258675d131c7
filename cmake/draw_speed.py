#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Draws how fast Auto is against the fastest peer of each matrix: one panel per precision and number of columns, a
point per matrix. Python's own library only; the same input gives the same text.

    draw_speed.py perf_test/results/spmv-h200.csv --out example/manual/figures/spmv-speed.svg --title "SpMV on an H200"
    draw_speed.py RUN.csv ... --write RESULTS.csv --out FIGURE.svg

Input is a table of results, with the columns operation, precision, columns, matrix, nnz, ours_us, peer, peer_us, or what
`tessera_bench --csv` wrote (several files: peers of all of them count). Of the latter what was asked for as `auto` is
ours, every verified baseline is a peer, and the fastest peer of a matrix is taken; emulated matrix units are left out.
--write keeps the result as such a table.
"""

import argparse
import csv
import math
import pathlib
import sys

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
TABLE = ["operation", "precision", "columns", "matrix", "nnz", "ours_us", "peer", "peer_us"]
ORDER = ["fp64", "fp32", "tf32", "fp16", "bf16"]


def read(files, time_key):
    """Rows of TABLE, from either kind of file."""
    table, ours, peers = [], {}, {}
    for file in files:
        with open(file, newline="") as text:
            rows = list(csv.DictReader(line for line in text if not line.startswith("#")))
        if rows and set(TABLE) <= set(rows[0]):
            table += [{key: row[key] for key in TABLE} for row in rows]
            continue
        needed = {"op", "precision", "n", "matrix", "nnz", "role", "asked", "label", "verified",
                  "emulated", time_key}
        if rows and not needed <= set(rows[0]):
            raise SystemExit(f"{file}: columns {', '.join(sorted(needed - set(rows[0])))} are missing")
        for row in rows:
            if row["verified"] != "true" or not row[time_key] or row["emulated"] == "true":
                continue
            matrix = pathlib.Path(row["matrix"]).name.replace(".mtx.gz", "").replace(".mtx", "")
            matrix = matrix[4:] if matrix.startswith("gen:") else matrix
            key = (row["op"], row["precision"], int(row["n"]), matrix)
            entry = (1e6 * float(row[time_key]), row["label"], row["nnz"])
            if row["role"] == "baseline":
                peers[key] = min(peers.get(key, entry), entry)
            elif row["asked"] == "auto":
                ours[key] = entry
    for key in ours:
        if key in peers:
            table.append(dict(zip(TABLE, [*key, ours[key][2], f"{ours[key][0]:.2f}", peers[key][1],
                                          f"{peers[key][0]:.2f}"])))
    if not table:
        raise SystemExit("no matrix has both a time of auto and one of a peer")
    for row in table:
        row["columns"], row["nnz"] = int(row["columns"]), int(row["nnz"])
        row["ratio"] = float(row["peer_us"]) / float(row["ours_us"])
    return table


def mean(rows):
    return math.exp(sum(math.log(r["ratio"]) for r in rows) / len(rows))


def text(x, y, words, size=10, anchor="start", colour="#000000", bold=False):
    weight = ' font-weight="bold"' if bold else ""
    words = str(words).replace("&", "&amp;").replace("<", "&lt;")
    return (f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}"{weight}>'
            f"{words}</text>")


def ticks(low, high):
    wanted = [0.125, 0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 16, 32]
    return [t for t in wanted if low <= t <= high]


def panel(rows, left, top, width, height, x_of, low, high, colour_of, title):
    y_of = lambda ratio: top + height * (math.log(high) - math.log(ratio)) / (math.log(high) - math.log(low))
    out = [f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="#fcfcfc" stroke="#888888"/>',
           text(left, top - 7, title, 11, bold=True)]
    for t in ticks(low, high):
        y = y_of(t)
        stroke = ("#444444", 1.2) if t == 1 else ("#dddddd", 0.7)
        out.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + width}" y2="{y:.1f}" stroke="{stroke[0]}" '
                   f'stroke-width="{stroke[1]}"/>')
        out.append(text(left - 4, y + 3, f"{t:g}", 9, "end"))
    y = y_of(mean(rows))
    out.append(f'<line x1="{left}" y1="{y:.1f}" x2="{left + width}" y2="{y:.1f}" stroke="#444444" stroke-width="1" '
               'stroke-dasharray="5 3"/>')
    for exponent in range(3, 10):
        x = left + x_of(10**exponent) * width
        if left <= x <= left + width:
            out.append(text(x, top + height + 13, f"1e{exponent}", 9, "middle"))
            out.append(f'<line x1="{x:.1f}" y1="{top + height}" x2="{x:.1f}" y2="{top + height + 3}" stroke="#888888"/>')
    for r in sorted(rows, key=lambda r: (r["nnz"], r["matrix"])):
        x = left + x_of(r["nnz"]) * width
        words = f"{r['matrix']}: {r['ours_us']} us, {r['peer']} {r['peer_us']} us"
        out.append(f'<circle cx="{x:.1f}" cy="{y_of(r["ratio"]):.1f}" r="3.2" fill="{colour_of[r["peer"]]}" '
                   f'fill-opacity="0.8"><title>{words}</title></circle>')
    least, most = min(rows, key=lambda r: r["ratio"]), max(rows, key=lambda r: r["ratio"])
    for r, dy in ((least, 13), (most, -7)):
        at = x_of(r["nnz"])
        anchor = "start" if at < 0.35 else "end" if at > 0.65 else "middle"
        out.append(text(left + at * width, y_of(r["ratio"]) + dy, f"{r['matrix']} {r['ratio']:.2f}", 9, anchor, "#333333"))
    return out


def draw(table, title):
    groups = {}
    for row in table:
        groups.setdefault((row["precision"], row["columns"]), []).append(row)
    precisions = sorted({p for p, _ in groups}, key=lambda p: ORDER.index(p) if p in ORDER else len(ORDER))
    columns = sorted({c for _, c in groups})
    # One row of panels for vectors; precisions down and numbers of columns across for blocks of them.
    across = [(p, columns[0]) for p in precisions] if len(columns) == 1 else None
    places = {}
    for p, precision in enumerate(precisions):
        for c, count in enumerate(columns):
            if (precision, count) in groups:
                places[(precision, count)] = (p, 0) if across else (c, p)
    peers = sorted({r["peer"] for r in table}, key=lambda name: (-sum(r["peer"] == name for r in table), name))
    colour_of = {name: COLOURS[min(i, len(COLOURS) - 1)] for i, name in enumerate(peers)}
    low = min(0.8, 0.8 * min(r["ratio"] for r in table))
    high = max(2.5, 1.25 * max(r["ratio"] for r in table))
    first, last = math.log(min(r["nnz"] for r in table)) - 0.2, math.log(max(r["nnz"] for r in table)) + 0.2
    x_of = lambda nnz: (math.log(nnz) - first) / (last - first)
    width, height, gap_x, gap_y, top = 280, 210, 44, 52, 68
    body = [text(16, 24, title, 14, bold=True)]
    for key, (x, y) in places.items():
        rows = groups[key]
        wins = sum(r["ratio"] > 1 for r in rows)
        name = key[0].upper() + (f", N = {key[1]}" if len(columns) > 1 else "")
        words = f"{name}: mean {mean(rows):.2f}, faster on {wins} of {len(rows)}"
        body += panel(rows, 44 + x * (width + gap_x), top + y * (height + gap_y), width, height, x_of, low, high,
                      colour_of, words)
    full_width = 44 + (max(x for x, _ in places.values()) + 1) * (width + gap_x)
    bottom = top + (max(y for _, y in places.values()) + 1) * (height + gap_y) - gap_y + 32
    body.append(text(44, bottom, "across: entries of the matrix; up: time of its fastest peer over time of Auto; dashed: "
                     "geometric mean; the fastest peer is", 10))
    x, bottom = 44, bottom + 18
    for name in peers:
        if x + 24 + 7 * len(name) > full_width:
            x, bottom = 44, bottom + 16
        body.append(f'<circle cx="{x + 4}" cy="{bottom - 4}" r="4" fill="{colour_of[name]}"/>')
        body.append(text(x + 12, bottom, name))
        x += 34 + 7 * len(name)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{full_width}" height="{bottom + 14}" '
        f'viewBox="0 0 {full_width} {bottom + 14}" font-family="DejaVu Sans, Helvetica, sans-serif">',
        "<!-- Drawn by cmake/draw_speed.py. -->", f"<title>{title}</title>",
        f'<rect width="{full_width}" height="{bottom + 14}" fill="#ffffff"/>', *body, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, help="the figure")
    parser.add_argument("--check", type=pathlib.Path, help="a figure that must be the same")
    parser.add_argument("--write", type=pathlib.Path, help="the table of results")
    parser.add_argument("--title", default="Auto against the fastest peer of each matrix")
    parser.add_argument("--time", default="seconds_median", help="column of tessera_bench's file (default: %(default)s)")
    options = parser.parse_args()
    table = read(options.files, options.time)
    if options.write:
        with open(options.write, "w", newline="") as file:
            writer = csv.DictWriter(file, TABLE, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)
    figure = draw(table, options.title)
    if options.out:
        options.out.write_text(figure)
    if options.check and options.check.read_text() != figure:
        print(f"{options.check} is not what the results say; draw it anew with --out", file=sys.stderr)
        return 1
    for key in sorted({(r["precision"], r["columns"]) for r in table}):
        rows = [r for r in table if (r["precision"], r["columns"]) == key]
        print(f"{key[0]} n = {key[1]}: mean {mean(rows):.3f}, least {min(r['ratio'] for r in rows):.2f}, "
              f"{len(rows)} matrices")
    return 0


if __name__ == "__main__":
    sys.exit(main())
