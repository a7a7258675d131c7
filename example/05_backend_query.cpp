// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Prints every backend of this build, whether it can be used here, and the matrix instructions it would use.

#include <cstdio>

#include "Tessera.hpp"
#include "core/Tessera_KernelTables.hpp"

int main(int argc, char* argv[]) {
  Kokkos::initialize(argc, argv);
  {
    std::printf("default execution space: %s\n", Kokkos::DefaultExecutionSpace::name());
    for (const Tessera::BackendInfo& b : Tessera::available_backends()) {
      if (!b.usable) {
        std::printf("%-16s not usable: %s\n", b.name.c_str(), b.reason.c_str());
        continue;
      }
      std::printf("%-16s %s, waves of %d lanes\n", b.name.c_str(), b.facts.name, b.facts.wave);
      for (const Tessera::Precision p :
           {Tessera::Precision::FP64, Tessera::Precision::FP16, Tessera::Precision::BF16}) {
        const Tessera::DaspGeometry* g = Tessera::kernel_table(b.backend).spmv.dasp_geometry(p);
        if (g != nullptr) {
          std::printf("    %s: %s, tiles of %d rows x %d entries\n", Tessera::to_string(p), g->atom, g->rows, g->depth);
        }
      }
    }
  }
  Kokkos::finalize();
  return 0;
}
