#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

# What Tessera needs from outside, on Debian 12.
#
#   cmake/dependencies.sh packages GROUP...   install the missing packages of build, tests, tpetra, muelu, hip, python,
#                                             format, doc, link
#   cmake/dependencies.sh openmp              build Debian's Kokkos and Kokkos Kernels sources with OpenMP
#   cmake/dependencies.sh python              make a Python environment with nanobind, which Debian 12 does not have
#
# Nothing is fetched when nothing is missing. The OpenMP Kokkos goes to $TESSERA_DEPS/openmp (default build/deps), the
# Python environment to $TESSERA_DEPS/python.
# Other scripts source this file for its functions.

set -euo pipefail

tessera_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tessera_deps=$(realpath -m "${TESSERA_DEPS:-$tessera_root/build/deps}")

say() { printf '== %s\n' "$*"; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "installing packages needs root or sudo; run as root: $*"
  fi
}

# Tools count by their command, because they often come from elsewhere than Debian.
packages_of() {
  case $1 in
    build)
      command -v c++ >/dev/null || echo g++
      command -v cmake >/dev/null || echo cmake
      command -v ninja >/dev/null || echo ninja-build
      # LAPACK and BLAS: Debian's Kokkos Kernels links them and its package does not say so.
      echo libtrilinos-kokkos-dev libtrilinos-kokkos-kernels-dev liblapack-dev libblas-dev zlib1g-dev libcli11-dev \
        nlohmann-json3-dev libboost-dev
      ;;
    tests) echo libgtest-dev python3-scipy pkg-config ;;
    tpetra)
      # Trilinos' -dev packages do not depend on all those whose CMake files theirs include.
      echo libopenmpi-dev openmpi-bin gzip libtrilinos-{tpetra,belos,ifpack2,teuchos,epetra,epetraext,triutils,aztecoo}-dev \
        libtrilinos-{rtop,thyra,xpetra}-dev
      ;;
    # For Tessera_ENABLE_MUELU, with tpetra.
    muelu) echo libtrilinos-{muelu,amesos2,zoltan,zoltan2}-dev ;;
    python) echo python3-dev python3-pip python3-venv python3-numpy python3-scipy python3-pytest ;;
    hip) echo hipcc rocm-device-libs libamdhip64-dev ;;
    format) command -v clang-format >/dev/null || echo clang-format ;;
    doc) command -v doxygen >/dev/null || echo doxygen ;;
    # Links a program in 0.4 s instead of 1.3.
    link) command -v ld.lld >/dev/null || echo lld ;;
    *) die "unknown package group '$1' (build, tests, tpetra, muelu, hip, python, format, doc, link)" ;;
  esac
}

install_packages() {
  local group package
  local -a missing=()
  for group in "$@"; do
    for package in $(packages_of "$group"); do
      if ! command -v dpkg-query >/dev/null; then
        missing+=("$package")
      elif [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
        missing+=("$package")
      fi
    done
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  if ! command -v apt-get >/dev/null; then
    say "no apt-get here; if the build fails, install what matches these Debian packages: ${missing[*]}"
    return 0
  fi
  say "installing ${missing[*]}"
  # A source that does not answer and holds none of these packages need not stop us.
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq </dev/null || say "apt-get update reported errors"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" \
    </dev/null >/dev/null || die "apt-get could not install: ${missing[*]}"
}

# Ninja where it is installed. A folder that was configured before keeps its generator; CMake prefers it to this.
use_ninja() {
  if command -v ninja >/dev/null; then
    export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}
  fi
}

# Debian's entries of the system's sources as deb-src entries, in the file $1. The system's own lists stay as they are.
write_source_list() {
  local codename file
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")
  : >"$1"
  for file in /etc/apt/sources.list.d/*.sources; do
    [ -e "$file" ] || continue
    # One paragraph per source; only the one that carries the release itself is of use.
    awk -v RS= -v codename="$codename" '
      /(^|\n)Enabled:[ \t]*no/ { next }
      match($0, /(^|\n)Suites:[^\n]*/) {
        suites = substr($0, RSTART, RLENGTH)
        if (suites !~ ("[ \t]" codename "([ \t]|$)")) next
        sub(/Types:[^\n]*/, "Types: deb-src")
        sub(/Suites:[^\n]*/, "Suites: " codename)
        print $0 "\n"
      }' "$file" >>"$1"
  done
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -e "$file" ] || continue
    # deb [options] uri suite components: as a paragraph of its own, since one file has one format.
    sed -nE "s/^deb(-src)?[[:space:]]+(\[[^]]*\][[:space:]]+)?([^[:space:]]+)[[:space:]]+($codename)[[:space:]]+(.*)/\3|\5|\2/p" \
      "$file" | while IFS='|' read -r uri components options; do
      printf 'Types: deb-src\nURIs: %s\nSuites: %s\nComponents: %s\n' "$uri" "$codename" "$components"
      case $options in
        *signed-by=*) printf 'Signed-By: %s\n' "$(sed -E 's/.*signed-by=([^] ]+).*/\1/' <<<"$options")" ;;
      esac
      printf '\n'
    done >>"$1"
  done
  [ -s "$1" ] || die "no apt source of Debian '$codename' was found, so its Trilinos source cannot be fetched"
}

fetch_trilinos() {
  local work=$1 archive
  mkdir -p "$work/lists/partial"
  write_source_list "$work/debian.sources"
  local -a options=(-qq -o "Dir::Etc::sourcelist=$work/debian.sources" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$work/lists" -o APT::Sandbox::User=)
  say "fetching Debian's Trilinos source"
  apt-get "${options[@]}" update </dev/null || die "apt-get could not read the source lists in $work/debian.sources"
  (cd "$work" && apt-get "${options[@]}" source --download-only trilinos </dev/null)
  archive=$(find "$work" -maxdepth 1 -name 'trilinos_*.orig.tar.*' ! -name '*.asc' | head -n 1)
  [ -n "$archive" ] || die "apt-get source trilinos left no archive in $work"
  mkdir -p "$work/source"
  tar -xf "$archive" -C "$work/source" --strip-components=1 --wildcards '*/packages/kokkos/*' \
    '*/packages/kokkos-kernels/*'
  rm -f "$archive"
}

build_openmp_kokkos() {
  local prefix=$tessera_deps/openmp work=$tessera_deps/openmp-build packages
  # Written last: a build that was cut off is done again.
  if [ -e "$prefix/complete" ]; then
    return 0
  fi
  rm -rf "$prefix" "$work/kokkos" "$work/kernels"
  use_ninja
  packages=$work/source/packages
  [ -e "$packages/kokkos-kernels/CMakeLists.txt" ] || fetch_trilinos "$work"
  say "building Kokkos with OpenMP in $prefix"
  # Shared, as Debian's own: from a static Kokkos a program that names no OpenMP symbol gets no OpenMP at all.
  local -a common=(-DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=17 -DCMAKE_CXX_EXTENSIONS=OFF
    -DBUILD_SHARED_LIBS=ON -DCMAKE_INSTALL_LIBDIR=lib "-DCMAKE_INSTALL_PREFIX=$prefix"
    "-DCMAKE_INSTALL_RPATH=$prefix/lib" -Wno-dev)
  quietly "$work/kokkos.log" cmake -S "$packages/kokkos" -B "$work/kokkos" "${common[@]}" -DKokkos_ENABLE_SERIAL=ON \
    -DKokkos_ENABLE_OPENMP=ON
  quietly "$work/kokkos.log" cmake --build "$work/kokkos" --target install --parallel "$(nproc)"
  # Without instantiations: its kernels are compiled where they are used.
  quietly "$work/kernels.log" cmake -S "$packages/kokkos-kernels" -B "$work/kernels" "${common[@]}" \
    "-DCMAKE_PREFIX_PATH=$prefix" -DKokkosKernels_ADD_DEFAULT_ETI=OFF \
    -DKokkosKernels_ENABLE_TPL_BLAS=OFF -DKokkosKernels_ENABLE_TPL_LAPACK=OFF -DKokkosKernels_ENABLE_TESTS=OFF
  quietly "$work/kernels.log" cmake --build "$work/kernels" --target install --parallel "$(nproc)"
  touch "$prefix/complete"
}

# The system's Python, whose NumPy, SciPy and pytest are Debian's: the python3 on the PATH may be another one.
make_python_environment() {
  local prefix=$tessera_deps/python
  if [ -x "$prefix/bin/python" ] && "$prefix/bin/python" -c "import nanobind" 2>/dev/null; then
    return 0
  fi
  mkdir -p "$tessera_deps"
  say "making a Python environment in $prefix"
  quietly "$tessera_deps/python.log" /usr/bin/python3 -m venv --system-site-packages --clear "$prefix"
  quietly "$tessera_deps/python.log" "$prefix/bin/python" -m pip install --disable-pip-version-check 'nanobind>=2.0,<4'
}

# Output goes to a file and is shown when the command fails.
quietly() {
  local log=$1
  shift
  if ! "$@" >"$log" 2>&1 </dev/null; then
    tail -n 40 "$log" >&2
    die "failed: $* (all of it: $log)"
  fi
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  case ${1:-} in
    packages)
      shift
      install_packages "$@"
      ;;
    openmp)
      install_packages build
      build_openmp_kokkos
      ;;
    python)
      install_packages python
      make_python_environment
      ;;
    *)
      sed -n '5,13p' "$0" | sed 's/^# \{0,1\}//'
      exit 2
      ;;
  esac
fi
