// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMM_SELECT_SPMM_HPP
#define TESSERA_SPMM_SELECT_SPMM_HPP

#include <string>
#include <utility>

#include "core/Tessera_Selection.hpp"
#include "spmm/Tessera_FlashEngine.hpp"
#include "spmm/Tessera_GeSpmmEngine.hpp"
#include "spmm/Tessera_PanelEngine.hpp"

namespace Tessera {
namespace Impl {

/// The cost of a candidate: the time that an apply is predicted to take, in any unit.
using SpmmCandidate = Candidate<SpmmAlgorithm>;

struct SpmmChoice : Choice<SpmmAlgorithm> {
  GeSpmmPattern pattern;    ///< for GeSpmm, where `looks`
  bool in_columns = false;  ///< whether products in columns may go by a backend's rows, whatever was chosen

  /// Whether features of the matrix are wanted: also for a backend's rows, which walk by them.
  bool looks() const {
    return predict || in_columns || (algorithm == SpmmAlgorithm::GeSpmm && backend != Backend::Kokkos);
  }
};

/// Whether a backend multiplies by this algorithm in this precision.
inline bool offers_spmm(const KernelTable& table, SpmmAlgorithm algorithm, Precision precision,
                        const SpmmOptions& options) {
  if (algorithm == SpmmAlgorithm::Panels) return panel_shape(table, precision, options.num_columns_hint) != nullptr;
  return algorithm == SpmmAlgorithm::FlashSparse &&
         flash_shape(table, precision, options.flash.vector_length).depth > 0;
}

/// @throw InvalidArgument
inline void check(const SpmmOptions& o) {
  require<InvalidArgument>(o.num_columns_hint >= 0, [&] {
    return "SpmmOptions::num_columns_hint must not be negative, is " + std::to_string(o.num_columns_hint);
  });
}

/// Which algorithm and backend an SpmmPlan takes before it has looked at the matrix, and the sentence that says why.
template <class Csr>
class SpmmSelection {
 public:
  using Exec = typename Csr::execution_space;

  explicit SpmmSelection(const SpmmOptions& options)
      : options_(options), place_(options.backend), natural_(ScalarTraits<typename Csr::value_type>::precision) {
    check(options);
    choice_.precision = precision_of(options.compute, natural_);
    choice_.device = Exec::name();
    asked_ = options.algorithm != SpmmAlgorithm::Auto ? options.algorithm : forced_spmm_algorithm();
  }

  /// @throw NotSupported  a combination that exists nowhere; NotCompiled  an explicitly chosen backend that is not
  /// built
  SpmmChoice choose() {
    place_.check_place();
    if (place_.forced() == Backend::Reference) {
      const bool other = asked_ != SpmmAlgorithm::Csr && asked_ != SpmmAlgorithm::Auto;
      return straight(SpmmAlgorithm::Csr, "plain loops were asked for", other);
    }
    if (asked_ == SpmmAlgorithm::Csr) return straight(asked_, "the CSR kernel was asked for", false);
    if (asked_ == SpmmAlgorithm::GeSpmm) return straight(asked_, "GeSpmm was asked for", false);
    if (asked_ != SpmmAlgorithm::Auto) return windows_asked_for();
    return automatic();
  }

 private:
  /// Straight from CSR on the execution space.
  SpmmChoice straight(SpmmAlgorithm algorithm, std::string why, bool fallback) {
    require<NotSupported>(!fallback || options_.fallback, [&] { return why + " (fallback = false)"; });
    const Precision precision = choice_.precision;
    // A backend's own kernel for compressed rows, and its memory pool.
    const bool own = algorithm == SpmmAlgorithm::GeSpmm && (place_.emulated() || !place_.host()) &&
                     place_.forced() != Backend::Kokkos && place_.forced() != Backend::Reference &&
                     place_.why_not().empty() && kernel_table(place_.backend()).spmm.gespmm != nullptr;
    const bool tf32 = precision == Precision::TF32;
    require<NotSupported>(!tf32 || (own && natural_ == Precision::FP32), [&] {
      return why + "; and " +
             (own ? "GeSpmm in tf32 is for matrices of float" : "plain CSR, CPUs and the Kokkos backend have no tf32") +
             ": use ComputeType::FP32, or Panels or FlashSparse where a backend has matrix units";
    });
    require<NotSupported>(algorithm != SpmmAlgorithm::Csr || precision == natural_, [&] {
      return why + "; and the CSR kernels do not round a matrix of " + to_string(natural_) + " to " +
             to_string(precision) + ": use SpmmAlgorithm::GeSpmm";
    });
    choice_.algorithm = algorithm;
    choice_.backend = place_.forced() == Backend::Reference ? Backend::Reference : Backend::Kokkos;
    if (own && (tf32 || precision == natural_)) choice_.backend = place_.backend();
    choice_.fallback = fallback;
    choice_.why = std::move(why);
    return choice_;
  }
  SpmmChoice on_backend(SpmmAlgorithm algorithm, std::string why) {
    place_.take_backend(choice_, algorithm, std::move(why));
    return choice_;
  }
  bool offers(SpmmAlgorithm algorithm) const {
    return offers_spmm(kernel_table(place_.backend()), algorithm, choice_.precision, options_);
  }

  SpmmChoice windows_asked_for() {
    const std::string name = asked_ == SpmmAlgorithm::Panels ? "Panels" : "FlashSparse";
    if (place_.forced() == Backend::Kokkos) {
      return straight(SpmmAlgorithm::GeSpmm,
                      name + " needs a matrix-unit backend, Kokkos was asked for; GeSpmm instead", true);
    }
    const std::string fault = place_.why_not();
    if (!fault.empty()) return straight(SpmmAlgorithm::GeSpmm, fault + "; GeSpmm instead of " + name, true);
    if (!offers(asked_)) {
      return straight(SpmmAlgorithm::GeSpmm,
                      name + " has no kernel for " + to_string(choice_.precision) + " on backend '" +
                          kernel_table(place_.backend()).name + "'; GeSpmm instead",
                      true);
    }
    return on_backend(asked_, name + " was asked for");
  }
  SpmmChoice automatic() {
    const bool tf32 = choice_.precision == Precision::TF32, host = place_.host();
    if (options_.reuse == Reuse::Once && choice_.precision == natural_) {
      return straight(SpmmAlgorithm::Csr, "set-up would not be amortised (Reuse::Once), CSR needs none", false);
    }
    if (place_.forced() == Backend::Kokkos) {
      return straight(SpmmAlgorithm::GeSpmm, "the Kokkos backend was asked for, its SpMM is GeSpmm", false);
    }
    if (host && !place_.emulated() && !tf32) {
      return straight(SpmmAlgorithm::GeSpmm, "hosts have no matrix units, rows are multiplied in vectors of columns",
                      false);
    }
    const std::string fault = place_.why_not();
    if (!fault.empty()) return straight(SpmmAlgorithm::GeSpmm, fault, true);
    const bool panels = offers(SpmmAlgorithm::Panels), flash = offers(SpmmAlgorithm::FlashSparse);
    if (!panels && !flash) {
      return straight(SpmmAlgorithm::GeSpmm,
                      "backend '" + std::string(kernel_table(place_.backend()).name) + "' has no " +
                          to_string(choice_.precision) + " matrix units for SpMM",
                      false);
    }
    const SpmmAlgorithm first = panels ? SpmmAlgorithm::Panels : SpmmAlgorithm::FlashSparse;
    on_backend(first, place_.emulated() ? "emulated matrix units were asked for"
                                        : "hosts have no tf32: emulated matrix units, slow, for comparisons");
    choice_.predict = !host;
    choice_.in_columns = kernel_table(place_.backend()).spmm.gespmm != nullptr;
    return choice_;
  }

  SpmmOptions options_;
  BackendSelection<Exec> place_;
  Precision natural_;
  SpmmChoice choice_;
  SpmmAlgorithm asked_ = SpmmAlgorithm::Auto;
};

}  // namespace Impl
}  // namespace Tessera

#endif
