// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_CONTEXT_HPP
#define TESSERA_BENCH_CONTEXT_HPP

#include <string>
#include <utility>
#include <vector>

#include "driver/Tessera_BenchOptions.hpp"

namespace Tessera {
namespace Bench {

/// Under which conditions the figures of one file were taken.
struct BenchContext {
  std::string device;           ///< model of the GPU or processor
  std::string execution_space;  ///< Kokkos' name, with threads where it has them
  bool host = true;
  std::string tessera, kokkos, kokkos_kernels, cuda, compiler, date;
  double stream_gbytes_per_second = 0;  ///< measured with --ceiling: a sum over a large array; 0: not measured

  /// Keys and values as they stand in JSON, in that order, numbers apart.
  std::vector<std::pair<std::string, std::string>> texts() const;
};

/// Of Kokkos' default execution space; Kokkos must be initialised.
BenchContext make_context(const BenchOptions& options);

/// Bytes of the memory that Kokkos' default execution space works in; 0: not known.
double memory_bytes();

/// Why Kokkos cannot be initialised here; empty if it can. Kokkos itself would abort.
std::string missing_device();

}  // namespace Bench
}  // namespace Tessera

#endif
