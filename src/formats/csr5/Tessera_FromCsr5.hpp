// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_CSR5_FROM_CSR5_HPP
#define TESSERA_FORMATS_CSR5_FROM_CSR5_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "Tessera_Error.hpp"
#include "core/Tessera_HostVector.hpp"
#include "formats/csr5/Tessera_Csr5.hpp"

/// \file
/// CSR5 back to CSR, on the host. Reads the format as a kernel does and shares no code with the conversion, so that
/// the two check each other.

namespace Tessera {
namespace Experimental {

/// A decoded matrix: plain CSR with the values' bits as they were.
template <class Scalar>
struct Csr5Csr {
  std::int64_t rows = 0, cols = 0;
  std::vector<std::int64_t> row_map;
  std::vector<std::int32_t> entries;
  std::vector<Scalar> values;
};

}  // namespace Experimental

namespace Impl {

/// Host copies of what the kernels read.
template <class Scalar, class MemorySpace>
class Csr5Decoder {
 public:
  explicit Csr5Decoder(const Experimental::Csr5<Scalar, MemorySpace>& f)
      : f_(f),
        s_(f.shape),
        values_(host_vector(f.values)),
        columns_(host_vector(f.columns)),
        tile_ptr_(host_vector(f.tile_ptr)),
        tile_desc_(host_vector(f.tile_desc)),
        empty_ptr_(host_vector(f.empty_ptr)),
        empty_offset_(host_vector(f.empty_offset)),
        carry_end_(host_vector(f.carry_end)),
        long_spans_(host_vector(f.long_spans)),
        tail_row_(host_vector(f.tail_row)),
        tail_begin_(host_vector(f.tail_begin)),
        empty_row_(host_vector(f.empty_row)) {}

  Experimental::Csr5Csr<Scalar> decode() {
    Experimental::Csr5Csr<Scalar> A;
    A.rows = f_.rows;
    A.cols = f_.cols;
    A.row_map.assign(static_cast<std::size_t>(f_.rows) + 1, 0);
    if (f_.nnz == 0) return A;
    sizes();
    row_.assign(static_cast<std::size_t>(f_.nnz), -1);
    for (std::int64_t t = 0; t < f_.full; ++t) tile(t);
    tail();
    check_carries();
    std::int64_t previous = 0;
    for (std::int64_t i = 0; i < f_.nnz; ++i) {
      const std::int64_t row = row_[static_cast<std::size_t>(i)];
      sound(row >= previous && row < f_.rows, "rows are not in order");
      previous = row;
      ++A.row_map[static_cast<std::size_t>(row) + 1];
      const auto at = static_cast<std::size_t>(slot(i));
      sound(columns_[at] >= 0 && columns_[at] < f_.cols, "a column out of range");
      A.entries.push_back(columns_[at]);
      A.values.push_back(values_[at]);
    }
    std::size_t empty = 0;
    for (std::size_t r = 0; r < static_cast<std::size_t>(f_.rows); ++r) {
      if (A.row_map[r + 1] == 0) {
        sound(empty < empty_row_.size() && empty_row_[empty] == static_cast<std::int64_t>(r),
              "an empty row is not in the list");
        ++empty;
      }
      A.row_map[r + 1] += A.row_map[r];
    }
    sound(empty == empty_row_.size(), "a row with entries is in the list of empty rows");
    return A;
  }

 private:
  static void sound(bool condition, const char* fault) {
    require<InvalidArgument>(condition, [&] { return std::string("CSR5 format: ") + fault; });
  }
  void sizes() const {
    const auto tiles = static_cast<std::size_t>(f_.tiles), omega = static_cast<std::size_t>(s_.omega);
    sound(f_.tiles * s_.tile() >= f_.nnz && (f_.tiles - 1) * s_.tile() < f_.nnz && f_.full == f_.nnz / s_.tile(),
          "another number of tiles than the entries fill");
    sound(values_.size() == static_cast<std::size_t>(f_.nnz) && columns_.size() == values_.size() &&
              tile_ptr_.size() == tiles + 1 && empty_ptr_.size() == tiles &&
              tile_desc_.size() == tiles * omega * static_cast<std::size_t>(s_.packets) &&
              carry_end_.size() == static_cast<std::size_t>(f_.full),
          "an array of another length");
  }

  /// Where entry i of the CSR order stands.
  std::int64_t slot(std::int64_t i) const {
    const std::int64_t t = i / s_.tile(), local = i % s_.tile();
    return t < f_.full ? t * s_.tile() + local % s_.sigma * s_.omega + local / s_.sigma : i;
  }
  std::int64_t tile_row(std::int64_t t) const {
    return tile_ptr_[static_cast<std::size_t>(t)] & Experimental::Csr5Shape::row_mask;
  }
  /// One bit of a lane's descriptor, numbered from the highest of the first word.
  unsigned bit(std::int64_t t, int lane, int i) const {
    return tile_desc_[static_cast<std::size_t>(s_.word(t, i / 32, lane))] >> (31 - i % 32) & 1u;
  }
  std::int64_t field(std::int64_t t, int lane, int begin, int bits) const {
    std::int64_t value = 0;
    for (int i = begin; i < begin + bits; ++i) value = 2 * value + bit(t, lane, i);
    return value;
  }
  bool flag(std::int64_t t, int lane, int j) const { return bit(t, lane, s_.y_bits + s_.lane_bits + j) != 0; }

  std::int64_t segment_row(std::int64_t t, std::int64_t e) const {
    if ((tile_ptr_[static_cast<std::size_t>(t)] & Experimental::Csr5Shape::empty_mask) == 0) return tile_row(t) + 1 + e;
    const std::size_t at = empty_ptr_[static_cast<std::size_t>(t)] + static_cast<std::size_t>(e);
    sound(at < empty_offset_.size(), "a displacement beyond the end");
    return tile_row(t) + 1 + empty_offset_[at];
  }
  /// Rows lane by lane, each from its own y_offset.
  void tile(std::int64_t t) {
    std::int64_t row = tile_row(t);
    std::int64_t behind = 0;  // lanes to come without a start
    for (int lane = 0; lane < s_.omega; ++lane) {
      std::int64_t e = field(t, lane, 0, s_.y_bits);
      bool started = false;
      for (int j = 0; j < s_.sigma; ++j) {
        const std::int64_t i = t * s_.tile() + lane * s_.sigma + j;
        if (flag(t, lane, j) && (lane > 0 || j > 0)) {
          row = segment_row(t, e++);
          started = true;
          sound(i == 0 || row_[static_cast<std::size_t>(i) - 1] != row, "a row starts twice");
        }
        row_[static_cast<std::size_t>(i)] = row;
      }
      sound(lane == 0 || started == (behind == 0), "seg_offset counts other lanes");
      behind = lane == 0 || started ? field(t, lane, s_.y_bits, s_.lane_bits) : behind - 1;
      sound(behind == field(t, lane, s_.y_bits, s_.lane_bits), "the seg_offsets of two lanes disagree");
    }
    sound(behind == 0, "seg_offset goes beyond the tile");
  }
  void tail() {
    const std::int64_t base = f_.full * s_.tile(), length = f_.nnz - base;
    sound((length == 0) == tail_row_.empty() && tail_row_.size() == tail_begin_.size(), "rows of the tail");
    sound(length == 0 || tail_begin_[0] == 0, "the tail does not begin at its first entry");
    for (std::size_t k = 0; k < tail_row_.size(); ++k) {
      const std::int64_t end = k + 1 < tail_row_.size() ? tail_begin_[k + 1] : length;
      sound(end > tail_begin_[k] && end <= length, "an empty row in the tail");
      for (std::int64_t i = tail_begin_[k]; i < end; ++i) row_[static_cast<std::size_t>(base + i)] = tail_row_[k];
    }
  }
  /// A tile in which a row starts that goes on must say where it ends; flags of first slots must fit.
  void check_carries() const {
    std::int64_t spans = 0;
    std::size_t longs = 0;
    const auto row = [&](std::int64_t i) { return row_[static_cast<std::size_t>(i)]; };
    for (std::int64_t t = 0; t < f_.tiles; ++t) {
      const std::int64_t begin = t * s_.tile(), end = begin + s_.tile();
      sound(row(begin) == tile_row(t), "tile_ptr is not the row of the first entry");
      sound(flag(t, 0, 0) == (t == 0 || row(begin - 1) != row(begin)), "the flag of a tile's first slot");
      if (t >= f_.full) continue;
      const bool starts = flag(t, 0, 0) || row(begin) != row(end - 1);
      std::int64_t last = 0;
      if (starts && end < f_.nnz && row(end) == row(end - 1)) {
        std::int64_t i = end;
        while (i < f_.nnz && row(i) == row(end - 1)) ++i;
        last = (i - 1) / s_.tile();
        ++spans;
      }
      sound(carry_end_[static_cast<std::size_t>(t)] == last, "carry_end names another tile");
      if (last > t + f_.long_span) {
        sound(longs < long_spans_.size() && long_spans_[longs] == t, "a long row is not in the list");
        ++longs;
      }
    }
    sound(tile_row(f_.tiles) == f_.rows, "the last tile_ptr is not the number of rows");
    sound(spans == f_.spans && longs == long_spans_.size(), "another number of rows in several tiles");
  }

  const Experimental::Csr5<Scalar, MemorySpace>& f_;
  const Experimental::Csr5Shape& s_;
  std::vector<Scalar> values_;
  std::vector<std::int32_t> columns_;
  std::vector<std::uint32_t> tile_ptr_, tile_desc_, empty_ptr_;
  std::vector<std::int32_t> empty_offset_;
  std::vector<std::uint32_t> carry_end_, long_spans_;
  std::vector<std::int32_t> tail_row_;
  std::vector<std::uint32_t> tail_begin_;
  std::vector<std::int32_t> empty_row_;
  std::vector<std::int64_t> row_;  // of each entry
};

}  // namespace Impl

namespace Experimental {

/// Decodes a format; O(nnz) on the host, copies the format there and waits. For tests and diagnosis.
/// @throw InvalidArgument  the format contradicts itself
template <class Scalar, class MemorySpace>
Csr5Csr<Scalar> from_csr5(const Csr5<Scalar, MemorySpace>& f) {
  return Impl::Csr5Decoder<Scalar, MemorySpace>(f).decode();
}

}  // namespace Experimental
}  // namespace Tessera

#endif
