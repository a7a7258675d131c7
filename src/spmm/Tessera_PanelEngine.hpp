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
  static Status launch(const KernelTable& table, const Format& format, const Args& args, Stream stream) {
    const Status status = table.spmm.panels(args, stream);
    return status.ok() && format.apart.count() > 0 ? launch_apart(table, format, args.dense, stream) : status;
  }
  static void update(const Exec& space, Format& format, const Csr& A) {
    Experimental::update_panels(space, format, A, A.values());
  }
  static void describe(const Format& format, Statistics& s) {
    s.atom = format.geometry.atom;
    s.stored = s.nnz;  // slots without an entry are a bit each
    const long long apart = format.apart.entries();
    s.matrix_unit_share = s.nnz > 0 ? static_cast<double>(s.nnz - apart) / static_cast<double>(s.nnz) : 0;
    if (apart == 0) return;
    ++s.launches;
    s.classes.push_back({"rows apart", static_cast<long long>(format.apart.count()), apart});
  }

 private:
  /// In as many products as the kernel's number of columns asks for, which panels have no bound on.
  static Status launch_apart(const KernelTable& table, const Format& format, const SpmmDense& dense, Stream stream) {
    constexpr std::int64_t most = std::int64_t{1} << 22;
    GeSpmmArgs args = format.arguments_apart();
    Status status;
    for (std::int64_t first = 0; first < dense.columns && status.ok(); first += most) {
      args.dense = dense;
      args.dense.b = static_cast<const float*>(dense.b) + first;
      args.dense.c = static_cast<float*>(dense.c) + first;
      args.dense.columns = dense.columns - first < most ? dense.columns - first : most;
      status = table.spmm.gespmm(args, stream);
    }
    return status;
  }
};

template <class Csr>
using PanelEngine = WindowEngine<Csr, PanelMethod<Csr>>;

}  // namespace Impl
}  // namespace Tessera

#endif
