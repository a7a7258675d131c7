// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Scores of an SDDMM straight into the plan of the SpMM that uses them.

#include <gtest/gtest.h>

#include "Tessera_Spmm.hpp"
#include "support/Tessera_TestSddmm.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;

template <class T>
struct IntoCase {
  using Csr = typename DeviceMatrix<Exec, T>::Csr;
  using Spmm = SpmmPlan<Csr>;
  using Sddmm = SddmmPlan<Csr>;
  using View = Kokkos::View<T**, Kokkos::LayoutRight, DeviceOf<Exec>>;
  static constexpr int inner = 13, columns = 5;

  HostMatrix<T> A;
  DeviceMatrix<Exec, T> device;
  View x, y, b, c, wanted;

  explicit IntoCase(const Pattern& p)
      : A(make_matrix<T>(p, Data::Integers, 3)),
        device(A),
        x(dense("x", A.rows, inner, 41)),
        y(dense("y", A.cols, inner, 42)),
        b(dense("b", A.cols, columns, 43)),
        c("c", static_cast<std::size_t>(A.rows), columns),
        wanted("wanted", static_cast<std::size_t>(A.rows), columns) {}

  static View dense(const char* name, int rows, int cols, int seed) {
    const View v(std::string(name), static_cast<std::size_t>(rows), static_cast<std::size_t>(cols));
    const auto from = numbers<T>(std::int64_t{rows} * cols, Data::Integers, seed);
    std::copy(from.begin(), from.end(), v.data());
    return v;
  }
  static SpmmOptions spmm(SpmmAlgorithm algorithm, Backend backend, RowReordering order) {
    SpmmOptions options;
    options.algorithm = algorithm;
    options.backend = backend;
    options.fallback = false;
    options.reordering = order;
    return options;
  }

  /// Plain loops: scores rounded to the stored type, then the product with b. Integers: exact.
  void multiply(double alpha, bool scaled) {
    for (int i = 0; i < A.rows; ++i) {
      for (int n = 0; n < columns; ++n) {
        double sum = 0;
        for (auto e = A.row_map[static_cast<std::size_t>(i)]; e < A.row_map[static_cast<std::size_t>(i) + 1]; ++e) {
          const auto j = static_cast<std::size_t>(A.entries[static_cast<std::size_t>(e)]);
          double score = 0;
          for (std::size_t k = 0; k < inner; ++k) score += wide(x(static_cast<std::size_t>(i), k)) * wide(y(j, k));
          if (scaled) score *= wide(A.values[static_cast<std::size_t>(e)]);
          sum += wide(as<T>(alpha * score)) * wide(b(j, static_cast<std::size_t>(n)));
        }
        wanted(static_cast<std::size_t>(i), static_cast<std::size_t>(n)) = as<T>(sum);
      }
    }
  }
  void expect_product(const Spmm& plan) {
    plan.apply(Exec(), b, c);
    Exec().fence();
    for (std::size_t i = 0; i < c.extent(0); ++i) {
      for (std::size_t n = 0; n < columns; ++n) ASSERT_EQ(wide(c(i, n)), wide(wanted(i, n))) << i << ", " << n;
    }
  }
};

Pattern mixed_pattern() { return generate("every_length:longest=40:cols=60"); }
/// Columns that repeat and descend.
Pattern unsorted_pattern() {
  return pattern_of_rows(37, 29, [](std::int64_t i, std::vector<int>& to) {
    for (std::int64_t k = 0; k < i % 13; ++k) to.push_back(static_cast<int>((5 * (i + 40 - k)) % 29));
    if (i % 3 == 0) to.insert(to.end(), {5, 5, 2});
  });
}

template <class T>
class SddmmInto : public ::testing::Test {};
#ifdef TESSERA_TEST_FEWER_TYPES
using IntoTypes = ::testing::Types<float, half_t>;
#else
using IntoTypes = ::testing::Types<double, float, half_t>;
#endif
TYPED_TEST_SUITE(SddmmInto, IntoTypes);

// Scores of a graph's edges, and the product with them, by every pair of algorithms.
TYPED_TEST(SddmmInto, EveryPair) {
  using Case = IntoCase<TypeParam>;
  constexpr Backend unit = Backend::EmulatedNvidia;
  for (const Pattern& pattern : {mixed_pattern(), unsorted_pattern()}) {
    Case t(pattern);
    for (const SpmmAlgorithm spmm : {SpmmAlgorithm::Panels, SpmmAlgorithm::FlashSparse}) {
      if (spmm == SpmmAlgorithm::FlashSparse && sizeof(TypeParam) != 2) continue;  // nor FP32 nor FP64
      for (const RowReordering order : {RowReordering::None, RowReordering::Clusters}) {
        const typename Case::Spmm product(Exec(), t.device.view(), Case::spmm(spmm, unit, order));
        for (const auto& how : {std::pair{SddmmAlgorithm::Panels, unit},
                                {SddmmAlgorithm::Rows, unit},
                                {SddmmAlgorithm::Bsmr, emulated_backends().back()},
                                {SddmmAlgorithm::Csr, Backend::Auto},
                                {SddmmAlgorithm::Csr, Backend::Reference}}) {
          SCOPED_TRACE(std::string(to_string(spmm)) + " after " + to_string(how.first));
          for (const bool scaled : {false, true}) {
            SddmmOptions options;
            options.algorithm = how.first;
            options.backend = how.second;
            options.scale_by_values = scaled;
            const typename Case::Sddmm scores(Exec(), t.device.view(), options);
            scores.apply_into(Exec(), Op::NoTrans, scaled ? -0.5 : 2, t.x, t.y, product);
            t.multiply(scaled ? -0.5 : 2, scaled);
            t.expect_product(product);
          }
        }
        // Windows and numbers of one plan: what a graph network with ME-BCRS does.
        const auto* const format = Impl::PlanAccess::format<Experimental::MeBcrs<Exec::memory_space>>(product);
        if (format == nullptr || !format->sorted) continue;
        const typename Case::Sddmm shared(Exec(), t.device.view(), product, {});
        shared.apply_into(Exec(), Op::NoTrans, -0.5, t.x, t.y, product);
        t.multiply(-0.5, false);
        t.expect_product(product);
      }
    }
  }
}

// No columns, or alpha = 0: the numbers become zeros, and those of X and Y are not read.
TYPED_TEST(SddmmInto, NothingToAdd) {
  using Case = IntoCase<TypeParam>;
  Case t(mixed_pattern());
  const typename Case::Spmm product(Exec(), t.device.view(),
                                    Case::spmm(SpmmAlgorithm::Panels, Backend::EmulatedNvidia, RowReordering::None));
  const typename Case::Sddmm scores(Exec(), t.device.view());
  Kokkos::deep_copy(t.x, as<TypeParam>(std::nan("")));
  scores.apply_into(Exec(), Op::NoTrans, 0, t.x, t.y, product);
  t.expect_product(product);
  const typename Case::View none("none", static_cast<std::size_t>(t.A.rows), 0),
      other("none", static_cast<std::size_t>(t.A.cols), 0);
  scores.apply_into(Exec(), Op::NoTrans, 1, none, other, product);
  t.expect_product(product);
}

#ifndef TESSERA_TEST_FEWER_TYPES  // which link no plan of FP64, and compile no mixed types
// 16-bit operands may score into a plan of floats, unrounded.
TEST(SddmmIntoPlans, FloatsOfHalves) {
  IntoCase<float> t(mixed_pattern());
  const IntoCase<float>::Spmm product(
      Exec(), t.device.view(),
      IntoCase<float>::spmm(SpmmAlgorithm::Panels, Backend::EmulatedNvidia, RowReordering::None));
  IntoCase<half_t> h(mixed_pattern());
  std::copy(h.x.data(), h.x.data() + h.x.size(), t.x.data());
  std::copy(h.y.data(), h.y.data() + h.y.size(), t.y.data());
  SddmmOptions options;
  options.compute = ComputeType::FP16_FP32;
  options.algorithm = SddmmAlgorithm::Panels;
  options.backend = Backend::EmulatedNvidia;
  const IntoCase<float>::Sddmm scores(Exec(), t.device.view(), options);
  scores.apply_into(Exec(), Op::NoTrans, 1, h.x, h.y, product);
  t.multiply(1, false);
  t.expect_product(product);
}

// Types that the format does not take go straight from CSR, whose numbers are not those of the format.
TEST(SddmmIntoPlans, MixedTypesAreStaleUntilTheUpdate) {
  using Case = IntoCase<float>;
  // Windows that share all of their columns, so that Auto takes panels.
  Case t(pattern_of_rows(64, 64, [](std::int64_t i, std::vector<int>& to) {
    for (int k = 0; k < 16; ++k) to.push_back(static_cast<int>(i / 16 * 16) + k);
  }));
  SpmmOptions options;
  options.backend = Backend::EmulatedNvidia;
  options.num_columns_hint = 128;
  Case::Spmm product(Exec(), t.device.view(), options);
  ASSERT_EQ(product.options().algorithm, SpmmAlgorithm::Panels);
  const Kokkos::View<double**, Kokkos::LayoutRight, DeviceOf<Exec>> wide("wide", t.c.extent(0), t.c.extent(1));
  const auto mixed = [&](double alpha) { product.apply(Exec(), Op::NoTrans, alpha, t.b, 0, wide); };
  EXPECT_NO_THROW(mixed(1));
  Case::Sddmm(Exec(), t.device.view()).apply_into(Exec(), Op::NoTrans, 2, t.x, t.y, product);
  Kokkos::deep_copy(wide, 7.0);
  EXPECT_THROW(mixed(1), StalePlan);
  EXPECT_THROW(mixed(0), StalePlan);
  EXPECT_EQ(wide(0, 0), 7.0);
  t.multiply(2, false);
  t.expect_product(product);
  // Few columns that lie one behind the other go straight from CSR as well, but not now: they are copied into rows.
  const Kokkos::View<float**, Kokkos::LayoutLeft, DeviceOf<Exec>> b("b", t.b.extent(0), t.b.extent(1)),
      c("c", t.c.extent(0), t.c.extent(1));
  Kokkos::deep_copy(b, t.b);
  const auto kokkos_kernels_in_columns = [&] {
    const KokkosCounters counters;
    product.apply(Exec(), b, c);
    return counters.kernels();
  };
  EXPECT_EQ(kokkos_kernels_in_columns(), 2);
  for (std::size_t i = 0; i < c.extent(0); ++i) {
    for (std::size_t n = 0; n < c.extent(1); ++n) ASSERT_EQ(c(i, n), t.wanted(i, n)) << i << ", " << n;
  }
  product.update_values(Exec(), t.device.view().values());
  EXPECT_EQ(kokkos_kernels_in_columns(), 0);
  EXPECT_NO_THROW(mixed(1));
  product.apply(Exec(), t.b, t.c);
  for (std::size_t i = 0; i < wide.extent(0); ++i) {
    for (std::size_t n = 0; n < wide.extent(1); ++n) ASSERT_EQ(wide(i, n), double{t.c(i, n)}) << i << ", " << n;
  }
}

TEST(SddmmIntoPlans, Refusals) {
  IntoCase<double> t(mixed_pattern()), elsewhere(mixed_pattern());
  using Case = IntoCase<double>;
  const Case::Sddmm scores(Exec(), t.device.view());
  const auto into = [&](const Case::Spmm& plan) { scores.apply_into(Exec(), Op::NoTrans, 1, t.x, t.y, plan); };
  SpmmOptions options = Case::spmm(SpmmAlgorithm::Panels, Backend::EmulatedNvidia, RowReordering::None);
  EXPECT_THROW(into(Case::Spmm(Exec(), elsewhere.device.view(), options)), StalePlan);
  SpmmOptions other = options;
  other.updatable = false;
  EXPECT_THROW(into(Case::Spmm(Exec(), t.device.view(), other)), NotSupported);
  other = options;
  other.prepare_transpose = true;
  EXPECT_THROW(into(Case::Spmm(Exec(), t.device.view(), other)), NotSupported);
  other = options;
  other.algorithm = SpmmAlgorithm::Csr;
  other.backend = Backend::Auto;
  EXPECT_THROW(into(Case::Spmm(Exec(), t.device.view(), other)), NotSupported);
  const IntoCase<float> narrow(mixed_pattern());
  const Case::Spmm plan(Exec(), t.device.view(), options);
  EXPECT_THROW(scores.apply_into(Exec(), Op::NoTrans, 1, narrow.x, narrow.y, plan), NotSupported);
  const Case::View wrong("wrong", static_cast<std::size_t>(t.A.rows) + 1, Case::inner);
  EXPECT_THROW(scores.apply_into(Exec(), Op::NoTrans, 1, wrong, t.y, plan), DimensionMismatch);
}
#endif

}  // namespace Testing
}  // namespace Tessera
