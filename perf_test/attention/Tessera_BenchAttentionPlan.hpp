// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_ATTENTION_PLAN_HPP
#define TESSERA_BENCH_ATTENTION_PLAN_HPP

#include <memory>

#include "Tessera_Attention.hpp"
#include "attention/Tessera_BenchAttention.hpp"

/// \file
/// What of the benchmark has to be compiled for every type of the operands: a plan and its applies.

namespace Tessera {
namespace Bench {

template <class S>
System attention_plan_of(const AttentionOperands& o, const AttentionOptions& options) {
  using Csr = CsrView<S, int, int, Device>;
  using Plan = AttentionPlan<Csr>;
  using Dense = Kokkos::View<S***, Kokkos::LayoutRight, Device>;
  using Vectors = Kokkos::View<typename Plan::sum_type**, Kokkos::LayoutRight, Device>;
  if (o.A.offset_bits != 32) throw NotSupported("the benchmark has attention with 32-bit offsets only");
  const auto plan = std::make_shared<const Plan>(o.A.space, o.A.view<S, int>(), options);
  const auto heads = static_cast<std::size_t>(o.heads), columns = static_cast<std::size_t>(o.columns);
  const auto dense = [&](const DeviceArray& a, int rows) {
    return Dense(a.data<S>(), heads, static_cast<std::size_t>(rows), columns);
  };
  const Dense q = dense(o.q, o.A.rows), k = dense(o.k, o.A.cols), v = dense(o.v, o.A.cols), out = dense(o.o, o.A.rows);
  const Vectors lse(o.lse.data<typename Plan::sum_type>(), heads, static_cast<std::size_t>(o.A.rows));
  System system;
  if (o.backward) {
    const Dense d_o = dense(o.d_o, o.A.rows), d_q = dense(o.d_q, o.A.rows), d_k = dense(o.d_k, o.A.cols),
                d_v = dense(o.d_v, o.A.cols);
    system.apply = [plan, space = o.A.space, scale = o.scale, q, k, v, out, lse, d_o, d_q, d_k, d_v] {
      plan->backward(space, scale, q, k, v, out, lse, d_o, d_q, d_k, d_v);
    };
  } else {
    system.apply = [plan, space = o.A.space, scale = o.scale, q, k, v, out, lse] {
      plan->apply(space, scale, q, k, v, out, lse);
    };
  }
  system.statistics = [plan] { return plan->statistics(); };
  return system;
}

}  // namespace Bench
}  // namespace Tessera

#endif
