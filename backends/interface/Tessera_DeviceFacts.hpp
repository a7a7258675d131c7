// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_DEVICE_FACTS_HPP
#define TESSERA_INTERFACE_DEVICE_FACTS_HPP

#include <cstddef>

namespace Tessera {

/// What a device is. Rates are measured or tabulated; zero means unknown.
struct DeviceFacts {
  char name[128] = {};
  int index = -1;
  int major = 0, minor = 0;  ///< compute capability or gfx version
  int wave = 0;              ///< lanes
  int compute_units = 0;
  std::size_t shared_bytes = 0;  ///< per thread block, opt-in maximum
  std::size_t cache_bytes = 0;   ///< last level
  std::size_t memory_bytes = 0;
  double bandwidth = 0;         ///< bytes per second, nominal
  double fp64_matrix_rate = 0;  ///< flop per second of the FP64 matrix instruction, tabulated by device
};

}  // namespace Tessera

#endif
