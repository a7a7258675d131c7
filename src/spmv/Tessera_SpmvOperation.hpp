// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_SPMV_OPERATION_HPP
#define TESSERA_SPMV_SPMV_OPERATION_HPP

#include <optional>
#include <type_traits>
#include <variant>

#include "core/Tessera_Plan.hpp"
#include "features/Tessera_SpmvFeatures.hpp"
#include "spmv/Tessera_Csr5Engine.hpp"
#include "spmv/Tessera_CsrEngine.hpp"
#include "spmv/Tessera_DaspEngine.hpp"
#include "spmv/Tessera_PackedEngine.hpp"
#include "spmv/Tessera_SelectSpmv.hpp"
#include "spmv/Tessera_SeveralVectors.hpp"
#include "spmv/Tessera_SpmvRules.hpp"

namespace Tessera {
namespace Impl {

/// What SpMV is to PlanBody.
template <class Matrix>
struct SpmvOperation {
  using Csr = Matrix;
  using Exec = typename Csr::execution_space;
  using Memory = typename Csr::memory_space;
  using Value = typename Csr::value_type;
  using Options = SpmvOptions;
  using Algorithm = SpmvAlgorithm;
  using Choice = SpmvChoice;
  using Features = SpmvFeatures;
  using Engine = std::variant<std::monostate, CsrEngine<Csr>, Csr5Engine<Csr>, DaspEngine<Csr>, PackedEngine<Csr>>;
  using Beside = std::conditional_t<Compat::is_host_v<Exec>, SeveralVectors<Csr>, NothingBeside>;
  using Plan = PlanBody<SpmvOperation>;
  static constexpr const char* name = "spmv";
  static constexpr const char* options_name = "SpmvOptions";
  static constexpr bool transposes = true;
  static constexpr int trials = 10;

  static Algorithm forced_algorithm() { return forced_spmv_algorithm(); }
  static Choice choose(const Options& options) { return SpmvSelection<Csr>(options).choose(); }
  static std::int64_t usual_columns(const Options&) { return 1; }
  /// Trials multiply vectors of the matrix's type.
  static bool measurable(const Choice& choice) { return ScalarTraits<Value>::precision == choice.precision; }

  static void look(const Exec& space, const Csr& A, const Options& options, Choice& choice,
                   std::optional<Features>& features);
  static void make(Engine& engine, const Exec& space, const Csr& A, const Options& options, Choice& choice,
                   Backend format_backend, std::optional<Features>& features);
  /// Features, and where packed slices may follow the order of their rows behind them.
  static Features look_ahead(const Exec& space, const Csr& A, const Options& options, Choice& choice,
                             const KernelTable* table);
  template <class XT, class YT>
  static void apply(const Plan& plan, const Exec& space, double alpha, const Vectors<const XT>& x, double beta,
                    const Vectors<YT>& y);

  template <class E>
  static std::size_t workspace(const E& engine, std::int64_t) {
    return engine.workspace_bytes();
  }
  static void describe(const Features& features, Statistics& s) { s.row_max = features.longest; }

  class Trial {
   public:
    Trial(const Csr& A, const Options&)
        : x_(Compat::allocate_zeros<Vector>("Tessera::spmv::measure x", A.cols())),
          y_(Compat::allocate_zeros<Vector>("Tessera::spmv::measure y", A.rows())) {}
    void operator()(const Plan& plan, const Exec& space) const {
      plan.apply(space, Op::NoTrans, 1.0, vectors_of(typename Vector::const_type(x_)), 0.0, vectors_of(y_));
    }

   private:
    using Vector = Kokkos::View<Value*, Kokkos::LayoutLeft, Memory>;
    Vector x_, y_;
  };
};

template <class Csr>
void SpmvOperation<Csr>::look(const Exec& space, const Csr& A, const Options& options, Choice& choice,
                              std::optional<Features>& features) {
  if (choice.predict || choice.algorithm == Algorithm::PackedSlices) check(options.packed);
  if (!choice.predict) return;
  const KernelTable* table = choice.backend == Backend::Kokkos ? nullptr : &kernel_table(choice.backend);
  features = look_ahead(space, A, options, choice, table);
  predict_spmv(choice, *features, Compat::is_host_v<Exec>, measurable(choice));
}

template <class Csr>
void SpmvOperation<Csr>::make(Engine& engine, const Exec& space, const Csr& A, const Options& options, Choice& choice,
                              Backend format_backend, std::optional<Features>& features) {
  const bool portable = choice.algorithm == Algorithm::Csr || choice.algorithm == Algorithm::Csr5;
  choice.backend = portable && format_backend != Backend::Reference ? Backend::Kokkos : format_backend;
  const bool tabled = format_backend != Backend::Kokkos && format_backend != Backend::Reference;
  const KernelTable* const table = tabled ? &kernel_table(format_backend) : nullptr;
  switch (choice.algorithm) {
    case Algorithm::Dasp:
      engine.template emplace<DaspEngine<Csr>>(space, A, choice.precision, options, *table);
      break;
    case Algorithm::PackedSlices:
      if (!features) features = look_ahead(space, A, options, choice, table);
      engine.template emplace<PackedEngine<Csr>>(space, A, choice.precision, *features, options, table,
                                                 std::static_pointer_cast<PackedAhead<Memory>>(choice.ahead));
      break;
    case Algorithm::Csr5:
      engine.template emplace<Csr5Engine<Csr>>(space, A, options, table);
      break;
    default:
      engine.template emplace<CsrEngine<Csr>>(A, choice.backend == Backend::Reference);
  }
  choice.ahead.reset();
}

template <class Csr>
SpmvFeatures SpmvOperation<Csr>::look_ahead(const Exec& space, const Csr& A, const Options& options, Choice& choice,
                                            const KernelTable* table) {
  if (table == nullptr || table->runtime.borrow == nullptr) return spmv_features(space, A, table);
  PackedKnown known{};
  known.options = options.packed;
  const Status status = table->runtime.device_facts(known.device);
  if (!status.ok()) throw DeviceError(status.message);
  known.rows = static_cast<std::int64_t>(A.rows());
  known.cols = static_cast<std::int64_t>(A.cols());
  known.nnz = static_cast<std::int64_t>(A.nnz());
  known.lanes = known.device.wave;
  known.value_bytes = bytes_of(choice.precision);
  if (!known.worthwhile()) return spmv_features(space, A, table);
  const auto ahead = std::make_shared<PackedAhead<Memory>>(known, options.updatable);
  choice.ahead = ahead;
  return packed_features_ahead(space, pattern_of(A), table, *ahead);
}

template <class Csr>
template <class XT, class YT>
void SpmvOperation<Csr>::apply(const Plan& plan, const Exec& space, double alpha, const Vectors<const XT>& x,
                               double beta, const Vectors<YT>& y) {
  // Whether the kernels of some precision's formats take these elements, so that others are not compiled for them.
  constexpr bool possible = std::is_same_v<XT, YT> || (sizeof(XT) == 2 && std::is_same_v<YT, float>);
  const Choice& choice = plan.choice();
  const Csr& A = plan.csr();
  const bool format = choice.algorithm == Algorithm::Dasp || choice.algorithm == Algorithm::PackedSlices;
  // Auto takes every combination of types: those that its format does not serve go straight from CSR.
  const bool mixed = format && plan.automatic() && plan.natural() && !fits_backend<XT, YT>(choice.precision);
  // Also where no kernel of a backend will run: what is accepted must not depend on alpha.
  if (format && !mixed) {
    check_backend_types<XT, YT>("spmv", to_string(choice.algorithm), choice.precision, "x", "y", "SpmvAlgorithm::Csr");
  }
  if (alpha == 0 || A.nnz() == 0) {
    return scale_dense<AccumulatorOf<Value, XT, YT>>(space, "Tessera::spmv[scale]", beta, dense_of(y));
  }
  if constexpr (Compat::is_host_v<Exec>) {
    const bool straight = plan.automatic() && plan.natural() && choice.backend == Backend::Kokkos;
    const auto* const packed = std::get_if<PackedEngine<Csr>>(&plan.engine());
    const int blocks = packed != nullptr ? packed->format().blocks : 1;
    if (straight && plan.beside().apply(space, alpha, A, x, beta, y, blocks)) return;
  }
  if (mixed) {
    if constexpr (possible) {
      const auto* const packed = std::get_if<PackedEngine<Csr>>(&plan.engine());
      if (packed != nullptr && packed->template widens<XT, YT>()) return packed->apply(space, alpha, x, beta, y);
    }
    return CsrEngine<Csr>(A, false).apply(space, alpha, x, beta, y);
  }
  with_engine(plan.engine(), [&](const auto& engine) {
    using E = std::decay_t<decltype(engine)>;
    constexpr bool any_types = std::is_same_v<E, CsrEngine<Csr>> || std::is_same_v<E, Csr5Engine<Csr>>;
    if constexpr (any_types || possible) engine.apply(space, alpha, x, beta, y);
  });
}

}  // namespace Impl
}  // namespace Tessera

#endif
