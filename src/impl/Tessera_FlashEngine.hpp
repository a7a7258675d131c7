// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_IMPL_FLASH_ENGINE_HPP
#define TESSERA_IMPL_FLASH_ENGINE_HPP

#include "Tessera_Statistics.hpp"
#include "convert/Tessera_ToMeBcrs.hpp"
#include "impl/Tessera_SpmmOperands.hpp"
#include "reorder/Tessera_RowClusters.hpp"

namespace Tessera {
namespace Impl {

/// Vector length and depth of a backend's instruction for FlashSparse; depth 0 where there is none. A length that the
/// backend does not have is replaced by the one it has (AMD: 16).
struct FlashShape {
  int vector_length = 0, depth = 0;
};
inline FlashShape flash_shape(const KernelTable& table, Precision precision, int vector_length) {
  if (table.flash_depth == nullptr || table.spmm_flash == nullptr) return {};
  for (const int length : {vector_length, 8, 16}) {
    const int depth = table.flash_depth(precision, length);
    if (depth > 0) return {length, depth};
  }
  return {};
}

/// A matrix in ME-BCRS, ready to multiply.
template <class Csr>
class FlashEngine {
 public:
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;

  FlashEngine(const Exec& space, const Csr& A, Precision precision, const SpmmOptions& options,
              const KernelTable& table)
      : table_(&table), mapping_(options.flash.mapping), format_(convert(space, A, precision, options, table, note_)) {
    scratch_.set_up(&table, options.workspace);
  }

  const MeBcrs<Memory>& format() const { return format_; }
  std::size_t format_bytes() const { return format_.format_bytes() + format_.map_bytes(); }
  std::size_t workspace_bytes(std::int64_t n) const {
    return ScratchLayout::rounded(format_.workspace_bytes(n)) +
           operand_bytes(format_.precision, format_.rows, format_.cols, n);
  }

  template <class BT, class CT>
  void apply(const Exec& space, double alpha, const Dense<const BT>& b, std::size_t span, double beta,
             const Dense<CT>& c) const {
    SpmmFlashArgs args = format_.arguments();
    args.mapping = mapping_;
    args.split.partial_ld = (c.columns + 3) / 4 * 4;
    const auto launch = [&](const SpmmDense& dense, void* partials) {
      args.dense = dense;
      args.split.partials = partials;
      return table_->spmm_flash(args, Compat::native_stream(space));
    };
    launch_spmm(space, scratch_, "spmm[flash]", alpha, b, span, beta, c, format_.workspace_bytes(c.columns), launch);
  }

  void update(const Exec& space, const Csr& A) { update_me_bcrs(space, format_, A, A.values()); }

  void describe(Statistics& s) const {
    s.atom = std::to_string(format_.vector_length) + "x1 vectors, " + std::to_string(format_.depth) + " a block";
    s.stored = format_.stored();
    s.matrix_unit_share = s.nnz > 0 ? 1 : 0;
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
  static MeBcrs<Memory> convert(const Exec& space, const Csr& A, Precision precision, const SpmmOptions& options,
                                const KernelTable& table, std::string& note) {
    FlashOptions flash = options.flash;
    const FlashShape shape = flash_shape(table, precision, flash.vector_length);
    flash.vector_length = shape.vector_length;
    const RowOrder<Csr> rows = choose_row_order(space, A, flash.vector_length, options.reordering, &table);
    note = rows.note;
    const typename WindowFunctors<Csr>::Order order(rows.order.data(), rows.order.extent(0));
    return to_me_bcrs(space, A, precision, shape.depth, flash, options.updatable, &table, order);
  }

  const KernelTable* table_;
  FlashMapping mapping_;
  std::string note_;  ///< on the order of rows; before format_, whose conversion writes it
  MeBcrs<Memory> format_;
  SpmmScratch<Exec, Memory> scratch_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
