// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "adapters/KokkosSparseCases.hpp"

namespace Tessera {
namespace Testing {

// With those of the other file: every pair of a scalar, an ordinal and an offset.
using DoubleTypes = ::testing::Types<TypesOf<double, int, std::size_t>, TypesOf<double, std::int64_t, int>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Double, KokkosSparseCases, DoubleTypes);

}  // namespace Testing
}  // namespace Tessera
