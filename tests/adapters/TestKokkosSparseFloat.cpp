// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "adapters/KokkosSparseCases.hpp"

namespace Tessera {
namespace Testing {

// With those of the other file: every pair of a scalar, an ordinal and an offset.
using FloatTypes = ::testing::Types<TypesOf<float, int, int>, TypesOf<float, std::int64_t, std::size_t>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Float, KokkosSparseCases, FloatTypes);

}  // namespace Testing
}  // namespace Tessera
