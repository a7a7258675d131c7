#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

# Installs what is missing, builds Tessera and runs every test.
#
#   cmake/test.sh [--preset debian|openmp|asan|tpetra|cuda|hip-compile] [--label NAME[,NAME...]] [--configure-only]
#                 [-DNAME=VALUE ...] [-- CTEST ARGUMENTS]
#
# --label NAME builds and runs the tests of these folders (core, spmv, spmm, examples ...). Build folder: build/<preset>.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. cmake/dependencies.sh

# Test programs wait for their threads asleep: several run side by side, and spinning threads would starve each other.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive} OMP_PROC_BIND=${OMP_PROC_BIND:-false}

preset=debian
label=
configure_only=
# Said here, since a folder that cmake/run.sh configured has no tests and one operation.
configure=(-DTessera_ENABLE_TESTS=ON -UTessera_OPERATIONS)
while [ $# -gt 0 ]; do
  case $1 in
    --preset | --label)
      [ $# -ge 2 ] || die "$1 needs a value"
      if [ "$1" = --preset ]; then preset=$2; else label=$2; fi
      shift 2
      ;;
    --configure-only)
      configure_only=1
      shift
      ;;
    -D?*)
      configure+=("$1")
      shift
      ;;
    --)
      shift
      break
      ;;
    *)
      sed -n '5,10p' "$0" | sed 's/^# \{0,1\}//' >&2
      die "unknown argument '$1'"
      ;;
  esac
done

install_packages build tests
case $preset in
  openmp)
    build_openmp_kokkos
    configure+=("-DCMAKE_PREFIX_PATH=$tessera_deps/openmp")
    ;;
  hip-compile) install_packages hip ;;
  tpetra) install_packages tpetra ;;
  cuda) command -v "${CUDACXX:-nvcc}" >/dev/null || die "preset cuda needs nvcc on the PATH or in CUDACXX" ;;
  debian | asan) ;;
  *) die "unknown preset '$preset' (debian, openmp, asan, tpetra, cuda, hip-compile)" ;;
esac

if [[ " ${configure[*]} " == *" -DTessera_ENABLE_PYTHON=ON "* && " ${configure[*]}" != *" -DPython_EXECUTABLE="* ]]; then
  install_packages python
  make_python_environment
  configure+=("-DPython_EXECUTABLE=$tessera_deps/python/bin/python")
fi

use_ninja
jobs=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}

say "configuring build/$preset"
cmake --preset "$preset" "${configure[@]}"
if [ -n "$configure_only" ]; then
  exit 0
fi

target=()
if [ -n "$label" ]; then
  for name in ${label//,/ }; do
    case $name in
      compile | consumer) ;;
      examples) target+=(tessera_examples) ;;
      *) target+=("tessera_test_$name") ;;
    esac
  done
  [ ${#target[@]} -eq 0 ] || target=(--target "${target[@]}")
fi
say "building build/$preset"
cmake --build --preset "$preset" --parallel "$jobs" "${target[@]}"

say "testing build/$preset"
ctest --preset "$preset" --parallel "$jobs" ${label:+--label-regex "^(${label//,/|})\$"} "$@"
