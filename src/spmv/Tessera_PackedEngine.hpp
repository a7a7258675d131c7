// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_PACKED_ENGINE_HPP
#define TESSERA_SPMV_PACKED_ENGINE_HPP

#include <algorithm>

#include "Tessera_Statistics.hpp"
#include "core/Tessera_Profile.hpp"
#include "formats/packed/Tessera_PackedHostRules.hpp"
#include "formats/packed/Tessera_PackedUpdate.hpp"
#include "formats/packed/Tessera_ToCells.hpp"
#include "spmv/Tessera_PackedSpmv.hpp"
#include "spmv/Tessera_SpmvRules.hpp"
#include "spmv/Tessera_SpmvScratch.hpp"

namespace Tessera {
namespace Impl {

/// A matrix in packed slices, ready to multiply: by a backend's wave kernel, or on hosts by the portable one.
template <class Csr>
class PackedEngine {
 public:
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;

  /// @param table  null: the host kernel
  PackedEngine(const Exec& space, const Csr& A, Precision precision, const SpmvFeatures& features,
               const SpmvOptions& options, const KernelTable* table,
               const std::shared_ptr<PackedAhead<Memory>>& ahead = nullptr)
      : table_(table) {
    DeviceFacts facts;
    if (table != nullptr) {
      const Status status = table->runtime.device_facts(facts);
      if (!status.ok()) throw DeviceError(status.message);
    }
    const PackedOptions shape =
        table != nullptr ? options.packed : packed_host_options(options.packed, features, bytes_of(precision));
    if (!make_cells(space, A, precision, features, options, facts)) {
      packed_ = Experimental::to_packed(space, A, table != nullptr ? facts.wave : packed_host_lanes, precision,
                                        features, shape, options.updatable, table, facts, ahead);
    }
    const std::size_t vectors = (static_cast<std::size_t>(A.rows()) + A.cols()) * bytes_of(precision);
    bypass_ = table == nullptr || bypasses(options.packed.bypass, packed_.format_bytes() + vectors, *table);
    scratch_.set_up(space, table, options.workspace, packed_.partial_bytes(), workspace_bytes());
    // The kernel may read the slices' records before earlier work of the stream is complete.
    Compat::fence(space, "Tessera::spmv[packed] set-up");
    packed_.done();
    if (ahead) ahead->done();
  }

  const Experimental::PackedSlices<Memory>& format() const { return packed_; }
  const Experimental::PackedCells<Memory>& cells() const { return cells_; }
  std::size_t format_bytes() const {
    return cells_.made ? cells_.format_bytes() + cells_.map_bytes() : packed_.format_bytes() + packed_.map_bytes();
  }
  std::size_t workspace_bytes() const { return cells_.made ? cells_.workspace_bytes() : packed_.workspace_bytes(); }

  /// Whether apply takes vectors of a wider type than the matrix's: on hosts, some.
  template <class XT, class YT>
  bool widens() const {
    if constexpr (!Compat::is_host_v<Exec> || !std::is_same_v<XT, YT>) return false;
    const Precision own = packed_.precision, wide = ScalarTraits<XT>::precision;
    return table_ == nullptr && packed_.storage == PackedStorage::Full && own != wide &&
           packed_host_run(own, wide) != nullptr;
  }

  /// Up to packed_max_columns columns per launch.
  template <class XT, class YT>
  void apply(const Exec& space, double alpha, const Vectors<const XT>& x, double beta, const Vectors<YT>& y) const {
    if (cells_.made) return apply_cells(space, alpha, x, beta, y);
    SpmvPackedArgs args = packed_.arguments();
    args.streaming = bypass_;
    args.partials = scratch_.partials();
    args.arrivals = scratch_.arrivals();
    const std::size_t behind = packed_.partial_bytes() + packed_.arrival_bytes();
    if (packed_.hub_copy_bytes() > 0) args.hub_copy = scratch_.at(behind);
    if (packed_.blocks > 1) args.block_sums = scratch_.at(behind);
    args.x_stride = x.stride;
    args.y_stride = y.stride;
    args.x_column_stride = x.column_stride;
    args.y_column_stride = y.column_stride;
    args.y_type = ScalarTraits<YT>::element;
    args.alpha = alpha;
    args.beta = beta;
    scratch_.order_after_previous(space);
    // One pass over the matrix serves several vectors if values are stored in full and x is read where it lies.
    const bool plain = args.storage == PackedStorage::Full && args.hubs == 0 && args.blocks == 1;
    const std::int64_t most = plain ? packed_max_columns : 1;
    for (std::int64_t first = 0; first < x.columns; first += most) {
      args.columns = static_cast<int>(std::min(x.columns - first, most));
      args.x = x.column(first);
      args.y = y.column(first);
      launch(space, args, ScalarTraits<XT>::precision);
    }
  }

  void update(const Exec& space, const Csr& A) {
    if (cells_.made) return Experimental::cells_update<Csr>(space, cells_, A.values());
    Experimental::packed_update<Csr>(space, packed_, A.values(), table_);
  }

  void describe(Statistics& s) const {
    if (cells_.made) return describe_cells(s);
    static constexpr const char* widths[] = {"8-bit indices",  "16-bit indices", "24-bit indices",
                                             "32-bit indices", "index-free",     "diagonals"};
    static constexpr const char* storages[] = {"in full", "as float", "as 8-bit integers", "in a dictionary",
                                               "as a constant"};
    const Experimental::PackedSummary& p = packed_.summary;
    s.stored = p.stored;
    s.format_bytes = packed_.format_bytes();
    s.map_bytes = packed_.map_bytes();
    s.workspace_bytes = packed_.workspace_bytes();
    s.launches = packed_.launches();
    s.classes.clear();
    for (int i = 0; i < 6; ++i) {
      if (p.index_slots[i] > 0) s.classes.push_back({widths[i], 0, p.index_slots[i]});
    }
    if (p.grouped_slots > 0) s.classes.push_back({"shared patterns", 0, p.grouped_slots});
    if (p.parts > 0) s.classes.push_back({"split rows", p.split_rows, 0});
    if (packed_.renumbered) {
      s.classes.push_back({"columns in the order of their use", 0, s.nnz});
    } else if (packed_.hub_columns.extent(0) > 0) {
      s.classes.push_back({std::to_string(packed_.hub_columns.extent(0)) + " hub columns", 0,
                           static_cast<long long>(packed_.hub_share * static_cast<double>(s.nnz))});
    }
    if (packed_.blocks > 1) s.classes.push_back({std::to_string(packed_.blocks) + " column blocks", s.rows, s.nnz});
    s.classes.push_back({std::string("values ") + storages[static_cast<int>(packed_.storage)], s.rows, s.nnz});
  }

 private:
  /// Where cells are worth having, or asked for, and a backend has them.
  bool make_cells(const Exec& space, const Csr& A, Precision precision, const SpmvFeatures& features,
                  const SpmvOptions& options, const DeviceFacts& facts) {
    if (table_ == nullptr || table_->spmv.cells == nullptr) return false;
    check(options.packed);
    const CellsShape shape = cells_shape(options.packed, features, facts, bytes_of(precision));
    if (shape.row_blocks == 0) return false;
    cells_ = Experimental::to_cells(space, A, precision, shape, options.updatable, table_);
    if (!cells_.made) cells_ = {};
    return cells_.made;
  }

  template <class XT, class YT>
  void apply_cells(const Exec& space, double alpha, const Vectors<const XT>& x, double beta,
                   const Vectors<YT>& y) const {
    SpmvCellsArgs args = cells_.arguments();
    args.partials = scratch_.partials();
    args.x_stride = x.stride;
    args.y_stride = y.stride;
    args.y_type = ScalarTraits<YT>::element;
    args.alpha = alpha;
    args.beta = beta;
    const KernelName name{"spmv", "packed", ScalarTraits<typename Csr::value_type>::precision};
    scratch_.order_after_previous(space);
    for (std::int64_t j = 0; j < x.columns; ++j) {
      args.x = x.column(j);
      args.y = y.column(j);
      run_on_backend(space, name, [&](Stream stream) { return table_->spmv.cells(args, stream); });
    }
  }

  void describe_cells(Statistics& s) const {
    s.stored = cells_.stored();
    s.format_bytes = cells_.format_bytes();
    s.map_bytes = cells_.map_bytes();
    s.workspace_bytes = cells_.workspace_bytes();
    s.launches = cells_.launches();
    const CellsShape& c = cells_.shape;
    s.classes = {{std::to_string(c.row_blocks) + " row blocks", s.rows, s.nnz},
                 {std::to_string(c.column_blocks) + " column blocks", s.rows, s.nnz},
                 {std::to_string(c.shares) + " shares of x", s.rows, s.nnz},
                 {"pieces of rows", cells_.totals.pieces, s.nnz}};
  }

  void launch(const Exec& space, const SpmvPackedArgs& args, Precision vectors) const {
    if (table_ == nullptr) {
      if constexpr (Compat::is_host_v<Exec>) {
        if (args.blocks > 1) return packed_spmv_host_blocks(space, args, packed_.lanes, vectors);
        packed_spmv_host(space, args, packed_.lanes, vectors);
      }
      return;
    }
    const KernelName name{"spmv", "packed", ScalarTraits<typename Csr::value_type>::precision};
    run_on_backend(space, name, [&](Stream stream) { return table_->spmv.packed(args, stream); });
  }

  const KernelTable* table_;
  Experimental::PackedSlices<Memory> packed_;
  Experimental::PackedCells<Memory> cells_;  // instead of these, where they are made
  SpmvScratch<Exec, Memory> scratch_;
  bool bypass_ = true;
};

}  // namespace Impl
}  // namespace Tessera

#endif
