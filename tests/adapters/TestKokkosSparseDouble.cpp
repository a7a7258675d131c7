// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "adapters/KokkosSparseCases.hpp"

namespace Tessera {
namespace Testing {

// With those of the other files: every pair of a scalar and an offset, and another ordinal.
using DoubleTypes = ::testing::Types<TypesOf<double, int, std::size_t>, TypesOf<double, int, int>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Double, KokkosSparseCases, DoubleTypes);

}  // namespace Testing
}  // namespace Tessera
