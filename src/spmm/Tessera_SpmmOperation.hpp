// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_SPMM_OPERATION_HPP
#define TESSERA_SPMM_SPMM_OPERATION_HPP

#include <optional>
#include <variant>

#include "core/Tessera_Plan.hpp"
#include "features/Tessera_SpmmFeatures.hpp"
#include "spmm/Tessera_FlashEngine.hpp"
#include "spmm/Tessera_GeSpmmEngine.hpp"
#include "spmm/Tessera_PanelEngine.hpp"
#include "spmm/Tessera_SelectSpmm.hpp"
#include "spmm/Tessera_SpmmChecks.hpp"
#include "spmm/Tessera_SpmmReferenceEngine.hpp"
#include "spmm/Tessera_SpmmRules.hpp"

namespace Tessera {
namespace Impl {

/// What SpMM is to PlanBody.
template <class Matrix>
struct SpmmOperation {
  using Csr = Matrix;
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;
  using Value = typename Csr::value_type;
  using Options = SpmmOptions;
  using Algorithm = SpmmAlgorithm;
  using Choice = SpmmChoice;
  using Features = SpmmFeatures;
  using Engine =
      std::variant<std::monostate, SpmmReferenceEngine<Csr>, GeSpmmEngine<Csr>, PanelEngine<Csr>, FlashEngine<Csr>>;
  using Plan = PlanBody<SpmmOperation>;
  static constexpr const char* name = "spmm";
  static constexpr const char* options_name = "SpmmOptions";
  static constexpr bool transposes = true;
  static constexpr int trials = 5;
  static constexpr bool floats = std::is_same_v<Value, float>;

  static Algorithm forced_algorithm() { return forced_spmm_algorithm(); }
  static Choice choose(const Options& options) { return SpmmSelection<Csr>(options).choose(); }
  static std::int64_t usual_columns(const Options& options) { return options.num_columns_hint; }
  /// Trials multiply matrices of A's type.
  static bool measurable(const Choice& choice) {
    return ScalarTraits<Value>::precision == choice.precision || (choice.precision == Precision::TF32 && floats);
  }

  static void look(const Exec& space, const Csr& A, const Options& options, Choice& choice,
                   std::optional<Features>& features);
  static void make(Engine& engine, const Exec& space, const Csr& A, const Options& options, Choice& choice,
                   Backend format_backend, const std::optional<Features>& features);
  template <class BT, class CT>
  static void apply(const Plan& plan, const Exec& space, double alpha, const DenseInput<BT>& b, double beta,
                    const Dense<CT>& c);

  /// Whether Auto chose windows, which would copy B and C into rows and back, but a product is better made of columns
  /// where they lie, from the arrays of A. A plan does not know layouts before.
  template <class BT, class CT>
  static bool in_columns_instead(const Plan& plan, const Dense<const BT>& b, const Dense<CT>& c) {
    const Choice& choice = plan.choice();
    const bool own = plan.natural() || (choice.precision == Precision::TF32 && floats);
    const bool possible =
        choice.in_columns && own && fits_backend<BT, CT>(choice.precision) && !plan.has_other_numbers();
    const auto nnz = static_cast<std::int64_t>(plan.csr().nnz());
    return possible && !choice.pattern.uneven && ge_spmm_serves_in_columns(plan.csr(), choice.pattern, b, c) &&
           columns_beat_panels(nnz, b.columns, choice.precision);
  }

  template <class E>
  static std::size_t workspace(const E& engine, std::int64_t columns) {
    return engine.workspace_bytes(columns);
  }
  static void describe(const Features& features, Statistics& s) { s.row_max = features.longest; }

  class Trial {
   public:
    Trial(const Csr& A, const Options& options)
        : b_(Compat::allocate_zeros<Dense2>("Tessera::spmm::measure B", A.cols(), options.num_columns_hint)),
          c_(Compat::allocate_zeros<Dense2>("Tessera::spmm::measure C", A.rows(), options.num_columns_hint)) {}
    void operator()(const Plan& plan, const Exec& space) const {
      const DenseInput<Value> b{dense_of(typename Dense2::const_type(b_)), static_cast<std::size_t>(b_.span())};
      plan.apply(space, Op::NoTrans, 1.0, b, 0.0, dense_of(c_));
    }

   private:
    using Dense2 = Kokkos::View<Value**, Kokkos::LayoutRight, Memory>;
    Dense2 b_, c_;
  };
};

template <class Csr>
void SpmmOperation<Csr>::look(const Exec& space, const Csr& A, const Options& options, Choice& choice,
                              std::optional<Features>& features) {
  if (!choice.looks()) return;
  features = spmm_features(space, A, &kernel_table(choice.backend));
  choice.pattern = ge_spmm_pattern(*features, choice.precision, options);
  if (!floats) choice.pattern.compact_from = 0;
  if (choice.predict) predict_spmm(choice, *features, options, floats);
}

template <class Csr>
void SpmmOperation<Csr>::make(Engine& engine, const Exec& space, const Csr& A, const Options& options, Choice& choice,
                              Backend format_backend, const std::optional<Features>& features) {
  if (format_backend == Backend::Reference) {
    engine.template emplace<SpmmReferenceEngine<Csr>>(A);
    return;
  }
  const KernelTable* table = format_backend == Backend::Kokkos ? nullptr : &kernel_table(format_backend);
  const bool straight = choice.algorithm == Algorithm::GeSpmm || choice.algorithm == Algorithm::Csr;
  const bool own = choice.algorithm == Algorithm::GeSpmm && table != nullptr && table->spmm.gespmm != nullptr;
  choice.backend = straight && !own ? Backend::Kokkos : format_backend;
  if (choice.algorithm == Algorithm::Panels) {
    auto& panels = engine.template emplace<PanelEngine<Csr>>(space, A, choice.precision, options, *table);
    if (features && panels_given_up(choice, *features, options, panels.format().apart.entries())) {
      engine.template emplace<std::monostate>();  // its memory is given back first
      make(engine, space, A, options, choice, format_backend, features);
    }
  } else if (choice.algorithm == Algorithm::FlashSparse) {
    engine.template emplace<FlashEngine<Csr>>(space, A, choice.precision, options, *table);
  } else {
    engine.template emplace<GeSpmmEngine<Csr>>(space, A, choice.precision, options,
                                               choice.algorithm == Algorithm::GeSpmm, table, choice.pattern);
  }
}

template <class Csr>
template <class BT, class CT>
void SpmmOperation<Csr>::apply(const Plan& plan, const Exec& space, double alpha, const DenseInput<BT>& b, double beta,
                               const Dense<CT>& c) {
  // Whether some precision's kernels of a backend take these elements, so that others are not compiled for them.
  constexpr bool possible = std::is_same_v<BT, CT> || (sizeof(BT) == 2 && std::is_same_v<CT, float>);
  using Sum = AccumulatorOf<Value, BT, CT>;
  const Choice& choice = plan.choice();
  const Csr& A = plan.csr();
  const bool windows = choice.algorithm == Algorithm::Panels || choice.algorithm == Algorithm::FlashSparse;
  const bool rows = choice.backend != Backend::Reference && !windows;
  // Auto takes every combination of types: those that its format does not serve go straight from CSR.
  const bool mixed = windows && plan.automatic() && plan.natural() && !fits_backend<BT, CT>(choice.precision);
  // Also where no kernel of a backend will run: what is accepted must not depend on alpha.
  if ((windows && !mixed) || (rows && !plan.natural())) {
    check_dense_types<BT, CT>(to_string(choice.algorithm), choice.precision);
  }
  if (mixed) plan.require_own_numbers();
  if (c.rows == 0 || c.columns == 0) return;
  if (alpha == 0 || A.nnz() == 0) return scale_dense<Sum>(space, "Tessera::spmm[scale]", beta, c);
  if (mixed) return ge_spmm(space, alpha, A, b.matrix, beta, c, whole_rows<Sum>(c.rows));
  if constexpr (possible && sizeof(typename Csr::ordinal_type) == 4) {
    if (windows && in_columns_instead(plan, b.matrix, c)) {
      constexpr Precision own = ScalarTraits<Value>::precision;  // for TF32, too
      const GeSpmmArgs args = ge_spmm_arguments(A, own, choice.pattern, alpha, b.matrix, beta, c);
      return run_on_backend(space, {"spmm", "gespmm", own},
                            [&](Stream stream) { return kernel_table(choice.backend).spmm.gespmm(args, stream); });
    }
  }
  with_engine(plan.engine(), [&](const auto& engine) {
    using E = std::decay_t<decltype(engine)>;
    constexpr bool any_types = std::is_same_v<E, SpmmReferenceEngine<Csr>> || std::is_same_v<E, GeSpmmEngine<Csr>>;
    if constexpr (any_types || possible) engine.apply(space, alpha, b.matrix, b.span, beta, c);
  });
}

}  // namespace Impl
}  // namespace Tessera

#endif
