// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Packed-slices kernels on slices that no conversion made: what kernels do differently for few steps and many, in every
// width of index.

#include <gtest/gtest.h>

#include <limits>
#include <type_traits>

#include "Tessera_Types.hpp"
#include "core/Tessera_KernelTables.hpp"
#include "support/Tessera_TestCases.hpp"
#include "support/Tessera_TestSlices.hpp"

namespace Tessera {
namespace Testing {

template <class Value>
class PackedSteps : public ::testing::Test {};
#ifdef TESSERA_TEST_FEWER_TYPES
using PackedStepsTypes = ::testing::Types<double, half_t>;
#else
using PackedStepsTypes = ::testing::Types<double, float, half_t, bhalf_t>;
#endif
TYPED_TEST_SUITE(PackedSteps, PackedStepsTypes);

TYPED_TEST(PackedSteps, EveryNumberAndWidth) {
  using Sum = std::conditional_t<std::is_same_v<TypeParam, double>, double, float>;
  for (const Backend backend : emulated_backends()) {
    if (beside_sanitized && backend == Backend::EmulatedNvidia &&
        (sizeof(TypeParam) == 8 || std::is_same_v<TypeParam, half_t>)) {
      continue;  // with sanitizers
    }
    const KernelTable* const table = &kernel_table(backend);
    DeviceFacts facts;
    ASSERT_TRUE(table->runtime.device_facts(facts).ok());
    // Few numbers of steps, so that slices beside each other are alike, two of which are taken at once.
    for (const bool pairs : {false, true}) {
      const DrawnSlices<TypeParam> drawn(facts.wave, 7, pairs ? 1001 : 700, pairs ? 4 : 12);
      const std::vector<int> expected = drawn.product();
      std::vector<PackedSlice> packets(drawn.packets.size() / sizeof(PackedSlice));  // for their alignment
      std::memcpy(packets.data(), drawn.packets.data(), drawn.packets.size());
      std::vector<TypeParam> x;
      for (int i = 0; i < drawn.columns; ++i) x.push_back(static_cast<TypeParam>(static_cast<float>(drawn.x(i))));
      std::vector<Sum> y(expected.size(), std::numeric_limits<Sum>::quiet_NaN());
      SpmvPackedArgs args;
      args.precision = Impl::ScalarTraits<TypeParam>::precision;
      args.slices = drawn.slices.data();
      args.slice_count = static_cast<std::uint32_t>(drawn.slices.size());
      args.packets = reinterpret_cast<const unsigned char*>(packets.data());
      args.variant = pairs ? PackedVariant::ShortSlices : PackedVariant::General;
      args.pairs = pairs;
      args.rows = static_cast<std::int64_t>(expected.size());
      args.x = x.data();
      args.y = y.data();
      args.y_type = sizeof(Sum) == 8 ? ElementType::Double : ElementType::Float;
      const Status status = table->spmv.packed(args, nullptr);
      ASSERT_TRUE(status.ok()) << status.message;
      for (std::size_t i = 0; i < y.size(); ++i) {
        ASSERT_EQ(y[i], static_cast<Sum>(expected[i])) << table->name << ", row " << i << (pairs ? ", pairs" : "");
      }
    }
  }
}

}  // namespace Testing
}  // namespace Tessera
