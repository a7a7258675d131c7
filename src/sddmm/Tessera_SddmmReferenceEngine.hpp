// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SDDMM_SDDMM_REFERENCE_ENGINE_HPP
#define TESSERA_SDDMM_SDDMM_REFERENCE_ENGINE_HPP

#include "Tessera_Statistics.hpp"
#include "backends/reference/Tessera_Reference.hpp"
#include "sddmm/Tessera_SddmmOperands.hpp"

namespace Tessera {
namespace Impl {

/// Backend::Reference: plain loops on the host.
template <class Csr>
class SddmmReferenceEngine {
 public:
  using Exec = typename Csr::execution_space;

  SddmmReferenceEngine(const Csr& S, bool scaled) : csr_(S), scaled_(scaled) {}

  std::size_t format_bytes() const { return 0; }
  std::size_t workspace_bytes(std::int64_t) const { return 0; }

  template <class T, class PT>
  void apply(const Exec& space, double alpha, const SddmmInput<T>& in, double beta, const SddmmOutput<PT>& out) const {
    if constexpr (Compat::is_host_v<Exec>) {
      Compat::fence(space, "Tessera::sddmm[reference]");
      const KernelEvent<Exec> event(space, {"sddmm", "reference", ScalarTraits<typename Csr::value_type>::precision});
      for (std::int64_t h = 0; h < in.heads; ++h) {
        const Dense<const T> x = in.x.head(h), y = in.y.head(h);
        PT* const p = out.data + h * out.head_stride;
        Reference::sddmm(
            static_cast<std::int64_t>(csr_.rows()), x.columns, csr_.row_map().data(), csr_.entries().data(),
            scaled_ ? csr_.values().data() : nullptr, alpha,
            [&](std::int64_t i, std::int64_t k) -> const T& { return *x.at(i, k); },
            [&](std::int64_t j, std::int64_t k) -> const T& { return *y.at(j, k); }, beta,
            [&](auto e) -> PT& { return p[out.slots(static_cast<std::int64_t>(e)) * out.stride]; });
      }
    }
  }

  void update(const Exec&, const Csr& S) { csr_ = S; }
  void describe(Statistics&) const {}

 private:
  Csr csr_;
  bool scaled_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
