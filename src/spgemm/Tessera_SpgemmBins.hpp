// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_BINS_HPP
#define TESSERA_SPGEMM_SPGEMM_BINS_HPP

#include <cstdint>
#include <string>

#include "core/Tessera_Arena.hpp"

/// \file
/// Rows of C by size, so that rows that are worked on side by side need scratch of one size.

namespace Tessera {
namespace Impl {

/// Sizes of tables in slots, and how many entries each may hold: three quarters, so that a search meets a free slot
/// soon.
struct SpgemmTables {
  static constexpr int count = 3;
  KOKKOS_INLINE_FUNCTION static int slots(int bin) { return 32 << 2 * bin; }
  KOKKOS_INLINE_FUNCTION static std::int64_t holds(int bin) { return slots(bin) / 4 * 3; }
  /// count: no table holds so many.
  KOKKOS_INLINE_FUNCTION static int bin_of(std::int64_t entries) {
    int bin = 0;
    while (bin < count && entries > holds(bin)) ++bin;
    return bin;
  }
};

/// A part of a row of C: entries [part * most, (part + 1) * most) of it, as far as there are.
struct SpgemmPart {
  std::int32_t row, part;
};

/// Lists of rows per table, of those that no table holds, and of the parts of these.
template <class Exec>
class SpgemmBins {
 public:
  static constexpr int large = SpgemmTables::count, lists = large + 1;
  static constexpr std::int64_t part_entries = 1024;  ///< of a row that no table holds, worked on at once

  /// Entries of each row, or a bound of them; over rows.
  struct Sizes {
    const std::int64_t* before;  ///< of all rows before each, or null
    const std::int32_t* count;   ///< of each row
    std::int64_t most;           ///< no row has more
    KOKKOS_INLINE_FUNCTION std::int64_t operator()(std::int64_t row) const {
      const std::int64_t n = before != nullptr ? before[row + 1] - before[row] : count[row];
      return n < most ? n : most;
    }
  };

  KOKKOS_INLINE_FUNCTION static std::int64_t parts_of(std::int64_t entries) {
    return (entries + part_entries - 1) / part_entries;
  }

  /// Rows of each list, parts, entries of all rows.
  struct Totals {
    std::int64_t rows[lists], parts, entries;
  };
  // Functors; public for nvcc.
  /// Each list has room for all rows, so that one pass fills them all.
  struct Lists {
    using value_type = Totals;
    Sizes sizes;
    std::int64_t all;
    std::int32_t* row;
    KOKKOS_INLINE_FUNCTION void init(Totals& t) const { t = Totals{}; }
    template <class To, class From>
    KOKKOS_INLINE_FUNCTION static void add(To& a, const From& b) {
      for (int i = 0; i < lists; ++i) a.rows[i] = a.rows[i] + b.rows[i];
      a.parts = a.parts + b.parts;
      a.entries = a.entries + b.entries;
    }
    KOKKOS_INLINE_FUNCTION void join(Totals& a, const Totals& b) const { add(a, b); }
    KOKKOS_INLINE_FUNCTION void join(volatile Totals& a, const volatile Totals& b) const { add(a, b); }
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t r, Totals& sum, const bool final) const {
      const std::int64_t n = sizes(r);
      if (n == 0) return;
      const int bin = SpgemmTables::bin_of(n);
      for (int i = 0; i < lists; ++i) {  // no index that registers cannot have
        if (i != bin) continue;
        if (final) row[all * i + sum.rows[i]] = static_cast<std::int32_t>(r);
        ++sum.rows[i];
      }
      if (bin == large) sum.parts += parts_of(n);
      sum.entries += n;
    }
  };
  struct ListParts {
    using value_type = std::int64_t;
    Sizes sizes;
    const std::int32_t* row;
    SpgemmPart* part;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, std::int64_t& sum, const bool final) const {
      const std::int64_t n = parts_of(sizes(row[i]));
      for (std::int64_t p = 0; final && p < n; ++p) part[sum + p] = {row[i], static_cast<std::int32_t>(p)};
      sum += n;
    }
  };

  SpgemmBins() = default;
  /// @param row  room for `lists` numbers per row
  explicit SpgemmBins(std::int32_t* row) : row_(row) {}

  /// Rows without entries are in no list. @param parts  rows that no table holds are divided
  /// @param pool  where lists of parts are allocated
  void sort(const Exec& space, std::int64_t rows, const Sizes& sizes, bool parts, const KernelTable* pool) {
    const std::string label("Tessera::spgemm bins");
    rows_ = rows;
    totals_ = Totals{};
    if (rows == 0) return;
    Kokkos::parallel_scan(label, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, rows),
                          Lists{sizes, rows, row_}, totals_);
    if (!parts || totals_.parts == 0) return;
    part_.reset();  // first, so that both never exist at once
    part_ = Impl::allocate<typename Exec::memory_space>(space, pool, "Tessera::spgemm parts", parts_bytes(),
                                                        Lifetime::Plan);
    Kokkos::parallel_scan(label, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, count(large)),
                          ListParts{sizes, list(large), static_cast<SpgemmPart*>(part_.get())});
  }

  const std::int32_t* list(int which) const { return row_ + rows_ * which; }
  std::int64_t count(int which) const { return totals_.rows[which]; }
  const SpgemmPart* parts() const { return static_cast<const SpgemmPart*>(part_.get()); }
  std::int64_t entries() const { return totals_.entries; }
  std::int64_t count_of_parts() const { return totals_.parts; }
  std::size_t parts_bytes() const { return sizeof(SpgemmPart) * static_cast<std::size_t>(totals_.parts); }

 private:
  std::int32_t* row_ = nullptr;
  std::shared_ptr<void> part_;
  std::int64_t rows_ = 0;
  Totals totals_ = {};
};

}  // namespace Impl
}  // namespace Tessera

#endif
