// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_REFERENCE_EMULATED_PACKED_HPP
#define TESSERA_REFERENCE_EMULATED_PACKED_HPP

#include <vector>

#include "backends/interface/Tessera_PackedCheck.hpp"
#include "backends/kernels/spmv/Tessera_PackedKernel.hpp"

/// \file
/// Packed slices on emulated waves. Each precision is compiled in a file of its own.

namespace Tessera {

/// Any stride, any number of vectors, hub columns through a table or not: what devices have several policies for.
template <class Value, class Wave>
struct GatherEmulated {
  GatherRenumbered<Value, Wave> renumbered;
  const Value* table;

  Value operator()(std::int64_t column, int vector, bool on) const {
    const auto& plain = renumbered.plain;
    if (table != nullptr) return GatherHubs<Value, Wave>{plain.x, table, renumbered.hubs}(column, vector, on);
    return renumbered.hubs > 0 ? renumbered(column, vector, on) : plain(column, vector, on);
  }
};

/// Column blocks, one share after another: with a table of x, which a device needs x without a stride for.
template <class Value, int Lanes>
void emulate_packed_blocks(const SpmvPackedArgs& args) {
  using Wave = HostWave<Lanes>;
  using Types = PackedTypes<Value, PackedStorage::Full>;
  const SpmvPackedArgs first = packed_block_args(args);
  const Value* const x = static_cast<const Value*>(args.x);
  const Wave wave;
  for (std::uint32_t i = 0; i < args.share_count; ++i) {
    const PackedShare share = args.shares[i];
    std::vector<Value> table(share.columns);
    for (std::uint32_t c = 0; c < share.columns; ++c) table[c] = x[(share.column + c) * args.x_stride];
    using Kernel = PackedKernel<Types, Wave, GatherBlock<Value, Wave>, 2, true, 1>;
    const GatherBlock<Value, Wave> gather{table.data(), share.column};
    for (std::uint32_t k = share.rank; k < share.count(); k += share.ranks) {
      Kernel::run(wave, first, gather, Kernel::load_slice(args, share.slice(k)));
    }
  }
  for (std::int64_t row = 0; row < args.rows; ++row) packed_add_blocks<Value>(args, row);
}

template <class Value, PackedStorage Storage, int Lanes, int Columns>
void emulate_packed(const SpmvPackedArgs& args) {
  using Wave = HostWave<Lanes>;
  using Gather = GatherEmulated<Value, Wave>;
  using Kernel = PackedKernel<PackedTypes<Value, Storage>, Wave, Gather, 2, true, Columns>;
  const auto renumbered = GatherRenumbered<Value, Wave>::make(args);
  std::vector<Value> table;
  if (args.hubs > 0 && args.columns == 1 && args.x_stride == 1) {
    for (std::uint32_t i = 0; i < args.hubs; ++i) table.push_back(renumbered.plain.x[args.hub_columns[i]]);
  }
  const Gather gather{renumbered, table.empty() ? nullptr : table.data()};
  const Wave wave;
  for (std::uint32_t i = 0; i < args.slice_count; ++i) Kernel::run(wave, args, gather, Kernel::load_slice(args, i));
}

template <class Value, int Lanes>
void emulate_packed(const SpmvPackedArgs& args) {
  switch (args.storage) {
    case PackedStorage::Full:
      if (args.blocks > 1) return emulate_packed_blocks<Value, Lanes>(args);
      if (args.columns == 1) return emulate_packed<Value, PackedStorage::Full, Lanes, 1>(args);
      return emulate_packed<Value, PackedStorage::Full, Lanes, packed_max_columns>(args);
    case PackedStorage::Float:
      if constexpr (sizeof(Value) == 8) emulate_packed<Value, PackedStorage::Float, Lanes, 1>(args);
      return;
    case PackedStorage::Integer:
      return emulate_packed<Value, PackedStorage::Integer, Lanes, 1>(args);
    case PackedStorage::Dictionary:
      return emulate_packed<Value, PackedStorage::Dictionary, Lanes, 1>(args);
    case PackedStorage::Constant:
      return emulate_packed<Value, PackedStorage::Constant, Lanes, 1>(args);
  }
}

// In the files Tessera_EmulatedPacked*.cpp.
void emulate_packed_fp64(const SpmvPackedArgs& args, int lanes);
void emulate_packed_fp32(const SpmvPackedArgs& args, int lanes);
void emulate_packed_fp16(const SpmvPackedArgs& args, int lanes);
void emulate_packed_bf16(const SpmvPackedArgs& args, int lanes);

template <int Lanes>
Status emulated_spmv_packed(const SpmvPackedArgs& args, Stream) noexcept {
  const Status status = check_packed_waves(args);
  if (!status.ok() || args.slice_count == 0) return status;
  switch (args.precision) {
    case Precision::FP64:
      emulate_packed_fp64(args, Lanes);
      return {};
    case Precision::FP32:
      emulate_packed_fp32(args, Lanes);
      return {};
    case Precision::FP16:
      emulate_packed_fp16(args, Lanes);
      return {};
    case Precision::BF16:
      emulate_packed_bf16(args, Lanes);
      return {};
    default:
      return {"spmv[packed]: the emulated units offer FP64, FP32, FP16 and BF16"};
  }
}

}  // namespace Tessera

#endif
