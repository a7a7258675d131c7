// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ADAPTERS_KOKKOS_SPARSE_MATRIX_HPP
#define TESSERA_ADAPTERS_KOKKOS_SPARSE_MATRIX_HPP

#include <KokkosSparse_CrsMatrix.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "Tessera_CsrView.hpp"
#include "io/Tessera_MatrixMarket.hpp"

/// \file
/// Matrices of Kokkos Kernels made from other things: block matrices written out, Matrix Market files. Types are told
/// by their members and blocks read through the matrix' own accessors, since names, namespaces and the order of the
/// numbers in a block row differ between versions (3.4: Experimental::BlockCrsMatrix, rows of a whole block row one
/// after the other; later: BsrMatrix, block by block).

namespace Tessera {
namespace Impl {

template <class M, class = void>
struct IsBlockMatrix : std::false_type {};
template <class M>
struct IsBlockMatrix<
    M, std::void_t<decltype(std::declval<const M&>().graph.row_map), decltype(std::declval<const M&>().graph.entries),
                   decltype(std::declval<const M&>().values), decltype(std::declval<const M&>().blockDim()),
                   decltype(std::declval<const M&>().block_row_Const(0))>> : std::true_type {};

template <class M, class = void>
struct IsPointMatrix : std::false_type {};
template <class M>
struct IsPointMatrix<
    M, std::void_t<decltype(std::declval<const M&>().graph.row_map), decltype(std::declval<const M&>().graph.entries),
                   decltype(std::declval<const M&>().values), decltype(std::declval<const M&>().numCols())>>
    : std::bool_constant<!IsBlockMatrix<M>::value> {};

/// KokkosSparse::CrsMatrix, BsrMatrix or BlockCrsMatrix of any version.
template <class M>
inline constexpr bool is_kokkos_sparse_v = IsBlockMatrix<M>::value || IsPointMatrix<M>::value;

template <class M>
struct MatrixTypes {
  using scalar = typename std::decay_t<decltype(std::declval<M>().values)>::non_const_value_type;
  using ordinal = typename std::decay_t<decltype(std::declval<M>().graph.entries)>::non_const_value_type;
  using offset = typename std::decay_t<decltype(std::declval<M>().graph.row_map)>::non_const_value_type;
  using device = typename std::decay_t<decltype(std::declval<M>().values)>::device_type;
  using crs_matrix = KokkosSparse::CrsMatrix<scalar, ordinal, device, void, offset>;
};

/// Row `r` of the written-out matrix is row `r % b` of block row `r / b`: its entries are those of the blocks from left
/// to right. With `Pattern` row_map and columns as well as values.
template <class Block, bool Pattern>
struct ExpandBlocks {
  using Types = MatrixTypes<Block>;
  using ordinal = typename Types::ordinal;
  using offset = typename Types::offset;
  using device = typename Types::device;

  Block A;
  ordinal block;
  std::int64_t rows;  // point rows
  Kokkos::View<offset*, device> row_map;
  Kokkos::View<ordinal*, device> entries;
  Kokkos::View<typename Types::scalar*, device> values;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row) const {
    const auto block_row = static_cast<ordinal>(row / block), i = static_cast<ordinal>(row % block);
    const auto from = A.block_row_Const(block_row);
    const offset first = A.graph.row_map(block_row);
    const offset side = static_cast<offset>(block), length = static_cast<offset>(from.length);
    offset to = first * side * side + static_cast<offset>(i) * length * side;
    if constexpr (Pattern) {
      row_map(row) = to;
      if (row + 1 == rows) row_map(rows) = A.graph.row_map(block_row + 1) * side * side;
    }
    for (ordinal k = 0; k < from.length; ++k) {
      for (ordinal j = 0; j < block; ++j, ++to) {
        if constexpr (Pattern) {
          entries(to) = static_cast<ordinal>(A.graph.entries(first + static_cast<offset>(k)) * block + j);
        }
        values(to) = from.local_block_value(k, i, j);
      }
    }
  }
};

/// Of the written-out matrix.
struct ExpandedSizes {
  std::uint64_t rows = 0, cols = 0, nnz = 0;
};
/// Refuses blocks that cannot be written out.
template <class Block>
ExpandedSizes check_blocks(const Block& A) {
  using Types = MatrixTypes<Block>;
  const auto side = static_cast<std::int64_t>(A.blockDim());
  const auto rows = static_cast<std::int64_t>(A.numRows()), cols = static_cast<std::int64_t>(A.numCols());
  require<InvalidArgument>(side >= 1 && cols >= 0, [&] {
    return "block matrix of " + std::to_string(rows) + " x " + std::to_string(cols) + " blocks of side " +
           std::to_string(side) + ": the side must be positive, sizes must not be negative";
  });
  const auto b = static_cast<std::uint64_t>(side);
  constexpr auto most_rows = static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
  constexpr auto most_entries = static_cast<std::uint64_t>(std::numeric_limits<typename Types::offset>::max());
  const ExpandedSizes sizes{static_cast<std::uint64_t>(rows) * b, static_cast<std::uint64_t>(cols) * b, 0};
  const auto blocks = static_cast<std::uint64_t>(A.graph.entries.extent(0));
  require<InvalidArgument>(b <= most_rows && sizes.rows <= most_rows && sizes.cols <= most_rows &&
                               blocks <= most_entries / b / b && sizes.rows < most_entries,
                           [&] {
                             return std::to_string(rows) + " x " + std::to_string(cols) + " blocks of side " +
                                    std::to_string(side) + ", " + std::to_string(blocks) +
                                    " of them stored, are more rows than 2^31 - 1 or more entries than the offset type "
                                    "of row_map counts when written out";
                           });
  require<DimensionMismatch>(A.values.extent(0) == blocks * b * b, [&] {
    return "block matrix with " + std::to_string(blocks) + " blocks of side " + std::to_string(side) + " has " +
           std::to_string(A.values.extent(0)) + " values, not " + std::to_string(blocks * b * b);
  });
  return {sizes.rows, sizes.cols, blocks * b * b};
}

/// New numbers of A for `crs` = to_crs_matrix(space, A).
template <class Exec, class Block, class Crs>
void update_expanded(const Exec& space, const Block& A, const Crs& crs) {
  const ExpandedSizes sizes = check_blocks(A);
  const auto rows = static_cast<std::int64_t>(sizes.rows);
  Kokkos::parallel_for(
      "Tessera::convert[blocks] values", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, rows),
      ExpandBlocks<Block, false>{
          A, static_cast<typename MatrixTypes<Block>::ordinal>(A.blockDim()), rows, {}, {}, crs.values});
}

}  // namespace Impl

/// A block matrix (KokkosSparse::BsrMatrix, KokkosSparse::Experimental::BsrMatrix, 3.4's BlockCrsMatrix) as a
/// CrsMatrix with arrays of its own: (numRows b) x (numCols b), b = blockDim() >= 1, all b^2 numbers of a block become
/// entries, zeros too. Rows hold the blocks in their stored order. One kernel on `space`, one thread per row, O(nnz
/// b^2) bytes read and written; the result may still be in flight there. Deterministic.
/// @throw InvalidArgument  side below 1, sizes beyond the index types
/// @throw DimensionMismatch  values are not blocks b^2
template <class Exec, class Block, class = std::enable_if_t<Impl::IsBlockMatrix<Block>::value>>
auto to_crs_matrix(const Exec& space, const Block& A) {
  using Expand = Impl::ExpandBlocks<Block, true>;
  using Crs = typename Expand::Types::crs_matrix;
  const Compat::ScopedRegion region("Tessera::convert[blocks]");
  const Impl::ExpandedSizes sizes = Impl::check_blocks(A);
  Expand expand{A, static_cast<typename Expand::ordinal>(A.blockDim()), static_cast<std::int64_t>(sizes.rows), {}, {},
                {}};
  // Zeroed: without rows nobody writes the one offset.
  expand.row_map = decltype(expand.row_map)("Tessera::blocks::row_map", sizes.rows + 1);
  expand.entries = Compat::allocate<decltype(expand.entries)>(space, "Tessera::blocks::entries", sizes.nnz);
  expand.values = Compat::allocate<decltype(expand.values)>(space, "Tessera::blocks::values", sizes.nnz);
  Kokkos::parallel_for("Tessera::convert[blocks]",
                       Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(space, 0, expand.rows), expand);
  return Crs("Tessera::blocks", static_cast<typename Expand::ordinal>(sizes.rows),
             static_cast<typename Expand::ordinal>(sizes.cols), static_cast<typename Expand::offset>(sizes.nnz),
             expand.values, expand.row_map, expand.entries);
}

/// What the Matrix Market reader returned as a CrsMatrix with arrays of its own; it waits for the copies. The types of
/// `host` must be those of the matrix. @throw InvalidArgument, DimensionMismatch  arrays that are no CSR matrix's
template <class CrsMatrix>
CrsMatrix to_crs_matrix(
    const io::HostCsr<typename Impl::MatrixTypes<CrsMatrix>::scalar, typename Impl::MatrixTypes<CrsMatrix>::ordinal,
                      typename Impl::MatrixTypes<CrsMatrix>::offset>& host) {
  using Types = Impl::MatrixTypes<CrsMatrix>;
  static_assert(Impl::IsPointMatrix<CrsMatrix>::value,
                "Tessera::to_crs_matrix: the template argument must be a KokkosSparse::CrsMatrix");
  const auto view_of = [](const auto& v) {
    using T = typename std::decay_t<decltype(v)>::value_type;
    return Kokkos::View<const T*, Kokkos::LayoutLeft, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
        v.data(), v.size());
  };
  const auto row_map = view_of(host.row_map);
  const auto entries = view_of(host.entries);
  const auto values = view_of(host.values);
  csr_view(host.rows, host.cols, row_map, entries, values);  // for its checks
  const auto copy = [](const auto& from, const std::string& label) {
    using T = typename std::decay_t<decltype(from)>::non_const_value_type;
    Kokkos::View<T*, Kokkos::LayoutLeft, typename Types::device> to(
        Kokkos::view_alloc(Kokkos::WithoutInitializing, label), from.extent(0));
    Kokkos::deep_copy(to, from);
    return to;
  };
  return CrsMatrix("Tessera::to_crs_matrix", host.rows, host.cols,
                   static_cast<typename Types::offset>(entries.extent(0)), copy(values, "values"),
                   copy(row_map, "row_map"), copy(entries, "entries"));
}

namespace io {
/// A Matrix Market file as a KokkosSparse::CrsMatrix<double | float, int | int64_t, Device, ..., int | int64_t |
/// size_t>. Precision, errors and what is read: read_matrix_market.
template <class CrsMatrix>
CrsMatrix read_crs_matrix(const std::string& path, const MatrixMarketOptions& options = {}) {
  using Types = Tessera::Impl::MatrixTypes<CrsMatrix>;
  return to_crs_matrix<CrsMatrix>(
      read_matrix_market<typename Types::scalar, typename Types::ordinal, typename Types::offset>(path, options));
}
}  // namespace io
}  // namespace Tessera

#endif
