// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_FORMATS_DASP_FROM_DASP_HPP
#define TESSERA_FORMATS_DASP_FROM_DASP_HPP

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "Tessera_Error.hpp"
#include "Tessera_Types.hpp"
#include "core/Tessera_HostVector.hpp"
#include "formats/dasp/Tessera_Dasp.hpp"

/// \file
/// DASP back to CSR, on the host. Reads the format as a kernel does and shares no code with the conversion, so that
/// the two check each other.

namespace Tessera {
namespace Experimental {

/// A decoded matrix: plain CSR, values widened (exactly) to double, entries of a row in their stored order.
struct DaspCsr {
  std::int64_t rows = 0, cols = 0;
  std::vector<std::int64_t> row_map;
  std::vector<std::int32_t> entries;
  std::vector<double> values;
};

}  // namespace Experimental

namespace Impl {

/// Host copies of what the kernel reads, and the row lists that grow out of them.
template <class MemorySpace>
class DaspDecoder {
 public:
  explicit DaspDecoder(const Experimental::Dasp<MemorySpace>& d)
      : d_(d),
        g_(d.geometry),
        values_(host_vector(d.values)),
        irregular_values_(host_vector(d.irregular_values)),
        columns_(host_vector(d.columns)),
        irregular_columns_(host_vector(d.irregular_columns)),
        row_order_(host_vector(d.row_order)),
        runs_(host_vector(d.runs)),
        blocks_(host_vector(d.blocks)),
        remainder_(host_vector(d.remainder)),
        long_pieces_(host_vector(d.long_pieces)),
        rows_(static_cast<std::size_t>(d.rows)),
        seen_(rows_.size(), false) {}

  Experimental::DaspCsr decode() {
    if (d_.rows > 0) {
      long_rows();
      medium_rows(DaspMedium1, 1);
      medium_rows(DaspMedium2, 2);
      medium_rows(DaspMedium4, 4);
      for (const int c : {DaspPairs13, DaspPairs22, DaspThree, DaspFour}) short_rows(c);
      for (std::uint32_t i = 0; i < d_.kernel_rows[DaspSingle]; ++i) {
        irregular(row_at(d_.first_position[DaspSingle] + i), d_.first_single + i);
      }
      for (std::uint32_t i = 0; i < d_.kernel_rows[DaspEmpty]; ++i) row_at(d_.first_position[DaspEmpty] + i);
    }
    Experimental::DaspCsr A;
    A.rows = d_.rows;
    A.cols = d_.cols;
    A.row_map.push_back(0);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      sound(seen_[i], "a row belongs to no class");
      for (const Entry& e : rows_[i]) {
        A.entries.push_back(e.first);
        A.values.push_back(e.second);
      }
      A.row_map.push_back(static_cast<std::int64_t>(A.entries.size()));
    }
    sound(static_cast<std::int64_t>(A.entries.size()) == d_.nnz, "another number of entries than the matrix has");
    return A;
  }

 private:
  using Entry = std::pair<std::int32_t, double>;
  using Row = std::vector<Entry>;

  static void sound(bool condition, const char* fault) {
    require<InvalidArgument>(condition, [&] { return std::string("DASP format: ") + fault; });
  }

  double value(const std::vector<std::uint64_t>& raw, std::size_t i) const {
    const auto size = static_cast<std::size_t>(g_.value_bytes);
    sound((i + 1) * size <= 8 * raw.size(), "a value beyond the end of its array");
    const char* from = reinterpret_cast<const char*>(raw.data()) + i * size;
    const auto read = [&](auto v) {
      std::memcpy(&v, from, sizeof(v));
      return v;
    };
    if (d_.precision == Precision::FP64) return read(double{});
    if (d_.precision == Precision::FP16) return static_cast<float>(read(half_t{}));
    return static_cast<float>(read(bhalf_t{}));
  }

  /// A lane holds its slots of the four tiles one after another, cut into words of 16 bytes; the words of all lanes
  /// stand side by side.
  std::size_t address(std::uint64_t step, int tile, int slot, int bytes) const {
    const int lane = slot / g_.elements, own = tile * g_.elements + slot % g_.elements, word = 16 / bytes;
    return static_cast<std::size_t>(step) * static_cast<std::size_t>(d_.slots_per_step()) +
           static_cast<std::size_t>((own / word * g_.lanes + lane) * word + own % word);
  }
  /// Appends slot (tile, row, k) of a step to `to`, unless it is padding. Returns whether it was an entry.
  bool slot(std::uint64_t step, int tile, int row, int k, Row* to) const {
    const int place = row * g_.depth + k;
    const std::size_t at = address(step, tile, g_.index_slot[tile][place], 4);
    sound(at < columns_.size(), "a step beyond the end");
    const std::int32_t column = columns_[at];
    const double v = value(values_, address(step, tile, g_.value_slot[place], g_.value_bytes));
    if (column < 0) {
      sound(column == -1 && v == 0, "padding must be column -1 and value 0");
      return false;
    }
    sound(to != nullptr, "an entry in a row that does not exist");
    append(*to, column, v);
    return true;
  }
  void irregular(Row& to, std::size_t i) const {
    sound(i < irregular_columns_.size(), "an irregular entry beyond the end");
    append(to, irregular_columns_[i], value(irregular_values_, i));
  }
  void append(Row& to, std::int32_t column, double v) const {
    sound(column >= 0 && column < d_.cols, "a column out of range");
    to.emplace_back(column, v);
  }

  /// The row at a position; each may be asked for once.
  Row& row_at(std::size_t position) {
    sound(position < row_order_.size(), "a position beyond the end");
    const std::int32_t row = row_order_[position];
    sound(row >= 0 && row < d_.rows && !seen_[static_cast<std::size_t>(row)], "row_order is not a permutation");
    seen_[static_cast<std::size_t>(row)] = true;
    return rows_[static_cast<std::size_t>(row)];
  }
  /// Kernels take `run + along` instead of row_order where a run is recorded.
  void check_run(std::int32_t run, std::int64_t along, std::size_t position) const {
    sound(run == -1 || (run >= 0 && run + along == row_order_[position]), "a run of rows disagrees with row_order");
  }

  static int steps_of(const DaspBlock& b) { return static_cast<int>(b.packed % 4096); }
  static int loose_of(const DaspBlock& b) { return static_cast<int>(b.packed / 4096 % 4096); }
  static std::size_t irregular_of(const DaspBlock& b) {
    return b.irregular_low + (static_cast<std::size_t>(b.packed >> 24) << 32);
  }

  /// Pieces of a row: whole steps, tile by tile; what is left stands behind the last piece.
  void long_rows() {
    for (std::uint32_t i = 0; i < d_.kernel_rows[DaspLong]; ++i) {
      Row& row = row_at(d_.first_position[DaspLong] + i);
      for (std::uint32_t piece = long_pieces_[i]; piece < long_pieces_[i + 1]; ++piece) {
        const DaspBlock& b = blocks_[piece];
        sound(b.row == static_cast<std::int32_t>(i), "a piece of another row");
        sound(loose_of(b) == 0 || piece + 1 == long_pieces_[i + 1], "irregular entries before the last piece");
        for (int step = 0; step < steps_of(b); ++step) {
          for (int q = 0; q < d_.slots_per_step(); ++q) {
            const bool real = slot(std::uint64_t{b.first_step} + static_cast<unsigned>(step), q / (g_.rows * g_.depth),
                                   q / g_.depth % g_.rows, q % g_.depth, &row);
            sound(real, "padding inside a long row");
          }
        }
        for (int k = 0; k < loose_of(b); ++k) irregular(row, irregular_of(b) + static_cast<std::size_t>(k));
      }
    }
  }

  /// A set of row-blocks: tile = phase * row_blocks + row-block, where the phases of a row continue each other. Then
  /// the rest in rounds: round j lists, in the order of the lanes that end with the rows' results, entry j * phases +
  /// phase.
  void medium_rows(int cls, int row_blocks) {
    const int phases = DaspGeometry::tiles / row_blocks, size = row_blocks * g_.rows;
    for (std::uint32_t set = 0; set * static_cast<std::uint32_t>(size) < d_.kernel_rows[cls]; ++set) {
      const std::uint32_t begin = set * static_cast<std::uint32_t>(size);
      const std::size_t position = d_.first_position[cls] + begin;
      const int valid = static_cast<int>(std::min<std::uint32_t>(d_.kernel_rows[cls] - begin, size));
      const DaspBlock& b = blocks_[d_.first_block[cls] + set];
      std::vector<Row*> rows(static_cast<std::size_t>(size), nullptr);
      for (int r = 0; r < valid; ++r) {
        rows[r] = &row_at(position + static_cast<std::size_t>(r));
        check_run(b.row, r, position + static_cast<std::size_t>(r));
      }
      for (int r = 0; r < size; ++r) {
        bool ended = false;
        for (int step = 0; step < steps_of(b); ++step) {
          for (int phase = 0; phase < phases; ++phase) {
            for (int k = 0; k < g_.depth; ++k) {
              const bool real = slot(std::uint64_t{b.first_step} + static_cast<unsigned>(step),
                                     phase * row_blocks + r / g_.rows, r % g_.rows, k, rows[r]);
              sound(!(real && ended), "padding before the end of a row");
              ended = !real;
            }
          }
        }
        if (rows[r] != nullptr) sound(!ended || remainder(position, r) == 0, "padding before irregular entries");
      }
      medium_rest(position, valid, row_blocks, irregular_of(b), rows);
    }
  }
  int remainder(std::size_t position, int r) const {
    return remainder_[position + static_cast<std::size_t>(r) - d_.first_position[DaspMedium1]];
  }
  void medium_rest(std::size_t position, int valid, int row_blocks, std::size_t at, const std::vector<Row*>& rows) {
    const int phases = DaspGeometry::tiles / row_blocks;
    struct Place {
      int row = -1, phase = 0;
    };
    std::vector<Place> lanes(static_cast<std::size_t>(g_.lanes));
    int longest = 0;
    for (int r = 0; r < valid; ++r) {
      longest = std::max(longest, remainder(position, r));
      for (int phase = 0; phase < phases; ++phase) {
        lanes[g_.result_lane[phase * row_blocks + r / g_.rows][r % g_.rows]] = {r, phase};
      }
    }
    // Lanes come in an order of their own: collect first, then append in the order of each row.
    std::vector<std::vector<std::size_t>> found(rows.size());
    for (int r = 0; r < valid; ++r) found[r].resize(static_cast<std::size_t>(remainder(position, r)));
    for (int first = 0; first < longest; first += phases) {
      for (const Place& lane : lanes) {
        if (lane.row >= 0 && first + lane.phase < remainder(position, lane.row)) {
          found[lane.row][static_cast<std::size_t>(first + lane.phase)] = at++;
        }
      }
    }
    for (int r = 0; r < valid; ++r) {
      for (const std::size_t i : found[r]) irregular(*rows[r], i);
    }
  }

  /// Quads of four slots, one after another along a tile's row, then down the rows, then over the tiles.
  void short_rows(int cls) {
    const std::uint32_t count = d_.kernel_rows[cls];
    const std::uint32_t quads = cls == DaspPairs22 ? (count + 1) / 2 : count;
    const auto per_step = static_cast<std::uint32_t>(d_.slots_per_step() / 4);
    const std::uint32_t steps = (quads + per_step - 1) / per_step;
    for (std::uint32_t i = 0; i < steps * per_step; ++i) {
      const std::uint64_t local = i / per_step, step = d_.first_step[cls] + local;
      const int in_step = static_cast<int>(i % per_step), quad = in_step % g_.slices;
      const int row = in_step / g_.slices % g_.rows, tile = in_step / (g_.slices * g_.rows);
      const std::size_t run = 2 * static_cast<std::size_t>(step - d_.first_step[DaspPairs13]);
      const auto take = [&](std::int64_t position, int begin, int end, int entries, std::int32_t run_begin, int along) {
        Row* to = nullptr;
        if (position >= 0) {
          to = &row_at(static_cast<std::size_t>(position));
          check_run(run_begin, along, static_cast<std::size_t>(position));
        }
        for (int k = begin; k < end; ++k) {
          const bool real = slot(step, tile, row, quad * 4 + k, to);
          sound(real == (to != nullptr && k - begin < entries), "a short row of another length");
        }
      };
      const std::int64_t first = d_.first_position[cls];
      if (cls == DaspPairs13) {
        const bool real = i < count;
        take(real ? std::int64_t{d_.pair_ones_position} + i : -1, 0, 1, 1, runs_[run], in_step);
        take(real ? first + i : -1, 1, 4, 3, runs_[run + 1], in_step);
      } else if (cls == DaspPairs22) {
        for (std::uint32_t half = 0; half < 2; ++half) {
          take(2 * i + half < count ? first + 2 * std::int64_t{i} + half : -1, 2 * static_cast<int>(half),
               2 * static_cast<int>(half) + 2, 2, runs_[run + half], 2 * in_step + static_cast<int>(half));
        }
      } else {
        take(i < count ? first + i : -1, 0, 4, cls == DaspThree ? 3 : 4, runs_[run], in_step);
      }
    }
  }

  const Experimental::Dasp<MemorySpace>& d_;
  const DaspGeometry& g_;
  std::vector<std::uint64_t> values_, irregular_values_;
  std::vector<std::int32_t> columns_, irregular_columns_, row_order_, runs_;
  std::vector<DaspBlock> blocks_;
  std::vector<std::uint8_t> remainder_;
  std::vector<std::uint32_t> long_pieces_;
  std::vector<Row> rows_;
  std::vector<bool> seen_;
};

}  // namespace Impl

namespace Experimental {

/// The matrix that a DASP format holds, as CSR on the host. Works with formats that were made or left without the
/// update map. O(stored) time and about 50 bytes per entry of host memory; waits for the device. For tests and tools.
/// @throw InvalidArgument  the format is inconsistent; the message says how
template <class MemorySpace>
DaspCsr to_csr(const Dasp<MemorySpace>& d) {
  return Impl::DaspDecoder<MemorySpace>(d).decode();
}

}  // namespace Experimental
}  // namespace Tessera

#endif
