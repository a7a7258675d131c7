// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_KOKKOSSPARSE_CASES_HPP
#define TESSERA_TEST_KOKKOSSPARSE_CASES_HPP

#include <functional>

#include "adapters/KokkosSparseFixture.hpp"

/// \file
/// The counterparts of Kokkos Kernels' own tests of spmv (sparse/unit_test/Test_Sparse_spmv.hpp, version 4.6), as
/// tables that name each case. Complex scalars are left out: Tessera has none.

namespace Tessera {
namespace Testing {

/// heavy: modes N, T, C, H and alpha, beta from {0, 1, -1, 2.5}; else N, T and {0, 1}.
struct TheirCase {
  const char* name;
  int rows, cols;
  long long nnz;
  int bandwidth, variance;
  bool heavy;
  int columns;  // of x and y; 0: vectors
};

inline const std::vector<TheirCase>& vector_cases() {
  static const std::vector<TheirCase> all = {
      {"test_spmv_algorithms(1000, 3000, 200, 10, heavy)", 1000, 1000, 3000, 200, 10, true, 0},
      {"test_spmv_algorithms(1000, 3000, 100, 10, heavy)", 1000, 1000, 3000, 100, 10, true, 0},
      {"test_spmv_algorithms(1000, 20000, 100, 5, heavy)", 1000, 1000, 20000, 100, 5, true, 0},
      {"test_spmv_algorithms(50000, 150000, 20, 10)", 50000, 50000, 150000, 20, 10, false, 0},
      {"test_spmv_algorithms(50000, 150000, 100, 10)", 50000, 50000, 150000, 100, 10, false, 0},
      {"test_spmv_algorithms(10000, 20000, 100, 5)", 10000, 10000, 20000, 100, 5, false, 0}};
  return all;
}
inline const std::vector<TheirCase>& matrix_cases() {
  static const std::vector<TheirCase> all = {
      {"test_spmv_mv(1001, 3003, 200, 10, heavy, 1)", 1001, 1001, 3003, 200, 10, true, 1},
      {"test_spmv_mv(999, 2997, 100, 10, heavy, 5)", 999, 999, 2997, 100, 10, true, 5},
      {"test_spmv_mv(1003, 2006, 100, 5, heavy, 10)", 1003, 1003, 2006, 100, 5, true, 10},
      {"test_spmv_mv(50007, 150021, 20, 10, 1)", 50007, 50007, 150021, 20, 10, false, 1},
      {"test_spmv_mv(50002, 150006, 100, 10, 1)", 50002, 50002, 150006, 100, 10, false, 1},
      {"test_spmv_mv(10000, 20000, 100, 5, 5)", 10000, 10000, 20000, 100, 5, false, 5}};
  return all;
}
/// Columns 1 to `columns`, all modes and scalars.
inline const std::vector<TheirCase>& many_width_cases() {
  static const std::vector<TheirCase> all = {
      {"test_spmv_mv_heavy(204, 201, 2040, 60, 4, 30)", 204, 201, 2040, 60, 4, true, 30},
      {"test_spmv_mv_heavy(2, 3, 5, 3, 1, 10)", 2, 3, 5, 3, 1, true, 10}};
  return all;
}
/// X LayoutRight, Y LayoutLeft.
inline TheirCase mixed_layout_case() {
  return {"spmv_mv_mixed_layout: test_spmv_mv_heavy(99, 101, 1500, 40, 4, 20)", 99, 101, 1500, 40, 4, true, 20};
}

struct StructuredCase {
  const char* name;
  std::string spec;
};
/// The same grids; their spmv_struct wants the stencil named, ours is told nothing.
inline const std::vector<StructuredCase>& structured_cases() {
  static const std::vector<StructuredCase> all = {
      {"test_spmv_struct_1D(10)", "stencil2d:nx=10:ny=1"},
      {"test_spmv_struct_2D(25, 21), 5 points", "stencil2d:nx=25:ny=21"},
      {"test_spmv_struct_2D(25, 21), 9 points", "stencil2d:nx=25:ny=21:points=9"},
      {"test_spmv_struct_2D(20, 25), 5 points", "stencil2d:nx=20:ny=25"},
      {"test_spmv_struct_2D(22, 22), 9 points", "stencil2d:nx=22:ny=22:points=9"},
      {"test_spmv_struct_3D(20, 20, 20), 7 points", "stencil3d:nx=20:ny=20:nz=20"},
      {"test_spmv_struct_3D(22, 22, 22), 27 points", "stencil3d:nx=22:ny=22:nz=22:points=27"},
      {"test_spmv_struct_3D(25, 10, 20), 7 points", "stencil3d:nx=25:ny=10:nz=20"},
      {"test_spmv_struct_3D(10, 20, 25), 27 points", "stencil3d:nx=10:ny=20:nz=25:points=27"},
      {"test_spmv_struct_3D(10, 24, 20), 7 points", "stencil3d:nx=10:ny=24:nz=20"}};
  return all;
}
inline const std::vector<StructuredCase>& empty_cases() {
  static const std::vector<StructuredCase> all = {{"0 x 0", "empty:rows=0:cols=0"},
                                                  {"0 x 5", "empty:rows=0:cols=5"},
                                                  {"5 x 0", "empty:rows=5:cols=0"},
                                                  {"7 x 5 without entries", "empty:rows=7:cols=5"}};
  return all;
}

inline std::vector<std::string> modes_of(bool heavy) {
  return heavy ? std::vector<std::string>{"N", "C", "T", "H"} : std::vector<std::string>{"N", "T"};
}
inline std::vector<Scaling> scalings_of(bool heavy) {
  return heavy ? scalings() : std::vector<Scaling>{{0, 0}, {0, 1}, {1, 0}, {1, 1}};
}

template <class Types>
class KokkosSparseCases : public ::testing::Test {
 public:
  using Worlds = BothWorlds<Types>;

  static void each(bool heavy, const std::function<void(const std::string&, Scaling)>& f) {
    for (const std::string& mode : modes_of(heavy)) {
      for (const Scaling s : scalings_of(heavy)) f(mode, s);
    }
  }
  static void vectors(const Pattern& p, bool heavy) {
    for (const Data data : {Data::Integers, Data::Real}) {
      Worlds worlds(p, data, data == Data::Real ? SPMV_FAST_SETUP : SPMV_DEFAULT);
      each(heavy, [&](const std::string& mode, Scaling s) { worlds.vectors(mode, s); });
    }
  }
  template <class FormX, class FormY>
  static void matrices(const Pattern& p, bool heavy, int columns) {
    for (const Data data : {Data::Integers, Data::Real}) {
      Worlds worlds(p, data);
      each(heavy,
           [&](const std::string& mode, Scaling s) { worlds.template matrices<FormX, FormY>(mode, s, columns); });
    }
  }
  static Pattern pattern(const TheirCase& c) { return banded(c.rows, c.cols, c.nnz, c.bandwidth, c.variance); }
};
TYPED_TEST_SUITE_P(KokkosSparseCases);

TYPED_TEST_P(KokkosSparseCases, Vectors) {
  for (const TheirCase& c : vector_cases()) {
    SCOPED_TRACE(c.name);
    this->vectors(this->pattern(c), c.heavy);
  }
}
TYPED_TEST_P(KokkosSparseCases, LayoutLeft) {
  for (const TheirCase& c : matrix_cases()) {
    SCOPED_TRACE(c.name);
    this->template matrices<ColumnMajor, ColumnMajor>(this->pattern(c), c.heavy, c.columns);
  }
}
TYPED_TEST_P(KokkosSparseCases, LayoutRight) {
  for (const TheirCase& c : matrix_cases()) {
    SCOPED_TRACE(c.name);
    this->template matrices<RowMajor, RowMajor>(this->pattern(c), c.heavy, c.columns);
  }
}
TYPED_TEST_P(KokkosSparseCases, EveryWidth) {
  for (const TheirCase& c : many_width_cases()) {
    SCOPED_TRACE(c.name);
    typename TestFixture::Worlds worlds(this->pattern(c), Data::Integers);
    for (int columns = 1; columns <= c.columns; ++columns) {
      this->each(c.heavy, [&](const std::string& mode, Scaling s) {
        worlds.template matrices<ColumnMajor, ColumnMajor>(mode, s, columns);
      });
    }
  }
}
TYPED_TEST_P(KokkosSparseCases, MixedLayout) {
  const TheirCase c = mixed_layout_case();
  SCOPED_TRACE(c.name);
  for (const int columns : {1, 2, 7, 20}) {
    this->template matrices<RowMajor, ColumnMajor>(this->pattern(c), c.heavy, columns);
  }
}
TYPED_TEST_P(KokkosSparseCases, Structured) {
  for (const StructuredCase& c : structured_cases()) {
    SCOPED_TRACE(c.name);
    this->vectors(generate(c.spec), false);
  }
  for (const int columns : {1, 2}) {
    SCOPED_TRACE("test_spmv_mv_struct_1D(10, " + std::to_string(columns) + ")");
    this->template matrices<ColumnMajor, ColumnMajor>(generate("stencil2d:nx=10:ny=1"), false, columns);
  }
}
TYPED_TEST_P(KokkosSparseCases, Empty) {
  for (const StructuredCase& c : empty_cases()) {
    SCOPED_TRACE(c.name);
    this->vectors(generate(c.spec), true);
    this->template matrices<ColumnMajor, ColumnMajor>(generate(c.spec), true, 3);
  }
}
// Not theirs, but ours of everything else.
TYPED_TEST_P(KokkosSparseCases, EveryShape) {
  for (const std::string& spec : shapes()) {
    SCOPED_TRACE(spec);
    typename TestFixture::Worlds worlds(generate(spec), Data::Integers);
    for (const std::string mode : {"N", "T"}) worlds.vectors(mode, {2.5, -1});
  }
}
REGISTER_TYPED_TEST_SUITE_P(KokkosSparseCases, EveryShape, Vectors, LayoutLeft, LayoutRight, EveryWidth, MixedLayout,
                            Structured, Empty);

}  // namespace Testing
}  // namespace Tessera

#endif
