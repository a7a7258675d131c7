// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "spgemm/Tessera_BenchSpgemmPlan.hpp"

namespace Tessera {
namespace Bench {
System spgemm_plan_fp64(const SpgemmOperands& o, const SpgemmOptions& options) {
  return spgemm_plan_of<double>(o, options);
}
}  // namespace Bench
}  // namespace Tessera
