// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#ifndef TESSERA_SELECT_SPMV_HPP
#define TESSERA_SELECT_SPMV_HPP

#include <cstdint>
#include <string>
#include <vector>

#include "Tessera_CsrView.hpp"
#include "Tessera_Options.hpp"
#include "core/Tessera_Backends.hpp"

/// \file
/// Which algorithm and backend an SpmvPlan takes, and the sentence that says why. Strongest first: the options, then
/// TESSERA_FORCE_BACKEND / TESSERA_FORCE_ALGORITHM, then the rules below. No rule ever changes the precision.

namespace Tessera {
namespace Impl {

/// An algorithm that could be taken, and the bytes an apply is predicted to move.
struct SpmvCandidate {
  SpmvAlgorithm algorithm;
  double bytes;
};

struct SpmvChoice {
  SpmvAlgorithm algorithm = SpmvAlgorithm::Csr;
  Backend backend = Backend::Kokkos;
  Precision precision = Precision::FP64;
  bool fallback = false;
  bool predict = false;  ///< the matrix decides: see Tessera_SpmvRules.hpp
  std::vector<SpmvCandidate> candidates;
  std::string why, device;
};

/// @throw NotSupported  a combination that exists nowhere; NotCompiled  an explicitly chosen backend that is not built
template <class Csr>
SpmvChoice select_spmv(const SpmvOptions& options) {
  using Exec = typename Csr::execution_space;
  const Precision natural = ScalarTraits<typename Csr::value_type>::precision;
  SpmvChoice c;
  c.precision = precision_of(options.compute, natural);
  c.device = Exec::name();

  const Backend forced = options.backend != Backend::Auto ? options.backend : forced_backend();
  const SpmvAlgorithm asked = options.algorithm != SpmvAlgorithm::Auto ? options.algorithm : forced_spmv_algorithm();
  const bool emulated = forced == Backend::EmulatedNvidia || forced == Backend::EmulatedAmd;
  const bool device = forced == Backend::Cuda || forced == Backend::Hip;

  // What cannot be, whatever the algorithm.
  if (device) kernel_table(forced);  // throws NotCompiled or NotSupported
  require<NotSupported>(!device || natural_backend<Exec>() == forced, [&] {
    return "backend '" + std::string(to_string(forced)) +
           "' needs Views in its device's memory; this matrix lives on " + Exec::name();
  });
  require<NotSupported>(!emulated || Compat::is_host_v<Exec>, [&] {
    return "backend '" + std::string(to_string(forced)) + "' runs on host execution spaces; this matrix lives on " +
           Exec::name();
  });

  const auto csr = [&](std::string why, bool fallback) {
    require<NotSupported>(!fallback || options.fallback, [&] { return why + " (fallback = false)"; });
    require<NotSupported>(c.precision == natural, [&] {
      return std::string(why) + "; and the CSR kernels do not round a matrix of " + to_string(natural) + " to " +
             to_string(c.precision) + ": convert the values, or use SpmvAlgorithm::PackedSlices";
    });
    c.algorithm = SpmvAlgorithm::Csr;
    c.backend = forced == Backend::Reference ? Backend::Reference : Backend::Kokkos;
    c.fallback = fallback;
    c.why = std::move(why);
    return c;
  };
  const auto on_backend = [&](SpmvAlgorithm algorithm, std::string why) {
    c.algorithm = algorithm;
    c.backend = emulated || device ? forced : natural_backend<Exec>();
    c.device = kernel_table(c.backend).name;
    DeviceFacts facts;
    if (kernel_table(c.backend).runtime.device_facts(facts).ok()) c.device = facts.name;
    c.why = std::move(why);
    return c;
  };
  const auto dasp = [&](std::string why) { return on_backend(SpmvAlgorithm::Dasp, std::move(why)); };
  // Packed slices: the wave kernel of a backend, on hosts a portable one.
  const auto packed = [&](std::string why) {
    if (!Compat::is_host_v<Exec> || emulated) return on_backend(SpmvAlgorithm::PackedSlices, std::move(why));
    c.algorithm = SpmvAlgorithm::PackedSlices;
    c.backend = Backend::Kokkos;
    c.why = std::move(why);
    return c;
  };

  if (forced == Backend::Reference) {
    require<NotSupported>(Compat::is_host_v<Exec>, [] {
      return std::string("backend 'reference' runs on host execution spaces; mirror the matrix first");
    });
    return csr("plain loops were asked for", asked != SpmvAlgorithm::Csr && asked != SpmvAlgorithm::Auto);
  }
  if (asked == SpmvAlgorithm::Csr) return csr("the CSR kernel was asked for", false);
  if (asked == SpmvAlgorithm::Csr5) {
    csr("CSR5 was asked for", false);
    c.algorithm = SpmvAlgorithm::Csr5;
    return c;
  }
  if (asked == SpmvAlgorithm::PackedSlices) {
    require<NotSupported>(c.precision != Precision::TF32, [] {
      return std::string("packed slices multiply in fp64, fp32, fp16 or bf16; tf32 is for matrix products");
    });
    if (!Compat::is_host_v<Exec> && forced == Backend::Kokkos) {
      return csr("packed slices on a device need its backend, Kokkos was asked for; CSR instead", true);
    }
    return packed("packed slices were asked for");
  }
  if (asked == SpmvAlgorithm::Dasp) {
    if (!on_matrix_units(c.precision)) {
      return csr("DASP has no " + std::string(to_string(c.precision)) + " matrix instruction to use; CSR instead",
                 true);
    }
    if (forced == Backend::Kokkos)
      return csr("DASP needs a matrix-unit backend, Kokkos was asked for; CSR instead", true);
    return dasp("DASP was asked for");
  }

  // Auto.
  if (options.reuse == Reuse::Once && c.precision == natural) {
    return csr("set-up would not be amortised (Reuse::Once), CSR needs none", false);
  }
  if (c.precision == Precision::TF32) return csr("SpMV has no tf32 kernels", false);
  if (emulated || (c.precision != natural && Compat::is_host_v<Exec>)) {
    return packed("packed slices serve every backend and precision asked for");
  }
  if (forced == Backend::Kokkos && !Compat::is_host_v<Exec>) {
    return csr("the Kokkos backend was asked for, its SpMV on devices is the CSR kernel", false);
  }
  if (Compat::is_host_v<Exec>) {
    packed("");
    c.predict = true;
    return c;
  }
  const Backend backend = natural_backend<Exec>();
  for (const BackendInfo& info : available_backends()) {
    if (info.backend != backend) continue;
    if (!info.usable) return csr("backend '" + info.name + "' cannot be used: " + info.reason, true);
    on_backend(SpmvAlgorithm::PackedSlices, "");
    c.predict = true;
    return c;
  }
  return csr("no backend for " + std::string(Exec::name()), true);
}

}  // namespace Impl
}  // namespace Tessera

#endif
