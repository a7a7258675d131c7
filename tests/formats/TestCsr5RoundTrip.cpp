// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// CSR to CSR5 and back, bit by bit; the arrays of the format against a plain construction from their definition.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "formats/csr5/Tessera_FromCsr5.hpp"
#include "formats/csr5/Tessera_ToCsr5.hpp"
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestCheck.hpp"

namespace Tessera {
namespace Testing {

using namespace Tessera::Experimental;

using Exec = Kokkos::DefaultExecutionSpace;

struct TileSize {
  int omega, sigma;
};
/// One and two words per lane (omega 32 with sigma 32), the sizes of all spaces, tiles so small that everything happens
/// at their borders.
const std::vector<TileSize>& tile_sizes() {
  static const std::vector<TileSize> all = {{2, 1}, {4, 3}, {8, 12}, {4, 16}, {8, 32}, {32, 4}, {32, 32}, {64, 7}};
  return all;
}

template <class Scalar, class Offset>
void expect_equal(const Csr5Csr<Scalar>& got, const HostMatrix<Scalar, Offset>& A) {
  EXPECT_EQ(got.rows, A.rows);
  EXPECT_EQ(got.cols, A.cols);
  EXPECT_EQ(got.row_map, std::vector<std::int64_t>(A.row_map.begin(), A.row_map.end()));
  EXPECT_EQ(got.entries, A.entries);
  EXPECT_TRUE(same_bits(got.values, A.values));
}

template <class Scalar, class Offset>
void expect_round_trip(const Pattern& p, TileSize size) {
  SCOPED_TRACE("omega " + std::to_string(size.omega) + ", sigma " + std::to_string(size.sigma));
  const auto A = make_matrix<Scalar, Offset>(p, Data::Real, 1), B = make_matrix<Scalar, Offset>(p, Data::Real, 2);
  const DeviceMatrix<Exec, Scalar, Offset> device(A), other(B);
  Csr5Options o;
  o.sigma = size.sigma;
  const Exec space;
  const auto f = Impl::csr5_build(space, device.view(), size.omega, o, nullptr);
  space.fence();
  expect_equal(from_csr5(f), A);
  csr5_fill(space, f, other.values);
  space.fence();
  expect_equal(from_csr5(f), B);
  // The matrix is as it was.
  EXPECT_TRUE(same_bits(to_host(device.values), A.values));
  EXPECT_EQ(to_host(device.entries), A.entries);
  EXPECT_EQ(to_host(device.row_map), A.row_map);
}

TEST(Csr5RoundTrip, EveryShape) {
  for (const std::string& spec : shapes()) {
    SCOPED_TRACE(spec);
    for (const TileSize& size : tile_sizes()) expect_round_trip<double, std::int64_t>(generate(spec), size);
  }
}
TEST(Csr5RoundTrip, Types) {
  const Pattern p = all_classes(300, 50);
  for (const TileSize& size : tile_sizes()) {
    expect_round_trip<double, int>(p, size);
    expect_round_trip<half_t, int>(p, size);
#ifndef TESSERA_TEST_FEWER_TYPES
    expect_round_trip<float, std::size_t>(p, size);
    expect_round_trip<bhalf_t, std::size_t>(p, size);
#endif
  }
}

TEST(Csr5RoundTrip, RowsAtBorders) {
  for (const TileSize& size : tile_sizes()) {
    int index = 0;
    for (const Pattern& p : csr5_border_cases(size.omega, size.sigma)) {
      SCOPED_TRACE("case " + std::to_string(index++));
      expect_round_trip<float, int>(p, size);
    }
  }
}

/// tile_ptr and tile_desc by their definition, without any of the conversion's ideas.
struct PlainCsr5 {
  std::vector<std::uint32_t> tile_ptr, tile_desc;
  std::vector<std::vector<std::int32_t>> displacements;  // of each tile that passes over empty rows

  template <class Matrix>
  PlainCsr5(const Matrix& A, int omega, int sigma) {
    const std::int64_t tile = omega * sigma, tiles = (A.nnz() + tile - 1) / tile;
    std::vector<int> row_of;
    for (int r = 0; r < A.rows; ++r) row_of.insert(row_of.end(), static_cast<std::size_t>(A.length(r)), r);
    const auto starts = [&](std::int64_t i) {
      return i < A.nnz() && static_cast<std::int64_t>(A.row_map[row_of[static_cast<std::size_t>(i)]]) == i;
    };
    for (std::int64_t t = 0; t < tiles; ++t) tile_ptr.push_back(row_of[static_cast<std::size_t>(t * tile)]);
    tile_ptr.push_back(static_cast<std::uint32_t>(A.rows));
    const auto bits_for = [](int n) {
      int bits = 0;
      for (int v = n - 1; v > 0; v /= 2) ++bits;
      return bits;
    };
    const int y_bits = bits_for(omega * sigma), seg_bits = bits_for(omega);
    const int packets = (y_bits + seg_bits + sigma + 31) / 32;
    displacements.resize(static_cast<std::size_t>(tiles));
    for (std::int64_t t = 0; t < tiles; ++t) {
      bool empty = false;
      for (std::uint32_t r = tile_ptr[t]; r < (tile_ptr[t + 1] & 0x7fffffffu); ++r) {
        empty = empty || A.length(static_cast<int>(r)) == 0;
      }
      std::vector<std::vector<bool>> words(static_cast<std::size_t>(omega));
      std::vector<bool> sealed(static_cast<std::size_t>(omega), false);
      int segments = 0;
      for (int lane = 0; lane < omega; ++lane) {
        const int y_offset = lane == 0 ? 0 : segments - 1;
        for (int b = y_bits - 1; b >= 0; --b) words[lane].push_back(y_offset >> b & 1);
        for (int j = 0; j < sigma; ++j) {
          const std::int64_t i = t * tile + lane * sigma + j;
          const bool start = starts(i), counted = start || (lane == 0 && j == 0);
          if (counted) ++segments;
          sealed[lane] = sealed[lane] || counted;
          if (start && i > t * tile && empty) {
            displacements[t].push_back(row_of[static_cast<std::size_t>(i)] - static_cast<int>(tile_ptr[t]) - 1);
          }
        }
      }
      for (int lane = 0; lane < omega; ++lane) {
        int seg_offset = 0;
        while (lane + seg_offset + 1 < omega && !sealed[lane + seg_offset + 1]) ++seg_offset;
        for (int b = seg_bits - 1; b >= 0; --b) words[lane].push_back(seg_offset >> b & 1);
        for (int j = 0; j < sigma; ++j) words[lane].push_back(starts(t * tile + lane * sigma + j));
        words[lane].resize(static_cast<std::size_t>(32 * packets), false);
      }
      for (int w = 0; w < packets; ++w) {
        for (int lane = 0; lane < omega; ++lane) {
          std::uint32_t word = 0;
          for (int b = 0; b < 32; ++b) word = 2 * word + (words[lane][32 * w + b] ? 1u : 0u);
          tile_desc.push_back(word);
        }
      }
      if (empty) tile_ptr[t] |= 0x80000000u;
    }
  }
};

void expect_definition(const Pattern& p, TileSize size) {
  SCOPED_TRACE("omega " + std::to_string(size.omega) + ", sigma " + std::to_string(size.sigma));
  const auto A = make_matrix<double, int>(p, Data::Real, 1);
  const DeviceMatrix<Exec, double, int> device(A);
  Csr5Options o;
  o.sigma = size.sigma;
  const auto f = Impl::csr5_build(Exec(), device.view(), size.omega, o, nullptr);
  Exec().fence();
  if (A.nnz() == 0) {
    EXPECT_EQ(f.tiles, 0);
    EXPECT_EQ(f.format_bytes(), 0u);
    return;
  }
  const PlainCsr5 plain(A, size.omega, size.sigma);
  EXPECT_EQ(to_host(f.tile_ptr), plain.tile_ptr);
  EXPECT_EQ(to_host(f.tile_desc), plain.tile_desc);
  const auto pointers = to_host(f.empty_ptr);
  const auto offsets = to_host(f.empty_offset);
  std::size_t total = 0;
  for (std::size_t t = 0; t < plain.displacements.size(); ++t) {
    const auto& wanted = plain.displacements[t];
    if (wanted.empty()) continue;
    ASSERT_LE(pointers[t] + wanted.size(), offsets.size());
    EXPECT_EQ(std::vector<std::int32_t>(offsets.begin() + pointers[t], offsets.begin() + pointers[t] + wanted.size()),
              wanted);
    total += wanted.size();
  }
  EXPECT_EQ(total, offsets.size());
  // Slot j of lane i of a full tile; the tail as it is.
  const auto values = to_host(f.values);
  const auto columns = to_host(f.columns);
  const std::int64_t tile = size.omega * size.sigma;
  EXPECT_EQ(f.full, A.nnz() / tile);
  for (std::int64_t i = 0; i < A.nnz(); ++i) {
    const std::int64_t t = i / tile, lane = i % tile / size.sigma, j = i % size.sigma;
    const auto at = static_cast<std::size_t>(t < A.nnz() / tile ? t * tile + j * size.omega + lane : i);
    ASSERT_EQ(values[at], A.values[static_cast<std::size_t>(i)]);
    ASSERT_EQ(columns[at], A.entries[static_cast<std::size_t>(i)]);
  }
}
TEST(Csr5Format, FollowsItsDefinition) {
  for (const TileSize& size : tile_sizes()) {
    int index = 0;
    for (const Pattern& p : csr5_border_cases(size.omega, size.sigma)) {
      SCOPED_TRACE("case " + std::to_string(index++));
      expect_definition(p, size);
    }
    for (const std::string spec : {"duplicates", "random:rows=1501:cols=997:lengths=uniform:mean=4", "empty",
                                   "random:rows=1501:cols=1999:lengths=power:mean=6:tail=1.3", "web:n=3001:longest=900",
                                   "dense_row:rows=3:cols=20011", "diagonal:rows=100:cols=37"}) {
      SCOPED_TRACE(spec);
      expect_definition(generate(spec), size);
    }
  }
}

// The same tile as in the comments: 2 lanes of 4 entries, rows of 3, 0, 3 and 4 entries.
TEST(Csr5Format, ByHand) {
  const DeviceMatrix<Exec, double, int> device(
      make_matrix<double, int>(pattern_of_lengths({3, 0, 3, 4}, 5), Data::Real, 1));
  Csr5Options o;
  o.sigma = 4;
  const auto f = Impl::csr5_build(Exec(), device.view(), 2, o, nullptr);
  Exec().fence();
  EXPECT_EQ(f.tiles, 2);
  EXPECT_EQ(f.full, 1);
  EXPECT_EQ(f.shape.y_bits, 3);
  EXPECT_EQ(f.shape.lane_bits, 1);
  EXPECT_EQ(f.shape.packets, 1);
  EXPECT_EQ(to_host(f.tile_ptr), (std::vector<std::uint32_t>{0x80000000u, 3, 4}));
  // y_offset 3 bits | seg_offset 1 bit | flags: row 0 starts in slot 0 and row 2 in slot 3 of lane 0, row 3 in slot 2
  // of lane 1; nothing starts in the tail.
  EXPECT_EQ(to_host(f.tile_desc), (std::vector<std::uint32_t>{0b0000'1001u << 24, 0b0010'0010u << 24, 1u << 28, 0}));
  EXPECT_EQ(to_host(f.empty_offset), (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(to_host(f.empty_row), (std::vector<std::int32_t>{1}));
  EXPECT_EQ(to_host(f.carry_end), (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(to_host(f.tail_row), (std::vector<std::int32_t>{3}));
  EXPECT_EQ(f.spans, 1);
  EXPECT_EQ(f.workspace_bytes(), 3 * sizeof(double));
}

TEST(Csr5Format, SigmaOfThePaper) {
  const auto sigma = [](int omega, std::int64_t mean) { return Impl::csr5_sigma(omega, 1000, 1000 * mean + 999); };
  EXPECT_EQ(sigma(32, 0), 4);
  EXPECT_EQ(sigma(32, 4), 4);
  EXPECT_EQ(sigma(32, 5), 5);
  EXPECT_EQ(sigma(32, 32), 32);
  EXPECT_EQ(sigma(32, 33), 32);
  EXPECT_EQ(sigma(32, 256), 32);
  EXPECT_EQ(sigma(32, 257), 6);
  EXPECT_EQ(sigma(64, 1), 4);
  EXPECT_EQ(sigma(64, 6), 6);
  EXPECT_EQ(sigma(64, 100), 7);
  EXPECT_EQ(sigma(64, 300), 4);
  EXPECT_EQ(sigma(8, 1), 12);
  EXPECT_EQ(sigma(4, 1000), 16);
  EXPECT_EQ(Impl::csr5_sigma(32, 0, 0), 4);
}

// The same bytes each time, whatever order threads come in.
TEST(Csr5Format, Deterministic) {
  const auto A = make_matrix<double, int>("circuit:n=5003:long_every=1000:long_min=800:long_max=2500", Data::Real, 1);
  const DeviceMatrix<Exec, double, int> device(A);
  const auto first = to_csr5(Exec(), device.view());
  for (int run = 0; run < 3; ++run) {
    const auto f = to_csr5(Exec(), device.view());
    Exec().fence();
    EXPECT_EQ(f.shape.omega, Impl::csr5_omega<Exec>());
    EXPECT_TRUE(same_bits(to_host(f.values), to_host(first.values)));
    EXPECT_EQ(to_host(f.tile_ptr), to_host(first.tile_ptr));
    EXPECT_EQ(to_host(f.tile_desc), to_host(first.tile_desc));
    EXPECT_EQ(to_host(f.empty_offset), to_host(first.empty_offset));
    EXPECT_EQ(to_host(f.empty_row), to_host(first.empty_row));
    EXPECT_EQ(to_host(f.carry_end), to_host(first.carry_end));
  }
}

TEST(Csr5Format, BadCalls) {
  const DeviceMatrix<Exec, double, int> device(make_matrix<double, int>("diagonal", Data::Real, 1));
  for (const int sigma : {-1, 33}) {
    Csr5Options o;
    o.sigma = sigma;
    EXPECT_THROW(to_csr5(Exec(), device.view(), o), InvalidArgument);
  }
  for (const int omega : {0, 1, 3, 128}) {
    EXPECT_THROW(Impl::csr5_build(Exec(), device.view(), omega, {}, nullptr), InvalidArgument);
  }
  const auto f = to_csr5(Exec(), device.view());
  EXPECT_THROW(csr5_fill(Exec(), f, to_device<Exec>(std::vector<double>(3))), DimensionMismatch);
}

}  // namespace Testing
}  // namespace Tessera
