// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SPMV_SELECT_SPMV_HPP
#define TESSERA_SPMV_SELECT_SPMV_HPP

#include <string>
#include <utility>

#include "Tessera_CsrView.hpp"
#include "Tessera_Options.hpp"
#include "core/Tessera_Selection.hpp"

namespace Tessera {
namespace Impl {

/// The cost of a candidate: the bytes that an apply is predicted to move.
using SpmvCandidate = Candidate<SpmvAlgorithm>;
using SpmvChoice = Choice<SpmvAlgorithm>;

/// Which algorithm and backend an SpmvPlan takes before it has looked at the matrix, and the sentence that says why.
template <class Csr>
class SpmvSelection {
 public:
  using Exec = typename Csr::execution_space;

  explicit SpmvSelection(const SpmvOptions& options)
      : options_(options), place_(options.backend), natural_(ScalarTraits<typename Csr::value_type>::precision) {
    choice_.precision = precision_of(options.compute, natural_);
    choice_.device = Exec::name();
    asked_ = options.algorithm != SpmvAlgorithm::Auto ? options.algorithm : forced_spmv_algorithm();
  }

  /// @throw NotSupported  a combination that exists nowhere; NotCompiled  an explicitly chosen backend that is not
  /// built
  SpmvChoice choose() {
    place_.check_place();
    require<NotSupported>(choice_.precision != Precision::TF32, [&] {
      return std::string("SpMV has no tf32 kernels: multiply this matrix of ") + to_string(natural_) +
             " with ComputeType::Auto";
    });
    if (place_.forced() == Backend::Reference) {
      return csr("plain loops were asked for", asked_ != SpmvAlgorithm::Csr && asked_ != SpmvAlgorithm::Auto);
    }
    switch (asked_) {
      case SpmvAlgorithm::Csr:
        return csr("the CSR kernel was asked for", false);
      case SpmvAlgorithm::Csr5:
        csr("CSR5 was asked for", false);
        choice_.algorithm = SpmvAlgorithm::Csr5;
        return choice_;
      case SpmvAlgorithm::PackedSlices:
        return packed_asked_for();
      case SpmvAlgorithm::Dasp:
        return dasp_asked_for();
      case SpmvAlgorithm::Bsr:
        return csr("Bsr multiplies a BsrView, this matrix has no blocks; CSR instead", true);
      default:
        return automatic();
    }
  }

 private:
  /// Straight from CSR on the execution space.
  SpmvChoice csr(std::string why, bool fallback) {
    require<NotSupported>(!fallback || options_.fallback, [&] { return why + " (fallback = false)"; });
    require<NotSupported>(choice_.precision == natural_, [&] {
      return why + "; and the CSR kernels do not round a matrix of " + to_string(natural_) + " to " +
             to_string(choice_.precision) + ": convert the values, or use SpmvAlgorithm::PackedSlices";
    });
    choice_.algorithm = SpmvAlgorithm::Csr;
    choice_.backend = place_.forced() == Backend::Reference ? Backend::Reference : Backend::Kokkos;
    choice_.fallback = fallback;
    choice_.why = std::move(why);
    return choice_;
  }
  SpmvChoice on_backend(SpmvAlgorithm algorithm, std::string why) {
    place_.take_backend(choice_, algorithm, std::move(why));
    return choice_;
  }
  /// Packed slices: the wave kernel of a backend, on hosts a portable one.
  SpmvChoice packed(std::string why) {
    if (!place_.host() || place_.emulated()) return on_backend(SpmvAlgorithm::PackedSlices, std::move(why));
    choice_.algorithm = SpmvAlgorithm::PackedSlices;
    choice_.backend = Backend::Kokkos;
    choice_.why = std::move(why);
    return choice_;
  }
  SpmvChoice packed_asked_for() {
    if (!place_.host() && place_.forced() == Backend::Kokkos) {
      return csr("packed slices on a device need its backend, Kokkos was asked for; CSR instead", true);
    }
    return packed("packed slices were asked for");
  }
  SpmvChoice dasp_asked_for() {
    if (!on_matrix_units(choice_.precision)) {
      return csr("DASP has no " + std::string(to_string(choice_.precision)) + " matrix instruction to use; CSR instead",
                 true);
    }
    if (place_.forced() == Backend::Kokkos) {
      return csr("DASP needs a matrix-unit backend, Kokkos was asked for; CSR instead", true);
    }
    return on_backend(SpmvAlgorithm::Dasp, "DASP was asked for");
  }
  SpmvChoice automatic() {
    const bool natural = choice_.precision == natural_;
    if (options_.reuse == Reuse::Once && natural) {
      return csr("set-up would not be amortised (Reuse::Once), CSR needs none", false);
    }
    if (place_.emulated() || (!natural && place_.host())) {
      return packed("packed slices serve every backend and precision asked for");
    }
    if (place_.forced() == Backend::Kokkos && !place_.host()) {
      return csr("the Kokkos backend was asked for, its SpMV on devices is the CSR kernel", false);
    }
    if (!place_.host()) {
      const std::string fault = place_.why_not();
      if (!fault.empty()) return csr(fault, true);
    }
    packed("");
    choice_.predict = true;
    return choice_;
  }

  SpmvOptions options_;
  BackendSelection<Exec> place_;
  Precision natural_;
  SpmvChoice choice_;
  SpmvAlgorithm asked_ = SpmvAlgorithm::Auto;
};

}  // namespace Impl
}  // namespace Tessera

#endif
