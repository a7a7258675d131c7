// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "sddmm/Tessera_BenchSddmmPlan.hpp"

namespace Tessera {
namespace Bench {
System sddmm_plan_fp64(const SddmmOperands& o, const SddmmOptions& options, SharedWindows* windows) {
  return sddmm_plan_of<double>(o, options, windows);
}
}  // namespace Bench
}  // namespace Tessera
