// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

// Attention with 64-bit offsets, whose plans the library does not hold compiled.

#include <gtest/gtest.h>

#include "attention/AttentionSuite.hpp"

namespace Tessera {
namespace Testing {

TEST(AttentionPlan, OffsetsOf64Bits) {
  using Exec = Kokkos::DefaultHostExecutionSpace;
  for (const auto algorithm : {AttentionAlgorithm::Fused, AttentionAlgorithm::Chain}) {
    const AttentionSuite<Exec, double, std::int64_t> suite(algorithm, AttentionValues::Bias);
    suite.expect_right(suite.problem(generate("every_length:longest=70:cols=90"), 2, 8, 16));
  }
  for (const auto values : {AttentionValues::None, AttentionValues::Scale}) {
    AttentionSuite<Exec, double, std::int64_t> rows(AttentionAlgorithm::Rows, values);
    rows.options.backend = Backend::EmulatedNvidia;
    rows.expect_right(rows.problem(generate("every_length:longest=70:cols=90"), 2, 8, 16));
    rows.expect_right(rows.problem(generate("random:rows=61:cols=97:lengths=uniform:mean=4"), 1, 8, 16));
  }
}

}  // namespace Testing
}  // namespace Tessera
