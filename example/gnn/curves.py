# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Loss curves as an SVG file, without another library: a panel per graph and model, a curve per library and precision."""

import html
import math

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999"]
WIDTH, HEIGHT, LEFT, TOP, GAP = 300, 200, 50, 30, 70


def _panel(title, curves, colours, x, y):
    longest = max(len(losses) for losses in curves.values())
    most = max((loss for losses in curves.values() for loss in losses if math.isfinite(loss)), default=1.0) or 1.0
    lines = [f'<text x="{x}" y="{y - 8}" font-weight="bold">{html.escape(title)}</text>',
             f'<path d="M{x} {y}v{HEIGHT}h{WIDTH}" fill="none" stroke="#444"/>']
    for tick in range(5):
        value, at = most * tick / 4, y + HEIGHT * (1 - tick / 4)
        lines.append(f'<text x="{x - 6}" y="{at + 4:.1f}" text-anchor="end">{value:.2f}</text>')
        lines.append(f'<path d="M{x} {at:.1f}h{WIDTH}" stroke="#ddd" fill="none"/>')
    for epoch in (0, longest // 2, longest - 1):
        at = x + WIDTH * epoch / max(1, longest - 1)
        lines.append(f'<text x="{at:.1f}" y="{y + HEIGHT + 16}" text-anchor="middle">{epoch + 1}</text>')
    for name, losses in curves.items():
        points = " ".join(f"{x + WIDTH * i / max(1, longest - 1):.1f},{y + HEIGHT * (1 - loss / most):.1f}"
                          for i, loss in enumerate(losses) if math.isfinite(loss))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colours[name]}" stroke-width="1.5"/>')
    return lines


def draw(panels, path):
    """@param panels  title -> name of a curve -> a loss per epoch"""
    names = list(dict.fromkeys(name for curves in panels.values() for name in curves))
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    columns = min(3, max(1, len(panels)))
    lines = []
    for i, (title, curves) in enumerate(panels.items()):
        lines += _panel(title, curves, colours, LEFT + i % columns * (WIDTH + GAP),
                        TOP + i // columns * (HEIGHT + GAP))
    height = TOP + -(-len(panels) // columns) * (HEIGHT + GAP)
    for i, name in enumerate(names):
        x = LEFT + i % (3 * columns) * 130
        y = height + i // (3 * columns) * 18
        lines.append(f'<path d="M{x} {y - 4}h18" stroke="{colours[name]}" stroke-width="2" fill="none"/>')
        lines.append(f'<text x="{x + 24}" y="{y}">{html.escape(name)}</text>')
    total = height + 18 * -(-len(names) // (3 * columns)) + 10
    width = LEFT + columns * (WIDTH + GAP)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{total}" '
                   f'viewBox="0 0 {width} {total}" font-family="sans-serif" font-size="11">\n'
                   f'<rect width="{width}" height="{total}" fill="white"/>\n' + "\n".join(lines) + "\n</svg>\n")
