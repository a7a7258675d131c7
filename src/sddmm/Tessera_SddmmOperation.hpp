// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SDDMM_SDDMM_OPERATION_HPP
#define TESSERA_SDDMM_SDDMM_OPERATION_HPP

#include <optional>
#include <variant>

#include "core/Tessera_Plan.hpp"
#include "formats/windows/Tessera_MeBcrsBlocks.hpp"
#include "sddmm/Tessera_SddmmBsmrEngine.hpp"
#include "sddmm/Tessera_SddmmPanelEngine.hpp"
#include "sddmm/Tessera_SddmmReferenceEngine.hpp"
#include "sddmm/Tessera_SddmmRowsEngine.hpp"
#include "sddmm/Tessera_SddmmRules.hpp"

namespace Tessera {
namespace Impl {

/// What the body of a plan is made from.
template <class Memory>
struct SddmmBodyOptions : SddmmOptions {
  std::optional<Experimental::MeBcrs<Memory>> windows = std::nullopt;  ///< to be used instead of own ones
};

/// What SDDMM is to PlanBody.
template <class Matrix>
struct SddmmOperation {
  using Csr = Matrix;
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;
  using Value = typename Csr::value_type;
  using Options = SddmmBodyOptions<Memory>;
  using Algorithm = SddmmAlgorithm;
  using Choice = SddmmChoice;
  using Features = SpmmFeatures;
  using Engine = std::variant<std::monostate, SddmmReferenceEngine<Csr>, SddmmRowsEngine<Csr>, SddmmPanelEngine<Csr>,
                              SddmmBsmrEngine<Csr>>;
  using Plan = PlanBody<SddmmOperation>;
  static constexpr const char* name = "sddmm";
  static constexpr const char* options_name = "SddmmOptions";
  static constexpr bool transposes = false;
  static constexpr int trials = 5;

  static Algorithm forced_algorithm() { return forced_sddmm_algorithm(); }
  static Choice choose(const Options& options) { return SddmmSelection<Csr>(options).choose(); }
  static std::int64_t usual_columns(const Options& options) { return options.inner_hint; }
  /// Trials multiply matrices of the pattern's type.
  static bool measurable(const Choice& choice) {
    return ScalarTraits<Value>::precision == choice.precision ||
           (choice.precision == Precision::TF32 && std::is_same_v<Value, float>);
  }

  static void look(const Exec& space, const Csr& S, const Options& options, Choice& choice,
                   std::optional<Features>& features) {
    if (!choice.predict) return;
    const KernelTable& table = kernel_table(choice.backend);
    features = spmm_features(space, S, &table);
    predict_sddmm(choice, *features, options, table.sddmm.shape(choice.precision));
  }
  static void make(Engine& engine, const Exec& space, const Csr& S, const Options& options, Choice& choice,
                   Backend format_backend, const std::optional<Features>& features);
  static Experimental::WindowBlocks<Memory> windows(const Exec& space, const Csr& S, const Options& options,
                                                    const Choice& choice, const KernelTable& table,
                                                    const std::optional<Features>& features);
  static int window_height(const Exec& space, const Csr& S, const Options& options, Precision precision,
                           const KernelTable& table, const std::optional<Features>& features);
  template <class T, class PT>
  static void apply(const Plan& plan, const Exec& space, double alpha, const SddmmInput<T>& in, double beta,
                    const SddmmOutput<PT>& out);

  template <class E>
  static std::size_t workspace(const E& engine, std::int64_t inner) {
    return engine.workspace_bytes(inner);
  }
  static void describe(const Features& features, Statistics& s) { s.row_max = features.longest; }

  class Trial {
   public:
    Trial(const Csr& S, const Options& options)
        : x_(Compat::allocate_zeros<Dense2>("Tessera::sddmm::measure X", S.rows(), options.inner_hint)),
          y_(Compat::allocate_zeros<Dense2>("Tessera::sddmm::measure Y", S.cols(), options.inner_hint)),
          p_(Compat::allocate_zeros<Products>("Tessera::sddmm::measure P", S.nnz())) {}
    void operator()(const Plan& plan, const Exec& space) const {
      plan.apply(space, Op::NoTrans, 1.0, sddmm_input(x_, y_, Op::NoTrans), 0.0, sddmm_output(p_));
    }

   private:
    using Dense2 = Kokkos::View<Value**, Kokkos::LayoutRight, Memory>;
    using Products = Kokkos::View<Value*, Kokkos::LayoutLeft, Memory>;
    Dense2 x_, y_;
    Products p_;
  };
};

template <class Csr>
void SddmmOperation<Csr>::make(Engine& engine, const Exec& space, const Csr& S, const Options& options, Choice& choice,
                               Backend format_backend, const std::optional<Features>& features) {
  if (format_backend == Backend::Reference) {
    engine.template emplace<SddmmReferenceEngine<Csr>>(S, options.scale_by_values);
    return;
  }
  const KernelTable* table = format_backend == Backend::Kokkos ? nullptr : &kernel_table(format_backend);
  choice.backend = format_backend;
  if (choice.algorithm == Algorithm::Panels || choice.algorithm == Algorithm::FlashSparse) {
    engine.template emplace<SddmmPanelEngine<Csr>>(S, windows(space, S, options, choice, *table, features),
                                                   choice.algorithm, options, *table);
  } else if (choice.algorithm == Algorithm::Bsmr) {
    const int height = options.window_height > 0 ? options.window_height : 2, given = options.bsmr.dense_from;
    const int least = given > 0 ? given : sddmm_dense_from(options.inner_hint, choice.precision, height);
    engine.template emplace<SddmmBsmrEngine<Csr>>(space, S, choice.precision, height, least, options, *table);
  } else {
    engine.template emplace<SddmmRowsEngine<Csr>>(space, S, choice.precision, options, table);
  }
}

/// Those of the caller's ME-BCRS, or own ones.
template <class Csr>
auto SddmmOperation<Csr>::windows(const Exec& space, const Csr& S, const Options& options, const Choice& choice,
                                  const KernelTable& table, const std::optional<Features>& features)
    -> Experimental::WindowBlocks<Memory> {
  const SddmmShape shape = table.sddmm.shape(choice.precision);
  if (options.windows) {
    const std::string why_not = why_no_blocks(*options.windows, shape);
    require<NotSupported>(why_not.empty(), [&] { return "sddmm: windows of the SpMM plan: " + why_not; });
    return window_blocks_of(space, *options.windows, shape, choice.precision, &table);
  }
  const bool low = choice.algorithm == Algorithm::FlashSparse && options.window_height == 0;
  const int height = low ? 1 : window_height(space, S, options, choice.precision, table, features);
  return window_blocks(space, pattern_of(S), shape, height, choice.precision, &table);
}

/// As the caller wants it, or by what the pattern shares: from the features, or a sample of windows.
template <class Csr>
int SddmmOperation<Csr>::window_height(const Exec& space, const Csr& S, const Options& options, Precision precision,
                                       const KernelTable& table, const std::optional<Features>& features) {
  if (options.window_height > 0) return options.window_height;
  const int rows = table.sddmm.shape(precision).rows;
  if (S.nnz() == 0 || static_cast<std::int64_t>(S.rows()) <= rows) return 1;
  if (features && rows <= 16) {
    const double one = rows == 8 ? features->g8 : features->g16, two = rows == 8 ? features->g16 : features->g32;
    return sddmm_windows(options.inner_hint, precision, one, two).height;
  }
  const auto pattern = pattern_of(S);
  const double one = fetched_share(space, pattern, rows, {}, &table),
               two = fetched_share(space, pattern, 2 * rows, {}, &table);
  return sddmm_windows(options.inner_hint, precision, 1 / one, 1 / two).height;
}

template <class Csr>
template <class T, class PT>
void SddmmOperation<Csr>::apply(const Plan& plan, const Exec& space, double alpha, const SddmmInput<T>& in, double beta,
                                const SddmmOutput<PT>& out) {
  // Whether some precision's kernels of a backend take these elements, so that others are not compiled for them.
  constexpr bool possible = std::is_same_v<T, PT> || (sizeof(T) == 2 && std::is_same_v<PT, float>);
  const Choice& choice = plan.choice();
  const bool panels = has_windows(choice.algorithm);
  // Auto takes every combination of types: those that no unit multiplies go entry by entry.
  const bool other = panels && plan.automatic() && plan.natural() && !fits_backend<T, PT>(choice.precision);
  // Also where no kernel of a backend will run: what is accepted must not depend on alpha.
  if ((panels && !other) || (choice.backend != Backend::Reference && !plan.natural())) {
    check_sddmm_types<T, PT>(to_string(choice.algorithm), choice.precision);
  }
  if (out.nnz == 0 || out.heads == 0) return;
  if (alpha == 0 || in.x.matrix.columns == 0) {
    if (out.slots.of != nullptr) return clear_slots(space, out);
    return scale_dense<AccumulatorOf<T, T, PT>>(space, "Tessera::sddmm[scale]", beta, out.matrix());
  }
  const auto by_rows = [&] { sddmm_rows(space, alpha, plan.csr(), plan.options().scale_by_values, in, beta, out); };
  if (other) return by_rows();
  with_engine(plan.engine(), [&](const auto& engine) {
    using E = std::decay_t<decltype(engine)>;
    constexpr bool units = std::is_same_v<E, SddmmPanelEngine<Csr>> || std::is_same_v<E, SddmmBsmrEngine<Csr>>;
    if constexpr (units) {
      if (too_few_for_parts(engine.format().shape, in.x.matrix.columns)) return by_rows();
    }
    if constexpr (!units || possible) engine.apply(space, alpha, in, beta, out);
  });
}

}  // namespace Impl
}  // namespace Tessera

#endif
