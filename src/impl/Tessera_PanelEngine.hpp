// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_IMPL_PANEL_ENGINE_HPP
#define TESSERA_IMPL_PANEL_ENGINE_HPP

#include "Tessera_Statistics.hpp"
#include "convert/Tessera_ToPanels.hpp"
#include "impl/Tessera_SpmmOperands.hpp"
#include "reorder/Tessera_RowClusters.hpp"

namespace Tessera {
namespace Impl {

/// Block geometry of a backend's panels; null where it has none.
inline const PanelGeometry* panel_shape(const KernelTable& table, Precision precision, std::int64_t columns) {
  return table.panel_geometry == nullptr || table.spmm_panels == nullptr ? nullptr
                                                                         : table.panel_geometry(precision, columns);
}

/// A matrix in panels, ready to multiply.
template <class Csr>
class PanelEngine {
 public:
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;

  PanelEngine(const Exec& space, const Csr& A, Precision precision, const SpmmOptions& options,
              const KernelTable& table)
      : table_(&table), format_(convert(space, A, precision, options, table, note_)) {
    scratch_.set_up(&table, options.workspace);
  }

  const Panels<Memory>& format() const { return format_; }
  std::size_t format_bytes() const { return format_.format_bytes() + format_.map_bytes(); }
  std::size_t workspace_bytes(std::int64_t n) const {
    return ScratchLayout::rounded(format_.workspace_bytes(n)) +
           operand_bytes(format_.precision, format_.rows, format_.cols, n);
  }

  template <class BT, class CT>
  void apply(const Exec& space, double alpha, const Dense<const BT>& b, std::size_t span, double beta,
             const Dense<CT>& c) const {
    SpmmPanelArgs args = format_.arguments();
    args.split.partial_ld = (c.columns + 3) / 4 * 4;
    const auto launch = [&](const SpmmDense& dense, void* partials) {
      args.dense = dense;
      args.split.partials = partials;
      return table_->spmm_panels(args, Compat::native_stream(space));
    };
    launch_spmm(space, scratch_, "spmm[panels]", alpha, b, span, beta, c, format_.workspace_bytes(c.columns), launch);
  }

  void update(const Exec& space, const Csr& A) { update_panels(space, format_, A, A.values()); }

  void describe(Statistics& s) const {
    s.atom = format_.geometry.atom;
    s.stored = s.nnz;  // slots without an entry are a bit each
    s.matrix_unit_share = s.nnz > 0 && format_.precision != Precision::FP32 ? 1 : 0;
    s.format_bytes = format_.format_bytes();
    s.map_bytes = format_.map_bytes();
    const auto splits = static_cast<long long>(format_.splits.extent(0));
    s.launches = splits > 0 ? 2 : 1;
    s.classes = {
        {"windows", format_.windows, s.nnz}, {"vectors", format_.vectors, s.nnz}, {"split windows", splits, 0}};
    if (format_.row_order.extent(0) > 0) s.classes.push_back({"rows reordered", s.rows, s.nnz});
    if (!note_.empty()) s.why += "; " + note_;
  }

 private:
  static Panels<Memory> convert(const Exec& space, const Csr& A, Precision precision, const SpmmOptions& options,
                                const KernelTable& table, std::string& note) {
    const PanelGeometry& geometry = *panel_shape(table, precision, options.num_columns_hint);
    const RowOrder<Csr> rows = choose_row_order(space, A, geometry.rows, options.reordering, &table);
    note = rows.note;
    const typename WindowFunctors<Csr>::Order order(rows.order.data(), rows.order.extent(0));
    return to_panels(space, A, geometry, precision, options.panels, options.updatable, &table, order);
  }

  const KernelTable* table_;
  std::string note_;  ///< on the order of rows; before format_, whose conversion writes it
  Panels<Memory> format_;
  SpmmScratch<Exec, Memory> scratch_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
