// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: Copyright Contributors to the Tessera project
#include <algorithm>

#include "Tessera_Compat.hpp"
#include "spmv/Tessera_BenchSpmv.hpp"

namespace Tessera {
namespace Bench {
namespace {

bool has_matrix_instruction(Precision p) { return p != Precision::FP32; }

/// "all": what can serve this precision and backend.
std::vector<SpmvAlgorithm> algorithms(const BenchOptions& options, Precision precision) {
  std::vector<SpmvAlgorithm> result;
  const auto add = [&](SpmvAlgorithm a) {
    if (std::find(result.begin(), result.end(), a) == result.end()) result.push_back(a);
  };
  const Backend b = options.backend;
  const bool portable = b == Backend::Auto || b == Backend::Kokkos;
  const bool unit = b != Backend::Kokkos && b != Backend::Reference;
  // Packed slices have a portable kernel on hosts only.
  const bool packed = unit || (portable && Compat::is_host_v<Kokkos::DefaultExecutionSpace>);
  for (const std::string& name : options.algorithms) {
    if (name != "all") {
      add(parse_spmv_algorithm(name));
      continue;
    }
    if (portable || b == Backend::Reference) add(SpmvAlgorithm::Csr);
    if (portable) add(SpmvAlgorithm::Csr5);
    if (packed) add(SpmvAlgorithm::PackedSlices);
    if (unit && has_matrix_instruction(precision)) add(SpmvAlgorithm::Dasp);
    if (options.block > 0 && b != Backend::Reference && bytes_of(precision) > 2) add(SpmvAlgorithm::Bsr);
    if (b == Backend::Auto) add(SpmvAlgorithm::Auto);
  }
  if (options.regret) add(SpmvAlgorithm::Auto);
  std::stable_sort(result.begin(), result.end(), [](SpmvAlgorithm l, SpmvAlgorithm r) {
    return (l == SpmvAlgorithm::Csr) > (r == SpmvAlgorithm::Csr);
  });
  return result;
}

}  // namespace

std::vector<SpmvVariant> spmv_variants(const BenchOptions& options, Precision precision) {
  std::vector<SpmvVariant> variants;
  for (const SpmvAlgorithm a : algorithms(options, precision)) {
    if (a != SpmvAlgorithm::Dasp || !options.ablation) {
      variants.push_back({a, options.dasp, ""});
      continue;
    }
    for (const bool adaptive : {true, false}) {
      for (const bool bypass : {true, false}) {
        SpmvVariant v{a, options.dasp,
                      std::string("adaptive=") + (adaptive ? "1" : "0") + ",bypass=" + (bypass ? "1" : "0")};
        v.dasp.adaptive_work = adaptive;
        v.dasp.bypass = bypass ? CacheBypass::Always : CacheBypass::Never;
        variants.push_back(v);
      }
    }
  }
  return variants;
}

}  // namespace Bench
}  // namespace Tessera
