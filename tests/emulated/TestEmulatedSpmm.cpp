// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// The SpMM wave kernels, lane by lane, on emulated waves and matrix units of both vendors in every precision.

#include <gtest/gtest.h>

#include "support/Tessera_TestSpmm.hpp"

namespace Tessera {
namespace Testing {

template <class Scalar_, Backend backend_, SpmmAlgorithm algorithm_, ComputeType compute_ = ComputeType::Auto,
          class C_ = Scalar_>
struct SpmmUnit {
  using Scalar = Scalar_;
  using C = C_;
  static constexpr Backend backend = backend_;
  static constexpr SpmmAlgorithm algorithm = algorithm_;
  static constexpr ComputeType compute = compute_;
};

template <class U>
class EmulatedSpmm : public ::testing::Test {
 protected:
  SpmmSuite<Kokkos::DefaultHostExecutionSpace, typename U::Scalar, typename U::Scalar, typename U::C> suite{
      U::backend, U::algorithm, U::compute};
  Pattern mixed = generate("every_length:longest=70:cols=90");
  Pattern heavy = generate("dense_row:others=1");
};

constexpr Backend nvidia = Backend::EmulatedNvidia, amd = Backend::EmulatedAmd;
constexpr SpmmAlgorithm panels = SpmmAlgorithm::Panels, flash = SpmmAlgorithm::FlashSparse,
                        rows = SpmmAlgorithm::GeSpmm;
#ifdef TESSERA_TEST_FEWER_TYPES
using SpmmUnits =
    ::testing::Types<SpmmUnit<half_t, nvidia, panels>, SpmmUnit<float, nvidia, panels, ComputeType::TF32>,
                     SpmmUnit<double, amd, panels>, SpmmUnit<half_t, amd, flash>, SpmmUnit<float, nvidia, rows>>;
#else
using SpmmUnits =
    ::testing::Types<SpmmUnit<double, nvidia, panels>, SpmmUnit<float, nvidia, panels, ComputeType::TF32>,
                     SpmmUnit<half_t, nvidia, panels>, SpmmUnit<half_t, nvidia, panels, ComputeType::Auto, float>,
                     SpmmUnit<bhalf_t, nvidia, panels>, SpmmUnit<double, amd, panels>, SpmmUnit<float, amd, panels>,
                     SpmmUnit<half_t, amd, panels>, SpmmUnit<bhalf_t, amd, panels>,
                     SpmmUnit<float, nvidia, flash, ComputeType::TF32>, SpmmUnit<half_t, nvidia, flash>,
                     SpmmUnit<bhalf_t, amd, flash>, SpmmUnit<double, nvidia, rows>, SpmmUnit<float, amd, rows>,
                     SpmmUnit<half_t, nvidia, rows>>;
#endif
TYPED_TEST_SUITE(EmulatedSpmm, SpmmUnits);

TYPED_TEST(EmulatedSpmm, EveryShape) { this->suite.every_shape({5, 40}); }
TYPED_TEST(EmulatedSpmm, EveryWidth) { this->suite.every_width(this->mixed, {0, 1, 3, 8, 17, 31, 33, 64, 100, 130}); }
TYPED_TEST(EmulatedSpmm, EveryWidthOfNarrowBlocks) {
  this->suite.options.num_columns_hint = 32;
  this->suite.every_width(this->mixed, {1, 16, 32, 65});
}
TYPED_TEST(EmulatedSpmm, EveryScaling) { this->suite.every_scaling(this->mixed, 19); }
TYPED_TEST(EmulatedSpmm, UndefinedOperands) { this->suite.undefined_operands(this->mixed, 13); }
TYPED_TEST(EmulatedSpmm, BadRowsOfB) { this->suite.bad_rows_of_b(this->mixed, 9); }
TYPED_TEST(EmulatedSpmm, SplitWindowsAndRows) {
  this->suite.options.panels.max_blocks = 1;
  this->suite.options.flash.max_blocks = 1;
  this->suite.options.gespmm.max_piece = 3;
  this->suite.every_width(this->mixed, {1, 33, 70});
  this->suite.every_width(this->heavy, {20});
}
TYPED_TEST(EmulatedSpmm, TransposedProductAndNewValues) {
  this->suite.transposed_product_and_new_values(this->mixed, 21);
}
TYPED_TEST(EmulatedSpmm, Deterministic) { this->suite.deterministic(this->heavy, 12); }
TYPED_TEST(EmulatedSpmm, NoAllocation) { this->suite.no_allocation(this->mixed, 12); }
TYPED_TEST(EmulatedSpmm, Ones) { this->suite.ones(5); }

}  // namespace Testing
}  // namespace Tessera
