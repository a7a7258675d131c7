// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// CSR -> panels against a plain construction, and back, bit by bit (WindowFixture.hpp has the list); features of
// matrices against plain counts.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "features/Tessera_SpmmFeatures.hpp"
#include "formats/WindowFixture.hpp"
#include "formats/windows/Tessera_FromWindows.hpp"
#include "formats/windows/Tessera_ToPanels.hpp"
#include "support/Tessera_TestFp32.hpp"

namespace Tessera {
namespace Testing {

using namespace Tessera::Experimental;

struct PanelCase {
  Precision precision;
  PanelGeometry geometry;
};
PanelCase panel_case(Precision p, int rows, int depth) {
  PanelCase c;
  c.precision = p;
  c.geometry.rows = rows;
  c.geometry.depth = depth;
  c.geometry.value_bytes = bytes_of(p);
  c.geometry.atom = "test";
  return c;
}
/// Shapes of NVIDIA's and AMD's instructions, and some that are none; bitmaps of 1 to 8 words.
const std::vector<PanelCase>& panel_cases() {
  static const std::vector<PanelCase> all = {panel_case(Precision::FP16, 8, 16), panel_case(Precision::BF16, 16, 16),
                                             panel_case(Precision::TF32, 8, 8),  panel_case(Precision::FP64, 4, 8),
                                             panel_case(Precision::FP32, 32, 8), panel_case(Precision::FP16, 8, 32)};
  return all;
}

struct PlainPanels {
  std::vector<std::uint32_t> block_ptr = {0}, packets, entry_slot;
  std::vector<std::uint64_t> values;  // with the padding of blocks
  std::vector<std::int64_t> blocks;   // of each window
  std::int64_t vectors = 0, all_blocks = 0;

  template <class Matrix>
  PlainPanels(const Matrix& A, const PanelCase& c, const Order& order) : entry_slot(A.entries.size()) {
    const int rows = c.geometry.rows, depth = c.geometry.depth, bytes = bytes_of(c.precision);
    for (const PlainWindow& window : plain_windows(A, rows, order)) {
      vectors += static_cast<std::int64_t>(window.size());
      auto vector = window.begin();
      blocks.push_back(0);
      while (vector != window.end()) {
        std::map<int, std::int64_t> entry_of_bit;
        const std::size_t packet = packets.size();
        for (int k = 0; k < depth; ++k) {
          packets.push_back(vector == window.end() ? ~0u : static_cast<std::uint32_t>(vector->first.first));
          if (vector == window.end()) continue;
          for (const auto& entry : vector->second) entry_of_bit[entry.first * depth + k] = entry.second;
          ++vector;
        }
        packets.resize(packet + static_cast<std::size_t>(c.geometry.packet_words()));
        packets[packet + static_cast<std::size_t>(c.geometry.begin_at())] = static_cast<std::uint32_t>(values.size());
        packets[packet + static_cast<std::size_t>(c.geometry.count_at())] =
            static_cast<std::uint32_t>(entry_of_bit.size());
        // Bytes, one per row, as the kernel reads them.
        auto* const prefix = reinterpret_cast<unsigned char*>(&packets[packet]) + 4 * c.geometry.prefix_at();
        for (int row = 0; row < rows; ++row) {
          prefix[row] =
              static_cast<unsigned char>(std::distance(entry_of_bit.begin(), entry_of_bit.lower_bound(row * depth)));
        }
        for (const auto& entry : entry_of_bit) {
          packets[packet + static_cast<std::size_t>(c.geometry.bitmap_at() + entry.first / 32)] |= 1u
                                                                                                   << entry.first % 32;
          entry_slot[static_cast<std::size_t>(entry.second)] = static_cast<std::uint32_t>(values.size());
          values.push_back(stored_bits(c.precision, A.values[static_cast<std::size_t>(entry.second)], false));
        }
        while (values.size() * static_cast<std::size_t>(bytes) % 16 != 0) values.push_back(0);
        ++blocks.back();
      }
      all_blocks += blocks.back();
      block_ptr.push_back(static_cast<std::uint32_t>(all_blocks));
    }
  }
};

struct PanelFormat {
  using Case = PanelCase;
  static constexpr bool marks_zeros = false, parts_inside = false;
  static const std::vector<Case>& cases() { return panel_cases(); }
  static Precision precision(const Case& c) { return c.precision; }
  static std::string name(const Case& c) {
    return std::to_string(c.geometry.rows) + " x " + std::to_string(c.geometry.depth);
  }
  template <class Csr>
  static auto convert(const Csr& A, const Case& c, int max_blocks, bool updatable,
                      const DeviceVector<Exec, std::int32_t>& order) {
    PanelOptions o;
    o.max_blocks = max_blocks;
    return to_panels(Exec(), A, c.geometry, c.precision, o, updatable, nullptr, order);
  }
  template <class Made>
  static auto decode(const Made& f) {
    return from_panels(f);
  }
  template <class Made, class Csr, class Values>
  static void update(const Made& f, const Csr& A, const Values& values) {
    update_panels(Exec(), f, A, values);
  }
  template <class Made>
  static auto arrays(const Made& f) {
    return std::make_tuple(to_host(f.block_ptr), to_host(f.packets), to_host(f.entry_slot), to_host(f.values));
  }
  template <class Matrix, class Made>
  static std::vector<std::int64_t> expect_arrays(const Matrix& A, const Case& c, const Order& order, const Made& f) {
    const PlainPanels plain(A, c, order);
    EXPECT_EQ(f.column_vectors, plain.vectors);
    EXPECT_EQ(to_host(f.block_ptr), plain.block_ptr);
    EXPECT_EQ(to_host(f.packets), plain.packets);
    EXPECT_EQ(to_host(f.entry_slot), plain.entry_slot);
    EXPECT_EQ(f.map_bytes(), 4 * plain.entry_slot.size());
    // There is room for more padding than there can be; all of it is zero.
    const auto words = to_host(f.values);
    const int bytes = bytes_of(c.precision), unit = 16 / bytes;
    EXPECT_EQ(static_cast<std::int64_t>(words.size()), (A.nnz() + plain.all_blocks * (unit - 1)) / unit * 2);
    expect_values(words, c.precision, plain.values, words.size() * 8 / static_cast<std::size_t>(bytes));
    EXPECT_EQ(f.format_bytes(), 8 * words.size() + 4 * (plain.packets.size() + plain.block_ptr.size() + order.size()) +
                                    16 * f.parts.extent(0) + 12 * f.splits.extent(0));
    return plain.blocks;
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Panels, WindowFormats, PanelFormat);

TEST(Panels, RuleOfParts) {
  EXPECT_EQ(Impl::spmm_part_bound(3, 1000000, 1000, 132), 3);
  EXPECT_EQ(Impl::spmm_part_bound(0, 0, 0, 132), 16);
  // Windows enough: four times the mean.
  constexpr std::int64_t many = 132 * 16;
  EXPECT_EQ(Impl::spmm_part_bound(0, 3 * many, many, 132), 16);
  EXPECT_EQ(Impl::spmm_part_bound(0, 5 * many, many, 132), 20);
  EXPECT_EQ(Impl::spmm_part_bound(0, 65 * many, many, 132), 256);
  // Few: a 16th of a multiprocessor's share.
  EXPECT_EQ(Impl::spmm_part_bound(0, 30 * many, 1000, 132), 30);
  EXPECT_EQ(Impl::spmm_part_bound(0, 10 * many, 132 * 4, 132), 24);
  EXPECT_EQ(Impl::spmm_part_bound(0, 10 * many, 132 * 4 - 1, 132), 16);
  EXPECT_EQ(Impl::spmm_compute_units(nullptr), 64);
}

// Four rows, blocks of 8 columns: a packet is 8 columns, a word of bits, one of bytes, begin and count.
TEST(Panels, ByHand) {
  HostMatrix<double, int> A;
  A.rows = 9;
  A.cols = 10;
  A.row_map = {0, 2, 2, 4, 4, 4, 4, 4, 7, 8};
  A.entries = {1, 4, 1, 9, 3, 4, 7, 0};
  A.values = {10, 11, 12, 13, 14, 15, 16, 17};
  const DeviceMatrix<Exec, double, int> device(A);
  const PanelCase& c = panel_cases()[3];
  const auto f = to_panels(Exec(), device.view(), c.geometry, c.precision);
  Exec().fence();
  EXPECT_EQ(to_host(f.block_ptr), (std::vector<std::uint32_t>{0, 1, 2, 3}));
  constexpr std::uint32_t o = 0xffffffffu;
  EXPECT_EQ(to_host(f.packets), (std::vector<std::uint32_t>{1, 4, 9, o, o, o, o, o, 0x00050003u, 0x04020200u, 0, 4,  //
                                                            3, 4, 7, o, o, o, o, o, 0x07000000u, 0x00000000u, 4, 3,  //
                                                            0, o, o, o, o, o, o, o, 0x00000001u, 0x01010100u, 8, 1}));
  EXPECT_EQ(to_host(f.entry_slot), (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 8}));
  EXPECT_EQ(f.column_vectors, 7);
  // Room for 8 entries and 3 times 1 of padding, in whole 16 bytes.
  EXPECT_EQ(f.format_bytes(), 8u * 10 + 3 * 48 + 4 * 4);
  EXPECT_EQ(f.map_bytes(), 32u);
  EXPECT_EQ(f.workspace_bytes(5), 0u);
}
TEST(Panels, Workspace) {
  const DeviceMatrix<Exec, double, int> device(make_matrix<double, int>("dense:rows=3:cols=20", Data::Real, 1));
  const PanelCase& c = panel_cases()[3];
  PanelOptions o;
  o.max_blocks = 1;
  const auto f = to_panels(Exec(), device.view(), c.geometry, c.precision, o, false);
  Exec().fence();
  EXPECT_EQ(f.partial_count, 3);
  EXPECT_EQ(f.map_bytes(), 0u);
  EXPECT_EQ(f.workspace_bytes(5), 3u * 4 * 8 * 8);
}

// Where an instruction multiplies in parts: rows of k entries, n instructions that hold some and m entries at most in
// one of them stay where k >= n + 2 m + 10, the others stand behind, without a bit. Of each four columns of a block the
// first two are the first instruction's.
TEST(Panels, RowsApart) {
  PanelCase c = panel_case(Precision::FP32, 8, 16);
  c.geometry.part_columns = 0x3333;
  c.geometry.part_step = 2;
  const auto A = make_matrix<float, int>(rows_for_parts(), Data::Real, 1);
  const DeviceMatrix<Exec, float, int> device(A);
  Order reversed(static_cast<std::size_t>(A.rows));
  for (int i = 0; i < A.rows; ++i) reversed[static_cast<std::size_t>(i)] = A.rows - 1 - i;
  for (const Order& order : {Order(), reversed}) {
    std::vector<std::map<std::int64_t, int>> held(static_cast<std::size_t>(A.rows));  // row -> instruction -> entries
    std::int64_t first_row = 0;
    for (const PlainWindow& window : plain_windows(A, 8, order)) {
      std::int64_t vector = 0;
      for (const auto& column : window) {
        for (const auto& entry : column.second) {
          const auto place = static_cast<std::size_t>(first_row + entry.first);
          ++held[order.empty() ? place : static_cast<std::size_t>(order[place])][vector / 16 * 2 + vector % 4 / 2];
        }
        ++vector;
      }
      first_row += 8;
    }
    const auto on_device = to_device<Exec>(order);
    const auto f = to_panels(Exec(), device.view(), c.geometry, c.precision, {}, true, nullptr, on_device);
    Exec().fence();
    std::set<int> apart;
    for (const SpmmRowPiece& piece : to_host(f.apart.pieces)) apart.insert(piece.row);
    std::int64_t stay = 0;
    for (int row = 0; row < A.rows; ++row) {
      const auto& of_row = held[static_cast<std::size_t>(row)];
      int most = 0;
      for (const auto& instruction : of_row) most = std::max(most, instruction.second);
      const bool out = A.length(row) > 0 && A.length(row) < static_cast<std::int64_t>(of_row.size()) + 2 * most + 10;
      EXPECT_EQ(apart.count(row), out ? 1u : 0u) << "row " << row << " of " << A.length(row);
      stay += A.length(row) > 0 && !out;
      EXPECT_TRUE(out || A.length(row) == 0 || A.length(row) >= SpmmFeatures::brief);
    }
    EXPECT_GT(stay, 0);
    EXPECT_GT(f.apart.count(), 0);
    const auto row_at = to_host(f.apart.row_at);
    for (std::size_t place = 0; place < row_at.size(); ++place) {
      const int row = order.empty() ? static_cast<int>(place) : order[place];
      EXPECT_EQ(row_at[place], apart.count(row) > 0 ? -1 : row);
    }
    expect_decoded(from_panels(f), A, c.precision, false);
    auto B = A;
    for (float& value : B.values) value = 3 * value;
    const DeviceMatrix<Exec, float, int> other(B);
    update_panels(Exec(), f, other.view(), other.view().values());
    expect_decoded(from_panels(f), B, c.precision, false);
  }
}

TEST(Panels, BadShapes) {
  const DeviceMatrix<Exec, double, int> device(make_matrix<double, int>("diagonal", Data::Real, 1));
  const auto A = device.view();
  const Exec space;
  const PanelGeometry good = panel_cases()[0].geometry;
  const auto refused = [&](auto change) {
    PanelGeometry g = good;
    change(g);
    EXPECT_THROW(to_panels(space, A, g, Precision::FP16), InvalidArgument);
  };
  refused([](PanelGeometry& g) { g = PanelGeometry(); });
  refused([](PanelGeometry& g) { g.rows = -8; });
  refused([](PanelGeometry& g) { g.rows = 32; });         // too many slots
  refused([](PanelGeometry& g) { g.rows = 1 << 30; });    // ... also where the product overflows
  refused([](PanelGeometry& g) { g.rows = 6; });          // not whole words of bytes
  refused([](PanelGeometry& g) { g.depth = 12; });        // rows across words
  refused([](PanelGeometry& g) { g.part_columns = 1; });  // which steps to nowhere
  refused([](PanelGeometry& g) { g.value_bytes = 4; });   // of another precision
}

/// Entries a different column in all windows of `height` rows.
double plain_density(const Pattern& p, int height) {
  std::int64_t different = 0;
  for (std::int64_t first = 0; first < p.rows; first += height) {
    const auto last = static_cast<std::size_t>(std::min<std::int64_t>(first + height, p.rows));
    const std::set<int> columns(p.entries.begin() + p.row_map[static_cast<std::size_t>(first)],
                                p.entries.begin() + p.row_map[last]);
    different += static_cast<std::int64_t>(columns.size());
  }
  return p.entries.empty() ? 0 : static_cast<double>(p.entries.size()) / static_cast<double>(different);
}
/// A density that is counted of a part of the columns or windows, as it is to be expected, and its standard deviation.
struct CountedDensity {
  double mean = 0, deviation = 0;
};
/// Of 512 windows of 64 rows or, where all are counted, of one of 2^s columns of each window, so that 1024 entries are
/// expected at most. What is counted with probability q and has m entries in d different columns of windows of `height`
/// rows makes the quotient R = sum(q m) / sum(q d), whose variance is sum(q (1 - q) (m - R d)^2) / sum(q d)^2 to first
/// order: none where everything is counted.
CountedDensity counted_density(const Pattern& p, int height) {
  struct Unit {
    double q, entries, different;
  };
  std::vector<Unit> units;
  const std::int64_t windows = (p.rows + 63) / 64;
  const double q_window = std::min(1.0, 512.0 / static_cast<double>(std::max<std::int64_t>(windows, 1)));
  for (std::int64_t first = 0; first < p.rows; first += 64) {
    const std::int64_t last = std::min<std::int64_t>(first + 64, p.rows);
    std::map<int, std::pair<std::int64_t, std::set<std::int64_t>>> columns;  // entries, and in which windows
    for (std::int64_t row = first; row < last; ++row) {
      const auto at = static_cast<std::size_t>(row);
      for (auto e = p.row_map[at]; e < p.row_map[at + 1]; ++e) {
        auto& column = columns[p.entries[static_cast<std::size_t>(e)]];
        ++column.first;
        column.second.insert(row / height);
      }
    }
    double q = 1;
    while (q * static_cast<double>(p.row_map[static_cast<std::size_t>(last)] -
                                   p.row_map[static_cast<std::size_t>(first)]) >
           1024) {
      q /= 2;
    }
    Unit window{q_window, 0, 0};
    for (const auto& [column, found] : columns) {
      const Unit unit{q, static_cast<double>(found.first), static_cast<double>(found.second.size())};
      if (q_window == 1) units.push_back(unit);
      window.entries += unit.entries;
      window.different += unit.different;
    }
    if (q_window < 1) units.push_back(window);
  }
  double entries = 0, different = 0, variance = 0;
  for (const Unit& u : units) entries += u.q * u.entries, different += u.q * u.different;
  if (different == 0) return {};
  const double mean = entries / different;
  for (const Unit& u : units) variance += u.q * (1 - u.q) * std::pow(u.entries - mean * u.different, 2);
  return {mean, std::sqrt(variance) / different};
}
/// Within five standard deviations; the same number where everything is counted.
void expect_density(const Pattern& p, int height, double found) {
  const CountedDensity wanted = counted_density(p, height);
  EXPECT_NEAR(found, wanted.mean, 5 * wanted.deviation) << "windows of " << height << " rows";
  if (wanted.deviation == 0) {
    EXPECT_EQ(found, plain_density(p, height)) << "windows of " << height << " rows";
  }
}

/// Columns from a row's first to its last, mean of the rows that are not empty.
double plain_reach(const Pattern& p) {
  double sum = 0;
  int used = 0;
  for (std::int64_t row = 0; row < p.rows; ++row) {
    const auto at = static_cast<std::size_t>(row);
    const auto b = p.entries.begin() + p.row_map[at], e = p.entries.begin() + p.row_map[at + 1];
    if (b == e) continue;
    sum += *std::max_element(b, e) - *std::min_element(b, e) + 1;
    ++used;
  }
  return used > 0 ? sum / used : 0;
}
SpmmFeatures features_of(const Pattern& p) {
  const DeviceMatrix<Exec, float, int> device(make_matrix<float, int>(p, Data::Real, 1));
  return spmm_features(Exec(), device.view());
}
TEST(SpmmFeatures, ExactWhereEverythingIsSampled) {
  for (const auto& named : window_cases()) {
    SCOPED_TRACE(named.first);
    const Pattern p = shuffled(named.second);
    std::int64_t longest = 0, empty = 0, brief = 0;
    for (std::int64_t r = 0; r < p.rows; ++r) {
      const auto at = static_cast<std::size_t>(r);
      longest = std::max(longest, p.row_map[at + 1] - p.row_map[at]);
      empty += p.row_map[at + 1] == p.row_map[at];
      if (p.row_map[at + 1] - p.row_map[at] < 24) brief += p.row_map[at + 1] - p.row_map[at];
    }
    const SpmmFeatures f = features_of(p);
    EXPECT_EQ(f.rows, p.rows);
    EXPECT_EQ(f.cols, p.cols);
    EXPECT_EQ(f.nnz, static_cast<std::int64_t>(p.entries.size()));
    EXPECT_EQ(f.longest, longest);
    EXPECT_EQ(f.empty_rows, empty);
    EXPECT_EQ(f.brief_entries, brief);
    EXPECT_EQ(f.mean, p.rows > 0 ? static_cast<double>(p.entries.size()) / static_cast<double>(p.rows) : 0);
    Pattern sorted = p;
    for (std::size_t r = 0; r < static_cast<std::size_t>(p.rows); ++r) {
      std::sort(sorted.entries.begin() + p.row_map[r], sorted.entries.begin() + p.row_map[r + 1]);
    }
    EXPECT_DOUBLE_EQ(features_of(sorted).reach, plain_reach(p));
    // Of rows that are not sorted, 16 entries: uniform ones span 15 / 17 of the range, less than half of it with a
    // probability of 16 / 2^15.
    EXPECT_LE(f.reach, plain_reach(p));
    EXPECT_GE(f.reach, 0.5 * plain_reach(p));
    const double densities[] = {f.g8, f.g16, f.g32, f.g64};
    for (int k = 0; k < 4; ++k) expect_density(p, 8 << k, densities[k]);
  }
}
// Rows that share all columns, or none: what of the columns is sampled does not matter.
TEST(SpmmFeatures, HeavyWindows) {
  const SpmmFeatures all = features_of(generate("dense:rows=128:cols=4001"));
  EXPECT_EQ(all.g8, 8);
  EXPECT_EQ(all.g16, 16);
  EXPECT_EQ(all.g32, 32);
  EXPECT_EQ(all.g64, 64);
  EXPECT_EQ(all.longest, 4001);
  const Pattern row = generate("dense_row:rows=3:cols=200003");
  const SpmmFeatures none = features_of(row);
  EXPECT_EQ(none.longest, 200003);
  expect_density(row, 64, none.g64);
}
// More windows than the sample has.
TEST(SpmmFeatures, Sampled) {
  const Pattern p = generate("random:rows=60001:cols=997:lengths=uniform:mean=4");
  const SpmmFeatures f = features_of(p);
  expect_density(p, 8, f.g8);
  // More than half of the rows, whose spans have a standard deviation of about 300: 300 / sqrt(32768) = 1.7.
  EXPECT_NEAR(f.reach, plain_reach(p), 5 * 1.7);
  expect_density(p, 64, f.g64);
  const SpmmFeatures again = features_of(p);
  EXPECT_EQ(f.g8, again.g8);
  EXPECT_EQ(f.g64, again.g64);
}

}  // namespace Testing
}  // namespace Tessera
