// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_SPGEMM_PLAN_HPP
#define TESSERA_BENCH_SPGEMM_PLAN_HPP

#include "Tessera_Spgemm.hpp"
#include "spgemm/Tessera_BenchSpgemm.hpp"

namespace Tessera {
namespace Bench {

template <class S, class Offset>
System spgemm_plan(const SpgemmOperands& o, const SpgemmOptions& options) {
  using Csr = CsrView<S, int, Offset, Device>;
  using Plan = SpgemmPlan<Csr>;
  const Csr A = o.A.view<S, Offset>(), B = o.B.view<S, Offset>();
  const auto plan = std::make_shared<Plan>(o.A.space, A, B, options);
  const auto product = std::make_shared<Csr>();  // what C's arrays are of
  System system;
  system.apply = [product, A, B, space = o.A.space, C = o.C, options] {
    *C = {};
    *product = Csr();
    *product = spgemm(space, A, B, options);
    C->row_map = DeviceArray(product->row_map());
    C->entries = DeviceArray(product->entries());
    C->values = DeviceArray(product->values());
  };
  system.update = [plan, A, B, space = o.A.space, C = o.C] {
    if (plan->nnz() < 0) {
      *C = {};
      C->row_map = DeviceArray("C row_map", static_cast<std::size_t>(A.rows()) + 1, sizeof(Offset));
      const auto nnz = static_cast<std::size_t>(plan->symbolic(space, C->row_map.view<Offset>()));
      C->entries = DeviceArray("C entries", nnz, sizeof(int));
      C->values = DeviceArray("C values", nnz, sizeof(S));
      plan->numeric(space, C->row_map.view<Offset>(), C->entries.view<int>(), C->values.view<S>());
    }
    plan->update_values(space, A, B, C->row_map.view<Offset>(), C->entries.view<int>(), C->values.view<S>());
  };
  system.statistics = [plan] { return plan->statistics(); };
  return system;
}

template <class S>
System spgemm_plan_of(const SpgemmOperands& o, const SpgemmOptions& options) {
  return o.A.offset_bits == 32 ? spgemm_plan<S, int>(o, options) : spgemm_plan<S, WideOffset>(o, options);
}

}  // namespace Bench
}  // namespace Tessera

#endif
