// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_ATTENTION_ATTENTION_OPERATION_HPP
#define TESSERA_ATTENTION_ATTENTION_OPERATION_HPP

#include <cstdint>
#include <optional>
#include <type_traits>
#include <variant>

#include "attention/Tessera_AttentionBackward.hpp"
#include "attention/Tessera_AttentionRules.hpp"
#include "attention/Tessera_ChainAttentionEngine.hpp"
#include "attention/Tessera_FusedAttentionEngine.hpp"
#include "attention/Tessera_RowsAttentionEngine.hpp"
#include "attention/Tessera_WindowAttentionEngine.hpp"
#include "core/Tessera_Plan.hpp"

namespace Tessera {
namespace Impl {

/// Engines, named without being made.
template <template <class...> class Of, class... Engines>
struct AttentionType {
  using type = Of<Engines...>;
};

/// What attention, forward, is to PlanBody: a product of Q, K and V with `alpha` as the scale of the scores.
template <class Matrix>
struct AttentionOperation {
  using Csr = Matrix;
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;
  using Value = typename Csr::value_type;
  using Options = AttentionOptions;
  using Algorithm = AttentionAlgorithm;
  using Choice = AttentionChoice;
  using Features = SpmmFeatures;
  static constexpr bool on_units = sizeof(Value) <= 4;  ///< backends may have a fused kernel for the type
  static constexpr bool by_rows = sizeof(Value) >= 4;   ///< the same, by rows
  template <class... More>
  using EngineOf = std::variant<std::monostate, FusedAttentionEngine<Csr>, ChainAttentionEngine<Csr>, More...>;
  using Windows = WindowAttentionEngine<Csr>;
  using Rows = RowsAttentionEngine<Csr>;
  using Engine = typename std::conditional_t<
      !by_rows, AttentionType<EngineOf, Windows>,
      std::conditional_t<on_units, AttentionType<EngineOf, Windows, Rows>, AttentionType<EngineOf, Rows>>>::type;
  using Plan = PlanBody<AttentionOperation>;
  static constexpr const char* name = "attention";
  static constexpr const char* options_name = "AttentionOptions";
  static constexpr bool transposes = false;
  static constexpr int trials = 3;

  /// The engine of a backend's kernel, if the plan has one.
  static const WindowAttentionEngine<Csr>* units_of(const Engine& engine) {
    if constexpr (on_units) return std::get_if<WindowAttentionEngine<Csr>>(&engine);
    return nullptr;
  }
  /// The shares of rows that the plan goes forward by, if it does.
  static const AttentionShares<Memory>* shares_of(const Engine& engine) {
    if constexpr (by_rows) {
      if (const auto* const rows = std::get_if<Rows>(&engine)) return &rows->shares();
    }
    return nullptr;
  }
  static Algorithm forced_algorithm() { return forced_attention_algorithm(); }
  static Choice choose(const Options& options) { return AttentionSelection<Csr>(options).choose(); }
  static std::int64_t usual_columns(const Options& options) { return options.dimension_hint; }
  static bool measurable(const Choice&) { return true; }
  static void look(const Exec& space, const Csr& A, const Options& options, Choice& choice,
                   std::optional<Features>& features) {
    if (!choice.predict) return;
    if (choice.backend == Backend::Kokkos) {
      features = spmm_features(space, A, nullptr);
      predict_attention(choice, *features, options.dimension_hint, sizeof(Value),
                        scattered_over_operands(A, options.dimension_hint));
    } else {
      features = spmm_features(space, A, &kernel_table(choice.backend));
      predict_attention_on_units(choice, *features, options, sizeof(Value));
      if (choice.algorithm == Algorithm::Chain)
        choice.backend = options.backend == Backend::Auto ? Backend::Kokkos : options.backend;
    }
  }
  static void make(Engine& engine, const Exec& space, const Csr& A, const Options& options, Choice& choice,
                   Backend format_backend, const std::optional<Features>& features) {
    if (choice.algorithm == Algorithm::Chain) {
      engine.template emplace<ChainAttentionEngine<Csr>>(space, A, options);
      return;
    }
    if constexpr (by_rows) {
      if (choice.algorithm == Algorithm::Rows) {
        engine.template emplace<Rows>(space, A, options, choice.precision, kernel_table(format_backend));
        return;
      }
    }
    if constexpr (on_units) {
      if (format_backend != Backend::Kokkos) {
        const KernelTable& table = kernel_table(format_backend);
        const AttentionShape shape = table.attention.shape(choice.precision);
        const int height = attention_window_height(shape, *features, options);
        engine.template emplace<WindowAttentionEngine<Csr>>(
            space, A, options, split_windows(space, pattern_of(A), shape, height, choice.precision, 0, &table), table);
        return;
      }
    }
    engine.template emplace<FusedAttentionEngine<Csr>>(space, A, options);
  }
  static void apply(const Plan& plan, const Exec& space, double scale, const AttentionInput<Value>& in, double,
                    const AttentionOutput<Value>& out) {
    if (in.heads == 0 || in.q.matrix.rows == 0) return;
    with_engine(plan.engine(),
                [&](const auto& engine) { engine.apply(space, static_cast<AttentionSum<Value>>(scale), in, out); });
  }
  template <class E>
  static std::size_t workspace(const E& engine, std::int64_t columns) {
    return engine.workspace_bytes(columns);
  }
  static void describe(const Features& features, Statistics& s) { s.row_max = features.longest; }

  class Trial {
   public:
    Trial(const Csr& A, const Options& options)
        : q_(Compat::allocate_zeros<View>("Tessera::attention::measure Q", A.rows(), options.dimension_hint)),
          k_(Compat::allocate_zeros<View>("Tessera::attention::measure K", A.cols(), options.dimension_hint)),
          o_(Compat::allocate_zeros<View>("Tessera::attention::measure O", A.rows(), options.dimension_hint)) {}
    void operator()(const Plan& plan, const Exec& space) const {
      const auto q = dense_batch_of(typename View::const_type(q_)), k = dense_batch_of(typename View::const_type(k_));
      plan.apply(space, Op::NoTrans, 1.0, AttentionInput<Value>{q, k, k, 1}, 0.0,
                 AttentionOutput<Value>{dense_batch_of(o_)});
    }

   private:
    using View = Kokkos::View<Value**, Kokkos::LayoutRight, Memory>;
    View q_, k_, o_;
  };
};

}  // namespace Impl
}  // namespace Tessera

#endif
