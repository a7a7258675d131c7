#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
"""Fails for a header that names Kokkos or Tpetra and includes it neither itself nor through others of ours.

The test that compiles each header alone reads both from a precompiled header and so does not see this.

    check_kokkos_includes.py ROOT HEADER...     headers as they are included
"""

import os
import re
import sys

root, headers = sys.argv[1], sys.argv[2:]
texts = {}


def text_of(header):
    if header not in texts:
        found = [p for p in (os.path.join(root, "src", header), os.path.join(root, header)) if os.path.exists(p)]
        texts[header] = open(found[0], encoding="utf-8").read() if found else ""  # a configured file is not in the tree
    return texts[header]


def includes(library, header, seen):
    seen.add(header)
    text = text_of(header)
    if re.search(rf"^#include <{library}_", text, re.M):
        return True
    ours = re.findall(r'^#include "([^"]+)"', text, re.M)
    return any(includes(library, h, seen) for h in ours if h not in seen)


failed = False
for library in ("Kokkos", "Tpetra"):
    named = re.compile(rf"\b{library}::|\b{library.upper()}_")
    for header in headers:
        code = re.sub(r"//[^\n]*|/\*.*?\*/", "", text_of(header), flags=re.S)
        if named.search(code) and not includes(library, header, set()):
            print(f"error: {header} names {library} and includes no header of it", file=sys.stderr)
            failed = True
sys.exit(1 if failed else 0)
