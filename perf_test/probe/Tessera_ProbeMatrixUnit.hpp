// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_PROBE_MATRIX_UNIT_HPP
#define TESSERA_PROBE_MATRIX_UNIT_HPP

#include "backends/interface/Tessera_KernelTable.hpp"

/// \file
/// Between the probe, which knows Kokkos, and the CUDA file, which does not.

namespace Tessera {
namespace Bench {

struct MatrixUnitProbe {
  const char* name;  ///< of the atom
  double flop;       ///< of one instruction
  int chains;        ///< instructions of a wave that do not wait for each other
  int waves_a_unit;  ///< waves to launch on each multiprocessor; 0: one wave on the whole device
  /// Enqueues waves that issue `rounds` times `chains` instructions each. `sink` is written in no case that occurs.
  Status (*run)(int blocks, int threads, int rounds, void* sink, Stream stream) noexcept;
};

/// What is measured: throughput of each shape, with eight independent sums per wave, and its latency, with one wave.
const MatrixUnitProbe* cuda_matrix_unit_probes(int& count) noexcept;

}  // namespace Bench
}  // namespace Tessera

#endif
