#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

# Installs what is missing, builds Tessera with Debian's packages and runs a product on a matrix of example/data.
#
#   cmake/run.sh [ARGUMENTS OF tessera_bench]

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. cmake/dependencies.sh

install_packages build
use_ninja

# Only the operation that is asked for, beside those that the folder was configured with: all take three times as long.
operation=$(printf '%s\n' "$@" | sed -n '/^--op$/{n;p;q}; s/^--op=//p')
[ -d "perf_test/${operation:=spmv}" ] && [ -d "src/$operation" ] || operation=spmv
operations=$(sed -n 's/^Tessera_OPERATIONS:[A-Z]*=//p' build/debian/CMakeCache.txt 2>/dev/null || true)
case ";$operations;" in
  *";$operation;"*) ;;
  *) operations=${operations:+$operations;}$operation ;;
esac

say "configuring build/debian"
# Only what is run here; a folder that cmake/test.sh configured keeps its tests.
tests=(-DTessera_ENABLE_TESTS=OFF)
if [ -e build/debian/CMakeCache.txt ]; then
  tests=()
fi
cmake --preset debian "${tests[@]}" -DTessera_ENABLE_PERF_TESTS=ON "-DTessera_OPERATIONS=$operations"
say "building build/debian"
cmake --build --preset debian --parallel "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" --target tessera_bench

if [ $# -eq 0 ]; then
  matrix=$(find example/data -name 'bcsstk16.mtx.gz')
  [ -n "$matrix" ] || die "example/data holds no matrix"
  # What was chosen beside plain CSR and Kokkos Kernels: on a matrix that stays in caches and on one that does not.
  set -- --op spmv --matrix "$matrix" --matrix gen:stencil3d:nx=100:ny=100:nz=100 --algorithm auto,csr --precision fp64 \
    --ceiling
fi
say "tessera_bench $*"
exec build/debian/perf_test/tessera_bench "$@"
