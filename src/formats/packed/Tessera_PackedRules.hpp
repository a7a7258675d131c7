// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_PACKED_RULES_HPP
#define TESSERA_FORMATS_PACKED_PACKED_RULES_HPP

#include <algorithm>
#include <cstdint>
#include <string>

#include "Tessera_Options.hpp"
#include "features/Tessera_SpmvFeatures.hpp"
#include "formats/packed/Tessera_PackedHubs.hpp"

/// \file
/// The rules that shape packed slices, where the options leave it open. Every number here is measured
/// (perf_test/notes/spmv-packed.md).

namespace Tessera {
namespace Impl {

/// @throw InvalidArgument  options out of range
inline void check(const PackedOptions& o) {
  require<InvalidArgument>(o.max_steps >= 0 && o.max_steps <= 63 && o.split_steps >= 0 && o.split_steps <= 63, [&] {
    return "PackedOptions::max_steps and split_steps must lie in [0, 63] (0: by size), are " +
           std::to_string(o.max_steps) + " and " + std::to_string(o.split_steps);
  });
  require<InvalidArgument>(o.window == 0 || (o.window >= 12 && o.window <= 4092), [&] {
    return "PackedOptions::window must be 0 (by size) or lie in [12, 4092], is " + std::to_string(o.window);
  });
  require<InvalidArgument>(o.natural_padding >= 0 && o.hubs >= -1 && o.hubs <= 65536, [&] {
    return "PackedOptions::natural_padding must not be negative, hubs must lie in [-1, 65536]: " +
           std::to_string(o.natural_padding) + ", " + std::to_string(o.hubs);
  });
  require<InvalidArgument>(o.renumber >= -1 && o.renumber <= 1, [&] {
    return "PackedOptions::renumber must lie in [-1, 1], is " + std::to_string(o.renumber);
  });
  require<InvalidArgument>(o.column_blocks >= -1 && o.column_blocks <= packed_max_blocks, [&] {
    return "PackedOptions::column_blocks must lie in [-1, " + std::to_string(packed_max_blocks) + "], is " +
           std::to_string(o.column_blocks);
  });
  require<InvalidArgument>(o.cells >= -1 && o.cells <= packed_max_cells, [&] {
    return "PackedOptions::cells must lie in [-1, " + std::to_string(packed_max_cells) + "], is " +
           std::to_string(o.cells);
  });
}

/// Neighbouring rows share x, so that keeping them together matters less than even lengths.
KOKKOS_INLINE_FUNCTION bool packed_is_local(const SpmvFeatures& f) { return f.sectors < 0.15; }

/// Neighbouring rows share next to nothing of x, in a matrix larger than the caches.
KOKKOS_INLINE_FUNCTION bool packed_is_scattered(const SpmvFeatures& f) {
  return f.nnz >= 10000000 && f.mean >= 16 && f.sectors >= 0.4;
}

/// Bytes of shared memory that a table of x may take.
KOKKOS_INLINE_FUNCTION std::int64_t packed_table_bytes(const DeviceFacts& device) {
  return static_cast<std::int64_t>(device.shared_bytes) - 32768;
}

/// What an apply takes, in microseconds, of a matrix whose x has next to no locality; measured on an H200 (notes). It
/// decides on column blocks alone, so that only the ratio of the two costs matters.
struct PackedCost {
  static constexpr double stream = 4.5e6, blocked_stream = 3.8e6;     ///< bytes
  static constexpr double far_gathers = 1.7e5, near_gathers = 7.2e5;  ///< of a sector: second and first level
  static constexpr double near_bytes = 180000;                        ///< of x that the first level holds
  static constexpr double launch = 3, blocked_launches = 5;
  static constexpr double pieces = 1.7e5;  ///< of rows in a column block: short slices wait more than they read
  static constexpr double gain = 0.9;      ///< column blocks must be predicted to take less than this of the time

  /// Of x that is read from memory, the matrix past it.
  static double plain(const SpmvFeatures& f, int value_bytes) {
    const double nnz = static_cast<double>(f.nnz), gathers = f.sectors * nnz;
    const double near = std::min(1.0, near_bytes / (static_cast<double>(f.cols) * value_bytes));
    return launch + nnz * (value_bytes + 3) / stream + gathers * ((1 - near) / far_gathers + near / near_gathers);
  }
  /// Of `blocks` column blocks: the matrix with 16-bit indices, sums of pieces twice, a table per multiprocessor.
  static double blocked(const SpmvFeatures& f, const DeviceFacts& device, int value_bytes, std::int64_t blocks) {
    const double rows = static_cast<double>(f.rows * blocks), columns = static_cast<double>(f.cols / blocks);
    const double bytes = static_cast<double>(f.nnz) * (value_bytes + 2) + rows * (value_bytes == 8 ? 18 : 10) +
                         device.compute_units * columns * value_bytes;
    return blocked_launches + bytes / blocked_stream + rows / pieces;
  }
};

/// The number of column blocks that is predicted to be fastest, of `least` or more; 1 if none pays.
inline std::int64_t packed_best_blocks(const SpmvFeatures& f, const DeviceFacts& device, int value_bytes,
                                       std::int64_t least, std::int64_t most) {
  std::int64_t best = 1;
  double cost = PackedCost::gain * PackedCost::plain(f, value_bytes);
  for (std::int64_t blocks = std::max<std::int64_t>(least, 2); blocks <= most; ++blocks) {
    const double here = PackedCost::blocked(f, device, value_bytes, blocks);
    if (here < cost) best = blocks, cost = here;
  }
  return best;
}

/// Column blocks worth having: x far from the first level, and enough entries of a row in each for their sums to cost
/// little. 1: none.
inline int packed_blocks(const PackedOptions& o, const SpmvFeatures& f, const DeviceFacts& device, int value_bytes) {
  if (o.column_blocks >= 0) {
    return static_cast<int>(std::min<std::int64_t>(std::max(o.column_blocks, 1), std::max<std::int64_t>(f.cols, 1)));
  }
  if (device.shared_bytes < 131072) return 1;
  // The columns of a column block are told apart by 16 bits.
  const std::int64_t columns = std::min<std::int64_t>(packed_table_bytes(device) / value_bytes, 65535);
  const std::int64_t blocks = (f.cols + columns - 1) / columns;
  // Beyond the usual number there are as many as multiprocessors at most, each of which then has one.
  constexpr std::int64_t usual = 64;
  const std::int64_t largest =
      blocks <= usual ? usual : std::min<std::int64_t>(packed_max_blocks, device.compute_units);
  const std::int64_t most = std::min(largest, std::max<std::int64_t>(f.cols, 1));
  if (f.nnz < 20000000 || !packed_is_scattered(f) || blocks > usual) {
    return f.sectors < 0.5 || f.mean < 40 ? 1
                                          : static_cast<int>(packed_best_blocks(f, device, value_bytes, blocks, most));
  }
  return blocks >= 2 && blocks <= most && f.mean >= 16.0 * static_cast<double>(blocks) ? static_cast<int>(blocks) : 1;
}

/// Hub columns worth having: skewed, large, and x not local.
KOKKOS_INLINE_FUNCTION std::int64_t packed_hubs(const PackedOptions& o, const SpmvFeatures& f,
                                                const DeviceFacts& device, int value_bytes) {
  if (o.hubs >= 0) return o.hubs;
  if (f.nnz < 5000000 || f.cv < 1 || f.narrow > 0.5 || f.sectors < 0.5 || device.shared_bytes < 65536) return 0;
  const bool large = f.nnz >= 16000000;
  const std::int64_t wanted = value_bytes == 8 ? (large ? 20480 : 8192) : value_bytes == 4 && large ? 32768 : 16384;
  const std::int64_t room = packed_table_bytes(device) / value_bytes;
  return wanted < room ? wanted : room;
}

/// Bytes of x in the order of its use that the first level keeps beside what is read once.
constexpr double packed_near_bytes = 160000;
/// Entries whose x must be there for a copy of x to pay.
constexpr double packed_least_near_share = 0.7;

/// Entries whose x lies in the first packed_near_bytes of a copy in the order of use.
inline double packed_near_share(const ColumnUse& u, std::int64_t nnz, int value_bytes) {
  double left = packed_near_bytes / value_bytes, entries = 0;
  for (int i = 0; i < ColumnUse::classes && left > 0; ++i) {
    const double here = u.columns[i], taken = std::min(left, here);
    if (here > 0) entries += u.entries[i] * (taken / here);
    left -= taken;
  }
  return entries / static_cast<double>(nnz);
}

/// Whether to look how often columns are used: skewed rows, x without locality and larger than the first level, and
/// enough entries for the copy, which is a launch of its own, to pay. In FP64 products gain 5 %, less than set-up
/// takes.
KOKKOS_INLINE_FUNCTION bool packed_may_renumber(const PackedOptions& o, const SpmvFeatures& f,
                                                const DeviceFacts& device, int value_bytes) {
  if (o.renumber >= 0) return o.renumber == 1 && f.cols > 0 && f.nnz < (std::int64_t{1} << 32);
  if (device.shared_bytes < 131072) return false;  // the first level is less than packed_near_bytes
  return value_bytes <= 4 && o.hubs < 0 && o.column_blocks < 0 && f.nnz >= 3000000 && f.nnz < 12000000 && f.cv >= 1 &&
         f.narrow <= 0.5 && f.sectors >= 0.7 && f.mean >= 8 &&
         static_cast<double>(f.cols) * value_bytes >= 2 * packed_near_bytes;
}

/// Whether cells are considered: short and middle rows, x without locality. With doubles too little of an x above a few
/// MB fits into shared memory.
KOKKOS_INLINE_FUNCTION bool packed_may_be_cells(const PackedOptions& o, const SpmvFeatures& f,
                                                const DeviceFacts& device, int value_bytes) {
  if (o.cells >= 0) return o.cells > 0;
  const bool open = o.hubs < 0 && o.column_blocks < 0 && o.renumber < 0;
  return open && device.shared_bytes >= 131072 && f.nnz >= 2000000 && f.mean >= 6 && f.mean < 80 &&
         f.sectors >= (value_bytes == 2   ? 0.4
                       : value_bytes == 4 ? 0.45
                                          : 0.5) &&
         (value_bytes <= 4 || f.cols <= 450000);
}

/// Steps of a slice: enough work for a wave to cover its start, few enough for the device to have waves to choose from.
KOKKOS_INLINE_FUNCTION void packed_steps(PackedShape& s, const SpmvFeatures& f, int value_bytes, bool stencil,
                                         bool hubs) {
  s.max_steps = s.split_steps = 16;
  if (s.blocks > 1) {
    s.max_steps = f.nnz < 20000000 ? 16 : value_bytes == 2 ? 63 : 32;
    s.split_steps = 63;
  } else if (stencil) {
    s.max_steps = s.split_steps = 32;  // one lane per row, whatever its length
  } else if (hubs) {
    s.max_steps = s.split_steps = f.nnz < 16000000 ? (f.mean < 20 ? 16 : 24) : value_bytes == 2 ? 48 : 24;
  } else if (f.mean >= 300) {
    // Parts of rows: short ones, where there are few, as all of them end with three waits for each other.
    const bool huge = value_bytes == 8 && f.nnz >= 500000 && f.mean >= 4096;  // many parts that wait for each other
    s.max_steps = s.split_steps = f.nnz < 1000000 ? (huge ? 24 : 8) : f.nnz < 2500000 ? 16 : f.nnz < 10000000 ? 32 : 63;
  } else if (s.group > 1 && (s.group == 3 ? f.same3 : f.same2) > 0.9) {  // a step of a group has two or three values
    s.max_steps = f.nnz < 2500000 ? 8 : f.nnz < 4000000 ? 12 : f.nnz < 10000000 ? 16 : value_bytes == 2 ? 32 : 12;
    s.split_steps = s.max_steps > 16 ? s.max_steps : 16;
  } else if (f.nnz >= 10000000 && f.mean >= 80) {
    s.max_steps = s.split_steps = f.mean >= 150 ? 63 : 48;
  } else if (f.nnz < 1000000 || (!packed_is_local(f) && (f.nnz < 4000000 ? f.mean < 40 : f.mean < 10))) {
    s.max_steps = 8;
  } else if (f.nnz < 10000000 && packed_is_local(f)) {
    s.max_steps = s.split_steps = 24;
  }
}

/// Slices of one size: a wave then waits for its packet and for x, not for a record before. Rows are padded to the
/// longest, so that it must not be much longer than the others.
KOKKOS_INLINE_FUNCTION void packed_even(PackedShape& s, const PackedOptions& o, const SpmvFeatures& f) {
  constexpr std::int64_t most_steps = 12;
  const bool open = o.max_steps == 0 && o.split_steps == 0 && o.window == 0 && o.narrow_indices;
  if (!o.even_slices || !open || f.nnz == 0 || f.nnz > o.most_even || f.cols >= 0xffffff) return;
  int log = 0;
  while (log < s.log_wave && PackedShape::steps_of(f.longest, log) > most_steps) ++log;
  const std::int64_t steps = PackedShape::steps_of(f.longest, log);
  const double slots = static_cast<double>(f.rows) * static_cast<double>(steps << log);
  if (steps > most_steps || slots > 2.5 * static_cast<double>(f.nnz)) return;
  s.even_steps = s.max_steps = s.split_steps = static_cast<int>(steps);
  s.even_log = log;
  s.sort_window = 4032;  // of whole slices, whatever the lanes per row
}

/// Whether to look for a list of diagonals that all rows take their columns from. Rows are padded to the longest; the
/// rest of the matrix waits for the answer, so that a matrix that looks like it must be large. The longest rows have
/// all diagonals, so that they have the same ones.
KOKKOS_INLINE_FUNCTION bool packed_may_be_diagonals(const PackedShape& s, const PackedOptions& o,
                                                    const SpmvFeatures& f) {
  const bool open = o.max_steps == 0 && o.split_steps == 0 && o.window == 0 && o.index_free && o.narrow_indices;
  if (f.askew && f.longest == f.usual()) return false;
  return o.diagonals && open && f.nnz >= (o.least_diagonals > 1 ? o.least_diagonals : 1) && f.shift >= 0.5 &&
         s.lanes <= packed_most_diagonals && s.blocks == 1 && s.group == 1 && f.longest <= packed_most_diagonals &&
         f.cols < (std::int64_t{1} << 31) &&
         static_cast<double>(f.rows) * static_cast<double>(f.longest) <= 1.1 * static_cast<double>(f.nnz);
}

/// The shape of slices.
KOKKOS_INLINE_FUNCTION PackedShape packed_shape(const PackedOptions& o, const SpmvFeatures& f, int lanes,
                                                int value_bytes, int blocks, bool hubs, bool renumbered = false) {
  PackedShape s;
  s.lanes = lanes;
  s.blocks = blocks;
  for (s.log_wave = 0; (1 << s.log_wave) < lanes;) ++s.log_wave;
  // Sharing saves bytes and gathers but leaves fewer waves, which small matrices lack.
  if (o.shared_patterns && !hubs && !renumbered && blocks == 1 && f.mean >= 8 && f.nnz >= o.least_shared) {
    s.group = f.same3 >= 0.5 ? 3 : f.same2 >= 0.5 ? 2 : 1;
  }
  packed_steps(s, f, value_bytes, o.index_free && f.shift >= 0.5, hubs);
  if (o.max_steps > 0) s.max_steps = o.max_steps;
  if (o.split_steps > 0) s.split_steps = o.split_steps;
  if (s.split_steps < s.max_steps) s.split_steps = s.max_steps;
  // Small sort windows keep rows that share x together; of very short rows a small one leaves uneven slices.
  if (hubs) {
    s.sort_window = 2052;
  } else if (blocks > 1) {
    s.sort_window = 4092;  // x is close whatever the order
  } else if (f.nnz < 4000000 && f.mean < 40 && !packed_is_local(f)) {
    s.sort_window = f.mean < 2 ? 4092 : f.mean < 4 ? 1020 : 252;
  } else if (packed_is_scattered(f)) {
    s.sort_window = 516;
  } else if (f.nnz >= 4000000 && f.mean >= 8 && f.sectors >= 0.25 && s.group == 1 && !renumbered) {
    s.sort_window = f.nnz >= 10000000 && f.mean >= 16 ? 516 : 252;  // what a scattered one of its size has
  }
  if (o.window > 0) s.sort_window = o.window / 12 * 12;
  if (!hubs && !renumbered && blocks == 1 && s.group == 1) packed_even(s, o, f);
  s.natural_padding = o.natural_padding;
  s.rows = f.rows;
  s.sort_windows = (f.rows + s.sort_window - 1) / s.sort_window;
  return s;
}

/// Whether a device has few waves to choose from, and each of them enough to do.
template <class MemorySpace>
bool packed_is_small(const Experimental::PackedSlices<MemorySpace>& p, const SpmvFeatures& f) {
  return f.nnz < 1000000 && p.summary.slices < 10000;
}

/// How a launch divides the device.
template <class MemorySpace>
PackedVariant packed_variant(const Experimental::PackedSlices<MemorySpace>& p, const SpmvFeatures& f) {
  const Experimental::PackedSummary& s = p.summary;
  if (p.even != 0) return s.index_slots[PackedDiagonals] > 0 ? PackedVariant::Diagonals : PackedVariant::Even;
  if (s.grouped_slots > 0 || (p.hub_columns.extent(0) > 0 && !p.renumbered)) return PackedVariant::General;
  const bool free = s.index_slots[PackedIndexFree] * 2 > s.stored, brief = s.short_slices * 4 > s.slices * 3;
  if (brief && (free || (s.steps <= 5 * s.slices && !packed_is_small(p, f)))) return PackedVariant::ShortSlices;
  if (free && s.steps <= 8 * s.slices) return PackedVariant::IndexFree;
  return packed_is_scattered(f) || (packed_is_small(p, f) && p.value_bytes() < 8) ? PackedVariant::WideBlocks
                                                                                  : PackedVariant::General;
}

/// Whether a wave takes two slices: where it has little to wait for at once, and there are many. That is so of few
/// diagonals, and of rows that are all about as short: uneven ones are rarely alike, and pay for asking. More than two
/// entries without locality wait for gathers, of which a device has enough under way.
template <class MemorySpace>
bool packed_pairs(const Experimental::PackedSlices<MemorySpace>& p, const PackedOptions& o, const SpmvFeatures& f) {
  const Experimental::PackedSummary& s = p.summary;
  if (p.rows < o.least_pairs) return false;
  if (p.variant == PackedVariant::ShortSlices) {
    const bool gathers = f.longest > 2 && f.sectors >= 0.5;
    return !gathers && f.longest <= packed_most_paired_steps && 10 * s.steps >= 9 * f.longest * s.slices &&
           s.index_slots[PackedIndexFree] == 0;
  }
  return p.variant == PackedVariant::Diagonals && p.value_bytes() < 8 &&
         s.steps <= packed_most_short_diagonals * s.slices;
}

/// Whether thread blocks have eight waves. A device starts 0.8 thread blocks per ns, whatever these do, and of slices
/// of few steps more would be ready.
template <class MemorySpace>
bool packed_eight_waves(const Experimental::PackedSlices<MemorySpace>& p, const SpmvFeatures& f) {
  const Experimental::PackedSummary& s = p.summary;
  if (packed_is_small(p, f) || p.blocks > 1 || s.grouped_slots > 0) return false;
  if (p.variant == PackedVariant::ShortSlices) return true;
  if (p.variant == PackedVariant::Diagonals) return s.steps <= (p.value_bytes() == 2 ? 8 : 6) * s.slices;
  return p.variant == PackedVariant::General && s.steps <= 8 * s.slices;
}

}  // namespace Impl
}  // namespace Tessera

#endif
