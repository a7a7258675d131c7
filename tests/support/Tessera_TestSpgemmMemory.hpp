// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_SPGEMM_MEMORY_HPP
#define TESSERA_TEST_SPGEMM_MEMORY_HPP

#include <string>
#include <vector>

#include "support/Tessera_TestSpgemm.hpp"
#include "support/Tessera_TestTools.hpp"

/// \file
/// What spgemm() keeps between calls.

namespace Tessera {
namespace Testing {

template <class Exec>
struct SpgemmMemorySuite {
  using Matrix = HostMatrix<double, int>;
  using Device = DeviceMatrix<Exec, double, int>;
  using Csr = typename Device::Csr;

  static SpgemmOptions options(bool keep) {
    SpgemmOptions o;
    o.algorithm = SpgemmAlgorithm::Binned;
    if (Compat::is_host_v<Exec>) o.backend = Backend::EmulatedNvidia;
    o.keep_memory = keep;
    return o;
  }
  static Matrix matrix(const std::string& spec, std::uint64_t seed = 1) {
    return make_matrix<double, int>(spec, Data::Real, seed);
  }
  static Csr square(const Device& a, bool keep = true) { return spgemm(Exec(), a.view(), a.view(), options(keep)); }
  static void expect_equal(const Csr& C, const SpgemmResult<double, int>& wanted) {
    EXPECT_EQ(to_host(C.row_map()), wanted.row_map);
    EXPECT_EQ(to_host(C.entries()), wanted.columns);
    EXPECT_TRUE(same_bits(to_host(C.values()), wanted.values));
  }

  /// Of phases; words of B's columns are the plan's.
  static bool is_scratch(const std::string& label) {
    return label.rfind("Tessera::", 0) == 0 && label.find("words") == std::string::npos &&
           label.find("bits") == std::string::npos;
  }
  static bool native(const SpgemmOptions& o) {
    return o.algorithm == SpgemmAlgorithm::Binned && o.backend != Backend::Kokkos &&
           (o.backend != Backend::Auto || !Compat::is_host_v<Exec>);
  }

  /// What a plan says before its phases is what they take at most, by Kokkos' own account.
  static void known_beforehand() {
    for (const char* const spec : {"rmat:scale=11:degree=6", "fem:nx=5:ny=4:nz=3", "uniform:rows=9:cols=9:per_row=0"}) {
      const Matrix A = matrix(spec);
      const Device a(A);
      std::vector<SpgemmOptions> all = spgemm_variants<Exec>();
      for (const std::size_t most : {std::size_t{1} << 18, std::size_t{1} << 17, std::size_t{1} << 16}) {
        all.push_back(options(false));
        all.back().max_workspace_bytes = most;
      }
      for (const SpgemmOptions& o : all) {
        if (!refusal_of(A, A, o).empty()) continue;
        SCOPED_TRACE(std::string(spec) + ", " + to_string(o.algorithm) + ", " + to_string(o.backend) + ", room " +
                     std::to_string(o.max_workspace_bytes));
        phases_take_no_more(A, a, a, o);
      }
    }
    const Matrix A = matrix("uniform:rows=20:cols=3000:per_row=700"), B = matrix("uniform:rows=3000:cols=40:per_row=5");
    const Device a(A), b(B);
    for (const SpgemmOptions& o : spgemm_variants<Exec>()) {
      if (refusal_of(A, B, o).empty()) phases_take_no_more(A, a, b, o);
    }
    const Matrix few = make_matrix<double, int>(few_very_long_rows_of(17000), Data::Real, 3);
    const Matrix right = matrix("uniform:rows=20000:cols=60:per_row=2");
    const Device f(few), r(right);
    phases_take_no_more(few, f, r, options(false));
  }
  static void phases_take_no_more(const Matrix& A, const Device& a, const Device& b, const SpgemmOptions& o) {
    KokkosMemory memory(is_scratch);
    SpgemmPlan<Csr> plan(Exec(), a.view(), b.view(), o);
    const std::size_t said = plan.workspace_bytes();
    const auto rows = static_cast<std::size_t>(A.rows);
    memory.forget_peak();
    const DeviceVector<Exec, int> row_map("row_map", rows + 1);
    plan.symbolic(Exec(), row_map);
    const auto nnz = static_cast<std::size_t>(plan.symbolic(Exec(), row_map));  // again: nothing is there twice
    const DeviceVector<Exec, int> columns("columns", nnz);
    const DeviceVector<Exec, double> values("values", nnz);
    plan.numeric(Exec(), row_map, columns, values);
    plan.update_values(Exec(), a.view(), b.view(), row_map, columns, values);
    plan.symbolic(Exec(), row_map);
    constexpr std::size_t rounded = 1024, headers = 3 * 128;  // whole 256 bytes per array; of a View without elements
    EXPECT_LE(memory.peak(), said + 8 * (rows + 1) + 4 * rows + rounded);
    EXPECT_EQ(plan.workspace_bytes(), said);
    if (!native(o)) return;
    EXPECT_LE(memory.peak(), said + headers);
    if (plan.statistics().why.find("rows of A in pieces") != std::string::npos) return;  // bounds, not counts
    EXPECT_GE(memory.peak() + rounded, said) << "not more than is needed";
  }

  /// One call holds its cap as well.
  static void one_call_keeps_the_cap() {
    for (const char* const spec : {"rmat:scale=11:degree=6", "uniform:rows=3000:cols=3000:per_row=4"}) {
      const Device a(matrix(spec));
      for (std::size_t most = std::size_t{1} << 20; most >= std::size_t{1} << 16; most = most / 4 * 3) {
        SpgemmOptions o = options(false);
        o.max_workspace_bytes = most;
        const KokkosMemory memory(is_scratch);
        spgemm(Exec(), a.view(), a.view(), o);
        EXPECT_LE(memory.peak(), most) << spec;
        EXPECT_GT(memory.peak(), std::size_t{1} << 14) << "the rest says nothing";
      }
    }
  }

  /// The arrays of a C that is gone are those of the next one, whose numbers are right nevertheless.
  static void used_again() {
    release_kept_memory();
    const Matrix A = matrix("fem:nx=5:ny=4:nz=3"), B = matrix("fem:nx=5:ny=4:nz=3", 7);
    const Device a(A), b(B);
    const auto wanted = multiply<Exec>(B, B, options(false));
    ASSERT_EQ(kept_memory_bytes(), 0u);
    const double* values = nullptr;
    const int* columns = nullptr;
    {
      const Csr C = square(a);
      values = C.values().data();
      columns = C.entries().data();
      EXPECT_EQ(kept_memory_bytes(), 0u) << "in use";
    }
    EXPECT_GE(kept_memory_bytes(), wanted.values.size() * (sizeof(double) + sizeof(int)));
    const Csr C = square(b);
    EXPECT_EQ(C.values().data(), values);
    EXPECT_EQ(C.entries().data(), columns);
    EXPECT_EQ(kept_memory_bytes(), 0u);
    expect_equal(C, wanted);
  }
  /// An earlier C, or a part of it, or a view of one array of it, keeps what it has.
  static void held() {
    const Matrix A = matrix("fem:nx=5:ny=4:nz=3"), B = matrix("fem:nx=5:ny=4:nz=3", 7);
    const Device a(A), b(B);
    const auto first = multiply<Exec>(A, A, options(false)), second = multiply<Exec>(B, B, options(false));
    const Csr C = square(a);
    typename Csr::values_type values = square(b).values();
    for (int turn = 0; turn < 3; ++turn) {
      const Csr D = square(turn == 1 ? a : b);
      EXPECT_NE(D.values().data(), C.values().data());
      EXPECT_NE(D.values().data(), values.data());
      expect_equal(D, turn == 1 ? first : second);
    }
    expect_equal(C, first);
    EXPECT_TRUE(same_bits(to_host(values), second.values));
    const auto row = Kokkos::subview(values, std::make_pair(std::size_t{3}, std::size_t{5}));
    values = {};
    const Csr D = square(a);
    EXPECT_EQ(to_host(row)[1], second.values[4]);
    expect_equal(D, first);
  }
  /// Matrices as A and B are the C of an earlier call, which goes while it is multiplied.
  static void powers() {
    const Matrix A = matrix("stencil2d:nx=9:ny=8");
    const Device a(A);
    Csr kept = a.view(), own = a.view();
    for (int power = 2; power < 6; ++power) {
      kept = spgemm(Exec(), kept, kept, options(true));
      own = spgemm(Exec(), own, own, options(false));
      expect_equal(kept, {to_host(own.row_map()), to_host(own.entries()), to_host(own.values()), {}});
    }
  }
  static void given_back() {
    const Matrix A = matrix("fem:nx=5:ny=4:nz=3");
    const Device a(A);
    const auto wanted = multiply<Exec>(A, A, options(false));
    square(a);
    EXPECT_GT(kept_memory_bytes(), 0u);
    release_kept_memory();
    EXPECT_EQ(kept_memory_bytes(), 0u);
    {
      const Csr C = square(a);
      release_kept_memory();
      expect_equal(C, wanted);
    }
    EXPECT_EQ(kept_memory_bytes(), 0u) << "was C's alone";
    square(a, false);
    EXPECT_EQ(kept_memory_bytes(), 0u) << "not asked for";
    release_kept_memory();
  }
  /// Sizes up and down, with an empty one; what is kept stays within twice the largest C and its predecessors.
  static void other_sizes() {
    const std::vector<std::string> specs = {"stencil2d:nx=5:ny=4",   "stencil2d:nx=40:ny=30", "empty:rows=7:cols=7",
                                            "rmat:scale=7:degree=5", "stencil2d:nx=6:ny=4",   "diagonal:rows=1:cols=1",
                                            "fem:nx=5:ny=4:nz=3",    "stencil2d:nx=41:ny=30", "empty:rows=0:cols=0"};
    release_kept_memory();
    std::vector<SpgemmResult<double, int>> wanted;
    std::vector<Device> matrices;
    for (const std::string& spec : specs) {
      wanted.push_back(multiply<Exec>(matrix(spec), matrix(spec), options(false)));
      matrices.emplace_back(matrix(spec));
    }
    std::size_t after_first = 0;
    for (int turn = 0; turn < 4; ++turn) {
      for (std::size_t i = 0; i < specs.size(); ++i) {
        const std::size_t which = turn % 2 == 0 ? i : specs.size() - 1 - i;
        SCOPED_TRACE(specs[which]);
        expect_equal(square(matrices[which]), wanted[which]);
      }
      if (turn == 0) after_first = kept_memory_bytes();
      EXPECT_EQ(kept_memory_bytes(), after_first) << "the same sizes find the same arrays";
    }
    release_kept_memory();
  }
  /// What throws leaves nothing behind that is not there afterwards, and the next product is right.
  static void after_exceptions() {
    const Matrix A = matrix("fem:nx=5:ny=4:nz=3"), other = matrix("diagonal:rows=7:cols=7");
    const Device a(A), o(other);
    const auto wanted = multiply<Exec>(A, A, options(false));
    square(a);
    const std::size_t before = kept_memory_bytes();
    EXPECT_THROW(spgemm(Exec(), a.view(), o.view(), options(true)), DimensionMismatch);
    SpgemmOptions refused = options(true);
    refused.algorithm = SpgemmAlgorithm::Dia;
    refused.backend = Backend::Auto;
    refused.max_workspace_bytes = 1;
    EXPECT_THROW(spgemm(Exec(), a.view(), a.view(), refused), NotSupported);
    EXPECT_EQ(kept_memory_bytes(), before);
    expect_equal(square(a), wanted);
    EXPECT_EQ(kept_memory_bytes(), before);
  }
};

}  // namespace Testing
}  // namespace Tessera

#endif
