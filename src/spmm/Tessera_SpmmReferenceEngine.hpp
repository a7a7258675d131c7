// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_SPMM_REFERENCE_ENGINE_HPP
#define TESSERA_SPMM_SPMM_REFERENCE_ENGINE_HPP

#include "Tessera_Statistics.hpp"
#include "backends/reference/Tessera_Reference.hpp"
#include "core/Tessera_DenseOperand.hpp"
#include "core/Tessera_Profile.hpp"

namespace Tessera {
namespace Impl {

/// Backend::Reference: plain loops on the host.
template <class Csr>
class SpmmReferenceEngine {
 public:
  using Exec = typename Csr::execution_space;

  explicit SpmmReferenceEngine(const Csr& A) : csr_(A) {}

  std::size_t format_bytes() const { return 0; }
  std::size_t workspace_bytes(std::int64_t) const { return 0; }

  template <class BT, class CT>
  void apply(const Exec& space, double alpha, const Dense<const BT>& b, std::size_t, double beta,
             const Dense<CT>& c) const {
    if constexpr (Compat::is_host_v<Exec>) {
      Compat::fence(space, "Tessera::spmm[reference]");
      const KernelEvent<Exec> event(space, {"spmm", "reference", ScalarTraits<typename Csr::value_type>::precision});
      Reference::spmm(
          static_cast<std::int64_t>(csr_.rows()), c.columns, csr_.row_map().data(), csr_.entries().data(),
          csr_.values().data(), alpha, [&](std::int64_t i, std::int64_t j) -> const BT& { return *b.at(i, j); }, beta,
          [&](std::int64_t i, std::int64_t j) -> CT& { return *c.at(i, j); });
    }
  }

  void update(const Exec&, const Csr& A) { csr_ = A; }
  void describe(Statistics&) const {}

 private:
  Csr csr_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
