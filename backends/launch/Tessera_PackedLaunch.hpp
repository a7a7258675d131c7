// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_PACKED_LAUNCH_HPP
#define TESSERA_LAUNCH_PACKED_LAUNCH_HPP

#include "backends/launch/Tessera_PackedTuning.hpp"
#include "backends/launch/Tessera_SpmvLaunchers.hpp"

/// \file
/// Launchers of packed-slices SpMV: one slice per wave, four waves per thread block; with tables of x in shared memory
/// one thread block per multiprocessor. The kernels of one precision, and of three kinds of call, are compiled in files
/// of their own (backends/CMakeLists.txt).

namespace Tessera {
namespace Launch {

/// Slices at(i) for i = first, first + stride ... below count, the first of which is there; the next one's record is on
/// its way while one is multiplied.
template <class Kernel, class Wave, class Gather, class At>
TESSERA_FUNCTION void multiply_slices(const Wave& wave, const SpmvPackedArgs& args, const Gather& gather,
                                      PackedSlice next, unsigned first, unsigned stride, unsigned count, const At& at) {
  for (unsigned i = first; i < count; i += stride) {
    const PackedSlice slice = next;
    if (i + stride < count) next = Kernel::load_slice(args, at(i + stride));
    Kernel::run(wave, args, gather, slice);
  }
}

/// The pattern never changes, so that the slice's record can be read before the wait; x, y and the values can not.
template <class Device, class Types, class Gather, class Tuning>
struct PackedBody {
  using Wave = typename Device::Wave;
  using Kernel = PackedKernel<Types, Wave, Gather, Tuning>;
  static constexpr int waves = Tuning::waves, threads = waves * Wave::lanes, bound = Tuning::bound, shared = 0;
  static constexpr bool overlapping = true;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpmvPackedArgs& args) {
    thread_block.template each_wave_of<PackedBody>(args);
  }

  /// Not a lambda: nvcc makes better code of 16-bit operands, some of it a tenth shorter.
  template <class ThreadBlock>
  TESSERA_FUNCTION static void wave(const ThreadBlock& thread_block, unsigned in_thread_block,
                                    const SpmvPackedArgs& args) {
    const unsigned index = (thread_block.index() * waves + in_thread_block) * Tuning::slices;
    if (index >= args.slice_count) return;
    const Wave wave;
    const Gather gather = Gather::make(args);
    const PackedSlice slice = Kernel::load_slice(args, index);
    if constexpr (Tuning::slices > 1 && !Tuning::even) {
      if (index + 1 < args.slice_count) {
        const PackedSlice next = Kernel::load_slice(args, index + 1);
        thread_block.template wait_for_previous_launch<true>();
        return Kernel::run_two(wave, args, gather, slice, next);
      }
    }
    thread_block.template wait_for_previous_launch<true>();
    Kernel::run(wave, args, gather, slice);
  }
};

/// What bodies with a table of x share: one thread block per multiprocessor.
template <class Device, class Types, class Gather_>
struct PackedTableBody {
  using Wave = typename Device::Wave;
  using Value = typename Types::Value;
  using Tuning = typename PackedTunings<Device, Types>::Table;
  using Gather = Gather_;
  using Kernel = PackedKernel<Types, Wave, Gather, Tuning>;
  static constexpr int waves = Tuning::waves, threads = waves * Wave::lanes, bound = Tuning::bound, shared = 0;
  static constexpr bool overlapping = true;
};

/// The same with this way of reading x, or the one that stands for all of them.
template <class Device, class Types, template <class, class> class Gather>
using PackedTable =
    PackedTableBody<Device, Types,
                    PackedGather<Device, Gather<typename Types::Value, typename Device::Wave>, typename Types::Value>>;

/// x at the hub columns in shared memory.
template <class Device, class Types>
struct PackedHubBody : PackedTable<Device, Types, GatherHubs> {
  using Base = PackedTable<Device, Types, GatherHubs>;
  using Value = typename Base::Value;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpmvPackedArgs& args) {
    Value* const table = reinterpret_cast<Value*>(thread_block.memory());
    const Value* const x = static_cast<const Value*>(args.x);
    thread_block.template wait_for_previous_launch<true>();
    thread_block.each_thread([&](unsigned thread) {
      for (unsigned i = thread; i < args.hubs; i += Base::threads) table[i] = x[args.hub_columns[i]];
    });
    thread_block.synchronize();
    thread_block.each_wave([&](unsigned in_thread_block) {
      const unsigned first = thread_block.index() * Base::waves + in_thread_block;
      if (first >= args.slice_count) return;
      const auto gather = Base::Gather::make(args, table);
      multiply_slices<typename Base::Kernel>(typename Base::Wave(), args, gather, Base::Kernel::load_slice(args, first),
                                             first, thread_block.thread_blocks() * Base::waves, args.slice_count,
                                             [](unsigned i) { return i; });
    });
  }
};

/// One thread block per share: x at the columns of its block in shared memory, then its slices.
template <class Device, class Types>
struct PackedBlockBody : PackedTable<Device, Types, GatherBlock> {
  using Base = PackedTable<Device, Types, GatherBlock>;
  using Value = typename Base::Value;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpmvPackedArgs& args) {
    Value* const table = reinterpret_cast<Value*>(thread_block.memory());
    const PackedShare share = args.shares[thread_block.index()];
    const Value* const x = static_cast<const Value*>(args.x) + share.column;
    // The first record of each wave is on its way while the table is filled.
    PackedSlice record[ThreadBlock::template held<Base::waves>];
    const auto first = [&](unsigned in_thread_block) { return share.rank * Base::waves + in_thread_block; };
    thread_block.each_wave([&](unsigned in_thread_block) {
      if (first(in_thread_block) >= share.count()) return;
      record[ThreadBlock::held_at(in_thread_block)] =
          Base::Kernel::load_slice(args, share.slice(first(in_thread_block)));
    });
    thread_block.template wait_for_previous_launch<true>();
    // By words where x lies at one, as the first column of a column block does in x.
    constexpr unsigned per_word = sizeof(Word) / sizeof(Value);
    const bool aligned = reinterpret_cast<std::uintptr_t>(x) % sizeof(Word) == 0;
    const unsigned words = aligned ? share.columns / per_word : 0;
    thread_block.each_thread([&](unsigned thread) {
      TESSERA_UNROLL_4
      for (unsigned i = thread; i < words; i += Base::threads) {
        reinterpret_cast<Word*>(table)[i] = reinterpret_cast<const Word*>(x)[i];
      }
      TESSERA_UNROLL_4
      for (unsigned i = words * per_word + thread; i < share.columns; i += Base::threads) table[i] = x[i];
    });
    thread_block.synchronize();
    thread_block.each_wave([&](unsigned in_thread_block) {
      if (first(in_thread_block) >= share.count()) return;
      const auto gather = Base::Gather::of_block(table, share.column);
      multiply_slices<typename Base::Kernel>(
          typename Base::Wave(), args, gather, record[ThreadBlock::held_at(in_thread_block)], first(in_thread_block),
          share.ranks * Base::waves, share.count(), [&](unsigned i) { return share.slice(i); });
    });
  }
};

template <class Value>
struct AddBlocksBody {
  static constexpr int threads = 256, bound = 0, shared = 0;
  static constexpr bool overlapping = true;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpmvPackedArgs& args) {
    thread_block.template wait_for_previous_launch<true>();
    thread_block.each_thread([&](unsigned thread) {
      const std::int64_t row = std::int64_t{thread_block.index()} * threads + thread;
      if (row < args.rows) packed_add_blocks<Value>(args, row);
    });
  }
};

template <class Value>
struct CopyHubsBody {
  static constexpr int threads = 256, bound = 0, shared = 0;
  static constexpr bool overlapping = true;

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpmvPackedArgs& args) {
    thread_block.each_thread([&](unsigned thread) {
      const unsigned i = thread_block.index() * threads + thread;
      const std::uint32_t column = i < args.hubs ? args.hub_columns[i] : 0;  // never changes, so before the wait
      thread_block.template wait_for_previous_launch<true>();
      if (i < args.hubs) static_cast<Value*>(args.hub_copy)[i] = static_cast<const Value*>(args.x)[column];
    });
  }
};

template <class Device, class Body>
Status launch_packed(const SpmvPackedArgs& args, std::int64_t thread_blocks, Stream stream,
                     std::size_t table_bytes = 0) {
  SpmvPackedArgs rounded = args;
  rounded.single_alpha = static_cast<float>(args.alpha);
  rounded.single_beta = static_cast<float>(args.beta);
  return Device::status(launch<Device, Body>({thread_blocks, 1, table_bytes}, stream, rounded),
                        "Tessera::spmv[packed]");
}

template <class Device, class Types, class Gather, class Tuning>
Status launch_slices(const SpmvPackedArgs& args, Stream stream) {
  using Body = PackedBody<Device, Types, PackedGather<Device, Gather, typename Types::Value>, Tuning>;
  return launch_packed<Device, Body>(args, ceil_div(args.slice_count, Body::waves * Tuning::slices), stream);
}

template <class Device, class Types>
using PlainOf = GatherPlain<typename Types::Value, typename Device::Wave, false>;
template <class Device, class Types>
using StridedOf = GatherPlain<typename Types::Value, typename Device::Wave, true>;

/// Whether kernels exist that differ in caching or waves alone.
template <class Device, class Types>
constexpr bool every_variant =
    PackedTunings<Device, Types>::variants&& Device::template every_variant<typename Types::Value>;

inline bool packed_is_plain(const SpmvPackedArgs& args) { return args.columns == 1 && args.x_stride == 1; }

/// Column blocks; x from memory where a block of it does not fit into shared memory, or has a stride.
template <class Device, class Types>
Status launch_blocks(const SpmvPackedArgs& args, Stream stream) {
  using Value = typename Types::Value;
  const std::size_t table_bytes = args.block_columns * sizeof(Value);
  const SpmvPackedArgs first = packed_block_args(args);
  Status status;
  bool tabled = false;
  if constexpr (Device::tables) {
    tabled = packed_is_plain(args) && table_bytes <= Device::shared_bytes();
    if (tabled) {
      status = launch_packed<Device, PackedBlockBody<Device, Types>>(first, args.share_count, stream, table_bytes);
    }
  }
  if (!tabled) {
    using Tuning = typename PackedTunings<Device, Types>::Strided;
    status = launch_slices<Device, Types, StridedOf<Device, Types>, Tuning>(first, stream);
  }
  if (!status.ok()) return status;
  using Body = AddBlocksBody<Value>;
  return launch_packed<Device, Body>(args, ceil_div(args.rows, Body::threads), stream);
}

template <class Device, class Types, bool Streaming>
Status launch_variant(const SpmvPackedArgs& args, Stream stream);

/// x in the order of its use, copied and then read as any other.
template <class Device, class Types>
Status launch_renumbered(const SpmvPackedArgs& args, Stream stream) {
  using Body = CopyHubsBody<typename Types::Value>;
  const Status status = launch_packed<Device, Body>(args, ceil_div(args.hubs, Body::threads), stream);
  if (!status.ok()) return status;
  SpmvPackedArgs copied = args;
  copied.x = args.hub_copy;
  copied.hubs = 0;
  copied.hub_copy = nullptr;
  if constexpr (every_variant<Device, Types>) {
    if (!args.streaming) return launch_variant<Device, Types, false>(copied, stream);
  }
  return launch_variant<Device, Types, true>(copied, stream);
}

/// Hub columns through a copy of x that the caches keep, or through a table in shared memory; x with a stride through
/// their numbers.
template <class Device, class Types>
Status launch_hubs(const SpmvPackedArgs& args, Stream stream) {
  using Value = typename Types::Value;
  using Wave = typename Device::Wave;
  using Tunings = PackedTunings<Device, Types>;
  const bool copies = packed_is_plain(args) && args.hub_copy != nullptr;
  if (copies && args.renumbered) return launch_renumbered<Device, Types>(args, stream);
  if (copies) {
    using Body = CopyHubsBody<Value>;
    const Status status = launch_packed<Device, Body>(args, ceil_div(args.hubs, Body::threads), stream);
    if (!status.ok()) return status;
    return launch_slices<Device, Types, GatherCopied<Value, Wave>, typename Tunings::CopiedHubs>(args, stream);
  }
  if constexpr (Device::tables) {
    if (packed_is_plain(args)) {
      return launch_packed<Device, PackedHubBody<Device, Types>>(args, Device::multiprocessors(), stream,
                                                                 args.hubs * sizeof(Value));
    }
  }
  return launch_slices<Device, Types, GatherRenumbered<Value, Wave>, typename Tunings::Renumbered>(args, stream);
}

/// In thread blocks of four waves, or of eight (SpmvPackedArgs::eight_waves); where less is compiled, of eight for
/// streaming loads alone.
template <class Device, class Types, class Gather, class Tuning>
Status launch_by_waves(const SpmvPackedArgs& args, Stream stream) {
  if constexpr (every_variant<Device, Types> && (Tuning::streaming || !compile_less)) {
    if (args.eight_waves) return launch_slices<Device, Types, Gather, PackedEightWaves<Tuning>>(args, stream);
  }
  return launch_slices<Device, Types, Gather, Tuning>(args, stream);
}

template <class Device, class Types, bool Streaming>
Status launch_variant(const SpmvPackedArgs& args, Stream stream) {
  using Tunings = PackedTunings<Device, Types>;
  using Gather = PlainOf<Device, Types>;
  if (args.variant == PackedVariant::Even) {
    return launch_slices<Device, Types, Gather, typename Tunings::Even>(args, stream);
  }
  if (args.variant == PackedVariant::Diagonals) {
    using Diagonals = typename Tunings::Diagonals;
    using Written = GatherPlain<typename Types::Value, typename Device::Wave, false, true>;
    using Cached = std::conditional_t<Streaming, Diagonals, PackedCached<Diagonals>>;
    if constexpr (Tunings::two_slices) {
      if (args.pairs) return launch_by_waves<Device, Types, Written, PackedPairs<Cached>>(args, stream);
    }
    return launch_by_waves<Device, Types, Written, Cached>(args, stream);
  }
  if constexpr (Device::emulated || (every_variant<Device, Types> && (Streaming || !compile_less))) {
    if (args.variant == PackedVariant::ShortSlices && args.pairs) {
      using Short = typename Tunings::ShortSlices;
      using Two = PackedTwoShort<std::conditional_t<Streaming, PackedLarge<Short>, PackedCached<Short>>>;
      return launch_slices<Device, Types, Gather, Two>(args, stream);
    }
  }
  if constexpr (Tunings::variants) {
    using Short = typename Tunings::ShortSlices;
    using Free = typename Tunings::IndexFree;
    switch (args.variant) {
      case PackedVariant::ShortSlices:
        return launch_by_waves<Device, Types, Gather,
                               std::conditional_t<Streaming, PackedLarge<Short>, PackedCached<Short>>>(args, stream);
      case PackedVariant::IndexFree:
        return launch_slices<Device, Types, Gather,
                             std::conditional_t<Streaming, PackedLarge<Free>, PackedCached<Free>>>(args, stream);
      case PackedVariant::WideBlocks:
        return launch_slices<Device, Types, Gather, typename Tunings::WideBlocks>(args, stream);
      default:
        break;
    }
  }
  using General = typename Tunings::General;
  return launch_by_waves<Device, Types, Gather, std::conditional_t<Streaming, General, PackedCached<General>>>(args,
                                                                                                               stream);
}

template <class Device, class Value>
Status packed_full(const SpmvPackedArgs& args, Stream stream) noexcept {
  using Types = PackedTypes<Value, PackedStorage::Full>;
  using Tunings = PackedTunings<Device, Types>;
  if (args.blocks > 1) return launch_blocks<Device, Types>(args, stream);
  if (args.hubs > 0) return launch_hubs<Device, Types>(args, stream);
  if (!packed_is_plain(args)) {
    return launch_slices<Device, Types, StridedOf<Device, Types>, typename Tunings::Strided>(args, stream);
  }
  if constexpr (every_variant<Device, Types>) {
    if (!args.streaming) return launch_variant<Device, Types, false>(args, stream);
  }
  return launch_variant<Device, Types, true>(args, stream);
}

template <class Device, class Value>
Status packed_vectors(const SpmvPackedArgs& args, Stream stream) noexcept {
  using Types = PackedTypes<Value, PackedStorage::Full>;
  using Tunings = PackedTunings<Device, Types>;
  using Gather = StridedOf<Device, Types>;
  return args.columns > Tunings::FewVectors::columns
             ? launch_slices<Device, Types, Gather, typename Tunings::ManyVectors>(args, stream)
             : launch_slices<Device, Types, Gather, typename Tunings::FewVectors>(args, stream);
}

/// One vector per launch. Where less is compiled what takes strides takes one as well, but where doubles are stored as
/// floats, which FP16 has no text of.
template <class Device, class Types>
Status launch_stored(const SpmvPackedArgs& args, Stream stream) {
  using Tunings = PackedTunings<Device, Types>;
  if constexpr (Device::template every_variant<typename Types::Value> || Types::storage == PackedStorage::Float) {
    if (packed_is_plain(args)) {
      return launch_slices<Device, Types, PlainOf<Device, Types>, typename Tunings::General>(args, stream);
    }
  }
  return launch_slices<Device, Types, StridedOf<Device, Types>, typename Tunings::StoredStrided>(args, stream);
}

template <class Device, class Value>
Status packed_stored(const SpmvPackedArgs& args, Stream stream) noexcept {
  switch (args.storage) {
    case PackedStorage::Float:
      if constexpr (sizeof(Value) == 8) {
        return launch_stored<Device, PackedTypes<Value, PackedStorage::Float>>(args, stream);
      }
      break;
    case PackedStorage::Integer:
      return launch_stored<Device, PackedTypes<Value, PackedStorage::Integer>>(args, stream);
    case PackedStorage::Dictionary:
      return launch_stored<Device, PackedTypes<Value, PackedStorage::Dictionary>>(args, stream);
    case PackedStorage::Constant:
      return launch_stored<Device, PackedTypes<Value, PackedStorage::Constant>>(args, stream);
    case PackedStorage::Full:
      break;
  }
  return {"spmv[packed]: unknown storage"};  // refused before
}

}  // namespace Launch
}  // namespace Tessera

#endif
