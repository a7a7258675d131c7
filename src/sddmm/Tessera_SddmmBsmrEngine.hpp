// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SDDMM_SDDMM_BSMR_ENGINE_HPP
#define TESSERA_SDDMM_SDDMM_BSMR_ENGINE_HPP

#include <cstdio>

#include "Tessera_Statistics.hpp"
#include "formats/windows/Tessera_DenseColumns.hpp"
#include "formats/windows/Tessera_WindowBlocks.hpp"
#include "reorder/Tessera_RowClusters.hpp"
#include "sddmm/Tessera_SddmmGroups.hpp"
#include "sddmm/Tessera_SddmmOperands.hpp"
#include "sddmm/Tessera_SddmmOptions.hpp"

namespace Tessera {
namespace Impl {

/// Rows in an order that brings similar ones together, in windows; columns that are dense in a window on matrix units,
/// all other entries one by one [BSMR-SDDMM]. What differs from the published method:
///
/// - Rows are clustered by signatures on the device, not greedily one after the other (reorder::clustered_rows;
///   BsmrOptions::reordering chooses, the exact greedy order too).
/// - Each column of a window is weighed by itself, not sixteen of them by their sum: as many blocks, and no order of
///   columns by count, so that entries of a row stay in theirs.
/// - A slot of a block is a bit, not the number of its entry.
/// - The kernel of other entries begins as the thread blocks of the one of windows end, on one stream.
template <class Csr>
class SddmmBsmrEngine {
 public:
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;
  using Pattern = PatternOf<Csr>;
  using Order = typename WindowFunctors<Pattern>::Order;
  using F = DenseColumnFunctors<Pattern>;

  /// height: of windows, in instructions. least: entries of a column in a window from which it is dense.
  SddmmBsmrEngine(const Exec& space, const Csr& S, Precision precision, int height, int least,
                  const SddmmOptions& options, const KernelTable& backend)
      : csr_(S), scaled_(options.scale_by_values), least_(least), backend_(&backend) {
    scratch_.set_up(&backend, options.workspace);
    const SddmmShape shape = backend.sddmm.shape(precision);
    blocks_.shape = shape;
    blocks_.height = height;
    blocks_.precision = precision;
    if (S.nnz() == 0) return;
    // What counts entries in 32 bits says so before anything is made.
    check_window_sizes(pattern_of(S), height * shape.rows);
    const BsmrOptions& o = options.bsmr;
    rows_ = choose_row_order(space, pattern_of(S), height * shape.rows, o.reordering, &backend,
                             RowComparison{o.column_block, o.least_similarity});
    const Order order(rows_.order.data(), rows_.order.extent(0));
    columns_ = divide_by_columns(space, pattern_of(S), height * shape.rows, least, order, &backend);
    blocks_ = window_blocks(space, columns_.dense.pattern(), shape, height, precision, &backend);
    groups_ = sddmm_groups(space, columns_.other.pattern(), &backend);
    name_rows(space);
    columns_.dense.map_storage.reset();
    columns_.dense.column_storage.reset();
    columns_.other.map_storage.reset();
  }

  const Experimental::WindowBlocks<Memory>& format() const { return blocks_; }
  std::size_t format_bytes() const {
    const std::size_t entries = 4 * csr_.nnz() + 4 * static_cast<std::size_t>(columns_.other.nnz());
    return blocks_.format_bytes() + groups_.bytes() + entries + 4 * rows_.order.extent(0);
  }
  std::size_t workspace_bytes(std::int64_t inner) const {
    return sddmm_operand_bytes(blocks_.precision, static_cast<std::int64_t>(csr_.rows()),
                               static_cast<std::int64_t>(csr_.cols()), static_cast<std::int64_t>(csr_.nnz()), inner);
  }

  /// alpha != 0, there are entries, and the backend takes the operands.
  template <class T, class PT>
  void apply(const Exec& space, double alpha, const SddmmInput<T>& in, double beta, const SddmmOutput<PT>& out) const {
    SddmmWindowArgs windows = blocks_.arguments();
    windows.row_order = rows_.order.extent(0) > 0 ? rows_.order.data() : nullptr;
    windows.entry_at = columns_.dense.entry_at.data();
    SddmmRowsArgs others;
    others.precision = blocks_.precision;
    others.rows = groups_.rows_of(static_cast<std::int64_t>(csr_.rows()));
    others.nnz = columns_.other.nnz();
    others.columns = reinterpret_cast<const std::int32_t*>(columns_.other.columns.data());
    others.groups = groups_.groups.data();
    others.row_of = groups_.row_of.extent(0) > 0 ? groups_.row_of.data() : windows.row_order;
    others.entry_at = columns_.other.entry_at.data();
    windows.with_next = others.nnz > 0;
    others.beside = windows.blocks > 0;
    const auto launch = [&](SddmmDense dense, Stream stream) {
      if (scaled_) dense.scale = csr_.values().data();
      dense.scale_type = ScalarTraits<typename Csr::value_type>::element;
      windows.dense = others.dense = dense;
      const Status status = backend_->sddmm.windows(windows, stream);
      return status.ok() ? backend_->sddmm.rows(others, stream) : status;
    };
    launch_sddmm(space, scratch_, {"sddmm", "bsmr", blocks_.precision}, alpha, in, beta, out, launch);
  }

  void update(const Exec&, const Csr& S) { csr_ = S; }

  void describe(Statistics& s) const {
    s.atom = blocks_.shape.atom;
    s.stored = s.nnz;
    s.format_bytes = format_bytes();
    if (s.nnz == 0) return;
    s.launches = (blocks_.nnz > 0) + (columns_.other.nnz() > 0);
    s.matrix_unit_share = static_cast<double>(blocks_.nnz) / static_cast<double>(s.nnz);
    s.classes = {{"windows", (s.rows + blocks_.window_rows() - 1) / blocks_.window_rows(), s.nnz},
                 {"dense columns", columns_.dense_columns, blocks_.nnz},
                 {"blocks", blocks_.blocks, blocks_.nnz},
                 {"other entries", s.rows, columns_.other.nnz()}};
    const double slots = static_cast<double>(blocks_.blocks * blocks_.window_rows() * blocks_.shape.vectors);
    char text[200];
    std::snprintf(text, sizeof(text),
                  "; %.3f of the entries in columns with %d or more per window of %d rows, which fill %.3f of their "
                  "blocks; neighbouring rows have a similarity of %.3f",
                  s.matrix_unit_share, least_, blocks_.window_rows(),
                  slots > 0 ? static_cast<double>(blocks_.nnz) / slots : 0.0, columns_.similarity);
    s.why += text;
    if (!rows_.note.empty()) s.why += "; " + rows_.note;
  }

 private:
  /// Groups count rows as they stand in the windows; kernels ask for those of X.
  void name_rows(const Exec& space) {
    if (rows_.order.extent(0) == 0 || groups_.row_of.extent(0) == 0) return;
    Kokkos::parallel_for("Tessera::sddmm[bsmr] rows",
                         Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(
                             space, 0, static_cast<std::int64_t>(groups_.row_of.extent(0))),
                         typename F::NameRows{Order(rows_.order.data(), rows_.order.extent(0)), groups_.row_of});
  }

  Csr csr_;
  bool scaled_;
  int least_;
  const KernelTable* backend_;
  RowOrder<Pattern> rows_;
  DenseColumns<Pattern> columns_;
  Experimental::WindowBlocks<Memory> blocks_;
  SddmmGroups<Memory> groups_;
  PlanScratch<Exec, Memory> scratch_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
