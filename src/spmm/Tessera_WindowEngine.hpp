// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_WINDOW_ENGINE_HPP
#define TESSERA_SPMM_WINDOW_ENGINE_HPP

#include <string>
#include <utility>

#include "Tessera_Statistics.hpp"
#include "formats/windows/Tessera_WindowUnion.hpp"
#include "reorder/Tessera_RowClusters.hpp"
#include "spmm/Tessera_SpmmOperands.hpp"

namespace Tessera {
namespace Impl {

/// A matrix in windows of rows (panels, ME-BCRS), ready to multiply. Method says what differs between the formats:
///
///     Format, Args        the format and what its kernel is given
///     name                of the algorithm
///     height(...)         rows of a window
///     convert(...)        from compressed rows, in an order of rows
///     arguments(...)      of an apply, operands left out
///     launch, update      the kernel; new values
///     describe            what the statistics call the atom, stored numbers, share of matrix units; what else there is
template <class Csr, class Method>
class WindowEngine {
 public:
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;
  using Format = typename Method::Format;

  WindowEngine(const Exec& space, const Csr& A, Precision precision, const SpmmOptions& options,
               const KernelTable& table)
      : table_(&table), flash_(options.flash), format_(convert(space, A, precision, options, table, note_)) {
    scratch_.set_up(&table, options.workspace);
  }

  const Format& format() const { return format_; }
  std::size_t format_bytes() const { return format_.format_bytes() + format_.map_bytes(); }
  std::size_t workspace_bytes(std::int64_t n) const {
    return ScratchLayout::rounded(format_.workspace_bytes(n)) +
           operand_bytes(format_.precision, format_.rows, format_.cols, n);
  }

  template <class BT, class CT>
  void apply(const Exec& space, double alpha, const Dense<const BT>& b, std::size_t span, double beta,
             const Dense<CT>& c) const {
    typename Method::Args args = Method::arguments(format_, flash_);
    args.split.partial_ld = (c.columns + 3) / 4 * 4;
    const auto launch = [&](const SpmmDense& dense, void* partials, Stream stream) {
      args.dense = dense;
      args.split.partials = partials;
      return Method::launch(*table_, format_, args, stream);
    };
    const KernelName name{"spmm", Method::name, format_.precision};
    launch_spmm(space, scratch_, name, alpha, b, span, beta, c, format_.workspace_bytes(c.columns), launch);
  }

  void update(const Exec& space, const Csr& A) { Method::update(space, format_, A); }

  void describe(Statistics& s) const {
    s.format_bytes = format_.format_bytes();
    s.map_bytes = format_.map_bytes();
    const auto splits = static_cast<long long>(format_.splits.extent(0));
    s.launches = splits > 0 ? 2 : 1;
    s.classes = {
        {"windows", format_.windows, s.nnz}, {"vectors", format_.column_vectors, s.nnz}, {"split windows", splits, 0}};
    Method::describe(format_, s);
    if (format_.row_order.extent(0) > 0) s.classes.push_back({"rows reordered", s.rows, s.nnz});
    if (!note_.empty()) s.why += "; " + note_;
  }

 private:
  static Format convert(const Exec& space, const Csr& A, Precision precision, const SpmmOptions& options,
                        const KernelTable& table, std::string& note) {
    RowOrder<PatternOf<Csr>> rows =
        choose_row_order(space, pattern_of(A), Method::height(table, precision, options), options.reordering, &table);
    note = std::move(rows.note);
    const typename WindowFunctors<Csr>::Order order(rows.order.data(), rows.order.extent(0));
    return Method::convert(space, A, precision, options, table, order);
  }

  const KernelTable* table_;
  FlashOptions flash_;
  std::string note_;  ///< on the order of rows; before format_, whose conversion writes it
  Format format_;
  PlanScratch<Exec, Memory> scratch_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
