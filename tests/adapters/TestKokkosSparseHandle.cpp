// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Every form of the call, what a handle makes and keeps, new values, and every call that must be refused.

#include <functional>
#include <utility>

#include "adapters/KokkosSparseFixture.hpp"
#if __has_include(<KokkosKernels_Controls.hpp>)
#include <KokkosKernels_Controls.hpp>
#define TESSERA_TEST_CONTROLS
#endif

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultExecutionSpace;
using Matrix = TheirMatrix<double>;
using Handle = SpmvHandle<Matrix>;
using Vector = DeviceVector<Exec, double>;
using Multi = Kokkos::View<double**, Kokkos::LayoutLeft, DeviceOf<Exec>>;

/// Their test_spmv_all_interfaces_light: 111 x 99, 600 entries.
class KokkosSparseHandle : public ::testing::Test {
 public:
  const HostMatrix<double> A = make_matrix<double>(banded(111, 99, 600, 69, 2), Data::Integers, 5);
  const HostMatrix<double> T = transposed(A);
  const HostMatrix<double> other = make_matrix<double>(banded(111, 99, 600, 69, 2), Data::Integers, 15);
  const Matrix theirs = their_matrix<Matrix>(A);
  const std::vector<double> x = numbers<double>(99, Data::Integers, 6), y0 = numbers<double>(111, Data::Integers, 7);
  const Scaling s{2.5, -1};

  void expect(const HostMatrix<double>& op, const std::vector<double>& from, const std::vector<double>& old,
              const std::function<void(const Vector&, const Vector&)>& call, const std::string& what) const {
    const auto dx = to_device<Exec>(from), dy = to_device<Exec>(old);
    call(dx, dy);
    Exec().fence();
    EXPECT_TRUE(agrees<double>(op, s, from, old, to_host(dy), true)) << what;
  }
  void expect_multi(const HostMatrix<double>& op, int columns,
                    const std::function<void(const Multi&, const Multi&)>& call, const std::string& what) const {
    const auto b = numbers<double>(op.cols * columns, Data::Integers, 8);
    const auto c = numbers<double>(op.rows * columns, Data::Integers, 9);
    const DenseOperand<Exec, double, ColumnMajor> db(b, op.cols, columns, 0), dc(c, op.rows, columns, 0);
    call(db.view(), dc.view());
    Exec().fence();
    EXPECT_TRUE(agrees_dense<double>(op, columns, s, b, c, dc.read(), true)) << what;
  }
  /// All four kinds of product through one handle, against the given numbers.
  void expect_all(Handle& handle, const Matrix& matrix, const HostMatrix<double>& values) const {
    const auto t = transposed(values);
    expect(
        values, x, y0, [&](auto& a, auto& b) { Tessera::spmv(&handle, "N", s.alpha, matrix, a, s.beta, b); }, "N");
    expect(
        t, y0, x, [&](auto& a, auto& b) { Tessera::spmv(&handle, "T", s.alpha, matrix, a, s.beta, b); }, "T");
    expect_multi(
        values, 3, [&](auto& a, auto& b) { Tessera::spmv(&handle, "C", s.alpha, matrix, a, s.beta, b); }, "C");
    expect_multi(
        t, 3, [&](auto& a, auto& b) { Tessera::spmm(&handle, "H", s.alpha, matrix, a, s.beta, b); }, "H");
  }
};

TEST_F(KokkosSparseHandle, EveryFormOfTheCall) {
  const Exec space;
  Handle handle;
  const auto one = [&](const char* what, const auto& call) { expect(A, x, y0, call, what); };
  one("mode", [&](auto& a, auto& b) { Tessera::spmv("N", s.alpha, theirs, a, s.beta, b); });
  one("space", [&](auto& a, auto& b) { Tessera::spmv(space, "N", s.alpha, theirs, a, s.beta, b); });
  one("handle", [&](auto& a, auto& b) { Tessera::spmv(&handle, "N", s.alpha, theirs, a, s.beta, b); });
  one("space, handle", [&](auto& a, auto& b) { Tessera::spmv(space, &handle, "N", s.alpha, theirs, a, s.beta, b); });
  one("float and int", [&](auto& a, auto& b) { Tessera::spmv(space, &handle, "N", 2.5f, theirs, a, -1, b); });
#ifdef TESSERA_TEST_CONTROLS
  KokkosKernels::Experimental::Controls controls;
  controls.setParameter("algorithm", "native");
  one("controls", [&](auto& a, auto& b) { Tessera::spmv(controls, "N", s.alpha, theirs, a, s.beta, b); });
#endif
  const auto many = [&](const char* what, const auto& call) {
    for (const int columns : {0, 1, 3}) expect_multi(A, columns, call, what);
  };
  many("mode", [&](auto& a, auto& b) { Tessera::spmv("N", s.alpha, theirs, a, s.beta, b); });
  many("space", [&](auto& a, auto& b) { Tessera::spmv(space, "N", s.alpha, theirs, a, s.beta, b); });
  many("handle", [&](auto& a, auto& b) { Tessera::spmv(&handle, "N", s.alpha, theirs, a, s.beta, b); });
  many("space, handle", [&](auto& a, auto& b) { Tessera::spmv(space, &handle, "N", s.alpha, theirs, a, s.beta, b); });
  many("spmm", [&](auto& a, auto& b) { Tessera::spmm("N", s.alpha, theirs, a, s.beta, b); });
  many("spmm, space", [&](auto& a, auto& b) { Tessera::spmm(space, "N", s.alpha, theirs, a, s.beta, b); });
  many("spmm, handle", [&](auto& a, auto& b) { Tessera::spmm(&handle, "N", s.alpha, theirs, a, s.beta, b); });
  many("spmm, both", [&](auto& a, auto& b) { Tessera::spmm(space, &handle, "N", s.alpha, theirs, a, s.beta, b); });
}

// Their names, with only the namespace changed.
TEST_F(KokkosSparseHandle, TheirSpelling) {
  for (const SPMVAlgorithm algorithm : {SPMV_DEFAULT, SPMV_FAST_SETUP, SPMV_NATIVE, SPMV_MERGE_PATH}) {
    Tessera::SPMVHandle<Exec, Matrix, Vector, Vector> handle(algorithm);
    expect_all(handle, theirs, A);
  }
}

// The first letter decides, as in Kokkos Kernels.
TEST_F(KokkosSparseHandle, Modes) {
  Handle handle;
  for (const std::string mode : {"N", "n", "C", "c", "NoTranspose", "Conjugate"}) {
    expect(
        A, x, y0, [&](auto& a, auto& b) { Tessera::spmv(mode.c_str(), s.alpha, theirs, a, s.beta, b); }, mode);
    expect(
        A, x, y0, [&](auto& a, auto& b) { Tessera::spmv(&handle, mode.c_str(), 2.5, theirs, a, -1, b); }, mode);
  }
  EXPECT_EQ(handle.spmv_plan(true), nullptr) << "C does not transpose";
  for (const std::string mode : {"T", "t", "H", "h", "Transpose", "Hermitian"}) {
    expect(
        T, y0, x, [&](auto& a, auto& b) { Tessera::spmv(mode.c_str(), s.alpha, theirs, a, s.beta, b); }, mode);
    expect(
        T, y0, x, [&](auto& a, auto& b) { Tessera::spmv(&handle, mode.c_str(), 2.5, theirs, a, -1, b); }, mode);
  }
}

// test_github_issue_101: a float matrix and double vectors sum in double, for every number of columns.
TEST(KokkosSparseIssue101, FloatMatrixDoubleVectors) {
  HostMatrix<float> A;
  A.rows = 1;
  A.cols = 2;
  A.row_map = {0, 2};
  A.entries = {0, 1};
  const float half = std::numeric_limits<float>::epsilon() / 2;
  A.values = {1, half};
  using Floats = TheirMatrix<float>;
  const auto matrix = their_matrix<Floats>(A);
  SpmvHandle<Floats> handle;
  const double wanted = 1 + static_cast<double>(half);
  const auto x = to_device<Exec>(std::vector<double>(2, 1)), y = to_device<Exec>(std::vector<double>(1, 0));
  Tessera::spmv("N", 1.0, matrix, x, 0.0, y);
  EXPECT_EQ(to_host(y)[0], wanted);
  Tessera::spmv(&handle, "N", 1.0, matrix, x, 0.0, y);
  EXPECT_EQ(to_host(y)[0], wanted);
  for (int columns = 1; columns <= 22; ++columns) {
    const DenseOperand<Exec, double, ColumnMajor> B(std::vector<double>(2 * columns, 1), 2, columns, 0),
        C(std::vector<double>(columns, 0), 1, columns, 0);
    Tessera::spmv("N", 1.0, matrix, B.view(), 0.0, C.view());
    EXPECT_EQ(C.read(), std::vector<double>(columns, wanted));
    Tessera::spmv(&handle, "N", -1.0, matrix, B.view(), 0.0, C.view());
    EXPECT_EQ(C.read(), std::vector<double>(columns, -wanted));
  }
}

TEST_F(KokkosSparseHandle, PlansAreMadeWhenNeededAndKept) {
  Handle handle;
  EXPECT_EQ(handle.spmv_plan(), nullptr);
  EXPECT_TRUE(handle.matches(theirs));
  const auto n = to_device<Exec>(x), m = to_device<Exec>(y0);
  Tessera::spmv(&handle, "N", 1, theirs, n, 0, m);
  const auto* const plan = handle.spmv_plan();
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(handle.spmv_plan(true), nullptr);
  EXPECT_EQ(handle.spmm_plan(), nullptr);
  Tessera::spmv(&handle, "T", 1, theirs, m, 0, n);
  ASSERT_NE(handle.spmv_plan(true), nullptr);
  EXPECT_EQ(handle.spmv_plan(true)->statistics().rows, 99);
  const Multi one_n("x", 99, 1), one_m("y", 111, 1), b("b", 99, 5), c("c", 111, 5);
  Tessera::spmv(&handle, "N", 1, theirs, one_n, 0, one_m);
  EXPECT_EQ(handle.spmm_plan(), nullptr) << "one column is a vector";
  Tessera::spmv(&handle, "N", 1, theirs, b, 0, c);
  ASSERT_NE(handle.spmm_plan(), nullptr);
  EXPECT_EQ(handle.spmm_plan()->options().num_columns_hint, 5);
  EXPECT_EQ(handle.spmm_plan(true), nullptr);
  Tessera::spmv(&handle, "H", 1, theirs, c, 0, b);
  ASSERT_NE(handle.spmm_plan(true), nullptr);
  EXPECT_EQ(handle.spmv_plan(), plan);
  const KokkosCounters counters;
  Tessera::spmv(&handle, "N", 1, theirs, n, 0, m);
  Tessera::spmv(&handle, "T", 1, theirs, m, 0, n);
  Tessera::spmv(&handle, "N", 1, theirs, b, 0, c);
  Tessera::spmv(&handle, "T", 1, theirs, c, 0, b);
  EXPECT_EQ(counters.allocations(), 0) << counters.last_allocation();
  Handle moved(std::move(handle));
  EXPECT_EQ(moved.spmv_plan(), &*moved.spmv_plan());
  expect_all(moved, theirs, A);
}

TEST_F(KokkosSparseHandle, NewValues) {
  for (const SpmvAlgorithm algorithm : {SpmvAlgorithm::Auto, SpmvAlgorithm::Csr5, SpmvAlgorithm::PackedSlices}) {
    SpmvOptions options;
    options.algorithm = algorithm;
    Handle handle(options);
    Matrix matrix = their_matrix<Matrix>(A);
    handle.update_values(Exec(), matrix);  // before the first call: nothing to do
    expect_all(handle, matrix, A);
    copy_to(other.values, matrix.values);
    handle.update_values(Exec(), matrix);
    expect_all(handle, matrix, other);
    // The same graph with values in an array of their own; the old one goes.
    matrix = Matrix("new", matrix.numRows(), matrix.numCols(), matrix.nnz(), to_device<Exec>(A.values),
                    matrix.graph.row_map, matrix.graph.entries);
    EXPECT_FALSE(handle.matches(matrix));
    handle.update_values(matrix);
    expect_all(handle, matrix, A);
    handle.reset();
    const auto second = their_matrix<Matrix>(other);
    expect_all(handle, second, other);
  }
}

// A converted plan holds the numbers it was given until it is told of others.
TEST_F(KokkosSparseHandle, NumbersChangedInPlaceNeedAnUpdate) {
  SpmvOptions options;
  options.algorithm = SpmvAlgorithm::PackedSlices;
  Handle handle(options);
  const Matrix matrix = their_matrix<Matrix>(A);
  const auto call = [&](auto& a, auto& b) { Tessera::spmv(&handle, "N", s.alpha, matrix, a, s.beta, b); };
  expect(A, x, y0, call, "first");
  copy_to(other.values, matrix.values);
  expect(A, x, y0, call, "not updated");
  handle.update_values(matrix);
  expect(other, x, y0, call, "updated");
}

// The arrays live as long as the handle, so that no others can take their addresses.
TEST_F(KokkosSparseHandle, KeepsTheArrays) {
  Handle handle;
  auto matrix = std::make_unique<Matrix>(their_matrix<Matrix>(A));
  const Matrix copy = *matrix;
  const auto before = copy.values.use_count();
  expect(
      A, x, y0, [&](auto& a, auto& b) { Tessera::spmv(&handle, "N", s.alpha, *matrix, a, s.beta, b); }, "first");
  EXPECT_GT(copy.values.use_count(), before) << "the handle and its plan hold them";
  matrix.reset();
  expect_all(handle, copy, A);
  handle.reset();
  EXPECT_EQ(copy.values.use_count(), before - 1);
}

TEST(KokkosSparseOnce, TransposedProductsAreDeterministic) {
  const auto A = make_matrix<double>("random:rows=1501:cols=1999:lengths=power:mean=6:tail=1.3", Data::Real, 5);
  const auto matrix = their_matrix<Matrix>(A);
  const auto x = to_device<Exec>(numbers<double>(1501, Data::Real, 6));
  std::vector<double> first;
  for (int i = 0; i < 5; ++i) {
    const Vector y("y", 1999);
    Tessera::spmv("T", 1, matrix, x, 0, y);
    if (i == 0) first = to_host(y);
    EXPECT_TRUE(same_bits(first, to_host(y)));
  }
}

// Const scalars and unmanaged arrays, as in arguments of other libraries.
TEST_F(KokkosSparseHandle, ConstUnmanagedMatrix) {
  using Loan = KokkosSparse::CrsMatrix<const double, const int, DeviceOf<Exec>, Kokkos::MemoryTraits<Kokkos::Unmanaged>,
                                       const std::size_t>;
  const Loan loan(theirs);
  SpmvHandle<Loan> handle;
  expect(
      A, x, y0, [&](auto& a, auto& b) { Tessera::spmv("N", s.alpha, loan, a, s.beta, b); }, "once");
  expect(
      T, y0, x, [&](auto& a, auto& b) { Tessera::spmv(&handle, "T", s.alpha, loan, a, s.beta, b); }, "handle");
}

TEST(KokkosSparseMatrixMarket, FileToMatrix) {
  const std::string file = TESSERA_EXAMPLE_DATA "/bcsstk16.mtx.gz";
  const auto host = io::read_matrix_market<double, int, std::size_t>(file);
  const auto matrix = io::read_crs_matrix<Matrix>(file);
  EXPECT_EQ(matrix.numRows(), 4884);
  EXPECT_EQ(matrix.numCols(), 4884);
  EXPECT_EQ(matrix.nnz(), 290378u);
  EXPECT_EQ(to_host(matrix.graph.row_map), host.row_map);
  EXPECT_EQ(to_host(matrix.graph.entries), host.entries);
  EXPECT_EQ(to_host(matrix.values), host.values);
  const auto wide = io::read_crs_matrix<TheirMatrix<float, std::int64_t, int>>(file);
  EXPECT_EQ(to_host(wide.graph.entries), converted<std::int64_t>(host.entries));
  EXPECT_EQ(to_host(wide.values), converted<float>(host.values));
  const auto none = to_crs_matrix<Matrix>(io::HostCsr<double, int, std::size_t>{0, 5, {0}, {}, {}});
  EXPECT_EQ(none.numRows(), 0);
  EXPECT_EQ(none.numCols(), 5);
}

// A first call that throws leaves a handle that takes any matrix.
TEST_F(KokkosSparseHandle, AfterAFailedFirstCall) {
  SpmvOptions options;
  options.algorithm = SpmvAlgorithm::Dasp;
  options.backend = Backend::Kokkos;
  options.fallback = false;
  Handle handle(options);
  const Vector y = to_device<Exec>(y0);
  const auto other = their_matrix<Matrix>(make_matrix<double>("diagonal:rows=111:cols=99", Data::Integers, 1));
  EXPECT_THROW(Tessera::spmv(&handle, "N", 1, theirs, to_device<Exec>(x), 0, y), NotSupported);
  EXPECT_TRUE(handle.matches(other));
  EXPECT_EQ(handle.spmv_plan(), nullptr);
  const Multi b("b", 99, 3), c("c", 111, 3);
  Tessera::spmv(&handle, "N", 1, other, b, 0, c);  // by SpMM, which can
  EXPECT_NE(handle.spmm_plan(), nullptr);
}

struct Refusal {
  std::string name;
  ErrorCode code;
  std::vector<std::string> parts;  // of the message
  std::function<void()> call;
};

/// Refused calls, which write neither y nor C, and after which a handle still serves its matrix.
class KokkosSparseRefusals : public KokkosSparseHandle {
 public:
  const Vector n = to_device<Exec>(x), m = to_device<Exec>(y0);
  const Multi b{"b", 99, 3}, c{"c", 111, 3};
  Handle handle;
  static constexpr ErrorCode argument = ErrorCode::InvalidArgument, size = ErrorCode::DimensionMismatch,
                             stale = ErrorCode::StalePlan;

  KokkosSparseRefusals() {
    Kokkos::deep_copy(c, 7);
    Tessera::spmv(&handle, "N", 1, theirs, n, 0, to_device<Exec>(y0));
  }
  void expect_refused(const std::vector<Refusal>& all) {
    for (const Refusal& r : all) {
      SCOPED_TRACE(r.name);
      try {
        r.call();
        ADD_FAILURE() << "was accepted";
      } catch (const Error& e) {
        const std::string message = e.what();
        EXPECT_EQ(static_cast<int>(e.code()), static_cast<int>(r.code)) << message;
        for (const std::string& part : r.parts) EXPECT_NE(message.find(part), std::string::npos) << message;
      }
      EXPECT_EQ(to_host(m), y0) << "y was written";
      EXPECT_EQ(to_host(Kokkos::subview(c, Kokkos::ALL(), 1)), std::vector<double>(111, 7)) << "C was written";
    }
    expect_all(handle, theirs, A);
  }
};

TEST_F(KokkosSparseRefusals, ModesAndOperands) {
  const Vector longer("longer", 100), shorter("shorter", 98);
  const Matrix negative("negative", 111, -1, theirs.nnz(), theirs.values, theirs.graph.row_map, theirs.graph.entries);
  const auto square = their_matrix<Matrix>(make_matrix<double>("diagonal:rows=111:cols=111", Data::Integers, 1));
  Handle* const null = nullptr;
  expect_refused(
      {{"x one long", size, {"111 x 99", "x is 100 x 1"}, [&] { Tessera::spmv("N", 1, theirs, longer, 0, m); }},
       {"x one short",
        size,
        {"111 x 99", "x is 98 x 1"},
        [&] { Tessera::spmv(&handle, "N", 1, theirs, shorter, 0, m); }},
       {"y one long",
        size,
        {"y is 100 x 1", "99 x 111", "transposed"},
        [&] { Tessera::spmv("T", 1, theirs, m, 0, longer); }},
       {"mode T with vectors for N",
        size,
        {"99 x 111 (A transposed)", "x is 99 x 1", "y is 111 x 1"},
        [&] { Tessera::spmv(&handle, "T", 1, theirs, n, 0, m); }},
       {"3 columns and 2",
        size,
        {"99 x 3", "111 x 2"},
        [&] { Tessera::spmv("N", 1, theirs, b, 0, Kokkos::subview(c, Kokkos::ALL(), std::make_pair(0, 2))); }},
       {"mode X",
        argument,
        {"'X'", "N (A)", "H (conjugate transpose)"},
        [&] { Tessera::spmv("X", 1, theirs, n, 0, m); }},
       {"mode X with a handle", argument, {"'X'"}, [&] { Tessera::spmv(Exec(), &handle, "X", 1, theirs, n, 0, m); }},
       {"an empty mode", argument, {"''"}, [&] { Tessera::spmv(Exec(), "", 1, theirs, n, 0, m); }},
       {"mode X, alpha = 0", argument, {"'X'"}, [&] { Tessera::spmm("X", 0, theirs, b, 1, c); }},
       {"mode null", argument, {"mode", "null"}, [&] { Tessera::spmv(nullptr, 1.0, theirs, n, 0.0, m); }},
       {"handle null", argument, {"handle", "null"}, [&] { Tessera::spmv(null, "N", 1, theirs, n, 0, m); }},
       {"x and y the same", argument, {"overlap"}, [&] { Tessera::spmv("N", 1, square, m, 0, m); }},
       {"B and C the same", argument, {"overlap"}, [&] { Tessera::spmv("N", 1, square, c, 0, c); }},
       {"-1 columns", argument, {"111 x -1", "negative"}, [&] { Tessera::spmv("N", 1, negative, n, 0, m); }}});
}

TEST_F(KokkosSparseRefusals, OtherMatricesAndValues) {
  Handle fixed([] {
    SpmvOptions o;
    o.updatable = false;
    return o;
  }());
  Tessera::spmv(&fixed, "N", 1, theirs, n, 0, to_device<Exec>(y0));
  const auto twin = their_matrix<Matrix>(A);  // the same pattern in other arrays
  const auto larger = their_matrix<Matrix>(make_matrix<double>("diagonal:rows=111:cols=99", Data::Integers, 1));
  const Matrix new_values("new", theirs.numRows(), theirs.numCols(), theirs.nnz(), to_device<Exec>(A.values),
                          theirs.graph.row_map, theirs.graph.entries);
  Matrix cut = theirs;
  cut.values = to_device<Exec>(std::vector<double>(A.values.begin(), A.values.end() - 1));
  expect_refused(
      {{"values one short",
        size,
        {std::to_string(A.nnz()), std::to_string(A.nnz() - 1)},
        [&] { Tessera::spmv("N", 1, cut, n, 0, m); }},
       {"another graph of the same sizes",
        stale,
        {"other arrays", "reset()"},
        [&] { Tessera::spmv(&handle, "N", 1, twin, n, 0, m); }},
       {"another number of entries",
        stale,
        {std::to_string(A.nnz()), "99 entries"},
        [&] { Tessera::spmv(&handle, "N", 1, larger, n, 0, m); }},
       {"values in another array",
        stale,
        {"update_values"},
        [&] { Tessera::spmv(&handle, "N", 1, new_values, n, 0, m); }},
       {"update_values, another graph", stale, {"update_values", "other arrays"}, [&] { handle.update_values(twin); }},
       {"update_values, one short", size, {std::to_string(A.nnz() - 1)}, [&] { handle.update_values(cut); }},
       {"update_values, updatable = false", stale, {"updatable = false"}, [&] { fixed.update_values(theirs); }}});
}

TEST_F(KokkosSparseRefusals, OptionsAndFiles) {
  io::HostCsr<double, int, std::size_t> broken{3, 5, {0, 1}, {0}, {1}};
  expect_refused({{"handle with a workspace",
                   argument,
                   {"workspace"},
                   [&] {
                     SpmvOptions o;
                     o.workspace = {m.data(), 64};
                     Handle refused(o);
                   }},
                  {"to_crs_matrix, row_map of 2 for 3 rows",
                   size,
                   {"2 elements", "need 4"},
                   [&] { to_crs_matrix<Matrix>(broken); }},
                  {"read_crs_matrix of nothing", ErrorCode::FileError, {"none.mtx"}, [&] {
                     io::read_crs_matrix<Matrix>("none.mtx");
                   }}});
}

}  // namespace Testing
}  // namespace Tessera
