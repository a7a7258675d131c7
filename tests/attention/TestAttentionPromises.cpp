// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// What an attention plan promises beside right numbers: gradients that are those of the function, NaN that stays in its
// row, the same bits again and for every number of threads, kernels of devices, other backends, no allocation.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "attention/AttentionSuite.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;

class AttentionPromises : public ::testing::TestWithParam<AttentionAlgorithm> {
 protected:
  template <class T>
  using Suite = AttentionSuite<Exec, T>;
  static Pattern mixed() { return generate("every_length:longest=70:cols=90"); }
};

#ifndef TESSERA_TEST_FEWER_TYPES  // which link no plan of FP64
/// The sum of O dO, whose gradient by O is dO.
double loss(const AttentionSuite<Exec, double>& suite, const AttentionSuite<Exec, double>::Problem& p) {
  const auto r = suite.run(p);
  double sum = 0;
  for (std::size_t i = 0; i < r.o.size(); ++i) sum += r.o[i] * p.d_o[i];
  return sum;
}

// Central differences with steps h err by h^2 / 6 of a third derivative, which here is of the order of the numbers
// themselves (some units), and by roundings of the sum (of some hundred numbers, 1e-13) divided by h: with h = 1e-4
// about 1e-8 and 1e-9.
TEST_P(AttentionPromises, GradientsAreDifferences) {
  for (const auto values : {AttentionValues::Bias, AttentionValues::Scale}) {
    const Suite<double> suite(GetParam(), values);
    auto p = suite.problem(pattern_of_lengths({3, 0, 7, 1, 40, 2, 5}, 13), 2, 3, 5);
    const auto r = suite.run(p);
    constexpr double h = 1e-4;
    const auto check = [&](const char* name, std::vector<double>& at, const std::vector<double>& gradient) {
      for (std::size_t i = 0; i < at.size(); i += 1 + at.size() / 20) {
        const double keep = at[i];
        at[i] = keep + h;
        const double above = loss(suite, p);
        at[i] = keep - h;
        const double below = loss(suite, p);
        at[i] = keep;
        // The values serve both heads: their gradient is the sum.
        const std::size_t nnz = p.values.size();
        const double own = &at == &p.values ? gradient[i] + gradient[nnz + i] : gradient[i];
        EXPECT_NEAR(own, (above - below) / (2 * h), 1e-6) << name << ' ' << i;
      }
    };
    check("Q", p.q, r.d_q);
    check("K", p.k, r.d_k);
    check("V", p.v, r.d_v);
    check("A", p.values, r.d_values);
  }
}
#endif

// An undefined number in Q, K, V or a bias reaches the rows that use it and no other.
TEST_P(AttentionPromises, NanStaysInItsRow) {
  const Suite<float> suite(GetParam(), AttentionValues::Bias);
  const auto p = suite.problem(mixed(), 1, 16, 16);
  const auto good = suite.run(p);
  const int row = 37, column = p.pattern.entries[static_cast<std::size_t>(p.pattern.row_map[20])];
  const float nan = std::nanf("");
  const auto uses = [&](int i) {
    for (std::int64_t e = p.pattern.row_map[i]; e < p.pattern.row_map[i + 1]; ++e) {
      if (p.pattern.entries[static_cast<std::size_t>(e)] == column) return true;
    }
    return false;
  };
  for (const char what : {'q', 'k', 'v', 'a'}) {
    SCOPED_TRACE(what);
    auto bad = p;
    if (what == 'q') bad.q[row * 16 + 3] = nan;
    if (what == 'k') bad.k[static_cast<std::size_t>(column) * 16 + 3] = nan;
    if (what == 'v') bad.v[static_cast<std::size_t>(column) * 16 + 3] = nan;
    if (what == 'a') bad.values[static_cast<std::size_t>(p.pattern.row_map[row]) + 5] = nan;
    const auto got = suite.run(bad);
    int reached = 0;
    for (int i = 0; i < p.pattern.rows; ++i) {
      const bool here = what == 'q' || what == 'a' ? i == row : uses(i);
      reached += here;
      for (std::size_t k = 0; k < 16; ++k) {
        const float own = got.o[static_cast<std::size_t>(i) * 16 + k],
                    was = good.o[static_cast<std::size_t>(i) * 16 + k];
        if (here && (what != 'v' || k == 3)) {
          EXPECT_TRUE(std::isnan(own)) << i << ", " << k;
        } else {
          EXPECT_EQ(std::memcmp(&own, &was, sizeof(own)), 0) << i << ", " << k;
        }
      }
    }
    EXPECT_TRUE(reached > 0 && reached < p.pattern.rows) << "the test's own pattern";
  }
}

TEST_P(AttentionPromises, SameBitsAgain) {
  const Suite<half_t> suite(GetParam(), AttentionValues::Scale);
  const auto p = suite.problem(mixed(), 2, 40, 24);
  const DeviceMatrix<Exec, half_t, int> A(Suite<half_t>::matrix<int>(p));
  const Suite<half_t>::Plan plan(Exec(), A.view(), suite.options);
  const auto first = suite.run(plan, p, 3);
  suite.run(plan, suite.problem(mixed(), 3, 17, 5));  // scratch is used for something else
  for (const auto& again : {suite.run(plan, p, 3), suite.run(p, 3)}) {
    EXPECT_TRUE(same_bits(first.o, again.o) && same_bits(first.lse, again.lse) && same_bits(first.d_q, again.d_q));
    EXPECT_TRUE(same_bits(first.d_k, again.d_k) && same_bits(first.d_v, again.d_v));
    EXPECT_TRUE(same_bits(first.d_values, again.d_values));
  }
}

TEST_P(AttentionPromises, NewValues) {
  const Suite<UsualScalar> suite(GetParam(), AttentionValues::Bias);
  const auto p = suite.problem(mixed(), 1, 8, 8);
  auto other = p;
  other.values = numbers<UsualScalar>(static_cast<std::int64_t>(p.values.size()), Data::Real, 99);
  const DeviceMatrix<Exec, UsualScalar, int> A(Suite<UsualScalar>::matrix<int>(p)),
      B(Suite<UsualScalar>::matrix<int>(other));
  Suite<UsualScalar>::Plan plan(Exec(), A.view(), suite.options);
  suite.check(p, suite.run(plan, p));
  plan.update_values(Exec(), B.view().values());
  suite.check(other, suite.run(plan, other));
  plan.update_values(Exec(), A.view());
  suite.check(p, suite.run(plan, p));
  EXPECT_TRUE(plan.matches(A.view()));
  EXPECT_FALSE(plan.matches(B.view()));
}

TEST_P(AttentionPromises, NoAllocation) {
  const Suite<float> suite(GetParam(), AttentionValues::Bias);
  const auto p = suite.problem(mixed(), 1, 16, 16);
  const DeviceMatrix<Exec, float, int> A(Suite<float>::matrix<int>(p));
  const Suite<float>::Plan plan(Exec(), A.view(), suite.options);
  const auto m = static_cast<std::size_t>(p.pattern.rows), n = static_cast<std::size_t>(p.pattern.cols);
  using Dense = Kokkos::View<float**, Kokkos::LayoutLeft, DeviceOf<Exec>>;
  const Dense q("q", m, 16), k("k", n, 16), v("v", n, 16), o("o", m, 16), d_q("d_q", m, 16), d_k("d_k", n, 16),
      d_v("d_v", n, 16);
  const DeviceVector<Exec, float> lse("lse", m), d_values("d_values", p.values.size());
  const auto all = [&] {
    plan.apply(Exec(), 1, q, k, v, o, lse);
    plan.backward(Exec(), 1, q, k, v, o, lse, o, d_q, d_k, d_v, d_values);
  };
  all();
  const KokkosCounters counters;
  all();
  EXPECT_EQ(counters.allocations(), 0) << counters.last_allocation();
  EXPECT_GT(counters.kernels(), 0);
  const DeviceVector<Exec, float> one("one", 1);
  EXPECT_GT(counters.allocations(), 0) << "the counters do not count";
}

/// A workspace of workspace_bytes(columns) is enough, and not one byte beyond is written.
TEST_P(AttentionPromises, Workspace) {
  Suite<float> suite(GetParam());
  const auto p = suite.problem(mixed(), 1, 24, 24);
  const DeviceMatrix<Exec, float, int> A(Suite<float>::matrix<int>(p));
  const std::size_t need = Suite<float>::Plan(Exec(), A.view(), suite.options).workspace_bytes(24);
  const DeviceVector<Exec, std::uint64_t> memory("workspace", need / 8 + 8);
  Kokkos::deep_copy(memory, ~std::uint64_t{0});
  suite.options.workspace = {memory.data(), need};
  suite.expect_right(p, 4);  // by columns
  for (std::size_t i = (need + 7) / 8; i < memory.extent(0); ++i) EXPECT_EQ(memory(i), ~std::uint64_t{0}) << i;
  suite.options.workspace = {memory.data(), 64};
  EXPECT_THROW(suite.run(p, 4), WorkspaceTooSmall);
}

INSTANTIATE_TEST_SUITE_P(Both, AttentionPromises,
                         ::testing::Values(AttentionAlgorithm::Fused, AttentionAlgorithm::Chain));

#ifndef TESSERA_TEST_FEWER_TYPES
/// Every row, and every piece of a long one, by itself gives the bits that it has among others: threads may be as many
/// as they like.
TEST(AttentionShares, CutsDoNotShow) {
  using Csr = DeviceMatrix<Exec, float, int>::Csr;
  using Forward = Impl::AttentionHostForward<Csr>;
  const AttentionSuite<Exec, float> suite(AttentionAlgorithm::Fused, AttentionValues::Bias);
  for (const Pattern& pattern :
       {generate("every_length:longest=70:cols=90"), pattern_of_lengths({3, 0, 5000, 1, 2048, 2049, 4096, 30}, 5200)}) {
    const auto p = suite.problem(pattern, 2, 16, 24);
    const DeviceMatrix<Exec, float, int> A(AttentionSuite<Exec, float>::matrix<int>(p));
    const auto wanted = suite.run(p);
    const auto items = Impl::attention_items(A.view());
    const std::int64_t m = p.pattern.rows, n = p.pattern.cols;
    const auto batch = [](const std::vector<float>& v, std::int64_t rows, std::int64_t columns) {
      return Impl::DenseBatch<const float>{{v.data(), rows, columns, columns, 1}, rows * columns};
    };
    std::vector<float> o(wanted.o.size());
    const Impl::AttentionInput<float> in{batch(p.q, m, 16), batch(p.k, n, 16), batch(p.v, n, 24), 2};
    const Impl::AttentionOutput<float> out{{{o.data(), m, 24, 24, 1}, m * 24}};
    const Impl::AttentionScores<float> scores{A.values.data(), AttentionValues::Bias, static_cast<float>(p.scale)};
    const Impl::AttentionLongRows rows(Exec(), A.view());
    EXPECT_EQ(rows.count(), m > 8 ? 0 : 3);
    std::vector<float> pieces(static_cast<std::size_t>(2 * rows.numbers(Forward::numbers(24))));
    for (const std::int64_t count : {std::int64_t{1}, std::int64_t{7}, 2 * m, 5 * m}) {
      SCOPED_TRACE(count);
      std::fill(o.begin(), o.end(), 99.0f);
      std::fill(pieces.begin(), pieces.end(), 99.0f);
      const Impl::Shares shares{2 * m, 2 * (items.nnz + m), count, false};
      const Impl::AttentionShare<Forward> f{{items, scores, in, out, shares, Impl::host_row_bytes<float>(24),
                                             rows.cut(pieces.data(), Forward::numbers(24))}};
      for (std::int64_t share = count; share-- > 0;) f(share);
      for (std::int64_t i = 0; i < 2 * rows.count(); ++i) f.f.finish(i % 2, i / 2);
      EXPECT_TRUE(same_bits(o, wanted.o));
    }
  }
}

/// A workspace of workspace_bytes has room for the pieces of long rows; without that room rows stay whole.
TEST(AttentionCutRows, Workspace) {
  AttentionSuite<Exec, float> suite(AttentionAlgorithm::Fused);
  const auto p = suite.problem(pattern_of_lengths({3, 0, 5000, 1}, 5200), 1, 8, 8);
  const DeviceMatrix<Exec, float, int> A(AttentionSuite<Exec, float>::matrix<int>(p));
  const AttentionSuite<Exec, float>::Plan plan(Exec(), A.view(), suite.options);
  const std::size_t need = plan.workspace_bytes(8);
  EXPECT_EQ(plan.statistics().launches, 2);
  const auto cut = suite.run(p);
  const DeviceVector<Exec, std::uint64_t> memory("workspace", need / 8 + 8);
  suite.options.workspace = {memory.data(), need};
  EXPECT_TRUE(same_bits(cut.o, suite.run(p).o));
  suite.options.workspace = {memory.data(), 16};
  Kokkos::deep_copy(memory, ~std::uint64_t{0});
  suite.expect_right(p);
  EXPECT_EQ(memory(0), ~std::uint64_t{0}) << "no piece has room";
}
#endif

/// The kernels of devices, here in teams of one thread with one lane, in both directions.
template <class T>
void teams(AttentionValues values, int d, int e) {
  using Csr = typename DeviceMatrix<Exec, T, int>::Csr;
  using Sum = Impl::AttentionSum<T>;
  const AttentionSuite<Exec, T> suite(AttentionAlgorithm::Fused, values);
  auto p = suite.problem(generate("every_length:longest=40:cols=50"), 2, d, e);
  if (values == AttentionValues::Bias) {
    for (std::size_t i = 0; i < p.values.size(); i += 4) p.values[i] = as<T>(-std::numeric_limits<double>::infinity());
  }
  const DeviceMatrix<Exec, T, int> A(AttentionSuite<Exec, T>::template matrix<int>(p));
  const std::int64_t m = p.pattern.rows, n = p.pattern.cols, nnz = static_cast<std::int64_t>(p.values.size());
  const auto read = [](const std::vector<T>& v, std::int64_t rows, std::int64_t columns) {
    return Impl::DenseBatch<const T>{{v.data(), rows, columns, columns, 1}, rows * columns};
  };
  const auto write = [](std::vector<T>& v, std::int64_t rows, std::int64_t columns) {
    v.assign(static_cast<std::size_t>(2 * rows * columns), as<T>(55));
    return Impl::DenseBatch<T>{{v.data(), rows, columns, columns, 1}, rows * columns};
  };
  typename AttentionSuite<Exec, T>::Results r;
  r.lse.resize(static_cast<std::size_t>(2 * m));
  const Exec space;
  const Impl::AttentionInput<T> in{read(p.q, m, d), read(p.k, n, d), read(p.v, n, e), 2};
  const Impl::AttentionScores<T> scores{A.values.data(), values, static_cast<Sum>(p.scale)};
  const Impl::CsrArrays<Csr> rows(A.view());
  Impl::AttentionTeamForward<Csr>{rows, scores, in, {write(r.o, m, e), {r.lse.data(), m, 1, m}}}.run(space);
  Impl::AttentionGradients<T> g{read(r.o, m, e),    read(p.d_o, m, e),  {r.lse.data(), m, 1, m},
                                write(r.d_q, m, d), write(r.d_k, n, d), write(r.d_v, n, e)};
  r.d_values.resize(static_cast<std::size_t>(2 * nnz));
  g.d_values = {r.d_values.data(), nnz, 1, nnz};
  std::vector<Sum> delta(static_cast<std::size_t>(2 * m));
  Kokkos::parallel_for(Kokkos::RangePolicy<Exec>(space, 0, 2 * m), Impl::AttentionDelta<T>{g.o, g.d_o, delta.data()});
  using Backward = Impl::AttentionTeamBackward<Csr>;
  Backward{rows, nullptr, scores, in, g, delta.data(), false}.run(space);
  const auto turned = transpose(space, A.view());
  Backward{Impl::CsrArrays<Csr>(turned.view()), turned.pattern.source.data(), scores, in, g, delta.data(), true}.run(
      space);
  space.fence();
  suite.check(p, r);
}
TEST(AttentionTeams, AsInPlainLoops) {
  for (const auto values : {AttentionValues::None, AttentionValues::Bias, AttentionValues::Scale}) {
    SCOPED_TRACE(static_cast<int>(values));
    teams<UsualScalar>(values, 5, 9);
    teams<float>(values, 16, 8);
    teams<half_t>(values, 9, 16);
  }
  teams<float>(AttentionValues::Bias, 3, 700);
  teams<float>(AttentionValues::Bias, 700, 3);
}

/// More scores than Chain has at once: of three heads, two and then one, or one by one, with the same bits.
TEST(AttentionChains, ManyScoresGoInParts) {
  using Csr = DeviceMatrix<Exec, float, int>::Csr;
  const AttentionSuite<Exec, float> suite(AttentionAlgorithm::Chain, AttentionValues::Bias);
  const auto p = suite.problem(generate("every_length:longest=70:cols=90"), 3, 16, 24);
  const DeviceMatrix<Exec, float, int> A(AttentionSuite<Exec, float>::matrix<int>(p));
  const auto wanted = suite.run(p);
  const std::int64_t m = p.pattern.rows, n = p.pattern.cols, nnz = static_cast<std::int64_t>(p.values.size());
  const auto batch = [](const auto* data, std::int64_t rows, std::int64_t columns) {
    return Impl::DenseBatch<const float>{{data, rows, columns, columns, 1}, rows * columns};
  };
  const Impl::AttentionInput<float> in{batch(p.q.data(), m, 16), batch(p.k.data(), n, 16), batch(p.v.data(), n, 24), 3};
  Impl::ChainAttentionEngine<Csr> engine(Exec(), A.view(), suite.options);
  for (const std::int64_t most : {2 * nnz + 1, nnz, std::int64_t{1}}) {
    SCOPED_TRACE(most);
    engine.most_scores = most;
    std::vector<float> o(wanted.o.size(), 99.0f), lse(wanted.lse.size(), 99.0f);
    engine.apply(Exec(), static_cast<float>(p.scale), in, {{{o.data(), m, 24, 24, 1}, m * 24}, {lse.data(), m, 1, m}});
    Exec().fence();
    EXPECT_TRUE(same_bits(o, wanted.o) && same_bits(lse, wanted.lse));
  }
}
/// Of several heads as many at once as a workspace of one head has room for.
TEST(AttentionChains, AWorkspaceOfOneHeadServesAll) {
  AttentionSuite<Exec, float> suite(AttentionAlgorithm::Chain);
  const auto p = suite.problem(generate("every_length:longest=70:cols=90"), 3, 16, 24);
  const DeviceMatrix<Exec, float, int> A(AttentionSuite<Exec, float>::matrix<int>(p));
  const auto wanted = suite.run(p);
  const std::size_t need = AttentionSuite<Exec, float>::Plan(Exec(), A.view(), suite.options).workspace_bytes(24);
  const DeviceVector<Exec, std::uint64_t> memory("workspace", need / 4 + 8);
  for (const std::size_t bytes : {need, 2 * need}) {
    suite.options.workspace = {memory.data(), bytes};
    const auto found = suite.run(p);
    EXPECT_TRUE(same_bits(found.o, wanted.o) && same_bits(found.lse, wanted.lse)) << bytes;
  }
}
TEST(AttentionBackends, ChainsOfPlans) {
  std::vector<Backend> backends = emulated_backends();
  backends.push_back(Backend::Reference);
  for (const Backend backend : backends) {
    SCOPED_TRACE(to_string(backend));
    AttentionSuite<Exec, UsualScalar> suite(AttentionAlgorithm::Chain, AttentionValues::Bias);
    suite.options.backend = backend;
    suite.expect_right(suite.problem(generate("every_length:longest=20:cols=30"), 2, 8, 16));
  }
}

}  // namespace Testing
}  // namespace Tessera
