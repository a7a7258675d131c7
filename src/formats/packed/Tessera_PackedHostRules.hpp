// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_PACKED_HOST_RULES_HPP
#define TESSERA_FORMATS_PACKED_PACKED_HOST_RULES_HPP

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "Tessera_Options.hpp"
#include "backends/interface/Tessera_PackedLayout.hpp"
#include "features/Tessera_SpmvFeatures.hpp"

/// \file
/// What a conversion to packed slices takes for hosts (perf_test/notes/hosts.md, "Column blocks").

namespace Tessera {
namespace Impl {

/// What a product in column blocks takes on a host, in ns per entry with two threads; only ratios decide. Each line of
/// x that neighbouring rows do not share costs what the cache asks for that holds x of a column block. A piece is what
/// a row has in a column block; where there are several, pieces have sums, which are written and read again, by a
/// kernel of their own.
struct HostBlockCost {
  static constexpr double entry = 0.17, piece = 0.5, sum = 0.25;
  static constexpr double start = 1500;  ///< of a kernel, whatever the entries
  static constexpr double gain = 0.93;   ///< column blocks must be predicted to take less than this of the time

  /// Of a line, by the bytes of x. The numbers of a wider matrix leave x less of the caches.
  static double line(double bytes, int value_bytes) {
    constexpr int knots = 6;
    constexpr double log_bytes[knots] = {15, 17, 19, 20, 21, 22};
    constexpr double ns[2][knots] = {{0, 0.1, 0.16, 0.22, 0.4, 0.68}, {0, 0.1, 0.16, 0.3, 0.5, 0.75}};
    const double* const here = ns[value_bytes == 8];
    const double at = std::clamp(std::log2(std::max(bytes, 1.0)), log_bytes[0], log_bytes[knots - 1]);
    int i = 1;
    while (at > log_bytes[i]) ++i;
    return here[i - 1] + (at - log_bytes[i - 1]) / (log_bytes[i] - log_bytes[i - 1]) * (here[i] - here[i - 1]);
  }
  static double of(const SpmvFeatures& f, int value_bytes, int blocks) {
    const double nnz = static_cast<double>(std::max<std::int64_t>(f.nnz, 1)), pieces = blocks / std::max(f.mean, 1e-3);
    return entry + f.sectors * line(static_cast<double>(f.cols) * value_bytes / blocks, value_bytes) +
           (blocks > 1 ? pieces * (piece + sum) + start / nnz : pieces * piece);
  }
};

/// The number of column blocks, a power of two, that is predicted to be fastest; 0: none pay. Where rows share sectors
/// of x or use neighbouring ones, a CPU fetches x ahead.
inline int packed_host_blocks(const SpmvFeatures& f, int value_bytes) {
  constexpr int most = 64;
  constexpr double least_sectors = 0.5;
  static_assert(most <= packed_max_blocks, "a format has so many column blocks at most");
  if (f.sectors < least_sectors) return 0;
  int best = 0;
  double cost = HostBlockCost::gain * HostBlockCost::of(f, value_bytes, 1);
  for (int blocks = 2; blocks <= most && blocks <= f.cols; blocks *= 2) {
    const double here = HostBlockCost::of(f, value_bytes, blocks);
    if (here < cost) best = blocks, cost = here;
  }
  return best;
}

/// Few lanes need many steps: a row gets several lanes only beyond 63 entries, and several slices beyond 504. Larger
/// windows pad less, but of a small matrix the threads then share windows, and with them lines of y. Sharing indices
/// always pays: slices are short, and there is no device to fill with them. There is no shared memory for hub columns.
inline PackedOptions packed_host_options(PackedOptions o, const SpmvFeatures& f, int value_bytes) {
  if (o.max_steps == 0) o.max_steps = 63;
  if (o.split_steps == 0) o.split_steps = 63;
  if (o.window == 0) o.window = 1020;
  if (o.hubs < 0) o.hubs = 0;
  if (o.renumber < 0) o.renumber = 0;
  if (o.column_blocks < 0) o.column_blocks = packed_host_blocks(f, value_bytes);
  o.least_shared = 0;
  o.diagonals = false;      // words of as many lanes as a device has
  o.value_classes = false;  // decoding costs a core more than the bytes it saves
  return o;
}

}  // namespace Impl
}  // namespace Tessera

#endif
