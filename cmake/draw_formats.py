#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Draws the figures of example/manual/formats.md from what example/06_formats prints: a small matrix in every format,
as the library's conversions made it. Python's own library only; the same input gives the same text.

    draw_formats.py --program build/debian/example/tessera_example_06_formats --out example/manual/figures
    draw_formats.py --program ... --check example/manual/figures     # ends with 1 where a committed figure differs

Every stored value is the number of an entry in CSR order, counted from 1; each is compared with the column index beside
it, so that a figure of a wrong conversion is not drawn.
"""

import argparse
import json
import pathlib
import subprocess
import sys

FILLS = ["#9ecae1", "#fdae6b", "#a1d99b", "#bcbddc", "#fdd0a2", "#c7e9c0", "#f4a6b7", "#d9d9a3"]
GREY, LINE, EMPTY = "#e4e4e4", "#666666", "#fafafa"


def shade(colour, odd):
    """The colour itself, or a lighter one for every second row."""
    if not odd:
        return colour
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{p + (255 - p) * 11 // 20:02x}" for p in parts)


class Svg:
    def __init__(self, title):
        self.title, self.body, self.width, self.height = title, [], 0, 0

    def reach(self, x, y):
        self.width, self.height = max(self.width, x), max(self.height, y)

    def rect(self, x, y, w, h, fill, stroke=LINE, width=0.5):
        self.reach(x + w, y + h)
        frame = "" if (stroke, width) == (LINE, 0.5) else f' style="stroke:{stroke};stroke-width:{width}"'
        self.body.append(f'<rect x="{x}" y="{y}" width="{w}" height="{h}" fill="{fill}"{frame}/>')

    def line(self, x1, y1, x2, y2, width=1.2, colour="#000000"):
        self.reach(max(x1, x2), max(y1, y2))
        self.body.append(f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" stroke-width="{width}"/>')

    def text(self, x, y, words, size=10, anchor="start", colour="#000000", bold=False):
        words = str(words)
        right = x + (len(words) * size * 0.61 if anchor == "start" else len(words) * size * 0.31)
        self.reach(right if anchor != "end" else x, y + 3)
        weight = ' font-weight="bold"' if bold else ""
        weight += "" if anchor == "middle" else f' style="text-anchor:{anchor}"'
        weight += "" if size == 8 else f' font-size="{size}"'
        weight += "" if colour == "#000000" else f' fill="{colour}"'
        words = words.replace("&", "&amp;").replace("<", "&lt;")
        self.body.append(f'<text x="{x:g}" y="{y:g}"{weight}>{words}</text>')

    def grid(self, x, y, columns, rows, w, h):
        """Empty cells, to be drawn over."""
        self.rect(x, y, columns * w, rows * h, EMPTY)
        lines = [f"M{x + c * w} {y}v{rows * h}" for c in range(1, columns)]
        lines += [f"M{x} {y + r * h}h{columns * w}" for r in range(1, rows)]
        self.body.append(f'<path d="{"".join(lines)}" stroke="{LINE}" stroke-width="0.5"/>')

    def cell(self, x, y, w, h, words, fill, size=9):
        self.rect(x, y, w, h, fill)
        if words != "":
            self.text(x + w / 2, y + h / 2 + size * 0.36, words, size, "middle")

    def array(self, x, y, name, values, fills=None, per_line=24, w=22, h=15, first=0):
        """A named array, the index of each line's first cell in front of it. Returns where it ends."""
        self.text(x, y + 9, name, 10, bold=True)
        y += 14
        for i, value in enumerate(values):
            column, row = i % per_line, i // per_line
            if column == 0:
                self.text(x + 22, y + row * (h + 2) + h / 2 + 3, first + i, 8, "end", LINE)
            fill = fills[i] if fills else EMPTY
            self.cell(x + 26 + column * w, y + row * (h + 2), w, h, value, fill)
        lines = max(1, (len(values) + per_line - 1) // per_line)
        return y + lines * (h + 2) + 8

    def legend(self, x, y, items):
        for fill, words in items:
            self.rect(x, y, 12, 12, fill)
            self.text(x + 18, y + 10, words)
            y += 17
        return y + 4

    def __str__(self):
        width, height = int(self.width) + 12, int(self.height) + 12
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="8">',
            f"<style>rect{{stroke:{LINE};stroke-width:0.5}}text{{text-anchor:middle}}</style>",
            "<!-- Drawn by cmake/draw_formats.py from the output of example/06_formats. -->",
            f"<title>{self.title}</title>",
            f'<rect x="0" y="0" width="{width}" height="{height}" fill="#ffffff" style="stroke:none"/>',
            *self.body, "</svg>", ""])


class Matrix:
    def __init__(self, csr):
        self.rows, self.cols = csr["rows"], csr["cols"]
        self.row_map, self.entries = csr["row_map"], csr["entries"]
        self.row_of = [r for r in range(self.rows) for _ in range(self.row_map[r], self.row_map[r + 1])]

    def row(self, value, column):
        """Row of a stored value, which must be an entry of this column; None for padding."""
        if value == 0 and column < 0:
            return None
        if value < 1 or self.entries[value - 1] != column:
            raise SystemExit(f"value {value} stands beside column {column}: the conversion is wrong")
        return self.row_of[value - 1]


def pattern(svg, m, fill_of, rulers=(), x=40, y=40, size=9):
    """The matrix, an entry coloured by fill_of(entry number from 0); lines above the rows in `rulers`."""
    svg.rect(x, y, m.cols * size, m.rows * size, EMPTY)
    for e, column in enumerate(m.entries):
        svg.rect(x + column * size, y + m.row_of[e] * size, size, size, fill_of(e))
    for r in range(m.rows):
        svg.text(x - 4, y + r * size + 7, r, 7, "end", LINE)
    for c in range(0, m.cols, 5):
        svg.text(x + c * size + size / 2, y - 4, c, 7, "middle", LINE)
    for r in rulers:
        svg.line(x, y + r * size, x + m.cols * size, y + r * size)
    svg.text(x, y + m.rows * size + 16, f"{m.rows} x {m.cols}, {len(m.entries)} entries", 10)
    return x + m.cols * size + 40


def draw_csr(m, _):
    svg = Svg("Compressed rows")
    fill = lambda r: FILLS[r % 4]
    x = pattern(svg, m, lambda e: fill(m.row_of[e]))
    y = svg.array(x, 30, "row_map: where rows begin", m.row_map, [fill(r) for r in range(m.rows)] + [GREY], 20)
    svg.array(x, y, "entries: column of each entry (values: as many numbers beside it)", m.entries,
              [fill(r) for r in m.row_of], 20)
    return svg


DASP = ["long", "medium", "medium", "medium", "pairs of 1 and 3", "pairs of 2", "rows of 3", "rows of 4",
        "single entries", "empty"]
DASP_FILL = dict(zip(DASP, ["#f4a6b7", "", "#a1d99b", "", "#9ecae1", "#fdae6b", "#bcbddc", "#d9d9a3", "#c7e9c0", GREY]))
DASP_FILL["medium"] = "#a1d99b"


def draw_dasp(m, d):
    svg = Svg("DASP")
    position_class = [0] * m.rows
    for c, count in enumerate(d["kernel_rows"]):
        for i in range(count):
            position_class[d["first_position"][c] + i] = c
            if c == 4:
                position_class[d["pair_ones_position"] + i] = c
    of_row = {row: DASP[position_class[p]] for p, row in enumerate(d["row_order"])}
    fill = lambda row: GREY if row is None else DASP_FILL[of_row[row]]
    x = pattern(svg, m, lambda e: fill(m.row_of[e]))
    seen = [name for name in dict.fromkeys(DASP) if name in of_row.values()]
    y = svg.legend(40, 40 + m.rows * 9 + 30, [
        (DASP_FILL[n], n + (f" (more than {d['max_medium_length']} entries)" if n == "long" else "")) for n in seen])
    svg.text(40, y + 10, f"instruction: {d['instruction']};")
    svg.text(40, y + 24, "a step is four tiles of it")
    y = svg.array(x, 30, "row_order: row at each position", d["row_order"], [fill(r) for r in d["row_order"]], 20)
    names = {}
    for c in (4, 5, 6, 7):
        if d["kernel_rows"][c]:
            names[d["first_step"][c]] = DASP[c]
    for b, block in enumerate(d["blocks"]):
        for k in range(block["steps"]):
            kind = "long" if b < d["long_pieces"][-1] else "medium"
            names[block["first_step"] + k] = f"{kind}, block {b}" + (
                f", irregular entries from {block['irregular']}")
    rows, depth = d["rows"], d["depth"]
    w, h = 20, 14
    svg.text(x, y + 9, "steps: column index of each slot, -1 where there is none", 10, bold=True)
    y += 18
    for s, step in enumerate(d["steps"]):
        svg.text(x, y + 9, f"step {s}: {names.get(s, '')}", 9)
        y += 13
        for tile in range(4):
            left = x + 34 + tile * (depth * w + 42)
            for r in range(rows):
                owners = []
                for k in range(depth):
                    at = (tile * rows + r) * depth + k
                    row = m.row(step["values"][at], step["columns"][at])
                    if row is not None and row not in owners:
                        owners.append(row)
                    svg.cell(left + k * w, y + r * h, w, h, step["columns"][at], fill(row), 8)
                svg.text(left - 3, y + r * h + 10, ",".join(str(o) for o in owners), 8, "end", LINE)
        y += rows * h + 9
    irregular = [m.row(v, c) for v, c in zip(d["irregular_values"], d["irregular_columns"])]
    y = svg.array(x, y + 4, "irregular_columns: what fills no step", d["irregular_columns"],
                  [fill(r) for r in irregular], 20)
    svg.array(x, y, "remainder: irregular entries of each medium row", d["remainder"],
              [DASP_FILL["medium"]] * len(d["remainder"]), 20)
    return svg


def draw_packed(m, d):
    svg = Svg("Packed slices")
    colour, lanes = {}, d["lanes"]
    for i, s in enumerate(d["slices"]):
        for at, value in enumerate(s["values"]):
            if s["index_bytes"] != 1:
                raise SystemExit("only 8-bit indices are drawn")
            index = s["indices"][at]
            row = m.row(value, -1 if index == 255 else s["column"] + index)
            if row is not None:
                unit = at % lanes // s["lanes_per_row"]
                colour[value - 1] = shade(FILLS[i % 8], unit % 2)
    x = pattern(svg, m, lambda e: colour[e])
    y = 30
    svg.text(x, y + 9, f"slices: an index of each lane (across, {lanes} lanes) and step (down)", 10, bold=True)
    svg.text(x, y + 23, "stored index = column - first column of the slice; ff: padding", 9)
    tops, w, h = [y + 34, y + 34], 20, 14
    for i, s in enumerate(d["slices"]):
        side = 0 if tops[0] <= tops[1] else 1
        left, y = x + side * (lanes * w + 130), tops[side]
        ids = s["row_ids"]
        if s["part"]:
            part = d["parts"][s["row"]]
            rows = f"row {part['row']}, part {part['which'] + 1} of {part['count']}"
        else:
            rows = "rows " + " ".join(str(s["row"] + r) for r in (ids or range(s["rows"])))
        svg.text(left, y + 9, f"slice {i}: {rows}", 9, bold=True)
        per_row = "a lane" if s["lanes_per_row"] == 1 else f"{s['lanes_per_row']} lanes"
        svg.text(left, y + 20, f"{per_row} per row, columns from {s['column']},", 8, colour=LINE)
        svg.text(left, y + 30, f"packet of {s['bytes']} bytes at {s['packet']} x 32", 8, colour=LINE)
        y += 35
        for at, index in enumerate(s["indices"]):
            unit = at % lanes // s["lanes_per_row"]
            fill = GREY if s["values"][at] == 0 else shade(FILLS[i % 8], unit % 2)
            svg.cell(left + at % lanes * w, y + at // lanes * h, w, h, "ff" if index == 255 else index, fill, 8)
        for unit in range(1, lanes // s["lanes_per_row"]):
            at = left + unit * s["lanes_per_row"] * w
            svg.line(at, y, at, y + s["steps"] * h)
        tops[side] = y + s["steps"] * h + 14
    return svg


def draw_csr5(m, d):
    svg = Svg("CSR5")
    omega, sigma = d["omega"], d["sigma"]
    tile = omega * sigma
    x = pattern(svg, m, lambda e: shade(FILLS[e // tile % 8], m.row_of[e] % 2))
    y = svg.array(x, 30, "tile_ptr: row of each tile's first entry (!: passes over empty rows)",
                  [f"{r}{'!' if f else ''}" for r, f in zip(d["tile_ptr"], d["has_empty_rows"])],
                  [FILLS[t % 8] for t in range(d["tiles"])] + [GREY])
    svg.text(x, y + 9, "tiles: column indices, lanes across, slots down; thick frame: a row starts", 10, bold=True)
    w, h, top = 20, 14, y + 18
    for t in range(d["full"]):
        left = x + 76 + t % 2 * (omega * w + 106)
        y = top + t // 2 * (sigma * h + 58)
        svg.text(left, y + 9, f"tile {t}", 9, bold=True)
        y += 13
        starts = []
        for j in range(sigma):
            for lane in range(omega):
                at = t * tile + j * omega + lane
                row = m.row(d["values"][at], d["columns"][at])
                if d["values"][at] != t * tile + lane * sigma + j + 1:
                    raise SystemExit("a tile is not transposed as it should be")
                svg.cell(left + lane * w, y + j * h, w, h, d["columns"][at], shade(FILLS[t % 8], row % 2), 8)
                if d["flags"][(t * omega + lane) * sigma + j]:
                    starts.append((left + lane * w, y + j * h))
        for at_x, at_y in starts:
            svg.rect(at_x + 1, at_y + 1, w - 2, h - 2, "none", "#000000", 1.6)
        for k, name in enumerate(("y_offset", "seg_offset")):
            line = y + sigma * h + 3 + k * 14
            svg.text(left - 4, line + 10, name, 8, "end", LINE)
            for lane in range(omega):
                svg.cell(left + lane * w, line, w, 13, d[name][t * omega + lane], EMPTY, 8)
    y = top + (d["full"] + 1) // 2 * (sigma * h + 58)
    if d["empty_offset"]:
        y = svg.array(x, y, "empty_offset: rows from tile_ptr + 1 on, for tiles marked !", d["empty_offset"])
    first = d["full"] * tile
    y = svg.array(x, y, f"tail: columns of the last {len(m.entries) - first} entries, as in CSR", d["columns"][first:],
                  [shade(FILLS[d["full"] % 8], r % 2) for r in m.row_of[first:]], first=first)
    svg.text(40, 40 + m.rows * 9 + 45, "carry_end: of the row that goes on behind", 10, bold=True)
    svg.array(40, 40 + m.rows * 9 + 50, "each tile, the last tile (0: none)", d["carry_end"],
              [FILLS[t % 8] for t in range(d["full"])])
    return svg


def draw_me_bcrs(m, d):
    svg = Svg("ME-BCRS")
    v, depth, pointers, columns = d["vector_length"], d["depth"], d["row_pointers"], d["column_indices"]
    windows = len(pointers) - 1
    fill_of_vector = {}
    for w in range(windows):
        for j in range(pointers[w], pointers[w + 1]):
            fill_of_vector[(w, columns[j])] = FILLS[(j - pointers[w]) // depth % 8]
    x = pattern(svg, m, lambda e: fill_of_vector[(m.row_of[e] // v, m.entries[e])], range(v, m.rows, v))
    y = svg.array(x, 30, "row_pointers: first vector of each window", pointers)
    fills = [fill_of_vector[(w, columns[j])] for w in range(windows) for j in range(pointers[w], pointers[w + 1])]
    y = svg.array(x, y, "column_indices: column of each vector", columns, fills)
    svg.text(x, y + 9, f"A colour is a block of {depth} vectors (the last one of a", 10)
    svg.text(x, y + 23, "window is as narrow as it is): one matrix instruction.", 10)
    y = max(y + 40, 40 + m.rows * 9 + 34)
    svg.text(40, y + 9, "values, window by window: above, the column; cells, the number of the CSR entry; empty, a stored "
             "zero", 10, bold=True)
    y += 18
    left, size, h = 40, 19, 13
    for w in range(windows):
        begin, end = pointers[w], pointers[w + 1]
        blocks = (end - begin + depth - 1) // depth
        width = (end - begin) * size + (blocks - 1) * 5
        if left > 40 and left + width > 960:
            left, y = 40, y + v * h + 44
        svg.text(left, y + 10, f"window {w}: rows {w * v} to {min(w * v + v, m.rows) - 1}", 9, bold=True)
        for b in range(blocks):
            first = begin + b * depth
            wide = min(depth, end - first)
            svg.grid(left + (first - begin) * size + b * 5, y + 26, wide, v, size, h)
            for k in range(wide):
                at_x = left + (first - begin + k) * size + b * 5
                svg.text(at_x + size / 2, y + 22, columns[first + k], 8, "middle", LINE)
                for i in range(v):
                    value = d["values"][first * v + i * wide + k]
                    row = None if value == 0 else m.row(value, columns[first + k])
                    if row is not None and row != w * v + i:
                        raise SystemExit("a value stands in another row")
                    if row is not None:
                        svg.cell(at_x, y + 26 + i * h, size, h, value, FILLS[b % 8], 8)
        left += width + 34
    return svg


def draw_panels(m, d):
    svg = Svg("Panels")
    rows, depth, pointers = d["rows"], d["depth"], d["block_ptr"]
    fill_of = {}
    for w in range(len(pointers) - 1):
        for b in range(pointers[w], pointers[w + 1]):
            for c in d["blocks"][b]["columns"]:
                fill_of[(w, c)] = FILLS[(b - pointers[w]) % 8]
    x = pattern(svg, m, lambda e: fill_of[(m.row_of[e] // rows, m.entries[e])], range(rows, m.rows, rows))
    y = svg.array(x, 30, "block_ptr: first block of each window", pointers)
    for words in (f"Window: {rows} rows. Block: {depth} of its distinct columns, the last", "one padded with -1. A packet "
                  "holds the columns, a bit per slot, how", "many entries of the block stand before each row, and where "
                  "the", "values begin; only entries have a value (numbers of CSR", "entries here), from a multiple of 16 "
                  "bytes on (grey: unused).", f"Instruction: {d['instruction']}"):
        svg.text(x, y + 9, words, 10)
        y += 14
    size, h = 20, 12
    tops = [y + 14, 40 + m.rows * 9 + 34, y + 14]
    lefts = [x, 40, x + depth * size + 50]
    for w in range(len(pointers) - 1):
        for b in range(pointers[w], pointers[w + 1]):
            block = d["blocks"][b]
            side = min(range(3), key=lambda i: tops[i])
            left, y = lefts[side], tops[side]
            svg.text(left, y + 9, f"block {b} (window {w}): {block['count']} entries, values from {block['begin']}", 9,
                     bold=True)
            fill, taken = FILLS[(b - pointers[w]) % 8], 0
            for k, column in enumerate(block["columns"]):
                svg.text(left + k * size + size / 2, y + 20, column, 8, "middle", LINE)
            svg.grid(left, y + 24, depth, rows, size, h)
            svg.text(left + depth * size + 18, y + 9, "before", 8, "end", LINE)
            for r in range(rows):
                if block["before"][r] != taken:
                    raise SystemExit("a block counts the entries before a row wrongly")
                for k, column in enumerate(block["columns"]):
                    bit = block["bitmap"][r * depth + k]
                    if bit and m.row(block["values"][taken], column) != w * rows + r:
                        raise SystemExit("a value stands in another row")
                    taken += bit
                    if bit:
                        svg.cell(left + k * size, y + 24 + r * h, size, h, 1, fill, 8)
                svg.text(left + depth * size + 18, y + 33 + r * h, block["before"][r], 8, "end", LINE)
            y += 24 + rows * h + 4
            for i, value in enumerate(block["values"]):
                svg.cell(left + i % depth * size, y + i // depth * h, size, h, value if value else "",
                         fill if value else GREY, 8)
            tops[side] = y + (len(block["values"]) + depth - 1) // depth * h + 16
    return svg


FIGURES = {"format-csr": ("csr", draw_csr), "format-dasp": ("dasp", draw_dasp), "format-packed": ("packed", draw_packed),
           "format-csr5": ("csr5", draw_csr5), "format-me-bcrs": ("me_bcrs", draw_me_bcrs),
           "format-panels": ("panels", draw_panels)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--program", help="the built example 06_formats, which is run")
    source.add_argument("--json", help="a file with its output")
    parser.add_argument("--matrix", help="Matrix Market file for the program (default: its own)")
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--out", type=pathlib.Path, help="folder to write the figures to")
    target.add_argument("--check", type=pathlib.Path, help="folder whose figures must be the same")
    options = parser.parse_args()
    if options.program:
        command = [options.program] + ([options.matrix] if options.matrix else [])
        text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    else:
        text = pathlib.Path(options.json).read_text()
    found = json.loads(text)
    m = Matrix(found["csr"])
    different = []
    for name, (key, draw) in FIGURES.items():
        figure = str(draw(m, found[key]))
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / f"{name}.svg").write_text(figure)
        else:
            there = options.check / f"{name}.svg"
            if not there.is_file() or there.read_text() != figure:
                different.append(str(there))
    for name in different:
        print(f"{name} is not what the formats are now; draw it anew with --out {options.check}", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
