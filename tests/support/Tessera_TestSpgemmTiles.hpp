// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_TEST_SPGEMM_TILES_HPP
#define TESSERA_TEST_SPGEMM_TILES_HPP

#include "support/Tessera_TestSpgemm.hpp"

/// \file
/// Windows of rows of C on FP64 matrix units: what they must not change.

namespace Tessera {
namespace Testing {

template <class Exec, class Offset>
struct SpgemmTilesSuite {
  using T = double;
  using Matrix = HostMatrix<T, Offset>;
  using Device = DeviceMatrix<Exec, T, Offset>;

  /// Every backend that has such units, with tiles wherever they are possible.
  static std::vector<SpgemmOptions> backends(SpgemmTiles tiles) {
    std::vector<SpgemmOptions> list;
    const std::vector<Backend> all =
        Compat::is_host_v<Exec> ? emulated_backends() : std::vector<Backend>{Backend::Auto};
    for (const Backend backend : all) {
      SpgemmOptions options;
      options.algorithm = SpgemmAlgorithm::Binned;
      options.backend = backend;
      options.tiles = tiles;
      list.push_back(options);
    }
    return list;
  }
  static std::int64_t windows(const Matrix& A, const Matrix& B, const SpgemmOptions& options) {
    const Device a(A), b(B);
    SpgemmPlan<typename Device::Csr> plan(Exec(), a.view(), b.view(), options);
    const DeviceVector<Exec, Offset> row_map("row_map", static_cast<std::size_t>(A.rows) + 1);
    plan.symbolic(Exec(), row_map);
    for (const ClassShare& share : plan.statistics().classes) {
      if (share.name == "windows on matrix units") return share.rows;
    }
    return 0;
  }
  /// Nodes on a line, each with `unknowns`, that know their neighbours up to `reach` nodes away, and a far one.
  static Pattern line(int nodes, int unknowns, int reach, int far = 0) {
    return pattern_of_rows(nodes * unknowns, nodes * unknowns, [=](std::int64_t i, std::vector<int>& to) {
      const auto node = static_cast<int>(i / unknowns);
      for (int other = 0; other < nodes; ++other) {
        const int distance = other < node ? node - other : other - node;
        if (distance > reach && (far == 0 || distance != far)) continue;
        for (int u = 0; u < unknowns; ++u) to.push_back(other * unknowns + u);
      }
    });
  }
  struct Case {
    const char* what;
    Pattern a, b;
    bool tiles;  ///< some windows are taken
  };
  static std::vector<Case> cases() {
    std::vector<Case> list;
    const auto square = [&](const char* what, const Pattern& p, bool tiles) { list.push_back({what, p, p, tiles}); };
    square("three unknowns, an incomplete window at the end", line(31, 3, 2), true);
    square("six unknowns", line(17, 6, 1), true);
    square("far neighbours", line(60, 3, 1, 25), true);
    list.push_back({"more columns of A than tiles take, but for the ends", line(60, 6, 22),
                    generate("uniform:rows=360:cols=90:per_row=12"), true});
    list.push_back(
        {"more columns of C than at once", generate("dense:rows=40:cols=9"), generate("dense:rows=9:cols=1300"), true});
    list.push_back({"more columns of A than at most", generate("dense:rows=40:cols=300"),
                    generate("dense:rows=300:cols=70"), false});
    // Of a word of 32 columns one each: more words than a window has places for.
    const auto scattered = pattern_of_rows(12, 40000, [](std::int64_t i, std::vector<int>& to) {
      for (int k = 0; k < 97; ++k) to.push_back(static_cast<int>(i) + 12 * 33 * k);
    });
    list.push_back({"columns far apart", generate("dense:rows=32:cols=12"), scattered, true});
    list.push_back({"rows of B longer than all threads", generate("dense:rows=16:cols=5"),
                    generate("dense:rows=5:cols=700"), true});
    list.push_back({"columns of A descend", with_unsorted_columns(line(31, 3, 2)), line(31, 3, 2), false});
    list.push_back({"columns of A repeat",
                    pattern_of_rows(32, 40,
                                    [](std::int64_t, std::vector<int>& to) {
                                      for (int k = 0; k < 30; ++k) to.push_back(k / 2);
                                    }),
                    generate("dense:rows=40:cols=70"), false});
    list.push_back({"rows without entries",
                    pattern_of_rows(64, 93,
                                    [](std::int64_t i, std::vector<int>& to) {
                                      for (int k = 0; k < (i == 18 ? 0 : 20); ++k) to.push_back(4 * k);
                                    }),
                    line(31, 3, 3), true});
    return list;
  }

  /// Exact on whole numbers, within the bound on others; phases, one call and updates alike (multiply()).
  static void against_plain_loops() {
    for (const Case& c : cases()) {
      for (const Data data : {Data::Integers, Data::Real}) {
        const auto A = make_matrix<T, Offset>(c.a, data, 1), B = make_matrix<T, Offset>(c.b, data, 2);
        for (const SpgemmOptions& options : backends(SpgemmTiles::Always)) {
          SCOPED_TRACE(std::string(c.what) + ", " + to_string(options.backend));
          EXPECT_EQ(windows(A, B, options) > 0, c.tiles);
          expect_product(A, B, multiply<Exec>(A, B, options), data == Data::Integers);
        }
      }
    }
  }
  /// The same windows, and bits, however little memory there is.
  static void memory_cap() {
    const auto A = make_matrix<T, Offset>(line(250, 3, 2, 40), Data::Real, 3);
    for (SpgemmOptions options : backends(SpgemmTiles::Always)) {
      SCOPED_TRACE(to_string(options.backend));
      const auto wanted = multiply<Exec>(A, A, options);
      EXPECT_GT(windows(A, A, options), 20);
      for (const std::size_t most : {1 << 18, 1 << 16, 40000, 20000, 1}) {
        options.max_workspace_bytes = most;
        const auto C = multiply<Exec>(A, A, options);
        EXPECT_TRUE(same_bits(C.values, wanted.values)) << most;
        EXPECT_TRUE(same_bits(C.updated, wanted.values)) << most;
      }
    }
  }
  /// They reach the entries that have a product of them, in A and in B, and windows of them are summed as without
  /// tiles.
  static void not_finite() {
    const Pattern p = line(40, 3, 2, 17);
    for (const double what : {std::nan(""), std::numeric_limits<double>::infinity()}) {
      for (const bool left : {false, true}) {
        auto A = make_matrix<T, Offset>(p, Data::Real, 5), B = make_matrix<T, Offset>(p, Data::Real, 6);
        auto& values = left ? A.values : B.values;
        values[values.size() / 3] = what;
        values[values.size() / 2] = -what;
        const auto never = backends(SpgemmTiles::Never), always = backends(SpgemmTiles::Always);
        for (std::size_t i = 0; i < never.size(); ++i) {
          SCOPED_TRACE(std::string(to_string(never[i].backend)) + (left ? ", A" : ", B"));
          EXPECT_GT(windows(A, B, always[i]), 0);
          const auto wanted = multiply<Exec>(A, B, never[i]), C = multiply<Exec>(A, B, always[i]);
          std::size_t strange = 0;
          for (int row = 0; row < A.rows; ++row) {
            const auto begin = static_cast<std::size_t>(C.row_map[static_cast<std::size_t>(row)]),
                       end = static_cast<std::size_t>(C.row_map[static_cast<std::size_t>(row) + 1]);
            for (std::size_t e = begin; e < end; ++e) {
              strange += !std::isfinite(wanted.values[e]);
              EXPECT_EQ(std::isnan(C.values[e]), std::isnan(wanted.values[e])) << row;
              EXPECT_EQ(std::isfinite(C.values[e]), std::isfinite(wanted.values[e])) << row;
            }
            bool reached = false;
            for (std::size_t e = begin; e < end; ++e) reached = reached || !std::isfinite(wanted.values[e]);
            for (std::size_t e = begin; reached && e < end; ++e) {
              EXPECT_TRUE(C.values[e] == wanted.values[e] || std::isnan(wanted.values[e])) << row;
            }
          }
          EXPECT_GT(strange, std::size_t{0});
        }
      }
    }
  }
  /// Auto takes tiles for what they are made for, Never nowhere.
  static void choice() {
    const auto blocks = make_matrix<T, Offset>(line(2000, 6, 2), Data::Real, 7);
    const auto graph = make_matrix<T, Offset>("rmat:scale=11:degree=30", Data::Real, 8);
    for (const SpgemmOptions& options : backends(SpgemmTiles::Auto)) {
      EXPECT_GT(windows(blocks, blocks, options), 500);
      EXPECT_LT(windows(graph, graph, options), 10);
    }
    for (const SpgemmOptions& options : backends(SpgemmTiles::Never)) EXPECT_EQ(windows(blocks, blocks, options), 0);
  }
  /// Who comes first must not show.
  static void repeatable() {
    const auto A = make_matrix<T, Offset>(line(700, 3, 2, 90), Data::Real, 10);
    for (const SpgemmOptions& options : backends(SpgemmTiles::Always)) {
      const auto first = multiply<Exec>(A, A, options);
      for (int turn = 0; turn < 3; ++turn) EXPECT_TRUE(same_bits(multiply<Exec>(A, A, options).values, first.values));
    }
  }
  /// Kernels of FP32 have none.
  static void floats() {
    const auto A = make_matrix<float, Offset>(line(31, 3, 2), Data::Integers, 9);
    for (const SpgemmOptions& options : backends(SpgemmTiles::Always)) {
      expect_product(A, A, multiply<Exec>(A, A, options), true);
    }
  }
};

}  // namespace Testing
}  // namespace Tessera

#endif
