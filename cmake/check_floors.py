#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

"""Checks that no include goes up a floor (src/README.md, "Floors").

    cmake/check_floors.py            prints every include that goes up, as file:line, and ends with 1 if there is one
    cmake/check_floors.py --table    one line per room: files, lines, rooms that it includes, includes that go up

A room is a folder, or the top of src/. The table says which rooms each room may include besides itself; a room that is
missing from it is a finding, too, so that a new folder has to be given its floor.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Of the top of src/, these are the ground floor: what everything else in src/ may include.
GROUND = {
    "Tessera_BsrView.hpp", "Tessera_Compat.hpp", "Tessera_Config.hpp", "Tessera_CsrView.hpp", "Tessera_Device.hpp",
    "Tessera_Error.hpp", "Tessera_Options.hpp", "Tessera_Statistics.hpp", "Tessera_Types.hpp",
}
INTERFACE = {"backends/interface", "backends/interface/types"}
OPERATIONS = ["spmv", "spmm", "sddmm", "attention", "spgemm"]
FORMATS = ["dasp", "csr5", "packed", "windows", "block_order"]

# room -> rooms it may include.
MAY = {
    "src/ground": {"backends/interface/types"},
    "src/io": {"src/ground"},
    "src/core": {"src/ground", *INTERFACE, "backends/reference"},
    "src/features": {"src/core", "src/ground", *INTERFACE},
    "src/reorder": {"src/features", "src/core", "src/ground", *INTERFACE},
    "src/lib": {"src/reorder", "src/features", "src/core", "src/ground", *INTERFACE},
    "src/plans": {"src/core", "src/features", "src/reorder", "src/io", "src/ground", "backends/interface/types"},
    "src/adapters": {"src/plans", "src/io", "src/ground"},
    "src/adapters/python": {"src/plans", "src/ground"},
    "backends/interface/types": set(),
    "backends/interface": {"backends/interface/types"},
    "backends/reference": INTERFACE,
    "backends/host": INTERFACE,
    "backends/units": INTERFACE,
}
for name in FORMATS:
    MAY[f"src/formats/{name}"] = {"src/features", "src/core", "src/ground", *INTERFACE}
for name in OPERATIONS:
    below = {f"src/formats/{f}" for f in FORMATS} | {"src/reorder", "src/features", "src/core", "src/ground"}
    MAY[f"src/{name}"] = below | INTERFACE | {"backends/host", "backends/reference"}
    MAY["src/plans"].add(f"src/{name}")
    MAY[f"backends/kernels/{name}"] = {"backends/units", *INTERFACE}
# A chain of other operations' plans is one of its algorithms.
MAY["src/attention"] |= {"src/sddmm", "src/spmm"}
# Several vectors are a matrix.
MAY["src/spmv"] |= {"src/spmm"}
kernels = {f"backends/kernels/{name}" for name in OPERATIONS}
MAY["backends/launch"] = kernels | {"backends/units", *INTERFACE}
for vendor in ("cuda", "hip", "emulated"):
    MAY[f"backends/{vendor}"] = MAY["backends/launch"] | {"backends/launch"}

# Facts that both sides name: 16-bit types, precisions, what a device is. Public headers include no others of backends/.
TYPES = {f"backends/interface/Tessera_{name}.hpp" for name in ("DeviceFacts", "ElementTypes", "Half", "Macros")}


def room_of(path):
    """The room of a file, given relative to the root."""
    if path in TYPES:
        return "backends/interface/types"
    folder = path.rsplit("/", 1)[0]
    if folder == "src":
        return "src/ground" if path.rsplit("/", 1)[1] in GROUND else "src/plans"
    return folder


def resolve(include, source):
    for base in (ROOT / "src", ROOT, source.parent):
        if (base / include).is_file():
            return (base / include).resolve().relative_to(ROOT).as_posix()
    return "src/" + include if include == "Tessera_Config.hpp" else None


def main():
    rooms, findings = {}, []
    suffixes = {".hpp", ".cpp", ".cu", ".cuh", ".hip"}
    for source in sorted(p for top in ("src", "backends") for p in (ROOT / top).rglob("*") if p.suffix in suffixes):
        path = source.relative_to(ROOT).as_posix()
        room = room_of(path)
        lines = source.read_text().splitlines()
        entry = rooms.setdefault(room, {"files": 0, "lines": 0, "to": set(), "up": 0})
        entry["files"] += 1
        entry["lines"] += len(lines)
        if room not in MAY:
            findings.append(f"{path}:1: the room {room} has no floor in cmake/check_floors.py")
            continue
        for number, line in enumerate(lines, 1):
            match = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            target = match and resolve(match.group(1), source)
            if not target or room_of(target) == room:
                continue
            entry["to"].add(room_of(target))
            if room_of(target) not in MAY[room]:
                entry["up"] += 1
                findings.append(f"{path}:{number}: {room} must not include {target}")
    if "--table" in sys.argv:
        for room, entry in rooms.items():
            print(f"{room:26} {entry['files']:3} files {entry['lines']:6} lines {entry['up']:3} up  "
                  + " ".join(sorted(entry["to"])))
    for finding in findings:
        print(finding, file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
