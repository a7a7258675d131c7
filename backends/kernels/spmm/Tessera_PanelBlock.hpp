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
#include "backends/units/Tessera_SplitUnit.hpp"

/// \file
/// What the kernels over panels share: which blocks a wave takes, and how its sums reach C.

namespace Tessera {

/// One wave's blocks, and where it stands in its windows.
struct PanelPart {
  std::int64_t window, end_window;
  std::uint32_t first_block, end_block;
  std::uint32_t window_begin, window_end;  ///< blocks of the present window
  std::int32_t partial;                    ///< -1: the wave writes C
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
  part.window_begin = part.first_block;
  return part;
}
TESSERA_FUNCTION void panel_next_window(const SpmmPanelArgs& args, PanelPart& part) {
  ++part.window;
  part.window_begin = part.window_end;
  if (part.window < part.end_window) part.window_end = args.block_ptr[part.window + 1];
}

template <class Shape>
TESSERA_FUNCTION constexpr PanelGeometry panel_geometry() {
  PanelGeometry g;
  g.rows = Shape::rows;
  g.depth = Shape::depth;
  g.value_bytes = sizeof(typename Shape::Operand);
  g.atom = Shape::Atom::name;
  if (in_parts<typename Shape::Atom>) {
    g.part_step = Shape::per_step;
    for (int k = 0; k < Shape::depth; ++k) {
      if (k % Shape::slots < Shape::per_step) g.part_columns |= std::uint32_t{1} << k;
    }
  }
  return g;
}

/// The sum of one element of the present window, entry by entry as in plain loops.
template <class Shape>
TESSERA_FUNCTION typename Shape::Sum panel_sum(const SpmmPanelArgs& args, const PanelPart& part, int row,
                                               std::int64_t column) {
  using Operand = typename Shape::Operand;
  using Sum = typename Shape::Sum;
  constexpr PanelGeometry geometry = panel_geometry<Shape>();
  constexpr std::uint32_t all = geometry.depth == 32 ? ~0u : (1u << geometry.depth % 32) - 1u;
  const int bit = row * geometry.depth;
  Sum sum = 0;
  for (std::uint32_t block = part.window_begin; block < part.window_end; ++block) {
    const std::uint32_t* const packet = args.packets + std::size_t{block} * geometry.packet_words();
    std::uint32_t bits = packet[geometry.bitmap_at() + bit / 32] >> bit % 32 & all;
    const auto before = reinterpret_cast<const unsigned char*>(packet + geometry.prefix_at())[row];
    const Operand* value = static_cast<const Operand*>(args.values) + packet[geometry.begin_at()] + before;
    for (; bits != 0; bits &= bits - 1, ++value) {
      const std::uint32_t from = packet[count_bits((bits & ~(bits - 1)) - 1)];
      const Operand* const b = static_cast<const Operand*>(args.dense.b) + from * args.dense.ldb + column;
      sum += static_cast<Sum>(*value) * static_cast<Sum>(*b);
    }
  }
  return sum;
}

/// Sums of N consecutive columns of one row of a window: into C, or into partial sums.
template <class Wave, class Operand, int N, class Sum>
TESSERA_FUNCTION void panel_store(const SpmmPanelArgs& args, const PanelPart& part, int window_rows, int row,
                                  std::int64_t column, const Sum (&sums)[N]) {
  if (column >= args.dense.columns) return;
  if (part.partial >= 0) {
    auto target = spmm_partials<Sum>(args.split, args.dense.columns, part.partial, window_rows);
    // Never so. But sums that are stored as they are would have to lie in registers as one store wants them, which is
    // not how instructions want them, and compilers would move them from one order to the other in every block.
    if (Wave::keep(part.partial) < 0) target.alpha = static_cast<Sum>(args.dense.alpha);
    spmm_store_run(target, row, column, sums);
    return;
  }
  const std::int64_t row_of_c = spmm_row(args, part.window, window_rows, row);  // none of a row apart
  if (row_of_c < 0) return;
  spmm_to_c<Operand, Sum>(args.dense, [&](const auto& target) { spmm_store_run(target, row_of_c, column, sums); });
}

}  // namespace Tessera

#endif
