// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_SPMM_PLAN_HPP
#define TESSERA_BENCH_SPMM_PLAN_HPP

#include <memory>

#include "Tessera_Spmm.hpp"
#include "spmm/Tessera_BenchSpmm.hpp"

/// \file
/// What of the benchmark has to be compiled for every type of A: a plan and its products.

namespace Tessera {
namespace Bench {

template <class S, class Offset>
using SpmmPlanOf = SpmmPlan<CsrView<S, int, Offset, Device>>;

template <class S, class Y, class Layout, class Plan>
std::function<void()> spmm_apply(const std::shared_ptr<const Plan>& plan, const SpmmOperands& o) {
  return [plan, space = o.A.space, alpha = o.alpha, B = o.view<S, Layout>(o.B, o.A.cols, o.columns), beta = o.beta,
          C = o.view<Y, Layout>(o.C, o.A.rows, o.columns)] { plan->apply(space, Op::NoTrans, alpha, B, beta, C); };
}

/// Layouts are numbers inside a plan: the second one costs a few conversions of arguments.
template <class S, class Y, class Plan>
std::function<void()> spmm_apply(const std::shared_ptr<const Plan>& plan, const SpmmOperands& o) {
  return o.layout_left ? spmm_apply<S, Y, Kokkos::LayoutLeft, Plan>(plan, o)
                       : spmm_apply<S, Y, Kokkos::LayoutRight, Plan>(plan, o);
}

/// Of FlashSparse: a block times 16 columns of B where 8 rows of A are the narrow side of NVIDIA's m16n8 shapes, 8
/// columns where 16 rows are the wide one; AMD's shapes are square.
template <class Plan>
double matrix_instructions(const Plan& plan, std::int64_t columns) {
  const auto* format = Impl::PlanAccess::format<Experimental::MeBcrs<typename Plan::memory_space>>(plan);
  if (format == nullptr) return Record::unknown;
  const Backend backend = plan.options().backend;
  const bool square = backend == Backend::Hip || backend == Backend::EmulatedAmd;
  const std::int64_t width = format->vector_length == 16 && !square ? 8 : 16;
  return static_cast<double>(format->blocks) * static_cast<double>((columns + width - 1) / width);
}

template <class S, class Offset>
System spmm_plan(const SpmmOperands& o, const SpmmOptions& options) {
  using Plan = SpmmPlanOf<S, Offset>;
  const auto A = o.A.view<S, Offset>();
  const auto plan = std::make_shared<Plan>(o.A.space, A, options);
  const std::shared_ptr<const Plan> constant = plan;
  System system;
  if constexpr (sizeof(S) == 2) {
    system.apply = o.c_type == ElementType::Float ? spmm_apply<S, float>(constant, o) : spmm_apply<S, S>(constant, o);
  } else {
    system.apply = spmm_apply<S, S>(constant, o);
  }
  system.update = [plan, space = o.A.space, values = A.values()] { plan->update_values(space, values); };
  system.statistics = [plan] { return plan->statistics(); };
  system.matrix_instructions = [plan, n = o.columns] { return matrix_instructions(*plan, n); };
  return system;
}

/// 64-bit offsets as far as the library holds such plans compiled: nobody measures others.
template <class S>
System spmm_plan_of(const SpmmOperands& o, const SpmmOptions& options) {
  if (o.A.offset_bits == 32) return spmm_plan<S, int>(o, options);
  if constexpr (sizeof(S) == 2) {
    throw NotSupported("the benchmark multiplies matrices of 16-bit numbers with 32-bit offsets only");
  } else {
    return spmm_plan<S, WideOffset>(o, options);
  }
}

}  // namespace Bench
}  // namespace Tessera

#endif
