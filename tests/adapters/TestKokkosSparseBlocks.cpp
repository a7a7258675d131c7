// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Block matrices: BsrMatrix where the version has it, else 3.4's BlockCrsMatrix. The cases are those of Kokkos Kernels'
// Test_Sparse_spmv_bsr.hpp (4.6).

#include <exception>
#include <optional>

#include "adapters/KokkosSparseFixture.hpp"
#if __has_include(<KokkosSparse_BsrMatrix.hpp>)
#include <KokkosSparse_BsrMatrix.hpp>
#define TESSERA_TEST_BSR
#else
#include <KokkosSparse_BlockCrsMatrix.hpp>
#endif

namespace Tessera {
namespace Testing {

namespace Blocks {
// The name moved from Experimental to KokkosSparse.
using namespace KokkosSparse;
using namespace KokkosSparse::Experimental;
#ifdef TESSERA_TEST_BSR
template <class S, class O, class F>
using Type = BsrMatrix<S, O, DeviceOf<Kokkos::DefaultExecutionSpace>, void, F>;
#else
template <class S, class O, class F>
using Type = BlockCrsMatrix<S, O, DeviceOf<Kokkos::DefaultExecutionSpace>, void, F>;
#endif
}  // namespace Blocks

/// Number (i, j) of stored block k.
inline double block_number(Data data, std::uint64_t seed, int side, std::int64_t k, int i, int j) {
  return number(data, seed, static_cast<std::uint64_t>((k * side + i) * side + j));
}

/// Sorted columns without repetition, of which the first are in the first rows, so that there are empty rows, too.
inline Pattern block_pattern(int rows, int cols) {
  Pattern p;
  p.rows = rows;
  p.cols = cols;
  p.row_map.push_back(0);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < cols; ++j) {
      if (i % 4 != 3 && number(Data::Real, 3, static_cast<std::uint64_t>(i * cols + j)) < -0.5) p.entries.push_back(j);
    }
    p.row_map.push_back(static_cast<std::int64_t>(p.entries.size()));
  }
  return p;
}

/// The same matrix written out by plain loops.
template <class S>
HostMatrix<S> written_out(const Pattern& p, int side, Data data, std::uint64_t seed) {
  HostMatrix<S> A;
  A.rows = static_cast<int>(p.rows) * side;
  A.cols = static_cast<int>(p.cols) * side;
  A.row_map.push_back(0);
  for (std::int64_t block_row = 0; block_row < p.rows; ++block_row) {
    for (int i = 0; i < side; ++i) {
      for (std::int64_t k = p.row_map[block_row]; k < p.row_map[block_row + 1]; ++k) {
        for (int j = 0; j < side; ++j) {
          A.entries.push_back(p.entries[k] * side + j);
          A.values.push_back(as<S>(block_number(data, seed, side, k, i, j)));
        }
      }
      A.row_map.push_back(static_cast<OffsetOf<S>>(A.entries.size()));
    }
  }
  return A;
}

template <class Block>
struct FillBlocks {
  Block A;
  Kokkos::View<typename Block::non_const_value_type*, typename Block::device_type> numbers;  // block by block
  KOKKOS_INLINE_FUNCTION void operator()(const int row) const {
    const auto to = A.block_row(row);
    const int side = static_cast<int>(A.blockDim());
    for (int k = 0; k < static_cast<int>(to.length); ++k) {
      for (int i = 0; i < side; ++i) {
        for (int j = 0; j < side; ++j) {
          to.local_block_value(k, i, j) = numbers(((A.graph.row_map(row) + k) * side + i) * side + j);
        }
      }
    }
  }
};

template <class Block>
void fill(const Block& A, Data data, std::uint64_t seed) {
  using S = typename Block::non_const_value_type;
  using Exec = typename Block::execution_space;
  const auto side = static_cast<int>(A.blockDim());
  std::vector<S> all;
  for (std::int64_t k = 0; k < static_cast<std::int64_t>(A.graph.entries.extent(0)); ++k) {
    for (int i = 0; i < side; ++i) {
      for (int j = 0; j < side; ++j) all.push_back(as<S>(block_number(data, seed, side, k, i, j)));
    }
  }
  Kokkos::parallel_for("fill", Kokkos::RangePolicy<Exec>(0, static_cast<int>(A.numRows())),
                       FillBlocks<Block>{A, to_device<Exec>(all)});
  Exec().fence();
}

template <class Block>
Block make_blocks(const Pattern& p, int side, Data data, std::uint64_t seed) {
  using Types = Impl::MatrixTypes<Block>;
  using Exec = typename Block::execution_space;
  using Graph = std::decay_t<decltype(std::declval<Block>().graph)>;
  const Graph graph(to_device<Exec>(converted<typename Types::ordinal>(p.entries)),
                    to_device<Exec>(converted<typename Types::offset>(p.row_map)));
  const typename Block::values_type values("values", p.entries.size() * side * side);
  const Block A("blocks", static_cast<typename Types::ordinal>(p.cols), values, graph,
                static_cast<typename Types::ordinal>(side));
  fill(A, data, seed);
  return A;
}

template <class Types>
class KokkosSparseBlocks : public ::testing::Test {
 public:
  using Exec = Kokkos::DefaultExecutionSpace;
  using S = typename Types::scalar;
  using Block = Blocks::Type<S, typename Types::ordinal, typename Types::offset>;

  static void products(const Pattern& p, int side, Data data) {
    SCOPED_TRACE(std::to_string(p.rows) + " x " + std::to_string(p.cols) + " blocks of side " + std::to_string(side));
    const auto A = written_out<S>(p, side, data, 5), T = transposed(A);
    const auto blocks = make_blocks<Block>(p, side, data, 5);
    SpmvHandle<Block> handle;
    const bool exact = data == Data::Integers;
    for (const std::string mode : {"N", "T", "C", "H"}) {
      const auto& op = turns(mode) ? T : A;
      for (const double alpha : {0.0, 1.0, -1.0, exact ? 2.5 : 3.7}) {
        for (const double beta : {0.0, 1.0, -1.0, -1.5}) {
          const Scaling s{wide(as<S>(alpha)), wide(as<S>(beta))};
          const auto x = numbers<S>(op.cols, data, 6), y = numbers<S>(op.rows, data, 7);
          const auto dx = to_device<Exec>(x), once = to_device<Exec>(y), kept = to_device<Exec>(y);
          Tessera::spmv(mode.c_str(), s.alpha, blocks, dx, s.beta, once);
          Tessera::spmv(&handle, mode.c_str(), s.alpha, blocks, dx, s.beta, kept);
          EXPECT_TRUE(agrees<S>(op, s, x, y, to_host(once), exact)) << mode;
          EXPECT_TRUE(agrees<S>(op, s, x, y, to_host(kept), exact)) << mode << " through the handle";
#ifdef TESSERA_TEST_BSR
          const auto theirs = to_device<Exec>(y);
          KokkosSparse::spmv(mode.c_str(), S(s.alpha), blocks, dx, S(s.beta), theirs);
          Exec().fence();
          EXPECT_TRUE(agrees<S>(op, s, x, y, to_host(theirs), exact)) << mode << " theirs";
#endif
          if (alpha == 0 || beta == -1) continue;  // enough for matrices
          for (const int columns : {1, 7}) {
            const auto b = numbers<S>(static_cast<std::int64_t>(op.cols) * columns, data, 8);
            const auto c = numbers<S>(static_cast<std::int64_t>(op.rows) * columns, data, 9);
            const DenseOperand<Exec, S, ColumnMajor> db(b, op.cols, columns, 0);
            const DenseOperand<Exec, S, RowMajor> dc(c, op.rows, columns, 0);
            Tessera::spmv(Exec(), &handle, mode.c_str(), s.alpha, blocks, db.view(), s.beta, dc.view());
            Exec().fence();
            EXPECT_TRUE(agrees_dense<S>(op, columns, s, b, c, dc.read(), exact)) << mode << ", " << columns;
          }
        }
      }
    }
  }
};
// Products of types that the library holds compiled: what other ordinals do, TestKokkosSparseOrdinals.cpp has.
using BlockTypes = ::testing::Types<TypesOf<double, int, std::size_t>, TypesOf<float, int, int>>;
TYPED_TEST_SUITE(KokkosSparseBlocks, BlockTypes);
template <class Types>
class KokkosSparseBlockCopies : public KokkosSparseBlocks<Types> {};
using CopiedTypes = ::testing::Types<TypesOf<double, int, std::size_t>, TypesOf<float, std::int64_t, int>>;
TYPED_TEST_SUITE(KokkosSparseBlockCopies, CopiedTypes);

// test_spmv_random, test_spm_mv_random
TYPED_TEST(KokkosSparseBlocks, RandomMatrices) {
  for (const auto& shape : {std::make_pair(10, 10), std::make_pair(10, 50), std::make_pair(50, 10)}) {
    for (const int side : {1, 2, 5, 9}) this->products(block_pattern(shape.first, shape.second), side, Data::Real);
  }
  this->products(block_pattern(11, 499), 7, Data::Integers);
}
// test_spmv_corner_cases, test_spm_mv_corner_cases
TYPED_TEST(KokkosSparseBlocks, CornerCases) {
  for (const auto& shape : {std::make_pair(0, 0), std::make_pair(0, 1), std::make_pair(1, 0)}) {
    for (const int side : {1, 5}) this->products(block_pattern(shape.first, shape.second), side, Data::Integers);
  }
}

// To CSR, number for number; and back by Kokkos Kernels' own constructor.
TYPED_TEST(KokkosSparseBlockCopies, RoundTrip) {
  using Exec = Kokkos::DefaultExecutionSpace;
  using Block = typename TestFixture::Block;
  for (const int side : {1, 2, 3, 4, 7, 16, 33}) {
    SCOPED_TRACE(side);
    const Pattern p = block_pattern(21, 17);
    const auto wanted = written_out<typename TestFixture::S>(p, side, Data::Real, 5);
    const auto blocks = make_blocks<Block>(p, side, Data::Real, 5);
    const auto crs = to_crs_matrix(Exec(), blocks);
    Exec().fence();
    EXPECT_EQ(crs.numRows(), 21 * side);
    EXPECT_EQ(crs.numCols(), 17 * side);
    EXPECT_EQ(converted<std::int64_t>(to_host(crs.graph.row_map)), converted<std::int64_t>(wanted.row_map));
    EXPECT_EQ(converted<int>(to_host(crs.graph.entries)), wanted.entries);
    EXPECT_EQ(to_host(crs.values), wanted.values);
    const Block back(crs, blocks.blockDim());
    EXPECT_EQ(back.blockDim(), side);
    EXPECT_EQ(back.numCols(), 17);
    EXPECT_EQ(to_host(back.graph.row_map), to_host(blocks.graph.row_map));
    EXPECT_EQ(to_host(back.graph.entries), to_host(blocks.graph.entries));
    EXPECT_EQ(to_host(back.values), to_host(blocks.values));
  }
}

TYPED_TEST(KokkosSparseBlocks, NewValues) {
  using Exec = Kokkos::DefaultExecutionSpace;
  using S = typename TestFixture::S;
  const Pattern p = block_pattern(21, 17);
  const auto blocks = make_blocks<typename TestFixture::Block>(p, 5, Data::Integers, 5);
  SpmvHandle<typename TestFixture::Block> handle;
  for (const std::uint64_t seed : {5, 6, 7}) {
    if (seed != 5) {
      fill(blocks, Data::Integers, seed);
      handle.update_values(blocks);
    }
    const auto A = written_out<S>(p, 5, Data::Integers, seed);
    for (const std::string mode : {"N", "T"}) {
      const auto op = turns(mode) ? transposed(A) : A;
      const auto x = numbers<S>(op.cols, Data::Integers, 6), y = numbers<S>(op.rows, Data::Integers, 7);
      const auto dy = to_device<Exec>(y);
      Tessera::spmv(&handle, mode.c_str(), 2, blocks, to_device<Exec>(x), 1, dy);
      EXPECT_TRUE(agrees<S>(op, {2, 1}, x, y, to_host(dy), true)) << mode << seed;
      const auto b = numbers<S>(op.cols * 3, Data::Integers, 8), c = numbers<S>(op.rows * 3, Data::Integers, 9);
      const DenseOperand<Exec, S, ColumnMajor> db(b, op.cols, 3, 0), dc(c, op.rows, 3, 0);
      Tessera::spmm(&handle, mode.c_str(), 2, blocks, db.view(), 1, dc.view());
      EXPECT_TRUE(agrees_dense<S>(op, 3, {2, 1}, b, c, dc.read(), true)) << mode << seed;
    }
  }
  // Vectors meet the blocks as they lie.
  ASSERT_NE(handle.spmv_plan(), nullptr);
  EXPECT_EQ(handle.spmv_plan()->statistics().algorithm, "bsr");
  EXPECT_EQ(handle.spmv_plan()->format_bytes(), 0u);
  ASSERT_NE(handle.spmv_plan(true), nullptr);
  EXPECT_EQ(handle.spmv_plan(true)->statistics().algorithm, "bsr");
}

TYPED_TEST(KokkosSparseBlocks, Refusals) {
  using Exec = Kokkos::DefaultExecutionSpace;
  using Block = typename TestFixture::Block;
  using Ordinal = typename Impl::MatrixTypes<Block>::ordinal;
  using S = typename TestFixture::S;
  const auto good = make_blocks<Block>(block_pattern(4, 6), 3, Data::Integers, 5);
  const auto with = [&](Ordinal cols, Ordinal side, std::size_t values) {
    return Block("bad", cols, typename Block::values_type("values", values), good.graph, side);
  };
  const std::size_t numbers_in = good.values.extent(0);
  const auto y = to_device<Exec>(std::vector<S>(12, S(77)));
  const auto x = to_device<Exec>(std::vector<S>(18, S(1)));
  const auto expect_refusal = [&](ErrorCode code, const std::vector<std::string>& parts, const auto& call) {
    try {
      call();
      ADD_FAILURE() << "was accepted";
    } catch (const Error& e) {
      const std::string message = e.what();
      EXPECT_EQ(static_cast<int>(e.code()), static_cast<int>(code)) << message;
      for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message;
    }
    EXPECT_EQ(to_host(y), std::vector<S>(12, S(77)));
  };
  const auto expect_bad = [&](ErrorCode code, const std::vector<std::string>& parts, Ordinal cols, Ordinal side,
                              std::size_t values) {
    std::optional<Block> bad;
    try {
      bad.emplace(with(cols, side, values));
    } catch (const std::exception&) {
      return;  // later versions refuse some of them themselves
    }
    expect_refusal(code, parts, [&] { to_crs_matrix(Exec(), *bad); });
    expect_refusal(code, {}, [&] { Tessera::spmv("N", 1, *bad, x, 0, y); });
  };
  expect_bad(ErrorCode::InvalidArgument, {"side 0"}, 6, 0, numbers_in);
  expect_bad(ErrorCode::InvalidArgument, {"side -3"}, 6, -3, numbers_in);
  expect_bad(ErrorCode::InvalidArgument, {"-6 blocks"}, -6, 3, numbers_in);
  expect_bad(ErrorCode::DimensionMismatch, {std::to_string(numbers_in - 1), std::to_string(numbers_in)}, 6, 3,
             numbers_in - 1);
  expect_refusal(ErrorCode::InvalidArgument, {"2^31 - 1"},
                 [&] { to_crs_matrix(Exec(), with(6, 1000000000, numbers_in)); });
  expect_refusal(ErrorCode::DimensionMismatch, {"12 x 18", "x is 12 x 1"},
                 [&] { Tessera::spmv("N", 1, good, y, 0, y); });
  SpmvHandle<Block> handle;
  Tessera::spmv(&handle, "N", 1, good, x, 0, to_device<Exec>(std::vector<S>(12, S(1))));
  const auto twin = make_blocks<Block>(block_pattern(4, 6), 3, Data::Integers, 5);
  expect_refusal(ErrorCode::StalePlan, {"4 x 6", "other arrays"},
                 [&] { Tessera::spmv(&handle, "N", 1, twin, x, 0, y); });
}

}  // namespace Testing
}  // namespace Tessera
