// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project

#include "adapters/KokkosSparseCases.hpp"

namespace Tessera {
namespace Testing {

// Ordinals of 64 bits, of which the library holds no compiled plans.
using OrdinalTypes = ::testing::Types<TypesOf<double, std::int64_t, int>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Ordinals, KokkosSparseCases, OrdinalTypes);

}  // namespace Testing
}  // namespace Tessera
