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

#include "Tessera_BsrSpmv.hpp"
#include "Tessera_BsrView.hpp"
#include "Tessera_CsrView.hpp"
#include "io/Tessera_MatrixMarket.hpp"

/// \file
/// Block matrices of Kokkos Kernels as views and written out, and matrices made of Matrix Market files. Types are told
/// by their members and the order of numbers by the matrix' own accessor, since names, namespaces and that order differ
/// between versions (3.4: Experimental::BlockCrsMatrix, rows of a whole block row one after the other; later:
/// BsrMatrix, block by block).

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

/// How a block matrix's type orders the numbers of a block row: asked of its accessor, on a row of three blocks of side
/// two.
template <class Block>
BlockOrder block_order() {
  using Row = decltype(std::declval<const Block&>().block_row_Const(0));
  std::remove_const_t<typename Row::value_type> numbers[12] = {};
  const Row row(numbers, nullptr, 2, 3);
  const auto place = [&](int k, int i, int j) {
    return &row.local_block_value(k, i, j) - &row.local_block_value(0, 0, 0);
  };
  if (place(0, 0, 1) == 2) return BlockOrder::ColumnMajor;
  return place(1, 0, 0) == 4 ? BlockOrder::RowMajor : BlockOrder::BlockRow;
}

template <class Block>
using BsrViewOf = BsrView<typename MatrixTypes<Block>::scalar, typename MatrixTypes<Block>::ordinal,
                          typename MatrixTypes<Block>::offset, typename MatrixTypes<Block>::device>;

/// Writes the numbers of A, and with `Pattern` its pattern, into `crs` = to_crs_matrix(space, A).
template <bool Pattern, class Exec, class Bsr, class RowMap, class Entries, class Values>
void write_out(const Exec& space, const Bsr& A, const RowMap& row_map, const Entries& entries, const Values& values) {
  ExpandBlocks<Bsr> expand{BsrArrays<Bsr>(A), {}, {}, {}};
  if constexpr (Pattern) {
    expand.row_map = row_map;
    expand.entries = entries;
  }
  expand.values = values;
  expand_blocks(space, expand);
}

}  // namespace Impl

/// A block matrix (KokkosSparse::BsrMatrix, KokkosSparse::Experimental::BsrMatrix, 3.4's BlockCrsMatrix) as it lies. No
/// copy. @throw InvalidArgument, DimensionMismatch  as BsrView's constructor
template <class Block, class = std::enable_if_t<Impl::IsBlockMatrix<Block>::value>>
Impl::BsrViewOf<Block> bsr_view(const Block& A) {
  const auto side = static_cast<std::int64_t>(A.blockDim());
  Impl::require<InvalidArgument>(side <= std::numeric_limits<std::int32_t>::max(),
                                 [&] { return "blocks have side " + std::to_string(side) + ", above 2^31 - 1"; });
  return bsr_view(A.numRows(), A.numCols(), static_cast<int>(side), A.graph.row_map, A.graph.entries, A.values,
                  Impl::block_order<Block>());
}

/// A block matrix as a CrsMatrix with arrays of its own: (numRows b) x (numCols b), b = blockDim() >= 1, all b^2
/// numbers of a block become entries, zeros too. Rows hold the blocks in their stored order. One kernel on `space`,
/// which reads and writes neighbouring numbers by neighbouring lanes, O(blocks b^2) bytes; the result may still be in
/// flight there. Deterministic.
/// @throw InvalidArgument  side below 1, sizes beyond the index types
/// @throw DimensionMismatch  values are not blocks b^2
template <class Exec, class Block, class = std::enable_if_t<Impl::IsBlockMatrix<Block>::value>>
auto to_crs_matrix(const Exec& space, const Block& A) {
  using Types = Impl::MatrixTypes<Block>;
  using Ordinal = typename Types::ordinal;
  using Offset = typename Types::offset;
  using Device = typename Types::device;
  const Compat::ScopedRegion region("Tessera::convert[blocks]");
  const auto bsr = bsr_view(A);
  const auto rows = static_cast<std::uint64_t>(bsr.rows());
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<Offset>::max());
  Impl::require<InvalidArgument>(bsr.nnz() <= most && rows < most, [&] {
    return std::to_string(bsr.blocks()) + " blocks of side " + std::to_string(bsr.block()) +
           " are more entries than the offset type of row_map counts when written out";
  });
  // Zeroed: without rows nobody writes the one offset.
  const Kokkos::View<Offset*, Kokkos::LayoutLeft, Device> row_map("Tessera::blocks::row_map", rows + 1);
  const auto entries = Compat::allocate<Kokkos::View<Ordinal*, Kokkos::LayoutLeft, Device>>(
      space, "Tessera::blocks::entries", bsr.nnz());
  const auto values = Compat::allocate<Kokkos::View<typename Types::scalar*, Kokkos::LayoutLeft, Device>>(
      space, "Tessera::blocks::values", bsr.nnz());
  Impl::write_out<true>(space, bsr, row_map, entries, values);
  return typename Types::crs_matrix("Tessera::blocks", static_cast<Ordinal>(rows), static_cast<Ordinal>(bsr.cols()),
                                    static_cast<Offset>(bsr.nnz()), values, row_map, entries);
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
    const auto to =
        Compat::allocate_view<Kokkos::View<T*, Kokkos::LayoutLeft, typename Types::device>>(label, from.extent(0));
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
