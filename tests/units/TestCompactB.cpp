// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The copy of B in TF32 at 20 bits per element: every number that TF32 has comes back as it is, others rounded.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/interface/Tessera_CompactB.hpp"

namespace Tessera {
namespace {

float of_bits(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

TEST(CompactB, EveryNumberOfTf32AtEveryPlace) {
  constexpr std::uint32_t all = 1u << 19;
  for (std::uint32_t upper = 0; upper < all; upper += CompactB::group) {
    CompactB::Group g{};
    for (int i = 0; i < CompactB::group; ++i) {
      // Neighbours that have nothing in common, at each place in turn.
      const std::uint32_t n = (upper + static_cast<std::uint32_t>(i) * 40503u) % all;
      CompactB::add(g, i, of_bits(n << 13));
    }
    for (int i = 0; i < CompactB::group; ++i) {
      const std::uint32_t n = (upper + static_cast<std::uint32_t>(i) * 40503u) % all;
      const float wanted = of_bits(n << 13), got = CompactB::get(g, i);
      if (std::isnan(wanted)) {
        ASSERT_TRUE(std::isnan(got)) << n;
      } else {
        ASSERT_EQ(std::memcmp(&wanted, &got, sizeof(got)), 0) << std::hexfloat << wanted << " became " << got;
      }
    }
  }
}

TEST(CompactB, OthersAreRoundedAndNoNumberStaysNone) {
  const float values[CompactB::group] = {
      0x1.002p0f,           0x1.003p0f,           -0x1.0011p5f, 0x1.ffffp-10f,
      of_bits(0x7f800001u), of_bits(0xff800fffu), 1e-40f,       std::numeric_limits<float>::infinity()};
  CompactB::Group g{};
  for (int i = 0; i < CompactB::group; ++i) CompactB::add(g, i, values[i]);
  for (int i = 0; i < CompactB::group; ++i) {
    if (std::isnan(values[i])) {
      EXPECT_TRUE(std::isnan(CompactB::get(g, i))) << i;  // its bits all lie beyond those that are kept
    } else {
      EXPECT_EQ(CompactB::get(g, i), round_to_tf32(values[i])) << i;
    }
  }
}

TEST(CompactB, AMatrixWithAnUnevenNumberOfColumns) {
  constexpr std::int64_t rows = 5, columns = 19, ldb = 20;
  alignas(16) float b[rows * ldb];
  for (std::int64_t n = 0; n < rows * ldb; ++n) b[n] = n % ldb < columns ? static_cast<float>(n) : std::nanf("");
  SpmmDense dense;
  dense.b = b;
  dense.ldb = ldb;
  dense.columns = columns;
  ASSERT_EQ(CompactB::bytes(rows, columns), rows * 3 * 20);
  std::vector<std::uint64_t> memory(static_cast<std::size_t>(CompactB::bytes(rows, columns)) / 8 + 3,
                                    ~std::uint64_t{0});
  auto* const first = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 15) / 16 * 16);
  const SpmmDense copy = CompactB::dense(dense, rows, first);
  EXPECT_EQ(copy.ldb, 3);
  CompactCopy writer;
  writer.from = b;
  writer.ld = ldb;
  writer.rows = rows;
  writer.columns = columns;
  writer.to = first;
  for (std::int64_t n = 0; n < rows * copy.ldb; ++n) writer.write(0, n / copy.ldb, n % copy.ldb);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < 24; ++j) {
      CompactB::Group g;
      const std::int64_t n = i * copy.ldb + j / CompactB::group;
      std::memcpy(g.upper, first + n * 16, 16);
      std::memcpy(&g.lower, first + copy.lower + n * 4, 4);
      EXPECT_EQ(CompactB::get(g, static_cast<int>(j % CompactB::group)), j < columns ? b[i * ldb + j] : 0.0f);
    }
  }
  EXPECT_TRUE(CompactB::fits(1 << 20, 128));
  EXPECT_FALSE(CompactB::fits(1 << 28, 64));
}

}  // namespace
}  // namespace Tessera
