// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The SDDMM wave kernels, lane by lane, on emulated waves and matrix units of both vendors in every precision.

#include <gtest/gtest.h>

#include "support/Tessera_TestSddmm.hpp"

namespace Tessera {
namespace Testing {

using Exec = Kokkos::DefaultHostExecutionSpace;
constexpr Backend nvidia = Backend::EmulatedNvidia, amd = Backend::EmulatedAmd;
constexpr SddmmAlgorithm panels = SddmmAlgorithm::Panels, rows = SddmmAlgorithm::Rows;

struct SddmmUnitCase {
  Backend backend;
  SddmmAlgorithm algorithm;
  ComputeType compute = ComputeType::Auto;
};
Pattern mixed() { return generate("every_length:longest=70:cols=90"); }
/// Columns that repeat and descend.
Pattern unsorted() {
  return pattern_of_rows(61, 47, [](std::int64_t i, std::vector<int>& to) {
    for (std::int64_t k = 0; k < i % 23; ++k) to.push_back(static_cast<int>((7 * (i + 40 - k) + k / 3 * 11) % 47));
    if (i % 3 == 0) to.insert(to.end(), {5, 5, 2});
  });
}

/// One suite per combination of element types is compiled; units that multiply these are numbers at run time.
template <class Suite>
class EmulatedSddmm : public ::testing::Test {
 protected:
  static std::vector<SddmmUnitCase> units() {
    std::vector<SddmmUnitCase> all = {{nvidia, panels}, {amd, panels}, {nvidia, rows}, {amd, rows}};
    if (std::is_same_v<typename Suite::Element, float>) {
      for (const SddmmUnitCase& unit : {SddmmUnitCase{nvidia, panels, ComputeType::TF32},
                                        {amd, panels, ComputeType::TF32},
                                        {nvidia, rows, ComputeType::TF32}}) {
        all.push_back(unit);
      }
    }
    return all;
  }
  static void each(void (*f)(Suite&)) {
    for (const SddmmUnitCase& u : units()) {
      SCOPED_TRACE(std::string(to_string(u.algorithm)) + " on " + to_string(u.backend) + ", compute " +
                   std::to_string(static_cast<int>(u.compute)));
      Suite suite{u.backend, u.algorithm, u.compute};
      f(suite);
    }
  }
};
#ifdef TESSERA_TEST_FEWER_TYPES
using Suites = ::testing::Types<SddmmSuite<Exec, double>, SddmmSuite<Exec, float>, SddmmSuite<Exec, half_t>>;
#else
using Suites = ::testing::Types<SddmmSuite<Exec, double>, SddmmSuite<Exec, float>, SddmmSuite<Exec, half_t>,
                                SddmmSuite<Exec, half_t, float>, SddmmSuite<Exec, bhalf_t>>;
#endif
TYPED_TEST_SUITE(EmulatedSddmm, Suites);

TYPED_TEST(EmulatedSddmm, EveryShape) { TESSERA_EACH(every_shape({32})); }
TYPED_TEST(EmulatedSddmm, EveryInner) { TESSERA_EACH(every_inner(mixed(), all_inner())); }
TYPED_TEST(EmulatedSddmm, UnsortedColumns) { TESSERA_EACH(every_inner(unsorted(), {1, 32, 50})); }
TYPED_TEST(EmulatedSddmm, EveryScaling) { TESSERA_EACH(every_scaling(mixed(), 19)); }
TYPED_TEST(EmulatedSddmm, UndefinedOperands) { TESSERA_EACH(undefined_operands(mixed(), 13)); }
TYPED_TEST(EmulatedSddmm, BadRows) { TESSERA_EACH(bad_rows(mixed(), 32)); }
TYPED_TEST(EmulatedSddmm, OneFactor) { TESSERA_EACH(one_factor(generate("stencil2d:nx=23:ny=31:points=9"), 16)); }
TYPED_TEST(EmulatedSddmm, Heads) {
  this->each([](auto& suite) {
    suite.heads(mixed(), 16, 3);
    suite.heads(mixed(), 7, 2);
  });
}
TYPED_TEST(EmulatedSddmm, NewValues) { TESSERA_EACH(new_values(mixed(), 21)); }
TYPED_TEST(EmulatedSddmm, Deterministic) { TESSERA_EACH(deterministic(mixed(), 12)); }
TYPED_TEST(EmulatedSddmm, NoAllocation) { TESSERA_EACH(no_allocation(mixed(), 12)); }
TYPED_TEST(EmulatedSddmm, OwnWorkspace) { TESSERA_EACH(workspace(mixed(), 21)); }

// Units of eight neighbouring windows take turns, each stands in the list once, and a row's entries follow each other.
TEST(WindowUnits, TakeTurns) {
  const auto A = make_matrix<double>("rmat:scale=9:degree=8", Data::Integers, 1);
  const DeviceMatrix<Exec, double> device(A);
  const SddmmShape shape{8, 16, "test"};
  const auto f = Impl::window_units(Exec(), Impl::pattern_of(device.view()), shape, Precision::FP16, nullptr);
  std::vector<bool> seen(static_cast<std::size_t>(f.units));
  std::vector<int> turn(static_cast<std::size_t>(f.windows));
  std::uint64_t entries = 0;
  std::pair<std::uint32_t, int> last{0, 0};
  for (std::size_t u = 0; u < seen.size(); ++u) {
    const SddmmUnit unit = f.unit(u);
    ASSERT_LT(unit.place, seen.size());
    ASSERT_FALSE(seen[unit.place]);
    seen[unit.place] = true;
    const std::uint32_t group = unit.window_index() / SddmmUnit::side_by_side;
    const std::pair<std::uint32_t, int> now{group, turn[unit.window_index()]++};
    EXPECT_LE(last, now) << "unit " << u;
    last = now;
    for (int r = 0; r < shape.rows; ++r) {
      const SddmmUnitRow row = f.unit_rows(unit.place * 8 + static_cast<std::size_t>(r));
      const auto count = static_cast<std::uint32_t>(__builtin_popcount(row.bits));
      entries += count;
      EXPECT_EQ(row.bits >> unit.count(), 0u);
      std::uint32_t e = row.begin;
      for (int v = 0; v < unit.count(); ++v) {
        if ((row.bits >> v & 1) == 0) continue;
        EXPECT_EQ(A.entries[e], f.columns(unit.place * 16 + static_cast<std::size_t>(v)));
        ++e;
      }
    }
  }
  EXPECT_EQ(entries, static_cast<std::uint64_t>(A.nnz()));
}

}  // namespace Testing
}  // namespace Tessera
