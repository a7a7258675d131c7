// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_ELL_HPP
#define TESSERA_SPGEMM_SPGEMM_ELL_HPP

#include <cstdint>
#include <memory>
#include <string>

#include "core/Tessera_Arena.hpp"
#include "core/Tessera_HugePages.hpp"
#include "spgemm/Tessera_SpgemmRow.hpp"
#include "spgemm/Tessera_SpgemmRules.hpp"

/// \file
/// SpgemmAlgorithm::Ell, on any execution space: rows of A and B padded to the longest one, so that a row of B lies
/// where its number says, without a look at a row map [Xie et al., "IA-SpGEMM", PPoPP'19]. A thread has a row of C:
/// the columns of its rows of B go one after the other into an ascending list, then numbers to the places of their
/// columns, which a walk through the list finds: from where the column before was, as long as columns ascend.

namespace Tessera {
namespace Impl {

/// A matrix padded to its longest row; padding is column -1, which of unsigned columns is their largest number. By rows
/// on hosts, by slots on devices, whose neighbouring threads have neighbouring rows.
template <class Csr>
struct SpgemmPadded {
  using Ordinal = typename Csr::ordinal_type;
  using Scalar = typename Csr::value_type;
  std::int64_t rows = 0, width = 0;
  Ordinal* columns = nullptr;
  Scalar* values = nullptr;
  static constexpr bool by_rows = Compat::is_host_v<typename Csr::execution_space>;
  static constexpr Ordinal none = static_cast<Ordinal>(-1);  ///< read by value
  KOKKOS_INLINE_FUNCTION std::int64_t first(std::int64_t row) const { return by_rows ? row * width : row; }
  /// From a slot of a row to the next one.
  KOKKOS_INLINE_FUNCTION std::int64_t step() const { return by_rows ? 1 : rows; }
  /// Hosts ask for the row of B that an entry of A some entries later wants, which may be far away.
  template <bool Numbers>
  KOKKOS_FORCEINLINE_FUNCTION void ask_ahead(const SpgemmPadded& of_a, std::int64_t slot) const {
    if constexpr (by_rows) {
      constexpr std::int64_t later = spgemm_rows_ahead;
      const Ordinal k = slot + later < of_a.rows * of_a.width ? of_a.columns[slot + later] : none;
      if (k == none) return;
      __builtin_prefetch(columns + first(k));
      if (Numbers) __builtin_prefetch(values + first(k));
    }
  }
};

template <class Csr>
struct SpgemmLongestRow {
  CsrArrays<Csr> M;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row, std::int64_t& most) const {
    const std::int64_t n = row_begin(M, row + 1) - row_begin(M, row);
    if (n > most) most = n;
  }
};
/// Columns, numbers or both.
template <class Csr>
struct SpgemmPad {
  CsrArrays<Csr> M;
  SpgemmPadded<Csr> to;
  bool columns;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row) const {
    const std::int64_t begin = row_begin(M, row), n = row_begin(M, row + 1) - begin, at = to.first(row),
                       step = to.step();
    if (!columns) {
      for (std::int64_t s = 0; s < n; ++s) to.values[at + s * step] = M.values()(begin + s);
      return;
    }
    for (std::int64_t s = 0; s < n; ++s) to.columns[at + s * step] = M.entries()(begin + s);
    for (std::int64_t s = n; s < to.width; ++s) to.columns[at + s * step] = to.none;
  }
};

/// A place in an ascending list of columns, from which the next one is looked for.
template <class Ordinal>
struct SpgemmPlace {
  const Ordinal* list;
  std::int64_t step;  ///< from one to the next
  std::int64_t n, at = 0;
  KOKKOS_INLINE_FUNCTION SpgemmPlace(const Ordinal* columns, std::int64_t stride, std::int64_t count)
      : list(columns), step(stride), n(count) {}
  /// The first that is not smaller.
  KOKKOS_INLINE_FUNCTION void find(Ordinal column) {
    if (at == n || list[at * step] > column) {  // behind, if it does not ascend
      if (at > 0 && list[(at - 1) * step] >= column) at = 0;
    }
    while (at < n && list[at * step] < column) ++at;
  }
};

/// The columns of C, padded like A and B, and how many.
template <class Csr>
struct SpgemmEllColumns {
  using Ordinal = typename Csr::ordinal_type;
  SpgemmPadded<Csr> A, B, C;
  std::int32_t* count;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row) const {
    Ordinal* const list = C.columns + C.first(row);
    const std::int64_t step = C.step();
    std::int64_t n = 0;
    for (std::int64_t s = 0; s < A.width; ++s) {
      const std::int64_t slot = A.first(row) + s * A.step();
      const Ordinal k = A.columns[slot];
      if (k == A.none) break;
      B.template ask_ahead<false>(A, slot);
      SpgemmPlace<Ordinal> place(list, step, n);
      for (std::int64_t t = 0; t < B.width; ++t) {
        const Ordinal column = B.columns[B.first(k) + t * B.step()];
        if (column == B.none) break;
        place.find(column);
        if (place.at < n && list[place.at * step] == column) continue;
        for (std::int64_t i = n; i > place.at; --i) list[i * step] = list[(i - 1) * step];
        list[place.at * step] = column;
        place.n = ++n;
      }
    }
    count[row] = static_cast<std::int32_t>(n);
  }
};

/// The numbers of C, and its columns first where they are asked for.
template <class Csr>
struct SpgemmEllNumbers {
  using Ordinal = typename Csr::ordinal_type;
  using Scalar = typename Csr::value_type;
  SpgemmPadded<Csr> A, B, C;
  const typename Csr::size_type* row_map;
  Ordinal* columns;
  Scalar* values;
  bool write;  ///< columns
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row) const {
    const auto begin = static_cast<std::int64_t>(row_map[row]), n = static_cast<std::int64_t>(row_map[row + 1]) - begin;
    Ordinal* const own = columns + begin;
    Scalar* const sum = values + begin;
    for (std::int64_t i = 0; write && i < n; ++i) own[i] = C.columns[C.first(row) + i * C.step()];
    for (std::int64_t i = 0; i < n; ++i) sum[i] = 0;
    for (std::int64_t s = 0; s < A.width; ++s) {
      const std::int64_t slot = A.first(row) + s * A.step();
      const Ordinal k = A.columns[slot];
      if (k == A.none) break;
      B.template ask_ahead<true>(A, slot);
      const Scalar a = A.values[slot];
      SpgemmPlace<Ordinal> place(own, 1, n);
      for (std::int64_t t = 0; t < B.width; ++t) {
        const std::int64_t from = B.first(k) + t * B.step();
        const Ordinal column = B.columns[from];
        if (column == B.none) break;
        place.find(column);
        sum[place.at] += a * B.values[from];
      }
    }
  }
};

/// Both matrices padded, and the columns of C.
template <class Csr>
class SpgemmEll {
 public:
  using Exec = typename Csr::execution_space;
  using Scalar = typename Csr::value_type;
  using Ordinal = typename Csr::ordinal_type;
  using Offset = typename Csr::size_type;

  SpgemmEll() = default;
  /// Pads columns, if there is room. Numbers come later. @param width  of A: its longest row
  /// @param room  bytes, at most  @param pool  the backend whose memory it is, or null  @throw NotSupported
  SpgemmEll(const Exec& space, const Csr& A, const Csr& B, std::int64_t width, std::size_t room,
            const KernelTable* pool)
      : pool_(pool), shared_(same_pattern(A, B)) {
    a_.rows = c_.rows = static_cast<std::int64_t>(A.rows());
    b_.rows = static_cast<std::int64_t>(B.rows());
    a_.width = width;
    Kokkos::parallel_reduce("Tessera::spgemm longest row", range(space, b_.rows),
                            SpgemmLongestRow<Csr>{CsrArrays<Csr>(B)}, Kokkos::Max<std::int64_t>(b_.width));
    Compat::fence(space, "Tessera::spgemm longest row");
    b_.width = std::max<std::int64_t>(b_.width, 0);  // of no rows
    require_room(room, static_cast<std::int64_t>(B.cols()));
    c_.width = static_cast<std::int64_t>(spgemm_ell_width(a_.width, b_.width, static_cast<std::int64_t>(B.cols())));
    pad_columns(space, A, a_, columns_a_);
    if (shared_) {
      b_.columns = a_.columns;
    } else {
      pad_columns(space, B, b_, columns_b_);
    }
    a_.values = take<Scalar>(space, values_a_, a_);
    if (!one_matrix(A, B)) take<Scalar>(space, values_b_, b_);
    c_.columns = take<Ordinal>(space, columns_c_, c_);
  }

  void count(const Exec& space, std::int32_t* counts) const {
    Kokkos::parallel_for("Tessera::spgemm symbolic", range(space, a_.rows), SpgemmEllColumns<Csr>{a_, b_, c_, counts});
  }
  /// After count(). @param write  the columns of C; else they are read
  void numeric(const Exec& space, const Csr& A, const Csr& B, const Offset* row_map, Ordinal* columns, bool write,
               Scalar* values) {
    pad(space, A, a_, false);
    if (one_matrix(A, B)) {
      b_.values = a_.values;
    } else {
      if (values_b_ == nullptr) take<Scalar>(space, values_b_, b_);  // of a plan that was made of one matrix
      b_.values = static_cast<Scalar*>(values_b_.get());
      pad(space, B, b_, false);
    }
    Kokkos::parallel_for("Tessera::spgemm numeric", range(space, a_.rows),
                         SpgemmEllNumbers<Csr>{a_, b_, c_, row_map, columns, values, write});
  }
  std::size_t bytes() const { return bytes_; }
  std::string what() const {
    return "rows of up to " + std::to_string(a_.width) + " entries of A and " + std::to_string(b_.width) + " of B";
  }

 private:
  using Padded = SpgemmPadded<Csr>;
  /// Whether B's numbers are A's.
  bool one_matrix(const Csr& A, const Csr& B) const { return shared_ && A.values().data() == B.values().data(); }
  static Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>> range(const Exec& space, std::int64_t n) {
    return {space, 0, n};
  }
  void require_room(std::size_t room, std::int64_t cols) const {
    const std::size_t needed =
        spgemm_ell_bytes(a_.rows, a_.width, b_.rows, b_.width, cols, sizeof(Scalar), sizeof(Ordinal));
    require<NotSupported>(needed <= room, [&] {
      return "spgemm: Ell needs " + std::to_string(needed) + " bytes for rows of up to " + std::to_string(a_.width) +
             " entries of A and " + std::to_string(b_.width) + " of B, and may take " + std::to_string(room) +
             " (max_workspace_bytes, or four times A and B): use another algorithm";
    });
  }
  /// An array of a matrix's slots that lives as long as the plan; in large pages on hosts.
  template <class T>
  T* take(const Exec& space, std::shared_ptr<void>& storage, const Padded& of) {
    const std::size_t bytes = static_cast<std::size_t>(of.rows * of.width) * sizeof(T);
    storage =
        Impl::allocate<typename Csr::memory_space>(space, pool_, "Tessera::spgemm padded rows", bytes, Lifetime::Plan);
    if (Compat::is_host_v<Exec>) prefer_huge_pages(storage.get(), bytes);
    bytes_ += bytes;
    return static_cast<T*>(storage.get());
  }
  void pad_columns(const Exec& space, const Csr& M, Padded& to, std::shared_ptr<void>& storage) {
    to.columns = take<Ordinal>(space, storage, to);
    pad(space, M, to, true);
  }
  static void pad(const Exec& space, const Csr& M, const Padded& to, bool columns) {
    Kokkos::parallel_for("Tessera::spgemm pad", range(space, to.rows), SpgemmPad<Csr>{CsrArrays<Csr>(M), to, columns});
  }

  Padded a_, b_, c_;
  const KernelTable* pool_ = nullptr;
  bool shared_ = false;  ///< A and B have one pattern
  std::shared_ptr<void> columns_a_, columns_b_, columns_c_, values_a_, values_b_;
  std::size_t bytes_ = 0;
};

}  // namespace Impl
}  // namespace Tessera

#endif
