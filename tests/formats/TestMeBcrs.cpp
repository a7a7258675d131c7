// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// CSR -> ME-BCRS and SR-BCRS against a plain construction, and back, bit by bit (WindowFixture.hpp has the list).

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "formats/WindowFixture.hpp"
#include "formats/windows/Tessera_FromWindows.hpp"
#include "formats/windows/Tessera_ToMeBcrs.hpp"

namespace Tessera {
namespace Testing {

using namespace Tessera::Experimental;

struct MeBcrsCase {
  Precision precision;
  int depth, vector_length;
  bool padded;
};
/// FlashSparse's shapes on NVIDIA's and AMD's units, and the paper's comparisons.
const std::vector<MeBcrsCase>& me_bcrs_cases() {
  static const std::vector<MeBcrsCase> all = {{Precision::FP16, 8, 8, false},   {Precision::BF16, 8, 8, true},
                                              {Precision::TF32, 4, 8, false},   {Precision::TF32, 4, 16, true},
                                              {Precision::FP16, 16, 16, false}, {Precision::FP64, 4, 8, false}};
  return all;
}
FlashOptions options_of(const MeBcrsCase& c, int max_blocks = 0) {
  FlashOptions o;
  o.vector_length = c.vector_length;
  o.padded = c.padded;
  o.max_blocks = max_blocks;
  return o;
}

struct PlainMeBcrs {
  std::vector<std::int32_t> pointers = {0}, columns;
  std::vector<std::uint64_t> values, entry_slot;
  std::vector<std::int64_t> blocks;  // of each window

  template <class Matrix>
  PlainMeBcrs(const Matrix& A, const MeBcrsCase& c, const Order& order) : entry_slot(A.entries.size()) {
    for (const PlainWindow& window : plain_windows(A, c.vector_length, order)) {
      std::vector<std::pair<int, std::map<int, std::int64_t>>> vectors;
      for (const auto& vector : window) vectors.emplace_back(vector.first.first, vector.second);
      while (c.padded && vectors.size() % static_cast<std::size_t>(c.depth) != 0) vectors.push_back({-1, {}});
      blocks.push_back(0);
      for (std::size_t first = 0; first < vectors.size(); first += static_cast<std::size_t>(c.depth)) {
        const std::size_t last = std::min(first + static_cast<std::size_t>(c.depth), vectors.size());
        for (int row = 0; row < c.vector_length; ++row) {
          for (std::size_t v = first; v < last; ++v) {
            const auto entry = vectors[v].second.find(row);
            const bool there = entry != vectors[v].second.end();
            if (there) entry_slot[static_cast<std::size_t>(entry->second)] = values.size();
            const std::size_t i = there ? static_cast<std::size_t>(entry->second) : 0;
            values.push_back(there ? stored_bits(c.precision, A.values[i], true) : 0);
          }
        }
        ++blocks.back();
      }
      for (const auto& vector : vectors) columns.push_back(vector.first);
      pointers.push_back(static_cast<std::int32_t>(columns.size()));
    }
  }
};

struct MeBcrsFormat {
  using Case = MeBcrsCase;
  static constexpr bool marks_zeros = true, parts_inside = true;
  static const std::vector<Case>& cases() { return me_bcrs_cases(); }
  static Precision precision(const Case& c) { return c.precision; }
  static std::string name(const Case& c) {
    return std::to_string(c.vector_length) + " x " + std::to_string(c.depth) + (c.padded ? ", padded" : "");
  }
  template <class Csr>
  static auto convert(const Csr& A, const Case& c, int max_blocks, bool updatable,
                      const DeviceVector<Exec, std::int32_t>& order) {
    return to_me_bcrs(Exec(), A, c.precision, c.depth, options_of(c, max_blocks), updatable, nullptr, order);
  }
  template <class Made>
  static auto decode(const Made& f) {
    return from_me_bcrs(f);
  }
  template <class Made, class Csr, class Values>
  static void update(const Made& f, const Csr& A, const Values& values) {
    update_me_bcrs(Exec(), f, A, values);
  }
  template <class Made>
  static auto arrays(const Made& f) {
    return std::make_tuple(to_host(f.row_pointers), to_host(f.column_indices), to_host(f.values),
                           to_host(f.entry_slot));
  }
  template <class Matrix, class Made>
  static std::vector<std::int64_t> expect_arrays(const Matrix& A, const Case& c, const Order& order, const Made& f) {
    const PlainMeBcrs plain(A, c, order);
    EXPECT_EQ(f.column_vectors, static_cast<std::int64_t>(plain.columns.size()));
    EXPECT_EQ(to_host(f.row_pointers), plain.pointers);
    EXPECT_EQ(to_host(f.column_indices), plain.columns);
    EXPECT_EQ(to_host(f.entry_slot), plain.entry_slot);
    EXPECT_EQ(f.map_bytes(), 8 * plain.entry_slot.size());
    const auto words = to_host(f.values);
    const std::size_t bytes = plain.values.size() * static_cast<std::size_t>(bytes_of(c.precision));
    EXPECT_EQ(words.size(), (bytes + 7) / 8);
    EXPECT_EQ(f.stored(), static_cast<std::int64_t>(plain.values.size()));
    expect_values(words, c.precision, plain.values, plain.values.size());
    EXPECT_EQ(f.format_bytes(), 4 * (plain.pointers.size() + plain.columns.size()) + bytes + 4 * order.size() +
                                    16 * f.parts.extent(0) + 12 * f.splits.extent(0));
    return plain.blocks;
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(MeBcrs, WindowFormats, MeBcrsFormat);

// Two windows of 8 rows: 5 vectors in the first, 1 in the second, blocks of 4.
TEST(MeBcrs, ByHand) {
  HostMatrix<double, int> A;
  A.rows = 9;
  A.cols = 10;
  A.row_map = {0, 2, 2, 4, 4, 4, 4, 4, 7, 8};
  A.entries = {1, 4, 1, 9, 3, 4, 7, 0};
  A.values = {10, 11, 12, 13, 14, 15, 16, 17};
  const DeviceMatrix<Exec, double, int> device(A);
  const auto f = to_me_bcrs(Exec(), device.view(), Precision::TF32, 4);
  Exec().fence();
  EXPECT_EQ(to_host(f.row_pointers), (Order{0, 5, 6}));
  EXPECT_EQ(to_host(f.column_indices), (Order{1, 3, 4, 7, 9, 0}));
  EXPECT_EQ(f.blocks, 3);
  EXPECT_EQ(f.stored(), 48);
  // Rows 0, 2 and 7 of a block of width 4; row 2 of the block of width 1 behind it; row 0 of the second window.
  EXPECT_EQ(to_host(f.entry_slot), (std::vector<std::uint64_t>{0, 2, 8, 34, 29, 30, 31, 40}));
  EXPECT_EQ(f.format_bytes(), 4u * 3 + 4 * 6 + 4 * 48);
  EXPECT_EQ(f.map_bytes(), 64u);
  EXPECT_EQ(f.workspace_bytes(17), 0u);
  FlashOptions o;
  o.padded = true;
  const auto padded = to_me_bcrs(Exec(), device.view(), Precision::TF32, 4, o, false);
  Exec().fence();
  EXPECT_EQ(to_host(padded.row_pointers), (Order{0, 8, 12}));
  EXPECT_EQ(to_host(padded.column_indices), (Order{1, 3, 4, 7, 9, -1, -1, -1, 0, -1, -1, -1}));
  EXPECT_EQ(padded.blocks, 3);
  EXPECT_EQ(padded.format_bytes(), 4u * 3 + 4 * 12 + 4 * 96);
  EXPECT_EQ(padded.map_bytes(), 0u);
  o.padded = false;
  o.max_blocks = 1;
  const auto split = to_me_bcrs(Exec(), device.view(), Precision::TF32, 4, o);
  Exec().fence();
  EXPECT_EQ(split.partial_count, 2);
  EXPECT_EQ(split.arguments().split.part_count, 3);
  EXPECT_EQ(split.workspace_bytes(17), 2u * 8 * 20 * 4);
  EXPECT_EQ(split.format_bytes(), 4u * 3 + 4 * 6 + 4 * 48 + 16 * 3 + 12);
}

TEST(MeBcrs, BadShapes) {
  const DeviceMatrix<Exec, double, int> device(make_matrix<double, int>("diagonal", Data::Real, 1));
  const auto A = device.view();
  const Exec space;
  for (const int length : {-8, 0, 4, 32}) {
    FlashOptions o;
    o.vector_length = length;
    EXPECT_THROW(to_me_bcrs(space, A, Precision::FP16, 8, o), InvalidArgument);
  }
  for (const int depth : {-1, 0, 33}) EXPECT_THROW(to_me_bcrs(space, A, Precision::FP16, depth), InvalidArgument);
}

}  // namespace Testing
}  // namespace Tessera
