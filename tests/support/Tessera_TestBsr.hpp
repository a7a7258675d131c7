// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_BSR_HPP
#define TESSERA_TEST_BSR_HPP

#include <limits>
#include <string>
#include <vector>

#include "Tessera_BsrSpmv.hpp"
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestCheck.hpp"

/// \file
/// Block matrices, and what every product with them must pass, whoever executes it. The reference is the matrix written
/// out by plain loops.

namespace Tessera {
namespace Testing {

/// Number (i, j) of stored block k.
inline double block_number(Data data, std::uint64_t seed, int block, std::int64_t k, int i, int j) {
  return number(data, seed, static_cast<std::uint64_t>((k * block + i) * block + j));
}

/// Rows of 0 to 40 blocks, ascending; every fourth row is empty.
inline Pattern block_pattern(int rows, int cols, int longest) {
  return pattern_of_rows(rows, cols, [&](std::int64_t i, std::vector<int>& to) {
    if (i % 4 == 3) return;
    const int length = static_cast<int>((7 * i + 3) % (longest + 1));
    for (int k = 0; k < length && k < cols; ++k) to.push_back(static_cast<int>((3 * k + i) % cols));
  });
}

template <class Scalar, class Offset = OffsetOf<Scalar>>
struct HostBlocks {
  Pattern pattern;
  int block = 1;
  BlockOrder order = BlockOrder::RowMajor;
  std::vector<Scalar> values;

  HostBlocks(const Pattern& p, int side, BlockOrder numbers_in, Data data, std::uint64_t seed)
      : pattern(p), block(side), order(numbers_in), values(p.entries.size() * side * side) {
    for (std::int64_t row = 0; row < p.rows; ++row) {
      const std::int64_t first = p.row_map[row], blocks = p.row_map[row + 1] - first;
      for (std::int64_t k = 0; k < blocks; ++k) {
        for (int i = 0; i < side; ++i) {
          for (int j = 0; j < side; ++j) {
            const std::int64_t in_row = order == BlockOrder::RowMajor      ? (k * side + i) * side + j
                                        : order == BlockOrder::ColumnMajor ? (k * side + j) * side + i
                                                                           : (i * blocks + k) * side + j;
            values[first * side * side + in_row] = as<Scalar>(block_number(data, seed, side, first + k, i, j));
          }
        }
      }
    }
  }

  /// As compressed rows.
  HostMatrix<Scalar, Offset> written_out(Data data, std::uint64_t seed) const {
    HostMatrix<Scalar, Offset> A;
    A.rows = static_cast<int>(pattern.rows) * block;
    A.cols = static_cast<int>(pattern.cols) * block;
    A.row_map.push_back(0);
    for (int row = 0; row < A.rows; ++row) {
      for (std::int64_t k = pattern.row_map[row / block]; k < pattern.row_map[row / block + 1]; ++k) {
        for (int j = 0; j < block; ++j) {
          A.entries.push_back(pattern.entries[k] * block + j);
          A.values.push_back(as<Scalar>(block_number(data, seed, block, k, row % block, j)));
        }
      }
      A.row_map.push_back(static_cast<Offset>(A.entries.size()));
    }
    return A;
  }
};

/// In the memory of an execution space. `skipped`: numbers before the first one, so that its address is no multiple of
/// more than a number.
template <class Exec, class Scalar, class Offset = OffsetOf<Scalar>>
struct DeviceBlocks {
  using Bsr = BsrView<Scalar, int, Offset, DeviceOf<Exec>>;

  explicit DeviceBlocks(const HostBlocks<Scalar, Offset>& A, std::size_t skipped = 0)
      : block(A.block), order(A.order), rows(static_cast<int>(A.pattern.rows)), cols(static_cast<int>(A.pattern.cols)) {
    row_map = to_device<Exec>(std::vector<Offset>(A.pattern.row_map.begin(), A.pattern.row_map.end()));
    entries = to_device<Exec>(A.pattern.entries);
    all = DeviceVector<Exec, Scalar>("values", skipped + A.values.size());
    values = Kokkos::subview(all, std::make_pair(skipped, all.extent(0)));
    copy_to(A.values, values);
  }
  Bsr view() const { return bsr_view(rows, cols, block, row_map, entries, values, order); }

  int block;
  BlockOrder order;
  int rows, cols;
  DeviceVector<Exec, Offset> row_map;
  DeviceVector<Exec, int> entries;
  DeviceVector<Exec, Scalar> all, values;
};

template <class Exec, class Scalar, class Offset = OffsetOf<Scalar>>
class BsrSuite {
 public:
  using Blocks = HostBlocks<Scalar, Offset>;
  using Device = DeviceBlocks<Exec, Scalar, Offset>;
  using Plan = SpmvPlan<typename Device::Bsr>;

  explicit BsrSuite(Backend backend) {
    options.backend = backend;
    options.fallback = false;
    options.prepare_transpose = true;
  }
  SpmvOptions options;

  /// A x and A^T x with vectors that are aligned, that are not, and with strides.
  void expect(const Plan& plan, const Blocks& blocks, Data data, std::uint64_t seed, Scaling s) const {
    const auto A = blocks.written_out(data, seed), T = transposed(A);
    const bool exact = data == Data::Integers;
    for (const Op op : {Op::NoTrans, Op::Trans}) {
      SCOPED_TRACE(op == Op::NoTrans ? "A" : "A^T");
      const auto& matrix = op == Op::NoTrans ? A : T;
      const auto x = numbers<Scalar>(matrix.cols, data, 21), y = numbers<Scalar>(matrix.rows, data, 22);
      EXPECT_TRUE(agrees<Scalar>(matrix, s, x, y, product<Contiguous>(plan, op, s, x, y), exact));
      EXPECT_TRUE(agrees<Scalar>(matrix, s, x, y, product<Strided>(plan, op, s, x, y), exact));
      const auto dx = to_device<Exec>(x), dy = to_device<Exec>(y);
      plan.apply(Exec(), op, s.alpha, dx, s.beta, dy);
      Exec().fence();
      EXPECT_TRUE(agrees<Scalar>(matrix, s, x, y, to_host(dy), exact));
    }
  }
  void expect(const Pattern& p, int block, BlockOrder order, Data data, Scaling s, std::size_t skipped = 0) const {
    SCOPED_TRACE(std::to_string(p.rows) + " x " + std::to_string(p.cols) + " blocks of side " + std::to_string(block) +
                 ", order " + std::to_string(static_cast<int>(order)));
    const Blocks blocks(p, block, order, data, 5);
    const Device device(blocks, skipped);
    const Plan plan(Exec(), device.view(), options);
    EXPECT_FALSE(plan.statistics().fallback_taken);
    expect(plan, blocks, data, 5, s);
  }

  /// Every side that has a kernel of its own, and those between; rows shorter and longer than a batch.
  void every_side(const std::vector<int>& sides) const {
    for (const int block : sides) {
      const int rows = block > 8 ? 10 : 26;
      for (const BlockOrder order : {BlockOrder::RowMajor, BlockOrder::ColumnMajor, BlockOrder::BlockRow}) {
        if (fewer_cases && (block + static_cast<int>(order)) % 3 != 0) continue;  // one order per side
        expect(block_pattern(rows, 31, 40), block, order, Data::Integers, {2.5, -1});
        expect(block_pattern(rows / 2, 43, 9), block, order, Data::Real, {});
      }
      expect(block_pattern(9, 31, 20), block, BlockOrder::RowMajor, Data::Real, {-1, 1}, 1);
    }
  }
  /// More block rows than a launch has waves at once, so that lanes are dealt out in the other way.
  void many_rows(int rows) const {
    for (const int block : {1, 2, 3, 4, 7})
      expect(block_pattern(rows, 101, 17), block, BlockOrder::RowMajor, Data::Real, {});
  }
  /// Rows of up to 70 blocks, which NVIDIA's devices stage in shared memory: a wave has several block rows, or a row
  /// several pieces, which begin anywhere in a word, and values that are not finite stay in their row.
  void long_rows(int rows, const std::vector<int>& sides) const {
    for (const int block : sides) {
      const Pattern p = block_pattern(rows, 101, 70);
      expect(p, block, BlockOrder::RowMajor, Data::Real, {2.5, -1});
      Blocks blocks(p, block, BlockOrder::RowMajor, Data::Integers, 5);
      auto A = blocks.written_out(Data::Integers, 5);
      for (std::int64_t row = 1; row < rows; row += 3) {
        const std::int64_t first = p.row_map[row];
        if (first == p.row_map[row + 1]) continue;
        blocks.values[first * block * block] = std::numeric_limits<Scalar>::infinity();
        A.values[A.row_map[row * block]] = std::numeric_limits<Scalar>::infinity();
      }
      const Device device(blocks);
      const Plan plan(Exec(), device.view(), options);
      const auto x = numbers<Scalar>(A.cols, Data::Integers, 21), y = numbers<Scalar>(A.rows, Data::Integers, 22);
      EXPECT_TRUE(agrees<Scalar>(A, {1, 2}, x, y, product(plan, {1, 2}, x, y), true)) << block;
    }
  }
  void corner_cases() const {
    for (const auto& [rows, cols] :
         {std::make_pair(0, 0), std::make_pair(0, 3), std::make_pair(3, 0), std::make_pair(1, 1)}) {
      for (const int block : {1, 3, 8})
        expect(block_pattern(rows, cols, 3), block, BlockOrder::RowMajor, Data::Integers, {1, 1});
    }
  }
  /// beta = 0 reads no y, alpha = 0 no x; x that no block meets is not read either.
  void bad_numbers() const {
    for (const int block : {2, 3, 7, 8}) {
      SCOPED_TRACE(block);
      const Blocks blocks(block_pattern(37, 29, 11), block, BlockOrder::RowMajor, Data::Integers, 5);
      const auto A = blocks.written_out(Data::Integers, 5);
      const Device device(blocks);
      const Plan plan(Exec(), device.view(), options);
      auto x = numbers<Scalar>(A.cols, Data::Integers, 21);
      const std::vector<Scalar> bad(static_cast<std::size_t>(A.rows), std::numeric_limits<Scalar>::quiet_NaN());
      EXPECT_TRUE(agrees<Scalar>(A, {-1, 0}, x, bad, product(plan, {-1, 0}, x, bad), true));
      const auto y = numbers<Scalar>(A.rows, Data::Integers, 22);
      const std::vector<Scalar> bad_x(x.size(), std::numeric_limits<Scalar>::quiet_NaN());
      EXPECT_TRUE(agrees<Scalar>(A, {0, 2}, x, y, product(plan, {0, 2}, bad_x, y), true));
      // Infinite in one block's columns: in those rows alone.
      for (int j = 0; j < block; ++j) x[5 * block + j] = std::numeric_limits<Scalar>::infinity();
      EXPECT_TRUE(agrees<Scalar>(A, {1, 0}, x, bad, product(plan, {1, 0}, x, bad), true));
    }
  }
  void new_values() const {
    for (const int block : {3, 4}) {
      for (const BlockOrder order : {BlockOrder::RowMajor, BlockOrder::BlockRow}) {
        const Pattern p = block_pattern(21, 17, 9);
        const Blocks first(p, block, order, Data::Integers, 5), second(p, block, order, Data::Integers, 6);
        const Device device(first), other(second);
        Plan plan(Exec(), device.view(), options);
        expect(plan, first, Data::Integers, 5, {});
        plan.update_values(Exec(), other.values);
        expect(plan, second, Data::Integers, 6, {});
        EXPECT_THROW(plan.update_values(Exec(), other.view()), StalePlan);
        plan.update_values(Exec(), device.view());
        expect(plan, first, Data::Integers, 5, {});
      }
    }
  }
  /// Columns in one call are bitwise those of calls of their own.
  void several_vectors() const {
    const Blocks blocks(block_pattern(21, 17, 9), 3, BlockOrder::RowMajor, Data::Real, 5);
    const Device device(blocks);
    const Plan plan(Exec(), device.view(), options);
    const auto x = numbers<Scalar>(3 * 17 * 5, Data::Real, 6);
    const Kokkos::View<Scalar**, Kokkos::LayoutLeft, DeviceOf<Exec>> X("X", 3 * 17, 5), Y("Y", 3 * 21, 5);
    copy_to(x, DeviceVector<Exec, Scalar>(X.data(), x.size()));
    plan.apply(Exec(), X, Y);
    Exec().fence();
    const auto all = to_host(DeviceVector<Exec, Scalar>(Y.data(), Y.span()));
    for (std::size_t j = 0; j < 5; ++j) {
      const DeviceVector<Exec, Scalar> y("y", 3 * 21);
      plan.apply(Exec(), DeviceVector<Exec, Scalar>(X.data() + j * 3 * 17, 3 * 17), y);
      Exec().fence();
      EXPECT_TRUE(same_bits(to_host(y), std::vector<Scalar>(all.begin() + j * 63, all.begin() + (j + 1) * 63)));
    }
  }
};

}  // namespace Testing
}  // namespace Tessera

#endif
