// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_CSR_ENGINE_HPP
#define TESSERA_SPMV_CSR_ENGINE_HPP

#include "Tessera_Statistics.hpp"
#include "backends/reference/Tessera_Reference.hpp"
#include "core/Tessera_Profile.hpp"
#include "core/Tessera_VectorOperand.hpp"
#include "spmv/Tessera_CsrSpmv.hpp"

namespace Tessera {
namespace Impl {

/// A matrix in compressed rows as it is, multiplied by the portable kernel or, for Backend::Reference, by plain loops
/// on the host.
template <class Csr>
class CsrEngine {
 public:
  using Exec = typename Csr::execution_space;

  CsrEngine(const Csr& A, bool reference) : csr_(A), reference_(reference) {}

  std::size_t format_bytes() const { return 0; }
  std::size_t workspace_bytes() const { return 0; }

  template <class XT, class YT>
  void apply(const Exec& space, double alpha, const Vectors<const XT>& x, double beta, const Vectors<YT>& y) const {
    if (reference_) return plain_loops(space, alpha, x, beta, y);
    for_each_column(x, y, [&](const auto& from, const auto& to) { csr_spmv(space, alpha, csr_, from, beta, to); });
  }

  void update(const Exec&, const Csr& A) { csr_ = A; }
  void describe(Statistics&) const {}

 private:
  template <class XT, class YT>
  void plain_loops(const Exec& space, double alpha, const Vectors<const XT>& x, double beta,
                   const Vectors<YT>& y) const {
    if constexpr (Compat::is_host_v<Exec>) {
      struct Strided {
        YT* data;
        std::int64_t stride;
        YT& operator[](std::int64_t i) const { return data[i * stride]; }
      };
      struct ConstStrided {
        const XT* data;
        std::int64_t stride;
        const XT& operator[](std::int64_t i) const { return data[i * stride]; }
      };
      Compat::fence(space, "Tessera::spmv[reference]");
      const KernelEvent<Exec> event(space, {"spmv", "reference", ScalarTraits<typename Csr::value_type>::precision});
      for (std::int64_t j = 0; j < x.columns; ++j) {
        Reference::spmv(csr_.rows(), csr_.row_map().data(), csr_.entries().data(), csr_.values().data(), alpha,
                        ConstStrided{x.column(j), x.stride}, beta, Strided{y.column(j), y.stride});
      }
    } else {
      throw NotSupported("Backend::Reference runs on host execution spaces; mirror the matrix first");
    }
  }

  Csr csr_;
  bool reference_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
