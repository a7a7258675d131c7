// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// What a project that links Tessera::tessera can count on: the headers, Kokkos behind them, and the version.

#include <Kokkos_Core.hpp>
#include <cstdio>
#include <cstring>

#include "Tessera_Config.hpp"
#include "Tessera_Error.hpp"

int main(int argc, char* argv[]) {
  Kokkos::initialize(argc, argv);
  int sum = 0;
  {
    Kokkos::parallel_reduce(
        Kokkos::RangePolicy<>(0, 10), KOKKOS_LAMBDA(int i, int& partial) { partial += i; }, sum);
  }
  Kokkos::finalize();
  char version[32];
  std::snprintf(version, sizeof version, "%d.%d.%d", TESSERA_VERSION_MAJOR, TESSERA_VERSION_MINOR,
                TESSERA_VERSION_PATCH);
  std::printf("Tessera %s, sum %d\n", TESSERA_VERSION_STRING, sum);
  return sum == 45 && std::strcmp(version, TESSERA_VERSION_STRING) == 0 ? 0 : 1;
}
