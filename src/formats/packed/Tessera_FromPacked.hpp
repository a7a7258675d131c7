// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_PACKED_FROM_PACKED_HPP
#define TESSERA_FORMATS_PACKED_FROM_PACKED_HPP

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "Tessera_Error.hpp"
#include "Tessera_Types.hpp"
#include "core/Tessera_HostVector.hpp"
#include "formats/packed/Tessera_PackedSlices.hpp"

/// \file
/// Packed slices back to CSR, on the host. Walks each packet from its first byte to its last and shares no code with
/// the conversion, so that the two check each other.

namespace Tessera {
namespace Experimental {

/// What a slice turned out to hold; of a grouped slice all its rows.
struct PackedDecodedSlice {
  std::vector<std::int64_t> rows;        ///< in the order of the slice
  std::int64_t entries = 0;              ///< without padding; an entry that a group shares counts once
  std::int64_t lowest = 0, highest = 0;  ///< columns; 0 without entries
};

/// A decoded matrix: plain CSR, entries of a row in their stored order.
struct PackedCsr {
  std::int64_t rows = 0, cols = 0;
  std::vector<std::int64_t> row_map;
  std::vector<std::int32_t> entries;
  std::vector<std::uint64_t> bits;  ///< of the values, in the type of the format's precision
  std::vector<PackedDecodedSlice> slices;
};

}  // namespace Experimental

namespace Impl {

/// Host copies of what the kernel reads, and the row lists that grow out of them.
template <class MemorySpace>
class PackedDecoder {
 public:
  explicit PackedDecoder(const Experimental::PackedSlices<MemorySpace>& p)
      : p_(p),
        slices_(host_vector(p.slices)),
        packets_(host_vector(p.packets)),
        parts_(host_vector(p.parts)),
        dictionary_(host_vector(p.dictionary)),
        hub_columns_(host_vector(p.hub_columns)),
        shares_(host_vector(p.shares)),
        row_map_(host_vector(p.row_map)),
        rows_(static_cast<std::size_t>(p.rows * p.blocks)),
        seen_(rows_.size(), false),
        value_bytes_(stored_bytes()) {}

  Experimental::PackedCsr decode() {
    Experimental::PackedCsr A;
    A.rows = p_.rows;
    A.cols = p_.cols;
    A.row_map.push_back(0);
    if (p_.rows > 0) {
      check_dictionary();
      check_hubs();
      for (std::size_t i = 0; i < slices_.size(); ++i) A.slices.push_back(slice(i));
      sound(next_ == bytes(), "the packets do not fill their array");
      check_summary();
    } else {
      sound(slices_.empty() && packets_.empty(), "slices without rows");
    }
    check_shares();
    // With column blocks a row is what all blocks have of it, one after another.
    std::vector<std::int64_t> begins(rows_.size());
    std::int64_t end = 0;
    for (std::int64_t row = 0; row < p_.rows; ++row) {
      for (int block = 0; block < p_.blocks; ++block) {
        const auto i = static_cast<std::size_t>(block * p_.rows + row);
        sound(seen_[i], "a row lies in no slice");
        begins[i] = end;
        for (const Entry& e : rows_[i]) {
          sound(p_.blocks == 1 || e.first / p_.block_columns == block, "a column outside its column block");
          A.entries.push_back(e.first);
          A.bits.push_back(e.second);
        }
        end = static_cast<std::int64_t>(A.entries.size());
      }
      A.row_map.push_back(end);
    }
    sound(end == p_.nnz, "another number of entries than the format states");
    // The update map: where rows begin in each column block, then where the last one ends.
    begins.insert(begins.end(), p_.blocks > 1 ? A.row_map.begin() + 1 : A.row_map.end() - 1, A.row_map.end());
    sound(!p_.updatable || p_.rows == 0 || row_map_ == begins, "the update map is not the row map");
    return A;
  }

 private:
  using Entry = std::pair<std::int32_t, std::uint64_t>;
  using Row = std::vector<Entry>;

  static void sound(bool condition, const char* fault) {
    require<InvalidArgument>(condition, [&] { return std::string("packed slices: ") + fault; });
  }

  int natural_bytes() const { return bytes_of(p_.precision); }
  int stored_bytes() const {
    switch (p_.storage) {
      case PackedStorage::Full:
        return natural_bytes();
      case PackedStorage::Float:
        return 4;
      case PackedStorage::Integer:
      case PackedStorage::Dictionary:
        return 1;
      case PackedStorage::Constant:
        return 0;
    }
    return 0;
  }
  std::size_t bytes() const { return 8 * packets_.size(); }
  static std::size_t up_to_unit(std::size_t n) { return (n + 31) / 32 * 32; }

  /// `size` bytes from a place in the packets, as a number.
  std::uint64_t take(std::size_t& at, int size) const {
    sound(at + static_cast<std::size_t>(size) <= bytes(), "a packet beyond the end");
    std::uint64_t number = 0;
    std::memcpy(&number, reinterpret_cast<const char*>(packets_.data()) + at, static_cast<std::size_t>(size));
    at += static_cast<std::size_t>(size);
    return number;
  }

  // ---- values

  template <class T>
  static std::uint64_t bits_of(T value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
  }
  std::uint64_t natural(double value) const {
    if (p_.precision == Precision::FP64) return bits_of(value);
    if (p_.precision == Precision::FP32) return bits_of(static_cast<float>(value));
    if (p_.precision == Precision::FP16) return bits_of(half_t(static_cast<float>(value)));
    return bits_of(bhalf_t(static_cast<float>(value)));
  }
  std::uint64_t word(std::uint64_t index) const {
    sound(index < static_cast<std::uint64_t>(p_.dictionary_words), "a value beyond the dictionary");
    std::uint64_t bits = 0;
    std::memcpy(&bits, reinterpret_cast<const char*>(dictionary_.data()) + index * natural_bytes(), natural_bytes());
    return bits;
  }
  std::uint64_t value(std::uint64_t stored) const {
    switch (p_.storage) {
      case PackedStorage::Full:
        return stored;
      case PackedStorage::Float: {
        const auto low = static_cast<std::uint32_t>(stored);
        float number;
        std::memcpy(&number, &low, 4);
        return natural(number);
      }
      case PackedStorage::Integer:
        return natural(static_cast<std::int8_t>(static_cast<std::uint8_t>(stored)));
      case PackedStorage::Dictionary:
        return word(stored);
      case PackedStorage::Constant:
        return word(0);
    }
    return 0;
  }
  void check_dictionary() const {
    const bool used = p_.storage == PackedStorage::Dictionary || p_.storage == PackedStorage::Constant;
    if (!used) return;
    sound(p_.dictionary_words >= 1 && p_.dictionary_words <= (p_.storage == PackedStorage::Constant ? 1 : 256) &&
              dictionary_.size() == 256,
          "a dictionary of a wrong size");
    for (int i = 1; i < p_.dictionary_words; ++i) {
      sound(word(static_cast<std::uint64_t>(i - 1)) < word(static_cast<std::uint64_t>(i)),
            "a dictionary that does not ascend");
    }
  }

  // ---- columns

  /// Hubs ascend; places that no column took hold 0 behind them. Renumbered columns are all there.
  void check_hubs() {
    hub_.assign(static_cast<std::size_t>(p_.cols), false);
    if (p_.renumbered) {
      sound(hub_columns_.size() == static_cast<std::size_t>(p_.cols), "an order of other columns");
      for (const std::uint32_t column : hub_columns_) {
        sound(column < static_cast<std::size_t>(p_.cols) && !hub_[column], "an order that is no permutation");
        hub_[column] = true;
      }
      return;
    }
    bool ended = false;
    for (std::size_t rank = 0; rank < hub_columns_.size(); ++rank) {
      const std::uint32_t column = hub_columns_[rank];
      sound(column < static_cast<std::size_t>(p_.cols), "a hub out of range");
      ended = ended || (rank > 0 && column <= hub_columns_[rank - 1]);
      sound(!ended || column == 0, "hubs that do not ascend");
      if (!ended) hub_[column] = true;
    }
  }
  /// Shares take every slice of their column block once, and only of theirs.
  void check_shares() const {
    if (p_.blocks == 1) return sound(shares_.empty(), "shares without column blocks");
    std::vector<int> taken(slices_.size(), 0);
    for (const PackedShare& s : shares_) {
      sound(s.column % p_.block_columns == 0 && s.rank < s.ranks && s.last <= slices_.size() &&
                s.part_last <= parts_.size(),
            "a share of nothing");
      const std::int64_t block = s.column / p_.block_columns;
      sound(std::int64_t{s.columns} == std::min(p_.block_columns, p_.cols - s.column), "a share of other columns");
      for (std::uint32_t i = s.rank; i < s.count(); i += s.ranks) {
        const PackedSlice& slice = slices_[s.slice(i)];
        const std::int64_t row = slice.part() ? parts_[static_cast<std::size_t>(slice.row)].row : slice.row;
        sound(row / p_.rows == block, "a share with a slice of another column block");
        ++taken[s.slice(i)];
      }
    }
    for (const int times : taken) sound(times == 1, "a slice in no share, or in two");
  }
  std::int64_t column_of(const PackedSlice& s, std::uint32_t index) const {
    const auto hubs = static_cast<std::int64_t>(hub_columns_.size());
    std::int64_t column = std::int64_t{s.column} + index;
    if (hubs > 0) {
      sound(s.column == 0 && s.index() >= PackedIndex24, "a base column beside hub columns");
      column = index < hubs ? std::int64_t{hub_columns_[index]} : std::int64_t{index} - hubs;
      sound(column < p_.cols, "a column out of range");
      // A 0 in front may be column 0, or say that there is no hub at all.
      const bool known = column > 0 || hub_columns_[0] != 0;
      sound(!known || hub_[static_cast<std::size_t>(column)] == (index < hubs), "a hub column under its own number");
    }
    return column;
  }

  // ---- slices

  /// A packet taken apart: by step, then lane.
  struct Slots {
    std::vector<std::uint64_t> stored[3];  // planes of values
    std::vector<std::int64_t> column;      // -1: padding; of index-free slices the offset
    std::vector<std::uint32_t> masks;      // of lanes, steps that have an entry; empty if all have all
    std::vector<std::int64_t> ids;
  };

  /// First step and size of the chunks a lane's entries come in.
  std::vector<std::pair<int, int>> chunks(int steps) const {
    std::vector<std::pair<int, int>> all;
    int size = value_bytes_ == 8 ? 2 : 4, first = 0;
    while (first < steps) {
      while (size > steps - first) size /= 2;
      all.emplace_back(first, size);
      first += size;
    }
    return all;
  }
  /// Calls f(step, lane, plane) in the order of the elements of an array in chunks.
  template <class F>
  void in_order(int steps, int planes, F&& f) const {
    for (const auto& [first, size] : chunks(steps)) {
      for (int plane = 0; plane < planes; ++plane) {
        for (int lane = 0; lane < p_.lanes; ++lane) {
          for (int n = 0; n < size; ++n) f(first + n, lane, plane);
        }
      }
    }
  }

  Slots take_apart(const PackedSlice& s) {
    const auto lanes = static_cast<std::size_t>(p_.lanes), slots = static_cast<std::size_t>(s.steps()) * lanes;
    std::size_t at = std::size_t{s.packet} * 32;
    sound(at == next_, "packets overlap or leave gaps");
    Slots result;
    for (auto& plane : result.stored) plane.assign(slots, 0);
    in_order(s.steps(), s.group(), [&](int step, int lane, int plane) {
      result.stored[plane][static_cast<std::size_t>(step) * lanes + static_cast<std::size_t>(lane)] =
          take(at, value_bytes_);
    });
    if (s.index() == PackedIndexFree) {
      const std::size_t begin = at;
      for (int step = 0; step < s.steps(); ++step) {
        const auto raw = static_cast<std::uint32_t>(take(at, 4));
        result.column.push_back(static_cast<std::int32_t>(raw ^ 0x80000000u));
      }
      at = begin + up_to_unit(at - begin);
      for (int lane = 0; s.masked() && lane < p_.lanes; ++lane) {
        result.masks.push_back(static_cast<std::uint32_t>(take(at, 4)));
      }
    } else if (s.index() == PackedDiagonals) {
      const std::size_t begin = at;
      result.masks.assign(lanes, 0);
      for (int step = 0; step < s.steps(); ++step) {
        const auto word = static_cast<std::uint32_t>(take(at, 4));
        result.column.push_back(p_.offsets[step]);
        for (std::size_t lane = 0; lane < lanes; ++lane) result.masks[lane] |= (word >> lane & 1u) << step;
      }
      at = begin + up_to_unit(at - begin);
    } else if (s.index() != PackedEmpty) {
      std::vector<std::uint32_t> index(slots);
      const int low = s.index() == PackedIndex8 ? 1 : s.index() == PackedIndex32 ? 4 : 2;
      const std::uint32_t padding = s.index() == PackedIndex32 ? ~0u : (1u << (8 * (s.index() + 1))) - 1;
      const auto add = [&](int size, int shift) {
        in_order(s.steps(), 1, [&](int step, int lane, int) {
          index[static_cast<std::size_t>(step) * lanes + static_cast<std::size_t>(lane)] |=
              static_cast<std::uint32_t>(take(at, size)) << shift;
        });
      };
      add(low, 0);
      if (s.index() == PackedIndex24) add(1, 16);
      for (const std::uint32_t i : index) {
        result.column.push_back(i == padding ? -1 : column_of(s, i));
        sound(result.column.back() < p_.cols, "a column out of range");
      }
    }
    for (int q = 0; s.has_ids() && q < s.rows(); ++q) result.ids.push_back(static_cast<std::int64_t>(take(at, 2)));
    next_ = up_to_unit(at);
    sound(next_ <= bytes(), "a packet beyond the end");
    return result;
  }

  void check_record(std::size_t i, const PackedSlice& s) const {
    sound((p_.lanes & (p_.lanes - 1)) == 0 && p_.lanes >= 1 && p_.lanes <= 64, "a wave of an impossible size");
    sound(s.index() >= PackedIndex8 && s.index() <= PackedEmpty, "an unknown kind of index");
    if (s.index() == PackedEmpty) {
      sound(s.steps() == 0 && s.log_lanes() == 0 && s.group() == 1 && s.units() == 1 && !s.part() && !s.masked(),
            "a slice of rows without entries that has more");
      sound(s.rows() > 0 && s.rows() <= 65536, "a slice without rows, or with more than ids tell apart");
      sound(i >= parts_.size(), "parts are not the first slices");
      return;
    }
    sound(s.index() != PackedDiagonals || (p_.lanes <= 32 && p_.even != 0 && !s.masked()),
          "diagonals of uneven slices");
    sound(s.group() <= 3, "groups of more than three rows");
    sound(s.rows() << s.log_lanes() <= p_.lanes, "more rows than lanes");
    sound(s.part() == (i < parts_.size()), "parts are not the first slices");
    sound(!s.part() || (s.rows() == 1 && s.group() == 1 && 1 << s.log_lanes() == p_.lanes && !s.contiguous()),
          "a part that does not take the whole wave");
    const bool free = s.index() == PackedIndexFree || s.index() == PackedDiagonals;
    sound(!s.masked() || free, "a mask beside indices");
    sound(!free || (s.contiguous() && s.group() == 1 && s.log_lanes() == 0 && s.steps() > 0 && s.steps() <= 32 &&
                    hub_columns_.empty()),
          "an index-free slice of a shape that has none");
    sound(s.full_steps() <= s.steps(), "more full steps than steps");
  }

  Experimental::PackedDecodedSlice slice(std::size_t i) {
    const PackedSlice& s = slices_[i];
    check_record(i, s);
    const Slots slots = take_apart(s);
    count(s);
    Experimental::PackedDecodedSlice d;
    d.lowest = p_.cols;
    const int units = s.index() == PackedEmpty ? s.rows() : p_.lanes >> s.log_lanes();
    std::int64_t in_last_step = 0;
    for (int q = 0; q < units; ++q) {
      const bool real = q < s.rows();
      const std::int64_t row = real ? first_row(i, s, slots, q) : -1;
      std::vector<std::pair<std::int32_t, std::size_t>> found = unit(s, slots, q, row);
      if (!real) {
        sound(found.empty(), "entries in lanes without a row");
        continue;
      }
      for (int r = 0; r < s.group(); ++r) {
        Row& to = row_at(i, s, row + r);
        for (const auto& [column, slot] : found) to.emplace_back(column, value(slots.stored[r][slot]));
        d.rows.push_back(row + r);
      }
      for (const auto& [column, slot] : found) {
        d.lowest = std::min<std::int64_t>(d.lowest, column);
        d.highest = std::max<std::int64_t>(d.highest, column);
        in_last_step += slot / static_cast<std::size_t>(p_.lanes) + 1 == static_cast<std::size_t>(s.steps());
        ++d.entries;
      }
    }
    if (d.entries == 0) d.lowest = 0;
    sound(s.steps() == 0 || in_last_step > 0 || p_.even != 0, "a last step of nothing but padding");
    sound(!s.masked() || d.entries < std::int64_t{s.steps()} * s.rows(), "a mask where no row lacks an entry");
    if (s.part()) check_part(i, d.entries);
    return d;
  }

  /// Entries of a unit (a row, or a group of them): column and slot, in the row's order. Padding stands behind them, in
  /// index-free slices where the mask says so, and holds nothing.
  std::vector<std::pair<std::int32_t, std::size_t>> unit(const PackedSlice& s, const Slots& slots, int q,
                                                         std::int64_t row) const {
    std::vector<std::pair<std::int32_t, std::size_t>> found;
    const int per_step = 1 << s.log_lanes();
    bool ended = false;
    const bool masked = !slots.masks.empty();
    if (masked) {
      const std::uint32_t mask = slots.masks[static_cast<std::size_t>(q)];
      sound((row >= 0 || mask == 0) && (s.steps() == 32 || mask >> s.steps() == 0), "a mask beyond rows or steps");
    }
    for (int k = 0; k < s.steps() * per_step; ++k) {
      const int step = k / per_step, lane = q * per_step + k % per_step;
      const std::size_t slot =
          static_cast<std::size_t>(step) * static_cast<std::size_t>(p_.lanes) + static_cast<std::size_t>(lane);
      std::int64_t column = -1;
      if (s.index() < PackedIndexFree) {
        column = slots.column[slot];
        sound(column < 0 || !ended, "padding before the end of a row");
        ended = column < 0;
      } else if (row >= 0 && (!masked || (slots.masks[static_cast<std::size_t>(q)] >> step & 1u) != 0)) {
        column = row + slots.column[static_cast<std::size_t>(step)];
        sound(column >= 0 && column < p_.cols, "an offset leads out of the matrix");
      }
      if (column >= 0) {
        found.emplace_back(static_cast<std::int32_t>(column), slot);
        continue;
      }
      sound(step >= s.full_steps(), "padding in a full step");
      for (int r = 0; r < s.group(); ++r) sound(slots.stored[r][slot] == 0, "padding that holds a value");
    }
    return found;
  }

  std::int64_t first_row(std::size_t i, const PackedSlice& s, const Slots& slots, int q) const {
    if (s.part()) {
      sound(s.row == static_cast<std::int64_t>(i), "a part of another place");
      return parts_[i].row;
    }
    return s.row + (s.contiguous() ? std::int64_t{q} * s.group() : slots.ids[static_cast<std::size_t>(q)]);
  }
  /// The row; it may be asked for once, or once per part.
  Row& row_at(std::size_t i, const PackedSlice& s, std::int64_t row) {
    sound(row >= 0 && row < p_.rows * p_.blocks, "a row out of range");
    const auto at = static_cast<std::size_t>(row);
    sound(seen_[at] == (s.part() && parts_[i].which > 0), "a row twice, or without its first part");
    seen_[at] = true;
    return rows_[at];
  }
  /// Parts of a row follow each other; all but the last are full.
  void check_part(std::size_t i, std::int64_t entries) const {
    const PackedPart& part = parts_[i];
    sound(std::size_t{part.first} + part.which == i && part.which < part.count && part.count >= 2 &&
              std::size_t{part.first} + part.count <= parts_.size(),
          "a part out of order");
    sound(part.which == 0 ||
              (parts_[i - 1].row == part.row && parts_[i - 1].first == part.first && parts_[i - 1].count == part.count),
          "parts of different rows mixed");
    sound(entries == std::int64_t{p_.split_steps} * p_.lanes || (part.which + 1 == part.count && entries > 0),
          "a part that is not full before the last");
  }

  // ---- what the format states about itself

  void count(const PackedSlice& s) {
    const std::int64_t slots = std::int64_t{s.steps()} * p_.lanes * s.group();
    ++counted_.slices;
    counted_.parts += s.part();
    counted_.split_rows += s.part() && parts_[static_cast<std::size_t>(counted_.slices) - 1].which == 0;
    counted_.steps += s.steps();
    counted_.stored += slots;
    counted_.short_slices += s.steps() <= 5;
    if (s.index() != PackedEmpty) counted_.index_slots[s.index()] += slots;
    counted_.grouped_slots += s.group() > 1 ? slots : 0;
    counted_.id_rows += s.has_ids() ? s.rows() : 0;
  }
  void check_summary() const {
    const Experimental::PackedSummary &a = p_.summary, &b = counted_;
    sound(a.slices == b.slices, "the summary counts other slices");
    sound(a.parts == b.parts && a.split_rows == b.split_rows, "the summary counts other parts");
    sound(a.units == static_cast<std::int64_t>(bytes() / 32), "the summary counts other packets");
    sound(a.steps == b.steps && a.stored == b.stored && a.short_slices == b.short_slices,
          "the summary counts other steps");
    sound(std::equal(a.index_slots, a.index_slots + 6, b.index_slots), "the summary counts other indices");
    sound(a.grouped_slots == b.grouped_slots, "the summary counts other groups");
    sound(a.id_rows == b.id_rows, "the summary counts other row ids");
    sound(static_cast<std::size_t>(b.parts) == parts_.size(), "parts without slices");
  }

  const Experimental::PackedSlices<MemorySpace>& p_;
  std::vector<PackedSlice> slices_;
  std::vector<std::uint64_t> packets_;
  std::vector<PackedPart> parts_;
  std::vector<std::uint64_t> dictionary_;
  std::vector<std::uint32_t> hub_columns_;
  std::vector<PackedShare> shares_;
  std::vector<std::int64_t> row_map_;
  std::vector<Row> rows_;
  std::vector<bool> seen_, hub_;
  int value_bytes_;
  std::size_t next_ = 0;  // byte at which the next packet starts
  Experimental::PackedSummary counted_;
};

}  // namespace Impl

namespace Experimental {

/// The matrix that packed slices hold, as CSR on the host. O(stored) time and about 100 bytes per slot of host memory;
/// waits for the device. For tests and tools.
/// @throw InvalidArgument  the format is inconsistent; the message says how
template <class MemorySpace>
PackedCsr to_csr(const PackedSlices<MemorySpace>& p) {
  return Impl::PackedDecoder<MemorySpace>(p).decode();
}

}  // namespace Experimental
}  // namespace Tessera

#endif
