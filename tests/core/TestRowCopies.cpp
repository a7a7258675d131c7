// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Copies of rows against plain loops, bit for bit, with everything around them left as it was: on the device, and the
// device's text on the host.

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "core/Tessera_LayoutCopy.hpp"
#include "core/Tessera_RowCopies.hpp"
#include "support/Tessera_TestMatrix.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultExecutionSpace;
using Impl::copy_layout;
using Impl::Dense;
using Impl::DenseBatch;
using Impl::RowCopies;

/// Gaps: elements between rows, and between heads.
struct RowsShape {
  std::int64_t heads, rows, columns, gap, head_gap, offset;
  std::int64_t stride() const { return columns + gap; }
  std::int64_t head_stride() const { return rows * stride() + head_gap; }
  std::int64_t at(std::int64_t h, std::int64_t i, std::int64_t j) const {
    return offset + h * head_stride() + i * stride() + j;
  }
  std::string text() const {
    return std::to_string(heads) + " heads of " + std::to_string(rows) + " x " + std::to_string(columns) + ", gaps " +
           std::to_string(gap) + ", " + std::to_string(head_gap) + ", offset " + std::to_string(offset);
  }
};

/// Numbers of arbitrary bits, undefined ones among them.
template <class Bits>
struct Memory {
  std::vector<Bits> before;
  Kokkos::View<Bits*, Exec> device;

  Memory(std::int64_t size, std::mt19937_64& random) : before(static_cast<std::size_t>(size)) {
    for (Bits& b : before) b = static_cast<Bits>(random());
    device = Kokkos::View<Bits*, Exec>("numbers", before.size());
    reset();
  }
  void reset() const {
    Kokkos::deep_copy(
        device, Kokkos::View<const Bits*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(before.data(), before.size()));
  }
};

/// A batch and its copy in rows of whole words, with a word of 16 bytes before and after that are nobody's.
template <class Bits>
struct BatchAndCopy {
  static constexpr std::int64_t word = 16 / sizeof(Bits);
  RowsShape s;
  std::int64_t row;  ///< elements of a row of the copy
  Memory<Bits> batch, copy;

  BatchAndCopy(const RowsShape& shape, std::int64_t more_words, std::mt19937_64& random)
      : s(shape),
        row((shape.columns + word - 1) / word * word + more_words * word),
        batch(shape.at(shape.heads, 0, 0) + word, random),
        copy(shape.heads * shape.rows * row + 2 * word, random) {}
  template <class T>
  DenseBatch<T> batch_of() const {
    return {Dense<T>{batch.device.data() + s.offset, s.rows, s.columns, s.stride(), 1}, s.head_stride()};
  }
  DenseBatch<Bits> copy_of() const {
    return {Dense<Bits>{copy.device.data() + word, s.rows, row, row, 1}, s.rows * row};
  }
  template <class F>
  void each(F f) const {
    for (std::int64_t h = 0; h < s.heads; ++h) {
      for (std::int64_t i = 0; i < s.rows; ++i) {
        for (std::int64_t j = 0; j < row; ++j)
          f(static_cast<std::size_t>(word + (h * s.rows + i) * row + j), static_cast<std::size_t>(s.at(h, i, j)),
            j < s.columns);
      }
    }
  }
  void expect_read() const {
    auto wanted = copy.before;
    each([&](std::size_t to, std::size_t from, bool there) { wanted[to] = there ? batch.before[from] : Bits(0); });
    EXPECT_EQ(to_host(copy.device), wanted) << s.text();
    EXPECT_EQ(to_host(batch.device), batch.before) << s.text();
  }
  void expect_written() const {
    auto wanted = batch.before;
    each([&](std::size_t from, std::size_t to, bool there) {
      if (there) wanted[to] = copy.before[from];
    });
    EXPECT_EQ(to_host(batch.device), wanted) << s.text();
    EXPECT_EQ(to_host(copy.device), copy.before) << s.text();
  }
};

template <bool Reads, class Bits, class Run>
void expect_copies(std::vector<BatchAndCopy<Bits>>& all, const Run& run) {
  for (const auto& one : all) {
    one.batch.reset();
    one.copy.reset();
  }
  RowCopies<Reads, 5> copies;
  for (const auto& one : all) {
    copies.add(one.template batch_of<std::conditional_t<Reads, const Bits, Bits>>(), one.copy_of(), one.s.heads);
  }
  run(copies);
  for (const auto& one : all) {
    if (Reads)
      one.expect_read();
    else
      one.expect_written();
  }
}
template <class Bits>
void expect_copies(const std::vector<RowsShape>& shapes, std::int64_t more_words = 0) {
  std::mt19937_64 random(7);
  std::vector<BatchAndCopy<Bits>> all;
  for (const RowsShape& s : shapes) all.emplace_back(s, more_words, random);
  const auto on_device = [](const auto& copies) {
    copies.run(Exec(), "copies");
    Exec().fence();
  };
  expect_copies<true>(all, on_device);
  expect_copies<false>(all, on_device);
  if constexpr (Compat::is_host_v<Exec>) {
    const auto text_of_devices = [](const auto& copies) {
      using Copies = std::decay_t<decltype(copies)>;
      for (std::int64_t n = 0; n < copies.blocks * Copies::block_threads; ++n) copies(typename Copies::OnDevice{}, n);
    };
    expect_copies<true>(all, text_of_devices);
    expect_copies<false>(all, text_of_devices);
  }
}

TEST(RowCopies, OfEveryWidth) {
  for (const std::int64_t columns : {1, 2, 3, 4, 7, 8, 9, 20, 25, 50, 64, 100, 301}) {
    for (const std::int64_t gap : {0, 1, 2, 4, 8}) {
      const std::vector<RowsShape> one{{1, 37, columns, gap, 0, 0}};
      expect_copies<std::uint16_t>(one);
      expect_copies<std::uint32_t>(one);
      expect_copies<std::uint64_t>(one);
    }
  }
}
// 2, 4, 8 bytes beyond a multiple of 16.
TEST(RowCopies, FromEveryOffset) {
  for (const std::int64_t offset : {1, 2, 4, 8}) {
    for (const std::int64_t columns : {7, 20, 64}) {
      expect_copies<std::uint16_t>({{1, 50, columns, 0, 0, offset}, {2, 19, columns, 8, offset, 0}});
      expect_copies<std::uint32_t>({{1, 50, columns, 0, 0, offset}, {2, 19, columns, 8, offset, 0}});
    }
  }
}
TEST(RowCopies, OfHeads) {
  expect_copies<std::uint16_t>({{600, 2, 3, 1, 1, 0}, {1500, 1, 8, 0, 8, 0}});  // many per block
  expect_copies<std::uint16_t>({{8, 1, 20, 0, 0, 0}, {3, 200, 20, 40, 0, 20}, {5, 33, 20, 0, 3, 0}});
  expect_copies<std::uint64_t>({{8, 1, 3, 0, 0, 0}, {3, 200, 5, 7, 1, 1}});
}
// Batches end in the middle of a block; one has two blocks to the word, one a row of several blocks.
TEST(RowCopies, OfSeveralBatches) {
  constexpr std::int64_t block = RowCopies<true, 5>::words_of_block(16);
  expect_copies<std::uint16_t>({{1, block - 1, 8, 0, 0, 0},
                                {1, block, 16, 0, 0, 8},
                                {1, 3, 2 * 8 * block + 4, 0, 0, 0},
                                {2, block + 1, 3, 0, 5, 0},
                                {1, 1, 1, 0, 0, 1}});
}
TEST(RowCopies, OfNothing) {
  expect_copies<std::uint16_t>(std::vector<RowsShape>{});
  expect_copies<std::uint16_t>({{0, 5, 20, 0, 0, 0}, {1, 0, 20, 0, 0, 0}, {1, 9, 0, 0, 0, 0}, {1, 9, 5, 0, 0, 0}});
}
// Words beyond the last one with a column, as K of a matrix unit may ask for.
TEST(RowCopies, IntoWiderRows) {
  expect_copies<std::uint16_t>({{1, 100, 9, 0, 0, 0}, {2, 10, 16, 1, 0, 0}, {1, 9, 0, 0, 0, 0}}, 2);
}

// What SpMM and SDDMM call: rows and columns, of elements whose bits are kept.
template <class T, class Bits>
void expect_layout_copy(bool columns_first) {
  std::mt19937_64 random(3);
  const std::int64_t m = 70, n = 21, ld = Dense<T>::padded(n);
  const Memory<Bits> from(m * n, random), to(m * ld, random);
  const Dense<const T> source{reinterpret_cast<const T*>(from.device.data()), m, n, columns_first ? 1 : n,
                              columns_first ? m : 1};
  copy_layout(Exec(), "copy", source, 0.0f, Dense<T>{reinterpret_cast<T*>(to.device.data()), m, ld, ld, 1});
  Exec().fence();
  std::vector<Bits> wanted(to.before.size(), 0);
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j)
      wanted[static_cast<std::size_t>(i * ld + j)] =
          from.before[static_cast<std::size_t>(columns_first ? i + j * m : i * n + j)];
  }
  EXPECT_EQ(to_host(to.device), wanted);
}
TEST(LayoutCopy, KeepsBits) {
  for (const bool columns_first : {false, true}) {
    expect_layout_copy<half_t, std::uint16_t>(columns_first);
    expect_layout_copy<bhalf_t, std::uint16_t>(columns_first);
    expect_layout_copy<float, std::uint32_t>(columns_first);
  }
}
// Rows into rows that are not copied by RowCopies: another type, or beta.
TEST(LayoutCopy, RowsWithBeta) {
  const std::int64_t m = 40, n = 11;
  const Kokkos::View<float*, Exec> from("from", m * n);
  const Kokkos::View<half_t*, Exec> to("to", m * n);
  const auto x = Kokkos::create_mirror_view(from);
  const auto y = Kokkos::create_mirror_view(to);
  for (std::int64_t i = 0; i < m * n; ++i) {
    x(i) = static_cast<float>(i % 13);
    y(i) = half_t(static_cast<float>(i % 7));
  }
  Kokkos::deep_copy(from, x);
  Kokkos::deep_copy(to, y);
  copy_layout(Exec(), "add", Dense<const float>{from.data(), m, n, n, 1}, 2.0f, Dense<half_t>{to.data(), m, n, n, 1});
  Exec().fence();
  Kokkos::deep_copy(y, to);
  for (std::int64_t i = 0; i < m * n; ++i)
    EXPECT_EQ(static_cast<float>(y(i)), static_cast<float>(i % 13 + 2 * (i % 7))) << i;
}

}  // namespace Testing
}  // namespace Tessera
