#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Checks the pages of example/manual: every ```cpp fragment stands, line by line, in a program of example/ (indentation
apart), every relative link leads to a file, every file named in `code` exists, every picture is used.

    check_manual.py [FOLDER OF THE CHECKOUT]
"""

import argparse
import pathlib
import re
import sys

FILE = re.compile(r"`((?:src|backends|tests|perf_test|example|cmake)/[\w./-]+\.\w+)`")


def squeeze(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def contains(lines, wanted):
    return any(lines[i : i + len(wanted)] == wanted for i in range(len(lines) - len(wanted) + 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    options = parser.parse_args()
    root, manual = options.root, options.root / "example" / "manual"
    programs = [squeeze(p.read_text()) for p in sorted((root / "example").glob("[0-9][0-9]_*.cpp"))]
    faults, fragments, linked = [], 0, set()
    pages = sorted(manual.glob("*.md"))
    for page in pages:
        text = page.read_text()
        for block in re.findall(r"^```cpp\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            fragments += 1
            if not any(contains(lines, squeeze(block)) for lines in programs):
                faults.append(f"{page.name}: no example has the fragment that begins with '{squeeze(block)[0]}'")
        prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)#:]+)\)", prose):
            linked.add(target)
            if not (manual / target).is_file():
                faults.append(f"{page.name}: a link to {target}, which does not exist")
        for name in FILE.findall(text):
            if not (root / name).is_file():
                faults.append(f"{page.name}: names {name}, which does not exist")
    for figure in sorted(manual.glob("figures/*")):
        if f"figures/{figure.name}" not in linked:
            faults.append(f"figures/{figure.name} is on no page")
    if not pages or fragments == 0:
        faults.append(f"{manual} holds no pages with fragments")
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{len(pages)} pages, {fragments} fragments, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
