// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_SPGEMM_HPP
#define TESSERA_TEST_SPGEMM_HPP

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "Tessera_Spgemm.hpp"
#include "backends/reference/Tessera_ReferenceSpgemm.hpp"
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestCheck.hpp"
#include "support/Tessera_TestTools.hpp"

/// \file
/// What every SpGEMM algorithm must pass.

namespace Tessera {
namespace Testing {

/// The algorithms that run on Exec, and Binned by other backends and with room for nothing. Dia has less room than it
/// would take, so that a matrix of many diagonals takes no time.
template <class Exec>
std::vector<SpgemmOptions> spgemm_variants() {
  std::vector<SpgemmOptions> list;
  const auto add = [&](SpgemmAlgorithm algorithm, Backend backend = Backend::Auto, std::size_t most = 0) {
    SpgemmOptions options;
    options.algorithm = algorithm;
    options.backend = backend;
    options.max_workspace_bytes = most;
    list.push_back(options);
  };
  add(SpgemmAlgorithm::Auto);
  add(SpgemmAlgorithm::Binned);
  add(SpgemmAlgorithm::Dia, Backend::Auto, std::size_t{1} << 22);
  add(SpgemmAlgorithm::Ell);
  if (!Compat::is_host_v<Exec>) {
    add(SpgemmAlgorithm::Binned, Backend::Auto, 1);
    add(SpgemmAlgorithm::Binned, Backend::Kokkos);
    return list;
  }
  for (const auto a : {SpgemmAlgorithm::Spa, SpgemmAlgorithm::Hash, SpgemmAlgorithm::Heap, SpgemmAlgorithm::Coo}) {
    add(a);
  }
  add(SpgemmAlgorithm::Binned, Backend::EmulatedNvidia);
  add(SpgemmAlgorithm::Binned, Backend::EmulatedNvidia, 1);
  if (emulates(Backend::EmulatedAmd)) add(SpgemmAlgorithm::Binned, Backend::EmulatedAmd);
  return list;
}

/// Diagonals of a matrix, by plain loops.
template <class T, class Offset>
std::int64_t diagonals_of(const HostMatrix<T, Offset>& M) {
  std::set<int> all;
  for (int i = 0; i < M.rows; ++i) {
    for (auto e = M.row_map[static_cast<std::size_t>(i)]; e < M.row_map[static_cast<std::size_t>(i) + 1]; ++e) {
      all.insert(M.entries[static_cast<std::size_t>(e)] - i);
    }
  }
  return static_cast<std::int64_t>(all.size());
}
template <class T, class Offset>
bool columns_ascend(const HostMatrix<T, Offset>& M) {
  for (int i = 0; i < M.rows; ++i) {
    for (auto e = M.row_map[static_cast<std::size_t>(i)] + 1; e < M.row_map[static_cast<std::size_t>(i) + 1]; ++e) {
      if (M.entries[static_cast<std::size_t>(e)] <= M.entries[static_cast<std::size_t>(e) - 1]) return false;
    }
  }
  return true;
}
template <class T, class Offset>
std::int64_t longest_row(const HostMatrix<T, Offset>& M) {
  std::int64_t n = 0;
  for (int i = 0; i < M.rows; ++i) n = std::max(n, M.length(i));
  return n;
}
/// What Dia and Ell must say that they need.
template <class T, class Offset>
std::size_t predicted_bytes(const HostMatrix<T, Offset>& A, const HostMatrix<T, Offset>& B, SpgemmAlgorithm algorithm) {
  return algorithm == SpgemmAlgorithm::Dia
             ? Impl::spgemm_dia_bytes(A.rows, diagonals_of(A), B.rows, diagonals_of(B), sizeof(T))
             : Impl::spgemm_ell_bytes(A.rows, longest_row(A), B.rows, longest_row(B), B.cols, sizeof(T), sizeof(int));
}
/// Part of the reason with which an algorithm must refuse a product; empty: it must not.
template <class T, class Offset>
std::string refusal_of(const HostMatrix<T, Offset>& A, const HostMatrix<T, Offset>& B, const SpgemmOptions& options) {
  const bool dia = options.algorithm == SpgemmAlgorithm::Dia;
  if (!dia && options.algorithm != SpgemmAlgorithm::Ell) return "";
  if (dia && !columns_ascend(A)) return "columns of A descend or repeat";
  if (dia && !columns_ascend(B)) return "columns of B descend or repeat";
  std::size_t room = options.max_workspace_bytes;
  if (room == 0) {
    const auto bytes = [](const auto& M) {
      return M.row_map.size() * sizeof(Offset) + M.entries.size() * (sizeof(T) + sizeof(int));
    };
    room = std::max(std::size_t{1} << 26, 4 * (bytes(A) + bytes(B)));
  }
  const std::size_t needed = predicted_bytes(A, B, options.algorithm);
  return needed <= room ? "" : "needs " + std::to_string(needed) + " bytes";
}

/// The same bits, or undefined in both: which of two undefined numbers a sum keeps is up to the compiler.
template <class T>
bool same_numbers(const std::vector<T>& a, const std::vector<T>& b) {
  const auto same = [](const T& x, const T& y) {
    return std::memcmp(&x, &y, sizeof(T)) == 0 || (std::isnan(x) && std::isnan(y));
  };
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same);
}

/// Many short rows (every fourth of none) in 20,000 columns, and among them one of `longest` entries, one of two pieces
/// of 512 and three of as many entries as a piece or about as many. @param shorts  others have entries
inline Pattern few_very_long_rows_of(int longest, bool shorts = true) {
  return pattern_of_rows(1100, 20000, [=](std::int64_t i, std::vector<int>& to) {
    int n = shorts ? static_cast<int>(i % 4) : 0;
    if (i == 5) n = longest;
    if (shorts && (i == 7 || i == 8 || i == 1099)) n = static_cast<int>(i == 1099 ? 511 : 505 + i);
    if (shorts && i == 9) n = 1024;
    for (int k = 0; k < n; ++k) to.push_back(static_cast<int>(k * (20000 / n) + i % (20000 / n)));
  });
}

/// C as the phases wrote it.
template <class T, class Offset>
struct SpgemmResult {
  std::vector<Offset> row_map;
  std::vector<int> columns;
  std::vector<T> values, updated;  ///< of numeric() and of update_values()
  bool in_pieces = false;          ///< rows of A were cut: sums have another order
};

/// Both phases and an update, into arrays that hold what nobody may leave there.
template <class Exec, class T, class Offset>
SpgemmResult<T, Offset> multiply(const HostMatrix<T, Offset>& A, const HostMatrix<T, Offset>& B,
                                 const SpgemmOptions& options) {
  using Device = DeviceMatrix<Exec, T, Offset>;
  const Device a(A), b(B);
  const Exec space;
  SpgemmPlan<typename Device::Csr> plan(space, a.view(), b.view(), options);
  EXPECT_EQ(plan.nnz(), -1);
  const DeviceVector<Exec, Offset> row_map("row_map", static_cast<std::size_t>(A.rows) + 1);
  Kokkos::deep_copy(row_map, Offset(77));
  const auto nnz = static_cast<std::size_t>(plan.symbolic(space, row_map));
  EXPECT_EQ(plan.nnz(), static_cast<std::int64_t>(nnz));
  const DeviceVector<Exec, int> columns("columns", nnz);
  const DeviceVector<Exec, T> values("values", nnz), updated("updated", nnz);
  Kokkos::deep_copy(columns, -1);
  Kokkos::deep_copy(values, as<T>(std::nan("")));
  Kokkos::deep_copy(updated, as<T>(std::nan("")));
  plan.numeric(space, row_map, columns, values);
  const auto whole = spgemm(space, a.view(), b.view(), options);
  EXPECT_EQ(to_host(whole.row_map()), to_host(row_map));
  EXPECT_EQ(to_host(whole.entries()), to_host(columns));
  EXPECT_TRUE(same_numbers(to_host(whole.values()), to_host(values))) << "in one call";
  plan.update_values(space, a.view(), b.view(), row_map, columns, updated);
  const bool in_pieces = plan.statistics().why.find("rows of A in pieces") != std::string::npos;
  return {to_host(row_map), to_host(columns), to_host(values), to_host(updated), in_pieces};
}

/// Columns ascend and are those that have a product; every number is within the bound of its sum, or equal.
template <class T, class Offset>
void expect_product(const HostMatrix<T, Offset>& A, const HostMatrix<T, Offset>& B, const SpgemmResult<T, Offset>& C,
                    bool exact) {
  const double u = TypeFacts<T>::roundoff(), tiny = TypeFacts<T>::tiny();
  ASSERT_EQ(C.row_map.size(), static_cast<std::size_t>(A.rows) + 1);
  ASSERT_EQ(C.row_map[0], Offset(0));
  for (int i = 0; i < A.rows; ++i) {
    const auto wanted = Reference::spgemm_row(i, A.row_map.data(), A.entries.data(), A.values.data(), B.row_map.data(),
                                              B.entries.data(), B.values.data());
    auto e = static_cast<std::size_t>(C.row_map[static_cast<std::size_t>(i)]);
    ASSERT_EQ(static_cast<std::size_t>(C.row_map[static_cast<std::size_t>(i) + 1]), e + wanted.size()) << "row " << i;
    for (const auto& [column, entry] : wanted) {
      ASSERT_EQ(C.columns[e], column) << "row " << i;
      const long double found = wide(C.values[e]);
      if (exact || std::isnan(entry.sum)) {
        ASSERT_TRUE(found == entry.sum || (std::isnan(found) && std::isnan(entry.sum))) << i << ", " << column;
      } else {
        ASSERT_LE(std::fabs(found - entry.sum), Reference::spgemm_bound(entry, u, tiny)) << i << ", " << column;
      }
      ++e;
    }
  }
  EXPECT_EQ(static_cast<std::size_t>(C.row_map.back()), C.columns.size());
  EXPECT_TRUE(same_numbers(C.values, C.updated)) << "update_values";
}

/// Every method against plain loops.
template <class Exec, class T_, class Offset>
struct SpgemmSuite {
  using T = T_;
  using Matrix = HostMatrix<T, Offset>;

  static Matrix matrix(const Pattern& p, Data data, std::uint64_t seed) {
    return make_matrix<T, Offset>(p, data, seed);
  }

  /// On devices Kokkos' kernels and a backend's, which Auto takes, fuse multiplications with additions at different
  /// places.
  static bool fuses_alike(const SpgemmOptions& options) {
    const bool by_kokkos = options.backend == Backend::Kokkos || options.algorithm == SpgemmAlgorithm::Dia ||
                           options.algorithm == SpgemmAlgorithm::Ell;
    return Compat::is_host_v<Exec> || !by_kokkos;
  }
  /// All methods, which give the same bits where compilers fuse alike.
  /// @param all  none may refuse
  static void check(const Matrix& A, const Matrix& B, Data data, bool sorted = true, bool all = false) {
    std::vector<T> first;
    for (const SpgemmOptions& options : spgemm_variants<Exec>()) {
      if (options.algorithm == SpgemmAlgorithm::Heap && !sorted) continue;
      SCOPED_TRACE(std::string(to_string(options.algorithm)) + ", " + to_string(options.backend) + ", room " +
                   std::to_string(options.max_workspace_bytes));
      const std::string refusal = refusal_of(A, B, options);
      if (!refusal.empty()) {
        EXPECT_FALSE(all) << refusal;
        expect_refusal(A, B, options, refusal);
        continue;
      }
      const auto C = multiply<Exec>(A, B, options);
      expect_product(A, B, C, data == Data::Integers);
      if (C.in_pieces) continue;
      if (first.empty()) first = C.values;
      // Integers are equal to the oracle's already; undefined numbers among them may have other bits.
      if (data == Data::Real && fuses_alike(options)) {
        EXPECT_TRUE(same_bits(first, C.values)) << "another order of sums";
      }
    }
  }
  static void expect_refusal(const Matrix& A, const Matrix& B, const SpgemmOptions& options,
                             const std::string& refusal) {
    const DeviceMatrix<Exec, T, Offset> a(A), b(B);
    try {
      SpgemmPlan<typename DeviceMatrix<Exec, T, Offset>::Csr>(Exec(), a.view(), b.view(), options);
      ADD_FAILURE() << "not refused: " << refusal;
    } catch (const NotSupported& e) {
      EXPECT_NE(std::string(e.what()).find(refusal), std::string::npos) << e.what() << " has no '" << refusal << "'";
    }
  }
  static void check(const std::string& a, const std::string& b) {
    SCOPED_TRACE(a + " times " + b);
    for (const Data data : {Data::Integers, Data::Real}) {
      check(matrix(generate(a), data, 1), matrix(generate(b), data, 2), data);
    }
  }

  /// Compressions from 1 to 91, empty and dense rows, single rows and columns.
  static void every_shape() {
    for (const std::string& spec : shapes<shorter_lists>()) {
      const Pattern p = generate(spec);
      const auto A = matrix(p, Data::Integers, 1);
      const auto B = p.rows == p.cols ? matrix(p, Data::Integers, 2) : transposed(A);
      std::int64_t products = 0;
      for (const int k : A.entries) products += B.length(k);
      if (products > (fewer_cases ? 20000 : 60000)) continue;  // the oracle takes its time
      SCOPED_TRACE(spec);
      check(A, B, Data::Integers);
    }
  }

  static void rectangular() {
    check("uniform:rows=70:cols=300:per_row=7", "uniform:rows=300:cols=11:per_row=3");
    check("uniform:rows=3:cols=40:per_row=7", "uniform:rows=40:cols=20011:per_row=90");
    check("dense:rows=30:cols=4", "dense:rows=4:cols=50");
    for (const char* cols : {"959", "960", "961", "1000", "1024"}) {  // as many words of 64 as there are
      check("dense:rows=3:cols=4", "dense:rows=4:cols=" + std::string(cols));
    }
    check("empty:rows=5:cols=8", "uniform:rows=8:cols=6:per_row=2");
    check("empty:rows=5:cols=0", "empty:rows=0:cols=7");
    check("empty:rows=0:cols=5", "uniform:rows=5:cols=6:per_row=2");
    check("uniform:rows=5:cols=6:per_row=2", "empty:rows=6:cols=0");
  }

  /// Rows of A that a backend cuts into pieces: even ones, an empty one, one that has most of the entries.
  static void few_long_rows() {
    const auto uneven = pattern_of_rows(21, 9000, [](std::int64_t i, std::vector<int>& to) {
      for (int k = 0; k < (i == 5 ? 0 : i == 9 ? 9000 : 300 + static_cast<int>(i)); ++k) {
        to.push_back(i == 9 ? k : static_cast<int>(k * 29 + i) % 9000);
      }
      std::sort(to.end() - (i == 5 ? 0 : i == 9 ? 9000 : 300 + i), to.end());
    });
    for (const auto& [a, b] :
         {std::pair(generate("uniform:rows=20:cols=3000:per_row=700"), generate("uniform:rows=3000:cols=40:per_row=5")),
          std::pair(generate("uniform:rows=12:cols=2000:per_row=600"),
                    generate("uniform:rows=2000:cols=60:per_row=40")),
          std::pair(uneven, generate("uniform:rows=9000:cols=25:per_row=3"))}) {
      for (const Data data : {Data::Integers, Data::Real}) {
        const auto A = matrix(a, data, 7), B = matrix(b, data, 8);
        int cut = 0;
        for (SpgemmOptions options : spgemm_variants<Exec>()) {
          if (options.algorithm != SpgemmAlgorithm::Binned) continue;
          SCOPED_TRACE(std::string(to_string(options.backend)) + ", room " +
                       std::to_string(options.max_workspace_bytes));
          const auto C = multiply<Exec>(A, B, options), again = multiply<Exec>(A, B, options);
          expect_product(A, B, C, data == Data::Integers);
          EXPECT_TRUE(same_bits(C.values, again.values));
          cut += C.in_pieces;
        }
        EXPECT_GE(cut, 1);
      }
      few_long_rows_of_other_numbers(matrix(a, Data::Integers, 7), matrix(b, Data::Integers, 8));
      // Columns of B in no order are for Kokkos, which sees it after A was cut.
      const auto A = matrix(a, Data::Integers, 7), B = matrix(with_unsorted_columns(b), Data::Integers, 8);
      SpgemmOptions options;
      options.algorithm = SpgemmAlgorithm::Binned;
      if (Compat::is_host_v<Exec>) options.backend = Backend::EmulatedNvidia;
      const auto C = multiply<Exec>(A, B, options);
      EXPECT_FALSE(C.in_pieces);
      expect_product(A, B, C, true);
    }
  }
  /// Numbers that change in their arrays, between the phases and before an update.
  static void few_long_rows_of_other_numbers(const Matrix& A, const Matrix& B) {
    using Device = DeviceMatrix<Exec, T, Offset>;
    SpgemmOptions options;
    options.algorithm = SpgemmAlgorithm::Binned;
    if (Compat::is_host_v<Exec>) options.backend = Backend::EmulatedNvidia;
    Matrix twice = A;
    for (T& v : twice.values) v = as<T>(2 * wide(v));
    const Exec space;
    const Device a(A), b(B);
    SpgemmPlan<typename Device::Csr> plan(space, a.view(), b.view(), options);
    const DeviceVector<Exec, Offset> row_map("row_map", static_cast<std::size_t>(A.rows) + 1);
    const auto nnz = static_cast<std::size_t>(plan.symbolic(space, row_map));
    const DeviceVector<Exec, int> columns("columns", nnz);
    const DeviceVector<Exec, T> values("values", nnz), updated("updated", nnz);
    Kokkos::deep_copy(a.values, to_device<Exec>(twice.values));
    plan.numeric(space, row_map, columns, values);
    expect_product(twice, B, {to_host(row_map), to_host(columns), to_host(values), to_host(values)}, true);
    Kokkos::deep_copy(a.values, to_device<Exec>(A.values));
    plan.update_values(space, a.view(), b.view(), row_map, columns, updated);
    expect_product(A, B, {to_host(row_map), to_host(columns), to_host(updated), to_host(updated)}, true);
  }

  /// A thread block would be busy with one row long after all others are done: rows are cut, unless there is a cap.
  static void few_very_long_rows() {
    const auto b = generate("uniform:rows=20000:cols=60:per_row=2");
    for (const auto& [longest, shorts] :
         {std::pair(17000, true), std::pair(17000, false), std::pair(4096, true), std::pair(4095, true)}) {
      const auto a = few_very_long_rows_of(longest, shorts);
      for (const Data data : {Data::Integers, Data::Real}) {
        if (data == Data::Real && longest < 17000) continue;
        const auto A = matrix(a, data, 7), B = matrix(b, data, 8);
        for (SpgemmOptions options : spgemm_variants<Exec>()) {
          if (options.algorithm != SpgemmAlgorithm::Binned) continue;
          SCOPED_TRACE(std::string(to_string(options.backend)) + ", room " +
                       std::to_string(options.max_workspace_bytes) + ", longest " + std::to_string(longest));
          const bool native =
              options.backend != Backend::Kokkos && (options.backend != Backend::Auto || !Compat::is_host_v<Exec>);
          const auto C = multiply<Exec>(A, B, options), again = multiply<Exec>(A, B, options);
          EXPECT_EQ(C.in_pieces, native && options.max_workspace_bytes == 0 && longest >= 4096);
          expect_product(A, B, C, data == Data::Integers);
          EXPECT_TRUE(same_bits(C.values, again.values));
        }
      }
      if (shorts && longest == 17000)
        few_long_rows_of_other_numbers(matrix(a, Data::Integers, 7), matrix(b, Data::Integers, 8));
    }
  }

  /// Columns that are far apart: more than one word of words, for rows of few and of many products.
  static void wide_rows() {
    const auto far = pattern_of_rows(40, 300000, [](std::int64_t i, std::vector<int>& to) {
      for (std::int64_t k = 0; k < 3 * (i % 9); ++k) to.push_back(static_cast<int>((k * 11003 + i * 97) % 300000));
      std::sort(to.end() - 3 * (i % 9), to.end());
    });
    const auto A = matrix(generate("uniform:rows=60:cols=40:per_row=5"), Data::Real, 3);
    check(A, matrix(far, Data::Real, 4), Data::Real);
  }

  /// Rows of C that no table of a team holds: several parts, and more than one window of columns.
  static void large_rows() {
    const auto far = pattern_of_rows(40, 300000, [](std::int64_t i, std::vector<int>& to) {
      for (std::int64_t k = 0; k < 211; ++k) to.push_back(static_cast<int>((k * 11003 + i * 4097 + k * k) % 300000));
      std::sort(to.end() - 211, to.end());
      to.erase(std::unique(to.begin() + (to.size() - 211), to.end()), to.end());
    });
    // Many products for few entries: several parts for that alone. More rows of B than threads of a block.
    check("dense:rows=2:cols=600", "dense:rows=600:cols=200");
    // Rows of B of which one is much longer than the others.
    const auto uneven = pattern_of_rows(40, 300000, [](std::int64_t i, std::vector<int>& to) {
      for (int k = 0; k < (i == 7 ? 6000 : 2); ++k) to.push_back(static_cast<int>(k * 47 + i));
    });
    check(matrix(generate("dense:rows=3:cols=40"), Data::Real, 5), matrix(uneven, Data::Real, 6), Data::Real);
    const Pattern left = generate("dense:rows=3:cols=40");
    for (const Data data : {Data::Integers, Data::Real}) {
      const auto A = matrix(left, data, 3);
      const bool real = data == Data::Real;  // of shorter lists each meets one order of columns
      if (!shorter_lists || real) check(A, matrix(far, data, 4), data);
      if (!shorter_lists || !real) check(A, matrix(with_unsorted_columns(far), data, 4), data, false);
    }
  }

  /// Parts of a row side by side in columns, and rows of some hundred entries in more columns than few windows have.
  static void long_and_far_rows() {
    check("dense:rows=3:cols=4", "dense:rows=4:cols=3000");
    const auto far = pattern_of_rows(20, 1'000'000, [](std::int64_t i, std::vector<int>& to) {
      for (int k = 0; k < 20; ++k) to.push_back(static_cast<int>(k * 49'999 + i * 1'217));
    });
    const auto A = matrix(generate("uniform:rows=9:cols=20:per_row=11"), Data::Real, 3);
    check(A, matrix(far, Data::Real, 4), Data::Real);
  }

  /// Rows of A of so many entries that thread blocks share them: columns of C farther apart than a window of bits,
  /// several parts of many rounds of products, entries of several products; more such rows than a thread block notes
  /// down.
  static void very_long_rows() {
    const auto far = pattern_of_rows(2600, 900'000, [](std::int64_t i, std::vector<int>& to) {
      for (int k = 0; k < (i == 1300 ? 900 : 3); ++k) to.push_back(static_cast<int>(i * 7919 % 1000 + k * 999));
      if (i % 3 == 0) to.push_back(static_cast<int>(899'999 - i));
    });
    for (const Data data : {Data::Integers, Data::Real}) {
      if (shorter_lists && data == Data::Integers) continue;
      check(matrix(generate("dense:rows=2:cols=2600"), data, 5), matrix(far, data, 6), data);
    }
    for (const Data data : {Data::Integers, Data::Real}) {
      if (shorter_lists && data == Data::Real) continue;
      const auto A = matrix(generate("dense:rows=19:cols=2100"), data, 1);
      check(A, matrix(generate("uniform:rows=2100:cols=40000:per_row=2"), data, 2), data);
    }
  }

  /// Rows in batches where their lists may not be in memory at once: the same bits, and never more memory than allowed.
  static void memory_cap() {
    const auto A = matrix(generate("rmat:scale=12:degree=5"), Data::Real, 19);
    for (SpgemmOptions options : spgemm_variants<Exec>()) {
      const bool native = options.backend == Backend::EmulatedNvidia || options.backend == Backend::EmulatedAmd ||
                          (!Compat::is_host_v<Exec> && options.backend == Backend::Auto);
      if (options.algorithm != SpgemmAlgorithm::Binned || !native || options.max_workspace_bytes > 0) continue;
      SCOPED_TRACE(to_string(options.backend));
      const auto wanted = multiply<Exec>(A, A, options);
      const DeviceMatrix<Exec, T, Offset> a(A);
      const auto phases = [&](std::size_t most) {
        options.max_workspace_bytes = most;
        SpgemmPlan<typename DeviceMatrix<Exec, T, Offset>::Csr> plan(Exec(), a.view(), a.view(), options);
        const DeviceVector<Exec, Offset> row_map("row_map", static_cast<std::size_t>(A.rows) + 1);
        const auto nnz = static_cast<std::size_t>(plan.symbolic(Exec(), row_map));
        const DeviceVector<Exec, int> columns("columns", nnz);
        const DeviceVector<Exec, T> values("values", nnz), updated("updated", nnz);
        plan.numeric(Exec(), row_map, columns, values);
        plan.update_values(Exec(), a.view(), a.view(), row_map, columns, updated);
        EXPECT_EQ(to_host(row_map), wanted.row_map) << most;
        EXPECT_EQ(to_host(columns), wanted.columns) << most;
        EXPECT_TRUE(same_bits(to_host(values), wanted.values)) << most;
        EXPECT_TRUE(same_bits(to_host(updated), wanted.values)) << most;
        EXPECT_GT(plan.workspace_bytes(), std::size_t{0});
        return plan.workspace_bytes();
      };
      const std::size_t all = phases(0);
      EXPECT_GT(all, std::size_t{1} << 18) << "the rest says nothing";
      for (const std::size_t most : {all, all - 1, std::size_t{1} << 18, std::size_t{1} << 17, std::size_t{1} << 16}) {
        if (shorter_lists && (fewer_cases || most != all - 1) && most != std::size_t{1} << 16) continue;
        EXPECT_LE(phases(most), most);
      }
      phases(1);
    }
  }

  /// Few products per row, from none to more than are sorted at once.
  static void every_number_of_products() {
    const auto lengths = pattern_of_rows(200, 50, [](std::int64_t i, std::vector<int>& to) {
      for (std::int64_t k = 0; k < i % 7; ++k) to.push_back(static_cast<int>((i + 7 * k) % 50));
      std::sort(to.end() - i % 7, to.end());
    });
    const Pattern right = generate("random:rows=50:cols=60:lengths=uniform:mean=3");
    check(matrix(lengths, Data::Integers, 5), matrix(right, Data::Integers, 6), Data::Integers);
  }

  /// 0 to 100 products per row of C, in either direction of hosts' limit for short rows: columns of B's rows in one
  /// word of 64, one per word, at the very ends, alike in several rows of B; rows of A in any order and twice the same.
  static void short_rows() {
    const int cols = 9000;
    const auto right = pattern_of_rows(24, cols, [&](std::int64_t k, std::vector<int>& to) {
      for (int t = 0; t < static_cast<int>(k); ++t) {
        to.push_back(k % 4 == 0 ? 128 + 2 * t : k % 4 == 1 ? 320 * t + 11 : k % 4 == 2 ? cols - 24 + t : 389 * t);
      }
    });
    const auto left = pattern_of_rows(303, 24, [](std::int64_t i, std::vector<int>& to) {
      for (std::int64_t rest = i % 101, turn = i; rest > 0; ++turn) {
        const auto k = std::min<std::int64_t>(rest, 1 + (7 * turn + i / 101) % 23);
        to.push_back(static_cast<int>(k));  // which has k entries
        rest -= k;
      }
    });
    for (const Data data : {Data::Integers, Data::Real}) {
      check(matrix(left, data, 31), matrix(right, data, 32), data, false);
      check(matrix(left, data, 33), matrix(with_unsorted_columns(right), data, 34), data, false);
    }
  }

  static void unsorted_and_repeated_columns() {
    const Pattern a = with_unsorted_columns(generate("random:rows=150:cols=97:lengths=uniform:mean=6")),
                  b = with_unsorted_columns(generate("random:rows=97:cols=120:lengths=geometric:mean=7"));
    for (const Data data : {Data::Integers, Data::Real}) {
      check(matrix(a, data, 7), matrix(b, data, 8), data, false);
    }
    const auto copies = pattern_of_rows(60, 60, [](std::int64_t i, std::vector<int>& to) {
      for (int j = 0; j < 60; j += 1 + static_cast<int>(i % 11))
        to.insert(to.end(), static_cast<std::size_t>(1 + j % 3), j);
    });
    check(matrix(copies, Data::Integers, 9), matrix(copies, Data::Integers, 10), Data::Integers);
  }

  /// They reach the entries that have a product of them, and no others.
  static void undefined_numbers() {
    auto A = matrix(generate("random:rows=80:cols=70:lengths=uniform:mean=5"), Data::Integers, 11);
    auto B = matrix(generate("random:rows=70:cols=90:lengths=uniform:mean=5"), Data::Integers, 12);
    for (std::size_t i = 3; i < A.values.size(); i += 41) A.values[i] = as<T>(std::nan(""));
    for (std::size_t i = 5; i < B.values.size(); i += 57) B.values[i] = as<T>(std::nan(""));
    check(A, B, Data::Integers);
  }

  /// Diagonals with holes, also at the corners of the matrix, for which nobody refuses.
  static Pattern banded(int rows, int cols, const std::vector<int>& offsets, int holes) {
    return pattern_of_rows(rows, cols, [&](std::int64_t i, std::vector<int>& to) {
      for (std::size_t d = 0; d < offsets.size(); ++d) {
        const std::int64_t column = i + offsets[d];
        if (column < 0 || column >= cols) continue;
        if (holes > 0 && (i * 7 + static_cast<std::int64_t>(d) * 13 + i * i) % holes == 0) continue;
        to.push_back(static_cast<int>(column));
      }
    });
  }
  static void diagonals_with_holes() {
    struct Case {
      int m, k, n;
      std::vector<int> a, b;  // offsets
    };
    const Case cases[] = {
        {1, 1, 1, {0}, {0}},
        {63, 64, 65, {-62, -1, 0, 1, 63}, {-63, 0, 2, 64}},
        {64, 64, 64, {-63, -5, 0, 63}, {-63, 0, 5, 63}},
        {200, 130, 300, {-199, -70, -3, 0, 1, 64, 129}, {-129, -64, -1, 0, 7, 170, 299}},
        {130, 200, 70, {-129, -65, -64, 0, 63, 65, 128, 199}, {-199, -130, -64, 0, 3, 69}},
        {257, 257, 257, {-16, -15, -1, 0, 1, 15, 16}, {-16, -1, 0, 1, 16}},
        {3, 1000, 2, {-2, 0, 500, 997, 999}, {-999, -998, -500, -1, 0, 1}},
        {500, 3, 400, {-499, -300, -1, 0, 2}, {-2, 0, 1, 200, 399}},
    };
    std::size_t shift = 0;
    for (const Case& c : cases) {
      for (const int holes : {0, 3, 40}) {
        SCOPED_TRACE(std::to_string(c.m) + " x " + std::to_string(c.k) + " x " + std::to_string(c.n) + ", holes " +
                     std::to_string(holes));
        const Pattern a = banded(c.m, c.k, c.a, holes), b = banded(c.k, c.n, c.b, holes);
        std::size_t turn = shift++;
        for (const Data data : {Data::Integers, Data::Real}) {
          if (!taken_elsewhere(turn++)) check(matrix(a, data, 13), matrix(b, data, 14), data, true, true);
        }
      }
    }
  }
  /// Stored zeros, positive and negative, are entries; sums that cancel stay.
  static void zeros_are_entries() {
    const Pattern p = banded(150, 150, {-70, -1, 0, 1, 70}, 5);
    auto A = matrix(p, Data::Integers, 15), B = matrix(p, Data::Integers, 16);
    for (std::size_t i = 0; i < A.values.size(); ++i) A.values[i] = as<T>(i % 3 == 0 ? 0.0 : i % 3 == 1 ? 1.0 : -1.0);
    for (std::size_t i = 0; i < B.values.size(); ++i) B.values[i] = as<T>(i % 5 == 0 ? -0.0 : 1.0);
    check(A, B, Data::Integers, true, true);
    check(A, A, Data::Integers, true, true);
  }
  /// Infinite and undefined numbers beside holes, which are multiplied with nothing; zero times infinity is undefined
  /// where both are entries.
  static void undefined_numbers_beside_holes() {
    const Pattern a = banded(200, 190, {-66, -1, 0, 1, 70}, 4), b = banded(190, 210, {-64, -2, 0, 1, 63, 200}, 6);
    for (const double what : {std::nan(""), std::numeric_limits<double>::infinity()}) {
      auto A = matrix(a, Data::Integers, 17), B = matrix(b, Data::Integers, 18);
      for (std::size_t i = 2; i < A.values.size(); i += 97) A.values[i] = as<T>(what);
      check(A, B, Data::Integers, true, true);
      for (std::size_t i = 1; i < B.values.size(); i += 89) B.values[i] = as<T>(-what);
      check(A, B, Data::Integers, true, true);
    }
    // Sums that overflow are no reason to look at holes twice, and no others change.
    auto A = matrix(a, Data::Integers, 17), B = matrix(b, Data::Integers, 18);
    const double large = std::is_same_v<T, float> ? 3e38 : 1.7e308;
    for (std::size_t i = 0; i < A.values.size(); i += 31) A.values[i] = as<T>(large);
    for (const SpgemmOptions& options : spgemm_variants<Exec>()) {
      if (!fuses_alike(options)) continue;
      const auto C = multiply<Exec>(A, B, options);
      EXPECT_TRUE(same_numbers(C.values, multiply<Exec>(A, B, spgemm_variants<Exec>()[0]).values))
          << to_string(options.algorithm);
    }
  }
};

}  // namespace Testing
}  // namespace Tessera

#endif
