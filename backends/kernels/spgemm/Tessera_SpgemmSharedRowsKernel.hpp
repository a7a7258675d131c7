// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_KERNELS_SPGEMM_SPGEMM_SHARED_ROWS_KERNEL_HPP
#define TESSERA_KERNELS_SPGEMM_SPGEMM_SHARED_ROWS_KERNEL_HPP

#include <cstdint>

#include "backends/kernels/spgemm/Tessera_SpgemmNumbersKernel.hpp"

/// \file
/// Numbers of rows of C whose row of A has very many entries. A thread block takes a part of such a row that is several
/// times as large as what a wave has room for, so that the entries of A are gone through by few: by all threads side by
/// side, whose products are laid end to end. Each wave owns consecutive entries of C and adds what is theirs, in order,
/// so that sums need no atomics.

namespace Tessera {

template <class Wave, class Value, int Waves, int Holds>
class SpgemmSharedRowsKernel {
 public:
  static constexpr int threads = Waves * Wave::lanes;
  struct Memory {
    alignas(16) Value sum[Holds];
    Value a[threads];                              ///< of entries of A
    Value product_a[threads], product_b[threads];  ///< of products
    std::int64_t shift[threads];                   ///< from a product's number to its entry of B
    std::int32_t column[Holds];
    std::int32_t start[threads];  ///< number of an entry's first product
    std::int32_t slot[threads];   ///< of products; -1: of no entry of the part
    std::int32_t products[Waves];
  };
  static constexpr int bytes = static_cast<int>((sizeof(Memory) + 15) / 16 * 16);

  /// Every `parts`-th part of the row, from `part` on.
  template <class ThreadBlock>
  TESSERA_FUNCTION static void run(const ThreadBlock& thread_block, const SpgemmArgs& args, std::int32_t row,
                                   std::int64_t part, std::int64_t parts) {
    auto& memory = *reinterpret_cast<Memory*>(thread_block.memory());
    const std::int64_t entries = args.count[row], even = (entries + parts - 1) / parts;
    const std::int64_t each = even > Holds ? Holds : even < least ? least : even;
    for (; part * each < entries; part += parts) {
      const Stretch s = Stretch::of(args, row, static_cast<std::int32_t>(part), each);
      thread_block.each_thread([&](unsigned thread) {
        for (int j = static_cast<int>(thread); j < s.n; j += threads) {
          const std::int32_t c = s.known[j];
          memory.sum[j] = 0;
          memory.column[j] = c;
          if (s.columns != nullptr) s.columns[j] = c;
        }
      });
      thread_block.synchronize();
      const std::int64_t end = args.A.row_map(row + 1);
      for (std::int64_t e = args.A.row_map(row); e < end; e += threads) {
        add_entries(thread_block, args, s, e, end, memory);
      }
      thread_block.each_thread([&](unsigned thread) {
        for (int j = static_cast<int>(thread); j < s.n; j += threads) s.values[j] = memory.sum[j];
      });
      thread_block.synchronize();
    }
  }

 private:
  template <class T>
  using Varying = typename Wave::template Varying<T>;
  using Stretch = SpgemmStretch<Value>;
  static constexpr std::int64_t least = Holds / 8;  ///< entries of a part

  /// Entries [e, e + threads) of A, as far as they are below `end`.
  template <class ThreadBlock>
  TESSERA_FUNCTION static void add_entries(const ThreadBlock& thread_block, const SpgemmArgs& args, const Stretch& s,
                                           std::int64_t e, std::int64_t end, Memory& memory) {
    thread_block.each_wave([&](unsigned w) {
      const Wave wave;
      Varying<std::int32_t> products;
      wave.each([&](int lane) {
        const unsigned thread = w * Wave::lanes + static_cast<unsigned>(lane);
        SpgemmPiece piece{0, 0};
        if (e + thread < end) {
          piece = spgemm_piece(args, e + thread);
          piece = spgemm_narrowed(args.B.columns + piece.begin, piece, s.low, s.high);
        }
        products(lane) = piece.count;
        memory.start[thread] = -piece.count;
        memory.shift[thread] = piece.begin;
        if (piece.count > 0) memory.a[thread] = static_cast<const Value*>(args.A.values)[e + thread];
      });
      spgemm_scan(wave, products);
      wave.each([&](int lane) {
        memory.start[w * Wave::lanes + static_cast<unsigned>(lane)] += products(lane);
        if (lane == Wave::lanes - 1) memory.products[w] = products(lane);
      });
    });
    thread_block.synchronize();
    std::int32_t all = 0;
    for (int w = 0; w < Waves; ++w) all += memory.products[w];
    thread_block.each_thread([&](unsigned thread) {
      std::int32_t start = memory.start[thread];
      for (unsigned w = 0; w < thread / Wave::lanes; ++w) start += memory.products[w];
      memory.start[thread] = start;
      memory.shift[thread] -= start;
    });
    thread_block.synchronize();
    for (std::int32_t at = 0; at < all; at += threads) {
      const int n = all - at < threads ? all - at : threads;
      thread_block.each_thread([&](unsigned thread) {
        if (static_cast<int>(thread) < n) load(args, s, at + static_cast<std::int32_t>(thread), thread, memory);
      });
      thread_block.synchronize();
      thread_block.each_wave([&](unsigned w) { add_own(w, s, n, memory); });
      thread_block.synchronize();
    }
  }
  /// A product: of the last entry of A that starts not after it.
  TESSERA_FUNCTION static void load(const SpgemmArgs& args, const Stretch& s, std::int32_t product, unsigned to,
                                    Memory& memory) {
    const int piece = spgemm_place(memory.start, threads, product);
    const std::int64_t entry = memory.shift[piece] + product;
    const std::int32_t column = args.B.columns[entry];
    memory.product_a[to] = memory.a[piece];
    memory.product_b[to] = static_cast<const Value*>(args.B.values)[entry];
    memory.slot[to] = column >= s.low && column <= s.high ? spgemm_place(memory.column, s.n, column) : -1;
  }
  /// A wave adds the products of its entries of C.
  TESSERA_FUNCTION static void add_own(unsigned w, const Stretch& s, int n, Memory& memory) {
    const Wave wave;
    const int each = (s.n + Waves - 1) / Waves, first = static_cast<int>(w) * each;
    for (int i = 0; i < n; i += Wave::lanes) {
      Varying<std::int32_t> slot;
      Varying<bool> is;
      wave.each([&](int lane) {
        const std::int32_t there = i + lane < n ? memory.slot[i + lane] : -1;
        is(lane) = there >= first && there < first + each;
        slot(lane) = is(lane) ? there : -1 - lane;  // of no other
      });
      if (wave.ballot(is) == 0) continue;
      spgemm_add_in_turn(wave, slot, [&](int lane) {
        Value& to = memory.sum[slot(lane)];
        to = Wave::add_product(memory.product_a[i + lane], memory.product_b[i + lane], to);
      });
      wave.converge();
    }
  }
};

}  // namespace Tessera

#endif
