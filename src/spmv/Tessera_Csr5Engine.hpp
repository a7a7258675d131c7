// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_CSR5_ENGINE_HPP
#define TESSERA_SPMV_CSR5_ENGINE_HPP

#include "Tessera_Statistics.hpp"
#include "formats/csr5/Tessera_ToCsr5.hpp"
#include "spmv/Tessera_Csr5Spmv.hpp"
#include "spmv/Tessera_SpmvScratch.hpp"

namespace Tessera {
namespace Impl {

/// A matrix in the CSR5 format, ready to multiply.
template <class Csr>
class Csr5Engine {
 public:
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;

  Csr5Engine(const Exec& space, const Csr& A, const SpmvOptions& options, const KernelTable* backend)
      : csr5_(Experimental::to_csr5(space, A, options.csr5, options.updatable, backend)) {
    scratch_.set_up(space, backend, options.workspace, 0, csr5_.workspace_bytes());
    if (csr5_.workspace_bytes() > 0) csr5_.use_workspace(scratch_.partials());
  }

  const Experimental::Csr5<typename Csr::value_type, Memory>& format() const { return csr5_; }
  std::size_t format_bytes() const { return csr5_.format_bytes(); }
  std::size_t workspace_bytes() const { return csr5_.workspace_bytes(); }

  template <class XT, class YT>
  void apply(const Exec& space, double alpha, const Vectors<const XT>& x, double beta, const Vectors<YT>& y) const {
    scratch_.order_after_previous(space);
    for_each_column(x, y, [&](const auto& from, const auto& to) { csr5_spmv(space, alpha, csr5_, from, beta, to); });
  }

  void update(const Exec& space, const Csr& A) { Experimental::csr5_fill(space, csr5_, A.values()); }

  void describe(Statistics& s) const {
    s.stored = s.nnz;
    s.format_bytes = csr5_.format_bytes();
    s.map_bytes = 0;
    s.workspace_bytes = csr5_.workspace_bytes();
    s.launches = csr5_.launches();
  }

 private:
  Experimental::Csr5<typename Csr::value_type, Memory> csr5_;
  SpmvScratch<Exec, Memory> scratch_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
