// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_KOKKOSSPARSE_FIXTURE_HPP
#define TESSERA_TEST_KOKKOSSPARSE_FIXTURE_HPP

#include <gtest/gtest.h>

#include <KokkosSparse_CrsMatrix.hpp>
#include <KokkosSparse_spmv.hpp>

#include "adapters/Tessera_KokkosSparse.hpp"
#include "support/Tessera_TestSpmm.hpp"

/// \file
/// Matrices of Kokkos Kernels for the tests, and one product compared three ways: ours without a handle, ours through a
/// handle, theirs; each against plain loops, and all of them with each other where numbers make every order exact.
/// Theirs is asked for the types and the layout that its library holds compiled: other types would be compiled here,
/// for minutes, and could only repeat what plain loops say.

namespace Tessera {
namespace Testing {

template <class S, class O, class F>
struct TypesOf {
  using scalar = S;
  using ordinal = O;
  using offset = F;
};

template <class S, class O = int, class F = std::size_t>
using TheirMatrix = KokkosSparse::CrsMatrix<S, O, DeviceOf<Kokkos::DefaultExecutionSpace>, void, F>;

template <class To, class From>
std::vector<To> converted(const std::vector<From>& from) {
  std::vector<To> to;
  to.reserve(from.size());
  for (const From& v : from) to.push_back(static_cast<To>(v));
  return to;
}

template <class Matrix, class Scalar, class Offset>
Matrix their_matrix(const HostMatrix<Scalar, Offset>& A) {
  using Types = Impl::MatrixTypes<Matrix>;
  using Exec = typename Types::device::execution_space;
  return Matrix("theirs", static_cast<typename Types::ordinal>(A.rows), static_cast<typename Types::ordinal>(A.cols),
                static_cast<typename Types::offset>(A.nnz()), to_device<Exec>(A.values),
                to_device<Exec>(converted<typename Types::offset>(A.row_map)),
                to_device<Exec>(converted<typename Types::ordinal>(A.entries)));
}

/// What kk_generate_sparse_matrix makes: rows of nnz / rows entries, give or take variance / 2, in a band around the
/// diagonal that wraps. (Its place and its random numbers differ between versions of Kokkos Kernels.)
inline Pattern banded(int rows, int cols, long long nnz, int bandwidth, int variance) {
  Pattern p;
  p.rows = rows;
  p.cols = cols;
  p.row_map.push_back(0);
  std::uint64_t draw = 0;
  const auto half = [&] { return number(Data::Real, 17, draw++) / 2; };
  for (int i = 0; i < rows; ++i) {
    const int length = std::min(cols, std::max(0, static_cast<int>(nnz / rows + std::lround(half() * variance))));
    for (int k = 0; k < length; ++k) {
      const int column = i + static_cast<int>(half() * bandwidth);
      p.entries.push_back((column % cols + cols) % cols);
    }
    p.row_map.push_back(static_cast<std::int64_t>(p.entries.size()));
  }
  return p;
}

inline bool turns(const std::string& mode) { return mode == "T" || mode == "H"; }

/// One matrix in both worlds.
template <class Types>
class BothWorlds {
 public:
  using S = typename Types::scalar;
  using Exec = Kokkos::DefaultExecutionSpace;
  using Matrix = TheirMatrix<S, typename Types::ordinal, typename Types::offset>;
  static constexpr bool in_their_library = std::is_same_v<S, double> && std::is_same_v<typename Types::ordinal, int> &&
                                           std::is_same_v<typename Types::offset, std::size_t>;

  BothWorlds(const Pattern& p, Data data, SPMVAlgorithm algorithm = SPMV_DEFAULT)
      : exact_(data == Data::Integers),
        data_(data),
        A_(make_matrix<S>(p, data, 5)),
        T_(transposed(A_)),
        matrix_(their_matrix<Matrix>(A_)),
        handle_(algorithm) {}

  const Matrix& matrix() const { return matrix_; }
  SpmvHandle<Matrix>& handle() { return handle_; }

  void vectors(const std::string& mode, Scaling s) {
    SCOPED_TRACE("mode " + mode);
    const auto& op = turns(mode) ? T_ : A_;
    const auto x = numbers<S>(op.cols, data_, 6), y = numbers<S>(op.rows, data_, 7);
    const auto dx = to_device<Exec>(x), once = to_device<Exec>(y), kept = to_device<Exec>(y);
    Tessera::spmv(mode.c_str(), s.alpha, matrix_, dx, s.beta, once);
    Tessera::spmv(&handle_, mode.c_str(), s.alpha, matrix_, dx, s.beta, kept);
    Exec().fence();
    EXPECT_TRUE(agrees<S>(op, s, x, y, to_host(once), exact_));
    EXPECT_TRUE(agrees<S>(op, s, x, y, to_host(kept), exact_)) << "through the handle";
    if constexpr (in_their_library) {
      const auto theirs = to_device<Exec>(y);
      KokkosSparse::spmv(mode.c_str(), S(s.alpha), matrix_, dx, S(s.beta), theirs);
      Exec().fence();
      EXPECT_TRUE(agrees<S>(op, s, x, y, to_host(theirs), exact_)) << "theirs";
      if (exact_) {
        EXPECT_EQ(to_host(once), to_host(theirs));
        EXPECT_EQ(to_host(kept), to_host(theirs));
      }
    }
    if (s.beta != 0) return;
    auto bad = y;
    for (std::size_t i = 0; i < bad.size(); i += 19) bad[i] = std::numeric_limits<S>::quiet_NaN();
    copy_to(bad, once);
    Tessera::spmv(mode.c_str(), s.alpha, matrix_, dx, 0, once);
    copy_to(bad, kept);
    Tessera::spmv(&handle_, mode.c_str(), s.alpha, matrix_, dx, 0, kept);
    Exec().fence();
    EXPECT_TRUE(agrees<S>(op, s, x, bad, to_host(once), exact_)) << "beta = 0 and a y that is not a number";
    EXPECT_TRUE(agrees<S>(op, s, x, bad, to_host(kept), exact_)) << "beta = 0, through the handle";
  }

  template <class FormX, class FormY>
  void matrices(const std::string& mode, Scaling s, int columns) {
    SCOPED_TRACE("mode " + mode + ", " + std::to_string(columns) + " columns");
    const auto& op = turns(mode) ? T_ : A_;
    const auto x = numbers<S>(static_cast<std::int64_t>(op.cols) * columns, data_, 6);
    const auto y = numbers<S>(static_cast<std::int64_t>(op.rows) * columns, data_, 7);
    const DenseOperand<Exec, S, FormX> dx(x, op.cols, columns, std::nan(""));
    const DenseOperand<Exec, S, FormY> once(y, op.rows, columns, 77), kept(y, op.rows, columns, 77);
    Tessera::spmv(mode.c_str(), s.alpha, matrix_, dx.view(), s.beta, once.view());
    Tessera::spmv(&handle_, mode.c_str(), s.alpha, matrix_, dx.view(), s.beta, kept.view());
    Exec().fence();
    EXPECT_TRUE(once.intact() && kept.intact());
    EXPECT_TRUE(agrees_dense<S>(op, columns, s, x, y, once.read(), exact_));
    EXPECT_TRUE(agrees_dense<S>(op, columns, s, x, y, kept.read(), exact_)) << "through the handle";
    if constexpr (in_their_library && std::is_same_v<FormX, ColumnMajor> && std::is_same_v<FormY, ColumnMajor>) {
      // Kokkos Kernels 3.4 leaves Y as it was where A has no rows and is transposed.
      if (turns(mode) && A_.rows == 0) return;
      const DenseOperand<Exec, S, FormY> theirs(y, op.rows, columns, 77);
      KokkosSparse::spmv(mode.c_str(), S(s.alpha), matrix_, dx.view(), S(s.beta), theirs.view());
      Exec().fence();
      EXPECT_TRUE(agrees_dense<S>(op, columns, s, x, y, theirs.read(), exact_)) << "theirs";
      if (exact_) {
        EXPECT_EQ(once.read(), theirs.read());
        EXPECT_EQ(kept.read(), theirs.read());
      }
    }
  }

 private:
  bool exact_;
  Data data_;
  HostMatrix<S> A_, T_;
  Matrix matrix_;
  SpmvHandle<Matrix> handle_;
};

}  // namespace Testing
}  // namespace Tessera

#endif
