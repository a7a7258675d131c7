// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_OPERATION_HPP
#define TESSERA_BENCH_OPERATION_HPP

#include <string>
#include <vector>

#include "driver/Tessera_BenchOptions.hpp"

namespace Tessera {
namespace Bench {

struct Job;

/// What the driver knows of an operation.
struct Operation {
  std::string name;     ///< --op
  std::string summary;  ///< one line of --help
  std::vector<Precision> precisions;
  std::vector<std::string> algorithms;  ///< besides "all"
  /// Every name that --baseline may hold, built here or not. "cusparse" is all whose names begin with "cusparse-alg".
  std::vector<std::string> baselines;
  std::vector<std::string> takes;               ///< options of the command line that not every operation takes
  bool columns = false;                         ///< tables have a column N
  bool uniform_values = false;                  ///< make_values_uniform()
  void (*run)(const Job&) = nullptr;            ///< all precisions on one matrix, with Kokkos
  Exit (*read)(const BenchOptions&) = nullptr;  ///< instead of it: all files, without Kokkos
};

/// All operations of this build.
const std::vector<Operation>& operations();
/// @throw BenchError  ExitUsage
const Operation& find_operation(const std::string& name);

/// Of the folders of their names; perf_test/CMakeLists.txt lists those that are built. A new one adds a line here.
Operation spmv_operation();
Operation spmm_operation();
Operation sddmm_operation();
Operation attention_operation();
Operation spgemm_operation();
Operation read_operation();

}  // namespace Bench
}  // namespace Tessera

#endif
