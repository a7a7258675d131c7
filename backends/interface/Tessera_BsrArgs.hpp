// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_INTERFACE_BSR_ARGS_HPP
#define TESSERA_INTERFACE_BSR_ARGS_HPP

#include <cstdint>

#include "backends/interface/Tessera_ElementTypes.hpp"
#include "backends/interface/Tessera_Macros.hpp"
#include "backends/interface/Tessera_Status.hpp"

/// \file
/// y := alpha A x + beta y for a block matrix in the caller's arrays: nothing is converted, nothing is copied.

namespace Tessera {

/// Widest block that kernels of backends take: a row of it must fit into the lanes of a wave.
constexpr int bsr_max_block = 32;

struct SpmvBsrArgs {
  Precision precision = Precision::FP64;  ///< FP64 or FP32
  BlockOrder order = BlockOrder::RowMajor;
  std::int32_t block_rows = 0;
  int block = 1;  ///< rows, and columns, of a block
  std::int64_t blocks = 0;
  const void* row_map = nullptr;  ///< block_rows + 1 offsets, in blocks
  bool wide_offsets = false;      ///< of 64 bits, else of 32
  const std::int32_t* columns = nullptr;
  const void* values = nullptr;
  bool streaming = true;  ///< load the values past the first-level cache
  // The vectors.
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t x_stride = 1, y_stride = 1;
  ElementType y_type = ElementType::Double;  ///< that of the precision
  double alpha = 1, beta = 0;

  TESSERA_FUNCTION std::int64_t offset(std::int64_t block_row) const {
    return wide_offsets ? static_cast<const std::int64_t*>(row_map)[block_row]
                        : std::int64_t{static_cast<const std::int32_t*>(row_map)[block_row]};
  }
};

/// Where the numbers of one block row lie, from its first one on: (k, i, j) at k block + i row + j column.
struct BsrSteps {
  std::int64_t block, row, column;

  TESSERA_FUNCTION static BsrSteps of(BlockOrder order, std::int64_t b, std::int64_t blocks_in_row) {
    if (order == BlockOrder::RowMajor) return {b * b, b, 1};
    if (order == BlockOrder::ColumnMajor) return {b * b, 1, b};
    return {b, blocks_in_row * b, 1};
  }
};

/// What no kernel takes.
inline Status check_bsr(const SpmvBsrArgs& args) noexcept {
  if (args.precision != Precision::FP64 && args.precision != Precision::FP32) {
    return {"spmv[bsr]: FP64 and FP32 are offered"};
  }
  static_assert(bsr_max_block == 32, "a message names it");
  if (args.block < 1 || args.block > bsr_max_block) return {"spmv[bsr]: blocks must have 1 to 32 rows"};
  return {};
}

}  // namespace Tessera

#endif
