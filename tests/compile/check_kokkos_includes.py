#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
"""Fails for a header that names Kokkos and includes it neither itself nor through others of ours.

The test that compiles each header alone reads Kokkos from a precompiled header and so does not see this.

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


def includes_kokkos(header, seen):
    seen.add(header)
    text = text_of(header)
    if re.search(r'^#include <Kokkos', text, re.M):
        return True
    ours = re.findall(r'^#include "([^"]+)"', text, re.M)
    return any(includes_kokkos(h, seen) for h in ours if h not in seen)


code = {h: re.sub(r"//[^\n]*|/\*.*?\*/", "", text_of(h), flags=re.S) for h in headers}
wrong = [h for h in headers if re.search(r"\bKokkos::|\bKOKKOS_", code[h]) and not includes_kokkos(h, set())]
for header in wrong:
    print(f"error: {header} names Kokkos and includes <Kokkos_Core.hpp> nowhere", file=sys.stderr)
sys.exit(1 if wrong else 0)
