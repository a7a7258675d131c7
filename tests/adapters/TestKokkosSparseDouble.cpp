// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "adapters/KokkosSparseCases.hpp"

namespace Tessera {
namespace Testing {

// Every ordinal and every offset, but not every pair with both scalars: a pair compiles for a minute.
#ifdef TESSERA_TEST_FEWER_TYPES
using DoubleTypes = ::testing::Types<TypesOf<double, int, std::size_t>>;
#else
using DoubleTypes = ::testing::Types<TypesOf<double, int, std::size_t>, TypesOf<double, std::int64_t, int>>;
#endif
INSTANTIATE_TYPED_TEST_SUITE_P(Double, KokkosSparseCases, DoubleTypes);

}  // namespace Testing
}  // namespace Tessera
