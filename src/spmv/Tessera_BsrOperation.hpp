// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_BSR_OPERATION_HPP
#define TESSERA_SPMV_BSR_OPERATION_HPP

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

#include "core/Tessera_Plan.hpp"
#include "core/Tessera_Profile.hpp"
#include "features/Tessera_SpmvFeatures.hpp"
#include "spmv/Tessera_BsrSpmv.hpp"
#include "spmv/Tessera_SelectSpmv.hpp"
#include "spmv/Tessera_SpmvScratch.hpp"

namespace Tessera {
namespace Impl {

/// Blocks as they lie in the caller's arrays: nothing is stored.
template <class Bsr>
class BsrEngine {
 public:
  using Exec = typename Bsr::execution_space;
  using Scalar = typename Bsr::value_type;
  /// What backends and the host's kernel are compiled for; 64-bit columns and 16-bit numbers go row by row.
  static constexpr bool has_kernel =
      sizeof(typename Bsr::ordinal_type) == 4 && (std::is_same_v<Scalar, double> || std::is_same_v<Scalar, float>);

  /// Whether these kernels count the blocks of A.
  static bool takes(const Bsr& A) {
    return has_kernel && (sizeof(typename Bsr::size_type) == 8 ||
                          A.blocks() <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()));
  }

  /// @param table  null: portable
  BsrEngine(const Bsr& A, const SpmvOptions& options, const KernelTable* table) : table_(table), bsr_(A) {
    args_.precision = ScalarTraits<Scalar>::precision;
    args_.order = A.order();
    args_.block_rows = static_cast<std::int32_t>(A.block_rows());
    args_.block = A.block();
    args_.blocks = static_cast<std::int64_t>(A.blocks());
    args_.row_map = A.row_map().data();
    args_.wide_offsets = sizeof(typename Bsr::size_type) == 8;
    if constexpr (has_kernel) args_.columns = reinterpret_cast<const std::int32_t*>(A.entries().data());
    args_.values = A.values().data();
    args_.y_type = ScalarTraits<Scalar>::element;
    const auto vectors = static_cast<std::size_t>(A.rows() + A.cols()) * sizeof(Scalar);
    args_.streaming = table == nullptr || bypasses(options.packed.bypass, bsr_bytes() + vectors, *table);
  }

  std::size_t format_bytes() const { return 0; }
  std::size_t workspace_bytes() const { return 0; }
  std::size_t bsr_bytes() const {
    return bsr_.row_map().extent(0) * sizeof(typename Bsr::size_type) +
           bsr_.blocks() * sizeof(typename Bsr::ordinal_type) + bsr_.nnz() * sizeof(Scalar);
  }

  template <class XT, class YT>
  void apply(const Exec& space, double alpha, const Vectors<const XT>& x, double beta, const Vectors<YT>& y) const {
    if constexpr (has_kernel && std::is_same_v<XT, Scalar> && std::is_same_v<YT, Scalar>) {
      const bool placed = table_ != nullptr || Compat::is_host_v<Exec>;
      if (placed && takes(bsr_)) return kernel(space, alpha, x, beta, y);
    }
    bsr_spmv_rows(space, alpha, bsr_, x, beta, y);
  }

  void update(const Exec&, const Bsr& A) {
    bsr_ = A;
    args_.values = A.values().data();
  }
  void describe(Statistics& s) const {
    const auto rows = static_cast<std::size_t>(bsr_.rows());
    s.format_bytes = bsr_bytes();
    s.csr_bytes = (rows + 1) * sizeof(typename Bsr::size_type) +
                  bsr_.nnz() * (sizeof(typename Bsr::ordinal_type) + sizeof(Scalar));
    s.classes = {{"blocks of " + std::to_string(bsr_.block()) + " x " + std::to_string(bsr_.block()), s.rows, s.nnz}};
  }

 private:
  void kernel(const Exec& space, double alpha, const Vectors<const Scalar>& x, double beta,
              const Vectors<Scalar>& y) const {
    SpmvBsrArgs args = args_;
    args.alpha = alpha;
    args.beta = beta;
    args.x_stride = x.stride;
    args.y_stride = y.stride;
    for (std::int64_t j = 0; j < x.columns; ++j) {
      args.x = x.column(j);
      args.y = y.column(j);
      if (table_ != nullptr) {
        const KernelName name{"spmv", "bsr", args.precision};
        run_on_backend(space, name, [&](Stream stream) { return table_->spmv.bsr(args, stream); });
      } else if constexpr (Compat::is_host_v<Exec>) {
        bsr_spmv_host(space, args);
      }
    }
  }

  const KernelTable* table_;
  Bsr bsr_;
  SpmvBsrArgs args_;
};

/// What SpMV of a BsrView is to PlanBody.
template <class Matrix>
struct BsrOperation {
  using Csr = Matrix;
  using Exec = typename Csr::execution_space;
  using Value = typename Csr::value_type;
  using Options = SpmvOptions;
  using Algorithm = SpmvAlgorithm;
  using Choice = SpmvChoice;
  using Features = SpmvFeatures;
  using Engine = std::variant<std::monostate, BsrEngine<Csr>>;
  using Plan = PlanBody<BsrOperation>;
  static constexpr const char* name = "spmv";
  static constexpr const char* options_name = "SpmvOptions";
  static constexpr bool transposes = true;
  static constexpr int trials = 1;

  static Algorithm forced_algorithm() { return Algorithm::Auto; }
  static std::int64_t usual_columns(const Options&) { return 1; }
  static bool measurable(const Choice&) { return false; }
  static Choice choose(const Options& options);
  static void look(const Exec& space, const Csr& A, const Options& options, Choice& choice,
                   std::optional<Features>& features);
  static void make(Engine& engine, const Exec&, const Csr& A, const Options& options, Choice& choice, Backend,
                   std::optional<Features>&) {
    const bool portable = choice.backend == Backend::Kokkos;
    engine.template emplace<BsrEngine<Csr>>(A, options, portable ? nullptr : &kernel_table(choice.backend));
  }
  template <class XT, class YT>
  static void apply(const Plan& plan, const Exec& space, double alpha, const Vectors<const XT>& x, double beta,
                    const Vectors<YT>& y) {
    if (alpha == 0 || plan.csr().nnz() == 0) {
      return scale_dense<AccumulatorOf<Value, XT, YT>>(space, "Tessera::spmv[scale]", beta, dense_of(y));
    }
    with_engine(plan.engine(), [&](const auto& engine) { engine.apply(space, alpha, x, beta, y); });
  }
  template <class E>
  static std::size_t workspace(const E& engine, std::int64_t) {
    return engine.workspace_bytes();
  }
  static void describe(const Features&, Statistics&) {}

  /// There is one algorithm: nothing is measured.
  struct Trial {
    Trial(const Csr&, const Options&) {}
    void operator()(const Plan&, const Exec&) const {}
  };
};

template <class Bsr>
SpmvChoice BsrOperation<Bsr>::choose(const Options& options) {
  const BackendSelection<Exec> place(options.backend);
  place.check_place();
  SpmvChoice choice;
  const Precision natural = ScalarTraits<Value>::precision;
  choice.algorithm = Algorithm::Bsr;
  choice.precision = natural;
  choice.device = Exec::name();
  require<NotSupported>(precision_of(options.compute, natural) == natural, [&] {
    return std::string("blocks of ") + to_string(natural) +
           " are not rounded to another precision: convert the values first";
  });
  const auto fall_back = [&](const std::string& why) {
    require<NotSupported>(options.fallback, [&] { return why + " (fallback = false)"; });
    choice.fallback = true;
    choice.why = why;
  };
  choice.why = "a block matrix is multiplied from its own arrays";
  if (options.algorithm != Algorithm::Auto && options.algorithm != Algorithm::Bsr) {
    fall_back(std::string("blocks are not converted to ") + to_string(options.algorithm) + "; Bsr instead");
  }
  if (place.forced() == Backend::Reference) {
    fall_back("the reference has no blocks; the portable kernels instead");
    return choice;
  }
  if (place.forced() == Backend::Kokkos || (place.host() && !place.emulated())) return choice;
  const std::string fault = place.why_not();
  if (!fault.empty()) {
    fall_back(fault);
    return choice;
  }
  place.take_backend(choice, Algorithm::Bsr, choice.why);
  return choice;
}

/// Whether the kernels take this matrix; nothing is read of it.
template <class Bsr>
void BsrOperation<Bsr>::look(const Exec&, const Csr& A, const Options& options, Choice& choice,
                             std::optional<Features>&) {
  if (choice.backend == Backend::Kokkos) return;
  if (BsrEngine<Csr>::takes(A) && A.block() <= bsr_max_block) return;
  choice.backend = Backend::Kokkos;
  choice.device = Exec::name();
  choice.fallback = true;
  choice.why =
      "the kernels of backends take double and float, columns of 32 bits and blocks of side 32 at most; one "
      "thread per row instead";
  require<NotSupported>(options.fallback, [&] { return choice.why + " (fallback = false)"; });
}

}  // namespace Impl
}  // namespace Tessera

#endif
