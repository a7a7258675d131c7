// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SDDMM_SDDMM_ROWS_ENGINE_HPP
#define TESSERA_SDDMM_SDDMM_ROWS_ENGINE_HPP

#include <type_traits>

#include "Tessera_Statistics.hpp"
#include "sddmm/Tessera_SddmmGroups.hpp"
#include "sddmm/Tessera_SddmmOptions.hpp"
#include "sddmm/Tessera_SddmmRows.hpp"
#include "sddmm/Tessera_SddmmRules.hpp"

namespace Tessera {
namespace Impl {

/// The pattern as it is: a backend's kernel where it has one and takes the operands, else Kokkos'.
template <class Csr>
class SddmmRowsEngine {
 public:
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;

  /// backend: whose kernel to use; null: Kokkos'.
  SddmmRowsEngine(const Exec& space, const Csr& S, Precision precision, const SddmmOptions& options,
                  const KernelTable* backend)
      : csr_(S),
        precision_(precision),
        scaled_(options.scale_by_values),
        backend_(sizeof(typename Csr::ordinal_type) == 4 ? backend : nullptr) {
    scratch_.set_up(backend, options.workspace);
    if (backend_ != nullptr) groups_ = sddmm_groups(space, pattern_of(S), backend_);
  }

  std::size_t format_bytes() const { return groups_.bytes(); }
  std::size_t workspace_bytes(std::int64_t inner) const {
    if (backend_ == nullptr) return 0;
    return sddmm_operand_bytes(precision_, static_cast<std::int64_t>(csr_.rows()),
                               static_cast<std::int64_t>(csr_.cols()), static_cast<std::int64_t>(csr_.nnz()), inner);
  }

  /// alpha != 0, and there are entries.
  template <class T, class PT>
  void apply(const Exec& space, double alpha, const SddmmInput<T>& in, double beta, const SddmmOutput<PT>& out) const {
    if constexpr (std::is_same_v<T, PT> || (sizeof(T) == 2 && std::is_same_v<PT, float>)) {
      if (backend_ != nullptr && fits_backend<T, PT>(precision_)) {
        SddmmRowsArgs args;
        args.precision = precision_;
        args.nnz = static_cast<std::int64_t>(csr_.nnz());
        args.columns = reinterpret_cast<const std::int32_t*>(csr_.entries().data());
        args.groups = groups_.groups.data();
        args.rows = groups_.rows_of(static_cast<std::int64_t>(csr_.rows()));
        args.row_of = groups_.row_of.extent(0) > 0 ? groups_.row_of.data() : nullptr;
        const auto launch = [&](const SddmmDense& dense, Stream stream) {
          args.dense = dense;
          if (scaled_) args.dense.scale = csr_.values().data();
          args.dense.scale_type = ScalarTraits<typename Csr::value_type>::element;
          return dense.word_bytes < 16 ? backend_->sddmm.narrow_rows(args, stream) : backend_->sddmm.rows(args, stream);
        };
        return launch_sddmm(space, scratch_, {"sddmm", "rows", precision_}, alpha, in, beta, out, launch, false,
                            word_bytes(in));
      }
    }
    sddmm_rows(space, alpha, csr_, scaled_, in, beta, out);
  }

  void update(const Exec&, const Csr& S) { csr_ = S; }

  void describe(Statistics& s) const {
    s.stored = s.nnz;
    s.format_bytes = s.csr_bytes + groups_.bytes();
  }

 private:
  /// Of the words in which the backend's kernel reads rows of X and Y; 16: those that do not lie so are copied.
  template <class T>
  int word_bytes(const SddmmInput<T>& in) const {
    if (backend_->sddmm.narrow_rows == nullptr) return 16;
    int least = 16, copies = 0;
    std::int64_t rows = 0;
    for (const SddmmFactor<T>* f : {&in.x, &in.y}) {
      const int bytes = sddmm_word_bytes(*f);
      if (bytes == 0 || bytes == 16) continue;  // copied in any case, or never
      least = bytes < least ? bytes : least;
      rows += f->matrix.rows;
      ++copies;
    }
    const auto heads = static_cast<double>(in.heads);
    const double entries = heads * static_cast<double>(csr_.nnz());
    const auto row_bytes = static_cast<double>(in.x.matrix.columns * static_cast<std::int64_t>(sizeof(T)));
    const bool narrow =
        sddmm_reads_narrow(least, sizeof(T), entries, heads * static_cast<double>(rows), heads * copies, row_bytes);
    return narrow ? least : 16;
  }

  Csr csr_;
  Precision precision_;
  bool scaled_;
  const KernelTable* backend_;
  SddmmGroups<Memory> groups_;
  PlanScratch<Exec, Memory> scratch_;
};

}  // namespace Impl
}  // namespace Tessera

#endif
