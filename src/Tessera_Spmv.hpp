// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_HPP
#define TESSERA_SPMV_HPP

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "Tessera_CsrView.hpp"
#include "Tessera_Device.hpp"
#include "Tessera_Options.hpp"
#include "Tessera_Statistics.hpp"
#include "core/Tessera_Transpose.hpp"
#include "spmv/Tessera_Csr5Engine.hpp"
#include "spmv/Tessera_CsrSpmv.hpp"
#include "spmv/Tessera_DaspEngine.hpp"
#include "spmv/Tessera_PackedEngine.hpp"
#include "spmv/Tessera_SelectSpmv.hpp"
#include "spmv/Tessera_SpmvRules.hpp"

namespace Tessera {

/// y := alpha op(A) x + beta y for repeated use of one sparsity pattern.
///
/// Precision (rows: ComputeType; a narrower one than the matrix rounds A once, here):
///
///     FP64        A double            x double     sums double   y double              m8n8k4 / 16x16x4 f64
///     FP32        A float             x float      sums float    y float               packed slices, CSR5, Csr
///     mixed       A float or 16 bits  x, y double  sums double   Csr, also under Auto (needs A's arrays from then on)
///     FP16_FP32   A rounded to half_t x half_t     sums float    y float or half_t     m16n8k8 / 16x16x16 f16
///     BF16_FP32   as FP16 with bhalf_t
///
/// A 16-bit y is rounded once, at the store.
///
/// Set-up: O(nnz) work on the execution space. Waits: one for the features of the matrix, two for sizes, one more where
/// hub columns or column blocks are considered; statistics() reports time, memory, padding and launches an apply.
/// Deterministic: bitwise the same result for the same plan options, device and inputs; no floating-point atomics.
/// Thread safety: applies of one plan whose workspace_bytes() is not 0 share scratch. A change of the execution-space
/// instance then waits for the previous one, which must still exist; two host threads must not apply the plan at once;
/// captured graphs replay behind the plan's back and must not run beside other applies. Before capturing, apply once on
/// the capturing instance.
///
/// DASP: Lu & Liu, SC'23. CSR5: Liu & Vinter, ICS'15. CSR: one team a group of rows.
template <class Csr>
class SpmvPlan {
  static_assert(Impl::IsCsrView<Csr>::value, "Tessera::SpmvPlan: the template argument must be a Tessera::CsrView");

 public:
  using csr_type = Csr;                                   ///< the matrix
  using execution_space = typename Csr::execution_space;  ///< where plan and applies run
  using memory_space = typename Csr::memory_space;        ///< where x and y lie
  using value_type = typename Csr::value_type;            ///< of the matrix

  /// Analyses and converts on `space`. Returns when all sizes are known; the last kernel may still be in flight there.
  /// A is trusted: run validate() on matrices from outside first.
  /// @throw NotCompiled, NotSupported, InvalidArgument  before any kernel is launched
  /// @throw WorkspaceTooSmall  once the sizes are known; nothing of the caller has been written
  /// @throw DeviceError  out of device memory
  SpmvPlan(const execution_space& space, const Csr& A, const SpmvOptions& options = {}) : csr_(A), options_(options) {
    const auto begin = std::chrono::steady_clock::now();
    const Compat::ScopedRegion region("Tessera::spmv setup");
    choice_ = Impl::select_spmv<Csr>(options);
    format_backend_ = choice_.backend;
    if (choice_.predict || choice_.algorithm == SpmvAlgorithm::PackedSlices) Impl::check(options.packed);
    if (choice_.predict) {
      const KernelTable* table = choice_.backend == Backend::Kokkos ? nullptr : &kernel_table(choice_.backend);
      features_ = spmv_features(space, A, table);
      Impl::predict_spmv(choice_, *features_, Compat::is_host_v<execution_space>,
                         Impl::ScalarTraits<value_type>::precision == choice_.precision);
    }
    auto_ = options.algorithm == SpmvAlgorithm::Auto && forced_spmv_algorithm() == SpmvAlgorithm::Auto;
    make_engine(space, choice_.algorithm);
    // As Selection says.
    const bool can_measure = choice_.candidates.size() > 1 && options.workspace.bytes == 0 &&
                             Impl::ScalarTraits<value_type>::precision == choice_.precision;
    if (options.selection == Selection::Measure && can_measure) measure(space);
    options_.algorithm = choice_.algorithm;
    options_.backend = choice_.backend;
    if (options.prepare_transpose) {
      transposed_ = transpose(space, A);
      SpmvOptions inner = options;
      inner.prepare_transpose = false;
      inner.workspace = {};
      transpose_plan_ = std::make_unique<SpmvPlan>(space, transposed_->view(), inner);
    }
    setup_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (verbose()) {
      std::fprintf(stderr, "Tessera: spmv %lld x %lld, %lld entries: %s on %s (%s)\n", static_cast<long long>(A.rows()),
                   static_cast<long long>(A.cols()), static_cast<long long>(A.nnz()), to_string(choice_.algorithm),
                   to_string(choice_.backend), choice_.why.c_str());
    }
  }
  /// Plans can be moved and not copied.
  SpmvPlan(SpmvPlan&&) noexcept = default;
  /// See SpmvPlan(SpmvPlan&&).
  SpmvPlan& operator=(SpmvPlan&&) noexcept = default;
  SpmvPlan(const SpmvPlan&) = delete;
  SpmvPlan& operator=(const SpmvPlan&) = delete;

  /// Rank-1: x[cols], y[rows]. Rank-2: x(cols, k), y(rows, k), any layout, k >= 0: one launch a column, or with
  /// PackedSlices one for eight columns (unless values are in a class, columns are hubs or in blocks).
  /// alpha and beta are host scalars. beta == 0 overwrites y, NaN included; alpha == 0 does not read x. x and y must
  /// not overlap. Asynchronous on `space`: one kernel launch (two with CSR5, column blocks, or a copy of x at hub
  /// columns), no allocation, no wait; can be captured in a graph.
  /// @throw DimensionMismatch, NotSupported (types, op without prepare_transpose), InvalidArgument, DeviceError
  template <class X, class Y>
  void apply(const execution_space& space, Op op, double alpha, const X& x, double beta, const Y& y) const {
    Impl::check_vectors<Csr, X, Y>();
    if (op != Op::NoTrans) {
      Impl::require<NotSupported>(transpose_plan_ != nullptr, [] {
        return std::string("op(A) = A^T needs SpmvOptions::prepare_transpose = true when the plan is made");
      });
      return transpose_plan_->apply(space, Op::NoTrans, alpha, x, beta, y);
    }
    Impl::check_extents(csr_, x, y);
    if constexpr (Compat::view_rank<X> == 2) {
      if (packed_ && alpha != 0 && csr_.nnz() > 0 && !mixed<X, Y>()) return packed_->apply(space, alpha, x, beta, y);
    }
    std::size_t columns = 1;
    if constexpr (Compat::view_rank<X> == 2) columns = x.extent(1);
    typename X::const_type const_x = x;
    for (std::size_t j = 0; j < columns; ++j) {
      if (Impl::strided(x) || Impl::strided(y)) {
        apply_vector(space, alpha, Impl::vector_of<false, memory_space>(const_x, j), beta,
                     Impl::vector_of<false, memory_space>(y, j));
      } else {
        apply_vector(space, alpha, Impl::vector_of<true, memory_space>(const_x, j), beta,
                     Impl::vector_of<true, memory_space>(y, j));
      }
    }
  }
  /// y := A x.
  template <class X, class Y>
  void apply(const execution_space& space, const X& x, const Y& y) const {
    apply(space, Op::NoTrans, 1.0, x, 0.0, y);
  }

  /// New numbers for the same pattern: one kernel over the stored slots, no analysis, no allocation. Packed slices with
  /// a value class look at the numbers first, which waits once; if these leave the class, the packets are made anew.
  /// @param values  nnz numbers in CSR order; with the Csr algorithm the plan keeps this view instead of the old one.
  /// @throw StalePlan  wrong number of values, or options.updatable was false
  void update_values(const execution_space& space, const typename Csr::values_type& values) {
    Impl::require<StalePlan>(values.extent(0) == csr_.nnz(), [&] {
      return "update_values: the plan was made for " + std::to_string(csr_.nnz()) + " values, " +
             std::to_string(values.extent(0)) + " were given";
    });
    Impl::require<StalePlan>(options_.updatable,
                             [] { return std::string("update_values: the plan was made with updatable = false"); });
    csr_ = Csr(csr_.rows(), csr_.cols(), csr_.row_map(), csr_.entries(), values);
    if (dasp_) dasp_->update(space, values);
    if (packed_) packed_->update(space, values);
    if (csr5_) csr5_->update(space, values);
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

  /// Scratch an apply needs: 0, or sums and counters for rows cut into several pieces, x at hub columns, sums of column
  /// blocks. A transposed plan has its own, which is not counted here and not taken from SpmvOptions::workspace.
  std::size_t workspace_bytes() const {
    return dasp_     ? dasp_->workspace_bytes()
           : packed_ ? packed_->workspace_bytes()
           : csr5_   ? csr5_->workspace_bytes()
                     : 0;
  }
  /// Device memory of the format, update map included.
  std::size_t format_bytes() const {
    const std::size_t own = dasp_     ? dasp_->format_bytes()
                            : packed_ ? packed_->format_bytes()
                            : csr5_   ? csr5_->format_bytes()
                                      : 0;
    return own + (transpose_plan_ ? transpose_plan_->format_bytes() : 0);
  }
  /// With algorithm and backend as decided.
  const SpmvOptions& options() const noexcept { return options_; }
  /// The converted matrix, for tests and curious users; null unless the algorithm is the format's.
  const Dasp<memory_space>* dasp() const noexcept { return dasp_ ? &dasp_->format() : nullptr; }
  /// See dasp().
  const PackedSlices<memory_space>* packed() const noexcept { return packed_ ? &packed_->format() : nullptr; }
  /// What Auto saw of the matrix; null unless it or the algorithm had to look.
  const SpmvFeatures* features() const noexcept { return features_ ? &*features_ : nullptr; }

  /// What was chosen, why, and what it costs. Host work only.
  Statistics statistics() const;

 private:
  void make_engine(const execution_space& space, SpmvAlgorithm algorithm) {
    dasp_.reset();
    packed_.reset();
    csr5_.reset();
    choice_.algorithm = algorithm;
    const bool portable = algorithm == SpmvAlgorithm::Csr || algorithm == SpmvAlgorithm::Csr5;
    choice_.backend = portable && format_backend_ != Backend::Reference ? Backend::Kokkos : format_backend_;
    if (algorithm == SpmvAlgorithm::Dasp) {
      dasp_.emplace(space, csr_, choice_.precision, options_, kernel_table(choice_.backend));
    } else if (algorithm == SpmvAlgorithm::PackedSlices) {
      const KernelTable* table = choice_.backend == Backend::Kokkos ? nullptr : &kernel_table(choice_.backend);
      if (!features_) features_ = spmv_features(space, csr_, table);
      packed_.emplace(space, csr_, choice_.precision, *features_, options_, table);
    } else if (algorithm == SpmvAlgorithm::Csr5) {
      csr5_.emplace(space, csr_, options_,
                    format_backend_ == Backend::Kokkos ? nullptr : &kernel_table(format_backend_));
    }
  }

  /// Selection::Measure: times the two best predictions on vectors of its own and keeps the faster.
  void measure(const execution_space& space) {
    using Vector = Kokkos::View<value_type*, Kokkos::LayoutLeft, memory_space>;
    const Vector x_storage("Tessera::spmv::measure x", csr_.cols()), y_storage("Tessera::spmv::measure y", csr_.rows());
    const auto x = Impl::vector_of<true, memory_space>(typename Vector::const_type(x_storage), 0);
    const auto y = Impl::vector_of<true, memory_space>(y_storage, 0);
    const Impl::SpmvCandidate first = choice_.candidates[0], second = choice_.candidates[1];
    const double time_first = time_apply(space, x, y);
    make_engine(space, second.algorithm);
    const double time_second = time_apply(space, x, y);
    if (time_first <= time_second) make_engine(space, first.algorithm);
    choice_.why = Impl::measured_why(first, time_first, second, time_second);
  }
  template <class X, class Y>
  double time_apply(const execution_space& space, const X& x, const Y& y) const {
    double best = 0;
    for (int repeat = 0; repeat < 4; ++repeat) {  // the first one warms up
      constexpr int applies = 10;
      Compat::fence(space, "Tessera::spmv measure");
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < applies; ++i) apply_vector(space, 1.0, x, 0.0, y);
      Compat::fence(space, "Tessera::spmv measure");
      const double t = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / applies;
      if (repeat == 1 || (repeat > 1 && t < best)) best = t;
    }
    return best;
  }

  /// Auto takes every combination of types: those that its format does not serve go straight from CSR.
  template <class X, class Y>
  bool mixed() const {
    return auto_ && (dasp_ || packed_) && Impl::ScalarTraits<value_type>::precision == choice_.precision &&
           !Impl::fits_backend<X, Y>(choice_.precision);
  }

  template <class X, class Y>
  void apply_vector(const execution_space& space, double alpha, const X& x, double beta, const Y& y) const {
    // Also where no kernel of a backend will run: what is accepted must not depend on alpha.
    if ((dasp_ || packed_) && !mixed<X, Y>()) {
      Impl::check_backend_types<X, Y>(to_string(choice_.algorithm), choice_.precision);
    }
    if (alpha == 0 || csr_.nnz() == 0) {
      using Sum = Impl::AccumulatorOf<value_type, typename X::non_const_value_type, typename Y::non_const_value_type>;
      Impl::scale(space, static_cast<Sum>(beta), y);
    } else if (mixed<X, Y>()) {
      Impl::csr_spmv(space, alpha, csr_, x, beta, y);
    } else if (dasp_) {
      dasp_->apply(space, alpha, x, beta, y);
    } else if (packed_) {
      packed_->apply(space, alpha, x, beta, y);
    } else if (csr5_) {
      csr5_->apply(space, alpha, x, beta, y);
    } else if (choice_.backend == Backend::Reference) {
      Impl::reference_apply(space, csr_, alpha, x, beta, y);
    } else {
      Impl::csr_spmv(space, alpha, csr_, x, beta, y);
    }
  }

  Csr csr_;
  SpmvOptions options_;
  Impl::SpmvChoice choice_;
  Backend format_backend_ = Backend::Kokkos;  ///< of DASP and packed slices, and whose memory pool is used
  bool auto_ = false;                         ///< nobody asked for the algorithm
  std::optional<SpmvFeatures> features_;
  std::optional<Impl::DaspEngine<Csr>> dasp_;
  std::optional<Impl::PackedEngine<Csr>> packed_;
  std::optional<Impl::Csr5Engine<Csr>> csr5_;
  std::optional<Transposed<Csr>> transposed_;
  std::unique_ptr<SpmvPlan> transpose_plan_;
  double setup_seconds_ = 0;
};

template <class Csr>
Statistics SpmvPlan<Csr>::statistics() const {
  Statistics s;
  s.operation = "spmv";
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
  if (dasp_) dasp_->describe(s);
  if (packed_) packed_->describe(s);
  if (csr5_) csr5_->describe(s);
  s.padding_ratio = s.nnz > 0 ? static_cast<double>(s.stored) / static_cast<double>(s.nnz) - 1 : 0;
  if (features_) s.row_max = features_->longest;
  return s;
}

/// y := alpha op(A) x + beta y through a plan, in the argument order of KokkosSparse::spmv. mode: "N", "T", "C", "H".
template <class Exec, class Csr, class X, class Y>
void spmv(const Exec& space, const SpmvPlan<Csr>& plan, const char mode[], double alpha, const X& x, double beta,
          const Y& y) {
  plan.apply(space, parse_op(mode), alpha, x, beta, y);
}

/// One-shot y := alpha op(A) x + beta y (Reuse::Once: straight from CSR, no conversion). A is a CsrView or anything
/// csr_view() accepts. For "T" and "H" A is transposed first, which costs far more than the product: keep a plan.
template <class Exec, class Matrix, class X, class Y>
void spmv(const Exec& space, const char mode[], double alpha, const Matrix& A, const X& x, double beta, const Y& y) {
  if constexpr (!Impl::IsCsrView<Matrix>::value) {
    spmv(space, mode, alpha, csr_view(A), x, beta, y);
  } else {
    SpmvOptions options;
    options.reuse = Reuse::Once;
    options.prepare_transpose = parse_op(mode) != Op::NoTrans;
    const SpmvPlan<Matrix> plan(space, A, options);
    plan.apply(space, parse_op(mode), alpha, x, beta, y);
    if (options.prepare_transpose) Compat::fence(space, "Tessera::spmv: the transpose is released");
  }
}

}  // namespace Tessera

#endif
