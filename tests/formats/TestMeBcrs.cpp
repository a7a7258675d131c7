// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// CSR -> ME-BCRS and SR-BCRS against a plain construction, and back, bit by bit.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "formats/windows/Tessera_FromWindows.hpp"
#include "formats/windows/Tessera_ToMeBcrs.hpp"
#include "support/Tessera_TestWindows.hpp"

namespace Tessera {
namespace Testing {

using namespace Tessera::Experimental;

using Exec = Kokkos::DefaultExecutionSpace;
using Order = std::vector<std::int32_t>;

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
            values.push_back(there ? stored_bits(c.precision, A.values[i]) : 0);
          }
        }
        ++blocks.back();
      }
      for (const auto& vector : vectors) columns.push_back(vector.first);
      pointers.push_back(static_cast<std::int32_t>(columns.size()));
    }
  }
};

template <class Matrix, class Format>
void expect_format(const Matrix& A, const MeBcrsCase& c, const Order& order, int max_blocks, const Format& f) {
  const PlainMeBcrs plain(A, c, order);
  EXPECT_EQ(f.rows, A.rows);
  EXPECT_EQ(f.cols, A.cols);
  EXPECT_EQ(f.nnz, A.nnz());
  EXPECT_EQ(f.windows + 1, static_cast<std::int64_t>(plain.pointers.size()));
  EXPECT_EQ(f.column_vectors, static_cast<std::int64_t>(plain.columns.size()));
  EXPECT_EQ(to_host(f.row_pointers), plain.pointers);
  EXPECT_EQ(to_host(f.column_indices), plain.columns);
  EXPECT_EQ(to_host(f.row_order), order);
  const auto words = to_host(f.values);
  const std::size_t bytes = plain.values.size() * static_cast<std::size_t>(bytes_of(c.precision));
  ASSERT_EQ(words.size(), (bytes + 7) / 8);
  ASSERT_EQ(f.stored(), static_cast<std::int64_t>(plain.values.size()));
  for (std::size_t i = 0; i < plain.values.size(); ++i) {
    ASSERT_EQ(value_at(words, i, bytes_of(c.precision)), plain.values[i]) << "slot " << i;
  }
  if (f.entry_slot.extent(0) > 0) {
    EXPECT_EQ(to_host(f.entry_slot), plain.entry_slot);
    EXPECT_EQ(f.map_bytes(), 8 * plain.entry_slot.size());
  }
  std::int64_t blocks = 0;
  for (const std::int64_t b : plain.blocks) blocks += b;
  EXPECT_EQ(f.blocks, blocks);
  const auto parts = to_host(f.parts);
  const auto splits = to_host(f.splits);
  expect_parts(plain.blocks, max_blocks > 0 ? max_blocks : default_bound(blocks, f.windows), true, parts, splits,
               f.partial_count);
  EXPECT_EQ(f.format_bytes(), 4 * (plain.pointers.size() + plain.columns.size()) + bytes + 4 * order.size() +
                                  16 * parts.size() + 12 * splits.size());
}

/// Format, way back, and both again with other values.
template <class Scalar, class Offset>
void expect_conversion(const Pattern& p, const MeBcrsCase& c, bool reordered, int max_blocks = 0) {
  SCOPED_TRACE(std::string(to_string(c.precision)) + ", " + std::to_string(c.vector_length) + " x " +
               std::to_string(c.depth) + (c.padded ? ", padded" : "") + (reordered ? ", reordered" : ""));
  const auto A = make_matrix<Scalar, Offset>(p, Data::Real, 1), B = make_matrix<Scalar, Offset>(p, Data::Integers, 2);
  const DeviceMatrix<Exec, Scalar, Offset> device(A), other(B);
  const Order order = reordered ? some_order(A.rows) : Order();
  const Exec space;
  const auto f = to_me_bcrs(space, device.view(), c.precision, c.depth, options_of(c, max_blocks), true, nullptr,
                            to_device<Exec>(order));
  space.fence();
  expect_format(A, c, order, max_blocks, f);
  expect_decoded(from_me_bcrs(f), A, c.precision, true);
  update_me_bcrs(space, f, other.view(), other.values);
  space.fence();
  expect_format(B, c, order, max_blocks, f);
  expect_decoded(from_me_bcrs(f), B, c.precision, true);
  // The matrix is as it was.
  EXPECT_TRUE(same_bits(to_host(device.values), A.values));
  EXPECT_EQ(to_host(device.entries), A.entries);
  EXPECT_EQ(to_host(device.row_map), A.row_map);
}

TEST(MeBcrs, FollowsItsDefinition) {
  for (const auto& named : window_cases()) {
    SCOPED_TRACE(named.first);
    for (const MeBcrsCase& c : me_bcrs_cases()) expect_conversion<double, std::int64_t>(named.second, c, false);
  }
}
TEST(MeBcrs, UnsortedRows) {
  for (const auto& named : window_cases()) {
    SCOPED_TRACE(named.first);
    for (const MeBcrsCase& c : me_bcrs_cases()) expect_conversion<float, int>(shuffled(named.second), c, false);
  }
}
TEST(MeBcrs, RowOrder) {
  for (const auto& named : window_cases()) {
    SCOPED_TRACE(named.first);
    for (const MeBcrsCase& c : me_bcrs_cases()) {
      expect_conversion<float, int>(named.second, c, true);
      if (c.precision == Precision::TF32) expect_conversion<float, int>(shuffled(named.second), c, true);
    }
  }
}
TEST(MeBcrs, Types) {
  for (const std::string spec : {"duplicates:rows=151:longest=90", "random:rows=501:cols=997:lengths=uniform:mean=4"}) {
    SCOPED_TRACE(spec);
    const Pattern p = shuffled(generate(spec));
    for (const MeBcrsCase& c : me_bcrs_cases()) {
      expect_conversion<double, std::size_t>(p, c, true);
      expect_conversion<half_t, int>(p, c, true);
      expect_conversion<bhalf_t, int>(p, c, false);
    }
  }
}
TEST(MeBcrs, Parts) {
  for (const std::string spec : {"dense_row:rows=30:cols=5003", "ramp:n=101", "web:n=1001:longest=300",
                                 "random:rows=501:cols=997:lengths=uniform:mean=4"}) {
    SCOPED_TRACE(spec);
    for (const int max_blocks : {0, 1, 2, 3, 7, 100000}) {
      SCOPED_TRACE("max_blocks " + std::to_string(max_blocks));
      for (const MeBcrsCase& c : me_bcrs_cases()) {
        expect_conversion<float, int>(generate(spec), c, false, max_blocks);
      }
    }
  }
}

// Two windows of 8 rows: 5 column vectors in the first, 1 in the second, blocks of 4.
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

// The same bytes each time, whatever order threads come in.
TEST(MeBcrs, Deterministic) {
  const auto A = make_matrix<float, int>(shuffled(generate("web:n=3001:longest=900")), Data::Real, 1);
  const DeviceMatrix<Exec, float, int> device(A);
  const auto first = to_me_bcrs(Exec(), device.view(), Precision::FP16, 8);
  for (int run = 0; run < 3; ++run) {
    const auto f = to_me_bcrs(Exec(), device.view(), Precision::FP16, 8);
    Exec().fence();
    EXPECT_EQ(to_host(f.row_pointers), to_host(first.row_pointers));
    EXPECT_EQ(to_host(f.column_indices), to_host(first.column_indices));
    EXPECT_EQ(to_host(f.values), to_host(first.values));
    EXPECT_EQ(to_host(f.entry_slot), to_host(first.entry_slot));
  }
}

TEST(MeBcrs, BadCalls) {
  const DeviceMatrix<Exec, double, int> device(make_matrix<double, int>("diagonal", Data::Real, 1));
  const auto A = device.view();
  const Exec space;
  for (const int length : {-8, 0, 4, 32}) {
    FlashOptions o;
    o.vector_length = length;
    EXPECT_THROW(to_me_bcrs(space, A, Precision::FP16, 8, o), InvalidArgument);
  }
  for (const int depth : {-1, 0, 33}) EXPECT_THROW(to_me_bcrs(space, A, Precision::FP16, depth), InvalidArgument);
  FlashOptions o;
  o.max_blocks = -1;
  EXPECT_THROW(to_me_bcrs(space, A, Precision::FP16, 8, o), InvalidArgument);
  EXPECT_THROW(to_me_bcrs(space, A, Precision::FP16, 8, {}, true, nullptr, to_device<Exec>(Order{0, 1})),
               DimensionMismatch);
  EXPECT_THROW(to_me_bcrs(space, matrix_too_large<Exec>(), Precision::FP16, 8), NotSupported);
  const auto f = to_me_bcrs(space, A, Precision::FP16, 8);
  EXPECT_THROW(update_me_bcrs(space, f, A, to_device<Exec>(std::vector<double>(3))), DimensionMismatch);
  const DeviceMatrix<Exec, double, int> other(make_matrix<double, int>("dense:rows=3:cols=3", Data::Real, 1));
  EXPECT_THROW(update_me_bcrs(space, f, other.view(), device.values), DimensionMismatch);
  const auto fixed = to_me_bcrs(space, A, Precision::FP16, 8, {}, false);
  EXPECT_THROW(update_me_bcrs(space, fixed, A, device.values), NotSupported);
}

}  // namespace Testing
}  // namespace Tessera
