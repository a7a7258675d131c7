// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_LAUNCH_PACKED_TUNING_HPP
#define TESSERA_LAUNCH_PACKED_TUNING_HPP

#include <type_traits>

#include "backends/kernels/spmv/Tessera_PackedKernel.hpp"
#include "backends/launch/Tessera_Launch.hpp"

/// \file
/// How packed-slices SpMV is launched: chunks in flight, the bound of registers and waves per thread block for each
/// kind of call and vendor.

namespace Tessera {
namespace Launch {

/// What PackedKernel takes, and beside it what a launch needs.
struct PackedTuning : PackedKernelTuning {
  static constexpr int bound = 4, waves = 4;
};
/// The same with the matrix in the first-level cache.
template <class Tuning>
struct PackedCached : Tuning {
  static constexpr bool streaming = false;
};

/// The same with twice the waves per thread block.
template <class Tuning>
struct PackedEightWaves : Tuning {
  static constexpr int waves = 2 * Tuning::waves, bound = Tuning::bound / 2;
};

/// The same with two slices per wave.
template <class Tuning>
struct PackedPairs : Tuning {
  static constexpr int slices = 2, bound = Tuning::bound_of_pairs;
};

/// The same with two slices per wave, at once where both have few steps.
template <class Tuning>
struct PackedTwoShort : Tuning {
  static constexpr int slices = 2, two_steps = packed_most_paired_steps, waves = 8, bound = 5;
};

/// The same for a matrix beside which nothing stays in the caches. Code for each number of steps gains nothing there
/// where slices are index-free.
template <class Tuning>
struct PackedLarge : Tuning {
  static constexpr bool exact_free = false;
};

/// Measured: perf_test/notes/spmv-packed.md. Thread blocks that a multiprocessor must hold are the bound.
template <class Types>
struct PackedNvidia {
  static constexpr bool variants = true;
  static constexpr bool pairs = Types::value_bytes == 8;                      // two steps per chunk, else four
  static constexpr bool two_slices = !pairs;                                  // per wave; of doubles: registers
  static constexpr bool wide_x = !pairs && sizeof(typename Types::Sum) == 8;  // doubles stored in fewer bytes

  struct General : PackedTuning {
    static constexpr int batch = pairs ? 4 : 2, bound = pairs || wide_x ? 8 : 10;
    static constexpr bool straight_ids = true;
  };
  struct ShortSlices : PackedTuning {
    static constexpr int batch = pairs ? 2 : 1, bound = Types::value_bytes == 2 ? 12 : 10, exact = 8;
    static constexpr bool groups = false, exact_free = !pairs, straight_ids = true;
  };
  struct IndexFreePairs : PackedTuning {
    static constexpr int batch = 3, bound = 8;
    static constexpr bool groups = false;
  };
  using IndexFree = std::conditional_t<pairs, IndexFreePairs, ShortSlices>;
  struct WideBlocks : PackedTuning {
    static constexpr int batch = General::batch, bound = 2, waves = 16;
    static constexpr bool groups = false;
  };
  struct Even : PackedTuning {  // steps that a slice has at most are in flight at once
    static constexpr int batch = pairs ? 6 : 3, bound = 6;
    static constexpr bool groups = false, even = true, streaming = false;
  };
  struct Diagonals : PackedTuning {
    static constexpr int batch = pairs ? 3 : Types::value_bytes == 2 ? 2 : 1, bound = pairs ? 8 : 10;
    static constexpr int bound_of_pairs = Types::value_bytes == 2 ? 10 : 8;
    static constexpr bool groups = false, even = true, diagonals = true;
  };
  struct CopiedHubs : General {
    static constexpr bool groups = false, straight_ids = false;
  };
  /// With tables in shared memory: one thread block per multiprocessor.
  struct Table : PackedTuning {
    static constexpr int batch = General::batch, bound = 1, waves = 32;
    static constexpr bool groups = false;
  };
  struct Strided : PackedTuning {
    static constexpr int batch = 2, bound = 8;
    static constexpr bool diagonals = true;
  };
  struct StoredStrided : General {
    static constexpr bool straight_ids = false;
    static constexpr int batch = 1;
  };
  struct Renumbered : PackedTuning {
    static constexpr int batch = 1, bound = 8;
  };
  struct FewVectors : PackedTuning {
    static constexpr int batch = 2, columns = 4;
    static constexpr bool diagonals = true;
  };
  struct ManyVectors : PackedTuning {
    static constexpr int batch = 1, columns = packed_max_columns;
    static constexpr bool diagonals = true;
  };
};

/// Not tuned: nothing has run on a device. With 4 waves per SIMD a lane may have 128 registers.
template <class Types>
struct PackedAmd {
  static constexpr bool variants = false, two_slices = false;

  struct General : PackedTuning {
    static constexpr int batch = Types::value_bytes == 8 ? 4 : 2;
  };
  struct Even : General {
    static constexpr bool groups = false, even = true;
  };
  using Diagonals = Even;  // words of 32 lanes: there are none
  struct Strided : PackedTuning {
    static constexpr int batch = 1;
  };
  struct ManyVectors : Strided {
    static constexpr int columns = packed_max_columns;
  };
  using CopiedHubs = General;
  using StoredStrided = Strided;
  using Renumbered = Strided;
  using FewVectors = ManyVectors;
};

/// As few kernels as do for validation.
template <class Types>
struct PackedEmulation {
  static constexpr bool variants = false, two_slices = true;

  struct General : PackedTuning {
    static constexpr int exact = 5;
    static constexpr bool exact_free = true, straight_ids = true;
  };
  using ShortSlices = General;  // two per wave alone
  struct Even : PackedTuning {
    static constexpr bool groups = false, even = true;
  };
  struct Diagonals : Even {
    static constexpr int bound_of_pairs = PackedTuning::bound;
    static constexpr bool diagonals = true;
  };
  struct Strided : PackedTuning {
    static constexpr bool diagonals = true;
  };
  struct ManyVectors : Strided {
    static constexpr int columns = packed_max_columns;
  };
  using FewVectors = ManyVectors;
  using CopiedHubs = Strided;
  using Table = Strided;
  using Renumbered = Strided;
  using StoredStrided = General;
};

template <class Device, class Types>
using PackedTunings = std::conditional_t<Device::emulated, PackedEmulation<Types>,
                                         ForFamily<Device, PackedNvidia<Types>, PackedAmd<Types>>>;

/// Any stride, any number of vectors, hub columns or a column block through a table or not: what devices have several
/// policies for.
template <class Value, class Wave>
struct GatherAny {
  GatherRenumbered<Value, Wave> renumbered;
  const Value* table;
  std::int64_t block;  // the first column of the table where it is a column block; otherwise -1

  static GatherAny make(const SpmvPackedArgs& args) {
    const bool plain = args.columns == 1 && args.x_stride == 1;
    return make(args, plain ? static_cast<const Value*>(args.hub_copy) : nullptr);
  }
  static GatherAny make(const SpmvPackedArgs& args, const Value* table) {
    return {GatherRenumbered<Value, Wave>::make(args), table, -1};
  }
  static GatherAny of_block(const Value* table, std::int64_t first) { return {{}, table, first}; }
  Value operator()(std::int64_t column, int vector, bool on) const {
    if (block >= 0) return GatherBlock<Value, Wave>{table, block}(column, vector, on);
    const auto& plain = renumbered.plain;
    if (table != nullptr) return GatherHubs<Value, Wave>{plain.x, table, renumbered.hubs}(column, vector, on);
    return renumbered.hubs > 0 ? renumbered(column, vector, on) : plain(column, vector, on);
  }
};
template <class Device, class Gather, class Value>
using PackedGather = std::conditional_t<Device::emulated, GatherAny<Value, typename Device::Wave>, Gather>;

}  // namespace Launch
}  // namespace Tessera

#endif
