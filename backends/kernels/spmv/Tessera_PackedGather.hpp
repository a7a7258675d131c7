// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPMV_PACKED_GATHER_HPP
#define TESSERA_KERNELS_SPMV_PACKED_GATHER_HPP

#include <cstdint>

#include "backends/interface/Tessera_PackedLayout.hpp"
#include "backends/interface/Tessera_StoreResult.hpp"
#include "backends/units/Tessera_Wave.hpp"

/// \file
/// How the kernels of packed slices read x and write y.

namespace Tessera {

// Policies of reading x; `make` fills them from the arguments of a product.

/// x in memory; Strides: whether it has any stride but 1; Written: for kernels that know where x lies before they may
/// read it.
template <class Value, class Wave, bool Strides, bool Written = false>
struct GatherPlain {
  const Value* x;
  std::int64_t stride, column_stride;  // read with Strides and for several vectors only

  TESSERA_FUNCTION static GatherPlain make(const SpmvPackedArgs& args) {
    return {static_cast<const Value*>(args.x), args.x_stride, args.x_column_stride};
  }
  TESSERA_FUNCTION Value operator()(std::int64_t column, int vector, bool on) const {
    if constexpr (Written) return Wave::gather_written_if(x + column, on);
    return Wave::gather_if(x + (Strides ? column * stride + vector * column_stride : column), on);
  }
};

/// x in memory, but the columns below `hubs` in a table close to the wave (shared memory).
template <class Value, class Wave>
struct GatherHubs {
  const Value* x;
  const Value* table;
  std::int64_t hubs;

  TESSERA_FUNCTION static GatherHubs make(const SpmvPackedArgs& args, const Value* table) {
    return {static_cast<const Value*>(args.x), table, args.hubs};
  }
  TESSERA_FUNCTION Value operator()(std::int64_t column, int, bool on) const {
    const bool hub = column < hubs;
    Value value = Wave::gather_if(x + (column - hubs), on && !hub);
    if (on && hub) value = table[column];
    return value;
  }
};

/// The same with a table in memory, small enough for the first-level cache.
template <class Value, class Wave>
struct GatherCopied {
  const Value* x;
  const Value* table;
  std::int64_t hubs;

  TESSERA_FUNCTION static GatherCopied make(const SpmvPackedArgs& args) {
    return {static_cast<const Value*>(args.x), static_cast<const Value*>(args.hub_copy), args.hubs};
  }
  TESSERA_FUNCTION Value operator()(std::int64_t column, int, bool on) const {
    return Wave::gather_if(column < hubs ? table + column : x + (column - hubs), on);
  }
};

/// The same numbering of columns without a table: for strides and several vectors.
template <class Value, class Wave>
struct GatherRenumbered {
  GatherPlain<Value, Wave, true> plain;
  const std::uint32_t* hub_columns;
  std::int64_t hubs;

  TESSERA_FUNCTION static GatherRenumbered make(const SpmvPackedArgs& args) {
    return {GatherPlain<Value, Wave, true>::make(args), args.hub_columns, args.hubs};
  }
  TESSERA_FUNCTION Value operator()(std::int64_t column, int vector, bool on) const {
    std::int64_t place = column - hubs;
    if (on && column < hubs) place = hub_columns[column];
    return plain(place, vector, on);
  }
};

/// x at the columns of a column block, from `first` on, in a table close to the wave; no other column is asked for.
template <class Value, class Wave>
struct GatherBlock {
  const Value* table;
  std::int64_t first;

  TESSERA_FUNCTION static GatherBlock of_block(const Value* table, std::int64_t first) { return {table, first}; }
  TESSERA_FUNCTION Value operator()(std::int64_t column, int, bool on) const {
    Value value{};
    if (on) value = table[column - first];
    return value;
  }
};

/// y at element `at`, rounded once. alpha and beta are in the sum's type already, so that lanes need not round them.
template <class Value, class Sum>
TESSERA_FUNCTION void packed_store(const SpmvPackedArgs& args, std::int64_t at, Sum sum) {
  if constexpr (sizeof(Sum) == 8) {
    store_result<Value>(args, at, sum);
  } else if (sizeof(Value) == 4 || args.y_type == ElementType::Float) {
    store_scaled(static_cast<float*>(args.y) + at, args.single_alpha, sum, args.single_beta);
  } else {
    store_scaled(static_cast<Value*>(args.y) + at, args.single_alpha, sum, args.single_beta);
  }
}

}  // namespace Tessera

#endif
