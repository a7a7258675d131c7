// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_PACKED_CHECK_HPP
#define TESSERA_INTERFACE_PACKED_CHECK_HPP

#include "backends/interface/Tessera_KernelTable.hpp"
#include "backends/interface/Tessera_PackedLayout.hpp"

/// \file
/// Calls that kernels of packed slices refuse, as they would compute something else. PackedEngine makes none of them.

namespace Tessera {

/// What no kernel takes.
inline Status check_packed(const SpmvPackedArgs& args) noexcept {
  static_assert(packed_max_columns == 8, "a message below names it");
  if (args.columns < 1 || args.columns > packed_max_columns) return {"spmv[packed]: columns must lie in [1, 8]"};
  if (args.blocks > 1 && (args.columns > 1 || args.storage != PackedStorage::Full)) {
    return {"spmv[packed]: column blocks exclude several vectors at once and value classes"};
  }
  if (args.storage == PackedStorage::Float && args.precision != Precision::FP64) {
    return {"spmv[packed]: only doubles are stored as float"};
  }
  return {};
}

/// What the wave kernel is not compiled for besides: it would compute the first vector alone.
inline Status check_packed_waves(const SpmvPackedArgs& args) noexcept {
  if (args.columns > 1 && args.storage != PackedStorage::Full) {
    return {"spmv[packed]: several vectors at once need values in full"};
  }
  if (args.columns > 1 && args.hubs > 0) return {"spmv[packed]: several vectors at once exclude hub columns"};
  return check_packed(args);
}

}  // namespace Tessera

#endif
