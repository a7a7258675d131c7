// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SDDMM_SDDMM_PANEL_ENGINE_HPP
#define TESSERA_SDDMM_SDDMM_PANEL_ENGINE_HPP

#include <utility>

#include "Tessera_Statistics.hpp"
#include "formats/windows/Tessera_WindowBlocks.hpp"
#include "sddmm/Tessera_SddmmOperands.hpp"
#include "sddmm/Tessera_SddmmOptions.hpp"
#include "sddmm/Tessera_SddmmRules.hpp"

namespace Tessera {
namespace Impl {

/// The pattern in windows of rows, for matrix units.
template <class Csr>
class SddmmPanelEngine {
 public:
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;

  /// @param algorithm  which has these windows: Panels or FlashSparse
  SddmmPanelEngine(const Csr& S, Experimental::WindowBlocks<Memory> format, SddmmAlgorithm algorithm,
                   const SddmmOptions& options, const KernelTable& backend)
      : csr_(S),
        scaled_(options.scale_by_values),
        tf32_copy_(options.tf32_copy),
        hint_(options.inner_hint),
        algorithm_(algorithm),
        backend_(&backend),
        format_(std::move(format)) {
    scratch_.set_up(&backend, options.workspace);
  }

  const Experimental::WindowBlocks<Memory>& format() const { return format_; }
  std::size_t format_bytes() const { return format_.format_bytes(); }
  std::size_t workspace_bytes(std::int64_t inner) const {
    const std::size_t bytes = sddmm_operand_bytes(format_.precision, format_.rows, format_.cols, format_.nnz, inner);
    return bytes + (copies(inner, 1) ? ScratchLayout::rounded(CompactCopy::bytes(format_.cols, inner)) : 0);
  }

  /// alpha != 0, there are entries, and the backend takes the operands.
  template <class T, class PT>
  void apply(const Exec& space, double alpha, const SddmmInput<T>& in, double beta, const SddmmOutput<PT>& out) const {
    SddmmWindowArgs args = format_.arguments();
    const auto launch = [&](const SddmmDense& dense, Stream stream) {
      args.dense = dense;
      if (scaled_) args.dense.scale = csr_.values().data();
      args.dense.scale_type = ScalarTraits<typename Csr::value_type>::element;
      return backend_->sddmm.windows(args, stream);
    };
    const bool copy = copies(in.y.matrix.columns, in.heads);
    launch_sddmm(space, scratch_, {"sddmm", to_string(algorithm_), format_.precision}, alpha, in, beta, out, launch,
                 copy);
  }

  void update(const Exec&, const Csr& S) { csr_ = S; }

  void describe(Statistics& s) const {
    s.atom = format_.shape.atom;
    s.matrix_unit_share = s.nnz > 0 ? 1 : 0;
    s.stored = s.nnz;  // slots without an entry are a bit each
    s.format_bytes = format_.format_bytes();
    s.classes = {{"windows", format_.windows, s.nnz},
                 {"vectors", format_.column_vectors, s.nnz},
                 {"blocks", format_.blocks, s.nnz}};
    if (s.nnz > 0 && copies(hint_, 1)) {
      s.launches = 2;
      s.why += "; Y is copied in TF32 first";
    }
    if (format_.shared) s.why += "; windows shared with the SpMM plan";
  }

 private:
  /// Whether Y is copied in TF32 for so many heads.
  bool copies(std::int64_t inner, std::int64_t heads) const {
    if (format_.precision != Precision::TF32 || tf32_copy_ == Tf32Copy::Never) return false;
    if (inner == 0 || !CompactCopy::fits(heads * format_.cols, inner)) return false;
    return tf32_copy_ == Tf32Copy::Always ||
           sddmm_copies_y(inner, static_cast<double>(format_.nnz), static_cast<double>(format_.column_vectors),
                          static_cast<double>(format_.cols));
  }

  Csr csr_;
  bool scaled_;
  Tf32Copy tf32_copy_;
  std::int64_t hint_;  ///< K that statistics are of
  SddmmAlgorithm algorithm_;
  const KernelTable* backend_;
  Experimental::WindowBlocks<Memory> format_;
  PlanScratch<Exec, Memory> scratch_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
