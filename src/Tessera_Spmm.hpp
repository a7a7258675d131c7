// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_HPP
#define TESSERA_SPMM_HPP

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "Tessera_CsrView.hpp"
#include "Tessera_Device.hpp"
#include "Tessera_Options.hpp"
#include "Tessera_Statistics.hpp"
#include "backends/reference/Tessera_Reference.hpp"
#include "core/Tessera_Transpose.hpp"
#include "features/Tessera_SpmmFeatures.hpp"
#include "spmm/Tessera_FlashEngine.hpp"
#include "spmm/Tessera_GeSpmmEngine.hpp"
#include "spmm/Tessera_PanelEngine.hpp"
#include "spmm/Tessera_SelectSpmm.hpp"
#include "spmm/Tessera_SpmmRules.hpp"

namespace Tessera {

/// C := alpha op(A) B + beta C for repeated use of one sparsity pattern; op(A) is m x k, B k x n, C m x n, n >= 0.
///
/// Precision (rows: ComputeType; a narrower one than the matrix rounds A once, here):
///
///     FP64        A double            B double     sums double   C double
///     FP32        A float             B float      sums float    C float
///     TF32        A float             B float      sums float    C float              only where asked for
///     FP16_FP32   A rounded to half_t B half_t     sums float    C float or half_t
///     BF16_FP32   as FP16 with bhalf_t
///     mixed       any of double, float, half_t, bhalf_t for A, B and C: sums double as soon as one is double, else
///                 float. GeSpmm and Csr in the matrix's own precision, also under Auto (needs A's arrays from then on)
///
/// TF32 rounds both operands to 10 bits of mantissa on matrix units. By rows (GeSpmm, on devices and in emulation; also
/// under Auto, where they are faster) it is FP32 arithmetic, with B rounded to TF32 where that saves time
/// (GeSpmmOptions::tf32_copy). FP32 panels on NVIDIA's units multiply both operands in two parts of TF32, three
/// products: each errs by at most 5 2^-22 of itself, where FP32 errs by 2^-24, and sums as in FP32; infinite numbers
/// make NaN. Ask for GeSpmm where plain FP32 arithmetic is wanted. A 16-bit C is rounded once, at the store.
///
/// A batch of small matrices is one block-diagonal matrix: row maps and columns shifted by the rows and columns of
/// those before, B and C stacked; one plan and one launch then serve all of them.
///
/// Set-up: O(nnz) work on the execution space for Panels and FlashSparse, with a few waits for sizes; GeSpmm looks for
/// rows to split (O(rows), one wait; hosts with one thread: nothing), Csr does nothing. statistics() reports time,
/// memory, padding and launches an apply. Deterministic: bitwise the same result for the same plan options, device,
/// layouts and inputs; no floating-point atomics.
///
/// Scratch (copies of operands whose layout a kernel does not take, of B in TF32, sums of split rows and windows) grows
/// at the first apply that needs more, and is kept. Thread safety: applies that need scratch share it. A change of the
/// execution-space instance then waits for the previous one, which must still exist; two host threads must not apply
/// the plan at once; captured graphs replay behind the plan's back and must not run beside other applies. Before
/// capturing, apply once with the same shapes on the capturing instance.
///
/// FlashSparse: Shi et al., PPoPP'25. GeSpmm: Huang et al., SC'20, split rows as in RoDe: Pang et al., PPoPP'24.
template <class Csr>
class SpmmPlan {
  static_assert(Impl::IsCsrView<Csr>::value, "Tessera::SpmmPlan: the template argument must be a Tessera::CsrView");

 public:
  using csr_type = Csr;                                   ///< the matrix
  using execution_space = typename Csr::execution_space;  ///< where plan and applies run
  using memory_space = typename Csr::memory_space;        ///< where B and C lie
  using value_type = typename Csr::value_type;            ///< of the matrix

  /// Analyses and converts on `space`. Returns when all sizes are known; the last kernel may still be in flight there.
  /// A is trusted: run validate() on matrices from outside first. GeSpmm and Csr keep A's arrays.
  /// @throw NotCompiled, NotSupported, InvalidArgument  before any kernel is launched
  /// @throw DeviceError  out of device memory
  SpmmPlan(const execution_space& space, const Csr& A, const SpmmOptions& options = {}) : csr_(A), options_(options) {
    const auto begin = std::chrono::steady_clock::now();
    const Compat::ScopedRegion region("Tessera::spmm setup");
    choice_ = Impl::SpmmSelection<Csr>(options).choose();
    format_backend_ = choice_.backend;
    if (choice_.looks()) {
      features_ = spmm_features(space, A, &kernel_table(choice_.backend));
      choice_.pattern = Impl::ge_spmm_pattern(*features_, choice_.precision, options);
      if (!std::is_same_v<value_type, float>) choice_.pattern.compact_from = 0;
    }
    if (choice_.predict) Impl::predict_spmm(choice_, *features_, options, std::is_same_v<value_type, float>);
    auto_ = options.algorithm == SpmmAlgorithm::Auto && forced_spmm_algorithm() == SpmmAlgorithm::Auto;
    make_engine(space, choice_.algorithm);
    const bool own_type = natural() || (choice_.precision == Precision::TF32 && std::is_same_v<value_type, float>);
    const bool can_measure = choice_.candidates.size() > 1 && options.workspace.bytes == 0 && own_type;
    if (options.selection == Selection::Measure && can_measure) measure(space);
    options_.algorithm = choice_.algorithm;
    options_.backend = choice_.backend;
    if (options.prepare_transpose) {
      transposed_ = transpose(space, A);
      SpmmOptions inner = options;
      inner.prepare_transpose = false;
      inner.workspace = {};
      transpose_plan_ = std::make_unique<SpmmPlan>(space, transposed_->view(), inner);
    }
    setup_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (verbose()) {
      std::fprintf(stderr, "Tessera: spmm %lld x %lld, %lld entries: %s on %s (%s)\n", static_cast<long long>(A.rows()),
                   static_cast<long long>(A.cols()), static_cast<long long>(A.nnz()), to_string(choice_.algorithm),
                   to_string(choice_.backend), choice_.why.c_str());
    }
  }
  /// Plans can be moved and not copied.
  SpmmPlan(SpmmPlan&&) noexcept = default;
  /// See SpmmPlan(SpmmPlan&&).
  SpmmPlan& operator=(SpmmPlan&&) noexcept = default;
  SpmmPlan(const SpmmPlan&) = delete;
  SpmmPlan& operator=(const SpmmPlan&) = delete;

  /// Rank-2 B(k, n) and C(m, n), each LayoutRight, LayoutLeft or LayoutStride (sub-views); they must not overlap.
  /// alpha and beta are host scalars. beta == 0 overwrites C, NaN included; alpha == 0 does not read B; rows of B that
  /// A has no entry for enter no sum (but with Panels and FlashSparse an infinite or undefined number in a row of B
  /// reaches all rows of each window that uses it, since windows multiply their zeros). Asynchronous on `space`: one
  /// kernel launch, two where rows or windows are split, one more for each operand that has to be copied: B if its rows
  /// are not contiguous or not aligned to 16 bytes, B in TF32 (Tf32Copy), C if its rows are not contiguous (Panels,
  /// FlashSparse). No allocation and no wait once an apply of the same shapes and layouts was made; can be captured in
  /// a graph then.
  /// @throw DimensionMismatch, NotSupported (types, op without prepare_transpose), InvalidArgument (overlap),
  ///        WorkspaceTooSmall, DeviceError
  template <class B, class C>
  void apply(const execution_space& space, Op op, double alpha, const B& b, double beta, const C& c) const {
    Impl::check_dense<Csr, B, C>();
    if (op != Op::NoTrans) {
      Impl::require<NotSupported>(transpose_plan_ != nullptr, [] {
        return std::string("op(A) = A^T needs SpmmOptions::prepare_transpose = true when the plan is made");
      });
      return transpose_plan_->apply(space, Op::NoTrans, alpha, b, beta, c);
    }
    const typename B::const_type const_b = b;
    const auto from = Impl::dense_of(const_b);
    const auto to = Impl::dense_of(c);
    Impl::check_dense_extents(static_cast<std::int64_t>(csr_.rows()), static_cast<std::int64_t>(csr_.cols()), from, to);
    apply_dense(space, alpha, from, static_cast<std::size_t>(b.span()), beta, to);
  }
  /// C := A B.
  template <class B, class C>
  void apply(const execution_space& space, const B& b, const C& c) const {
    apply(space, Op::NoTrans, 1.0, b, 0.0, c);
  }

  /// New numbers for the same pattern: one kernel over the entries (GeSpmm and Csr: none), no analysis, no allocation.
  /// @param values  nnz numbers in CSR order; with GeSpmm and Csr the plan keeps this view instead of the old one.
  /// @throw StalePlan  wrong number of values, or options.updatable was false
  void update_values(const execution_space& space, const typename Csr::values_type& values) {
    Impl::require<StalePlan>(values.extent(0) == csr_.nnz(), [&] {
      return "update_values: the plan was made for " + std::to_string(csr_.nnz()) + " values, " +
             std::to_string(values.extent(0)) + " were given";
    });
    Impl::require<StalePlan>(options_.updatable,
                             [] { return std::string("update_values: the plan was made with updatable = false"); });
    csr_ = Csr(csr_.rows(), csr_.cols(), csr_.row_map(), csr_.entries(), values);
    if (panels_) panels_->update(space, csr_);
    if (flash_) flash_->update(space, csr_);
    if (rows_) rows_->update(space, values);
    if (transpose_plan_) {
      update_transposed_values(space, *transposed_, values);
      transpose_plan_->update_values(space, transposed_->view().values());
    }
  }
  /// The same, with a check that A has the plan's pattern arrays. @throw StalePlan
  void update_values(const execution_space& space, const Csr& A) {
    Impl::require<StalePlan>(matches(A), [] {
      return std::string(
          "update_values: the matrix has other sizes or other pattern arrays than the plan was made for");
    });
    update_values(space, A.values());
  }

  /// Same sizes and the same row_map and entries arrays (not a comparison of their contents).
  bool matches(const Csr& A) const noexcept {
    return A.rows() == csr_.rows() && A.cols() == csr_.cols() && A.nnz() == csr_.nnz() &&
           A.row_map().data() == csr_.row_map().data() && A.entries().data() == csr_.entries().data();
  }

  /// Scratch that applies to n columns need at most, whatever the layouts of B and C (operands that are taken where
  /// they lie need less; mixed element types with GeSpmm may copy a B of double). A transposed plan has its own, which
  /// is not counted here and not taken from SpmmOptions::workspace.
  std::size_t workspace_bytes(std::int64_t num_columns) const {
    return panels_  ? panels_->workspace_bytes(num_columns)
           : flash_ ? flash_->workspace_bytes(num_columns)
           : rows_  ? rows_->workspace_bytes(num_columns)
                    : 0;
  }
  /// Device memory of the format, update map included; scratch apart.
  std::size_t format_bytes() const {
    const std::size_t own = panels_  ? panels_->format_bytes()
                            : flash_ ? flash_->format_bytes()
                            : rows_  ? rows_->format_bytes()
                                     : 0;
    return own + (transpose_plan_ ? transpose_plan_->format_bytes() : 0);
  }
  /// With algorithm and backend as decided.
  const SpmmOptions& options() const noexcept { return options_; }
  /// The converted matrix, for tests and curious users; null unless the algorithm is the format's.
  const MeBcrs<memory_space>* me_bcrs() const noexcept { return flash_ ? &flash_->format() : nullptr; }
  /// See me_bcrs().
  const Panels<memory_space>* panels() const noexcept { return panels_ ? &panels_->format() : nullptr; }
  /// What Auto saw of the matrix; null unless it had to look.
  const SpmmFeatures* features() const noexcept { return features_ ? &*features_ : nullptr; }

  /// What was chosen, why, and what it costs. Host work only.
  Statistics statistics() const;

 private:
  bool natural() const { return Impl::ScalarTraits<value_type>::precision == choice_.precision; }

  void make_engine(const execution_space& space, SpmmAlgorithm algorithm) {
    panels_.reset();
    flash_.reset();
    rows_.reset();
    choice_.algorithm = algorithm;
    if (format_backend_ == Backend::Reference) return;
    const KernelTable* table = format_backend_ == Backend::Kokkos ? nullptr : &kernel_table(format_backend_);
    const bool rows = algorithm == SpmmAlgorithm::GeSpmm || algorithm == SpmmAlgorithm::Csr;
    const bool own_rows = algorithm == SpmmAlgorithm::GeSpmm && table != nullptr && table->spmm.rows != nullptr;
    choice_.backend = rows && !own_rows ? Backend::Kokkos : format_backend_;
    if (algorithm == SpmmAlgorithm::Panels) {
      panels_.emplace(space, csr_, choice_.precision, options_, *table);
    } else if (algorithm == SpmmAlgorithm::FlashSparse) {
      flash_.emplace(space, csr_, choice_.precision, options_, *table);
    } else {
      rows_.emplace(space, csr_, choice_.precision, options_, algorithm == SpmmAlgorithm::GeSpmm, table,
                    choice_.pattern);
    }
  }

  /// Selection::Measure: times the two best predictions on operands of its own and keeps the faster.
  void measure(const execution_space& space) {
    using Matrix = Kokkos::View<value_type**, Kokkos::LayoutRight, memory_space>;
    const auto columns = static_cast<std::size_t>(options_.num_columns_hint);
    const Matrix b("Tessera::spmm::measure B", csr_.cols(), columns),
        c("Tessera::spmm::measure C", csr_.rows(), columns);
    const Impl::SpmmCandidate first = choice_.candidates[0], second = choice_.candidates[1];
    const double time_first = time_apply(space, b, c);
    make_engine(space, second.algorithm);
    const double time_second = time_apply(space, b, c);
    if (time_first <= time_second) make_engine(space, first.algorithm);
    choice_.why = Impl::measured_why(first, time_first, second, time_second);
  }
  template <class Matrix>
  double time_apply(const execution_space& space, const Matrix& b, const Matrix& c) const {
    double best = 0;
    for (int repeat = 0; repeat < 4; ++repeat) {  // the first one warms up
      constexpr int applies = 5;
      Compat::fence(space, "Tessera::spmm measure");
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < applies; ++i) apply(space, b, c);
      Compat::fence(space, "Tessera::spmm measure");
      const double t = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / applies;
      if (repeat == 1 || (repeat > 1 && t < best)) best = t;
    }
    return best;
  }

  template <class BT, class CT>
  void apply_dense(const execution_space& space, double alpha, const Impl::Dense<const BT>& b, std::size_t span,
                   double beta, const Impl::Dense<CT>& c) const {
    // Whether some precision's kernels of a backend take these elements, so that others are not compiled for them.
    constexpr bool possible = std::is_same_v<BT, CT> || (sizeof(BT) == 2 && std::is_same_v<CT, float>);
    const bool windows = panels_ || flash_;
    // Auto takes every combination of types: those that its format does not serve go straight from CSR.
    const bool mixed = windows && auto_ && natural() && !Impl::dense_fits_backend<BT, CT>(choice_.precision);
    // Also where no kernel of a backend will run: what is accepted must not depend on alpha.
    if ((windows && !mixed) || (rows_ && !natural())) {
      Impl::check_dense_types<BT, CT>(to_string(choice_.algorithm), choice_.precision);
    }
    using Sum = Impl::AccumulatorOf<value_type, BT, CT>;
    if (c.rows == 0 || c.columns == 0) return;
    if (alpha == 0 || csr_.nnz() == 0) return Impl::scale_dense<Sum>(space, beta, c);
    if (mixed) {
      Impl::RowPieces<Sum> pieces;
      pieces.count = c.rows;
      return Impl::ge_spmm(space, alpha, csr_, b, beta, c, pieces);
    }
    if (rows_) return rows_->apply(space, alpha, b, span, beta, c);
    if constexpr (possible) {
      if (panels_) return panels_->apply(space, alpha, b, span, beta, c);
      if (flash_) return flash_->apply(space, alpha, b, span, beta, c);
    }
    reference_apply(space, alpha, b, beta, c);
  }

  /// Backend::Reference: plain loops on the host.
  template <class BT, class CT>
  void reference_apply(const execution_space& space, double alpha, const Impl::Dense<const BT>& b, double beta,
                       const Impl::Dense<CT>& c) const {
    if constexpr (Compat::is_host_v<execution_space>) {
      Compat::fence(space, "Tessera::spmm[reference]");
      Reference::spmm(
          static_cast<std::int64_t>(csr_.rows()), c.columns, csr_.row_map().data(), csr_.entries().data(),
          csr_.values().data(), alpha, [&](std::int64_t i, std::int64_t j) -> const BT& { return *b.at(i, j); }, beta,
          [&](std::int64_t i, std::int64_t j) -> CT& { return *c.at(i, j); });
    }
  }

  Csr csr_;
  SpmmOptions options_;
  Impl::SpmmChoice choice_;
  Backend format_backend_ = Backend::Kokkos;  ///< of panels and FlashSparse, and whose memory pool is used
  bool auto_ = false;                         ///< nobody asked for the algorithm
  std::optional<SpmmFeatures> features_;
  std::optional<Impl::PanelEngine<Csr>> panels_;
  std::optional<Impl::FlashEngine<Csr>> flash_;
  std::optional<Impl::GeSpmmEngine<Csr>> rows_;
  std::optional<Transposed<Csr>> transposed_;
  std::unique_ptr<SpmmPlan> transpose_plan_;
  double setup_seconds_ = 0;
};

template <class Csr>
Statistics SpmmPlan<Csr>::statistics() const {
  Statistics s;
  s.operation = "spmm";
  s.algorithm = to_string(choice_.algorithm);
  s.backend = to_string(choice_.backend);
  s.compute = to_string(choice_.precision);
  s.device = choice_.device;
  s.why = choice_.why;
  s.rows = static_cast<long long>(csr_.rows());
  s.cols = static_cast<long long>(csr_.cols());
  s.nnz = s.stored = static_cast<long long>(csr_.nnz());
  s.row_mean = s.rows > 0 ? static_cast<double>(s.nnz) / static_cast<double>(s.rows) : 0;
  s.csr_bytes = csr_.row_map().extent(0) * sizeof(typename Csr::size_type) +
                csr_.nnz() * (sizeof(typename Csr::ordinal_type) + sizeof(value_type));
  s.format_bytes = s.csr_bytes;
  s.setup_seconds = setup_seconds_;
  s.launches = choice_.backend == Backend::Reference ? 0 : 1;
  s.fallback_taken = choice_.fallback;
  s.transpose_prepared = transpose_plan_ != nullptr;
  if (panels_) panels_->describe(s);
  if (flash_) flash_->describe(s);
  if (rows_) rows_->describe(s);
  s.workspace_bytes = workspace_bytes(options_.num_columns_hint);
  s.padding_ratio = s.nnz > 0 ? static_cast<double>(s.stored) / static_cast<double>(s.nnz) - 1 : 0;
  if (features_) s.row_max = features_->longest;
  return s;
}

/// C := alpha op(A) B + beta C through a plan, in the argument order of KokkosSparse::spmv. mode: "N", "T", "C", "H".
template <class Exec, class Csr, class B, class C>
void spmm(const Exec& space, const SpmmPlan<Csr>& plan, const char mode[], double alpha, const B& b, double beta,
          const C& c) {
  plan.apply(space, parse_op(mode), alpha, b, beta, c);
}

/// One-shot C := alpha op(A) B + beta C (Reuse::Once: straight from CSR, no conversion). A is a CsrView or anything
/// csr_view() accepts. For "T" and "H" A is transposed first, which may cost more than the product: keep a plan.
template <class Exec, class Matrix, class B, class C>
void spmm(const Exec& space, const char mode[], double alpha, const Matrix& A, const B& b, double beta, const C& c) {
  if constexpr (!Impl::IsCsrView<Matrix>::value) {
    spmm(space, mode, alpha, csr_view(A), b, beta, c);
  } else {
    SpmmOptions options;
    options.reuse = Reuse::Once;
    options.prepare_transpose = parse_op(mode) != Op::NoTrans;
    const SpmmPlan<Matrix> plan(space, A, options);
    plan.apply(space, parse_op(mode), alpha, b, beta, c);
    if (options.prepare_transpose) Compat::fence(space, "Tessera::spmm: the transpose is released");
  }
}

}  // namespace Tessera

#endif
