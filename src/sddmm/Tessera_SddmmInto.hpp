// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SDDMM_SDDMM_INTO_HPP
#define TESSERA_SDDMM_SDDMM_INTO_HPP

#include <string>
#include <type_traits>

#include "core/Tessera_Plan.hpp"
#include "formats/windows/Tessera_MeBcrs.hpp"
#include "formats/windows/Tessera_Panels.hpp"
#include "sddmm/Tessera_SddmmOperation.hpp"

/// \file
/// Beside an SpMM plan of the same pattern: with its windows, results straight into its numbers.

namespace Tessera {
namespace Impl {

/// The numbers of a format, and where in them those of the entries are.
struct SddmmTarget {
  void* values = nullptr;
  Precision precision = Precision::FP64;
  SddmmSlots slots;

  template <class Format>
  static SddmmTarget of(const Format& f) {
    require<NotSupported>(f.nnz == 0 || f.entry_slot.extent(0) > 0, [] {
      return std::string(
          "sddmm: the plan to write into was made with updatable = false, so that it does not know where "
          "its numbers are");
    });
    constexpr bool wide = sizeof(typename std::decay_t<decltype(f.entry_slot)>::value_type) == 8;
    return {f.values.data(), f.precision, {f.entry_slot.data(), wide}};
  }
};

/// @param what  "to write into", "to take windows from"  @throw StalePlan
template <class Csr, class Plan>
void require_same_pattern(const Csr& S, const Plan& A, const char* what) {
  require<StalePlan>(same_pattern(PlanAccess::matrix(A), S),
                     [&] { return std::string("sddmm: the plan ") + what + " was made of other pattern arrays"; });
}

/// Options of a plan with A's windows. @throw StalePlan, NotSupported, InvalidArgument
template <class Csr, class Plan>
SddmmBodyOptions<typename Csr::memory_space> with_windows_of(const Csr& S, const Plan& A, const SddmmOptions& given) {
  require_same_pattern(S, A, "to take windows from");
  require<InvalidArgument>(given.algorithm == SddmmAlgorithm::Auto || given.algorithm == SddmmAlgorithm::FlashSparse,
                           [&] {
                             return std::string("sddmm: a plan with the windows of an SpMM plan is FlashSparse, not ") +
                                    to_string(given.algorithm);
                           });
  const auto* const format = PlanAccess::format<Experimental::MeBcrs<typename Csr::memory_space>>(A);
  require<NotSupported>(format != nullptr, [&] {
    return std::string("sddmm: the plan to take windows from is by ") + to_string(A.options().algorithm) +
           ", not by FlashSparse";
  });
  SddmmBodyOptions<typename Csr::memory_space> options;
  static_cast<SddmmOptions&>(options) = given;
  options.algorithm = SddmmAlgorithm::FlashSparse;
  options.backend = A.options().backend;
  options.window_height = 0;
  options.fallback = false;
  options.windows = *format;
  options.windows->values = {};
  options.windows->value_storage.reset();
  return options;
}

/// SddmmPlan::apply_into.
template <class Csr, class Body, class Exec, class X, class Y, class Plan>
void sddmm_into(const Csr& S, const Body& body, const Exec& space, Op op_y, double alpha, const X& x, const Y& y,
                const Plan& A) {
  static_assert(Compat::view_rank<X> == 2 && Compat::view_rank<Y> == 2,
                "Tessera::SddmmPlan::apply_into: X and Y must have rank 2");
  using T = typename X::non_const_value_type;
  using Memory = typename Csr::memory_space;
  require_same_pattern(S, A, "to write into");
  require<NotSupported>(!A.options().prepare_transpose, [] {
    return std::string("sddmm: the plan to write into holds the transpose, too: make it without prepare_transpose");
  });
  SddmmTarget target;
  if (const auto* flash = PlanAccess::format<Experimental::MeBcrs<Memory>>(A)) {
    target = SddmmTarget::of(*flash);
  } else if (const auto* panels = PlanAccess::format<Experimental::Panels<Memory>>(A)) {
    target = SddmmTarget::of(*panels);
  } else {
    throw NotSupported("sddmm: the plan to write into keeps no numbers of its own; write P into its matrix");
  }
  const auto in = sddmm_input(x, y, op_y);
  const auto run = [&](auto* values) {
    using P = std::remove_pointer_t<decltype(values)>;
    check_sddmm_views<Csr, X, Y, Kokkos::View<P*, Kokkos::LayoutLeft, Memory>>();
    SddmmOutput<P> out;
    out.data = values;
    out.nnz = static_cast<std::int64_t>(S.nnz());
    out.slots = target.slots;
    check_sddmm_extents(S, in, out);
    body.apply(space, Op::NoTrans, alpha, in, 0.0, out);
    PlanAccess::numbers_replaced(A);
  };
  const Precision stored = target.precision == Precision::TF32 ? Precision::FP32 : target.precision;
  if (stored == ScalarTraits<T>::precision) return run(static_cast<T*>(target.values));
  if constexpr (sizeof(T) == 2) {
    if (stored == Precision::FP32) return run(static_cast<float*>(target.values));
  }
  throw NotSupported(std::string("sddmm: X and Y of ") + to_string(ScalarTraits<T>::element) +
                     " do not go into a plan of " + to_string(stored));
}

}  // namespace Impl
}  // namespace Tessera

#endif
