// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_SPMV_PLAN_HPP
#define TESSERA_BENCH_SPMV_PLAN_HPP

#include <memory>

#include "Tessera_Spmv.hpp"
#include "spmv/Tessera_BenchSpmv.hpp"

/// \file
/// What of the benchmark has to be compiled for every type of A: a plan and its products.

namespace Tessera {
namespace Bench {

template <class S, class Y, class Plan>
std::function<void()> spmv_apply(const std::shared_ptr<const Plan>& plan, const SpmvOperands& o) {
  return [plan, space = o.A.space, alpha = o.alpha, x = o.x.view<S>(), beta = o.beta, y = o.y.view<Y>()] {
    plan->apply(space, Op::NoTrans, alpha, x, beta, y);
  };
}

template <class S, class Offset>
System spmv_plan(const SpmvOperands& o, const SpmvOptions& options) {
  using Plan = SpmvPlan<CsrView<S, int, Offset, Device>>;
  const auto A = o.A.view<S, Offset>();
  const auto plan = std::make_shared<Plan>(o.A.space, A, options);
  const std::shared_ptr<const Plan> constant = plan;
  System system;
  if constexpr (sizeof(S) == 2) {
    system.apply = o.y_type == ElementType::Float ? spmv_apply<S, float>(constant, o) : spmv_apply<S, S>(constant, o);
  } else {
    system.apply = spmv_apply<S, S>(constant, o);
  }
  system.update = [plan, space = o.A.space, values = A.values()] { plan->update_values(space, values); };
  system.statistics = [plan] { return plan->statistics(); };
  return system;
}

/// 64-bit offsets as far as the library holds such plans compiled: nobody measures others.
template <class S>
System spmv_plan_of(const SpmvOperands& o, const SpmvOptions& options) {
  if (o.A.offset_bits == 32) return spmv_plan<S, int>(o, options);
  if constexpr (sizeof(S) == 2) {
    throw NotSupported("the benchmark multiplies matrices of 16-bit numbers with 32-bit offsets only");
  } else {
    return spmv_plan<S, WideOffset>(o, options);
  }
}

}  // namespace Bench
}  // namespace Tessera

#endif
