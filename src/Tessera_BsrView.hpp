// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BSR_VIEW_HPP
#define TESSERA_BSR_VIEW_HPP

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "Tessera_CsrView.hpp"

namespace Tessera {

/// Sparse matrix of dense square blocks of side b (BSR): row map and block columns as those of a CsrView whose entries
/// are blocks, b^2 numbers per block, three sizes and the order of the numbers. Block row r holds blocks row_map(r) ...
/// row_map(r+1)-1; columns inside a block row may be unsorted and may repeat. Ownership: as CsrView.
///
/// Memory: b^2 v + 4 per block and an offset per block row, where CSR has b^2 (v + 4) and an offset per row.
///
/// @tparam Scalar   double, float, half_t or bhalf_t.
/// @tparam Ordinal  signed or unsigned integer; rows and columns must be at most 2^31 - 1, counted in numbers.
/// @tparam Offset   any integer of at least 32 bits that counts the blocks.
/// @tparam Device   Kokkos::Device<ExecutionSpace, MemorySpace>.
template <class Scalar, class Ordinal, class Offset, class Device>
class BsrView {
  using Graph = CsrView<Scalar, Ordinal, Offset, Device>;

 public:
  using value_type = Scalar;                                 ///< of the numbers
  using ordinal_type = Ordinal;                              ///< of block rows and block columns
  using size_type = Offset;                                  ///< of offsets
  using device_type = Device;                                ///< where the arrays lie
  using execution_space = typename Device::execution_space;  ///< where plans run
  using memory_space = typename Device::memory_space;        ///< where the arrays lie
  using row_map_type = typename Graph::row_map_type;         ///< block_rows + 1 offsets, counted in blocks
  using entries_type = typename Graph::entries_type;         ///< the block columns
  using values_type = typename Graph::values_type;           ///< the numbers, b^2 per block

  BsrView() = default;

  /// @param block  side b of the blocks, at least 1
  /// @throw InvalidArgument  negative or too large sizes, b below 1, null arrays
  /// @throw DimensionMismatch  row_map must have block_rows + 1 elements (or none, if block_rows is 0), values b^2 per
  ///        block
  BsrView(Ordinal block_rows, Ordinal block_cols, int block, const row_map_type& row_map, const entries_type& entries,
          const values_type& values, BlockOrder order = BlockOrder::RowMajor)
      : block_rows_(block_rows),
        block_cols_(block_cols),
        block_(block),
        order_(order),
        row_map_(row_map),
        entries_(entries),
        values_(values) {
    const auto b = static_cast<std::uint64_t>(block);
    constexpr auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
    Impl::require<InvalidArgument>(
        block >= 1, [&] { return "blocks have side " + std::to_string(block) + "; the side must be positive"; });
    if constexpr (std::is_signed_v<Ordinal>) {
      Impl::require<InvalidArgument>(block_rows >= 0 && block_cols >= 0, [&] {
        return "BSR sizes must not be negative: " + std::to_string(block_rows) + " x " + std::to_string(block_cols) +
               " blocks";
      });
    }
    Impl::require<InvalidArgument>(
        static_cast<std::uint64_t>(block_rows) <= limit / b && static_cast<std::uint64_t>(block_cols) <= limit / b,
        [&] {
          return std::to_string(block_rows) + " x " + std::to_string(block_cols) + " blocks of side " +
                 std::to_string(block) + " are more rows or columns than 2^31 - 1";
        });
    Impl::require<DimensionMismatch>(
        values.extent(0) / b / b == entries.extent(0) && values.extent(0) == entries.extent(0) * b * b, [&] {
          return std::to_string(entries.extent(0)) + " blocks of side " + std::to_string(block) + " have " +
                 std::to_string(entries.extent(0) * b * b) + " values, not " + std::to_string(values.extent(0));
        });
    // The rest are the checks of a matrix with one number per block.
    Graph(block_rows, block_cols, row_map, entries, values_type(values.data(), entries.extent(0)));
  }

  /// Sizes in blocks.
  KOKKOS_INLINE_FUNCTION Ordinal block_rows() const noexcept { return block_rows_; }
  /// See block_rows().
  KOKKOS_INLINE_FUNCTION Ordinal block_cols() const noexcept { return block_cols_; }
  /// Side of a block.
  KOKKOS_INLINE_FUNCTION int block() const noexcept { return block_; }
  /// Stored blocks, which must equal row_map(block_rows).
  KOKKOS_INLINE_FUNCTION std::size_t blocks() const noexcept { return entries_.extent(0); }
  /// Sizes in numbers.
  KOKKOS_INLINE_FUNCTION std::int64_t rows() const noexcept { return static_cast<std::int64_t>(block_rows_) * block_; }
  /// See rows().
  KOKKOS_INLINE_FUNCTION std::int64_t cols() const noexcept { return static_cast<std::int64_t>(block_cols_) * block_; }
  /// Stored numbers, zeros of blocks included.
  KOKKOS_INLINE_FUNCTION std::size_t nnz() const noexcept { return values_.extent(0); }
  /// Where each block row begins, and the end.
  KOKKOS_INLINE_FUNCTION const row_map_type& row_map() const noexcept { return row_map_; }
  /// Block columns, block row by block row.
  KOKKOS_INLINE_FUNCTION const entries_type& entries() const noexcept { return entries_; }
  /// All numbers.
  KOKKOS_INLINE_FUNCTION const values_type& values() const noexcept { return values_; }
  /// Where a block's numbers stand among them.
  KOKKOS_INLINE_FUNCTION BlockOrder order() const noexcept { return order_; }

 private:
  Ordinal block_rows_ = 0, block_cols_ = 0;
  int block_ = 1;
  BlockOrder order_ = BlockOrder::RowMajor;
  row_map_type row_map_;
  entries_type entries_;
  values_type values_;
};

/// From three rank-1 Views of unit stride. No copy, no allocation, no kernel. Managed Views are kept alive by the
/// result. @throw InvalidArgument, DimensionMismatch  as BsrView's constructor
template <class RowMap, class Entries, class Values>
auto bsr_view(typename Entries::non_const_value_type block_rows, typename Entries::non_const_value_type block_cols,
              int block, const RowMap& row_map, const Entries& entries, const Values& values,
              BlockOrder order = BlockOrder::RowMajor) {
  Impl::check_csr_arrays("bsr_view", row_map, entries, values);
  using Result = BsrView<typename Values::non_const_value_type, typename Entries::non_const_value_type,
                         typename RowMap::non_const_value_type, typename Values::device_type>;
  return Result(block_rows, block_cols, block, Impl::plain_view<typename Result::row_map_type>(row_map),
                Impl::plain_view<typename Result::entries_type>(entries),
                Impl::plain_view<typename Result::values_type>(values), order);
}

}  // namespace Tessera

#endif
