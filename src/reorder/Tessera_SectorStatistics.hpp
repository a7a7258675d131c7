// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_REORDER_SECTOR_STATISTICS_HPP
#define TESSERA_REORDER_SECTOR_STATISTICS_HPP

#include <algorithm>
#include <cstdint>
#include <string>

#include "Tessera_CsrView.hpp"
#include "core/Tessera_SegmentedSort.hpp"

namespace Tessera {
namespace reorder {

/// What sector_statistics looks at.
struct SectorOptions {
  /// Rows that share what they read of x: those that a multiprocessor has in flight, as a rule of thumb.
  int window_rows = 256;
  /// Windows looked at, spread evenly over the matrix; all of them if there are no more.
  int windows = 1024;
  /// Bytes of an element of x; 0: as the matrix's values.
  int element_bytes = 0;
};

/// How much of x a product has to fetch if nothing outlives a window of rows.
struct SectorStatistics {
  static constexpr int sector_bytes = 32;  ///< the unit in which today's GPUs read memory

  int window_rows = 0;            ///< as in SectorOptions
  int element_bytes = 0;          ///< as in SectorOptions, or of the matrix's values
  long long windows = 0;          ///< of the matrix
  long long sampled_windows = 0;  ///< that were looked at
  long long sampled_entries = 0;  ///< entries of A in the sampled windows
  long long sampled_sectors = 0;  ///< distinct sectors of x, counted for each window and added up
  long long bandwidth = 0;        ///< max |row - column| over the whole matrix

  /// 1: every entry fetches a sector of its own. element_bytes / 32: all of every fetched sector is used once; less
  /// when rows of a window share columns. 0 without entries.
  double sectors_per_entry() const {
    return sampled_entries > 0 ? static_cast<double>(sampled_sectors) / static_cast<double>(sampled_entries) : 0;
  }
  /// Bytes of x that an entry fetches.
  double bytes_per_entry() const { return sector_bytes * sectors_per_entry(); }
};

namespace Impl {

/// Windows are numbered 0 ... taken-1; the k-th begins at this row.
struct Sample {
  std::int64_t rows, window_rows, windows, taken;
  KOKKOS_INLINE_FUNCTION std::int64_t row(std::int64_t k) const {
    const std::int64_t row = k * windows / taken * window_rows;
    return row < rows ? row : rows;
  }
  KOKKOS_INLINE_FUNCTION std::int64_t end(std::int64_t k) const {
    const std::int64_t end = row(k) + window_rows;
    return end < rows ? end : rows;
  }
};

template <class Csr>
struct SectorFunctors {
  using Offsets = Kokkos::View<std::int64_t*, Kokkos::LayoutLeft, typename Csr::device_type>;
  using Sort = Tessera::Impl::SegmentedSort<typename Csr::device_type, std::int32_t, std::int32_t>;

  struct Bandwidth {
    Csr A;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row, std::int64_t& widest) const {
      for (auto i = A.row_map()(row); i < A.row_map()(row + 1); ++i) {
        const std::int64_t distance = row - static_cast<std::int64_t>(A.entries()(i));
        const std::int64_t length = distance < 0 ? -distance : distance;
        if (length > widest) widest = length;
      }
    }
  };
  /// Entries of a window.
  struct Size {
    Csr A;
    Sample sample;
    KOKKOS_INLINE_FUNCTION std::int64_t of(std::int64_t k) const {
      return static_cast<std::int64_t>(A.row_map()(sample.end(k))) -
             static_cast<std::int64_t>(A.row_map()(sample.row(k)));
    }
  };
  struct Longest {
    Size size;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t k, std::int64_t& longest) const {
      const std::int64_t n = size.of(k);
      if (n > longest) longest = n;
    }
  };
  struct Scan {
    Size size;
    Offsets begin;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t k, std::int64_t& sum, const bool final) const {
      if (final) begin(k) = sum;
      if (k < size.sample.taken) sum += size.of(k);
    }
  };
  struct Keys {
    Csr A;
    Sample sample;
    Offsets begin;
    typename Sort::Keys keys;
    typename Sort::Segments segments;
    std::int64_t per_sector;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      const std::int64_t k = Tessera::Impl::segment_of(begin, sample.taken, i);
      const std::int64_t place = static_cast<std::int64_t>(A.row_map()(sample.row(k))) + (i - begin(k));
      segments(i) = static_cast<std::int32_t>(k);
      keys(i) = static_cast<std::int32_t>(static_cast<std::int64_t>(A.entries()(place)) / per_sector);
    }
  };
  struct Distinct {
    Offsets begin;
    typename Sort::Keys keys;
    typename Sort::Segments segments;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, std::int64_t& sectors) const {
      if (i == begin(segments(i)) || keys(i) != keys(i - 1)) ++sectors;
    }
  };
};

/// @throw InvalidArgument  A is not a valid matrix
template <class Exec, class Csr>
void require_valid(const Exec& space, const char* name, const Csr& A) {
  const CsrReport report = validate(space, A);
  Tessera::Impl::require<InvalidArgument>(report.valid, [&] { return std::string(name) + ": " + report.fault; });
}

}  // namespace Impl

/// Counts, for windows of consecutive rows, how many different 32-byte sectors of x their entries touch:
///
///     sectors_per_entry = sum_w |{ floor(column(e) element_bytes / 32) : e in window w }| / sum_w |{ e in w }|
///
/// so that the effect of an order can be told before and after. An estimate of x traffic, not a model of a cache: what
/// an L1 keeps from one window to the next lowers the true figure, what it loses inside a window raises it. Exact in
/// what it counts; the windows are a sample, spread evenly, once there are more of them than `windows`.
///
/// Any shape; x is taken to begin at a sector's boundary. O(nnz) for the bandwidth and O(s log^2 l) for s sampled
/// entries, the longest window of which has l, with 12 s bytes of memory. Deterministic. Waits.
/// @throw InvalidArgument  A is not a valid matrix (validate()), window_rows or windows is below 1, or element_bytes is
///                         not 1, 2, 4, 8, 16 or 32
template <class Exec, class Scalar, class Ordinal, class Offset, class Device>
SectorStatistics sector_statistics(const Exec& space, const CsrView<Scalar, Ordinal, Offset, Device>& A,
                                   const SectorOptions& options = {}) {
  using Csr = CsrView<Scalar, Ordinal, Offset, Device>;
  using F = Impl::SectorFunctors<Csr>;
  using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  SectorStatistics s;
  s.window_rows = options.window_rows;
  s.element_bytes = options.element_bytes == 0 ? static_cast<int>(sizeof(Scalar)) : options.element_bytes;
  Tessera::Impl::require<InvalidArgument>(options.window_rows >= 1 && options.windows >= 1, [&] {
    return "reorder::sector_statistics: windows of " + std::to_string(options.window_rows) + " rows, " +
           std::to_string(options.windows) + " of them; both must be at least 1";
  });
  Tessera::Impl::require<InvalidArgument>(s.element_bytes >= 1 && s.element_bytes <= SectorStatistics::sector_bytes &&
                                              SectorStatistics::sector_bytes % s.element_bytes == 0,
                                          [&] {
                                            return "reorder::sector_statistics: elements of " +
                                                   std::to_string(s.element_bytes) +
                                                   " bytes; 1, 2, 4, 8, 16 and 32 are known";
                                          });
  Impl::require_valid(space, "reorder::sector_statistics", A);
  const Compat::ScopedRegion region("Tessera::reorder[sectors]");
  const auto rows = static_cast<std::int64_t>(A.rows());
  if (rows == 0) return s;
  Impl::Sample sample{rows, options.window_rows, (rows - 1) / options.window_rows + 1, 0};
  sample.taken = std::min<std::int64_t>(options.windows, sample.windows);
  s.windows = sample.windows;
  s.sampled_windows = sample.taken;
  std::int64_t bandwidth = 0, longest = 0, entries = 0, sectors = 0;
  Kokkos::parallel_reduce("Tessera::reorder bandwidth", Policy(space, 0, rows), typename F::Bandwidth{A},
                          Kokkos::Max<std::int64_t>(bandwidth));
  const typename F::Offsets begin("Tessera::reorder::windows", static_cast<std::size_t>(sample.taken) + 1);
  const typename F::Size size{A, sample};
  Kokkos::parallel_reduce("Tessera::reorder longest window", Policy(space, 0, sample.taken), typename F::Longest{size},
                          Kokkos::Max<std::int64_t>(longest));
  Kokkos::parallel_scan("Tessera::reorder windows", Policy(space, 0, sample.taken + 1), typename F::Scan{size, begin},
                        entries);
  Compat::fence(space, "Tessera::reorder windows");
  s.bandwidth = std::max<std::int64_t>(bandwidth, 0);
  s.sampled_entries = entries;
  if (entries == 0) return s;
  typename F::Sort sort(space, entries, false);
  const std::int64_t per_sector = SectorStatistics::sector_bytes / s.element_bytes;
  Kokkos::parallel_for("Tessera::reorder sectors", Policy(space, 0, entries),
                       typename F::Keys{A, sample, begin, sort.keys, sort.segments, per_sector});
  sort.run(space, begin, longest);
  Kokkos::parallel_reduce("Tessera::reorder distinct sectors", Policy(space, 0, entries),
                          typename F::Distinct{begin, sort.keys, sort.segments}, sectors);
  Compat::fence(space, "Tessera::reorder[sectors]");
  s.sampled_sectors = sectors;
  return s;
}

}  // namespace reorder
}  // namespace Tessera

#endif
