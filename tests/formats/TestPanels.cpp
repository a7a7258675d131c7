// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// CSR -> panels against a plain construction, and back, bit by bit; features of matrices against plain counts.

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "features/Tessera_SpmmFeatures.hpp"
#include "formats/windows/Tessera_FromWindows.hpp"
#include "formats/windows/Tessera_ToPanels.hpp"
#include "support/Tessera_TestWindows.hpp"

namespace Tessera {
namespace Testing {

using namespace Tessera::Experimental;

using Exec = Kokkos::DefaultExecutionSpace;
using Order = std::vector<std::int32_t>;

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
        // Bytes, a row each, as the kernel reads them.
        auto* const prefix = reinterpret_cast<unsigned char*>(&packets[packet]) + 4 * c.geometry.prefix_at();
        for (int row = 0; row < rows; ++row) {
          prefix[row] =
              static_cast<unsigned char>(std::distance(entry_of_bit.begin(), entry_of_bit.lower_bound(row * depth)));
        }
        for (const auto& entry : entry_of_bit) {
          packets[packet + static_cast<std::size_t>(c.geometry.bitmap_at() + entry.first / 32)] |= 1u
                                                                                                   << entry.first % 32;
          entry_slot[static_cast<std::size_t>(entry.second)] = static_cast<std::uint32_t>(values.size());
          values.push_back(stored_bits(c.precision, A.values[static_cast<std::size_t>(entry.second)]));
        }
        while (values.size() * static_cast<std::size_t>(bytes) % 16 != 0) values.push_back(0);
        ++blocks.back();
      }
      all_blocks += blocks.back();
      block_ptr.push_back(static_cast<std::uint32_t>(all_blocks));
    }
  }
};

template <class Matrix, class Format>
void expect_format(const Matrix& A, const PanelCase& c, const Order& order, int max_blocks, const Format& f) {
  const PlainPanels plain(A, c, order);
  EXPECT_EQ(f.rows, A.rows);
  EXPECT_EQ(f.cols, A.cols);
  EXPECT_EQ(f.nnz, A.nnz());
  EXPECT_EQ(f.windows + 1, static_cast<std::int64_t>(plain.block_ptr.size()));
  EXPECT_EQ(f.column_vectors, plain.vectors);
  EXPECT_EQ(f.blocks, plain.all_blocks);
  EXPECT_EQ(to_host(f.block_ptr), plain.block_ptr);
  EXPECT_EQ(to_host(f.packets), plain.packets);
  EXPECT_EQ(to_host(f.row_order), order);
  EXPECT_EQ(to_host(f.entry_slot), plain.entry_slot);
  EXPECT_EQ(f.map_bytes(), 4 * plain.entry_slot.size());
  // There is room for more padding than there can be; all of it is zero.
  const auto words = to_host(f.values);
  const int bytes = bytes_of(c.precision), unit = 16 / bytes;
  EXPECT_EQ(static_cast<std::int64_t>(words.size()), (A.nnz() + plain.all_blocks * (unit - 1)) / unit * 2);
  const std::size_t stored = words.size() * 8 / static_cast<std::size_t>(bytes);
  ASSERT_GE(stored, plain.values.size());
  for (std::size_t i = 0; i < stored; ++i) {
    ASSERT_EQ(value_at(words, i, bytes), i < plain.values.size() ? plain.values[i] : 0) << "slot " << i;
  }
  const auto parts = to_host(f.parts);
  const auto splits = to_host(f.splits);
  expect_parts(plain.blocks, max_blocks > 0 ? max_blocks : default_bound(f.blocks, f.windows), false, parts, splits,
               f.partial_count);
  EXPECT_EQ(f.format_bytes(), 8 * words.size() + 4 * (plain.packets.size() + plain.block_ptr.size() + order.size()) +
                                  16 * parts.size() + 12 * splits.size());
}

/// Format, way back, and both again with other values.
template <class Scalar, class Offset>
void expect_conversion(const Pattern& p, const PanelCase& c, bool reordered, int max_blocks = 0) {
  SCOPED_TRACE(std::string(to_string(c.precision)) + ", " + std::to_string(c.geometry.rows) + " x " +
               std::to_string(c.geometry.depth) + (reordered ? ", reordered" : ""));
  const auto A = make_matrix<Scalar, Offset>(p, Data::Real, 1), B = make_matrix<Scalar, Offset>(p, Data::Integers, 2);
  const DeviceMatrix<Exec, Scalar, Offset> device(A), other(B);
  const Order order = reordered ? some_order(A.rows) : Order();
  PanelOptions o;
  o.max_blocks = max_blocks;
  const Exec space;
  const auto f = to_panels(space, device.view(), c.geometry, c.precision, o, true, nullptr, to_device<Exec>(order));
  space.fence();
  expect_format(A, c, order, max_blocks, f);
  expect_decoded(from_panels(f), A, c.precision, false);
  update_panels(space, f, other.view(), other.values);
  space.fence();
  expect_format(B, c, order, max_blocks, f);
  expect_decoded(from_panels(f), B, c.precision, false);
  // The matrix is as it was.
  EXPECT_TRUE(same_bits(to_host(device.values), A.values));
  EXPECT_EQ(to_host(device.entries), A.entries);
  EXPECT_EQ(to_host(device.row_map), A.row_map);
}

TEST(Panels, FollowTheirDefinition) {
  for (const auto& named : window_cases()) {
    SCOPED_TRACE(named.first);
    for (const PanelCase& c : panel_cases()) expect_conversion<double, std::int64_t>(named.second, c, false);
  }
}
TEST(Panels, UnsortedRows) {
  for (const auto& named : window_cases()) {
    SCOPED_TRACE(named.first);
    for (const PanelCase& c : panel_cases()) expect_conversion<float, int>(shuffled(named.second), c, false);
  }
}
TEST(Panels, RowOrder) {
  for (const auto& named : window_cases()) {
    SCOPED_TRACE(named.first);
    for (const PanelCase& c : panel_cases()) {
      expect_conversion<float, int>(named.second, c, true);
      if (c.precision == Precision::TF32) expect_conversion<float, int>(shuffled(named.second), c, true);
    }
  }
}
TEST(Panels, Types) {
  for (const std::string spec : {"duplicates:rows=151:longest=90", "random:rows=501:cols=997:lengths=uniform:mean=4"}) {
    SCOPED_TRACE(spec);
    const Pattern p = shuffled(generate(spec));
    for (const PanelCase& c : panel_cases()) {
      expect_conversion<double, std::size_t>(p, c, true);
      expect_conversion<half_t, int>(p, c, true);
      expect_conversion<bhalf_t, int>(p, c, false);
    }
  }
}
TEST(Panels, Parts) {
  for (const std::string spec : {"dense_row:rows=30:cols=5003", "ramp:n=101", "web:n=1001:longest=300",
                                 "random:rows=501:cols=997:lengths=uniform:mean=4"}) {
    SCOPED_TRACE(spec);
    for (const int max_blocks : {0, 1, 2, 3, 7, 100000}) {
      SCOPED_TRACE("max_blocks " + std::to_string(max_blocks));
      for (const PanelCase& c : panel_cases()) expect_conversion<float, int>(generate(spec), c, false, max_blocks);
    }
  }
}

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

// The same bytes each time, whatever order threads come in.
TEST(Panels, Deterministic) {
  const auto A = make_matrix<float, int>(shuffled(generate("web:n=3001:longest=900")), Data::Real, 1);
  const DeviceMatrix<Exec, float, int> device(A);
  const PanelCase& c = panel_cases()[0];
  const auto first = to_panels(Exec(), device.view(), c.geometry, c.precision);
  for (int run = 0; run < 3; ++run) {
    const auto f = to_panels(Exec(), device.view(), c.geometry, c.precision);
    Exec().fence();
    EXPECT_EQ(to_host(f.block_ptr), to_host(first.block_ptr));
    EXPECT_EQ(to_host(f.packets), to_host(first.packets));
    EXPECT_EQ(to_host(f.entry_slot), to_host(first.entry_slot));
    EXPECT_EQ(to_host(f.values), to_host(first.values));
  }
}

TEST(Panels, BadCalls) {
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
  refused([](PanelGeometry& g) { g.rows = 32; });        // too many slots
  refused([](PanelGeometry& g) { g.rows = 1 << 30; });   // ... also where the product overflows
  refused([](PanelGeometry& g) { g.rows = 6; });         // not whole words of bytes
  refused([](PanelGeometry& g) { g.depth = 12; });       // rows across words
  refused([](PanelGeometry& g) { g.value_bytes = 4; });  // of another precision
  PanelOptions o;
  o.max_blocks = -1;
  EXPECT_THROW(to_panels(space, A, good, Precision::FP16, o), InvalidArgument);
  EXPECT_THROW(to_panels(space, A, good, Precision::FP16, {}, true, nullptr, to_device<Exec>(Order{0, 1})),
               DimensionMismatch);
  EXPECT_THROW(to_panels(space, matrix_too_large<Exec>(), good, Precision::FP16), NotSupported);
  const auto f = to_panels(space, A, good, Precision::FP16);
  EXPECT_THROW(update_panels(space, f, A, to_device<Exec>(std::vector<double>(3))), DimensionMismatch);
  const auto fixed = to_panels(space, A, good, Precision::FP16, {}, false);
  EXPECT_THROW(update_panels(space, fixed, A, device.values), NotSupported);
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
    std::int64_t longest = 0, empty = 0, heaviest = 0;
    for (std::int64_t r = 0; r < p.rows; ++r) {
      const auto at = static_cast<std::size_t>(r);
      const auto last = static_cast<std::size_t>(std::min(r / 64 * 64 + 64, p.rows));
      longest = std::max(longest, p.row_map[at + 1] - p.row_map[at]);
      empty += p.row_map[at + 1] == p.row_map[at];
      heaviest = std::max(heaviest, p.row_map[last] - p.row_map[static_cast<std::size_t>(r / 64 * 64)]);
    }
    const SpmmFeatures f = features_of(p);
    EXPECT_EQ(f.rows, p.rows);
    EXPECT_EQ(f.cols, p.cols);
    EXPECT_EQ(f.nnz, static_cast<std::int64_t>(p.entries.size()));
    EXPECT_EQ(f.longest, longest);
    EXPECT_EQ(f.empty_rows, empty);
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
    for (int k = 0; k < 4; ++k) {
      // Heavier windows are sampled.
      const double wanted = plain_density(p, 8 << k), slack = heaviest <= 1024 ? 1e-12 : 0.15;
      EXPECT_NEAR(densities[k], wanted, slack * wanted) << "windows of " << (8 << k) << " rows";
    }
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
  const SpmmFeatures none = features_of(generate("dense_row:rows=3:cols=200003"));
  EXPECT_EQ(none.longest, 200003);
  EXPECT_NEAR(none.g64, plain_density(generate("dense_row:rows=3:cols=200003"), 64), 0.05);
}
// More windows than the sample has.
TEST(SpmmFeatures, Sampled) {
  const Pattern p = generate("random:rows=60001:cols=997:lengths=uniform:mean=4");
  const SpmmFeatures f = features_of(p);
  EXPECT_NEAR(f.g8, plain_density(p, 8), 0.02);
  // More than half of the rows, whose spans have a standard deviation of about 300: 300 / sqrt(32768) = 1.7.
  EXPECT_NEAR(f.reach, plain_reach(p), 5 * 1.7);
  EXPECT_NEAR(f.g64, plain_density(p, 64), 0.05);
  const SpmmFeatures again = features_of(p);
  EXPECT_EQ(f.g8, again.g8);
  EXPECT_EQ(f.g64, again.g64);
}

}  // namespace Testing
}  // namespace Tessera
