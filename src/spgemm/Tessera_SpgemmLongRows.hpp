// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPGEMM_SPGEMM_LONG_ROWS_HPP
#define TESSERA_SPGEMM_SPGEMM_LONG_ROWS_HPP

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/Tessera_Arena.hpp"
#include "spgemm/Tessera_SpgemmNative.hpp"
#include "spgemm/Tessera_SpgemmRules.hpp"

/// \file
/// A with few, very long rows (linear programs times their transpose: 36 rows of 18,000 entries): a row of C is the
/// work of one thread block, and most of a device is idle. Rows of A are cut into pieces, each a row of A'; with S,
/// which has a one per piece in the row that it came from,
///
///     C = S (A' B)
///
/// by two products of the usual kernels. A' has A's columns and numbers and a longer row map. Sums are added within
/// pieces first, then piece by piece in the order of the row. Where few of many rows are long, the others are a piece
/// each, which the second product copies.

namespace Tessera {
namespace Impl {

/// The row maps of A' and S. Over the rows and one more. Pieces that no row has are empty rows of A' that no row of S
/// names; where they are SpgemmPieceEntries wrote before.
template <class Offset>
struct SpgemmCutRows {
  using value_type = std::int64_t;
  const Offset* row_map;
  std::int64_t rows, piece;
  Offset *piece_map, *first_piece;

  KOKKOS_INLINE_FUNCTION std::int64_t begin(std::int64_t row) const { return static_cast<std::int64_t>(row_map[row]); }
  KOKKOS_INLINE_FUNCTION std::int64_t pieces_of(std::int64_t row) const {
    return (begin(row + 1) - begin(row) + piece - 1) / piece;
  }
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row, std::int64_t& sum, const bool final) const {
    const std::int64_t own = row < rows ? pieces_of(row) : 0;
    if (final) {
      first_piece[row] = static_cast<Offset>(sum);
      for (std::int64_t i = 0; i < own; ++i) piece_map[sum + i] = static_cast<Offset>(begin(row) + i * piece);
    }
    sum += own;
  }
};

/// The entries of S, and pieces all of which begin at the end of A. Over the pieces and one more.
template <class Ordinal, class Scalar, class Offset>
struct SpgemmPieceEntries {
  Ordinal* column;
  Scalar* number;
  Offset* piece_map;
  std::int64_t pieces;
  Offset entries;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    piece_map[i] = entries;
    if (i == pieces) return;
    column[i] = static_cast<Ordinal>(i);
    number[i] = Scalar(1);
  }
};

/// Entries of A per piece where all rows of A are long, by what products A and B may have, as a look at such rows would
/// take most of the time; 0: they are not.
template <class Csr>
std::int64_t spgemm_piece_by_sizes(const Csr& A, const Csr& B) {
  const auto entries = static_cast<std::int64_t>(A.nnz());
  const double mean = static_cast<double>(B.nnz()) / static_cast<double>(std::max<std::int64_t>(B.rows(), 1));
  return spgemm_piece(static_cast<std::int64_t>(A.rows()), entries, static_cast<std::int64_t>(B.cols()),
                      static_cast<std::int64_t>(mean * static_cast<double>(entries)));
}

template <class Csr>
class SpgemmLongRows {
 public:
  using Exec = typename Csr::execution_space;
  using Scalar = typename Csr::value_type;
  using Ordinal = typename Csr::ordinal_type;
  using Offset = typename Csr::size_type;
  using Space = typename Csr::memory_space;
  using Native = SpgemmNative<Csr>;

  SpgemmLongRows() = default;
  /// @param piece  entries of A (spgemm_piece)
  SpgemmLongRows(const Exec& space, const KernelTable& backend, const Csr& A, const Csr& B, std::int64_t piece,
                 SpgemmTiles tiles, Lifetime lifetime)
      : backend_(&backend),
        tiles_(tiles),
        lifetime_(lifetime),
        piece_(piece),
        rows_(A.rows()),
        pieces_(spgemm_pieces(A.rows(), static_cast<std::int64_t>(A.nnz()), piece)),
        cols_(B.cols()) {
    const auto rows = static_cast<std::size_t>(A.rows()), n = static_cast<std::size_t>(pieces_);
    Offset* first_piece = nullptr;
    Ordinal* column = nullptr;
    Scalar* number = nullptr;
    storage_ = make(
        "Tessera::spgemm pieces",
        [&](Arena<Space>& arena) {
          piece_map_ = arena.template take<Offset>(n + 1).data();
          sum_map_ = arena.template take<Offset>(n + 1).data();
          first_piece = arena.template take<Offset>(rows + 1).data();
          column = arena.template take<Ordinal>(n).data();
          number = arena.template take<Scalar>(n).data();
        },
        space);
    const auto range = [&](std::int64_t count) {
      return Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, count);
    };
    const auto m = static_cast<std::int64_t>(A.rows());
    Kokkos::parallel_for(
        "Tessera::spgemm pieces", range(pieces_ + 1),
        SpgemmPieceEntries<Ordinal, Scalar, Offset>{column, number, piece_map_, pieces_, static_cast<Offset>(A.nnz())});
    Kokkos::parallel_scan("Tessera::spgemm pieces", range(m + 1),
                          SpgemmCutRows<Offset>{A.row_map().data(), m, piece, piece_map_, first_piece});
    adder_ = csr(A.rows(), pieces_, first_piece, column, number, n);
    parts_ = Native(space, backend, cut(A), B, 0, tiles, lifetime);
  }

  bool used() const { return backend_ != nullptr; }
  /// Entries of A.
  std::int64_t piece() const { return piece_; }
  std::int64_t products() const { return parts_.products(); }
  /// See SpgemmNative::ordered().
  bool ordered() const { return parts_.ordered(); }
  std::size_t peak_bytes() const { return bytes_ + parts_.peak_bytes() + sums_.peak_bytes(); }
  /// What peak_bytes() never exceeds, from set-up on. @param once  as symbolic() will be told
  std::size_t most_bytes(bool once) const {
    if (!used()) return 0;
    const auto most = [](std::int64_t rows, std::int64_t cols, std::int64_t products) {
      return static_cast<std::size_t>(std::min(rows * cols, products));
    };
    const std::size_t slot = sizeof(Ordinal) + sizeof(Scalar), rounded = 512;
    const std::size_t results = most(pieces_, cols_, parts_.products());
    const std::size_t entries = most(rows_, cols_, static_cast<std::int64_t>(results));
    const std::size_t parts =
        sizeof(SpgemmRowPart) * static_cast<std::size_t>(SpgemmRowSizes::most_parts(
                                    static_cast<std::int64_t>(entries), static_cast<std::int64_t>(results), rows_,
                                    spgemm_small_part(static_cast<std::int64_t>(results))));
    return bytes_ - results_bytes_ + results * slot + rounded + parts_.most_bytes(once) +
           parts_.list_bytes(rows_, static_cast<std::int64_t>(results)) + parts + entries * slot + rounded;
  }
  int launches() const { return parts_.launches() + sums_.launches(); }

  /// @param once  numbers are as they will be at numeric()
  std::int64_t symbolic(const Exec& space, Offset* row_map, bool once) {
    sums_ = Native();  // what an earlier call left is never in memory beside what this one makes
    sum_of_piece_ = Csr();
    results_.reset();
    bytes_ -= std::exchange(results_bytes_, 0);
    parts_.find(space, once);
    const std::int64_t entries = parts_.symbolic(space, sum_map_);
    Ordinal* column = nullptr;
    Scalar* number = nullptr;
    const std::size_t before = bytes_;
    results_ = make(
        "Tessera::spgemm sums of pieces",
        [&](Arena<Space>& arena) {
          column = arena.template take<Ordinal>(static_cast<std::size_t>(entries)).data();
          number = arena.template take<Scalar>(static_cast<std::size_t>(entries)).data();
        },
        space);
    results_bytes_ = bytes_ - before;
    parts_.numeric(space, sum_map_, column, number);
    summed_ = once;
    sum_of_piece_ = csr(pieces_, cols_, sum_map_, column, number, static_cast<std::size_t>(entries));
    sums_ = Native(space, *backend_, adder_, sum_of_piece_, 0, tiles_, lifetime_);
    sums_.find(space, once);
    return sums_.symbolic(space, row_map);
  }
  void numeric(const Exec& space, const Csr& A, const Csr& B, const Offset* row_map, Ordinal* columns, Scalar* values) {
    if (!summed_) sum_pieces(space, A, B);
    sums_.numeric(space, row_map, columns, values);
  }
  void update(const Exec& space, const Csr& A, const Csr& B, const Offset* row_map, const Ordinal* columns,
              Scalar* values) {
    sum_pieces(space, A, B);
    sums_.update(space, adder_, sum_of_piece_, row_map, columns, values);
  }

 private:
  template <class Layout>
  std::shared_ptr<void> make(const char* label, const Layout& layout, const Exec& space) {
    std::size_t bytes = 0;
    auto storage = Arena<Space>::make(space, backend_, label, lifetime_, [&](Arena<Space>& arena) {
      layout(arena);
      bytes = arena.bytes();
    });
    bytes_ += bytes;
    return storage;
  }
  static Csr csr(std::int64_t rows, std::int64_t cols, const Offset* row_map, const Ordinal* columns,
                 const Scalar* values, std::size_t entries) {
    return Csr(static_cast<Ordinal>(rows), static_cast<Ordinal>(cols),
               typename Csr::row_map_type(row_map, static_cast<std::size_t>(rows) + 1),
               typename Csr::entries_type(columns, entries), typename Csr::values_type(values, entries));
  }
  Csr cut(const Csr& A) {
    return Csr(static_cast<Ordinal>(pieces_), A.cols(),
               typename Csr::row_map_type(piece_map_, static_cast<std::size_t>(pieces_) + 1), A.entries(), A.values());
  }
  void sum_pieces(const Exec& space, const Csr& A, const Csr& B) {
    parts_.update(space, cut(A), B, sum_map_, sum_of_piece_.entries().data(),
                  const_cast<Scalar*>(sum_of_piece_.values().data()));
  }

  const KernelTable* backend_ = nullptr;
  SpgemmTiles tiles_ = SpgemmTiles::Auto;
  Lifetime lifetime_ = Lifetime::Plan;
  std::int64_t piece_ = 0, rows_ = 0, pieces_ = 0, cols_ = 0;
  Offset *piece_map_ = nullptr, *sum_map_ = nullptr;
  std::shared_ptr<void> storage_, results_;
  std::size_t bytes_ = 0, results_bytes_ = 0;
  Native parts_, sums_;  ///< A' B, S (A' B)
  Csr adder_, sum_of_piece_;
  bool summed_ = false;
};

}  // namespace Impl
}  // namespace Tessera

#endif
