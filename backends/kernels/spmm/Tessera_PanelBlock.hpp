// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMM_PANEL_BLOCK_HPP
#define TESSERA_KERNELS_SPMM_PANEL_BLOCK_HPP

#include <cstdint>

#include "backends/interface/Tessera_Macros.hpp"
#include "backends/interface/Tessera_SpmmArgs.hpp"
#include "backends/kernels/spmm/Tessera_SpmmRun.hpp"
#include "backends/kernels/spmm/Tessera_SpmmStore.hpp"
#include "backends/units/Tessera_RegisterWords.hpp"

/// \file
/// What the kernels over panels share: which blocks a wave takes, and how its sums reach C.

namespace Tessera {

/// One wave's blocks, and where it stands in its windows.
struct PanelPart {
  std::int64_t window, end_window;
  std::uint32_t first_block, end_block, window_end;
  std::int32_t partial;  ///< -1: the wave writes C
};

TESSERA_FUNCTION PanelPart panel_part(const SpmmPanelArgs& args, std::int64_t index) {
  PanelPart part;
  if (args.split.parts == nullptr) {
    part.window = index * args.split.windows_per_part;
    part.end_window = part.window + args.split.windows_per_part;
    if (part.end_window > args.windows) part.end_window = args.windows;
    part.first_block = args.block_ptr[part.window];
    part.end_block = args.block_ptr[part.end_window];
    part.window_end = part.end_window == part.window + 1 ? part.end_block : args.block_ptr[part.window + 1];
    part.partial = -1;
  } else {
    const SpmmPart p = args.split.parts[index];
    part.window = p.window;
    part.end_window = part.window + 1;
    part.first_block = p.first_block;
    part.end_block = part.window_end = p.first_block + static_cast<std::uint32_t>(p.blocks);
    part.partial = p.partial;
  }
  return part;
}
TESSERA_FUNCTION void panel_next_window(const SpmmPanelArgs& args, PanelPart& part) {
  ++part.window;
  if (part.window < part.end_window) part.window_end = args.block_ptr[part.window + 1];
}

/// Sums of N consecutive columns of one row of a window: into C, or into partial sums.
template <class Operand, int N, class Sum>
TESSERA_FUNCTION void panel_store(const SpmmPanelArgs& args, const PanelPart& part, int window_rows, int row,
                                  std::int64_t column, const Sum (&sums)[N]) {
  if (column >= args.dense.columns) return;
  if (part.partial >= 0) {
    spmm_store_run(spmm_partials<Sum>(args.split, args.dense.columns, part.partial, window_rows), row, column, sums);
    return;
  }
  const std::int64_t row_of_c = spmm_row(args, part.window, window_rows, row);
  if (row_of_c < 0) return;
  spmm_to_c<Operand, Sum>(args.dense, [&](const auto& target) { spmm_store_run(target, row_of_c, column, sums); });
}

}  // namespace Tessera

#endif
