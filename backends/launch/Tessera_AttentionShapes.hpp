// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_ATTENTION_SHAPES_HPP
#define TESSERA_LAUNCH_ATTENTION_SHAPES_HPP

#include <algorithm>

#include "backends/launch/Tessera_AttentionLaunchers.hpp"
#include "backends/launch/Tessera_Launch.hpp"
#include "backends/units/Tessera_AtomsAmd.hpp"
#include "backends/units/Tessera_AtomsNvidia.hpp"

/// \file
/// Instructions of attention, and what both directions ask of their arguments.

namespace Tessera {

struct AttentionNvidia {
  using FP16 = Sm80_M16N8K16_F32_F16;
  using BF16 = Sm80_M16N8K16_F32_BF16;
};
struct AttentionAmd {
  using FP16 = Gfx90a_M16N16K16_F32_F16;
  using BF16 = Gfx90a_M16N16K16_F32_BF16;
};

namespace Launch {

template <class Device>
AttentionShape attention_shape(Precision precision) noexcept {
  using Vendor = ForFamily<Device, AttentionNvidia, AttentionAmd>;
  using FP16 = typename Vendor::FP16;
  if (precision == Precision::FP16) return {FP16::n, FP16::m, 256, 128, FP16::name};
  if (precision == Precision::BF16) return {FP16::n, FP16::m, 256, 128, Vendor::BF16::name};
  return {};
}

/// Ok, or why these arguments cannot be run.
inline Status attention_check(const AttentionArgs& args, const AttentionShape& shape) noexcept {
  if (shape.rows == 0) return {"attention: operands of 16 bits are offered"};
  const bool two = args.window_rows == 2 * shape.rows;
  if (!two && args.window_rows != shape.rows) return {"attention: the windows were made for another instruction"};
  const AttentionDense& dense = args.dense;
  const std::int64_t most = two ? shape.most_columns_of_two : shape.most_columns;
  if (dense.d <= 0 || dense.d % 8 != 0 || dense.d > most || dense.e <= 0 || dense.e % 8 != 0 || dense.e > most) {
    return {
        "attention: columns of Q and V must be multiples of 8 up to 256 (windows of twice the height: 128), backward "
        "half of it"};
  }
  if (std::max({dense.ldq, dense.ldk, dense.ldv}) >= (std::int64_t{1} << 30)) {
    return {"attention: rows of Q, K or V lie 2^30 or more elements apart"};
  }
  return {};
}

}  // namespace Launch
}  // namespace Tessera

#endif
