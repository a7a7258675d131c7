// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_WINDOWS_FROM_WINDOWS_HPP
#define TESSERA_FORMATS_WINDOWS_FROM_WINDOWS_HPP

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "Tessera_Error.hpp"
#include "core/Tessera_HostVector.hpp"
#include "formats/windows/Tessera_MeBcrs.hpp"
#include "formats/windows/Tessera_Panels.hpp"

/// \file
/// ME-BCRS and panels back to CSR, on the host and from the format alone. Shares no code with the conversion, so that
/// the two check each other.

namespace Tessera {
namespace Experimental {

/// A decoded matrix: plain CSR, columns of a row ascending.
struct WindowCsr {
  std::int64_t rows = 0, cols = 0;
  std::vector<std::int64_t> row_map;
  std::vector<std::int32_t> entries;
  std::vector<std::uint64_t> bits;  ///< of the values, in the storage type of the format's precision
};

}  // namespace Experimental

namespace Impl {

/// Rows that grow entry by entry, and what both formats have in common.
class WindowDecoder {
 public:
  WindowDecoder(std::int64_t rows, std::int64_t cols, std::vector<std::int32_t> row_order,
                std::vector<std::uint64_t> values, int value_bytes)
      : rows_(rows),
        cols_(cols),
        row_order_(std::move(row_order)),
        values_(std::move(values)),
        value_bytes_(static_cast<std::size_t>(value_bytes)),
        lists_(static_cast<std::size_t>(rows)) {
    sound(row_order_.empty() || static_cast<std::int64_t>(row_order_.size()) == rows, "an order of other rows");
    std::vector<bool> seen(row_order_.size(), false);
    for (const std::int32_t row : row_order_) {
      sound(row >= 0 && row < rows && !seen[static_cast<std::size_t>(row)], "the order of rows is no permutation");
      seen[static_cast<std::size_t>(row)] = true;
    }
  }
  static void sound(bool condition, const char* fault) {
    require<InvalidArgument>(condition, [&] { return "window format: " + std::string(fault); });
  }
  std::uint64_t bits(std::int64_t slot) const {
    const std::size_t at = static_cast<std::size_t>(slot) * value_bytes_;
    sound(slot >= 0 && at + value_bytes_ <= values_.size() * sizeof(std::uint64_t), "a value lies outside the array");
    std::uint64_t found = 0;
    std::memcpy(&found, reinterpret_cast<const char*>(values_.data()) + at, value_bytes_);
    return found;
  }
  void add(std::int64_t place, std::int32_t column, std::uint64_t value) {
    sound(place < rows_, "an entry lies below the last row");
    sound(column >= 0 && column < cols_, "an entry has no column");
    add_to_row(row_order_.empty() ? place : row_order_[static_cast<std::size_t>(place)], column, value);
  }
  void add_to_row(std::int64_t row, std::int32_t column, std::uint64_t value) {
    sound(row >= 0 && row < rows_ && column >= 0 && column < cols_, "an entry lies outside the matrix");
    auto& list = lists_[static_cast<std::size_t>(row)];
    sound(list.empty() || list.back().first <= column, "columns of a window descend");
    list.emplace_back(column, value);
  }
  Experimental::WindowCsr finish() const {
    Experimental::WindowCsr A;
    A.rows = rows_;
    A.cols = cols_;
    A.row_map.push_back(0);
    for (const auto& list : lists_) {
      for (const auto& entry : list) {
        A.entries.push_back(entry.first);
        A.bits.push_back(entry.second);
      }
      A.row_map.push_back(static_cast<std::int64_t>(A.entries.size()));
    }
    return A;
  }

 private:
  std::int64_t rows_, cols_;
  std::vector<std::int32_t> row_order_;
  std::vector<std::uint64_t> values_;
  std::size_t value_bytes_;
  std::vector<std::vector<std::pair<std::int32_t, std::uint64_t>>> lists_;
};

}  // namespace Impl

namespace Experimental {

/// The entries of an ME-BCRS or SR-BCRS matrix, those whose stored bits are not all zero: an entry that is zero, or was
/// rounded to it, is stored as -0 and comes back so. (A format whose values SDDMM wrote may hold results +0, which
/// cannot be told from the padding of a column vector and are left out.) Copies the format to the host; O(stored
/// values); waits.
/// @throw InvalidArgument  arrays that contradict each other
template <class Memory>
WindowCsr from_me_bcrs(const MeBcrs<Memory>& f) {
  using Impl::host_vector;
  Impl::WindowDecoder decoder(f.rows, f.cols, host_vector(f.row_order), host_vector(f.values), f.value_bytes());
  const auto pointers = host_vector(f.row_pointers), columns = host_vector(f.column_indices);
  decoder.sound(static_cast<std::int64_t>(pointers.size()) == f.windows + 1, "row_pointers has another length");
  decoder.sound(static_cast<std::int64_t>(columns.size()) == f.column_vectors, "column_indices has another length");
  decoder.sound(pointers.front() == 0 && pointers.back() == f.column_vectors,
                "row_pointers does not cover the column vectors");
  for (std::int64_t w = 0; w < f.windows; ++w) {
    const std::int64_t begin = pointers[static_cast<std::size_t>(w)], end = pointers[static_cast<std::size_t>(w) + 1];
    decoder.sound(begin <= end, "row_pointers descends");
    for (std::int64_t block = begin; block < end; block += f.depth) {
      const std::int64_t width = end - block < f.depth ? end - block : f.depth;
      for (std::int64_t i = 0; i < f.vector_length; ++i) {
        for (std::int64_t k = 0; k < width; ++k) {
          const std::uint64_t bits = decoder.bits(block * f.vector_length + i * width + k);
          if (bits == 0) continue;
          decoder.add(w * f.vector_length + i, columns[static_cast<std::size_t>(block + k)], bits);
        }
      }
    }
  }
  return decoder.finish();
}

/// Part of from_panels.
template <class Memory>
void add_rows_apart(const Panels<Memory>& f, Impl::WindowDecoder& decoder, std::int64_t& entries) {
  const auto columns = Impl::host_vector(f.apart.columns);
  for (const SpmmRowPiece& piece : Impl::host_vector(f.apart.pieces)) {
    const auto first = static_cast<std::size_t>(piece.packed >> SpmmRowPiece::length_bits);
    const auto length = static_cast<std::size_t>(piece.packed & static_cast<std::uint64_t>(SpmmRowPiece::most_entries));
    decoder.sound(first + length <= columns.size(), "a row apart ends outside the array");
    for (std::size_t i = first; i < first + length; ++i) {
      decoder.add_to_row(piece.row, columns[i], decoder.bits(f.apart.first_value + static_cast<std::int64_t>(i)));
    }
    entries += static_cast<std::int64_t>(length);
  }
}

/// All entries of a matrix in panels, zeros included, read from the bitmaps. Copies the format to the host; O(blocks x
/// slots); waits.
/// @throw InvalidArgument  arrays that contradict each other
template <class Memory>
WindowCsr from_panels(const Panels<Memory>& f) {
  using Impl::host_vector;
  const PanelGeometry& g = f.geometry;
  Impl::WindowDecoder decoder(f.rows, f.cols, host_vector(f.row_order), host_vector(f.values), g.value_bytes);
  const auto pointers = host_vector(f.block_ptr), packets = host_vector(f.packets);
  decoder.sound(static_cast<std::int64_t>(pointers.size()) == f.windows + 1, "block_ptr has another length");
  decoder.sound(pointers.front() == 0 && pointers.back() == f.blocks, "block_ptr does not cover the blocks");
  const auto stride = static_cast<std::size_t>(g.packet_words()), depth = static_cast<std::size_t>(g.depth);
  const auto slots = static_cast<std::size_t>(g.rows) * depth;
  decoder.sound(packets.size() == static_cast<std::size_t>(f.blocks) * stride, "packets has another length");
  std::uint32_t next = 0;
  std::int64_t entries = 0;
  for (std::int64_t w = 0; w < f.windows; ++w) {
    decoder.sound(pointers[static_cast<std::size_t>(w)] <= pointers[static_cast<std::size_t>(w) + 1],
                  "block_ptr descends");
    for (std::size_t block = pointers[static_cast<std::size_t>(w)]; block < pointers[static_cast<std::size_t>(w) + 1];
         ++block) {
      const std::uint32_t* const packet = packets.data() + block * stride;
      const std::uint32_t count = packet[g.count_at()];
      decoder.sound(packet[g.begin_at()] == next, "the values of a block do not begin where those before end");
      std::uint32_t found = 0;
      for (std::size_t bit = 0; bit < slots; ++bit) {
        if (bit % depth == 0) {
          const std::size_t row = bit / depth;
          const std::uint32_t prefix = packet[static_cast<std::size_t>(g.prefix_at()) + row / 4] >> row % 4 * 8 & 0xff;
          decoder.sound(prefix == found, "a block counts the entries before a row wrongly");
        }
        if ((packet[static_cast<std::size_t>(g.bitmap_at()) + bit / 32] >> bit % 32 & 1) == 0) continue;
        decoder.add(w * g.rows + static_cast<std::int64_t>(bit / depth), static_cast<std::int32_t>(packet[bit % depth]),
                    decoder.bits(std::int64_t{next} + found));
        ++found;
      }
      decoder.sound(found == count, "a block counts its entries wrongly");
      next += g.stored_values(count);
      entries += count;
    }
  }
  add_rows_apart(f, decoder, entries);
  decoder.sound(entries == f.nnz, "the bitmaps do not cover the entries");
  return decoder.finish();
}

}  // namespace Experimental
}  // namespace Tessera

#endif
