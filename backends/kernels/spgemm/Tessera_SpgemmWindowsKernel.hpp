// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPGEMM_SPGEMM_WINDOWS_KERNEL_HPP
#define TESSERA_KERNELS_SPGEMM_SPGEMM_WINDOWS_KERNEL_HPP

#include <cstdint>

#include "backends/kernels/spgemm/Tessera_SpgemmColumnSet.hpp"

/// \file
/// Which windows of consecutive rows go to matrix units (Tessera_SpgemmTilesKernel.hpp), by rows of A and by how many
/// entries rows of C have: nothing that depends on memory or on numbers, so that a product is summed in one way.

namespace Tessera {

/// @tparam Small, Large  kernels of the two sizes
template <class Wave, int Waves, class Small, class Large>
class SpgemmWindowsKernel {
 public:
  static constexpr int threads = Waves * Wave::lanes, rows = Small::rows;
  using Set = SpgemmColumnSet<Wave, threads>;
  struct Memory {
    Set set;
    std::int32_t unfit;  ///< nobody but ones are written to it
  };
  static constexpr int bytes = static_cast<int>((sizeof(Memory) + 15) / 16 * 16);

  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpgemmArgs& args, std::int64_t window) {
    auto& memory = *reinterpret_cast<Memory*>(thread_block.memory());
    const std::int64_t first = window * rows;
    int size = 0;
    if (first + rows <= args.A.rows) size = size_of(thread_block, args, first, memory);
    thread_block.each_thread([&](unsigned thread) {
      if (thread == 0) args.window[window] = static_cast<std::uint8_t>(size);
    });
  }

 private:
  template <class T>
  using Varying = typename Wave::template Varying<T>;

  template <class ThreadBlock>
  TESSERA_FUNCTION static int size_of(const ThreadBlock& thread_block, const SpgemmArgs& args, std::int64_t first,
                                      Memory& memory) {
    const SpgemmWindowRule& rule = args.window_rule;
    std::int64_t entries = 0, products = 0;
    std::int32_t longest = 0;
    for (int row = 0; row < rows; ++row) {
      const int kind = args.kind[first + row];
      const std::int32_t of_c = entries_of(args, first + row);
      if (kind < SpgemmRowKinds::tables || kind == SpgemmRowKinds::empty || of_c > rule.most_entries) return 0;
      entries += args.A.row_map(first + row + 1) - args.A.row_map(first + row);
      products += args.products[first + row];
      longest = of_c > longest ? of_c : longest;
    }
    // The union has at least the mean of its rows.
    if (products < entries * rule.least_products || entries > std::int64_t{Large::most_depth} * rows) return 0;
    const int n = columns_of_a(thread_block, args, first, memory);
    if (n <= 0 || n > Large::most_depth || memory.unfit != 0) return 0;
    if (100 * entries < std::int64_t{rule.least_percent} * n * rows) return 0;
    if (products < std::int64_t{rule.least_products} * rows * n) return 0;
    // The union of C's rows is about a quarter larger than the longest.
    const bool large = n > Small::most_depth || (Large::columns > Small::columns && longest > Small::columns / 5 * 4);
    return large ? SpgemmRowSizes::large_window : SpgemmRowSizes::small_window;
  }
  TESSERA_FUNCTION static std::int32_t entries_of(const SpgemmArgs& args, std::int64_t row) {
    const SpgemmOffsets row_map{args.row_map, args.wide};
    return args.sized ? static_cast<std::int32_t>(row_map(row + 1) - row_map(row)) : args.count[row];
  }
  /// How many columns; a row whose columns do not ascend makes the window unfit.
  template <class ThreadBlock>
  TESSERA_FUNCTION static int columns_of_a(const ThreadBlock& thread_block, const SpgemmArgs& args, std::int64_t first,
                                           Memory& memory) {
    thread_block.each_thread([&](unsigned thread) {
      if (thread == 0) memory.unfit = 0;
    });
    memory.set.clear(thread_block);
    thread_block.each_wave([&](unsigned w) {
      const Wave wave;
      for (int row = static_cast<int>(w); row < rows; row += Waves) {
        const std::int64_t begin = args.A.row_map(first + row), end = args.A.row_map(first + row + 1);
        wave.each([&](int lane) {
          for (std::int64_t e = begin + lane; e < end; e += Wave::lanes) {
            const std::int32_t column = args.A.columns[e];
            if (e > begin && args.A.columns[e - 1] >= column) memory.unfit = 1;
            memory.set.insert(column);
          }
        });
      }
    });
    return memory.set.rank(thread_block);
  }
};

}  // namespace Tessera

#endif
