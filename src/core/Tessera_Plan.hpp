// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_CORE_PLAN_HPP
#define TESSERA_CORE_PLAN_HPP

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

#include "Tessera_CsrView.hpp"
#include "Tessera_Options.hpp"
#include "Tessera_Statistics.hpp"
#include "core/Tessera_Pattern.hpp"
#include "core/Tessera_Selection.hpp"
#include "core/Tessera_Transpose.hpp"

/// \file
/// What the plans of all operations do alike: keep what was selected and why, make the engine, measure two candidates,
/// hold a plan of the transposed matrix, check and take new values, report statistics.
///
/// Members are defined outside of the class on purpose: those of a PlanBody that is declared `extern template`
/// (core/Tessera_Compiled.hpp) are then not compiled again in every program.

namespace Tessera {

template <class Csr, template <class> class Operation>
class CsrPlan;

namespace Impl {

/// The matrix type that plans are compiled for: offsets of one type per width and sign do for all (int, std::size_t).
template <class Csr>
struct PlanMatrix {
  using type = Csr;
};
template <class Scalar, class Device>
struct PlanMatrix<CsrView<Scalar, int, std::make_signed_t<std::size_t>, Device>> {
  using type = CsrView<Scalar, int, std::size_t, Device>;
};
template <class Csr>
using PlanMatrixOf = typename PlanMatrix<Csr>::type;

/// The same arrays, not owned. A plan keeps its caller's view beside the body, which then copies no reference counts.
template <class Csr>
PlanMatrixOf<Csr> plan_matrix(const Csr& A) {
  using To = PlanMatrixOf<Csr>;
  using Offset = typename To::size_type;
  const auto rows = A.row_map().extent(0);
  return To(A.rows(), A.cols(), typename To::row_map_type(reinterpret_cast<const Offset*>(A.row_map().data()), rows),
            typename To::entries_type(A.entries().data(), A.nnz()),
            typename To::values_type(A.values().data(), A.nnz()));
}

/// f(engine) for the engine that a plan has, if it has one already. Comparisons, where std::visit calls through a
/// table: a product of a small matrix takes no longer than the call.
template <std::size_t First = 1, class Engines, class F>
void with_engine(Engines& engines, F&& f) {
  static_assert(std::is_same_v<std::variant_alternative_t<0, std::remove_const_t<Engines>>, std::monostate>);
  if constexpr (First < std::variant_size_v<std::remove_const_t<Engines>>) {
    if (auto* engine = std::get_if<First>(&engines)) return f(*engine);
    with_engine<First + 1>(engines, f);
  }
}

/// What a plan keeps beside its engine: Operation::Beside, if there is one.
struct NothingBeside {
  template <class Exec, class Csr>
  void update(const Exec&, const Csr&) {}
  std::size_t format_bytes() const { return 0; }
};
template <class Operation, class = void>
struct BesideOf {
  using type = NothingBeside;
};
template <class Operation>
struct BesideOf<Operation, std::void_t<typename Operation::Beside>> {
  using type = typename Operation::Beside;
};

/// Operation says what differs between operations:
///
///     Csr, Options, Algorithm, Choice, Features; Csr is a CsrView, or a BsrView (core/Tessera_Blocks.hpp)
///     Engine               a std::variant of std::monostate and engines; each has format_bytes(), update(space, A) and
///                          describe(statistics)
///     name, options_name   "spmv", "SpmvOptions"
///     transposes           whether there are products with op(A) = A^T (options.prepare_transpose)
///     trials               applies that are timed together where candidates are measured
///     choose(options)      the choices that need no look at the matrix
///     look(...)            features of the matrix, where the choice wants them, and what follows from them
///     make(...)            the engine of an algorithm
///     apply(plan, ...)     a product
///     Trial                operands of its own for a product to be timed; measurable(choice) whether they fit
///     describe(features, statistics)
///     workspace(engine, columns), usual_columns(options), forced_algorithm()
///     Beside               what a plan has beside its engine, with update(space, A) and format_bytes(); may be left
///     out
///
/// Options have algorithm (with Auto), selection, updatable and workspace.
template <class Operation>
class PlanBody {
 public:
  using Csr = typename Operation::Csr;
  using Exec = typename Csr::execution_space;
  using Options = typename Operation::Options;
  using Algorithm = typename Operation::Algorithm;
  using Features = typename Operation::Features;
  using Engine = typename Operation::Engine;

  PlanBody(const Exec& space, const Csr& A, const Options& options);
  ~PlanBody();
  PlanBody(const PlanBody&) = delete;
  PlanBody& operator=(const PlanBody&) = delete;

  /// @throw NotSupported  op without prepare_transpose
  void require_op(Op op) const;
  /// After require_op; extents are checked.
  template <class In, class Out>
  void apply(const Exec& space, Op op, double alpha, const In& in, double beta, const Out& out) const;

  /// @throw StalePlan
  void update_values(const Exec& space, const typename Csr::values_type& values);
  /// @throw StalePlan
  void update_values(const Exec& space, const Csr& A);
  bool matches(const Csr& A) const noexcept;

  std::size_t workspace_bytes(std::int64_t columns) const;
  std::size_t format_bytes() const;
  Statistics statistics() const;

  const Csr& csr() const noexcept { return csr_; }
  const Options& options() const noexcept { return options_; }
  const typename Operation::Choice& choice() const noexcept { return choice_; }
  const Features* features() const noexcept { return features_ ? &*features_ : nullptr; }
  const Engine& engine() const noexcept { return engine_; }
  const typename BesideOf<Operation>::type& beside() const noexcept { return beside_; }
  /// Nobody asked for the algorithm.
  bool automatic() const noexcept { return auto_; }
  /// The plan multiplies in the precision of the matrix.
  bool natural() const { return ScalarTraits<typename Csr::value_type>::precision == choice_.precision; }
  /// Somebody wrote other numbers into the format than csr() has; until update_values.
  void numbers_replaced() noexcept { numbers_replaced_ = true; }
  bool has_other_numbers() const noexcept { return numbers_replaced_; }
  /// Before products that take csr()'s numbers instead of the format's. @throw StalePlan
  void require_own_numbers() const {
    require<StalePlan>(!numbers_replaced_, [] {
      return std::string(Operation::name) +
             ": the format's numbers were replaced, so that products of types that it does not take, which read the "
             "matrix's arrays, have none: call update_values first";
    });
  }

 private:
  void make_engine(const Exec& space, Algorithm algorithm);
  void measure(const Exec& space);
  double time_trial(const Exec& space, const typename Operation::Trial& trial) const;
  void report() const;

  Csr csr_;
  Options options_;
  typename Operation::Choice choice_;
  Backend format_backend_ = Backend::Kokkos;  ///< of formats, and whose memory pool is used
  bool auto_ = false, numbers_replaced_ = false;
  std::optional<Features> features_;
  Engine engine_;
  typename BesideOf<Operation>::type beside_;
  std::optional<Transposed<Csr>> transposed_;
  std::unique_ptr<PlanBody> transpose_plan_;
  double setup_seconds_ = 0;
};

template <class Operation>
PlanBody<Operation>::PlanBody(const Exec& space, const Csr& A, const Options& options) : csr_(A), options_(options) {
  const auto begin = std::chrono::steady_clock::now();
  const Compat::ScopedRegion region(std::string("Tessera::") + Operation::name + " setup");
  choice_ = Operation::choose(options);
  format_backend_ = choice_.backend;
  Operation::look(space, A, options, choice_, features_);
  auto_ = options.algorithm == Algorithm::Auto && Operation::forced_algorithm() == Algorithm::Auto;
  make_engine(space, choice_.algorithm);
  const bool can_measure =
      choice_.candidates.size() > 1 && options.workspace.bytes == 0 && Operation::measurable(choice_);
  if (options.selection == Selection::Measure && can_measure) measure(space);
  options_.algorithm = choice_.algorithm;
  options_.backend = choice_.backend;
  if constexpr (Operation::transposes) {
    if (options.prepare_transpose) {
      transposed_ = transpose(space, A);
      Options inner = options;
      inner.prepare_transpose = false;
      inner.workspace = {};
      transpose_plan_ = std::make_unique<PlanBody>(space, transposed_->view(), inner);
    }
  }
  setup_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (verbose()) report();
}

template <class Operation>
PlanBody<Operation>::~PlanBody() = default;

template <class Operation>
template <class In, class Out>
void PlanBody<Operation>::apply(const Exec& space, Op op, double alpha, const In& in, double beta,
                                const Out& out) const {
  if (op == Op::NoTrans) return Operation::apply(*this, space, alpha, in, beta, out);
  transpose_plan_->apply(space, Op::NoTrans, alpha, in, beta, out);
}

template <class Operation>
void PlanBody<Operation>::require_op(Op op) const {
  require<NotSupported>(op == Op::NoTrans || transpose_plan_ != nullptr, [] {
    return std::string("op(A) = A^T needs ") + Operation::options_name +
           "::prepare_transpose = true when the plan is made";
  });
}

template <class Operation>
void PlanBody<Operation>::make_engine(const Exec& space, Algorithm algorithm) {
  engine_.template emplace<std::monostate>();  // the memory of another engine is given back first
  choice_.algorithm = algorithm;
  Operation::make(engine_, space, csr_, options_, choice_, format_backend_, features_);
}

/// Selection::Measure: times the two best predictions on operands of its own and keeps the faster.
template <class Operation>
void PlanBody<Operation>::measure(const Exec& space) {
  const typename Operation::Trial trial(csr_, options_);
  const Algorithm first = choice_.candidates[0].algorithm, second = choice_.candidates[1].algorithm;
  const double time_first = time_trial(space, trial);
  make_engine(space, second);
  const double time_second = time_trial(space, trial);
  if (time_first <= time_second) make_engine(space, first);
  char text[160];
  std::snprintf(text, sizeof(text), "measured on this matrix: %s %.3g us, %s %.3g us", to_string(first),
                1e6 * time_first, to_string(second), 1e6 * time_second);
  choice_.why = text;
}

template <class Operation>
double PlanBody<Operation>::time_trial(const Exec& space, const typename Operation::Trial& trial) const {
  double best = 0;
  for (int repeat = 0; repeat < 4; ++repeat) {  // the first one warms up
    Compat::fence(space, "Tessera: measure");
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < Operation::trials; ++i) trial(*this, space);
    Compat::fence(space, "Tessera: measure");
    const double t = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (repeat == 1 || (repeat > 1 && t < best)) best = t;
  }
  return best / Operation::trials;
}

template <class Operation>
void PlanBody<Operation>::update_values(const Exec& space, const typename Csr::values_type& values) {
  require<StalePlan>(values.extent(0) == csr_.nnz(), [&] {
    return "update_values: the plan was made for " + std::to_string(csr_.nnz()) + " values, " +
           std::to_string(values.extent(0)) + " were given";
  });
  require<StalePlan>(options_.updatable,
                     [] { return std::string("update_values: the plan was made with updatable = false"); });
  const Csr given = with_values(csr_, values);
  with_engine(engine_, [&](auto& engine) { engine.update(space, given); });
  beside_.update(space, given);
  csr_ = given;  // not if the format has no room for the numbers
  numbers_replaced_ = false;
  if constexpr (Operation::transposes) {
    if (!transpose_plan_) return;
    update_transposed_values(space, *transposed_, values);
    transpose_plan_->update_values(space, transposed_->view().values());
  }
}
template <class Operation>
void PlanBody<Operation>::update_values(const Exec& space, const Csr& A) {
  require<StalePlan>(matches(A), [] {
    return std::string("update_values: the matrix has other sizes or other pattern arrays than the plan was made for");
  });
  update_values(space, A.values());
}

template <class Operation>
bool PlanBody<Operation>::matches(const Csr& A) const noexcept {
  return same_pattern(A, csr_);
}

template <class Operation>
std::size_t PlanBody<Operation>::workspace_bytes(std::int64_t columns) const {
  std::size_t bytes = 0;
  with_engine(engine_, [&](const auto& engine) { bytes = Operation::workspace(engine, columns); });
  return bytes;
}

template <class Operation>
std::size_t PlanBody<Operation>::format_bytes() const {
  std::size_t own = 0;
  with_engine(engine_, [&](const auto& engine) { own = engine.format_bytes(); });
  return own + beside_.format_bytes() + (transpose_plan_ ? transpose_plan_->format_bytes() : 0);
}

template <class Operation>
Statistics PlanBody<Operation>::statistics() const {
  Statistics s;
  s.operation = Operation::name;
  s.algorithm = to_string(choice_.algorithm);
  s.backend = to_string(choice_.backend);
  s.compute = to_string(choice_.precision);
  s.device = choice_.device;
  s.why = choice_.reason();
  s.rows = static_cast<long long>(csr_.rows());
  s.cols = static_cast<long long>(csr_.cols());
  s.nnz = s.stored = static_cast<long long>(csr_.nnz());
  s.row_mean = s.rows > 0 ? static_cast<double>(s.nnz) / static_cast<double>(s.rows) : 0;
  s.csr_bytes = csr_bytes(csr_);
  s.format_bytes = s.csr_bytes;
  s.setup_seconds = setup_seconds_;
  s.launches = choice_.backend == Backend::Reference ? 0 : 1;
  s.fallback_taken = choice_.fallback;
  s.transpose_prepared = transpose_plan_ != nullptr;
  with_engine(engine_, [&](const auto& engine) { engine.describe(s); });
  s.workspace_bytes = workspace_bytes(Operation::usual_columns(options_));
  s.padding_ratio = s.nnz > 0 ? static_cast<double>(s.stored) / static_cast<double>(s.nnz) - 1 : 0;
  if (features_) Operation::describe(*features_, s);
  return s;
}

template <class Operation>
void PlanBody<Operation>::report() const {
  std::fprintf(stderr, "Tessera: %s %lld x %lld, %lld entries: %s on %s (%s)\n", Operation::name,
               static_cast<long long>(csr_.rows()), static_cast<long long>(csr_.cols()),
               static_cast<long long>(csr_.nnz()), to_string(choice_.algorithm), to_string(choice_.backend),
               choice_.reason().c_str());
}

/// What is inside a plan: for those that write into its format, and for tests.
struct PlanAccess {
  /// To be called by who has written into the format.
  template <class Csr, template <class> class Operation>
  static void numbers_replaced(const CsrPlan<Csr, Operation>& plan) {
    plan.body_->numbers_replaced();
  }
  /// The matrix that the plan was made of.
  template <class Csr, template <class> class Operation>
  static const auto& matrix(const CsrPlan<Csr, Operation>& plan) {
    return plan.body_->csr();
  }
  /// The format of this kind that the plan has converted its matrix to, or null.
  template <class Format, class Csr, template <class> class Operation>
  static const Format* format(const CsrPlan<Csr, Operation>& plan) {
    const Format* found = nullptr;
    with_engine(plan.body_->engine(), [&](const auto& engine) { look<Format>(engine, found, 0); });
    return found;
  }

 private:
  template <class Format, class Engine>
  static auto look(const Engine& engine, const Format*& found, int)
      -> std::enable_if_t<std::is_same_v<std::decay_t<decltype(engine.format())>, Format>> {
    found = &engine.format();
  }
  template <class Format, class Engine>
  static void look(const Engine&, const Format*&, long) {}
};

}  // namespace Impl
}  // namespace Tessera

#endif
