// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CSR_PLAN_HPP
#define TESSERA_CSR_PLAN_HPP

#include <memory>

#include "Tessera_CsrView.hpp"
#include "Tessera_Statistics.hpp"
#include "core/Tessera_Plan.hpp"

namespace Tessera {

/// What SpmvPlan, SpmmPlan, SddmmPlan and AttentionPlan of a CsrView have alike: types, new numbers, reports.
/// Destroying one that has memory on a device waits for the device: applies may be in flight, on any stream.
template <class Csr, template <class> class Operation>
class CsrPlan {
  static_assert(Impl::IsCsrView<Csr>::value, "Tessera: the template argument of a plan must be a Tessera::CsrView");

 public:
  using csr_type = Csr;                                   ///< the matrix, or the pattern
  using execution_space = typename Csr::execution_space;  ///< where plan and applies run
  using memory_space = typename Csr::memory_space;        ///< where dense operands lie
  using value_type = typename Csr::value_type;            ///< of the matrix

  /// New numbers for the same pattern: no analysis, no allocation. One kernel over the stored slots of a format; none
  /// where products go straight from the matrix's arrays, of which the plan then reads this view instead of the old
  /// one. Packed slices with a value class look at the numbers first, which waits once; if these leave the class, the
  /// packets are made anew.
  /// @param values  nnz numbers in CSR order
  /// @throw StalePlan  wrong number of values, or options.updatable was false
  /// @throw OutOfMemory, DeviceError  no room for packets of another class: the plan still has its old numbers (with
  ///        prepare_transpose those of A or of A^T may be the new ones: call it again before the next apply)
  void update_values(const execution_space& space, const typename Csr::values_type& values) {
    body_->update_values(space, values);
    csr_ = Impl::with_values(csr_, values);
  }
  /// The same, with a check that A has the plan's pattern arrays. @throw StalePlan
  void update_values(const execution_space& space, const Csr& A) {
    body_->update_values(space, Impl::plan_matrix(A));
    csr_ = A;
  }

  /// Same sizes and the same row_map and entries arrays (not a comparison of their contents).
  bool matches(const Csr& A) const noexcept { return body_->matches(Impl::plan_matrix(A)); }

  /// Memory of the format, update map included; scratch apart.
  std::size_t format_bytes() const { return body_->format_bytes(); }
  /// With algorithm and backend as decided.
  const typename Operation<Impl::PlanMatrixOf<Csr>>::Options& options() const noexcept { return body_->options(); }
  /// What was chosen, why, and what it costs. Host work only.
  Statistics statistics() const { return body_->statistics(); }

 protected:
  /// What does the work; compiled in the library for usual types.
  using Body = Impl::PlanBody<Operation<Impl::PlanMatrixOf<Csr>>>;

  /// Looks at A and converts it. @param options  those of the operation
  CsrPlan(const execution_space& space, const Csr& A, const typename Body::Options& options)
      : csr_(A), body_(std::make_unique<Body>(space, Impl::plan_matrix(A), options)) {}
  /// Plans can be moved and not copied.
  CsrPlan(CsrPlan&&) noexcept = default;
  /// See CsrPlan(CsrPlan&&).
  CsrPlan& operator=(CsrPlan&&) noexcept = default;
  ~CsrPlan() = default;

  Csr csr_;                     ///< keeps the caller's arrays alive
  std::unique_ptr<Body> body_;  ///< the work

 private:
  friend struct Impl::PlanAccess;
};

}  // namespace Tessera

#endif
