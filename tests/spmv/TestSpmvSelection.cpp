// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Which algorithm a plan takes and what it says about it: predicted, measured, asked for, or refused.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "Tessera_Spmv.hpp"
#include "formats/packed/Tessera_PackedHostRules.hpp"
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestCheck.hpp"
#include "support/Tessera_TestTools.hpp"

namespace Tessera {
namespace Testing {
namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
template <class T>
using Plan = SpmvPlan<typename DeviceMatrix<Exec, T>::Csr>;

SpmvOptions asking_for(SpmvAlgorithm algorithm, Backend backend = Backend::Auto) {
  SpmvOptions o;
  o.algorithm = algorithm;
  o.backend = backend;
  return o;
}

/// A matrix, a plan of it, and whether its products are right.
template <class T>
struct Case {
  explicit Case(const std::string& spec, const SpmvOptions& o = {})
      : A(make_matrix<T>(spec, Data::Integers, 1)), device(A), plan(Exec(), device.view(), o) {}
  template <class X = T, class Y = T>
  void expect_products(const HostMatrix<T>& B) const {
    const auto x = numbers<X>(A.cols, Data::Integers, 2);
    const auto y = numbers<Y>(A.rows, Data::Integers, 3);
    EXPECT_TRUE(agrees<Y>(B, {2.5, -1}, x, y, product(plan, Scaling{2.5, -1}, x, y), true));
  }
  HostMatrix<T> A;
  DeviceMatrix<Exec, T> device;
  Plan<T> plan;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
template <class... Numbers>
std::string formatted(const char* format, Numbers... all) {
  char text[128];
  std::snprintf(text, sizeof(text), format, all...);
  return text;
}

// Rows of a few entries and of even lengths: packed slices. The sentence carries the numbers that decided.
TEST(Selection, PredictsPackedSlicesOnHosts) {
  for (const char* spec : {"stencil2d:nx=97:ny=89", "uniform:rows=1999:cols=1501:per_row=16", three_dof}) {
    SCOPED_TRACE(spec);
    const Case<double> c(spec);
    const Statistics s = c.plan.statistics();
    EXPECT_EQ(s.algorithm, "packed");
    EXPECT_EQ(s.backend, "kokkos");
    EXPECT_FALSE(s.fallback_taken);
    EXPECT_EQ(c.plan.options().algorithm, SpmvAlgorithm::PackedSlices);
    ASSERT_NE(c.plan.features(), nullptr);
    const SpmvFeatures& f = *c.plan.features();
    EXPECT_EQ(f.nnz, c.A.nnz());
    EXPECT_TRUE(contains(s.why, "packed is predicted to move ")) << s.why;
    EXPECT_TRUE(contains(s.why, ", csr ")) << s.why;
    EXPECT_TRUE(contains(s.why, formatted("rows of %.1f", f.mean))) << s.why;
    EXPECT_TRUE(contains(s.why, formatted("cv %.2f", f.cv))) << s.why;
    EXPECT_TRUE(contains(s.why, formatted("longest %lld", static_cast<long long>(f.longest)))) << s.why;
    EXPECT_TRUE(contains(s.why, formatted("%.0f %% of entries in rows shifted", 100 * f.shift))) << s.why;
    EXPECT_EQ(s.row_max, f.longest);
    c.expect_products(c.A);
  }
}

// A linear program's few long rows use an x beyond the first cache: column blocks, whose sums need scratch, for every
// type of numbers, new values and strides; none where columns do not ascend, or where an option says so.
template <class T>
void expect_column_blocks() {
  const std::string spec = "lp:rows=700:cols=90000:per_col=4:skew=0.3:seed=5";
  const auto blocks = [](const Statistics& s) {
    int found = 1;
    for (const ClassShare& c : s.classes) {
      if (contains(c.name, " column blocks")) found = std::stoi(c.name);
    }
    return found;
  };
  Case<T> c(spec);
  const Statistics s = c.plan.statistics();
  EXPECT_EQ(s.algorithm, "packed");
  EXPECT_EQ(blocks(s), std::max(1, Impl::packed_host_blocks(*c.plan.features(), sizeof(T))));
  EXPECT_GT(blocks(s), 1);
  EXPECT_EQ(s.launches, 2);
  EXPECT_GE(s.workspace_bytes, static_cast<std::size_t>(blocks(s)) * c.A.rows * sizeof(SumOf<T>));
  c.expect_products(c.A);
  const auto x = numbers<T>(c.A.cols, Data::Integers, 2), y = numbers<T>(c.A.rows, Data::Integers, 3);
  for (const Scaling scaling : scalings()) {
    EXPECT_TRUE(agrees<SumOf<T>>(c.A, scaling, x, y, product<Strided>(c.plan, scaling, x, y), true));
  }
  const auto B = make_matrix<T>(spec, Data::Integers, 9);
  const DeviceMatrix<Exec, T> fresh(B);
  c.plan.update_values(Exec(), fresh.view().values());
  c.expect_products(B);

  SpmvOptions none;
  none.packed.column_blocks = 0;
  const Case<T> whole(spec, none);
  EXPECT_EQ(blocks(whole.plan.statistics()), 1);
  whole.expect_products(whole.A);

  HostMatrix<T> turned = c.A;
  for (int i = 0; i < turned.rows; ++i) {
    std::reverse(turned.entries.begin() + turned.row_map[i], turned.entries.begin() + turned.row_map[i + 1]);
  }
  const DeviceMatrix<Exec, T> device(turned);
  const Plan<T> plan(Exec(), device.view());
  EXPECT_EQ(blocks(plan.statistics()), 1);
  EXPECT_TRUE(agrees<SumOf<T>>(turned, {2.5, -1}, x, y, product(plan, Scaling{2.5, -1}, x, y), true));
}
TEST(Selection, ColumnBlocksOnHosts) {
  {
    SCOPED_TRACE("double");
    expect_column_blocks<double>();
  }
  {
    SCOPED_TRACE("float");
    expect_column_blocks<float>();
  }
}

// Too little work for slices on hosts.
TEST(Selection, PredictsCsrForSmallMatricesOfShortRows) {
  for (const char* spec : {"diagonal", stencil, "random:rows=3001:cols=5003:lengths=uniform:mean=2"}) {
    SCOPED_TRACE(spec);
    const Case<double> c(spec);
    ASSERT_NE(c.plan.features(), nullptr);
    ASSERT_TRUE(c.plan.features()->mean < 8 && c.plan.features()->nnz < 8192) << "the test's own matrix";
    EXPECT_EQ(c.plan.statistics().algorithm, "csr");
    EXPECT_TRUE(contains(c.plan.statistics().why, "csr is predicted to move ")) << c.plan.statistics().why;
    EXPECT_TRUE(contains(c.plan.statistics().why, "taken all the same")) << c.plan.statistics().why;
    c.expect_products(c.A);
  }
}

// Either may win; the sentence has both times, and the plan is that of the faster.
TEST(Selection, Measures) {
  for (const char* spec : {stencil, "diagonal:rows=5000:cols=5000"}) {
    SCOPED_TRACE(spec);
    SpmvOptions o;
    o.selection = Selection::Measure;
    const Case<double> c(spec, o);
    const std::string why = c.plan.statistics().why;
    char first[16], second[16];
    double time_first = -1, time_second = -1;
    ASSERT_EQ(std::sscanf(why.c_str(), "measured on this matrix: %15s %lf us, %15s %lf us", first, &time_first, second,
                          &time_second),
              4)
        << why;
    EXPECT_GT(time_first, 0) << why;
    EXPECT_GT(time_second, 0) << why;
    EXPECT_STRNE(first, second);
    // Printed with three digits: equal numbers say nothing.
    if (time_first != time_second) {
      EXPECT_EQ(c.plan.statistics().algorithm, time_first < time_second ? first : second) << why;
    }
    c.expect_products(c.A);
  }
}

TEST(Selection, OnceTakesCsr) {
  SpmvOptions o;
  o.reuse = Reuse::Once;
  const Case<double> c(stencil, o);
  EXPECT_EQ(c.plan.statistics().algorithm, "csr");
  EXPECT_EQ(c.plan.features(), nullptr) << "nothing is looked at";
  EXPECT_TRUE(contains(c.plan.statistics().why, "Reuse::Once")) << c.plan.statistics().why;
  c.expect_products(c.A);
}

// A rounded matrix needs a format of its own, whatever the reuse.
TEST(Selection, NarrowerPrecisionTakesPackedSlices) {
  for (const Reuse reuse : {Reuse::Many, Reuse::Once}) {
    SpmvOptions o;
    o.reuse = reuse;
    o.compute = ComputeType::FP16_FP32;
    const Case<double> c(stencil, o);
    EXPECT_EQ(c.plan.statistics().algorithm, "packed");
    EXPECT_EQ(c.plan.statistics().compute, "fp16");
    c.expect_products<half_t, float>(c.A);
    c.expect_products<half_t, half_t>(c.A);
    o.compute = ComputeType::FP32;
    const Case<double> single(stencil, o);
    EXPECT_EQ(single.plan.statistics().algorithm, "packed");
    single.expect_products<float, float>(single.A);
  }
}

template <class T>
class Asked : public ::testing::Test {};
using Types = ::testing::Types<double, float>;
TYPED_TEST_SUITE(Asked, Types);
TYPED_TEST(Asked, ForAnAlgorithm) {
  for (const SpmvAlgorithm a : {SpmvAlgorithm::PackedSlices, SpmvAlgorithm::Csr5, SpmvAlgorithm::Csr}) {
    for (const char* spec : {stencil, three_dof, "every_length", "empty", "diagonal"}) {
      SCOPED_TRACE(std::string(to_string(a)) + " of " + spec);
      SpmvOptions o = asking_for(a);
      o.prepare_transpose = true;
      Case<TypeParam> c(spec, o);
      EXPECT_EQ(c.plan.options().algorithm, a);
      EXPECT_EQ(c.plan.statistics().algorithm, to_string(a));
      EXPECT_TRUE(contains(c.plan.statistics().why, "asked for"));
      c.expect_products(c.A);
      const auto T = transposed(c.A);
      const auto x = numbers<TypeParam>(c.A.rows, Data::Integers, 2),
                 y = numbers<TypeParam>(c.A.cols, Data::Integers, 3);
      EXPECT_TRUE(agrees<TypeParam>(T, {2.5, -1}, x, y, product(c.plan, Op::Trans, {2.5, -1}, x, y), true));
      // New numbers, for both operators.
      const auto B = make_matrix<TypeParam>(spec, Data::Integers, 9);
      const DeviceMatrix<Exec, TypeParam> fresh(B);
      c.plan.update_values(Exec(), fresh.view().values());
      c.expect_products(B);
      EXPECT_TRUE(agrees<TypeParam>(transposed(B), {2.5, -1}, x, y, product(c.plan, Op::Trans, {2.5, -1}, x, y), true));
    }
  }
}

TEST(Selection, AutoPreparesTheTranspose) {
  SpmvOptions o;
  o.prepare_transpose = true;
  const Case<double> c("lp:rows=51:cols=3001:slack=1", o);
  const auto x = numbers<double>(c.A.rows, Data::Integers, 2), y = numbers<double>(c.A.cols, Data::Integers, 3);
  EXPECT_TRUE(c.plan.statistics().transpose_prepared);
  EXPECT_TRUE(agrees<double>(transposed(c.A), {2.5, -1}, x, y, product(c.plan, Op::Trans, {2.5, -1}, x, y), true));
}

TEST(Selection, EnvironmentNamesTheNewAlgorithms) {
  {
    const Environment e("TESSERA_FORCE_ALGORITHM", "packed");
    EXPECT_EQ(Case<double>("diagonal").plan.options().algorithm, SpmvAlgorithm::PackedSlices);
    EXPECT_EQ(Case<double>("diagonal", asking_for(SpmvAlgorithm::Csr5)).plan.options().algorithm, SpmvAlgorithm::Csr5);
    const Environment backend("TESSERA_FORCE_BACKEND", "emulated-amd");
    const Case<double> c("diagonal");
    EXPECT_EQ(c.plan.options().backend, Backend::EmulatedAmd);
    EXPECT_EQ(c.plan.statistics().backend, "emulated-amd");
    c.expect_products(c.A);
  }
  const Environment e("TESSERA_FORCE_ALGORITHM", "csr5");
  EXPECT_EQ(Case<double>(stencil).plan.options().algorithm, SpmvAlgorithm::Csr5);
}

TEST(Selection, NoTf32) {
  for (const SpmvAlgorithm a : {SpmvAlgorithm::Auto, SpmvAlgorithm::PackedSlices, SpmvAlgorithm::Csr5,
                                SpmvAlgorithm::Csr, SpmvAlgorithm::Dasp}) {
    SpmvOptions o = asking_for(a);
    o.compute = ComputeType::TF32;
    try {
      Case<float> c(stencil, o);
      ADD_FAILURE() << to_string(a) << " was accepted";
    } catch (const NotSupported& e) {
      EXPECT_TRUE(contains(e.what(), "tf32")) << e.what();
    }
  }
}

// Refused before anything is launched, with the number that is wrong.
TEST(Selection, BadOptionsLaunchNothing) {
  struct Bad {
    std::string part;
    PackedOptions packed;
  };
  std::vector<Bad> all(6);
  all[0].packed.max_steps = 64, all[0].part = "64";
  all[1].packed.split_steps = -7, all[1].part = "-7";
  all[2].packed.window = 4093, all[2].part = "4093";
  all[3].packed.hubs = 65537, all[3].part = "65537";
  all[4].packed.natural_padding = -0.25, all[4].part = "-0.25";
  all[5].packed.natural_padding = std::nan(""), all[5].part = "nan";
  const auto A = make_matrix<double>(stencil, Data::Integers, 1);
  const DeviceMatrix<Exec, double> device(A);
  for (const SpmvAlgorithm a : {SpmvAlgorithm::PackedSlices, SpmvAlgorithm::Auto}) {
    for (const Backend b : {Backend::Auto, Backend::EmulatedNvidia}) {
      for (const Bad& bad : all) {
        SCOPED_TRACE(std::string(to_string(a)) + " on " + to_string(b) + ", " + bad.part);
        SpmvOptions o = asking_for(a, b);
        o.packed = bad.packed;
        const KokkosCounters counters;
        try {
          Plan<double>(Exec(), device.view(), o);
          ADD_FAILURE() << "was accepted";
        } catch (const InvalidArgument& e) {
          EXPECT_TRUE(contains(e.what(), bad.part)) << e.what();
        }
        EXPECT_EQ(counters.kernels(), 0);
        EXPECT_EQ(counters.allocations(), 0) << counters.last_allocation();
      }
    }
  }
}

// Refused, and the plan is as it was.
TEST(Selection, WrongNumberOfValues) {
  for (const SpmvAlgorithm a : {SpmvAlgorithm::PackedSlices, SpmvAlgorithm::Csr5, SpmvAlgorithm::Auto}) {
    SCOPED_TRACE(to_string(a));
    Case<double> c(stencil, asking_for(a));
    const std::size_t nnz = c.device.values.extent(0);
    for (const std::size_t count : {nnz - 1, nnz + 1, std::size_t{0}}) {
      const DeviceVector<Exec, double> values("values", count);
      try {
        c.plan.update_values(Exec(), values);
        ADD_FAILURE() << count << " values were accepted";
      } catch (const StalePlan& e) {
        EXPECT_TRUE(contains(e.what(), std::to_string(nnz)) && contains(e.what(), std::to_string(count))) << e.what();
      }
    }
    c.expect_products(c.A);
    SpmvOptions o = asking_for(a);
    o.updatable = false;
    Case<double> fixed(stencil, o);
    EXPECT_THROW(fixed.plan.update_values(Exec(), fixed.device.view().values()), StalePlan);
    EXPECT_THROW(c.plan.update_values(Exec(), fixed.device.view()), StalePlan) << "other pattern arrays";
  }
}

// A plan holds all it needs: the caller's arrays may go.
TEST(PackedPlan, DoesNotReadTheMatrixAgain) {
  for (const Backend b : {Backend::Auto, Backend::EmulatedNvidia, Backend::EmulatedAmd}) {
    Case<double> c("every_length", asking_for(SpmvAlgorithm::PackedSlices, b));
    Exec().fence();
    Kokkos::deep_copy(c.device.values, std::nan(""));
    Kokkos::deep_copy(c.device.entries, -1);
    Kokkos::deep_copy(c.device.row_map, -1);
    c.expect_products(c.A);
  }
}

}  // namespace
}  // namespace Testing
}  // namespace Tessera
