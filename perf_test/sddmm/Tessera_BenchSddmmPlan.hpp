// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_BENCH_SDDMM_PLAN_HPP
#define TESSERA_BENCH_SDDMM_PLAN_HPP

#include <memory>

#include "Tessera_Sddmm.hpp"
#include "Tessera_Spmm.hpp"
#include "sddmm/Tessera_BenchSddmm.hpp"

/// \file
/// What of the benchmark has to be compiled for every type of the pattern: a plan and its products.

namespace Tessera {
namespace Bench {

template <class S, class P, class Plan>
std::function<void()> sddmm_apply(const std::shared_ptr<Plan>& plan, const SddmmOperands& o) {
  using Dense = Kokkos::View<S**, Kokkos::LayoutRight, Device>;
  const auto inner = static_cast<std::size_t>(o.inner);
  return [plan, space = o.S.space, alpha = o.alpha, X = Dense(o.X.data<S>(), static_cast<std::size_t>(o.S.rows), inner),
          Y = Dense(o.Y.data<S>(), static_cast<std::size_t>(o.S.cols), inner), beta = o.beta,
          to = o.P.view<P>()] { plan->apply(space, Op::NoTrans, alpha, X, Y, beta, to); };
}

/// @throw NotSupported  FlashSparse has no SpMM of these types
template <class S, class Offset>
auto make_sddmm_plan(const SddmmOperands& o, const SddmmOptions& options, SharedWindows* windows) {
  using Csr = CsrView<S, int, Offset, Device>;
  using Plan = SddmmPlan<Csr>;
  const Csr csr = o.S.view<S, Offset>();
  if constexpr (sizeof(S) <= 4) {
    if (windows != nullptr) {
      using Spmm = SpmmPlan<Csr>;
      if (!windows->plan) {
        SpmmOptions spmm;
        spmm.algorithm = SpmmAlgorithm::FlashSparse;
        spmm.backend = options.backend;
        spmm.compute = options.compute;
        spmm.fallback = false;
        windows->plan = std::make_shared<const Spmm>(o.S.space, csr, spmm);
      }
      return std::make_shared<const Plan>(o.S.space, csr, *static_cast<const Spmm*>(windows->plan.get()), options);
    }
  }
  if (windows != nullptr) throw NotSupported("FlashSparse has no SpMM of doubles to share windows with");
  return std::make_shared<const Plan>(o.S.space, csr, options);
}

template <class S, class Offset>
System sddmm_plan(const SddmmOperands& o, const SddmmOptions& options, SharedWindows* windows) {
  const auto plan = make_sddmm_plan<S, Offset>(o, options, windows);
  System system;
  if constexpr (sizeof(S) == 2) {
    system.apply = o.p_type == ElementType::Float ? sddmm_apply<S, float>(plan, o) : sddmm_apply<S, S>(plan, o);
  } else {
    system.apply = sddmm_apply<S, S>(plan, o);
  }
  system.statistics = [plan] { return plan->statistics(); };
  return system;
}

/// 64-bit offsets as far as the library holds such plans compiled: nobody measures others.
template <class S>
System sddmm_plan_of(const SddmmOperands& o, const SddmmOptions& options, SharedWindows* windows) {
  if (o.S.offset_bits == 32) return sddmm_plan<S, int>(o, options, windows);
  if constexpr (sizeof(S) == 2) {
    throw NotSupported("the benchmark multiplies patterns of 16-bit numbers with 32-bit offsets only");
  } else {
    return sddmm_plan<S, WideOffset>(o, options, windows);
  }
}

}  // namespace Bench
}  // namespace Tessera

#endif
