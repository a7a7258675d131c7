// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_DASP_ENGINE_HPP
#define TESSERA_SPMV_DASP_ENGINE_HPP

#include "Tessera_Statistics.hpp"
#include "core/Tessera_Profile.hpp"
#include "formats/dasp/Tessera_ToDasp.hpp"
#include "spmv/Tessera_SpmvScratch.hpp"

namespace Tessera {
namespace Impl {

/// A matrix in the DASP format, ready to multiply.
template <class Csr>
class DaspEngine {
 public:
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;

  DaspEngine(const Exec& space, const Csr& A, Precision precision, const SpmvOptions& options, const KernelTable& table)
      : table_(&table),
        dasp_(Experimental::to_dasp(space, A, *table.spmv.dasp_geometry(precision), precision, options.dasp,
                                    options.updatable, &table)) {
    bypass_ = bypasses(options.dasp.bypass, dasp_.format_bytes(), table);
    scratch_.set_up(space, &table, options.workspace, dasp_.partial_bytes(), dasp_.workspace_bytes());
  }

  const Experimental::Dasp<Memory>& format() const { return dasp_; }
  std::size_t format_bytes() const { return dasp_.format_bytes() + dasp_.map_bytes(); }
  std::size_t workspace_bytes() const { return dasp_.workspace_bytes(); }

  template <class XT, class YT>
  void apply(const Exec& space, double alpha, const Vectors<const XT>& x, double beta, const Vectors<YT>& y) const {
    SpmvDaspArgs args = dasp_.arguments();
    args.streaming = bypass_;
    args.partials = scratch_.partials();
    args.arrivals = scratch_.arrivals();
    args.x_stride = x.stride;
    args.y_stride = y.stride;
    args.y_type = ScalarTraits<YT>::element;
    args.alpha = alpha;
    args.beta = beta;
    const KernelName name{"spmv", "dasp", ScalarTraits<typename Csr::value_type>::precision};
    scratch_.order_after_previous(space);
    for (std::int64_t j = 0; j < x.columns; ++j) {
      args.x = x.column(j);
      args.y = y.column(j);
      run_on_backend(space, name, [&](Stream stream) { return table_->spmv.dasp(args, stream); });
    }
  }

  void update(const Exec& space, const Csr& A) {
    Experimental::dasp_fill<Csr>(space, dasp_, A.values(), typename Csr::entries_type());
  }

  void describe(Statistics& s) const {
    const Experimental::Dasp<Memory>& d = dasp_;
    s.atom = d.geometry.atom;
    s.stored = d.stored();
    s.matrix_unit_share = s.nnz > 0 ? 1 - static_cast<double>(d.irregular) / static_cast<double>(s.nnz) : 0;
    s.row_max = d.max_length;
    s.format_bytes = d.format_bytes();
    s.map_bytes = d.map_bytes();
    s.workspace_bytes = d.workspace_bytes();
    const long long medium = d.class_rows[DaspMedium1] + d.class_rows[DaspMedium2] + d.class_rows[DaspMedium4];
    s.classes = {{"long", d.class_rows[DaspLong], d.class_nnz[DaspLong]},
                 {"medium", medium, d.class_nnz[DaspMedium4]},
                 {"short 1&3", d.class_rows[DaspPairs13], d.class_nnz[DaspPairs13]},
                 {"short 2&2", d.class_rows[DaspPairs22], d.class_nnz[DaspPairs22]},
                 {"short 3", d.class_rows[DaspThree], d.class_nnz[DaspThree]},
                 {"short 4", d.class_rows[DaspFour], d.class_nnz[DaspFour]},
                 {"short 1", d.class_rows[DaspSingle], d.class_nnz[DaspSingle]},
                 {"empty", d.class_rows[DaspEmpty], 0}};
  }

 private:
  const KernelTable* table_;
  Experimental::Dasp<Memory> dasp_;
  SpmvScratch<Exec, Memory> scratch_;
  bool bypass_ = true;
};

}  // namespace Impl
}  // namespace Tessera

#endif
