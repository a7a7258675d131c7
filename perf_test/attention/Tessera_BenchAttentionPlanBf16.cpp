// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include "attention/Tessera_BenchAttentionPlan.hpp"

namespace Tessera {
namespace Bench {
System attention_plan_bf16(const AttentionOperands& o, const AttentionOptions& options) {
  return attention_plan_of<bhalf_t>(o, options);
}
}  // namespace Bench
}  // namespace Tessera
