#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
"""Which translation units took longest, from the logs that Ninja keeps; fails if one took longer than the limit.

    cmake/check_compile_times.py [--limit SECONDS] [--most N] FOLDER...

A FOLDER is a build folder, in which .ninja_log lies. Times are wall times of the last compilation of each unit: they
mean what they say if no more compilers run than there are idle cores. Scale the limit where that is not so.
"""

import argparse
import os
import sys


def compilations(folder):
    """Seconds of each object file of a build folder; of an object that was built again, the last time."""
    path = os.path.join(folder, ".ninja_log")
    with open(path, encoding="utf-8") as log:
        header = log.readline()
        if not header.startswith("# ninja log v"):
            raise ValueError(f"{path}: not a log of Ninja")
        seconds = {}
        for line in log:
            fields = line.rstrip("\n").split("\t")
            if len(fields) != 5:
                raise ValueError(f"{path}: cannot read '{line.rstrip()}'")
            begin, end, _, output, _ = fields
            # A log remembers what is no longer built, too.
            if output.endswith((".o", ".obj")) and os.path.exists(os.path.join(folder, output)):
                # A path from the build folder, and from the root where a custom command made the object.
                name = os.path.relpath(output, os.path.realpath(folder)) if os.path.isabs(output) else output
                seconds[name] = (int(end) - int(begin)) / 1000
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=60, help="most seconds of a unit (default 60)")
    parser.add_argument("--most", type=int, default=10, help="how many units of a folder to print (default 10)")
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    options = parser.parse_args()

    too_slow = []
    for folder in options.folders:
        try:
            seconds = compilations(folder)
        except (OSError, ValueError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        if not seconds:
            print(f"error: {folder}: nothing was compiled", file=sys.stderr)
            return 2
        slowest = sorted(seconds.items(), key=lambda unit: -unit[1])
        print(f"{folder}: {len(seconds)} units, {sum(seconds.values()) / 60:.1f} min in all, the slowest:")
        for name, time in slowest[: options.most]:
            print(f"  {time:7.1f} s  {name}")
        too_slow += [(folder, name, time) for name, time in slowest if time > options.limit]

    for folder, name, time in too_slow:
        print(f"error: {folder}/{name} took {time:.1f} s, more than {options.limit:g} s", file=sys.stderr)
    return 1 if too_slow else 0


if __name__ == "__main__":
    sys.exit(main())
