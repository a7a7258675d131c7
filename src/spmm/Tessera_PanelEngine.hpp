// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_PANEL_ENGINE_HPP
#define TESSERA_SPMM_PANEL_ENGINE_HPP

#include "formats/windows/Tessera_ToPanels.hpp"
#include "spmm/Tessera_WindowEngine.hpp"

namespace Tessera {
namespace Impl {

/// Block geometry of a backend's panels; null where it has none.
inline const PanelGeometry* panel_shape(const KernelTable& table, Precision precision, std::int64_t columns) {
  return table.spmm.panel_geometry == nullptr || table.spmm.panels == nullptr
             ? nullptr
             : table.spmm.panel_geometry(precision, columns);
}

template <class Csr>
struct PanelMethod {
  using Exec = typename Csr::execution_space;
  using Format = Experimental::Panels<typename Csr::memory_space>;
  using Args = SpmmPanelArgs;
  static constexpr const char* name = "panels";

  static int height(const KernelTable& table, Precision precision, const SpmmOptions& options) {
    return panel_shape(table, precision, options.num_columns_hint)->rows;
  }
  static Format convert(const Exec& space, const Csr& A, Precision precision, const SpmmOptions& options,
                        const KernelTable& table, const typename WindowFunctors<Csr>::Order& order) {
    const PanelGeometry& geometry = *panel_shape(table, precision, options.num_columns_hint);
    return Experimental::to_panels(space, A, geometry, precision, options.panels, options.updatable, &table, order);
  }
  static Args arguments(const Format& format, const FlashOptions&) { return format.arguments(); }
  static Status launch(const KernelTable& table, const Args& args, Stream stream) {
    return table.spmm.panels(args, stream);
  }
  static void update(const Exec& space, Format& format, const Csr& A) {
    Experimental::update_panels(space, format, A, A.values());
  }
  static void describe(const Format& format, Statistics& s) {
    s.atom = format.geometry.atom;
    s.stored = s.nnz;  // slots without an entry are a bit each
    s.matrix_unit_share = s.nnz > 0 ? 1 : 0;
  }
};

template <class Csr>
using PanelEngine = WindowEngine<Csr, PanelMethod<Csr>>;

}  // namespace Impl
}  // namespace Tessera

#endif
