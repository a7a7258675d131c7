#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

# Checks of the tracked files that need no build: format, length, size, licence lines, floors (no include goes up), where
# Kokkos versions are told apart, pages of the manual against the examples. Prints every finding; ends with 1 when there
# is one.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. cmake/dependencies.sh
install_packages format

findings=0
finding() {
  printf '%s\n' "$*" >&2
  findings=$((findings + 1))
}

# A checkout may belong to another user than the one who checks it.
mapfile -t files < <(git -c safe.directory="$PWD" ls-files)
[ ${#files[@]} -gt 0 ] || die "git ls-files lists nothing in $PWD"

sources=()
for file in "${files[@]}"; do
  [ -f "$file" ] || continue
  case $file in
    CMakeLists.txt | CMakePresets.json | README.md | LICENSE | CHANGELOG.md | CONTRIBUTING.md | CITATION.cff | .*) ;;
    src/* | backends/* | tests/* | perf_test/* | example/* | cmake/*) ;;
    *) finding "$file: not a place of the folder tree" ;;
  esac
  case $file in
    *.hpp | *.cpp | *.cu | *.cuh | *.hip) sources+=("$file") ;;
  esac
  case $file in
    *.hpp | *.hpp.in | *.cpp | *.cu | *.cuh | *.hip | *.py | *.sh | *.cmake | *.cmake.in | */CMakeLists.txt | \
      CMakeLists.txt | .ci/run)
      lines=$(wc -l <"$file")
      [ "$lines" -le 600 ] || finding "$file: $lines lines, 600 are allowed"
      head -n 3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception' ||
        finding "$file: no SPDX line in its first three lines"
      ;;
  esac
  bytes=$(wc -c <"$file")
  [ "$bytes" -le 1048576 ] || finding "$file: $bytes bytes, 1 MiB is allowed"
  case $file in
    src/Tessera_Compat.hpp) ;;
    src/* | backends/*)
      ! grep -q KOKKOS_VERSION "$file" || finding "$file: tests KOKKOS_VERSION, which only Tessera_Compat.hpp does"
      ;;
  esac
  case $file in
    backends/*)
      ! grep -qE '#[[:space:]]*include[[:space:]]*[<"]Kokkos' "$file" || finding "$file: a backend includes Kokkos"
      ;;
  esac
done

if [ ${#sources[@]} -gt 0 ]; then
  clang-format --dry-run -Werror "${sources[@]}" || finding "clang-format: see above; clang-format -i mends it"
fi

python3 cmake/check_floors.py || finding "includes that go up a floor: see above"
python3 cmake/check_manual.py || finding "pages of the manual: see above"

if [ "$findings" -gt 0 ]; then
  die "$findings findings in ${#files[@]} files"
fi
say "${#files[@]} files checked, ${#sources[@]} of them for their format"
