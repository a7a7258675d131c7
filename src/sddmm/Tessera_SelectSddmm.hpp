// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SDDMM_SELECT_SDDMM_HPP
#define TESSERA_SDDMM_SELECT_SDDMM_HPP

#include <cstdlib>
#include <string>
#include <utility>

#include "core/Tessera_Selection.hpp"
#include "sddmm/Tessera_SddmmOptions.hpp"

namespace Tessera {
namespace Impl {

/// costs of candidates: the time an apply is predicted to take, in any unit.
using SddmmCandidate = Candidate<SddmmAlgorithm>;
using SddmmChoice = Choice<SddmmAlgorithm>;

/// What TESSERA_FORCE_SDDMM_ALGORITHM asks for. @throw InvalidArgument  unknown name
inline SddmmAlgorithm forced_sddmm_algorithm() {
  const char* const name = std::getenv("TESSERA_FORCE_SDDMM_ALGORITHM");
  return name == nullptr || *name == 0 ? SddmmAlgorithm::Auto : parse_sddmm_algorithm(name);
}

/// Whether an algorithm multiplies windows of rows on matrix units.
inline bool has_windows(SddmmAlgorithm a) {
  return a == SddmmAlgorithm::Panels || a == SddmmAlgorithm::FlashSparse || a == SddmmAlgorithm::Bsmr;
}

/// Which algorithm and backend an SddmmPlan takes before it has looked at the pattern, and the sentence that says why.
template <class Csr>
class SddmmSelection {
 public:
  using Exec = typename Csr::execution_space;

  /// @throw InvalidArgument
  explicit SddmmSelection(const SddmmOptions& options)
      : options_(options), place_(options.backend), natural_(ScalarTraits<typename Csr::value_type>::precision) {
    require<InvalidArgument>(options.inner_hint >= 0, [&] {
      return "SddmmOptions::inner_hint must not be negative, is " + std::to_string(options.inner_hint);
    });
    require<InvalidArgument>(options.window_height >= 0 && options.window_height <= 2, [&] {
      return "SddmmOptions::window_height must be 1 or 2, or 0, is " + std::to_string(options.window_height);
    });
    require<InvalidArgument>(options.bsmr.dense_from >= 0, [&] {
      return "BsmrOptions::dense_from must not be negative, is " + std::to_string(options.bsmr.dense_from);
    });
    require<InvalidArgument>(options.bsmr.column_block >= 0, [&] {
      return "BsmrOptions::column_block must not be negative, is " + std::to_string(options.bsmr.column_block);
    });
    require<InvalidArgument>(options.bsmr.least_similarity <= 1, [&] {
      return "BsmrOptions::least_similarity must be at most 1, is " + std::to_string(options.bsmr.least_similarity);
    });
    choice_.precision = precision_of(options.compute, natural_);
    choice_.device = Exec::name();
    asked_ = options.algorithm != SddmmAlgorithm::Auto ? options.algorithm : forced_sddmm_algorithm();
  }

  /// @throw NotSupported  a combination that exists nowhere; NotCompiled  an explicitly chosen backend that is not
  /// built
  SddmmChoice choose() {
    place_.check_place();
    if (place_.forced() == Backend::Reference) {
      return straight(SddmmAlgorithm::Csr, "plain loops were asked for", has_windows(asked_));
    }
    if (asked_ == SddmmAlgorithm::Csr) return straight(asked_, "the CSR kernel was asked for", false);
    if (asked_ == SddmmAlgorithm::Rows) return rows("Rows was asked for", false);
    if (has_windows(asked_)) return windows();
    return automatic();
  }

 private:
  bool usable() const { return place_.forced() != Backend::Kokkos && place_.why_not().empty(); }
  bool own_rows() const {
    return (place_.emulated() || !place_.host()) && usable() && kernel_table(place_.backend()).sddmm.rows != nullptr;
  }
  bool own_panels() const {
    return usable() && kernel_table(place_.backend()).sddmm.windows != nullptr &&
           kernel_table(place_.backend()).sddmm.shape(choice_.precision).rows > 0;
  }

  /// Straight from CSR in Kokkos, or plain loops.
  SddmmChoice straight(SddmmAlgorithm algorithm, std::string why, bool fallback) {
    require<NotSupported>(!fallback || options_.fallback, [&] { return why + " (fallback = false)"; });
    require<NotSupported>(choice_.precision != Precision::TF32, [&] {
      return why +
             "; and plain CSR, CPUs and the Kokkos backend have no tf32: use ComputeType::FP32, or Panels or Rows " +
             "where a backend has matrix units";
    });
    choice_.algorithm = algorithm;
    choice_.backend = place_.forced() == Backend::Reference ? Backend::Reference : Backend::Kokkos;
    choice_.fallback = fallback;
    choice_.why = std::move(why);
    return choice_;
  }
  SddmmChoice rows(std::string why, bool fallback) {
    if (!own_rows()) return straight(SddmmAlgorithm::Rows, std::move(why), fallback);
    require<NotSupported>(!fallback || options_.fallback, [&] { return why + " (fallback = false)"; });
    place_.take_backend(choice_, SddmmAlgorithm::Rows, std::move(why));
    choice_.fallback = fallback;
    return choice_;
  }
  /// Where has_windows(asked_).
  SddmmChoice windows() {
    const std::string name = asked_ == SddmmAlgorithm::Panels        ? "Panels"
                             : asked_ == SddmmAlgorithm::FlashSparse ? "FlashSparse"
                                                                     : "Bsmr";
    if (place_.forced() == Backend::Kokkos) {
      return rows(name + " needs a matrix-unit backend, Kokkos was asked for; Rows instead", true);
    }
    const std::string fault = place_.why_not();
    if (!fault.empty()) return rows(fault + "; Rows instead of " + name, true);
    if (!own_panels()) {
      return rows(name + " has no kernel for " + to_string(choice_.precision) + "; Rows instead", true);
    }
    place_.take_backend(choice_, asked_, name + " was asked for");
    return choice_;
  }
  SddmmChoice automatic() {
    const bool tf32 = choice_.precision == Precision::TF32;
    if (options_.reuse == Reuse::Once && !tf32) {
      return straight(SddmmAlgorithm::Csr, "set-up would not be amortised (Reuse::Once), CSR needs none", false);
    }
    if (place_.forced() == Backend::Kokkos) {
      return straight(SddmmAlgorithm::Rows, "the Kokkos backend was asked for, its SDDMM is Rows", false);
    }
    if (place_.host() && !place_.emulated() && !tf32) {
      return straight(SddmmAlgorithm::Rows, "hosts have no matrix units, entries are computed in vectors", false);
    }
    const std::string fault = place_.why_not();
    if (!fault.empty()) return straight(SddmmAlgorithm::Rows, fault, true);
    if (!own_panels()) return rows("the backend has no matrix units for this precision", false);
    place_.take_backend(choice_, SddmmAlgorithm::Panels,
                        place_.emulated() ? "emulated matrix units were asked for"
                                          : "hosts have no tf32: emulated matrix units, slow, for comparisons");
    choice_.predict = !place_.host() && own_rows();
    return choice_;
  }

  SddmmOptions options_;
  BackendSelection<Exec> place_;
  Precision natural_;
  SddmmChoice choice_;
  SddmmAlgorithm asked_ = SddmmAlgorithm::Auto;
};

}  // namespace Impl
}  // namespace Tessera

#endif
