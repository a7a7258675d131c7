// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_GE_SPMM_LOCAL_HPP
#define TESSERA_SPMM_GE_SPMM_LOCAL_HPP

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "spmm/Tessera_GeSpmmHostLaunch.hpp"

/// \file
/// C := alpha A B + beta C on CPUs where columns of B are contiguous and rows of A use neighbouring rows of B (meshes
/// in their usual order, blocks of small graphs): the rows of B that a block of rows of A uses are copied to where the
/// second cache holds them. B crosses memory once, where a copy of all of B is written and read again.

namespace Tessera {
namespace Impl {

/// Which columns each range of rows uses: O(nnz), once per plan.
class ColumnReach {
 public:
  static constexpr std::int64_t range_rows = 512;
  static constexpr std::int64_t most_bytes = 1 << 19;   ///< of a copy: half of a second cache
  static constexpr std::int64_t least_bytes = 1 << 22;  ///< of B: what is less stays in the caches, copied as a whole
  static constexpr double most_copies = 1.75;           ///< of B's rows, mean: blocks share rows of B

  struct Range {
    std::int64_t first = 0, last = -1;
    std::int64_t count() const { return last - first + 1; }
  };

  template <class Exec, class Csr>
  ColumnReach(const Exec& space, const Csr& A)
      : ranges_(static_cast<std::size_t>((static_cast<std::int64_t>(A.rows()) + range_rows - 1) / range_rows)) {
    Range* const ranges = ranges_.data();
    const std::int64_t rows = static_cast<std::int64_t>(A.rows());
    const auto* const map = A.row_map().data();
    const auto* const entries = A.entries().data();
    Kokkos::parallel_for(
        "Tessera::spmm[reach]", Kokkos::RangePolicy<Exec>(space, 0, static_cast<std::int64_t>(ranges_.size())),
        [=](const std::int64_t u) {
          const auto begin = map[u * range_rows], end = map[std::min(rows, (u + 1) * range_rows)];
          if (begin == end) return;
          const auto ends = std::minmax_element(entries + begin, entries + end);
          ranges[u] = {static_cast<std::int64_t>(*ends.first), static_cast<std::int64_t>(*ends.second)};
        });
  }

  Range of_block(std::int64_t block, std::int64_t ranges) const {
    const auto count = static_cast<std::int64_t>(ranges_.size());
    Range all;
    for (std::int64_t u = block * ranges; u < std::min(count, (block + 1) * ranges); ++u) {
      const Range r = ranges_[static_cast<std::size_t>(u)];
      if (r.count() == 0) continue;
      all = all.count() == 0 ? r : Range{std::min(all.first, r.first), std::max(all.last, r.last)};
    }
    return all;
  }
  std::int64_t blocks(std::int64_t ranges) const {
    return (static_cast<std::int64_t>(ranges_.size()) + ranges - 1) / ranges;
  }
  /// Ranges of rows of a block for rows of B of so many bytes; 0 where copies of parts do not pay. room: rows of B, at
  /// most.
  std::int64_t ranges_of_block(std::int64_t rows_of_b, std::int64_t row_bytes, std::int64_t& room) const {
    if (rows_of_b * row_bytes < least_bytes) return 0;
    for (std::int64_t ranges = 8; ranges > 0; ranges /= 2) {
      std::int64_t copied = 0;
      room = 0;
      for (std::int64_t b = 0; b < blocks(ranges); ++b) {
        const std::int64_t n = of_block(b, ranges).count();
        copied += n;
        room = std::max(room, n);
      }
      if (room * row_bytes > most_bytes) continue;
      return static_cast<double>(copied) <= most_copies * static_cast<double>(rows_of_b) ? ranges : 0;
    }
    return 0;
  }

 private:
  std::vector<Range> ranges_;
};

/// A share of the blocks. Copies lie in as many places as there are threads; whoever runs a share takes a free one.
template <class Csr, class BT, class CT>
struct GeSpmmLocalFunctor {
  GeSpmmHostFunctor<Csr, BT, CT> host;  ///< its b: a copy, of which `data` is set for each block
  Dense<const BT> b;
  const ColumnReach* reach;
  std::int64_t ranges;
  Shares shares;  ///< of the blocks
  BT* copies;
  std::int64_t copy_size;
  std::atomic<int>* taken;
  int threads;

  void operator()(const std::int64_t share) const {
    const int place = take();
    BT* const copy = copies + place * copy_size;
    const std::int64_t rows = static_cast<std::int64_t>(host.A.rows());
    for (std::int64_t k = Shares::cut(shares.items, share, shares.count),
                      last = Shares::cut(shares.items, share + 1, shares.count);
         k < last; ++k) {
      const ColumnReach::Range range = reach->of_block(k, ranges);
      copy_rows(range, copy);
      GeSpmmHostFunctor<Csr, BT, CT> block = host;
      block.b.data = copy - range.first * host.b.row_stride;
      block.multiply(k * ranges * ColumnReach::range_rows, std::min(rows, (k + 1) * ranges * ColumnReach::range_rows));
    }
    taken[place].store(0, std::memory_order_release);
  }

 private:
  int take() const {
    for (int place = 0;; place = place + 1 < threads ? place + 1 : 0) {
      if (taken[place].exchange(1, std::memory_order_acquire) == 0) return place;
    }
  }
  /// Few rows at a time, whose lines of the copy stay in the first cache while the columns go by.
  void copy_rows(const ColumnReach::Range& range, BT* copy) const {
    constexpr std::int64_t some = 16;
    const std::int64_t ld = host.b.row_stride;
    for (std::int64_t i = range.first; i <= range.last; i += some, copy += some * ld) {
      const int count = static_cast<int>(std::min(some, range.last + 1 - i));
      for (std::int64_t j = 0; j < b.columns; ++j) {
        const BT* const from = b.at(i, j);
        if (count == some && b.row_stride == 1) {
          for (int k = 0; k < static_cast<int>(some); ++k) copy[k * ld + j] = from[k];
        } else {
          for (int k = 0; k < count; ++k) copy[k * ld + j] = from[k * b.row_stride];
        }
      }
      for (std::int64_t j = b.columns; j < host.b.columns; ++j) {
        for (int k = 0; k < count; ++k) copy[k * ld + j] = BT(0.0f);
      }
    }
  }
};

/// Bytes of scratch for copies of `room` rows of B, one per thread, and for who has them.
template <class BT>
std::size_t ge_spmm_local_bytes(std::int64_t threads, std::int64_t room, std::int64_t ld) {
  return static_cast<std::size_t>(threads) * (static_cast<std::size_t>(room * ld) * sizeof(BT) + 64) + 64;
}

/// No row is split. columns: of the copies, those behind B's own zeros. scratch: of ge_spmm_local_bytes, aligned to 16.
/// Returns when the product has ended.
template <class Exec, class Csr, class BT, class CT, class Sum>
void ge_spmm_local(const Exec& space, double alpha, const Csr& A, const Dense<const BT>& b, double beta,
                   const Dense<CT>& c, const RowPieces<Sum>& pieces, const ColumnReach& reach, std::int64_t ranges,
                   std::int64_t room, std::int64_t columns, char* scratch) {
  const std::int64_t ld = Dense<BT>::padded(columns), threads = std::max(1, static_cast<int>(space.concurrency()));
  const Shares shares = ge_spmm_shares(space, reach.blocks(ranges), static_cast<std::int64_t>(A.nnz()) + pieces.count);
  auto* const taken = reinterpret_cast<std::atomic<int>*>(scratch);
  for (std::int64_t t = 0; t < threads; ++t) new (taken + t) std::atomic<int>(0);
  const std::int64_t behind = (threads * static_cast<std::int64_t>(sizeof(std::atomic<int>)) + 63) / 64 * 64;
  BT* const copies = reinterpret_cast<BT*>(scratch + behind);
  const Dense<const BT> copied{copies, b.rows, columns, ld, 1};
  static const std::string label("Tessera::spmm[gespmm, parts of B]");
  for_each_share(
      label, space, shares,
      GeSpmmLocalFunctor<Csr, BT, CT>{ge_spmm_host_functor(alpha, A, copied, beta, c, pieces, shares), b, &reach,
                                      ranges, shares, copies, room * ld, taken, static_cast<int>(threads)});
}

}  // namespace Impl
}  // namespace Tessera

#endif
