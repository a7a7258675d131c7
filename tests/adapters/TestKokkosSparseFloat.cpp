// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "adapters/KokkosSparseCases.hpp"

namespace Tessera {
namespace Testing {

// Every ordinal and every offset, but not every pair with both scalars: a pair compiles for a minute.
#ifdef TESSERA_TEST_FEWER_TYPES
using FloatTypes = ::testing::Types<TypesOf<float, int, int>>;
#else
using FloatTypes = ::testing::Types<TypesOf<float, int, int>, TypesOf<float, std::int64_t, std::size_t>>;
#endif
INSTANTIATE_TYPED_TEST_SUITE_P(Float, KokkosSparseCases, FloatTypes);

}  // namespace Testing
}  // namespace Tessera
